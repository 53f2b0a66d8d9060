//! The Debian packages that the tests need beside Rust: one list, each with its reason.
//!
//! A package counts as present when its program is found, whoever installed it, so the tests run
//! on other distributions too. Installing is careful with a machine that is somebody's: nothing is
//! removed (`--no-remove`), nothing recommended comes along, and the daemons among the packages are
//! not started (`policy-rc.d`, see `invoke-rc.d(8)`).

use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, Result, bail};

/// A package and why it is needed.
#[derive(Clone, Copy, Debug)]
pub struct Package {
    /// Name in Debian.
    pub name: &'static str,
    /// The program by which its presence is judged.
    pub program: &'static str,
    /// What the tests do with it.
    pub reason: &'static str,
}

/// Every package the tests need, sorted by name.
pub const PACKAGES: &[Package] = &[
    Package {
        name: "bind9-dnsutils",
        program: "dig",
        reason: "a real DNS client must accept the replies of the DNS example",
    },
    Package {
        name: "chromium",
        program: "chromium",
        reason: "draws report.html wide, narrow, dark and printed",
    },
    Package {
        name: "chrony",
        program: "chronyd",
        reason: "a real NTP client must accept the replies of the SNTP example",
    },
    Package {
        name: "ethtool",
        program: "ethtool",
        reason: "second opinion on the device features that we set by ioctl",
    },
    Package {
        name: "faketime",
        program: "faketime",
        reason: "has the wall clock jump for one program",
    },
    Package {
        name: "iproute2",
        program: "ip",
        reason: "second opinion on the namespaces and devices that we make by netlink",
    },
    Package {
        name: "nftables",
        program: "nft",
        reason: "second opinion on the base chains that we read and plant by netlink",
    },
    Package {
        name: "nsd",
        program: "nsd",
        reason: "a real DNS server that `load udp --dns` drives",
    },
    Package {
        name: "strace",
        program: "strace",
        reason: "kills and fails the tool at chosen system calls",
    },
];

/// Where Debian keeps programs; `sbin` is not in everybody's PATH.
const PLACES: &[&str] = &[
    "/usr/local/sbin",
    "/usr/local/bin",
    "/usr/sbin",
    "/usr/bin",
    "/sbin",
    "/bin",
];

/// The path of `program`, from PATH or from where Debian keeps programs.
pub fn find(program: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path)
        .chain(PLACES.iter().map(PathBuf::from))
        .map(|folder| folder.join(program))
        .find(|file| file.is_file())
}

/// PATH with the places of [`find`] behind it, for the tests.
pub fn path() -> Result<std::ffi::OsString> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let mut folders: Vec<PathBuf> = std::env::split_paths(&path).collect();
    for place in PLACES.iter().map(PathBuf::from) {
        if !folders.contains(&place) {
            folders.push(place);
        }
    }
    std::env::join_paths(folders).context("cannot extend PATH")
}

/// The packages whose program is not found.
pub fn missing() -> Vec<Package> {
    PACKAGES
        .iter()
        .copied()
        .filter(|package| find(package.program).is_none())
        .collect()
}

/// The commands that install `packages`, as a person would type them.
pub fn command_line(packages: &[Package]) -> String {
    let names: Vec<&str> = packages.iter().map(|package| package.name).collect();
    format!(
        "apt-get update && apt-get install --yes --no-install-recommends --no-remove {}",
        names.join(" ")
    )
}

/// Installs `packages`; needs root and apt.
pub fn install(packages: &[Package]) -> Result<()> {
    let _quiet = HoldServices::start()?;
    apt(&["update", "--quiet"])?;
    let mut args = vec![
        "install",
        "--yes",
        "--quiet",
        "--no-install-recommends",
        "--no-remove",
    ];
    args.extend(packages.iter().map(|package| package.name));
    apt(&args)
}

/// Whether we may install: the effective user is root.
pub fn is_root() -> bool {
    // The owner of /proc/self is the effective user, which saves an unsafe call of geteuid(2).
    std::fs::metadata("/proc/self")
        .is_ok_and(|meta| std::os::unix::fs::MetadataExt::uid(&meta) == 0)
}

fn apt(args: &[&str]) -> Result<()> {
    eprintln!("xtask: apt-get {}", args.join(" "));
    let status = Command::new("apt-get")
        .args(args)
        .env("DEBIAN_FRONTEND", "noninteractive")
        .stdin(std::process::Stdio::null())
        .status()
        .context("cannot run apt-get; install the packages named above by hand")?;
    if !status.success() {
        bail!(
            "cannot install the packages: apt-get {} ended with {status}; see its message above",
            args[0]
        );
    }
    Ok(())
}

/// While it lives, packages that bring a daemon do not start it. A policy of the machine's owner is left alone.
struct HoldServices {
    ours: bool,
}

impl HoldServices {
    const POLICY: &str = "/usr/sbin/policy-rc.d";

    fn start() -> Result<Self> {
        let policy = Path::new(Self::POLICY);
        if policy.exists() {
            return Ok(Self { ours: false });
        }
        let held = Self { ours: true };
        std::fs::write(policy, "#!/bin/sh\nexit 101\n")
            .and_then(|()| std::fs::set_permissions(policy, PermissionsExt::from_mode(0o755)))
            .with_context(|| {
                format!(
                    "cannot write {}, which keeps daemons from starting",
                    Self::POLICY
                )
            })?;
        Ok(held)
    }
}

impl Drop for HoldServices {
    fn drop(&mut self) {
        if self.ours
            && let Err(error) = std::fs::remove_file(Self::POLICY)
        {
            eprintln!(
                "xtask: cannot remove {}: {error}; remove it by hand",
                Self::POLICY
            );
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_list_is_sorted_and_every_package_has_a_reason() {
        assert!(PACKAGES.is_sorted_by_key(|package| package.name));
        assert!(PACKAGES.iter().all(|package| package.reason.len() > 10));
    }

    #[test]
    fn the_command_names_every_missing_package() {
        assert_eq!(
            command_line(&PACKAGES[..2]),
            "apt-get update && apt-get install --yes --no-install-recommends --no-remove bind9-dnsutils chromium"
        );
    }

    #[test]
    fn a_program_outside_path_is_found_where_debian_keeps_it() {
        assert!(find("sh").is_some());
        assert!(find("no-such-program-anywhere").is_none());
    }
}
