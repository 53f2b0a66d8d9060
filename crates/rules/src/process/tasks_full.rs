//! `tasks-full`: the machine is near its limit of processes and threads.
//!
//! A process that ended stays as a zombie until its parent waits for it. A parent that never does fills the table of pids.
use rungwise_model::check::{Finding, Grade};
use rungwise_model::evidence::Evidence;
use rungwise_model::keys;

use super::called;
use crate::{Doc, Judgement, Measure, Rule, Threshold, say};

const FULL: Threshold = Threshold {
    name: "share of kernel.pid_max or kernel.threads-max",
    value: 0.80,
    origin: "own guess: fork fails at 1, and a burst of threads is quick",
};

const ZOMBIES: Threshold = Threshold {
    name: "zombie children of one process",
    value: 100.0,
    origin: "own guess: a few are transient, a hundred mean a parent that never waits",
};

pub(crate) static RULE: Rule = Rule {
    id: "tasks-full",
    topic: "process",
    summary: "the machine is near its limit of processes and threads",
    needs: &[
        &keys::PROCESS_ZOMBIES,
        &keys::SCHED_PROCESS_NAME,
        &keys::TASKS_SHARE,
    ],
    thresholds: &[FULL, ZOMBIES],
    knobs: &[],
    measure: Some(Measure::more(&keys::TASKS_SHARE)),
    doc: Doc {
        looks_for: "Processes and threads of the machine at 80 % of the smaller of kernel.pid_max and kernel.threads-max, or a process with a hundred zombie children.",
        hurts: "At the limit fork and pthread_create fail with EAGAIN for every user: no login, no new worker, no health check.",
        todo: "Find the program that creates them: ps -eLo pid,comm --no-headers | sort | uniq -c. Zombies vanish with their parent, or when it handles SIGCHLD; in a container run an init (docker run --init).",
        wrong: "In a container the limit of its group (pids.max) comes first; rule cgroup-pids-limit covers it.",
        sources: "fork(2), wait(2), proc(5); Documentation/admin-guide/sysctl/kernel.rst.",
    },
    judge,
};

fn judge(evidence: &Evidence) -> Judgement {
    let share = evidence.host(&keys::TASKS_SHARE)?;
    let zombies = evidence.each(&keys::PROCESS_ZOMBIES).unwrap_or_default();
    let most = zombies
        .iter()
        .max_by(|(_, a), (_, b)| a.value.total_cmp(&b.value));
    let most = most.filter(|(_, number)| number.value >= ZOMBIES.value);
    let whose = most.map(|(parent, number)| {
        let who = called(evidence, parent);
        format!(
            "{who} has {:.0} zombie children that it has not waited for",
            number.value
        )
    });
    if share.value > FULL.value {
        let more = whose.map_or_else(String::new, |whose| format!("; {whose}"));
        let sentence = format!(
            "processes and threads are at {} of the machine's limit{more}",
            say::percent(share.value)
        );
        return Ok(vec![
            Finding::act(&rungwise_model::evidence::Subject::host(), sentence)
                .severity(Grade::High)
                .confidence(Grade::High)
                .cite(share.reading)
                .refuted_by("fork still succeeds with twice as many tasks"),
        ]);
    }
    if let (Some(whose), Some((parent, number))) = (whose, most) {
        return Ok(vec![
            Finding::watch(parent, whose)
                .severity(Grade::Low)
                .confidence(Grade::High)
                .cite(number.reading)
                .refuted_by("ps shows no process in state Z"),
        ]);
    }
    let sentence = format!(
        "processes and threads are at {} of the machine's limit",
        say::percent(share.value)
    );
    Ok(vec![
        Finding::clear(sentence)
            .below(share.value, FULL.value)
            .cite(share.reading),
    ])
}
