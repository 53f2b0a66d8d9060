//! What the kernel shows of a TCP service under load: its processes, its listening sockets, and which process has how many connections.
//!
//! That is how a reader sees that a change of processes or listeners is in force, and whether one process does the work of all. It is read once
//! a run, when the window begins: connections are there then, and gone when it ends. That takes 2.5 ms of a thread which sends nothing (100
//! processes, 64 connections, unoptimised build), in both halves of a pair alike. The kernel lists the sockets (`sock_diag`),
//! `/proc/PID/fd` shows whose they are.

use std::collections::BTreeSet;
use std::io;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, PoisonError};

use rungwise_host::{Host, process};
use rungwise_load::engine::Edge;
use rungwise_load::parameters::{Load, Probe, Target};
use rungwise_model::kernel::{Answer, Question, TcpSocket};
use rungwise_model::tune::Served;

use super::service::Running;
use super::topology::Topology;

/// `TCP_LISTEN` of `include/net/tcp_states.h`.
const LISTEN: u8 = 10;

/// Reads the sockets of a service once.
pub(super) struct Witness {
    host: Arc<dyn Host>,
    target: SocketAddr,
    members: Box<dyn Fn() -> io::Result<Vec<u32>> + Send + Sync>,
    seen: Mutex<Option<Served>>,
}

impl Witness {
    /// For a service that `load` reaches over TCP at `target`.
    pub(super) fn for_service(
        topology: &Topology,
        running: &Running,
        load: &dyn Load,
        target: &Target,
    ) -> Option<Self> {
        if !matches!(load.probe(), Probe::Connection) {
            return None;
        }
        let target = target.address()?;
        let members: Box<dyn Fn() -> io::Result<Vec<u32>> + Send + Sync> =
            if let Some(server) = topology.server_namespace() {
                Box::new(server.processes_fn())
            } else {
                let processes = running.processes()?;
                Box::new(move || processes.members())
            };
        Some(Self {
            host: topology.seen(),
            target,
            members,
            seen: Mutex::new(None),
        })
    }

    /// Reads the sockets where the window begins.
    pub(super) fn at(&self, edge: Edge) {
        if matches!(edge, Edge::Began) {
            let mut seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
            // It is evidence beside the measurement: where it cannot be had, it is missing.
            *seen = self.read_sockets().ok();
        }
    }

    /// What it saw.
    pub(super) fn seen(self) -> Option<Served> {
        self.seen
            .into_inner()
            .unwrap_or_else(PoisonError::into_inner)
    }

    fn read_sockets(&self) -> io::Result<Served> {
        let sockets = match self.host.ask(Question::Tcp)? {
            Answer::Tcp(sockets) => sockets,
            _ => Vec::new(),
        };
        let open = (self.members)()?.into_iter();
        let open = open.map(|pid| match process::sockets(pid) {
            // One that ended meanwhile has none any more.
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(BTreeSet::new()),
            read => read,
        });
        let open: io::Result<Vec<BTreeSet<u64>>> = open.collect();
        Ok(served(&sockets, self.target, open?))
    }
}

/// What `sockets` say about a service at `target` whose processes have these sockets open.
fn served(sockets: &[TcpSocket], target: SocketAddr, open: Vec<BTreeSet<u64>>) -> Served {
    let here: Vec<&TcpSocket> = sockets
        .iter()
        .filter(|socket| {
            let local = socket.local;
            let any = local.address.is_unspecified();
            local.port == target.port() && (any || local.address == target.ip())
        })
        .collect();
    let (listening, connected): (Vec<&TcpSocket>, _) =
        here.into_iter().partition(|socket| socket.state == LISTEN);
    let mut connected: BTreeSet<u64> = connected.into_iter().map(|socket| socket.inode).collect();
    let processes = open.len() as u32;
    let mut connections: Vec<u32> = open
        .into_iter()
        .map(|open| {
            let all = connected.len();
            // A socket that several processes have open is that of the first.
            connected.retain(|inode| !open.contains(inode));
            (all - connected.len()) as u32
        })
        .filter(|count| *count > 0)
        .collect();
    connections.sort_unstable_by(|a, b| b.cmp(a));
    Served {
        processes,
        listeners: listening.len() as u32,
        backlog: listening
            .iter()
            .map(|socket| socket.wqueue)
            .min()
            .unwrap_or_default(),
        connections,
    }
}

#[cfg(test)]
mod tests {
    use rungwise_model::kernel::Endpoint;

    use super::*;

    fn socket(local: &str, state: u8, inode: u64, wqueue: u32) -> TcpSocket {
        let end = |text: &str| {
            let end: SocketAddr = text.parse().unwrap();
            Endpoint {
                address: end.ip(),
                port: end.port(),
            }
        };
        TcpSocket {
            local: end(local),
            remote: end("10.0.0.2:5"),
            state,
            inode,
            rqueue: 0,
            wqueue,
            memory: None,
            info: None,
        }
    }

    #[test]
    fn connections_belong_to_the_process_that_has_them_open() {
        let target = "10.0.0.1:80".parse().unwrap();
        let sockets = [
            socket("0.0.0.0:80", LISTEN, 1, 511),
            socket("0.0.0.0:80", LISTEN, 2, 128),
            socket("0.0.0.0:81", LISTEN, 3, 1),
            socket("10.0.0.1:80", 1, 10, 0),
            socket("10.0.0.1:80", 1, 11, 0),
            socket("10.0.0.1:80", 8, 12, 0),
            // Not accepted yet, and another service's.
            socket("10.0.0.1:80", 1, 0, 0),
            socket("10.0.0.1:81", 1, 13, 0),
        ];
        // A parent that has the listening sockets, a worker with one connection, one with two.
        let open = [&[1, 2][..], &[1, 10], &[2, 11, 12, 13]];
        let open = open.map(|open| open.iter().copied().collect::<BTreeSet<u64>>());
        let served = served(&sockets, target, open.into());
        assert_eq!(
            served,
            Served {
                processes: 3,
                listeners: 2,
                backlog: 128,
                connections: vec![2, 1],
            }
        );
        assert_eq!(served.busiest(), Some(2.0 / 3.0));
        assert_eq!(Served::default().busiest(), None);
    }
}
