//! Child processes: run to the end with their own CPU time, or kept as servers and ended by pid.
//!
//! Every child dies with us (`PR_SET_PDEATHSIG`), so that neither an error nor a kill leaves a server behind.
#![expect(unsafe_code, reason = "wait4(2) gives the CPU time of one child")]

use std::io::Read as _;
use std::os::unix::process::CommandExt as _;
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail};

static STOPPED: AtomicBool = AtomicBool::new(false);

extern "C" fn stop(_signal: libc::c_int) {
    STOPPED.store(true, Ordering::Relaxed);
}

/// From here on an interrupt ends the run in order instead of at once.
pub(crate) fn stop_on_signals() {
    for signal in [libc::SIGINT, libc::SIGTERM, libc::SIGHUP] {
        let handler: extern "C" fn(libc::c_int) = stop;
        // SAFETY: the handler only stores to an atomic, which is async-signal-safe.
        unsafe { libc::signal(signal, handler as libc::sighandler_t) };
    }
}

/// Fails after an interrupt.
pub(crate) fn check_stopped() -> Result<()> {
    if STOPPED.load(Ordering::Relaxed) {
        bail!("interrupted; removing processes and namespaces");
    }
    Ok(())
}

/// The output and resource use of a program that ran to its end.
pub(crate) struct Finished {
    pub stdout: String,
    pub stderr: String,
    /// User and system time of the process and of the children it waited for.
    pub cpu: Duration,
    pub wall: Duration,
    /// Most memory that was resident at once.
    pub peak_kib: f64,
    pub status: i32,
}

/// A command that dies with us and reads nothing.
fn tame(command: &mut Command) -> &mut Command {
    // SAFETY: prctl(2) is async-signal-safe, and it is all that happens between fork and exec.
    unsafe {
        command.pre_exec(|| {
            libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL);
            Ok(())
        })
    };
    command.stdin(Stdio::null())
}

/// Runs a command to its end, within `limit`; a failure is an error with what it said.
pub(crate) fn run(command: &mut Command, limit: Duration) -> Result<Finished> {
    let finished = run_any(command, limit)?;
    if finished.status != 0 {
        bail!(
            "{command:?} ended with status {}: {}",
            finished.status,
            finished.stderr.trim()
        );
    }
    Ok(finished)
}

/// The same, whatever its exit status.
pub(crate) fn run_any(command: &mut Command, limit: Duration) -> Result<Finished> {
    gather(tame(command), limit, |_| {})
}

/// The same, with what `feed` writes on its standard input; a failure is an error.
pub(crate) fn run_fed(
    command: &mut Command,
    limit: Duration,
    feed: impl FnOnce(ChildStdin) + Send + 'static,
) -> Result<Finished> {
    let finished = gather(tame(command).stdin(Stdio::piped()), limit, |child| {
        if let Some(stdin) = child.stdin.take() {
            thread::spawn(move || feed(stdin));
        }
    })?;
    // Status 1 is a finding.
    if !matches!(finished.status, 0 | 1) {
        bail!(
            "{command:?} ended with status {}: {}",
            finished.status,
            finished.stderr.trim()
        );
    }
    Ok(finished)
}

fn gather(
    command: &mut Command,
    limit: Duration,
    started: impl FnOnce(&mut Child),
) -> Result<Finished> {
    check_stopped()?;
    command.stdout(Stdio::piped()).stderr(Stdio::piped());
    let began = Instant::now();
    let mut child = command
        .spawn()
        .with_context(|| format!("cannot run {command:?}"))?;
    started(&mut child);
    let mut out = child.stdout.take().context("no pipe")?;
    let mut err = child.stderr.take().context("no pipe")?;
    let read_out = thread::spawn(move || {
        let mut text = Vec::new();
        out.read_to_end(&mut text).map(|_| text)
    });
    let read_err = thread::spawn(move || {
        let mut text = Vec::new();
        err.read_to_end(&mut text).map(|_| text)
    });
    let (status, cpu, peak_kib) = wait(&child, limit).with_context(|| format!("{command:?}"))?;
    let wall = began.elapsed();
    let text = |reader: thread::JoinHandle<std::io::Result<Vec<u8>>>| -> Result<String> {
        let bytes = reader
            .join()
            .map_err(|_| anyhow::anyhow!("the reader of a pipe panicked"))??;
        Ok(String::from_utf8_lossy(&bytes).into_owned())
    };
    Ok(Finished {
        stdout: text(read_out)?,
        stderr: text(read_err)?,
        cpu,
        wall,
        peak_kib,
        status,
    })
}

