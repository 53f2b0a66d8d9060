//! Lab namespaces without a name on disk: they live in a thread and die with it.
//!
//! A network namespace exists as long as a task or a descriptor holds it. A thread of ours does,
//! and nothing is bound below `/run/netns`; so however this process ends, SIGKILL included, the
//! kernel takes the namespace, its devices, its sysctls and its rules with it.
//!
//! The thread has a mount namespace of its own as well, with a fresh sysfs on `/sys`: sysfs shows the network namespace
//! of the process that mounted it. The host's cgroup tree stays visible below it, because services (the JVM foremost)
//! read their limits there. Sources: namespaces(7), sysfs(5).
#![expect(
    unsafe_code,
    reason = "unshare, setns and mount have no safe wrapper in std"
)]

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::CStr;
use std::fs::File;
use std::io;
use std::os::fd::{AsFd, AsRawFd as _, BorrowedFd, OwnedFd};
use std::os::unix::fs::MetadataExt as _;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::mpsc::{Sender, channel};
use std::thread::JoinHandle;
use std::time::Duration;

use rungwise_model::kernel::{Answer, Owner, Question, TcpSocket};
use rungwise_model::service::ServicePort;

use crate::error::{Error, Result};
use crate::live::Live;
use crate::{BaseChain, DeviceSetting, Feature, Host, files, link, privilege, process};

type Job = Box<dyn FnOnce() + Send>;

/// One network and mount namespace with its thread. Dropping it ends both.
#[derive(Debug)]
pub struct Namespace {
    label: String,
    handles: Handles,
    /// `None` only while dropping: closing the channel ends the thread.
    jobs: Option<Sender<Job>>,
    thread: Option<JoinHandle<()>>,
}

#[derive(Clone, Debug)]
struct Handles {
    net: Arc<File>,
    mount: Arc<File>,
}

impl Namespace {
    /// Makes a namespace in which `lo` is up and `/sys` shows its own devices.
    ///
    /// Needs `CAP_SYS_ADMIN` in the current user namespace: be root, or call
    /// [`crate::privilege::enter_user_namespace`] first.
    pub fn create(label: &str) -> Result<Self> {
        Self::begin(label, None)
    }

    /// Joins the network namespace that `link` stands for (`/proc/PID/ns/net`), with a `/sys` that shows its devices. Nothing
    /// in it is changed: only the thread that looks has another mount of sysfs.
    ///
    /// Needs `CAP_SYS_ADMIN` here and over the namespace.
    pub fn join(label: &str, link: &Path) -> Result<Self> {
        let net = File::open(link).map_err(Error::file("open", link))?;
        Self::begin(label, Some(net))
    }

    fn begin(label: &str, join: Option<File>) -> Result<Self> {
        let (jobs, queue) = channel::<Job>();
        let (born, birth) = channel();
        let name = format!("ns-{label}");
        let thread = std::thread::Builder::new()
            .name(name.chars().take(15).collect())
            .spawn(move || {
                let entered = enter(join.as_ref());
                let failed = entered.is_err();
                if born.send(entered).is_err() || failed {
                    return;
                }
                for job in queue {
                    job();
                }
            })
            .map_err(Error::system(format!(
                "start the thread of namespace {label}"
            )))?;
        let handles = birth.recv().unwrap_or_else(|_| {
            Err((
                "start",
                io::Error::other("its thread ended before it answered"),
            ))
        });
        let handles = handles.map_err(|(step, source)| match source.kind() {
            io::ErrorKind::PermissionDenied => Error::Missing {
                tried: format!("{step} namespace {label}"),
                why: source.to_string(),
                remedy: "run as root, or allow unprivileged user namespaces".to_owned(),
            },
            _ => Error::System {
                tried: format!("{step} namespace {label}"),
                source,
            },
        })?;
        Ok(Self {
            label: format!("namespace {label}"),
            handles,
            jobs: Some(jobs),
            thread: Some(thread),
        })
    }

