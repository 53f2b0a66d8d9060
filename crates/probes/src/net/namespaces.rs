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
        &keys::NETNS_OTHER_QUEUE_LOSS,
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
    record_queues(&samples, evidence);
    record_stalls(&samples, evidence);
}

/// The share of the time that the connections of another namespace spend in retransmission timeouts.
fn record_stalls(samples: &[(f64, &[NetworkNamespace])], evidence: &mut Evidence) {
    let (Some((began, first)), Some((ended, last))) = (samples.first(), samples.last()) else {
        return;
    };
    let mut most = (
        0.0,
        "no other network namespace with more than four".to_owned(),
    );
    for other in last.iter().filter(|other| !other.own) {
        let before = first.iter().find(|before| before.inode == other.inode);
        let (Some(before), Some(connections)) = (before, other.connections) else {
            continue;
        };
        let timeouts = |counters| {
            let all = snmp::parse(counters);
            all.get(&("TcpExt", "TCPTimeouts"))
                .copied()
                .unwrap_or_default()
        };
        let timeouts = timeouts(&other.counters).saturating_sub(timeouts(&before.counters)) as f64;
        if timeouts < FEWEST_TIMEOUTS || connections.count == 0 || connections.rtt_us > FAR_US {
            continue;
        }
        let time = (ended - began).max(f64::MIN_POSITIVE) * f64::from(connections.count);
        let share = (timeouts * SHORTEST_S / time).min(1.0);
        if share > most.0 {
            let (who, count) = (name(other), connections.count);
            most = (
                share,
                format!("{who}: {timeouts} retransmission timeouts on {count} connections"),
            );
        }
    }
    let (share, line) = most;
    let origin = Origin::new(COUNTERS, line);
    evidence.number(&keys::NETNS_OTHER_STALLS, Subject::host(), share, origin);
}

/// A root queueing discipline of another namespace at both ends of the window, with what it did meanwhile.
struct Queue<'a> {
    of: &'a NetworkNamespace,
    before: &'a Qdisc,
    after: &'a Qdisc,
}

impl Queue<'_> {
    /// Dropped, and its share of what was handed to it.
    fn dropped(&self) -> (f64, f64) {
        let dropped = f64::from(self.after.drops.wrapping_sub(self.before.drops));
        let sent = self.after.packets.saturating_sub(self.before.packets) as f64;
        (dropped, dropped / (dropped + sent).max(1.0))
    }

    /// Packets wait at both ends for the rate that it keeps.
    fn holds(&self) -> bool {
        let held = self.after.overlimits != self.before.overlimits;
        held && self.before.backlog > 0 && self.after.backlog > 0
    }
}

