//! `io_uring`: one multishot receive takes datagrams into a ring of provided buffers for as long as it lasts, and
//! the replies of a round are submitted together. One system call sends a round and waits for the next.
//!
//! Replies are submitted with `MSG_DONTWAIT` and `IOSQE_CQE_SKIP_SUCCESS`: each is either sent before the
//! submitting call returns, or completes with an error. So a success costs no completion, and an outbox may be
//! filled again one round after it was submitted, when its errors have been seen. (`EAGAIN`, a full send buffer,
//! is such an error; that reply is then sent by a plain call, which waits.)
//! Sources: `io_uring_prep_recvmsg_multishot(3)`, `io_uring_register_buf_ring(3)`, `io_uring/net.c` of Linux 6.18.
#![expect(unsafe_code, reason = "the rings share memory with the kernel")]

use std::io;
use std::os::fd::{AsRawFd as _, OwnedFd, RawFd};
use std::sync::atomic::{AtomicU16, Ordering};

use io_uring::{IoUring, cqueue, opcode, squeue, types};

use super::handler::Handler;
use super::message::{Arrival, CONTROL_ROOM};
use super::outbox::Outbox;
use super::worker::{Desk, MAX_REQUEST};
use crate::error::{Error, Feature};
use crate::name::{NAME_ROOM, Name};
use crate::stop::Stop;

pub(super) const FEATURE: Feature = Feature {
    switch: "io",
    name: "io_uring with multishot recvmsg, buffer rings and deferred task work",
    since: "6.1",
    remedy: "set kernel.io_uring_disabled to 0, raise the limit on locked memory",
};

/// Provided buffers, and so the most datagrams in one round: a power of two. A guess; twice the outstanding
/// requests of a busy client thread.
const BUFFERS: u16 = 256;
/// What the kernel puts before the payload: `struct io_uring_recvmsg_out`, name, control messages.
const PREFIX: usize = 16 + NAME_ROOM + CONTROL_ROOM;
/// Distance between buffers; see `worker::STRIDE` for the odd part.
const SIZE: usize = PREFIX + MAX_REQUEST + 53;
const GROUP: u16 = 0;

/// Kinds of completions, in `user_data`.
const RECEIVE: u64 = 1 << 32;
const STOP: u64 = 2 << 32;
/// The lower bits are the message's index in the outbox.
const SEND: u64 = 3 << 32;

/// A ring with its buffers, ready to serve. Built by the worker's own thread, which alone may submit to it.
pub(super) struct Rings {
    ring: IoUring,
    buffers: Buffers,
    template: Box<libc::msghdr>,
    wake: OwnedFd,
}

impl Rings {
    /// Most replies of one round.
    pub(super) const MESSAGES: usize = BUFFERS as usize;

    /// Sets the ring up; `wake` is an eventfd that ends it.
    pub(super) fn new(wake: OwnedFd, control: bool) -> Result<Self, Error> {
        let ring = IoUring::builder()
            .setup_single_issuer()
            .setup_defer_taskrun()
            .setup_submit_all()
            .setup_cqsize(u32::from(BUFFERS) * 4)
            .build(u32::from(BUFFERS) + 2)
            .map_err(|error| match error.raw_os_error() {
                // Unknown setup flags: older than 6.1, which knows them all and multishot receives too.
                Some(libc::EINVAL) => FEATURE.missing(error),
                _ => FEATURE.refused("io_uring", error),
            })?;
        let mut buffers = Buffers::new();
        // SAFETY: `Rings` drops the ring before the buffers, so they are valid while it lives.
        unsafe {
            ring.submitter().register_buf_ring_with_flags(
                buffers.entries() as u64,
                BUFFERS,
                GROUP,
                0,
            )
        }
        .map_err(|error| FEATURE.refused("io_uring", error))?;
        // SAFETY: all zeros is a valid msghdr; a multishot receive reads only the two lengths.
        let mut template: Box<libc::msghdr> = Box::new(unsafe { std::mem::zeroed() });
        template.msg_namelen = NAME_ROOM as libc::socklen_t;
        template.msg_controllen = if control { CONTROL_ROOM as _ } else { 0 };
        Ok(Self {
            ring,
            buffers,
            template,
            wake,
        })
    }

