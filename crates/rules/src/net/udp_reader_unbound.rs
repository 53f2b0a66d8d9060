//! `udp-reader-unbound`: a socket per thread, and neither packet nor thread keeps to a CPU.
//!
//! The hash of a flow picks the socket, the queue picks the CPU that receives, the scheduler picks the CPU of the
//! thread: three choices that know nothing of each other. With the socket picked by CPU and the thread bound to it,
//! a datagram stays on one. Which threads may move is read (`Cpus_allowed_list`); whether a program picks the socket
//! the kernel does not tell (`sock_diag` has no attribute for it, Linux 6.18).

use std::collections::BTreeSet;

use rungwise_model::check::{Finding, Grade};
use rungwise_model::evidence::{Evidence, Quantity, Subject, Words};
use rungwise_model::keys;

use super::udp_shared_socket::{READER, Read, TRAFFIC, read};
use crate::{Doc, Judgement, Measure, Rule, Threshold, process, say};

const FREE: Threshold = Threshold {
    name: "CPUs on which a reader may run",
    value: 1.0,
    origin: "a thread with one CPU cannot move",
};

/// `udp-reader-unbound`
pub(crate) static RULE: Rule = Rule {
    id: "udp-reader-unbound",
    topic: "net",
    summary: "UDP has a socket per thread, and the threads may run anywhere",
    needs: &[
        &keys::LOCK_UDP_CONTENTIONS,
        &keys::SCHED_ALLOWED,
        &keys::SCHED_THREAD_CPU,
        &keys::UDP_PROCESS,
        &keys::UDP_READERS,
        &keys::UDP_RECEIVED,
        &keys::UDP_SOCKET_DROPS,
        &keys::UDP_SOCKET_QUEUE,
        &keys::UDP_SOCKETS,
    ],
    thresholds: &[TRAFFIC, READER, FREE],
    knobs: &["sock.reuseport_bpf", "cpu.pin_threads"],
    measure: Some(Measure::more(&keys::LOCK_UDP_CONTENTIONS)),
    doc: Doc {
        looks_for: "At least 10,000 datagrams/s, two or more sockets on the busiest UDP port, and two or more busy threads of \
                    its process that may run on more than one CPU.",
        hurts: "A datagram is received on one CPU, queued under a lock that others take, and read on another: two cache \
                misses and a wake-up across CPUs that need not be.",
        todo: "Pick the socket by the CPU that received (SO_ATTACH_REUSEPORT_CBPF) and pin thread i to CPU i. Both together: \
               a steered packet whose thread is elsewhere has gained nothing.",
        wrong: "It says how the service is built, not that it hurts. Packets may be steered already, which the kernel does not \
                tell. Where one CPU receives everything, picking by CPU leaves the other threads without work.",
        sources: "socket(7); the reference ladder (20 CPUs, 82599ES, Linux 4.6.3): 2,540 k to 4,250 k transactions/s with \
                  steering, 5,050 k with pinned threads. Guest with 2 CPUs (AMD EPYC, Linux 6.18.44, 2026-11-21): contentions \
                  at the sockets 79/s without, 31/s with steering, 3/s with both.",
    },
    judge,
};

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
    if port.sockets.value < 1.5 || readers.len() < 2 {
        let sentence = format!(
            "{name} has {}, and its process has {}",
            say::count(port.sockets.value, "socket"),
            say::count(readers.len() as f64, "busy thread")
        );
        return Ok(vec![Finding::clear(sentence).cite(port.sockets.reading)]);
    }
    let allowed: Vec<(&Subject, Words<'_>, BTreeSet<usize>)> = readers
        .iter()
        .map(|(thread, _)| {
            let words = evidence.words(&keys::SCHED_ALLOWED, thread)?;
            Ok((*thread, words, say::parse_cpus(words.value)))
        })
        .collect::<Result<_, _>>()?;
    let free: Vec<_> = allowed
        .iter()
        .filter(|(_, _, cpus)| cpus.len() as f64 > FREE.value)
        .collect();
    let Some((thread, words, cpus)) = free.first() else {
        let sentence = format!(
            "{} of {name} with a CPU each",
            say::count(readers.len() as f64, "busy thread")
        );
        return Ok(vec![Finding::clear(sentence).cite(allowed[0].1.reading)]);
    };
    let sentence = format!(
        "{} datagrams are dealt over {} of {name}, and {} of {} may run anywhere ({} on {})",
        say::rate(received.value),
        say::count(port.sockets.value, "socket"),
        free.len(),
        say::count(readers.len() as f64, "busy thread"),
        process::named(thread, evidence),
        say::the_cpus(cpus)
    );
    let mut finding = Finding::watch(port.subject, sentence)
        .severity(Grade::Medium)
        .confidence(Grade::Medium)
        .cite(port.sockets.reading)
        .cite(received.reading)
        .cite(words.reading);
    let contentions: Result<Quantity<'_>, _> = evidence.host(&keys::LOCK_UDP_CONTENTIONS);
    if let Ok(contentions) = contentions {
        finding = finding.cite(contentions.reading);
    }
    Ok(vec![
        finding
            .turn("sock.reuseport_bpf", "cbpf")
            .turn("cpu.pin_threads", "on")
            .refuted_by("with both, the rate and the cost of a datagram are the same"),
    ])
}
