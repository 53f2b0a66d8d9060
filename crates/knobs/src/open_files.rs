//! The open file limit of a running process (`RLIMIT_NOFILE`).
//!
//! Sources: `getrlimit(2)`, `prlimit(2)`, `proc_pid_limits(5)`.

use std::fmt;
use std::io;
use std::path::Path;

use rungwise_host::Host;

use crate::thread::Thread;

/// Both limits, as `1024:524288`. No number of files is unlimited: `fs.nr_open` bounds it (`do_prlimit` in
/// kernel/sys.c, Linux 6.18).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct OpenFiles {
    /// The limit in force.
    pub(crate) soft: u64,
    /// The limit to which the process itself may raise it.
    pub(crate) hard: u64,
}

impl OpenFiles {
    /// Reads its own spelling.
    pub(crate) fn parse(text: &str) -> Option<Self> {
        let (soft, hard) = text.split_once(':')?;
        let (soft, hard) = (soft.parse().ok()?, hard.parse().ok()?);
        (soft <= hard).then_some(Self { soft, hard })
    }

    /// The limits of a process, identified by its first thread.
    pub(crate) fn read(host: &dyn Host, process: &Thread) -> io::Result<Self> {
        process.check(host)?;
        let limits = host.text(Path::new(&format!("/proc/{}/limits", process.pid)))?;
        let line = limits
            .lines()
            .find_map(|line| line.strip_prefix("Max open files"));
        let mut words = line.unwrap_or_default().split_whitespace();
        let mut number = || words.next().and_then(|word| word.parse().ok());
        match (number(), number()) {
            (Some(soft), Some(hard)) => Ok(Self { soft, hard }),
            _ => Err(io::ErrorKind::InvalidData.into()),
        }
    }

    /// Sets the limits to `value`.
    pub(crate) fn write(host: &dyn Host, process: &Thread, value: &str) -> io::Result<()> {
        process.check(host)?;
        let Self { soft, hard } = Self::parse(value).ok_or(io::ErrorKind::InvalidInput)?;
        host.set_open_files(process.pid, soft, hard)
    }
}

impl fmt::Display for OpenFiles {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.soft, self.hard)
    }
}
