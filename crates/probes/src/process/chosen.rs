//! Processes to read in detail: the family of the judged one, those near a limit, those that others wait for.
//!
//! Of all processes only `stat`, `status` and `limits` are read; everything else only of the few that these select.

use std::collections::{BTreeMap, BTreeSet};

use rungwise_formats::limits;
use rungwise_formats::{fields, task};
use rungwise_model::kernel::TcpSocket;

use super::processes::STATS;
use crate::Window;
use crate::capture::{Moment, Raw};

/// Limit of a family, which may be a fork storm.
const LARGEST_FAMILY: usize = 512;

/// Backends whose titles are read.
const MOST_BACKENDS: usize = 300;

/// Processes whose threads are read because they use much CPU.
const MOST_BUSY: usize = 8;

/// Threads that a busy process may have for its threads to be read, and all services whose threads are read in the full samples
/// only: to read one costs 8 us.
pub(super) const MOST_THREADS: u64 = 1000;

/// CPUs that a process must use for one of its threads to be saturated, with room for the ticks of 10 ms.
const BUSY: f64 = 0.8;

/// A process with few threads is cheap to read, and shows what its threads wait for at much less CPU use.
const SOME: f64 = 0.02;
const FEW_THREADS: u64 = 32;

/// Limit of the processes that are read because they serve clients or use CPU, often and in the full samples, and of the connections per port to find them.
const MOST_SERVICES: usize = 16;
/// Listening sockets whose process is looked up.
const MOST_PORTS: usize = 64;
/// Threads of all that are read often: to read one costs some 8 us, twenty times in a window.
const SAMPLED_THREADS: u64 = 100;

/// CPUs that a process must use to be read often though it has no connections.
const WORKING: f64 = 0.01;

/// CPUs that a process must use in the whole window to matter although it began to work late, or refuses to be read.
const MUCH: f64 = 0.1;

/// States of `include/net/tcp_states.h`.
const ESTABLISHED: u8 = 1;
const LISTEN: u8 = 10;

/// Share of its limit from which on the descriptors of a process are counted.
const NEAR: f64 = 0.8;

/// All processes in this full sample.
pub(super) fn stats(moment: &Moment) -> impl Iterator<Item = (u32, task::Stat<'_>)> {
    let files = moment.files.range("/proc/".to_owned()..);
    files
        .take_while(|(path, _)| path.starts_with("/proc/"))
        .filter_map(|(path, raw)| {
            let pid = path.strip_prefix("/proc/")?.strip_suffix("/stat")?;
            match raw {
                Raw::Text(text) => Some((pid.parse().ok()?, task::stat(text)?)),
                Raw::Failed { .. } => None,
            }
        })
}

/// The judged process and its descendants in this full sample.
pub(crate) fn family_at(moment: &Moment, judged: u32) -> BTreeSet<u32> {
    let mut children: BTreeMap<u32, Vec<u32>> = BTreeMap::new();
    for (pid, stat) in stats(moment) {
        children.entry(stat.parent).or_default().push(pid);
    }
    let mut family = BTreeSet::from([judged]);
    let mut found = vec![judged];
    while let Some(parent) = found.pop() {
        for child in children.get(&parent).into_iter().flatten() {
            if family.len() < LARGEST_FAMILY && family.insert(*child) {
                found.push(*child);
            }
        }
    }
    family
}

/// The family at the end of the window; empty where no process is judged.
pub(super) fn family(window: &Window<'_>) -> BTreeSet<u32> {
    let judged = window.capture().process.as_ref().map(|process| process.pid);
    match (judged, window.moments().last()) {
        (Some(judged), Some(last)) => family_at(last, judged),
        _ => BTreeSet::new(),
    }
}

/// Inodes of sockets that show which processes serve clients: connections to listening ports, some of each port, and
/// the listening sockets.
pub(crate) fn of_services(sockets: &[TcpSocket]) -> BTreeSet<u64> {
    let listeners = || sockets.iter().filter(|socket| socket.state == LISTEN);
    let mut ports: BTreeMap<u16, usize> =
        listeners().map(|socket| (socket.local.port, 0)).collect();
    let mut inodes: BTreeSet<u64> = listeners()
        .map(|socket| socket.inode)
        .take(MOST_PORTS)
        .collect();
    for socket in sockets.iter().filter(|socket| socket.state == ESTABLISHED) {
        if let Some(count) = ports.get_mut(&socket.local.port)
            && *count < MOST_SERVICES
        {
            *count += 1;
            inodes.insert(socket.inode);
        }
    }
    inodes.remove(&0);
    inodes
}

/// Processes that serve clients or use CPU.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Services {
    /// Those that are read often.
    pub(crate) often: BTreeSet<u32>,
    /// Of the others, those that are read in the full samples.
    pub(crate) seldom: BTreeSet<u32>,
}

impl Services {
    /// All of them.
    pub(crate) fn all(&self) -> impl Iterator<Item = u32> {
        self.often.union(&self.seldom).copied()
    }
}

