//! Where faults are planted: a server's namespace and a client's, joined by a veth pair.

use std::io::Write as _;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::time::Duration;

use rungwise_host::namespace::Namespace;
use rungwise_host::process::{Launch, Ready, Service};
use rungwise_host::{Host as _, clock, files, live::Live};
use tempfile::{NamedTempFile, TempDir};

use super::Result;
use crate::Pair;
use crate::unit::remove_group;

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
    /// What it costs.
    meter: Option<Meter>,
    /// The service that can start again with other options.
    served: Option<Served>,
    /// Traffic, services, groups and the other namespace; ended in this order, before the namespace.
    held: Vec<Box<dyn Held>>,
}

/// Measures what a fault costs, without rungwise: replies that clients miss, packets that the kernel drops, work that is not done. Zero where
/// there is no harm.
struct Meter(Box<Measure>);

type Measure = dyn Fn(&Namespace) -> Result<f64> + Send;

impl std::fmt::Debug for Meter {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Meter")
    }
}

/// A `serve udp` and how it was started.
#[derive(Debug)]
struct Served {
    program: PathBuf,
    options: Vec<String>,
    service: Option<Service>,
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
            meter: None,
            served: None,
            held: Vec::new(),
        }
    }

    /// The process that suffers.
    pub(super) fn suffered_by(mut self, pid: u32) -> Self {
        self.pid = Some(pid);
        self
    }

    /// What it costs, measured in its namespace; see [`super::Cure::measured`].
    pub(super) fn costing(
        mut self,
        meter: impl Fn(&Namespace) -> Result<f64> + Send + 'static,
    ) -> Self {
        self.meter = Some(Meter(Box::new(meter)));
        self
    }

    /// What it costs now, where that can be measured.
    pub fn cost(&self) -> Result<Option<f64>> {
        let meter = self.meter.as_ref();
        meter.map(|meter| (meter.0)(&self.namespace)).transpose()
    }

    /// The latencies of its traffic as wrk2 would print them.
    pub(super) fn printing(mut self, table: &str) -> Result<Self> {
        let mut file = NamedTempFile::new()?;
        file.write_all(table.as_bytes())?;
        self.load = Some(file);
        Ok(self)
    }

    /// Starts `serve udp` in this namespace, so that [`Planted::restart`] can start it again.
    pub(super) fn serving(mut self, program: &Path, options: &[&str]) -> Result<Self> {
        self.served = Some(Served {
            program: program.to_owned(),
            options: options.iter().map(ToString::to_string).collect(),
            service: Some(serve_udp(program, &self.namespace, options)?),
        });
        Ok(self)
    }

    /// The service of [`Planted::serving`] is what suffers.
    pub(super) fn suffered_by_its_service(mut self) -> Self {
        let served = self.served.as_ref();
        self.pid = served.and_then(|served| Some(served.service.as_ref()?.pid()));
        self
    }

    /// Starts the service again with these options beside those that it had.
    pub fn restart(&mut self, more: &[&str]) -> Result<()> {
        let served = self
            .served
            .as_mut()
            .ok_or("this fault has no service to start again")?;
        // The port is free once it has ended.
        drop(served.service.take());
        let options = served
            .options
            .iter()
            .map(String::as_str)
            .chain(more.iter().copied());
        let options: Vec<&str> = options.collect();
        let service = serve_udp(&served.program, &self.namespace, &options)?;
        if self.pid.is_some() {
            self.pid = Some(service.pid());
        }
        served.service = Some(service);
        Ok(())
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

/// How long a cost is measured.
const MEASURED_FOR: Duration = Duration::from_secs(2);

/// How much each number grows per second.
pub(super) fn growth<const N: usize>(read: impl Fn() -> Result<[f64; N]>) -> Result<[f64; N]> {
    let (since, before) = (clock::now(), read()?);
    std::thread::sleep(MEASURED_FOR);
    let (after, seconds) = (read()?, since.elapsed().as_secs_f64());
    Ok(std::array::from_fn(|at| (after[at] - before[at]) / seconds))
}

/// A counter of `/proc/net/snmp` or `netstat` in a namespace: `counter(namespace, "netstat", "TcpExt", "IPReversePathFilter")`.
pub(super) fn counter(namespace: &Namespace, file: &str, group: &str, name: &str) -> Result<f64> {
    let path = format!("/proc/thread-self/net/{file}");
    let text = namespace.run(move || Live.text(Path::new(&path)))?;
    let prefix = format!("{group}: ");
    let mut lines = text.lines().filter_map(|line| line.strip_prefix(&prefix));
    let (names, values) = (lines.next().unwrap_or(""), lines.next().unwrap_or(""));
    let mut pairs = names.split(' ').zip(values.split(' '));
    let found = pairs.find(|(known, _)| *known == name);
    let (_, value) = found.ok_or_else(|| format!("no {group}:{name} in {file}"))?;
    Ok(value.parse()?)
}

/// Share of the packets to an echo service that it does not answer.
pub(super) fn unanswered(namespace: &Namespace) -> Result<f64> {
    let [asked, answered] = growth(|| {
        Ok([
            counter(namespace, "snmp", "Ip", "InDelivers")?,
            counter(namespace, "snmp", "Udp", "OutDatagrams")?,
        ])
    })?;
    Ok(1.0 - answered / asked.max(1.0))
}

/// CPU time of a process in seconds.
pub(super) fn cpu_time(pid: u32) -> Result<f64> {
    let path = format!("/proc/{pid}/schedstat");
    let text = Live.text(Path::new(&path))?;
    let first = text.split(' ').next().unwrap_or_default();
    Ok(first.parse::<f64>()? / 1e9)
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

/// `load udp` against the service at [`service_address`], in a closed loop, for longer than any capture takes.
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

/// Runs a script of the shell in a folder.
#[expect(
    clippy::disallowed_methods,
    reason = "tests start the programs they need"
)]
fn in_folder(script: &str, folder: &Path) -> std::io::Result<Output> {
    Command::new("sh")
        .args(["-c", script])
        .current_dir(folder)
        .output()
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

/// A control group of version 1, with those above it that were made for it; removed when dropped, which needs its
/// processes to be gone.
#[derive(Debug)]
pub(super) struct Group {
    /// The group and those above it that were made, innermost first.
    dirs: Vec<PathBuf>,
}

impl Group {
    /// A group of this controller at `path`, which begins with a name of this process: `/rungwise-fault-7/a/b`.
    pub(super) fn new(controller: &str, below: &str) -> Result<Self> {
        let tree = Path::new("/sys/fs/cgroup").join(controller);
        if !files::is_folder(&tree) {
            let why = format!(
                "this machine has no {controller} controller of control groups version 1 in /sys/fs/cgroup"
            );
            return Err(why.into());
        }
        let mut group = Self { dirs: Vec::new() };
        let mut dir = tree.join(format!("rungwise-fault-{}", std::process::id()));
        std::fs::create_dir(&dir)?;
        group.dirs.insert(0, dir.clone());
        for name in below.split('/').filter(|name| !name.is_empty()) {
            dir.push(name);
            std::fs::create_dir(&dir)?;
            group.dirs.insert(0, dir.clone());
        }
        Ok(group)
    }

    /// A group that may use `share` of one CPU, in periods of 100 ms; processes go into the one at `below` it.
    pub(super) fn with_quota(share: f64, below: &str) -> Result<Self> {
        let group = Self::new("cpu", below)?;
        let quota = format!("{:.0}", share * 100_000.0);
        group.set_top("cpu.cfs_period_us", "100000")?;
        group.set_top("cpu.cfs_quota_us", &quota)?;
        Ok(group)
    }

    fn innermost(&self) -> &Path {
        &self.dirs[0]
    }

    /// Writes to a file of the group.
    pub(super) fn set(&self, file: &str, value: &str) -> Result<()> {
        Ok(Live.write(&self.innermost().join(file), value.as_bytes())?)
    }

    /// Writes to a file of the topmost group that was made.
    pub(super) fn set_top(&self, file: &str, value: &str) -> Result<()> {
        let top = &self.dirs[self.dirs.len() - 1];
        Ok(Live.write(&top.join(file), value.as_bytes())?)
    }

    /// Puts a process into it.
    pub(super) fn take(&self, pid: u32) -> Result<()> {
        self.set("cgroup.procs", &pid.to_string())
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        for dir in &self.dirs {
            remove_group(dir);
        }
    }
}

/// A shell that runs `script`, outside of any namespace of ours; `exec` the last command, so that it ends with it.
fn shell(script: &str) -> Result<Service> {
    let argv = ["sh", "-c", script].map(str::to_owned);
    start(argv.to_vec(), None)
}

/// A shell in the groups, all of whose commands are in them from the begin.
pub(super) fn shell_in(groups: &[&Group], script: &str) -> Result<Service> {
    let files = groups.iter().map(|group| {
        let file = group.innermost().join("cgroup.procs");
        format!("echo $$ > {}; ", file.display())
    });
    shell(&format!("{}{script}", files.collect::<String>()))
}

/// A small file system in memory; unmounted when dropped.
#[derive(Debug)]
pub(super) struct Small {
    /// Where it is mounted.
    pub(super) point: PathBuf,
}

impl Small {
    /// With so many bytes and inodes.
    #[expect(
        clippy::disallowed_methods,
        reason = "tests start the programs they need"
    )]
    pub(super) fn new(bytes: u64, inodes: u64) -> Result<Self> {
        let point = std::env::temp_dir().join(format!("rungwise-fault-{}", std::process::id()));
        std::fs::create_dir(&point)?;
        let small = Self { point };
        let options = format!("size={bytes},nr_inodes={inodes}");
        let done = Command::new("mount")
            .args(["-t", "tmpfs", "-o", &options, "rungwise"])
            .arg(&small.point)
            .output()?;
        if done.status.success() {
            Ok(small)
        } else {
            Err(format!("mount: {}", String::from_utf8_lossy(&done.stderr)).into())
        }
    }
}

