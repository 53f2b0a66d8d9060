//! `lock-wait-ratio`: many threads with something to do wait for locks.
//!
//! The share depends on its definition: threads that wait for a lock over threads with something to do. Threads of the JVM,
//! and threads that wait for work, are in neither number (docs/jvm-threads.md).

use rungwise_model::check::{Finding, Grade};
use rungwise_model::evidence::{Evidence, Missing, Quantity, Subject};
use rungwise_model::keys;

use super::dumps;
use crate::{Doc, Judgement, Measure, Rule, Threshold, say};

const SHARE: Threshold = Threshold {
    name: "share of the threads with something to do that wait for a lock",
    value: 0.20,
    origin: "own guess; the reference bank host had 42.8 % and 73.7 %, by a definition that it does not state",
};

const MUCH: Threshold = Threshold {
    name: "the same, critical",
    value: 0.40,
    origin: "own guess, below both figures of the reference bank host",
};

const FEW: Threshold = Threshold {
    name: "threads that wait for one lock; fewer may be chance",
    value: 3.0,
    origin: "ThreadLogic calls three blocked threads contention",
};

const QUEUE: Threshold = Threshold {
    name: "threads that wait for one lock, whatever their share",
    value: 20.0,
    origin: "ThreadLogic: more than 20 threads blocked on one lock",
};

const LONG_QUEUE: Threshold = Threshold {
    name: "the same, critical",
    value: 50.0,
    origin: "ThreadLogic: more than 50 threads blocked on one lock",
};

const DUMPS: Threshold = Threshold {
    name: "dumps from which on confidence is high",
    value: 3.0,
    origin: "own guess; three dumps some seconds apart are what support teams ask for",
};

pub(crate) static RULE: Rule = Rule {
    id: "lock-wait-ratio",
    topic: "jvm",
    summary: "many threads with something to do wait for locks",
    needs: &[
        &keys::THREADS_BUSINESS,
        &keys::THREADS_DUMPS,
        &keys::THREADS_LOCK_WAITING,
        &keys::THREADS_STARVED,
        &keys::THREADS_TOP_LOCK,
        &keys::THREADS_TOP_OWNER,
        &keys::THREADS_TOP_WAITERS,
    ],
    thresholds: &[SHARE, MUCH, FEW, QUEUE, LONG_QUEUE, DUMPS],
    knobs: &["log.guard", "app.lock_split", "rpc.threads"],
    measure: Some(Measure::more(&keys::THREADS_LOCK_WAITING)),
    doc: Doc {
        looks_for: "Threads that wait for a lock, as a share of the threads with something to do; a lock that many wait for; a pool all of \
            whose threads wait for one lock or for a database connection. The finding names the lock, its holder and what that thread does.",
        hurts: "Only one thread at a time works under the lock. More CPUs, threads or requests make the queue longer and nothing faster; a \
            pool whose threads all wait takes no work at all.",
        todo: "Inspect what the owner does. It writes a log: guard the statements, raise the level, buffer (log4j 1.2: ImmediateFlush=false, \
            BufferedIO=true), or write in a separate thread. It waits for a disk, a socket or a database: do that outside the lock. It \
            computes: split the lock, or hold it for less time. A connection pool: size it for its users.",
        wrong: "A dump is one moment. Three, some seconds apart, distinguish a queue from chance; with fewer the confidence is medium. Idle \
            threads are recognised by where they wait (docs/jvm-threads.md): a home-made pool idles in Object.wait, counts as having \
            something to do, and makes the share smaller than it is.",
        sources: "The reference bank host: 42.8 % and 73.7 %; ThreadLogic's advisories on blocked threads; log4j 1.2.17, Category.callAppenders.",
    },
    judge,
};

fn judge(evidence: &Evidence) -> Judgement {
    dumps::each(evidence, |evidence, jvm| Ok(vec![of_jvm(evidence, jvm)?]))
}

