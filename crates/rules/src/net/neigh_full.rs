//! `neigh-full`: a neighbour table is full, and the kernel cannot reach new neighbours.

use rungwise_model::check::{Finding, Grade};
use rungwise_model::evidence::{Evidence, Subject};
use rungwise_model::keys;

use crate::{Doc, Judgement, Measure, Rule, Threshold, say};

const REFUSED: Threshold = Threshold {
    name: "new neighbours refused per second",
    value: 0.0,
    origin: "any: each is a packet that is not sent (NEIGH_CREATEFAIL)",
};

const ENTRIES: Threshold = Threshold {
    name: "entries of the table, as a share of gc_thresh3",
    value: 0.90,
    origin: "own guess: the next burst of new neighbours fills it",
};

/// `neigh-full`
pub(crate) static RULE: Rule = Rule {
    id: "neigh-full",
    topic: "net",
    summary: "the neighbour table (ARP, NDP) is full",
    needs: &[
        &keys::NEIGH_ENTRIES,
        &keys::NEIGH_LIMIT,
        &keys::NEIGH_REFUSED,
    ],
    thresholds: &[REFUSED, ENTRIES],
    knobs: &["net.neigh_gc"],
    measure: Some(Measure::more(&keys::NEIGH_REFUSED)),
    doc: Doc {
        looks_for: "Neighbours refused because a table was full (table_fulls), or a table more than 90 % full.",
        hurts: "Packets to new neighbours are dropped immediately, connects fail with ENOBUFS or time out, while known neighbours work.",
        todo: "Raise gc_thresh3 above the number of neighbours, and gc_thresh2 with it (net.neigh_gc). Many neighbours that do \
            not exist come from a scan, or from a network that is too large.",
        wrong: "The tables and their limits are shared by all network namespaces: another container may be the one that fills them.",
        sources: "neigh_alloc in net/core/neighbour.c (Linux 6.18); Documentation/networking/ip-sysctl.rst.",
    },
    judge,
};

fn judge(evidence: &Evidence) -> Judgement {
    let refused = evidence.host(&keys::NEIGH_REFUSED)?;
    let entries = evidence.host(&keys::NEIGH_ENTRIES)?;
    let limit = evidence.host(&keys::NEIGH_LIMIT)?;
    let full = say::percent(entries.value);
    let finding = if refused.value > REFUSED.value {
        let sentence = format!(
            "the neighbour table is full (limit {:.0}): {} new neighbours are refused",
            limit.value,
            say::rate(refused.value)
        );
        Finding::act(&Subject::host(), sentence)
            .severity(Grade::High)
            .confidence(Grade::High)
    } else if entries.value > ENTRIES.value {
        let sentence = format!(
            "the neighbour table is {full} full (limit {:.0}); none was refused in the window",
            limit.value
        );
        Finding::watch(&Subject::host(), sentence).confidence(Grade::High)
    } else {
        return Ok(vec![
            Finding::clear(format!("the neighbour table is {full} full"))
                .below(entries.value, ENTRIES.value)
                .cite(entries.reading)
                .cite(refused.reading),
        ]);
    };
    let most = (limit.value * 4.0).max(4096.0);
    let wish = format!("gc_thresh2={:.0},gc_thresh3={most:.0}", most / 2.0);
    Ok(vec![
        finding
            .cite(refused.reading)
            .cite(entries.reading)
            .cite(limit.reading)
            .turn("net.neigh_gc", wish)
            .refuted_by("with a table four times as large, as many neighbours are refused"),
    ])
}
