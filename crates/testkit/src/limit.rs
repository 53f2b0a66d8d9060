//! A time limit for a child process.

use std::io::Write as _;
use std::process::Child;
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};

/// Kills a child that has not ended in time, so that a test which reads its output sees the end of it instead of waiting for ever.
/// Dropping it lifts the limit; drop it before the child is waited for, as its pid may then be another's.
#[derive(Debug)]
pub struct TimeLimit {
    _lifted: Sender<()>,
}

impl TimeLimit {
    /// Starts to count now.
    #[must_use]
    pub fn start(child: &Child, limit: Duration) -> Self {
        let pid = Pid::from_child(child);
        let (lifted, wait) = channel::<()>();
        std::thread::spawn(move || {
            if wait.recv_timeout(limit) == Err(RecvTimeoutError::Timeout) {
                let why = format!("process {pid:?} has taken more than {limit:?} and is killed");
                let _ = writeln!(std::io::stderr(), "{why}");
                let _ = kill_process(pid, Signal::KILL);
            }
        });
        Self { _lifted: lifted }
    }
}
