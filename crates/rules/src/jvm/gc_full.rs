//! `gc-full`: collections of the whole heap in one pause, by cause.
//!
//! With Serial and Parallel only full collections collect the old generation; with G1, CMS, Shenandoah and ZGC they are
//! the fallback when the concurrent collection is too late. So the thresholds differ.

use rungwise_model::check::{Finding, Grade};
use rungwise_model::evidence::{Evidence, Key, Missing};
use rungwise_model::keys;

use super::gc_survivors_small::overflows;
use super::late_start;
use super::live;
use super::run::{Collector, JDK, LONG, OPTIONS, Run, SHORT, each, seconds};
use crate::rule::needs;
use crate::{Doc, Judgement, Measure, Rule, Threshold, say};

const SHARE: Threshold = Threshold {
    name: "share of the run in full collections, with Serial and Parallel",
    value: 0.01,
    origin: "own guess: a fifth of what GCeasy allows for all collections",
};

pub(crate) static RULE: Rule = Rule {
    id: "gc-full",
    topic: "jvm",
    summary: "the whole heap is collected in one pause",
    needs: needs!(
        [
            &keys::GC_CONCURRENT_ABORTED,
            &keys::GC_CONCURRENT_MODE_FAILURES,
            &keys::GC_CYCLE_LENGTH,
            &keys::GC_CYCLE_OCCUPANCY,
            &keys::GC_EVACUATION_FAILURES,
            &keys::GC_FULLS,
            &keys::GC_FULLS_ALLOCATION,
            &keys::GC_FULLS_ERGONOMICS,
            &keys::GC_FULLS_EXPLICIT,
            &keys::GC_FULLS_INSPECTION,
            &keys::GC_FULLS_METADATA,
            &keys::GC_FULLS_UNKNOWN,
            &keys::GC_FULL_CAUSES,
            &keys::GC_FULL_LONGEST,
            &keys::GC_FULL_TIME,
            &keys::GC_MEMORY,
            &keys::GC_OLD_RECLAIMED,
            &keys::GC_PAUSE_GOAL,
            &keys::GC_PROMOTED,
            &keys::GC_PROMOTION_FAILURES,
            &keys::GC_PROMOTION_PEAK,
            &keys::GC_PROMOTION_RATE,
            &keys::GC_SURVIVORS
        ],
        live::NEEDS,
        JDK
    ),
    thresholds: &[SHARE, LONG, SHORT],
    knobs: &[OPTIONS],
    measure: Some(Measure::more(&keys::GC_FULL_TIME)),
    doc: Doc {
        looks_for: "Full collections, by cause: lack of space (allocation, evacuation, promotion), Ergonomics of the Parallel collector, \
            metaspace, System.gc(), tools.",
        hurts: "The pause grows with the heap: about a second per GiB of live objects with one thread.",
        todo: "Lack of space: check gc-live-growth, gc-premature-promotion, gc-cmf and gc-evacuation-failed first, which show why. If G1's \
            cycles start too late, an earlier start (-XX:InitiatingHeapOccupancyPercent). Ergonomics: the Parallel collector predicts that \
            the old generation will not hold the next promotion; a larger heap, or a collector that works concurrently. Metaspace: \
            gc-metadata. System.gc(): gc-explicit. A heap dump, a histogram or a diagnostic command: requested by hand; nothing to tune.",
        wrong: "With Serial and Parallel full collections are normal; they count only if they take more than 1 % of the run or longer than \
            the goal. A log from the start of a service contains those of its startup.",
        sources: "jifa and garbagecat (any full collection); HotSpot Garbage Collection Tuning Guide; own logs of JDK 8, 17 and 25.",
    },
    judge,
};

/// Share from which on the log is a full collection and nothing else.
const WHOLE: f64 = 1.0 - 1e-6;

/// What triggered most of the full collections.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Why {
    Room,
    Ergonomics,
    Metadata,
    Explicit,
    Inspection,
    Unknown,
}

fn judge(evidence: &Evidence) -> Judgement {
    each(evidence, &keys::GC_FULLS, of_run)
}

