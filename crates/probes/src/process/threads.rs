//! `/proc/PID/task/*`: the threads of the judged process, their CPUs, CPU waits and migrations.
//!
//! Source: fs/proc/array.c, fs/proc/base.c, kernel/sched/debug.c, Linux 6.18.

use std::collections::BTreeSet;

use rungwise_formats::{cpulist, fields, softirqs, task};
use rungwise_model::evidence::{Absence, Evidence, Kind, Origin, Subject};
use rungwise_model::keys;

use super::{Ran, TICK, Used, chosen, no_counters, run_rates, stat_rates, unnamed};
use crate::capture::Raw;
use crate::{Cost, Probe, Source, When, Window, enter};

const STATS: &str = "/proc/{family}/task/*/stat";
const SCHEDSTATS: &str = "/proc/{family}/task/*/schedstat";
const SCHEDS: &str = "/proc/{family}/task/*/sched";
const STATUSES: &str = "/proc/{family}/task/*/status";
const SOFTIRQS: &str = "/proc/softirqs";

/// A CPU handles network receive work if it has more than this share of it, as in `softirq.net_rx_cpus`.
const TAKES: f64 = 0.05;

/// Below this many `NET_RX` softirqs per second there is too little traffic to compare with; own guess.
const TRAFFIC: f64 = 10.0;

/// The probe.
pub(crate) static PROBE: Probe = Probe {
    id: "proc-pid-task",
    summary: "threads of the judged process and its children: CPU time, run delay, migrations, CPUs",
    cost: Cost::Cheap,
    needs: &[],
    sources: &[
        Source::begin(STATS),
        Source::running(STATS, When::Each),
        Source::running(STATS, When::Once),
        Source::each(SCHEDSTATS),
        Source::running(SCHEDS, When::Each),
        Source::running(STATUSES, When::Once),
        Source::each(SOFTIRQS),
    ],
    yields: &[
        &keys::SCHED_ALLOWED,
        &keys::SCHED_LAST_CPU,
        &keys::SCHED_MIGRATIONS,
        &keys::SCHED_NAME,
        &keys::SCHED_PROCESS_RUN_DELAY,
        &keys::SCHED_REMOTE_SOFTIRQ,
        &keys::SCHED_RUN_DELAY,
        &keys::SCHED_THREAD_CPU,
    ],
    derive,
    doc: "\
All descendants belong to the judged process, such as the workers of a master. Run time and run delay are nanoseconds \
from `schedstat` (if a kernel has none or fills it with zeros, run time is in ticks of 10 ms and run delay is absent). \
Run delay is time runnable without a CPU, including throttling by a quota. Migrations come from `sched` (before Linux \
6.15 only with CONFIG_SCHED_DEBUG), read whenever a thread has run, so their rate starts at the second of these \
samples. The CPU of a thread is known only in the four full samples: a share of remote samples is an indication, not a \
count. Threads that did not run in the window have no CPU, and their affinity is not read. Threads that started or \
ended within the window have no rates. Sources: fs/proc/array.c, fs/proc/base.c, kernel/sched/debug.c, \
kernel/sched/stats.h of Linux 6.18.",
};

struct Thread<'a> {
    tid: &'a str,
    folder: String,
    subject: Subject,
    stat: task::Stat<'a>,
}

fn derive(window: &Window<'_>, evidence: &mut Evidence) {
    let Some(process) = &window.capture().process else {
        return evidence.absent(PROBE.yields, &unnamed(), "/proc/PID/task");
    };
    let receivers = receivers(window);
    // The family is listed by `stat` of all processes; an older capture has the judged process only.
    let mut family = chosen::family(window);
    family.insert(process.pid);
    let mut found = false;
    for pid in family {
        found |= of_process(window, evidence, pid, &receivers);
    }
    if !found {
        let why = Absence::because(format!("process {} has ended", process.pid));
        evidence.absent(PROBE.yields, &why, &format!("/proc/{}/task", process.pid));
    }
}

