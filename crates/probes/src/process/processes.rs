//! `/proc/PID/{stat,status,schedstat}` of all processes: CPU, memory and swap use, and major faults.
//!
//! `stat` of a process counts all its threads, `schedstat` only the first: run delay of a process with several
//! threads is known only where they are all read (`proc-pid-task`). Source: fs/proc/array.c, fs/proc/base.c,
//! Linux 6.18.

use std::collections::BTreeMap;

use rungwise_formats::{fields, task};
use rungwise_model::evidence::{Absence, Evidence, Kind, Origin, Subject};
use rungwise_model::keys;

use super::{TICK, Used, chosen, no_counters, run_rates, stat_rates};
use crate::{Cost, Probe, Source, Window, enter};

pub(crate) const STATS: &str = "/proc/*/stat";
pub(super) const STATUSES: &str = "/proc/*/status";
pub(super) const SCHEDSTATS: &str = "/proc/*/schedstat";

/// Number of processes named per resource: enough for a page.
const MOST: usize = 20;

/// The probe.
pub(crate) static PROBE: Probe = Probe {
    id: "proc-pid",
    summary: "the processes that use most CPU, memory and swap, and the judged one",
    cost: Cost::Cheap,
    needs: &[],
    sources: &[
        Source::each(STATS),
        Source::ends(SCHEDSTATS),
        Source::once(STATUSES),
    ],
    yields: &[
        &keys::MEMORY_MAJOR_FAULTS,
        &keys::MEMORY_PROCESS_GROWTH,
        &keys::MEMORY_PROCESS_RSS,
        &keys::MEMORY_PROCESS_SWAP,
        &keys::SCHED_PROCESS_CPU,
        &keys::SCHED_PROCESS_NAME,
        &keys::SCHED_PROCESS_RUN_DELAY,
    ],
    derive,
    doc: "\
The 20 processes with most CPU time, most major faults, most memory and most swap, and the judged one. CPU time is \
counted in ticks of 10 ms, including all threads but not exited children. Growth of memory is that of `rss` in `stat`, which the \
kernel brings up to date with a delay of some pages per thread. Run delay comes from `schedstat`, which for \
a process is that of its *first thread*: it is reported here only for processes with one thread; pass a process to \
read all its threads. A process that started or ended within the window is omitted; so are processes hidden by \
`hidepid`. Sources: fs/proc/array.c, fs/proc/base.c of Linux 6.18.",
};

struct Process<'a> {
    pid: u32,
    judged: bool,
    name: &'a str,
    threads: u64,
    used: Option<Used>,
    rss: Option<u64>,
    swap: Option<u64>,
}

fn derive(window: &Window<'_>, evidence: &mut Evidence) {
    let processes = processes(window);
    if processes.is_empty() {
        let why = window.text(STATS).err();
        let why = why.unwrap_or_else(|| Absence::because("no process can be seen"));
        return evidence.absent(PROBE.yields, &why, STATS);
    }
    let named: BTreeMap<u32, &Process<'_>> = [
        |process: &Process<'_>| process.used.as_ref().map(|used| used.ticks.delta),
        |process: &Process<'_>| process.used.as_ref().map(|used| used.faults.delta),
        |process: &Process<'_>| process.rss.map(|bytes| bytes as f64),
        |process: &Process<'_>| process.swap.map(|bytes| bytes as f64),
    ]
    .into_iter()
    .flat_map(|amount| largest(&processes, amount))
    .map(|process| (process.pid, process))
    .collect();
    for process in named.values() {
        tell(window, evidence, process);
    }
    if named.is_empty() {
        let why = Absence::because("no visible process used CPU or memory");
        evidence.absent(PROBE.yields, &why, STATS);
    }
    if window.moments().len() < 2 {
        let rates = [
            &keys::MEMORY_MAJOR_FAULTS,
            &keys::MEMORY_PROCESS_GROWTH,
            &keys::SCHED_PROCESS_CPU,
            &keys::SCHED_PROCESS_RUN_DELAY,
        ];
        evidence.absent(&rates, &no_counters(window), STATS);
    }
}

