//! `tlb-bound`: the processor spends time on TLB misses.
//!
//! Only hardware counters show it, and most guests have none; then the rule is undecided.

use rungwise_model::check::{Finding, Grade};
use rungwise_model::evidence::{Evidence, Subject};
use rungwise_model::keys;

use crate::{Doc, Judgement, Measure, Rule, Threshold, say};

const WALKS: Threshold = Threshold {
    name: "share of data loads that miss the TLB",
    value: 0.05,
    origin: "oeAware's huge page analysis: 5 % at the first level",
};

const MUCH: Threshold = Threshold {
    name: "the same, high",
    value: 0.10,
    origin: "oeAware, second level: 10 %",
};

pub(crate) static RULE: Rule = Rule {
    id: "tlb-bound",
    topic: "memory",
    summary: "small pages: data loads miss the TLB",
    needs: &[&keys::MEMORY_THP, &keys::MEMORY_TLB_SHARE],
    thresholds: &[WALKS, MUCH],
    knobs: &["mem.thp", "mem.hugetlb", "jvm.large_pages"],
    measure: Some(Measure::more(&keys::MEMORY_TLB_SHARE)),
    doc: Doc {
        looks_for: "More than 5 % of the data loads on all CPUs miss the TLB, by hardware counters.",
        hurts: "Each page needs an entry in the TLB, which has a few thousand; a heap of gigabytes in 4 KiB pages misses it \
            all the time, and every miss costs up to four memory reads.",
        todo: "Use larger pages: transparent ones for programs that ask (mem.thp=madvise) or for all (always), reserved \
            ones for a heap of known size (mem.hugetlb with jvm.large_pages).",
        wrong: "What counts as a miss differs by processor: on Intel a miss in all levels, on Arm and AMD a miss in the first, which the next \
            answers in about ten cycles. Without a performance monitoring unit (most guests) the rule is undecided. Where huge pages are on \
            already, as on the reference bank host, they gain nothing more.",
        sources: "oeAware huge page analysis (5 %, 10 %); A-Tune; the reference bank host (huge pages on already, no effect).",
    },
    judge,
};

fn judge(evidence: &Evidence) -> Judgement {
    let walks = evidence.host(&keys::MEMORY_TLB_SHARE)?;
    let share = say::percent(walks.value);
    if walks.value <= WALKS.value {
        let clear = Finding::clear(format!("{share} of the data loads miss the TLB"))
            .below(walks.value, WALKS.value)
            .cite(walks.reading);
        return Ok(vec![clear]);
    }
    let host = Subject::host();
    let mut finding = Finding::act(&host, format!("{share} of the data loads miss the TLB"))
        .severity(if walks.value > MUCH.value {
            Grade::High
        } else {
            Grade::Medium
        })
        .cite(walks.reading);
    if let Ok(mode) = evidence.words(&keys::MEMORY_THP, &host) {
        finding = finding.cite(mode.reading);
        // If all programs have huge pages already, these knobs gain nothing.
        match mode.value {
            "never" => finding = finding.turn("mem.thp", "madvise"),
            "madvise" => finding = finding.turn("mem.thp", "always"),
            _ => {}
        }
    }
    Ok(vec![
        finding
            .consider("mem.hugetlb")
            .consider("jvm.large_pages")
            .refuted_by(
                "the share stays the same with the heap in huge pages (AnonHugePages of the process)",
            ),
    ])
}
