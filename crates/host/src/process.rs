//! A service as a child process: started in a namespace, watched, measured, ended without leftovers.
//!
//! The child enters the namespaces between fork and exec, leads a process group of its own, and is killed by the kernel
//! when the thread that started it ends (`PR_SET_PDEATHSIG` watches the *thread*: start a service from one that lives
//! as long as the service is wanted). A pidfd identifies the process everywhere, so a reused pid is never mistaken for
//! it.
//!
//! The kernel's signal reaches the direct child only, and is forgotten when that child changes its user (`commit_creds`
//! in kernel/cred.c), as servers that start as root do. Every orderly end kills the group; after SIGKILL of this
//! process the guard does ([`Group`]), and in a lab it ends whatever lives in the namespace
//! ([`crate::namespace::Pinned`]). Limit: outside a lab, a process that leaves the group (a daemon with a session of
//! its own) outlives a killed tool.
#![expect(
    unsafe_code,
    reason = "pre_exec, kill and pidfd_open have no safe wrapper in std"
)]

use std::collections::{BTreeSet, VecDeque};
use std::io::{self, BufRead as _, BufReader, Read};
use std::os::fd::{AsFd as _, BorrowedFd, FromRawFd as _, OwnedFd};
use std::os::unix::process::{CommandExt as _, ExitStatusExt as _};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use crate::error::{Error, NotReady, Result};
use crate::namespace::{Namespace, setns};
use crate::{clock, wait};

mod command_line;
mod kin;
mod listening;
mod ready;
mod unit;

pub(crate) use kin::end_all;
pub use kin::{Group, family};
pub use ready::{Ready, Url};
pub use unit::{main_of_unit, members_of_unit};

/// How a service is started.
#[derive(Clone, Debug, Default)]
pub struct Launch<'a> {
    /// Program and arguments; no shell.
    pub argv: Vec<String>,
    /// Where its sockets and devices are; without, in the namespaces of the calling thread.
    pub namespace: Option<&'a Namespace>,
    /// Variables added to the environment of this process.
    pub env: Vec<(String, String)>,
    /// Working directory, if not this process's.
    pub directory: Option<PathBuf>,
    /// Bytes of standard output that are kept for [`Service::printed`], beside the last lines.
    pub keep: usize,
}

/// Between two probes of readiness.
const PROBE_EVERY: Duration = Duration::from_millis(50);
/// Between the last output of an ending process and its end; a scheduling delay, no more.
const GRACE: Duration = Duration::from_millis(200);
/// Output kept of a service, per stream.
const TAIL_LINES: usize = 400;
/// A longer line is cut, so that a service cannot fill our memory.
const LINE_BYTES: u64 = 4096;
/// Lines of output that go into an error message.
const QUOTED_LINES: usize = 12;

/// A child process. Dropping it kills its group and reaps it.
#[derive(Debug)]
pub struct Service {
    program: String,
    command: String,
    child: Child,
    pidfd: OwnedFd,
    output: Arc<Output>,
    namespace: Option<Entry>,
    ended: Option<ExitStatus>,
}

/// Outcome of a wait for readiness.
enum Sign {
    /// It came, as this line.
    Line(String),
    /// It came.
    Seen,
    /// It did not come; what the last probe gave instead.
    Missed(Option<String>),
}

/// Descriptors of the namespaces that the child enters.
#[derive(Debug)]
struct Entry {
    net: OwnedFd,
    mount: OwnedFd,
}

