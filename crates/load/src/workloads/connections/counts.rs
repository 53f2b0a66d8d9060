//! What the threads of the load count, and what they share while they run.

use std::io;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use rungwise_stats::histogram::Histogram;

/// What may happen to a connection or a ping, in the order of [`Kind`].
pub(super) const KINDS: [&str; 16] = [
    "connect_refused",
    "connect_timeout",
    "connect_reset",
    "unreachable",
    "denied",
    "no_port",
    "no_descriptor",
    "no_memory",
    "connect",
    "closed",
    "reset",
    "timed_out",
    "timeout",
    "late",
    "malformed",
    "send",
];

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(super) enum Kind {
    ConnectRefused,
    ConnectTimeout,
    ConnectReset,
    Unreachable,
    Denied,
    NoPort,
    NoDescriptor,
    NoMemory,
    Connect,
    Closed,
    Reset,
    TimedOut,
    Timeout,
    Late,
    Malformed,
    Send,
}

impl Kind {
    /// Why a connection was not established.
    pub(super) fn of_connect(error: &io::Error) -> Self {
        match error.raw_os_error() {
            Some(libc::ECONNREFUSED) => Self::ConnectRefused,
            Some(libc::ETIMEDOUT) => Self::ConnectTimeout,
            Some(libc::ECONNRESET) => Self::ConnectReset,
            Some(libc::ENETUNREACH | libc::EHOSTUNREACH | libc::ENETDOWN) => Self::Unreachable,
            Some(libc::EACCES | libc::EPERM) => Self::Denied,
            Some(libc::EADDRNOTAVAIL | libc::EAGAIN) => Self::NoPort,
            Some(libc::EMFILE | libc::ENFILE) => Self::NoDescriptor,
            Some(libc::ENOMEM | libc::ENOBUFS | libc::ENOSPC) => Self::NoMemory,
            _ => Self::Connect,
        }
    }

    /// Why an established connection ended.
    pub(super) fn of_end(error: &io::Error) -> Self {
        match error.raw_os_error() {
            Some(libc::ETIMEDOUT | libc::EHOSTUNREACH | libc::ENETUNREACH) => Self::TimedOut,
            _ => Self::Reset,
        }
    }

    /// A limit of this host: the next connection would meet it too.
    pub(super) fn is_limit(self) -> bool {
        matches!(self, Self::NoPort | Self::NoDescriptor | Self::NoMemory)
    }
}

/// What the threads and the one that watches them share.
#[derive(Debug)]
pub(super) struct Shared {
    /// Leave at once.
    pub(super) stop: AtomicBool,
    /// The first connect, absolute ns.
    pub(super) start: AtomicU64,
    /// The window, `u64::MAX` until it is known.
    pub(super) begin: AtomicU64,
    pub(super) end: AtomicU64,
    /// When the storm begins; `u64::MAX` without one.
    pub(super) storm: AtomicU64,
    pub(super) progress: Vec<Progress>,
}

/// How far a thread has come.
#[derive(Debug, Default)]
#[repr(align(128))]
pub(super) struct Progress {
    /// Connections that are established, have failed, or are not tried any more.
    pub(super) resolved: AtomicU64,
    /// Rounds that are over.
    pub(super) rounds: AtomicU64,
    pub(super) opened: AtomicU64,
    pub(super) refused: AtomicU64,
    /// Connections that are open now, and those of them that read.
    pub(super) open: AtomicU64,
    pub(super) readers: AtomicU64,
    /// Pings without a reply yet, connects under way, and connects that a storm still asks for.
    pub(super) pending: AtomicU64,
    /// Messages to every connection that are still to come in, over all threads: asked for here, less those that came here.
    pub(super) expected: AtomicU64,
    pub(super) arrived: AtomicU64,
}

impl Shared {
    pub(super) fn new(threads: usize) -> Self {
        let never = || AtomicU64::new(u64::MAX);
        Self {
            stop: AtomicBool::new(false),
            start: never(),
            begin: never(),
            end: never(),
            storm: never(),
            progress: (0..threads).map(|_| Progress::default()).collect(),
        }
    }

    /// A count over all threads, as of their last rounds.
    pub(super) fn sum(&self, part: impl Fn(&Progress) -> &AtomicU64) -> u64 {
        let all = self.progress.iter();
        all.map(|progress| part(progress).load(Ordering::Relaxed))
            .sum()
    }
}

/// What one thread counts, then all of them together.
#[derive(Debug, Default)]
pub(super) struct Counts {
    pub(super) tried: u64,
    pub(super) opened: u64,
    /// Those of them that read.
    pub(super) opened_readers: u64,
    /// The last connection of the opening, absolute ns.
    pub(super) last_opened: u64,
    pub(super) sent: u64,
    pub(super) received: u64,
    pub(super) lost: u64,
    /// Replies that came within the window.
    pub(super) arrived: u64,
    pub(super) late_sends: u64,
    pub(super) errors: [u64; KINDS.len()],
    pub(super) half_open: u64,
    pub(super) messages: u64,
    pub(super) expected: u64,
    pub(super) messages_received: u64,
    pub(super) dropped: u64,
    pub(super) back: u64,
    pub(super) connect: Histogram,
    pub(super) corrected: Histogram,
    pub(super) uncorrected: Histogram,
    pub(super) fan_out: Histogram,
    pub(super) back_after: Histogram,
}

impl Counts {
    pub(super) fn merge(&mut self, other: &Self) {
        self.tried += other.tried;
        self.opened += other.opened;
        self.opened_readers += other.opened_readers;
        self.last_opened = self.last_opened.max(other.last_opened);
        self.sent += other.sent;
        self.received += other.received;
        self.lost += other.lost;
        self.arrived += other.arrived;
        self.late_sends += other.late_sends;
        for (sum, count) in self.errors.iter_mut().zip(&other.errors) {
            *sum += count;
        }
        self.half_open += other.half_open;
        self.messages += other.messages;
        self.expected += other.expected;
        self.messages_received += other.messages_received;
        self.dropped += other.dropped;
        self.back += other.back;
        self.connect.merge(&other.connect);
        self.corrected.merge(&other.corrected);
        self.uncorrected.merge(&other.uncorrected);
        self.fan_out.merge(&other.fan_out);
        self.back_after.merge(&other.back_after);
    }

    /// How often this happened.
    pub(super) fn of(&self, kind: Kind) -> u64 {
        self.errors[kind as usize]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_kind_has_its_name_and_limits_end_the_opening() {
        assert_eq!(KINDS[Kind::Send as usize], "send");
        assert_eq!(KINDS[Kind::NoDescriptor as usize], "no_descriptor");
        assert_eq!(KINDS[Kind::Closed as usize], "closed");
        let kind = |number| Kind::of_connect(&io::Error::from_raw_os_error(number));
        for (number, expected) in [
            (libc::EMFILE, Kind::NoDescriptor),
            (libc::ENFILE, Kind::NoDescriptor),
            (libc::EADDRNOTAVAIL, Kind::NoPort),
            (libc::ENOBUFS, Kind::NoMemory),
        ] {
            assert_eq!(kind(number), expected);
            assert!(expected.is_limit());
        }
        assert!(!kind(libc::ECONNREFUSED).is_limit());
    }
}
