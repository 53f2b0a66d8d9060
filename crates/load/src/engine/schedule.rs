//! When requests are due: one arrival law, distributed over the threads in turn.
//!
//! Request `k` of a window is due when the law's integral reaches `k`, so the schedule is known before the
//! first reply and no reply can move it. Thread `t` of `n` takes the requests `t`, `t + n`, ...: the
//! threads are offset by one step of the whole schedule each. The warm-up runs at the rate with which the
//! window starts.

use super::{Arrival, Stop};
use crate::clock::SECOND;

/// The law of the whole load, in bursts per second.
#[derive(Clone, Copy, Debug)]
struct Law {
    from_per_s: f64,
    /// Growth of the rate, per second squared.
    slope: f64,
}

impl Law {
    /// When arrival `k` is due, ns after the window's start. Zero slope needs no case of its own: the
    /// solution of `from t + slope t^2 / 2 = k` is written so that it does not cancel.
    fn due_ns(self, k: u64) -> u64 {
        if k == 0 {
            return 0;
        }
        let k = k as f64;
        let root = self
            .from_per_s
            .mul_add(self.from_per_s, 2.0 * self.slope * k)
            .max(0.0)
            .sqrt();
        // A rate that has fallen to zero never reaches `k`: infinity saturates to the last instant.
        (2.0 * k / (self.from_per_s + root) * SECOND as f64) as u64
    }
}

/// The due times of one thread, ascending, in bursts of requests.
#[derive(Clone, Debug)]
pub(crate) struct Schedule {
    law: Law,
    /// `Some` while warming up.
    warmup: Option<(u64, f64)>,
    begin: u64,
    end: u64,
    /// Requests of the window over all threads, where counted.
    count: u64,
    burst: u64,
    thread: u64,
    threads: u64,
    k: u64,
    /// Absolute time of the next burst, `u64::MAX` when there is none.
    next: u64,
}

impl Schedule {
    /// `None` for a closed loop. All times are absolute nanoseconds; `end` is `u64::MAX` where a count stops.
    pub(crate) fn new(
        arrival: &Arrival,
        stop: &Stop,
        burst: usize,
        (thread, threads): (usize, usize),
        (start, begin, end): (u64, u64, u64),
    ) -> Option<Self> {
        let burst_size = burst as f64;
        let law = match (arrival, stop) {
            (Arrival::Closed, _) => return None,
            (Arrival::Constant { per_s }, _) => Law {
                from_per_s: per_s / burst_size,
                slope: 0.0,
            },
            (
                Arrival::Ramp {
                    from_per_s,
                    to_per_s,
                },
                stop,
            ) => {
                let length_s = match (stop, stop.length()) {
                    (Stop::Count(count), _) => 2.0 * *count as f64 / (from_per_s + to_per_s),
                    (_, Some(length)) => length.as_secs_f64(),
                    (_, None) => f64::INFINITY,
                };
                Law {
                    from_per_s: from_per_s / burst_size,
                    slope: (to_per_s - from_per_s) / burst_size / length_s,
                }
            }
        };
        let mut schedule = Self {
            law,
            warmup: (start < begin && law.from_per_s > 0.0).then_some((start, law.from_per_s)),
            begin,
            end,
            count: match stop {
                Stop::Count(count) => *count,
                Stop::After(_) | Stop::Finished { .. } => u64::MAX,
            },
            burst: burst as u64,
            thread: thread as u64,
            threads: threads as u64,
            k: thread as u64,
            next: 0,
        };
        schedule.settle();
        Some(schedule)
    }

    /// When the next burst is due, and of how many requests.
    #[inline]
    pub(crate) fn peek(&self) -> Option<(u64, usize)> {
        if self.next == u64::MAX {
            return None;
        }
        let size = if self.warmup.is_some() {
            self.burst
        } else {
            self.burst.min(self.count - self.k * self.burst)
        };
        Some((self.next, size as usize))
    }

    /// Goes on to the burst after it.
    #[inline]
    pub(crate) fn advance(&mut self) {
        self.k += self.threads;
        self.settle();
    }

    /// Ends the schedule; answers how many requests of the window it still held. Found by bisection, so that a rate that cannot be kept is
    /// not counted down one request at a time.
    pub(crate) fn end(&mut self) -> u64 {
        if self.next == u64::MAX {
            return 0;
        }
        let first = if self.warmup.take().is_some() {
            self.thread
        } else {
            self.k
        };
        self.next = u64::MAX;
        // Bursts of this thread from `first` on, by their number: those below `low` are due, `high` is not.
        let (mut low, mut high) = (0, u64::MAX / self.threads - first);
        while low < high {
            let middle = low + (high - low) / 2;
            if self.due(first + middle * self.threads).is_some() {
                low = middle + 1;
            } else {
                high = middle;
            }
        }
        if low == 0 {
            return 0;
        }
        let last = first + (low - 1) * self.threads;
        (low - 1) * self.burst + self.burst.min(self.count - last * self.burst)
    }

    /// When burst `k` of the window is due; absent where it is none of the window's.
    fn due(&self, k: u64) -> Option<u64> {
        let due = self.begin.saturating_add(self.law.due_ns(k));
        let over = due >= self.end || k.saturating_mul(self.burst) >= self.count;
        (!over).then_some(due)
    }

