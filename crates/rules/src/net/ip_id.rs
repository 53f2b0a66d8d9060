//! `ip-id`: a unique number for each datagram, from counters that all CPUs share.
//!
//! A packet that may be fragmented needs an identification, unique per pair of addresses. With few peers all
//! CPUs draw it from the same cache line. A datagram that may not be fragmented (DF) needs none.

use rungwise_model::check::Grade;
use rungwise_model::evidence::Evidence;
use rungwise_model::keys;

use crate::net::other_namespaces;
use crate::rule::needs;
use crate::{Doc, Judgement, Measure, Rule, Threshold, sampled, say};

const SHARE: Threshold = Threshold {
    name: "busy samples in __ip_select_ident",
    value: 0.03,
    origin: "between 1.2-1.8 % uncontended (measured on Linux 6.18) and 4.82 % in the reference case",
};

/// `ip-id`
pub(crate) static RULE: Rule = Rule {
    id: "ip-id",
    topic: "net",
    summary: "CPUs share the counters that number datagrams",
    needs: needs!(
        [
            &keys::CPU_BUSY,
            &keys::IP_FRAGMENTS_SHARE,
            &keys::STACK_IP_ID,
            &keys::STACK_SAMPLES
        ],
        other_namespaces::NEEDS
    ),
    thresholds: &[SHARE, sampled::SAMPLES, sampled::BUSY],
    knobs: &["sock.pmtudisc"],
    measure: Some(Measure::more(&keys::STACK_IP_ID)),
    doc: Doc {
        looks_for: "More than 3 % of busy samples in __ip_select_ident itself.",
        hurts: "A cache line moves between CPUs for each datagram that is sent.",
        todo: "IP_MTU_DISCOVER = IP_PMTUDISC_DO in the service: its datagrams then carry DF and need no number.",
        wrong: "Only where no datagram is larger than the path's MTU: as long as there are fragments, this rule is \
                silent. One peer address per CPU has no contention; 1.2 to 1.8 % are its price without any.",
        sources: "__ip_select_ident in net/ipv4/route.c (Linux 6.18); the reference case: 5,860 k to 6,010 k \
                  transactions/s; ip(7).",
    },
    judge,
};

fn judge(evidence: &Evidence) -> Judgement {
    let seen = sampled::share(evidence, &keys::STACK_IP_ID)?;
    let sentence = format!(
        "{} of busy samples number datagrams (__ip_select_ident)",
        say::percent(seen.share.value)
    );
    if seen.share.value <= SHARE.value {
        return Ok(vec![seen.clear(sentence, SHARE.value)]);
    }
    other_namespaces::ours(evidence)?;
    let fragments = evidence.host(&keys::IP_FRAGMENTS_SHARE)?;
    if fragments.value > 0.0 {
        return Ok(vec![
            seen.clear(
                format!(
                    "{sentence}, and {} of packets are fragments, which need the number",
                    say::percent(fragments.value)
                ),
                SHARE.value,
            )
            .cite(fragments.reading),
        ]);
    }
    let finding = seen.cost(evidence, &sentence, SHARE.value)?;
    let confidence = finding.confidence.min(Grade::Medium);
    Ok(vec![
        finding
            // Whether every path takes the datagrams cannot be seen: no fragment in one window proves it not.
            .confidence(confidence)
            .cite(fragments.reading)
            .turn("sock.pmtudisc", "do")
            .estimate(
                0.0,
                0.026,
                "reference case, 4.82 % of CPU before: 5,860 k to 6,010 k transactions/s; +3.7 % on a veth pair",
            )
            .refuted_by("sends fail with EMSGSIZE, or CPU per datagram stays as it was with DF set"),
    ])
}