impl Service {
    /// Starts a process; it has been executed when this returns.
    pub fn start(launch: &Launch<'_>) -> Result<Self> {
        let Some((program, arguments)) = launch.argv.split_first() else {
            return Err(Error::Missing {
                tried: "start a service".to_owned(),
                why: "its command line is empty".to_owned(),
                remedy: "name a program".to_owned(),
            });
        };
        let tried = || format!("start {program}");
        let entry = |namespace: &Namespace| -> io::Result<Entry> {
            Ok(Entry {
                net: namespace.netns_fd().try_clone_to_owned()?,
                mount: namespace.mount_fd().try_clone_to_owned()?,
            })
        };
        let namespace = launch
            .namespace
            .map(entry)
            .transpose()
            .map_err(Error::system(tried()))?;
        let mut command = Command::new(program);
        command
            .args(arguments)
            .envs(launch.env.iter().map(|(name, value)| (name, value)))
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .process_group(0);
        // setns(2) to a mount namespace moves the working directory to its root; this puts it back.
        let directory = match &launch.directory {
            Some(directory) if !directory.is_dir() => {
                return Err(Error::Missing {
                    tried: format!("{} in {}", tried(), directory.display()),
                    why: "there is no such folder".to_owned(),
                    remedy: "correct its working directory".to_owned(),
                });
            }
            Some(directory) => directory.clone(),
            None => std::env::current_dir().map_err(Error::system(tried()))?,
        };
        let directory = std::ffi::CString::new(directory.into_os_string().into_encoded_bytes())
            .map_err(|error| {
                Error::system(tried())(io::Error::new(io::ErrorKind::InvalidInput, error))
            })?;
        let inside = launch
            .namespace
            .map(entry)
            .transpose()
            .map_err(Error::system(tried()))?;
        let parent = std::process::id();
        let enter = move || {
            if let Some(entry) = &inside {
                setns(entry.net.as_fd(), libc::CLONE_NEWNET)?;
                setns(entry.mount.as_fd(), libc::CLONE_NEWNS)?;
            }
            // SAFETY: chdir gets a terminated string; prctl and getppid touch no memory.
            unsafe {
                if libc::chdir(directory.as_ptr()) != 0
                    || libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL) != 0
                {
                    return Err(io::Error::last_os_error());
                }
                // The parent may have died before the line above; then the signal never comes.
                if libc::getppid().cast_unsigned() != parent {
                    return Err(io::Error::from_raw_os_error(libc::ESRCH));
                }
            }
            Ok(())
        };
        // SAFETY: `enter` makes system calls on values prepared before the fork; it does not
        // allocate (raw errno values only), lock or touch other threads' state.
        unsafe { command.pre_exec(enter) };
        let mut child = command.spawn().map_err(|source| {
            match source.raw_os_error() {
                // EACCES is also the answer when a folder of PATH may not be searched.
                Some(libc::ENOENT | libc::EACCES) => no_program(program),
                Some(libc::EPERM) => Error::Missing {
                    tried: tried(),
                    why: "its namespace may not be entered".to_owned(),
                    remedy: "run as root, or allow unprivileged user namespaces".to_owned(),
                },
                _ => Error::System {
                    tried: tried(),
                    source,
                },
            }
        })?;
        let output = Arc::new(Output::keeping(launch.keep));
        let pid = child.id();
        let watched = pidfd(pid).and_then(|pidfd| {
            drain(child.stdout.take(), Stream::Stdout, &output)?;
            drain(child.stderr.take(), Stream::Stderr, &output)?;
            Ok(pidfd)
        });
        match watched {
            Ok(pidfd) => Ok(Self {
                program: format!("{program} (pid {pid})"),
                command: command_line::shown(&launch.argv),
                child,
                pidfd,
                output,
                namespace,
                ended: None,
            }),
            Err(error) => {
                kill_group(pid, libc::SIGKILL);
                let _ = child.wait();
                Err(Error::system(format!("watch {program}"))(error))
            }
        }
    }

    /// Process id, which is the id of its group too.
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Waits for a sign of readiness. For a line sign, gives back the line.
    pub fn wait_ready(&self, ready: &Ready, within: Duration) -> Result<Option<String>> {
        let deadline = Instant::now() + within;
        let sign = match ready {
            Ready::Line(prefix) => self.wait_line(deadline, |stream, line| {
                stream == Stream::Stdout && line.starts_with(prefix)
            }),
            Ready::Log(text) => self.wait_line(deadline, |_, line| line.contains(text)),
            Ready::Udp { .. } | Ready::Tcp(_) | Ready::Unix(_) | Ready::Http(_) => {
                self.probe(deadline, |left| self.inside(|| ready.attempt(left)))
            }
            Ready::Alive(time) => {
                // A process that ends within the time ends the wait.
                self.ended_within(*time)?;
                Ok(Sign::Seen)
            }
        };
        let sign = sign.map_err(Error::system(format!(
            "see whether {} is ready",
            self.program
        )))?;
        if !self.alive() {
            return Err(self.died());
        }
        match sign {
            Sign::Line(line) => Ok(Some(line)),
            Sign::Seen => Ok(None),
            Sign::Missed(last) => {
                let listening = self.inside(|| self.listening());
                Err(Error::NotReady(Box::new(NotReady {
                    program: self.program.clone(),
                    within_s: within.as_secs_f64(),
                    awaited: ready.awaited(last.as_deref()),
                    command: self.command.clone(),
                    listens: listening::in_words(&listening),
                    remedy: ready.remedy(&listening.unwrap_or_default()),
                    stderr: self.last_words(),
                })))
            }
        }
    }

    /// Whether it still runs (a zombie does not).
    pub fn alive(&self) -> bool {
        self.ended.is_none() && running(self.pidfd.as_fd())
    }

    /// How it ended, with its last output; absent while it runs.
    pub fn ended(&self) -> Option<Error> {
        (!self.alive()).then(|| self.died())
    }

    /// CPU time of all its threads, ended ones included; not of its children.
    pub fn cpu_time(&self) -> Result<Duration> {
        if !self.alive() {
            return Err(self.died());
        }
        clock::process_cpu(self.pid()).map_err(Error::system(format!(
            "read the CPU time of {}",
            self.program
        )))
    }

    /// The last lines of standard error, or of standard output if that is empty.
    pub fn last_words(&self) -> String {
        let output = self.output.lock();
        let of = |wanted| {
            let lines: Vec<_> = output
                .lines
                .iter()
                .filter(|(stream, _)| *stream == wanted)
                .collect();
            let kept = &lines[lines.len().saturating_sub(QUOTED_LINES)..];
            kept.iter()
                .map(|(_, line)| line.as_str())
                .collect::<Vec<_>>()
                .join("\n")
        };
        let stderr = of(Stream::Stderr);
        if stderr.is_empty() {
            of(Stream::Stdout)
        } else {
            stderr
        }
    }

    /// The last lines of both streams, in the order in which they came.
    pub fn last_lines(&self, most: usize) -> Vec<String> {
        if !self.alive() {
            self.output.wait_closed(GRACE);
        }
        let output = self.output.lock();
        let lines = output.lines.iter().map(|(_, line)| line.clone());
        lines
            .skip(output.lines.len().saturating_sub(most))
            .collect()
    }

    /// What it has printed on standard output, as much as [`Launch::keep`] allows, and whether there was more.
    pub fn printed(&self) -> (Vec<u8>, bool) {
        // The last bytes of one that has ended may still be on their way.
        if !self.alive() {
            self.output.wait_closed(GRACE);
        }
        let output = self.output.lock();
        (output.kept.clone(), output.is_cut)
    }

    /// Whether it ended by itself within the time. It stays as it is, its CPU time too, until it is stopped or dropped.
    pub fn wait_end(&self, within: Duration) -> Result<bool> {
        self.ended_within(within)
    }

    /// SIGTERM to the group, a bounded wait, SIGKILL to what is left, reaped. How the leader ended.
    pub fn stop(&mut self, within: Duration) -> Result<ExitStatus> {
        if let Some(status) = self.ended {
            return Ok(status);
        }
        kill_group(self.pid(), libc::SIGTERM);
        let _ = self.ended_within(within)?;
        self.finish()
            .map_err(Error::system(format!("stop {}", self.program)))
    }

    /// Sends a signal to the process alone.
    pub fn signal(&self, signal: i32) -> Result<()> {
        signal_process(self.pidfd.as_fd(), signal)
            .map_err(Error::system(format!("signal {}", self.program)))
    }

    /// Kills the group while the unreaped leader still keeps its number from being used again.
    fn finish(&mut self) -> io::Result<ExitStatus> {
        kill_group(self.pid(), libc::SIGKILL);
        let status = self.child.wait()?;
        self.ended = Some(status);
        Ok(status)
    }

    /// How it ended, with its last output. For a process that is no longer alive.
    fn died(&self) -> Error {
        // The last lines may still be on their way through the pipes.
        self.output.wait_closed(GRACE);
        Error::Died {
            program: self.program.clone(),
            how: self
                .ended
                .map_or_else(|| exit_of(self.pid()), describe_exit),
            stderr: self.last_words(),
        }
    }

    fn ended_within(&self, time: Duration) -> Result<bool> {
        wait::readable(self.pidfd.as_fd(), time)
            .map_err(Error::system(format!("wait for {}", self.program)))
    }

    /// Missed at the deadline or when the process ended.
    fn wait_line(
        &self,
        deadline: Instant,
        wanted: impl Fn(Stream, &str) -> bool,
    ) -> io::Result<Sign> {
        let mut output = self.output.lock();
        let mut seen = 0;
        loop {
            let first = output.count - output.lines.len();
            let found = output
                .lines
                .iter()
                .skip(seen.max(first) - first)
                .find(|(stream, line)| wanted(*stream, line));
            if let Some((_, line)) = found {
                return Ok(Sign::Line(line.clone()));
            }
            seen = output.count;
            let left = deadline.saturating_duration_since(Instant::now());
            if output.closed == 2 {
                // An ending process closes its files a moment before its end can be seen.
                drop(output);
                wait::readable(self.pidfd.as_fd(), GRACE)?;
                return Ok(Sign::Missed(None));
            }
            if left.is_zero() {
                return Ok(Sign::Missed(None));
            }
            // Woken by each line; by the clock to see an end that left the pipes open.
            output = self
                .output
                .changed
                .wait_timeout(output, left.min(PROBE_EVERY))
                .unwrap_or_else(PoisonError::into_inner)
                .0;
            if output.count == seen && !self.alive() {
                return Ok(Sign::Missed(None));
            }
        }
    }

    /// `attempt` gets the time that is left, and gives nothing where the service is ready, else what came instead.
    fn probe(
        &self,
        deadline: Instant,
        attempt: impl Fn(Duration) -> io::Result<Option<String>>,
    ) -> io::Result<Sign> {
        loop {
            let now = Instant::now();
            let Some(missed) = attempt(deadline.saturating_duration_since(now))? else {
                return Ok(Sign::Seen);
            };
            if Instant::now() >= deadline {
                return Ok(Sign::Missed(Some(missed)));
            }
            // Not a sleep: the end of the process ends it.
            let next = now + PROBE_EVERY;
            if wait::readable(
                self.pidfd.as_fd(),
                next.saturating_duration_since(Instant::now()),
            )? {
                return Ok(Sign::Missed(None));
            }
        }
    }

    /// The sockets that it has open and takes work by. In its own namespace all are the service's, even those of
    /// processes that left its group.
    fn listening(&self) -> io::Result<Vec<listening::Listening>> {
        if self.namespace.is_some() {
            return listening::find(|_| true);
        }
        let members = family(self.pid())?;
        listening::find(|pid| members.contains(&pid))
    }

    /// Runs a probe in the service's network namespace, on its own thread.
    fn inside<R: Send>(&self, probe: impl FnOnce() -> io::Result<R> + Send) -> io::Result<R> {
        let Some(entry) = &self.namespace else {
            return probe();
        };
        std::thread::scope(|scope| {
            let run = || {
                setns(entry.net.as_fd(), libc::CLONE_NEWNET)?;
                probe()
            };
            let thread = std::thread::Builder::new().name("ready-probe".to_owned());
            match thread.spawn_scoped(scope, run)?.join() {
                Ok(result) => result,
                Err(panic) => std::panic::resume_unwind(panic),
            }
        })
    }
}

