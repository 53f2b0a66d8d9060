//! `nf-drop`: firewall rules drop a part of the traffic.
//!
//! The kernel counts what netfilter drops for the whole machine. It is held against this network namespace only where there are
//! rules here and the traffic is not elsewhere.

use rungwise_model::check::{Finding, Grade};
use rungwise_model::evidence::{Evidence, Subject};
use rungwise_model::keys;

use crate::net::other_namespaces;
use crate::rule::needs;
use crate::{Doc, Judgement, Measure, Rule, Threshold, pick, say};

const DROPPED: Threshold = Threshold {
    name: "packets dropped by rules, per second",
    value: 50.0,
    origin: "own guess: scans from the Internet and broadcasts of a local network are fewer",
};

const SHARE: Threshold = Threshold {
    name: "the same, as a share of the packets that this network namespace receives",
    value: 0.01,
    origin: "measured by `cargo xtask faults --steps 5 --seed 8001`: rules that dropped 0.5 % of the packets cost 3 % of the requests, 3.2 \
        % of them 16 %",
};

const FEW: Threshold = Threshold {
    name: "packets dropped per second, where they are much of what arrives",
    value: 10.0,
    origin: "measured by `cargo xtask faults`: a limit that let 7 % of the requests of redis through dropped 37 packets/s, since clients stop sending when packets are lost",
};

const MUCH: Threshold = Threshold {
    name: "share of the packets that is much",
    value: 0.05,
    origin: "measured by `cargo xtask faults --steps 5 --seed 8001`: 3.2 % of the packets dropped cost 16 % of the requests, 59 % cost 90 %",
};

const LITTLE: Threshold = Threshold {
    name: "share of the packets from which on it counts that TCP sends again as well",
    value: 0.001,
    origin: "measured by `cargo xtask faults`: 0.36 % of the packets to redis, 12/s, took p99 from 0.4 to 399 ms",
};

const AGAIN: Threshold = Threshold {
    name: "segments sent again, as a share of the packets dropped",
    value: 0.3,
    origin: "own guess: scans are dropped without a connection that sends again",
};

/// `nf-drop`
pub(crate) static RULE: Rule = Rule {
    id: "nf-drop",
    topic: "net",
    summary: "firewall rules drop a part of the traffic",
    needs: needs!(
        [
            &keys::DROP_NETFILTER,
            &keys::IP_RECEIVED,
            &keys::LOSS_RATE,
            &keys::NETFILTER_BASE_CHAINS,
            &keys::NETFILTER_LEGACY_TABLES
        ],
        other_namespaces::NEEDS
    ),
    thresholds: &[DROPPED, SHARE, FEW, MUCH, LITTLE, AGAIN],
    knobs: &[],
    measure: Some(Measure::more(&keys::DROP_NETFILTER)),
    doc: Doc {
        looks_for: "More than 50 packets a second dropped by netfilter (kfree_skb with NETFILTER_DROP), more than 1 % of the packets that \
            this network namespace receives, or more than 10 and more than 5 %, while it has rules. Where TCP sends again at the same time, 0.1 % is enough.",
        hurts: "Dropped segments come again a timeout later, dropped datagrams never.",
        todo: "Find the rule: `nft list ruleset` or `iptables -nvL`, twice; the counter that grows is it. A rate limit (`limit rate over`, \
            hashlimit) that is too low for the service is the usual one; a counter can be added to a rule without one.",
        wrong: "A firewall keeps unwanted traffic out on purpose: under an attack this is its work. Drops of all network namespaces are \
            counted together.",
        sources: "nf_hook_slow in net/netfilter/core.c (Linux 5.17 and later: NETFILTER_DROP).",
    },
    judge,
};

fn judge(evidence: &Evidence) -> Judgement {
    let dropped = evidence.host(&keys::DROP_NETFILTER)?;
    let clear = |sentence: String| {
        Finding::clear(sentence)
            .below(dropped.value, FEW.value)
            .cite(dropped.reading)
    };
    let sentence = format!("firewall rules drop {} packets", say::rate(dropped.value));
    if dropped.value <= FEW.value {
        return Ok(vec![clear(sentence)]);
    }
    let chains = evidence.host(&keys::NETFILTER_BASE_CHAINS)?;
    let legacy = evidence
        .words(&keys::NETFILTER_LEGACY_TABLES, &Subject::host())
        .is_ok_and(|tables| !tables.value.is_empty());
    if chains.value < 1.0 && !legacy {
        return Ok(vec![clear(format!(
            "{sentence} of the machine, but this network namespace has no rules"
        ))]);
    }
    other_namespaces::ours(evidence)?;
    // Without a count by namespaces, that of IP will do: it counts before the rules.
    let own = match evidence.host(&keys::NETNS_OWN_PACKETS) {
        Ok(own) => own,
        Err(_) => evidence.host(&keys::IP_RECEIVED)?,
    };
    let share = dropped.value / own.value.max(dropped.value);
    let sentence = format!("{sentence}, {} of those that arrive", say::percent(share));
    let again = pick::loss_rate(evidence, "Tcp:RetransSegs");
    let line = if again >= AGAIN.value * dropped.value {
        LITTLE.value
    } else if dropped.value > DROPPED.value {
        SHARE.value
    } else {
        MUCH.value
    };
    if share <= line {
        return Ok(vec![clear(sentence).below(share, line)]);
    }
    Ok(vec![
        Finding::act(&Subject::host(), sentence)
            .severity(if share > MUCH.value {
                Grade::High
            } else {
                Grade::Medium
            })
            .confidence(Grade::Medium)
            .cite(dropped.reading)
            .cite(chains.reading)
            .cite(own.reading)
            .refuted_by("no counter of `nft list ruleset` grows at a rule that drops"),
    ])
}
