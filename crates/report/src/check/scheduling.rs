//! Who waited for a CPU: pressure, stolen time, quotas of control groups, processes and threads.

use rungwise_model::evidence::{Evidence, Key, Subject};
use rungwise_model::keys;

use super::look::{self, cell, number, shown, words};
use super::section;
use crate::block::{Block, Cell, Column, Table};
use crate::numbers;

/// Rows of a table: the first page of `top`.
const MOST: usize = 12;

pub(super) fn blocks(evidence: &Evidence) -> Vec<Block> {
    let facts: Vec<(String, String)> = [
        ("Some task waited for a CPU", &keys::PSI_CPU_SOME),
        ("Running or waiting at the end", &keys::CPU_RUNNABLE),
        ("Context switches", &keys::CPU_CONTEXT_SWITCHES),
        ("Stolen by the hypervisor, mean", &keys::CPU_STEAL_MEAN),
    ]
    .into_iter()
    .map(|(name, key)| (name.to_owned(), fact(evidence, key)))
    .collect();
    let tables: Vec<Block> = [groups(evidence), processes(evidence), threads(evidence)]
        .into_iter()
        .flatten()
        .map(Block::Table)
        .collect();
    let mut blocks = vec![
        section("scheduling", "Waiting for a CPU"),
        Block::Facts(facts),
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

fn fact(evidence: &Evidence, key: &'static Key) -> String {
    let host = Subject::host();
    shown(evidence, key, &host)
        .unwrap_or_else(|| format!("not known: {}", evidence.missing(key, &host).why.reason))
}

/// The one who waited longest, in a sentence.
fn brief(evidence: &Evidence) -> String {
    let mut parts = Vec::new();
    for (key, name, what) in [
        (
            &keys::SCHED_PROCESS_RUN_DELAY,
            &keys::SCHED_PROCESS_NAME,
            "process",
        ),
        (&keys::SCHED_RUN_DELAY, &keys::SCHED_NAME, "thread"),
    ] {
        if let [longest] = look::largest(evidence, key, 1).as_slice() {
            let share = number(evidence, key, longest).unwrap_or_default();
            let name = words(evidence, name, longest).unwrap_or(numbers::ABSENT);
            parts.push(format!(
                "{what} {name} ({}) waited {}",
                longest.name(),
                numbers::share(share)
            ));
        }
    }
    if let [group] = look::largest(evidence, &keys::CGROUP_THROTTLED, 1).as_slice() {
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
    format!("Longest: {}.", parts.join("; "))
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
    let subjects = look::subjects(evidence, &keys.map(|(_, _, key)| key));
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
        "Processes by CPU time; waited: share of their time runnable in which they had no CPU",
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
        look::largest(evidence, &keys::SCHED_PROCESS_CPU, MOST).into_iter(),
    )
}

fn threads(evidence: &Evidence) -> Option<Table> {
    table(
        evidence,
        "Threads of the process by CPU time; waited: share of the window in which they were runnable without a CPU",
        "Thread",
        Some(&keys::SCHED_NAME),
        &[
            ("CPU", "cpu", &keys::SCHED_THREAD_CPU),
            ("Waited", "run_delay", &keys::SCHED_RUN_DELAY),
            ("Migrations", "migrations_per_s", &keys::SCHED_MIGRATIONS),
            ("Last on CPU", "last_cpu", &keys::SCHED_LAST_CPU),
            ("May run on", "allowed", &keys::SCHED_ALLOWED),
            (
                "Away from NET_RX",
                "remote_softirq",
                &keys::SCHED_REMOTE_SOFTIRQ,
            ),
        ],
        look::largest(evidence, &keys::SCHED_THREAD_CPU, MOST).into_iter(),
    )
}

/// One row per subject; a column that nobody has a value for is left out.
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
    let mut columns = vec![Column::words(thing, "title")];
    for (rank, (heading, column, key)) in keys.iter().enumerate() {
        let new = if key.unit == rungwise_model::evidence::Unit::Text {
            Column::words(*heading, column)
        } else {
            Column::number(*heading, column)
        };
        columns.push(new.rank(u8::try_from(rank).unwrap_or(u8::MAX)));
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
