//! Configuration of a TCP server: every switch is independent of the others, and off or plain by default.

use std::fmt;
use std::net::SocketAddr;
use std::time::Duration;

use crate::config::{BusyPoll, Pin, Shared, Steering};
use crate::error::{Error, Transport};

/// How a server listens and works.
#[derive(Clone, Debug, PartialEq, Eq)]
#[expect(clippy::struct_excessive_bools, reason = "each is a switch of its own")]
pub struct Config {
    /// Address and port to listen on. Port 0 lets the kernel choose; `[::]` serves IPv4 as well.
    pub listen: SocketAddr,
    /// Worker threads, 1 to 1024.
    pub workers: usize,
    /// A listener per worker in one `SO_REUSEPORT` group (Linux 3.9), instead of one listener shared by all.
    pub reuseport: bool,
    /// Which listener of the group a connection goes to: decided at its SYN.
    pub steering: Steering,
    /// Where workers run.
    pub pin: Pin,
    /// Connections that may wait to be accepted, at each listener; `net.core.somaxconn` at most. Absent: 4096, or less where
    /// that is the maximum.
    pub backlog: Option<u32>,
    /// `TCP_NODELAY`: send small replies while earlier ones are not acknowledged.
    pub nodelay: bool,
    /// `TCP_DEFER_ACCEPT` (Linux 2.4): a connection is accepted when its first bytes arrive, or after this time; rounded up
    /// to seconds, and further by the kernel.
    pub defer_accept: Option<Duration>,
    /// How workers wait, receive and send.
    pub io: Io,
    /// Poll the devices' queues from epoll instead of waiting for interrupts (`EPIOCSPARAMS`, Linux 6.9).
    pub busy_poll: Option<BusyPoll>,
    /// Receive buffer of each connection, bytes; above `net.core.rmem_max` only with `CAP_NET_ADMIN`. Turns off its
    /// automatic sizing.
    pub rcvbuf: Option<usize>,
    /// Send buffer of each connection, bytes; above `net.core.wmem_max` only with `CAP_NET_ADMIN`. Turns off its
    /// automatic sizing.
    pub sndbuf: Option<usize>,
    /// `SO_INCOMING_CPU` (Linux 4.4): prefer the listener whose CPU handled the SYN; obeyed within a reuseport group since
    /// Linux 6.2. The CPU is the one a worker is pinned to, else the i-th allowed one.
    pub incoming_cpu: bool,
    /// Send what a handler gives to [`Reply::broadcast`] to every connection; with epoll alone.
    ///
    /// [`Reply::broadcast`]: super::Reply::broadcast
    pub broadcast: bool,
    /// A table of descriptors for each worker ([`files::own_table`]), so that each may have as many connections as the limit on open
    /// files allows; with epoll and `reuseport` alone.
    ///
    /// [`files::own_table`]: crate::files::own_table
    pub own_tables: bool,
    /// If the kernel refuses a switch, continue without it and report that in the read-back.
    pub fallback: bool,
}

impl Config {
    /// One worker, one listener, every switch off.
    pub fn new(listen: SocketAddr) -> Self {
        Self {
            listen,
            workers: 1,
            reuseport: false,
            steering: Steering::FlowHash,
            pin: Pin::Free,
            backlog: None,
            nodelay: false,
            defer_accept: None,
            io: Io::Epoll,
            busy_poll: None,
            rcvbuf: None,
            sndbuf: None,
            incoming_cpu: false,
            broadcast: false,
            own_tables: false,
            fallback: false,
        }
    }

    /// What it has in common with every server.
    pub(super) fn shared(&self) -> Shared<'_> {
        Shared {
            transport: Transport::Tcp,
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
        self.shared().check()?;
        if let Some(backlog) = self.backlog
            && (backlog == 0 || i32::try_from(backlog).is_err())
        {
            return Err(Error::Config(format!(
                "a backlog of {backlog} requested; choose 1 to {}",
                i32::MAX
            )));
        }
        if self.io == Io::Uring && self.busy_poll.is_some() {
            return Err(Error::Config(
                "workers poll the devices' queues from epoll; choose io_uring or busy polling"
                    .to_owned(),
            ));
        }
        if self.io == Io::Uring && (self.broadcast || self.own_tables) {
            return Err(Error::Config(
                "messages to every connection and tables of descriptors for each worker need epoll; choose it"
                    .to_owned(),
            ));
        }
        if self.own_tables && !self.reuseport {
            return Err(Error::Config(
                "a table of descriptors for each worker needs a listener for each; enable reuseport"
                    .to_owned(),
            ));
        }
        if self.defer_accept == Some(Duration::ZERO) {
            return Err(Error::Config(
                "accepting deferred by no time; name one or leave it out".to_owned(),
            ));
        }
        Ok(())
    }
}

/// How workers wait for connections, receive and send.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Io {
    /// `epoll`, `recv` and `send`: what is ready is reported together, and each connection is served by calls of its own.
    Epoll,
    /// `io_uring` (Linux 6.1): multishot receives into a ring of provided buffers, replies submitted together, one system call per
    /// round.
    Uring,
}

impl fmt::Display for Io {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Epoll => "epoll",
            Self::Uring => "io_uring",
        })
    }
}
