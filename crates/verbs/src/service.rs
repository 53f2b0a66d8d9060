//! Finds the process of a service that is named by its ports, on this machine: in this network namespace, else in another one.

use std::collections::BTreeSet;

use anyhow::Context as _;
use rungwise_host::live::Live;
use rungwise_host::{Host, namespace};
use rungwise_model::Exit;
use rungwise_model::kernel::TcpSocket;
use rungwise_model::service::ServicePort;

use crate::problem::Problem;

/// `TCP_LISTEN` of `include/net/tcp_states.h`.
const LISTEN: u8 = 10;

/// Ports of a service: the kernel compares each socket with all of them.
const MOST_PORTS: usize = 64;

/// The process that listens on one of the ports; where none does here, the one that has all connections to them. None if there are
/// several, or if it cannot be seen.
pub(crate) fn process(ports: &[ServicePort]) -> anyhow::Result<Option<u32>> {
    if ports.len() > MOST_PORTS {
        let why = anyhow::anyhow!(
            "--socket is given {} times, and {MOST_PORTS} ports are judged at most; name those of one service",
            ports.len()
        );
        return Err(Problem::with(Exit::Usage, why));
    }
    let own = Live
        .tcp_of(ports)
        .context("cannot list the TCP sockets of this host; run as root, outside of a sandbox")?;
    if !own.is_empty() {
        // A socket may have been handed to a process that lives in another network namespace, where it has none of the others.
        let here = Live.netns().ok();
        return Ok(owner(&own).filter(|pid| namespace::of_process(*pid).ok() == here));
    }
    let networks = Live.other_networks().unwrap_or_default();
    let mut is_hidden = false;
    for (inode, link) in networks {
        let Ok(sockets) = Live.tcp_in(&link, ports) else {
            is_hidden = true;
            continue;
        };
        if sockets.is_empty() {
            continue;
        }
        let pid = owner(&sockets);
        let pid = pid.filter(|pid| namespace::of_process(*pid).is_ok_and(|its| its == inode));
        return pid.map(Some).ok_or_else(|| {
            let why = anyhow::anyhow!(
                "cannot judge {}: its sockets are in another network namespace ({}), and no single process there has them open; enter it: nsenter \
                 --net={} rungwise check --socket {}",
                words(ports),
                link.display(),
                link.display(),
                ports[0]
            );
            Problem::with(Exit::Precondition, why)
        });
    }
    let searched = if is_hidden {
        "here; other network namespaces cannot be searched without root: run as root, or check the port with `ss -tan`"
    } else {
        "here or in another network namespace of this machine; start the service, or check the port with `ss -tan`"
    };
    let why = anyhow::anyhow!(
        "cannot judge {}: no process listens there and no connection leads to it, {searched}",
        words(ports)
    );
    Err(Problem::with(Exit::Precondition, why))
}

/// The ports as one phrase.
pub(crate) fn words(ports: &[ServicePort]) -> String {
    let ports: Vec<String> = ports.iter().map(ToString::to_string).collect();
    ports.join(", ")
}

fn owner(sockets: &[TcpSocket]) -> Option<u32> {
    let owners = |sockets: BTreeSet<u64>| -> BTreeSet<u32> {
        let owners = Live.owners_of(&sockets).unwrap_or_default();
        owners.into_values().map(|owner| owner.pid).collect()
    };
    let (listening, connections): (Vec<_>, Vec<_>) = sockets
        .iter()
        .filter(|socket| socket.inode != 0)
        .partition(|socket| socket.state == LISTEN);
    let inodes = |sockets: Vec<&TcpSocket>| sockets.iter().map(|socket| socket.inode).collect();
    // The service manager keeps a socket open that it hands to a service.
    let listens = owners(inodes(listening)).into_iter().find(|pid| *pid != 1);
    if listens.is_some() {
        return listens;
    }
    let pids = owners(inodes(connections));
    match pids.len() {
        1 => pids.first().copied(),
        _ => None,
    }
}