/// The combined result of the thresholds.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Level {
    Clear,
    Watch,
    Act,
}

fn of_jvm(evidence: &Evidence, jvm: &Subject) -> Result<Finding, Missing> {
    let share = evidence.quantity(&keys::THREADS_LOCK_WAITING, jvm)?;
    let business = evidence.quantity(&keys::THREADS_BUSINESS, jvm)?;
    let most = evidence.quantity(&keys::THREADS_TOP_WAITERS, jvm)?;
    let dumps = evidence.quantity(&keys::THREADS_DUMPS, jvm)?;
    let starved = evidence.words(&keys::THREADS_STARVED, jvm).ok();
    let by_share = level(share, SHARE.value, MUCH.value);
    let by_queue = level(most, QUEUE.value, LONG_QUEUE.value);
    let by_pool = if starved.is_some() {
        Level::Act
    } else {
        Level::Clear
    };
    let found = by_share.max(by_queue).max(by_pool);
    let over = if dumps.value > 1.0 {
        format!(", mean of {}", say::count(dumps.value, "dump"))
    } else {
        String::new()
    };
    let percent = format!(
        "{} of {} with something to do wait for locks{over}",
        say::percent(share.value),
        say::count(business.value, "thread")
    );
    if found == Level::Clear || most.value < FEW.value && starved.is_none() {
        let sentence = if found == Level::Clear {
            percent
        } else {
            let threads = say::count(most.value, "thread");
            format!("{percent}, at most {threads} for any one lock")
        };
        return Ok(Finding::clear(sentence)
            .below(share.value, SHARE.value)
            .cite(share.reading));
    }
    let words = |key| evidence.words(key, jvm).ok();
    let (lock, owner) = (
        words(&keys::THREADS_TOP_LOCK),
        words(&keys::THREADS_TOP_OWNER),
    );
    let mut sentence = percent;
    if let Some(lock) = lock {
        sentence = format!("{sentence}: {} for {}", say::whole(most.value), lock.value);
    }
    if let Some(owner) = owner {
        sentence = format!("{sentence}, held by {}", owner.value);
    }
    if let Some(starved) = starved {
        sentence = format!("{sentence}; no free thread in {}", starved.value);
    }
    let finding = if found == Level::Act {
        Finding::act(jvm, sentence)
    } else {
        Finding::watch(jvm, sentence)
    };
    let certain = dumps.value >= DUMPS.value;
    let mut finding = finding
        .severity(if found == Level::Act {
            Grade::High
        } else {
            Grade::Medium
        })
        .confidence(if certain { Grade::High } else { Grade::Medium })
        .cite(share.reading)
        .cite(most.reading)
        .refuted_by(if certain {
            "requests are as slow without the lock"
        } else {
            "two more dumps, some seconds apart, show other threads waiting, or none"
        });
    for cited in [lock, owner, starved].into_iter().flatten() {
        finding = finding.cite(cited.reading);
    }
    Ok(knobs(
        finding,
        owner.map_or("", |owner| owner.value),
        starved.is_some(),
    ))
}

/// Critical where as many dumps are above that line as make more than one moment, or all where there are fewer.
fn level(value: Quantity<'_>, line: f64, critical: f64) -> Level {
    let course: &[f64] = match &*value.reading.series {
        [] => &[value.value],
        series => series,
    };
    let above = course.iter().filter(|value| **value > critical).count();
    if above as f64 >= DUMPS.value.min(course.len() as f64) {
        Level::Act
    } else if value.value > line {
        Level::Watch
    } else {
        Level::Clear
    }
}

fn knobs(finding: Finding, owner: &str, starved: bool) -> Finding {
    let first = if owner.contains("writes a log") {
        "log.guard"
    } else {
        "app.lock_split"
    };
    let finding = finding.consider(first);
    if starved {
        finding.consider("rpc.threads")
    } else {
        finding
    }
}
