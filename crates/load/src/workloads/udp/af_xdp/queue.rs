//! One thread's queues of the device: its requests leave by the first, its replies come by any.
#![expect(unsafe_code, reason = "ppoll takes raw pointers")]

use std::net::SocketAddr;
use std::os::fd::{AsRawFd as _, RawFd};

use rungwise_serve::af_xdp::{Flow, Frame, Xsk, read};

use crate::clock::timespec_of;

/// The queues of a thread.
#[derive(Debug)]
pub(in crate::workloads::udp) struct Queue {
    /// Their sockets; the first sends.
    xsks: Vec<Xsk>,
    /// What frames of each of the thread's source ports begin with.
    ports: Vec<Flow>,
    /// The first of these ports, which are one after the other.
    first_port: u16,
    /// Which of the ports the requests of each of the workload's sockets leave from. It begins with port `n` for socket `n`;
    /// every so many ports further is another of the same socket.
    current: Vec<usize>,
    target: SocketAddr,
    /// Index of the device.
    device: u32,
    /// What is waited for: the sockets, and last what the caller waits for beside.
    waits: Vec<libc::pollfd>,
}

/// A reply in its frame, to be given back.
pub(in crate::workloads::udp) struct Reply<'a> {
    /// Which of the thread's sockets it is for, from 0.
    pub(in crate::workloads::udp) socket: usize,
    pub(in crate::workloads::udp) payload: &'a [u8],
}

impl Queue {
    /// Queues whose first is to send, at least one, for so many sockets of the workload.
    pub(super) fn new(
        xsks: Vec<Xsk>,
        sockets: usize,
        ports: Vec<Flow>,
        first_port: u16,
        target: SocketAddr,
        device: u32,
    ) -> Self {
        let waits = xsks
            .iter()
            .map(|xsk| wait_for(xsk.fd().as_raw_fd()))
            .collect();
        Self {
            xsks,
            ports,
            first_port,
            current: (0..sockets).collect(),
            target,
            device,
            waits,
        }
    }

    /// Also ends a wait when `fd` is readable.
    pub(in crate::workloads::udp) fn watch(&mut self, fd: RawFd) {
        self.waits.push(wait_for(fd));
    }

    /// A reply to port number `port` came another way than by these queues: requests of its socket leave from the next of
    /// its ports, if there is one. What spreads flows over queues, a hash over the ports as a rule, may spread that one to ours.
    #[inline]
    pub(in crate::workloads::udp) fn leave(&mut self, port: usize) {
        let sockets = self.current.len();
        let current = &mut self.current[port % sockets];
        if *current == port && port + sockets < self.ports.len() {
            *current = port + sockets;
        }
    }

    /// Makes a request of socket number `socket` ready to be sent. False if no frame is free.
    #[inline]
    pub(in crate::workloads::udp) fn send(&mut self, socket: usize, request: &[u8]) -> bool {
        let Some(frame) = self.free_frame() else {
            return false;
        };
        let xsk = &mut self.xsks[0];
        let Some(length) = self.ports[self.current[socket]].write(xsk.bytes(&frame), request)
        else {
            xsk.release(frame);
            return false;
        };
        xsk.send(frame, length);
        true
    }

    /// A frame to send in; where all are under way, after the kernel was asked to send them.
    #[inline]
    fn free_frame(&mut self) -> Option<Frame> {
        self.xsks[0].take().or_else(|| {
            self.commit();
            let xsk = &mut self.xsks[0];
            xsk.push_out();
            xsk.commit();
            xsk.take()
        })
    }

    /// Tells the kernel of all that was done. The sending queue comes last, since it may send at once: the replies must
    /// find the frames that were given back, on every queue.
    #[inline]
    fn commit(&mut self) {
        for xsk in self.xsks.iter_mut().rev() {
            xsk.commit();
        }
    }

    /// Sends what is ready and waits at most `ns` for a reply. True if what is watched beside is readable.
    #[inline]
    pub(in crate::workloads::udp) fn wait(&mut self, ns: u64) -> bool {
        self.commit();
        let timeout = timespec_of(ns);
        let count = self.waits.len() as libc::nfds_t;
        // SAFETY: an array of as many as are said, a valid timeout, no signal mask.
        let ready = unsafe {
            libc::ppoll(
                self.waits.as_mut_ptr(),
                count,
                &raw const timeout,
                std::ptr::null(),
            )
        };
        // An interrupted wait is an empty one: the caller looks at the clock and comes back.
        ready > 0
            && self
                .waits
                .get(self.xsks.len())
                .is_some_and(|beside| beside.revents != 0)
    }

    /// How many queues there are.
    pub(in crate::workloads::udp) fn count(&self) -> usize {
        self.xsks.len()
    }

    /// How many datagrams wait at queue number `queue`.
    #[inline]
    pub(in crate::workloads::udp) fn waiting(&mut self, queue: usize) -> usize {
        self.xsks[queue].waiting()
    }

    /// Takes one datagram that waits at queue number `queue` and passes it to `on_reply`, unless it is damaged.
    #[inline]
    pub(in crate::workloads::udp) fn receive(
        &mut self,
        queue: usize,
        on_reply: impl FnOnce(Reply<'_>),
    ) {
        let xsk = &mut self.xsks[queue];
        let Some(frame) = xsk.receive() else {
            return;
        };
        let bytes = xsk.bytes(&frame);
        if let Some(datagram) = read(&bytes[..frame.length()], self.device) {
            let port = usize::from(datagram.port.wrapping_sub(self.first_port));
            // The device's program lets nothing else through; this costs less than trusting it.
            let ours = port < self.ports.len()
                && datagram.peer.ip() == self.target.ip()
                && datagram.peer.port() == self.target.port();
            if ours {
                let payload = &bytes[datagram.payload];
                let socket = port % self.current.len();
                on_reply(Reply { socket, payload });
            }
        }
        xsk.release(frame);
    }

    /// Replies that the kernel dropped at these queues so far.
    pub(in crate::workloads::udp) fn drops(&self) -> u64 {
        self.xsks.iter().map(Xsk::drops).sum()
    }
}

fn wait_for(fd: RawFd) -> libc::pollfd {
    libc::pollfd {
        fd,
        events: libc::POLLIN,
        revents: 0,
    }
}
