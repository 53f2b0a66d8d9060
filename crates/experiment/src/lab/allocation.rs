//! What a request allocates in the heap of the service's JVM, by its thread counters.
//!
//! The JVM is asked through its attach listener, so the service stays as it is. Each question stops its threads for a moment, so none falls
//! into a measured window: two blocks of counted requests follow it, whose ends are at rest, and the counters are read there. The second block is
//! larger: the difference of both is of as many requests, and of no connection. What the JVM allocates without requests counts as
//! theirs.

use std::io;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use rungwise_load::engine::{Edge, Hooks, Stop};
use rungwise_load::parameters::{Length, Load};
use rungwise_model::capacity::Estimate;
use rungwise_model::metric::BYTES_PER_REQUEST;
use rungwise_model::tune::Run;
use rungwise_probes::jvm::{Counters, ThreadCounters};

use super::service::Running;
use crate::stage::StageError;

/// More failed requests than this share hide what one that is answered costs.
const MOST_FAILED: f64 = 0.01;
/// An interval wider than this share of its middle is no figure: pairs of such runs would not differ by less.
const WIDE: f64 = 0.5;
/// Requests of the first block, as a part of those of the second.
const FIRST: u64 = 4;

/// How long both blocks take, as a share of the window whose requests they repeat.
pub(super) const PART: f64 = 1.0 + 1.0 / FIRST as f64;

/// Requests of both blocks, the larger of which has so many.
pub(super) fn with_first(requests: u64) -> u64 {
    requests + requests / FIRST
}

/// Follows the JVM of a service from one start to the next.
#[derive(Debug)]
pub(super) struct Allocation {
    wanted: bool,
    /// The process of the service, and its JVM.
    of: Option<(u32, Arc<ThreadCounters>)>,
    /// There was a JVM that could be asked.
    was_there: bool,
}

impl Allocation {
    /// Asks nothing where it is not `wanted`.
    pub(super) fn new(wanted: bool) -> Self {
        Self {
            wanted,
            of: None,
            was_there: false,
        }
    }

    /// Attaches to the JVM of the service that runs now, if that is another one than before.
    pub(super) fn follow(&mut self, running: &Running) -> Result<(), StageError> {
        let Some(pid) = running.pid().filter(|_| self.wanted) else {
            return Ok(());
        };
        let is_same = |(known, counters): &(u32, Arc<ThreadCounters>)| {
            *known == pid && counters.jvm().is_running()
        };
        if self.of.as_ref().is_some_and(is_same) {
            return Ok(());
        }
        self.of = None;
        match counters(running) {
            Ok(counters) => {
                self.of = Some((pid, Arc::new(counters)));
                self.was_there = true;
                Ok(())
            }
            Err(why) => {
                let why = format!("cannot measure {BYTES_PER_REQUEST}: {why}");
                // Where it could be measured before, the variant is why it no longer can.
                Err(if self.was_there {
                    StageError::Unavailable(why)
                } else {
                    StageError::Precondition(why)
                })
            }
        }
    }

    /// The thread counters of the JVM that runs now, where they are wanted.
    pub(super) fn counters(&self) -> Option<Arc<ThreadCounters>> {
        let (_, counters) = self.of.as_ref()?;
        Some(Arc::clone(counters))
    }
}

/// The one JVM among the processes of the service. Its first answer opens the listener, which no run must wait for.
fn counters(running: &Running) -> Result<ThreadCounters, String> {
    let counters = ThreadCounters::new(running.jvm()?);
    match counters.read() {
        Ok(Some(_)) => Ok(counters),
        Ok(None) => Err(format!(
            "the JDK of process {} prints no thread counters; run the service on JDK 11 or later",
            counters.jvm().pid()
        )),
        Err(error) => Err(error.to_string()),
    }
}

/// Adds the metric to a run, or why it has none.
pub(super) fn put(run: &mut Run, bytes: Result<f64, String>) {
    let metric = BYTES_PER_REQUEST.to_owned();
    match bytes {
        Ok(bytes) => {
            run.metrics.insert(metric, bytes);
        }
        Err(why) => {
            run.unavailable.insert(metric, why);
        }
    }
}

