//! Running the binary with a state folder and a runs folder of its own.

use std::ffi::OsStr;
use std::io::{BufRead as _, BufReader, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, Output, Stdio};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use rungwise_host::live::Live;
use rungwise_testkit::{Record, TimeLimit, differences, record};

/// Says what a test did not show. The capture of the tests' output would swallow it where all is well.
pub(crate) fn aloud(what: &str) {
    let _ = writeln!(std::io::stderr(), "{what}");
}

/// A scratch folder, and the machine for this test alone: ladders measure it, faults kill things on it. Whatever is started
/// from it has the folder in its environment, as that of the state, and is found by it.
pub(crate) struct Bench {
    pub(crate) dir: tempfile::TempDir,
    _alone: MutexGuard<'static, ()>,
}

static MACHINE: Mutex<()> = Mutex::new(());

impl Bench {
    pub(crate) fn new() -> Self {
        Self {
            dir: tempfile::Builder::new()
                .prefix(&scratch())
                .tempdir()
                .unwrap(),
            // A test that failed while holding it has been reported already.
            _alone: MACHINE.lock().unwrap_or_else(PoisonError::into_inner),
        }
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    pub(crate) fn write(&self, name: &str, text: &str) -> PathBuf {
        let path = self.path(name);
        std::fs::write(&path, text).unwrap();
        path
    }

    pub(crate) fn state(&self) -> PathBuf {
        self.path("state")
    }

    pub(crate) fn command(&self, arguments: &[&str]) -> Command {
        self.dress(Command::new(binary()), arguments)
    }

    pub(crate) fn dress(&self, mut command: Command, arguments: &[&str]) -> Command {
        command
            .args(arguments)
            .current_dir(self.dir.path())
            .env("RUNGWISE_STATE", self.state())
            .env("RUNGWISE_CACHE", self.path("cache"))
            .stdin(Stdio::null());
        command
    }

    pub(crate) fn run(&self, arguments: &[&str]) -> Ended {
        Ended::from(self.command(arguments).output().unwrap())
    }

    pub(crate) fn start(&self, arguments: &[&str]) -> Child {
        // Under nohup SIGHUP comes ignored, and the program would keep it so.
        let mut heeding = Command::new("env");
        heeding.arg("--default-signal=HUP").arg(binary());
        self.dress(heeding, arguments)
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap()
    }

    /// The only run folder.
    pub(crate) fn run_folder(&self) -> PathBuf {
        let mut folders: Vec<_> = std::fs::read_dir(self.path("runs"))
            .unwrap()
            .map(|entry| entry.unwrap().path())
            .collect();
        assert_eq!(folders.len(), 1, "{folders:?}");
        folders.remove(0)
    }
}

/// How the names of scratch folders begin that tests of this process make.
fn scratch() -> String {
    format!("rungwise-test-{}-", std::process::id())
}

pub(crate) fn binary() -> &'static Path {
    Path::new(env!("CARGO_BIN_EXE_rungwise"))
}

/// A finished process with its output as text.
pub(crate) struct Ended {
    pub(crate) code: Option<i32>,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

impl From<Output> for Ended {
    fn from(output: Output) -> Self {
        Self {
            code: output.status.code(),
            stdout: String::from_utf8_lossy(&output.stdout).into_owned(),
            stderr: String::from_utf8_lossy(&output.stderr).into_owned(),
        }
    }
}

impl Ended {
    #[track_caller]
    pub(crate) fn expect(self, code: i32) -> Self {
        assert_eq!(
            self.code,
            Some(code),
            "stdout:\n{}\nstderr:\n{}",
            self.stdout,
            self.stderr
        );
        self
    }

    #[track_caller]
    pub(crate) fn says(self, words: &[&str]) -> Self {
        for word in words {
            assert!(
                self.stderr.contains(word) || self.stdout.contains(word),
                "'{word}' is not in\nstdout:\n{}\nstderr:\n{}",
                self.stdout,
                self.stderr
            );
        }
        self
    }
}

/// The machine as a test found it.
pub(crate) struct Machine {
    settings: Record,
    mounts: String,
}

impl Machine {
    pub(crate) fn now() -> Self {
        Self {
            settings: record(&Live),
            mounts: std::fs::read_to_string("/proc/self/mountinfo").unwrap(),
        }
    }