impl Drop for Service {
    fn drop(&mut self) {
        if self.ended.is_none() {
            // There is no caller to report to; a killed child can always be reaped.
            let _ = self.finish();
        }
    }
}

/// A process that already runs and is not ours to start or stop.
#[derive(Debug)]
pub struct Attached {
    pid: u32,
    pidfd: OwnedFd,
}

impl Attached {
    /// Opens a process by its id.
    pub fn attach(pid: u32) -> Result<Self> {
        let pidfd = pidfd(pid).map_err(|source| Error::Missing {
            tried: format!("watch process {pid}"),
            why: source.to_string(),
            remedy: "give the pid of a running process".to_owned(),
        })?;
        Ok(Self { pid, pidfd })
    }

    /// Its id.
    pub fn pid(&self) -> u32 {
        self.pid
    }

    /// Whether this very process still runs; a new one under its id does not count.
    pub fn alive(&self) -> bool {
        running(self.pidfd.as_fd())
    }

    /// CPU time of all its threads, ended ones included; not of its children.
    pub fn cpu_time(&self) -> Result<Duration> {
        let time = clock::process_cpu(self.pid);
        // Asked after the reading: what lives now lived then, so the id was still its own.
        if !self.alive() {
            return Err(Error::Died {
                program: format!("process {}", self.pid),
                how: "while it was watched".to_owned(),
                stderr: String::new(),
            });
        }
        time.map_err(Error::system(format!(
            "read the CPU time of process {}",
            self.pid
        )))
    }
}

