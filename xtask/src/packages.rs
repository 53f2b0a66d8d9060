//! The Debian packages that the tests need beside Rust: one list, each with its reason.
//!
//! A package counts as present when its program is found, however it was installed, so the tests run
//! on other distributions too. Installing is careful with the user's machine: nothing is removed (`--no-remove`), no recommended packages
//! are installed, and the daemons among the packages are
//! not started (`policy-rc.d`, see `invoke-rc.d(8)`). A package that would push out another one is not
//! installed but unpacked below the target folder.

use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, Result, bail};

/// A package and why it is needed.
#[derive(Clone, Copy, Debug)]
pub struct Package {
    /// Name in Debian.
    pub name: &'static str,
    /// The program by which its presence is judged; a kernel by the name of its file below `boot`, with `*` for its version.
    pub program: &'static str,
    /// What the tests do with it.
    pub reason: &'static str,
    /// Debian allows one such package at a time, or its scripts would change how the machine boots: it is only unpacked.
    pub unpacked: Option<Unpacked>,
}

/// A package that is taken apart instead of installed.
#[derive(Clone, Copy, Debug)]
pub struct Unpacked {
    /// The packages whose libraries it loads; these are installed.
    pub libraries: &'static [&'static str],
    /// It is empty, and what it depends on, whose name has a version, is unpacked instead.
    pub is_name_of_another: bool,
}

/// Every package the tests need, sorted by name.
pub const PACKAGES: &[Package] = &[
    Package {
        name: "ansible-core",
        program: "ansible-playbook",
        reason: "must accept the playbook that `knob export` writes",
        unpacked: None,
    },
    Package {
        name: "bind9-dnsutils",
        program: "dig",
        reason: "a real DNS client must accept the replies of the DNS example",
        unpacked: None,
    },
    Package {
        name: "chromium",
        program: "chromium",
        reason: "draws report.html wide, narrow, dark and printed",
        unpacked: None,
    },
    Package {
        name: "chrony",
        program: "chronyd",
        reason: "a real NTP client must accept the replies of the SNTP example",
        // Every time daemon conflicts with every other, and systemd-timesyncd is everywhere.
        unpacked: Some(Unpacked {
            libraries: &[
                "libcap2",
                "libedit2",
                "libgnutls30",
                "libnettle8",
                "libseccomp2",
            ],
            is_name_of_another: false,
        }),
    },
    Package {
        name: "ethtool",
        program: "ethtool",
        reason: "second opinion on the device features that we set by ioctl",
        unpacked: None,
    },
    Package {
        name: "faketime",
        program: "faketime",
        reason: "makes the wall clock jump for one program",
        unpacked: None,
    },
    Package {
        name: "haproxy",
        program: "haproxy",
        reason: "a service that `cargo xtask faults` plants faults in",
        unpacked: None,
    },
    Package {
        name: "iproute2",
        program: "ip",
        reason: "second opinion on the namespaces and devices that we make by netlink",
        unpacked: None,
    },
    Package {
        name: "libnbd-bin",
        program: "nbdfuse",
        reason: "makes the server's disk below a file, for a planted disk that is busy with other programs",
        unpacked: None,
    },
    Package {
        name: "linux-image-cloud-amd64",
        program: "vmlinuz-*-cloud-amd64",
        reason: "the guest in which faults are planted in control groups of version 2 boots it",
        unpacked: Some(Unpacked {
            libraries: &[],
            is_name_of_another: true,
        }),
    },
    Package {
        name: "maven",
        program: "mvn",
        reason: "builds the Spring Boot service of the heap lab",
        unpacked: None,
    },
    Package {
        name: "memcached",
        program: "memcached",
        reason: "is asked by `load memcached` and counts what it was asked; has faults planted in it by `cargo xtask faults`",
        unpacked: None,
    },
    Package {
        name: "nbdkit",
        program: "nbdkit",
        reason: "serves a disk that carries few bytes a second",
        unpacked: None,
    },
    Package {
        name: "nftables",
        program: "nft",
        reason: "second opinion on the base chains that we read and plant by netlink",
        unpacked: None,
    },
    Package {
        name: "nginx-light",
        program: "nginx",
        reason: "is stopped, traced and starved by planted faults, and must be healthy without",
        unpacked: None,
    },
    Package {
        name: "nsd",
        program: "nsd",
        reason: "a real DNS server that `load udp --dns` drives",
        unpacked: None,
    },
    Package {
        name: "openjdk-17-jdk-headless",
        program: "javac",
        reason: "compiles the service whose GC logs are compared with its JVM's own counts",
        unpacked: None,
    },
    Package {
        name: "openssl",
        program: "openssl",
        reason: "writes keys of clients in each form",
        unpacked: None,
    },
    Package {
        name: "postgresql",
        program: "pg_ctlcluster",
        reason: "locks a row that pgbench sessions wait for",
        unpacked: None,
    },
    Package {
        name: "python3",
        program: "python3",
        reason: "runs a server whose threads share one lock",
        unpacked: None,
    },
    Package {
        name: "python3-pip",
        program: "pip3",
        reason: "fetches the JVMs that Debian does not have",
        unpacked: None,
    },
    Package {
        name: "qemu-system-x86",
        program: "qemu-system-x86_64",
        reason: "runs the guest in which faults are planted in control groups of version 2",
        unpacked: None,
    },
    Package {
        name: "redis-server",
        program: "redis-server",
        reason: "has its only thread saturated by a planted fault",
        unpacked: None,
    },
    Package {
        name: "redis-tools",
        program: "redis-benchmark",
        reason: "drives redis as fast as it answers",
        unpacked: None,
    },
    Package {
        name: "strace",
        program: "strace",
        reason: "kills the tool or fails its calls at chosen system calls",
        unpacked: None,
    },
    Package {
        name: "systemd",
        program: "systemd-analyze",
        reason: "must accept the units that `knob export` writes",
        unpacked: None,
    },
    Package {
        name: "wrk",
        program: "wrk",
        reason: "drives nginx as fast as it answers",
        unpacked: None,
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
    if let Some((head, tail)) = program.split_once('*') {
        let kernels = std::fs::read_dir(unpacked_folder().join("boot")).ok()?;
        let mut kernels = kernels.flatten().map(|entry| entry.path());
        return kernels.find(|path| {
            let name = path.file_name().unwrap_or_default().to_string_lossy();
            name.starts_with(head) && name.ends_with(tail)
        });
    }
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path)
        .chain(places())
        .map(|folder| folder.join(program))
        .find(|file| file.is_file())
}

