//! `alloc-per-request`: each request allocates a lot, which fills Eden.
//!
//! The allocation rate over the request rate. Young collections run as often as requests fill Eden, so half the bytes mean
//! half the collections, whatever the collector.

use rungwise_model::check::{Finding, Grade};
use rungwise_model::evidence::{Evidence, Missing};
use rungwise_model::keys;

use super::run::{Run, SHORT, each, flow, seconds};
use crate::{Doc, Judgement, Measure, Rule, Threshold, say};

const MUCH: Threshold = Threshold {
    name: "bytes allocated per request",
    value: 500e3,
    origin: "the reference case of HTTP heap cost: 0.5 to 1 MB in production, 34 KB for an empty request",
};

pub(crate) static RULE: Rule = Rule {
    id: "alloc-per-request",
    topic: "jvm",
    summary: "each request allocates a lot",
    needs: &[
        &keys::GC_ALLOCATION_RATE,
        &keys::GC_EDEN_FREED,
        &keys::GC_REQUEST_RATE,
        &keys::GC_SECONDS,
        &keys::GC_YOUNG_INTERVAL,
    ],
    thresholds: &[MUCH, SHORT],
    knobs: &[],
    measure: Some(Measure::more(&keys::GC_ALLOCATION_RATE)),
    doc: Doc {
        looks_for: "More than 500 KB allocated per request. Needs the request rate (--rate).",
        hurts: "Allocation drives young collections: 500 requests/s at 0.5 MB each fill 15 GB a minute.",
        todo: "An allocation profile shows where the bytes come from (async-profiler -e alloc, JFR). Common sources: copies of the message, \
            strings built for logs, buffers sized for the largest message, and boxed numbers. This applies to every JDK and collector.",
        wrong: "The log counts all allocation, timers and caches included, and the warm-up: a log of less than a minute is mostly startup, \
            and has low confidence. With G1 the unused rest of a humongous object's last region counts too, with ZGC that of a page. A \
            request rate measured at another time than the log is meaningless.",
        sources: "The reference case of HTTP heap cost (0.5 MB x 500/s, 34 KB for an empty request).",
    },
    judge,
};

fn judge(evidence: &Evidence) -> Judgement {
    each(evidence, &keys::GC_REQUEST_RATE, of_run)
}

fn of_run(run: &Run<'_>) -> Result<Finding, Missing> {
    let requests = run.number(&keys::GC_REQUEST_RATE)?;
    let rate = run.number(&keys::GC_ALLOCATION_RATE)?;
    if requests.value <= 0.0 {
        let sentence = "no requests, so no allocation per request";
        return Ok(Finding::clear(sentence).cite(requests.reading));
    }
    let each = rate.value / requests.value;
    let fills = run.value(&keys::GC_EDEN_FREED).map(|room| {
        format!(
            ", filling Eden ({}) every {}",
            say::bytes(room),
            seconds(room / rate.value.max(1.0))
        )
    });
    let what = format!(
        "a request allocates {} ({} at {}){}",
        say::bytes(each),
        flow(rate.value),
        say::rate(requests.value),
        fills.unwrap_or_default()
    );
    if each <= MUCH.value {
        return Ok(Finding::clear(what)
            .below(each, MUCH.value)
            .cite(rate.reading)
            .cite(requests.reading));
    }
    let (what, sure) = if run.is_short() {
        (format!("{what}; the log is mostly startup"), Grade::Low)
    } else {
        (what, Grade::Medium)
    };
    let finding = run
        .watch(what)
        .confidence(sure)
        .expect("half the bytes, half as many young collections, each about as long as now")
        .refuted_by("there are as many collections without requests");
    Ok(run.cite(
        finding,
        &[
            &keys::GC_ALLOCATION_RATE,
            &keys::GC_REQUEST_RATE,
            &keys::GC_YOUNG_INTERVAL,
        ],
    ))
}