    /// Runs `work` on the namespace's thread and hands back what it returns. A panic in `work`
    /// continues in the caller. Calls are served one after the other.
    ///
    /// Sockets opened in `work` belong to this namespace wherever they are used later.
    pub fn run<R: Send + 'static>(&self, work: impl FnOnce() -> R + Send + 'static) -> R {
        if self
            .thread
            .as_ref()
            .is_some_and(|thread| thread.thread().id() == std::thread::current().id())
        {
            return work();
        }
        let (done, result) = channel();
        let job: Job = Box::new(move || {
            // The caller's state is moved in or behind its own locks, and the panic goes on there.
            let outcome = catch_unwind(AssertUnwindSafe(work));
            let _ = done.send(outcome);
        });
        let sent = self.jobs.as_ref().map(|jobs| jobs.send(job));
        assert!(
            matches!(sent, Some(Ok(()))),
            "the thread of {} serves until it is dropped",
            self.label
        );
        match result.recv().expect("every job sends one result") {
            Ok(value) => value,
            Err(panic) => resume_unwind(panic),
        }
    }

    /// The network namespace, for setns(2) or to place a device.
    pub fn netns_fd(&self) -> BorrowedFd<'_> {
        self.handles.net.as_fd()
    }

    /// The mount namespace whose `/sys` shows this network namespace.
    pub fn mount_fd(&self) -> BorrowedFd<'_> {
        self.handles.mount.as_fd()
    }

    /// Processes that live in the network namespace now, from whatever parent. Threads of this process that entered it
    /// do not count: a process lives where its first thread does. The function keeps the namespace, not its thread,
    /// alive.
    pub fn processes_fn(&self) -> impl Fn() -> io::Result<Vec<u32>> + Send + Sync + 'static {
        let net = Arc::clone(&self.handles.net);
        move || living_in(&net)
    }

    /// Moves the calling thread into the network namespace, for threads that open sockets in it
    /// (the load generator's). Not the mount namespace: such a thread reads the host's `/sys`.
    /// The returned function keeps the network namespace, not its thread, alive.
    pub fn enter_fn(&self) -> impl Fn() -> io::Result<()> + Send + Sync + Clone + 'static {
        let net = Arc::clone(&self.handles.net);
        move || setns(net.as_fd(), libc::CLONE_NEWNET)
    }
}

impl Drop for Namespace {
    fn drop(&mut self) {
        self.jobs = None;
        if let Some(thread) = self.thread.take()
            && thread.thread().id() != std::thread::current().id()
        {
            // A job cannot panic the thread; there is nothing to learn from the result.
            let _ = thread.join();
        }
    }
}

impl Host for Namespace {
    fn name(&self) -> &str {
        &self.label
    }

    fn netns(&self) -> io::Result<u64> {
        self.run(|| Live.netns())
    }

    fn read(&self, path: &Path) -> io::Result<Vec<u8>> {
        let path = path.to_owned();
        self.run(move || Live.read(&path))
    }

    fn write(&self, path: &Path, value: &[u8]) -> io::Result<()> {
        let (path, value) = (path.to_owned(), value.to_owned());
        self.run(move || Live.write(&path, &value))
    }

    fn list(&self, dir: &Path) -> io::Result<Vec<String>> {
        let dir = dir.to_owned();
        self.run(move || Live.list(&dir))
    }

    fn mounts_of(&self, processes: &[u32]) -> io::Result<Answer> {
        let processes = processes.to_owned();
        self.run(move || Live.mounts_of(&processes))
    }

    fn folders(&self, dir: &Path) -> io::Result<Vec<String>> {
        let dir = dir.to_owned();
        self.run(move || Live.folders(&dir))
    }

    fn feature(&self, device: &str, feature: &str) -> io::Result<Feature> {
        let (device, feature) = (device.to_owned(), feature.to_owned());
        self.run(move || Live.feature(&device, &feature))
    }

    fn set_feature(&self, device: &str, feature: &str, on: bool) -> io::Result<()> {
        let (device, feature) = (device.to_owned(), feature.to_owned());
        self.run(move || Live.set_feature(&device, &feature, on))
    }

    fn base_chains(&self) -> io::Result<Vec<BaseChain>> {
        self.run(|| Live.base_chains())
    }

    fn plant_chains(&self, name: &str) -> io::Result<()> {
        let name = name.to_owned();
        self.run(move || Live.plant_chains(&name))
    }

    fn remove_table(&self, name: &str) -> io::Result<()> {
        let name = name.to_owned();
        self.run(move || Live.remove_table(&name))
    }

    fn ask(&self, question: Question) -> io::Result<Answer> {
        self.run(move || Live.ask(question))
    }

    fn tcp_among(&self, wanted: &[TcpSocket]) -> io::Result<Vec<TcpSocket>> {
        let wanted = wanted.to_vec();
        self.run(move || Live.tcp_among(&wanted))
    }

    fn tcp_in_use(&self) -> io::Result<Vec<TcpSocket>> {
        self.run(|| Live.tcp_in_use())
    }

    fn tcp_of(&self, services: &[ServicePort]) -> io::Result<Vec<TcpSocket>> {
        let services = services.to_owned();
        self.run(move || Live.tcp_of(&services))
    }

    fn other_networks(&self) -> io::Result<BTreeMap<u64, PathBuf>> {
        self.run(|| Live.other_networks())
    }

