//! CPU time of processes, from `schedstat` (nanoseconds).
//!
//! Foreign CPU is what every process but the programs under test used, kernel threads included, as a fraction
//! of all CPUs. It qualifies every figure: a run with much of it says little. It is a census of processes and
//! not the rest of `/proc/stat`, which is counted by ticks and miscounts programs that sleep and wake in step
//! with them.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::time::{Duration, Instant};

/// A start from which use is counted.
pub(crate) struct Window {
    began: Instant,
    servers: Vec<u32>,
    before: BTreeMap<u32, Duration>,
}

/// CPU use since a start.
pub(crate) struct Use {
    /// Of the servers.
    pub server: Duration,
    /// Of neither server nor client, as a fraction of all CPUs.
    pub foreign: f64,
}

impl Window {
    /// Starts to count; `servers` are watched with all their children.
    pub(crate) fn open(servers: &[u32]) -> Self {
        Self {
            began: Instant::now(),
            servers: servers.to_vec(),
            before: census(),
        }
    }

    /// Ends the count, after the client has ended.
    pub(crate) fn close(&self) -> Use {
        let ours: BTreeSet<u32> = self.servers.iter().flat_map(|pid| tree(*pid)).collect();
        let (mut server, mut foreign) = (Duration::ZERO, Duration::ZERO);
        for (pid, now) in census() {
            let before = self.before.get(&pid).copied().unwrap_or_default();
            let used = now.saturating_sub(before);
            if ours.contains(&pid) {
                server += used;
            } else {
                foreign += used;
            }
        }
        let cpus = std::thread::available_parallelism().map_or(1, usize::from);
        let all = self.began.elapsed().as_secs_f64() * cpus as f64;
        Use {
            server,
            foreign: foreign.as_secs_f64() / all,
        }
    }
}

/// Run time of every process there is.
fn census() -> BTreeMap<u32, Duration> {
    processes()
        .into_iter()
        .map(|(pid, _)| (pid, of_process(pid)))
        .collect()
}

/// A process and its living descendants.
fn tree(top: u32) -> BTreeSet<u32> {
    let mut tree = BTreeSet::from([top]);
    let parents: Vec<(u32, u32)> = processes();
    loop {
        let below: Vec<u32> = parents
            .iter()
            .filter(|(pid, parent)| tree.contains(parent) && !tree.contains(pid))
            .map(|(pid, _)| *pid)
            .collect();
        if below.is_empty() {
            break;
        }
        tree.extend(below);
    }
    tree
}

fn of_process(pid: u32) -> Duration {
    let Ok(tasks) = fs::read_dir(format!("/proc/{pid}/task")) else {
        return Duration::ZERO;
    };
    let nanos = tasks.flatten().filter_map(|task| {
        let text = fs::read_to_string(task.path().join("schedstat")).ok()?;
        text.split_whitespace().next()?.parse::<u64>().ok()
    });
    Duration::from_nanos(nanos.sum())
}

/// Every process with its parent.
fn processes() -> Vec<(u32, u32)> {
    let Ok(entries) = fs::read_dir("/proc") else {
        return Vec::new();
    };
    entries
        .flatten()
        .filter_map(|entry| {
            let pid: u32 = entry.file_name().to_str()?.parse().ok()?;
            let stat = fs::read_to_string(entry.path().join("stat")).ok()?;
            // The name is in brackets and may hold anything: the parent is the second word after the last one.
            let parent = stat
                .rsplit_once(')')?
                .1
                .split_whitespace()
                .nth(1)?
                .parse()
                .ok()?;
            Some((pid, parent))
        })
        .collect()
}