impl Drop for Small {
    #[expect(
        clippy::disallowed_methods,
        reason = "tests start the programs they need"
    )]
    fn drop(&mut self) {
        let done = Command::new("umount").arg(&self.point).output();
        let removed = std::fs::remove_dir(&self.point);
        assert!(
            removed.is_ok() || std::thread::panicking(),
            "cannot remove {}: {done:?} {removed:?}",
            self.point.display()
        );
    }
}

/// A small ext4 file system on a loop device; unmounted when dropped.
#[derive(Debug)]
pub(super) struct Loop {
    /// Name of its device, as `loop0`.
    pub(super) device: String,
    folder: TempDir,
}

impl Loop {
    /// Of 16 MiB.
    pub(super) fn new() -> Result<Self> {
        let folder = tempfile::tempdir()?;
        let script = "truncate -s 16M disk && mkfs.ext4 -q -F disk && mkdir at && mount -o loop disk at && findmnt --noheadings --output SOURCE at";
        let done = in_folder(script, folder.path())?;
        if !done.status.success() {
            return Err(format!("mount: {}", String::from_utf8_lossy(&done.stderr)).into());
        }
        let source = String::from_utf8_lossy(&done.stdout);
        let device = source.trim().trim_start_matches("/dev/").to_owned();
        Ok(Self { device, folder })
    }
}

