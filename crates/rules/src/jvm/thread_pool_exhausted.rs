//! `thread-pool-exhausted`: a thread pool has no free thread, because its threads wait for a database or another service.
//!
//! Threads that wait for a lock or for a connection wait for what its owner does, so the cause is followed to its end.

use rungwise_model::check::{Finding, Grade};
use rungwise_model::evidence::{Evidence, Missing, Subject};
use rungwise_model::keys;

use super::dumps;
use crate::{Doc, Judgement, Measure, Rule, Threshold, say};

const BUSY: Threshold = Threshold {
    name: "share of the pool's threads that are busy in every dump",
    value: 0.90,
    origin: "rule catalogue, rpc-pool-exhausted: more than 90 % busy in three dumps",
};

const BEHIND: Threshold = Threshold {
    name: "share of the pool's threads that wait for another process in the end",
    value: 0.50,
    origin: "own guess: below it most threads do something else",
};

const DUMPS: Threshold = Threshold {
    name: "dumps from which on the rule acts; fewer may show a burst",
    value: 3.0,
    origin: "rule catalogue, rpc-pool-exhausted: three dumps",
};

pub(crate) static RULE: Rule = Rule {
    id: "thread-pool-exhausted",
    topic: "jvm",
    summary: "a thread pool has no free thread, because its threads wait for a database or another service",
    needs: &[
        &keys::THREADS_DUMPS,
        &keys::THREADS_FULL_POOL,
        &keys::THREADS_FULL_POOL_BEHIND,
        &keys::THREADS_FULL_POOL_BUSY,
        &keys::THREADS_FULL_POOL_THREADS,
    ],
    thresholds: &[BUSY, BEHIND, DUMPS],
    knobs: &["rpc.threads"],
    measure: Some(Measure::more(&keys::THREADS_FULL_POOL_BEHIND)),
    doc: Doc {
        looks_for: "A pool of threads of which more than 90 % are busy in every dump, and at least half of which wait in a JDBC driver or in a \
            client of another service: directly, for a lock whose owner does, or for a connection while the threads that have one do.",
        hurts: "New requests queue in front of the pool, also those that need no database. The CPUs of this host are idle, and no setting of \
            the host helps.",
        todo: "Make the call faster: the slow query, its index, the lock in the database. If the threads queue at a lock or for a connection, \
            move the call outside the lock, or return the connection first. Set a timeout, so that a slow peer does not take all threads. \
            Only then enlarge the pool: it sends the peer more requests at once.",
        wrong: "A driver whose frames the tool does not know is not seen. The holders of connections are inferred from the stacks. A pool whose \
            peers are as fast as ever is too small for its load: compare its time per call with that of a calm hour.",
        sources: "Dubbo issues 4723, 5620 and 632 (thread pool is exhausted); the program pool-database in crates/testkit/java on JDK 8 to 25.",
    },
    judge,
};

fn judge(evidence: &Evidence) -> Judgement {
    dumps::each(evidence, |evidence, jvm| Ok(vec![of_jvm(evidence, jvm)?]))
}

fn of_jvm(evidence: &Evidence, jvm: &Subject) -> Result<Finding, Missing> {
    let behind = evidence.quantity(&keys::THREADS_FULL_POOL_BEHIND, jvm)?;
    if behind.value < 1.0 {
        let clear = "no thread of a pool waits for a database or another service";
        return Ok(Finding::clear(clear).cite(behind.reading));
    }
    let pool = evidence.words(&keys::THREADS_FULL_POOL, jvm)?;
    let busy = evidence.quantity(&keys::THREADS_FULL_POOL_BUSY, jvm)?;
    let threads = evidence.quantity(&keys::THREADS_FULL_POOL_THREADS, jvm)?;
    let dumps = evidence.quantity(&keys::THREADS_DUMPS, jvm)?;
    let share = behind.value / threads.value.max(1.0);
    if busy.value <= BUSY.value || share < BEHIND.value {
        let sentence = format!(
            "{} of the threads of a pool are busy; {}",
            say::percent(busy.value),
            pool.value
        );
        return Ok(Finding::clear(sentence)
            .below(busy.value.min(share), BUSY.value)
            .cite(busy.reading));
    }
    let certain = dumps.value >= DUMPS.value;
    let sentence = format!("no free thread in {}", pool.value);
    let finding = if certain {
        Finding::act(jvm, sentence).severity(Grade::High)
    } else {
        Finding::watch(jvm, sentence).severity(Grade::Medium)
    };
    Ok(finding
        .confidence(if certain { Grade::High } else { Grade::Medium })
        .cite(pool.reading)
        .cite(busy.reading)
        .cite(behind.reading)
        .consider("rpc.threads")
        .refuted_by("a later dump shows threads of the pool waiting for work"))
}
