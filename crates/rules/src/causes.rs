//! Which finding causes which: a cause is listed before its consequences.
//!
//! An overflowing queue makes its clients retransmit, and a stopped group makes its threads wait. Cause and consequence are
//! both true and both found; if you start with the consequence, you lose an afternoon. Severity alone cannot order them,
//! because a consequence is often the larger number.

use std::collections::BTreeSet;

use rungwise_model::check::{Finding, Outcome};

/// A rule, and the rules whose findings follow from its own. Sorted by the cause.
const CAUSES: &[(&str, &[&str])] = &[
    (
        "affinity-narrow",
        &[
            "runq-delay",
            "tcp-recvq-pile",
            "tcp-rwnd-limited",
            "thread-saturated",
        ],
    ),
    (
        "cfs-throttled",
        &[
            "clients-unread",
            "runq-delay",
            "tcp-recvq-pile",
            "thread-saturated",
            "udp-rcvbuf-drop",
        ],
    ),
    (
        "cgroup-frozen",
        &[
            "clients-unread",
            "tcp-listen-overflow",
            "tcp-recvq-pile",
            "tcp-rwnd-limited",
            "udp-rcvbuf-drop",
        ],
    ),
    (
        "cgroup-io-limit",
        &[
            "disk-queue",
            "disk-saturated",
            "disk-sync",
            "idle-but-waiting",
            "tcp-recvq-pile",
            "user-lock",
        ],
    ),
    (
        "cgroup-memory-limit",
        &[
            "direct-reclaim",
            "disk-queue",
            "disk-saturated",
            "process-blocked",
            "swap-in",
            "tcp-recvq-pile",
        ],
    ),
    ("clients-unread", &["tcp-recvq-pile", "tcp-rwnd-limited"]),
    (
        "connect-failed",
        &["clients-unread", "connect-refused", "upstream-slow"],
    ),
    (
        "connect-unanswered",
        &[
            "clients-unread",
            "connect-refused",
            "tcp-retrans",
            "upstream-slow",
        ],
    ),
    ("conntrack-full", &["tcp-retrans"]),
    (
        "cpu-weight-low",
        &[
            "clients-unread",
            "runq-delay",
            "tcp-recvq-pile",
            "udp-rcvbuf-drop",
        ],
    ),
    ("database-lock", &["clients-unread", "upstream-slow"]),
    (
        "descriptors-full",
        &[
            "clients-unread",
            "tcp-listen-overflow",
            "tcp-retrans",
            "thread-saturated",
        ],
    ),
    (
        "disk-saturated",
        &["disk-queue", "tcp-recvq-pile", "user-lock"],
    ),
    (
        "disk-sync",
        &[
            "disk-queue",
            "disk-saturated",
            "process-blocked",
            "tcp-recvq-pile",
            "user-lock",
        ],
    ),
    // The kernel gives no reason for answers that are unread when their socket is closed.
    (
        "dns-unanswered",
        &["clients-unread", "unexplained-loss", "upstream-slow"],
    ),
    ("fork-storm", &["runq-delay"]),
    (
        "neigh-full",
        &[
            "neigh-unanswered",
            "tcp-retrans",
            "tcp-stalled",
            "udp-sndbuf-drop",
        ],
    ),
    (
        "neigh-unanswered",
        &[
            "connect-refused",
            "connect-unanswered",
            "tcp-retrans",
            "tcp-stalled",
            // Packets that wait for an address are dropped without a reason when it does not come.
            "unexplained-loss",
        ],
    ),
    ("nf-drop", &["tcp-retrans", "tcp-stalled"]),
    ("nic-ring-drop", &["tcp-retrans"]),
    (
        "other-namespaces",
        &[
            "irq-one-cpu",
            "slab-hot",
            "softnet-drop",
            "unexplained-wait",
        ],
    ),
    ("path-mtu-blackhole", &["tcp-retrans", "tcp-stalled"]),
    (
        "priority-low",
        &[
            "clients-unread",
            "runq-delay",
            "tcp-recvq-pile",
            "udp-rcvbuf-drop",
        ],
    ),
    (
        "process-blocked",
        &[
            "clients-unread",
            "tcp-listen-overflow",
            "tcp-recvq-pile",
            "upstream-slow",
            "user-lock",
        ],
    ),
    (
        "process-stopped",
        &[
            "clients-unread",
            "tcp-listen-overflow",
            "tcp-recvq-pile",
            "tcp-rwnd-limited",
            "udp-rcvbuf-drop",
            "upstream-slow",
        ],
    ),
    (
        "process-traced",
        &[
            "clients-unread",
            "runq-delay",
            "syscall-bound",
            "tcp-listen-overflow",
            "tcp-recvq-pile",
            "thread-saturated",
            "upstream-slow",
        ],
    ),
    (
        "qdisc-limit",
        &[
            "tcp-retrans",
            "tcp-rwnd-limited",
            "tcp-sendq-pile",
            "tcp-sndbuf-limited",
            "udp-sndbuf-drop",
        ],
    ),
    (
        "realtime-hog",
        &[
            "clients-unread",
            "runq-delay",
            "tcp-recvq-pile",
            "thread-saturated",
        ],
    ),
    ("reuseport-skew", &["udp-rcvbuf-drop"]),
    ("rp-filter-drop", &["tcp-retrans", "tcp-stalled"]),
    ("service-restarts", &["connect-refused", "tcp-port-closed"]),
    ("softnet-drop", &["tcp-retrans"]),
    (
        "tcp-listen-overflow",
        &["tcp-port-closed", "tcp-retrans", "tcp-synq-full"],
    ),
    ("tcp-recvq-pile", &["tcp-rwnd-limited"]),
    ("tcp-reordering", &["tcp-retrans"]),
    (
        "thread-pool-exhausted",
        &[
            "connection-pool-exhausted",
            "idle-but-waiting",
            "lock-wait-ratio",
        ],
    ),
    (
        "thread-saturated",
        &[
            "clients-unread",
            "syscall-bound",
            "tcp-listen-overflow",
            "tcp-recvq-pile",
            "tcp-rwnd-limited",
            "upstream-slow",
        ],
    ),
    (
        "upstream-pool-full",
        &[
            "clients-unread",
            "tcp-listen-overflow",
            "threads-grow",
            "upstream-slow",
        ],
    ),
    (
        "upstream-slow",
        &["clients-unread", "tcp-listen-overflow", "threads-grow"],
    ),
    (
        "user-lock",
        &[
            "clients-unread",
            "tcp-listen-overflow",
            "tcp-recvq-pile",
            "threads-grow",
            "upstream-slow",
        ],
    ),
    (
        "write-queue-grows",
        &["cgroup-memory-limit", "direct-reclaim", "swap-in"],
    ),
];

