//! `noise-gate`: the machine is not quiet enough for a comparison.
//!
//! A guard: no problem of the service, and no knob helps. While it fires, every verdict has to be inconclusive.
//! Measured on a shared two-CPU machine: identical runs between 46,641 and 544,050 transactions/s. What services and
//! their clients do is the load, not noise: tasks that wait and a busy share that varies count only where processes
//! without any connection take CPU time as well.

use rungwise_model::check::{Finding, Grade};
use rungwise_model::evidence::{Evidence, Quantity, Subject};
use rungwise_model::keys;

use crate::{Doc, Judgement, Measure, Rule, Threshold, process, say};

const WAITING: Threshold = Threshold {
    name: "share of time in which some task waits for a CPU",
    value: 0.20,
    origin: "own guess; measured: 98 % while identical runs differed by a factor of 11",
};

const STOLEN: Threshold = Threshold {
    name: "steal share of the CPU time",
    value: 0.02,
    origin: "own guess: as large as the smallest gain worth keeping",
};

const VARIES: Threshold = Threshold {
    name: "standard deviation of the busy share between the parts of the window, over its mean",
    value: 0.05,
    origin: "own guess: with more, the 2 to 7 % that most remedies gain cannot be seen",
};

const WORKS: Threshold = Threshold {
    name: "mean busy share below which variation means nothing",
    value: 0.10,
    origin: "own guess: on an idle machine tiny changes are a large share of the mean",
};

const FOREIGN: Threshold = Threshold {
    name: "CPU use of processes without a network connection, as a share of all CPUs",
    value: 0.12,
    origin: "quiet gate of `rungwise tune`",
};

pub(crate) static RULE: Rule = Rule {
    id: "noise-gate",
    topic: "cpu",
    summary: "the machine is not quiet enough to compare two measurements",
    needs: &[
        &keys::CPU_BUSY_MEAN,
        &keys::CPU_ONLINE,
        &keys::CPU_QUIET_VARIATION,
        &keys::CPU_STEAL_MEAN,
        &keys::PSI_CPU_SOME,
        &keys::SCHED_PROCESS_CPU,
        &keys::SCHED_PROCESS_NAME,
        &keys::SCHED_THREAD_CPU,
        &keys::TCP_PROCESS,
        &keys::UDP_PROCESS,
    ],
    thresholds: &[WAITING, STOLEN, VARIES, WORKS, FOREIGN],
    knobs: &[],
    measure: Some(Measure::more(&keys::PSI_CPU_SOME)),
    doc: Doc {
        looks_for: "Steal time above 2 %; or tasks that wait for a CPU in more than 20 % of the time, or a busy share that varies \
            by more than 5 % of its mean, while processes that have no connection take more than 12 % of all CPUs.",
        hurts: "Most remedies gain 2 to 7 %. On a shared machine identical runs differ by more, and the worse setting may win \
            by chance.",
        todo: "Compare at another time or on a machine of your own. `rungwise tune` waits until the machine is quiet and reports \
            what it cannot decide as inconclusive.",
        wrong: "A service that uses only Unix sockets or shared memory counts as another process; name it with --pid. \
            Interrupts count as other processes too.",
        sources: "Measured on a shared machine with two CPUs (Linux 6.18): the same configuration gave 46,641 to 544,050 \
            transactions/s at a load of 14; Documentation/accounting/psi.rst.",
    },
    judge,
};

