//! What waited for a CPU: pressure, stolen time, quotas of control groups, processes and threads.

use rungwise_model::evidence::{Evidence, Key, Subject, Unit};
use rungwise_model::keys;

use super::data::{Fact, Named};
use super::readings::{self, cell, number, shown, words};
use crate::block::{Block, Cell, Column, Table};
use crate::numbers;

/// Rows of a table: the first page of `top`.
const MOST: usize = 12;

pub(super) fn blocks(evidence: &Evidence) -> Vec<Block> {
    let tables: Vec<Block> = detail(evidence)
        .into_iter()
        .map(|table| Block::Table(table.into_table()))
        .collect();
    let mut blocks = vec![
        Block::section("scheduling", "Waiting for a CPU"),
        Block::Facts(facts(evidence).into_iter().map(Fact::pair).collect()),
    ];
    if !tables.is_empty() {
        blocks.push(Block::Long {
            brief: brief(evidence),
            summary: String::new(),
            blocks: tables,
        });
    }
    blocks
}

pub(super) fn tables(evidence: &Evidence) -> Vec<Named> {
    let facts = Fact::table("Waiting for a CPU", facts(evidence));
    let mut tables = Named::all([("scheduling", facts)]);
    tables.extend(detail(evidence));
    tables
}

fn detail(evidence: &Evidence) -> Vec<Named> {
    Named::all([
        ("cpu-waits", cpus(evidence)),
        ("cgroups", groups(evidence)),
        ("processes", processes(evidence)),
        ("threads", threads(evidence)),
    ])
}

fn facts(evidence: &Evidence) -> Vec<Fact> {
    [
        ("CPU pressure (PSI some)", &keys::PSI_CPU_SOME),
        ("Runnable tasks at the end", &keys::CPU_RUNNABLE),
        ("Context switches", &keys::CPU_CONTEXT_SWITCHES),
        ("Steal time, mean", &keys::CPU_STEAL_MEAN),
    ]
    .into_iter()
    .map(|(name, key)| fact(evidence, name, key))
    .chain([
        Fact::words("Longest run queue wait", longest(evidence)),
        Fact::words("Throttled by a quota", throttled(evidence)),
    ])
    .chain(busiest(evidence))
    .chain(limits(evidence))
    .chain(between(evidence).map(|rates| Fact::words("Inter-processor interrupts", rates)))
    .collect()
}

fn fact(evidence: &Evidence, name: &str, key: &'static Key) -> Fact {
    Fact::reading(evidence, name, key).unwrap_or_else(|| {
        let why = evidence.missing(key, &Subject::host()).why.reason;
        Fact::words(name, format!("unknown: {why}"))
    })
}

/// The CPU that tasks waited for longest.
fn longest(evidence: &Evidence) -> String {
    let key = &keys::CPU_RUN_DELAY;
    if let Err(missing) = evidence.each(key) {
        let remedy = match missing.why.remedy.as_str() {
            "" => String::new(),
            remedy => format!("; {remedy}"),
        };
        return format!("unknown: {}{remedy}", missing.why.reason);
    }
    let [cpu] = &readings::largest(evidence, key, 1)[..] else {
        return "no task waited".to_owned();
    };
    let share = number(evidence, key, cpu).map_or_else(String::new, numbers::share);
    let each = shown(evidence, &keys::CPU_RUN_WAIT, cpu);
    let each = each.map_or_else(String::new, |each| format!(", {each} per wait"));
    format!(
        "CPU {}: {share} of the runnable time of its tasks{each}",
        cpu.name()
    )
}

/// The kernel counts throttling by group and not by CPU.
fn throttled(evidence: &Evidence) -> String {
    let key = &keys::CGROUP_THROTTLED;
    match evidence.each(key) {
        Ok(groups) => {
            let stopped = groups.iter().filter(|(_, share)| share.value > 0.0).count();
            match (stopped, &readings::largest(evidence, key, 1)[..]) {
                (1.., [most]) => format!(
                    "{}, most of all {}; counted per group, not per CPU",
                    numbers::plural(stopped, "control group"),
                    most.name()
                ),
                _ => "no control group".to_owned(),
            }
        }
        Err(missing) => format!("unknown: {}", missing.why.reason),
    }
}

