//! Waiting for a descriptor with a time limit: the end of a process, the arrival of a signal, a change of a file.
#![expect(unsafe_code, reason = "poll has no safe wrapper in std")]

use std::io;
use std::os::fd::{AsRawFd as _, BorrowedFd};
use std::time::{Duration, Instant};

/// Waits until `fd` is readable; false when the time is over first. Interruptions by a signal
/// handler do not shorten the wait.
pub(crate) fn readable(fd: BorrowedFd<'_>, within: Duration) -> io::Result<bool> {
    Ok(first_readable([fd], Some(within))?.is_some())
}

/// Waits until one of them is readable, for ever where there is no time limit: the index of the first that is; nothing
/// when the time is over.
pub(crate) fn first_readable<const N: usize>(
    fds: [BorrowedFd<'_>; N],
    within: Option<Duration>,
) -> io::Result<Option<usize>> {
    let deadline = within.and_then(|within| Instant::now().checked_add(within));
    let mut polls = fds.map(|fd| libc::pollfd {
        fd: fd.as_raw_fd(),
        events: libc::POLLIN,
        revents: 0,
    });
    loop {
        let timeout = deadline.map_or(-1, |deadline| {
            let left = deadline.saturating_duration_since(Instant::now());
            // Rounded up, or the last fraction of a millisecond would spin.
            i32::try_from(left.as_nanos().div_ceil(1_000_000)).unwrap_or(i32::MAX)
        });
        // SAFETY: N pollfds that outlive the call.
        match unsafe { libc::poll(polls.as_mut_ptr(), N as libc::nfds_t, timeout) } {
            0 if deadline.is_some_and(|deadline| Instant::now() >= deadline) => return Ok(None),
            0 => {}
            n if n > 0 => return Ok(polls.iter().position(|poll| poll.revents != 0)),
            _ => {
                let error = io::Error::last_os_error();
                if error.kind() != io::ErrorKind::Interrupted {
                    return Err(error);
                }
            }
        }
    }
}
