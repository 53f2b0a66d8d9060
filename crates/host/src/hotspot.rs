//! Asks a running `HotSpot` JVM through its attach listener, as `jcmd` does: no agent, nothing to prepare in the JVM.
//!
//! The listener is a Unix socket in the JVM's own `/tmp`. Where there is none yet, a file `.attach_pidN` in the JVM's working
//! directory (or its `/tmp`) and a SIGQUIT make the JVM open it. SIGQUIT kills a process that does not handle it, so it is sent only to
//! one that has `libjvm.so` mapped and catches it; a pidfd keeps a reused number from being hit. JVMs take commands from their own user
//! only (JDK 8 not even from root): a thread for this alone takes over the JVM's user and group, which Linux keeps per thread.
//!
//! Source: `src/hotspot/os/linux/attachListener_linux.cpp` (JDK 8 to 21), `os/posix/attachListener_posix.cpp` (later).
#![expect(
    unsafe_code,
    reason = "credentials of one thread and a connect that cannot hang have no safe wrapper in std"
)]

mod files;

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read as _, Write as _};
use std::os::fd::{AsFd as _, AsRawFd as _, FromRawFd as _, OwnedFd};
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::{FileTypeExt as _, MetadataExt as _, OpenOptionsExt as _};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

pub use self::files::PerfMap;
use self::files::{Written, is_native_image};
use crate::signals::Interrupt;
use crate::{process, wait};

/// How long a JVM may take to open its listener; `jcmd` gives it as long.
const OPENS_WITHIN: Duration = Duration::from_secs(10);
/// Between two attempts to connect.
const TRY_EVERY: Duration = Duration::from_millis(10);
/// Between two checks of a JVM that is waited for: whether it was stopped, and whether the wait was.
const LOOK_EVERY: Duration = Duration::from_millis(50);
/// How long a process may take to end once its sockets are closed: the kernel frees its memory meanwhile.
const ENDS_WITHIN: Duration = Duration::from_secs(2);
/// The longest answer that is read: the stacks of 10,000 threads are a fifth of it.
const LONGEST: usize = 256 << 20;

