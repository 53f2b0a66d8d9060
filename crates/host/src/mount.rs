//! Options of a mounted file system: as the kernel lists them, and the two that can be changed while it is mounted.
//!
//! How times of access are kept belongs to one mount: `mount_setattr(2)` changes that alone and leaves all other flags.
//! `discard` belongs to the file system behind all of its mounts: `fspick(2)` and `fsconfig(2)` name the one option,
//! and it is the file system that keeps the others, so only one that was seen to keep them is asked. Sources:
//! `proc_pid_mountinfo(5)`; fs/namespace.c, `fs/proc_namespace.c` and fs/ext4/super.c (Linux 6.18).
#![expect(
    unsafe_code,
    reason = "mount_setattr has no safe wrapper in std or rustix"
)]

use std::ffi::CString;
use std::io;
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;

use rustix::fs::CWD;
use rustix::mount::{FsPickFlags, fsconfig_reconfigure, fsconfig_set_flag, fspick};
use serde::{Deserialize, Serialize};

/// The mounts of the reader's mount namespace.
pub(crate) const MOUNTS: &str = "/proc/thread-self/mountinfo";

/// An option that can be changed while the file system is mounted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum MountOption {
    /// When a read writes the time of the last access: `relatime`, `noatime` or `strictatime`.
    Atime,
    /// Whether the disk is informed of each deletion at once: `discard` or `nodiscard`.
    Discard,
}

impl MountOption {
    /// Its values.
    pub fn values(self) -> &'static [&'static str] {
        match self {
            Self::Atime => &["relatime", "noatime", "strictatime"],
            Self::Discard => &["discard", "nodiscard"],
        }
    }
}

/// A mounted file system.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mounted {
    /// Number of the mount. It is used again once the mount has gone.
    pub id: u32,
    /// Number of the file system behind it, `8:1`: two mounts of one file system have the same.
    pub device: String,
    /// Where it is mounted.
    pub point: String,
    /// Type of the file system: `ext4`.
    pub kind: String,
    /// What is mounted: `/dev/vda1`, or a name of no meaning.
    pub source: String,
    /// Options of this mount alone, with commas.
    pub own: String,
    /// Options of the file system behind it, with commas.
    pub shared: String,
}

impl Mounted {
    /// The mounts that `mountinfo` lists, in its order; lines of another form are left out.
    pub fn all(mountinfo: &str) -> Vec<Self> {
        mountinfo.lines().filter_map(Self::parse).collect()
    }

    fn parse(line: &str) -> Option<Self> {
        // White space within a field is escaped, and the fields before the dash are of no fixed number.
        let (mount, of_what) = line.split_once(" - ")?;
        let mut mount = mount.split(' ');
        let mut of_what = of_what.split(' ');
        Some(Self {
            id: mount.next()?.parse().ok()?,
            device: mount.nth(1)?.to_owned(),
            point: unescaped(mount.nth(1)?),
            own: mount.next()?.to_owned(),
            kind: of_what.next()?.to_owned(),
            source: unescaped(of_what.next()?),
            shared: of_what.next()?.to_owned(),
        })
    }

    /// The current value of the option.
    pub fn option(&self, option: MountOption) -> &'static str {
        let has = |options: &str, wanted: &str| {
            options
                .split(',')
                .any(|word| word.split('=').next() == Some(wanted))
        };
        match option {
            MountOption::Atime if has(&self.own, "noatime") => "noatime",
            MountOption::Atime if has(&self.own, "relatime") => "relatime",
            // The kernel prints nothing for it.
            MountOption::Atime => "strictatime",
            MountOption::Discard if has(&self.shared, "discard") => "discard",
            MountOption::Discard => "nodiscard",
        }
    }

    /// This file system takes `discard` and `nodiscard` while it is mounted, and keeps its other options. xfs takes
    /// them only when it is mounted; f2fs falls back to its defaults; btrfs has a third value.
    pub fn takes_discard(&self) -> bool {
        self.kind == "ext4"
    }
}

