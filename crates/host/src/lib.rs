//! All access to a machine: files, devices, namespaces, processes, clocks.
//!
//! Everything that reads or changes a machine goes through [`Host`], so that a recorded or synthetic machine
//! ([`recorded::Recorded`]) can replace a live one and so that the lab's namespaces are reached the same way as the
//! host itself. What is not a property of one network namespace (processes, CPU clocks, durable files, signals) lives
//! in modules beside it.
#![expect(
    clippy::disallowed_methods,
    reason = "this crate is the access that the others must use"
)]

mod ask;
mod audit;
pub mod clock;
pub mod cpu;
pub mod environment;
mod error;
mod ethtool;
pub mod files;
pub mod follow;
pub mod hotspot;
pub mod interrupts;
mod link;
pub mod live;
pub mod lock;
pub mod machine;
mod mount;
pub mod namespace;
mod netlink;
mod nft;
mod others;
pub mod privilege;
pub mod process;
mod qdisc;
pub mod recorded;
pub mod scratch;
mod setting;
pub mod signals;
mod thread;
mod unit;
pub mod veth;
mod wait;

pub use audit::AuditRule;
pub use error::{Error, NotReady, Result};
pub use mount::{MountOption, Mounted};
pub use setting::DeviceSetting;

use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};

use rungwise_model::kernel::{Answer, Owner, Question, TcpSocket};
use rungwise_model::service::ServicePort;

/// A netfilter base chain: the hook at which the kernel walks rules for every packet.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct BaseChain {
    /// Address family as nft names it: `ip`, `ip6`, `inet`, `netdev`, ...
    pub family: String,
    /// Table the chain belongs to.
    pub table: String,
    /// Name of the chain.
    pub chain: String,
    /// Hook as nft names it: `input`, `output`, ...
    pub hook: String,
    /// Rules in the chain.
    pub rules: u32,
}

/// State of one device feature, as `ethtool -k` shows it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Feature {
    /// Whether the feature is active.
    pub on: bool,
    /// The driver does not let it be changed.
    pub fixed: bool,
}

/// One network namespace of a machine with its files and devices.
///
/// Paths are absolute and mean what they mean *inside* that namespace: `/sys/class/net` shows its
/// devices, `/proc/sys/net` its sysctls. Errors are the kernel's own; callers add what they tried.
pub trait Host: Send + Sync {
    /// Its name in messages: `this host`, `namespace server`.
    fn name(&self) -> &str;

    /// Identity of the network namespace (its inode), so that a journal can check whether it still exists.
    fn netns(&self) -> io::Result<u64>;

    /// Reads a whole file.
    fn read(&self, path: &Path) -> io::Result<Vec<u8>>;

    /// Opens a file that is read again and again, by [`files::read_again`]; nothing where only [`Host::read`] does.
    fn open(&self, path: &Path) -> io::Result<Option<File>> {
        let _ = path;
        Ok(None)
    }

    /// Writes `value` to an existing file with one `write(2)`; never creates one.
    fn write(&self, path: &Path, value: &[u8]) -> io::Result<()>;

    /// Names in a directory, sorted.
    fn list(&self, dir: &Path) -> io::Result<Vec<String>>;

    /// Names of the folders in a directory, sorted; links to folders are none.
    fn folders(&self, dir: &Path) -> io::Result<Vec<String>>;

    /// State of a device feature by its kernel name (`rx-gro`, `tx-udp-segmentation`).
    fn feature(&self, device: &str, feature: &str) -> io::Result<Feature>;

    /// Switches a device feature; succeeds only if the kernel accepted the request.
    fn set_feature(&self, device: &str, feature: &str, on: bool) -> io::Result<()>;

    /// Base chains of `nf_tables`, read by netlink. Never lists by the legacy tools: that creates the tables.
    fn base_chains(&self) -> io::Result<Vec<BaseChain>>;

    /// Creates table `name` of family `inet` with base chains on input and output, each with one
    /// counting rule; the reference obstacle of the ladder. For lab namespaces.
    fn plant_chains(&self, name: &str) -> io::Result<()>;

    /// Deletes table `name` of family `inet` and everything in it.
    fn remove_table(&self, name: &str) -> io::Result<()>;

    /// Answers a question that has no file. Never changes the machine.
    fn ask(&self, question: Question) -> io::Result<Answer> {
        let _ = question;
        Err(io::ErrorKind::Unsupported.into())
    }

    /// The TCP sockets that listen, and of the others those in `wanted` that are still there: [`Question::Tcp`] of a
    /// few, at a part of its cost.
    fn tcp_among(&self, wanted: &[TcpSocket]) -> io::Result<Vec<TcpSocket>> {
        match self.ask(Question::Tcp)? {
            Answer::Tcp(mut sockets) => {
                // 10: TCP_LISTEN of net/tcp_states.h.
                sockets.retain(|socket| {
                    socket.state == 10 || wanted.iter().any(|wanted| wanted.is_same(socket))
                });
                Ok(sockets)
            }
            _ => Err(io::ErrorKind::InvalidData.into()),
        }
    }

    /// The TCP sockets that are not in `TIME_WAIT`: [`Question::Tcp`] of a host that opens many connections, at a part of its cost.
    fn tcp_in_use(&self) -> io::Result<Vec<TcpSocket>> {
        match self.ask(Question::Tcp)? {
            Answer::Tcp(mut sockets) => {
                sockets.retain(|socket| !socket.is_in_time_wait());
                Ok(sockets)
            }
            _ => Err(io::ErrorKind::InvalidData.into()),
        }
    }

