//! `shared-wait`: many threads wait for one resource that no thread owns, and nothing releases it.
//!
//! Waiting is normal for threads, so a wait counts only if it lasts: the same threads at the same place without CPU time in all
//! dumps; for permits and full queues, as many threads in each of them.

use rungwise_model::check::{Finding, Grade};
use rungwise_model::evidence::{Evidence, Missing, Subject};
use rungwise_model::keys;

use super::dumps::{self, Wait};
use crate::{Doc, Judgement, Measure, Rule, Threshold, say};

const SHARE: Threshold = Threshold {
    name: "share of the threads with something to do that wait for one resource in all dumps",
    value: 0.05,
    origin: "own guess: below it the wait is a small part of what the service does",
};

const MUCH: Threshold = Threshold {
    name: "the same, critical",
    value: 0.20,
    origin: "own guess, as for locks: one in five threads does nothing else",
};

const FEW: Threshold = Threshold {
    name: "threads that wait for a latch, a future, a task or a condition; fewer may just keep the JVM alive",
    value: 3.0,
    origin: "own guess: the main thread of a server waits like that, alone",
};

/// No idle thread waits at these, so one thread is enough for a watch.
const RARE: &[&str] = &["exchanger", "phaser", "barrier", "semaphore", "full-queue"];
/// Each holder gives it back after a while: those that wait change, and the queue stays.
const QUEUES: &[&str] = &["semaphore", "full-queue"];
/// Home-made pools idle at these, so they are only watched where the threads do not handle requests.
const RESTS: &[&str] = &["condition", "notify", "thread-end"];
/// Judged by other rules.
const OTHERS: &[&str] = &["connection", "read-lock"];

pub(crate) static RULE: Rule = Rule {
    id: "shared-wait",
    topic: "jvm",
    summary: "many threads wait for one permit, latch, future or queue, without progress",
    needs: &[
        &keys::THREADS_BUSINESS,
        &keys::THREADS_DUMPS,
        &keys::THREADS_SHARED_WAITS,
        &keys::THREADS_WAIT,
        &keys::THREADS_WAIT_HOLDERS,
        &keys::THREADS_WAIT_KIND,
        &keys::THREADS_WAIT_REQUESTS,
        &keys::THREADS_WAIT_STILL,
        &keys::THREADS_WAIT_WAITERS,
    ],
    thresholds: &[SHARE, MUCH, FEW],
    knobs: &[],
    measure: Some(Measure::more(&keys::THREADS_WAIT_STILL)),
    doc: Doc {
        looks_for: "Threads that wait at one place for something that no thread owns: a permit of a Semaphore, a CountDownLatch, a \
            CyclicBarrier, a Phaser, an Exchanger, the result of a task, a future, the reply to a call of OkHttp, java.net.http or Lettuce, \
            room in a full queue, a condition. The wait must last: for permits and full queues as many threads wait in every dump, for the \
            others the same threads did not move (same stack, same cpu=). Threads that a dump shows in a call that releases it are named: \
            countDown, complete, a running task, take, arrive.",
        hurts: "These threads do nothing. Behind a permit or a full queue, requests are as slow as the thread that releases it; behind a \
            latch or a future that is never completed they hang forever.",
        todo: "Find what has to release it. A permit: the threads past acquire are named; inspect what they do, and release in a finally. A \
            latch or a future: search for what counts it down or completes it; often an exception ended that thread first, so complete \
            exceptionally and wait with a timeout. A full queue: inspect its consumers. A reply: the other service does not answer, so set a \
            timeout. Then raise the limit, if there is one.",
        wrong: "A limit may be intended (a bulkhead): then the wait is its price. A thread that may release the wait is known by its calls and \
            not by the object, so it may release another one. One dump cannot show that a wait lasts, so the rule then only watches. \
            Home-made pools idle at conditions, so the rule only watches these as well, unless a call of a server's framework on the stacks shows that the \
            threads handle requests. A servlet that holds its thread for long polling waits like that on purpose.",
        sources: "java.util.concurrent; the programs semaphore, latch-never, future-join, condition, exchanger, phaser and queue-full in \
            crates/testkit/java on JDK 8 to 25.",
    },
    judge,
};

