//! Whether a rule explains a high reading: the table names rules, and they are evaluated.
//!
//! Rules are pure functions of evidence, so they can be evaluated here again; all of them together take less than a millisecond.

use rungwise_model::check::Outcome;
use rungwise_model::evidence::{Evidence, Kind, Subject};

use super::Gauge;
use crate::RULES;

/// The rule that explains what `gauge` shows of `subject`: for a loss counter, one of the rules that cover it.
pub(crate) fn explanation(
    gauge: &Gauge,
    subject: &Subject,
    evidence: &Evidence,
) -> Option<&'static str> {
    let rules = match (subject.kind(), owner(subject.name())) {
        (Kind::Counter, Owner::Rules(rules)) => rules,
        _ => gauge.rules,
    };
    explained_by(rules, subject, evidence)
}

/// The first of these rules with something to act on or to watch about `subject`. A finding about a subject of another kind
/// explains it as well, such as the process that fills a disk. What is only watched of the whole machine does not explain what one
/// process shows, such as clients that wait: on a busy machine some task always waits for a CPU.
pub(crate) fn explained_by(
    rules: &[&'static str],
    subject: &Subject,
    evidence: &Evidence,
) -> Option<&'static str> {
    rules
        .iter()
        .copied()
        .find(|id| speaks(id, subject, evidence))
}

fn speaks(id: &str, subject: &Subject, evidence: &Evidence) -> bool {
    let Some(rule) = RULES.iter().find(|rule| rule.id == id) else {
        return false;
    };
    rule.findings(evidence).iter().any(|finding| {
        let Ok(about) = finding.subject.parse::<Subject>() else {
            return finding.outcome <= Outcome::Watch;
        };
        let least = match (about.kind(), subject.kind()) {
            (Kind::Host, Kind::Process) => Outcome::Act,
            _ => Outcome::Watch,
        };
        let other = about.kind() == subject.kind() && about != *subject;
        finding.outcome <= least && !other
    })
}

/// Which rules cover a loss counter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Owner {
    /// These rules know causes of it, and their thresholds decide; a loss far beyond them is still reported.
    Rules(&'static [&'static str]),
    /// It shows that packets were lost elsewhere, where they are counted as well, or that a peer gave up: reported only if it is
    /// a large share of all traffic.
    Follows,
    /// No rule covers it: the residual rule reports it.
    None,
}

const UDP_BUFFER: &[&str] = &["udp-rcvbuf-drop", "udp-mem-pressure"];
const ACCEPT: &[&str] = &["tcp-listen-overflow", "tcp-synq-full"];
const RETRANS: &[&str] = &[
    "tcp-retrans",
    "path-mtu-blackhole",
    "tcp-stalled",
    "tcp-reordering",
    "connect-unanswered",
    "qdisc-limit",
    "nf-drop",
    "neigh-unanswered",
    "tcp-listen-overflow",
];
const RESETS: &[&str] = &[
    "tcp-reset-unread",
    "connect-unanswered",
    "connect-refused",
    "tcp-retrans",
    "tcp-stalled",
];
const OPENS: &[&str] = &[
    "connect-refused",
    "connect-unanswered",
    "tcp-retrans",
    "tcp-stalled",
    "tcp-listen-overflow",
    "neigh-unanswered",
];
/// The host keeps sending itself ICMP errors for a destination that it cannot reach.
const UNREACHABLE: &[&str] = &["neigh-full", "neigh-unanswered", "connect-unanswered"];
const NEIGHBOURS: &[&str] = &["neigh-full", "neigh-unanswered"];
const SENDING: &[&str] = &["udp-sndbuf-drop", "qdisc-limit"];

