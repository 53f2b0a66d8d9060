//! `udp-thread-remote`: the threads that read UDP run on other CPUs than those that receive it.
//!
//! Each datagram then crosses caches, and waking the reader takes an interrupt between CPUs. The rule samples
//! where threads run (`processor` of /proc/PID/task/TID/stat) and counts their migrations. Four samples show a
//! habit, not a share; the migrations, which the kernel counts, confirm it.

use rungwise_model::check::{Finding, Grade};
use rungwise_model::evidence::{Evidence, Kind, Quantity, Subject};
use rungwise_model::keys;

use crate::{Doc, Judgement, Measure, Rule, Threshold, process, say};

const TRAFFIC: Threshold = Threshold {
    name: "datagrams received per second",
    value: 1000.0,
    origin: "own guess: below it, a cache miss per datagram is no bottleneck",
};

const READER: Threshold = Threshold {
    name: "CPU use from which on a thread counts as a reader",
    value: 0.05,
    origin: "own guess: a thread that does less is not the bottleneck",
};

const REMOTE: Threshold = Threshold {
    name: "share of the samples in which the thread was away from the receiving CPUs",
    value: 0.5,
    origin: "own guess: more often away than there",
};

const MOVES: Threshold = Threshold {
    name: "migrations of a thread to another CPU per second",
    value: 100.0,
    origin: "own guess: a cold cache every 10 ms",
};

const FULL: Threshold = Threshold {
    name: "busy share of the receiving CPUs above which readers should stay away",
    value: 0.9,
    origin: "own guess: a CPU full of soft interrupts has no time for a reader",
};

const WORKS: Threshold = Threshold {
    name: "CPU use of a reader from which on its placement is worth acting on",
    value: 0.5,
    origin: "measured by `cargo xtask faults`: at 5,300 datagrams/s the placement of the reader did not affect p99",
};

pub(crate) static RULE: Rule = Rule {
    id: "udp-thread-remote",
    topic: "cpu",
    summary: "UDP readers run on other CPUs than those that receive the packets",
    needs: &[
        &keys::CPU_BUSY,
        &keys::SCHED_MIGRATIONS,
        &keys::SCHED_REMOTE_SOFTIRQ,
        &keys::SCHED_THREAD_CPU,
        &keys::SOFTIRQ_NET_RX_SHARE,
        &keys::UDP_PROCESS,
        &keys::UDP_RECEIVED,
    ],
    thresholds: &[TRAFFIC, READER, REMOTE, MOVES, FULL, WORKS],
    knobs: &["cpu.pin_threads", "net.rfs"],
    measure: Some(Measure::more(&keys::SCHED_REMOTE_SOFTIRQ)),
    doc: Doc {
        looks_for: "Threads of a process with a UDP port that use at least 5 % of a CPU, and in more than half of the \
            samples were on a CPU that receives no packets, or migrated more than 100 times per second.",
        hurts: "The packet's data and the socket's lock are in the cache of the CPU that received it. Each datagram read \
            elsewhere fetches both, and each wake-up of the reader is an interrupt to another CPU.",
        todo: "One socket per thread and one thread per CPU, pinned (cpu.pin_threads). Where the service cannot be pinned, \
            let the packets follow the threads (net.rfs).",
        wrong: "Where the receiving CPUs are full, a reader elsewhere is right: that is how two CPUs share the work. With \
            few samples a thread that migrates looks like one that stays away. A CPU that receives packets may not receive \
            this thread's packets.",
        sources: "The reference ladder (20 cores, 82599ES, Linux 4.6.3): 4.25 M to 5.05 M transactions/s by pinning; \
            Documentation/networking/scaling.rst (RFS).",
    },
    judge,
};

