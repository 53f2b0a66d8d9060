//! `gc-humongous`: objects larger than half a region trigger collections of G1.
//!
//! Such an object takes whole regions, wastes the rest of the last one, and its allocation checks whether a cycle should
//! start.

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

const REGIONS: Threshold = Threshold {
    name: "least number of regions that the heap keeps with larger ones",
    value: 48.0,
    origin: "measured: arrays of 1.3 MB in a heap of 256 MiB, JDK 17: 64 regions of 4 MiB left no humongous collection and half of the pauses",
};

/// The largest region that can be configured, up to JDK 17 and from 18 on (JDK-8275056), MiB.
const LARGEST_MIB: [f64; 2] = [32.0, 512.0];
const MIB: f64 = 1024.0 * 1024.0;

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
    thresholds: &[SHARE, BROUGHT, FEW, REGIONS],
    knobs: &[OPTIONS],
    measure: Some(Measure::more(&keys::GC_HUMONGOUS)),
    doc: Doc {
        looks_for: "Humongous objects of G1 that take more than 30 % of the heap, or trigger more than a tenth of its collections.",
        hurts: "They fill whole regions, cannot be moved, and start cycles and collections that nothing else needs; a fragmented heap ends \
            in full collections.",
        todo: "Larger regions make fewer objects humongous: -XX:G1HeapRegionSize, a power of two up to 32 MiB (JDK 8, 11, 17; up to 512 MiB \
            from 18 on), twice as large as nine in ten of these objects. A log shows their sizes with \
            -Xlog:gc+humongous=debug,gc+ergo+ihop=debug (JDK 8: -XX:+PrintAdaptiveSizePolicy); without them no size is proposed. If the heap \
            holds fewer than 48 regions of that size: a larger heap first. Better avoid such arrays: read and write in chunks, presize \
            collections. ZGC and Shenandoah have large objects too, without this problem.",
        wrong: "A few large, permanent buffers take space and cost nothing more. Larger regions make G1 coarser: with fewer than a few \
            hundred regions it meets its pause goal less well.",
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
    let (larger, sizes) = region(run);
    let finding = run
        .cite(run.act(format!("{what}{sizes}")), &keys)
        .severity(if large { Grade::High } else { Grade::Medium })
        .refuted_by("there are as many with regions of that size: the objects are larger still");
    let Some(larger) = larger else {
        if run.value(&keys::GC_HUMONGOUS_SIZE).is_some() {
            // Such regions are too few or do not exist: only a larger heap helps.
            return Ok(run.grow(finding, "proportionally fewer collections for such objects"));
        }
        let finding = finding
            .expect("a log with the sizes of these objects, which determine the region size");
        return Ok(run.advise(finding, Goal::HumongousLog));
    };
    let finding = finding.expect(format!(
        "up to {} fewer pauses: those of objects that fit half a region of {larger} MiB",
        say::percent(part)
    ));
    Ok(run.raise(finding, Goal::RegionMib(larger)))
}

/// The next region size in MiB, if this JDK has it and the heap holds enough of them; and the words for the sentence.
fn region(run: &Run<'_>) -> (Option<u64>, String) {
    let now = run.value(&keys::GC_REGION).map(|region| region / MIB);
    let size = run
        .value(&keys::GC_HUMONGOUS_SIZE)
        .filter(|size| *size > 0.0);
    let sizes = size.map_or_else(
        || "; the log lacks their sizes".to_owned(),
        |size| format!("; nine in ten take up to {}", say::bytes(size)),
    );
    // An object of half a region is not humongous yet (`G1CollectedHeap::humongous_threshold_for`).
    let fits = size.map(|size| (2.0 * size / MIB).log2().ceil().exp2().max(1.0));
    // Without their size any region is a guess, and half of the guesses cure nothing.
    let wanted = fits.filter(|fits| now.is_none_or(|now| *fits > now));
    let Some(wanted) = wanted else {
        return (None, sizes);
    };
    let [most, newer] = LARGEST_MIB;
    if wanted > newer || wanted > most && !run.jdk().from(18) {
        let limit = if run.jdk().from(18) {
            format!("the maximum is {newer:.0} MiB")
        } else {
            format!("the maximum is {most:.0} MiB up to JDK 17, {newer:.0} from 18 on")
        };
        return (
            None,
            format!("{sizes}; they need regions of {wanted:.0} MiB, but {limit}"),
        );
    }
    let regions = run
        .value(&keys::GC_HEAP_MAX)
        .map(|heap| heap / MIB / wanted);
    match regions.filter(|regions| *regions < REGIONS.value) {
        Some(few) => {
            let few = say::whole(few.floor());
            (
                None,
                format!("{sizes}; the heap holds only {few} regions of {wanted:.0} MiB, too few"),
            )
        }
        None => (Some(wanted as u64), sizes),
    }
}
