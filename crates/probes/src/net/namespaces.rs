//! Traffic in other network namespaces of this machine: softirqs and stack samples include it.
//!
//! The CPU time of packets is counted for the whole machine, while sockets, rules and counters belong to one namespace.
//! The packets of each namespace show which one the samples belong to.

use rungwise_model::evidence::{Absence, Evidence, Origin, Subject};
use rungwise_model::kernel::{Answer, NetworkNamespace, Qdisc, Question};
use rungwise_model::keys;

use rungwise_formats::snmp;

use super::losses::{LOSSES, Loss};
use super::rates;
use crate::{Cost, Need, Probe, Source, When, Window};

const SOURCE: &str = "/proc/PID/net/dev";
const COUNTERS: &str = "/proc/PID/net/{snmp,netstat}";
const QUEUES: &str = "rtnetlink (tc -s qdisc) in /proc/PID/ns/net";

/// Packets per second below which a namespace is not named.
const NAMED_FROM: f64 = 10.0;
/// Namespaces that are named.
const NAMED: usize = 3;
/// Times that a queue held packets back, per packet sent; as in `qdisc-limit`.
const HELD_PER_PACKET: f64 = 0.1;
/// A smaller share of the time in timeouts is not recorded: half of what is judged.
const STALLS_FROM: f64 = 0.005;
/// Fewer retransmission timeouts may be one moment; as in `tcp-retrans`.
const FEWEST_TIMEOUTS: f64 = 5.0;
/// The shortest of them, seconds (`TCP_RTO_MIN`).
const SHORTEST_S: f64 = 0.2;
/// Round trip from which on losses on the way are common, microseconds; as in `tcp-retrans`.
const FAR_US: u32 = 10_000;
/// A counter of losses that grows more slowly is no trend.
const LOSSES_FROM: f64 = 1.0;

/// The probe.
pub(crate) static PROBE: Probe = Probe {
    id: "network-namespaces",
    summary: "packets received in other network namespaces of this machine, and their owners",
    cost: Cost::Cheap,
    needs: &[Need::Root],
    sources: &[Source::ask(Question::Namespaces, When::Ends)],
    yields: &[
        &keys::NETNS_OTHERS,
        &keys::NETNS_OTHER_LOSS,
        &keys::NETNS_OTHER_LOSS_WHO,
        &keys::NETNS_OTHER_PACKETS,
        &keys::NETNS_OTHER_PID,
        &keys::NETNS_OTHER_QUEUE_HELD,
        &keys::NETNS_OTHER_QUEUE_LOSS,
        &keys::NETNS_OTHER_QUEUE_MANAGED,
        &keys::NETNS_OTHER_QUEUE_WHO,
        &keys::NETNS_OTHER_STALLS,
        &keys::NETNS_OWN_PACKETS,
    ],
    derive,
    doc: "\
Packets received by the devices of a namespace, loopback included. A packet that crosses a veth pair counts in the \
receiving namespace; one that the host forwards to a container counts in both. Namespaces are found by their processes \
and by their names in `/run/netns`; one that is held only by a descriptor or a single thread is not found. A thread of its \
own enters each of the 16 busiest and reads the counters of losses in `/proc/net/snmp` and `netstat`, and the root queueing \
disciplines, and the round-trip times of up to 4096 connections; their other sockets, rules and drivers are not read. Sources: namespaces(7), proc_net(5), rtnetlink(7).",
};