    fn settle(&mut self) {
        if let Some((start, per_s)) = self.warmup {
            let due = start.saturating_add((self.k as f64 / per_s * SECOND as f64) as u64);
            if due < self.begin {
                self.next = due;
                return;
            }
            self.warmup = None;
            self.k = self.thread;
        }
        self.next = self.due(self.k).unwrap_or(u64::MAX);
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use proptest::prelude::*;

    use super::*;

    fn all(
        arrival: &Arrival,
        stop: &Stop,
        burst: usize,
        threads: usize,
        begin: u64,
        end: u64,
    ) -> Vec<(u64, usize)> {
        let mut due = Vec::new();
        for thread in 0..threads {
            let mut schedule =
                Schedule::new(arrival, stop, burst, (thread, threads), (0, begin, end)).unwrap();
            while let Some(next) = schedule.peek() {
                due.push(next);
                schedule.advance();
            }
        }
        due.sort_unstable();
        due
    }

    #[test]
    fn a_constant_rate_is_even_over_all_threads() {
        let law = Arrival::Constant { per_s: 1000.0 };
        let due = all(&law, &Stop::After(Duration::from_secs(1)), 1, 3, 0, SECOND);
        assert_eq!(due.len(), 1000);
        assert!(due.windows(2).all(|pair| pair[1].0 - pair[0].0 >= 999_999));
    }

    #[test]
    fn a_ramp_sends_the_mean_of_its_ends() {
        for (from_per_s, to_per_s) in [(0.0, 2000.0), (2000.0, 0.0), (500.0, 1500.0)] {
            let law = Arrival::Ramp {
                from_per_s,
                to_per_s,
            };
            let due = all(
                &law,
                &Stop::After(Duration::from_secs(2)),
                1,
                2,
                0,
                2 * SECOND,
            );
            assert!(due.len().abs_diff(2000) <= 1, "{from_per_s}: {}", due.len());
            let early = due.iter().filter(|(ns, _)| *ns < SECOND).count() as f64;
            let expected = (3.0 * from_per_s + to_per_s) / 4.0;
            assert!((early - expected).abs() <= 2.0, "{early} {expected}");
        }
    }

    #[test]
    fn a_count_is_exact_whatever_the_burst() {
        for burst in [1, 7, 16, 200] {
            let law = Arrival::Ramp {
                from_per_s: 10.0,
                to_per_s: 1000.0,
            };
            let due = all(&law, &Stop::Count(100), burst, 3, 0, u64::MAX);
            assert_eq!(
                due.iter().map(|(_, size)| size).sum::<usize>(),
                100,
                "{burst}"
            );
        }
    }

    fn rest(schedule: &Schedule) -> u64 {
        let mut schedule = schedule.clone();
        let mut sum = 0;
        while let Some((due, size)) = schedule.peek() {
            sum += if due < schedule.begin { 0 } else { size as u64 };
            schedule.advance();
        }
        sum
    }

    proptest! {
        #[test]
        fn what_is_left_is_counted_as_if_one_by_one(
            from_per_s in 0.0..3000.0_f64,
            to_per_s in 1.0..3000.0_f64,
            count in prop::option::of(1..2000_u64),
            burst in 1..70_usize,
            threads in 1..5_usize,
            warmup in 0..200_000_000_u64,
            done in 0..300_usize,
        ) {
            let law = Arrival::Ramp { from_per_s, to_per_s };
            let length = Duration::from_millis(700);
            let stop = count.map_or(Stop::After(length), Stop::Count);
            let end = count.map_or(warmup + length.as_nanos() as u64, |_| u64::MAX);
            for thread in 0..threads {
                let times = (0, warmup, end);
                let mut schedule =
                    Schedule::new(&law, &stop, burst, (thread, threads), times).unwrap();
                for _ in 0..done {
                    if schedule.peek().is_some() {
                        schedule.advance();
                    }
                }
                let expected = rest(&schedule);
                prop_assert_eq!(schedule.end(), expected);
                prop_assert_eq!(schedule.peek(), None);
            }
        }
    }

    #[test]
    fn an_absurd_rate_over_a_month_is_counted_at_once() {
        let law = Arrival::Constant { per_s: 1e9 };
        let month = Duration::from_hours(24 * 30);
        let end = month.as_nanos() as u64;
        let mut schedule =
            Schedule::new(&law, &Stop::After(month), 1, (0, 2), (0, 0, end)).unwrap();
        let expected = 1e9 * month.as_secs_f64() / 2.0;
        assert!((schedule.end() as f64 / expected - 1.0).abs() < 1e-9);
    }

    #[test]
    fn the_warm_up_runs_at_the_first_rate_and_counts_for_nothing() {
        let law = Arrival::Constant { per_s: 100.0 };
        let due = all(&law, &Stop::Count(50), 1, 2, SECOND, u64::MAX);
        assert_eq!(due.iter().filter(|(ns, _)| *ns < SECOND).count(), 100);
        assert_eq!(due.iter().filter(|(ns, _)| *ns >= SECOND).count(), 50);
    }
}
