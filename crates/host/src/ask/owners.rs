//! Which process has which socket open: the links below `/proc/PID/fd`.
//!
//! A socket shows as a link to `socket:[INODE]`. Of several processes that share one, the one with the
//! lowest pid is named: the parent, as a rule. Processes that may not be looked into are skipped, and one
//! that ends meanwhile has no sockets any more. Each descriptor costs about 5 us, nearly all of it in the
//! kernel, however it is looked up. Source: proc(5), `sockfs_dname` of net/socket.c.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::fs;
use std::io;
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;

use rungwise_model::kernel::Owner;

/// Owners by inode, of every network namespace: inodes of sockets are unique on the machine.
pub(super) fn owners() -> io::Result<BTreeMap<u64, Owner>> {
    let mut pids: Vec<u32> = fs::read_dir("/proc")?
        .filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok())
        .collect();
    pids.sort_unstable();
    let mut owners = BTreeMap::new();
    for pid in pids {
        let process = Path::new("/proc").join(pid.to_string());
        let Ok(descriptors) = fs::read_dir(process.join("fd")) else {
            continue;
        };
        let mut name = None;
        for descriptor in descriptors.flatten() {
            let Some(inode) = fs::read_link(descriptor.path())
                .ok()
                .and_then(|link| inode_of(link.as_os_str()))
            else {
                continue;
            };
            let name: &String = name.get_or_insert_with(|| {
                // It ended since: a socket without a name is still one with a pid.
                let comm = fs::read(process.join("comm")).unwrap_or_default();
                String::from_utf8_lossy(&comm).trim_end().to_owned()
            });
            owners.entry(inode).or_insert_with(|| Owner {
                pid,
                name: name.clone(),
            });
        }
    }
    Ok(owners)
}

/// The number in `socket:[4242]`.
fn inode_of(link: &OsStr) -> Option<u64> {
    let inside = link
        .as_bytes()
        .strip_prefix(b"socket:[")?
        .strip_suffix(b"]")?;
    std::str::from_utf8(inside).ok()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::MetadataExt as _;

    use super::*;

    #[test]
    fn a_link_to_a_socket_names_its_inode() {
        assert_eq!(inode_of(OsStr::new("socket:[4242]")), Some(4242));
        for other in ["pipe:[4242]", "socket:[]", "socket:[4242", "/dev/null", ""] {
            assert_eq!(inode_of(OsStr::new(other)), None, "{other}");
        }
    }

    #[test]
    fn a_socket_of_this_process_is_found() {
        use std::os::fd::AsRawFd as _;
        let socket = std::net::UdpSocket::bind("127.0.0.1:0").unwrap();
        let link = format!("/proc/self/fd/{}", socket.as_raw_fd());
        let inode = fs::metadata(link).unwrap().ino();
        let owner = &owners().unwrap()[&inode];
        assert_eq!(owner.pid, std::process::id());
        let comm = fs::read_to_string("/proc/self/comm").unwrap();
        assert_eq!(owner.name, comm.trim_end());
    }
}