fn derive(window: &Window<'_>, evidence: &mut Evidence) {
    let samples: Vec<(f64, &[NetworkNamespace])> = match window.answers("namespaces") {
        Ok(answers) => answers
            .into_iter()
            .filter_map(|(at, answer)| match answer {
                Answer::Namespaces(namespaces) => Some((at, &namespaces[..])),
                _ => None,
            })
            .collect(),
        Err(why) => return evidence.absent(PROBE.yields, &why, SOURCE),
    };
    let last = samples.last().map_or(&[][..], |(_, last)| last);
    let rate = |namespace: &NetworkNamespace| {
        let course: Option<Vec<(f64, u64)>> = samples
            .iter()
            .map(|(at, sample)| {
                let same = sample.iter().find(|other| other.inode == namespace.inode)?;
                Some((*at, same.packets?))
            })
            .collect();
        Some(rates::of_course(&course?)?.per_s)
    };
    let host = Subject::host;
    let own = last.iter().find(|namespace| namespace.own);
    let Some(own) = own.and_then(rate) else {
        let why = Absence::because("the packets of this network namespace were counted only once");
        return evidence.absent(PROBE.yields, &why, SOURCE);
    };
    let origin = |line: String| Origin::new(SOURCE, line);
    evidence.number(
        &keys::NETNS_OWN_PACKETS,
        host(),
        own,
        origin(format!("{own:.0} packets/s in this network namespace")),
    );
    let mut others: Vec<(f64, &NetworkNamespace)> = last
        .iter()
        .filter(|namespace| !namespace.own)
        .filter_map(|namespace| Some((rate(namespace)?, namespace)))
        .filter(|(rate, _)| *rate >= NAMED_FROM)
        .collect();
    others.sort_by(|(a, one), (b, other)| b.total_cmp(a).then(one.inode.cmp(&other.inode)));
    let sum: f64 = others.iter().map(|(rate, _)| rate).sum();
    let words: Vec<String> = others
        .iter()
        .take(NAMED)
        .map(|(rate, namespace)| format!("{}: {rate:.0} packets/s", name(namespace)))
        .collect();
    let line = if words.is_empty() {
        "no other network namespace with traffic".to_owned()
    } else {
        words.join(", ")
    };
    let origin = origin(line.clone());
    let pid = others.first().and_then(|(_, busiest)| busiest.pid);
    let pid = f64::from(pid.unwrap_or_default());
    evidence.number(&keys::NETNS_OTHER_PACKETS, host(), sum, origin.clone());
    evidence.number(&keys::NETNS_OTHER_PID, host(), pid, origin.clone());
    evidence.text(&keys::NETNS_OTHERS, host(), words.join(", "), origin);
    record_losses(&samples, &others, evidence);
    record_queues(&samples, &others, evidence);
    record_stalls(&samples, &others, evidence);
}

/// Why the answer is unknown, if part of the namespaces with traffic was not read and the rest has nothing to show.
fn unread(what: &str, read: usize, others: usize) -> Option<Absence> {
    (read < others).then(|| {
        Absence::because(format!(
            "{what} of {} of {others} other network namespaces with traffic were not read",
            others - read
        ))
        .remedy("run `rungwise check --pid PID` with a process of each")
    })
}

/// A root queueing discipline of another namespace at both ends of the window, with what it did meanwhile.
struct Queue<'a> {
    of: &'a NetworkNamespace,
    before: &'a Qdisc,
    after: &'a Qdisc,
}

impl<'a> Queue<'a> {
    /// All of a namespace that are the same at both ends: one whose counters fell was made anew.
    fn all(before: &'a NetworkNamespace, of: &'a NetworkNamespace) -> Vec<Self> {
        let earlier = before.qdiscs.iter().flatten();
        let later = of.qdiscs.iter().flatten();
        later
            .filter_map(|after| {
                let same = |before: &&Qdisc| {
                    (&before.device, &before.kind, &before.handle)
                        == (&after.device, &after.kind, &after.handle)
                        && before.packets <= after.packets
                };
                let before = earlier.clone().find(same)?;
                Some(Self { of, before, after })
            })
            .collect()
    }

    fn sent(&self) -> f64 {
        (self.after.packets - self.before.packets) as f64
    }

    fn dropped(&self) -> f64 {
        // The counter has 32 bits.
        f64::from(self.after.drops.wrapping_sub(self.before.drops))
    }

    /// Of what was handed to it.
    fn share(&self) -> f64 {
        self.dropped() / (self.dropped() + self.sent()).max(1.0)
    }

    /// Packets wait at both ends for the rate that it keeps.
    fn holds(&self) -> bool {
        let held = self.after.overlimits.wrapping_sub(self.before.overlimits);
        let often = f64::from(held) > HELD_PER_PACKET * self.sent();
        often && self.before.backlog > 0 && self.after.backlog > 0
    }

    fn name(&self) -> String {
        let Qdisc { device, kind, .. } = self.after;
        format!("{}: the {kind} queue of {device}", name(self.of))
    }
}

