//! `fork-storm`: short-lived processes use the CPUs.
//!
//! A process that lives for a millisecond is in no list: top shows idle processes and busy CPUs. The kernel counts every fork in
//! /proc/stat, and books the CPU time of an ended child on the parent that waits for it.
use rungwise_model::check::{Finding, Grade};
use rungwise_model::evidence::Evidence;
use rungwise_model::keys;

use super::called;
use crate::{Doc, Judgement, Rule, Threshold, say};

const MADE: Threshold = Threshold {
    name: "processes and threads made per second and CPU, in most parts of the window",
    value: 100.0,
    origin: "measured: parallel builds of Rust crates make 60 to 90; at about 1 ms of CPU time for fork, exec and exit, 10 % of each CPU",
};

const USED: Threshold = Threshold {
    name: "CPU time of children that ended, as a share of all CPUs",
    value: 0.10,
    origin: "own guess: a tenth of the machine",
};

const FULL: Threshold = Threshold {
    name: "share of the CPUs in use, from which on these processes take time from others",
    value: 0.80,
    origin: "measured by `cargo xtask faults`: redis beside 1,672 forks/s on CPUs that were 58 % busy had a p99 of 0.7 ms in the place of 0.2",
};

pub(crate) static RULE: Rule = Rule {
    id: "fork-storm",
    topic: "process",
    summary: "short-lived processes use the CPUs",
    needs: &[
        &keys::CPU_BUSY_MEAN,
        &keys::CPU_ONLINE,
        &keys::PROCESS_CHILDREN_CPU,
        &keys::SCHED_PROCESS_NAME,
        &keys::TASKS_MADE,
    ],
    thresholds: &[MADE, USED, FULL],
    knobs: &[],
    doc: Doc {
        looks_for: "More than 100 processes and threads made per second and CPU in most parts of the window, with ended children that used more than a tenth of all CPUs in most parts of it. Where the CPUs have time to spare, it is only watched.",
        hurts: "fork, exec, the loader and exit cost about a millisecond of CPU time each, mostly in the kernel, and empty the caches of those who work.",
        todo: "The finding names the parent. Call the program once for many items, use built-ins of the shell, a long-lived worker instead of a process per request (CGI, xargs -n1, health checks by exec, cron each second).",
        wrong: "A build machine does this all day and means it. Children that were never waited for are not counted on any parent.",
        sources: "proc(5): processes in /proc/stat, cutime and cstime; kernel/exit.c wait_task_zombie, Linux 6.18.",
    },
    judge,
};

fn judge(evidence: &Evidence) -> Judgement {
    let made = evidence.host(&keys::TASKS_MADE)?;
    let online = evidence.host(&keys::CPU_ONLINE)?;
    let cpus = online.value.max(1.0);
    // A child that lived for long and ended brings all its time at once: more than there was, or in one part alone.
    let steady = |used: &rungwise_model::evidence::Quantity<'_>| {
        used.lasts(|used| used / cpus > USED.value && used <= 1.1 * cpus)
    };
    let children = evidence.each(&keys::PROCESS_CHILDREN_CPU);
    let most = children
        .unwrap_or_default()
        .into_iter()
        .filter(|(_, used)| steady(used))
        .max_by(|(_, a), (_, b)| a.value.total_cmp(&b.value));
    let many = made.lasts(|rate| rate / cpus > MADE.value);
    if let Some((parent, used)) = most.filter(|_| many) {
        let sentence = format!(
            "{} starts short-lived processes: {} are made on the machine, its ended children used {:.2} CPUs",
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
                .refuted_by("execsnoop shows few processes below it"),
        ]);
    }
    let sentence = format!("{} processes and threads are made", say::rate(made.value));
    let clear = Finding::clear(sentence).below((made.value / cpus).min(MADE.value), MADE.value);
    Ok(vec![clear.cite(made.reading)])
}