/// Why a JVM does not answer.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// There is no such process, or it ended before it was asked.
    #[error(
        "cannot attach to process {pid}: {why}; name a running JVM (`jps` or `pgrep java` lists them)"
    )]
    NoProcess {
        /// Its number.
        pid: u32,
        /// The kernel's answer.
        why: String,
    },
    /// It is no JVM.
    #[error(
        "cannot attach to process {pid}: it has no libjvm.so mapped, so it is not a JVM; name a running JVM (`jps` or `pgrep java` lists them)"
    )]
    NotJvm {
        /// Its number.
        pid: u32,
    },
    /// It was compiled to a program of its own, which has no attach listener.
    #[error(
        "cannot attach to process {pid}: it is a GraalVM native image, which has no attach listener; judge it as a process: \
         rungwise check --pid {pid}"
    )]
    NativeImage {
        /// Its number.
        pid: u32,
    },
    /// It is a JVM of another make, whose attach protocol differs.
    #[error(
        "cannot attach to process {pid}: it is an OpenJ9 JVM, and only HotSpot JVMs are supported; run the application on a HotSpot JDK"
    )]
    OpenJ9 {
        /// Its number.
        pid: u32,
    },
    /// The JVM was started without attach.
    #[error("cannot attach to process {pid}: {why}; start the JVM without {option}")]
    Disabled {
        /// Its number.
        pid: u32,
        /// What shows it.
        why: &'static str,
        /// The option that does it.
        option: &'static str,
    },
    /// The JVM belongs to another user, and this process may not take over that user's identity.
    #[error(
        "cannot attach to process {pid}: it belongs to user {uid}, and this is user {own}; run as user {uid} or as root"
    )]
    OtherUser {
        /// Its number.
        pid: u32,
        /// Its user.
        uid: u32,
        /// The user of this process.
        own: u32,
    },
    /// All threads of the JVM stand still.
    #[error(
        "cannot attach to process {pid}: it is stopped ({by}); continue it with: kill -CONT {pid}"
    )]
    Stopped {
        /// Its number.
        pid: u32,
        /// What stopped it.
        by: &'static str,
    },
    /// The JVM opened no listener.
    #[error(
        "cannot attach to process {pid}: the JVM did not open {socket} within {within_s} s; it is starting, hangs, or waits for a safepoint: \
         look with `top -H -p {pid}`, then try again"
    )]
    NoListener {
        /// Its number.
        pid: u32,
        /// The socket that was waited for, as the JVM sees it.
        socket: String,
        /// The time waited, seconds.
        within_s: f64,
    },
    /// The JVM accepted the command and did not finish it in time.
    #[error(
        "the JVM of process {pid} did not answer '{command}' within {within_s} s: it is stopped, hangs, or waits for a safepoint; look with \
         `top -H -p {pid}`, then try again"
    )]
    Stalled {
        /// Its number.
        pid: u32,
        /// What was asked.
        command: String,
        /// The time waited, seconds.
        within_s: f64,
    },
    /// The JVM ended while it was asked.
    #[error(
        "the JVM of process {pid} ended during '{command}'; its own output or hs_err file shows why"
    )]
    Ended {
        /// Its number.
        pid: u32,
        /// What was asked.
        command: String,
    },
    /// The wait was ended by an [`Interrupt`]; the JVM may go on with the command.
    #[error("interrupted while the JVM of process {pid} was asked '{command}'")]
    Interrupted {
        /// Its number.
        pid: u32,
        /// What was asked.
        command: String,
    },
    /// The JVM knows no such command, or failed at it.
    #[error("the JVM of process {pid} refused '{command}': {answer}")]
    Refused {
        /// Its number.
        pid: u32,
        /// What was asked.
        command: String,
        /// Its first line of text.
        answer: String,
    },
    /// The JVM wrote no file, or one that cannot be trusted.
    #[error(
        "cannot read what the JVM of process {pid} wrote by '{command}': {why}; free space in the /tmp of the JVM, or let its user write there"
    )]
    NoFile {
        /// Its number.
        pid: u32,
        /// What was asked.
        command: String,
        /// What is wrong with the file.
        why: String,
    },
    /// The kernel refused a step.
    #[error(
        "cannot {step} of process {pid}: {source}; run as the user of the JVM or as root, in a container with CAP_SYS_PTRACE"
    )]
    System {
        /// Its number.
        pid: u32,
        /// What was tried.
        step: &'static str,
        /// The kernel's answer.
        source: io::Error,
    },
}

/// Result of this module.
pub type Result<T> = std::result::Result<T, Error>;

/// A `HotSpot` JVM that takes commands.
#[derive(Debug)]
pub struct Jvm {
    pid: u32,
    /// Its number in its own pid namespace.
    inner: u32,
    user: (u32, u32),
    /// Its command line.
    words: String,
    pidfd: OwnedFd,
    /// Its working directory and its `/tmp`, held open: they stay reachable after this thread has changed its user.
    folders: [Option<File>; 2],
    /// Ends waits for answers.
    interrupt: Option<Interrupt>,
}