/// What the queues of other namespaces drop and hold back.
fn record_queues(
    samples: &[(f64, &[NetworkNamespace])],
    others: &[(f64, &NetworkNamespace)],
    evidence: &mut Evidence,
) {
    let (Some((began, first)), Some((ended, last))) = (samples.first(), samples.last()) else {
        return;
    };
    let length = (ended - began).max(f64::MIN_POSITIVE);
    let before = |of: &NetworkNamespace| {
        let before = first.iter().find(|before| before.inode == of.inode);
        before.filter(|before| before.qdiscs.is_some() && of.qdiscs.is_some())
    };
    let queues: Vec<Queue<'_>> = last
        .iter()
        .filter(|of| !of.own)
        .filter_map(|of| Some(Queue::all(before(of)?, of)))
        .flatten()
        .collect();
    let mut dropping: Vec<&Queue<'_>> = queues
        .iter()
        .filter(|queue| queue.dropped() / length >= LOSSES_FROM)
        .collect();
    dropping.sort_by(|a, b| b.share().total_cmp(&a.share()));
    let words = |found: Vec<String>| {
        let named: Vec<String> = found.into_iter().take(NAMED).collect();
        named.join("; ")
    };
    let drops = dropping.iter().map(|queue| {
        let per_s = queue.dropped() / length;
        format!("{} drops {per_s:.1} packets/s", queue.name())
    });
    let drops = words(drops.collect());
    let held = queues.iter().filter(|queue| queue.holds());
    let held = held.map(|queue| {
        let waiting = queue.after.backlog;
        format!("{}, {waiting} packets at the end", queue.name())
    });
    let held = words(held.collect());
    let read = others.iter().filter(|(_, of)| before(of).is_some()).count();
    let keys = [
        &keys::NETNS_OTHER_QUEUE_LOSS,
        &keys::NETNS_OTHER_QUEUE_MANAGED,
        &keys::NETNS_OTHER_QUEUE_WHO,
        &keys::NETNS_OTHER_QUEUE_HELD,
    ];
    if let Some(why) = unread("the queues", read, others.len())
        && drops.is_empty()
        && held.is_empty()
    {
        return evidence.absent(&keys, &why, QUEUES);
    }
    let line = if drops.is_empty() {
        format!(
            "{} queues of other network namespaces at both ends; none dropped {LOSSES_FROM}/s",
            queues.len()
        )
    } else {
        drops.clone()
    };
    let most = |on_purpose: bool| {
        let of_kind = dropping
            .iter()
            .find(|queue| Qdisc::drops_on_purpose(&queue.after.kind) == on_purpose);
        of_kind.map_or(0.0, |queue| queue.share())
    };
    let host = Subject::host;
    let origin = Origin::new(QUEUES, line);
    evidence.number(keys[0], host(), most(false), origin.clone());
    evidence.number(keys[1], host(), most(true), origin.clone());
    evidence.text(keys[2], host(), drops, origin);
    let origin = Origin::new(QUEUES, held.clone());
    evidence.text(keys[3], host(), held, origin);
}

