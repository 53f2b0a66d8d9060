//! `/proc/PID/stat` and `/proc/PID/schedstat`, of a process or (below `task/`) of a thread.
//!
//! `stat` of a process counts all its threads, ended ones included; `schedstat` of a process is that of its
//! first thread alone, however many it has (fs/proc/array.c, fs/proc/base.c, Linux 6.18). The name stands in
//! brackets and may hold spaces and brackets itself, so columns are counted behind the last one.

/// The columns of `stat` that are read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stat<'a> {
    /// Name, at most 15 bytes.
    pub name: &'a str,
    /// State (column 3): `R` runs, `S` sleeps, `D` waits uninterruptibly, `T` stopped by a signal, `t` stopped by a tracer,
    /// `Z` ended and not waited for.
    pub state: char,
    /// Parent process (column 4).
    pub parent: u32,
    /// Controlling terminal (column 7); 0 for none.
    pub terminal: i64,
    /// A thread of the kernel (`PF_KTHREAD` in column 9).
    pub is_kernel: bool,
    /// Page faults that had to read (column 12).
    pub major_faults: u64,
    /// CPU time in user code, in ticks of 10 ms (column 14).
    pub user_ticks: u64,
    /// CPU time in the kernel, in ticks of 10 ms (column 15).
    pub system_ticks: u64,
    /// CPU time of children that ended and were waited for, in ticks of 10 ms (columns 16 and 17).
    pub children_ticks: u64,
    /// Nice value (column 19).
    pub nice: i64,
    /// Threads of the process (column 20).
    pub threads: u64,
    /// Start in ticks after boot (column 22); together with the id it identifies a thread.
    pub started: u64,
    /// Resident memory in pages (column 24).
    pub resident_pages: i64,
    /// CPU on which it ran last (column 39).
    pub last_cpu: usize,
    /// Scheduling policy (column 41) as in `include/uapi/linux/sched.h`; absent before Linux 2.5.
    pub policy: Option<u64>,
}

/// `PF_KTHREAD` of `include/linux/sched.h`, the same since Linux 2.6.27.
const KERNEL_THREAD: u64 = 0x0020_0000;

/// Reads `stat`; nothing if a column is missing.
pub fn stat(text: &str) -> Option<Stat<'_>> {
    let (head, columns) = text.rsplit_once(')')?;
    let (_, name) = head.split_once('(')?;
    let mut columns = columns.split_ascii_whitespace();
    let state = columns.next()?.chars().next()?;
    // Column 4 is the next one; each call steps over those between.
    let mut at = 4;
    let mut column = |number: usize| {
        let found = columns.nth(number - at);
        at = number + 1;
        found
    };
    Some(Stat {
        name,
        state,
        parent: column(4)?.parse().ok()?,
        terminal: column(7)?.parse().ok()?,
        is_kernel: column(9)?.parse::<u64>().ok()? & KERNEL_THREAD != 0,
        major_faults: column(12)?.parse().ok()?,
        user_ticks: column(14)?.parse().ok()?,
        system_ticks: column(15)?.parse().ok()?,
        // Signed in the kernel, and never below zero there.
        children_ticks: column(16)?
            .parse::<u64>()
            .ok()?
            .saturating_add(column(17)?.parse().ok()?),
        nice: column(19)?.parse().ok()?,
        threads: column(20)?.parse().ok()?,
        started: column(22)?.parse().ok()?,
        resident_pages: column(24)?.parse().ok()?,
        last_cpu: column(39)?.parse().ok()?,
        policy: column(41).and_then(|policy| policy.parse().ok()),
    })
}

/// The `schedstat` values of one thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RunTime {
    /// Nanoseconds on a CPU.
    pub ran_ns: u64,
    /// Nanoseconds runnable without a CPU.
    pub waited_ns: u64,
    /// Times that it was given a CPU.
    pub slices: u64,
}

/// Reads `schedstat`. A kernel that does not count prints zeros (`sched_info_on`), which are not values: the task
/// has run.
pub fn schedstat(text: &str) -> Option<RunTime> {
    let mut words = text.split_ascii_whitespace();
    let mut number = || words.next()?.parse::<u64>().ok();
    let (ran_ns, waited_ns, slices) = (number()?, number()?, number()?);
    (ran_ns != 0 || waited_ns != 0 || slices != 0).then_some(RunTime {
        ran_ns,
        waited_ns,
        slices,
    })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const CAT: &str = "2425 (cat) R 2390 2390 30899 0 -1 4194304 98 0 3 0 11 22 0 0 20 0 1 0 1260112 3133440 383 \
        18446744073709551615 94830751404032 94830751423913 140731639622768 0 0 0 0 0 0 0 0 0 17 1 0 0 0 0 0 \
        94830751439920 94830751441536 94830799290368 140731639630532 140731639630552 140731639630552 140731639631851 0\n";

    #[test]
    fn columns_are_counted_behind_the_name() {
        let stat_of = |name: &'static str| Stat {
            name,
            state: 'R',
            parent: 2390,
            terminal: 0,
            is_kernel: false,
            major_faults: 3,
            user_ticks: 11,
            system_ticks: 22,
            children_ticks: 0,
            nice: 0,
            threads: 1,
            started: 1_260_112,
            resident_pages: 383,
            last_cpu: 1,
            policy: Some(0),
        };
        assert_eq!(stat(CAT), Some(stat_of("cat")));
        let odd = CAT.replace("(cat)", "(tmux: (1) R)");
        assert_eq!(stat(&odd), Some(stat_of("tmux: (1) R")));
        assert_eq!(stat("2425 (cat) R 1 2 3"), None);
    }

    #[test]
    fn a_kernel_thread_and_a_reniced_process_are_recognised() {
        let kernel = "14 (ksoftirqd/0) S 2 0 0 0 -1 69238848 0 0 0 0 0 90 0 0 20 0 1 0 20 0 0 18446744073709551615 0 0 0 0 0 0 0 \
            2147483647 0 1 0 0 17 0 0 0 0 0 0 0 0 0 0 0 0 0 0\n";
        assert!(stat(kernel).unwrap().is_kernel);
        let niced = CAT.replace(" 0 0 20 0 1 0 ", " 7 8 39 19 1 0 ");
        let found = stat(&niced).unwrap();
        assert_eq!((found.nice, found.children_ticks), (19, 15));
    }

    #[test]
    fn run_time_and_run_delay_are_nanoseconds_and_zeros_tell_nothing() {
        let found = schedstat("63801265 50866 71\n").unwrap();
        assert_eq!((found.ran_ns, found.waited_ns), (63_801_265, 50_866));
        assert_eq!(schedstat("0 0 0\n"), None);
        assert_eq!(schedstat("1 2"), None);
    }

    proptest! {
        #[test]
        fn any_text_is_read_without_a_panic(text in "([0-9]{1,21} |\\(|\\)|R |-1 |.){0,60}") {
            stat(&text);
            schedstat(&text);
        }
    }
}
