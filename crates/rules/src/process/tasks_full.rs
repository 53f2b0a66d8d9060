//! `tasks-full`: the machine has nearly as many processes and threads as it may.
//!
//! A process that ended stays as a zombie until its parent waits for it. A parent that never does fills the table of pids.
use rungwise_model::check::{Finding, Grade};
use rungwise_model::evidence::Evidence;
use rungwise_model::keys;

use super::called;
use crate::{Doc, Judgement, Rule, Threshold, say};

const FULL: Threshold = Threshold {
    name: "share of kernel.pid_max or kernel.threads-max",
    value: 0.80,
    origin: "own guess: fork fails at 1, and a burst of threads is quick",
};

const ZOMBIES: Threshold = Threshold {
    name: "ended children of one process that it has not waited for",
    value: 100.0,
    origin: "own guess: a few are a moment, a hundred are a parent that never waits",
};

pub(crate) static RULE: Rule = Rule {
    id: "tasks-full",
    topic: "process",
    summary: "the machine has nearly as many processes and threads as it may",
    needs: &[
        &keys::PROCESS_ZOMBIES,
        &keys::SCHED_PROCESS_NAME,
        &keys::TASKS_SHARE,
    ],
    thresholds: &[FULL, ZOMBIES],
    knobs: &[],
    doc: Doc {
        looks_for: "Processes and threads of the machine at 80 % of the smaller of kernel.pid_max and kernel.threads-max, or a process with a hundred zombie children.",
        hurts: "At the limit fork and pthread_create fail with EAGAIN for everybody: no login, no new worker, no health check.",
        todo: "Find who makes them: ps -eLo pid,comm --no-headers | sort | uniq -c. Zombies vanish with their parent, or when it handles SIGCHLD; in a container run an init (docker run --init).",
        wrong: "In a container the limit of its group (pids.max) comes first; that is another rule's.",
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
            "{who} has not waited for {:.0} children that ended",
            number.value
        )
    });
    if share.value > FULL.value {
        let more = whose.map_or_else(String::new, |whose| format!("; {whose}"));
        let sentence = format!(
            "the machine has {} of the processes and threads that it may have{more}",
            say::percent(share.value)
        );
        return Ok(vec![
            Finding::act(&rungwise_model::evidence::Subject::host(), sentence)
                .severity(Grade::High)
                .confidence(Grade::High)
                .cite(share.reading)
                .refuted_by("fork succeeds with as many tasks again"),
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
        "the machine has {} of the tasks that it may have",
        say::percent(share.value)
    );
    Ok(vec![
        Finding::clear(sentence)
            .below(share.value, FULL.value)
            .cite(share.reading),
    ])
}
