//! `udp-shared-socket`: several threads read one UDP socket, so every datagram passes one queue.
//!
//! Where the contention for that queue shows in samples or in counted contentions, `udp-socket-lock` says so. On few CPUs
//! it never does: on two, 0.4 % of the datagrams met a taken lock. This rule rests on the arrangement alone, so it only
//! asks to try. The queue: `sk_receive_queue` and `reader_queue` of net/ipv4/udp.c (Linux 6.18).

use rungwise_model::check::{Finding, Grade};
use rungwise_model::evidence::{Evidence, Missing, Quantity, Subject};
use rungwise_model::keys;

use super::ports::{self, Port};
use crate::{Doc, Judgement, Measure, Rule, Threshold, process, say};

pub(super) const TRAFFIC: Threshold = Threshold {
    name: "datagrams received per second",
    value: 10_000.0,
    origin: "own guess: below it a thread has time to spare between two datagrams",
};

pub(super) const READER: Threshold = Threshold {
    name: "CPU of a thread that counts as a reader",
    value: 0.05,
    origin: "own guess: a thread that does less is not the bottleneck",
};

/// `udp-shared-socket`
pub(crate) static RULE: Rule = Rule {
    id: "udp-shared-socket",
    topic: "net",
    summary: "several threads read one UDP socket",
    needs: &[
        &keys::LOCK_UDP_CONTENTIONS,
        &keys::SCHED_THREAD_CPU,
        &keys::UDP_PROCESS,
        &keys::UDP_READERS,
        &keys::UDP_RECEIVED,
        &keys::UDP_SOCKET_DROPS,
        &keys::UDP_SOCKET_QUEUE,
        &keys::UDP_SOCKETS,
    ],
    thresholds: &[TRAFFIC, READER],
    knobs: &["sock.reuseport"],
    measure: Some(Measure::less(&keys::UDP_SOCKETS)),
    doc: Doc {
        looks_for: "At least 10,000 datagrams/s, one socket on the busiest UDP port, and two or more threads of its \
                    process that use at least 5 % of a CPU.",
        hurts: "All readers and all CPUs that receive meet at one queue and its lock, and no datagram stays on the CPU \
                that received it. Steering, by RPS or by BPF, cannot help before each thread has a socket of its own.",
        todo: "One socket per thread with SO_REUSEPORT (a change of the service), and measure: it is the condition of the \
               later steps and may not help on its own.",
        wrong: "It says how the service is built, not that it hurts; on two CPUs the change alone brought nothing that could \
                be measured. Busy threads of the process may do other work than to read. Flows are dealt by hash: few \
                flows may leave threads without work.",
        sources: "net/ipv4/udp.c (Linux 6.18); the reference ladder (20 CPUs, 82599ES, Linux 4.6.3): 270 k to 2,540 k \
                  transactions/s together with RPS. Guest with 2 CPUs (AMD EPYC, Linux 6.18.44, 2026-11-21, busy with other \
                  work): 274 contentions/s at 78 k datagrams/s with one socket, 79 with two, 31 with steering by BPF, 3 with \
                  pinned threads as well.",
    },
    judge,
};

/// A port and the threads that may read it.
pub(super) struct Read<'e> {
    pub(super) port: Port<'e>,
    pub(super) readers: Vec<(&'e Subject, Quantity<'e>)>,
    pub(super) received: Quantity<'e>,
}

/// The busiest port with its readers, or why that is nothing to judge.
pub(super) fn read(evidence: &Evidence) -> Result<Result<Read<'_>, Finding>, Missing> {
    let received = evidence.host(&keys::UDP_RECEIVED)?;
    if received.value < TRAFFIC.value {
        let sentence = format!("only {} datagrams arrive", say::rate(received.value));
        return Ok(Err(Finding::clear(sentence)
            .below(received.value, TRAFFIC.value)
            .cite(received.reading)));
    }
    let port = ports::busiest(evidence)?;
    // Whose threads they are must be known, and that threads were looked at.
    let owner = evidence.words(&keys::UDP_PROCESS, port.subject)?;
    evidence.each(&keys::SCHED_THREAD_CPU)?;
    let mut readers = process::owner_pid(owner.value)
        .map_or_else(Vec::new, |pid| process::threads(evidence, pid));
    readers.retain(|(_, cpu)| cpu.value >= READER.value);
    Ok(Ok(Read {
        port,
        readers,
        received,
    }))
}

fn judge(evidence: &Evidence) -> Judgement {
    let Read {
        port,
        readers,
        received,
    } = match read(evidence)? {
        Ok(read) => read,
        Err(clear) => return Ok(vec![clear]),
    };
    let name = port.named(evidence);
    let sockets = say::count(port.sockets.value, "socket");
    let threads = say::count(readers.len() as f64, "busy thread");
    if port.sockets.value > 1.5 || readers.len() < 2 {
        let sentence = format!("{name} has {sockets}, and its process has {threads}");
        return Ok(vec![Finding::clear(sentence).cite(port.sockets.reading)]);
    }
    let sentence = format!(
        "{} datagrams pass the one socket of {name}, whose process has {threads}",
        say::rate(received.value)
    );
    let mut finding = Finding::watch(port.subject, sentence)
        .severity(Grade::Medium)
        .confidence(Grade::Medium)
        .cite(port.sockets.reading)
        .cite(received.reading);
    for (_, cpu) in readers.iter().take(2) {
        finding = finding.cite(cpu.reading);
    }
    if let Ok(contentions) = evidence.host(&keys::LOCK_UDP_CONTENTIONS) {
        finding = finding.cite(contentions.reading);
    }
    Ok(vec![finding.turn("sock.reuseport", "on").refuted_by(
        "with a socket per thread, and the steps that need it, the rate is the same",
    )])
}
