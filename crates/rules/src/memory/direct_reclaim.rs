//! `direct-reclaim`: allocations find no free page and have to reclaim one themselves.
//!
//! `allocstall_*` of /proc/vmstat (`mm/vmscan.c`) counts them for the machine as a whole; a control group at
//! its own limit reclaims too, which looks the same in the pressure numbers and has another remedy.

use rungwise_model::check::{Finding, Grade};
use rungwise_model::evidence::{Evidence, Subject};
use rungwise_model::keys;

use crate::{Doc, Judgement, Measure, Rule, Threshold, say};

const STALLS: Threshold = Threshold {
    name: "allocations that had to reclaim, per second",
    value: 0.0,
    origin: "mm/vmscan.c: kswapd alone keeps a healthy machine supplied",
};

const PRESSURE: Threshold = Threshold {
    name: "share of time in which some task waits for memory",
    value: 0.05,
    origin: "own guess: with less, the stalls cost no visible time",
};

const RESERVE: Threshold = Threshold {
    name: "free reserve as a share of the memory",
    value: 0.01,
    origin: "own guess; the reference bank host's 112,640 KiB is 0.3 % of its guest",
};

/// Largest reserve that is recommended: memory kept free is memory lost.
const MOST_KIB: f64 = 1024.0 * 1024.0;

pub(crate) static RULE: Rule = Rule {
    id: "direct-reclaim",
    topic: "memory",
    summary: "allocations stall because too little memory is kept free",
    needs: &[
        &keys::MEMORY_ALLOCSTALL,
        &keys::MEMORY_CGROUP_RECLAIM,
        &keys::MEMORY_DIRECT_SCAN,
        &keys::MEMORY_MIN_FREE,
        &keys::MEMORY_TOTAL,
        &keys::PSI_MEMORY_SOME,
    ],
    thresholds: &[STALLS, PRESSURE, RESERVE],
    knobs: &["mem.min_free_kbytes", "mem.watermark_scale"],
    measure: Some(Measure::more(&keys::MEMORY_ALLOCSTALL)),
    doc: Doc {
        looks_for: "Allocations that had to reclaim pages themselves, while some task waits for memory in more than 5 % of the \
            time.",
        hurts: "A thread that wanted a page for a packet or an object scans and writes back other pages first, for \
            milliseconds.",
        todo: "Keep more memory free: wake kswapd earlier (mem.watermark_scale), or raise the reserve to about 1 % of the \
            memory (mem.min_free_kbytes). Where memory is simply short, only less use or more memory helps.",
        wrong: "A control group at its own limit gives the same pressure; then the group's limit is the cause, and the \
            finding says so. A large copy or a backup stalls once and is over.",
        sources: "The reference bank host, section on memory; Documentation/admin-guide/sysctl/vm.rst; mm/vmscan.c; \
            Documentation/accounting/psi.rst.",
    },
    judge,
};

fn judge(evidence: &Evidence) -> Judgement {
    let stalls = evidence.host(&keys::MEMORY_ALLOCSTALL)?;
    let pressure = evidence.host(&keys::PSI_MEMORY_SOME);
    let pressed = pressure
        .as_ref()
        .is_ok_and(|pressure| pressure.value > PRESSURE.value);
    let limited = evidence
        .each(&keys::MEMORY_CGROUP_RECLAIM)
        .ok()
        .and_then(|groups| groups.into_iter().find(|(_, rate)| rate.value > 0.0));
    let host = Subject::host();
    let rate = say::rate(stalls.value);
    if stalls.value <= STALLS.value {
        if let (true, Some((group, hits))) = (pressed, limited) {
            let sentence = format!(
                "no global allocation stalls; the waits for memory come from control group {}, which hits \
                 its limit {}",
                group.name(),
                say::rate(hits.value)
            );
            let clear = Finding::clear(sentence).cite(hits.reading);
            return Ok(vec![clear]);
        }
        let clear = Finding::clear("no allocation had to reclaim").cite(stalls.reading);
        return Ok(vec![clear]);
    }
    // Without pressure information it is unknown whether the stalls cost time.
    let pressure = pressure?;
    let waits = say::percent(pressure.value);
    if !pressed {
        let sentence = format!(
            "{rate} allocations had to reclaim, but tasks waited for memory in only {waits} of the time"
        );
        let clear = Finding::clear(sentence)
            .below(pressure.value, PRESSURE.value)
            .cite(stalls.reading)
            .cite(pressure.reading);
        return Ok(vec![clear]);
    }
    let sentence = format!(
        "{rate} allocations had to reclaim memory themselves, and some task waited for memory in {waits} of the time"
    );
    let mut finding = Finding::act(&host, sentence)
        .severity(if pressure.value > 0.2 {
            Grade::High
        } else {
            Grade::Medium
        })
        .confidence(if stalls.always(|rate| rate > STALLS.value) {
            Grade::High
        } else {
            Grade::Medium
        })
        .cite(stalls.reading)
        .cite(pressure.reading)
        .consider("mem.watermark_scale");
    if let Ok(scanned) = evidence.host(&keys::MEMORY_DIRECT_SCAN) {
        finding = finding.cite(scanned.reading);
    }
    if let (Ok(kept), Ok(total)) = (
        evidence.host(&keys::MEMORY_MIN_FREE),
        evidence.host(&keys::MEMORY_TOTAL),
    ) {
        let wanted = (total.value * RESERVE.value / 1024.0).min(MOST_KIB).floor();
        if kept.value / 1024.0 < wanted {
            finding = finding
                .cite(kept.reading)
                .turn("mem.min_free_kbytes", format!("{wanted:.0}"));
        }
    }
    Ok(vec![finding.refuted_by(
        "the stalls stay with a larger reserve: memory is short, not reclaimed late",
    )])
}