impl Jvm {
    /// Finds out whether process `pid` is a `HotSpot` JVM that takes commands. Sends nothing to it.
    ///
    /// # Errors
    ///
    /// It is no such JVM, was started without attach, is stopped, or belongs to a user that this process cannot become.
    pub fn open(pid: u32) -> Result<Self> {
        let gone = |error: &io::Error| Error::NoProcess {
            pid,
            why: error.to_string(),
        };
        // The descriptor first: what is read afterwards is of this process or of none.
        let pidfd = process::pidfd(pid).map_err(|error| gone(&error))?;
        let proc = PathBuf::from(format!("/proc/{pid}"));
        let text = |name: &str| fs::read(proc.join(name)).map(|bytes| lossy(&bytes));
        let status = Status::parse(&text("status").map_err(|error| gone(&error))?);
        if status.state == Some('Z') {
            return Err(gone(&io::Error::other("it has ended (zombie)")));
        }
        let step = |step| move |source| Error::System { pid, step, source };
        let own = own_user();
        let other = || Error::OtherUser {
            pid,
            uid: status.user.0,
            own: own.0,
        };
        let maps = match text("maps") {
            Err(error)
                if error.kind() == io::ErrorKind::PermissionDenied
                    && own.0 != 0
                    && own != status.user =>
            {
                return Err(other());
            }
            read => read.map_err(step("read the memory map"))?,
        };
        let maps_library = |name: &str| maps.lines().any(|line| line.contains(name));
        if maps_library("/libj9vm") {
            return Err(Error::OpenJ9 { pid });
        }
        if !maps_library("/libjvm.so") {
            return Err(if is_native_image(&proc.join("exe")) {
                Error::NativeImage { pid }
            } else {
                Error::NotJvm { pid }
            });
        }
        if own.0 != 0 && own != status.user {
            return Err(other());
        }
        if let Some(by) = status.stopped() {
            return Err(Error::Stopped { pid, by });
        }
        let options = [text("cmdline"), text("environ")].map(io::Result::unwrap_or_default);
        if let Some((option, why)) = disabled(&options.concat(), status.catches_quit) {
            return Err(Error::Disabled { pid, why, option });
        }
        let [words, _] = options;
        let folders = ["cwd", "root/tmp"].map(|name| File::open(proc.join(name)).ok());
        if folders[1].is_none() {
            let source = io::ErrorKind::PermissionDenied.into();
            return Err(step("open the /tmp folder")(source));
        }
        Ok(Self {
            pid,
            inner: status.inner.unwrap_or(pid),
            user: status.user,
            words,
            pidfd,
            folders,
            interrupt: None,
        })
    }

    /// The same JVM, whose commands are given up ([`Error::Interrupted`]) when `interrupt` is raised.
    #[must_use]
    pub fn with_interrupt(self, interrupt: Interrupt) -> Self {
        Self {
            interrupt: Some(interrupt),
            ..self
        }
    }

    /// Its number.
    pub fn pid(&self) -> u32 {
        self.pid
    }

    /// Its number in its own pid namespace: its threads print theirs as counted there.
    pub fn inner_pid(&self) -> u32 {
        self.inner
    }

    /// The answer to a diagnostic command such as `GC.heap_info` or `Thread.print -e`, complete within this time; opening the
    /// listener at the first command takes up to 10 s more.
    ///
    /// # Errors
    ///
    /// The JVM does not open its listener, does not answer in time, ends, is stopped, or does not know the command; or the wait was
    /// interrupted.
    pub fn command(&self, command: &str, within: Duration) -> Result<String> {
        self.as_its_user(|| self.ask(command, within))
    }

    /// The file that a diagnostic command such as `Thread.dump_to_file` writes; `command` makes the command from a path. The file is in
    /// the JVM's own `/tmp`, and removed again.
    ///
    /// # Errors
    ///
    /// As for [`Jvm::command`], or the JVM wrote no such file.
    pub fn command_to_file(
        &self,
        command: impl Fn(&str) -> String + Sync,
        within: Duration,
    ) -> Result<Vec<u8>> {
        self.as_its_user(|| {
            let Some(folder) = &self.folders[1] else {
                return Err(self.refused(&command(""), "its /tmp is not open"));
            };
            let written = Written::in_tmp(folder, self.user.0);
            let command = command(&format!("/tmp/{}", written.name));
            self.ask(&command, within)?;
            written.read().map_err(|error| Error::NoFile {
                pid: self.pid,
                command,
                why: error.to_string(),
            })
        })
    }

    /// Does this on a thread of its own, which becomes the user of the JVM.
    fn as_its_user<T: Send>(&self, work: impl FnOnce() -> Result<T> + Send) -> Result<T> {
        std::thread::scope(|scope| {
            let asked = std::thread::Builder::new()
                .name("attach".to_owned())
                .spawn_scoped(scope, || {
                    become_user(self.user).map_err(|_| Error::OtherUser {
                        pid: self.pid,
                        uid: self.user.0,
                        own: own_user().0,
                    })?;
                    work()
                });
            let asked = asked.map_err(|source| Error::System {
                pid: self.pid,
                step: "start a thread for the listener",
                source,
            })?;
            asked
                .join()
                .unwrap_or_else(|panic| std::panic::resume_unwind(panic))
        })
    }

