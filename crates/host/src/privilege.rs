//! What this process may do: everything, everything inside a user namespace, or nothing.
//!
//! In a user namespace an ordinary user owns the network namespaces made in it: devices, sysctls,
//! features and `nf_tables` work. Three queue files do not, because the kernel asks for the
//! capability in the *initial* user namespace: `rps_cpus`, `rps_flow_cnt`, `xps_cpus` answer EPERM.
//! Sources: `user_namespaces(7)`, net/core/net-sysfs.c.
#![expect(
    unsafe_code,
    reason = "unshare and the probe's fork have no safe wrapper in std"
)]

use std::fs;
use std::io;

use crate::error::{Error, Result};

const CAP_NET_ADMIN: u64 = 1 << 12;
const CAP_SYS_ADMIN: u64 = 1 << 21;

/// What this process may do to namespaces and devices.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Privilege {
    /// `CAP_NET_ADMIN` and `CAP_SYS_ADMIN` over the machine.
    Root,
    /// Both of them in a user namespace: in the one it is in, or after [`enter_user_namespace`].
    UserNamespace,
    /// Neither.
    None {
        /// What forbids user namespaces.
        why: String,
    },
}

/// Detects it. Forks a child that tries to make a network namespace in a user namespace of its own and ends at once:
/// some systems allow the latter and take away its capabilities.
pub fn detect() -> Privilege {
    if capable() {
        return if in_initial_user_namespace() {
            Privilege::Root
        } else {
            Privilege::UserNamespace
        };
    }
    match may_unshare(libc::CLONE_NEWUSER | libc::CLONE_NEWNET) {
        Ok(()) => Privilege::UserNamespace,
        Err(error) => Privilege::None {
            why: forbidden_by(&error),
        },
    }
}

/// Moves this process into a user namespace of its own, where it is root.
///
/// The process must have a single thread (the kernel demands it): call this first in `main`. Does
/// nothing where the process holds the capabilities already.
pub fn enter_user_namespace() -> Result<()> {
    if capable() {
        return Ok(());
    }
    // SAFETY: these two only read the ids of the process.
    let (user, group) = unsafe { (libc::geteuid(), libc::getegid()) };
    // SAFETY: changes the credentials of this single-threaded process; no memory is involved.
    if unsafe { libc::unshare(libc::CLONE_NEWUSER) } != 0 {
        let error = io::Error::last_os_error();
        return Err(Error::Missing {
            tried: "enter a user namespace".to_owned(),
            why: forbidden_by(&error),
            remedy: "run as root, or lift that restriction".to_owned(),
        });
    }
    // An unprivileged process may map its group only after it gave up setgroups(2).
    for (path, value) in [
        ("/proc/self/setgroups", "deny".to_owned()),
        ("/proc/self/uid_map", format!("0 {user} 1")),
        ("/proc/self/gid_map", format!("0 {group} 1")),
    ] {
        fs::OpenOptions::new()
            .write(true)
            .open(path)
            .and_then(|mut file| io::Write::write_all(&mut file, value.as_bytes()))
            .map_err(|source| Error::Missing {
                tried: format!("write '{value}' to {path}"),
                why: source.to_string(),
                remedy: "run as root".to_owned(),
            })?;
    }
    if capable() {
        return Ok(());
    }
    // Ubuntu since 23.10 lets the namespace be made and takes the capabilities away.
    Err(Error::Missing {
        tried: "use a user namespace".to_owned(),
        why: forbidden_by(&io::Error::from_raw_os_error(libc::EPERM)),
        remedy: "run as root, or lift that restriction".to_owned(),
    })
}

/// Why this process may not make a network namespace although it has the capabilities; nothing where it may. Forks a child
/// that tries.
pub fn no_network_namespaces() -> Option<String> {
    let error = may_unshare(libc::CLONE_NEWNET).err()?;
    Some(match error.raw_os_error() {
        Some(libc::ENOSPC | libc::EUSERS) => {
            let limit = "sysctl user.max_net_namespaces";
            match fs::read_to_string("/proc/sys/user/max_net_namespaces") {
                Ok(most) => format!("{limit} allows {}, and no more can be made", most.trim()),
                Err(_) => format!("the namespace limit is reached ({limit})"),
            }
        }
        Some(libc::EINVAL) => "the kernel has no CONFIG_NET_NS".to_owned(),
        Some(libc::EPERM) => {
            "a security policy forbids network namespaces (seccomp of a container)".to_owned()
        }
        _ => error.to_string(),
    })
}