fn places() -> impl Iterator<Item = PathBuf> {
    let unpacked = unpacked_folder();
    PLACES
        .iter()
        .map(PathBuf::from)
        .chain([unpacked.join("usr/sbin"), unpacked.join("usr/bin")])
}

/// Where packages that are not installed are unpacked.
pub fn unpacked_folder() -> PathBuf {
    let target = std::env::var_os("CARGO_TARGET_DIR").map_or_else(
        || Path::new(env!("CARGO_MANIFEST_DIR")).join("../target"),
        PathBuf::from,
    );
    target.join("packages")
}

/// PATH with the places of [`find`] behind it, for the tests.
pub fn path() -> Result<std::ffi::OsString> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let mut folders: Vec<PathBuf> = std::env::split_paths(&path).collect();
    for place in places() {
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
    let mut command = String::from("apt-get update");
    let names = to_install(packages);
    if !names.is_empty() {
        command += " && apt-get install --yes --no-install-recommends --no-remove ";
        command += &names.join(" ");
    }
    let folder = unpacked_folder();
    for package in packages {
        let Some(unpacked) = &package.unpacked else {
            continue;
        };
        let name = if unpacked.is_name_of_another {
            format!(
                "$(apt-cache depends --important {} | sed -n 's/ *Depends: //p')",
                package.name
            )
        } else {
            package.name.to_owned()
        };
        let folder = folder.to_string_lossy();
        command.extend([
            " && apt-get download ",
            &name,
            " && dpkg-deb --extract ",
            &name,
            "_*.deb ",
            &folder,
        ]);
    }
    command
}

