//! DNS queries that are answered late or not at all: sockets of resolvers that stay open because no answer arrives.
//!
//! The resolver of the C library opens a UDP socket for each query and closes it with the answer. So a socket to port
//! 53 that was opened within the window and still exists a quarter of a second later waits for one, and one that is found in two
//! samples and then gone was answered late. Sources: `__res_context_send` of `resolv/res_send.c`, glibc 2.36; resolv.conf(5).

use std::collections::{BTreeMap, BTreeSet};

use rungwise_model::kernel::{Answer, Endpoint, Owner, UdpSocket};

use crate::Window;
use crate::capture::Reply;

/// Port of DNS.
const PORT: u16 = 53;

/// A query open for this long stays unanswered; an answer takes one round trip, or several if it is not cached.
const LATE_S: f64 = 0.25;

/// One seen open for this long is slow: own guess, many times an answer from the cache of a name server in the same network. Samples of a
/// window of 10 s are 48 ms apart at best, so it must be less.
const SLOW_S: f64 = 0.04;

/// How long a full sample takes before it lists UDP sockets, at most on most hosts: its time is that of its beginning.
const FULL_S: f64 = 0.05;

/// Limit of process lookups during the window for unanswered queries, and for slow ones: they cost more than all other reads.
const LOOKUPS: usize = 2;

/// Unanswered queries of a window.
pub(super) struct Query<'a> {
    pub(super) socket: &'a UdpSocket,
    /// From the first sample in which it exists to the last.
    pub(super) waited_s: f64,
    /// Time of the last sample in which it exists.
    last_s: f64,
    /// It exists in every sample, so it may belong to a resolver that keeps its sockets.
    pub(super) always: bool,
}

/// The queries that exist in more than one sample, for at least [`LATE_S`], without an answer.
pub(super) fn queries<'a>(window: &Window<'a>) -> Vec<Query<'a>> {
    let mut all = seen(window);
    all.retain(|query| query.waited_s >= LATE_S);
    all
}

/// The queries that were answered, but were seen open for [`SLOW_S`] or more.
pub(super) fn slow<'a>(window: &Window<'a>) -> Vec<Query<'a>> {
    let mut all = seen(window);
    let last_s = window
        .often()
        .iter()
        .map(|moment| moment.at_s)
        .fold(0.0, f64::max);
    all.retain(|query| {
        (SLOW_S..LATE_S).contains(&query.waited_s) && !query.always && query.last_s < last_s
    });
    all
}

/// Late queries of one process to the server that it waited for most: how many, for how long together, and the server.
type Late = (usize, f64, Endpoint);

/// Fewest samples of UDP sockets that give a mean.
const FEWEST_SAMPLES: usize = 20;

/// Fewest queries that these samples must have met.
const FEWEST_QUERIES: usize = 10;

/// How many single queries to one server were open in each sample, and the server: that of which most were. Nothing where samples or queries are
/// too few. Those that were open when the window began may belong to a resolver that keeps its sockets, as may those open for [`LATE_S`].
pub(super) fn open(window: &Window<'_>) -> Option<(Vec<f64>, Endpoint)> {
    let kept: BTreeSet<u64> = queries(window)
        .iter()
        .map(|query| query.socket.inode)
        .collect();
    let samples = window.often().into_iter();
    let mut samples = samples.filter_map(|moment| match moment.answers.get("udp") {
        Some(Reply::Answer(Answer::Udp(sockets))) => Some(sockets),
        _ => None,
    });
    let first: BTreeSet<u64> = samples.next()?.iter().map(|socket| socket.inode).collect();
    let mut servers: BTreeMap<Endpoint, (Vec<usize>, BTreeSet<u64>)> = BTreeMap::new();
    let mut count = 0;
    for (at, sockets) in samples.enumerate() {
        count = at + 1;
        let single = sockets.iter().filter(|socket| {
            is_waiting(socket) && !first.contains(&socket.inode) && !kept.contains(&socket.inode)
        });
        for socket in single {
            let (met, inodes) = servers.entry(socket.remote).or_default();
            met.push(at);
            inodes.insert(socket.inode);
        }
    }
    let most = servers.into_iter().max_by_key(|(_, (met, _))| met.len());
    let (server, (met, inodes)) = most?;
    if count < FEWEST_SAMPLES || inodes.len() < FEWEST_QUERIES {
        return None;
    }
    let mut course = vec![0.0; count];
    for at in met {
        course[at] += 1.0;
    }
    Some((course, server))
}