impl Drop for Loop {
    #[expect(
        clippy::disallowed_methods,
        reason = "tests start the programs they need"
    )]
    fn drop(&mut self) {
        let done = Command::new("umount")
            .arg(self.folder.path().join("at"))
            .output();
        let gone = done.as_ref().is_ok_and(|done| done.status.success());
        assert!(
            gone || std::thread::panicking(),
            "cannot unmount {}: {done:?}",
            self.device
        );
    }
}

/// A file system on a loop device that can be made slow: its file lies on another one that can be frozen.
#[derive(Debug)]
pub(super) struct SlowDisk {
    /// Name of the upper device, as `loop1`.
    device: String,
    /// How many requests its queue held, where that was changed: the device keeps it for its next file.
    queue: Option<String>,
    folder: TempDir,
}

impl SlowDisk {
    pub(super) fn new() -> Result<Self> {
        let folder = tempfile::tempdir()?;
        // All blocks are there from the start, nothing is initialised later, and nothing is flushed: the lower disk has little to do.
        let script = "set -e
            MKFS='mkfs.ext4 -q -F -E lazy_itable_init=0,lazy_journal_init=0,nodiscard'
            mkdir below at
            fallocate -l 96M below.img; $MKFS below.img; mount -o loop,barrier=0 below.img below
            fallocate -l 64M below/disk; $MKFS below/disk; mount -o loop,nodiscard below/disk at
            findmnt --noheadings --output SOURCE at";
        let slow = Self {
            device: String::new(),
            queue: None,
            folder,
        };
        let done = in_folder(script, slow.folder.path())?;
        if !done.status.success() {
            return Err(format!("slow disk: {}", String::from_utf8_lossy(&done.stderr)).into());
        }
        let mut slow = slow;
        let source = String::from_utf8_lossy(&done.stdout);
        source
            .trim()
            .trim_start_matches("/dev/")
            .clone_into(&mut slow.device);
        Ok(slow)
    }

