//! What all workloads that rungwise itself drives share: when requests are due, threads and their window, what is counted, the
//! seconds of a run, and whether the client spoiled the numbers.
//!
//! A kind brings a [`Kind`]: what it asks, and a [`Driver`] per thread. A driver keeps its thread's [`Ledger`], which knows
//! when the next request is due, counts what was sent, answered and lost, and says when to end. A kind that waits for one reply
//! before it asks again is an [`Exchange`](alone::Exchange) and needs no driver of its own.

pub mod alone;
mod coordinate;
mod epoll;
mod health;
mod ledger;
mod schedule;
mod tally;
mod thread;
mod turns;

use std::fmt;
use std::io;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use rungwise_model::load::{Measurement, Second};
use rungwise_stats::histogram::Histogram;

pub(crate) use epoll::{Epoll, Interest};
pub use health::{DROPS, FOREIGN, LATE, ROOM, SATURATED, SERVER_BUSY, Surroundings, certify};
pub(crate) use ledger::{Ledger, Round, tick};
pub(crate) use schedule::Schedule;
pub(crate) use tally::{Part, Tally, whole_seconds};
pub(crate) use thread::{check, no_timer_slack, own_cpu_clock, run_delay_ns};
pub use turns::{SETTLE, Seat, TURN, Turns};

use self::turns::Slices;
use crate::Error;
use crate::parameters::{Contradiction, Target};

/// The load of a workload of any kind: target, threads, schedule and length.
#[derive(Clone, Debug)]
pub struct Plan {
    /// The server.
    pub target: Target,
    /// Generator threads.
    pub threads: usize,
    /// CPUs of the threads, used in turn; unpinned when absent.
    pub pins: Option<Vec<usize>>,
    /// When requests are sent.
    pub arrival: Arrival,
    /// A request without a reply is given up after this, counted from its send.
    pub timeout: Duration,
    /// Load before the measured window.
    pub warmup: Duration,
    /// When the measured window ends.
    pub stop: Stop,
}

/// When requests are sent.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Arrival {
    /// Closed loop: the next request leaves when a reply (or a timeout) has freed its slot.
    Closed,
    /// Open loop at a constant rate over all threads, requests per second.
    Constant {
        /// Requests per second.
        per_s: f64,
    },
    /// Open loop whose rate changes linearly over the window.
    Ramp {
        /// Requests per second at the window's beginning, and during the warm-up.
        from_per_s: f64,
        /// Requests per second at its end.
        to_per_s: f64,
    },
}

impl fmt::Display for Arrival {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Closed => f.write_str("closed loop"),
            Self::Constant { per_s } => write!(f, "open loop at {per_s:.0}/s"),
            Self::Ramp {
                from_per_s,
                to_per_s,
            } => write!(f, "open loop from {from_per_s:.0}/s to {to_per_s:.0}/s"),
        }
    }
}

/// When the measured window ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stop {
    /// After this time.
    After(Duration),
    /// When exactly this many requests have been sent, and each has its reply or its timeout.
    Count(u64),
    /// When every user of a plan has come to its end, or after this time; in a closed loop.
    Finished {
        /// The time.
        at_most: Option<Duration>,
    },
}

impl Stop {
    /// The greatest length of the window, where one is known.
    pub(crate) fn length(&self) -> Option<Duration> {
        match self {
            Self::After(length) => Some(*length),
            Self::Count(_) => None,
            Self::Finished { at_most } => *at_most,
        }
    }
}

/// An edge of the measured window.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Edge {
    /// The window begins now.
    Began,
    /// The window ends now.
    Ended,
}

/// What the caller wants to happen at certain moments.
#[derive(Clone, Copy)]
pub struct Hooks<'a> {
    /// Called first in every generator thread with its number, before sockets are opened, for instance to
    /// enter a network namespace.
    pub thread_start: &'a (dyn Fn(usize) -> io::Result<()> + Sync),
    /// Called at both edges of the measured window from the thread that asked for the run.
    pub window: &'a (dyn Fn(Edge) + Sync),
    /// Raised by the caller to end the run; checked every 20 ms.
    pub interrupted: &'a AtomicBool,
    /// The place beside another load with which this one takes turns, in a closed loop of a fixed length.
    pub turns: Option<Seat<'a>>,
}

/// A finished run.
#[derive(Clone, Debug, Default)]
pub struct Completed {
    /// The numbers; not certified before [`certify`] says so.
    pub measurement: Measurement,
    /// Latency from the intended start, ns.
    pub corrected: Histogram,
    /// Latency from the send, ns.
    pub uncorrected: Histogram,
    /// CPU seconds of the generator's threads within the window.
    pub client_cpu_s: f64,
    /// Replies in time that came within the window, whenever they were asked for, and whether they count, are answers, or not: what its
    /// CPU time was spent on.
    pub arrived: u64,
    /// Requests of the window that were answered in time with an error instead of an answer.
    pub wrong: u64,
}

/// The measured window, absolute nanoseconds. A request belongs to it by its intended start.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Window {
    pub(crate) begin: u64,
    /// `u64::MAX` where a count ends the window.
    pub(crate) end: u64,
    /// What belongs to the window, where the load takes turns with another.
    pub(crate) turns: Option<Slices>,
}

