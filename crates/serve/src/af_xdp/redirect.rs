//! The program that hands datagrams to `AF_XDP` sockets, on its device.

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::ops::RangeInclusive;
use std::os::fd::{AsFd as _, AsRawFd as _, OwnedFd};

use crate::bpf::xdp_redirect::program;
use crate::udp::XdpMode;
use rungwise_bpf::{self as bpf, License, Map, MapKind, ProgramKind};

use super::{Device, Xsk};

/// Which datagrams are taken: unicast, UDP, whole and without options, and these.
#[derive(Clone, Debug)]
pub struct Filter {
    /// Where they go to; an unspecified address is any.
    pub to: IpAddr,
    /// And to which ports.
    pub ports: RangeInclusive<u16>,
    /// Where they come from, if not from anywhere.
    pub from: Option<SocketAddr>,
}

impl Filter {
    /// What is sent to one address and port.
    pub(crate) fn to(listen: SocketAddr) -> Self {
        Self {
            to: listen.ip(),
            ports: listen.port()..=listen.port(),
            from: None,
        }
    }
}

/// A socket and what is its own: of one share of the ports, what arrives on its queue.
#[derive(Clone, Copy)]
pub struct Taker<'a> {
    /// Which share of the filter's ports.
    pub share: u16,
    /// The queue that `xsk` is bound to.
    pub queue: u32,
    /// The socket.
    pub xsk: &'a Xsk,
}

/// The program on its device; dropping it takes it off, and so does the end of the process, however it ends.
#[derive(Debug)]
pub struct Redirect {
    _link: OwnedFd,
    _sockets: Map<i32>,
    program: u32,
    device: u32,
}

impl Redirect {
    /// Puts the program on `device`. The filter's ports fall into shares of `ports_each`; what arrives for a share on a
    /// queue without a taker goes on to the stack.
    pub fn attach(
        device: &Device,
        mode: XdpMode,
        filter: &Filter,
        ports_each: u16,
        takers: &[Taker<'_>],
    ) -> io::Result<Self> {
        let beyond = |of: fn(&Taker<'_>) -> u32| takers.iter().map(of).max().map_or(1, |n| n + 1);
        let queues = beyond(|taker| taker.queue);
        let shares = beyond(|taker| u32::from(taker.share));
        let entries = (queues * shares) as usize;
        let sockets = Map::new(MapKind::XdpSockets, entries)?;
        for taker in takers {
            let at = u32::from(taker.share) * queues + taker.queue;
            sockets.set(at, &taker.xsk.fd().as_raw_fd())?;
        }
        let code = program(filter, ports_each, queues, sockets.as_fd());
        let program = bpf::load(ProgramKind::Xdp, License::Apache, &code)?;
        let link = bpf::attach_xdp(&program, device.index(), mode == XdpMode::Native)?;
        let (program, device) = bpf::link_program(&link)?;
        Ok(Self {
            _link: link,
            _sockets: sockets,
            program,
            device,
        })
    }
}

impl std::fmt::Display for Redirect {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(
            f,
            "program {} on device {} by bpf link info",
            self.program, self.device
        )
    }
}
