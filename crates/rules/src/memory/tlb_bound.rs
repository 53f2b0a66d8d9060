//! `tlb-bound`: the processor looks up again and again where pages lie.
//!
//! Only hardware counters can tell, and most guests have none; then the rule is undecided and says so.

use rungwise_model::check::{Finding, Grade};
use rungwise_model::evidence::{Evidence, Subject};
use rungwise_model::keys;

use crate::{Doc, Judgement, Rule, Threshold, say};

const WALKS: Threshold = Threshold {
    name: "share of data loads that miss the TLB",
    value: 0.05,
    origin: "oeAware's huge page analysis: 5 % at the first level",
};

const MUCH: Threshold = Threshold {
    name: "the same, much",
    value: 0.10,
    origin: "oeAware, second level: 10 %",
};

pub(crate) static RULE: Rule = Rule {
    id: "tlb-bound",
    topic: "memory",
    summary: "small pages: the TLB does not know where the data lies",
    needs: &[&keys::MEMORY_THP, &keys::MEMORY_TLB_SHARE],
    thresholds: &[WALKS, MUCH],
    knobs: &["mem.thp", "mem.hugetlb", "jvm.large_pages"],
    doc: Doc {
        looks_for: "More than 5 % of the data loads on all CPUs miss the TLB, by hardware counters.",
        hurts: "Each page needs its entry in a table of some thousand; a heap of gigabytes in 4 KiB pages misses it all the \
            time, and every miss is up to four memory reads.",
        todo: "Larger pages: transparent ones for those who ask (mem.thp=madvise) or for all (always), reserved ones for a \
            heap of known size (mem.hugetlb with jvm.large_pages).",
        wrong: "What a miss is differs by processor: on Intel no level knew the page, on Arm and AMD the first did not, and the next \
            answers in some ten cycles. Without a performance unit (most guests) nothing can be seen and the rule is undecided. Where huge pages are on \
            already, as on the reference bank host, there is no further gain in them.",
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
        // Who has huge pages for all already gains nothing by turning here.
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
                "the share stays with the heap in huge pages (AnonHugePages of the process)",
            ),
    ])
}