/// Waits with wait4(2), which gives the CPU time of exactly this child.
fn wait(child: &Child, limit: Duration) -> Result<(i32, Duration, f64)> {
    let pid = libc::pid_t::try_from(child.id()).context("a pid beyond pid_t")?;
    let deadline = Instant::now() + limit;
    loop {
        let mut status = 0;
        // SAFETY: rusage is plain numbers, for which all zeroes is a value.
        let mut usage: libc::rusage = unsafe { std::mem::zeroed() };
        // SAFETY: pid is a child of ours that nobody else waits for; both pointers are to live locals.
        let ended = unsafe { libc::wait4(pid, &raw mut status, libc::WNOHANG, &raw mut usage) };
        if ended == pid {
            let code = if libc::WIFEXITED(status) {
                libc::WEXITSTATUS(status)
            } else {
                128 + libc::WTERMSIG(status)
            };
            let cpu = time(usage.ru_utime) + time(usage.ru_stime);
            return Ok((code, cpu, usage.ru_maxrss as f64));
        }
        if ended < 0 {
            return Err(std::io::Error::last_os_error()).context("cannot wait for a child");
        }
        if Instant::now() > deadline || STOPPED.load(Ordering::Relaxed) {
            end(pid);
            check_stopped()?;
            bail!("did not end within {} s", limit.as_secs());
        }
        thread::sleep(Duration::from_millis(5));
    }
}

fn time(value: libc::timeval) -> Duration {
    let micros = value.tv_sec * 1_000_000 + value.tv_usec;
    Duration::from_micros(u64::try_from(micros).unwrap_or(0))
}

fn end(pid: libc::pid_t) {
    // SAFETY: pid is a child of ours that was not waited for, so the number is still its own.
    unsafe {
        libc::kill(pid, libc::SIGKILL);
        libc::waitpid(pid, std::ptr::null_mut(), 0);
    }
}

/// A server that runs until it is dropped.
pub(crate) struct Server {
    child: Child,
}

impl Server {
    pub(crate) fn start(command: &mut Command) -> Result<Self> {
        check_stopped()?;
        tame(command).stdout(Stdio::null()).stderr(Stdio::null());
        let child = command
            .spawn()
            .with_context(|| format!("cannot start {command:?}"))?;
        Ok(Self { child })
    }

    pub(crate) fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Waits until `ready` holds; an error if the server ends first or takes longer than 10 s.
    pub(crate) fn wait_until(&mut self, what: &str, mut ready: impl FnMut() -> bool) -> Result<()> {
        let deadline = Instant::now() + Duration::from_secs(10);
        while !ready() {
            check_stopped()?;
            if let Some(status) = self.child.try_wait()? {
                bail!("the server ended before {what}: {status}");
            }
            if Instant::now() > deadline {
                bail!("the server is up, but not {what} after 10 s");
            }
            thread::sleep(Duration::from_millis(20));
        }
        Ok(())
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let Ok(pid) = libc::pid_t::try_from(self.child.id()) else {
            return;
        };
        // SAFETY: the child was not waited for (or wait() remembered it), so the pid is still its own.
        if matches!(self.child.try_wait(), Ok(None)) {
            unsafe { libc::kill(pid, libc::SIGTERM) };
            let deadline = Instant::now() + Duration::from_secs(3);
            while Instant::now() < deadline {
                if !matches!(self.child.try_wait(), Ok(None)) {
                    return;
                }
                thread::sleep(Duration::from_millis(10));
            }
            let _ = self.child.kill();
        }
        let _ = self.child.wait();
    }
}
