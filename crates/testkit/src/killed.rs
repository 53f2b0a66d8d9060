//! Killing a program at its nth system call of a kind, by strace's fault injection.
//!
//! A loop over n crashes the program between any two steps that matter, without a line of test code
//! in the program. Needs strace and ptrace; both are checked by running it.
#![expect(
    clippy::disallowed_methods,
    reason = "tests start the programs they test"
)]

use std::ffi::OsStr;
use std::path::Path;
use std::process::{Command, Stdio};

/// A program to be run under strace.
#[derive(Debug)]
pub struct Traced {
    command: Command,
    trace: tempfile::NamedTempFile,
}

/// How a traced run ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Killed {
    /// At that system call.
    AtCall,
    /// It made fewer calls and ended by itself, with this status.
    EndedBefore(i32),
}

impl Traced {
    /// `program`, to be killed with SIGKILL on entry to its `nth` call of `syscall`, counted from 1.
    /// Only the first process is traced: children (the guard) run free.
    ///
    /// # Panics
    /// If no temporary file can be made.
    #[expect(clippy::expect_used, reason = "a test that cannot run fails")]
    pub fn kill_at(program: &Path, syscall: &str, nth: u32) -> Self {
        let trace = tempfile::NamedTempFile::new().expect("a file for strace's output");
        let mut command = Command::new("strace");
        command
            .args(["--quiet=all", "--signal=none", "-o"])
            .arg(trace.path())
            .arg("-e")
            .arg(format!("trace={syscall}"))
            .arg("-e")
            .arg(format!("inject={syscall}:signal=KILL:when={nth}"))
            .arg("--")
            .arg(program);
        Self { command, trace }
    }

    /// Adds arguments of the program.
    #[must_use]
    pub fn args(mut self, args: impl IntoIterator<Item = impl AsRef<OsStr>>) -> Self {
        self.command.args(args);
        self
    }

    /// Sets a variable of its environment.
    #[must_use]
    pub fn env(mut self, name: &str, value: impl AsRef<OsStr>) -> Self {
        self.command.env(name, value);
        self
    }

    /// Sets its working directory.
    #[must_use]
    pub fn current_dir(mut self, dir: &Path) -> Self {
        self.command.current_dir(dir);
        self
    }

    /// Runs it to its end.
    ///
    /// # Panics
    /// If strace is not installed or may not trace.
    #[expect(clippy::expect_used, reason = "a test that cannot run fails")]
    pub fn run(&mut self) -> Killed {
        use std::os::unix::process::ExitStatusExt as _;
        let status = self
            .command
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .status()
            .expect("strace starts; install the package strace");
        // strace ends the way its program did, by killing itself with the same signal.
        match (status.signal(), status.code()) {
            (Some(_), _) | (_, Some(137)) => Killed::AtCall,
            (None, code) => Killed::EndedBefore(code.unwrap_or(-1)),
        }
    }

    /// The calls of that kind that it made, as strace prints them, the fatal one last.
    ///
    /// # Panics
    /// If strace's output cannot be read.
    #[expect(clippy::expect_used, reason = "a test that cannot run fails")]
    pub fn calls(&self) -> String {
        std::fs::read_to_string(self.trace.path()).expect("strace wrote what it saw")
    }
}