    /// The TCP sockets that are not in `TIME_WAIT` and belong to one of these services at either end, its listeners included:
    /// [`Host::tcp_in_use`] of a few among many, at a part of its cost.
    fn tcp_of(&self, services: &[ServicePort]) -> io::Result<Vec<TcpSocket>> {
        let mut sockets = self.tcp_in_use()?;
        sockets.retain(|socket| services.iter().any(|service| service.has(socket)));
        Ok(sockets)
    }

    /// The other network namespaces of this machine that can be found: what [`Host::tcp_in`] enters each by, by inode.
    fn other_networks(&self) -> io::Result<BTreeMap<u64, PathBuf>> {
        Ok(BTreeMap::new())
    }

    /// [`Host::tcp_of`] in one of the other network namespaces.
    fn tcp_in(&self, network: &Path, services: &[ServicePort]) -> io::Result<Vec<TcpSocket>> {
        let _ = (network, services);
        Err(io::ErrorKind::Unsupported.into())
    }

    /// Who has these sockets open, by inode: [`Question::Owners`] of a few, at a part of its cost. A socket that
    /// no process has open, as far as can be seen, is left out.
    fn owners_of(&self, sockets: &BTreeSet<u64>) -> io::Result<BTreeMap<u64, Owner>> {
        match self.ask(Question::Owners)? {
            Answer::Owners(mut owners) => {
                owners.retain(|inode, _| sockets.contains(inode));
                Ok(owners)
            }
            _ => Err(io::ErrorKind::InvalidData.into()),
        }
    }

    /// [`Question::Mounts`], and the file systems that only these processes see, in mount namespaces of their own.
    fn mounts_of(&self, processes: &[u32]) -> io::Result<Answer> {
        let _ = processes;
        self.ask(Question::Mounts)
    }

    /// Inodes of the sockets that listen on a path (`sock_diag`).
    fn unix_listeners(&self, path: &Path) -> io::Result<BTreeSet<u64>> {
        let _ = path;
        Err(io::ErrorKind::Unsupported.into())
    }

    /// A setting of a device that has no file, in the spelling of [`DeviceSetting::normal`].
    fn device_setting(&self, device: &str, setting: DeviceSetting) -> io::Result<String> {
        let _ = (device, setting);
        Err(io::ErrorKind::Unsupported.into())
    }

    /// Sets `value`; parts that it does not name are unchanged. Succeeds only if the kernel accepted all of it.
    fn set_device(&self, device: &str, setting: DeviceSetting, value: &str) -> io::Result<()> {
        let _ = (device, setting, value);
        Err(io::ErrorKind::Unsupported.into())
    }

    /// Lets thread `tid` of process `pid` run on `cpus` alone.
    fn pin_thread(&self, pid: u32, tid: u32, cpus: &[usize]) -> io::Result<()> {
        let _ = (pid, tid, cpus);
        Err(io::ErrorKind::Unsupported.into())
    }

    /// Lets process `pid` have `soft` files open, and raise that to `hard` by itself (`RLIMIT_NOFILE`).
    fn set_open_files(&self, pid: u32, soft: u64, hard: u64) -> io::Result<()> {
        let _ = (pid, soft, hard);
        Err(io::ErrorKind::Unsupported.into())
    }

    /// The mounted file systems, in the order of the kernel's list.
    fn mounts(&self) -> io::Result<Vec<Mounted>> {
        Ok(Mounted::all(&self.text(Path::new(mount::MOUNTS))?))
    }

    /// Identity of the mount namespace (its inode): a mount has its number there alone.
    fn mount_namespace(&self) -> io::Result<u64> {
        Err(io::ErrorKind::Unsupported.into())
    }

    /// Sets `value`, one of [`MountOption::values`], for the mount at `point`.
    fn remount(&self, point: &Path, option: MountOption, value: &str) -> io::Result<()> {
        let _ = (point, option, value);
        Err(io::ErrorKind::Unsupported.into())
    }

    /// The rules by which audit records system calls, in the order in which they are tried.
    fn audit_rules(&self) -> io::Result<Vec<AuditRule>> {
        Err(io::ErrorKind::Unsupported.into())
    }

    /// Adds [`AuditRule::LeavesOut`] of `user` before all other rules, or deletes one.
    fn set_left_out(&self, user: u32, present: bool) -> io::Result<()> {
        let _ = (user, present);
        Err(io::ErrorKind::Unsupported.into())
    }

    /// Whether a unit of the service manager (`irqbalance.service`) runs.
    fn unit_active(&self, unit: &str) -> io::Result<bool> {
        let _ = unit;
        Err(io::ErrorKind::Unsupported.into())
    }

    /// Starts or stops a unit of the service manager and waits until that is done.
    fn set_unit(&self, unit: &str, active: bool) -> io::Result<()> {
        let _ = (unit, active);
        Err(io::ErrorKind::Unsupported.into())
    }

    /// Reads a file as text without the trailing newline; bytes that are not UTF-8 are replaced.
    fn text(&self, path: &Path) -> io::Result<String> {
        let bytes = self.read(path)?;
        Ok(String::from_utf8_lossy(&bytes).trim_end().to_owned())
    }
}