    fn tcp_in(&self, network: &Path, services: &[ServicePort]) -> io::Result<Vec<TcpSocket>> {
        // The thread that reads enters the other network itself.
        Live.tcp_in(network, services)
    }

    fn owners_of(&self, sockets: &BTreeSet<u64>) -> io::Result<BTreeMap<u64, Owner>> {
        let sockets = sockets.clone();
        self.run(move || Live.owners_of(&sockets))
    }

    fn device_setting(&self, device: &str, setting: DeviceSetting) -> io::Result<String> {
        let device = device.to_owned();
        self.run(move || Live.device_setting(&device, setting))
    }

    fn set_device(&self, device: &str, setting: DeviceSetting, value: &str) -> io::Result<()> {
        let (device, value) = (device.to_owned(), value.to_owned());
        self.run(move || Live.set_device(&device, setting, &value))
    }
}

/// A lab's network namespace as its guard holds it: to end what lives there when the lab's own process
/// can no longer do it. What the kernel was asked to kill with that process may have escaped: children of
/// a service, and services that changed their user.
#[derive(Debug)]
pub struct Pinned(File);

impl Pinned {
    /// Takes hold of the namespace of a lab by a link to it, such as `/proc/PID/fd/N`.
    pub fn open(path: &Path) -> Result<Self> {
        let pinned = Self(File::open(path).map_err(Error::file("open", path))?);
        let id = pinned.id().map_err(Error::file("identify", path))?;
        // A mistake here would kill every process of the machine.
        let not_a_lab = ["self", "1"].iter().any(|whose| {
            std::fs::metadata(format!("/proc/{whose}/ns/net"))
                .is_ok_and(|net| (net.dev(), net.ino()) == id)
        });
        if not_a_lab {
            return Err(Error::Missing {
                tried: format!("guard {}", path.display()),
                why: "it is the network namespace of this host".to_owned(),
                remedy: "name the namespace of a lab".to_owned(),
            });
        }
        Ok(pinned)
    }

    /// Kills the processes in it, and waits until there are none.
    pub fn end(&self, within: Duration) -> Result<()> {
        process::end_all(|| self.inhabitants(), within)
            .map_err(Error::system("end the processes in the lab's namespace"))
    }

    /// Processes that live in it. The descriptor is taken first: if the number is used again in between,
    /// it still stands for the process that is gone.
    fn inhabitants(&self) -> io::Result<Vec<OwnedFd>> {
        let id = self.id()?;
        let living = |pid: u32| {
            let pidfd = process::pidfd(pid).ok()?;
            lives_in(pid, id).then_some(pidfd)
        };
        Ok(pids()?.filter_map(living).collect())
    }

    fn id(&self) -> io::Result<(u64, u64)> {
        id_of(&self.0)
    }
}

/// The namespace that an open link stands for.
fn id_of(net: &File) -> io::Result<(u64, u64)> {
    let net = net.metadata()?;
    Ok((net.dev(), net.ino()))
}

/// A process that has ended, or may not be inspected, lives nowhere.
fn lives_in(pid: u32, id: (u64, u64)) -> bool {
    std::fs::metadata(format!("/proc/{pid}/ns/net")).is_ok_and(|net| (net.dev(), net.ino()) == id)
}

/// What a thread reads that enters the network namespace of `link` for this alone.
pub(crate) fn read_in<T: Send + 'static>(
    link: &Path,
    read: impl FnOnce() -> T + Send + 'static,
) -> io::Result<T> {
    let net = File::open(link)?;
    let reader = std::thread::Builder::new().spawn(move || {
        setns(net.as_fd(), libc::CLONE_NEWNET)?;
        Ok(read())
    })?;
    reader.join().unwrap_or_else(|panic| resume_unwind(panic))
}

fn living_in(net: &File) -> io::Result<Vec<u32>> {
    let id = id_of(net)?;
    Ok(pids()?.filter(|pid| lives_in(*pid, id)).collect())
}

fn pids() -> io::Result<impl Iterator<Item = u32>> {
    let names = files::list(Path::new("/proc"))?;
    Ok(names.into_iter().filter_map(|name| name.parse().ok()))
}

/// Whether the network namespace with this inode may still exist: a process or a name holds it, or not
/// all of them can be seen from here. One that only a descriptor holds is missed; it has no traffic of
/// its own, and ends with its holder.
pub fn may_exist(inode: u64) -> bool {
    let inode_of = |path: String| std::fs::metadata(path).map(|net| net.ino());
    // In a container, or without the right to inspect others, absence proves nothing.
    if !privilege::in_initial_pid_namespace() || inode_of("/proc/1/ns/net".to_owned()).is_err() {
        return true;
    }
    let held = |dir: &str, path: &dyn Fn(&str) -> String| {
        let names = files::list(Path::new(dir)).unwrap_or_default();
        names
            .iter()
            .any(|name| inode_of(path(name)).is_ok_and(|found| found == inode))
    };
    held("/proc", &|pid| format!("/proc/{pid}/ns/net"))
        || held("/run/netns", &|name| format!("/run/netns/{name}"))
}