fn judge(evidence: &Evidence) -> Judgement {
    let received = evidence.host(&keys::UDP_RECEIVED)?;
    if received.value < TRAFFIC.value {
        let sentence = format!("only {} datagrams arrive", say::rate(received.value));
        let clear = Finding::clear(sentence)
            .below(received.value, TRAFFIC.value)
            .cite(received.reading);
        return Ok(vec![clear]);
    }
    let remote = evidence.each(&keys::SCHED_REMOTE_SOFTIRQ)?;
    let owners = evidence.each_words(&keys::UDP_PROCESS)?;
    let reads = |thread: &Subject| {
        let pid = process::pid_of(thread);
        let busy = evidence.quantity(&keys::SCHED_THREAD_CPU, thread);
        busy.is_ok_and(|busy| busy.value >= READER.value)
            && owners
                .iter()
                .any(|(_, owner)| process::owner_pid(owner.value) == Some(pid))
    };
    let readers: Vec<_> = remote
        .into_iter()
        .filter(|(thread, _)| reads(thread))
        .collect();
    let moves = |thread: &Subject| evidence.quantity(&keys::SCHED_MIGRATIONS, thread).ok();
    let wanders = |thread: &Subject| moves(thread).is_some_and(|moves| moves.value > MOVES.value);
    let away: Vec<_> = readers
        .iter()
        .filter(|(thread, remote)| remote.value > REMOTE.value || wanders(thread))
        .collect();
    let Some((thread, worst)) = away
        .iter()
        .max_by(|(_, a), (_, b)| a.value.total_cmp(&b.value))
    else {
        let most = readers
            .iter()
            .map(|(_, remote)| remote.value)
            .fold(0.0, f64::max);
        let sentence = match readers.len() {
            0 => "no sampled thread reads UDP and uses CPU".to_owned(),
            n => format!(
                "{} on the CPUs that receive the packets",
                say::count(n as f64, "UDP reader")
            ),
        };
        return Ok(vec![Finding::clear(sentence).below(most, REMOTE.value)]);
    };
    if let Some(busy) = receiving_are_full(evidence) {
        let sentence = format!(
            "{} run away from the receiving CPUs, which are {} busy: there they would only wait",
            say::count(away.len() as f64, "UDP reader"),
            say::percent(busy.value)
        );
        return Ok(vec![Finding::clear(sentence).cite(busy.reading)]);
    }
    let pid = Subject::new(Kind::Process, process::pid_of(thread));
    let sentence = format!(
        "{} of {} of pid {} run on other CPUs than those that receive their packets (worst: {} in {} of the samples)",
        away.len(),
        say::count(readers.len() as f64, "UDP reader"),
        pid.name(),
        thread.name(),
        say::percent(worst.value)
    );
    let busiest = away
        .iter()
        .filter_map(|(thread, _)| evidence.quantity(&keys::SCHED_THREAD_CPU, thread).ok())
        .fold(0.0, |most: f64, busy| most.max(busy.value));
    let finding = if busiest >= WORKS.value {
        Finding::act(&pid, sentence)
    } else {
        Finding::watch(&pid, sentence)
    };
    let mut finding = finding
        .severity(Grade::Medium)
        .confidence(if wanders(thread) {
            Grade::High
        } else {
            Grade::Medium
        })
        .cite(worst.reading)
        .cite(received.reading);
    if let Some(moves) = moves(thread) {
        finding = finding.cite(moves.reading);
    }
    Ok(vec![
        finding
            .turn("cpu.pin_threads", "on")
            .consider("net.rfs")
            .estimate(
                0.0,
                0.188,
                "reference ladder: +18.8 % by pinning, with a socket per CPU",
            )
            .refuted_by(
                "the rate does not change when the readers are pinned to the receiving CPUs",
            ),
    ])
}

/// The least busy of the CPUs that receive the packets, if even that one is full.
fn receiving_are_full(evidence: &Evidence) -> Option<Quantity<'_>> {
    /// CPUs with less of the packets do not count as receiving (as `softirq.net_rx_cpus` has it).
    const TAKES_PART: f64 = 0.05;
    let shares = evidence.each(&keys::SOFTIRQ_NET_RX_SHARE).ok()?;
    let busy: Option<Vec<_>> = shares
        .into_iter()
        .filter(|(_, share)| share.value > TAKES_PART)
        .map(|(cpu, _)| evidence.quantity(&keys::CPU_BUSY, cpu).ok())
        .collect();
    busy?
        .into_iter()
        .min_by(|a, b| a.value.total_cmp(&b.value))
        .filter(|least| least.value > FULL.value)
}
