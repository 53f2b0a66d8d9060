//! Workers that take datagrams from a device's queues by `AF_XDP`, before the network stack, and answer there.
//!
//! Worker i has queue i. A program on the device redirects the datagrams to the server's address and port to the
//! socket of their queue; it leaves with its link, and then, as on queues without a worker, the stack delivers to the
//! UDP sockets as ever. So does it with what the program does not take (fragments, IP options, loopback), and a worker
//! serves both. A reply goes back in its request's frame, to the MAC address the request came from; one that is too
//! long for a frame leaves through the UDP socket.
#![expect(unsafe_code, reason = "poll takes a raw pointer")]

use std::io;
use std::net::SocketAddr;
use std::os::fd::{AsRawFd as _, OwnedFd};
use std::sync::Arc;

use crate::af_xdp::{
    Device, Filter, Frame, Frames, Redirect, Taker, Xsk, largest_payload, read, turn,
};

use super::handler::Handler;
use super::message::Local;
use super::single::Receiver;
use super::worker::Desk;
use super::{XdpDevice, XdpMode};
use crate::error::{Error, Feature};
use crate::name::Name;
use crate::read_back::Ledger;
use crate::stop::Stop;

const AF_XDP: Feature = Feature {
    switch: "af-xdp",
    name: "AF_XDP sockets (CONFIG_XDP_SOCKETS)",
    since: "5.9, with links for XDP",
    remedy: "run as root or grant CAP_BPF, CAP_NET_ADMIN and CAP_NET_RAW, use at most as many workers as the device has receive \
             queues, use generic mode if the driver has no XDP, and check the device name and that no other XDP program is \
             attached",
};

/// What a worker takes datagrams from beside its UDP socket.
pub(super) struct Queue {
    xsk: Xsk,
    device: u32,
    mtu: usize,
}

/// Puts the program on the device and makes a queue for each worker, or says in the ledger why not. `socket` is any
/// socket of this namespace.
pub(super) fn open(
    at: &XdpDevice,
    listen: SocketAddr,
    workers: usize,
    socket: &OwnedFd,
    ledger: &mut Ledger,
) -> Result<Option<(Redirect, Vec<Queue>)>, Error> {
    let native = at.mode == XdpMode::Native;
    let mode = if native { "native" } else { "generic" };
    let wanted = format!("{workers} queues of {} {mode}", at.device);
    match attach(at, listen, workers, socket) {
        Ok((redirect, queues, actual)) => {
            ledger.holds(AF_XDP.switch, wanted, actual);
            Ok(Some((redirect, queues)))
        }
        Err(error) => {
            let error = match error.raw_os_error() {
                Some(libc::EAFNOSUPPORT) => AF_XDP.missing(error),
                _ => AF_XDP.forbidden(&wanted, error),
            };
            ledger.fall_back(AF_XDP.switch, wanted, "off, served from sockets", error)?;
            Ok(None)
        }
    }
}

fn attach(
    at: &XdpDevice,
    listen: SocketAddr,
    workers: usize,
    socket: &OwnedFd,
) -> io::Result<(Redirect, Vec<Queue>, String)> {
    let device = Device::find(&at.device)?;
    let mtu = device.mtu(socket)?;
    let mut queues = Vec::with_capacity(workers);
    for queue in 0..workers as u32 {
        queues.push(Queue {
            xsk: Xsk::bind(device.index(), queue, Frames::OF_A_SERVER)?,
            device: device.index(),
            mtu,
        });
    }
    let takers: Vec<_> = (0..)
        .zip(&queues)
        .map(|(queue, Queue { xsk, .. })| Taker {
            share: 0,
            queue,
            xsk,
        })
        .collect();
    let redirect = Redirect::attach(&device, at.mode, &Filter::to(listen), 1, &takers)?;
    let actual = format!("{redirect}; copy mode, worker i on queue i");
    Ok((redirect, queues, actual))
}

/// Datagrams read from the UDP socket before the queue has its turn again. A guess; few come there.
const SOCKET_TURN: usize = 32;

/// Serves the queue and the desk's socket until `stop`; what the socket still holds then is left for another loop.
pub(super) fn run<H: Handler>(desk: &mut Desk<H>, stop: &Stop, queue: &mut Queue, control: bool) {
    let mut receiver = Receiver::new(control);
    let waits_for = |fd| libc::pollfd {
        fd,
        events: libc::POLLIN,
        revents: 0,
    };
    // When its device is gone, a socket of AF_XDP is never ready again; the UDP socket goes on.
    let mut waits = [waits_for(queue.fd().as_raw_fd()), waits_for(desk.socket())];
    while !stop.expired() {
        let last = stop.requested();
        let brought = queue.round(desk);
        desk.publish();
        if last && brought == 0 {
            break;
        }
        // This sends the round's replies too.
        let timeout = if last { 0 } else { -1 };
        // SAFETY: an array of as many as are said.
        let ready = unsafe { libc::poll(waits.as_mut_ptr(), waits.len() as _, timeout) };
        if ready <= 0 {
            continue;
        }
        if waits[1].revents != 0 {
            for _ in 0..SOCKET_TURN {
                match receiver.take(desk, libc::MSG_DONTWAIT) {
                    Ok(true) => {}
                    Ok(false) => break,
                    Err(error) if error.kind() == io::ErrorKind::WouldBlock => break,
                    Err(_) => desk.tally.receive_errors += 1,
                }
            }
        }
    }
    while queue.xsk.push_out() {}
}

impl Queue {
    /// The `AF_XDP` socket.
    pub(super) fn fd(&self) -> &Arc<OwnedFd> {
        self.xsk.fd()
    }

    /// Answers every datagram that waits and returns how many there were. Replies in frames are ready to be sent,
    /// others have been.
    fn round<H: Handler>(&mut self, desk: &mut Desk<H>) -> usize {
        let mut count = 0;
        while let Some(frame) = self.xsk.receive() {
            count += 1;
            match self.answer(desk, &frame) {
                Some(length) => self.xsk.send(frame, length),
                None => self.xsk.release(frame),
            }
        }
        self.xsk.commit();
        desk.send();
        count
    }

    /// Turns `frame` into its reply and returns the reply's length; nothing if no reply leaves in this frame.
    fn answer<H: Handler>(&mut self, desk: &mut Desk<H>, frame: &Frame) -> Option<usize> {
        let (device, mtu) = (self.device, self.mtu);
        let bytes = self.xsk.bytes(frame);
        let Some(request) = read(&bytes[..frame.length()], device) else {
            desk.tally.receive_errors += 1;
            return None;
        };
        let peer = request.peer;
        let length = desk.reply(&bytes[request.payload], peer)?;
        let reply = desk.outbox.room().and_then(|room| room.get(..length))?;
        if length <= largest_payload(peer, mtu)
            && let Some(whole) = turn(bytes, peer, reply)
        {
            desk.tally.sent += 1;
            desk.tally.sent_bytes += length as u64;
            return Some(whole);
        }
        desk.outbox.push(length, &Name::of(peer), Local::Unknown);
        None
    }
}
