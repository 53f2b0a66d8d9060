//! What one generator thread counts, and how the counts of all threads become a measurement.

use std::collections::BTreeMap;

use rungwise_stats::histogram::Histogram;

use crate::clock::SECOND;
use crate::dns::RCODES;

/// The measured window, absolute nanoseconds. A request belongs to it by its intended start.
#[derive(Clone, Copy, Debug)]
pub(super) struct Window {
    pub(super) begin: u64,
    /// `u64::MAX` where a count ends the window.
    pub(super) end: u64,
}

impl Window {
    #[inline]
    pub(super) fn has(&self, instant: u64) -> bool {
        self.begin <= instant && instant < self.end
    }
}

/// What is counted beside sent, received and lost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(usize)]
pub(super) enum Kind {
    Late,
    Duplicate,
    Unexpected,
    Truncated,
    Corrupt,
    Send,
    Refused,
    Cut,
    Unsent,
}

/// Names of the kinds in reports, in the order of [`Kind`].
const KINDS: [&str; 9] = [
    "late",
    "duplicate",
    "unexpected",
    "truncated",
    "corrupt",
    "send",
    "refused",
    "dns_truncated",
    "unsent",
];

/// One second of one thread.
#[derive(Debug)]
pub(super) struct Part {
    /// Which second of the window, from 0.
    pub(super) index: u64,
    pub(super) sent: u64,
    pub(super) received: u64,
    pub(super) lost: u64,
    pub(super) corrected: Histogram,
}

impl Part {
    pub(super) fn new(index: u64) -> Self {
        Self {
            index,
            sent: 0,
            received: 0,
            lost: 0,
            corrected: Histogram::new(),
        }
    }

    pub(super) fn merge(&mut self, other: &Self) {
        self.sent += other.sent;
        self.received += other.received;
        self.lost += other.lost;
        self.corrected.merge(&other.corrected);
    }
}

/// Counts of one thread, then of all.
#[derive(Debug, Default)]
pub(super) struct Tally {
    /// Requests of the window that the kernel took.
    pub(super) sent: u64,
    /// Replies in time to requests of the window, whenever they came.
    pub(super) received: u64,
    /// Those of them that are an error and no answer.
    pub(super) wrong: u64,
    /// Requests of the window without a good reply in time.
    pub(super) lost: u64,
    /// Replies in time that came within the window, whenever they were asked for.
    pub(super) arrived: u64,
    /// Sends more than a millisecond after the intended start.
    pub(super) late_sends: u64,
    /// Those of them that waited for a free slot, and not for the generator.
    pub(super) starved_sends: u64,
    /// Replies in time, warm-up included.
    pub(super) all_received: u64,
    /// Time spent polling because the next send was too near to sleep, ns.
    pub(super) spin_ns: u64,
    /// Datagrams that came by a queue of the device, and not by a socket.
    pub(super) by_queue: u64,
    /// Others.
    pub(super) by_socket: u64,
    /// The last reply, absolute ns.
    pub(super) last_reply: u64,
    /// The last send, absolute ns.
    pub(super) last_send: u64,
    /// Drops at the thread's own sockets.
    pub(super) socket_drops: u64,
    pub(super) corrected: Histogram,
    pub(super) uncorrected: Histogram,
    kinds: [u64; KINDS.len()],
    rcodes: [u64; RCODES.len()],
}

impl Tally {
    #[inline]
    pub(super) fn count(&mut self, kind: Kind, times: u64) {
        self.kinds[kind as usize] += times;
    }

    #[inline]
    pub(super) fn rcode(&mut self, rcode: u8) {
        self.rcodes[usize::from(rcode & 0x0f)] += 1;
    }

    pub(super) fn of(&self, kind: Kind) -> u64 {
        self.kinds[kind as usize]
    }

    /// What did occur, by name. An answer without error is none.
    pub(super) fn errors(&self) -> BTreeMap<String, u64> {
        let kinds = KINDS.iter().zip(self.kinds);
        let rcodes = RCODES.iter().zip(self.rcodes).skip(1);
        kinds
            .chain(rcodes)
            .filter(|(_, count)| *count > 0)
            .map(|(name, count)| ((*name).to_owned(), count))
            .collect()
    }

    pub(super) fn merge(&mut self, other: &Self) {
        self.sent += other.sent;
        self.received += other.received;
        self.wrong += other.wrong;
        self.lost += other.lost;
        self.arrived += other.arrived;
        self.late_sends += other.late_sends;
        self.starved_sends += other.starved_sends;
        self.all_received += other.all_received;
        self.spin_ns += other.spin_ns;
        self.by_queue += other.by_queue;
        self.by_socket += other.by_socket;
        self.last_reply = self.last_reply.max(other.last_reply);
        self.last_send = self.last_send.max(other.last_send);
        self.socket_drops += other.socket_drops;
        self.corrected.merge(&other.corrected);
        self.uncorrected.merge(&other.uncorrected);
        for (sum, count) in self.kinds.iter_mut().zip(other.kinds) {
            *sum += count;
        }
        for (sum, count) in self.rcodes.iter_mut().zip(other.rcodes) {
            *sum += count;
        }
    }
}

/// Latencies of a batch: its replies mostly share both starts, so equal ones are recorded together.
#[derive(Debug, Default)]
pub(super) struct Runs {
    corrected: u64,
    uncorrected: u64,
    count: u64,
}

impl Runs {
    #[inline]
    pub(super) fn push(&mut self, corrected: u64, uncorrected: u64, tally: &mut Tally) {
        if self.count > 0 && (self.corrected, self.uncorrected) == (corrected, uncorrected) {
            self.count += 1;
            return;
        }
        self.flush(tally);
        (self.corrected, self.uncorrected, self.count) = (corrected, uncorrected, 1);
    }

    #[inline]
    pub(super) fn flush(&mut self, tally: &mut Tally) {
        if self.count > 0 {
            tally.corrected.record_n(self.corrected, self.count);
            tally.uncorrected.record_n(self.uncorrected, self.count);
            self.count = 0;
        }
    }
}

/// How many whole seconds fit between two instants, ns.
pub(super) fn whole_seconds(from: u64, to: u64) -> u64 {
    to.saturating_sub(from) / SECOND
}
