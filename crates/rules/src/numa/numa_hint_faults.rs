//! `numa-hint-faults`: the kernel's NUMA balancing takes memory away from threads to see who misses it.
//!
//! Each hinting fault (`numa_hint_faults` of /proc/vmstat, `mm/memory.c`) stops a thread for a microsecond or
//! so. Right after a change of placement that is the price of getting better, and it fades; only what lasts is
//! sick.

use rungwise_model::check::{Finding, Grade};
use rungwise_model::evidence::{Evidence, Subject};
use rungwise_model::keys;

use crate::{Doc, Judgement, Measure, Rule, Threshold, say};

const FAULTS: Threshold = Threshold {
    name: "hinting faults per second",
    value: 10_000.0,
    origin: "own guess: at about a microsecond each, 1 % of a CPU",
};

const FADES: Threshold = Threshold {
    name: "last part of the window over the first, below which it fades",
    value: 0.5,
    origin: "own guess: halved within one window",
};

pub(crate) static RULE: Rule = Rule {
    id: "numa-hint-faults",
    topic: "numa",
    summary: "NUMA balancing keeps faulting without coming to rest",
    needs: &[
        &keys::NUMA_BALANCING,
        &keys::NUMA_HINT_FAULTS,
        &keys::NUMA_MIGRATED,
    ],
    thresholds: &[FAULTS, FADES],
    knobs: &["numa.balancing"],
    measure: Some(Measure::more(&keys::NUMA_HINT_FAULTS)),
    doc: Doc {
        looks_for: "More than 10,000 hinting faults per second in every part of the window, not fading, with balancing on.",
        hurts: "Each fault takes a thread out of its work, and each page that moves stops all who use it. Memory that two \
            nodes share never comes to rest.",
        todo: "Where the service is bound to a node, switch balancing off (numa.balancing=0). Where it is not, bind it first.",
        wrong: "Right after a start or a change of placement the faults are useful and fade within a minute. Unbound processes \
            on several nodes can be faster with it than without: anchors of the field contradict each other, so measure.",
        sources: "TuneD profile network-latency (off), PerfSpect (on); Documentation/admin-guide/sysctl/kernel.rst; \
            mm/memory.c.",
    },
    judge,
};

fn judge(evidence: &Evidence) -> Judgement {
    if let Ok(balancing) = evidence.words(&keys::NUMA_BALANCING, &Subject::host())
        && balancing.value == "0"
    {
        let clear = Finding::clear("NUMA balancing is off").cite(balancing.reading);
        return Ok(vec![clear]);
    }
    let faults = evidence.host(&keys::NUMA_HINT_FAULTS)?;
    let rate = say::rate(faults.value);
    if !faults.always(|rate| rate > FAULTS.value) {
        let clear = Finding::clear(format!("{rate} NUMA hinting faults"))
            .below(faults.value, FAULTS.value)
            .cite(faults.reading);
        return Ok(vec![clear]);
    }
    let series = &faults.reading.series;
    let fades = match (series.first(), series.last()) {
        (Some(first), Some(last)) => *last < first * FADES.value,
        _ => false,
    };
    let host = Subject::host();
    let mut finding = if fades {
        let sentence =
            format!("{rate} NUMA hinting faults, fading: memory is being moved after a change");
        Finding::watch(&host, sentence).severity(Grade::Low)
    } else {
        let sentence =
            format!("NUMA balancing takes {rate} hinting faults and does not come to rest");
        Finding::act(&host, sentence)
            .severity(Grade::Medium)
            .turn("numa.balancing", "0")
    };
    if let Ok(migrated) = evidence.host(&keys::NUMA_MIGRATED) {
        finding = finding.cite(migrated.reading);
    }
    Ok(vec![finding.cite(faults.reading).refuted_by(
        "the rate falls with balancing off, because memory stays on the wrong node",
    )])
}
