//! `connection-pool-exhausted`: threads wait for a connection that a pool does not have.
//!
//! The pool's frames show it. No dump records who has the connections; threads past the place where the others wait likely do.

use rungwise_model::check::{Finding, Grade};
use rungwise_model::evidence::{Evidence, Missing, Subject};
use rungwise_model::keys;

use super::dumps;
use crate::{Doc, Judgement, Measure, Rule, Threshold, say};

const SHARE: Threshold = Threshold {
    name: "share of the threads with something to do that wait for a connection of one pool",
    value: 0.05,
    origin: "own guess: below it the wait is a small part of the requests",
};

const MUCH: Threshold = Threshold {
    name: "the same, critical",
    value: 0.20,
    origin: "own guess: one in five threads does nothing but wait",
};

const FEW: Threshold = Threshold {
    name: "threads that wait for one pool; fewer may be chance",
    value: 3.0,
    origin: "as for locks: ThreadLogic calls three blocked threads contention",
};

pub(crate) static RULE: Rule = Rule {
    id: "connection-pool-exhausted",
    topic: "jvm",
    summary: "threads wait for a connection, and the pool has none left",
    needs: &[
        &keys::THREADS_BUSINESS,
        &keys::THREADS_DUMPS,
        &keys::THREADS_SHARED_WAITS,
        &keys::THREADS_WAIT,
        &keys::THREADS_WAIT_HOLDERS,
        &keys::THREADS_WAIT_KIND,
        &keys::THREADS_WAIT_WAITERS,
    ],
    thresholds: &[SHARE, MUCH, FEW],
    knobs: &[],
    measure: Some(Measure::more(&keys::THREADS_WAIT_WAITERS)),
    doc: Doc {
        looks_for: "Threads in the borrow call of a pool of connections or objects: HikariCP, DBCP, c3p0, Druid, Tomcat JDBC, Jedis, \
            Lettuce, commons-pool, Apache HttpClient 3 to 5, MongoDB, Agroal, BoneCP, Vibur, Oracle UCP. The finding names threads past that \
            call in the same method: they likely hold the connections.",
        hurts: "Requests queue for a connection, however fast the database or the peer is. With a timeout they fail; without one they hang.",
        todo: "Inspect the threads that hold connections. They wait for the database: fix the slow query. They call another service or sleep \
            while holding the connection: return it first. No thread holds one: connections leak, so close them in a try-with-resources, and \
            switch on the pool's leak detection (HikariCP: leakDetectionThreshold). Only then enlarge the pool; for HTTP clients raise the \
            connections per route.",
        wrong: "One dump is one moment: a burst may empty the pool briefly. Take three. The holder of a connection is inferred from the \
            stacks; a leaked connection has no thread at all.",
        sources: "Frames seen in dumps of HikariCP 4.0.3, DBCP 2.9, c3p0 0.9.5, Druid 1.2, Tomcat JDBC 9, HttpClient 4.5 and 5.2, Jedis 3.9 on \
            JDK 17 (crates/testkit/java/Pools.java); the source of the others.",
    },
    judge,
};

fn judge(evidence: &Evidence) -> Judgement {
    dumps::each(evidence, of_jvm)
}

fn of_jvm(evidence: &Evidence, jvm: &Subject) -> Result<Vec<Finding>, Missing> {
    let waits = dumps::waits(evidence, jvm)?;
    let mut findings = Vec::new();
    let (mut most, mut cited) = (0.0_f64, None);
    for wait in waits.iter().filter(|wait| wait.kind == "connection") {
        let share = wait.lasting_share();
        if share > most || cited.is_none() {
            (most, cited) = (share, Some(wait));
        }
        if share < SHARE.value || wait.lasting() < FEW.value {
            continue;
        }
        let sentence = format!(
            "connection pool exhausted: {} wait for {}{}",
            say::count(wait.count.value, "thread"),
            wait.what.value,
            wait.holders()
        );
        let acts = share >= MUCH.value;
        let finding = if acts {
            Finding::act(wait.subject, sentence)
        } else {
            Finding::watch(wait.subject, sentence)
        };
        let several = wait.dumps > 1;
        let mut finding = finding
            .severity(if acts { Grade::High } else { Grade::Medium })
            .confidence(if several { Grade::High } else { Grade::Medium })
            .cite(wait.what.reading)
            .cite(wait.count.reading)
            .refuted_by("a later dump in which fewer threads wait for this pool");
        if let Some(holders) = wait.past {
            finding = finding.cite(holders.reading);
        }
        findings.push(finding);
    }
    if !findings.is_empty() {
        return Ok(findings);
    }
    let Some(wait) = cited else {
        let groups = evidence.quantity(&keys::THREADS_SHARED_WAITS, jvm)?;
        return Ok(vec![
            Finding::clear("no thread waits for a connection of a known pool").cite(groups.reading),
        ]);
    };
    let sentence = format!(
        "{} of the threads with something to do wait for {}",
        say::percent(most),
        wait.what.value
    );
    Ok(vec![
        Finding::clear(sentence)
            .below(most, SHARE.value)
            .cite(wait.count.reading),
    ])
}
