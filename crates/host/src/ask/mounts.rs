//! Free space on mounted file systems: `statfs(2)` of each that is local.
//!
//! `statfs` of a network file system whose server is gone blocks in the kernel, beyond any signal; so does looking up a mount
//! point that lies below one. Neither is ever asked. A local file system answers from memory, whatever its disk does
//! (`ext4_statfs`, `xfs_fs_statfs`, Linux 6.18).

use std::collections::BTreeSet;
use std::io;
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

/// All writable file systems, each once.
pub(super) fn all() -> io::Result<Vec<Mount>> {
    let text = String::from_utf8_lossy(&std::fs::read(MOUNTS)?).into_owned();
    Ok(asked(&Mounted::all(&text), room))
}

/// The mounts with their free space, as `room` returns it.
fn asked(mounts: &[Mounted], room: impl Fn(&str) -> Option<Room>) -> Vec<Mount> {
    let remote: BTreeSet<String> = mounts
        .iter()
        .filter(|mount| is_remote(&mount.kind))
        .map(|mount| mount.point.clone())
        .collect();
    let below_remote = |point: &str| {
        let above = Path::new(point).ancestors().skip(1);
        above
            .filter_map(Path::to_str)
            .any(|above| remote.contains(above))
    };
    let mut seen = BTreeSet::new();
    let mut found = Vec::new();
    for (number, mount) in mounts.iter().enumerate() {
        let writable = |options: &str| !options.split(',').any(|option| option == "ro");
        // What is mounted over another hides it.
        let hidden = mounts[number + 1..]
            .iter()
            .any(|later| later.point == mount.point);
        if hidden || !writable(&mount.own) || !writable(&mount.shared) || found.len() == MOST {
            continue;
        }
        let is_local = LOCAL.contains(&mount.kind.as_str())
            // Elsewhere it shows the room of the file system below, which is listed itself.
            && (mount.kind != "overlay" || mount.point == "/");
        if !is_local && !is_remote(&mount.kind) || !seen.insert(mount.device.clone()) {
            continue;
        }
        let may_hang = is_remote(&mount.kind) || below_remote(&mount.point);
        found.push(Mount {
            room: if may_hang { None } else { room(&mount.point) },
            point: mount.point.clone(),
            kind: mount.kind.clone(),
        });
    }
    found
}

fn is_remote(kind: &str) -> bool {
    REMOTE.contains(&kind) || kind.starts_with("fuse.")
}

fn room(point: &str) -> Option<Room> {
    let found = rustix::fs::statvfs(point).ok()?;
    let bytes = |blocks: u64| blocks.saturating_mul(found.f_frsize);
    Some(Room {
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
        let mounts = asked(&Mounted::all(LIST), |_| Some(Room::default()));
        let listed: Vec<_> = mounts
            .iter()
            .map(|mount| (mount.point.as_str(), mount.room.is_some()))
            .collect();
        let expected = [
            ("/", true),
            ("/data", false),
            ("/data/local", false),
            ("/run", true),
        ];
        assert_eq!(listed, expected);
    }

    #[test]
    fn the_root_of_this_machine_has_a_size() {
        let mounts = all().unwrap();
        let root = mounts.iter().find(|mount| mount.point == "/");
        let room = root.and_then(|root| root.room);
        assert!(room.is_some_and(|room| room.size > 0), "{mounts:?}");
    }
}
