//! `gc-metaspace-growth`: metaspace, or the permanent generation, grows long after the start.
//!
//! Classes are unloaded with their class loader and not before. A loader that is still referenced, often of an earlier
//! deployment or of a script, keeps all of its classes. The slope is the Theil-Sen estimator over the second half of the
//! run, so that startup does not count.

use rungwise_model::check::{Finding, Grade, Outcome};
use rungwise_model::evidence::{Evidence, Missing};
use rungwise_model::keys;

use super::options::Goal;
use super::run::{JDK, OPTIONS, Run, each, seconds};
use crate::rule::needs;
use crate::{Doc, Judgement, Measure, Rule, Threshold, say};

const GROWTH: Threshold = Threshold {
    name: "growth per day, lower end of its 95 % interval, as a share of metaspace in use",
    value: 0.1,
    origin: "own guess: more than the lazily loaded classes of a service",
};

const SETTLED: Threshold = Threshold {
    name: "least uptime in seconds at which the second half of the run begins",
    value: 600.0,
    origin: "own guess: a service has loaded its classes by then",
};

const SOON: Threshold = Threshold {
    name: "days until the limit is reached, below which the rule acts",
    value: 7.0,
    origin: "own guess: services are redeployed about weekly",
};

const NEAR: Threshold = Threshold {
    name: "metaspace in use as a share of its limit, above which the rule watches",
    value: 0.8,
    origin: "jifa's threshold",
};

const DAY: f64 = 86400.0;

pub(crate) static RULE: Rule = Rule {
    id: "gc-metaspace-growth",
    topic: "jvm",
    summary: "classes are loaded but not unloaded",
    needs: needs!(
        [
            &keys::GC_BEGAN,
            &keys::GC_METASPACE,
            &keys::GC_METASPACE_SLOPE,
            &keys::GC_METASPACE_SLOPE_LOW,
            &keys::GC_SECONDS
        ],
        JDK
    ),
    thresholds: &[GROWTH, SETTLED, SOON, NEAR],
    knobs: &[OPTIONS],
    measure: Some(Measure::more(&keys::GC_METASPACE_SLOPE)),
    doc: Doc {
        looks_for: "Metaspace (up to JDK 7 the permanent generation) that grows with 95 % confidence by more than a tenth per day, over the \
            second half of a run that is past its startup; and when it reaches its limit. Also more than 80 % of a limit set by the options, \
            growing or not.",
        hurts: "It ends in an OutOfMemoryError of metaspace or, without -XX:MaxMetaspaceSize, in a machine without memory.",
        todo: "Find what loads classes: jcmd PID VM.classloader_stats (11, 17, 21, 25; JDK 8: jmap -clstats) shows loaders and what they \
            hold; -Xlog:class+load,class+unload (JDK 8: -XX:+TraceClassLoading -XX:+TraceClassUnloading) logs each class. Common causes are \
            proxies, scripts, expression languages, serializers created for each request, and loaders of earlier deployments. CMS up to JDK \
            7 unloads no class unless -XX:+CMSClassUnloadingEnabled is given; from JDK 8 on every collector does.",
        wrong: "A service that is redeployed into a running JVM loads its classes late and once. A test that covers all functions of a \
            service loads classes for hours. Collectors unload in old collections only: without one, metaspace also grows by unused classes.",
        sources: "HotSpot metaspace.cpp; JDK Mission Control (class leak); Sen, Estimates of the regression coefficient based on \
            Kendall's tau, 1968.",
    },
    judge,
};

fn judge(evidence: &Evidence) -> Judgement {
    each(evidence, &keys::GC_METASPACE, of_run)
}

fn of_run(run: &Run<'_>) -> Result<Finding, Missing> {
    let grows = growth(run);
    if let Ok(finding) = &grows
        && matches!(finding.outcome, Outcome::Act | Outcome::Watch)
    {
        return grows;
    }
    near(run).map_or(grows, Ok)
}

/// The limit, from the options.
fn limit(run: &Run<'_>) -> Option<f64> {
    run.size_of("MaxMetaspaceSize=")
        .or_else(|| run.size_of("MaxPermSize="))
        .filter(|limit| *limit > 0.0)
}

/// Little is left below the limit, whether or not it grows.
fn near(run: &Run<'_>) -> Option<Finding> {
    let used = run.number(&keys::GC_METASPACE).ok()?;
    let limit = limit(run)?;
    let share = used.value / limit;
    (share > NEAR.value).then(|| {
        run.watch(format!(
            "metaspace holds {}, {} of its limit of {}",
            say::bytes(used.value),
            say::percent(share),
            say::bytes(limit)
        ))
        .refuted_by("it stays below the limit in a longer log: that is what the limit is for")
        .cite(used.reading)
    })
}

fn growth(run: &Run<'_>) -> Result<Finding, Missing> {
    let used = run.number(&keys::GC_METASPACE)?;
    let holds = say::bytes(used.value);
    let length = run.number(&keys::GC_SECONDS)?.value;
    let half = run.value(&keys::GC_BEGAN).unwrap_or(0.0) + length / 2.0;
    if half < SETTLED.value {
        let sentence = format!(
            "metaspace holds {holds}; the log covers {} of startup, when every service loads classes",
            seconds(length)
        );
        return Ok(Finding::clear(sentence).cite(used.reading));
    }
    let low = run.number(&keys::GC_METASPACE_SLOPE_LOW)?;
    let share = low.value * DAY / used.value.max(1.0);
    if share <= GROWTH.value {
        let sentence = format!("metaspace holds {holds}, without significant growth");
        return Ok(Finding::clear(sentence)
            .below(share.max(0.0), GROWTH.value)
            .cite(used.reading)
            .cite(low.reading));
    }
    let slope = run
        .value(&keys::GC_METASPACE_SLOPE)
        .map_or(low.value, |slope| slope.max(low.value));
    let latest = limit(run).map(|limit| (limit - used.value).max(0.0) / low.value / DAY);
    let when = latest.map_or_else(
        || "; its limit is unknown".to_owned(),
        |days| {
            format!(
                "; it reaches its limit in {:.1} days at the latest",
                days.min(1e6)
            )
        },
    );
    let sentence = format!(
        "metaspace grows by {} a day (at least {}) and holds {holds}{when}",
        say::bytes(slope * DAY),
        say::bytes(low.value * DAY)
    );
    let soon = latest.is_some_and(|days| days < SOON.value);
    let finding = if soon {
        run.act(sentence).severity(Grade::High)
    } else {
        run.watch(sentence)
    };
    let finding = run
        .cite(
            finding,
            &[
                &keys::GC_METASPACE,
                &keys::GC_METASPACE_SLOPE,
                &keys::GC_METASPACE_SLOPE_LOW,
            ],
        )
        .confidence(if length > DAY {
            Grade::High
        } else {
            Grade::Medium
        })
        .refuted_by("it settles in a longer log, over a day at least");
    Ok(run.advise(finding, Goal::UnloadClasses))
}