/// Rules whose findings follow from those of `rule`, at once or through another one.
pub fn consequences(rule: &str) -> BTreeSet<&'static str> {
    let mut found = BTreeSet::new();
    let mut open = vec![rule];
    while let Some(rule) = open.pop() {
        for (_, follow) in CAUSES.iter().filter(|(cause, _)| *cause == rule) {
            for &rule in *follow {
                if found.insert(rule) {
                    open.push(rule);
                }
            }
        }
    }
    found
}

/// Moves the consequences of a finding to act on behind it, whatever their severities; everything else keeps its place.
///
/// Only findings to act on are causes, and only consequences to act on move: outcomes stay together.
pub(crate) fn first(findings: &mut Vec<Finding>) {
    let acts = findings
        .iter()
        .take_while(|finding| finding.outcome == Outcome::Act)
        .count();
    let mut rest = findings.split_off(acts);
    let mut waiting = std::mem::take(findings);
    // A finding is placed when none of those that still wait is its cause. What is left in a cycle keeps its order.
    while !waiting.is_empty() {
        let next = waiting
            .iter()
            .position(|finding| !waiting.iter().any(|other| is_cause(other, finding)))
            .unwrap_or(0);
        findings.push(waiting.remove(next));
    }
    findings.append(&mut rest);
}

/// Whether `finding` follows from `cause`.
fn is_cause(cause: &Finding, finding: &Finding) -> bool {
    CAUSES
        .iter()
        .any(|(rule, follow)| *rule == cause.rule && follow.contains(&finding.rule.as_str()))
}

#[cfg(test)]
mod tests {
    use rungwise_model::check::Grade;
    use rungwise_model::evidence::Subject;

    use super::*;
    use crate::RULES;

    #[test]
    fn rules_in_the_table_exist_and_it_is_sorted() {
        assert!(CAUSES.is_sorted_by_key(|(cause, _)| cause));
        for (cause, follow) in CAUSES {
            for rule in follow.iter().chain([cause]) {
                assert!(
                    RULES.iter().any(|known| known.id == *rule),
                    "no rule {rule}"
                );
            }
            assert!(!follow.contains(cause), "{cause} is its own cause");
        }
    }

    #[test]
    fn a_consequence_of_a_consequence_follows_too() {
        let follow = consequences("cgroup-frozen");
        assert!(follow.contains("tcp-listen-overflow"));
        // By way of tcp-listen-overflow.
        assert!(follow.contains("tcp-retrans"));
        assert!(!follow.contains("cgroup-frozen"));
        assert!(consequences("fork-storm").contains("runq-delay"));
        assert!(consequences("no-such-rule").is_empty());
    }

    #[test]
    fn a_cause_stands_before_a_severer_consequence() {
        let said = |rule: &str, grade: Grade, finding: fn(&Subject, String) -> Finding| Finding {
            rule: rule.to_owned(),
            ..finding(&Subject::host(), String::new()).severity(grade)
        };
        let mut findings = vec![
            said("tcp-retrans", Grade::High, Finding::act),
            said("steal", Grade::Medium, Finding::act),
            said("tcp-listen-overflow", Grade::Medium, Finding::act),
            said("runq-delay", Grade::Low, Finding::watch),
        ];
        first(&mut findings);
        let order: Vec<&str> = findings.iter().map(|finding| &*finding.rule).collect();
        assert_eq!(
            order,
            ["steal", "tcp-listen-overflow", "tcp-retrans", "runq-delay"]
        );
    }
}
