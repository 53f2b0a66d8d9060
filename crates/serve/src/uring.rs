//! What servers share of `io_uring`: a ring for one thread, and buffers that the kernel takes as data arrives.
//!
//! Completions are worked off in the submitting call and nowhere else (deferred task work), so a worker is never interrupted by them.
//! Sources: `io_uring_setup(2)`, `io_uring_register_buf_ring(3)`.
#![expect(unsafe_code, reason = "the rings share memory with the kernel")]

use std::io;
use std::sync::atomic::{AtomicU16, Ordering};
use std::time::Duration;

use io_uring::{IoUring, cqueue, squeue, types};

use crate::error::{Error, Feature};

pub(crate) const FEATURE: Feature = Feature {
    switch: "io",
    name: "io_uring with multishot receive, buffer rings and deferred task work",
    since: "6.1",
    remedy: "set kernel.io_uring_disabled to 0, raise the limit on locked memory",
};

/// Provided buffers of a ring, and so the most pieces of data in one round: a power of two. A guess; twice the outstanding
/// requests of a busy client thread.
pub(crate) const BUFFERS: u16 = 256;
/// Completions that wait to be read; beyond it the kernel keeps them elsewhere, at a cost. Four for each buffer, a guess.
const COMPLETIONS: u32 = BUFFERS as u32 * 4;
/// The only group of buffers.
pub(crate) const GROUP: u16 = 0;

/// A ring with its buffers. Built by the worker's own thread, which alone may submit to it.
pub(crate) struct Ring {
    /// Dropped first: the kernel writes to the buffers while it lives.
    ring: IoUring,
    /// Absent while a worker reads what is in them.
    buffers: Option<Buffers>,
}

impl Ring {
    /// Sets the ring up, with buffers of this many bytes.
    pub(crate) fn new(buffer: usize) -> Result<Self, Error> {
        let ring = IoUring::builder()
            .setup_single_issuer()
            .setup_defer_taskrun()
            .setup_submit_all()
            .setup_cqsize(COMPLETIONS)
            .build(u32::from(BUFFERS) + 2)
            .map_err(|error| match error.raw_os_error() {
                // Unknown setup flags: older than 6.1, which knows them all and multishot receives too.
                Some(libc::EINVAL) => FEATURE.missing(error),
                _ => FEATURE.refused("io_uring", error),
            })?;
        let mut buffers = Buffers::new(buffer);
        // SAFETY: `Ring` drops the ring before the buffers, so they are valid while it lives.
        unsafe {
            ring.submitter().register_buf_ring_with_flags(
                buffers.entries() as u64,
                BUFFERS,
                GROUP,
                0,
            )
        }
        .map_err(|error| FEATURE.refused("io_uring", error))?;
        Ok(Self {
            ring,
            buffers: Some(buffers),
        })
    }

    /// Room for all completions that the kernel holds at once.
    pub(crate) fn room() -> Vec<cqueue::Entry> {
        Vec::with_capacity(COMPLETIONS as usize)
    }

    /// What the kernel agreed to.
    pub(crate) fn describe(&self) -> String {
        format!(
            "io_uring: deferred task work accepted, buffer ring of {BUFFERS} registered, {} submission entries",
            self.ring.params().sq_entries()
        )
    }

    /// The kernel has taken all entries.
    pub(crate) fn has_submitted(&mut self) -> bool {
        self.ring.submission().is_empty()
    }

    /// Queues an entry, making room first when there is none.
    ///
    /// # Safety
    ///
    /// What the entry points at lives and stays put until the kernel has taken the entry, and where the operation needs it longer,
    /// until it completes.
    pub(crate) unsafe fn submit(&mut self, entry: &squeue::Entry) {
        loop {
            // SAFETY: the caller's.
            if unsafe { self.ring.submission().push(entry) }.is_ok() {
                return;
            }
            // The queue is full; a failure here leaves it full and is tried again.
            let _ = self.ring.submit();
        }
    }

    /// Has the kernel take all entries, as far as it can.
    pub(crate) fn flush(&mut self) {
        let _ = self.ring.submit();
    }

