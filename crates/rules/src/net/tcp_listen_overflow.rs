//! `tcp-listen-overflow`: connections were complete, and nobody had accepted those before them.
//!
//! A finished handshake waits in the accept queue of the listening socket. Its length is the smaller of what
//! the service asked for (listen) and net.core.somaxconn. While it is full, the last ACK of a handshake is
//! ignored, and the client waits for a retransmission, a second or more.

use rungwise_model::check::{Finding, Grade};
use rungwise_model::evidence::{Evidence, Quantity, Subject};
use rungwise_model::keys;

use crate::{Doc, Judgement, Measure, Rule, Threshold, say};

const OVERFLOWS: Threshold = Threshold {
    name: "connections dropped at a full accept queue, per second",
    value: 0.0,
    origin: "any: each is a client that waits a second; pcp and netdata alarm at any as well",
};

const FULL: Threshold = Threshold {
    name: "accept queue, as a share of its length",
    value: 1.0,
    origin: "the kernel's own line: sk_acceptq_is_full (a queue of 2 holds 3, measured on Linux 6.18)",
};

/// `tcp-listen-overflow`
pub(crate) static RULE: Rule = Rule {
    id: "tcp-listen-overflow",
    topic: "net",
    summary: "connections are dropped because an accept queue is full",
    needs: &[
        &keys::TCP_ACCEPT_BACKLOG,
        &keys::TCP_ACCEPT_QUEUE,
        &keys::TCP_LISTEN_OVERFLOWS,
        &keys::TCP_LISTEN_SOCKET_DROPS,
    ],
    thresholds: &[OVERFLOWS, FULL],
    knobs: &["net.somaxconn", "rpc.backlog", "rpc.threads"],
    measure: Some(Measure::more(&keys::TCP_LISTEN_OVERFLOWS)),
    doc: Doc {
        looks_for: "ListenOverflows that grow, and the listening sockets whose accept queue is full.",
        hurts: "The client believes in a connection that the server forgot, and waits a second or more.",
        todo: "For bursts: a longer queue, by the service's own listen() and by net.core.somaxconn, whichever is \
               smaller. A queue that stays full means that no thread accepts: check the accepting thread first.",
        wrong: "A stopped acceptor (garbage collection, a lock, no CPU) fills any queue: then a longer one \
                only delays. The queue is sampled four times per window and may be empty at those moments.",
        sources: "tcp_conn_request and tcp_v4_syn_recv_sock (Linux 6.18); pcp's tcplistenoverflows; netdata's \
                  tcp_listen; listen(2).",
    },
    judge,
};

fn judge(evidence: &Evidence) -> Judgement {
    let overflows = evidence.host(&keys::TCP_LISTEN_OVERFLOWS)?;
    if overflows.value <= OVERFLOWS.value {
        return Ok(vec![
            Finding::clear("no connection was dropped at a full accept queue")
                .cite(overflows.reading),
        ]);
    }
    let named = dropping(evidence);
    if !named.is_empty() {
        let found = named
            .into_iter()
            .map(|(port, drops)| found_at(evidence, overflows, port, drops));
        return Ok(found.collect());
    }
    let dropped = format!(
        "{} connections are dropped at a full accept queue",
        say::rate(overflows.value)
    );
    let findings: Vec<_> = full(evidence)
        .into_iter()
        .map(|(port, queue, length)| found(&dropped, overflows, port, queue, length))
        .collect();
    if !findings.is_empty() {
        return Ok(findings);
    }
    Ok(vec![
        Finding::act(
            &Subject::host(),
            format!("{dropped}; no queue was full when sampled, so it comes in bursts"),
        )
        .confidence(Grade::Medium)
        .cite(overflows.reading)
        .consider("rpc.backlog")
        .consider("net.somaxconn")
        .refuted_by("with a queue four times as long, as many connections are dropped"),
    ])
}

/// Listening ports at whose sockets connections were dropped.
fn dropping(evidence: &Evidence) -> Vec<(&Subject, Quantity<'_>)> {
    let ports = evidence
        .each(&keys::TCP_LISTEN_SOCKET_DROPS)
        .unwrap_or_default();
    let mut ports: Vec<_> = ports
        .into_iter()
        .filter(|(_, drops)| drops.value > OVERFLOWS.value)
        .collect();
    ports.sort_by(|(_, a), (_, b)| b.value.total_cmp(&a.value));
    ports
}

fn found_at(
    evidence: &Evidence,
    overflows: Quantity<'_>,
    port: &Subject,
    drops: Quantity<'_>,
) -> Finding {
    let of = |key| evidence.quantity(key, port).ok();
    let length = of(&keys::TCP_ACCEPT_BACKLOG);
    let queue = of(&keys::TCP_ACCEPT_QUEUE);
    let backlog = length.map_or_else(String::new, |length| {
        format!(" (backlog {:.0})", length.value)
    });
    let stuck = match (queue, length) {
        (Some(queue), Some(length)) => {
            queue.reading.series.len() > 1
                && queue.always(|waiting| waiting > 0.0 && waiting >= FULL.value * length.value)
        }
        _ => false,
    };
    let sentence = format!(
        "{}: the accept queue{backlog} overflows, {} connections are dropped",
        port.name(),
        say::rate(drops.value)
    );
    let mut finding = if stuck {
        let sentence = format!(
            "{sentence}; it is full in every sample: the service accepts too slowly, and a longer queue only adds delay"
        );
        Finding::act(port, sentence).consider("rpc.threads")
    } else {
        Finding::act(port, sentence)
            .consider("rpc.backlog")
            .consider("net.somaxconn")
    };
    finding = finding
        .severity(Grade::High)
        .confidence(Grade::High)
        .cite(drops.reading)
        .cite(overflows.reading);
    for quantity in [queue, length].into_iter().flatten() {
        finding = finding.cite(quantity.reading);
    }
    finding.refuted_by("with a queue four times as long, as many connections are dropped")
}

/// Listening ports whose queue is full.
fn full(evidence: &Evidence) -> Vec<(&Subject, Quantity<'_>, Quantity<'_>)> {
    let ports = evidence.each(&keys::TCP_ACCEPT_QUEUE).unwrap_or_default();
    ports
        .into_iter()
        .filter_map(|(port, queue)| {
            let length = evidence.quantity(&keys::TCP_ACCEPT_BACKLOG, port).ok()?;
            (queue.value > 0.0 && queue.value >= FULL.value * length.value)
                .then_some((port, queue, length))
        })
        .collect()
}

fn found(
    dropped: &str,
    overflows: Quantity<'_>,
    port: &Subject,
    queue: Quantity<'_>,
    length: Quantity<'_>,
) -> Finding {
    let stuck = !queue.reading.series.is_empty()
        && queue.always(|waiting| waiting >= FULL.value * length.value);
    let what = format!(
        "{dropped}: {} has {} waiting in a queue of {:.0}",
        port.name(),
        say::count(queue.value, "connection"),
        length.value
    );
    let finding = if stuck {
        Finding::act(
            port,
            format!(
                "{what} at every look: the service accepts no connections, and a longer queue would fill too"
            ),
        )
        .consider("rpc.threads")
    } else {
        Finding::act(port, what)
    };
    finding
        .severity(Grade::High)
        .confidence(Grade::High)
        .cite(overflows.reading)
        .cite(queue.reading)
        .cite(length.reading)
        .consider("rpc.backlog")
        .consider("net.somaxconn")
        .refuted_by("with a queue four times as long, as many connections are dropped")
}
