//! CPU time: of the whole machine from `/proc/stat`, of a process tree from `schedstat` (nanoseconds).
//!
//! Foreign CPU is what the machine was busy beyond the programs under test, as a fraction of all CPUs. It
//! qualifies every figure: a run with much of it says little.

use std::collections::BTreeSet;
use std::fs;
use std::time::{Duration, Instant};

/// A start from which use is counted.
pub struct Window {
    began: Instant,
    busy: Duration,
    servers: Vec<u32>,
    served: Duration,
}

/// CPU use since a start.
pub struct Use {
    /// Of the servers.
    pub server: Duration,
    /// Of neither server nor client, as a fraction of all CPUs.
    pub foreign: f64,
}

impl Window {
    /// Starts to count; `servers` are watched with all their children.
    pub fn open(servers: &[u32]) -> Self {
        Self {
            began: Instant::now(),
            busy: busy(),
            servers: servers.to_vec(),
            served: servers.iter().map(|pid| of_tree(*pid)).sum(),
        }
    }

    /// Ends the count; `client` is the CPU time of the client, which has ended.
    pub fn close(&self, client: Duration) -> Use {
        let server = self
            .servers
            .iter()
            .map(|pid| of_tree(*pid))
            .sum::<Duration>();
        let server = server.saturating_sub(self.served);
        let cpus = std::thread::available_parallelism().map_or(1, usize::from);
        let all = self.began.elapsed().as_secs_f64() * cpus as f64;
        let foreign = busy()
            .saturating_sub(self.busy)
            .saturating_sub(server)
            .saturating_sub(client);
        Use {
            server,
            foreign: foreign.as_secs_f64() / all,
        }
    }
}

/// Busy time of all CPUs since boot; ticks of 10 ms.
fn busy() -> Duration {
    let stat = fs::read_to_string("/proc/stat").unwrap_or_default();
    let ticks: Vec<u64> = stat
        .lines()
        .next()
        .unwrap_or_default()
        .split_whitespace()
        .skip(1)
        .filter_map(|word| word.parse().ok())
        .collect();
    // user nice system idle iowait irq softirq steal; guest time is within user.
    let busy: u64 = [0, 1, 2, 5, 6, 7]
        .iter()
        .filter_map(|at| ticks.get(*at))
        .sum();
    Duration::from_millis(busy * 10)
}

/// Run time of a process, its threads and its living descendants.
fn of_tree(top: u32) -> Duration {
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
    tree.into_iter().map(of_process).sum()
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