fn of_run(run: &Run<'_>) -> Result<Finding, Missing> {
    let fulls = run.number(&keys::GC_FULLS)?;
    if fulls.value < 1.0 {
        return Ok(Finding::clear("no full collection").cite(fulls.reading));
    }
    let longest = run.number(&keys::GC_FULL_LONGEST)?;
    let time = run.number(&keys::GC_FULL_TIME)?;
    let share = run
        .value(&keys::GC_SECONDS)
        .filter(|whole| *whole > 0.0)
        .map(|whole| time.value / whole)
        // A log that is a single pause shows nothing about the run.
        .filter(|share| *share < WHOLE);
    let line = run.goal(&LONG);
    let ordinary = matches!(run.collector(), Collector::Serial | Collector::Parallel);
    let took = share.map_or_else(String::new, |share| {
        format!(", {} of the run", say::percent(share))
    });
    let causes = run.words(&keys::GC_FULL_CAUSES);
    let causes = causes.filter(|causes| !causes.value.is_empty());
    let causes = causes.map_or_else(String::new, |causes| format!(" ({})", causes.value));
    let what = format!(
        "{}{causes}, longest {}{took}",
        say::count(fulls.value, "full collection"),
        seconds(longest.value)
    );
    if ordinary && longest.value <= line && share.is_none_or(|share| share <= SHARE.value) {
        let sentence =
            format!("{what}: with this collector the normal way to collect the old generation");
        return Ok(Finding::clear(sentence)
            .below(share.unwrap_or(0.0), SHARE.value)
            .cite(fulls.reading)
            .cite(longest.reading));
    }
    let why = why(run)?;
    let live = live::live(run);
    let finding = match why {
        Why::Room => {
            let full = run.value(&keys::GC_LIVE_SHARE).filter(|share| *share > 0.8);
            let full = full.map_or_else(String::new, |share| {
                format!("; the live set is at {} of its limit", say::percent(share))
            });
            let of = share_of(run, &keys::GC_FULLS_ALLOCATION);
            let sentence = format!("{what}{of} for lack of space{full}");
            match late_start::late(run) {
                // More heap, or an earlier start, only delays the end.
                _ if live.is_leak() => leaks(run, &sentence),
                Some(late) => {
                    let finding = run.act(format!("{sentence}; {}", late.why)).refuted_by(
                        "full collections continue although all cycles start at the new occupancy",
                    );
                    let finding = run.cite(
                        finding,
                        &[&keys::GC_CYCLE_OCCUPANCY, &keys::GC_CONCURRENT_ABORTED],
                    );
                    late.ask(run, finding)
                }
                None if overflows(run) => survivors(run, &sentence),
                // What failed is the start of a cycle or a fragmented old generation; more heap alone may not help.
                None if full.is_empty() && cms_failed(run) => run
                    .act(format!("{sentence}: see gc-cmf for the cause"))
                    .refuted_by("full collections run without a preceding failure of CMS"),
                None => run
                    .grow(
                        run.act(sentence),
                        "proportionally fewer where lack of space triggers them",
                    )
                    .refuted_by("old collections leave space, but full collections still run"),
            }
        }
        Why::Ergonomics => {
            let of = share_of(run, &keys::GC_FULLS_ERGONOMICS);
            let sentence =
                format!("{what}{of} because the old generation cannot hold the next promotion");
            if live.is_leak() {
                leaks(run, &sentence)
            } else if overflows(run) {
                survivors(run, &sentence)
            } else {
                run.grow(run.act(sentence), "proportionally fewer of them")
                    .refuted_by("a larger old generation has as many of them")
            }
        }
        Why::Metadata => run
            .watch(format!("{what}: metaspace reached its high-water mark"))
            .refuted_by("a longer log has full collections of another cause"),
        Why::Explicit => run
            .watch(format!("{what}: System.gc() triggers them"))
            .refuted_by("a longer log has full collections of another cause"),
        Why::Unknown => {
            let sentence = format!("{what}; the log does not show their cause");
            let finding = if longest.value > line || share.is_some_and(|share| share > SHARE.value)
            {
                run.act(sentence)
            } else {
                run.watch(sentence)
            };
            finding.refuted_by("a log with causes (-XX:+PrintGCCause from JDK 7u40 on) names System.gc() or a tool")
        }
        Why::Inspection => run
            .watch(format!("{what}: a tool requests them, nothing to tune"))
            .refuted_by("full collections run while no tool is in use"),
    };
    let finding = run.cite(
        finding,
        &[&keys::GC_FULLS, &keys::GC_FULL_LONGEST, &keys::GC_FULL_TIME],
    );
    Ok(finding
        .severity(if longest.value >= 1.0 {
            Grade::High
        } else {
            Grade::Medium
        })
        .confidence(match why {
            _ if ordinary && run.is_short() => Grade::Low,
            Why::Unknown => Grade::Medium,
            _ => Grade::High,
        }))
}

