//! Traffic in other network namespaces of this machine: softirqs and stack samples include it.
//!
//! The CPU time of packets is counted for the whole machine, while sockets, rules and counters belong to one namespace.
//! The packets of each namespace show which one the samples belong to.

use rungwise_model::evidence::{Absence, Evidence, Origin, Subject};
use rungwise_model::kernel::{Answer, NetworkNamespace, Question};
use rungwise_model::keys;

use rungwise_formats::snmp;

use super::losses::{LOSSES, Loss};
use super::rates;
use crate::{Cost, Need, Probe, Source, When, Window};

const SOURCE: &str = "/proc/PID/net/dev";
const COUNTERS: &str = "/proc/PID/net/{snmp,netstat}";

/// Packets per second below which a namespace is not named.
const NAMED_FROM: f64 = 10.0;
/// Namespaces that are named.
const NAMED: usize = 3;
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
        &keys::NETNS_OWN_PACKETS,
    ],
    derive,
    doc: "\
Packets received by the devices of a namespace, loopback included. A packet that crosses a veth pair counts in the \
receiving namespace; one that the host forwards to a container counts in both. Namespaces are found by their processes \
and by their names in `/run/netns`; one that is held only by a descriptor or a single thread is not found. Of the 16 \
busiest that have a process, the counters of losses in `/proc/PID/net/snmp` and `netstat` are read as well; their sockets, queues \
and devices are not. Sources: namespaces(7), proc_net(5).",
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
}
