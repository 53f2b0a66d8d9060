//! `gc-humongous`: objects larger than half a region bring collections of G1.
//!
//! Such an object takes whole regions for itself, the rest of the last one is lost, and its allocation checks whether a
//! cycle should start.

use rungwise_model::check::{Finding, Grade};
use rungwise_model::evidence::{Evidence, Missing};
use rungwise_model::keys;

use super::options::Goal;
use super::run::{Collector, OPTIONS, Run, each};
use crate::{Doc, Judgement, Rule, Threshold, say};

const SHARE: Threshold = Threshold {
    name: "most that humongous objects took of the heap",
    value: 0.3,
    origin: "own guess; jifa warns at half of the heap",
};

const BROUGHT: Threshold = Threshold {
    name: "share of the collections that a humongous allocation triggered",
    value: 0.1,
    origin: "own guess; garbagecat warns at any",
};

const FEW: Threshold = Threshold {
    name: "collections for humongous objects that make a pattern",
    value: 3.0,
    origin: "own guess: one may be a table that is made once",
};

const REGIONS: Threshold = Threshold {
    name: "regions that the heap keeps with a larger size at least",
    value: 48.0,
    origin: "measured: arrays of 1.3 MB in a heap of 256 MiB, JDK 17: with 64 regions of 4 MiB no humongous collection and half of the pauses were left",
};

/// The largest region that somebody may ask for, up to JDK 17 and from 18 on (JDK-8275056), MiB.
const LARGEST_MIB: [f64; 2] = [32.0, 512.0];
const MIB: f64 = 1024.0 * 1024.0;

pub(crate) static RULE: Rule = Rule {
    id: "gc-humongous",
    topic: "jvm",
    summary: "objects larger than half a region bring collections",
    needs: &[
        &keys::GC_COLLECTOR,
        &keys::GC_FLAGS,
        &keys::GC_HEAP_MAX,
        &keys::GC_HUMONGOUS,
        &keys::GC_HUMONGOUS_SHARE,
        &keys::GC_HUMONGOUS_SIZE,
        &keys::GC_LIVE,
        &keys::GC_LIVE_PEAK,
        &keys::GC_LIVE_SOURCE,
        &keys::GC_MEMORY,
        &keys::GC_PAUSES,
        &keys::GC_REGION,
        &keys::GC_UNIFIED,
        &keys::GC_VERSION,
    ],
    thresholds: &[SHARE, BROUGHT, FEW, REGIONS],
    knobs: &[OPTIONS],
    doc: Doc {
        looks_for: "Humongous objects of G1 that take more than 30 % of the heap, or bring more than a tenth of its collections.",
        hurts: "They fill whole regions, cannot be moved, and start cycles and collections that nothing else needs; a heap in pieces \
            ends in full collections.",
        todo: "Larger regions make fewer objects humongous: -XX:G1HeapRegionSize, a power of two up to 32 MiB (JDK 8, 11, 17; up to \
            512 MiB from 18 on), twice as large as nine of ten of these objects. How large they are a log tells with \
            -Xlog:gc+humongous=debug,gc+ergo+ihop=debug (JDK 8: -XX:+PrintAdaptiveSizePolicy); without it no size is proposed. Where the heap \
            holds fewer than 48 regions of that size: a larger heap first. Better no such arrays: read and write in pieces, give collections their size. ZGC and \
            Shenandoah have large objects too, without this trouble.",
        wrong: "A few large buffers that live for ever take room and cost nothing more. Larger regions make G1 coarser: with fewer than \
            some hundred regions it keeps its goal less well.",
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
        return Ok(Finding::clear("a collector without humongous objects").cite(brought.reading));
    }
    let pauses = run.number(&keys::GC_PAUSES)?;
    let part = (brought.value / pauses.value.max(1.0)).clamp(0.0, 1.0);
    let share = run.told(&keys::GC_HUMONGOUS_SHARE);
    let mut what = format!(
        "humongous allocations triggered {} ({} of the pauses)",
        say::count(brought.value, "collection"),
        say::percent(part)
    );
    if let Some(share) = share {
        what = format!(
            "{what}, and such objects took up to {} of the heap",
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
    // Room alone, with no collection for it, is that of buffers that stay.
    if !often {
        return Ok(run
            .cite(run.watch(what), &keys)
            .refuted_by("the same objects over the whole run: then they cost room only"));
    }
    let (larger, told) = region(run);
    let finding = run
        .cite(run.act(format!("{what}{told}")), &keys)
        .severity(if large { Grade::High } else { Grade::Medium })
        .refuted_by("as many with regions of that size: the objects are larger still");
    let Some(larger) = larger else {
        if run.told(&keys::GC_HUMONGOUS_SIZE).is_some() {
            // Regions as large as that are too few, or there are none: more room is what is left.
            return Ok(run.grow(finding, "as many times fewer collections for such objects"));
        }
        let finding = finding
            .expect("a log with the sizes of these objects, which decide the size of a region");
        return Ok(run.advise(finding, Goal::HumongousLog));
    };
    let finding = finding.expect(format!(
        "at most {} of the pauses go: those of objects that fit half of a region of {larger} MiB",
        say::percent(part)
    ));
    Ok(run.raise(finding, Goal::RegionMib(larger)))
}

/// The next size of a region in MiB, if this JDK has it and the heap holds enough of them; and what is to be said of it.
fn region(run: &Run<'_>) -> (Option<u64>, String) {
    let now = run.told(&keys::GC_REGION).map(|region| region / MIB);
    let size = run
        .told(&keys::GC_HUMONGOUS_SIZE)
        .filter(|size| *size > 0.0);
    let told = size.map_or_else(
        || "; the log lacks their sizes".to_owned(),
        |size| format!("; nine of ten take up to {}", say::bytes(size)),
    );
    // An object of half a region is not humongous yet (`G1CollectedHeap::humongous_threshold_for`).
    let fits = size.map(|size| (2.0 * size / MIB).log2().ceil().exp2().max(1.0));
    // Without their size any region is a guess, and half of the guesses cure nothing.
    let wanted = fits.filter(|fits| now.is_none_or(|now| *fits > now));
    let Some(wanted) = wanted else {
        return (None, told);
    };
    let [most, newer] = LARGEST_MIB;
    if wanted > newer || wanted > most && !run.jdk().from(18) {
        let limit = if run.jdk().from(18) {
            format!("{newer:.0} MiB are the most")
        } else {
            format!("{most:.0} MiB are the most up to JDK 17, {newer:.0} from 18 on")
        };
        return (
            None,
            format!("{told}; they need regions of {wanted:.0} MiB, and {limit}"),
        );
    }
    let regions = run.told(&keys::GC_HEAP_MAX).map(|heap| heap / MIB / wanted);
    match regions.filter(|regions| *regions < REGIONS.value) {
        Some(few) => {
            let few = say::whole(few.floor());
            (
                None,
                format!("{told}; of regions of {wanted:.0} MiB the heap holds {few}, too few"),
            )
        }
        None => (Some(wanted as u64), told),
    }
}
