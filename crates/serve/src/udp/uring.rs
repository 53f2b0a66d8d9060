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

use io_uring::{cqueue, opcode, squeue, types};

use super::handler::Handler;
use super::message::{Arrival, CONTROL_ROOM};
use super::outbox::Outbox;
use super::worker::{Desk, MAX_REQUEST};
use crate::error::Error;
use crate::name::{NAME_ROOM, Name};
use crate::stop::Stop;
use crate::uring::{BUFFERS, GROUP, Ring};

/// What the kernel puts before the payload: `struct io_uring_recvmsg_out`, name, control messages.
const PREFIX: usize = 16 + NAME_ROOM + CONTROL_ROOM;

/// Kinds of completions, in `user_data`.
const RECEIVE: u64 = 1 << 32;
const STOP: u64 = 2 << 32;
/// The lower bits are the message's index in the outbox.
const SEND: u64 = 3 << 32;

/// A ring with its buffers, ready to serve. Built by the worker's own thread, which alone may submit to it.
pub(super) struct Rings {
    ring: Ring,
    completions: Vec<cqueue::Entry>,
    template: Box<libc::msghdr>,
    wake: OwnedFd,
}

impl Rings {
    /// Most replies of one round.
    pub(super) const MESSAGES: usize = BUFFERS as usize;

    /// Sets the ring up; `wake` is an eventfd that ends it.
    pub(super) fn new(wake: OwnedFd, control: bool) -> Result<Self, Error> {
        let ring = Ring::new(PREFIX + MAX_REQUEST)?;
        // SAFETY: all zeros is a valid msghdr; a multishot receive reads only the two lengths.
        let mut template: Box<libc::msghdr> = Box::new(unsafe { std::mem::zeroed() });
        template.msg_namelen = NAME_ROOM as libc::socklen_t;
        template.msg_controllen = if control { CONTROL_ROOM as _ } else { 0 };
        Ok(Self {
            ring,
            completions: Ring::room(),
            template,
            wake,
        })
    }

    /// What the kernel agreed to.
    pub(super) fn describe(&self) -> String {
        self.ring.describe()
    }

    /// Serves until `stop`; what is queued then is left for another loop.
    pub(super) fn run<H: Handler>(&mut self, desk: &mut Desk<H>, stop: &Stop, gso: bool) {
        let mut sent = Outbox::new(Self::MESSAGES, gso);
        let wake = opcode::PollAdd::new(types::Fd(self.wake.as_raw_fd()), libc::POLLIN as u32);
        self.submit(&wake.build().user_data(STOP));
        // Before anything is queued for the outbox, so that the loop finds an empty queue.
        self.ring.flush();
        let mut armed = false;
        while !stop.requested() {
            // Entries that the last call did not take still point at the last round's outbox: it stays.
            if self.ring.has_submitted() {
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
        if self.ring.wait(None).is_err() {
            desk.tally.receive_errors += 1;
        }
        let mut armed = true;
        let mut completions = std::mem::take(&mut self.completions);
        self.ring.completions(&mut completions);
        let mut buffers = self.ring.take_buffers();
        for completion in completions.drain(..) {
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
                        let filled = buffers.get(id, completion.result() as usize);
                        if let Ok(message) = types::RecvMsgOut::parse(filled, &self.template) {
                            let name = Name::from_bytes(message.name_data());
                            let arrival = Arrival::read(message.control_data());
                            desk.take(message.payload_data(), &name, &arrival);
                        }
                        buffers.recycle(id);
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
        self.ring.put_back(buffers);
        self.completions = completions;
        if self.ring.has_submitted() {
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

    fn submit(&mut self, entry: &squeue::Entry) {
        // SAFETY: what entries point at (template, outbox headers) lives and stays put until the entry was submitted, and the
        // kernel copies it then.
        unsafe { self.ring.submit(entry) };
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
