//! `noise-gate`: the machine is not quiet enough for a comparison.
//!
//! No sickness of the service and nothing to turn: a guard. While it speaks, every verdict has to be
//! inconclusive. Measured on a shared two-CPU machine: identical runs between 46,641 and 544,050
//! transactions/s. What the judged process does itself is not noise, so its own CPU time is taken out.

use rungwise_model::check::{Finding, Grade};
use rungwise_model::evidence::{Evidence, Kind, Quantity, Subject};
use rungwise_model::keys;

use crate::{Doc, Judgement, Rule, Threshold, process, say};

const WAITING: Threshold = Threshold {
    name: "share of time in which some task waits for a CPU",
    value: 0.20,
    origin: "own guess; measured: 98 % while identical runs differed by a factor of 11",
};

const STOLEN: Threshold = Threshold {
    name: "stolen share of the CPU time",
    value: 0.02,
    origin: "own guess: as large as the smallest gain worth keeping",
};

const VARIES: Threshold = Threshold {
    name: "standard deviation of the busy share between the parts of the window, over its mean",
    value: 0.05,
    origin: "own guess: with more, the 2 to 7 % of most remedies cannot be seen",
};

const WORKS: Threshold = Threshold {
    name: "mean busy share below which variation means nothing",
    value: 0.10,
    origin: "own guess: an idle machine varies by a large part of next to nothing",
};

const FOREIGN: Threshold = Threshold {
    name: "CPU of others than the judged process, as a share of all CPUs",
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
        &keys::SCHED_THREAD_CPU,
    ],
    thresholds: &[WAITING, STOLEN, VARIES, WORKS, FOREIGN],
    knobs: &[],
    doc: Doc {
        looks_for: "Tasks that wait for a CPU in more than 20 % of the time, stolen time above 2 %, or a busy share that varies \
            by more than 5 % of its mean between the parts of the window.",
        hurts: "Most remedies are worth 2 to 7 %. On a machine that others use, identical runs differ by more, and by chance \
            the worse setting wins.",
        todo: "Compare at another time or on a machine of your own. `rungwise tune` waits for quiet by itself and calls what it \
            cannot decide inconclusive.",
        wrong: "With --pid the process's own load is taken out where its CPU time is known; without it, a service under full \
            load looks like noise.",
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

    let own = own_load(evidence);
    let others_are_quiet = own.is_some_and(|foreign| foreign < FOREIGN.value);
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
    let reasons: Vec<&str> = noise.iter().map(|(reason, _)| reason.as_str()).collect();
    let sentence = format!(
        "the machine is not quiet ({}): a comparison made now can only be inconclusive",
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

/// CPU of others than the judged process as a share of all CPUs; nothing if no process is judged.
fn own_load(evidence: &Evidence) -> Option<f64> {
    // Threads are looked at only of the process that is judged.
    let threads = evidence.each(&keys::SCHED_THREAD_CPU).ok()?;
    let (thread, _) = threads.first()?;
    let process = Subject::new(Kind::Process, process::pid_of(thread));
    let own = evidence.quantity(&keys::SCHED_PROCESS_CPU, &process).ok()?;
    let online = evidence.host(&keys::CPU_ONLINE).ok()?;
    let busy = evidence.host(&keys::CPU_BUSY_MEAN).ok()?;
    Some(busy.value - own.value / online.value.max(1.0))
}
