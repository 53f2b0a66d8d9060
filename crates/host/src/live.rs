//! The machine itself, as the calling thread sees it: its network and mount namespace.
//!
//! Most paths follow the calling thread by themselves: sysctls below `/proc/sys/net` are looked up
//! in the network namespace of the opener, `/sys` in its mount namespace. `/proc/net` does not:
//! it is a link to `self/net`, the namespace of the *main* thread (proc(5)), so it is read here
//! through `/proc/thread-self/net`.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::fs::{File, OpenOptions};
use std::io::{self, Read as _, Write as _};
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use rungwise_model::kernel::{Answer, Owner, Question, TcpSocket};
use rungwise_model::service::ServicePort;

use crate::{
    AuditRule, BaseChain, DeviceSetting, Feature, Host, MountOption, ask, audit, ethtool, files,
    mount, namespace, nft, thread, unit,
};

/// `impl Host` for the namespaces of the calling thread.
#[derive(Clone, Copy, Debug, Default)]
pub struct Live;

impl Host for Live {
    fn name(&self) -> &'static str {
        "this host"
    }

    fn netns(&self) -> io::Result<u64> {
        Ok(std::fs::metadata("/proc/thread-self/ns/net")?.ino())
    }

    fn read(&self, path: &Path) -> io::Result<Vec<u8>> {
        let mut bytes = Vec::with_capacity(files::PAGE);
        // Not the file's own `read_to_end`, nor `fs::read`: they ask for size and position first, and the kernel gives
        // 0 or 4096 here. Four calls instead of six or eight count with thousands of files.
        File::open(of_this_thread(path))?
            .take(u64::MAX)
            .read_to_end(&mut bytes)?;
        bytes.shrink_to_fit();
        Ok(bytes)
    }

    fn open(&self, path: &Path) -> io::Result<Option<File>> {
        File::open(of_this_thread(path)).map(Some)
    }

    fn write(&self, path: &Path, value: &[u8]) -> io::Result<()> {
        // No O_CREAT, no O_TRUNC: a misspelled sysctl must fail, not appear as a file.
        let mut file = OpenOptions::new().write(true).open(of_this_thread(path))?;
        let written = file.write(value)?;
        if written == value.len() {
            return Ok(());
        }
        // A second write(2) would be a second value for a sysctl.
        Err(io::Error::new(
            io::ErrorKind::WriteZero,
            format!("the kernel took {written} of {} bytes", value.len()),
        ))
    }

    fn list(&self, dir: &Path) -> io::Result<Vec<String>> {
        files::list(&of_this_thread(dir))
    }

    fn folders(&self, dir: &Path) -> io::Result<Vec<String>> {
        files::folders(&of_this_thread(dir))
    }

    fn feature(&self, device: &str, feature: &str) -> io::Result<Feature> {
        ethtool::feature(device, feature)
    }

    fn set_feature(&self, device: &str, feature: &str, on: bool) -> io::Result<()> {
        ethtool::set_feature(device, feature, on)
    }

    fn base_chains(&self) -> io::Result<Vec<BaseChain>> {
        nft::base_chains()
    }

    fn plant_chains(&self, name: &str) -> io::Result<()> {
        nft::plant_chains(name)
    }

    fn remove_table(&self, name: &str) -> io::Result<()> {
        nft::remove_table(name)
    }

    fn ask(&self, question: Question) -> io::Result<Answer> {
        ask::answer(question)
    }

    fn tcp_among(&self, wanted: &[TcpSocket]) -> io::Result<Vec<TcpSocket>> {
        ask::tcp_among(wanted)
    }

    fn tcp_in_use(&self) -> io::Result<Vec<TcpSocket>> {
        ask::tcp_in_use()
    }

    fn tcp_of(&self, services: &[ServicePort]) -> io::Result<Vec<TcpSocket>> {
        ask::tcp_of(services)
    }

    fn other_networks(&self) -> io::Result<BTreeMap<u64, PathBuf>> {
        ask::other_networks()
    }

    fn tcp_in(&self, network: &Path, services: &[ServicePort]) -> io::Result<Vec<TcpSocket>> {
        let services = services.to_owned();
        namespace::read_in(network, move || ask::tcp_of(&services))?
    }

    fn owners_of(&self, sockets: &BTreeSet<u64>) -> io::Result<BTreeMap<u64, Owner>> {
        ask::owners_of(sockets)
    }

    fn mounts_of(&self, processes: &[u32]) -> io::Result<Answer> {
        ask::mounts_of(processes).map(Answer::Mounts)
    }

    fn unix_listeners(&self, path: &Path) -> io::Result<BTreeSet<u64>> {
        ask::unix_listeners(path)
    }

    fn device_setting(&self, device: &str, setting: DeviceSetting) -> io::Result<String> {
        ethtool::setting(device, setting)
    }

    fn set_device(&self, device: &str, setting: DeviceSetting, value: &str) -> io::Result<()> {
        ethtool::set(device, setting, value)
    }

    fn pin_thread(&self, _pid: u32, tid: u32, cpus: &[usize]) -> io::Result<()> {
        thread::pin(tid, cpus)
    }

    fn set_open_files(&self, pid: u32, soft: u64, hard: u64) -> io::Result<()> {
        thread::limit_open_files(pid, soft, hard)
    }

    fn mount_namespace(&self) -> io::Result<u64> {
        Ok(std::fs::metadata("/proc/thread-self/ns/mnt")?.ino())
    }

    fn remount(&self, point: &Path, option: MountOption, value: &str) -> io::Result<()> {
        mount::set(point, option, value)
    }

    fn audit_rules(&self) -> io::Result<Vec<AuditRule>> {
        audit::rules()
    }

    fn set_left_out(&self, user: u32, present: bool) -> io::Result<()> {
        audit::leave_out(user, present)
    }

    fn unit_active(&self, unit: &str) -> io::Result<bool> {
        unit::active(unit)
    }

    fn set_unit(&self, unit: &str, active: bool) -> io::Result<()> {
        unit::set(unit, active)
    }
}

fn of_this_thread(path: &Path) -> Cow<'_, Path> {
    match path.strip_prefix("/proc/net") {
        Ok(rest) => Path::new("/proc/thread-self/net").join(rest).into(),
        Err(_) => path.into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_write_never_creates_a_file() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("net.core.misspelled");
        let error = Live.write(&path, b"1").unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::NotFound);
        assert!(!path.exists());
    }

    #[test]
    fn proc_net_is_read_for_the_calling_thread() {
        assert_eq!(
            of_this_thread(Path::new("/proc/net/udp")),
            Path::new("/proc/thread-self/net/udp")
        );
        assert_eq!(
            of_this_thread(Path::new("/proc/netx")),
            Path::new("/proc/netx")
        );
        assert!(
            Live.text(Path::new("/proc/net/udp"))
                .unwrap()
                .contains("local_address")
        );
    }

    #[test]
    fn names_in_a_directory_come_sorted() {
        let names = Live.list(Path::new("/proc/sys/net/core")).unwrap();
        assert!(
            names.is_sorted() && names.contains(&"somaxconn".to_owned()),
            "{names:?}"
        );
    }
}