    /// The plain files that it has open, by descriptor, with their absolute paths as the JVM sees them; none where they cannot be read.
    pub fn open_files(&self) -> Vec<(u32, String)> {
        let folder = PathBuf::from(format!("/proc/{}/fd", self.pid));
        let numbers = fs::read_dir(&folder).into_iter().flatten().flatten();
        numbers
            .filter_map(|entry| {
                let path = entry.path();
                let number = entry.file_name().to_str()?.parse().ok()?;
                let name = fs::read_link(&path).ok()?.to_str()?.to_owned();
                path.is_file().then_some((number, name))
            })
            .collect()
    }

    /// Whether it still runs.
    pub fn is_running(&self) -> bool {
        !wait::readable(self.pidfd.as_fd(), Duration::ZERO).unwrap_or(true)
    }

    /// Whether it runs and is not stopped.
    ///
    /// # Errors
    ///
    /// It has ended ([`Error::NoProcess`]), or something stopped it.
    pub fn check(&self) -> Result<()> {
        if !self.is_running() {
            let why = "it has ended; its own output or hs_err file shows why".to_owned();
            return Err(Error::NoProcess { pid: self.pid, why });
        }
        let status = fs::read(format!("/proc/{}/status", self.pid)).unwrap_or_default();
        match Status::parse(&lossy(&status)).stopped() {
            Some(by) => Err(Error::Stopped { pid: self.pid, by }),
            None => Ok(()),
        }
    }

    fn ask(&self, command: &str, within: Duration) -> Result<String> {
        self.check()?;
        let deadline = Instant::now() + within;
        let mut stream = loop {
            match self.connect().map_err(|error| (error.kind(), error)) {
                Ok(stream) => break stream,
                Err((io::ErrorKind::NotFound | io::ErrorKind::ConnectionRefused, _)) => {
                    break self.opened(command)?;
                }
                // It is open, and others wait for its answers.
                Err((io::ErrorKind::WouldBlock, _)) if Instant::now() < deadline => {
                    self.goes_on(command)?;
                    if wait::readable(self.pidfd.as_fd(), TRY_EVERY).unwrap_or(true) {
                        return Err(self.ended(command));
                    }
                }
                Err((io::ErrorKind::WouldBlock, _)) => return Err(self.stalled(command, within)),
                Err((_, source)) => {
                    return Err(Error::System {
                        pid: self.pid,
                        step: "connect to the listener",
                        source,
                    });
                }
            }
        };
        let cut = |_| self.ended_or(command, || self.stalled(command, within));
        // Protocol version, verb and three arguments, each ended by a zero.
        let request = format!("1\0jcmd\0{command}\0\0\0");
        stream.write_all(request.as_bytes()).map_err(cut)?;
        let mut answer = Vec::new();
        let mut piece = vec![0; 1 << 16];
        loop {
            let left = deadline.saturating_duration_since(Instant::now());
            let ready = wait::first_readable(
                [stream.as_fd(), self.pidfd.as_fd()],
                Some(left.min(LOOK_EVERY)),
            );
            match ready {
                Ok(Some(0)) => {}
                Ok(Some(_)) => return Err(self.ended(command)),
                Ok(None) if Instant::now() < deadline => {
                    self.goes_on(command)?;
                    continue;
                }
                Ok(None) | Err(_) => return Err(self.stalled(command, within)),
            }
            match stream.read(&mut piece) {
                Ok(0) => break,
                Ok(read) => answer.extend_from_slice(&piece[..read]),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                Err(error) => return Err(cut(error)),
            }
            if answer.len() > LONGEST {
                return Err(self.refused(command, "its answer is longer than 256 MiB"));
            }
        }
        let answer = lossy(&answer);
        // The first line is the return code.
        match answer.split_once('\n') {
            Some(("0", text)) => Ok(text.to_owned()),
            Some((_, text)) => {
                let mut lines = text.lines().filter(|line| !line.trim().is_empty());
                Err(self.refused(command, lines.next().unwrap_or("no reason given")))
            }
            None => Err(self.ended_or(command, || self.refused(command, "an empty answer"))),
        }
    }

