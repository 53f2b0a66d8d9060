//! States of all processes: stopped, traced, blocked, zombies; their scheduling policy, their CPUs, and the CPU time of
//! their busiest thread.
//!
//! Source: fs/proc/array.c (`do_task_stat`, `proc_pid_status`), fs/proc/stat.c, Linux 6.18; proc(5).

use std::collections::{BTreeMap, BTreeSet};

use rungwise_formats::{fields, task};
use rungwise_model::evidence::{Absence, Evidence, Key, Kind, Origin, Subject};
use rungwise_model::keys;

use super::processes::{SCHEDSTATS, STATS, STATUSES};
use super::sampled::{self, Threads};
use super::{Ran, TICK, chosen, no_counters, run_rates, stat_rates};
use crate::{Cost, Probe, Rate, Source, Window, enter, window};

const STAT: &str = "/proc/stat";
const LOADAVG: &str = "/proc/loadavg";
const PID_MAX: &str = "/proc/sys/kernel/pid_max";
const THREADS_MAX: &str = "/proc/sys/kernel/threads-max";
const SERVICE_STATS: &str = "/proc/{service}/task/*/stat";
const BUSY_TASKS: &str = "/proc/{busy}/task/*/schedstat";

/// Number of processes named per kind.
const MOST: usize = 20;

/// CPUs that one thread can use, with room for the ticks of 10 ms.
const MOST_OF_ONE: f64 = 1.05;

/// Share of the window in which a thread waits for a CPU from which on its process is listed; the line of the rule `priority-low`.
const WAITS: f64 = 0.02;

/// Change in the number of threads from which on a process is listed.
const ADDED: i64 = 16;

/// The probe.
pub(crate) static PROBE: Probe = Probe {
    id: "proc-pid-states",
    summary: "processes that are stopped, traced, blocked or saturated in one thread, and how they are scheduled",
    cost: Cost::Cheap,
    needs: &[],
    sources: &[
        Source::each(STATS),
        Source::ends(SCHEDSTATS),
        Source::once(STATUSES),
        Source::often(SERVICE_STATS),
        Source::each(BUSY_TASKS),
        Source::once("/proc/{busy}/task/*/stat"),
        Source::each(STAT),
        Source::once(LOADAVG),
        Source::once(PID_MAX),
        Source::once(THREADS_MAX),
    ],
    yields: &[
        &keys::PROCESS_ALLOWED,
        &keys::PROCESS_BLOCKED,
        &keys::PROCESS_BUSIEST_DELAY,
        &keys::PROCESS_BUSIEST_NAME,
        &keys::PROCESS_BUSIEST_THREAD,
        &keys::PROCESS_CHILDREN_CPU,
        &keys::PROCESS_PARENT,
        &keys::PROCESS_SIBLINGS,
        &keys::PROCESS_SCHEDULING,
        &keys::PROCESS_STARVED,
        &keys::PROCESS_STOPPED,
        &keys::PROCESS_THREADS,
        &keys::PROCESS_THREADS_ADDED,
        &keys::PROCESS_THREADS_ENDED_CPU,
        &keys::PROCESS_TRACER,
        &keys::PROCESS_ZOMBIES,
        &keys::SCHED_PROCESS_NAME,
        &keys::TASKS_MADE,
        &keys::TASKS_SHARE,
    ],
    derive,
    doc: "\
The 20 processes that used most CPU time, the judged process with its children, and every process that is stopped, \
traced or blocked in most samples, has a thread that waited for a CPU in 2 % of the window, has children that it did not \
wait for, or gained or lost at least 16 threads in the window. Kernel threads are excluded. `stat` is read four times in \
the window, and 21 more times for processes that serve clients over TCP or use 1 % of a CPU, with the CPU time and the CPU \
wait of their threads; a state lasts if all samples show it. Threads are also read of processes that used more than 0.8 \
CPUs in the first third of the window, or more than 0.02 with at most 32 threads (at most 8 processes, of at most 1,000 \
threads each); of others only the first thread is known. CPU time of exited children covers those that were waited for. \
Sources: fs/proc/array.c, fs/proc/stat.c of Linux 6.18; proc(5), sched(7).",
};

struct Process<'a> {
    pid: u32,
    /// Values of each sample, the last one last.
    samples: Vec<task::Stat<'a>>,
    last: task::Stat<'a>,
    ticks: Option<Rate>,
    children: Option<Rate>,
    tracer: Option<u32>,
}