/// The threads of the whole machine that the time is spent in.
fn busiest(evidence: &Evidence) -> Option<Fact> {
    let shares = words(evidence, &keys::STACK_THREADS, &Subject::host())?;
    let name = "Busiest threads, by name";
    Some(Fact::words(name, format!("{shares} of the busy samples")))
}

/// What the judged process may have at most.
fn limits(evidence: &Evidence) -> Option<Fact> {
    let (process, limits) = evidence.each_words(&keys::PROCESS_LIMITS).ok()?.pop()?;
    Some(Fact::words(format!("Limits of {process}"), limits.value))
}

/// How often CPUs interrupted each other.
fn between(evidence: &Evidence) -> Option<String> {
    let host = Subject::host();
    let parts: Vec<String> = [
        (&keys::IPI_RESCHEDULE, "to reschedule"),
        (&keys::IPI_CALL, "to call a function"),
    ]
    .into_iter()
    .filter_map(|(key, why)| Some(format!("{} {why}", shown(evidence, key, &host)?)))
    .collect();
    (!parts.is_empty()).then(|| parts.join(", "))
}

/// The CPUs that were waited for longest; without that, those that most tasks came to.
fn cpus(evidence: &Evidence) -> Option<Table> {
    let by = [
        &keys::CPU_RUN_DELAY,
        &keys::CPU_STEAL,
        &keys::CPU_MIGRATIONS,
    ];
    let subjects = by
        .into_iter()
        .map(|key| readings::largest(evidence, key, MOST))
        .find(|subjects| !subjects.is_empty())?;
    table(
        evidence,
        "Run queue wait per CPU; waited: share of runnable time spent waiting for a CPU",
        "CPU",
        None,
        &[
            ("Waited", "run_delay", &keys::CPU_RUN_DELAY),
            ("Per wait", "run_wait_s", &keys::CPU_RUN_WAIT),
            ("Stolen", "steal", &keys::CPU_STEAL),
            ("Migrations in", "migrations_per_s", &keys::CPU_MIGRATIONS),
        ],
        subjects.into_iter(),
    )
}

/// The one who waited longest, in a sentence.
fn brief(evidence: &Evidence) -> String {
    let mut parts = Vec::new();
    if let Some((process, waited)) = longest_process(evidence) {
        let name = words(evidence, &keys::SCHED_PROCESS_NAME, &process).unwrap_or(numbers::ABSENT);
        parts.push(format!(
            "process {name} ({}) waited {} of the window (sum of its threads)",
            process.name(),
            numbers::share(waited)
        ));
    }
    let key = &keys::SCHED_RUN_DELAY;
    if let [thread] = readings::largest(evidence, key, 1).as_slice() {
        let share = number(evidence, key, thread).unwrap_or_default();
        let name = words(evidence, &keys::SCHED_NAME, thread).unwrap_or(numbers::ABSENT);
        parts.push(format!(
            "thread {name} ({}) waited {}",
            thread.name(),
            numbers::share(share)
        ));
    }
    if let [group] = readings::largest(evidence, &keys::CGROUP_THROTTLED, 1).as_slice() {
        let share = number(evidence, &keys::CGROUP_THROTTLED, group).unwrap_or_default();
        parts.push(format!(
            "control group {} throttled in {} of its periods",
            group.name(),
            numbers::share(share)
        ));
    }
    if parts.is_empty() {
        return String::new();
    }
    let longest = parts.join("; ");
    match unknown_waits(evidence) {
        0 => format!("Longest: {longest}."),
        unknown => format!(
            "Longest known: {longest}. Unknown for {unknown} more that used a CPU: only the first of several threads was \
             read; name one with --pid."
        ),
    }
}

/// How many of the processes that used a CPU do not tell how long they waited for one.
fn unknown_waits(evidence: &Evidence) -> usize {
    let busy = evidence.each(&keys::SCHED_PROCESS_CPU).unwrap_or_default();
    busy.into_iter()
        .filter(|(_, cpu)| cpu.value > 0.0)
        .filter(|(process, _)| number(evidence, &keys::SCHED_PROCESS_RUN_DELAY, process).is_none())
        .count()
}

