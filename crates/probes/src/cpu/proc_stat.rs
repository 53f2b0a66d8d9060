//! CPU time of each CPU by state: `/proc/stat`, and the load average.
//!
//! A share is the growth of one field over the growth of all of a CPU's fields, so it needs no clock and is correct for
//! a CPU that came online meanwhile. Source: fs/proc/stat.c, kernel/sched/cputime.c, Linux 6.18.

use std::collections::BTreeMap;

use rungwise_formats::loadavg;
use rungwise_formats::stat::{self, Stat, Ticks};
use rungwise_model::evidence::{Absence, Evidence, Key, Origin, Subject};
use rungwise_model::keys;

use super::{no_rate, topology, unreadable};
use crate::{Cost, Probe, Source, Window};

const STAT: &str = "/proc/stat";
const LOADAVG: &str = "/proc/loadavg";

/// The probe.
pub(crate) static PROBE: Probe = Probe {
    id: "proc-stat",
    summary: "CPU time by state for each CPU, context switches, runnable tasks",
    cost: Cost::Free,
    needs: &[],
    sources: &[
        Source::each(STAT),
        Source::once(LOADAVG),
        Source::once(topology::NODES),
    ],
    yields: &[
        &keys::CPU_BUSY,
        &keys::CPU_BUSY_MEAN,
        &keys::CPU_CONTEXT_SWITCHES,
        &keys::CPU_IOWAIT,
        &keys::CPU_IRQ,
        &keys::CPU_LOAD1,
        &keys::CPU_QUIET_VARIATION,
        &keys::CPU_RUNNABLE,
        &keys::CPU_RUN_QUEUE,
        &keys::CPU_SOFTIRQ,
        &keys::CPU_STEAL,
        &keys::CPU_STEAL_MEAN,
        &keys::CPU_SYSTEM,
        &keys::CPU_USER,
        &keys::SOFTIRQ_NODE_TIME,
    ],
    derive,
    doc: "\
Times are printed in ticks of 1/100 s whatever CONFIG_HZ is, so over a part of a ten-second window a share is exact to \
about 0.3 %. Without CONFIG_IRQ_TIME_ACCOUNTING (most virtual machines, some distributions) softirq is sampled by the \
timer tick, so short bursts between ticks are charged to the interrupted code, and irq is always 0, which counts as \
unknown. Softirqs run by ksoftirqd still count as softirq. User time includes niced tasks and guests. Idle and iowait \
may decrease by some ticks between two samples and then count as unchanged; if any other field decreases, the CPU's \
shares are unknown. The hypervisor reports steal; without its support steal is 0. A container sees all CPUs of its \
host here, unless lxcfs hides them. `procs_running` includes rungwise. Sources: fs/proc/stat.c and \
kernel/sched/cputime.c of Linux 6.18; proc_stat(5).",
};

/// A part of a CPU's time.
type Field = fn(&Ticks) -> u64;

/// The shares of a CPU's time that are keys.
static SHARES: &[(&Key, Field)] = &[
    (&keys::CPU_BUSY, busy),
    (&keys::CPU_IOWAIT, |ticks| ticks.iowait),
    (&keys::CPU_IRQ, |ticks| ticks.irq),
    (&keys::CPU_SOFTIRQ, |ticks| ticks.softirq),
    (&keys::CPU_STEAL, |ticks| ticks.steal),
    (&keys::CPU_SYSTEM, |ticks| ticks.system),
    (&keys::CPU_USER, |ticks| sum(&[ticks.user, ticks.nice])),
];

fn busy(ticks: &Ticks) -> u64 {
    let Ticks {
        user,
        nice,
        system,
        irq,
        softirq,
        ..
    } = *ticks;
    sum(&[user, nice, system, irq, softirq])
}

fn total(ticks: &Ticks) -> u64 {
    sum(&[busy(ticks), ticks.idle, ticks.iowait, ticks.steal])
}

/// An untrusted capture may contain any numbers.
fn sum(ticks: &[u64]) -> u64 {
    ticks.iter().fold(0, |sum, more| sum.saturating_add(*more))
}

