//! Where faults are planted: a server's namespace and a client's, joined by a veth pair.

use std::io::Write as _;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use rungwise_host::namespace::Namespace;
use rungwise_host::process::{Launch, Ready, Service};
use rungwise_host::{Host as _, files, live::Live};
use tempfile::NamedTempFile;

use super::Result;
use crate::Pair;

/// Device of the answering end.
pub(super) const DEVICE: &str = Pair::SERVER_DEVICE;

/// The port that services of faults listen on.
pub(super) const PORT: u16 = 9000;

/// A service starts in a moment, or on a busy machine in a few.
const STARTS_WITHIN: Duration = Duration::from_secs(20);

/// A fault in place, with its traffic running. Dropping it ends all of it.
#[derive(Debug)]
pub struct Planted {
    /// From where it is seen: `check` is run in here.
    pub namespace: Namespace,
    /// The process that suffers, for `--pid`.
    pub pid: Option<u32>,
    /// The latencies of its traffic, for `--load`.
    pub load: Option<NamedTempFile>,
    /// Traffic, services, groups and the other namespace; ended in this order, before the namespace.
    held: Vec<Box<dyn Held>>,
}

/// Something that ends when dropped.
pub(super) trait Held: std::fmt::Debug + Send {}

impl<T: std::fmt::Debug + Send> Held for T {}

impl Planted {
    /// A fault seen from `namespace`.
    pub(super) fn in_namespace(namespace: Namespace) -> Self {
        Self {
            namespace,
            pid: None,
            load: None,
            held: Vec::new(),
        }
    }

    /// The process that suffers.
    pub(super) fn suffered_by(mut self, pid: u32) -> Self {
        self.pid = Some(pid);
        self
    }

    /// The latencies of its traffic as wrk2 would print them.
    pub(super) fn printing(mut self, table: &str) -> Result<Self> {
        let mut file = NamedTempFile::new()?;
        file.write_all(table.as_bytes())?;
        self.load = Some(file);
        Ok(self)
    }

    /// Keeps `what` until the end.
    pub(super) fn keep(mut self, what: impl Held + 'static) -> Self {
        self.held.push(Box::new(what));
        self
    }
}

impl Drop for Planted {
    fn drop(&mut self) {
        // A vector drops its elements in order, but only after this; say it, since the order matters.
        self.held.drain(..).for_each(drop);
    }
}

/// Two namespaces and the pair of devices between them, each with one queue.
pub(super) struct Lab {
    pub(super) server: Namespace,
    pub(super) client: Namespace,
}

impl Lab {
    pub(super) fn new() -> Result<Self> {
        let Pair { server, client } = Pair::new(1)?;
        // Datagrams that are sent together shall cross one by one, as they would on a wire.
        client.set_feature(Pair::CLIENT_DEVICE, "tx-udp-segmentation", false)?;
        Ok(Self { server, client })
    }

    /// Hands the packets that the server's device takes to these CPUs, a mask in hex.
    pub(super) fn steer(&self, mask: &str) -> Result<()> {
        let file = format!("/sys/class/net/{DEVICE}/queues/rx-0/rps_cpus");
        Ok(self.server.write(Path::new(&file), mask.as_bytes())?)
    }
}

/// Where the service of a fault listens.
pub(super) fn service_address() -> SocketAddr {
    (Pair::SERVER, PORT).into()
}

/// `serve udp` at [`service_address`].
pub(super) fn serve_udp(program: &Path, namespace: &Namespace, more: &[&str]) -> Result<Service> {
    let listen = service_address().to_string();
    let argv = ["serve", "udp", "--quiet", "--listen", &listen];
    let argv = std::iter::once(program.display().to_string())
        .chain(argv.iter().chain(more).map(ToString::to_string));
    let service = start(argv.collect(), Some(namespace))?;
    service.wait_ready(&Ready::Line("ready udp".to_owned()), STARTS_WITHIN)?;
    Ok(service)
}

/// `load udp` against the service at [`service_address`], in a closed loop, for longer than any look takes.
pub(super) fn load_udp(program: &Path, namespace: &Namespace, more: &[&str]) -> Result<Service> {
    let service = service_address().to_string();
    let argv = ["load", "udp", &service, "--quiet", "--for", "60s"];
    let argv = std::iter::once(program.display().to_string())
        .chain(argv.iter().chain(more).map(ToString::to_string));
    start(argv.collect(), Some(namespace))
}

/// A process that does nothing but use a CPU; one of `cpus`, where they are named.
pub(super) fn spinner(cpus: Option<&[usize]>) -> Result<Service> {
    let argv = ["sh", "-c", "while :; do :; done"];
    let service = start(argv.map(str::to_owned).to_vec(), None)?;
    if let Some(cpus) = cpus {
        Live.pin_thread(service.pid(), service.pid(), cpus)?;
    }
    Ok(service)
}

fn start(argv: Vec<String>, namespace: Option<&Namespace>) -> Result<Service> {
    Ok(Service::start(&Launch {
        argv,
        namespace,
        ..Launch::default()
    })?)
}

/// Runs a program in the namespace, with `input` on its standard input.
#[expect(
    clippy::disallowed_methods,
    reason = "tests start the programs they need"
)]
pub(super) fn run(namespace: &Namespace, argv: &'static [&str], input: String) -> Result<()> {
    let done = namespace.run(move || -> std::io::Result<_> {
        let mut child = Command::new(argv[0])
            .args(&argv[1..])
            .stdin(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()?;
        if let Some(mut stdin) = child.stdin.take() {
            stdin.write_all(input.as_bytes())?;
        }
        child.wait_with_output()
    });
    let done = done.map_err(|error| format!("cannot run {}: {error}; install it", argv[0]))?;
    if done.status.success() {
        Ok(())
    } else {
        let said = String::from_utf8_lossy(&done.stderr);
        Err(format!("{}: {said}", argv.join(" ")).into())
    }
}

/// A control group of version 1 with a quota; removed when dropped, which needs its processes to be gone.
#[derive(Debug)]
pub(super) struct Quota {
    dir: PathBuf,
}

impl Quota {
    /// A group that may use `share` of one CPU, in periods of 100 ms.
    pub(super) fn of(share: f64) -> Result<Self> {
        let tree = Path::new("/sys/fs/cgroup/cpu");
        if !files::is_folder(tree) {
            return Err("this machine has no cpu controller of control groups version 1 in /sys/fs/cgroup/cpu".into());
        }
        let group = Self {
            dir: tree.join(format!("rungwise-fault-{}", std::process::id())),
        };
        std::fs::create_dir(&group.dir)?;
        let quota = format!("{:.0}", share * 100_000.0);
        Live.write(&group.dir.join("cpu.cfs_period_us"), b"100000")?;
        Live.write(&group.dir.join("cpu.cfs_quota_us"), quota.as_bytes())?;
        Ok(group)
    }

    /// Puts a process into it.
    pub(super) fn take(&self, pid: u32) -> Result<()> {
        let file = self.dir.join("cgroup.procs");
        Ok(Live.write(&file, pid.to_string().as_bytes())?)
    }
}

impl Drop for Quota {
    fn drop(&mut self) {
        let removed = std::fs::remove_dir(&self.dir);
        // What is left on the machine is told, unless a failure is being told already.
        assert!(
            removed.is_ok() || std::thread::panicking(),
            "cannot remove {}: {removed:?}",
            self.dir.display()
        );
    }
}
