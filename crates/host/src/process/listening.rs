//! The addresses on which a service listens, for the message that it is not ready where it was expected.
//!
//! The kernel lists the sockets of a network namespace (`sock_diag`), `/proc/PID/fd` shows their owners. A UDP socket
//! counts where it is not connected: the kernel knows no listening of datagrams, so a client's socket is among them.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::io;
use std::net::SocketAddr;

use rungwise_model::kernel::{Answer, Endpoint, Owner, Question};

use crate::ask;

/// `TCP_LISTEN` of `include/net/tcp_states.h`.
const LISTEN: u8 = 10;
/// The number of sockets named; more add nothing about a missing port.
const NAMED: usize = 8;

/// A socket that takes connections or datagrams.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Listening {
    protocol: &'static str,
    address: SocketAddr,
    owner: String,
}

impl Listening {
    /// What is sent to `wanted` arrives here.
    pub(super) fn serves(&self, protocol: &str, wanted: SocketAddr) -> bool {
        let any = self.address.ip().is_unspecified();
        self.protocol == protocol
            && self.address.port() == wanted.port()
            && (any || self.address.ip() == wanted.ip())
    }
}

impl fmt::Display for Listening {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {} ({})", self.protocol, self.address, self.owner)
    }
}

/// The listening sockets of the calling thread's network namespace that `is_member` processes have open.
pub(super) fn find(is_member: impl Fn(u32) -> bool) -> io::Result<Vec<Listening>> {
    let mut open: BTreeMap<u64, (&'static str, Endpoint)> = BTreeMap::new();
    if let Answer::Tcp(sockets) = ask::answer(Question::Tcp)? {
        let listening = sockets.iter().filter(|socket| socket.state == LISTEN);
        open.extend(listening.map(|socket| (socket.inode, ("tcp", socket.local))));
    }
    if let Answer::Udp(sockets) = ask::answer(Question::Udp)? {
        let bound = sockets.iter().filter(|socket| socket.remote.port == 0);
        open.extend(bound.map(|socket| (socket.inode, ("udp", socket.local))));
    }
    let owners = ask::owners_of(&open.keys().copied().collect())?;
    let all: BTreeSet<Listening> = open
        .iter()
        .filter_map(|(inode, (protocol, local))| {
            let Owner { pid, name } = owners.get(inode)?;
            is_member(*pid).then(|| Listening {
                protocol,
                address: SocketAddr::new(local.address, local.port),
                owner: format!("{name}, pid {pid}"),
            })
        })
        .collect();
    Ok(all.into_iter().collect())
}

/// What a service listens on, as the part of a sentence about it.
pub(super) fn in_words(listening: &io::Result<Vec<Listening>>) -> String {
    match listening {
        Ok(all) if all.is_empty() => "it listens on no TCP or UDP port".to_owned(),
        Ok(all) => {
            let named: Vec<String> = all.iter().take(NAMED).map(Listening::to_string).collect();
            let more = match all.len().saturating_sub(NAMED) {
                0 => String::new(),
                more => format!(" and {more} more"),
            };
            format!("it listens on {}{more}", named.join(", "))
        }
        Err(error) => format!("what it listens on is unknown ({error})"),
    }
}

#[cfg(test)]
mod tests {
    use std::net::{TcpListener, UdpSocket};

    use super::*;

    #[test]
    fn listening_sockets_are_named_with_their_owner_and_connected_ones_are_not() {
        let tcp = TcpListener::bind("127.0.0.1:0").unwrap();
        let udp = UdpSocket::bind("[::]:0").unwrap();
        let connected = UdpSocket::bind("127.0.0.1:0").unwrap();
        connected.connect(tcp.local_addr().unwrap()).unwrap();
        let us = std::process::id();
        let all = find(|pid| pid == us).unwrap();
        let has = |protocol: &str, address: SocketAddr| {
            all.iter()
                .any(|one| one.protocol == protocol && one.address == address)
        };
        assert!(has("tcp", tcp.local_addr().unwrap()), "{all:?}");
        let udp = udp.local_addr().unwrap();
        assert!(has("udp", udp), "{all:?}");
        assert!(!has("udp", connected.local_addr().unwrap()), "{all:?}");
        let any = all.iter().find(|one| one.address == udp).unwrap();
        assert!(any.serves("udp", SocketAddr::new([127, 0, 0, 1].into(), udp.port())));
        assert!(!any.serves("tcp", udp));
        assert!(any.to_string().ends_with(&format!("pid {us})")), "{any}");
        assert!(find(|_| false).unwrap().is_empty());
    }

    #[test]
    fn a_long_list_is_cut_and_an_empty_one_says_so() {
        let one = |port| Listening {
            protocol: "tcp",
            address: ([127, 0, 0, 1], port).into(),
            owner: "server, pid 7".to_owned(),
        };
        let words = in_words(&Ok((1..=10).map(one).collect()));
        assert!(
            words.contains("tcp 127.0.0.1:8 (server, pid 7) and 2 more"),
            "{words}"
        );
        assert!(in_words(&Ok(Vec::new())).contains("no TCP or UDP port"));
    }
}