    /// Asks the JVM to open its listener, and connects to it.
    fn opened(&self, command: &str) -> Result<UnixStream> {
        let step = |step| {
            move |source| Error::System {
                pid: self.pid,
                step,
                source,
            }
        };
        let _trigger = self
            .folders
            .iter()
            .flatten()
            .find_map(|folder| Trigger::create(folder, self.inner).ok())
            .ok_or_else(|| io::Error::from(io::ErrorKind::PermissionDenied))
            .map_err(step(
                "create .attach_pid in the working directory and in /tmp",
            ))?;
        // It may have become another program since it was looked at.
        let read =
            |name: &str| lossy(&fs::read(format!("/proc/{}/{name}", self.pid)).unwrap_or_default());
        if !Status::parse(&read("status")).catches_quit || read("cmdline") != self.words {
            return Err(self.ended_or(command, || Error::NotJvm { pid: self.pid }));
        }
        process::signal_process(self.pidfd.as_fd(), libc::SIGQUIT)
            .map_err(|source| self.ended_or(command, || step("signal the JVM")(source)))?;
        let deadline = Instant::now() + OPENS_WITHIN;
        loop {
            if let Ok(stream) = self.connect() {
                return Ok(stream);
            }
            let is_over = wait::readable(self.pidfd.as_fd(), TRY_EVERY).unwrap_or(true);
            if is_over {
                return Err(self.ended(command));
            }
            self.goes_on(command)?;
            if Instant::now() >= deadline {
                return Err(Error::NoListener {
                    pid: self.pid,
                    socket: format!("/tmp/.java_pid{}", self.inner),
                    within_s: OPENS_WITHIN.as_secs_f64(),
                });
            }
        }
    }

    /// Connects to the listener, if it is open and has room.
    fn connect(&self) -> io::Result<UnixStream> {
        let folder = self.folders[1].as_ref().ok_or(io::ErrorKind::NotFound)?;
        let path = within(folder, &format!(".java_pid{}", self.inner));
        // Anybody may make a file of this name in /tmp.
        let found = fs::symlink_metadata(&path)?;
        if !found.file_type().is_socket() || found.uid() != self.user.0 || found.mode() & 0o022 != 0
        {
            let why = "the file is not a socket that belongs to the JVM's user alone";
            return Err(io::Error::new(io::ErrorKind::PermissionDenied, why));
        }
        connect(&path)
    }

    /// Whether the wait for an answer has a point still.
    fn goes_on(&self, command: &str) -> Result<()> {
        if self.interrupt.as_ref().is_some_and(Interrupt::raised) {
            let (pid, command) = (self.pid, command.to_owned());
            return Err(Error::Interrupted { pid, command });
        }
        self.check()
    }

    fn stalled(&self, command: &str, within: Duration) -> Error {
        Error::Stalled {
            pid: self.pid,
            command: command.to_owned(),
            within_s: within.as_secs_f64(),
        }
    }

    fn ended(&self, command: &str) -> Error {
        Error::Ended {
            pid: self.pid,
            command: command.to_owned(),
        }
    }

    fn refused(&self, command: &str, answer: &str) -> Error {
        Error::Refused {
            pid: self.pid,
            command: command.to_owned(),
            answer: answer.trim().to_owned(),
        }
    }

    /// Its connections break some time before it has ended.
    fn ended_or(&self, command: &str, other: impl FnOnce() -> Error) -> Error {
        match wait::readable(self.pidfd.as_fd(), ENDS_WITHIN) {
            Ok(false) => other(),
            _ => self.ended(command),
        }
    }
}

/// What `/proc/PID/status` says of a process that is to be signalled.
#[derive(Debug, Default, PartialEq)]
struct Status {
    state: Option<char>,
    /// Effective user and group.
    user: (u32, u32),
    /// Its number in the innermost pid namespace.
    inner: Option<u32>,
    /// It has a handler for SIGQUIT.
    catches_quit: bool,
}

