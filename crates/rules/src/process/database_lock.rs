//! `database-lock`: `PostgreSQL` sessions wait for rows or tables that others have locked.
//!
//! A backend that waits for a heavyweight lock says so in its process title (`UPDATE waiting`), which costs nothing to read and
//! needs no login.
use rungwise_model::check::{Finding, Grade};
use rungwise_model::evidence::Evidence;
use rungwise_model::keys;

use super::called;
use crate::{Doc, Judgement, Measure, Rule, Threshold, say};

const WAITING: Threshold = Threshold {
    name: "share of the busy sessions that wait, lower median of the samples",
    value: 0.25,
    origin: "measured by `cargo xtask faults --steps 5 --seed 8001`: a table locked for 164 ms at a time kept 89 % of the busy sessions \
        waiting (p99 from 0.6 to 165 ms), one locked for 5 ms none",
};

const WAITERS: Threshold = Threshold {
    name: "sessions that wait, lower median of the samples",
    value: 2.0,
    origin: "own guess: one may be a migration",
};

const OFTEN: Threshold = Threshold {
    name: "share of the samples (eight or more) with that many waiting sessions, if most samples have fewer",
    value: 0.10,
    origin: "measured by `cargo xtask faults --random 38 --seed 505`: a table locked for 21 ms of each 130 took p99 from 0.6 to 22.8 ms",
};

pub(crate) static RULE: Rule = Rule {
    id: "database-lock",
    topic: "process",
    summary: "PostgreSQL sessions wait for rows or tables that others have locked",
    needs: &[
        &keys::LOCK_DATABASE_BACKENDS,
        &keys::LOCK_DATABASE_WAITERS,
        &keys::LOCK_DATABASE_WAITING,
        &keys::SCHED_PROCESS_NAME,
    ],
    thresholds: &[WAITING, WAITERS, OFTEN],
    knobs: &[],
    measure: Some(Measure::more(&keys::LOCK_DATABASE_WAITING)),
    doc: Doc {
        looks_for: "Two or more client sessions of a PostgreSQL server whose process title ends in `waiting` in most samples, and that are a quarter of its busy sessions or more; or two or more in a tenth of many samples.",
        hurts: "Sessions that update the same row run one after the other, whatever the CPUs and disks can do. A forgotten transaction (idle in transaction) blocks every session that needs its rows.",
        todo: "SELECT pid, wait_event, pg_blocking_pids(pid), query FROM pg_stat_activity WHERE wait_event_type = 'Lock'. Shorten transactions, update hot rows last, batch counters, set idle_in_transaction_session_timeout and lock_timeout.",
        wrong: "A migration that waits for its table lock, and the sessions behind it, finish without intervention. With update_process_title = off the rule sees nothing.",
        sources: "PostgreSQL 15, 28.1 Standard Unix Tools, 53.12 pg_locks; ProcSleep of src/backend/storage/lmgr/proc.c.",
    },
    judge,
};

fn judge(evidence: &Evidence) -> Judgement {
    let backends = evidence.host(&keys::LOCK_DATABASE_BACKENDS)?;
    let servers = evidence
        .each(&keys::LOCK_DATABASE_WAITING)
        .unwrap_or_default();
    let mut findings = Vec::new();
    let mut most = 0.0_f64;
    for (server, share) in servers {
        let waiters = evidence.quantity(&keys::LOCK_DATABASE_WAITERS, server)?;
        most = most.max(share.value);
        // Sessions change places at each commit, so a sample between two of them may find none waiting; and a lock that is held
        // for a tenth of the time makes the slowest tenth of the requests.
        let often = waiters.share(|waiting| waiting >= WAITERS.value);
        let often = often.filter(|share| *share >= OFTEN.value);
        let mostly = waiters.value >= WAITERS.value && share.value >= WAITING.value;
        let sentence = match (mostly, often) {
            (true, _) => format!(
                "{}: {:.0} sessions wait for rows or tables that another session has locked ({} of the busy ones)",
                called(evidence, server),
                waiters.value,
                say::percent(share.value)
            ),
            (false, Some(often)) => format!(
                "{}: two or more sessions wait for rows or tables that another session has locked, in {} of the samples",
                called(evidence, server),
                say::percent(often)
            ),
            (false, None) => continue,
        };
        findings.push(
            Finding::act(server, sentence)
                .severity(if share.value > 0.5 {
                    Grade::High
                } else {
                    Grade::Medium
                })
                .confidence(Grade::High)
                .cite(share.reading)
                .cite(waiters.reading)
                .refuted_by("pg_stat_activity shows no session with wait_event_type = 'Lock'"),
        );
    }
    if findings.is_empty() {
        let sentence = if backends.value < 1.0 {
            "no PostgreSQL session was seen".to_owned()
        } else {
            format!(
                "{} of the busy PostgreSQL sessions wait for a lock",
                say::percent(most)
            )
        };
        let clear = Finding::clear(sentence).below(most, WAITING.value);
        findings.push(clear.cite(backends.reading));
    }
    Ok(findings)
}
