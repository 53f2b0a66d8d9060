//! `tlb-bound`: the processor spends its time looking up where pages lie.
//!
//! Only hardware counters can tell, and most guests have none; then the rule is undecided and says so.

use rungwise_model::check::{Finding, Grade};
use rungwise_model::evidence::{Evidence, Subject};
use rungwise_model::keys;

use crate::{Doc, Judgement, Rule, Threshold, say};

const WALKS: Threshold = Threshold {
    name: "share of time in page walks",
    value: 0.05,
    origin: "oeAware's huge page analysis: 5 % of the first level's misses",
};

const MUCH: Threshold = Threshold {
    name: "the same, much",
    value: 0.10,
    origin: "oeAware, second level: 10 %",
};

pub(crate) static RULE: Rule = Rule {
    id: "tlb-bound",
    topic: "memory",
    summary: "small pages: the processor spends its time on page walks",
    needs: &[&keys::MEMORY_THP, &keys::MEMORY_TLB_SHARE],
    thresholds: &[WALKS, MUCH],
    knobs: &["mem.thp", "mem.hugetlb", "jvm.large_pages"],
    doc: Doc {
        looks_for: "More than 5 % of the time in page walks, by hardware counters.",
        hurts: "Each page needs its entry in a table of some thousand; a heap of gigabytes in 4 KiB pages misses it all the \
            time, and every miss is up to four memory reads.",
        todo: "Larger pages: transparent ones for those who ask (mem.thp=madvise) or for all (always), reserved ones for a \
            heap of known size (mem.hugetlb with jvm.large_pages).",
        wrong: "Without a performance unit (most guests) nothing can be seen and the rule is undecided. Where huge pages are on \
            already, as on the reference bank host, there is no further gain in them.",
        sources: "oeAware huge page analysis (5 %, 10 %); A-Tune; the reference bank host (huge pages on already, no effect).",
    },
    judge,
};

fn judge(evidence: &Evidence) -> Judgement {
    let walks = evidence.host(&keys::MEMORY_TLB_SHARE)?;
    let share = say::percent(walks.value);
    if walks.value <= WALKS.value {
        let clear = Finding::clear(format!("page walks take {share} of the time"))
            .below(walks.value, WALKS.value)
            .cite(walks.reading);
        return Ok(vec![clear]);
    }
    let host = Subject::host();
    let mut finding = Finding::act(&host, format!("page walks take {share} of the CPU time"))
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
