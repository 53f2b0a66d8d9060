//! `tcp-memory`: all TCP sockets together come near the memory that the kernel grants them.
//!
//! `mem` of /proc/net/sockstat against the pressure mark of `tcp_mem` (`net/core/sock.c`). Above it windows
//! shrink; at the limit packets are dropped.

use std::fmt::Write as _;

use rungwise_model::check::{Finding, Grade};
use rungwise_model::evidence::{Evidence, Subject};
use rungwise_model::keys;

use crate::{Doc, Judgement, Rule, Threshold, say};

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

pub(crate) static RULE: Rule = Rule {
    id: "tcp-memory",
    topic: "tcp",
    summary: "TCP sockets use up the memory granted to them",
    needs: &[
        &keys::TCP_ESTABLISHED,
        &keys::TCP_MEM,
        &keys::TCP_MEM_PRESSURE,
        &keys::TCP_MEM_PRESSURES,
    ],
    thresholds: &[NEAR, PRESSED],
    knobs: &["tcp.mem", "tcp.rmem", "tcp.wmem"],
    doc: Doc {
        looks_for: "The memory of all TCP sockets above 80 % of the pressure mark of tcp_mem, or entries into memory pressure.",
        hurts: "Under pressure the kernel shrinks windows and buffers of all connections, and at the limit it drops what \
            arrives.",
        todo: "If the connections are many by design, raise tcp.mem, or give each less (tcp.rmem, tcp.wmem). If a few hold the \
            memory, see why nobody reads them (tcp-recvq-pile).",
        wrong: "Idle sockets with data that nobody will ever read (a leak) fill the memory too; a higher limit then only \
            delays the end.",
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
            .refuted_by("the memory belongs to a few sockets with long queues (`ss -tm`): nobody reads them"),
    ])
}
