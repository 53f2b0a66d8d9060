//! `upstream-slow`: a server that the service depends on responds slowly.
//!
//! A proxy or an application that waits for its database looks idle and healthy, while its clients wait. On its connections to the
//! server the last data went out and nothing came back; on its client connections it is the other way round.
use rungwise_model::check::{Finding, Grade};
use rungwise_model::evidence::Evidence;
use rungwise_model::keys;

use super::{SERVICE, called, is_service};
use crate::rule::needs;
use crate::{Doc, Judgement, Measure, Rule, Threshold, say};

const LATE: Threshold = Threshold {
    name: "median time for which requests to the server have been open",
    value: 0.02,
    origin: "forty times a request to a local service; sampled at random instants, a request that takes 40 ms has been open for 20 ms",
};

pub(crate) const LONG: Threshold = Threshold {
    name: "time from which on the request may be a long poll",
    value: 5.0,
    origin: "own guess: long polling holds requests for 5 s and more",
};

const BUSY: Threshold = Threshold {
    name: "CPUs that the service uses itself, above which it may be the slow one",
    value: 0.80,
    origin: "rule thread-saturated",
};

const ANSWER: Threshold = Threshold {
    name: "mean response time from which on it is reported",
    value: 0.001,
    origin: "measured by `cargo xtask faults --steps 5 --seed 8001`: an upstream that took 0.8 ms for each request took p99 of haproxy from \
        1.0 to 6.6 ms, and one that took 6 ms to 11.7 ms",
};

const FEWEST: Threshold = Threshold {
    name: "samples below which the confidence is only medium",
    value: 4.0,
    origin: "own guess: on a host with more than 1000 TCP sockets there are two",
};

pub(crate) static RULE: Rule = Rule {
    id: "upstream-slow",
    topic: "process",
    summary: "a server that the service depends on responds slowly",
    needs: needs!(
        [
            &keys::DEPENDENCY_ANSWER,
            &keys::DEPENDENCY_ANSWER_OF,
            &keys::DEPENDENCY_CLIENT_WAIT,
            &keys::DEPENDENCY_ONE_WAY,
            &keys::DEPENDENCY_SAMPLES,
            &keys::DEPENDENCY_UPSTREAM,
            &keys::DEPENDENCY_WAIT,
            &keys::DEPENDENCY_WAITING,
            &keys::SCHED_PROCESS_CPU
        ],
        SERVICE
    ),
    thresholds: &[LATE, LONG, BUSY, ANSWER, FEWEST],
    knobs: &[],
    measure: Some(Measure::more(&keys::DEPENDENCY_WAIT)),
    doc: Doc {
        looks_for: "A process with client requests unanswered for more than 20 ms, and with requests to another server unanswered for as long, in most samples, while the process itself uses little CPU. Mean response times of 1 ms or more are watched.",
        hurts: "The response time of the dependency adds to that of the service, and each open request holds a worker, a connection and memory.",
        todo: "Run `rungwise check` on the named server. Until it is fixed: timeouts, fewer retries, a cache, a pool large enough for rate times response time.",
        wrong: "Long polling, server-sent events and idle WebSockets hold requests on purpose: from 5 s on it is only watched. A client that pipelines may leave a request open for long.",
        sources: "tcp_get_info of net/ipv4/tcp.c (tcpi_last_data_sent, tcpi_last_data_recv), Linux 6.18; Little's law.",
    },
    judge,
};

fn judge(evidence: &Evidence) -> Judgement {
    let samples = evidence.host(&keys::DEPENDENCY_SAMPLES)?;
    let waiting = evidence.each(&keys::DEPENDENCY_WAITING).unwrap_or_default();
    let mut findings = Vec::new();
    let mut longest = 0.0_f64;
    for (process, requests) in waiting {
        let (Ok(wait), Ok(server)) = (
            evidence.quantity(&keys::DEPENDENCY_WAIT, process),
            evidence.words(&keys::DEPENDENCY_UPSTREAM, process),
        ) else {
            continue;
        };
        let used = evidence.quantity(&keys::SCHED_PROCESS_CPU, process).ok();
        let busy = used.is_some_and(|cpu| cpu.value > BUSY.value);
        let clients = evidence.quantity(&keys::DEPENDENCY_CLIENTS, process).ok();
        let client_wait = evidence
            .quantity(&keys::DEPENDENCY_CLIENT_WAIT, process)
            .ok();
        // Without either it is a client itself, such as a load generator.
        if clients.is_none() && !is_service(evidence, process.name()) {
            continue;
        }
        longest = longest.max(wait.value);
        // The clients' requests are as old as those to the server, or older: it is the server that they wait for.
        let same = client_wait.is_none_or(|client| client.value >= 0.5 * wait.value);
        if busy || !same || wait.value < LATE.value || requests.value < 1.0 {
            continue;
        }
        if evidence
            .quantity(&keys::DEPENDENCY_ONE_WAY, process)
            .is_ok()
        {
            let sentence = format!(
                "{} sends data to {} on {:.0} connections, and nothing ever comes back: logs or metrics, or a server that hangs",
                called(evidence, process),
                server.value,
                requests.value
            );
            findings.push(
                Finding::watch(process, sentence)
                    .severity(Grade::Low)
                    .cite(requests.reading)
                    .refuted_by("the protocol of these connections has no answers"),
            );
            continue;
        }
        let sentence = format!(
            "{} waits for {}: {:.0} requests unanswered for {:.0} ms (median)",
            called(evidence, process),
            server.value,
            requests.value,
            wait.value * 1000.0
        );
        let finding = if wait.value > LONG.value {
            Finding::watch(process, sentence)
        } else {
            // Of a host with many sockets only two samples are complete.
            let confidence = if samples.value < FEWEST.value {
                Grade::Medium
            } else {
                Grade::High
            };
            Finding::act(process, sentence)
                .severity(Grade::High)
                .confidence(confidence)
        };
        findings.push(
            finding
                .cite(requests.reading)
                .cite(wait.reading)
                .refuted_by("the server's own log shows short response times"),
        );
    }
    if findings.is_empty() {
        findings.extend(answers(evidence));
    }
    if findings.is_empty() {
        let sentence = format!(
            "no service waits for another server (open requests in {} samples)",
            say::whole(samples.value)
        );
        findings.push(
            Finding::clear(sentence)
                .below(longest.min(LATE.value), LATE.value)
                .cite(samples.reading),
        );
    }
    Ok(findings)
}

/// Responses that take a while, but not so long that they are open in a sample. Only someone who knows the server can say whether that is slow.
fn answers(evidence: &Evidence) -> Vec<Finding> {
    let each = evidence.each(&keys::DEPENDENCY_ANSWER).unwrap_or_default();
    let findings = each.into_iter().filter_map(|(process, answer)| {
        let server = evidence.words(&keys::DEPENDENCY_ANSWER_OF, process).ok()?;
        if answer.value < ANSWER.value || !is_service(evidence, process.name()) {
            return None;
        }
        let sentence = format!(
            "{}: responses from {} take {:.0} ms (mean), slow if that server can respond faster",
            called(evidence, process),
            server.value,
            answer.value * 1000.0
        );
        Some(
            Finding::watch(process, sentence)
                .severity(Grade::Low)
                .cite(answer.reading)
                .refuted_by("the server is as slow for others when nothing is wrong"),
        )
    });
    findings.collect()
}
