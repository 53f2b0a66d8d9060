//! `runq-delay`: threads are ready to run and wait for a CPU.
//!
//! Saturation as the USE method defines it. Per thread from /proc/PID/task/TID/schedstat (field 2), for the
//! machine from pressure stall information (`some` of /proc/pressure/cpu). The number alone has no remedy, so
//! the rule looks for the cause: full CPUs, steal time, a quota, or poor placement.

use rungwise_model::check::{Finding, Grade, Outcome};
use rungwise_model::evidence::{Evidence, Kind, Quantity, Subject};
use rungwise_model::keys;

use super::group;
use crate::{Doc, Judgement, Measure, Rule, Threshold, process, residual, say};

const WAITS: Threshold = Threshold {
    name: "share of the window spent waiting for a CPU",
    value: 0.10,
    origin: "own guess, after the USE method: any lasting saturation is worth attention",
};

const FULL: Threshold = Threshold {
    name: "mean busy share of the CPUs above which they are full",
    value: 0.85,
    origin: "own guess; queueing delay rises steeply from there on",
};

const FREE: Threshold = Threshold {
    name: "share of the window spent waiting, from which on there is something to act on although other CPUs are free",
    value: 0.20,
    origin: "measured by `cargo xtask faults --random 40 --seed 31006 --layer host`: a healthy nginx waited in 11 % of the window, with p99 of 0.3 ms",
};

const STOLEN: Threshold = Threshold {
    name: "steal share above which the hypervisor is the cause",
    value: 0.05,
    origin: "rule steal, warning threshold",
};

const THROTTLED: Threshold = Threshold {
    name: "throttled share above which a quota is the cause",
    value: 0.01,
    origin: "rule cfs-throttled",
};

const SOFTIRQ: Threshold = Threshold {
    name: "softirq share of the thread's CPU above which packets are the cause",
    value: 0.3,
    origin: "own guess: a reader there loses a third of its CPU",
};

pub(crate) static RULE: Rule = Rule {
    id: "runq-delay",
    topic: "cpu",
    summary: "threads wait for a CPU",
    needs: &[
        &keys::CGROUP_OF_PROCESS,
        &keys::CGROUP_OWN,
        &keys::CGROUP_THROTTLED,
        &keys::CPU_BUSY,
        &keys::CPU_BUSY_MEAN,
        &keys::CPU_SOFTIRQ,
        &keys::CPU_STEAL_MEAN,
        &keys::PROCESS_TRACER,
        &keys::PSI_CPU_SOME,
        &keys::SCHED_LAST_CPU,
        &keys::SCHED_NAME,
        &keys::SCHED_PROCESS_CPU,
        &keys::SCHED_PROCESS_NAME,
        &keys::SCHED_RUN_DELAY,
    ],
    thresholds: &[WAITS, FULL, FREE, STOLEN, THROTTLED, SOFTIRQ],
    knobs: &["cpu.pin_threads", "net.irq_affinity", "virt.vcpu_pin"],
    measure: Some(Measure::more(&keys::SCHED_RUN_DELAY)),
    doc: Doc {
        looks_for: "A thread of the judged process that waited for a CPU in more than 10 % of every part of the window. \
            Up to 20 % it is only watched where other CPUs are free. Without a process: some task of the machine waiting in more than 10 % of the time.",
        hurts: "The wait is added to every reply, and a thread that holds a lock while it waits makes others wait too.",
        todo: "Depends on the cause, which the finding names. Full CPUs: less work or more CPUs, no setting helps. Steal time: \
            the hypervisor's placement (virt.vcpu_pin). A quota: see cfs-throttled. Idle CPUs: a mask or a weight that keeps the \
            threads off them (affinity-narrow, cpu-weight-low), or placement: pin the threads (cpu.pin_threads), away from CPUs \
            busy with packets (net.irq_affinity).",
        wrong: "On a shared machine others cause the wait, and it passes: see noise-gate. A batch job that waits does no \
            harm. Without --pid it is unknown which process waits.",
        sources: "Brendan Gregg, Systems Performance, USE method; Documentation/accounting/psi.rst; \
            Documentation/scheduler/sched-stats.rst.",
    },
    judge,
};