/// Sets the option of the mount at `point`.
pub(crate) fn set(point: &Path, option: MountOption, value: &str) -> io::Result<()> {
    match (option, value) {
        (MountOption::Atime, "relatime") => set_atime(point, libc::MOUNT_ATTR_RELATIME),
        (MountOption::Atime, "noatime") => set_atime(point, libc::MOUNT_ATTR_NOATIME),
        (MountOption::Atime, "strictatime") => set_atime(point, libc::MOUNT_ATTR_STRICTATIME),
        (MountOption::Discard, "discard" | "nodiscard") => {
            let flags = FsPickFlags::FSPICK_CLOEXEC
                | FsPickFlags::FSPICK_SYMLINK_NOFOLLOW
                | FsPickFlags::FSPICK_NO_AUTOMOUNT;
            let picked = fspick(CWD, point, flags)?;
            fsconfig_set_flag(&picked, value)?;
            Ok(fsconfig_reconfigure(&picked)?)
        }
        _ => Err(io::ErrorKind::InvalidInput.into()),
    }
}

fn set_atime(point: &Path, atime: u64) -> io::Result<()> {
    let path = CString::new(point.as_os_str().as_bytes())?;
    let change = libc::mount_attr {
        attr_set: atime,
        attr_clr: libc::MOUNT_ATTR__ATIME,
        propagation: 0,
        userns_fd: 0,
    };
    // SAFETY: the path is a terminated string, and pointer and length are those of `change`, which the kernel only reads.
    let result = unsafe {
        libc::syscall(
            libc::SYS_mount_setattr,
            libc::AT_FDCWD,
            path.as_ptr(),
            libc::AT_SYMLINK_NOFOLLOW | libc::AT_NO_AUTOMOUNT,
            &raw const change,
            size_of_val(&change),
        )
    };
    if result == 0 {
        Ok(())
    } else {
        Err(io::Error::last_os_error())
    }
}

/// A name as it is: the kernel writes white space, backslash and # as three octal digits.
fn unescaped(field: &str) -> String {
    let mut parts = field.split('\\');
    let mut name = parts.next().unwrap_or_default().as_bytes().to_vec();
    for part in parts {
        let code = part
            .get(..3)
            .and_then(|code| u8::from_str_radix(code, 8).ok());
        if let Some(byte) = code {
            name.push(byte);
            name.extend(&part.as_bytes()[3..]);
        } else {
            name.push(b'\\');
            name.extend(part.as_bytes());
        }
    }
    String::from_utf8_lossy(&name).into_owned()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const LINES: &str = "\
        25 1 254:0 / / rw,noatime - ext4 /dev/root rw,discard,errors=remount-ro\n\
        26 25 0:5 / /dev rw,nosuid shared:2 master:1 - devtmpfs devtmpfs rw,size=4k\n\
        27 25 8:1 /sub /a\\040b rw,nosuid,relatime shared:3 - btrfs /dev/sda1 rw,discard=async\n\
        no line of the kernel\n";

    #[test]
    fn a_line_tells_the_options_of_the_mount_and_those_of_its_file_system_apart() {
        let mounts = Mounted::all(LINES);
        let found: Vec<_> = mounts
            .iter()
            .map(|mount| {
                (
                    mount.id,
                    mount.point.as_str(),
                    mount.kind.as_str(),
                    mount.option(MountOption::Atime),
                    mount.option(MountOption::Discard),
                )
            })
            .collect();
        assert_eq!(
            found,
            [
                (25, "/", "ext4", "noatime", "discard"),
                (26, "/dev", "devtmpfs", "strictatime", "nodiscard"),
                (27, "/a b", "btrfs", "relatime", "discard"),
            ]
        );
        assert!(mounts[0].takes_discard() && !mounts[2].takes_discard());
    }

    #[test]
    fn a_value_of_the_other_option_is_refused_before_the_kernel_is_asked() {
        for (option, value) in [
            (MountOption::Atime, "discard"),
            (MountOption::Discard, "noatime"),
            (MountOption::Discard, "rw"),
        ] {
            let error = set(Path::new("/"), option, value).unwrap_err();
            assert_eq!(error.kind(), io::ErrorKind::InvalidInput, "{value}");
        }
    }

    proptest! {
        #[test]
        fn no_text_is_a_panic(text in ".{0,80}", field in r"[a\\0-9]{0,12}") {
            Mounted::all(&text);
            Mounted::all(&format!("1 2 3:4 {field} {field} rw - x {field} rw"));
        }
    }
}