fn capable() -> bool {
    fs::read_to_string("/proc/thread-self/status").is_ok_and(|status| {
        let wanted = CAP_NET_ADMIN | CAP_SYS_ADMIN;
        effective_capabilities(&status) & wanted == wanted
    })
}

fn effective_capabilities(status: &str) -> u64 {
    status
        .lines()
        .find_map(|line| line.strip_prefix("CapEff:"))
        .and_then(|hex| u64::from_str_radix(hex.trim(), 16).ok())
        .unwrap_or_default()
}

/// The initial user namespace maps every id to itself.
pub(crate) fn in_initial_user_namespace() -> bool {
    fs::read_to_string("/proc/self/uid_map")
        .is_ok_and(|map| map.split_whitespace().eq(["0", "0", "4294967295"]))
}

/// Only from the initial pid namespace are all processes of the machine to be seen.
pub(crate) fn in_initial_pid_namespace() -> bool {
    /// `PROC_PID_INIT_INO` of `linux/proc_ns.h`.
    const INITIAL: &str = "pid:[4026531836]";
    fs::read_link("/proc/self/ns/pid").is_ok_and(|name| name.as_os_str() == INITIAL)
}

/// Tries in a child, so that this process stays where it is.
fn may_unshare(namespaces: libc::c_int) -> io::Result<()> {
    // SAFETY: the child calls nothing but unshare and _exit, which are safe after fork even in a
    // program with threads.
    let child = unsafe { libc::fork() };
    match child {
        -1 => Err(io::Error::last_os_error()),
        0 => {
            // SAFETY: as above; the exit status carries errno, which is below 134 on Linux.
            unsafe {
                let errno = match libc::unshare(namespaces) {
                    0 => 0,
                    _ => *libc::__errno_location(),
                };
                libc::_exit(errno)
            }
        }
        child => {
            let mut status = 0;
            // SAFETY: `status` outlives the call; `child` is ours and not reaped elsewhere.
            while unsafe { libc::waitpid(child, &raw mut status, 0) } < 0 {
                let error = io::Error::last_os_error();
                if error.kind() != io::ErrorKind::Interrupted {
                    return Err(error);
                }
            }
            match libc::WEXITSTATUS(status) {
                0 if libc::WIFEXITED(status) => Ok(()),
                0 => Err(io::Error::from_raw_os_error(libc::EPERM)),
                errno => Err(io::Error::from_raw_os_error(errno)),
            }
        }
    }
}

/// Names the switch that forbids user namespaces, as far as it can be detected.
fn forbidden_by(error: &io::Error) -> String {
    let is =
        |path: &str, value: &str| fs::read_to_string(path).is_ok_and(|text| text.trim() == value);
    let reason = if is("/proc/sys/user/max_user_namespaces", "0") {
        "sysctl user.max_user_namespaces is 0"
    } else if is("/proc/sys/kernel/unprivileged_userns_clone", "0") {
        "sysctl kernel.unprivileged_userns_clone is 0"
    } else if is(
        "/proc/sys/kernel/apparmor_restrict_unprivileged_userns",
        "1",
    ) {
        "sysctl kernel.apparmor_restrict_unprivileged_userns is 1"
    } else {
        match error.raw_os_error() {
            Some(libc::EINVAL) => {
                "the process has more than one thread, or the kernel has no CONFIG_USER_NS"
            }
            Some(libc::ENOSPC | libc::EUSERS) => {
                "the namespace limit is reached (sysctl user.max_user_namespaces)"
            }
            Some(libc::EPERM) => {
                "a security policy forbids user namespaces (seccomp of a container, chroot)"
            }
            _ => return error.to_string(),
        }
    };
    reason.to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn capabilities_are_read_from_the_status_file() {
        assert_eq!(
            effective_capabilities("CapInh:\t0\nCapEff:\t0000000000201000\n"),
            CAP_NET_ADMIN | CAP_SYS_ADMIN
        );
        assert_eq!(effective_capabilities("CapEff:\tzz\n"), 0);
        assert_eq!(effective_capabilities(""), 0);
    }
}
