//! `idle-but-waiting`: the CPUs are idle, no thread waits for them, but the service is slow.
//!
//! Then its threads wait for each other, and no setting of the host can help. The host shows the first half;
//! only thread dumps show the second, that they wait for locks. Without those the rule is undecided.

use rungwise_model::check::{Finding, Grade};
use rungwise_model::evidence::{Absence, Evidence, Kind, Missing, Quantity, Subject, Words};
use rungwise_model::keys;

use crate::{Doc, Judgement, Measure, Rule, Threshold, say};

const IDLE: Threshold = Threshold {
    name: "mean busy share of the CPUs below which they count as idle",
    value: 0.5,
    origin: "reference bank host: 1.7 transactions/s at 30 % CPU",
};

const DELAY: Threshold = Threshold {
    name: "longest run delay of a thread, as a share of the window, below which no thread waits for a CPU",
    value: 0.05,
    origin: "own guess: a wait of a twentieth does not make a service slow",
};

const DISK: Threshold = Threshold {
    name: "share of time in which some task waits for a disk",
    value: 0.10,
    origin: "rule disk-queue, threshold of waiting",
};

const LOCKS: Threshold = Threshold {
    name: "share of the threads that wait for a lock",
    value: 0.20,
    origin: "own guess; the reference bank host had 42.8 % and 73.7 %, without a definition of the share",
};

const MANY: Threshold = Threshold {
    name: "the same, critical",
    value: 0.40,
    origin: "own guess, between the two figures of the reference bank host",
};

pub(crate) static RULE: Rule = Rule {
    id: "idle-but-waiting",
    topic: "cpu",
    summary: "the service is slow while the CPUs are idle, because its threads wait for locks",
    needs: &[
        &keys::CPU_BUSY_MEAN,
        &keys::JVM_LOCK_WAITING,
        &keys::PSI_IO_SOME,
        &keys::SCHED_RUN_DELAY,
        &keys::THREADS_LOCK_WAITING,
        &keys::THREADS_TOP_LOCK,
        &keys::THREADS_TOP_WAITERS,
    ],
    thresholds: &[IDLE, DELAY, DISK, LOCKS, MANY],
    knobs: &[
        "app.lock_split",
        "log.guard",
        "rpc.threads",
        "rpc.connections",
    ],
    measure: Some(Measure::more(&keys::JVM_LOCK_WAITING)),
    doc: Doc {
        looks_for: "CPUs below 50 % busy, threads that wait neither for a CPU (run delay below 5 %) nor for a disk, and more than \
            20 % of the live business threads waiting for a lock.",
        hurts: "The limit is in the program. No setting of the host helps, as the reference bank host showed: eight of nine \
            remedies had no effect.",
        todo: "Find the owner of the lock in the dump and shorten what it does under the lock: split the lock, guard log \
            statements, size the pool and the connections.",
        wrong: "Pool threads that wait for work (take, epoll_wait) do not wait for a lock and are not counted. A service \
            without load is idle and healthy.",
        sources: "The reference bank host: 42.8 % and 73.7 % of the threads waiting, CPU 30 %, 1.7 transactions/s; \
            Documentation/scheduler/sched-stats.rst.",
    },
    judge,
};