/// Whether a program can be started under this name: a path, or one of the folders of `PATH` has it.
pub fn find(program: &str) -> Result<()> {
    let found = if program.contains('/') {
        may_run(Path::new(program))
    } else {
        let folders = std::env::var_os("PATH").unwrap_or_default();
        std::env::split_paths(&folders).any(|folder| may_run(&folder.join(program)))
    };
    if found {
        Ok(())
    } else {
        Err(no_program(program))
    }
}

/// The file that starts under this name, without symbolic links.
pub fn locate(program: &str) -> Option<PathBuf> {
    let file = if program.contains('/') {
        PathBuf::from(program)
    } else {
        let folders = std::env::var_os("PATH")?;
        let mut files = std::env::split_paths(&folders).map(|folder| folder.join(program));
        files.find(|file| may_run(file))?
    };
    std::fs::canonicalize(file).ok()
}

/// The file that a process executes, as the process sees it.
pub fn executable(pid: u32) -> io::Result<PathBuf> {
    std::fs::read_link(format!("/proc/{pid}/exe"))
}

/// A file that this user may execute.
fn may_run(path: &Path) -> bool {
    let Ok(name) = std::ffi::CString::new(path.as_os_str().as_encoded_bytes()) else {
        return false;
    };
    // SAFETY: the string is terminated and outlives the call.
    let executable =
        unsafe { libc::faccessat(libc::AT_FDCWD, name.as_ptr(), libc::X_OK, libc::AT_EACCESS) };
    executable == 0 && path.is_file()
}