fn derive(window: &Window<'_>, evidence: &mut Evidence) {
    load(window, evidence);
    let samples: Vec<Sample<'_>> = match window.texts(STAT) {
        Ok(texts) => texts.into_iter().filter_map(Sample::of).collect(),
        Err(why) => return evidence.absent(PROBE.yields, &why, STAT),
    };
    let Some(last) = samples.last() else {
        return evidence.absent(PROBE.yields, &unreadable(STAT), STAT);
    };
    match last.stat.running {
        Some(running) => {
            let course = samples.iter().filter_map(|sample| sample.stat.running);
            evidence.series(
                &keys::CPU_RUNNABLE,
                Subject::host(),
                running as f64,
                course.map(|running| running as f64).collect(),
                Origin::new(STAT, format!("procs_running {running}")),
            );
        }
        None => evidence.absent(&[&keys::CPU_RUNNABLE], &unreadable(STAT), STAT),
    }
    run_queue(&samples, evidence);
    context_switches(window, evidence);

    let growth: BTreeMap<usize, Growth> = last
        .stat
        .cpus
        .keys()
        .filter_map(|cpu| Some((*cpu, Growth::of(*cpu, &samples)?)))
        .collect();
    if growth.is_empty() {
        let why = no_rate(window, STAT, "no CPU was online over the whole window");
        let without: Vec<&'static Key> = (SHARES.iter().map(|(key, _)| *key))
            .chain([
                &keys::CPU_BUSY_MEAN,
                &keys::CPU_QUIET_VARIATION,
                &keys::CPU_STEAL_MEAN,
                &keys::SOFTIRQ_NODE_TIME,
            ])
            .collect();
        return evidence.absent(&without, &why, STAT);
    }
    // A kernel that does not account for interrupts prints zeros, however many there were.
    let irq_accounted = last.stat.cpus.values().any(|ticks| ticks.irq > 0);
    if !irq_accounted {
        let why = Absence::because("this kernel does not account for time in hard interrupts");
        evidence.absent(&[&keys::CPU_IRQ], &why, STAT);
    }
    for (cpu, growth) in &growth {
        for (key, field) in SHARES {
            if **key == keys::CPU_IRQ && !irq_accounted {
                continue;
            }
            let (whole, parts) = growth.share(*field);
            let origin = Origin::new(STAT, growth.line.clone());
            evidence.series(key, Subject::cpu(*cpu), whole, parts, origin);
        }
    }
    means(&growth, evidence);
    node_time(window, &growth, evidence);
}

/// Runnable tasks per CPU, without the thread that reads the file.
fn run_queue(samples: &[Sample<'_>], evidence: &mut Evidence) {
    let key = &keys::CPU_RUN_QUEUE;
    let each = samples.iter().filter_map(|sample| {
        let running = sample.stat.running?.saturating_sub(1);
        let cpus = sample.stat.cpus.len();
        (cpus > 0).then(|| running as f64 / cpus as f64)
    });
    let each: Vec<f64> = each.collect();
    let Some(last) = each.last().copied() else {
        return evidence.absent(&[key], &unreadable(STAT), STAT);
    };
    let shown: Vec<String> = each.iter().map(|tasks| format!("{tasks:.2}")).collect();
    let line = format!(
        "procs_running per CPU, without rungwise: {}",
        shown.join(", ")
    );
    let origin = Origin::new(STAT, line);
    evidence.series(key, Subject::host(), last, each, origin);
}

/// One sample of the file.
struct Sample<'a> {
    text: &'a str,
    stat: Stat,
}

impl<'a> Sample<'a> {
    fn of((_, text): (f64, &'a str)) -> Option<Self> {
        let stat = stat::parse(text)?;
        Some(Self { text, stat })
    }

    fn line(&self, cpu: usize) -> &'a str {
        let name = format!("cpu{cpu} ");
        let found = self.text.lines().find(|line| line.starts_with(&name));
        found.unwrap_or_default()
    }
}

/// What one CPU's fields grew by, over the window and in each part of it.
struct Growth {
    whole: Ticks,
    parts: Vec<Ticks>,
    line: String,
}