impl Window {
    #[inline]
    pub(crate) fn has(&self, instant: u64) -> bool {
        self.spans(instant) && self.turns.is_none_or(|turns| turns.count(instant))
    }

    /// Between its edges, in whose turn ever.
    #[inline]
    pub(crate) fn spans(&self, instant: u64) -> bool {
        self.begin <= instant && instant < self.end
    }
}

/// A workload that rungwise itself drives.
pub(crate) trait Kind: Sync {
    /// What is opened once, before the threads start, and kept until they have ended.
    type Ground;
    /// A thread's part of it.
    type Seat: Send;
    /// A thread of the load.
    type Driver<'a>: Driver<Own = Self::Own>
    where
        Self: 'a;
    /// What a thread counts beyond its [`Tally`].
    type Own: Send;

    /// The load.
    fn plan(&self) -> Plan;

    /// Refuses contradictory parameters.
    fn check(&self) -> Result<(), Error>;

    /// Files that a thread holds open.
    fn files(&self) -> usize;

    /// Errors of this kind, the names under which they are counted; see [`Ledger::count`].
    fn errors(&self) -> &'static [&'static str];

    /// Opens the ground, and deals a seat to each thread. `enter` puts the calling thread where the generators will be.
    fn prepare(
        &self,
        enter: &(dyn Fn() -> Result<(), Error> + Sync),
    ) -> Result<(Self::Ground, Vec<Self::Seat>), Error>;

    /// A thread's driver with all its memory and sockets; called in that thread.
    fn driver<'a>(
        &'a self,
        ledger: Ledger<'a>,
        seat: Self::Seat,
    ) -> Result<Self::Driver<'a>, Error>;

    /// Adds what only this kind knows to a finished run.
    fn complete(&self, ground: &Self::Ground, own: Vec<Self::Own>, completed: &mut Completed);
}

/// One thread of a load.
pub(crate) trait Driver {
    /// What it counts beyond its [`Tally`].
    type Own;

    /// Drives from `start` until every request of the window is answered or lost.
    fn run(&mut self, start: u64, window: Window);

    /// The counts, once it has run.
    fn into_counts(self) -> (Tally, Self::Own);
}

/// Drives a workload and measures it; each second of the window goes to `each_second` soon after it has passed.
pub(crate) fn run(
    kind: &impl Kind,
    hooks: &Hooks,
    each_second: &mut dyn FnMut(&Second),
) -> Result<Completed, Error> {
    coordinate::run(kind, hooks, each_second)
}

/// Spreads a seed over 64 bits, so that neighbouring seeds give values that differ everywhere (`SplitMix64`, Steele et al.,
/// OOPSLA 2014).
pub(crate) fn spread(seed: u64) -> u64 {
    let mut z = seed.wrapping_add(0x9e37_79b9_7f4a_7c15);
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

impl Plan {
    /// The contradiction, and what would be right.
    pub(crate) fn contradictions(&self) -> Vec<Contradiction> {
        let day = Duration::from_hours(24);
        let mut found = Vec::from_iter(Contradiction::outside(
            &["threads"],
            "the number of threads",
            self.threads,
            (1, 1024),
        ));
        let mut wrong = |keys, why| found.push(Contradiction { keys, why });
        if self.target.address().is_some_and(|to| to.port() == 0) {
            let why = "port 0 is not valid; give the server's port";
            wrong(&["target"], why.to_owned());
        }
        if self.pins.as_ref().is_some_and(Vec::is_empty) {
            let why = "no CPU to pin to; name at least one";
            wrong(&["pin"], why.to_owned());
        }
        let rate = |per_s: f64| per_s.is_finite() && (0.0..=1e9).contains(&per_s);
        match self.arrival {
            Arrival::Constant { per_s } if !rate(per_s) || per_s <= 0.0 => wrong(
                &["rate"],
                format!("the rate is {per_s}/s; it must be above 0 and at most 1e9"),
            ),
            Arrival::Ramp {
                from_per_s,
                to_per_s,
            } if !rate(from_per_s) || !rate(to_per_s) || from_per_s + to_per_s <= 0.0 => wrong(
                &["ramp"],
                format!(
                    "the ramp goes from {from_per_s}/s to {to_per_s}/s; its ends must be 0 to 1e9 and not both 0"
                ),
            ),
            _ => {}
        }
        if self.timeout < Duration::from_millis(1) || self.timeout > day {
            let why = format!(
                "the timeout is {:?}; it must be 1 ms to a day",
                self.timeout
            );
            wrong(&["timeout"], why);
        }
        if self.warmup > day {
            let why = format!("the warm-up is {:?}; it must be at most a day", self.warmup);
            wrong(&[], why);
        }
        if self.stop == Stop::Count(0) {
            let why = "the count is 0; ask for at least one request";
            wrong(&[], why.to_owned());
        }
        if let Some(length) = self.stop.length()
            && (length < Duration::from_millis(10) || length > 30 * day)
        {
            let why = format!("the window is {length:?}; it must be 10 ms to 30 days");
            wrong(&[], why);
        }
        found
    }
}
