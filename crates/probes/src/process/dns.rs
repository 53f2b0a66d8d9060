//! Unanswered DNS queries: sockets of resolvers that stay open because no answer arrives.
//!
//! The resolver of the C library opens a UDP socket for each query and closes it with the answer. So a socket to port
//! 53 that was opened within the window and still exists half a second later waits for one. Sources:
//! `__res_context_send` of `resolv/res_send.c`, glibc 2.36; resolv.conf(5).

use std::collections::{BTreeMap, BTreeSet};

use rungwise_model::kernel::{Answer, Owner, UdpSocket};

use crate::Window;
use crate::capture::Reply;

/// Port of DNS.
const PORT: u16 = 53;

/// A query open for this long is late; an answer takes one round trip, or several if it is not cached.
const LATE_S: f64 = 0.5;

/// Limit of process lookups during the window: they cost more than all other reads.
const LOOKUPS: usize = 2;

/// Unanswered queries of a window.
pub(super) struct Query<'a> {
    pub(super) socket: &'a UdpSocket,
    /// It exists in every sample, so it may belong to a resolver that keeps its sockets.
    pub(super) always: bool,
}

/// The queries that exist in more than one sample, for at least half a second, without an answer.
pub(super) fn queries<'a>(window: &Window<'a>) -> Vec<Query<'a>> {
    struct Seen<'a> {
        socket: &'a UdpSocket,
        first_s: f64,
        last_s: f64,
        samples: usize,
    }
    let mut seen: BTreeMap<u64, Seen<'a>> = BTreeMap::new();
    let mut samples = 0;
    for moment in window.often() {
        let Some(Reply::Answer(Answer::Udp(sockets))) = moment.answers.get("udp") else {
            continue;
        };
        samples += 1;
        for socket in sockets.iter().filter(|socket| is_waiting(socket)) {
            let seen = seen.entry(socket.inode).or_insert(Seen {
                socket,
                first_s: moment.at_s,
                last_s: moment.at_s,
                samples: 0,
            });
            seen.last_s = moment.at_s;
            seen.samples += 1;
        }
    }
    let late = seen
        .into_values()
        .filter(|seen| seen.samples > 1 && seen.last_s - seen.first_s >= LATE_S);
    late.map(|seen| Query {
        socket: seen.socket,
        always: seen.samples == samples,
    })
    .collect()
}

fn is_waiting(socket: &UdpSocket) -> bool {
    socket.remote.port == PORT && socket.rqueue == 0
}

/// The processes of the queries; for those that end before the window, as found during it.
pub(super) fn owners<'a>(window: &Window<'a>) -> BTreeMap<u64, &'a Owner> {
    let mut all = BTreeMap::new();
    for moment in window.often() {
        if let Some(Reply::Answer(Answer::Owners(owners))) = moment.answers.get("owners") {
            all.extend(owners.iter().map(|(inode, owner)| (*inode, owner)));
        }
    }
    all
}

/// Queries while the window runs.
#[derive(Default)]
pub(crate) struct Running {
    /// Sockets of the latest sample, and of the first.
    latest: Option<BTreeSet<u64>>,
    first: BTreeSet<u64>,
    known: BTreeSet<u64>,
    lookups: usize,
}

impl Running {
    /// Keeps the sockets of a sample that wait for a DNS answer. Returns those whose process should be looked up now:
    /// they were opened within the window and existed in the previous sample.
    pub(crate) fn sample(&mut self, sockets: &mut Vec<UdpSocket>) -> BTreeSet<u64> {
        sockets.retain(is_waiting);
        let now: BTreeSet<u64> = sockets.iter().map(|socket| socket.inode).collect();
        let before = self.latest.replace(now.clone());
        let Some(before) = before else {
            self.first = now;
            return BTreeSet::new();
        };
        let stays = |inode: &&u64| {
            before.contains(*inode) && !self.first.contains(*inode) && !self.known.contains(*inode)
        };
        let sought: BTreeSet<u64> = now.iter().filter(stays).copied().collect();
        if sought.is_empty() || self.lookups == LOOKUPS {
            return BTreeSet::new();
        }
        self.lookups += 1;
        self.known.extend(&sought);
        sought
    }
}

#[cfg(test)]
mod tests {
    use rungwise_model::kernel::Endpoint;

    use super::*;

    fn to(port: u16, inode: u64) -> UdpSocket {
        UdpSocket {
            remote: Endpoint::new([10, 0, 0, 53].into(), port),
            inode,
            ..UdpSocket::default()
        }
    }

    #[test]
    fn the_process_of_a_query_that_stays_is_looked_up_once() {
        let mut running = Running::default();
        let mut looked = |sockets: &[UdpSocket]| {
            let mut sockets = sockets.to_vec();
            let sought = running.sample(&mut sockets);
            (sought.into_iter().collect::<Vec<_>>(), sockets.len())
        };
        let kept = to(53, 1);
        assert_eq!(looked(&[kept.clone(), to(9000, 2)]), (vec![], 1));
        assert_eq!(looked(&[kept.clone(), to(53, 3)]), (vec![], 2));
        assert_eq!(looked(&[kept.clone(), to(53, 3)]), (vec![3], 2));
        assert_eq!(looked(&[kept, to(53, 3)]), (vec![], 2));
    }

    #[test]
    fn the_processes_are_looked_up_twice_at_most() {
        let mut running = Running::default();
        let mut lookups = 0;
        running.sample(&mut Vec::new());
        for inode in 1..9 {
            for _ in 0..2 {
                let sought = running.sample(&mut vec![to(53, inode)]);
                lookups += usize::from(!sought.is_empty());
            }
        }
        assert_eq!(lookups, LOOKUPS);
    }
}