fn judge(evidence: &Evidence) -> Judgement {
    let Ok(threads) = evidence.each(&keys::SCHED_RUN_DELAY) else {
        return of_machine(evidence);
    };
    let waits = |delay: &Quantity<'_>| delay.lasts(|share| share > WAITS.value);
    let worst = threads.iter().max_by(|(_, a), (_, b)| {
        (waits(a), a.value)
            .partial_cmp(&(waits(b), b.value))
            .unwrap_or(std::cmp::Ordering::Equal)
    });
    let Some((thread, delay)) = worst else {
        return Err(evidence.missing(&keys::SCHED_RUN_DELAY, &Subject::host()));
    };
    if !waits(delay) {
        let sentence = format!(
            "no thread waits long for a CPU: the longest wait is that of {}, {} of the window",
            process::named(thread, evidence),
            say::percent(delay.value)
        );
        let clear = Finding::clear(sentence)
            .below(delay.value, WAITS.value)
            .cite(delay.reading);
        return Ok(vec![clear]);
    }
    let number = threads.iter().filter(|(_, delay)| waits(delay)).count();
    let who = format!(
        "{} of {} wait for a CPU, {} for {} of the window",
        number,
        say::count(threads.len() as f64, "thread"),
        process::named(thread, evidence),
        say::percent(delay.value)
    );
    let finding = cause(evidence, thread, &who, Some(thread))?;
    Ok(vec![
        finding
            .severity(if delay.value > 0.3 {
                Grade::High
            } else {
                Grade::Medium
            })
            .cite(delay.reading)
            .refuted_by("the wait stays when the threads have idle CPUs to themselves"),
    ])
}

/// Without threads: the pressure of the whole machine.
fn of_machine(evidence: &Evidence) -> Judgement {
    let some = evidence.host(&keys::PSI_CPU_SOME)?;
    let share = say::percent(some.value);
    if some.value <= WAITS.value {
        let sentence = format!("some task waited for a CPU in {share} of the time");
        let clear = Finding::clear(sentence)
            .below(some.value, WAITS.value)
            .cite(some.reading);
        return Ok(vec![clear]);
    }
    let who = format!("some task waited for a CPU in {share} of the time");
    let mut finding = cause(evidence, &Subject::host(), &who, None)?;
    // It is unknown whether the tasks that wait matter.
    finding.outcome = Outcome::Watch;
    Ok(vec![
        finding
            .severity(Grade::Low)
            .confidence(Grade::Low)
            .cite(some.reading)
            .refuted_by("`rungwise check --pid` of the service shows no thread that waits"),
    ])
}

/// The finding with the cause of the wait and its remedy.
fn cause(
    evidence: &Evidence,
    subject: &Subject,
    who: &str,
    thread: Option<&Subject>,
) -> Result<Finding, rungwise_model::evidence::Missing> {
    let own = thread.and_then(|thread| group::of_process(evidence, process::pid_of(thread)));
    let holds = |group: &str| own.is_none_or(|own| group::holds(group, own));
    if let Some((group, share)) = group::throttled(evidence, THROTTLED.value, holds) {
        let sentence = format!(
            "{who}; {} is throttled by its quota in {} of its periods",
            group::named(group, evidence),
            say::percent(share.value)
        );
        return Ok(Finding::watch(subject, sentence).cite(share.reading));
    }
    if let Ok(steal) = evidence.host(&keys::CPU_STEAL_MEAN)
        && steal.value > STOLEN.value
    {
        let sentence = format!(
            "{who}; the hypervisor took {} of the CPU time",
            say::percent(steal.value)
        );
        return Ok(Finding::act(subject, sentence)
            .cite(steal.reading)
            .consider("virt.vcpu_pin"));
    }
    let tracer = thread.and_then(|thread| {
        let process = Subject::new(Kind::Process, process::pid_of(thread));
        let tracer = evidence.words(&keys::PROCESS_TRACER, &process).ok()?;
        (!tracer.value.is_empty()).then_some(tracer)
    });
    if let Some(tracer) = tracer {
        let sentence = format!(
            "{who}; {} traces the process, which waits at each system call",
            tracer.value
        );
        return Ok(Finding::watch(subject, sentence).cite(tracer.reading));
    }
    let busy = evidence.host(&keys::CPU_BUSY_MEAN)?;
    let mean = say::percent(busy.value);
    if busy.value > FULL.value {
        let sentence = format!(
            "{who}; the CPUs are full ({mean}, {}), so no placement helps",
            residual::busiest(evidence)
        );
        return Ok(Finding::watch(subject, sentence)
            .confidence(Grade::High)
            .cite(busy.reading));
    }
    let sentence = format!("{who}, although the CPUs are {mean} busy on average");
    let delay = thread.and_then(|thread| evidence.quantity(&keys::SCHED_RUN_DELAY, thread).ok());
    let mut finding = if delay.is_some_and(|delay| delay.value < FREE.value) {
        Finding::watch(subject, sentence)
    } else {
        Finding::act(subject, sentence)
    };
    finding = finding.cite(busy.reading);
    let softirq = thread
        .and_then(|thread| evidence.quantity(&keys::SCHED_LAST_CPU, thread).ok())
        .and_then(|cpu| {
            let cpu = Subject::cpu(cpu.value as usize);
            evidence.quantity(&keys::CPU_SOFTIRQ, &cpu).ok()
        });
    if let Some(softirq) = softirq.filter(|share| share.value > SOFTIRQ.value) {
        finding = finding.cite(softirq.reading).consider("net.irq_affinity");
    }
    // Which CPUs have room for whom is unknown, and a thread that is confined to a full CPU stays there when pinned.
    Ok(finding.consider("cpu.pin_threads"))
}