fn judge(evidence: &Evidence) -> Judgement {
    dumps::each(evidence, of_jvm)
}

fn of_jvm(evidence: &Evidence, jvm: &Subject) -> Result<Vec<Finding>, Missing> {
    let waits = dumps::waits(evidence, jvm)?;
    let mut findings = Vec::new();
    let mut largest: Option<(&Wait<'_>, f64)> = None;
    for wait in waits.iter().filter(|wait| !OTHERS.contains(&wait.kind)) {
        let still = evidence.quantity(&keys::THREADS_WAIT_STILL, wait.subject)?;
        let is_queue = QUEUES.contains(&wait.kind);
        let lasting = if is_queue && wait.dumps > 1 {
            wait.lasting().max(still.value)
        } else if wait.dumps > 1 {
            still.value
        } else {
            wait.count.value
        };
        let share = wait.share_of(lasting);
        if largest.is_none_or(|(_, most)| share > most) {
            largest = Some((wait, share));
        }
        let least = if RARE.contains(&wait.kind) {
            1.0
        } else {
            FEW.value
        };
        // In one dump a service that waits for answers looks the same.
        let line = if wait.dumps > 1 {
            SHARE.value
        } else {
            MUCH.value
        };
        if share < line || lasting < least {
            continue;
        }
        // Older evidence does not have it.
        let requests = evidence.quantity(&keys::THREADS_WAIT_REQUESTS, wait.subject);
        let requests = requests.map_or(0.0, |requests| requests.value);
        let acts = share >= MUCH.value
            && lasting >= FEW.value
            && wait.dumps > 1
            && (!RESTS.contains(&wait.kind) || requests >= FEW.value);
        let during = match wait.dumps {
            0 | 1 => " in one dump".to_owned(),
            dumps if is_queue => format!(" in each of {dumps} dumps"),
            dumps => format!(", unmoved in {dumps} dumps"),
        };
        let within = if requests >= FEW.value {
            format!(
                ", {} of them while handling a request",
                say::whole(requests)
            )
        } else {
            String::new()
        };
        let sentence = format!(
            "{} for {}{within}{during}{}",
            if lasting > 1.5 {
                format!("{} threads wait", say::whole(lasting))
            } else {
                "1 thread waits".to_owned()
            },
            wait.what.value,
            wait.holders()
        );
        let finding = if acts {
            Finding::act(wait.subject, sentence).severity(Grade::High)
        } else {
            Finding::watch(wait.subject, sentence).severity(Grade::Medium)
        };
        let mut finding = finding
            .confidence(if wait.dumps > 2 {
                Grade::Medium
            } else {
                Grade::Low
            })
            .cite(wait.what.reading)
            .cite(wait.count.reading)
            .cite(still.reading)
            .refuted_by(if wait.dumps > 1 {
                "a later dump shows these threads elsewhere"
            } else {
                "two more dumps, some seconds apart, show these threads elsewhere"
            });
        if let Some(holders) = wait.past {
            finding = finding.cite(holders.reading);
        }
        findings.push(finding);
    }
    if !findings.is_empty() {
        return Ok(findings);
    }
    let groups = evidence.quantity(&keys::THREADS_SHARED_WAITS, jvm)?;
    Ok(vec![match largest {
        Some((wait, share)) => Finding::clear(format!(
            "{} of the threads with something to do wait for {}",
            say::percent(share),
            wait.what.value
        ))
        .below(share, SHARE.value)
        .cite(wait.count.reading),
        None => Finding::clear("no thread waits for a permit, a latch, a future or a full queue")
            .cite(groups.reading),
    }])
}
