//! What one generator thread counts, and how the counts of all threads become a measurement.

use std::collections::BTreeMap;

use rungwise_stats::histogram::Histogram;

use crate::clock::SECOND;

/// One second of one thread.
#[derive(Debug)]
pub(crate) struct Part {
    /// Which second of the window, from 0.
    pub(crate) index: u64,
    pub(crate) sent: u64,
    pub(crate) received: u64,
    pub(crate) lost: u64,
    pub(crate) corrected: Histogram,
}

impl Part {
    pub(crate) fn new(index: u64) -> Self {
        Self {
            index,
            sent: 0,
            received: 0,
            lost: 0,
            corrected: Histogram::new(),
        }
    }

    pub(crate) fn merge(&mut self, other: &Self) {
        self.sent += other.sent;
        self.received += other.received;
        self.lost += other.lost;
        self.corrected.merge(&other.corrected);
    }
}

/// Counts of one thread, then of all.
#[derive(Debug, Default)]
pub(crate) struct Tally {
    /// Requests of the window that the kernel took.
    pub(crate) sent: u64,
    /// Replies in time to requests of the window, whenever they came.
    pub(crate) received: u64,
    /// Those of them that are an error and no answer.
    pub(crate) wrong: u64,
    /// Requests of the window without a good reply in time.
    pub(crate) lost: u64,
    /// Replies in time that came within the window, whenever they were asked for.
    pub(crate) arrived: u64,
    /// The same with those that do not count because a turn had just begun or ended.
    pub(crate) worked: u64,
    /// Sends more than a millisecond after the intended start.
    pub(crate) late_sends: u64,
    /// Those of them that waited for a free slot, and not for the generator.
    pub(crate) starved_sends: u64,
    /// Replies in time, warm-up included.
    pub(crate) all_received: u64,
    /// Time spent polling because the next send was too near to sleep, ns.
    pub(crate) spin_ns: u64,
    /// The last reply, absolute ns.
    pub(crate) last_reply: u64,
    /// The last send, absolute ns.
    pub(crate) last_send: u64,
    /// Drops at the thread's own sockets.
    pub(crate) socket_drops: u64,
    /// Requests that the other end refused (port unreachable).
    pub(crate) refused: u64,
    /// Requests that the kernel did not take.
    pub(crate) send_errors: u64,
    /// Requests of an open loop that never left.
    pub(crate) unsent: u64,
    /// Errors of the kind's own, in the order of its table.
    pub(crate) errors: Vec<u64>,
    pub(crate) corrected: Histogram,
    pub(crate) uncorrected: Histogram,
}

impl Tally {
    /// All zero, with room for this many errors of the kind.
    pub(crate) fn new(errors: usize) -> Self {
        Self {
            errors: vec![0; errors],
            ..Self::default()
        }
    }

    /// What did occur, by name; `names` are those of the kind's own.
    pub(crate) fn named_errors(&self, names: &[&str]) -> BTreeMap<String, u64> {
        let shared = [
            ("refused", self.refused),
            ("send", self.send_errors),
            ("unsent", self.unsent),
        ];
        let own = names.iter().copied().zip(self.errors.iter().copied());
        shared
            .into_iter()
            .chain(own)
            .filter(|(_, count)| *count > 0)
            .map(|(name, count)| (name.to_owned(), count))
            .collect()
    }

    pub(crate) fn merge(&mut self, other: &Self) {
        self.sent += other.sent;
        self.received += other.received;
        self.wrong += other.wrong;
        self.lost += other.lost;
        self.arrived += other.arrived;
        self.worked += other.worked;
        self.late_sends += other.late_sends;
        self.starved_sends += other.starved_sends;
        self.all_received += other.all_received;
        self.spin_ns += other.spin_ns;
        self.last_reply = self.last_reply.max(other.last_reply);
        self.last_send = self.last_send.max(other.last_send);
        self.socket_drops += other.socket_drops;
        self.corrected.merge(&other.corrected);
        self.uncorrected.merge(&other.uncorrected);
        self.refused += other.refused;
        self.send_errors += other.send_errors;
        self.unsent += other.unsent;
        self.errors
            .resize(other.errors.len().max(self.errors.len()), 0);
        for (sum, count) in self.errors.iter_mut().zip(&other.errors) {
            *sum += count;
        }
    }
}

/// Latencies of a batch: its replies mostly share both starts, so equal ones are recorded together.
#[derive(Debug, Default)]
pub(crate) struct Runs {
    corrected: u64,
    uncorrected: u64,
    count: u64,
}

impl Runs {
    #[inline]
    pub(crate) fn push(&mut self, corrected: u64, uncorrected: u64, tally: &mut Tally) {
        if self.count > 0 && (self.corrected, self.uncorrected) == (corrected, uncorrected) {
            self.count += 1;
            return;
        }
        self.flush(tally);
        (self.corrected, self.uncorrected, self.count) = (corrected, uncorrected, 1);
    }

    #[inline]
    pub(crate) fn flush(&mut self, tally: &mut Tally) {
        if self.count > 0 {
            tally.corrected.record_n(self.corrected, self.count);
            tally.uncorrected.record_n(self.uncorrected, self.count);
            self.count = 0;
        }
    }
}

/// How many whole seconds fit between two instants, ns.
pub(crate) fn whole_seconds(from: u64, to: u64) -> u64 {
    to.saturating_sub(from) / SECOND
}