/// Adds the keys of the threads of one process; returns whether it has any.
fn of_process(
    window: &Window<'_>,
    evidence: &mut Evidence,
    pid: u32,
    receivers: &Result<BTreeSet<usize>, Absence>,
) -> bool {
    let threads = threads(window, pid);
    if threads.is_empty() {
        return false;
    }
    let counts = counts_migrations(window, pid);
    // Of the threads that tell; why not, where none does.
    let mut total = Err(no_counters(window));
    for thread in &threads {
        let ran = run_rates(window, &thread.path("schedstat"));
        let still = matches!(&ran, Ok(ran) if ran.ran.delta + ran.waited.delta <= 0.0);
        settings(window, evidence, thread, still);
        let busy = time(window, evidence, thread, &ran);
        migrations(window, evidence, thread, still, counts);
        near(window, evidence, thread, busy, receivers);
        total = match (total, ran) {
            (Ok((on, waited)), Ok(Ran { ran, waited: more })) => {
                Ok((on + ran.delta, waited + more.delta))
            }
            (Err(_), Ok(Ran { ran, waited })) => Ok((ran.delta, waited.delta)),
            (Err(_), Err(why)) => Err(why),
            (total, Err(_)) => total,
        };
    }
    let value = match &total {
        Err(why) => Err(why.clone()),
        Ok((on, waited)) if on + waited > 0.0 => Ok(waited / (on + waited)),
        Ok(_) => Err(Absence::because("none of its threads ran in the window")),
    };
    let line = total.map_or_else(
        |_| String::new(),
        |(on, waited)| {
            format!(
                "of {} threads: ran ns {on}, waited ns {waited}",
                threads.len()
            )
        },
    );
    let subject = Subject::new(Kind::Process, pid);
    let origin = Origin::new(of(SCHEDSTATS, pid), line);
    enter::number(
        evidence,
        &keys::SCHED_PROCESS_RUN_DELAY,
        subject,
        value,
        origin,
    );
    true
}

/// The threads of the last full sample. Of those that did not run nothing else is read: their `stat` of the first
/// sample is still valid.
fn threads<'a>(window: &Window<'a>, pid: u32) -> Vec<Thread<'a>> {
    let there = [STATS, SCHEDSTATS].map(|pattern| window.matching(&of(pattern, pid)));
    let tids: BTreeSet<&str> = there
        .iter()
        .flatten()
        .filter_map(|(_, stars)| stars.first().copied())
        .collect();
    tids.into_iter()
        .filter_map(|tid| {
            let folder = format!("/proc/{pid}/task/{tid}");
            let (_, text) = window.texts(&format!("{folder}/stat")).ok()?.pop()?;
            Some(Thread {
                tid,
                folder,
                subject: Subject::new(Kind::Thread, format!("{pid}:{tid}")),
                stat: task::stat(text)?,
            })
        })
        .collect()
}

impl Thread<'_> {
    fn path(&self, file: &str) -> String {
        format!("{}/{file}", self.folder)
    }
}

fn of(pattern: &str, pid: u32) -> String {
    pattern.replace("{family}", &pid.to_string())
}

/// Some thread reports its migrations, so the kernel counts them.
fn counts_migrations(window: &Window<'_>, pid: u32) -> bool {
    let folder = format!("/proc/{pid}/task/");
    window.moments().iter().any(|moment| {
        let files = moment.files.range(folder.clone()..);
        files
            .take_while(|(path, _)| path.starts_with(&folder))
            .any(|(path, raw)| path.ends_with("/sched") && matches!(raw, Raw::Text(_)))
    })
}

/// Its name, its affinity, its last CPU.
fn settings(window: &Window<'_>, evidence: &mut Evidence, thread: &Thread<'_>, still: bool) {
    const FIELD: &str = "Cpus_allowed_list";
    let subject = || thread.subject.clone();
    let stat = thread.path("stat");
    let (name, last) = (thread.stat.name, thread.stat.last_cpu);
    let origin = Origin::new(&stat, format!("{} ({name})", thread.tid));
    evidence.text(&keys::SCHED_NAME, subject(), name, origin);
    let origin = Origin::new(&stat, format!("processor {last} (column 39)"));
    evidence.number(&keys::SCHED_LAST_CPU, subject(), last as f64, origin);

    let path = thread.path("status");
    let text = window.text(&path);
    let allowed = match text.clone() {
        Ok(text) => fields::value(text, FIELD)
            .ok_or_else(|| Absence::because(format!("{path} lacks {FIELD}"))),
        Err(_) if still => Err(Absence::because(
            "it did not run in the window, so its affinity was not read",
        )),
        Err(why) => Err(why),
    };
    let line = text.ok().and_then(|text| fields::line(text, FIELD));
    let origin = Origin::new(path.clone(), line.unwrap_or_default());
    enter::text(evidence, &keys::SCHED_ALLOWED, subject(), allowed, origin);
}

