//! `upstream-pool-full`: requests of clients wait because all connections to a server are in use.
//!
//! Each connection to the server has a request open, and more requests of clients are open than were passed on: they wait in
//! the process for a connection. The kernel does not count this; both sides of the sockets show it.
use rungwise_model::check::{Finding, Grade};
use rungwise_model::evidence::{Evidence, Missing};
use rungwise_model::keys;

use super::called;
use crate::{Doc, Judgement, Measure, Rule, Threshold, say};

const FULL: Threshold = Threshold {
    name: "share of the samples in which all connections to the server have a request open",
    value: 0.20,
    origin: "own guess: one request in five waits",
};

const ALWAYS: Threshold = Threshold {
    name: "share above which too few samples have a free connection to compare with",
    value: 0.90,
    origin: "own guess: three of 25 samples are too few to compare with",
};

const QUEUE: Threshold = Threshold {
    name: "client requests that wait for a connection, mean",
    value: 1.0,
    origin: "by definition: one waits at any time",
};

const BUSY: Threshold = Threshold {
    name: "share of a CPU that the busiest thread of the process uses, above which its clients may wait for its own work",
    value: 0.80,
    origin: "rule thread-saturated",
};

pub(crate) static RULE: Rule = Rule {
    id: "upstream-pool-full",
    topic: "process",
    summary: "all connections to a server are in use, and requests of clients wait for one",
    needs: &[
        &keys::DEPENDENCY_ANSWER,
        &keys::DEPENDENCY_POOL,
        &keys::DEPENDENCY_POOL_FULL,
        &keys::DEPENDENCY_POOL_OF,
        &keys::DEPENDENCY_POOL_QUEUE,
        &keys::DEPENDENCY_POOL_QUEUE_ELSE,
        &keys::PROCESS_BUSIEST_THREAD,
        &keys::SCHED_PROCESS_NAME,
    ],
    thresholds: &[FULL, ALWAYS, QUEUE, BUSY],
    knobs: &[],
    measure: Some(Measure::more(&keys::DEPENDENCY_POOL_QUEUE)),
    doc: Doc {
        looks_for: "A process with clients whose connections to another server all have a request open in a fifth of the samples or more, while more client requests are open than were passed on: one or more on average, and fewer than half as many while a connection is free.",
        hurts: "Requests queue in front of the pool. The server may be idle: its response time is not the response time that clients see.",
        todo: "Make the pool larger than rate times response time (maxconn of HAProxy, keepalive of nginx, maximumPoolSize of HikariCP, max_connections on the other side). If the server is at its limit, a larger pool only moves the queue there: check it first.",
        wrong: "A process that works on requests before it calls its server has open requests of its own, but has them while a connection is free as well. A limit may protect the server on purpose.",
        sources: "tcp_get_info of net/ipv4/tcp.c, Linux 6.18; Little's law; HikariCP, About Pool Sizing.",
    },
    judge,
};

fn judge(evidence: &Evidence) -> Judgement {
    let full = match evidence.each(&keys::DEPENDENCY_POOL_FULL) {
        Ok(full) => full,
        Err(Missing { why, .. }) if why.is_none => Vec::new(),
        Err(missing) => return Err(missing),
    };
    let mut findings = Vec::new();
    let mut most = 0.0_f64;
    for (process, share) in full {
        let number = |key| evidence.quantity(key, process).ok();
        let (Some(queue), Some(pool), Ok(server)) = (
            number(&keys::DEPENDENCY_POOL_QUEUE),
            number(&keys::DEPENDENCY_POOL),
            evidence.words(&keys::DEPENDENCY_POOL_OF, process),
        ) else {
            continue;
        };
        let otherwise = number(&keys::DEPENDENCY_POOL_QUEUE_ELSE);
        let own = share.value < ALWAYS.value
            && otherwise.is_some_and(|other| other.value >= 0.5 * queue.value);
        let thread = number(&keys::PROCESS_BUSIEST_THREAD);
        let busy = thread.is_some_and(|cpu| cpu.value > BUSY.value);
        if share.value < FULL.value || own || busy {
            continue;
        }
        most = most.max(queue.value);
        if queue.value < QUEUE.value {
            continue;
        }
        let connections = if pool.value > 1.0 {
            format!("all {} connections", say::whole(pool.value))
        } else {
            "the one connection".to_owned()
        };
        let sentence = format!(
            "{} has a request open on {connections} to {} in {} of the samples, and {:.1} client requests wait for one (mean)",
            called(evidence, process),
            server.value,
            say::percent(share.value),
            queue.value,
        );
        let mut finding = Finding::act(process, sentence)
            .severity(Grade::High)
            .confidence(Grade::Medium)
            .cite(share.reading)
            .cite(queue.reading);
        if let Some(answer) = number(&keys::DEPENDENCY_ANSWER) {
            finding = finding.cite(answer.reading);
        }
        findings.push(finding.refuted_by("its own statistics show no queue for a connection"));
    }
    if findings.is_empty() {
        let clear = Finding::clear("no client request waits for a connection to another server");
        findings.push(clear.below(most.min(QUEUE.value), QUEUE.value));
    }
    Ok(findings)
}
