//! What each worker did. A worker counts in its own cache lines and is their only writer, so counting is a
//! load, an addition and a store, once per batch; readers take what is there.

use std::sync::atomic::{AtomicI32, AtomicU64, Ordering};

/// Counters of a whole server.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// One entry per worker.
    pub workers: Vec<WorkerCounters>,
    /// The in-kernel echo, if there is one.
    pub xdp: Option<XdpCounters>,
}

impl Counters {
    /// The workers' counters added up; CPU lists merged.
    pub fn total(&self) -> WorkerCounters {
        let mut total = WorkerCounters::default();
        for worker in &self.workers {
            total.received += worker.received;
            total.sent += worker.sent;
            total.received_bytes += worker.received_bytes;
            total.sent_bytes += worker.sent_bytes;
            total.dropped_by_kernel += worker.dropped_by_kernel;
            total.refused += worker.refused;
            total.panics += worker.panics;
            total.send_errors += worker.send_errors;
            total.receive_errors += worker.receive_errors;
            total.rounds += worker.rounds;
            total.cpu_ns += worker.cpu_ns;
            for &(cpu, received) in &worker.cpus {
                match total.cpus.binary_search_by_key(&cpu, |entry| entry.0) {
                    Ok(at) => total.cpus[at].1 += received,
                    Err(at) => total.cpus.insert(at, (cpu, received)),
                }
            }
        }
        total
    }
}

/// Counters of one worker since the server started. Every received datagram is sent, refused, a panic or a send
/// error: `received == sent + refused + panics + send_errors` whenever the worker is at rest.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct WorkerCounters {
    /// Requests taken from the socket.
    pub received: u64,
    /// Replies handed to the kernel.
    pub sent: u64,
    /// Payload bytes of the requests.
    pub received_bytes: u64,
    /// Payload bytes of the replies.
    pub sent_bytes: u64,
    /// Datagrams that the kernel dropped at this worker's socket, mostly because the buffer was full (`SO_MEMINFO`,
    /// Linux 4.12; zero before), or at its `AF_XDP` socket because no frame was free. With one shared socket all
    /// of them are counted for worker 0.
    pub dropped_by_kernel: u64,
    /// Requests that the handler left without a reply.
    pub refused: u64,
    /// Requests at which the handler panicked.
    pub panics: u64,
    /// Replies that the kernel would not send (`EMSGSIZE`, no route, ...) or that were longer than the buffer.
    pub send_errors: u64,
    /// Receive calls that failed; each is tried again. With `AF_XDP` also frames with wrong sums or lengths.
    pub receive_errors: u64,
    /// Receive rounds that returned requests: `received / rounds` is the batch size that the traffic really gave.
    pub rounds: u64,
    /// CPU time of the worker's thread, nanoseconds.
    pub cpu_ns: u64,
    /// The CPUs it ran on, ascending, each with the requests answered there.
    pub cpus: Vec<(usize, u64)>,
}

/// Counters of the in-kernel echo.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct XdpCounters {
    /// Datagrams sent back.
    pub echoed: u64,
    /// Their payload bytes.
    pub bytes: u64,
    /// The CPUs that did it, ascending, each with its datagrams.
    pub cpus: Vec<(usize, u64)>,
}

/// The numbers of one round or of all, without the per-CPU list.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Tally {
    pub(super) received: u64,
    pub(super) received_bytes: u64,
    pub(super) sent: u64,
    pub(super) sent_bytes: u64,
    pub(super) refused: u64,
    pub(super) panics: u64,
    pub(super) send_errors: u64,
    pub(super) receive_errors: u64,
}

/// Where a worker publishes. Aligned to two cache lines, since x86 fetches them in pairs.
#[derive(Debug)]
#[repr(align(128))]
pub(super) struct Published {
    received: AtomicU64,
    received_bytes: AtomicU64,
    sent: AtomicU64,
    sent_bytes: AtomicU64,
    refused: AtomicU64,
    panics: AtomicU64,
    send_errors: AtomicU64,
    receive_errors: AtomicU64,
    rounds: AtomicU64,
    /// CPU time at the worker's end; before, it is read from the thread's clock.
    final_cpu_ns: AtomicU64,
    /// Thread id while the thread lives, else 0.
    thread: AtomicI32,
    /// Requests by CPU.
    cpus: Box<[AtomicU64]>,
}