fn derive(window: &Window<'_>, evidence: &mut Evidence) {
    tasks(window, evidence);
    let processes = processes(window);
    let judged = chosen::family(window);
    let zombies = zombies(&processes);
    let threads = sampled::threads(window);
    let starved = starved(&threads);
    for process in listed(&processes, &zombies, &judged, &starved) {
        let threads = threads.get(&process.pid);
        describe(window, evidence, process, &processes, &zombies);
        busiest(window, evidence, process, threads);
        of_threads(evidence, process, threads);
    }
    let why = window.text(STATS).err();
    let why = why.unwrap_or_else(|| {
        if processes.is_empty() {
            Absence::because("no process can be seen")
        } else {
            no_counters(window)
        }
    });
    enter::absent_if_unset(evidence, PROBE.yields, &why, STATS);
}

fn processes<'a>(window: &Window<'a>) -> Vec<Process<'a>> {
    let of = |(path, stars): (&'a str, Vec<&'a str>)| {
        let pid: u32 = stars.first()?.parse().ok()?;
        let last = task::stat(window.text(path).ok()?)?;
        if last.is_kernel {
            return None;
        }
        // The first thread of a process has its number.
        let first = format!("/proc/{pid}/task/{pid}/stat");
        let samples = window.often().into_iter().filter_map(|moment| {
            let text = window::text_of(moment, path);
            let text = text.or_else(|_| window::text_of(moment, &first));
            task::stat(text.ok()?)
        });
        let status = window.text(&STATUSES.replace('*', &pid.to_string()));
        let tracer = status
            .ok()
            .and_then(|text| fields::number(text, "TracerPid"));
        let children = window.rates(path, |text| {
            let ticks = task::stat(text).map(|stat| (stat.started, stat.children_ticks as f64));
            ticks.into_iter().collect()
        });
        Some(Process {
            pid,
            samples: samples
                .filter(|sample| sample.started == last.started)
                .collect(),
            last,
            ticks: stat_rates(window, path).map(|used| used.ticks),
            children: children.ok().and_then(|rates| rates.into_values().next()),
            tracer: tracer
                .filter(|pid| *pid > 0)
                .and_then(|pid| u32::try_from(pid).ok()),
        })
    };
    window.matching(STATS).into_iter().filter_map(of).collect()
}

impl Process<'_> {
    /// In this state in every sample, of two or more.
    fn always(&self, state: char) -> bool {
        self.samples.len() > 1 && self.samples.iter().all(|sample| sample.state == state)
    }

    fn share_in(&self, state: char) -> f64 {
        let in_it = self.samples.iter().filter(|sample| sample.state == state);
        in_it.count() as f64 / self.samples.len().max(1) as f64
    }

    fn added(&self) -> Option<i64> {
        let first = self.samples.first().filter(|_| self.samples.len() > 1)?;
        let count = |threads: u64| i64::try_from(threads).unwrap_or(i64::MAX);
        Some(count(self.last.threads) - count(first.threads))
    }

    /// It is unusual in some way, whatever it uses.
    fn is_odd(&self) -> bool {
        self.tracer.is_some()
            || (self.samples.len() > 1 && self.share_in('T') > 0.0)
            || (self.samples.len() > 1 && self.share_in('D') > 0.5)
            || self.added().is_some_and(|added| added.abs() >= ADDED)
    }
}

