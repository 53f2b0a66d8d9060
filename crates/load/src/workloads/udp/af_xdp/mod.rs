//! Requests and replies by the queues of a device, past the network stack (`AF_XDP`).
//!
//! Thread i of n sends by queue i and has the queues i, i + n, ... to receive from. Each of its flows has a source
//! port that a UDP socket holds: so no other process gets the port, the kernel sends no ICMP for it, and a reply that comes
//! in another way (on a queue of another thread, in fragments, over another device) is delivered to that socket and is
//! counted like any other. The program on the device takes nothing but what the target sends to these ports. With several
//! threads a flow whose replies come that other way tries another port, until they come by a queue of its own thread.
//! `Documentation/networking/af_xdp.rst` of Linux 6.18 describes the sockets.

mod netlink;
mod path;
mod queue;

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::os::fd::OwnedFd;

use rungwise_serve::af_xdp::{
    Device, Filter, Flow, Frames, Queues, Redirect, Taker, Xsk, largest_payload,
};

use self::netlink::Netlink;
pub(super) use self::queue::Queue;
use super::socket::{self, Wish};
use super::{Workload, XdpDevice};
use crate::Error;

/// Most source ports of a run: they lie side by side, and the range that the kernel chooses from has 28 000.
pub(super) const LARGEST_RUN: usize = 8192;
/// Ports that a flow may try, one after the other. A hash sends each to a queue of another thread with half the chance with two
/// threads: of 256 flows one finds none.
const PORTS_OF_A_FLOW: usize = 8;
/// How often a run of free ports is looked for. A guess; on a host with few sockets the first is one.
const TRIES: usize = 64;
/// Frames of a queue, least and most; between them as many as there may be requests under way.
const FRAMES: (usize, usize) = (64, 2048);

/// The program on the device, and what each thread has.
pub(crate) struct Ground {
    pub(super) shares: Vec<Share>,
    /// Queues of the device that replies are taken from.
    pub(super) queues: u32,
    /// Stays as long as requests are under way.
    _redirect: Redirect,
}

/// Source ports of each thread: one for each of the workload's sockets, and then more of the same sockets.
pub(super) fn ports_of_a_thread(workload: &Workload) -> usize {
    let tries = match workload.threads {
        // Every queue is its own.
        1 => 1,
        threads => (LARGEST_RUN / (threads * workload.sockets)).clamp(1, PORTS_OF_A_FLOW),
    };
    workload.sockets * tries
}

/// What one thread has: a socket for each of its source ports, and its queues.
pub(crate) struct Share {
    pub(super) ports: Vec<OwnedFd>,
    pub(super) queue: Queue,
}

/// Where frames go and how they come back.
struct Way {
    device: Device,
    queues: Queues,
    source: IpAddr,
    /// Ours and the next hop's.
    macs: [[u8; 6]; 2],
}

/// Opens everything in the calling thread's namespace. `wish` is what a socket must be.
pub(super) fn open(
    workload: &Workload,
    at: &XdpDevice,
    wish: &Wish,
    longest_request: usize,
) -> Result<Ground, Error> {
    let refuse = |step, remedy| refusal(at, workload.target, step, remedy);
    // Any socket of the namespace can ask about its devices.
    let probe = socket::open(wish)?;
    let way = find_way(workload, at, &probe)?;
    check_fit(workload, at, &way, &probe, longest_request)?;
    let each = ports_of_a_thread(workload);
    let ports = workload.threads * each;
    let (first_port, sockets) = reserve(wish, way.source, ports)?;
    let xsks = (0..way.queues.receive)
        .map(|queue| Xsk::bind(way.device.index(), queue, frames(workload)))
        .collect::<io::Result<Vec<_>>>()
        .map_err(refuse(
            "open a socket of AF_XDP on each queue",
            "run as root or grant CAP_NET_RAW and CAP_NET_ADMIN, check that no other program has the queues and that the kernel has \
             CONFIG_XDP_SOCKETS (Linux 5.9 or newer)",
        ))?;
    let takers: Vec<_> = (0..)
        .zip(&xsks)
        .map(|(queue, xsk)| Taker {
            share: (queue as usize % workload.threads) as u16,
            queue,
            xsk,
        })
        .collect();
    let filter = Filter {
        to: way.source,
        ports: first_port..=first_port + (ports - 1) as u16,
        from: Some(workload.target),
    };
    let redirect = Redirect::attach(&way.device, at.mode, &filter, each as u16, &takers).map_err(refuse(
        "attach the program that takes the replies",
        "run as root or grant CAP_BPF and CAP_NET_ADMIN, use the generic mode where the driver has no XDP (on veth, native \
         needs as many receive queues as the peer has transmit queues), and check that no other XDP program is attached",
    ))?;
    let shares = share_out(workload, &way, first_port, sockets, xsks);
    Ok(Ground {
        queues: way.queues.receive,
        shares,
        _redirect: redirect,
    })
}

