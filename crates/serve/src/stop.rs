//! The request to stop, seen by all workers, and what wakes a worker that waits.
#![expect(unsafe_code, reason = "eventfd has no wrapper in std")]

use std::io;
use std::os::fd::{AsRawFd as _, FromRawFd as _, OwnedFd};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// How long workers may go on answering what was queued when the stop came. Queues are bounded by the receive
/// buffer; this bounds a slow handler and a client that does not read. A guess.
pub(crate) const DRAIN_LIMIT: Duration = Duration::from_secs(1);

/// The request to stop.
#[derive(Debug, Default)]
pub(crate) struct Stop {
    requested: AtomicBool,
    deadline: OnceLock<Instant>,
}

impl Stop {
    #[expect(clippy::disallowed_methods, reason = "serve owns its clock")]
    pub(crate) fn request(&self) {
        self.deadline.get_or_init(|| Instant::now() + DRAIN_LIMIT);
        self.requested.store(true, Ordering::Release);
    }

    pub(crate) fn requested(&self) -> bool {
        self.requested.load(Ordering::Acquire)
    }

    /// The time for answering what was queued is over. Reads the clock only once a stop was requested.
    #[expect(clippy::disallowed_methods, reason = "serve owns its clock")]
    pub(crate) fn expired(&self) -> bool {
        self.requested()
            && self
                .deadline
                .get()
                .is_some_and(|deadline| Instant::now() >= *deadline)
    }
}

/// A descriptor that wakes its waiters: readable from the first [`wake`] on.
pub(crate) fn eventfd() -> io::Result<OwnedFd> {
    // SAFETY: takes numbers.
    let raw = unsafe { libc::eventfd(0, libc::EFD_CLOEXEC | libc::EFD_NONBLOCK) };
    if raw < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: a new descriptor, nobody else's.
    Ok(unsafe { OwnedFd::from_raw_fd(raw) })
}

/// Makes `eventfd` wake nobody until it is woken again.
pub(crate) fn silence(eventfd: &OwnedFd) {
    let mut count = 0_u64;
    // SAFETY: room for eight bytes, as an eventfd fills them. Where there is nothing to read, it does not block.
    unsafe {
        libc::read(
            eventfd.as_raw_fd(),
            (&raw mut count).cast(),
            size_of_val(&count),
        )
    };
}

/// Wakes who waits for `eventfd`.
pub(crate) fn wake(eventfd: &OwnedFd) {
    /// What is added to an eventfd to wake its reader.
    static WAKE: u64 = 1;
    // SAFETY: eight bytes, as an eventfd takes them. It is full only after 2^64 calls.
    unsafe {
        libc::write(
            eventfd.as_raw_fd(),
            (&raw const WAKE).cast(),
            size_of_val(&WAKE),
        )
    };
}