/// By counter, `group:name`; sorted.
const OWNERS: &[(&str, Owner)] = &[
    ("Icmp6:InDestUnreachs", Owner::Rules(UNREACHABLE)),
    ("Icmp:InDestUnreachs", Owner::Rules(UNREACHABLE)),
    ("Icmp:InErrors", Owner::Rules(UNREACHABLE)),
    ("Icmp:OutRateLimitGlobal", Owner::Rules(UNREACHABLE)),
    ("Icmp:OutRateLimitHost", Owner::Rules(UNREACHABLE)),
    ("Ip6:ReasmFails", Owner::Rules(&["mtu-mismatch"])),
    ("Ip:OutDiscards", Owner::Rules(SENDING)),
    ("Ip:ReasmFails", Owner::Rules(&["mtu-mismatch"])),
    ("Tcp:AttemptFails", Owner::Rules(OPENS)),
    ("Tcp:EstabResets", Owner::Rules(RESETS)),
    ("Tcp:RetransSegs", Owner::Rules(RETRANS)),
    ("TcpExt:EmbryonicRsts", Owner::Rules(RETRANS)),
    (
        "TcpExt:IPReversePathFilter",
        Owner::Rules(&["rp-filter-drop"]),
    ),
    ("TcpExt:ListenDrops", Owner::Rules(ACCEPT)),
    ("TcpExt:ListenOverflows", Owner::Rules(ACCEPT)),
    ("TcpExt:SyncookiesSent", Owner::Rules(ACCEPT)),
    ("TcpExt:TCPAbortOnClose", Owner::Rules(RESETS)),
    ("TcpExt:TCPAbortOnData", Owner::Rules(RESETS)),
    ("TcpExt:TCPAbortOnTimeout", Owner::Rules(RETRANS)),
    ("TcpExt:TCPLostRetransmit", Owner::Rules(RETRANS)),
    ("TcpExt:TCPMemoryPressures", Owner::Rules(&["tcp-memory"])),
    ("TcpExt:TCPReqQFullDoCookies", Owner::Rules(ACCEPT)),
    ("TcpExt:TCPReqQFullDrop", Owner::Rules(ACCEPT)),
    (
        "TcpExt:TCPSpuriousRtxHostQueues",
        Owner::Rules(&["qdisc-limit"]),
    ),
    ("TcpExt:TCPSynRetrans", Owner::Rules(RETRANS)),
    ("TcpExt:TCPTimeouts", Owner::Rules(RETRANS)),
    (
        "TcpExt:TCPToZeroWindowAdv",
        Owner::Rules(&["tcp-recvq-pile", "clients-unread"]),
    ),
    ("TcpExt:TCPWinProbe", Owner::Rules(&["tcp-rwnd-limited"])),
    ("Udp6:MemErrors", Owner::Rules(UDP_BUFFER)),
    ("Udp6:NoPorts", Owner::Follows),
    ("Udp6:RcvbufErrors", Owner::Rules(UDP_BUFFER)),
    ("Udp6:SndbufErrors", Owner::Rules(SENDING)),
    ("Udp:MemErrors", Owner::Rules(UDP_BUFFER)),
    ("Udp:NoPorts", Owner::Follows),
    ("Udp:RcvbufErrors", Owner::Rules(UDP_BUFFER)),
    ("Udp:SndbufErrors", Owner::Rules(SENDING)),
    ("arp_cache:res_failed", Owner::Rules(NEIGHBOURS)),
    ("arp_cache:table_fulls", Owner::Rules(NEIGHBOURS)),
    ("arp_cache:unresolved_discards", Owner::Rules(NEIGHBOURS)),
    ("ndisc_cache:res_failed", Owner::Rules(NEIGHBOURS)),
    ("ndisc_cache:table_fulls", Owner::Rules(NEIGHBOURS)),
    ("ndisc_cache:unresolved_discards", Owner::Rules(NEIGHBOURS)),
    ("nf_conntrack:drop", Owner::Rules(&["conntrack-full"])),
    ("nf_conntrack:early_drop", Owner::Rules(&["conntrack-full"])),
    (
        "nf_conntrack:insert_failed",
        Owner::Rules(&["conntrack-full"]),
    ),
];

/// Which rules cover this counter.
pub(crate) fn owner(counter: &str) -> Owner {
    let at = OWNERS.binary_search_by_key(&counter, |(name, _)| name);
    at.map_or(Owner::None, |at| OWNERS[at].1)
}

/// Counters that rules cover; for the test that they exist.
pub fn owned_counters() -> impl Iterator<Item = &'static str> {
    OWNERS.iter().map(|(name, _)| *name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn owners_are_sorted_and_their_rules_exist() {
        assert!(OWNERS.is_sorted_by_key(|(name, _)| name));
        for (name, owner) in OWNERS {
            let Owner::Rules(rules) = owner else {
                continue;
            };
            for id in *rules {
                assert!(
                    RULES.iter().any(|rule| rule.id == *id),
                    "{name}: no rule {id}"
                );
            }
        }
    }
}