impl Published {
    /// Counters for a machine with CPUs below `cpus`.
    pub(super) fn new(cpus: usize) -> Self {
        Self {
            received: AtomicU64::new(0),
            received_bytes: AtomicU64::new(0),
            sent: AtomicU64::new(0),
            sent_bytes: AtomicU64::new(0),
            refused: AtomicU64::new(0),
            panics: AtomicU64::new(0),
            send_errors: AtomicU64::new(0),
            receive_errors: AtomicU64::new(0),
            rounds: AtomicU64::new(0),
            final_cpu_ns: AtomicU64::new(0),
            thread: AtomicI32::new(0),
            cpus: (0..cpus).map(|_| AtomicU64::new(0)).collect(),
        }
    }

    /// Adds a round that ended on `cpu`. For the owning worker alone.
    pub(super) fn add(&self, round: &Tally, cpu: usize) {
        for (counter, by) in [
            (&self.received, round.received),
            (&self.received_bytes, round.received_bytes),
            (&self.sent, round.sent),
            (&self.sent_bytes, round.sent_bytes),
            (&self.refused, round.refused),
            (&self.panics, round.panics),
            (&self.send_errors, round.send_errors),
            (&self.receive_errors, round.receive_errors),
            (&self.rounds, u64::from(round.received > 0)),
        ] {
            grow(counter, by);
        }
        if let Some(counter) = self.cpus.get(cpu) {
            grow(counter, round.received);
        }
    }

    /// The worker's thread lives and has this id.
    pub(super) fn born(&self, thread: libc::pid_t) {
        self.thread.store(thread, Ordering::Release);
    }

    /// The worker's thread ends after this much CPU time.
    pub(super) fn died(&self, cpu_ns: u64) {
        self.final_cpu_ns.store(cpu_ns, Ordering::Release);
        self.thread.store(0, Ordering::Release);
    }

    /// A snapshot. Of a running worker the numbers may be one round apart; `received` is stored first and read
    /// last so that it errs on the side of more requests than replies.
    pub(super) fn read(&self, dropped_by_kernel: u64) -> WorkerCounters {
        let of = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        let live = match self.thread.load(Ordering::Acquire) {
            0 => None,
            thread => super::affinity::thread_cpu_ns(thread),
        };
        WorkerCounters {
            sent: of(&self.sent),
            sent_bytes: of(&self.sent_bytes),
            refused: of(&self.refused),
            panics: of(&self.panics),
            send_errors: of(&self.send_errors),
            receive_errors: of(&self.receive_errors),
            rounds: of(&self.rounds),
            cpu_ns: live.unwrap_or_else(|| self.final_cpu_ns.load(Ordering::Acquire)),
            cpus: self
                .cpus
                .iter()
                .map(of)
                .enumerate()
                .filter(|(_, received)| *received > 0)
                .collect(),
            received_bytes: of(&self.received_bytes),
            received: of(&self.received),
            dropped_by_kernel,
        }
    }
}

/// Adds without a locked instruction: right because there is one writer.
fn grow(counter: &AtomicU64, by: u64) {
    if by > 0 {
        counter.store(counter.load(Ordering::Relaxed) + by, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn workers_add_up_and_their_cpus_merge() {
        let worker = |received, cpus: &[(usize, u64)]| WorkerCounters {
            received,
            sent: received,
            cpus: cpus.to_vec(),
            ..WorkerCounters::default()
        };
        let counters = Counters {
            workers: vec![worker(5, &[(1, 5)]), worker(7, &[(0, 3), (1, 4)])],
            xdp: None,
        };
        let total = counters.total();
        assert_eq!((total.received, total.sent), (12, 12));
        assert_eq!(total.cpus, [(0, 3), (1, 9)]);
    }

    #[test]
    fn a_round_is_counted_on_its_cpu() {
        let published = Published::new(2);
        let round = Tally {
            received: 3,
            sent: 2,
            refused: 1,
            ..Tally::default()
        };
        published.add(&round, 1);
        // A CPU beyond the machine's (hot-plugged) loses its place in the list, not its count.
        published.add(&round, 9);
        published.died(77);
        let counters = published.read(4);
        assert_eq!(
            (counters.received, counters.sent, counters.rounds),
            (6, 4, 2)
        );
        assert_eq!((counters.cpu_ns, counters.dropped_by_kernel), (77, 4));
        assert_eq!(counters.cpus, [(1, 3)]);
    }
}
