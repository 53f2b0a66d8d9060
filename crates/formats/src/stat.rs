//! `/proc/stat`: where the time of each CPU went since boot, context switches, tasks that run.
//!
//! Times are in ticks of 1/100 s (`USER_HZ`), whatever `CONFIG_HZ` is. Only CPUs that are online have a
//! line. Guest time is also counted as user time, so it is not added again. Source: fs/proc/stat.c
//! (`show_stat`), Linux 6.18.

use std::collections::BTreeMap;

/// What is read of the file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Stat {
    /// Each CPU that is online.
    pub cpus: BTreeMap<usize, Ticks>,
    /// Context switches since boot.
    pub context_switches: Option<u64>,
    /// Tasks that run or wait for a CPU, the reader of the file among them.
    pub running: Option<u64>,
}

/// One `cpuN` line, in ticks of 1/100 s.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Ticks {
    /// User code, guests included.
    pub user: u64,
    /// User code of low priority.
    pub nice: u64,
    /// Kernel on behalf of a task.
    pub system: u64,
    /// Nothing to do. May shrink by a few ticks, as may `iowait`.
    pub idle: u64,
    /// Nothing to do, with a disk request under way.
    pub iowait: u64,
    /// Hard interrupts.
    pub irq: u64,
    /// Soft interrupts.
    pub softirq: u64,
    /// Ready to run while the hypervisor ran another guest.
    pub steal: u64,
}

/// Reads the file; `None` if no CPU is found in it.
pub fn parse(text: &str) -> Option<Stat> {
    let mut stat = Stat::default();
    for line in text.lines() {
        let mut words = line.split_ascii_whitespace();
        let Some(name) = words.next() else { continue };
        match name {
            "ctxt" => stat.context_switches = number(words.next()),
            "procs_running" => stat.running = number(words.next()),
            _ => {
                let cpu = name.strip_prefix("cpu").and_then(|cpu| cpu.parse().ok());
                if let Some(cpu) = cpu
                    && let Some(ticks) = ticks(words)
                {
                    stat.cpus.insert(cpu, ticks);
                }
            }
        }
    }
    (!stat.cpus.is_empty()).then_some(stat)
}

/// Kernels since 2.6.11 print these eight columns; a line with fewer is not believed.
fn ticks<'a>(mut words: impl Iterator<Item = &'a str>) -> Option<Ticks> {
    let mut next = || number(words.next());
    Some(Ticks {
        user: next()?,
        nice: next()?,
        system: next()?,
        idle: next()?,
        iowait: next()?,
        irq: next()?,
        softirq: next()?,
        steal: next()?,
    })
}

fn number(word: Option<&str>) -> Option<u64> {
    word?.parse().ok()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const TEXT: &str = "cpu  307301 461745 556681 1001782 6643 0 168883 1586 0 0\ncpu0 150849 229775 275472 508095 1718 0 84896 796 0 0\ncpu2 156452 231970 281209 493687 4924 0 83987 789 0 0\nintr 20747979 0 0\nctxt 173637563\nprocs_running 8\n";

    #[test]
    fn each_cpu_has_its_own_line_and_the_sum_is_none() {
        let stat = parse(TEXT).unwrap();
        assert_eq!(stat.cpus.keys().copied().collect::<Vec<_>>(), [0, 2]);
        let ticks = stat.cpus[&2];
        assert_eq!(
            (ticks.user, ticks.softirq, ticks.steal),
            (156_452, 83_987, 789)
        );
        assert_eq!(stat.context_switches, Some(173_637_563));
        assert_eq!(stat.running, Some(8));
    }

    #[test]
    fn a_line_with_too_few_columns_is_left_out() {
        assert_eq!(parse("cpu0 1 2 3 4\n"), None);
        assert_eq!(parse(""), None);
    }

    proptest! {
        #[test]
        fn no_text_is_a_panic(text in ".*", lines in "((cpu|ctxt)[0-9]{0,3} [0-9 x]{0,60}\n){0,5}") {
            let _ = parse(&text);
            let _ = parse(&lines);
        }
    }
}
