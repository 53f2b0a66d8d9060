//! Which process has which socket open: the links below `/proc/PID/fd`.
//!
//! A socket shows as a link to `socket:[INODE]`. Of several processes that share one, the one with the lowest pid is
//! named: the parent, as a rule. Processes that may not be inspected are skipped, and one that ends meanwhile has no
//! sockets any more. Each descriptor costs some microseconds, nearly all of them in the kernel, which makes an inode
//! for each one that is read; so a caller that wants few sockets names them, and the search ends with the last of them.
//! Source: proc(5), `sockfs_dname` of net/socket.c, fs/proc/fd.c.
#![expect(unsafe_code, reason = "readlinkat has no safe wrapper in std")]

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::{CStr, CString};
use std::fs::{self, File};
use std::io;
use std::os::fd::{AsFd, AsRawFd as _};
use std::os::unix::ffi::OsStringExt as _;
use std::path::Path;

use rungwise_model::kernel::Owner;

/// Longest link that is read whole: `socket:[` and 20 digits are shorter, and what is longer is no socket.
const LINK: usize = 32;

/// Owners by inode, of every network namespace: inodes of sockets are unique on the machine.
pub(super) fn all() -> io::Result<BTreeMap<u64, Owner>> {
    find(None)
}

/// Owners of these sockets by inode; one that no process has open, as far as can be seen, is left out.
pub(super) fn by_inode(sockets: &BTreeSet<u64>) -> io::Result<BTreeMap<u64, Owner>> {
    find(Some(sockets))
}

/// The sockets that this process has open, by inode.
pub(super) fn of_process(pid: u32) -> io::Result<BTreeSet<u64>> {
    let folder = Path::new("/proc").join(pid.to_string()).join("fd");
    let descriptors = fs::read_dir(&folder)?;
    let folder = File::open(&folder)?;
    let inode = |name: std::ffi::OsString| socket(&folder, &CString::new(name.into_vec()).ok()?);
    let all = descriptors.flatten();
    Ok(all.filter_map(|entry| inode(entry.file_name())).collect())
}

fn find(wanted: Option<&BTreeSet<u64>>) -> io::Result<BTreeMap<u64, Owner>> {
    let mut owners = BTreeMap::new();
    let found_all =
        |owners: &BTreeMap<u64, Owner>| wanted.is_some_and(|wanted| owners.len() == wanted.len());
    if found_all(&owners) {
        return Ok(owners);
    }
    let mut pids: Vec<u32> = fs::read_dir("/proc")?
        .filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok())
        .collect();
    pids.sort_unstable();
    for pid in pids {
        let process = Path::new("/proc").join(pid.to_string());
        let folder = process.join("fd");
        let Ok(descriptors) = fs::read_dir(&folder) else {
            continue;
        };
        let mut descriptors = descriptors.flatten().peekable();
        // A thread of the kernel has none.
        if descriptors.peek().is_none() {
            continue;
        }
        // A link is looked up from here, and not by its whole path each time.
        let Ok(folder) = File::open(&folder) else {
            continue;
        };
        let mut name = None;
        for descriptor in descriptors {
            let number = CString::new(descriptor.file_name().into_vec());
            let inode = number.ok().and_then(|number| socket(&folder, &number));
            let Some(inode) = inode else { continue };
            if wanted.is_some_and(|wanted| !wanted.contains(&inode)) {
                continue;
            }
            let name: &String = name.get_or_insert_with(|| {
                // It ended since: a socket without a name is still one with a pid.
                let comm = fs::read(process.join("comm")).unwrap_or_default();
                String::from_utf8_lossy(&comm).trim_end().to_owned()
            });
            owners.entry(inode).or_insert_with(|| Owner {
                pid,
                name: name.clone(),
            });
            if found_all(&owners) {
                return Ok(owners);
            }
        }
    }
    Ok(owners)
}

/// The inode of the socket behind a link in `folder`; nothing if it is another file, or gone.
fn socket(folder: impl AsFd, name: &CStr) -> Option<u64> {
    let mut link = [0_u8; LINK];
    // SAFETY: the name ends in a zero, and the kernel writes at most as many bytes as the buffer has.
    let length = unsafe {
        libc::readlinkat(
            folder.as_fd().as_raw_fd(),
            name.as_ptr(),
            link.as_mut_ptr().cast(),
            link.len(),
        )
    };
    inode_of(link.get(..usize::try_from(length).ok()?)?)
}

/// The number in `socket:[4242]`.
fn inode_of(link: &[u8]) -> Option<u64> {
    let inside = link.strip_prefix(b"socket:[")?.strip_suffix(b"]")?;
    std::str::from_utf8(inside).ok()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use std::net::UdpSocket;
    use std::os::unix::fs::MetadataExt as _;

    use super::*;

    fn inode(socket: &UdpSocket) -> u64 {
        let link = format!("/proc/self/fd/{}", socket.as_raw_fd());
        fs::metadata(link).unwrap().ino()
    }

    #[test]
    fn the_sockets_of_a_process_are_those_that_it_has_open() {
        let ours = UdpSocket::bind("127.0.0.1:0").unwrap();
        let inode = inode(&ours);
        assert!(of_process(std::process::id()).unwrap().contains(&inode));
        drop(ours);
        assert!(!of_process(std::process::id()).unwrap().contains(&inode));
        assert!(of_process(u32::MAX).is_err());
    }

    #[test]
    fn a_link_to_a_socket_names_its_inode() {
        assert_eq!(inode_of(b"socket:[4242]"), Some(4242));
        for other in ["pipe:[4242]", "socket:[]", "socket:[4242", "/dev/null", ""] {
            assert_eq!(inode_of(other.as_bytes()), None, "{other}");
        }
    }

    #[test]
    fn the_longest_number_of_an_inode_fits() {
        let longest = format!("socket:[{}]", u64::MAX);
        assert!(longest.len() <= LINK);
        assert_eq!(inode_of(longest.as_bytes()), Some(u64::MAX));
    }

    #[test]
    fn a_socket_of_this_process_is_found() {
        let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
        let owner = &all().unwrap()[&inode(&socket)];
        assert_eq!(owner.pid, std::process::id());
        let comm = fs::read_to_string("/proc/self/comm").unwrap();
        assert_eq!(owner.name, comm.trim_end());
    }

    #[test]
    fn only_the_wanted_sockets_are_reported_and_none_that_nobody_has() {
        let sockets = [0; 2].map(|_| UdpSocket::bind("127.0.0.1:0").unwrap());
        let [wanted, other] = [0, 1].map(|at: usize| inode(&sockets[at]));
        let found = by_inode(&[wanted, u64::MAX].into()).unwrap();
        assert_eq!(found.keys().copied().collect::<Vec<_>>(), [wanted]);
        assert_ne!(wanted, other);
        assert_eq!(by_inode(&BTreeSet::new()).unwrap(), BTreeMap::new());
    }
}
