//! Which loss counters are worth a finding: how much is lost, and which rules cover it.

use rungwise_model::evidence::{Evidence, Subject};
use rungwise_model::keys;

use crate::Threshold;
use crate::resources::{Owner, explained_by, owner};

pub(crate) const SHARE: Threshold = Threshold {
    name: "share of the traffic that a counter without a rule lost",
    value: 0.005,
    origin: "own guess: one packet of 200 shows in p99.5 of requests of one packet",
};

pub(crate) const MUCH: Threshold = Threshold {
    name: "share of the traffic that is reported whatever the rules of the counter find",
    value: 0.05,
    origin: "own guess: at 5 % a loss has a noticeable cost",
};

pub(crate) const RATE: Threshold = Threshold {
    name: "losses per second from which on they are reported",
    value: 1.0,
    origin: "own guess: fewer are normal in any network",
};

pub(crate) const DROPS: Threshold = Threshold {
    name: "packets dropped per second for a reason without a counter",
    value: 10.0,
    origin: "measured: with redis, nginx and flooded or full queues the kernel gave up to 3 packets per second no reason, without any loss",
};

pub(crate) const THEIRS: Threshold = Threshold {
    name: "packets of other network namespaces, as a multiple of the own, from which on drops without a counter may be theirs",
    value: 2.0,
    origin: "own guess: the other end of a connection receives about as many",
};

/// Drops are counted for the whole machine: they belong here where the traffic does.
fn is_ours(evidence: &Evidence) -> bool {
    let packets = |key| evidence.host(key).map_or(0.0, |packets| packets.value);
    packets(&keys::NETNS_OTHER_PACKETS) <= THEIRS.value * packets(&keys::NETNS_OWN_PACKETS)
}

/// A limit of the cloud or of the hypervisor that the machine exceeds. Only what exceeds it is counted, so any loss shows that it is reached.
pub(crate) fn is_limit(counter: &Subject) -> bool {
    let name = counter.name();
    name.contains("allowance_exceeded") || name.contains("ratelimit")
}

/// A limit whose excess the cloud delays first and drops only if it lasts: bursts of a millisecond are counted too.
pub(crate) fn is_delayed(counter: &Subject) -> bool {
    let name = counter.name();
    ["bw_in_", "bw_out_", "pps_"]
        .iter()
        .any(|limit| name.contains(&format!("driver.{limit}")))
}

/// Whether the counter shows a loss worth a finding; a counter covered by rules does if one of them fires or the loss is very large.
pub(crate) fn is_a_loss(evidence: &Evidence, counter: &Subject) -> bool {
    let value = |key| {
        evidence
            .quantity(key, counter)
            .map_or(0.0, |quantity| quantity.value)
    };
    let (rate, share) = (value(&keys::LOSS_RATE), value(&keys::LOSS_SHARE));
    if rate < RATE.value {
        return false;
    }
    if counter.name().starts_with("skb:") {
        return share >= MUCH.value && rate >= DROPS.value && is_ours(evidence);
    }
    match owner(counter.name()) {
        Owner::None if is_limit(counter) => true,
        Owner::None => share >= SHARE.value,
        Owner::Follows => share >= MUCH.value,
        Owner::Rules(rules) => {
            share >= MUCH.value || explained_by(rules, counter, evidence).is_some()
        }
    }
}