    /// What the kernel agreed to.
    pub(super) fn describe(&self) -> String {
        format!(
            "io_uring: deferred task work accepted, buffer ring of {BUFFERS} registered, {} submission entries",
            self.ring.params().sq_entries()
        )
    }

    /// Serves until `stop`; what is queued then is left for another loop.
    pub(super) fn run<H: Handler>(&mut self, desk: &mut Desk<H>, stop: &Stop, gso: bool) {
        let mut sent = Outbox::new(Self::MESSAGES, gso);
        let wake = opcode::PollAdd::new(types::Fd(self.wake.as_raw_fd()), libc::POLLIN as u32);
        self.submit(&wake.build().user_data(STOP));
        // Before anything is queued for the outbox, so that the loop finds an empty queue.
        let _ = self.ring.submit();
        let mut armed = false;
        while !stop.requested() {
            // Entries that the last call did not take still point at the last round's outbox: it stays.
            if self.ring.submission().is_empty() {
                self.submit_replies(desk, &mut sent);
            }
            if !armed {
                let receive = opcode::RecvMsgMulti::new(
                    types::Fd(desk.socket()),
                    &raw const *self.template,
                    GROUP,
                );
                self.submit(&receive.build().user_data(RECEIVE));
                armed = true;
            }
            armed &= self.round(desk, &mut sent);
        }
        // A ring that ends with a request in flight is torn down by a kernel worker some time later, and the
        // socket, with its port, lives until then. So the receive is taken back first.
        if armed {
            let cancel = opcode::AsyncCancel::new(RECEIVE);
            self.submit(&cancel.build().user_data(STOP));
        }
        while armed && !stop.expired() {
            armed &= self.round(desk, &mut sent);
        }
        // The last round was taken but not sent.
        desk.send();
        desk.publish();
    }

    /// Submits what is queued, waits for a completion and handles all there are. False if the receive ended.
    fn round<H: Handler>(&mut self, desk: &mut Desk<H>, sent: &mut Outbox) -> bool {
        match self.ring.submit_and_wait(1) {
            Ok(_) => {}
            // EBUSY: completions overflowed; reading them below makes room.
            Err(error)
                if matches!(
                    error.raw_os_error(),
                    Some(libc::EINTR | libc::EAGAIN | libc::EBUSY)
                ) => {}
            Err(_) => desk.tally.receive_errors += 1,
        }
        let mut armed = true;
        let mut recycled = 0;
        for completion in self.ring.completion() {
            match completion.user_data() & !0xffff_ffff {
                RECEIVE => {
                    armed &= cqueue::more(completion.flags());
                    if completion.result() < 0 {
                        // ENOBUFS: every buffer is full of requests, which the end of this round returns.
                        // ECANCELED: taken back.
                        let ended = [-libc::ENOBUFS, -libc::ECANCELED];
                        desk.tally.receive_errors +=
                            u64::from(!ended.contains(&completion.result()));
                    } else if let Some(id) = cqueue::buffer_select(completion.flags()) {
                        let filled = self.buffers.get(id, completion.result() as usize);
                        if let Ok(message) = types::RecvMsgOut::parse(filled, &self.template) {
                            let name = Name::from_bytes(message.name_data());
                            let arrival = Arrival::read(message.control_data());
                            desk.take(message.payload_data(), &name, &arrival);
                        }
                        self.buffers.recycle(id, recycled);
                        recycled += 1;
                    }
                }
                SEND => {
                    let error = io::Error::from_raw_os_error(-completion.result());
                    let at = completion.user_data() as u32 as usize;
                    retry(sent, desk.socket(), at, &error);
                }
                _ => {}
            }
        }
        self.buffers.publish(recycled);
        if self.ring.submission().is_empty() {
            sent.settle(&mut desk.tally);
        }
        desk.publish();
        armed
    }