/// Identity of the network namespace of a process (its inode); an error where this program may not inspect it.
pub fn of_process(pid: u32) -> io::Result<u64> {
    Ok(std::fs::metadata(format!("/proc/{pid}/ns/net"))?.ino())
}

/// Whether `/sys` shows the devices of another network namespace than the calling thread's: below `unshare --net` or
/// `nsenter --net` alone it still shows those of the process that mounted it. Where `/sys` is not mounted it shows
/// none.
pub fn sys_is_foreign() -> bool {
    // A device may come or go between the two lists.
    differs() && differs()
}

fn differs() -> bool {
    let (Ok(names), Ok(links)) = (files::list(Path::new("/sys/class/net")), link::list()) else {
        return false;
    };
    let shown: BTreeSet<(String, u32)> = names
        .into_iter()
        .filter_map(|name| {
            let index = std::fs::read_to_string(format!("/sys/class/net/{name}/ifindex")).ok()?;
            Some((name, index.trim().parse().ok()?))
        })
        .collect();
    let there = links.into_iter().map(|link| (link.name, link.index));
    shown != there.collect()
}

/// setns(2) for the calling thread.
pub(crate) fn setns(namespace: BorrowedFd<'_>, kind: libc::c_int) -> io::Result<()> {
    // SAFETY: the descriptor is open for as long as it is borrowed; no memory is involved.
    checked(unsafe { libc::setns(namespace.as_raw_fd(), kind) })
}

/// Puts the calling thread into a new mount namespace and a new network namespace, or the one to `join`, and furnishes them.
fn enter(join: Option<&File>) -> std::result::Result<Handles, (&'static str, io::Error)> {
    let new = match join {
        None => libc::CLONE_NEWNET | libc::CLONE_NEWNS,
        Some(_) => libc::CLONE_NEWNS,
    };
    // SAFETY: affects the calling thread only (CLONE_NEWNS implies CLONE_FS); no memory is involved.
    checked(unsafe { libc::unshare(new) }).map_err(|error| ("create", error))?;
    if let Some(net) = join {
        setns(net.as_fd(), libc::CLONE_NEWNET).map_err(|error| ("join", error))?;
    }
    // Private first: nothing mounted below may travel back to the host.
    mount(None, c"/", None, libc::MS_REC | libc::MS_PRIVATE)
        .map_err(|error| ("make private the mounts of", error))?;
    // Opened before the new sysfs hides them: other file systems that are mounted on it.
    let hidden = [c"/sys/fs/cgroup", c"/sys/fs/selinux"].map(|path| {
        let file = File::open(path.to_str().unwrap_or_default());
        (path, file)
    });
    let flags = libc::MS_NOSUID | libc::MS_NODEV | libc::MS_NOEXEC;
    mount(Some(c"rungwise"), c"/sys", Some(c"sysfs"), flags)
        .map_err(|error| ("mount sysfs in", error))?;
    for (path, file) in hidden {
        if let Ok(file) = file
            && let Ok(source) =
                std::ffi::CString::new(format!("/proc/thread-self/fd/{}", file.as_raw_fd()))
        {
            // For the services' sake; where it fails they see no limits, as below `ip netns exec`.
            let _ = mount(Some(&source), path, None, libc::MS_BIND | libc::MS_REC);
        }
    }
    if join.is_none() {
        link::set_up("lo").map_err(|error| ("bring up lo in", error))?;
    }
    let open = |kind: &str| {
        File::open(PathBuf::from("/proc/thread-self/ns").join(kind))
            .map(Arc::new)
            .map_err(|error| ("open", error))
    };
    Ok(Handles {
        net: open("net")?,
        mount: open("mnt")?,
    })
}

fn mount(
    source: Option<&CStr>,
    target: &CStr,
    kind: Option<&CStr>,
    flags: libc::c_ulong,
) -> io::Result<()> {
    let pointer = |text: Option<&CStr>| text.map_or(std::ptr::null(), CStr::as_ptr);
    // SAFETY: all three are zero-terminated or null where mount(2) allows null; no data argument.
    checked(unsafe {
        libc::mount(
            pointer(source),
            target.as_ptr(),
            pointer(kind),
            flags,
            std::ptr::null(),
        )
    })
}

fn checked(result: libc::c_int) -> io::Result<()> {
    if result == 0 {
        Ok(())
    } else {
        Err(io::Error::last_os_error())
    }
}