impl Growth {
    /// `None` if the CPU was not online in each sample, or its time is unknown.
    fn of(cpu: usize, samples: &[Sample<'_>]) -> Option<Self> {
        let (first, last) = (samples.first()?, samples.last()?);
        let course: Vec<&Ticks> = samples
            .iter()
            .map(|sample| sample.stat.cpus.get(&cpu))
            .collect::<Option<_>>()?;
        let whole = grown(course.first()?, course.last()?)?;
        let parts = course.windows(2).map(|two| grown(two[0], two[1]));
        Some(Self {
            whole,
            parts: parts.collect::<Option<_>>()?,
            line: format!("begin {}, end {}", first.line(cpu), last.line(cpu)),
        })
    }

    /// A field as a share of all, over the window and per part.
    fn share(&self, field: Field) -> (f64, Vec<f64>) {
        let share = |ticks: &Ticks| field(ticks) as f64 / total(ticks) as f64;
        (share(&self.whole), self.parts.iter().map(share).collect())
    }
}

/// `None` if a field that only grows went backwards, or none grew.
fn grown(from: &Ticks, to: &Ticks) -> Option<Ticks> {
    let grown = Ticks {
        user: to.user.checked_sub(from.user)?,
        nice: to.nice.checked_sub(from.nice)?,
        system: to.system.checked_sub(from.system)?,
        idle: to.idle.saturating_sub(from.idle),
        iowait: to.iowait.saturating_sub(from.iowait),
        irq: to.irq.checked_sub(from.irq)?,
        softirq: to.softirq.checked_sub(from.softirq)?,
        steal: to.steal.checked_sub(from.steal)?,
    };
    (total(&grown) > 0).then_some(grown)
}

fn load(window: &Window<'_>, evidence: &mut Evidence) {
    let read = window.text(LOADAVG).and_then(|text| {
        let load = loadavg::parse(text).ok_or_else(|| unreadable(LOADAVG))?;
        Ok((load, Origin::new(LOADAVG, text.trim())))
    });
    match read {
        Ok((load, origin)) => evidence.number(&keys::CPU_LOAD1, Subject::host(), load, origin),
        Err(why) => evidence.absent(&[&keys::CPU_LOAD1], &why, LOADAVG),
    }
}

fn context_switches(window: &Window<'_>, evidence: &mut Evidence) {
    let rates = window.rates(STAT, |text| {
        let switches = stat::parse(text).and_then(|stat| stat.context_switches);
        (switches.map(|switches| ((), switches as f64)))
            .into_iter()
            .collect()
    });
    match rates.map(|rates| rates.into_values().next()) {
        Ok(Some(rate)) => {
            let origin = Origin::new(STAT, format!("ctxt {}", rate.line()));
            let key = &keys::CPU_CONTEXT_SWITCHES;
            evidence.series(key, Subject::host(), rate.per_s, rate.series, origin);
        }
        Ok(None) => {
            evidence.absent(&[&keys::CPU_CONTEXT_SWITCHES], &unreadable(STAT), STAT);
        }
        Err(why) => evidence.absent(&[&keys::CPU_CONTEXT_SWITCHES], &why, STAT),
    }
}

/// Means over all CPUs, and their variation.
fn means(growth: &BTreeMap<usize, Growth>, evidence: &mut Evidence) {
    let all: Vec<&Growth> = growth.values().collect();
    let line = format!("mean of {} CPUs", all.len());
    let (busy, busy_parts) = mean(&all, busy);
    let (steal, steal_parts) = mean(&all, |ticks| ticks.steal);
    let key = &keys::CPU_QUIET_VARIATION;
    if let Some(deviation) = deviation(&busy_parts) {
        let shown: Vec<String> = (busy_parts.iter())
            .map(|part| format!("{:.1} %", part * 100.0))
            .collect();
        let line = format!("busy {}", shown.join(", "));
        evidence.number(key, Subject::host(), deviation, Origin::new(STAT, line));
    } else {
        let why = Absence::because("the window has one part only");
        evidence.absent(&[key], &why, STAT);
    }
    for (key, whole, parts) in [
        (&keys::CPU_BUSY_MEAN, busy, busy_parts),
        (&keys::CPU_STEAL_MEAN, steal, steal_parts),
    ] {
        let origin = Origin::new(STAT, line.clone());
        evidence.series(key, Subject::host(), whole, parts, origin);
    }
}

/// Mean time in softirqs of each node's CPUs.
fn node_time(window: &Window<'_>, growth: &BTreeMap<usize, Growth>, evidence: &mut Evidence) {
    let nodes = match topology::nodes(window) {
        Ok(nodes) => nodes,
        Err(why) => return evidence.absent(&[&keys::SOFTIRQ_NODE_TIME], &why, topology::NODES),
    };
    for (node, cpus) in nodes {
        let of_node: Vec<&Growth> = cpus.iter().filter_map(|cpu| growth.get(cpu)).collect();
        if of_node.is_empty() {
            continue;
        }
        let (whole, parts) = mean(&of_node, |ticks| ticks.softirq);
        let line = format!("mean of {} CPUs of node {node}", of_node.len());
        let origin = Origin::new(STAT, line);
        let key = &keys::SOFTIRQ_NODE_TIME;
        evidence.series(key, Subject::node(node), whole, parts, origin);
    }
}

/// Mean share over CPUs, of the window and of each part.
fn mean(growth: &[&Growth], field: Field) -> (f64, Vec<f64>) {
    let count = growth.len() as f64;
    let parts = growth.first().map_or(0, |first| first.parts.len());
    let (mut whole, mut course) = (0.0, vec![0.0; parts]);
    for growth in growth {
        let (share, of_parts) = growth.share(field);
        whole += share / count;
        for (sum, share) in course.iter_mut().zip(of_parts) {
            *sum += share / count;
        }
    }
    (whole, course)
}

/// Standard deviation of a sample; `None` below two values.
fn deviation(values: &[f64]) -> Option<f64> {
    if values.len() < 2 {
        return None;
    }
    let mean = values.iter().sum::<f64>() / values.len() as f64;
    let squares: f64 = values.iter().map(|value| (value - mean).powi(2)).sum();
    Some((squares / (values.len() - 1) as f64).sqrt())
}
