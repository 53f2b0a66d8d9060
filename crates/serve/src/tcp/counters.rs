//! What each worker did.

use crate::affinity;
use crate::counters::{self, PerCpu};

/// Counters of a whole server.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// One entry per worker.
    pub workers: Vec<WorkerCounters>,
}

impl Counters {
    /// The workers' counters added up; CPU lists merged.
    pub fn total(&self) -> WorkerCounters {
        let mut total = WorkerCounters::default();
        for worker in &self.workers {
            total.accepted += worker.accepted;
            total.closed += worker.closed;
            total.requests += worker.requests;
            total.refused += worker.refused;
            total.received_bytes += worker.received_bytes;
            total.sent_bytes += worker.sent_bytes;
            total.resets += worker.resets;
            total.cut += worker.cut;
            total.panics += worker.panics;
            total.accept_errors += worker.accept_errors;
            total.out_of_descriptors += worker.out_of_descriptors;
            total.broadcast += worker.broadcast;
            total.not_broadcast += worker.not_broadcast;
            total.dropped_by_kernel += worker.dropped_by_kernel;
            total.rounds += worker.rounds;
            total.cpu_ns += worker.cpu_ns;
            counters::merge(&mut total.cpus, &worker.cpus);
            counters::merge(&mut total.incoming_cpus, &worker.incoming_cpus);
        }
        total
    }
}

/// Counters of one worker since the server started.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct WorkerCounters {
    /// Connections that it accepted.
    pub accepted: u64,
    /// Of these, connections that have ended.
    pub closed: u64,
    /// Requests that were answered: their replies are sent, or wait for the client to read.
    pub requests: u64,
    /// Requests that the handler refused.
    pub refused: u64,
    /// Bytes of the requests.
    pub received_bytes: u64,
    /// Bytes of the replies that the kernel took.
    pub sent_bytes: u64,
    /// Connections that ended with an error: reset by the client, timed out, unreachable.
    pub resets: u64,
    /// Connections that the client ended in the middle of a request.
    pub cut: u64,
    /// Connections that were closed because the handler panicked, or replied without taking anything.
    pub panics: u64,
    /// Connections that failed before they could be accepted.
    pub accept_errors: u64,
    /// Times that accepting paused because no file descriptor, or no memory for one, was left.
    pub out_of_descriptors: u64,
    /// Messages to every connection, counted for each connection that one was sent to.
    pub broadcast: u64,
    /// The same for each connection that one was not sent to, because its client had not read what was sent before, or
    /// more messages were asked for than the worker could send.
    pub not_broadcast: u64,
    /// SYNs and handshakes that the kernel dropped at this worker's listener, mostly because the backlog was full
    /// (`SO_MEMINFO`, Linux 4.12; zero before). With one shared listener all of them are counted for worker 0.
    pub dropped_by_kernel: u64,
    /// Returns of epoll or `io_uring` that led to answered requests.
    pub rounds: u64,
    /// CPU time of the worker's thread, nanoseconds.
    pub cpu_ns: u64,
    /// The CPUs it ran on, ascending, each with the requests answered there.
    pub cpus: Vec<(usize, u64)>,
    /// The CPUs that received the packets of connections just before they were accepted (`SO_INCOMING_CPU`), ascending, each
    /// with its connections: what steering by CPU decides.
    pub incoming_cpus: Vec<(usize, u64)>,
}

/// The numbers of one round.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Tally {
    pub(super) accepted: u64,
    pub(super) closed: u64,
    pub(super) requests: u64,
    pub(super) refused: u64,
    pub(super) received_bytes: u64,
    pub(super) sent_bytes: u64,
    pub(super) resets: u64,
    pub(super) cut: u64,
    pub(super) panics: u64,
    pub(super) accept_errors: u64,
    pub(super) out_of_descriptors: u64,
    pub(super) broadcast: u64,
    pub(super) not_broadcast: u64,
}

/// Where a worker publishes.
#[derive(Debug)]
pub(super) struct Published {
    pub(super) counters: counters::Published<14>,
    pub(super) incoming_cpus: PerCpu,
}

impl Published {
    /// Counters for a machine with CPUs below `cpus`.
    pub(super) fn new(cpus: usize) -> Self {
        Self {
            counters: counters::Published::new(cpus),
            incoming_cpus: PerCpu::new(cpus),
        }
    }

    /// Publishes a round that ended on this CPU.
    pub(super) fn add(&self, round: &Tally) {
        let counters = [
            round.accepted,
            round.received_bytes,
            round.requests,
            round.refused,
            round.sent_bytes,
            round.resets,
            round.cut,
            round.panics,
            round.accept_errors,
            round.out_of_descriptors,
            u64::from(round.requests > 0),
            round.closed,
            round.broadcast,
            round.not_broadcast,
        ];
        self.counters
            .add(&counters, affinity::current(), round.requests);
    }
}

impl WorkerCounters {
    /// What a worker published.
    pub(super) fn read(published: &Published, dropped_by_kernel: u64) -> Self {
        let read = published.counters.read();
        let [
            accepted,
            received_bytes,
            requests,
            refused,
            sent_bytes,
            resets,
            cut,
            panics,
            accept_errors,
            out_of_descriptors,
            rounds,
            closed,
            broadcast,
            not_broadcast,
        ] = read.counters;
        Self {
            accepted,
            closed,
            requests,
            refused,
            received_bytes,
            sent_bytes,
            resets,
            cut,
            panics,
            accept_errors,
            out_of_descriptors,
            broadcast,
            not_broadcast,
            dropped_by_kernel,
            rounds,
            cpu_ns: read.cpu_ns,
            cpus: read.cpus,
            incoming_cpus: published.incoming_cpus.read(),
        }
    }
}