/// The process that waited most, and for how much of the window. Its share alone tells little: it is one of the time in which
/// the process wanted a CPU, and a kernel thread that ran for a moment may have waited for most of that.
fn longest_process(evidence: &Evidence) -> Option<(Subject, f64)> {
    let all = evidence.each(&keys::SCHED_PROCESS_RUN_DELAY).ok()?;
    all.into_iter()
        .filter(|(_, share)| share.value < 1.0)
        .filter_map(|(process, share)| {
            let ran = number(evidence, &keys::SCHED_PROCESS_CPU, process)?;
            let waited = ran * share.value / (1.0 - share.value);
            (waited > 0.0).then(|| (process.clone(), waited))
        })
        .max_by(|a, b| a.1.total_cmp(&b.1))
}

fn groups(evidence: &Evidence) -> Option<Table> {
    let keys: [(&str, &'static str, &'static Key); 3] = [
        ("CPU quota", "quota_cpus", &keys::CGROUP_QUOTA),
        ("Throttled periods", "throttled", &keys::CGROUP_THROTTLED),
        (
            "Throttled time",
            "throttled_time",
            &keys::CGROUP_THROTTLED_TIME,
        ),
    ];
    let subjects = readings::subjects(evidence, &[&keys::CGROUP_QUOTA]);
    table(
        evidence,
        "Control groups with a CPU quota",
        "Control group",
        None,
        &keys,
        subjects.into_iter().take(MOST),
    )
}

fn processes(evidence: &Evidence) -> Option<Table> {
    table(
        evidence,
        "Processes by CPU time; waited: share of runnable time spent waiting for a CPU",
        "Process",
        Some(&keys::SCHED_PROCESS_NAME),
        &[
            ("CPUs", "cpus", &keys::SCHED_PROCESS_CPU),
            ("Waited", "run_delay", &keys::SCHED_PROCESS_RUN_DELAY),
            ("Memory", "rss_bytes", &keys::MEMORY_PROCESS_RSS),
            ("In swap", "swap_bytes", &keys::MEMORY_PROCESS_SWAP),
            (
                "Major faults",
                "major_faults_per_s",
                &keys::MEMORY_MAJOR_FAULTS,
            ),
            ("Remote pages", "remote", &keys::NUMA_PROCESS_REMOTE),
        ],
        readings::largest(evidence, &keys::SCHED_PROCESS_CPU, MOST).into_iter(),
    )
}

fn threads(evidence: &Evidence) -> Option<Table> {
    table(
        evidence,
        "Threads of the process by CPU time; waited: share of the window spent waiting for a CPU",
        "Thread",
        Some(&keys::SCHED_NAME),
        &[
            ("CPU", "cpu", &keys::SCHED_THREAD_CPU),
            ("Waited", "run_delay", &keys::SCHED_RUN_DELAY),
            ("Migrations", "migrations_per_s", &keys::SCHED_MIGRATIONS),
            ("Last on CPU", "last_cpu", &keys::SCHED_LAST_CPU),
            ("Allowed CPUs", "allowed", &keys::SCHED_ALLOWED),
            (
                "Away from NET_RX",
                "remote_softirq",
                &keys::SCHED_REMOTE_SOFTIRQ,
            ),
        ],
        readings::largest(evidence, &keys::SCHED_THREAD_CPU, MOST).into_iter(),
    )
}