    /// Submits what is queued and waits for a completion, no longer than `limit` where there is one. An interrupted wait is none.
    pub(crate) fn wait(&mut self, limit: Option<Duration>) -> io::Result<()> {
        let waited = match limit {
            None => self.ring.submit_and_wait(1),
            Some(limit) => {
                let time = types::Timespec::from(limit);
                let arguments = types::SubmitArgs::new().timespec(&time);
                self.ring.submitter().submit_with_args(1, &arguments)
            }
        };
        match waited {
            Ok(_) => Ok(()),
            // EBUSY: completions overflowed; reading them makes room. ETIME: the time is over.
            Err(error)
                if matches!(
                    error.raw_os_error(),
                    Some(libc::EINTR | libc::EAGAIN | libc::EBUSY | libc::ETIME)
                ) =>
            {
                Ok(())
            }
            Err(error) => Err(error),
        }
    }

    /// Moves the completions that there are into `into`.
    pub(crate) fn completions(&mut self, into: &mut Vec<cqueue::Entry>) {
        into.extend(self.ring.completion());
    }

    /// The buffers, for reading what completions brought; they go back by [`Self::put_back`].
    pub(crate) fn take_buffers(&mut self) -> Buffers {
        self.buffers.take().expect("buffers are put back")
    }

    /// Takes the buffers back, and lends what was recycled.
    pub(crate) fn put_back(&mut self, mut buffers: Buffers) {
        buffers.publish();
        self.buffers = Some(buffers);
    }

    /// Takes back everything that is under way; whether nothing is any more.
    pub(crate) fn cancel_all(&mut self) -> bool {
        let all = types::CancelBuilder::any();
        let done = self
            .ring
            .submitter()
            .register_sync_cancel(Some(types::Timespec::new().sec(1)), all);
        match done {
            Ok(()) => true,
            // There was nothing.
            Err(error) => error.raw_os_error() == Some(libc::ENOENT),
        }
    }
}

/// The ring that lends the buffers to the kernel; it must begin on a page of its own.
#[repr(C, align(4096))]
struct Loans([u8; BUFFERS as usize * size_of::<types::BufRingEntry>()]);

/// The provided buffers and their ring.
pub(crate) struct Buffers {
    loans: Box<Loans>,
    memory: Box<[u8]>,
    /// Bytes of each, and from one to the next: not a multiple of 4096, or the first bytes of all of them would compete for the same
    /// few sets of the first-level cache.
    size: usize,
    tail: u16,
    /// Buffers after the tail that are not lent yet.
    back: u16,
}

/// What keeps buffers apart in the cache.
const ODD: usize = 53;

impl Buffers {
    fn new(size: usize) -> Self {
        let mut buffers = Self {
            loans: Box::new(Loans(
                [0; BUFFERS as usize * size_of::<types::BufRingEntry>()],
            )),
            memory: vec![0; usize::from(BUFFERS) * (size + ODD)].into(),
            size,
            tail: 0,
            back: 0,
        };
        for id in 0..BUFFERS {
            buffers.recycle(id);
        }
        buffers.publish();
        buffers
    }

    fn entries(&mut self) -> *mut types::BufRingEntry {
        (&raw mut *self.loans).cast()
    }

    /// The filled part of buffer `id`.
    pub(crate) fn get(&self, id: u16, length: usize) -> &[u8] {
        &self.memory[usize::from(id) * (self.size + ODD)..][..length.min(self.size)]
    }

    /// Puts buffer `id` behind the others that go back with the next [`Self::publish`].
    pub(crate) fn recycle(&mut self, id: u16) {
        let at = usize::from(self.tail.wrapping_add(self.back) % BUFFERS);
        self.back += 1;
        // SAFETY: `at` is below BUFFERS; the kernel does not read places at or after the tail.
        let entry = unsafe { &mut *self.entries().add(at) };
        entry.set_addr(self.memory[usize::from(id) * (self.size + ODD)..].as_mut_ptr() as u64);
        entry.set_len(self.size as u32);
        entry.set_bid(id);
    }

    /// Lends what was recycled.
    fn publish(&mut self) {
        if self.back == 0 {
            return;
        }
        self.tail = self.tail.wrapping_add(std::mem::take(&mut self.back));
        // SAFETY: the tail lies within the first entry, is aligned, and is shared with the kernel as an atomic.
        unsafe {
            let tail = types::BufRingEntry::tail(self.entries())
                .cast_mut()
                .cast::<AtomicU16>();
            (*tail).store(self.tail, Ordering::Release);
        }
    }
}