fn no_program(program: &str) -> Error {
    Error::Missing {
        tried: format!("start {program}"),
        why: "there is no such program that this user may run".to_owned(),
        remedy: "install it, give its full path or make it executable".to_owned(),
    }
}

/// The inodes of the sockets that a process has open.
pub fn sockets(pid: u32) -> io::Result<BTreeSet<u64>> {
    crate::ask::sockets_of(pid)
}

/// Regular files that a process has open for writing: the name as the process sees it, and a path by which we can open the file, also
/// where it lies in another mount namespace.
pub fn written_files(pid: u32) -> io::Result<Vec<(PathBuf, PathBuf)>> {
    let proc = PathBuf::from(format!("/proc/{pid}"));
    let mut found = Vec::new();
    for entry in std::fs::read_dir(proc.join("fd"))? {
        let entry = entry?;
        let path = entry.path();
        // One that is closed meanwhile is left out.
        let Ok(name) = std::fs::read_link(&path) else {
            continue;
        };
        let is_plain = std::fs::metadata(&path).is_ok_and(|about| about.is_file());
        let info = std::fs::read_to_string(proc.join("fdinfo").join(entry.file_name()));
        let flags = info.unwrap_or_default().lines().find_map(|line| {
            let octal = line.strip_prefix("flags:")?.trim();
            i32::from_str_radix(octal, 8).ok()
        });
        let writes = flags.is_some_and(|flags| flags & libc::O_ACCMODE != libc::O_RDONLY);
        if is_plain && writes && name.is_absolute() {
            found.push((name, path));
        }
    }
    Ok(found)
}

/// Whether a process is stopped by a signal or a debugger; one that is gone is not. Field 3 of `/proc/PID/stat`.
pub fn stopped(pid: u32) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    let state = stat
        .rsplit_once(')')
        .and_then(|(_, rest)| rest.split_whitespace().next());
    matches!(state, Some("T" | "t"))
}

