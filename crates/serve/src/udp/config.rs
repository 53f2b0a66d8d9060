//! Configuration of a server: every switch is independent of the others, and off or plain by default.

use std::fmt;
use std::net::SocketAddr;
use std::str::FromStr;

use crate::config::{BusyPoll, Pin, Shared, Steering};
use crate::error::{Error, Transport};

/// How a server listens and works.
#[derive(Clone, Debug, PartialEq, Eq)]
#[expect(clippy::struct_excessive_bools, reason = "each is a switch of its own")]
pub struct Config {
    /// Address and port to bind. Port 0 lets the kernel choose; `[::]` serves IPv4 as well. On a wildcard
    /// address each reply leaves from the address that its request came to (`IP_PKTINFO`).
    pub listen: SocketAddr,
    /// Worker threads, 1 to 1024.
    pub workers: usize,
    /// A socket per worker in one `SO_REUSEPORT` group (Linux 3.9), instead of one socket shared by all.
    pub reuseport: bool,
    /// Which socket of the group a datagram goes to.
    pub steering: Steering,
    /// Where workers run.
    pub pin: Pin,
    /// How to send replies above the path MTU.
    pub path_mtu: PathMtu,
    /// How datagrams pass between kernel and worker.
    pub io: Io,
    /// `UDP_GRO` (Linux 5.0): receive a burst of one flow as one large datagram. Helps only bursts of one flow;
    /// request-response traffic of many clients pays about 10 % for nothing.
    pub gro: bool,
    /// `UDP_SEGMENT` (Linux 4.18): send consecutive replies of one size to one peer as one large datagram.
    /// Helps only bursts of one flow.
    pub gso: bool,
    /// Poll the device's queue from the socket instead of waiting for its interrupt.
    pub busy_poll: Option<BusyPoll>,
    /// Receive buffer of each socket, bytes; above `net.core.rmem_max` only with `CAP_NET_ADMIN`.
    pub rcvbuf: Option<usize>,
    /// Send buffer of each socket, bytes; above `net.core.wmem_max` only with `CAP_NET_ADMIN`.
    pub sndbuf: Option<usize>,
    /// `SO_INCOMING_CPU` (Linux 4.4): prefer the socket whose CPU runs the softirq; obeyed within a
    /// reuseport group since Linux 6.2. The CPU is the one a worker is pinned to, else the i-th allowed one.
    pub incoming_cpu: bool,
    /// Answer inside the kernel, before any socket; the handler sees only what the program passes on.
    pub xdp_echo: Option<XdpDevice>,
    /// Take datagrams from the device's receive queues by `AF_XDP` (Linux 5.9), worker i from queue i, and answer
    /// there, bypassing the network stack with its firewall and its counters. Needs a specific address and replies on the
    /// path of each request. What the device's program passes on is served from the sockets as usual. On veth
    /// use native mode: in generic mode a frame of queue 1 or above is counted for the queue below it.
    pub af_xdp: Option<XdpDevice>,
    /// If the kernel refuses a switch, continue without it and report that in the read-back.
    pub fallback: bool,
}

impl Config {
    /// One worker, one socket, every switch off.
    pub fn new(listen: SocketAddr) -> Self {
        Self {
            listen,
            workers: 1,
            reuseport: false,
            steering: Steering::FlowHash,
            pin: Pin::Free,
            path_mtu: PathMtu::Want,
            io: Io::Single,
            gro: false,
            gso: false,
            busy_poll: None,
            rcvbuf: None,
            sndbuf: None,
            incoming_cpu: false,
            xdp_echo: None,
            af_xdp: None,
            fallback: false,
        }
    }