    /// Where it is mounted.
    pub(super) fn folder(&self) -> PathBuf {
        self.folder.path().join("at")
    }

    /// How many requests its queue holds.
    pub(super) fn set_queue(&mut self, requests: u32) -> Result<()> {
        let path = self.queue_file();
        self.queue = Some(Live.text(&path)?);
        Ok(Live.write(&path, requests.to_string().as_bytes())?)
    }

    fn queue_file(&self) -> PathBuf {
        Path::new("/sys/block")
            .join(&self.device)
            .join("queue/nr_requests")
    }

    /// Stops it for `stopped_ms`, lets it work for `working_ms` or until what waits has passed, and again, until the process ends.
    pub(super) fn stops(&self, stopped_ms: u32, working_ms: u32) -> Result<Service> {
        // FIFREEZE and FITHAW of linux/fs.h.
        let script = "open my $disk, '<', $ARGV[0] or die $!;
            my ($stopped, $working) = map { $_ / 1000 } @ARGV[1, 2];
            while (1) {
                ioctl $disk, 0xc0045877, 0;
                select undef, undef, undef, $stopped;
                ioctl $disk, 0xc0045878, 0;
                select undef, undef, undef, $working;
            }";
        let file = self.folder.path().join("below/disk").display().to_string();
        let (stopped, working) = (stopped_ms.to_string(), working_ms.to_string());
        let argv = ["perl", "-e", script, &file, &stopped, &working];
        start(argv.map(str::to_owned).to_vec(), None)
    }
}

impl Drop for SlowDisk {
    fn drop(&mut self) {
        // The namespaces of the fault have copies of the mounts; both devices let go of their files with the last of them.
        let script = "fsfreeze --unfreeze below 2>/dev/null
            for point in at below; do umount $point 2>/dev/null || umount --lazy $point; done
            ! mountpoint -q at && ! mountpoint -q below";
        let done = in_folder(script, self.folder.path());
        let gone = done.as_ref().is_ok_and(|done| done.status.success());
        if let Some(queue) = &self.queue {
            let _ = Live.write(&self.queue_file(), queue.as_bytes());
        }
        assert!(
            gone || std::thread::panicking(),
            "cannot unmount the slow disk {}: {done:?}",
            self.device
        );
    }
}

/// A file system on a disk that carries only so many bytes a second, of all programs together: a loop device whose file a server of
/// network block devices serves through FUSE.
#[derive(Debug)]
pub(super) struct LimitedDisk {
    folder: TempDir,
    _server: Service,
}

impl LimitedDisk {
    pub(super) fn new(megabytes_per_s: u32) -> Result<Self> {
        let folder = tempfile::tempdir()?;
        let served = folder.path().join("served");
        std::fs::create_dir(&served)?;
        let file = served.join("disk");
        let rate = format!("rate={}", 8_000_000 * megabytes_per_s);
        let text = file.display().to_string();
        let argv = [
            "nbdfuse",
            &text,
            "[",
            "nbdkit",
            "--filter=rate",
            "memory",
            "64M",
            &rate,
            "burstiness=0.05",
            "]",
        ];
        let server = start(argv.map(str::to_owned).to_vec(), None)?;
        let until = clock::now() + STARTS_WITHIN;
        while !file.exists() {
            if clock::now() > until {
                return Err("nbdfuse does not serve the limited disk".into());
            }
            std::thread::sleep(Duration::from_millis(20));
        }
        let limited = Self {
            folder,
            _server: server,
        };
        let script = "mkdir at
            mkfs.ext4 -q -F -E lazy_itable_init=0,lazy_journal_init=0,nodiscard served/disk && mount -o loop,nodiscard served/disk at";
        let done = in_folder(script, limited.folder.path())?;
        if !done.status.success() {
            return Err(format!("limited disk: {}", String::from_utf8_lossy(&done.stderr)).into());
        }
        Ok(limited)
    }

    /// Where it is mounted.
    pub(super) fn folder(&self) -> PathBuf {
        self.folder.path().join("at")
    }
}

impl Drop for LimitedDisk {
    fn drop(&mut self) {
        // The namespaces of the fault have copies of the mounts.
        let script =
            "for point in at served; do umount $point 2>/dev/null || umount --lazy $point; done
            ! mountpoint -q at && ! mountpoint -q served";
        let done = in_folder(script, self.folder.path());
        let gone = done.as_ref().is_ok_and(|done| done.status.success());
        assert!(
            gone || std::thread::panicking(),
            "cannot unmount the limited disk: {done:?}"
        );
    }
}
