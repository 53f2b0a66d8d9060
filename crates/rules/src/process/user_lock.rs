//! `user-lock`: threads wait for one lock of the program.
//!
//! A mutex that is held for long turns a pool of threads into one. The threads sleep in futex(2) on the same word, so neither the
//! CPUs nor the network show anything.
use rungwise_model::check::{Finding, Grade};
use rungwise_model::evidence::{Evidence, Quantity, Subject};
use rungwise_model::keys;

use super::{SERVICE, called, is_service};
use crate::rule::needs;
use crate::{Doc, Judgement, Measure, Rule, Threshold, say};

const WAITERS: Threshold = Threshold {
    name: "threads that wait for one lock in every sample",
    value: 2.0,
    origin: "measured by `cargo xtask faults --steps 5 --seed 8001`: a lock held for 1.7 ms by each request had no waiter in any sample \
        (p99 from 0.4 to 2.4 ms), one held for 20 ms had 15 and lost 87 % of the requests",
};

const OF_ALL: Threshold = Threshold {
    name: "share of all threads that wait for the lock in each sample, where there are fewer than four",
    value: 0.05,
    origin: "own guess: processes with more than 100 threads are read two or three times, and two of 200 threads may meet at a lock by chance",
};

const MOVING: Threshold = Threshold {
    name: "share of the waiting threads that ran since the previous sample",
    value: 0.50,
    origin: "own guess: threads of an idle pool that queue for accept do not run at all",
};

const SHORT: Threshold = Threshold {
    name: "share of the window in which its busiest thread waits for a CPU, above which the lock is held for lack of CPUs",
    value: 0.10,
    origin: "rule runq-delay",
};

const OFTEN: Threshold = Threshold {
    name: "share of the samples (eight or more) with that many waiting threads, if most samples have fewer: watched",
    value: 0.20,
    origin: "own guess: it affects the slowest fifth of the requests",
};

const MEAN: Threshold = Threshold {
    name: "threads that wait for one lock, mean of the samples (25 or more), where it is free in a fifth of them",
    value: 0.2,
    origin: "measured by `cargo xtask faults --kind lock-rwlock-writer`: a lock held for 3.7 of each 20 ms had 0.1 (p99 from 0.3 to 3.8 ms), one held for 8.2 ms had \
        0.5 (p99 from 0.3 to 8.4 ms)",
};

const RUNS: Threshold = Threshold {
    name: "the same as a multiple of the CPU time of the process, in CPUs",
    value: 2.0,
    origin: "definition: its requests wait for the lock twice as long as they run",
};

pub(crate) static RULE: Rule = Rule {
    id: "user-lock",
    topic: "process",
    summary: "threads wait for one lock of the program",
    needs: needs!(
        [
            &keys::CPU_BUSY_MEAN,
            &keys::LOCK_USER_FUNCTION,
            &keys::LOCK_USER_FUNCTIONS,
            &keys::LOCK_USER_MOVING,
            &keys::LOCK_USER_WAITERS,
            &keys::PROCESS_BUSIEST_DELAY,
            &keys::PROCESS_SLEEPS,
            &keys::PROCESS_THREADS,
            &keys::SCHED_PROCESS_CPU
        ],
        SERVICE
    ),
    thresholds: &[WAITERS, OF_ALL, MOVING, SHORT, OFTEN, MEAN, RUNS],
    knobs: &[],
    measure: Some(Measure::more(&keys::LOCK_USER_WAITERS)),
    doc: Doc {
        looks_for: "Two or more threads of a process that sleep in futex(2) for the same held lock in every sample (5 % of all threads, where there are fewer than four samples), while the threads do run in between, or clients wait for the process, and its threads do not wait for a CPU. Also a lock that is free at times, where its threads wait for it twice as long as they run. Two or more in a fifth of many samples are watched.",
        hurts: "The threads work one after the other. Throughput is that of one thread, and each request waits for all those before it.",
        todo: "The evidence names the functions that wait for the lock; `rungwise profile --pid PID --event off-cpu` shows their whole stacks, and where its holder spends the time. Then shorten what is done under it (no IO, no allocation, no logging), split it, or use fewer threads.",
        wrong: "A pool whose idle threads queue on one mutex for the next request looks the same, but those threads do not run. Locks whose waiters sleep on a word of their own (Java, parking_lot) and condition variables are not detected: for a JVM take thread dumps.",
        sources: "futex(2); Ulrich Drepper, Futexes Are Tricky (2011); sysdeps/nptl/lowlevellock.h of glibc 2.36.",
    },
    judge,
};

/// Clients that wait for the process.
fn asked<'e>(evidence: &'e Evidence, process: &Subject) -> Option<Quantity<'e>> {
    [&keys::DEPENDENCY_CLIENTS, &keys::PROCESS_UNREAD]
        .into_iter()
        .find_map(|key| evidence.quantity(key, process).ok())
        .filter(|clients| clients.value >= 1.0)
}

fn is_short_of_cpu(evidence: &Evidence, process: &Subject) -> bool {
    let delay = evidence.quantity(&keys::PROCESS_BUSIEST_DELAY, process);
    delay.is_ok_and(|delay| delay.value > SHORT.value)
}

