//! `gc-metadata`: collections because metaspace reached its mark.
//!
//! The mark starts at about 21 MiB and moves up with each of them (`metaspace.cpp`, `MetaspaceGC`). At the start that is
//! ordinary; long after it, classes are still being loaded.

use rungwise_model::check::{Finding, Grade};
use rungwise_model::evidence::{Evidence, Missing};
use rungwise_model::keys;

use super::options::Goal;
use super::run::{OPTIONS, Run, each};
use crate::{Doc, Judgement, Rule, Threshold, say};

const LATE: Threshold = Threshold {
    name: "collections for metaspace more than five minutes after the start",
    value: 0.0,
    origin: "own guess: a service has loaded its classes by then",
};

const GROWTH: Threshold = Threshold {
    name: "growth of metaspace in a day, as a share of what is in use, from which on classes leak",
    value: 0.1,
    origin: "own guess: more than the lazily loaded classes of a service",
};

const DAY: f64 = 86400.0;
const MIB: f64 = 1024.0 * 1024.0;
/// Room above what is in use, and the step of the answer in MiB.
const ROOM: f64 = 1.25;
const STEP: f64 = 64.0;

pub(crate) static RULE: Rule = Rule {
    id: "gc-metadata",
    topic: "jvm",
    summary: "metaspace brings collections long after the start",
    needs: &[
        &keys::GC_COLLECTOR,
        &keys::GC_FLAGS,
        &keys::GC_METADATA,
        &keys::GC_METADATA_LATE,
        &keys::GC_METASPACE,
        &keys::GC_METASPACE_SLOPE,
        &keys::GC_METASPACE_SLOPE_LOW,
        &keys::GC_UNIFIED,
        &keys::GC_VERSION,
    ],
    thresholds: &[LATE, GROWTH],
    knobs: &[OPTIONS],
    doc: Doc {
        looks_for: "Collections with the cause Metadata GC Threshold later than five minutes after the JVM, or the log, began, and \
            whether metaspace still grows.",
        hurts: "With Serial and Parallel each is a full collection, with the others the start of a concurrent cycle.",
        todo: "Where metaspace has settled: -XX:MetaspaceSize a quarter above what is in use (JDK 8, 11, 17, 21, 25; up to JDK 7 the \
            permanent generation has -XX:PermSize). Where it still grows: find who loads classes (-Xlog:class+load, proxies, \
            scripts, class loaders that are not let go); a higher mark would only hide it.",
        wrong: "Collections of the start are ordinary and do not count. A service that is deployed anew into a running JVM loads its \
            classes late and once.",
        sources: "The reference bank host (128 to 512 MiB); HotSpot metaspace.cpp; own logs.",
    },
    judge,
};

fn judge(evidence: &Evidence) -> Judgement {
    each(evidence, &keys::GC_METADATA, of_run)
}

fn of_run(run: &Run<'_>) -> Result<Finding, Missing> {
    let all = run.number(&keys::GC_METADATA)?;
    if all.value < 1.0 {
        return Ok(Finding::clear("no collection came for metaspace").cite(all.reading));
    }
    let late = run.number(&keys::GC_METADATA_LATE)?;
    let what = say::count(late.value, "collection");
    if late.value <= LATE.value {
        let sentence = format!(
            "metaspace brought {}, all of them at the start",
            say::count(all.value, "collection")
        );
        return Ok(Finding::clear(sentence).cite(late.reading));
    }
    let used = run.number(&keys::GC_METASPACE)?;
    let cite = [
        &keys::GC_METADATA_LATE,
        &keys::GC_METASPACE,
        &keys::GC_METASPACE_SLOPE,
    ];
    let holds = say::bytes(used.value);
    let sure = run
        .told(&keys::GC_METASPACE_SLOPE_LOW)
        .is_some_and(|low| low * DAY > used.value * GROWTH.value);
    if sure {
        let slope = run.told(&keys::GC_METASPACE_SLOPE).unwrap_or(0.0);
        let sentence = format!(
            "metaspace brought {what} long after the start, and at {holds} still grows by {} a day: classes are loaded and not let go, see gc-metaspace-growth",
            say::bytes(slope * DAY)
        );
        return Ok(run
            .cite(run.act(sentence), &cite)
            .confidence(Grade::High)
            .refuted_by("a longer log in which metaspace settles"));
    }
    let sentence = format!("metaspace brought {what} long after the start, and holds {holds}");
    let finding = run
        .cite(run.act(sentence), &cite)
        .severity(Grade::Low)
        .expect(format!("these {what} go, and nothing else"))
        .refuted_by("collections for metaspace at the new mark as well: it grows");
    let mib = ((used.value * ROOM / MIB / STEP).ceil() * STEP).clamp(STEP, 1e6);
    Ok(run.raise(finding, Goal::MetaspaceMib(mib as u64)))
}