/// The share of the time that the connections of another namespace spend in retransmission timeouts, as `tcp-retrans` counts them for
/// this one.
fn record_stalls(
    samples: &[(f64, &[NetworkNamespace])],
    others: &[(f64, &NetworkNamespace)],
    evidence: &mut Evidence,
) {
    let (Some((began, first)), Some((ended, _))) = (samples.first(), samples.last()) else {
        return;
    };
    let length = (ended - began).max(f64::MIN_POSITIVE);
    let mut read = 0;
    let mut most = (0.0, "none with more than four timeouts".to_owned());
    for (_, other) in others {
        let before = first.iter().find(|before| before.inode == other.inode);
        let Some(before) = before.filter(|before| !before.counters.is_empty()) else {
            continue;
        };
        let (Some(earlier), Some(later)) = (before.connections, other.connections) else {
            continue;
        };
        let (before, now) = (snmp::parse(&before.counters), snmp::parse(&other.counters));
        let grown = |group, name| {
            let key = (group, name);
            Some(now.get(&key)?.checked_sub(*before.get(&key)?)? as f64)
        };
        let Some(timeouts) = grown("TcpExt", "TCPTimeouts") else {
            continue;
        };
        // What opens connections times out as well, and loses nothing of those that are open.
        let resent = grown("Tcp", "RetransSegs").unwrap_or(0.0);
        let resent = resent - grown("TcpExt", "TCPSynRetrans").unwrap_or(0.0);
        let timeouts = timeouts.min(resent.max(0.0));
        let connections = f64::midpoint(f64::from(earlier.count), f64::from(later.count));
        let of_time = timeouts * SHORTEST_S / (length * connections.max(1.0));
        // Short connections are more than those that are there at one moment.
        let opened = grown("Tcp", "ActiveOpens").unwrap_or(0.0)
            + grown("Tcp", "PassiveOpens").unwrap_or(0.0);
        let share = of_time.min(timeouts / opened).min(1.0);
        if timeouts < FEWEST_TIMEOUTS || share < STALLS_FROM {
            read += 1;
            continue;
        }
        // On a long way losses are common; without a round trip it is unknown which it is.
        let Some(rtt_us) = later.rtt_us else {
            continue;
        };
        read += 1;
        if rtt_us <= FAR_US && share > most.0 {
            let who = name(other);
            most = (
                share,
                format!("{who}: {timeouts} retransmission timeouts on {connections} connections"),
            );
        }
    }
    let (share, line) = most;
    let key = &keys::NETNS_OTHER_STALLS;
    match unread("the connections", read, others.len()) {
        Some(why) if share <= 0.0 => evidence.absent(&[key], &why, COUNTERS),
        _ => evidence.number(key, Subject::host(), share, Origin::new(COUNTERS, line)),
    }
}

/// The largest loss of another namespace, as its own counters have it.
fn record_losses(
    samples: &[(f64, &[NetworkNamespace])],
    others: &[(f64, &NetworkNamespace)],
    evidence: &mut Evidence,
) {
    let (Some((began, first)), Some((ended, _))) = (samples.first(), samples.last()) else {
        return;
    };
    let mut counted = 0;
    // The largest loss of each.
    let mut losing: Vec<(f64, String)> = Vec::new();
    for (_, after) in others {
        let before = first.iter().find(|before| before.inode == after.inode);
        let Some(before) = before.filter(|before| !before.counters.is_empty()) else {
            continue;
        };
        counted += 1;
        let (before, now) = (snmp::parse(&before.counters), snmp::parse(&after.counters));
        let grown = |name: &(&'static str, &'static str)| {
            let grown = now.get(name)?.checked_sub(*before.get(name)?)?;
            Some(grown as f64 / (ended - began).max(f64::MIN_POSITIVE))
        };
        let losses = LOSSES.iter().filter_map(|loss| {
            let rate = grown(&(loss.group, loss.name)).filter(|rate| *rate >= LOSSES_FROM)?;
            let whole: f64 = loss.of.counters().iter().filter_map(grown).sum();
            let share = if whole > 0.0 {
                (rate / whole).min(1.0)
            } else {
                1.0
            };
            Some((share, rate, loss))
        });
        let most = losses.max_by(|(a, ..), (b, ..)| a.total_cmp(b));
        losing.extend(most.map(|(share, rate, loss)| {
            let Loss {
                group,
                name: counter,
                meaning,
                ..
            } = loss;
            let name = name(after);
            (
                share,
                format!("{name}: {group}:{counter} ({meaning}) {rate:.1}/s"),
            )
        }));
    }
    losing.sort_by(|(a, _), (b, _)| b.total_cmp(a));
    let host = Subject::host;
    let both = [&keys::NETNS_OTHER_LOSS, &keys::NETNS_OTHER_LOSS_WHO];
    if let Some(why) = unread("the counters", counted, others.len())
        && losing.is_empty()
    {
        return evidence.absent(&both, &why, COUNTERS);
    }
    let share = losing.first().map_or(0.0, |(share, _)| *share);
    let who: Vec<String> = losing.into_iter().take(NAMED).map(|(_, who)| who).collect();
    let who = who.join("; ");
    let line = match counted {
        _ if !who.is_empty() => who.clone(),
        0 => "no other network namespace with traffic".to_owned(),
        _ => format!(
            "counters of {counted} other network namespaces at both ends; none grew by {LOSSES_FROM}/s"
        ),
    };
    evidence.number(both[0], host(), share, Origin::new(COUNTERS, line.clone()));
    evidence.text(both[1], host(), who, Origin::new(COUNTERS, line));
}

