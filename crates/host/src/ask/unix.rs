//! Listening Unix sockets, with the callers in their queues.
//!
//! A stream socket of the local machine has no counters at all: a connection that finds the queue full waits, or fails with EAGAIN where the
//! caller does not block, and nothing is counted. Only the length of the queue shows it.
//! Source: `linux/unix_diag.h`, `sk_diag_show_rqlen` of net/unix/diag.c, `unix_stream_connect` of `net/unix/af_unix.c`, Linux 6.18.

use std::collections::BTreeSet;
use std::io;
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;

use rungwise_model::kernel::UnixListener;

use crate::netlink::{DUMP, Message, Request, attributes, number32};

const SOCK_DIAG: isize = libc::NETLINK_SOCK_DIAG as isize;
const SOCK_DIAG_BY_FAMILY: u16 = 20;
const UNIX_DIAG_NAME: u16 = 0;
/// struct `unix_diag_vfs`: inode and device of the file.
const UNIX_DIAG_VFS: u16 = 1;
const UNIX_DIAG_ICONS: u16 = 3;
const UNIX_DIAG_RQLEN: u16 = 4;
const SHOW_NAME: u32 = 0x01;
const SHOW_VFS: u32 = 0x02;
const SHOW_ICONS: u32 = 0x08;
const SHOW_RQLEN: u32 = 0x10;
/// `TCP_LISTEN` of `net/tcp_states.h`, as Unix sockets have it as well.
const LISTEN: u8 = 10;
/// Most listeners whose callers are read, and most callers of one: the answer of the kernel fits one page.
const MOST_LISTENERS: usize = 16;
const MOST_CALLERS: u32 = 512;
/// struct `unix_diag_req`.
const REQUEST: usize = 24;
/// struct `unix_diag_msg`.
const FIXED: usize = 16;

/// All that listen in this network namespace.
pub(super) fn listeners() -> io::Result<Vec<UnixListener>> {
    let mut fixed = asked_for(SHOW_NAME | SHOW_RQLEN);
    fixed[4..8].copy_from_slice(&(1_u32 << LISTEN).to_ne_bytes());
    let mut request = Request::default();
    request.message(SOCK_DIAG_BY_FAMILY, DUMP, &fixed);
    let mut found = Vec::new();
    let asked = request.each(SOCK_DIAG, |message| found.extend(listener(message)));
    asked.map_err(|error| match error.raw_os_error() {
        Some(libc::ENOENT | libc::EPROTONOSUPPORT) => io::Error::new(
            io::ErrorKind::Unsupported,
            "this kernel does not list Unix sockets (CONFIG_UNIX_DIAG)",
        ),
        _ => error,
    })?;
    let waited_for = |listener: &&mut UnixListener| (1..=MOST_CALLERS).contains(&listener.waiting);
    for listener in found.iter_mut().filter(waited_for).take(MOST_LISTENERS) {
        // Without them only the length of the queue is known.
        listener.callers = callers(listener.inode).unwrap_or_default();
    }
    Ok(found)
}

/// Inodes of those that listen on a path, whatever name they were bound to: a server may have entered a folder before.
pub(super) fn listeners_on(path: &Path) -> io::Result<BTreeSet<u64>> {
    let file = std::fs::metadata(path)?;
    // The kernel's own form of a device number (`MKDEV` of linux/kdev_t.h).
    let device = (libc::major(file.dev()) << 20) | libc::minor(file.dev());
    let mut fixed = asked_for(SHOW_VFS);
    fixed[4..8].copy_from_slice(&(1_u32 << LISTEN).to_ne_bytes());
    let mut request = Request::default();
    request.message(SOCK_DIAG_BY_FAMILY, DUMP, &fixed);
    let mut found = BTreeSet::new();
    request.each(SOCK_DIAG, |message| {
        let fixed = message.fixed(FIXED);
        let vfs = attributes(message.rest(FIXED)).find(|(kind, _)| *kind == UNIX_DIAG_VFS);
        let vfs = vfs.map_or(&[][..], |(_, value)| value);
        let is_it = message.kind == SOCK_DIAG_BY_FAMILY
            && number32(vfs, 0) == Some(file.ino() as u32)
            && number32(vfs, 4) == Some(device);
        if let Some(inode) = number32(fixed, 4).filter(|_| is_it) {
            found.insert(inode.into());
        }
    })?;
    Ok(found)
}

/// The callers that wait at one listener. They are not part of the dump, which ends at a listener with more of them than fit.
fn callers(inode: u64) -> io::Result<Vec<u32>> {
    let mut fixed = asked_for(SHOW_ICONS);
    fixed[8..12].copy_from_slice(&(inode as u32).to_ne_bytes());
    // Whatever its cookie.
    fixed[16..24].fill(0xff);
    let mut request = Request::default();
    request.message(SOCK_DIAG_BY_FAMILY, 0, &fixed);
    let mut callers = Vec::new();
    request.each(SOCK_DIAG, |message| {
        let icons = attributes(message.rest(FIXED)).find(|(kind, _)| *kind == UNIX_DIAG_ICONS);
        let (words, _) = icons.map_or(&[][..], |(_, value)| value).as_chunks();
        callers.extend(words.iter().copied().map(u32::from_ne_bytes));
    })?;
    Ok(callers)
}

