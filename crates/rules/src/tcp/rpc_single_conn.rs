//! `rpc-single-conn`: one connection carries what many could, and it is at its limit.
//!
//! A connection has one window, one congestion window and one I/O thread at each end. The host shows the
//! connection, its limits and the thread's CPU; that it carries requests of many callers it cannot see, so the
//! rule asks for a limit that is reached.

use rungwise_model::check::{Finding, Grade};
use rungwise_model::evidence::Unit;
use rungwise_model::evidence::{Evidence, Missing, Quantity, Subject};
use rungwise_model::evidence_text::number_of;
use rungwise_model::keys;

use super::connections;
use crate::{Doc, Judgement, Measure, Rule, Threshold, process, say};

const RATE: Threshold = Threshold {
    name: "bytes per second of a connection that is used to the full",
    value: 5_000_000.0,
    origin: "own guess, below the figure of the reference RPC case, which reckons 7 MB/s per connection, depending on the machine",
};

const LIMITED: Threshold = Threshold {
    name: "share of its busy time in which window or buffer was the limit",
    value: 0.10,
    origin: "rules tcp-rwnd-limited and tcp-sndbuf-limited",
};

pub(super) const THREAD: Threshold = Threshold {
    name: "CPU of the busiest thread of its process",
    value: 0.80,
    origin: "own guess: the connection's I/O thread is full",
};

const CONSUMERS: Threshold = Threshold {
    name: "connections to the same port per CPU from which on single ones are the design",
    value: 4.0,
    origin: "own guess, after Dubbo's rule of single connections for many consumers",
};

pub(crate) static RULE: Rule = Rule {
    id: "rpc-single-conn",
    topic: "tcp",
    summary: "a single connection between two hosts is at its limit",
    needs: &[
        &keys::CPU_ONLINE,
        &keys::SCHED_THREAD_CPU,
        &keys::TCP_BYTES_RECEIVED,
        &keys::TCP_BYTES_SENT,
        &keys::TCP_ESTABLISHED,
        &keys::TCP_PARALLEL,
        &keys::TCP_PROCESS,
        &keys::TCP_RWND_LIMITED,
        &keys::TCP_SNDBUF_LIMITED,
    ],
    thresholds: &[RATE, LIMITED, THREAD, CONSUMERS],
    knobs: &["rpc.connections", "tcp.wmem", "tcp.rmem"],
    measure: Some(Measure::less(&keys::TCP_PARALLEL)),
    doc: Doc {
        looks_for: "The only connection between two addresses and a port, with more than 5 MB/s, held up by window or buffer in \
            more than 10 % of its busy time or served by a thread above 80 % of a CPU, where few clients share the port.",
        hurts: "One connection has one I/O thread at each end and one window. Requests queue behind each other however many \
            CPUs there are.",
        todo: "More connections between the same two (rpc.connections), from four up to the number of CPUs; then buffers of up \
            to 4 MB.",
        wrong: "Where many small clients share a server, one connection each is the design. A file transfer has one connection \
            and uses it to the full rightly; the host cannot tell it from requests, so this is watched and not acted on.",
        sources: "The reference RPC case (7 MB/s per connection; about four connections gave the least response time); Dubbo \
            pull request 2457: 26,362 to 31,066 requests/s with three connections at 200 callers, 25,702 to 27,271 at 500.",
    },
    judge,
};

/// What a single connection is held up by.
struct Limit<'e> {
    connection: &'e Subject,
    rate: Quantity<'e>,
    words: String,
    reading: Quantity<'e>,
    knob: Option<&'static str>,
}

