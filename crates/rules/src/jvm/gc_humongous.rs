//! `gc-humongous`: objects larger than half a region trigger collections of G1.
//!
//! Such an object takes whole regions, wastes the rest of the last one, and its allocation checks whether a cycle should
//! start. Larger regions make it an ordinary object, which young collections copy as long as it lives: measured, that costs as much as it saves.

use rungwise_model::check::{Finding, Grade};
use rungwise_model::evidence::{Evidence, Missing};
use rungwise_model::keys;

use super::options::Goal;
use super::run::{Collector, JDK, OPTIONS, Run, each};
use crate::rule::needs;
use crate::{Doc, Judgement, Measure, Rule, Threshold, say};

const SHARE: Threshold = Threshold {
    name: "largest share of the heap in humongous objects",
    value: 0.3,
    origin: "own guess; jifa warns at half of the heap",
};

const BROUGHT: Threshold = Threshold {
    name: "share of collections triggered by a humongous allocation",
    value: 0.1,
    origin: "own guess; garbagecat warns at any",
};

const FEW: Threshold = Threshold {
    name: "collections triggered by humongous allocations that make a pattern",
    value: 3.0,
    origin: "own guess: one may be a table allocated once",
};

const MIB: f64 = 1024.0 * 1024.0;
/// Of the memory, as for other heaps that rules ask for.
const FITS: f64 = 0.75;

pub(crate) static RULE: Rule = Rule {
    id: "gc-humongous",
    topic: "jvm",
    summary: "objects larger than half a region trigger collections",
    needs: needs!(
        [
            &keys::GC_HEAP_MAX,
            &keys::GC_HUMONGOUS,
            &keys::GC_HUMONGOUS_SHARE,
            &keys::GC_HUMONGOUS_SIZE,
            &keys::GC_LIVE,
            &keys::GC_LIVE_PEAK,
            &keys::GC_LIVE_SOURCE,
            &keys::GC_MEMORY,
            &keys::GC_PAUSES,
            &keys::GC_REGION
        ],
        JDK
    ),
    thresholds: &[SHARE, BROUGHT, FEW],
    knobs: &[OPTIONS],
    measure: Some(Measure::more(&keys::GC_HUMONGOUS)),
    doc: Doc {
        looks_for: "Humongous objects of G1 that take more than 30 % of the heap, or trigger more than a tenth of its collections.",
        hurts: "They fill whole regions, cannot be moved, and start cycles and collections that nothing else needs; a fragmented heap ends \
            in full collections.",
        todo: "Avoid such arrays: read and write in chunks, presize collections. Else a larger heap: with twice the heap, planted arrays of 1.3 MB \
            brought 11 pauses in place of 26, and arrays of 20 MB 36 in place of 235. A log shows their sizes with \
            -Xlog:gc+humongous=debug,gc+ergo+ihop=debug (JDK 8: -XX:+PrintAdaptiveSizePolicy). ZGC and Shenandoah have large objects too, without \
            this problem.",
        wrong: "A few large, permanent buffers take space and cost nothing more. A larger -XX:G1HeapRegionSize is not proposed. It ends humongous \
            collections, but young collections then copy the arrays that live, and fill Eden sooner: with regions of 4 MiB the arrays of 1.3 MB \
            (JDK 17, heap of 256 MiB) brought 32 pauses of 0.43 s in place of 26 of 0.21 s, and with regions of 64 MiB those of 20 MB (JDK 21, \
            heap of 3.1 GiB) 6.1 s of pauses in place of 1.2 s. It helps arrays that die before the next young collection: 18 pauses in \
            place of 33.",
        sources: "HotSpot Garbage Collection Tuning Guide, humongous objects; JDK-8275056 (regions up to 512 MiB); jifa; garbagecat.",
    },
    judge,
};

fn judge(evidence: &Evidence) -> Judgement {
    each(evidence, &keys::GC_HUMONGOUS, of_run)
}

fn of_run(run: &Run<'_>) -> Result<Finding, Missing> {
    let brought = run.number(&keys::GC_HUMONGOUS)?;
    if !matches!(run.collector(), Collector::G1 | Collector::Other) {
        return Ok(Finding::clear("this collector has no humongous objects").cite(brought.reading));
    }
    let pauses = run.number(&keys::GC_PAUSES)?;
    let part = (brought.value / pauses.value.max(1.0)).clamp(0.0, 1.0);
    let share = run.value(&keys::GC_HUMONGOUS_SHARE);
    let mut what = format!(
        "humongous allocations triggered {} ({} of the pauses)",
        say::count(brought.value, "collection"),
        say::percent(part)
    );
    if let Some(share) = share {
        what = format!(
            "{what}; these objects took up to {} of the heap",
            say::percent(share)
        );
    }
    let often = part > BROUGHT.value && brought.value >= FEW.value;
    let large = share.is_some_and(|share| share > SHARE.value);
    if !often && !large {
        return Ok(Finding::clear(what)
            .below(part, BROUGHT.value)
            .cite(brought.reading));
    }
    let keys = [
        &keys::GC_HUMONGOUS,
        &keys::GC_HUMONGOUS_SHARE,
        &keys::GC_HUMONGOUS_SIZE,
        &keys::GC_REGION,
    ];
    // Space without collections belongs to permanent buffers.
    if !often {
        return Ok(run
            .cite(run.watch(what), &keys)
            .refuted_by("the same objects live for the whole run: then they only cost space"));
    }
    let size = run
        .value(&keys::GC_HUMONGOUS_SIZE)
        .filter(|size| *size > 0.0);
    let sizes = size.map_or_else(
        || "; the log lacks their sizes".to_owned(),
        |size| format!("; nine in ten take up to {}", say::bytes(size)),
    );
    let finding = run
        .cite(run.act(format!("{what}{sizes}")), &keys)
        .severity(if large { Grade::High } else { Grade::Medium })
        .refuted_by("there are as many in a larger heap: the objects live longer than that");
    let finding = roomier(run, finding);
    if !finding.knobs.is_empty() || size.is_some() {
        return Ok(finding);
    }
    Ok(run.advise(
        finding.expect("a log with the sizes of these objects, which show where they come from"),
        Goal::HumongousLog,
    ))
}

/// A larger heap; twice as large where the log lacks the live set, if the memory allows it.
fn roomier(run: &Run<'_>, finding: Finding) -> Finding {
    const EFFECT: &str = "proportionally fewer collections for such objects";
    let finding = run.grow(finding, EFFECT);
    let Some(heap) = run.value(&keys::GC_HEAP_MAX) else {
        return finding;
    };
    let memory = run.value(&keys::GC_MEMORY);
    let fits = memory.is_none_or(|memory| 2.0 * heap <= FITS * memory);
    if run.value(&keys::GC_LIVE).is_some() || !fits {
        return finding;
    }
    let mib = (2.0 * heap / MIB) as u64;
    run.raise(
        finding.expect(format!("with twice the heap {EFFECT}")),
        // G1 grows the heap late, and starts cycles at a share of what it has.
        Goal::HeapMaxMib {
            most: mib,
            first: Some(mib),
        },
    )
}