/// The question for these parts of the answer.
fn asked_for(show: u32) -> [u8; REQUEST] {
    let mut fixed = [0; REQUEST];
    fixed[0] = libc::AF_UNIX as u8;
    fixed[12..16].copy_from_slice(&show.to_ne_bytes());
    fixed
}

/// struct `unix_diag_msg`: family, type, state, padding, inode, cookie.
fn listener(message: &Message<'_>) -> Option<UnixListener> {
    let fixed = message.fixed(FIXED);
    if message.kind != SOCK_DIAG_BY_FAMILY || *fixed.get(2)? != LISTEN {
        return None;
    }
    let mut found = UnixListener {
        inode: number32(fixed, 4)?.into(),
        ..UnixListener::default()
    };
    for (kind, value) in attributes(message.rest(FIXED)) {
        match kind {
            UNIX_DIAG_NAME => found.name = name(value),
            UNIX_DIAG_RQLEN => {
                found.waiting = number32(value, 0)?;
                found.backlog = number32(value, 4)?;
            }
            _ => {}
        }
    }
    // Where nothing waits the name is not needed, and it may be a path in a home folder.
    if found.waiting == 0 {
        found.name.clear();
    }
    Some(found)
}

/// A path, or an abstract name with the `@` of ss(8) in the place of the zero byte.
fn name(bytes: &[u8]) -> String {
    let (mark, rest) = match bytes {
        [0, rest @ ..] => ("@", rest),
        path => ("", path),
    };
    let end = rest
        .iter()
        .rposition(|byte| *byte != 0)
        .map_or(0, |at| at + 1);
    let text = String::from_utf8_lossy(&rest[..end]);
    let plain = text.chars().map(|c| if c.is_control() { '@' } else { c });
    mark.chars().chain(plain).collect()
}

#[cfg(test)]
mod tests {
    use std::os::unix::net::{UnixListener as Socket, UnixStream};

    use super::*;
    use crate::netlink::testing;

    #[test]
    fn a_queue_of_the_same_length_has_other_callers_after_each_is_accepted() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("app.sock");
        let socket = Socket::bind(&path).unwrap();
        let queue = || {
            let named = |listener: &UnixListener| *listener.name == *path.to_string_lossy();
            listeners().unwrap().into_iter().find(named).unwrap()
        };
        let _first = UnixStream::connect(&path).unwrap();
        let before = queue();
        let _second = UnixStream::connect(&path).unwrap();
        let _accepted = socket.accept().unwrap();
        let after = queue();
        assert_eq!((before.waiting, after.waiting), (1, 1));
        assert_eq!((before.callers.len(), after.callers.len()), (1, 1));
        assert_ne!(before.callers, after.callers);
    }

    #[test]
    fn who_listens_on_a_path_is_found_by_its_file() {
        let folder = tempfile::tempdir().unwrap();
        let (path, link) = (folder.path().join("app.sock"), folder.path().join("link"));
        std::os::unix::fs::symlink(&path, &link).unwrap();
        assert!(listeners_on(&path).is_err());
        let socket = Socket::bind(&path).unwrap();
        let _other = Socket::bind(folder.path().join("other.sock")).unwrap();
        let found = listeners_on(&path).unwrap();
        assert_eq!(found.len(), 1);
        assert_eq!(listeners_on(&link).unwrap(), found);
        let fd = std::os::fd::AsRawFd::as_raw_fd(&socket);
        let name = std::fs::read_link(format!("/proc/self/fd/{fd}")).unwrap();
        let inode = found.first().unwrap();
        assert_eq!(name.to_str(), Some(&*format!("socket:[{inode}]")));
        drop(socket);
        assert!(listeners_on(&path).unwrap().is_empty());
    }

    #[test]
    fn a_listener_has_its_name_queue_and_length() {
        let read = |state: u8, path: &[u8]| {
            let mut fixed = [0; FIXED];
            fixed[..3].copy_from_slice(&[libc::AF_UNIX as u8, 1, state]);
            fixed[4] = 42;
            let queue: Vec<u8> = [2_u32, 1].into_iter().flat_map(u32::to_ne_bytes).collect();
            let mut request = Request::default();
            request
                .message(SOCK_DIAG_BY_FAMILY, 0, &fixed)
                .attribute(UNIX_DIAG_NAME, path)
                .attribute(UNIX_DIAG_RQLEN, &queue);
            let mut found = Vec::new();
            testing::receive(&request, |message| found.extend(listener(message)));
            found
        };
        let found = read(LISTEN, b"/run/app.sock\0").pop().unwrap();
        assert_eq!((found.name.as_str(), found.inode), ("/run/app.sock", 42));
        assert_eq!((found.waiting, found.backlog), (2, 1));
        assert_eq!(read(LISTEN, b"\0dbus").pop().unwrap().name, "@dbus");
        assert!(read(1, b"/run/app.sock\0").is_empty());
    }
}