/// Processes with such sockets and their children.
pub(crate) fn services_at(moment: &Moment, owners: &BTreeSet<u32>) -> Services {
    let used = |stat: &task::Stat<'_>| stat.user_ticks.saturating_add(stat.system_ticks);
    let services = stats(moment)
        .filter(|(pid, stat)| owners.contains(pid) || owners.contains(&stat.parent))
        .map(|(pid, stat)| (used(&stat), pid, stat));
    affordable(services.collect(), Services::default(), moment)
}

/// The same with the processes that used CPU between the full samples: not every service has connections.
pub(crate) fn services_between(earlier: &Moment, now: &Moment, services: Services) -> Services {
    affordable(working_between(earlier, now), services, now)
}

/// Ticks that a process used, its number, and what else is known of it.
type Working<'a> = (u64, u32, task::Stat<'a>);

/// Processes that used a hundredth of a CPU or more between the full samples.
fn working_between<'a>(earlier: &Moment, now: &'a Moment) -> Vec<Working<'a>> {
    let used = |stat: &task::Stat<'_>| stat.user_ticks.saturating_add(stat.system_ticks);
    let before: BTreeMap<u32, u64> = stats(earlier)
        .map(|(pid, stat)| (pid, used(&stat)))
        .collect();
    let working = stats(now).filter_map(|(pid, stat)| {
        let grown = used(&stat).checked_sub(*before.get(&pid)?)?;
        let line = WORKING * (now.at_s - earlier.at_s);
        (grown as f64 * super::TICK >= line && grown > 0).then_some((grown, pid, stat))
    });
    working.collect()
}

/// Processes of several threads that worked when the services were chosen, and those that used a tenth of a CPU or more in the whole
/// window, with the number of their threads.
pub(super) fn working(window: &Window<'_>) -> [BTreeMap<u32, u64>; 2] {
    let [first, second, ..] = window.moments() else {
        return [BTreeMap::new(), BTreeMap::new()];
    };
    let several = |(_, pid, stat): Working<'_>| {
        // Captures of earlier versions have no number of the process that took them.
        let sampler = window.capture().sampler;
        let samples = sampler.map_or(stat.name == "rungwise", |own| own == pid);
        let counts = stat.threads > 1 && !stat.is_kernel && !samples;
        counts.then_some((pid, stat.threads))
    };
    let begin = working_between(first, second).into_iter();
    let last = window.moments().last().unwrap_or(second);
    let much = MUCH * (last.at_s - first.at_s);
    let whole = working_between(first, last).into_iter();
    let whole = whole.filter(|(ticks, ..)| *ticks as f64 * super::TICK >= much);
    [
        begin.filter_map(several).collect(),
        whole.filter_map(several).collect(),
    ]
}

/// Adds these processes to the chosen ones, ordered by the first number, largest first, while they have few enough threads.
fn affordable(mut processes: Vec<Working<'_>>, mut chosen: Services, moment: &Moment) -> Services {
    let ours = std::process::id();
    processes.retain(|(_, pid, stat)| *pid != ours && !stat.is_kernel);
    processes.sort_unstable_by_key(|(amount, pid, _)| (std::cmp::Reverse(*amount), *pid));
    let mut threads_often = threads_of(moment, &chosen.often);
    let mut threads_seldom = threads_of(moment, &chosen.seldom);
    for (_, pid, stat) in processes {
        let known = chosen.all().any(|known| known == pid);
        let Services { often, seldom } = &mut chosen;
        if known {
            continue;
        }
        if often.len() < MOST_SERVICES && threads_often + stat.threads <= SAMPLED_THREADS {
            threads_often += stat.threads;
            often.insert(pid);
        } else if seldom.len() < MOST_SERVICES && threads_seldom + stat.threads <= MOST_THREADS {
            threads_seldom += stat.threads;
            seldom.insert(pid);
        }
    }
    chosen
}

/// Total threads of these processes in this full sample.
pub(crate) fn threads_of(moment: &Moment, processes: &BTreeSet<u32>) -> u64 {
    let of = stats(moment).filter(|(pid, _)| processes.contains(pid));
    of.map(|(_, stat)| stat.threads).sum()
}

/// Processes of `PostgreSQL` in this full sample.
pub(crate) fn postgres_at(moment: &Moment) -> BTreeSet<u32> {
    stats(moment)
        .filter(|(_, stat)| stat.name == "postgres")
        .map(|(pid, _)| pid)
        .take(MOST_BACKENDS)
        .collect()
}

/// Processes with several threads that used most of a CPU or more between the full samples, or with few threads and a
/// little of one; busiest first.
pub(crate) fn busy_between(earlier: &Moment, now: &Moment) -> BTreeSet<u32> {
    let ticks = |stat: &task::Stat<'_>| stat.user_ticks.saturating_add(stat.system_ticks);
    let before: BTreeMap<u32, u64> = stats(earlier)
        .map(|(pid, stat)| (pid, ticks(&stat)))
        .collect();
    let seconds = now.at_s - earlier.at_s;
    let line = |threads: u64| if threads <= FEW_THREADS { SOME } else { BUSY };
    let mut busy: Vec<(u64, u32)> = stats(now)
        .filter(|(_, stat)| (2..=MOST_THREADS).contains(&stat.threads) && !stat.is_kernel)
        .filter_map(|(pid, stat)| {
            let used = ticks(&stat).checked_sub(*before.get(&pid)?)?;
            let is_busy = used as f64 * super::TICK >= line(stat.threads) * seconds && used > 0;
            is_busy.then_some((used, pid))
        })
        .collect();
    busy.sort_unstable_by(|a, b| b.cmp(a));
    busy.into_iter()
        .take(MOST_BUSY)
        .map(|(_, pid)| pid)
        .collect()
}