fn judge(evidence: &Evidence) -> Judgement {
    let busy = evidence.host(&keys::CPU_BUSY_MEAN)?;
    let mean = say::percent(busy.value);
    if busy.value >= IDLE.value {
        let clear = Finding::clear(format!("the CPUs are {mean} busy on average"))
            .above(busy.value, IDLE.value)
            .cite(busy.reading);
        return Ok(vec![clear]);
    }
    if let Ok(disk) = evidence.host(&keys::PSI_IO_SOME)
        && disk.value > DISK.value
    {
        let sentence = format!(
            "the CPUs are {mean} busy, and some task waits for a disk in {} of the time",
            say::percent(disk.value)
        );
        return Ok(vec![Finding::clear(sentence).cite(disk.reading)]);
    }
    // Dumps of an unknown process still show that its threads wait, but not that they had CPUs.
    let locks = evidence
        .each(&keys::JVM_LOCK_WAITING)
        .or_else(|_| evidence.each(&keys::THREADS_LOCK_WAITING));
    let Ok(locks) = locks else {
        // The JVM was asked and gave no dump.
        let asked = evidence.reading(&keys::JVM_LOCK_WAITING, &Subject::host());
        if asked.is_some() {
            return Err(evidence.missing(&keys::JVM_LOCK_WAITING, &Subject::host()));
        }
        return Err(Missing {
            key: keys::JVM_LOCK_WAITING.id,
            subject: Subject::host(),
            why: Absence::because(format!(
                "the CPUs are {mean} busy; only a thread dump shows whether the service waits for its own locks"
            ))
            .remedy("run `rungwise check --pid PID` with the process id of the JVM, which takes three dumps"),
        });
    };
    let mut findings = Vec::new();
    let mut most = 0.0_f64;
    for (whose, waiting) in locks {
        let delay = longest_delay(evidence, whose);
        if let Some(delay) = delay.filter(|delay| delay.value >= DELAY.value) {
            let sentence = format!(
                "the CPUs are {mean} busy, and a thread of pid {} waits for one in {} of the time",
                whose.name(),
                say::percent(delay.value)
            );
            findings.push(Finding::clear(sentence).cite(delay.reading));
            continue;
        }
        most = most.max(waiting.value);
        if waiting.value <= LOCKS.value {
            continue;
        }
        let who = match whose.kind() {
            Kind::Process => format!("threads of pid {}", whose.name()),
            _ => "threads in the dumps".to_owned(),
        };
        let top = top_lock(evidence);
        let one = top.map_or_else(String::new, |(lock, waiters)| {
            format!(", {} of them for {}", say::whole(waiters.value), lock.value)
        });
        let sentence = format!(
            "{} of the {who} wait for a lock{one} while the CPUs are {mean} busy: no host setting will help",
            say::percent(waiting.value)
        );
        let mut finding = Finding::act(whose, sentence)
            .severity(if waiting.value > MANY.value {
                Grade::High
            } else {
                Grade::Medium
            })
            .confidence(if delay.is_some() {
                Grade::High
            } else {
                Grade::Medium
            })
            .cite(waiting.reading)
            .cite(busy.reading);
        if let Some(delay) = delay {
            finding = finding.cite(delay.reading);
        }
        if let Some((lock, _)) = top {
            finding = finding.cite(lock.reading);
        }
        findings.push(
            RULE.knobs
                .iter()
                .fold(finding, |finding, knob| finding.consider(knob))
                .refuted_by(
                    "dumps taken under load show the threads waiting for work or for a socket",
                ),
        );
    }
    if findings.is_empty() {
        let sentence = format!(
            "the CPUs are {mean} busy, and {} of the threads wait for a lock",
            say::percent(most)
        );
        findings.push(
            Finding::clear(sentence)
                .below(most, LOCKS.value)
                .cite(busy.reading),
        );
    }
    Ok(findings)
}

/// The lock that most threads wait for, and how many: of the one JVM that has dumps.
fn top_lock(evidence: &Evidence) -> Option<(Words<'_>, Quantity<'_>)> {
    let locks = evidence.each_words(&keys::THREADS_TOP_LOCK).ok()?;
    let [(jvm, lock)] = locks[..] else {
        return None;
    };
    let waiters = evidence.quantity(&keys::THREADS_TOP_WAITERS, jvm).ok()?;
    Some((lock, waiters))
}

/// Longest run delay of the threads of this process, if they were read. It is a share of the window: as a share of the
/// time that they ran it would be large for a service that hardly runs.
fn longest_delay<'e>(evidence: &'e Evidence, process: &Subject) -> Option<Quantity<'e>> {
    let of = |thread: &Subject| {
        let pid = thread.name().split_once(':').map(|(pid, _)| pid);
        process.kind() == Kind::Process && pid == Some(process.name())
    };
    let delays = evidence.each(&keys::SCHED_RUN_DELAY).ok()?;
    let delays = delays.into_iter().filter(|(thread, _)| of(thread));
    delays
        .map(|(_, delay)| delay)
        .max_by(|a, b| a.value.total_cmp(&b.value))
}