impl Status {
    fn parse(text: &str) -> Self {
        let mut status = Self::default();
        for line in text.lines() {
            let Some((key, value)) = line.split_once(':') else {
                continue;
            };
            let mut words = value.split_whitespace();
            let second = || value.split_whitespace().nth(1)?.parse().ok();
            match key {
                "State" => status.state = words.next().and_then(|word| word.chars().next()),
                // Real, effective, saved, file system.
                "Uid" => status.user.0 = second().unwrap_or(u32::MAX),
                "Gid" => status.user.1 = second().unwrap_or(u32::MAX),
                "NSpid" => status.inner = words.next_back().and_then(|word| word.parse().ok()),
                "SigCgt" => {
                    let mask = words
                        .next()
                        .and_then(|mask| u64::from_str_radix(mask, 16).ok());
                    status.catches_quit =
                        mask.is_some_and(|mask| mask >> (libc::SIGQUIT - 1) & 1 == 1);
                }
                _ => {}
            }
        }
        status
    }

    fn stopped(&self) -> Option<&'static str> {
        match self.state? {
            'T' => Some("SIGSTOP or a shell's job control"),
            't' => Some("a debugger"),
            _ => None,
        }
    }
}

/// The option, among the words of a command line and an environment, that keeps a JVM from taking commands, and what shows it.
fn disabled(words: &str, catches_quit: bool) -> Option<(&'static str, &'static str)> {
    let last = |on: &str, off: &str| {
        let words = words.split(|c: char| c == '\0' || c == '=' || c.is_whitespace());
        let mut given = words.filter(|word| *word == on || *word == off);
        given.next_back() == Some(on)
    };
    if last("-XX:+DisableAttachMechanism", "-XX:-DisableAttachMechanism") {
        let why = "its command line or environment contains -XX:+DisableAttachMechanism";
        return Some(("-XX:+DisableAttachMechanism", why));
    }
    // A program around the JVM may handle SIGQUIT in its own way then.
    let left = "its command line or environment leaves SIGQUIT to others";
    if last("-XX:+ReduceSignalUsage", "-XX:-ReduceSignalUsage") {
        return Some(("-XX:+ReduceSignalUsage", left));
    }
    if last("-Xrs", "-Xrs") {
        return Some(("-Xrs", left));
    }
    let why = "it does not handle SIGQUIT, which would kill it: it is still starting, or its options contain -Xrs";
    (!catches_quit).then_some(("-Xrs", why))
}

/// `.attach_pidN`, removed when dropped.
struct Trigger(PathBuf);

impl Trigger {
    fn create(folder: &File, pid: u32) -> io::Result<Self> {
        let path = within(folder, &format!(".attach_pid{pid}"));
        // One that is there was left by another tool, and is as good.
        OpenOptions::new()
            .write(true)
            .create(true)
            .truncate(false)
            .mode(0o600)
            // A pipe without a reader must not hold us up.
            .custom_flags(libc::O_NOFOLLOW | libc::O_NONBLOCK)
            .open(&path)?;
        Ok(Self(path))
    }
}

impl Drop for Trigger {
    fn drop(&mut self) {
        // Without it there is nothing left to remove.
        let _ = fs::remove_file(&self.0);
    }
}

/// The path of a file in an open folder, in whatever mount namespace that lies.
fn within(folder: &File, name: &str) -> PathBuf {
    PathBuf::from(format!("/proc/self/fd/{}/{name}", folder.as_raw_fd()))
}