    /// Queues what `desk` wrote last round and gives it the other outbox to write to.
    fn submit_replies<H: Handler>(&mut self, desk: &mut Desk<H>, sent: &mut Outbox) {
        for at in 0..desk.outbox.prepare() {
            let send = opcode::SendMsg::new(types::Fd(desk.socket()), desk.outbox.header(at))
                .flags(libc::MSG_DONTWAIT as u32)
                .build()
                .flags(squeue::Flags::SKIP_SUCCESS)
                .user_data(SEND | at as u64);
            self.submit(&send);
        }
        std::mem::swap(&mut desk.outbox, sent);
    }

    /// Queues an entry, making room first when there is none.
    fn submit(&mut self, entry: &squeue::Entry) {
        loop {
            // SAFETY: what entries point at (template, outbox headers) lives and stays put until the entry
            // was submitted, and the kernel copies it then.
            if unsafe { self.ring.submission().push(entry) }.is_ok() {
                return;
            }
            // The queue is full; a failure here leaves it full and is tried again.
            let _ = self.ring.submit();
        }
    }
}

/// A reply that the ring did not send: a full send buffer is waited for, anything else is an error as elsewhere.
#[cold]
fn retry(sent: &mut Outbox, socket: RawFd, at: usize, error: &io::Error) {
    if error.raw_os_error() == Some(libc::EAGAIN) {
        sent.send_again(socket, at);
    } else {
        sent.failed(socket, at, error);
    }
}

/// The ring that lends the buffers to the kernel; it must begin on a page of its own.
#[repr(C, align(4096))]
struct Loans([u8; BUFFERS as usize * size_of::<types::BufRingEntry>()]);

/// The provided buffers and their ring.
struct Buffers {
    loans: Box<Loans>,
    memory: Box<[u8]>,
    tail: u16,
}

impl Buffers {
    fn new() -> Self {
        let mut buffers = Self {
            loans: Box::new(Loans(
                [0; BUFFERS as usize * size_of::<types::BufRingEntry>()],
            )),
            memory: vec![0; usize::from(BUFFERS) * SIZE].into(),
            tail: 0,
        };
        for id in 0..BUFFERS {
            buffers.recycle(id, id);
        }
        buffers.publish(BUFFERS);
        buffers
    }

    fn entries(&mut self) -> *mut types::BufRingEntry {
        (&raw mut *self.loans).cast()
    }

    /// The filled part of buffer `id`.
    fn get(&self, id: u16, length: usize) -> &[u8] {
        &self.memory[usize::from(id) * SIZE..][..length.min(SIZE)]
    }

    /// Puts buffer `id` at the `ahead`-th place after the tail.
    fn recycle(&mut self, id: u16, ahead: u16) {
        let at = usize::from(self.tail.wrapping_add(ahead) % BUFFERS);
        // SAFETY: `at` is below BUFFERS; the kernel does not read places at or after the tail.
        let entry = unsafe { &mut *self.entries().add(at) };
        entry.set_addr(self.memory[usize::from(id) * SIZE..].as_mut_ptr() as u64);
        entry.set_len((PREFIX + MAX_REQUEST) as u32);
        entry.set_bid(id);
    }

    /// Lends the `count` buffers after the tail.
    fn publish(&mut self, count: u16) {
        if count == 0 {
            return;
        }
        self.tail = self.tail.wrapping_add(count);
        // SAFETY: the tail lies within the first entry, is aligned, and is shared with the kernel as an atomic.
        unsafe {
            let tail = types::BufRingEntry::tail(self.entries())
                .cast_mut()
                .cast::<AtomicU16>();
            (*tail).store(self.tail, Ordering::Release);
        }
    }
}