/// All that is known of one process.
fn tell(window: &Window<'_>, evidence: &mut Evidence, process: &Process<'_>) {
    let subject = || Subject::new(Kind::Process, process.pid);
    let path = |file: &str| format!("/proc/{}/{file}", process.pid);

    let origin = Origin::new(path("stat"), format!("{} ({})", process.pid, process.name));
    evidence.text(&keys::SCHED_PROCESS_NAME, subject(), process.name, origin);
    match &process.used {
        Some(Used { ticks, faults }) => {
            let file = path("stat");
            let (cpu, major) = (&keys::SCHED_PROCESS_CPU, &keys::MEMORY_MAJOR_FAULTS);
            let name = "utime + stime, ticks";
            enter::counter(evidence, cpu, subject(), (ticks, TICK), (&file, name));
            enter::counter(evidence, major, subject(), (faults, 1.0), (&file, "majflt"));
        }
        None => {
            for key in [&keys::SCHED_PROCESS_CPU, &keys::MEMORY_MAJOR_FAULTS] {
                let origin = Origin::new(path("stat"), "");
                enter::absent(evidence, key, subject(), no_counters(window), origin);
            }
        }
    }
    record_growth(window, evidence, process);
    let file = path("status");
    let status = window.text(&file);
    for (key, field, bytes) in [
        (&keys::MEMORY_PROCESS_RSS, "VmRSS", process.rss),
        (&keys::MEMORY_PROCESS_SWAP, "VmSwap", process.swap),
    ] {
        let value = match (&status, bytes) {
            (_, Some(bytes)) => Ok(bytes as f64),
            (Err(why), None) => Err(why.clone()),
            (Ok(_), None) => Err(Absence::because("a kernel thread has no memory of its own")),
        };
        let line = status
            .as_ref()
            .ok()
            .and_then(|text| fields::line(text, field));
        let origin = Origin::new(&file, line.unwrap_or_default());
        enter::number(evidence, key, subject(), value, origin);
    }
    // All threads of the judged process are read: `proc-pid-task` tells of it.
    if !process.judged {
        let (value, line) = run_delay(window, process);
        let origin = Origin::new(path("schedstat"), line);
        enter::number(
            evidence,
            &keys::SCHED_PROCESS_RUN_DELAY,
            subject(),
            value,
            origin,
        );
    }
}

/// How fast its resident memory grows, in total and from one full sample to the next.
fn record_growth(window: &Window<'_>, evidence: &mut Evidence, process: &Process<'_>) {
    let file = format!("/proc/{}/stat", process.pid);
    let stats = window.texts(&file).unwrap_or_default().into_iter();
    let stats = stats.filter_map(|(at, text)| Some((at, task::stat(text)?)));
    let stats: Vec<(f64, task::Stat<'_>)> = stats.collect();
    let (Some((began, first)), Some((ended, last)), Some(rss)) =
        (stats.first(), stats.last(), process.rss)
    else {
        return;
    };
    // Another process may have had the number before; pages of unknown size are as large as those that are resident.
    if first.started != last.started || ended <= began || last.resident_pages <= 0 {
        return;
    }
    let page = rss as f64 / last.resident_pages as f64;
    let growth = |from: &(f64, task::Stat<'_>), to: &(f64, task::Stat<'_>)| {
        let pages = to.1.resident_pages - from.1.resident_pages;
        pages as f64 * page / (to.0 - from.0)
    };
    let series = stats.windows(2).map(|two| growth(&two[0], &two[1]));
    let line = format!(
        "rss begin {} pages, end {}",
        first.resident_pages, last.resident_pages
    );
    evidence.series(
        &keys::MEMORY_PROCESS_GROWTH,
        Subject::new(Kind::Process, process.pid),
        growth(&stats[0], &stats[stats.len() - 1]),
        series.collect(),
        Origin::new(file, line),
    );
}

fn run_delay(window: &Window<'_>, process: &Process<'_>) -> (Result<f64, Absence>, String) {
    if process.threads != 1 {
        let why = format!(
            "it has {} threads, and only the first was read",
            process.threads
        );
        let why = Absence::because(why).remedy(format!("pass it: --pid {}", process.pid));
        return (Err(why), String::new());
    }
    let time = match run_rates(window, &format!("/proc/{}/schedstat", process.pid)) {
        Ok(time) => time,
        Err(why) => return (Err(why), String::new()),
    };
    let (ran, waited) = (time.ran.delta, time.waited.delta);
    let line = format!(
        "ran ns {}; waited ns {}",
        time.ran.line(),
        time.waited.line()
    );
    if ran + waited > 0.0 {
        (Ok(waited / (ran + waited)), line)
    } else {
        let why = Absence::because("it neither ran nor waited in the window");
        (Err(why), line)
    }
}

fn processes<'a>(window: &Window<'a>) -> Vec<Process<'a>> {
    let judged = chosen::family(window);
    window
        .matching(STATS)
        .into_iter()
        .filter_map(|(path, stars)| {
            let pid: u32 = stars.first()?.parse().ok()?;
            let text = window.text(path).ok()?;
            let stat = task::stat(text)?;
            let status = window.text(&STATUSES.replace('*', &pid.to_string()));
            let size = |field| fields::number(status.as_ref().ok()?, field);
            Some(Process {
                pid,
                judged: judged.contains(&pid),
                name: stat.name,
                threads: stat.threads,
                used: stat_rates(window, path),
                rss: size("VmRSS"),
                swap: size("VmSwap"),
            })
        })
        .collect()
}

/// The processes with most of a resource, and the judged one; those without any are omitted.
fn largest<'p, 'a>(
    processes: &'p [Process<'a>],
    amount: impl Fn(&Process<'a>) -> Option<f64>,
) -> Vec<&'p Process<'a>> {
    let mut some: Vec<_> = processes
        .iter()
        .filter_map(|process| Some((amount(process)?, process)))
        .filter(|(amount, process)| *amount > 0.0 || process.judged)
        .collect();
    some.sort_by(|(a, left), (b, right)| b.total_cmp(a).then(left.pid.cmp(&right.pid)));
    some.into_iter()
        .enumerate()
        .filter(|(place, (_, process))| *place < MOST || process.judged)
        .map(|(_, (_, process))| process)
        .collect()
}
