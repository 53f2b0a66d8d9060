//! A thread of a running process, and the CPUs that it may use.
//!
//! A number is reused once its thread has ended; number and start time together are not. Source: `proc_pid_stat(5)`,
//! `proc_pid_status(5)`.

use std::io;
use std::path::Path;

use rungwise_host::Host;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::mask;

/// A thread, distinguished from a later one of the same number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Thread {
    /// Its process.
    pub pid: u32,
    /// Its own number.
    pub tid: u32,
    /// When it started, clock ticks since boot (`proc_pid_stat(5)`, field 22).
    pub started: u64,
}

impl Thread {
    /// The thread `tid` of process `pid`, if it lives.
    pub(crate) fn find(host: &dyn Host, pid: u32, tid: u32) -> io::Result<Self> {
        let stat = host
            .text(Path::new(&format!("/proc/{pid}/task/{tid}/stat")))
            .map_err(ended)?;
        // The command's name may hold anything, also parentheses; the last one ends it.
        let fields = stat.rsplit_once(')').map_or("", |(_, fields)| fields);
        let started = fields
            .split_whitespace()
            .nth(19)
            .and_then(|field| field.parse().ok());
        let started = started.ok_or(io::ErrorKind::InvalidData)?;
        Ok(Self { pid, tid, started })
    }

    /// An error if it has ended, even if another thread has its number now.
    pub(crate) fn check(&self, host: &dyn Host) -> io::Result<()> {
        if Self::find(host, self.pid, self.tid)? == *self {
            Ok(())
        } else {
            Err(gone())
        }
    }

    /// The CPUs that it may use.
    pub(crate) fn cpus(&self, host: &dyn Host) -> io::Result<String> {
        self.check(host)?;
        let path = format!("/proc/{}/task/{}/status", self.pid, self.tid);
        let status = host.text(Path::new(&path)).map_err(ended)?;
        let list = status
            .lines()
            .find_map(|line| line.strip_prefix("Cpus_allowed_list:"));
        Ok(list.ok_or(io::ErrorKind::InvalidData)?.trim().to_owned())
    }

    /// Lets it use the CPUs of `value`, a list.
    pub(crate) fn pin(&self, host: &dyn Host, value: &str) -> io::Result<()> {
        self.check(host)?;
        let cpus = mask::parse_list(value).map_err(io::Error::other)?;
        let cpus: Vec<usize> = cpus.into_iter().collect();
        host.pin_thread(self.pid, self.tid, &cpus).map_err(ended)
    }
}

impl std::fmt::Display for Thread {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "thread {} of process {}", self.tid, self.pid)
    }
}

/// A file of `/proc` that was open when its thread ended reads as ESRCH, which is no kind of std's.
fn ended(error: io::Error) -> io::Error {
    const ESRCH: i32 = 3;
    match error.raw_os_error() {
        Some(ESRCH) => gone(),
        _ => error,
    }
}

fn gone() -> io::Error {
    io::Error::new(
        io::ErrorKind::NotFound,
        "the thread has ended; another one has its number",
    )
}
