//! Free space on mounted file systems: `statfs(2)` of each that is local, here and in the mount namespaces of some processes.
//!
//! `statfs` of a network file system whose server is gone blocks in the kernel, beyond any signal; so does looking up a mount
//! point that lies below one. Neither is ever asked. A local file system answers from memory, whatever its disk does
//! (`ext4_statfs`, `xfs_fs_statfs`, Linux 6.18).

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;

use rungwise_model::kernel::{Mount, Room};

use crate::mount::{MOUNTS, Mounted};

/// File systems on disks of this machine, and in its memory.
const LOCAL: &[&str] = &[
    "bcachefs", "btrfs", "exfat", "ext2", "ext3", "ext4", "f2fs", "jfs", "nilfs2", "ntfs3",
    "overlay", "ramfs", "reiserfs", "tmpfs", "vfat", "xfs", "zfs",
];

/// File systems of a server, or of a process that may not answer.
const REMOTE: &[&str] = &[
    "9p",
    "afs",
    "autofs",
    "ceph",
    "cifs",
    "coda",
    "fuse",
    "fuseblk",
    "gfs2",
    "glusterfs",
    "lustre",
    "ncpfs",
    "nfs",
    "nfs4",
    "ocfs2",
    "orangefs",
    "smb3",
    "smbfs",
    "virtiofs",
];

/// A node of Kubernetes has a thousand mounts, most of them of few file systems.
const MOST: usize = 256;

/// Descriptors of a process that are looked at for files on a network file system: a server opens its logs and data before it
/// takes connections.
const MOST_DESCRIPTORS: usize = 512;

/// All writable file systems, each once; also those that only these processes see, in a mount namespace of their own.
///
/// Those are read through `/proc/PID/root`, which is the way that the process looks up its paths: a `tmpfs` of a container is
/// mounted nowhere else.
pub(super) fn all(processes: &[u32]) -> io::Result<Vec<Mount>> {
    let own = Mounted::all(&String::from_utf8_lossy(&std::fs::read(MOUNTS)?));
    let mut listing = Listing::default();
    let mut theirs = Vec::new();
    let mut namespaces = BTreeSet::new();
    let namespace = |of: &str| std::fs::metadata(format!("/proc/{of}/ns/mnt")).map(|it| it.ino());
    namespaces.extend(namespace("thread-self"));
    for pid in processes {
        // Of a process of another user its namespace is unknown, and its mounts may be listed.
        if namespace(&pid.to_string()).is_ok_and(|namespace| !namespaces.insert(namespace)) {
            theirs.push((*pid, None));
            continue;
        }
        // One that has ended mounts nothing.
        let text = std::fs::read(format!("/proc/{pid}/mountinfo")).unwrap_or_default();
        theirs.push((*pid, Some(Mounted::all(&String::from_utf8_lossy(&text)))));
    }
    let remote = |mounts: &[Mounted]| mounts.iter().any(|mount| is_remote(&mount.kind));
    if remote(&own)
        || theirs
            .iter()
            .flat_map(|(_, mounts)| mounts)
            .any(|it| remote(it))
    {
        for pid in processes {
            listing.learn_use(*pid);
        }
    }
    listing.add(&own, "", room);
    for (pid, mounts) in &theirs {
        if let Some(mounts) = mounts {
            listing.add(mounts, &format!("/proc/{pid}/root"), room);
        }
    }
    Ok(listing.found)
}

/// File systems that were found.
#[derive(Default)]
struct Listing {
    found: Vec<Mount>,
    /// Numbers of the file systems.
    seen: BTreeSet<String>,
    /// Those that cannot be asked and have open files, with a process that has them open.
    used: BTreeMap<String, u32>,
}

impl Listing {
    /// Adds the mounts with their free space, as `room` returns it for their path below `root`.
    fn add(&mut self, mounts: &[Mounted], root: &str, room: impl Fn(&str) -> io::Result<Room>) {
        let remote: BTreeSet<&str> = mounts
            .iter()
            .filter(|mount| is_remote(&mount.kind))
            .map(|mount| mount.point.as_str())
            .collect();
        let below_remote = |point: &str| {
            let above = Path::new(point).ancestors().skip(1);
            above
                .filter_map(Path::to_str)
                .any(|above| remote.contains(above))
        };
        let most = self.found.len() + MOST;
        for (number, mount) in mounts.iter().enumerate() {
            let writable = |options: &str| !options.split(',').any(|option| option == "ro");
            // What is mounted over another hides it.
            let hidden = mounts[number + 1..]
                .iter()
                .any(|later| later.point == mount.point);
            if hidden
                || !writable(&mount.own)
                || !writable(&mount.shared)
                || self.found.len() == most
            {
                continue;
            }
            let is_local = LOCAL.contains(&mount.kind.as_str())
                // Elsewhere it shows the room of the file system below, which is listed itself.
                && (mount.kind != "overlay" || mount.point == "/");
            if !is_local && !is_remote(&mount.kind) || !self.seen.insert(mount.device.clone()) {
                continue;
            }
            let point = match mount.point.as_str() {
                "/" if !root.is_empty() => root.to_owned(),
                point => format!("{root}{point}"),
            };
            let may_hang = is_remote(&mount.kind) || below_remote(&mount.point);
            let asked = if may_hang {
                Ok(None)
            } else {
                room(&point).map(Some)
            };
            let failed = match &asked {
                // It was unmounted meanwhile, or its process has ended.
                Err(error) if is_gone(error) => continue,
                Err(error) => error.kind().to_string(),
                Ok(_) => String::new(),
            };
            self.found.push(Mount {
                point,
                kind: mount.kind.clone(),
                room: asked.unwrap_or_default(),
                failed,
                used_by: self.used.get(&mount.device).copied().filter(|_| may_hang),
            });
        }
    }

