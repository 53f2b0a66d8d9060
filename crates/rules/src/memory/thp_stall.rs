//! `thp-stall`: allocations stall to compact memory for a huge page.
//!
//! `compact_stall` of /proc/vmstat (`mm/compaction.c`) counts threads that compacted themselves. A huge page
//! that was not available (`thp_fault_fallback`) costs nothing by itself; it shows that memory is fragmented.

use rungwise_model::check::{Finding, Grade};
use rungwise_model::evidence::{Evidence, Subject};
use rungwise_model::keys;

use crate::{Doc, Judgement, Measure, Rule, Threshold, say};

const STALLS: Threshold = Threshold {
    name: "allocations that compacted per second",
    value: 10.0,
    origin: "A-Tune and TuneD network-latency, which forbid it; the threshold is our own guess",
};

const FALLBACKS: Threshold = Threshold {
    name: "huge page faults that got small pages per second",
    value: 10.0,
    origin: "own guess, as for the stalls",
};

/// Values of `/sys/kernel/mm/transparent_hugepage/defrag` with which a fault compacts directly.
const DIRECT: &[&str] = &["always", "defer+madvise", "madvise"];

pub(crate) static RULE: Rule = Rule {
    id: "thp-stall",
    topic: "memory",
    summary: "allocations stall to make room for huge pages",
    needs: &[
        &keys::MEMORY_COMPACT_STALL,
        &keys::MEMORY_THP,
        &keys::MEMORY_THP_DEFRAG,
        &keys::MEMORY_THP_FALLBACK,
    ],
    thresholds: &[STALLS, FALLBACKS],
    knobs: &["mem.thp_defrag", "mem.thp"],
    measure: Some(Measure::more(&keys::MEMORY_COMPACT_STALL)),
    doc: Doc {
        looks_for: "More than ten allocations per second that compacted memory themselves, in every part of the window.",
        hurts: "The thread moves other pages for up to milliseconds before it gets its own. The result is latency spikes \
            without a cause in the program.",
        todo: "Leave compaction to the background (mem.thp_defrag=defer). If that is not enough, huge pages only for \
            programs that ask (mem.thp=madvise).",
        wrong: "Allocations of large buffers for devices and slabs compact too; with huge pages at `never` they are the \
            cause and these knobs do nothing. Without huge pages a large heap may miss its TLB (tlb-bound): measure \
            both.",
        sources: "A-Tune profile network-intensive (defrag never); TuneD profile network-latency (never); \
            Documentation/admin-guide/mm/transhuge.rst; mm/compaction.c.",
    },
    judge,
};

fn judge(evidence: &Evidence) -> Judgement {
    let host = Subject::host();
    let stalls = evidence.host(&keys::MEMORY_COMPACT_STALL)?;
    let rate = say::rate(stalls.value);
    let fallbacks = evidence.host(&keys::MEMORY_THP_FALLBACK).ok();
    if !stalls.lasts(|rate| rate > STALLS.value) {
        if let Some(fallbacks) = fallbacks
            && fallbacks.lasts(|rate| rate > FALLBACKS.value)
        {
            let sentence = format!(
                "{} huge page allocations failed and fell back to small pages: memory is fragmented",
                say::rate(fallbacks.value)
            );
            let watch = Finding::watch(&host, sentence)
                .severity(Grade::Low)
                .cite(fallbacks.reading)
                .cite(stalls.reading)
                .refuted_by("the program that requests them is short-lived");
            return Ok(vec![watch]);
        }
        let clear = Finding::clear(format!("{rate} allocations had to compact"))
            .below(stalls.value, STALLS.value)
            .cite(stalls.reading);
        return Ok(vec![clear]);
    }
    let mode = evidence.words(&keys::MEMORY_THP, &host)?;
    if mode.value == "never" {
        let sentence = format!(
            "{rate} allocations had to compact, though huge pages are off: some device or slab needs large buffers"
        );
        let watch = Finding::watch(&host, sentence)
            .cite(stalls.reading)
            .cite(mode.reading)
            .refuted_by(
                "compaction stops when the service does: it requests the large buffers itself",
            );
        return Ok(vec![watch]);
    }
    let defrag = evidence.words(&keys::MEMORY_THP_DEFRAG, &host)?;
    let sentence = format!(
        "{rate} allocations stall to compact memory for huge pages ({}, defrag {})",
        mode.value, defrag.value
    );
    let mut finding = Finding::act(&host, sentence)
        .severity(if stalls.value > 100.0 {
            Grade::High
        } else {
            Grade::Medium
        })
        .cite(stalls.reading)
        .cite(mode.reading)
        .cite(defrag.reading);
    if DIRECT.contains(&defrag.value) {
        finding = finding.turn("mem.thp_defrag", "defer");
    }
    if mode.value == "always" {
        finding = finding.turn("mem.thp", "madvise");
    }
    Ok(vec![finding.refuted_by(
        "compaction continues with huge pages at never: something else allocates large buffers",
    )])
}