/// The largest loss of a queue of another namespace.
fn record_queues(samples: &[(f64, &[NetworkNamespace])], evidence: &mut Evidence) {
    let (Some((began, first)), Some((ended, last))) = (samples.first(), samples.last()) else {
        return;
    };
    let length = (ended - began).max(f64::MIN_POSITIVE);
    let queues = last.iter().filter(|other| !other.own).flat_map(|of| {
        let before = first.iter().find(|before| before.inode == of.inode);
        let before = before.map_or(&[][..], |before| &before.qdiscs);
        of.qdiscs.iter().filter_map(move |after| {
            let same = |before: &&Qdisc| {
                (&before.device, &before.kind, &before.handle)
                    == (&after.device, &after.kind, &after.handle)
            };
            let before = before.iter().find(same)?;
            Some(Queue { of, before, after })
        })
    });
    let (mut read, mut limiting) = (0, Vec::new());
    for queue in queues {
        read += 1;
        let (dropped, share) = queue.dropped();
        let drops = dropped / length >= LOSSES_FROM;
        if !drops && !queue.holds() {
            continue;
        }
        let Qdisc { device, kind, .. } = queue.after;
        let mut what = Vec::new();
        if drops {
            let per_s = dropped / length;
            what.push(format!("drops {per_s:.1} packets/s"));
        }
        if queue.holds() {
            let waiting = queue.after.backlog;
            what.push(format!("holds packets back, {waiting} at the end"));
        }
        let who = format!(
            "{}: the {kind} queue of {device} {}",
            name(queue.of),
            what.join(" and ")
        );
        limiting.push((if drops { share } else { 0.0 }, who));
    }
    limiting.sort_by(|(a, _), (b, _)| b.total_cmp(a));
    let share = limiting.first().map_or(0.0, |(share, _)| *share);
    let who: Vec<String> = limiting
        .into_iter()
        .take(NAMED)
        .map(|(_, who)| who)
        .collect();
    let who = who.join("; ");
    let line = if who.is_empty() {
        format!(
            "{read} queues of other network namespaces at both ends; none dropped {LOSSES_FROM}/s"
        )
    } else {
        who.clone()
    };
    let host = Subject::host;
    let origin = Origin::new(QUEUES, line);
    evidence.number(&keys::NETNS_OTHER_QUEUE_LOSS, host(), share, origin.clone());
    evidence.text(&keys::NETNS_OTHER_QUEUE_WHO, host(), who, origin);
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
    if counted < others.len() {
        let why = Absence::because(format!(
            "the counters of {} of {} other network namespaces with traffic were not read",
            others.len() - counted,
            others.len()
        ))
        .remedy("run `rungwise check --pid PID` with a process of each");
        // What was read may be bad enough.
        if losing.is_empty() {
            return evidence.absent(&both, &why, COUNTERS);
        }
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

    #[test]
    fn the_losses_of_another_namespace_are_a_share_of_its_traffic() {
        let ends = [
            vec![namespace(1, 0, 0), namespace(2, 0, 0), namespace(3, 0, 0)],
            vec![
                namespace(1, 100, 90),
                namespace(2, 800, 400),
                namespace(3, 800, 16),
            ],
        ];
        let moments = (ends.into_iter().zip([0.0, 10.0])).map(|(namespaces, at_s)| Moment {
            at_s,
            answers: [(
                "namespaces".to_owned(),
                Reply::Answer(Answer::Namespaces(namespaces)),
            )]
            .into(),
            ..Moment::default()
        });
        let capture = Capture {
            moments: moments.collect(),
            ..Capture::default()
        };
        let mut evidence = Evidence::over(10.0);
        derive(&Window::of(&capture), &mut evidence);
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
        let queue = |packets, drops, overlimits, backlog| Qdisc {
            device: "eth0".to_owned(),
            kind: "tbf".to_owned(),
            handle: "8001:".to_owned(),
            parent: "root".to_owned(),
            packets,
            drops,
            overlimits,
            backlog,
            ..Qdisc::default()
        };
        let with = |qdisc| {
            let mut other = namespace(2, 0, 0);
            other.qdiscs = vec![qdisc];
            vec![namespace(1, 0, 0), other]
        };
        let share_and_who = |before, after| {
            let capture = Capture {
                moments: ([(0.0, before), (10.0, after)].into_iter())
                    .map(|(at_s, qdisc)| Moment {
                        at_s,
                        answers: [(
                            "namespaces".to_owned(),
                            Reply::Answer(Answer::Namespaces(with(qdisc))),
                        )]
                        .into(),
                        ..Moment::default()
                    })
                    .collect(),
                ..Capture::default()
            };
            let mut evidence = Evidence::over(10.0);
            derive(&Window::of(&capture), &mut evidence);
            let share = evidence.host(&keys::NETNS_OTHER_QUEUE_LOSS).unwrap().value;
            let who = evidence
                .words(&keys::NETNS_OTHER_QUEUE_WHO, &Subject::host())
                .unwrap();
            (share, who.value.to_owned())
        };
        // Its counter of drops has 32 bits.
        let (share, who) = share_and_who(queue(100, u32::MAX, 0, 0), queue(400, 99, 9, 3));
        assert!((share - 0.25).abs() < 1e-9, "{share}");
        assert_eq!(
            who,
            "nginx (pid 2): the tbf queue of eth0 drops 10.0 packets/s"
        );
        let (share, who) = share_and_who(queue(100, 7, 0, 2), queue(400, 8, 9, 3));
        assert_eq!(
            (share, &who[..]),
            (
                0.0,
                "nginx (pid 2): the tbf queue of eth0 holds packets back, 3 at the end"
            )
        );
        let quiet = share_and_who(queue(100, 7, 0, 2), queue(400, 8, 0, 3));
        assert_eq!(quiet, (0.0, String::new()));
    }

    #[test]
    fn connections_of_another_namespace_stall_for_their_share_of_the_time() {
        let with = |timeouts: u64, rtt_us| {
            let mut other = namespace(2, 0, 0);
            other.counters = format!("TcpExt: TCPTimeouts\nTcpExt: {timeouts}\n");
            other.connections = Some(Connections { count: 8, rtt_us });
            vec![namespace(1, 0, 0), other]
        };
        let share = |timeouts: u64, rtt_us| {
            let ends = [(0.0, with(3, rtt_us)), (10.0, with(3 + timeouts, rtt_us))];
            let capture = Capture {
                moments: ends
                    .into_iter()
                    .map(|(at_s, namespaces)| Moment {
                        at_s,
                        answers: [(
                            "namespaces".to_owned(),
                            Reply::Answer(Answer::Namespaces(namespaces)),
                        )]
                        .into(),
                        ..Moment::default()
                    })
                    .collect(),
                ..Capture::default()
            };
            let mut evidence = Evidence::over(10.0);
            derive(&Window::of(&capture), &mut evidence);
            evidence.host(&keys::NETNS_OTHER_STALLS).unwrap().value
        };
        assert!((share(18, 90) - 0.045).abs() < 1e-9);
        assert!(share(4, 90).abs() < 1e-9, "one moment");
        assert!(
            share(18, 40_000).abs() < 1e-9,
            "a way on which losses are common"
        );
    }
}