/// Connects without waiting for room in the listener's queue, as a stopped JVM would make us.
fn connect(path: &Path) -> io::Result<UnixStream> {
    let bytes = path.as_os_str().as_bytes();
    // SAFETY: all zeros is a valid address without a name.
    let mut address: libc::sockaddr_un = unsafe { std::mem::zeroed() };
    address.sun_family = libc::AF_UNIX as libc::sa_family_t;
    // One zero at the end.
    if bytes.len() >= address.sun_path.len() {
        return Err(io::ErrorKind::InvalidInput.into());
    }
    for (to, from) in address.sun_path.iter_mut().zip(bytes) {
        *to = from.cast_signed();
    }
    let kind = libc::SOCK_STREAM | libc::SOCK_CLOEXEC | libc::SOCK_NONBLOCK;
    // SAFETY: no memory is involved; the result is checked before it is owned.
    let fd = unsafe { libc::socket(libc::AF_UNIX, kind, 0) };
    if fd < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: the kernel just returned this descriptor, and it has no other owner.
    let socket = unsafe { OwnedFd::from_raw_fd(fd) };
    let length = size_of::<libc::sockaddr_un>() as libc::socklen_t;
    // SAFETY: the address outlives the call, and the length is that of its type.
    let connected =
        unsafe { libc::connect(socket.as_raw_fd(), (&raw const address).cast(), length) };
    if connected != 0 {
        return Err(io::Error::last_os_error());
    }
    Ok(UnixStream::from(socket))
}

fn own_user() -> (u32, u32) {
    // SAFETY: these two only read the ids of the thread.
    unsafe { (libc::geteuid(), libc::getegid()) }
}

/// Makes the calling thread, and it alone, act as this user and group: the C library's function would change all threads.
fn become_user((uid, gid): (u32, u32)) -> io::Result<()> {
    let own = own_user();
    let keep = u32::MAX;
    let mut changes = Vec::new();
    // The group first: the new user may not change it any more.
    if gid != own.1 {
        changes.push((libc::SYS_setresgid, gid));
    }
    if uid != own.0 {
        changes.push((libc::SYS_setresuid, uid));
    }
    if own.0 == 0 && uid != 0 {
        // What the user has no right to must not be reached by a group of ours. A user namespace may forbid it, and has none to lose.
        let none = std::ptr::null::<libc::gid_t>();
        // SAFETY: clears the groups of this thread; no memory is read.
        let _ = unsafe { libc::syscall(libc::SYS_setgroups, 0_usize, none) };
    }
    for (call, id) in changes {
        // SAFETY: changes the credentials of this thread; no memory is involved.
        if unsafe { libc::syscall(call, keep, id, keep) } != 0 {
            return Err(io::Error::last_os_error());
        }
    }
    Ok(())
}

fn lossy(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_status_gives_user_inner_number_and_the_handler_of_sigquit() {
        let text = "Name:\tjava\nState:\tS (sleeping)\nUid:\t0\t1000\t0\t1000\nGid:\t0\t1001\t0\t0\n\
                    NSpid:\t4242\t17\nSigCgt:\t0000000181005ccf\n";
        let status = Status::parse(text);
        assert_eq!(
            (status.user, status.inner, status.catches_quit),
            ((1000, 1001), Some(17), true)
        );
        assert_eq!(status.stopped(), None);
        assert!(!Status::parse("SigCgt:\t0000000181005ccb\n").catches_quit);
        assert!(Status::parse("State:\tT (stopped)\n").stopped().is_some());
        assert!(Status::parse("no status").stopped().is_none());
    }

    #[test]
    fn the_last_of_two_options_counts_and_sigquit_is_never_sent_to_what_it_would_kill() {
        let on = "java\0-XX:+DisableAttachMechanism\0Main\0";
        assert_eq!(disabled(on, true).unwrap().0, "-XX:+DisableAttachMechanism");
        let off = format!("{on}JAVA_TOOL_OPTIONS=-Xmx1g -XX:-DisableAttachMechanism\0");
        assert_eq!(disabled(&off, true), None);
        // A program around the JVM may have a handler of its own.
        for catches_quit in [false, true] {
            assert_eq!(disabled("java\0-Xrs\0", catches_quit).unwrap().0, "-Xrs");
        }
        assert!(disabled("java\0", false).is_some());
    }

    #[test]
    fn this_process_is_no_jvm_and_is_not_signalled() {
        let error = Jvm::open(std::process::id()).unwrap_err();
        assert!(matches!(error, Error::NotJvm { .. }), "{error}");
        let error = Jvm::open(u32::MAX / 4).unwrap_err();
        assert!(matches!(error, Error::NoProcess { .. }), "{error}");
    }
}
