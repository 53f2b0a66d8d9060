//! CPU time of all other processes, one by one.
//!
//! What is busy and not ours can be had by subtraction, but only as exactly as `/proc/stat` counts idle time (10 ms),
//! and with the softirqs that our own packets cause on idle CPUs counted as foreign. Adding up the CPU clocks of all
//! other processes is exact to the nanosecond and leaves those out. It misses a process that starts and ends within the
//! window, so it holds only when nothing was forked meanwhile, and only where all processes can be seen.

use std::fs;
use std::time::Duration;

use crate::clock;
use crate::privilege::in_initial_pid_namespace;

/// CPU time of every process, by pid, at one moment.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Census {
    /// Sorted by pid.
    times: Vec<(u32, Duration)>,
    /// Forks of the machine since its boot.
    forks: u64,
}

impl Census {
    /// Absent where this process cannot see all others, or `stat` does not count forks.
    pub(crate) fn take(stat: &[u8]) -> Option<Self> {
        if !in_initial_pid_namespace() {
            return None;
        }
        let mut times: Vec<(u32, Duration)> = fs::read_dir("/proc")
            .ok()?
            .filter_map(|entry| {
                let pid = entry.ok()?.file_name().to_str()?.parse().ok()?;
                Some((pid, clock::process_cpu(pid).ok()?))
            })
            .collect();
        times.sort_unstable();
        Some(Self {
            times,
            forks: forks(stat)?,
        })
    }

    /// CPU time since `earlier` of all processes but `ours`; absent if a process was forked meanwhile.
    pub(crate) fn others_since(&self, earlier: &Self, ours: &[u32]) -> Option<Duration> {
        if self.forks != earlier.forks {
            return None;
        }
        let spent = self
            .times
            .iter()
            .filter(|(pid, _)| !ours.contains(pid))
            .map(|(pid, after)| {
                let before = earlier.times.binary_search_by_key(pid, |(pid, _)| *pid);
                before.map_or(Duration::ZERO, |at| {
                    after.saturating_sub(earlier.times[at].1)
                })
            });
        Some(spent.sum())
    }
}

/// The line `processes N` of `/proc/stat`.
fn forks(stat: &[u8]) -> Option<u64> {
    stat.split(|byte| *byte == b'\n').find_map(|line| {
        let number = line.strip_prefix(b"processes ")?;
        std::str::from_utf8(number).ok()?.trim().parse().ok()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn census(times: &[(u32, u64)], forks: u64) -> Census {
        Census {
            times: times
                .iter()
                .map(|(pid, ms)| (*pid, Duration::from_millis(*ms)))
                .collect(),
            forks,
        }
    }

    #[test]
    fn others_are_counted_and_ours_are_not() {
        let before = census(&[(1, 100), (7, 50), (9, 10)], 3);
        let after = census(&[(1, 104), (7, 90), (9, 10)], 3);
        assert_eq!(
            after.others_since(&before, &[7]),
            Some(Duration::from_millis(4))
        );
        assert_eq!(
            after.others_since(&before, &[]),
            Some(Duration::from_millis(44))
        );
    }

    #[test]
    fn a_fork_in_the_window_makes_the_sum_unusable() {
        let before = census(&[(1, 100)], 3);
        assert_eq!(census(&[(1, 100)], 4).others_since(&before, &[]), None);
    }

    #[test]
    fn forks_are_found_behind_the_interrupts() {
        assert_eq!(
            forks(b"cpu 1\nintr 1 2 3\nctxt 9\nbtime 1\nprocesses 4242\n"),
            Some(4242)
        );
        assert_eq!(forks(b"cpu 1\n"), None);
    }
}