/// The load of the blocks.
pub(super) struct Blocks<'a> {
    pub(super) load: &'a dyn Load,
    /// Called first in each thread of the load.
    pub(super) entry: &'a (dyn Fn(usize) -> io::Result<()> + Sync),
    pub(super) interrupted: &'a AtomicBool,
    pub(super) seed: u64,
}

impl Blocks<'_> {
    /// Bytes per request, by a block of so many requests and a smaller one.
    pub(super) fn measure(&self, counters: &ThreadCounters, requests: u64) -> Result<f64, String> {
        let (few, first) = self.block(counters, requests / FIRST)?;
        let (many, main) = self.block(counters, requests)?;
        let bytes = Estimate {
            point: main.point - first.point,
            low: main.low - first.high,
            high: main.high - first.low,
        };
        per_request(bytes, many.saturating_sub(few) as f64)
    }

    /// Sends so many requests; how many were answered, and what the JVM allocated meanwhile.
    fn block(&self, counters: &ThreadCounters, requests: u64) -> Result<(u64, Estimate), String> {
        if requests == 0 {
            return Err(
                "too few requests were answered; set experiment.counted_requests".to_owned(),
            );
        }
        let before = counters.at_rest().map_err(|error| error.to_string())?;
        let after = Mutex::new(None);
        // All replies are there then, and the connections still open: what a thread of a connection has counted ends with it.
        let at_edge = |edge: Edge| {
            if edge == Edge::Ended {
                *after.lock().unwrap_or_else(PoisonError::into_inner) = Some(counters.read());
            }
        };
        let length = Length {
            warmup: Duration::ZERO,
            stop: Stop::Count(requests),
            seed: self.seed,
        };
        let hooks = Hooks {
            thread_start: self.entry,
            window: &at_edge,
            interrupted: self.interrupted,
            turns: None,
        };
        let completed = self.load.run(&length, &hooks, &mut |_| {});
        let measured = completed.map_err(|error| error.to_string())?.measurement;
        let failed = measured.sent.saturating_sub(measured.received) as f64;
        if failed > MOST_FAILED * measured.sent as f64 {
            return Err(format!(
                "{failed:.0} of {} requests failed, and what they allocate cannot be separated from the others",
                measured.sent
            ));
        }
        let after = after.into_inner().unwrap_or_else(PoisonError::into_inner);
        let after = after.transpose().map_err(|error| error.to_string())?;
        Ok((measured.received, between(before, after.flatten())?))
    }
}

/// Bytes per request of a load program, between a reading before it and one after; absent if the program does not report how many it sent.
pub(super) fn of_program(
    before: Option<Counters>,
    counters: &ThreadCounters,
    answered: Option<f64>,
) -> Result<f64, String> {
    let after = counters.read().map_err(|error| error.to_string())?;
    let answered = answered.ok_or("the load program reports no rate")?;
    per_request(between(before, after)?, answered)
}

/// What was allocated from one reading to the next.
fn between(before: Option<Counters>, after: Option<Counters>) -> Result<Estimate, String> {
    let (Some(before), Some(after)) = (before, after) else {
        return Err("the thread counters were not read".to_owned());
    };
    let counted = before.until(&after);
    match counted.lost_threads {
        0 => Ok(counted.bytes),
        lost => Err(format!(
            "{lost} threads of the JVM ended during the run and took their counts with them; keep connections open, and answer from a pool \
             of threads of fixed size"
        )),
    }
}

fn per_request(bytes: Estimate, answered: f64) -> Result<f64, String> {
    if answered < 1.0 {
        return Err("no request was answered".to_owned());
    }
    if bytes.high - bytes.low > WIDE * bytes.point {
        return Err(format!(
            "the JVM rounds its counters: {:.0} to {:.0} bytes for {answered:.0} requests; set more experiment.counted_requests",
            bytes.low, bytes.high
        ));
    }
    Ok(bytes.point / answered)
}
