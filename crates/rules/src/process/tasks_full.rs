//! `tasks-full`: the machine or a user is near its limit of processes and threads.
//!
//! A process that ended stays as a zombie until its parent waits for it. A parent that never does fills the table of pids.
use rungwise_model::check::{Finding, Grade};
use rungwise_model::evidence::{Evidence, Subject};
use rungwise_model::keys;

use super::called;
use crate::{Doc, Judgement, Measure, Rule, Threshold, say};

const FULL: Threshold = Threshold {
    name: "share of kernel.pid_max, kernel.threads-max or the user's limit",
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
    summary: "the machine or a user is near its limit of processes and threads",
    needs: &[
        &keys::PROCESS_USER_TASKS,
        &keys::PROCESS_USER_TASKS_LIMIT,
        &keys::PROCESS_ZOMBIES,
        &keys::SCHED_PROCESS_NAME,
        &keys::TASKS_SHARE,
    ],
    thresholds: &[FULL, ZOMBIES],
    knobs: &[],
    measure: Some(Measure::more(&keys::TASKS_SHARE)),
    doc: Doc {
        looks_for: "Processes and threads of the machine at 80 % of the smaller of kernel.pid_max and kernel.threads-max, or those of a user at 80 % of the soft limit of its processes (RLIMIT_NPROC, ulimit -u), if processes with that limit hold half of it; or a process with a hundred zombie children.",
        hurts: "At the limit fork and pthread_create fail with EAGAIN: no login, no new worker, no health check. A JVM throws OutOfMemoryError: unable to create native thread.",
        todo: "Find the program that creates them: ps -eLo pid,comm --no-headers | sort | uniq -c. The limit of a user is raised by LimitNPROC= of its unit, by nproc in /etc/security/limits.conf, or for a running process by prlimit --nproc. Zombies vanish with their parent, or when it handles SIGCHLD; in a container run an init (docker run --init).",
        wrong: "In a container the limit of its group (pids.max) comes first; rule cgroup-pids-limit covers it.",
        sources: "fork(2), getrlimit(2), wait(2), proc(5); Documentation/admin-guide/sysctl/kernel.rst.",
    },
    judge,
};

fn judge(evidence: &Evidence) -> Judgement {
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
    let share = evidence.host(&keys::TASKS_SHARE);
    let more = whose
        .as_ref()
        .map_or_else(String::new, |whose| format!("; {whose}"));
    let mut findings = Vec::new();
    if let Some(share) = share.as_ref().ok().filter(|share| share.value > FULL.value) {
        let sentence = format!(
            "processes and threads are at {} of the machine's limit{more}",
            say::percent(share.value)
        );
        findings.push(
            Finding::act(&Subject::host(), sentence)
                .severity(Grade::High)
                .confidence(Grade::High)
                .cite(share.reading)
                .refuted_by("fork still succeeds with twice as many tasks"),
        );
    }
    let users = evidence.each(&keys::PROCESS_USER_TASKS).unwrap_or_default();
    for (process, share) in users.iter().filter(|(_, share)| share.value > FULL.value) {
        let limit = evidence.quantity(&keys::PROCESS_USER_TASKS_LIMIT, process)?;
        let sentence = format!(
            "the user of {} has {:.0} processes and threads and may have {:.0} (RLIMIT_NPROC): at the limit fork and pthread_create \
             fail{more}",
            called(evidence, process),
            share.value * limit.value,
            limit.value
        );
        findings.push(
            Finding::act(process, sentence)
                .severity(Grade::High)
                .confidence(Grade::High)
                .cite(share.reading)
                .refuted_by("`ps -L -U USER --no-headers | wc -l` prints far less than `prlimit --nproc -p PID`"),
        );
    }
    if !findings.is_empty() {
        return Ok(findings);
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
    let share = share?;
    let nearest = users
        .iter()
        .map(|(_, user)| user)
        .fold(&share, |nearest, user| {
            if user.value > nearest.value {
                user
            } else {
                nearest
            }
        });
    let whose = if nearest.value > share.value {
        "their user's"
    } else {
        "the machine's"
    };
    let sentence = format!(
        "processes and threads are at {} of {whose} limit",
        say::percent(nearest.value)
    );
    Ok(vec![
        Finding::clear(sentence)
            .below(nearest.value, FULL.value)
            .cite(nearest.reading),
    ])
}