/// Processes with a thread that waits for a CPU for long, however little it runs.
fn starved(threads: &BTreeMap<u32, Threads<'_>>) -> BTreeSet<u32> {
    let longest = |(pid, threads): (&u32, &Threads<'_>)| (threads.longest_wait(), *pid);
    let mut waiting: Vec<(f64, u32)> = threads.iter().map(longest).collect();
    waiting.retain(|(share, _)| *share >= WAITS);
    waiting.sort_by(|(a, _), (b, _)| b.total_cmp(a));
    waiting.into_iter().map(|(_, pid)| pid).take(MOST).collect()
}

/// Children that had ended in every sample, by parent.
fn zombies(processes: &[Process<'_>]) -> BTreeMap<u32, usize> {
    let mut zombies = BTreeMap::new();
    for process in processes.iter().filter(|process| process.always('Z')) {
        *zombies.entry(process.last.parent).or_default() += 1;
    }
    zombies
}

fn listed<'p, 'a>(
    processes: &'p [Process<'a>],
    zombies: &BTreeMap<u32, usize>,
    judged: &BTreeSet<u32>,
    starved: &BTreeSet<u32>,
) -> Vec<&'p Process<'a>> {
    let most = |amount: fn(&Process<'_>) -> f64, floor: f64, count: usize| {
        let mut some: Vec<_> = processes.iter().filter(|p| amount(p) >= floor).collect();
        some.sort_by(|a, b| amount(b).total_cmp(&amount(a)).then(a.pid.cmp(&b.pid)));
        some.truncate(count);
        some
    };
    let used = most(
        |p| p.ticks.as_ref().map_or(0.0, |rate| rate.delta),
        0.0,
        MOST,
    );
    let made = most(
        |p| p.children.as_ref().map_or(0.0, |rate| rate.delta),
        1.0,
        5,
    );
    let odd = processes.iter().filter(|p| p.is_odd()).take(4 * MOST);
    let family = processes
        .iter()
        .filter(|p| judged.contains(&p.pid) || starved.contains(&p.pid));
    let parents = processes.iter().filter(|p| zombies.contains_key(&p.pid));
    let all = used.into_iter().chain(made).chain(odd).chain(family);
    let by_pid: BTreeMap<u32, &Process<'_>> = all.chain(parents).map(|p| (p.pid, p)).collect();
    by_pid.into_values().collect()
}

fn describe(
    window: &Window<'_>,
    evidence: &mut Evidence,
    process: &Process<'_>,
    all: &[Process<'_>],
    zombies: &BTreeMap<u32, usize>,
) {
    let Process { pid, last, .. } = process;
    let subject = || Subject::new(Kind::Process, pid);
    let stat = format!("/proc/{pid}/stat");
    let column = |what: String| Origin::new(&stat, what);
    let name = column(format!("{pid} ({})", last.name));
    evidence.text(&keys::SCHED_PROCESS_NAME, subject(), last.name, name);
    let parent = column(format!("ppid {} (column 4)", last.parent));
    evidence.number(
        &keys::PROCESS_PARENT,
        subject(),
        f64::from(last.parent),
        parent,
    );
    // In a container the master may be the first process.
    let is_first_master = all
        .iter()
        .any(|other| other.pid == 1 && other.last.name == last.name);
    let is_sibling = |other: &&Process<'_>| {
        let same = other.last.parent == last.parent && other.last.name == last.name;
        other.pid != *pid && same && (last.parent > 1 || is_first_master)
    };
    let siblings = all.iter().filter(is_sibling).count();
    let line = column(format!(
        "{siblings} more {} below {}",
        last.name, last.parent
    ));
    let key = &keys::PROCESS_SIBLINGS;
    evidence.number(key, subject(), siblings as f64, line);
    let threads = column(format!("num_threads {} (column 20)", last.threads));
    let key = &keys::PROCESS_THREADS;
    evidence.number(key, subject(), last.threads as f64, threads.clone());
    if let Some(added) = process.added() {
        let course = process.samples.windows(2);
        let course = course.map(|two| two[1].threads as f64 - two[0].threads as f64);
        let key = &keys::PROCESS_THREADS_ADDED;
        evidence.series(key, subject(), added as f64, course.collect(), threads);
    }
    let scheduling = scheduling(last);
    let line = format!(
        "nice {} policy {:?} (columns 19, 41)",
        last.nice,
        last.policy.unwrap_or(0)
    );
    evidence.text(
        &keys::PROCESS_SCHEDULING,
        subject(),
        scheduling,
        column(line),
    );
    let states: String = process.samples.iter().map(|sample| sample.state).collect();
    let states = column(format!(
        "state {states}, tty {} (columns 3, 7)",
        last.terminal
    ));
    let stopped = match (process.share_in('T'), last.terminal) {
        (0.0, _) => "no",
        (1.0.., 0) => "without a terminal",
        (1.0.., _) => "with a terminal",
        _ => "now and then",
    };
    evidence.text(&keys::PROCESS_STOPPED, subject(), stopped, states.clone());
    let key = &keys::PROCESS_BLOCKED;
    evidence.number(key, subject(), process.share_in('D'), states);
    let ended = zombies.get(pid).copied().unwrap_or(0);
    let line = Origin::new(
        STATS,
        format!("{ended} children in state Z in every sample"),
    );
    evidence.number(&keys::PROCESS_ZOMBIES, subject(), ended as f64, line);
    if let Some(rate) = &process.children {
        let key = &keys::PROCESS_CHILDREN_CPU;
        let name = "cutime + cstime, ticks";
        enter::counter(evidence, key, subject(), (rate, TICK), (&stat, name));
    }
    from_status(window, evidence, process, all);
}

/// Keys from the samples of its threads.
fn of_threads(evidence: &mut Evidence, process: &Process<'_>, threads: Option<&Threads<'_>>) {
    let subject = || Subject::new(Kind::Process, process.pid);
    let source = format!("/proc/{}/task/*/{{stat,schedstat}}", process.pid);
    let key = &keys::PROCESS_THREADS_ENDED_CPU;
    let alive = threads.and_then(Threads::alive);
    if let (Some(all), Some(alive)) = (&process.ticks, alive) {
        let all = all.per_s * TICK;
        let line = format!("{all:.2} CPUs in all, {alive:.2} by threads that live");
        let ended = (all - alive).max(0.0);
        evidence.number(key, subject(), ended, Origin::new(&source, line));
    } else {
        let why = Absence::because("its threads were not sampled often enough");
        enter::absent(evidence, key, subject(), why, Origin::new(&source, ""));
    }
    let starved = threads.and_then(Threads::starved);
    if let Some((share, line)) = starved.filter(|(share, _)| *share > 0.0) {
        let key = &keys::PROCESS_STARVED;
        evidence.number(key, subject(), share, Origin::new(source, line));
    }
}

/// The policy and nice value if they are not the defaults; see sched(7).
fn scheduling(stat: &task::Stat<'_>) -> String {
    match (stat.policy.unwrap_or(0), stat.nice) {
        (1, _) => "SCHED_FIFO".to_owned(),
        (2, _) => "SCHED_RR".to_owned(),
        (3, _) => "SCHED_BATCH".to_owned(),
        (5, _) => "SCHED_IDLE".to_owned(),
        (6, _) => "SCHED_DEADLINE".to_owned(),
        (_, 0) => "normal".to_owned(),
        (_, nice) => format!("nice {nice}"),
    }
}

fn from_status(
    window: &Window<'_>,
    evidence: &mut Evidence,
    process: &Process<'_>,
    all: &[Process<'_>],
) {
    let subject = || Subject::new(Kind::Process, process.pid);
    let path = STATUSES.replace('*', &process.pid.to_string());
    let text = window.text(&path);
    let mut enter =
        |key: &'static Key, field: &str, words: for<'t> fn(&'t str) -> Option<&'t str>| {
            let value = text.clone().and_then(|text| {
                let value = fields::value(text, field).and_then(words);
                value.ok_or_else(|| Absence::because(format!("{path} has no {field}")))
            });
            let line = text
                .as_ref()
                .ok()
                .and_then(|text| fields::line(text, field));
            let origin = Origin::new(&path, line.unwrap_or_default());
            enter::text(evidence, key, subject(), value, origin);
        };
    enter(&keys::PROCESS_ALLOWED, "Cpus_allowed_list", |cpus| {
        Some(cpus)
    });
    match process.tracer {
        None => enter(&keys::PROCESS_TRACER, "TracerPid", |_| Some("")),
        Some(tracer) => {
            let name = all.iter().find(|other| other.pid == tracer);
            let name = name.map_or_else(
                || format!("pid {tracer}"),
                |other| format!("{} {tracer}", other.last.name),
            );
            let origin = Origin::new(&path, format!("TracerPid: {tracer}"));
            evidence.text(&keys::PROCESS_TRACER, subject(), name, origin);
        }
    }
}

/// The thread that ran most: the only thread, or one of those read.
fn busiest(
    window: &Window<'_>,
    evidence: &mut Evidence,
    process: &Process<'_>,
    sampled: Option<&Threads<'_>>,
) {
    let subject = || Subject::new(Kind::Process, process.pid);
    let folder = format!("/proc/{}/task", process.pid);
    let own = format!("/proc/{}/schedstat", process.pid);
    let ran = |path: &str| run_rates(window, path).ok();
    let threads = window.matching(&format!("{folder}/*/schedstat"));
    let of_threads = threads
        .iter()
        .filter_map(|(path, stars)| Some((*stars.first()?, ran(path)?)));
    let busiest = of_threads.max_by(|(_, a), (_, b)| a.ran.per_s.total_cmp(&b.ran.per_s));
    // Of a process that uses little, its threads were read between the full samples.
    let busiest = busiest.or_else(|| sampled.filter(|_| process.last.threads > 1)?.busiest());
    let (cpu, delay) = (&keys::PROCESS_BUSIEST_THREAD, &keys::PROCESS_BUSIEST_DELAY);
    let (name, pid) = (process.last.name, process.pid);
    let (ran, source, named) = if let Some((tid, ran)) = busiest {
        let stat = format!("{folder}/{tid}/stat");
        let moments = window.often().into_iter().rev();
        let mut texts = moments.filter_map(|moment| window::text_of(moment, &stat).ok());
        let stat = texts.next().and_then(task::stat);
        let name = stat.map_or(name, |stat| stat.name);
        let source = format!("{folder}/{tid}/schedstat");
        (ran, source, format!("{name} ({pid}:{tid})"))
    } else {
        let Some(ran) = ran(&own) else {
            return without(window, evidence, process);
        };
        (ran, own, format!("{name} ({pid}:{pid})"))
    };
    let Ran { ran, waited } = ran;
    // More than one CPU is more than a thread can use: what was read is not of one thread, as in a container that hides it.
    let of_ticks = process.ticks.as_ref().filter(|_| process.last.threads == 1);
    let used = of_ticks.map_or(ran.per_s * 1e-9, |ticks| ticks.per_s * TICK);
    if used > MOST_OF_ONE {
        return without(window, evidence, process);
    }
    let ticks = process.ticks.as_ref().filter(|_| process.last.threads == 1);
    match ticks {
        // The ticks were read in each sample, and are those of the only thread.
        Some(ticks) => {
            let stat = format!("/proc/{pid}/stat");
            let name = "utime + stime, ticks";
            enter::share(evidence, cpu, subject(), (ticks, TICK), (&stat, name));
        }
        None => enter::share(evidence, cpu, subject(), (&ran, 1e-9), (&source, "ran ns")),
    }
    enter::share(
        evidence,
        delay,
        subject(),
        (&waited, 1e-9),
        (&source, "waited ns"),
    );
    let key = &keys::PROCESS_BUSIEST_NAME;
    evidence.text(key, subject(), named, Origin::new(source, ""));
}

/// A kernel that does not count run delay.
fn without(window: &Window<'_>, evidence: &mut Evidence, process: &Process<'_>) {
    let subject = || Subject::new(Kind::Process, process.pid);
    let stat = format!("/proc/{}/stat", process.pid);
    if let (1, Some(ticks)) = (process.last.threads, &process.ticks)
        && ticks.per_s * TICK <= MOST_OF_ONE
    {
        let key = &keys::PROCESS_BUSIEST_THREAD;
        let name = "utime + stime, ticks";
        enter::share(evidence, key, subject(), (ticks, TICK), (&stat, name));
        let named = format!("{} ({pid}:{pid})", process.last.name, pid = process.pid);
        let key = &keys::PROCESS_BUSIEST_NAME;
        evidence.text(key, subject(), named, Origin::new(stat, ""));
        return;
    }
    let why = match window.moments().len() {
        0 | 1 => no_counters(window),
        _ => Absence::because("its threads were not read"),
    };
    let origin = Origin::new(stat, "");
    enter::absent(
        evidence,
        &keys::PROCESS_BUSIEST_THREAD,
        subject(),
        why,
        origin,
    );
}

/// Processes and threads of the machine.
fn tasks(window: &Window<'_>, evidence: &mut Evidence) {
    let made = window.rates(STAT, |text| {
        let line = text
            .lines()
            .find_map(|line| line.strip_prefix("processes "));
        let count = line.and_then(|number| number.trim().parse::<f64>().ok());
        count.map(|count| ((), count)).into_iter().collect()
    });
    let key = &keys::TASKS_MADE;
    match made.map(|mut rates| rates.remove(&())) {
        Ok(Some(rate)) => {
            enter::counter(
                evidence,
                key,
                Subject::host(),
                (&rate, 1.0),
                (STAT, "processes"),
            );
        }
        Ok(None) => evidence.absent(&[key], &no_counters(window), STAT),
        Err(why) => evidence.absent(&[key], &why, STAT),
    }
    let number = |path: &str| {
        window
            .text(path)
            .map(|text| text.trim().parse::<f64>().ok())
    };
    let most = [PID_MAX, THREADS_MAX].map(|path| number(path).ok().flatten());
    let most = most.into_iter().flatten().min_by(f64::total_cmp);
    let line = window.text(LOADAVG).unwrap_or_default().trim();
    // `running/all` is the fourth word of loadavg.
    let all = line.split(' ').nth(3).and_then(|word| word.split_once('/'));
    let all = all.and_then(|(_, all)| all.parse::<f64>().ok());
    let share = match (all, most) {
        (Some(all), Some(most)) if most > 0.0 => Ok(all / most),
        _ => Err(window.text(LOADAVG).err().unwrap_or_else(|| {
            Absence::because(format!(
                "{LOADAVG}, {PID_MAX} or {THREADS_MAX} has a format that rungwise does not know"
            ))
        })),
    };
    let line = format!(
        "{line}; at most {}",
        most.map_or("unknown".to_owned(), |most| most.to_string())
    );
    let origin = Origin::new(LOADAVG, line);
    enter::number(evidence, &keys::TASKS_SHARE, Subject::host(), share, origin);
}
