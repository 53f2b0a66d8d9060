//! `syscall-bound`: a system call per datagram, a hundred thousand times a second on one CPU.

use rungwise_model::check::Finding;
use rungwise_model::evidence::{Evidence, Subject};
use rungwise_model::keys;

use crate::{Doc, Judgement, Measure, Rule, Threshold, pick, say};

const RATE: Threshold = Threshold {
    name: "system calls per second on one CPU",
    value: 100_000.0,
    origin: "own guess, 10 % of a CPU at 1 us each; pcp's 10,000 dates from slower machines",
};

const LEAST: Threshold = Threshold {
    name: "datagrams per system call, at least",
    value: 0.4,
    origin: "receive, send and a wait for two datagrams is 0.67, with a failed receive 0.5; below it, other calls rule",
};

const MOST: Threshold = Threshold {
    name: "datagrams per system call, at most",
    value: 1.5,
    origin: "definition: one per call; above it, the service moves batches",
};

const BUSY: Threshold = Threshold {
    name: "use of that CPU, below which system calls bound nothing",
    value: 0.80,
    origin: "rule thread-saturated",
};

const ENTRY: Threshold = Threshold {
    name: "busy samples in entry and exit of system calls",
    value: 0.05,
    origin: "own guess: from here on the mitigations of the CPU's flaws are worth naming",
};

/// `syscall-bound`
pub(crate) static RULE: Rule = Rule {
    id: "syscall-bound",
    topic: "net",
    summary: "a system call per datagram, at a very high rate",
    needs: &[
        &keys::CPU_BUSY,
        &keys::KERNEL_MITIGATIONS,
        &keys::STACK_SYSCALL_ENTRY,
        &keys::SYSCALL_DATAGRAMS_PER_CALL,
        &keys::SYSCALL_RATE,
    ],
    thresholds: &[RATE, LEAST, MOST, BUSY, ENTRY],
    knobs: &["sock.recvmmsg", "sock.udp_gro", "cmdline.mitigations"],
    measure: Some(Measure::more(&keys::SYSCALL_RATE)),
    doc: Doc {
        looks_for: "More than 100,000 system calls/s on one CPU that is 80 % busy, with about one datagram per call.",
        hurts: "Entry, exit and the walk through the socket layer are paid per datagram.",
        todo: "recvmmsg and sendmmsg, io_uring, or UDP_GRO for bursts of one flow. Switching mitigations off is a \
               decision about security and only for machines with one tenant.",
        wrong: "Batches form only where datagrams wait for each other: a service with one request under way gains \
                nothing. Where most calls are not about datagrams (a web server, a database, a build), the rate says nothing and the \
               rule passes.",
        sources: "pcp's cpu.syscall rule; Cloudflare, How to receive a million packets per second (2015); measured: \
                  1.68 to 1.45 us of server CPU per transaction with batches, Linux 6.18.",
    },
    judge,
};

fn judge(evidence: &Evidence) -> Judgement {
    let (cpu, rate) = pick::largest(evidence, &keys::SYSCALL_RATE)?;
    let sentence = format!(
        "CPU {} makes {} system calls",
        cpu.name(),
        say::rate(rate.value)
    );
    if rate.value <= RATE.value {
        return Ok(vec![
            Finding::clear(sentence)
                .below(rate.value, RATE.value)
                .cite(rate.reading),
        ]);
    }
    let per_call = evidence.host(&keys::SYSCALL_DATAGRAMS_PER_CALL)?;
    let sentence = format!(
        "{sentence}, {:.2} datagrams of this network namespace per call",
        per_call.value
    );
    if per_call.value > MOST.value {
        return Ok(vec![
            Finding::clear(format!("{sentence}: batches already"))
                .cite(rate.reading)
                .cite(per_call.reading),
        ]);
    }
    if per_call.value < LEAST.value {
        return Ok(vec![
            Finding::clear(format!(
                "{sentence}: most calls do something else, or belong to another namespace"
            ))
            .below(per_call.value, LEAST.value)
            .cite(rate.reading)
            .cite(per_call.reading),
        ]);
    }
    // Client and server together may reach the rate on a CPU that has time left.
    if let Ok(busy) = evidence.quantity(&keys::CPU_BUSY, cpu)
        && busy.value < BUSY.value
    {
        let sentence = format!("{sentence}, and is {} busy", say::percent(busy.value));
        return Ok(vec![
            Finding::clear(sentence)
                .below(busy.value, BUSY.value)
                .cite(rate.reading)
                .cite(busy.reading),
        ]);
    }
    let finding = Finding::act(cpu, sentence)
        .cite(rate.reading)
        .cite(per_call.reading)
        .turn("sock.recvmmsg", "32")
        .consider("sock.udp_gro")
        .refuted_by("with batches of 32, the calls per datagram stay as they are: nothing waits");
    let entry = evidence.host(&keys::STACK_SYSCALL_ENTRY).ok();
    let mitigations = evidence
        .words(&keys::KERNEL_MITIGATIONS, &Subject::host())
        .ok();
    Ok(vec![match (entry, mitigations) {
        (Some(entry), Some(mitigations))
            if entry.value > ENTRY.value && !mitigations.value.is_empty() =>
        {
            finding
                .cite(entry.reading)
                .cite(mitigations.reading)
                .consider("cmdline.mitigations")
        }
        _ => finding,
    }])
}
