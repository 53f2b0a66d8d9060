//! Lab namespaces without a name on disk: they live in a thread and die with it.
//!
//! A network namespace exists as long as a task or a descriptor holds it. A thread of ours does,
//! and nothing is bound below `/run/netns`; so however this process ends, SIGKILL included, the
//! kernel takes the namespace, its devices, its sysctls and its rules with it.
//!
//! The thread has a mount namespace of its own as well, with a fresh sysfs on `/sys`: sysfs shows
//! the network namespace of whoever mounted it. The host's cgroup tree stays visible below it,
//! because services (the JVM foremost) read their limits there. Sources: namespaces(7), sysfs(5).
#![expect(
    unsafe_code,
    reason = "unshare, setns and mount have no safe door in std"
)]

use std::ffi::CStr;
use std::fs::File;
use std::io;
use std::os::fd::{AsFd, AsRawFd as _, BorrowedFd};
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::mpsc::{Sender, channel};
use std::thread::JoinHandle;

use crate::error::{Error, Result};
use crate::live::Live;
use crate::{BaseChain, Feature, Host, link};

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
        let (jobs, queue) = channel::<Job>();
        let (born, birth) = channel();
        let name = format!("ns-{label}");
        let thread = std::thread::Builder::new()
            .name(name.chars().take(15).collect())
            .spawn(move || {
                let entered = enter();
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
}

/// setns(2) for the calling thread.
pub(crate) fn setns(namespace: BorrowedFd<'_>, kind: libc::c_int) -> io::Result<()> {
    // SAFETY: the descriptor is open for as long as it is borrowed; no memory is involved.
    checked(unsafe { libc::setns(namespace.as_raw_fd(), kind) })
}

/// Puts the calling thread into new namespaces and furnishes them.
fn enter() -> std::result::Result<Handles, (&'static str, io::Error)> {
    // SAFETY: affects the calling thread only (CLONE_NEWNS implies CLONE_FS); no memory is involved.
    checked(unsafe { libc::unshare(libc::CLONE_NEWNET | libc::CLONE_NEWNS) })
        .map_err(|error| ("create", error))?;
    // Private first: nothing mounted below may travel back to the host.
    mount(None, c"/", None, libc::MS_REC | libc::MS_PRIVATE)
        .map_err(|error| ("keep to itself the mounts of", error))?;
    // Opened before the new sysfs hides it.
    let cgroup = File::open("/sys/fs/cgroup");
    let flags = libc::MS_NOSUID | libc::MS_NODEV | libc::MS_NOEXEC;
    mount(Some(c"rungwise"), c"/sys", Some(c"sysfs"), flags)
        .map_err(|error| ("mount sysfs in", error))?;
    if let Ok(cgroup) = cgroup
        && let Ok(source) =
            std::ffi::CString::new(format!("/proc/thread-self/fd/{}", cgroup.as_raw_fd()))
    {
        // For the services' sake; where it fails they see no limits, as below `ip netns exec`.
        let _ = mount(
            Some(&source),
            c"/sys/fs/cgroup",
            None,
            libc::MS_BIND | libc::MS_REC,
        );
    }
    link::set_up("lo").map_err(|error| ("bring up lo in", error))?;
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