fn judge(evidence: &Evidence) -> Judgement {
    let parallel = match evidence.each(&keys::TCP_PARALLEL) {
        Ok(parallel) => parallel,
        Err(missing) => {
            let connections = evidence.host(&keys::TCP_ESTABLISHED);
            if connections.is_ok_and(|connections| connections.value == 0.0) {
                return Ok(vec![Finding::clear("no TCP connection is open")]);
            }
            return Err(missing);
        }
    };
    let mut limits = Vec::new();
    let mut fastest = 0.0_f64;
    for (connection, number) in &parallel {
        if number.value > 1.0 {
            continue;
        }
        let rate = rate(evidence, connection)?;
        fastest = fastest.max(rate.value);
        if rate.value > RATE.value && !many_clients(evidence, &parallel, connection) {
            limits.extend(limit(evidence, connection, rate));
        }
    }
    let number = limits.len();
    let first = limits
        .into_iter()
        .max_by(|a, b| a.rate.value.total_cmp(&b.rate.value));
    let Some(first) = first else {
        let sentence = format!(
            "no single connection is at its limit; the fastest carries {}",
            number_of(Unit::BytesPerSecond, fastest)
        );
        return Ok(vec![Finding::clear(sentence).below(fastest, RATE.value)]);
    };
    let sentence = format!(
        "{} alone carries {} between its two ends, and {}{}",
        first.connection.name(),
        number_of(Unit::BytesPerSecond, first.rate.value),
        first.words,
        connections::and_more(number - 1)
    );
    let mut finding = Finding::watch(first.connection, sentence)
        .severity(Grade::Medium)
        .cite(first.rate.reading)
        .cite(first.reading.reading)
        .consider("rpc.connections");
    if let Some(knob) = first.knob {
        finding = finding.consider(knob);
    }
    Ok(vec![
        finding
            .estimate(
                0.06,
                0.178,
                "Dubbo pull request 2457: one to three connections, at 500 and at 200 callers",
            )
            .refuted_by("it is a file transfer, or two connections carry no more than one"),
    ])
}

/// The larger direction.
fn rate<'e>(evidence: &'e Evidence, connection: &Subject) -> Result<Quantity<'e>, Missing> {
    let sent = evidence.quantity(&keys::TCP_BYTES_SENT, connection)?;
    let received = evidence.quantity(&keys::TCP_BYTES_RECEIVED, connection)?;
    Ok(if received.value > sent.value {
        received
    } else {
        sent
    })
}

/// The port has so many clients that one connection each is the design.
fn many_clients(
    evidence: &Evidence,
    all: &[(&Subject, Quantity<'_>)],
    connection: &Subject,
) -> bool {
    let port = connections::server_port(connection);
    let known = all
        .iter()
        .filter(|(other, _)| connections::server_port(other) == port)
        .count() as f64;
    evidence
        .host(&keys::CPU_ONLINE)
        .is_ok_and(|cpus| known >= CONSUMERS.value * cpus.value)
}

fn limit<'e>(
    evidence: &'e Evidence,
    connection: &'e Subject,
    rate: Quantity<'e>,
) -> Option<Limit<'e>> {
    let of = |key| {
        evidence
            .quantity(key, connection)
            .ok()
            .filter(|share| share.value > LIMITED.value)
    };
    let held = |share: Quantity<'e>, by: &str, knob| Limit {
        connection,
        rate,
        words: format!(
            "{by} holds it up in {} of its time",
            say::percent(share.value)
        ),
        reading: share,
        knob: Some(knob),
    };
    let window = || {
        Some(held(
            of(&keys::TCP_RWND_LIMITED)?,
            "its peer's window",
            "tcp.rmem",
        ))
    };
    let buffer = || {
        Some(held(
            of(&keys::TCP_SNDBUF_LIMITED)?,
            "its send buffer",
            "tcp.wmem",
        ))
    };
    let thread = || {
        let owner = evidence.words(&keys::TCP_PROCESS, connection).ok()?;
        let pid = process::owner_pid(owner.value)?;
        let (thread, busy) = process::threads(evidence, pid).into_iter().next()?;
        (busy.value > THREAD.value).then(|| Limit {
            connection,
            rate,
            words: format!(
                "thread {} of its process uses {} of a CPU",
                thread.name(),
                say::percent(busy.value)
            ),
            reading: busy,
            knob: None,
        })
    };
    window().or_else(buffer).or_else(thread)
}
