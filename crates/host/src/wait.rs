//! Waiting for a descriptor with a time limit: the end of a process, the arrival of a signal.
#![expect(unsafe_code, reason = "poll has no safe door in std")]

use std::io;
use std::os::fd::{AsRawFd as _, BorrowedFd};
use std::time::{Duration, Instant};

/// Waits until `fd` is readable; false when the time is over first. Interruptions by a signal
/// handler do not shorten the wait.
pub(crate) fn readable(fd: BorrowedFd<'_>, within: Duration) -> io::Result<bool> {
    let deadline = Instant::now() + within;
    loop {
        let left = deadline.saturating_duration_since(Instant::now());
        // Rounded up, or the last fraction of a millisecond would spin.
        let milliseconds = left.as_nanos().div_ceil(1_000_000);
        let mut poll = libc::pollfd {
            fd: fd.as_raw_fd(),
            events: libc::POLLIN,
            revents: 0,
        };
        let timeout = i32::try_from(milliseconds).unwrap_or(i32::MAX);
        // SAFETY: one pollfd that outlives the call.
        match unsafe { libc::poll(&raw mut poll, 1, timeout) } {
            0 if Instant::now() >= deadline => return Ok(false),
            0 => {}
            n if n > 0 => return Ok(true),
            _ => {
                let error = io::Error::last_os_error();
                if error.kind() != io::ErrorKind::Interrupted {
                    return Err(error);
                }
            }
        }
    }
}