/// Processes that may have used most of their descriptors, by the size of their descriptor table.
pub(crate) fn near_their_limit(window: &Window<'_>) -> BTreeSet<u32> {
    let near = |pid: u32| {
        let status = window.text(&format!("/proc/{pid}/status")).ok()?;
        let size = fields::number(status, "FDSize")?;
        (size as f64 >= NEAR * limit(window, pid, OPEN_FILES)? as f64).then_some(pid)
    };
    pids(window).filter_map(near).collect()
}

/// The limit of open files in `/proc/PID/limits`.
pub(super) const OPEN_FILES: &str = "open files";

/// A soft limit of a process.
pub(super) fn limit(window: &Window<'_>, pid: u32, name: &str) -> Option<u64> {
    limits_of(window, pid, name)?.soft
}

/// The hard one.
pub(super) fn hard_limit(window: &Window<'_>, pid: u32, name: &str) -> Option<u64> {
    limits_of(window, pid, name)?.hard
}

fn limits_of<'w>(window: &'w Window<'_>, pid: u32, name: &str) -> Option<limits::Limit<'w>> {
    let text = window.text(&format!("/proc/{pid}/limits")).ok()?;
    limits::parse(text).find(|limit| limit.name == name)
}

/// Processes in an uninterruptible wait in the last full sample and in an earlier one.
pub(crate) fn blocked(window: &Window<'_>) -> BTreeSet<u32> {
    let is_blocked = |moment: &Moment| -> BTreeSet<u32> {
        stats(moment)
            .filter(|(_, stat)| stat.state == 'D' && !stat.is_kernel)
            .map(|(pid, _)| pid)
            .collect()
    };
    let Some((last, before)) = window.moments().split_last() else {
        return BTreeSet::new();
    };
    let before: BTreeSet<u32> = before.iter().flat_map(is_blocked).collect();
    let now = is_blocked(last);
    now.intersection(&before).copied().take(MOST_BUSY).collect()
}

fn pids(window: &Window<'_>) -> impl Iterator<Item = u32> {
    window
        .matching(STATS)
        .into_iter()
        .filter_map(|(_, stars)| stars.first()?.parse().ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn moment(at_s: f64, processes: &[(u32, u32, u64, u64)]) -> Moment {
        let mut moment = Moment {
            at_s,
            ..Moment::default()
        };
        for (pid, parent, ticks, threads) in processes {
            let stat = format!(
                "{pid} (a) S {parent} 1 1 0 -1 0 0 0 0 0 {ticks} 0 0 0 20 0 {threads} 0 9 {}0 17 1 0 0",
                "0 ".repeat(15)
            );
            let path = format!("/proc/{pid}/stat");
            moment.files.insert(path, Raw::Text(stat));
        }
        moment
    }

    #[test]
    fn a_family_is_the_process_with_its_children_and_theirs() {
        let moment = moment(
            0.0,
            &[
                (1, 0, 0, 1),
                (4, 1, 0, 1),
                (5, 4, 0, 1),
                (6, 5, 0, 1),
                (9, 1, 0, 1),
            ],
        );
        assert_eq!(family_at(&moment, 4), [4, 5, 6].into());
        assert_eq!(family_at(&moment, 7), [7].into());
    }

    #[test]
    fn services_with_many_threads_are_read_in_the_full_samples() {
        let of = |often: &[u32], seldom: &[u32]| Services {
            often: often.iter().copied().collect(),
            seldom: seldom.iter().copied().collect(),
        };
        let first = moment(0.0, &[(4, 1, 0, 60), (5, 1, 9, 900), (6, 1, 0, 200)]);
        let services = services_at(&first, &[4, 5].into());
        assert_eq!(services, of(&[4], &[5]));
        let second = moment(2.0, &[(4, 1, 0, 60), (5, 1, 9, 900), (6, 1, 50, 200)]);
        let services = services_between(&first, &second, services);
        assert_eq!(services, of(&[4], &[5]), "1100 threads are too many");
    }

    #[test]
    fn threads_are_read_of_processes_that_use_most_of_a_cpu() {
        let before = moment(
            0.0,
            &[(4, 1, 0, 99), (5, 1, 0, 99), (6, 1, 0, 1), (7, 1, 0, 32)],
        );
        let after = moment(
            2.0,
            &[
                (4, 1, 170, 99),
                (5, 1, 150, 99),
                (6, 1, 200, 1),
                (7, 1, 4, 32),
            ],
        );
        assert_eq!(busy_between(&before, &after), [4, 7].into());
    }
}