/// CPU time and run delay; whether it ran at all.
fn time(
    window: &Window<'_>,
    evidence: &mut Evidence,
    thread: &Thread<'_>,
    ran: &Result<Ran, Absence>,
) -> bool {
    let subject = || thread.subject.clone();
    let (cpu, delay) = (&keys::SCHED_THREAD_CPU, &keys::SCHED_RUN_DELAY);
    let path = thread.path("schedstat");
    let why = match ran {
        Ok(Ran { ran, waited }) => {
            enter::share(evidence, cpu, subject(), (ran, 1e-9), (&path, "ran ns"));
            let name = "waited ns";
            enter::share(evidence, delay, subject(), (waited, 1e-9), (&path, name));
            return ran.delta > 0.0;
        }
        Err(why) => why,
    };
    let origin = Origin::new(path, "");
    enter::absent(evidence, delay, subject(), why.clone(), origin);
    let path = thread.path("stat");
    if let Some(Used { ticks, .. }) = stat_rates(window, &path) {
        let name = "utime + stime, ticks";
        enter::share(evidence, cpu, subject(), (&ticks, TICK), (&path, name));
        ticks.delta > 0.0
    } else {
        let origin = Origin::new(path, "");
        enter::absent(evidence, cpu, subject(), no_counters(window), origin);
        false
    }
}

/// Migrations. A thread that did not run has none; `counts`: the kernel counts them at all.
fn migrations(
    window: &Window<'_>,
    evidence: &mut Evidence,
    thread: &Thread<'_>,
    still: bool,
    counts: bool,
) {
    const FIELD: &str = "se.nr_migrations";
    let path = thread.path("sched");
    let subject = thread.subject.clone();
    let rate = window.rates(&path, |text| {
        fields::number(text, FIELD)
            .map(|number| ((), number as f64))
            .into_iter()
            .collect()
    });
    let key = &keys::SCHED_MIGRATIONS;
    if let Some(rate) = rate.ok().and_then(|mut rates| rates.remove(&())) {
        enter::counter(evidence, key, subject, (&rate, 1.0), (&path, FIELD));
    } else if still {
        let origin = Origin::new(thread.path("schedstat"), "it did not run in the window");
        evidence.number(key, subject, 0.0, origin);
    } else {
        let why = match window.texts(&path) {
            Ok(texts) if texts.len() == 1 && window.moments().len() > 2 => Absence::because(
                "it ran in only one part of the window, so its counter was read once",
            ),
            Ok(_) => no_counters(window),
            Err(_) if counts => Absence::because(
                "it ran in fewer than two parts of the window, so its counter was not read",
            ),
            Err(_) => {
                Absence::because("this kernel has no /proc/PID/task/TID/sched (CONFIG_SCHED_DEBUG)")
            }
        };
        enter::absent(evidence, key, subject, why, Origin::new(path, ""));
    }
}

/// The share of full samples in which it was on a CPU without network receive work.
fn near(
    window: &Window<'_>,
    evidence: &mut Evidence,
    thread: &Thread<'_>,
    busy: bool,
    receivers: &Result<BTreeSet<usize>, Absence>,
) {
    let path = thread.path("stat");
    let subject = thread.subject.clone();
    let seen: Vec<usize> = window
        .texts(&path)
        .unwrap_or_default()
        .into_iter()
        .filter_map(|(_, text)| Some(task::stat(text)?.last_cpu))
        .collect();
    let value = match receivers {
        Err(why) => Err(why.clone()),
        Ok(_) if !busy => Err(Absence::because("the thread did not run in the window")),
        Ok(receivers) => {
            let remote = seen.iter().filter(|cpu| !receivers.contains(cpu)).count();
            Ok(remote as f64 / seen.len().max(1) as f64)
        }
    };
    let line = receivers.as_ref().map_or_else(
        |_| String::new(),
        |cpus| {
            let cpus = cpulist::format(cpus);
            format!("seen on CPUs {seen:?}, NET_RX on CPUs {cpus}")
        },
    );
    let origin = Origin::new(format!("{path}, {SOFTIRQS}"), line);
    enter::number(
        evidence,
        &keys::SCHED_REMOTE_SOFTIRQ,
        subject,
        value,
        origin,
    );
}

/// CPUs that handle network receive work.
fn receivers(window: &Window<'_>) -> Result<BTreeSet<usize>, Absence> {
    let rates = window.rates(SOFTIRQS, |text| {
        softirqs::parse(text, "NET_RX")
            .unwrap_or_default()
            .into_iter()
            .map(|(cpu, count)| (cpu, count as f64))
            .collect()
    })?;
    let total: f64 = rates.values().map(|rate| rate.per_s).sum();
    if total < TRAFFIC {
        return Err(Absence::because(format!(
            "there was hardly any network receive work in the window ({total:.1}/s)"
        )));
    }
    Ok(rates
        .into_iter()
        .filter(|(_, rate)| rate.per_s > TAKES * total)
        .map(|(cpu, _)| cpu)
        .collect())
}
