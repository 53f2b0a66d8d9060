//! `/proc/schedstat`: how long each CPU ran tasks, and how long they waited for it.
//!
//! A line `cpuN` has nine numbers since version 15 (Linux 2.6.30), the same ones up to version 17 (6.13); lines of
//! scheduling domains follow it and are left out. Source: Documentation/scheduler/sched-stats.rst, kernel/sched/stats.c
//! (`show_schedstat`), Linux 6.18.

use std::collections::BTreeMap;

/// What tasks did on one CPU since boot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RunQueue {
    /// Nanoseconds that tasks ran (column 7).
    pub ran_ns: u64,
    /// Nanoseconds that tasks waited to run (column 8), of several at a time added up.
    pub waited_ns: u64,
    /// Times that a task got the CPU (column 9).
    pub slices: u64,
}

/// Each CPU that is online; nothing if there is no such line.
pub fn parse(text: &str) -> Option<BTreeMap<usize, RunQueue>> {
    let cpus: BTreeMap<usize, RunQueue> = text.lines().filter_map(cpu).collect();
    (!cpus.is_empty()).then_some(cpus)
}

fn cpu(line: &str) -> Option<(usize, RunQueue)> {
    let mut words = line.strip_prefix("cpu")?.split_ascii_whitespace();
    let cpu = words.next()?.parse().ok()?;
    let mut columns = words.skip(6).map(|word| word.parse::<u64>().ok());
    let run_queue = RunQueue {
        ran_ns: columns.next()??,
        waited_ns: columns.next()??,
        slices: columns.next()??,
    };
    Some((cpu, run_queue))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const TEXT: &str = "version 15\ntimestamp 4299158401\n\
        cpu0 0 0 0 0 0 0 231402937411 18300411202 4180311\n\
        domain0 3 14519 14511 7 114 1 0 0 14511 2 2 0 0 0 0 0 2 9 9 0 0 0 0 0 9 0 0 0 0 0 0 0 0 0 8 0 0\n\
        cpu11 0 0 0 0 0 0 198211004117 0 3995012\n";

    #[test]
    fn each_cpu_has_its_line_and_domains_are_left_out() {
        let cpus = parse(TEXT).unwrap();
        assert_eq!(cpus.keys().copied().collect::<Vec<_>>(), [0, 11]);
        let first = RunQueue {
            ran_ns: 231_402_937_411,
            waited_ns: 18_300_411_202,
            slices: 4_180_311,
        };
        assert_eq!(cpus[&0], first);
        assert_eq!(cpus[&11].waited_ns, 0);
    }

    #[test]
    fn a_line_with_too_few_columns_is_left_out() {
        assert_eq!(parse("cpu0 1 2 3 4 5 6 7 8\n"), None);
        assert_eq!(parse("cpufreq 1 2 3 4 5 6 7 8 9\n"), None);
        assert_eq!(parse(""), None);
    }

    proptest! {
        #[test]
        fn any_text_is_read_without_a_panic(text in "((cpu|domain)[0-9]{0,3} |[0-9]{1,21} |-1 |\n|.){0,60}") {
            parse(&text);
        }
    }
}