/// `container 4f3c4f3c4f3c (nginx, pid 812)`, `nginx (pid 812)`, `blue`
fn name(namespace: &NetworkNamespace) -> String {
    let NetworkNamespace {
        name, container, ..
    } = namespace;
    match namespace.pid {
        Some(pid) if container.is_empty() => format!("{name} (pid {pid})"),
        Some(pid) => format!("container {container} ({name}, pid {pid})"),
        None => name.clone(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rungwise_model::kernel::Connections;

    use crate::capture::{Capture, Moment, Reply};

    fn namespace(inode: u64, packets: u64, resent: u64) -> NetworkNamespace {
        NetworkNamespace {
            inode,
            own: inode == 1,
            pid: Some(inode as u32),
            name: "nginx".to_owned(),
            packets: Some(packets),
            counters: format!(
                "Tcp: InSegs OutSegs RetransSegs\nTcp: {packets} {packets} {resent}\n"
            ),
            ..NetworkNamespace::default()
        }
    }

    fn ends(first: Vec<NetworkNamespace>, last: Vec<NetworkNamespace>) -> Evidence {
        let moments = [(0.0, first), (10.0, last)].map(|(at_s, namespaces)| Moment {
            at_s,
            answers: [(
                "namespaces".to_owned(),
                Reply::Answer(Answer::Namespaces(namespaces)),
            )]
            .into(),
            ..Moment::default()
        });
        let capture = Capture {
            moments: moments.into(),
            ..Capture::default()
        };
        let mut evidence = Evidence::over(10.0);
        derive(&Window::of(&capture), &mut evidence);
        evidence
    }

    #[test]
    fn the_losses_of_another_namespace_are_a_share_of_its_traffic() {
        let both = [
            vec![namespace(1, 0, 0), namespace(2, 0, 0), namespace(3, 0, 0)],
            vec![
                namespace(1, 100, 90),
                namespace(2, 800, 400),
                namespace(3, 800, 16),
            ],
        ];
        let [first, last] = both;
        let evidence = ends(first, last);
        let share = evidence.host(&keys::NETNS_OTHER_LOSS).unwrap();
        assert!((share.value - 0.2).abs() < 1e-9, "{}", share.value);
        let who = evidence
            .words(&keys::NETNS_OTHER_LOSS_WHO, &Subject::host())
            .unwrap();
        assert!(
            who.value.starts_with("nginx (pid 2): Tcp:RetransSegs")
                && who.value.contains("40.0/s; nginx (pid 3)"),
            "{}",
            who.value
        );
    }

    #[test]
    fn a_queue_of_another_namespace_that_drops_or_holds_back_is_named() {
        let queue = |kind: &str, packets, drops, overlimits, backlog| Qdisc {
            device: "eth0".to_owned(),
            kind: kind.to_owned(),
            handle: "8001:".to_owned(),
            parent: "root".to_owned(),
            packets,
            drops,
            overlimits,
            backlog,
            ..Qdisc::default()
        };
        let with = |packets, qdisc: Option<Qdisc>| {
            let mut other = namespace(2, packets, 0);
            other.qdiscs = qdisc.map(|qdisc| vec![qdisc]);
            vec![namespace(1, 0, 0), other]
        };
        let seen = |before: Option<Qdisc>, after: Option<Qdisc>| {
            let evidence = ends(with(0, before), with(1_000, after));
            let number = |key| evidence.host(key).map(|share| share.value).ok();
            let words = |key| {
                let words = evidence.words(key, &Subject::host());
                words.map(|words| words.value.to_owned()).ok()
            };
            (
                number(&keys::NETNS_OTHER_QUEUE_LOSS),
                number(&keys::NETNS_OTHER_QUEUE_MANAGED),
                words(&keys::NETNS_OTHER_QUEUE_WHO),
                words(&keys::NETNS_OTHER_QUEUE_HELD),
            )
        };
        let some = |text: &str| Some(text.to_owned());
        // Its counter of drops has 32 bits.
        let wrapped = seen(
            Some(queue("tbf", 100, u32::MAX, 0, 0)),
            Some(queue("tbf", 400, 99, 9, 3)),
        );
        let drops = some("nginx (pid 2): the tbf queue of eth0 drops 10.0 packets/s");
        assert_eq!(wrapped, (Some(0.25), Some(0.0), drops, some("")));
        let managed = seen(
            Some(queue("fq_codel", 100, 0, 0, 0)),
            Some(queue("fq_codel", 400, 100, 0, 0)),
        );
        assert_eq!((managed.0, managed.1), (Some(0.0), Some(0.25)));
        let held = seen(
            Some(queue("tbf", 100, 7, 0, 2)),
            Some(queue("tbf", 400, 8, 90, 3)),
        );
        let waits = some("nginx (pid 2): the tbf queue of eth0, 3 packets at the end");
        assert_eq!(held, (Some(0.0), Some(0.0), some(""), waits));
        let nothing = (Some(0.0), Some(0.0), some(""), some(""));
        let quiet = seen(
            Some(queue("tbf", 100, 7, 0, 2)),
            Some(queue("tbf", 400, 8, 9, 3)),
        );
        assert_eq!(quiet, nothing);
        // The device was made anew, and its counters with it.
        let anew = seen(
            Some(queue("tbf", 500, 400, 0, 0)),
            Some(queue("tbf", 40, 0, 0, 0)),
        );
        assert_eq!(anew, nothing);
        // What was not read is not zero.
        assert_eq!(seen(None, None), (None, None, None, None));
    }

    #[test]
    fn connections_of_another_namespace_stall_for_their_share_of_the_time() {
        struct Seen {
            timeouts: u64,
            of_opening: u64,
            opened: u64,
            connections: Option<Connections>,
        }
        let with = |packets, seen: &Seen| {
            let mut other = namespace(2, packets, 0);
            let Seen {
                timeouts,
                of_opening,
                opened,
                ..
            } = seen;
            let resent = timeouts + of_opening;
            other.counters = format!(
                "Tcp: ActiveOpens PassiveOpens RetransSegs\nTcp: {opened} 0 {resent}\n\
                 TcpExt: TCPTimeouts TCPSynRetrans\nTcpExt: {resent} {of_opening}\n"
            );
            other.connections = seen.connections;
            vec![namespace(1, 0, 0), other]
        };
        let near = Some(Connections {
            count: 8,
            rtt_us: Some(90),
        });
        let share = |timeouts: u64, of_opening: u64, opened: u64, connections| {
            let before = Seen {
                timeouts: 3,
                of_opening: 2,
                opened: 9,
                connections,
            };
            let after = Seen {
                timeouts: 3 + timeouts,
                of_opening: 2 + of_opening,
                opened: 9 + opened,
                connections,
            };
            let evidence = ends(with(0, &before), with(1_000, &after));
            evidence
                .host(&keys::NETNS_OTHER_STALLS)
                .map(|share| share.value)
                .ok()
        };
        assert_eq!(
            share(18, 0, 0, near).map(|share| (share * 1e3).round()),
            Some(45.0)
        );
        assert_eq!(share(4, 0, 0, near), Some(0.0), "one moment");
        assert_eq!(
            share(0, 18, 0, near),
            Some(0.0),
            "no answer to a new connection"
        );
        assert_eq!(
            share(18, 0, 90_000, near),
            Some(0.0),
            "very short connections"
        );
        let far = near.map(|near| Connections {
            rtt_us: Some(40_000),
            ..near
        });
        assert_eq!(
            share(18, 0, 0, far),
            Some(0.0),
            "a way on which losses are common"
        );
        let many = near.map(|near| Connections {
            rtt_us: None,
            ..near
        });
        assert_eq!(share(18, 0, 0, many), None, "it is unknown how far they go");
        assert_eq!(share(18, 0, 0, None), None, "they were not read");
        // Without counters at the begin, all since the namespace was made would count.
        let mut new = with(
            0,
            &Seen {
                timeouts: 0,
                of_opening: 0,
                opened: 0,
                connections: near,
            },
        );
        new[1].counters.clear();
        let after = with(
            1_000,
            &Seen {
                timeouts: 900,
                of_opening: 0,
                opened: 0,
                connections: near,
            },
        );
        assert!(ends(new, after).host(&keys::NETNS_OTHER_STALLS).is_err());
    }
}