/// One row per subject; a column without any value is left out.
pub(super) fn table(
    evidence: &Evidence,
    caption: &str,
    thing: &str,
    name: Option<&'static Key>,
    keys: &[(&str, &'static str, &'static Key)],
    subjects: impl Iterator<Item = Subject>,
) -> Option<Table> {
    let subjects: Vec<Subject> = subjects.collect();
    let keys: Vec<_> = keys
        .iter()
        .filter(|(_, _, key)| {
            subjects
                .iter()
                .any(|subject| shown(evidence, key, subject).is_some())
        })
        .collect();
    if subjects.is_empty() || keys.is_empty() {
        return None;
    }
    let mut columns = vec![Column::words(thing, "title").unit(Unit::Text)];
    for (rank, (heading, column, key)) in keys.iter().enumerate() {
        let new = if key.unit == Unit::Text {
            Column::words(*heading, column)
        } else {
            Column::number(*heading, column)
        };
        let rank = u8::try_from(rank).unwrap_or(u8::MAX);
        columns.push(new.unit(key.unit).rank(rank));
    }
    let rows = subjects
        .iter()
        .map(|subject| {
            let named = name.and_then(|key| words(evidence, key, subject));
            let first = match named {
                Some(name) => format!("{name} ({})", subject.name()),
                None => subject.name().to_owned(),
            };
            let mut row = vec![Cell::text(first)];
            row.extend(keys.iter().map(|(_, _, key)| cell(evidence, key, subject)));
            row
        })
        .collect();
    Some(Table {
        caption: caption.to_owned(),
        columns,
        rows,
    })
}

#[cfg(test)]
mod tests {
    use rungwise_model::evidence::{Absence, Kind, Origin};

    use super::*;

    #[test]
    fn a_kernel_that_keeps_no_wait_by_cpu_says_so_with_what_helps() {
        let mut evidence = Evidence::over(10.0);
        let why = Absence::because("this kernel has no /proc/schedstat (CONFIG_SCHEDSTATS)")
            .remedy("pass a process to read its threads: --pid PID");
        evidence.absent(&[&keys::CPU_RUN_DELAY], &why, "/proc/schedstat");
        let said = longest(&evidence);
        assert!(said.contains("CONFIG_SCHEDSTATS"), "{said}");
        assert!(said.ends_with("--pid PID"), "{said}");
    }

    #[test]
    fn the_cpu_that_was_waited_for_longest_is_named_with_its_wait() {
        let mut evidence = Evidence::over(10.0);
        for (cpu, share, wait) in [(0, 0.01, 1e-5), (3, 0.25, 2e-3)] {
            let origin = Origin::default;
            evidence.number(&keys::CPU_RUN_DELAY, Subject::cpu(cpu), share, origin());
            evidence.number(&keys::CPU_RUN_WAIT, Subject::cpu(cpu), wait, origin());
        }
        let said = longest(&evidence);
        assert!(said.starts_with("CPU 3: 25"), "{said}");
        assert!(said.contains("per wait"), "{said}");
        let table = cpus(&evidence).expect("a table");
        assert_eq!(table.rows[0][0].text, "3");
    }

    #[test]
    fn the_longest_wait_is_not_claimed_where_that_of_others_is_not_known() {
        let mut evidence = Evidence::over(10.0);
        let mut busy = |pid, cpus: f64, waited: Option<f64>| {
            let process = || Subject::new(Kind::Process, pid);
            evidence.text(
                &keys::SCHED_PROCESS_NAME,
                process(),
                "kworker",
                Origin::default(),
            );
            evidence.number(&keys::SCHED_PROCESS_CPU, process(), cpus, Origin::default());
            if let Some(waited) = waited {
                let key = &keys::SCHED_PROCESS_RUN_DELAY;
                evidence.number(key, process(), waited, Origin::default());
            }
            brief(&evidence)
        };
        let alone = busy(7, 0.001, Some(0.5));
        assert!(alone.starts_with("Longest: process kworker (7)"), "{alone}");
        let beside = busy(8, 1.6, None);
        assert!(
            beside.starts_with("Longest known: process kworker (7)"),
            "{beside}"
        );
        assert!(beside.contains("Unknown for 1 more"), "{beside}");
    }

    #[test]
    fn throttling_is_reported_by_group() {
        let mut evidence = Evidence::over(10.0);
        for (group, share) in [("/", 0.0), ("/docker/web", 0.4)] {
            let subject = Subject::new(Kind::Cgroup, group);
            evidence.number(&keys::CGROUP_THROTTLED, subject, share, Origin::default());
        }
        let said = throttled(&evidence);
        assert!(said.contains("most of all /docker/web"), "{said}");
        assert!(throttled(&Evidence::over(1.0)).starts_with("unknown"));
    }
}
