//! `fork-storm`: short-lived processes or threads use the CPUs.
//!
//! A process that lives for a millisecond is in no list: top shows idle processes and busy CPUs. The kernel counts every fork in
//! /proc/stat, and charges the CPU time of an ended child to the parent that waits for it. A thread counts as a fork as well.

use rungwise_model::check::{Finding, Grade};
use rungwise_model::evidence::{Evidence, Quantity};
use rungwise_model::keys;

use super::{SERVICE, called, is_service};
use crate::rule::needs;
use crate::{Doc, Judgement, Measure, Rule, Threshold, say};

const MADE: Threshold = Threshold {
    name: "processes and threads created per second and CPU, in most parts of the window",
    value: 100.0,
    origin: "measured: parallel builds of Rust crates make 60 to 90; at about 1 ms of CPU time for fork, exec and exit, 10 % of each CPU",
};

const USED: Threshold = Threshold {
    name: "CPU time of children that ended, as a share of all CPUs",
    value: 0.10,
    origin: "measured by `cargo xtask faults --steps 5 --seed 8001`: next to children that used 15 % of two CPUs redis had a p99 of 3.9 ms \
        instead of 0.2 ms",
};

const FULL: Threshold = Threshold {
    name: "share of the CPUs in use, from which on these processes take time from others",
    value: 0.80,
    origin: "measured by `cargo xtask faults`: redis next to 1,672 forks/s on CPUs that were 58 % busy had a p99 of 0.7 ms instead of 0.2 ms",
};

const THREADS: Threshold = Threshold {
    name: "the same, where they are threads of a service",
    value: 1000.0,
    origin: "measured by `cargo xtask faults`: 5,000/s on each of two CPUs took p50 from 0.15 to 3.4 ms; the threshold is a guess, at about 30 us of CPU time for each",
};

const ENDED: Threshold = Threshold {
    name: "share of the CPU time of a process that its ended threads used",
    value: 0.20,
    origin: "own guess: threads of a pool live on",
};

pub(crate) static RULE: Rule = Rule {
    id: "fork-storm",
    topic: "process",
    summary: "short-lived processes or threads use the CPUs",
    needs: needs!(
        [
            &keys::CPU_BUSY_MEAN,
            &keys::CPU_ONLINE,
            &keys::PROCESS_CHILDREN_CPU,
            &keys::PROCESS_THREADS_ENDED_CPU,
            &keys::SCHED_PROCESS_CPU,
            &keys::TASKS_MADE
        ],
        SERVICE
    ),
    thresholds: &[MADE, USED, FULL, THREADS, ENDED],
    knobs: &[],
    measure: Some(Measure::more(&keys::TASKS_MADE)),
    doc: Doc {
        looks_for: "More than 100 processes and threads created per second and CPU in most parts of the window, with ended children that used more than a tenth of all CPUs in most parts of it. If the CPUs are not full, this is only watched. Or more than 1000 per second and CPU, while a service spends a fifth of its CPU time in threads that end.",
        hurts: "fork, exec, the loader and exit cost about a millisecond of CPU time each, mostly in the kernel, and evict the caches of working processes. A thread costs about 30 us, and each start and end takes a lock of its process (mmap_lock).",
        todo: "The finding names the parent. Call the program once for many items, use shell built-ins, or a long-lived worker instead of a process per request (CGI, xargs -n1, health checks by exec, cron each second). For threads: a pool instead of new ones for each request.",
        wrong: "A build machine does this all day on purpose. Children that no parent waited for are charged to no parent.",
        sources: "proc(5): processes in /proc/stat, cutime and cstime; kernel/exit.c wait_task_zombie, Linux 6.18.",
    },
    judge,
};

fn judge(evidence: &Evidence) -> Judgement {
    let made = evidence.host(&keys::TASKS_MADE)?;
    let online = evidence.host(&keys::CPU_ONLINE)?;
    let cpus = online.value.max(1.0);
    // A child that lived for long and ended brings all its time at once: more than there was, or in one part alone.
    let steady =
        |used: &Quantity<'_>| used.lasts(|used| used / cpus > USED.value && used <= 1.1 * cpus);
    let children = evidence.each(&keys::PROCESS_CHILDREN_CPU);
    let most = children
        .unwrap_or_default()
        .into_iter()
        .filter(|(_, used)| steady(used))
        .max_by(|(_, a), (_, b)| a.value.total_cmp(&b.value));
    let many = made.lasts(|rate| rate / cpus > MADE.value);
    if let Some((parent, used)) = most.filter(|_| many) {
        let sentence = format!(
            "{} starts short-lived processes: {} created on the machine, its ended children used {:.2} CPUs",
            called(evidence, parent),
            say::rate(made.value),
            used.value
        );
        let room = evidence.host(&keys::CPU_BUSY_MEAN).ok();
        let room = room.filter(|busy| busy.value < FULL.value);
        let finding = match room {
            Some(busy) => Finding::watch(parent, sentence).cite(busy.reading),
            None => Finding::act(parent, sentence),
        };
        return Ok(vec![
            finding
                .confidence(Grade::High)
                .cite(made.reading)
                .cite(used.reading)
                .refuted_by("execsnoop shows few child processes of it"),
        ]);
    }
    if let Some(finding) = threads(evidence, &made, cpus) {
        return Ok(vec![finding]);
    }
    let sentence = format!(
        "{} processes and threads are created",
        say::rate(made.value)
    );
    let clear = Finding::clear(sentence).below((made.value / cpus).min(MADE.value), MADE.value);
    Ok(vec![clear.cite(made.reading)])
}

/// CPU time that the start and the end of a thread cost at least.
const STARTING_S: f64 = 30e-6;

/// A service that starts and ends threads all the time.
fn threads(evidence: &Evidence, made: &Quantity<'_>, cpus: f64) -> Option<Finding> {
    if !made.lasts(|rate| rate / cpus > THREADS.value) {
        return None;
    }
    let ended = evidence.each(&keys::PROCESS_THREADS_ENDED_CPU).ok()?;
    let of_a_service = ended.into_iter().filter(|(process, used)| {
        let whole = evidence.quantity(&keys::SCHED_PROCESS_CPU, process);
        let least = STARTING_S * THREADS.value * cpus;
        whole.is_ok_and(|whole| used.value >= (ENDED.value * whole.value).max(least))
            && is_service(evidence, process.name())
    });
    let (process, used) = of_a_service.max_by(|(_, a), (_, b)| a.value.total_cmp(&b.value))?;
    let sentence = format!(
        "{} starts short-lived threads: those that ended used {:.2} CPUs, and the machine creates {} tasks",
        called(evidence, process),
        used.value,
        say::rate(made.value)
    );
    Some(
        Finding::act(process, sentence)
            .severity(Grade::High)
            .confidence(Grade::Medium)
            .cite(made.reading)
            .cite(used.reading)
            .refuted_by("its thread ids do not change: ls /proc/PID/task, twice"),
    )
}