/// The late queries, each to a server by a process for so long, of each process. Most sockets are gone before their process can be looked up;
/// they count for the one process that was seen to ask the same server, where there is only one.
pub(super) fn by_process(
    slow: impl Iterator<Item = (Endpoint, Option<u32>, f64)>,
) -> BTreeMap<u32, Late> {
    let mut of: BTreeMap<Endpoint, BTreeMap<Option<u32>, (usize, f64)>> = BTreeMap::new();
    for (server, asker, waited_s) in slow {
        let (count, sum) = of.entry(server).or_default().entry(asker).or_default();
        *count += 1;
        *sum += waited_s;
    }
    let mut worst: BTreeMap<u32, Late> = BTreeMap::new();
    for (server, mut askers) in of {
        let unknown = askers.remove(&None).unwrap_or_default();
        let is_alone = askers.len() == 1;
        for (pid, (mut count, mut waited_s)) in askers {
            let Some(pid) = pid else { continue };
            if is_alone {
                count += unknown.0;
                waited_s += unknown.1;
            }
            let most = worst.entry(pid).or_insert((count, waited_s, server));
            if waited_s > most.1 {
                *most = (count, waited_s, server);
            }
        }
    }
    worst
}

/// The sockets of queries that exist in more than one sample.
fn seen<'a>(window: &Window<'a>) -> Vec<Query<'a>> {
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
        let is_full = window
            .moments()
            .iter()
            .any(|full| std::ptr::eq(full, moment));
        let first_s = moment.at_s + if is_full { FULL_S } else { 0.0 };
        for socket in sockets.iter().filter(|socket| is_waiting(socket)) {
            let seen = seen.entry(socket.inode).or_insert(Seen {
                socket,
                first_s,
                last_s: moment.at_s,
                samples: 0,
            });
            seen.last_s = moment.at_s;
            seen.samples += 1;
        }
    }
    let lasting = seen.into_values().filter(|seen| seen.samples > 1);
    lasting
        .map(|seen| Query {
            socket: seen.socket,
            waited_s: seen.last_s - seen.first_s,
            last_s: seen.last_s,
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
    /// Sockets of the latest sample that wait, with the time of the sample in which each was first seen; absent before the
    /// first sample.
    latest: Option<BTreeMap<u64, f64>>,
    /// Those of the first sample, which may belong to a resolver that keeps them, and those looked up.
    known: BTreeSet<u64>,
    /// Lookups for slow queries and for unanswered ones.
    lookups: [usize; 2],
}

impl Running {
    /// Keeps the sockets of a sample that wait for a DNS answer. Returns those whose process should be looked up now:
    /// they were opened within the window and have waited for at least [`SLOW_S`].
    pub(crate) fn sample(&mut self, at_s: f64, sockets: &mut Vec<UdpSocket>) -> BTreeSet<u64> {
        sockets.retain(is_waiting);
        let before = self.latest.take();
        let seen = |inode: u64| before.as_ref().and_then(|before| before.get(&inode));
        let inodes = sockets.iter().map(|socket| socket.inode);
        let now: BTreeMap<u64, f64> = inodes
            .map(|inode| (inode, seen(inode).copied().unwrap_or(at_s)))
            .collect();
        if before.is_none() {
            self.known.extend(now.keys());
        }
        let open_for = |at_least: f64| -> BTreeSet<u64> {
            let lasting = now
                .iter()
                .filter(|(_, first_s)| at_s - **first_s >= at_least);
            let inodes = lasting.map(|(inode, _)| *inode);
            inodes.filter(|inode| !self.known.contains(inode)).collect()
        };
        let (slow, unanswered) = (open_for(SLOW_S), open_for(LATE_S));
        self.latest = Some(now);
        // Slow ones are many, and must not use up what finds an unanswered one.
        let kind = usize::from(!unanswered.is_empty());
        if slow.is_empty() || self.lookups[kind] == LOOKUPS {
            return BTreeSet::new();
        }
        self.lookups[kind] += 1;
        self.known.extend(&slow);
        slow
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Capture;
    use crate::capture::Moment;

    fn to(port: u16, inode: u64) -> UdpSocket {
        UdpSocket {
            remote: Endpoint::new([10, 0, 0, 53].into(), port),
            inode,
            ..UdpSocket::default()
        }
    }

    #[test]
    fn open_queries_are_those_of_one_server_in_samples_enough() {
        let of = |samples: &[&[UdpSocket]]| {
            let samples = samples.iter().enumerate().map(|(at, sockets)| Moment {
                at_s: at as f64 * 0.04,
                answers: [(
                    "udp".to_owned(),
                    Reply::Answer(Answer::Udp(sockets.to_vec())),
                )]
                .into(),
                ..Moment::default()
            });
            let capture = Capture {
                samples: samples.collect(),
                ..Capture::default()
            };
            open(&Window::of(&capture))
        };
        let other = UdpSocket {
            remote: Endpoint::new([10, 0, 0, 54].into(), 53),
            ..to(53, 99)
        };
        // One that stays from the beginning, one new one in every other sample, one to another server.
        let each: Vec<Vec<UdpSocket>> = (0..24)
            .map(|at| match at % 2 {
                0 => vec![to(53, 1), to(53, 100 + at)],
                _ => vec![to(53, 1), other.clone()],
            })
            .collect();
        let each: Vec<&[UdpSocket]> = each.iter().map(Vec::as_slice).collect();
        let (course, server) = of(&each).unwrap();
        assert_eq!(server, to(53, 1).remote);
        assert_eq!((course.len(), course.iter().sum::<f64>()), (23, 11.0));
        assert_eq!(of(&each[..12]), None);
        let burst: Vec<UdpSocket> = (2..9).map(|inode| to(53, inode)).collect();
        let mut few: Vec<&[UdpSocket]> = vec![&[]; 24];
        few[7] = &burst;
        assert_eq!(of(&few), None);
    }

    #[test]
    fn the_process_of_a_query_that_stays_is_looked_up_once() {
        let mut running = Running::default();
        let mut at_s = 0.0;
        let mut sampled = |sockets: &[UdpSocket]| {
            let mut sockets = sockets.to_vec();
            at_s += 0.15;
            let sought = running.sample(at_s, &mut sockets);
            (sought.into_iter().collect::<Vec<_>>(), sockets.len())
        };
        let kept = to(53, 1);
        assert_eq!(sampled(&[kept.clone(), to(9000, 2)]), (vec![], 1));
        assert_eq!(sampled(&[kept.clone(), to(53, 3)]), (vec![], 2));
        assert_eq!(sampled(&[kept.clone(), to(53, 3)]), (vec![3], 2));
        assert_eq!(sampled(&[kept, to(53, 3)]), (vec![], 2));
    }

    #[test]
    fn queries_of_no_known_process_count_for_the_only_one_that_asked_the_server() {
        let server = |last| Endpoint::new([10, 0, 0, last].into(), 53);
        let (one, two) = (server(1), server(2));
        let all = by_process(
            [
                (one, Some(7), 0.1),
                (one, None, 0.25),
                (two, Some(7), 0.2),
                (two, Some(8), 0.15),
                (two, None, 9.0),
            ]
            .into_iter(),
        );
        assert_eq!(
            all,
            BTreeMap::from([(7, (2, 0.35, one)), (8, (1, 0.15, two))])
        );
    }

    #[test]
    fn slow_queries_leave_lookups_for_an_unanswered_one() {
        let mut running = Running::default();
        running.sample(0.0, &mut Vec::new());
        let mut lookups = Vec::new();
        for inode in 1..9 {
            for part in 0..2 {
                let at_s = inode as f64 + 0.06 * f64::from(part);
                let sought = running.sample(at_s, &mut vec![to(53, inode)]);
                lookups.extend(sought);
            }
        }
        assert_eq!(lookups, [1, 2]);
        running.sample(20.0, &mut vec![to(53, 20)]);
        assert!(running.sample(20.1, &mut vec![to(53, 20)]).is_empty());
        let sought = running.sample(20.3, &mut vec![to(53, 20)]);
        assert_eq!(sought, BTreeSet::from([20]));
    }

    #[test]
    fn the_processes_are_looked_up_a_few_times_at_most() {
        let mut running = Running::default();
        let mut lookups = 0;
        running.sample(0.0, &mut Vec::new());
        for inode in 1..9 {
            for part in 0..2 {
                let at_s = inode as f64 + 0.5 * f64::from(part);
                let sought = running.sample(at_s, &mut vec![to(53, inode)]);
                lookups += usize::from(!sought.is_empty());
            }
        }
        assert_eq!(lookups, LOOKUPS);
    }
}