    /// Settings, namespaces and mounts are as before, and no process of ours is left.
    #[track_caller]
    pub(crate) fn assert_unchanged(&self) {
        // The guard and a service killed with the tool need a moment to be gone.
        let deadline = Instant::now() + Duration::from_secs(10);
        while !left().is_empty() && Instant::now() < deadline {
            std::thread::yield_now();
        }
        assert_eq!(left(), [""; 0], "processes are left");
        let after = Self::now();
        let changed = differences(&self.settings, &after.settings);
        assert!(changed.is_empty(), "{changed:#?}");
        assert_eq!(self.mounts, after.mounts);
    }
}

/// Command lines of the processes that run our binary, or have a scratch folder of ours in their words or environment.
fn left() -> Vec<String> {
    let (binary, scratch) = (binary().display().to_string(), scratch());
    processes()
        .filter(|(pid, words)| {
            let environment = read(*pid, "environ");
            [words, &environment]
                .iter()
                .any(|text| text.contains(&scratch))
                || words.contains(&binary)
        })
        .map(|(pid, words)| format!("{pid}: {words}"))
        .collect()
}

/// Pids whose command line contains `needle`.
pub(crate) fn pids(needle: impl AsRef<OsStr>) -> Vec<i32> {
    let needle = needle.as_ref().to_string_lossy().into_owned();
    let ours = processes().filter(|(_, words)| words.contains(&needle));
    ours.map(|(pid, _)| pid).collect()
}

/// All processes but this one, with their command lines.
fn processes() -> impl Iterator<Item = (i32, String)> {
    let entries = std::fs::read_dir("/proc").unwrap().flatten();
    let pids = entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    let others = pids.filter(|pid| *pid != std::process::id().cast_signed());
    others.map(|pid| (pid, read(pid, "cmdline")))
}

/// A file of strings of a process; empty if it has ended, or may not be read.
fn read(pid: i32, file: &str) -> String {
    let bytes = std::fs::read(format!("/proc/{pid}/{file}")).unwrap_or_default();
    String::from_utf8_lossy(&bytes).replace('\0', " ")
}

/// The service that `tool` has started, as soon as there is one. By its parent: others may run one like it.
pub(crate) fn service_of(tool: &Child) -> i32 {
    let deadline = Instant::now() + Duration::from_secs(10);
    loop {
        let child = pids("serve udp --listen").into_iter().find(|pid| {
            std::fs::read_to_string(format!("/proc/{pid}/status"))
                .is_ok_and(|status| status.contains(&format!("PPid:\t{}\n", tool.id())))
        });
        if let Some(pid) = child {
            return pid;
        }
        assert!(Instant::now() < deadline, "no service within 10 s");
        std::thread::yield_now();
    }
}

/// Signals a process that the test started.
#[expect(unsafe_code, reason = "kill(2) has no safe door in std")]
pub(crate) fn kill(pid: i32, signal: i32) {
    // SAFETY: no memory is involved; the pid is that of a child not yet reaped, or found by its command line.
    unsafe { libc::kill(pid, signal) };
}

#[test]
fn what_a_run_leaves_is_found_whatever_program_it_runs() {
    let bench = Bench::new();
    let mut sleeper = bench
        .dress(Command::new("sleep"), &["600"])
        .spawn()
        .unwrap();
    let pid = format!("{}: ", sleeper.id());
    let is_found = || left().iter().any(|line| line.starts_with(&pid));
    // The kernel closes the files of an exec, for which spawn waits, before the new environment can be read.
    let deadline = Instant::now() + Duration::from_secs(5);
    let mut found = is_found();
    while !found && Instant::now() < deadline {
        std::thread::yield_now();
        found = is_found();
    }
    sleeper.kill().unwrap();
    sleeper.wait().unwrap();
    assert!(found, "{:?}", left());
    Machine::now().assert_unchanged();
}

/// Starts a planted program, which prints `ready` once it runs and ends when its input does, and is killed after `limit`; the rest
/// of its output.
pub(crate) fn planted(
    command: &mut Command,
    limit: Duration,
) -> (Child, TimeLimit, BufReader<ChildStdout>) {
    let mut child = command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let limit = TimeLimit::start(&child, limit);
    let mut output = BufReader::new(child.stdout.take().unwrap());
    let mut line = String::new();
    while line.trim() != "ready" {
        line.clear();
        assert!(output.read_line(&mut line).unwrap() > 0, "it ended");
    }
    (child, limit, output)
}
