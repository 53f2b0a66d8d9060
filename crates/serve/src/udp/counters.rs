//! What each worker did.

use crate::counters;

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
            counters::merge(&mut total.cpus, &worker.cpus);
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

/// Where a worker publishes: `received` first, so that it errs on the side of more requests than replies.
pub(super) type Published = counters::Published<9>;

impl Tally {
    /// Publishes a round that ended on `cpu`.
    pub(super) fn publish(&self, to: &Published, cpu: usize) {
        let round = [
            self.received,
            self.received_bytes,
            self.sent,
            self.sent_bytes,
            self.refused,
            self.panics,
            self.send_errors,
            self.receive_errors,
            u64::from(self.received > 0),
        ];
        to.add(&round, cpu, self.received);
    }
}

impl WorkerCounters {
    /// What a worker published.
    pub(super) fn read(published: &Published, dropped_by_kernel: u64) -> Self {
        let read = published.read();
        let [
            received,
            received_bytes,
            sent,
            sent_bytes,
            refused,
            panics,
            send_errors,
            receive_errors,
            rounds,
        ] = read.counters;
        Self {
            received,
            sent,
            received_bytes,
            sent_bytes,
            dropped_by_kernel,
            refused,
            panics,
            send_errors,
            receive_errors,
            rounds,
            cpu_ns: read.cpu_ns,
            cpus: read.cpus,
        }
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
        round.publish(&published, 1);
        // A CPU beyond the machine's (hot-plugged) loses its place in the list, not its count.
        round.publish(&published, 9);
        published.died(77);
        let counters = WorkerCounters::read(&published, 4);
        assert_eq!(
            (counters.received, counters.sent, counters.rounds),
            (6, 4, 2)
        );
        assert_eq!((counters.cpu_ns, counters.dropped_by_kernel), (77, 4));
        assert_eq!(counters.cpus, [(1, 3)]);
    }
}
