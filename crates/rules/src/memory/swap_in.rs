//! `swap-in`: pages come back from swap while tasks wait for them.
//!
//! Swap in use is no problem: cold pages belong there. Only reading them back hurts, and it hurts the service
//! only if they are the service's. `pswpin` of /proc/vmstat for the machine, `VmSwap` and major faults for the
//! process.

use std::fmt::Write as _;

use rungwise_model::check::{Finding, Grade};
use rungwise_model::evidence::{Evidence, Quantity, Subject};
use rungwise_model::keys;

use crate::{Doc, Judgement, Measure, Rule, Threshold, say};

const PAGES: Threshold = Threshold {
    name: "pages read from swap per second",
    value: 0.0,
    origin: "by definition: a service that swaps waits for a disk",
};

const SHORT: Threshold = Threshold {
    name: "available share of the memory below which it is simply short",
    value: 0.10,
    origin: "own guess: with less, the page cache is small already",
};

const SWAPPINESS: Threshold = Threshold {
    name: "swappiness above which a lower one is worth a try",
    value: 10.0,
    origin: "TuneD profile throughput-performance",
};

const GROUP: Threshold = Threshold {
    name: "times per second that a control group hits its memory limit, from which on the swap may be its own",
    value: 1.0,
    origin: "rule cgroup-memory-limit",
};

pub(crate) static RULE: Rule = Rule {
    id: "swap-in",
    topic: "memory",
    summary: "pages are read back from swap",
    needs: &[
        &keys::MEMORY_AVAILABLE,
        &keys::MEMORY_CGROUP_RECLAIM,
        &keys::MEMORY_MAJOR_FAULTS,
        &keys::MEMORY_PROCESS_SWAP,
        &keys::MEMORY_SWAPPINESS,
        &keys::MEMORY_SWAP_IN,
    ],
    thresholds: &[PAGES, SHORT, SWAPPINESS, GROUP],
    knobs: &["mem.swappiness", "mem.min_free_kbytes"],
    measure: Some(Measure::more(&keys::MEMORY_SWAP_IN)),
    doc: Doc {
        looks_for: "Pages read from swap in every part of the window; for a judged process, also memory in swap and major \
            faults.",
        hurts: "A thread that touches such a page stops for the time of a disk read, a thousand times longer than a cache \
            miss, often while it holds a lock.",
        todo: "Where a control group hits its memory limit, raise the limit (cgroup-memory-limit): settings of the machine do not help. \
            Where memory is available, the kernel swapped to keep page cache: lower mem.swappiness (to 10, for example), and swap back in \
            once (swapoff, swapon). Where it is not, use less or add memory: no setting makes up for it, and one that keeps more free \
            (mem.min_free_kbytes) takes it from the tasks that wait.",
        wrong: "Cold pages are read back once when a program touches them: so the rule requires reads in every part of the \
            window. Swap in use without reads is healthy. Compressed swap in memory (zram, zswap) costs far less.",
        sources: "The reference bank host, section on memory; TuneD profile throughput-performance (swappiness 10); \
            Documentation/admin-guide/sysctl/vm.rst.",
    },
    judge,
};

fn judge(evidence: &Evidence) -> Judgement {
    let pages = evidence.host(&keys::MEMORY_SWAP_IN)?;
    let rate = say::rate(pages.value);
    if pages.value <= PAGES.value {
        let clear = Finding::clear("nothing is read from swap").cite(pages.reading);
        return Ok(vec![clear]);
    }
    if !pages.always(|rate| rate > PAGES.value) {
        let sentence = format!(
            "{rate} pages were read from swap, but not all the time: cold pages come back once"
        );
        return Ok(vec![Finding::clear(sentence).cite(pages.reading)]);
    }
    let swapped = evidence
        .each(&keys::MEMORY_PROCESS_SWAP)
        .unwrap_or_default()
        .into_iter()
        .filter_map(|(process, swap)| {
            let faults = evidence
                .quantity(&keys::MEMORY_MAJOR_FAULTS, process)
                .ok()?;
            (swap.value > 0.0 && faults.value > 0.0).then_some((process, swap, faults))
        })
        .max_by(|(_, _, a), (_, _, b)| a.value.total_cmp(&b.value));
    let mut finding = match swapped {
        Some((process, swap, faults)) => {
            let sentence = format!(
                "pid {} has {} in swap and waits for {} pages to be read",
                process.name(),
                say::bytes(swap.value),
                say::rate(faults.value)
            );
            Finding::act(process, sentence)
                .severity(Grade::High)
                .confidence(Grade::High)
                .cite(swap.reading)
                .cite(faults.reading)
        }
        None => Finding::act(
            &Subject::host(),
            format!("{rate} pages are read back from swap, in every part of the window"),
        ),
    };
    finding = finding.cite(pages.reading);
    let available = evidence.host(&keys::MEMORY_AVAILABLE).ok();
    if let Some(available) = available.filter(|share| share.value < SHORT.value) {
        let _ = write!(
            finding.sentence,
            "; memory is short, {} of it available",
            say::percent(available.value)
        );
        finding = finding.cite(available.reading);
    } else if let Some((group, hits)) = limited(evidence) {
        let _ = write!(
            finding.sentence,
            "; control group {} hits its memory limit {}",
            group.name(),
            say::rate(hits.value)
        );
        finding = finding.cite(hits.reading);
    } else {
        // Without a value: no planted fault showed that one cures.
        finding = match evidence.host(&keys::MEMORY_SWAPPINESS) {
            Ok(now) if now.value > SWAPPINESS.value => {
                finding.cite(now.reading).consider("mem.swappiness")
            }
            Ok(_) => finding,
            Err(_) => finding.consider("mem.swappiness"),
        }
        .consider("mem.min_free_kbytes");
    }
    Ok(vec![finding.refuted_by(
        "the reads stop within a minute, or swap is in compressed memory",
    )])
}

/// The control group that hits its memory limit most often. It swaps its own pages then, whatever the machine has available: with
/// `mem.swappiness` at 10 a planted limit cost as much as before (docs/truth.md).
fn limited(evidence: &Evidence) -> Option<(&Subject, Quantity<'_>)> {
    let hits = evidence.each(&keys::MEMORY_CGROUP_RECLAIM).ok()?;
    let most = hits
        .into_iter()
        .filter(|(_, hits)| hits.value > GROUP.value);
    most.max_by(|(_, a), (_, b)| a.value.total_cmp(&b.value))
}
