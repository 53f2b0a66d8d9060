//! `udp-reuseport-hash`: a socket per worker, and the flow hash still brings CPUs together at one of them.
//!
//! `SO_REUSEPORT` picks the socket by a hash over addresses and ports, whatever CPU the packet is on. Picking
//! it by CPU instead (a BPF program of two instructions) leaves each socket to one CPU.

use rungwise_model::check::{Finding, Grade};
use rungwise_model::evidence::Evidence;
use rungwise_model::keys;

use super::ports;
use super::udp_socket_lock::{SOFTIRQ_SAMPLES, Spinning};
use crate::net::udp_socket_lock;
use crate::rule::needs;
use crate::{Doc, Judgement, Measure, Rule, Threshold, sampled, say};

const SHARE: Threshold = Threshold {
    name: "softirq samples that spin under the UDP enqueue",
    value: 0.05,
    origin: "own guess, half of the line for a single socket",
};

/// `udp-reuseport-hash`
pub(crate) static RULE: Rule = Rule {
    id: "udp-reuseport-hash",
    topic: "net",
    summary: "sockets of one port are picked by hash, so CPUs still meet at them",
    needs: needs!([&keys::UDP_PROCESS], udp_socket_lock::NEEDS),
    thresholds: &[SHARE, sampled::SAMPLES, SOFTIRQ_SAMPLES],
    knobs: &["sock.reuseport_bpf", "sock.incoming_cpu", "cpu.pin_threads"],
    measure: Some(Measure::more(&keys::STACK_UDP_LOCK)),
    doc: Doc {
        looks_for: "More than 5 % of softirq samples spinning below the UDP enqueue, where the busiest port has at \
                    least as many sockets as CPUs take packets.",
        hurts: "CPUs wait for each other at sockets that could be theirs alone.",
        todo: "Pick the socket by CPU (SO_ATTACH_REUSEPORT_CBPF), or SO_INCOMING_CPU where programs are not allowed, \
               and pin the workers.",
        wrong: "With fewer sockets than CPUs they have to share: more workers come first, and that is only worth \
                watching. Few flows meet at few sockets by chance.",
        sources: "The reference case (20 cores): 2,540 k to 4,250 k transactions/s; socket(7).",
    },
    judge,
};

fn judge(evidence: &Evidence) -> Judgement {
    let spinning = Spinning::of(evidence)?;
    if !spinning.is_above(SHARE.value) {
        return Ok(vec![spinning.clear(spinning.described(), SHARE.value)]);
    }
    let cpus = evidence.host(&keys::SOFTIRQ_NET_RX_CPUS)?;
    let port = ports::busiest(evidence)?;
    let name = port.named(evidence);
    let sockets = say::count(port.sockets.value, "socket");
    if port.sockets.value < 1.5 || cpus.value < 1.5 {
        let sentence = format!(
            "{}, but {name} has {sockets} and {} packets",
            spinning.described(),
            if cpus.value < 1.5 {
                "one CPU takes"
            } else {
                "several CPUs take"
            }
        );
        return Ok(vec![
            spinning
                .cited_in(Finding::clear(sentence))
                .cite(port.sockets.reading)
                .cite(cpus.reading),
        ]);
    }
    let (severity, confidence) = spinning.grades(SHARE.value);
    if port.sockets.value < cpus.value {
        let sentence = format!(
            "{}: {name} has {sockets} for {} that take packets, so they share; more workers come first",
            spinning.described(),
            say::count(cpus.value, "CPU")
        );
        return Ok(vec![
            spinning
                .cited_in(Finding::watch(port.subject, sentence))
                .severity(Grade::Low)
                .confidence(confidence)
                .cite(port.sockets.reading)
                .cite(cpus.reading)
                .refuted_by("with a socket for each of these CPUs, as many samples spin"),
        ]);
    }
    let sentence = format!(
        "{}: the hash deals {} over the {sockets} of {name} whatever CPU a packet is on",
        spinning.described(),
        say::count(cpus.value, "CPU")
    );
    Ok(vec![
        spinning
            .cited_in(Finding::act(port.subject, sentence))
            .severity(severity)
            .confidence(confidence)
            .cite(port.sockets.reading)
            .cite(cpus.reading)
            .turn("sock.reuseport_bpf", "cbpf")
            .turn("sock.incoming_cpu", "on")
            .turn("cpu.pin_threads", "on")
            .estimate(
                0.0,
                0.67,
                "reference case, 20 CPUs: 2,540 k to 4,250 k transactions/s with steering by BPF",
            )
            .refuted_by(
                "with sockets picked by CPU, as many samples still spin under the UDP enqueue",
            ),
    ])
}
