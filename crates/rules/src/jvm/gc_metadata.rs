//! `gc-metadata`: collections because metaspace reached its high-water mark.
//!
//! The mark starts at about 21 MiB and rises with each of them (`metaspace.cpp`, `MetaspaceGC`). During startup that is
//! normal; long after it, classes are still being loaded.

use rungwise_model::check::{Finding, Grade};
use rungwise_model::evidence::{Evidence, Missing};
use rungwise_model::keys;

use super::options::Goal;
use super::run::{JDK, OPTIONS, Run, each};
use crate::rule::needs;
use crate::{Doc, Judgement, Measure, Rule, Threshold, say};

const LATE: Threshold = Threshold {
    name: "metaspace collections more than five minutes after the start",
    value: 0.0,
    origin: "own guess: a service has loaded its classes by then",
};

const GROWTH: Threshold = Threshold {
    name: "growth of metaspace per day as a share of metaspace in use, above which classes leak",
    value: 0.1,
    origin: "own guess: more than the lazily loaded classes of a service",
};

const OFTEN: Threshold = Threshold {
    name: "metaspace collections, above which startup does not explain them",
    value: 12.0,
    origin: "the 214 logs of the corpus: startup has 8 at most; planted short-lived class loaders: 30 and more a minute",
};

const DAY: f64 = 86400.0;
const MIB: f64 = 1024.0 * 1024.0;
/// Space above what is in use, and the step of the recommendation in MiB.
const ROOM: f64 = 1.25;
const STEP: f64 = 64.0;

pub(crate) static RULE: Rule = Rule {
    id: "gc-metadata",
    topic: "jvm",
    summary: "metaspace is at its limit, or triggers collections long after the start",
    needs: needs!(
        [
            &keys::GC_METADATA,
            &keys::GC_METADATA_LAST,
            &keys::GC_METADATA_LATE,
            &keys::GC_METASPACE,
            &keys::GC_METASPACE_CAPACITY,
            &keys::GC_METASPACE_SLOPE,
            &keys::GC_METASPACE_SLOPE_LOW
        ],
        JDK
    ),
    thresholds: &[LATE, GROWTH, OFTEN],
    knobs: &[OPTIONS],
    measure: Some(Measure::more(&keys::GC_METADATA_LATE)),
    doc: Doc {
        looks_for: "Collections with the cause Last ditch collection or Metadata GC Clear Soft References: HotSpot runs them when metaspace \
            is at its limit, and an OutOfMemoryError follows unless they free classes. Also collections with the cause Metadata GC Threshold \
            more than five minutes after the JVM, or the log, began, and whether metaspace still grows.",
        hurts: "With Serial and Parallel each is a full collection, with the others the start of a concurrent cycle.",
        todo: "At the limit: find which class loaders accumulate (jcmd PID VM.classloader_stats; JDK 8: jmap -clstats); raise \
            -XX:MaxMetaspaceSize only if all classes are needed. If metaspace has settled: -XX:MetaspaceSize a quarter above what is in use \
            (JDK 8, 11, 17, 21, 25; up to JDK 7 the permanent generation has -XX:PermSize). With planted class loaders that live for half a minute, 7 \
            late collections in 3 minutes became 2. If it still grows: find what loads classes \
            (-Xlog:class+load, proxies, scripts, class loaders that are not released); a higher mark would only hide it.",
        wrong: "Collections during startup are normal and do not count. A service that is redeployed into a running JVM loads its classes \
            late and once.",
        sources: "The reference bank host (128 to 512 MiB); HotSpot metaspace.cpp; own logs.",
    },
    judge,
};

fn judge(evidence: &Evidence) -> Judgement {
    each(evidence, &keys::GC_METADATA, of_run)
}

fn of_run(run: &Run<'_>) -> Result<Finding, Missing> {
    let all = run.number(&keys::GC_METADATA)?;
    if let Some(finding) = at_limit(run) {
        return Ok(finding);
    }
    if all.value < 1.0 {
        return Ok(Finding::clear("metaspace triggered no collection").cite(all.reading));
    }
    let late = run.number(&keys::GC_METADATA_LATE)?;
    let what = say::count(late.value, "collection");
    if late.value <= LATE.value && all.value > OFTEN.value {
        let sentence = format!(
            "metaspace triggered {}: more class loading and unloading than startup explains",
            say::count(all.value, "collection")
        );
        return Ok(run
            .cite(
                run.act(sentence),
                &[&keys::GC_METADATA, &keys::GC_METASPACE],
            )
            .refuted_by("they end in a longer log: then startup triggered them"));
    }
    if late.value <= LATE.value {
        let sentence = format!(
            "metaspace triggered {}, all of them at the start",
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
        .value(&keys::GC_METASPACE_SLOPE_LOW)
        .is_some_and(|low| low * DAY > used.value * GROWTH.value);
    if sure {
        let slope = run.value(&keys::GC_METASPACE_SLOPE).unwrap_or(0.0);
        let sentence = format!(
            "metaspace triggered {what} long after the start, and at {holds} still grows by {} a day: classes leak, see gc-metaspace-growth",
            say::bytes(slope * DAY)
        );
        return Ok(run
            .cite(run.act(sentence), &cite)
            .confidence(Grade::High)
            .refuted_by("metaspace settles in a longer log"));
    }
    let sentence = format!("metaspace triggered {what} long after the start, with {holds} in use");
    let finding = run
        .cite(run.act(sentence), &cite)
        .severity(Grade::Low)
        .expect(format!(
            "none of these {what} if their classes stay, fewer if they come and go; no other gain"
        ))
        .refuted_by("metaspace reaches the new mark as well: it grows");
    let mib = ((used.value * ROOM / MIB / STEP).ceil() * STEP).clamp(STEP, 1e6);
    Ok(run.raise(finding, Goal::MetaspaceMib(mib as u64)))
}

/// Metaspace has reached its limit: the JVM tried for the last time before the error.
fn at_limit(run: &Run<'_>) -> Option<Finding> {
    let last = run
        .value(&keys::GC_METADATA_LAST)
        .filter(|count| *count >= 1.0)?;
    let limit = run
        .size_of("MaxMetaspaceSize=")
        .filter(|limit| *limit > 0.0)
        .map(say::bytes);
    let used = run.value(&keys::GC_METASPACE).map(say::bytes);
    let limit = limit.map_or_else(String::new, |limit| format!(" of {limit}"));
    let used = used.map_or_else(String::new, |used| format!(", {used} in use last"));
    let sentence = format!(
        "metaspace is at its limit{limit}{used}: {} freed too little, OutOfMemoryError: Metaspace is next",
        say::count(last, "last-ditch collection")
    );
    let finding = run
        .act(sentence)
        .severity(Grade::High)
        .confidence(Grade::High)
        .refuted_by("the log continues without such collections: the classes were unloaded");
    Some(run.cite(
        finding,
        &[
            &keys::GC_METADATA_LAST,
            &keys::GC_METADATA,
            &keys::GC_METASPACE,
            &keys::GC_METASPACE_CAPACITY,
        ],
    ))
}
