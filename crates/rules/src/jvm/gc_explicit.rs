//! `gc-explicit`: the service, or a library of it, calls `System.gc()`.
//!
//! RMI does so every hour by itself, and NIO when direct memory runs out. As a full collection it stops the service for
//! a time that grows with the heap.

use rungwise_model::check::{Finding, Grade};
use rungwise_model::evidence::{Evidence, Missing};
use rungwise_model::keys;

use super::options::Goal;
use super::run::{Collector, JDK, LONG, OPTIONS, Run, each, seconds};
use crate::rule::needs;
use crate::{Doc, Judgement, Measure, Rule, Threshold, say};

const CALLS: Threshold = Threshold {
    name: "full collections triggered by System.gc(), from which on they are systematic",
    value: 2.0,
    origin: "own guess: one may be manual, or the start",
};

const COST: Threshold = Threshold {
    name: "upper bound of the share of the run in these collections, below which they are only watched",
    value: 0.05,
    origin: "measured by `cargo xtask faults --random 22 --seed 4002 --layer jvm`: 89 of at most 16 ms in 45 s, 3 % of it, raised p99 from 0.3 to 6.3 ms and lost no request, which docs/truth.md does not count as harm",
};

const SHORT: Threshold = Threshold {
    name: "longest of them in seconds, up to which they are only watched",
    value: 0.05,
    origin: "own guess: 50 ms is within the delays of a network",
};

pub(crate) static RULE: Rule = Rule {
    id: "gc-explicit",
    topic: "jvm",
    summary: "System.gc() stops the service for full collections",
    needs: needs!(
        [
            &keys::GC_EXPLICIT,
            &keys::GC_FULL_LONGEST,
            &keys::GC_FULLS_EXPLICIT,
            &keys::GC_PAUSE_GOAL,
            &keys::GC_SECONDS
        ],
        JDK
    ),
    thresholds: &[CALLS, LONG, COST, SHORT],
    knobs: &[OPTIONS],
    measure: Some(Measure::more(&keys::GC_FULLS_EXPLICIT)),
    doc: Doc {
        looks_for: "Full collections with the cause System.gc().",
        hurts: "Each stops the service and collects the whole heap, whether it is needed or not.",
        todo: "Make it concurrent: -XX:+ExplicitGCInvokesConcurrent with CMS and G1 (JDK 8, 11, 17, 21, 25). ZGC and Shenandoah do so by \
            themselves. Serial and Parallel cannot: find the caller (a stack of jstack, or the JFR event jdk.SystemGC from JDK 17 on). RMI: \
            -Dsun.rmi.dgc.server.gcInterval and -Dsun.rmi.dgc.client.gcInterval, in ms, default to an hour.",
        wrong: "-XX:+DisableExplicitGC is not recommended: NIO calls System.gc() to free direct memory, and without it a service with direct \
            buffers ends in an OutOfMemoryError. Together with ExplicitGCInvokesConcurrent it wins, and nothing is collected.",
        sources: "The reference case of long connections (both options set, which conflict); java.nio.Bits.reserveMemory; sun.rmi.transport.GC.",
    },
    judge,
};

fn judge(evidence: &Evidence) -> Judgement {
    each(evidence, &keys::GC_EXPLICIT, of_run)
}

fn of_run(run: &Run<'_>) -> Result<Finding, Missing> {
    let calls = run.number(&keys::GC_EXPLICIT)?;
    if calls.value < 1.0 {
        return Ok(Finding::clear("System.gc() triggered no collection").cite(calls.reading));
    }
    let fulls = run.number(&keys::GC_FULLS_EXPLICIT)?;
    if fulls.value < 1.0 {
        let sentence = format!(
            "System.gc() triggered {}, none of them full",
            say::count(calls.value, "collection")
        );
        return Ok(Finding::clear(sentence).cite(fulls.reading));
    }
    let every = run
        .value(&keys::GC_SECONDS)
        .map(|whole| whole / fulls.value)
        .filter(|_| fulls.value >= CALLS.value);
    let every = every.map_or_else(String::new, |every| {
        format!(", one every {}", seconds(every))
    });
    // The longest of all full collections: those of other causes may be longer.
    let longest = run.value(&keys::GC_FULL_LONGEST);
    let took = longest.map_or_else(String::new, |longest| {
        format!("; longest full collection {}", seconds(longest))
    });
    let sentence = format!(
        "System.gc() triggered {}{every}{took}",
        say::count(fulls.value, "full collection")
    );
    let cite = [&keys::GC_FULLS_EXPLICIT, &keys::GC_FULL_LONGEST];
    if fulls.value < CALLS.value {
        return Ok(run
            .cite(run.watch(sentence), &cite)
            .severity(Grade::Low)
            .refuted_by("it was requested by hand"));
    }
    let whole = run.value(&keys::GC_SECONDS);
    let cost = longest
        .zip(whole)
        .map(|(longest, whole)| fulls.value * longest / whole);
    let long = longest.is_some_and(|longest| longest > run.goal(&LONG));
    let short = longest.is_some_and(|longest| longest <= SHORT.value);
    let cheap = short && cost.is_some_and(|cost| cost < COST.value);
    let finding = if cheap {
        run.watch(sentence)
    } else {
        run.act(sentence)
    };
    let finding = run
        .cite(finding, &cite)
        .severity(if long { Grade::High } else { Grade::Medium })
        .confidence(Grade::High)
        .expect(match (run.collector(), longest) {
            (Collector::Cms | Collector::G1, Some(longest)) => format!(
                "short pauses of a concurrent cycle instead of pauses of up to {}",
                seconds(longest)
            ),
            _ => String::new(),
        })
        .refuted_by("the caller is a test or an operator");
    Ok(run.advise(finding, Goal::ExplicitConcurrent))
}
