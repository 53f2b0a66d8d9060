//! What every server has in its configuration: workers, the group of their sockets, and where they run.

use std::fmt;
use std::net::SocketAddr;
use std::time::Duration;

use crate::error::{Error, Transport};

/// The part of a configuration that does not depend on the transport.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Shared<'a> {
    pub(crate) transport: Transport,
    pub(crate) listen: SocketAddr,
    pub(crate) workers: usize,
    pub(crate) reuseport: bool,
    pub(crate) steering: &'a Steering,
    pub(crate) pin: &'a Pin,
    pub(crate) rcvbuf: Option<usize>,
    pub(crate) sndbuf: Option<usize>,
    pub(crate) incoming_cpu: bool,
    pub(crate) fallback: bool,
}

impl Shared<'_> {
    /// Refuses a configuration that contradicts itself on any kernel.
    pub(crate) fn check(&self) -> Result<(), Error> {
        let refuse = |what: String| Err(Error::Config(what));
        if !(1..=1024).contains(&self.workers) {
            return refuse(format!(
                "{} workers requested; choose 1 to 1024",
                self.workers
            ));
        }
        if *self.steering != Steering::FlowHash && !self.reuseport {
            return refuse(format!(
                "{} picks a socket of a reuseport group, but there is one socket; enable reuseport",
                self.steering
            ));
        }
        if self.incoming_cpu && !self.reuseport {
            return refuse(
                "SO_INCOMING_CPU chooses among the sockets of a reuseport group, but there is one socket; enable reuseport"
                    .to_owned(),
            );
        }
        if let Steering::Ebpf { map } = self.steering
            && let Some(worker) = map.iter().find(|worker| **worker >= self.workers)
        {
            return refuse(format!(
                "the steering map names worker {worker}; the last one is {}",
                self.workers - 1
            ));
        }
        if *self.pin == Pin::Cpus(Vec::new()) {
            return refuse(
                "the list of CPUs to pin to is empty; name one or leave workers unpinned"
                    .to_owned(),
            );
        }
        Ok(())
    }
}

/// How the socket of the reuseport group is chosen for a datagram or a connection.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Steering {
    /// The kernel's own choice: a hash over addresses and ports.
    FlowHash,
    /// Classic BPF (Linux 4.5): the CPU that runs the softirq (of a connection: of its SYN), modulo the number of workers. Right when worker i
    /// is pinned to CPU i.
    Cbpf,
    /// eBPF with a socket array (Linux 4.19): any map from CPU to worker, for workers pinned to CPUs that are
    /// not 0, 1, 2...
    Ebpf {
        /// `map[cpu]` is the worker for that CPU. Empty: the worker pinned to it, and CPUs without a
        /// worker are distributed over the workers.
        map: Vec<usize>,
    },
}

impl fmt::Display for Steering {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::FlowHash => "steering by flow hash",
            Self::Cbpf => "CBPF steering by CPU",
            Self::Ebpf { .. } => "eBPF steering by CPU",
        })
    }
}

/// Where workers run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Pin {
    /// Wherever the scheduler puts them.
    Free,
    /// Worker i on the i-th CPU that the process may use, round the list.
    Allowed,
    /// Worker i on the i-th CPU of this list, round the list.
    Cpus(Vec<usize>),
}

/// `SO_BUSY_POLL` and its companions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BusyPoll {
    /// How long a receive spins on the device's queue before it sleeps; whole microseconds.
    pub time: Duration,
    /// `SO_PREFER_BUSY_POLL` (Linux 5.11): leave the device's interrupts off while this polls.
    pub prefer: bool,
    /// `SO_BUSY_POLL_BUDGET` (Linux 5.11): packets per poll; 0 leaves the kernel's choice.
    pub budget: u16,
}
