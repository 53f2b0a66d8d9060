//! Loads and waits, and what is read of the JVM at both ends of each.

use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use anyhow::Context as _;
use rungwise_host::clock;
use rungwise_load::Error as LoadError;
use rungwise_load::engine::{Edge, Hooks, Stop};
use rungwise_load::parameters::Length;
use rungwise_model::Exit;
use rungwise_model::heap_per_request::{Block, Requests};
use rungwise_model::load::Second;
use rungwise_probes::jvm::Counted;

use super::meter::{Emptied, Meter, NotFilled};
use super::{Sent, Session, Window, Windows, attach};
use crate::load;
use crate::problem::Problem;

/// More failed requests than this share hide what one that is answered costs.
const MOST_FAILED: f64 = 0.01;
/// A window with fewer requests per connection measures connections.
const LEAST_PER_CONNECTION: u64 = 2;
/// Parts of the wait without load, whose differences show how far background varies.
pub(super) const PARTS: u32 = 4;
/// Between two checks of the JVM, and of whether the user asked to stop.
const LOOK_EVERY: Duration = Duration::from_millis(20);

impl Session<'_> {
    /// A load of so many requests between two prints of the thread counters.
    pub(super) fn counted(&mut self, count: u64) -> anyhow::Result<(Sent, Option<Counted>)> {
        let before = self.meter.at_rest().map_err(attach)?;
        let (sent, after) = self.send(count, Duration::ZERO, Meter::counters)?;
        let after = after.map_err(attach)?;
        let counted = before.zip(after);
        Ok((sent, counted.map(|(before, after)| before.until(&after))))
    }

    /// Sends so many requests and waits for their replies, or waits without load where there are none. `at_end` reads the JVM
    /// when all replies are there and the connections still open: what a thread of a connection has counted ends with it.
    fn send<T: Send>(
        &mut self,
        count: u64,
        wait: Duration,
        at_end: impl Fn(&Meter) -> T + Sync,
    ) -> anyhow::Result<(Sent, T)> {
        let began = clock::now();
        if count == 0 {
            while began.elapsed() < wait {
                if self.interrupted.load(Ordering::Relaxed) {
                    let after_s = began.elapsed().as_secs_f64();
                    return Err(load::problem(LoadError::Interrupted { after_s }));
                }
                std::thread::sleep(LOOK_EVERY);
            }
            let sent = Sent {
                seconds: began.elapsed().as_secs_f64(),
                ..Sent::default()
            };
            return Ok((sent, at_end(&self.meter)));
        }
        let length = Length {
            warmup: Duration::ZERO,
            stop: Stop::Count(count),
            seed: self.requests.sent,
        };
        let (read, stop, is_over) = (
            Mutex::new(None),
            AtomicBool::new(false),
            AtomicBool::new(false),
        );
        let hooks = Hooks {
            thread_start: &|_| Ok(()),
            window: &|edge| {
                if edge == Edge::Ended
                    && let Ok(mut read) = read.lock()
                {
                    let seconds = began.elapsed().as_secs_f64();
                    *read = Some((seconds, at_end(&self.meter)));
                }
            },
            interrupted: &stop,
            turns: None,
        };
        let mut so_far = self.requests.clone();
        let mut lost = 0;
        let mut each_second = |second: &Second| {
            lost += second.lost;
            so_far.sent += second.sent;
            so_far.failed += second.lost;
            // The rest would fail as well, each after its timeout.
            if lost as f64 > MOST_FAILED * count as f64 {
                stop.store(true, Ordering::Relaxed);
            }
        };
        let (completed, health) = std::thread::scope(|scope| {
            let watch = scope.spawn(|| {
                while !is_over.load(Ordering::Relaxed) {
                    let health = self.meter.check();
                    if health.is_err() || self.interrupted.load(Ordering::Relaxed) {
                        stop.store(true, Ordering::Relaxed);
                        return health;
                    }
                    std::thread::sleep(LOOK_EVERY);
                }
                Ok(())
            });
            let completed = self.load.run(&length, &hooks, &mut each_second);
            is_over.store(true, Ordering::Relaxed);
            (completed, watch.join().unwrap_or(Ok(())))
        });
        health.map_err(attach)?;
        let measured = match completed {
            Ok(completed) => completed.measurement,
            Err(LoadError::Interrupted { .. }) if !self.interrupted.load(Ordering::Relaxed) => {
                return Err(self.failing(&so_far));
            }
            Err(error) => return Err(load::problem(error)),
        };
        let read = read.into_inner().ok().flatten();
        let (seconds, read) = read.context("the load ended without the end of its window")?;
        let sent = Sent {
            answered: measured.received,
            failed: measured.sent.saturating_sub(measured.received),
            seconds,
        };
        self.requests.sent += measured.sent;
        self.requests.answered += sent.answered;
        self.requests.failed += sent.failed;
        for (kind, count) in measured.errors {
            *self.requests.errors.entry(kind).or_default() += count;
        }
        if sent.failed as f64 > MOST_FAILED * measured.sent as f64 {
            return Err(self.failing(&self.requests));
        }
        Ok((sent, read))
    }

    fn failing(&self, requests: &Requests) -> anyhow::Error {
        let Requests {
            sent,
            failed,
            errors,
            ..
        } = requests;
        let kinds: Vec<String> = errors
            .iter()
            .map(|(kind, count)| format!("{kind} {count}"))
            .collect();
        let kinds = match &kinds[..] {
            [] => String::new(),
            kinds => format!(" ({})", kinds.join(", ")),
        };
        let error = anyhow::anyhow!(
            "cannot measure pid {}: {failed} of {sent} requests failed{kinds}, and what they allocate cannot be told from the others; \
             see the responses with `rungwise load http`, and correct the request, --expect, --connections or --timeout",
            self.request.pid,
        );
        Problem::with(Exit::Inconclusive, error)
    }

    /// The three windows, of which the last has as many requests as fit.
    pub(super) fn windows(
        &mut self,
        last: Option<&Block>,
        collects: bool,
    ) -> anyhow::Result<Result<Windows, NotFilled>> {
        let first = self.request.first();
        let (mut count, idle) = self.fitting(last);
        if !collects {
            count = self.request.requests;
        }
        let least = LEAST_PER_CONNECTION * first.max(1);
        count = count.max(least);
        let noise = self.noise(idle)?;
        // What ends the first window begins the second; connections that close come before the third.
        let (idle, next) = match self.window(0, idle, None, collects)? {
            Ok(ended) => ended,
            Err(not) => return Ok(Err(not)),
        };
        let first = match self.window(first, Duration::ZERO, next, collects)? {
            Ok((window, _)) => window,
            Err(not) => return Ok(Err(not)),
        };
        loop {
            match self.window(count, Duration::ZERO, None, collects)? {
                Err(NotFilled::Collected) if count > least => count = (count / 2).max(least),
                main => {
                    return Ok(main.map(|(main, _)| Windows {
                        idle,
                        first,
                        main,
                        noise,
                    }));
                }
            }
        }
    }

    /// How far background varies from one part of a wait without load to another.
    fn noise(&mut self, wait: Duration) -> anyhow::Result<Option<f64>> {
        let mut parts = Vec::new();
        let mut last = self.meter.at_rest().map_err(attach)?;
        for _ in 0..PARTS {
            let (_, next) = self.send(0, wait / PARTS, Meter::counters)?;
            let next = next.map_err(attach)?;
            let part = last.as_ref().zip(next.as_ref());
            parts.extend(part.map(|(before, after)| before.until(after).bytes.point));
            last = next;
        }
        let least = parts.iter().copied().reduce(f64::min);
        let most = parts.into_iter().reduce(f64::max);
        Ok(most.zip(least).map(|(most, least)| most - least))
    }

    /// One window: requests, or a wait; and the heap as it is after.
    fn window(
        &mut self,
        count: u64,
        wait: Duration,
        emptied: Option<Emptied>,
        collects: bool,
    ) -> anyhow::Result<Result<(Window, Option<Emptied>), NotFilled>> {
        let before = self.meter.at_rest().map_err(attach)?;
        let emptied = match emptied {
            None if collects => match self.meter.empty() {
                Ok(emptied) => Some(emptied),
                Err(not) => return Ok(Err(not)),
            },
            emptied => emptied,
        };
        let (sent, (after, filled)) = self.send(count, wait, |meter| {
            let after = meter.counters();
            (after, emptied.as_ref().map(|emptied| meter.filled(emptied)))
        })?;
        let counted = before.zip(after.map_err(attach)?);
        let (filled, next) = match filled.transpose() {
            Ok(filled) => filled.unzip(),
            Err(not) => return Ok(Err(not)),
        };
        let window = Window {
            sent,
            counted: counted.map(|(before, after)| before.until(&after)),
            filled,
        };
        Ok(Ok((window, next)))
    }
}