/// Threads wait for one lock in most samples; of few samples, many of all threads in each.
fn is_queue(evidence: &Evidence, process: &Subject, waiters: &Quantity<'_>) -> bool {
    if (1..4).contains(&waiters.reading.series.len()) {
        let Ok(threads) = evidence.quantity(&keys::PROCESS_THREADS, process) else {
            return false;
        };
        let many = WAITERS.value.max(OF_ALL.value * threads.value);
        return waiters.always(|waiting| waiting >= many);
    }
    waiters.lasts(|waiting| waiting >= WAITERS.value)
}

/// Threads wait for one lock in most samples, or longer than they run, and have something to do: those of an idle pool do not.
pub(crate) fn is_contended(evidence: &Evidence, process: &Subject) -> bool {
    let Ok(waiters) = evidence.quantity(&keys::LOCK_USER_WAITERS, process) else {
        return false;
    };
    let moving = evidence.quantity(&keys::LOCK_USER_MOVING, process);
    let moves = moving.is_ok_and(|share| share.value >= MOVING.value);
    let is_queue = is_queue(evidence, process, &waiters);
    let is_longer = moves && mean_beside_cpu(evidence, process, &waiters).is_some();
    let works = moves || asked(evidence, process).is_some();
    (is_queue && works || is_longer) && !is_short_of_cpu(evidence, process)
}

/// Threads that wait on average for a lock that is free at times, and the CPU time of the process, where that is little beside the wait. One
/// thread that waits all the time takes turns with another.
fn mean_beside_cpu<'e>(
    evidence: &'e Evidence,
    process: &Subject,
    waiters: &Quantity<'_>,
) -> Option<(f64, Quantity<'e>)> {
    let course = &waiters.reading.series;
    if course.len() < MANY {
        return None;
    }
    let mean = course.iter().sum::<f64>() / course.len() as f64;
    let free = waiters.share(|waiting| waiting < 1.0)?;
    let several = waiters.share(|waiting| waiting >= WAITERS.value)?;
    let cpus = evidence.quantity(&keys::SCHED_PROCESS_CPU, process).ok()?;
    let is_longer = mean >= MEAN.value && mean >= RUNS.value * cpus.value;
    (is_longer && free >= OFTEN.value && several > 0.0).then_some((mean, cpus))
}

/// Samples that give a mean.
const MANY: usize = 25;

fn judge(evidence: &Evidence) -> Judgement {
    let waiters = evidence.each(&keys::LOCK_USER_WAITERS)?;
    let busy = evidence.host(&keys::CPU_BUSY_MEAN)?;
    let mut findings = Vec::new();
    let mut most = 0.0_f64;
    for (process, number) in &waiters {
        let queue = is_queue(evidence, process, number);
        let moving = evidence.quantity(&keys::LOCK_USER_MOVING, process).ok();
        let moves = moving.is_some_and(|share| share.value >= MOVING.value);
        let asked = asked(evidence, process);
        let short = is_short_of_cpu(evidence, process);
        most = most.max(number.value);
        let often = number.share(|waiting| waiting >= WAITERS.value);
        let often = often.filter(|share| *share >= OFTEN.value);
        let mean = mean_beside_cpu(evidence, process, number).filter(|_| moves);
        if !(queue || often.is_some() || mean.is_some()) || !(moves || asked.is_some()) || short {
            continue;
        }
        let threads = evidence.quantity(&keys::PROCESS_THREADS, process);
        let of = threads.map_or_else(
            |_| String::new(),
            |threads| format!(" of {:.0}", threads.value),
        );
        let busy_share = say::percent(busy.value);
        let name = called(evidence, process);
        let functions = evidence.words(&keys::LOCK_USER_FUNCTIONS, process).ok();
        let function = evidence.words(&keys::LOCK_USER_FUNCTION, process).ok();
        let place = function.map_or_else(String::new, |function| {
            format!(", mostly in {}", function.value)
        });
        let mut finding = match (queue, mean, often) {
            (false, Some((mean, cpus)), _) => Finding::act(
                process,
                format!(
                    "{name}: {mean:.2}{of} threads wait for one lock of the program on average{place}, and it uses {:.2} CPUs",
                    cpus.value
                ),
            )
            .severity(Grade::Medium)
            .cite(cpus.reading),
            (false, None, Some(often)) => Finding::watch(
                process,
                format!(
                    "{name}: two or more{of} threads wait for one lock of the program in {} of the samples{place} (the CPUs are {busy_share} busy)",
                    say::percent(often)
                ),
            )
            .severity(Grade::Medium),
            _ => Finding::act(
                process,
                format!(
                    "{name}: {:.0}{of} threads wait for one lock of the program{place} (the CPUs are {busy_share} busy)",
                    number.value
                ),
            )
            .severity(Grade::High),
        };
        finding = finding
            .confidence(if moves && is_service(evidence, process.name()) {
                Grade::High
            } else {
                Grade::Medium
            })
            .cite(number.reading)
            .cite(busy.reading);
        for more in [moving, asked].into_iter().flatten() {
            finding = finding.cite(more.reading);
        }
        if let Some(functions) = functions {
            finding = finding.cite(functions.reading);
        }
        if let Ok(sleeps) = evidence.words(&keys::PROCESS_SLEEPS, process) {
            finding = finding.cite(sleeps.reading);
        }
        findings.push(finding.refuted_by("stacks of the threads show them waiting for work"));
    }
    if findings.is_empty() {
        let sentence = format!(
            "no lock delays a service: at most {} waiting for one",
            say::count(most, "thread")
        );
        findings.push(Finding::clear(sentence).cite(busy.reading));
    }
    Ok(findings)
}