fn find_way(workload: &Workload, at: &XdpDevice, probe: &OwnedFd) -> Result<Way, Error> {
    let target = workload.target;
    let refuse = |step, remedy| refusal(at, target, step, remedy);
    let because = |step, why: &str, remedy| Err(refuse(step, remedy)(io::Error::other(why)));
    let device = Device::find(&at.device).map_err(refuse(
        "find the device",
        "name one of this network namespace (ip link)",
    ))?;
    let netlink = Netlink::open().map_err(refuse(
        "ask for the route",
        "check that this process may open netlink sockets",
    ))?;
    let route = path::route(&netlink, target, workload.source).map_err(refuse(
        "find a route",
        "check the route and the source address (ip route get)",
    ))?;
    if route.device != device.index() || !route.leaves {
        return because(
            "reach the target through the device",
            "the route uses another device",
            "name the device that `ip route get` shows, and a target on another host or in another namespace",
        );
    }
    let (Some(source), Some(next)) = (route.source, route.next) else {
        return because(
            "find a route",
            "it has no source address, or a router of another address family",
            "load without AF_XDP, or name the source address",
        );
    };
    let ours = device.mac(probe).map_err(refuse(
        "read the device's address",
        "use a device with Ethernet frames",
    ))?;
    let theirs = path::neighbour(&netlink, device.index(), next).map_err(refuse(
        "look up the neighbour",
        "run as root or grant CAP_NET_ADMIN",
    ))?;
    let Some(theirs) = theirs else {
        return because(
            "find the Ethernet address of the next hop",
            "no answer",
            "check that the target or its router is up (ip neigh)",
        );
    };
    Ok(Way {
        queues: device.queues(probe),
        device,
        source,
        macs: [ours, theirs],
    })
}

/// Refuses what this device cannot carry.
fn check_fit(
    workload: &Workload,
    at: &XdpDevice,
    way: &Way,
    probe: &OwnedFd,
    longest_request: usize,
) -> Result<(), Error> {
    let contradiction = |why| {
        Err(Error::Workload {
            target: workload.target.into(),
            why,
        })
    };
    let queues = way.queues.receive.min(way.queues.transmit) as usize;
    if workload.threads > queues {
        return contradiction(format!(
            "{} threads need a queue of {} each, but it has {queues}; use fewer --threads, or give it more queues",
            workload.threads, at.device
        ));
    }
    let mtu = way.device.mtu(probe).map_err(refusal(
        at,
        workload.target,
        "read the device's MTU",
        "report this as a bug",
    ))?;
    let most = largest_payload(workload.target, mtu);
    if longest_request > most {
        return contradiction(format!(
            "a request has {longest_request} bytes, but a frame of {} carries at most {most}, and AF_XDP sends no fragments; use a \
             smaller size or load without AF_XDP",
            at.device
        ));
    }
    Ok(())
}

/// UDP sockets on `count` ports side by side, and the first of the ports.
fn reserve(wish: &Wish, source: IpAddr, count: usize) -> Result<(u16, Vec<OwnedFd>), Error> {
    let at = |port| {
        socket::open(&Wish {
            source: Some(source),
            port,
            ..*wish
        })
    };
    let mut last = None;
    for _ in 0..TRIES {
        let first = at(0)?;
        let from = socket::local_port(&first).map_err(|error| Error::Socket {
            step: "read the port of a socket",
            target: wish.target.into(),
            source_ip: Some(source),
            error,
            remedy: "report this as a bug",
        })?;
        let others = (1..count).map(|nth| {
            let port = usize::from(from) + nth;
            // Above the last port: as good as taken.
            at(u16::try_from(port).unwrap_or(from))
        });
        let all: Result<Vec<_>, _> = std::iter::once(Ok(first)).chain(others).collect();
        match all {
            Ok(sockets) => return Ok((from, sockets)),
            Err(error) if error.is_port_in_use() => last = Some(error),
            Err(error) => return Err(error),
        }
    }
    Err(last.expect("a try that does not return leaves its error"))
}

fn frames(workload: &Workload) -> Frames {
    let of_a_thread = workload.sockets.saturating_mul(workload.depth);
    let within = |count: usize| count.clamp(FRAMES.0, FRAMES.1).next_power_of_two() as u32;
    Frames {
        // All replies may come by one queue.
        receive: within(of_a_thread.saturating_mul(workload.threads)),
        own: within(of_a_thread),
    }
}

fn share_out(
    workload: &Workload,
    way: &Way,
    first_port: u16,
    sockets: Vec<OwnedFd>,
    xsks: Vec<Xsk>,
) -> Vec<Share> {
    let mut queues: Vec<Vec<Xsk>> = (0..workload.threads).map(|_| Vec::new()).collect();
    for (queue, xsk) in xsks.into_iter().enumerate() {
        queues[queue % workload.threads].push(xsk);
    }
    let each = ports_of_a_thread(workload);
    let mut sockets = sockets.into_iter();
    let share = |(thread, xsks)| {
        let port = first_port + thread * each as u16;
        let flow = |nth| {
            let from = SocketAddr::new(way.source, port + nth);
            Flow::new(way.macs, from, workload.target)
                .expect("the kernel's source address is of the target's family")
        };
        let (target, device) = (workload.target, way.device.index());
        Share {
            ports: sockets.by_ref().take(each).collect(),
            queue: Queue::new(
                xsks,
                workload.sockets,
                (0..each as u16).map(flow).collect(),
                port,
                target,
                device,
            ),
        }
    };
    (0_u16..).zip(queues).map(share).collect()
}

fn refusal(
    at: &XdpDevice,
    target: SocketAddr,
    step: &'static str,
    remedy: &'static str,
) -> impl FnOnce(io::Error) -> Error {
    let device = at.device.clone();
    move |error| Error::AfXdp {
        step,
        device,
        target: target.into(),
        error,
        remedy,
    }
}
