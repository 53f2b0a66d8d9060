//! `tcp-memory`: all TCP sockets together come near the memory that the kernel grants them.
//!
//! `mem` of /proc/net/sockstat against the pressure mark of `tcp_mem` (`net/core/sock.c`). Above it windows
//! shrink; at the limit packets are dropped.

use std::fmt::Write as _;

use rungwise_model::check::{Finding, Grade};
use rungwise_model::evidence::{Evidence, Subject};
use rungwise_model::keys;

use crate::{Doc, Judgement, Measure, Rule, Threshold, say};

const NEAR: Threshold = Threshold {
    name: "memory of all TCP sockets as a share of the pressure mark",
    value: 0.80,
    origin: "netdata alert tcp_memory, warning",
};

const PRESSED: Threshold = Threshold {
    name: "times under pressure per second",
    value: 0.0,
    origin: "by definition: TCPMemoryPressures counts entries into it, none is healthy",
};

const UNREAD: Threshold = Threshold {
    name: "unread bytes, as a share of the memory of all TCP sockets",
    value: 0.5,
    origin: "own guess: most of it; of the connections only those with the fullest queues are known, so it is a lower bound",
};

pub(crate) static RULE: Rule = Rule {
    id: "tcp-memory",
    topic: "tcp",
    summary: "TCP sockets use up the memory granted to them",
    needs: &[
        &keys::TCP_BYTES_RECEIVED,
        &keys::TCP_ESTABLISHED,
        &keys::TCP_MEM,
        &keys::TCP_MEM_PRESSURE,
        &keys::TCP_MEM_PRESSURES,
        &keys::TCP_RECVQ,
    ],
    thresholds: &[NEAR, PRESSED, UNREAD],
    knobs: &["tcp.mem", "tcp.rmem", "tcp.wmem"],
    measure: Some(Measure::more(&keys::TCP_MEM)),
    doc: Doc {
        looks_for: "The memory of all TCP sockets above 80 % of the pressure mark of tcp_mem, or entries into memory pressure.",
        hurts: "Under pressure the kernel shrinks windows and buffers of all connections, and at the limit it drops what \
            arrives.",
        todo: "If the connections are many by design, raise tcp.mem, or give each less (tcp.rmem, tcp.wmem). If a few hold the \
            memory, see why they are unread (tcp-recvq-pile).",
        wrong: "Idle sockets with data that no process will ever read (a leak) fill the memory too, and a higher limit then only \
            delays the end: where such sockets hold most of the memory, no higher limit is recommended.",
        sources: "netdata alert tcp_memory (80 %, 90 %); Documentation/networking/ip-sysctl.rst (tcp_mem); net/core/sock.c.",
    },
    judge,
};

fn judge(evidence: &Evidence) -> Judgement {
    let used = evidence.host(&keys::TCP_MEM)?;
    let mark = evidence.host(&keys::TCP_MEM_PRESSURE)?;
    let pressed = evidence
        .host(&keys::TCP_MEM_PRESSURES)
        .ok()
        .filter(|times| times.value > PRESSED.value);
    let share = if mark.value > 0.0 {
        used.value / mark.value
    } else {
        0.0
    };
    let mut sentence = format!(
        "TCP sockets hold {}, {} of the pressure mark",
        say::bytes(used.value),
        say::percent(share)
    );
    if share <= NEAR.value && pressed.is_none() {
        let clear = Finding::clear(sentence)
            .below(share, NEAR.value)
            .cite(used.reading)
            .cite(mark.reading);
        return Ok(vec![clear]);
    }
    let host = Subject::host();
    let (forgotten, unread) = unread(evidence);
    if unread > UNREAD.value * used.value {
        let sentence = format!(
            "{sentence}; {} of it is unread data in {} without progress",
            say::bytes(unread),
            say::count(forgotten as f64, "connection")
        );
        let watch = Finding::watch(&host, sentence)
            .severity(if pressed.is_some() {
                Grade::High
            } else {
                Grade::Medium
            })
            .cite(used.reading)
            .cite(mark.reading)
            .refuted_by(
                "their owners read them in a longer window (`ss -tmp` shows whose they are)",
            );
        return Ok(vec![watch]);
    }
    let connections = evidence.host(&keys::TCP_ESTABLISHED).ok();
    if let Some(connections) = connections.filter(|connections| connections.value >= 1.0) {
        let _ = write!(
            sentence,
            " ({} per connection)",
            say::bytes((used.value / connections.value).round())
        );
    }
    let mut finding = if let Some(times) = pressed {
        let _ = write!(
            sentence,
            ", and came under pressure {}",
            say::rate(times.value)
        );
        Finding::act(&host, sentence)
            .severity(Grade::High)
            .confidence(Grade::High)
            .cite(times.reading)
    } else {
        Finding::watch(&host, sentence)
    };
    finding = finding.cite(used.reading).cite(mark.reading);
    Ok(vec![
        finding
            .consider("tcp.mem")
            .consider("tcp.rmem")
            .consider("tcp.wmem")
            .refuted_by("the memory belongs to a few sockets with long queues (`ss -tm`): they are not read"),
    ])
}

/// Connections with something to read on which nothing arrived in the window, and what waits in them.
fn unread(evidence: &Evidence) -> (usize, f64) {
    let queues = evidence.each(&keys::TCP_RECVQ).unwrap_or_default();
    let still = |connection: &Subject| {
        let received = evidence.quantity(&keys::TCP_BYTES_RECEIVED, connection);
        received.is_ok_and(|received| received.value <= 0.0)
    };
    let forgotten = queues
        .into_iter()
        .filter(|(connection, queue)| queue.value > 0.0 && still(connection));
    forgotten.fold((0, 0.0), |(count, bytes), (_, queue)| {
        (count + 1, bytes + queue.value)
    })
}