    /// What it has in common with every server.
    pub(super) fn shared(&self) -> Shared<'_> {
        Shared {
            transport: Transport::Udp,
            listen: self.listen,
            workers: self.workers,
            reuseport: self.reuseport,
            steering: &self.steering,
            pin: &self.pin,
            rcvbuf: self.rcvbuf,
            sndbuf: self.sndbuf,
            incoming_cpu: self.incoming_cpu,
            fallback: self.fallback,
        }
    }

    /// Refuses a configuration that contradicts itself on any kernel.
    pub(super) fn check(&self) -> Result<(), Error> {
        let refuse = |what: String| Err(Error::Config(what));
        self.shared().check()?;
        if let Io::Batch(datagrams) = self.io
            && !(1..=1024).contains(&datagrams)
        {
            return refuse(format!(
                "a batch of {datagrams} requested; choose 1 to 1024"
            ));
        }
        if self.xdp_echo.is_some() && self.listen.port() == 0 {
            return refuse("the XDP echo needs a port; name one instead of 0".to_owned());
        }
        if self.af_xdp.is_some() {
            if self.listen.ip().is_unspecified() {
                return refuse(
                    "AF_XDP receives datagrams before the host checks their address; name the address to serve"
                        .to_owned(),
                );
            }
            if self.xdp_echo.is_some() {
                return refuse(
                    "a device runs one XDP program; choose the XDP echo or AF_XDP".to_owned(),
                );
            }
            if self.io == Io::Uring {
                return refuse(
                    "a worker cannot wait for io_uring and AF_XDP at once; choose one".to_owned(),
                );
            }
        }
        Ok(())
    }
}

/// `IP_MTU_DISCOVER` and `IPV6_MTU_DISCOVER`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PathMtu {
    /// The kernel's default: fragment what is too large.
    Want,
    /// Never fragment. Spares the choice of an IP identification per datagram; a reply above the path's MTU is
    /// counted as a send error (`EMSGSIZE`).
    Do,
}

/// How datagrams pass between kernel and worker.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Io {
    /// `recvfrom` and `sendto`: two system calls per transaction.
    Single,
    /// `recvmmsg` and `sendmmsg` (Linux 3.0): up to this many datagrams per call, never waiting for more than one.
    Batch(usize),
    /// `io_uring` (Linux 6.1): multishot receive into a ring of provided buffers, replies submitted together,
    /// one system call per round.
    Uring,
}

impl fmt::Display for Io {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Single => f.write_str("single"),
            Self::Batch(datagrams) => write!(f, "batch of {datagrams}"),
            Self::Uring => f.write_str("io_uring"),
        }
    }
}

/// Where an XDP program sits.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct XdpDevice {
    /// Name of the device whose received frames it sees.
    pub device: String,
    /// Where in the receive path it runs.
    pub mode: XdpMode,
}

impl FromStr for XdpDevice {
    type Err = String;

    /// Reads `DEVICE`, `DEVICE:generic` or `DEVICE:native`.
    fn from_str(text: &str) -> Result<Self, String> {
        let (device, mode) = match text.split_once(':') {
            None => (text, XdpMode::Generic),
            Some((device, "generic")) => (device, XdpMode::Generic),
            Some((device, "native")) => (device, XdpMode::Native),
            Some((_, other)) => {
                return Err(format!(
                    "cannot run an XDP program '{other}'; write DEVICE or DEVICE:native"
                ));
            }
        };
        if device.is_empty() {
            return Err(
                "the name of the device is missing; write DEVICE or DEVICE:native".to_owned(),
            );
        }
        Ok(Self {
            device: device.to_owned(),
            mode,
        })
    }
}

impl fmt::Display for XdpDevice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.device)?;
        match self.mode {
            XdpMode::Generic => Ok(()),
            XdpMode::Native => f.write_str(":native"),
        }
    }
}

/// Where in the receive path an XDP program runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum XdpMode {
    /// After the socket buffer is made; works on every device.
    Generic,
    /// In the driver. The echo on veth is *slower* so than generic, answers IPv4 with a zeroed UDP checksum (peers see
    /// no checksum) and leaves IPv6 to the socket, because frames there carry unfinished checksums. And on veth
    /// the *peer* device must carry a native program too, whichever, or the replies lie in its ring until
    /// something else wakes it (`veth_xdp_flush` in drivers/net/veth.c looks for one, not for its NAPI).
    Native,
}