    /// Learns on which of the file systems that cannot be asked this process has files open. The number of the mount is that of
    /// its own mount namespace.
    fn learn_use(&mut self, pid: u32) {
        let text = std::fs::read(format!("/proc/{pid}/mountinfo")).unwrap_or_default();
        let mounts = Mounted::all(&String::from_utf8_lossy(&text));
        let Ok(descriptors) = std::fs::read_dir(format!("/proc/{pid}/fdinfo")) else {
            return;
        };
        for descriptor in descriptors.flatten().take(MOST_DESCRIPTORS) {
            let Ok(text) = std::fs::read_to_string(descriptor.path()) else {
                continue;
            };
            let number = text.lines().find_map(|line| line.strip_prefix("mnt_id:"));
            let number: Option<u32> = number.and_then(|number| number.trim().parse().ok());
            let mount = mounts.iter().find(|mount| Some(mount.id) == number);
            if let Some(mount) = mount {
                self.used.entry(mount.device.clone()).or_insert(pid);
            }
        }
    }
}

fn is_gone(error: &io::Error) -> bool {
    matches!(
        error.raw_os_error(),
        Some(libc::ENOENT | libc::ENOTDIR | libc::ESRCH)
    )
}

fn is_remote(kind: &str) -> bool {
    REMOTE.contains(&kind) || kind.starts_with("fuse.")
}

fn room(point: &str) -> io::Result<Room> {
    let found = rustix::fs::statvfs(point)?;
    let bytes = |blocks: u64| blocks.saturating_mul(found.f_frsize);
    Ok(Room {
        size: bytes(found.f_blocks),
        available: bytes(found.f_bavail),
        inodes: found.f_files,
        inodes_free: found.f_favail,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIST: &str = "20 1 8:1 / / rw - ext4 /dev/sda1 rw\n\
        21 20 0:30 / /data rw - nfs4 server:/data rw\n\
        22 21 8:2 / /data/local rw - ext4 /dev/sda2 rw\n\
        23 20 7:0 / /snap/x ro - squashfs /dev/loop0 ro\n\
        24 20 8:1 /a /bind rw - ext4 /dev/sda1 rw\n\
        25 20 0:40 / /run rw - tmpfs tmpfs rw\n\
        26 20 0:41 / /run rw - tmpfs tmpfs rw\n\
        27 20 0:50 / /proc rw - proc proc rw\n\
        28 20 8:3 / /ro ro - ext4 /dev/sda3 rw\n";

    #[test]
    fn nothing_is_asked_that_may_hang_and_each_file_system_once() {
        let mut listing = Listing {
            used: [("0:30".to_owned(), 51)].into(),
            ..Listing::default()
        };
        listing.add(&Mounted::all(LIST), "", |_| Ok(Room::default()));
        let listed = points(&listing);
        let expected = [
            ("/", true),
            ("/data", false),
            ("/data/local", false),
            ("/run", true),
        ];
        assert_eq!(listing.found[1].used_by, Some(51));
        assert_eq!(listing.found[2].used_by, None);
        assert_eq!(listed, expected);
    }

    fn points(listing: &Listing) -> Vec<(&str, bool)> {
        (listing.found.iter())
            .map(|mount| (mount.point.as_str(), mount.room.is_some()))
            .collect()
    }

    #[test]
    fn of_another_namespace_only_what_is_not_mounted_here_is_read_and_below_the_root_of_its_process()
     {
        const THEIRS: &str = "90 80 0:60 / / rw - overlay overlay rw\n\
            91 90 0:61 / /dev/shm rw - tmpfs shm rw\n\
            92 90 8:1 /a /volume rw - ext4 /dev/sda1 rw\n\
            93 90 0:62 / /gone rw - tmpfs tmpfs rw\n\
            94 90 0:63 / /secret rw - tmpfs tmpfs rw\n";
        let mut listing = Listing::default();
        listing.add(&Mounted::all(LIST), "", |_| Ok(Room::default()));
        let here = listing.found.len();
        listing.add(
            &Mounted::all(THEIRS),
            "/proc/51/root",
            |point| match point {
                "/proc/51/root/gone" => Err(io::Error::from_raw_os_error(libc::ENOENT)),
                "/proc/51/root/secret" => Err(io::Error::from_raw_os_error(libc::EACCES)),
                _ => Ok(Room::default()),
            },
        );
        let expected = [
            ("/proc/51/root", true),
            ("/proc/51/root/dev/shm", true),
            ("/proc/51/root/secret", false),
        ];
        assert_eq!(points(&listing)[here..], expected);
        assert!(!listing.found[here + 2].failed.is_empty());
    }

    #[test]
    fn the_root_of_this_machine_has_a_size() {
        let mounts = all(&[std::process::id()]).unwrap();
        let root = mounts.iter().find(|mount| mount.point == "/");
        let room = root.and_then(|root| root.room);
        assert!(room.is_some_and(|room| room.size > 0), "{mounts:?}");
    }
}
