//! Where workers publish what they count. A worker is the only writer of its own cache lines, so counting is a load, an
//! addition and a store, once per round; readers take what is there.

use std::sync::atomic::{AtomicI32, AtomicU64, Ordering};

use crate::affinity;

/// The `N` counters of one worker. Aligned to two cache lines, since x86 fetches them in pairs.
#[derive(Debug)]
#[repr(align(128))]
pub(crate) struct Published<const N: usize> {
    counters: [AtomicU64; N],
    /// CPU time at the worker's end; before, it is read from the thread's clock.
    final_cpu_ns: AtomicU64,
    /// Thread id while the thread lives, else 0.
    thread: AtomicI32,
    /// Requests by the CPU that the worker ran on.
    cpus: PerCpu,
}

/// A counter for each CPU, with one writer.
#[derive(Debug)]
pub(crate) struct PerCpu(Box<[AtomicU64]>);

impl PerCpu {
    /// Counters for a machine with CPUs below `cpus`.
    pub(crate) fn new(cpus: usize) -> Self {
        Self((0..cpus).map(|_| AtomicU64::new(0)).collect())
    }

    /// Adds to `cpu`. For the owning worker alone.
    pub(crate) fn add(&self, cpu: usize, by: u64) {
        // A CPU beyond the machine's (hot-plugged) loses its place in the list.
        if let Some(counter) = self.0.get(cpu) {
            grow(counter, by);
        }
    }

    /// The CPUs that were counted, ascending, each with its count.
    pub(crate) fn read(&self) -> Vec<(usize, u64)> {
        let all = self.0.iter().map(|counter| counter.load(Ordering::Relaxed));
        all.enumerate().filter(|(_, count)| *count > 0).collect()
    }
}

/// What was read of a worker.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Snapshot<const N: usize> {
    pub(crate) counters: [u64; N],
    /// CPU time of the worker's thread, nanoseconds.
    pub(crate) cpu_ns: u64,
    /// The CPUs that were counted, ascending, each with its requests.
    pub(crate) cpus: Vec<(usize, u64)>,
}

impl<const N: usize> Published<N> {
    /// Counters for a machine with CPUs below `cpus`.
    pub(crate) fn new(cpus: usize) -> Self {
        Self {
            counters: std::array::from_fn(|_| AtomicU64::new(0)),
            final_cpu_ns: AtomicU64::new(0),
            thread: AtomicI32::new(0),
            cpus: PerCpu::new(cpus),
        }
    }

    /// Adds a round, and `requests` of it that belong to `cpu`. For the owning worker alone.
    pub(crate) fn add(&self, round: &[u64; N], cpu: usize, requests: u64) {
        for (counter, by) in self.counters.iter().zip(round) {
            grow(counter, *by);
        }
        self.cpus.add(cpu, requests);
    }

    /// The worker's thread lives and has this id.
    pub(crate) fn born(&self, thread: libc::pid_t) {
        self.thread.store(thread, Ordering::Release);
    }

    /// The worker's thread ends after this much CPU time.
    pub(crate) fn died(&self, cpu_ns: u64) {
        self.final_cpu_ns.store(cpu_ns, Ordering::Release);
        self.thread.store(0, Ordering::Release);
    }

    /// A snapshot. Of a running worker the numbers may be one round apart; counters are stored from the first to the last
    /// and read from the last to the first, so that requests, which come first, err on the side of more than replies.
    pub(crate) fn read(&self) -> Snapshot<N> {
        let of = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        let live = match self.thread.load(Ordering::Acquire) {
            0 => None,
            thread => affinity::thread_cpu_ns(thread),
        };
        let cpus = self.cpus.read();
        let mut counters = [0; N];
        for at in (0..N).rev() {
            counters[at] = of(&self.counters[at]);
        }
        Snapshot {
            counters,
            cpu_ns: live.unwrap_or_else(|| self.final_cpu_ns.load(Ordering::Acquire)),
            cpus,
        }
    }
}

/// Adds without a locked instruction: right because there is one writer.
fn grow(counter: &AtomicU64, by: u64) {
    if by > 0 {
        counter.store(counter.load(Ordering::Relaxed) + by, Ordering::Relaxed);
    }
}

/// Merges lists of CPUs with their counts, ascending.
pub(crate) fn merge(into: &mut Vec<(usize, u64)>, cpus: &[(usize, u64)]) {
    for &(cpu, requests) in cpus {
        match into.binary_search_by_key(&cpu, |entry| entry.0) {
            Ok(at) => into[at].1 += requests,
            Err(at) => into.insert(at, (cpu, requests)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_round_is_counted_on_its_cpu() {
        let published = Published::<2>::new(2);
        published.add(&[3, 2], 1, 3);
        published.add(&[3, 2], 9, 3);
        published.died(77);
        let read = published.read();
        assert_eq!((read.counters, read.cpu_ns), ([6, 4], 77));
        assert_eq!(read.cpus, [(1, 3)]);
    }
}
