//! `gc-locker`: native code delays collections and triggers unnecessary ones.
//!
//! Between `GetPrimitiveArrayCritical` and its release nothing may move, so a collection waits, and every thread that needs
//! memory waits with it. When the last thread has left, a young collection follows, however little there is to collect.

use rungwise_model::check::{Finding, Grade};
use rungwise_model::evidence::{Evidence, Missing};
use rungwise_model::keys;

use super::options::Jdk;
use super::run::{Collector, OPTIONS, Run, SHORT, each, seconds};
use crate::{Doc, Judgement, Measure, Rule, Threshold, say};

const SHARE: Threshold = Threshold {
    name: "share of the collections that waited for native code",
    value: 0.1,
    origin: "the threshold of JMC's GC locker rule",
};

const COST: Threshold = Threshold {
    name: "share of the run in such collections, from which on the rule acts",
    value: 0.005,
    origin: "own guess: a tenth of what GCeasy allows for collections",
};

pub(crate) static RULE: Rule = Rule {
    id: "gc-locker",
    topic: "jvm",
    summary: "collections wait for native code that pins arrays",
    needs: &[
        &keys::GC_COLLECTOR,
        &keys::GC_FULLS,
        &keys::GC_LOCKER,
        &keys::GC_LOCKER_TIME,
        &keys::GC_SECONDS,
        &keys::GC_UNIFIED,
        &keys::GC_VERSION,
        &keys::GC_YOUNGS,
    ],
    thresholds: &[SHARE, COST, SHORT],
    knobs: &[OPTIONS],
    measure: Some(Measure::more(&keys::GC_LOCKER)),
    doc: Doc {
        looks_for: "The cause GCLocker Initiated GC in more than a tenth of the collections, and the share of the run that these take.",
        hurts: "A collection that is due waits until the last thread has left its JNI critical region, and the threads that need memory wait \
            with it; no pause of the log shows that wait. The collection after it runs whether it is worth it or not.",
        todo: "Find the code that pins arrays, and make it pin them for a shorter time or copy them (GetByteArrayRegion): compression, \
            cryptography, native parsers. -XX:+PrintJNIGCStalls (JDK 7 and 8) or -Xlog:gc+jni=debug (JDK 9 to 24) names the threads. G1 from \
            JDK 22 on pins their regions and collects the others (JEP 423), Shenandoah does so on every JDK that has it, and from JDK 25 on \
            no collector has this cause.",
        wrong: "A collection that was due anyway has this cause too when a thread was in such a region at that moment, so their share shows \
            how often regions interfere, not how many collections could be avoided.",
        sources: "HotSpot gcLocker.cpp of JDK 8 to 21; JEP 423; JDK-8192647 (gone in 25); JMC, GcLockerRule.",
    },
    judge,
};

fn judge(evidence: &Evidence) -> Judgement {
    each(evidence, &keys::GC_LOCKER, of_run)
}

fn of_run(run: &Run<'_>) -> Result<Finding, Missing> {
    let locker = run.number(&keys::GC_LOCKER)?;
    if locker.value < 1.0 {
        return Ok(Finding::clear("no collection waited for native code").cite(locker.reading));
    }
    let all = run.number(&keys::GC_YOUNGS)?.value + run.number(&keys::GC_FULLS)?.value;
    let share = (locker.value / all.max(locker.value)).min(1.0);
    let time = run.value(&keys::GC_LOCKER_TIME);
    let cost = time
        .zip(run.value(&keys::GC_SECONDS))
        .filter(|(_, whole)| *whole > 0.0)
        .map(|(time, whole)| time / whole);
    let took = time.map_or_else(String::new, |time| format!(", {} in all", seconds(time)));
    let sentence = format!(
        "{} of {} waited for native code that pinned arrays ({}){took}",
        say::whole(locker.value),
        say::count(all, "collection"),
        say::percent(share)
    );
    if share <= SHARE.value {
        return Ok(Finding::clear(sentence)
            .below(share, SHARE.value)
            .cite(locker.reading));
    }
    let dear = cost.filter(|cost| *cost > COST.value && !run.is_short());
    let finding = match dear {
        Some(_) => run.act(sentence),
        None => run.watch(sentence).severity(Grade::Low),
    };
    let finding = run.cite(finding, &[&keys::GC_LOCKER, &keys::GC_LOCKER_TIME]);
    let finding = match namer(run.jdk()) {
        // In addition to what the JVM logs already; it replaces nothing.
        Some(option) => finding.turn(OPTIONS, option),
        None => finding,
    };
    let finding = finding
        .newer(match run.collector() {
            Collector::G1 => {
                "G1 of JDK 25 pins such arrays and collects the memory around them (JEP 423, JDK 22)"
            }
            _ => {
                "no collector of JDK 25 has this cause; G1 has pinned such arrays since JDK 22 (JEP 423)"
            }
        })
        .refuted_by("-Xlog:gc+jni=debug (JDK 8: -XX:+PrintJNIGCStalls) names no thread");
    Ok(match dear {
        Some(cost) => finding.expect(format!("at most {} of the run", say::percent(cost))),
        None => finding,
    })
}

/// The option with which this JDK names the threads in critical regions.
fn namer(jdk: Jdk) -> Option<&'static str> {
    if jdk.from(25) || jdk.until(6) {
        None
    } else if jdk.until(8) {
        Some("-XX:+PrintJNIGCStalls")
    } else {
        // To standard output, so that it replaces no log.
        jdk.from(9).then_some("-Xlog:gc+jni=debug")
    }
}