/// The live set fills the heap.
fn leaks(run: &Run<'_>, sentence: &str) -> Finding {
    run.act(format!(
        "{sentence}; the live set keeps growing: see gc-live-growth"
    ))
    .refuted_by("full collections run as often while the live set is level")
}

/// Short-lived objects fill the old generation: a larger heap alone has as many collections, each somewhat later.
fn survivors(run: &Run<'_>, sentence: &str) -> Finding {
    run.act(format!(
        "{sentence}; survivor spaces overflow into the old generation: see gc-survivors-small"
    ))
    .refuted_by("there are as many full collections with survivor spaces that hold all survivors")
}

/// CMS did not finish in time, or found no block that is large enough.
fn cms_failed(run: &Run<'_>) -> bool {
    let failed = [
        &keys::GC_CONCURRENT_MODE_FAILURES,
        &keys::GC_PROMOTION_FAILURES,
    ];
    let failed = failed
        .into_iter()
        .any(|key| run.value(key).is_some_and(|count| count >= 1.0));
    failed && matches!(run.collector(), Collector::Cms | Collector::Other)
}

/// How many of them have this cause, if others were requested; else all do.
fn share_of(run: &Run<'_>, key: &'static Key) -> String {
    let count = |key| run.value(key).unwrap_or(0.0);
    let explicit = count(&keys::GC_FULLS_EXPLICIT);
    let others = count(&keys::GC_FULLS_INSPECTION) + count(&keys::GC_FULLS_METADATA);
    let own = count(key);
    if explicit + others < 1.0 || own < 1.0 {
        return ",".to_owned();
    }
    let mut asked = Vec::new();
    if explicit >= 1.0 {
        asked.push(format!("{} by System.gc()", say::whole(explicit)));
    }
    if others >= 1.0 {
        asked.push(format!("{} for metaspace or a tool", say::whole(others)));
    }
    format!("; {}, and {}", asked.join(", "), say::whole(own))
}

/// The most frequent cause. The first two are problems of the heap: the others do not hide them.
fn why(run: &Run<'_>) -> Result<Why, Missing> {
    let room = run.number(&keys::GC_FULLS_ALLOCATION)?.value;
    let count = |key| run.value(key).unwrap_or(0.0);
    let ergonomics = count(&keys::GC_FULLS_ERGONOMICS);
    if room.max(ergonomics) >= 1.0 {
        return Ok(if ergonomics > room {
            Why::Ergonomics
        } else {
            Why::Room
        });
    }
    // The failure is the cause if none is logged; otherwise another collection failed.
    let failed = count(&keys::GC_CONCURRENT_MODE_FAILURES)
        + count(&keys::GC_PROMOTION_FAILURES)
        + count(&keys::GC_EVACUATION_FAILURES);
    if failed >= 1.0 && count(&keys::GC_FULLS_UNKNOWN) >= 1.0 {
        return Ok(Why::Room);
    }
    let others = [
        (Why::Metadata, count(&keys::GC_FULLS_METADATA)),
        (Why::Explicit, count(&keys::GC_FULLS_EXPLICIT)),
        (Why::Inspection, count(&keys::GC_FULLS_INSPECTION)),
        (Why::Unknown, count(&keys::GC_FULLS_UNKNOWN)),
    ];
    let most = others.into_iter().max_by(|(_, a), (_, b)| a.total_cmp(b));
    Ok(most
        .filter(|(_, count)| *count >= 1.0)
        .map_or(Why::Unknown, |(why, _)| why))
}