fn judge(evidence: &Evidence) -> Judgement {
    let waiting = evidence.host(&keys::PSI_CPU_SOME);
    let stolen = evidence.host(&keys::CPU_STEAL_MEAN);
    let varies = evidence.host(&keys::CPU_QUIET_VARIATION);
    let busy = evidence.host(&keys::CPU_BUSY_MEAN).ok();

    let foreign = foreign(evidence);
    let others_are_quiet = foreign
        .as_ref()
        .is_some_and(|foreign| foreign.share < FOREIGN.value);
    let mean = busy.map_or(0.0, |busy| busy.value);
    let mut noise: Vec<(String, Quantity<'_>)> = Vec::new();
    if let Ok(waiting) = waiting
        && waiting.value > WAITING.value
        && !others_are_quiet
    {
        let share = say::percent(waiting.value);
        noise.push((
            format!("some task waited for a CPU in {share} of the time"),
            waiting,
        ));
    }
    if let Ok(stolen) = stolen
        && stolen.value > STOLEN.value
    {
        let share = say::percent(stolen.value);
        noise.push((
            format!("the hypervisor took {share} of the CPU time"),
            stolen,
        ));
    }
    if let Ok(varies) = varies
        && mean > WORKS.value
        && varies.value / mean > VARIES.value
        && !others_are_quiet
    {
        let share = say::percent(varies.value / mean);
        noise.push((
            format!("the busy share varied by {share} of its mean within the window"),
            varies,
        ));
    }
    if noise.is_empty() {
        let (waiting, stolen, varies) = (waiting?, stolen?, varies?);
        let nearest = if others_are_quiet {
            stolen.value / STOLEN.value
        } else {
            (waiting.value / WAITING.value).max(stolen.value / STOLEN.value)
        };
        return Ok(vec![
            Finding::clear("the machine is quiet enough to compare measurements")
                .below(nearest, 1.0)
                .cite(waiting.reading)
                .cite(stolen.reading)
                .cite(varies.reading),
        ]);
    }
    if let Some(foreign) = foreign.filter(|_| !others_are_quiet && !noise.is_empty())
        && let (Some(busy), Ok(online)) = (busy, evidence.host(&keys::CPU_ONLINE))
    {
        let share = say::percent(foreign.share);
        let whole = foreign.share * online.value.max(1.0);
        let (most, cited) = match foreign.largest {
            Some((name, cpus)) if cpus.value >= 0.5 * whole => {
                (format!(", mostly {name} with {:.2} CPUs", cpus.value), cpus)
            }
            // Many small ones, or short-lived ones that are in no list.
            _ => (String::new(), busy),
        };
        let reason = format!("processes without a connection use {share} of the CPUs{most}");
        noise.push((reason, cited));
    }
    let reasons: Vec<&str> = noise.iter().map(|(reason, _)| reason.as_str()).collect();
    let sentence = format!(
        "the machine is not quiet ({}): any comparison made now is inconclusive",
        reasons.join("; ")
    );
    let finding = Finding::watch(&Subject::host(), sentence)
        .confidence(Grade::High)
        .refuted_by("an A/A check (the same configuration against itself) shows less than 2 % between its halves");
    Ok(vec![
        noise.iter().fold(finding, |finding, (_, quantity)| {
            finding.cite(quantity.reading)
        }),
    ])
}

/// CPU use of processes that are neither judged nor at either end of a connection.
struct Foreign<'e> {
    /// Of all CPUs.
    share: f64,
    /// The process with most of it, in CPUs.
    largest: Option<(String, Quantity<'e>)>,
}

/// `None` if the processes cannot be read.
fn foreign(evidence: &Evidence) -> Option<Foreign<'_>> {
    let processes = evidence.each(&keys::SCHED_PROCESS_CPU).ok()?;
    let online = evidence.host(&keys::CPU_ONLINE).ok()?;
    let owners: Vec<&str> = [&keys::TCP_PROCESS, &keys::UDP_PROCESS]
        .into_iter()
        .flat_map(|key| evidence.each_words(key).unwrap_or_default())
        .filter_map(|(_, owner)| process::owner_pid(owner.value))
        .collect();
    let busy = evidence.host(&keys::CPU_BUSY_MEAN).ok()?;
    let mut foreign = Foreign {
        share: busy.value,
        largest: None,
    };
    // Short-lived processes are in no list, so what is known to be load is taken from all that was used.
    for (subject, cpus) in processes {
        if owners.contains(&subject.name()) || process::is_judged(evidence, subject.name()) {
            foreign.share -= cpus.value / online.value.max(1.0);
            continue;
        }
        let most = foreign.largest.as_ref();
        if most.is_none_or(|(_, most)| most.value < cpus.value) {
            foreign.largest = Some((process::called(evidence, subject), cpus));
        }
    }
    Some(foreign)
}
