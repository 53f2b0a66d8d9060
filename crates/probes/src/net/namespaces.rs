//! Traffic in other network namespaces of this machine: softirqs and stack samples include it.
//!
//! The CPU time of packets is counted for the whole machine, while sockets, rules and counters belong to one namespace.
//! The packets of each namespace show which one the samples belong to.

use rungwise_model::evidence::{Absence, Evidence, Origin, Subject};
use rungwise_model::kernel::{Answer, NetworkNamespace, Question};
use rungwise_model::keys;

use super::rates;
use crate::{Cost, Need, Probe, Source, When, Window};

const SOURCE: &str = "/proc/PID/net/dev";

/// Packets per second below which a namespace is not named.
const NAMED_FROM: f64 = 10.0;
/// Namespaces that are named.
const NAMED: usize = 3;

/// The probe.
pub(crate) static PROBE: Probe = Probe {
    id: "network-namespaces",
    summary: "packets received in other network namespaces of this machine, and their owners",
    cost: Cost::Cheap,
    needs: &[Need::Root],
    sources: &[Source::ask(Question::Namespaces, When::Ends)],
    yields: &[
        &keys::NETNS_OTHERS,
        &keys::NETNS_OTHER_PACKETS,
        &keys::NETNS_OTHER_PID,
        &keys::NETNS_OWN_PACKETS,
    ],
    derive,
    doc: "\
Packets received by the devices of a namespace, loopback included. A packet that crosses a veth pair counts in the \
receiving namespace; one that the host forwards to a container counts in both. Namespaces are found by their processes \
and by their names in `/run/netns`; one that is held only by a descriptor or a single thread is not found. Sources: \
namespaces(7), proc_net(5).",
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