/// Names for `apt-get install`: packages, and the libraries of those that are unpacked.
fn to_install(packages: &[Package]) -> Vec<&'static str> {
    packages
        .iter()
        .flat_map(|package| match &package.unpacked {
            Some(unpacked) => unpacked.libraries,
            None => std::slice::from_ref(&package.name),
        })
        .copied()
        .collect()
}

/// Installs `packages`; needs root and apt.
pub fn install(packages: &[Package]) -> Result<()> {
    let _quiet = HoldServices::start()?;
    let here = Path::new(".");
    apt(&["update", "--quiet"], here)?;
    let names = to_install(packages);
    if !names.is_empty() {
        let mut args = vec![
            "install",
            "--yes",
            "--quiet",
            "--no-install-recommends",
            "--no-remove",
        ];
        args.extend(names);
        apt(&args, here)?;
    }
    packages
        .iter()
        .filter(|package| package.unpacked.is_some())
        .try_for_each(unpack)
}

/// Downloads the archive and takes it apart; its scripts do not run.
fn unpack(package: &Package) -> Result<()> {
    let folder = unpacked_folder();
    let archives = folder.join("archives").join(package.name);
    std::fs::create_dir_all(&archives)
        .with_context(|| format!("cannot create {}", archives.display()))?;
    let name = match &package.unpacked {
        Some(unpacked) if unpacked.is_name_of_another => named(package.name)?,
        _ => package.name.to_owned(),
    };
    apt(&["download", &name], &archives)?;
    for archive in std::fs::read_dir(&archives)
        .with_context(|| format!("cannot list {}", archives.display()))?
    {
        let archive = archive?.path();
        let status = Command::new("dpkg-deb")
            .arg("--extract")
            .args([&archive, &folder])
            .status()
            .context("cannot run dpkg-deb")?;
        if !status.success() {
            bail!(
                "cannot unpack {}: dpkg-deb ended with {status}",
                archive.display()
            );
        }
    }
    Ok(())
}

/// The package that `name` depends on.
fn named(name: &str) -> Result<String> {
    let output = Command::new("apt-cache")
        .args(["depends", "--important", name])
        .output()
        .context("cannot run apt-cache")?;
    let listed = String::from_utf8_lossy(&output.stdout).into_owned();
    depended_on(&listed).map(str::to_owned).with_context(|| {
        format!("cannot find what the package {name} depends on; run apt-get update")
    })
}

/// The first package in what `apt-cache depends` prints.
fn depended_on(listed: &str) -> Option<&str> {
    let mut lines = listed.lines().map(str::trim);
    lines.find_map(|line| line.strip_prefix("Depends: "))
}

/// Whether we may install: the effective user is root.
pub fn is_root() -> bool {
    // The owner of /proc/self is the effective user, which saves an unsafe call of geteuid(2).
    std::fs::metadata("/proc/self")
        .is_ok_and(|meta| std::os::unix::fs::MetadataExt::uid(&meta) == 0)
}

fn apt(args: &[&str], folder: &Path) -> Result<()> {
    eprintln!("xtask: apt-get {}", args.join(" "));
    let status = Command::new("apt-get")
        .args(args)
        .current_dir(folder)
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
            "apt-get update && apt-get install --yes --no-install-recommends --no-remove ansible-core bind9-dnsutils"
        );
    }

    #[test]
    fn a_package_that_would_push_out_another_is_unpacked() {
        let chrony = PACKAGES.iter().find(|package| package.name == "chrony");
        let command = command_line(&[*chrony.unwrap()]);
        assert!(command.contains("install --yes --no-install-recommends --no-remove libcap2 "));
        assert!(command.contains("apt-get download chrony && dpkg-deb --extract chrony_*.deb "));
    }

    #[test]
    fn a_kernel_is_the_package_that_an_empty_one_depends_on() {
        let listed = "linux-image-cloud-amd64\n  Depends: linux-image-6.1.0-56-cloud-amd64\n";
        let expected = Some("linux-image-6.1.0-56-cloud-amd64");
        assert_eq!(depended_on(listed), expected);
        assert_eq!(depended_on("linux-image-cloud-amd64\n"), None);
    }

    #[test]
    fn a_program_outside_path_is_found_where_debian_keeps_it() {
        assert!(find("sh").is_some());
        assert!(find("no-such-program-anywhere").is_none());
    }
}