/// Start of a process in clock ticks since boot; with its id an identity that can be stored. Field 22
/// of `/proc/PID/stat`, counted behind the name, which may hold spaces and brackets.
pub fn started_ticks(pid: u32) -> io::Result<u64> {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat"))?;
    stat.rsplit_once(')')
        .and_then(|(_, rest)| rest.split_whitespace().nth(19)?.parse().ok())
        .ok_or_else(|| io::Error::new(io::ErrorKind::InvalidData, "no start time in its stat file"))
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stream {
    Stdout,
    Stderr,
}

/// The last lines of both streams and a bell for those who wait for one.
#[derive(Debug, Default)]
struct Output {
    tail: Mutex<Tail>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct Tail {
    lines: VecDeque<(Stream, String)>,
    /// Lines seen in all, those dropped from `lines` included.
    count: usize,
    /// Streams that ended.
    closed: usize,
    /// The beginning of standard output.
    kept: Vec<u8>,
    /// Bytes that may still be kept.
    room: usize,
    /// There was more than may be kept.
    is_cut: bool,
}

impl Output {
    fn keeping(bytes: usize) -> Self {
        let output = Self::default();
        output.lock().room = bytes;
        output
    }

    /// No code panics while it holds the lock; a poisoned one is as good as another.
    fn lock(&self) -> MutexGuard<'_, Tail> {
        self.tail.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn push(&self, stream: Stream, line: &[u8]) {
        let mut tail = self.lock();
        tail.count += 1;
        if stream == Stream::Stdout {
            let kept = line.len().min(tail.room);
            tail.kept.extend_from_slice(&line[..kept]);
            tail.room -= kept;
            tail.is_cut |= kept < line.len();
        }
        tail.lines
            .push_back((stream, String::from_utf8_lossy(line).trim_end().to_owned()));
        if tail.lines.len() > 2 * TAIL_LINES {
            tail.lines.pop_front();
        }
        self.changed.notify_all();
    }

    fn close(&self) {
        self.lock().closed += 1;
        self.changed.notify_all();
    }

    fn wait_closed(&self, within: Duration) {
        let _ = self
            .changed
            .wait_timeout_while(self.lock(), within, |tail| tail.closed < 2);
    }
}

/// Reads a stream to its end on a thread, so that the service never blocks on a full pipe.
fn drain(
    stream: Option<impl Read + Send + 'static>,
    which: Stream,
    output: &Arc<Output>,
) -> io::Result<()> {
    let output = Arc::clone(output);
    let stream = stream.ok_or_else(|| io::Error::other("the stream is not piped"))?;
    std::thread::Builder::new()
        .name("service-output".to_owned())
        .spawn(move || {
            let mut reader = BufReader::new(stream);
            let mut line = Vec::new();
            loop {
                line.clear();
                match reader
                    .by_ref()
                    .take(LINE_BYTES)
                    .read_until(b'\n', &mut line)
                {
                    Ok(0) | Err(_) => break,
                    Ok(_) => output.push(which, &line),
                }
            }
            output.close();
        })?;
    Ok(())
}

pub(crate) fn pidfd(pid: u32) -> io::Result<OwnedFd> {
    // SAFETY: no memory is involved; the result is checked before it is owned.
    let fd = unsafe { libc::syscall(libc::SYS_pidfd_open, pid, 0) };
    if fd < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: the kernel just handed out this descriptor, nobody else owns it.
    Ok(unsafe { OwnedFd::from_raw_fd(fd as i32) })
}

pub(crate) fn signal_process(pidfd: BorrowedFd<'_>, signal: i32) -> io::Result<()> {
    use std::os::fd::AsRawFd as _;
    // SAFETY: no memory is involved: the siginfo argument is null.
    let result = unsafe {
        libc::syscall(
            libc::SYS_pidfd_send_signal,
            pidfd.as_raw_fd(),
            signal,
            std::ptr::null::<libc::siginfo_t>(),
            0,
        )
    };
    if result == 0 {
        Ok(())
    } else {
        Err(io::Error::last_os_error())
    }
}

/// A pidfd becomes readable when its process ends. If poll itself fails, ask it as running: the next real step will
/// report the error.
fn running(pidfd: BorrowedFd<'_>) -> bool {
    !wait::readable(pidfd, Duration::ZERO).unwrap_or(false)
}

/// Signals a process group. That it is gone already is the wanted state.
fn kill_group(leader: u32, signal: i32) {
    // SAFETY: no memory is involved. The leader is our child and not reaped, so the number is its own.
    let _ = unsafe { libc::kill(-leader.cast_signed(), signal) };
}

/// How an ended child that is not reaped yet ended.
fn exit_of(pid: u32) -> String {
    // SAFETY: siginfo_t is plain data and outlives the call; WNOWAIT leaves the child to be reaped.
    let status = unsafe {
        let mut info: libc::siginfo_t = std::mem::zeroed();
        let flags = libc::WEXITED | libc::WNOWAIT | libc::WNOHANG;
        if libc::waitid(libc::P_PID, pid, &raw mut info, flags) != 0 || info.si_pid() == 0 {
            return "for an unknown reason".to_owned();
        }
        // The shape of wait(2): an exit code in the second byte, a signal in the first.
        match info.si_code {
            libc::CLD_EXITED => info.si_status() << 8,
            _ => info.si_status(),
        }
    };
    describe_exit(ExitStatus::from_raw(status))
}

fn describe_exit(status: ExitStatus) -> String {
    match (status.code(), status.signal()) {
        (Some(code), _) => format!("with exit status {code}"),
        (None, Some(libc::SIGKILL)) => {
            "by signal 9 (SIGKILL: killed by a user, or by the kernel out of memory; see dmesg)"
                .to_owned()
        }
        (None, Some(signal)) => format!("by signal {signal}"),
        (None, None) => "for an unknown reason".to_owned(),
    }
}
