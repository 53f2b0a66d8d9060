//! The worst minute: the window of 60 s with the most stopped time, found in one pass.
//!
//! A ring of steps of 100 ms holds how long threads were stopped in each. The window ends at every step's end in turn, so
//! it is found to within a step, which is 0.2 % of it.

use super::clock::SECOND;

/// The window; JMC judges the same one.
pub(super) const WINDOW: i64 = 60 * SECOND;
const STEP: i64 = SECOND / 10;
const STEPS: i64 = WINDOW / STEP;

#[derive(Debug)]
pub(super) struct Worst {
    /// Beginning of step 0.
    origin: Option<i64>,
    /// The step that is being filled.
    step: i64,
    /// Stopped time of the last [`STEPS`] steps, nanoseconds.
    ring: Box<[i64; STEPS as usize]>,
    sum: i64,
    /// Stopped time in the worst window so far, and its end.
    most: Option<(i64, i64)>,
}

impl Default for Worst {
    fn default() -> Self {
        Self {
            origin: None,
            step: 0,
            ring: Box::new([0; STEPS as usize]),
            sum: 0,
            most: None,
        }
    }
}

impl Worst {
    /// Threads were stopped from `begin` to `end`. Pauses come in order, or nearly so.
    pub(super) fn stopped(&mut self, begin: i64, end: i64) {
        let origin = *self.origin.get_or_insert(begin);
        // Of a pause of many windows the last two are enough: there is nothing worse than all.
        let begin = begin.max(end.saturating_sub(2 * WINDOW)).max(origin);
        let mut at = begin;
        while at < end {
            let step = (at - origin) / STEP;
            let until = (origin + (step + 1) * STEP).min(end);
            if step <= self.step - STEPS {
                // The clock went back, or the last stamp was damaged: what is in the ring is of another time.
                self.ring.fill(0);
                (self.step, self.sum) = (step, 0);
            }
            self.advance(step);
            let slot = &mut self.ring[(step % STEPS) as usize];
            // Two pauses never take more of a step than there is.
            let part = (until - at).min(STEP - *slot);
            *slot += part;
            self.sum += part;
            at = until;
        }
    }

    /// Stopped time in the worst window, and its end; nothing for a run shorter than a window, which ended at `end`.
    pub(super) fn worst(&self, end: i64) -> Option<(i64, i64)> {
        let origin = self.origin?;
        if end.saturating_sub(origin) < WINDOW {
            return None;
        }
        let last = (
            self.sum,
            (origin + (self.step + 1) * STEP)
                .max(origin + WINDOW)
                .min(end),
        );
        Some(self.most.filter(|worst| worst.0 >= last.0).unwrap_or(last))
    }

    /// Ends all steps before `step`.
    fn advance(&mut self, step: i64) {
        while self.step < step {
            self.step += 1;
            self.consider();
            if self.sum == 0 {
                // Nothing in the ring: the steps between pass without a trace.
                self.step = step;
                return;
            }
            let slot = &mut self.ring[(self.step % STEPS) as usize];
            self.sum -= *slot;
            *slot = 0;
        }
    }

    /// The window that ends where the present step begins, if a whole one fits.
    fn consider(&mut self) {
        let whole = self.step >= STEPS;
        if whole && self.most.is_none_or(|worst| worst.0 < self.sum) {
            let end = self.origin.unwrap_or(0) + self.step * STEP;
            self.most = Some((self.sum, end));
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn the_worst_minute_holds_the_pauses_that_lie_closest() {
        let mut worst = Worst::default();
        for second in [0, 100, 200, 210, 220, 400] {
            worst.stopped(second * SECOND, second * SECOND + SECOND / 2);
        }
        let (stopped, end) = worst.worst(500 * SECOND).unwrap();
        assert_eq!(stopped, 3 * SECOND / 2);
        assert!(end > 220 * SECOND && end <= 261 * SECOND, "{end}");
    }

    #[test]
    fn a_pause_of_hours_stops_a_whole_window() {
        let mut worst = Worst::default();
        worst.stopped(0, SECOND);
        worst.stopped(10 * SECOND, 10_000 * SECOND);
        worst.stopped(20_000 * SECOND, 20_001 * SECOND);
        let (stopped, _) = worst.worst(30_000 * SECOND).unwrap();
        assert_eq!(stopped, WINDOW);
    }

    #[test]
    fn a_run_shorter_than_the_window_has_none() {
        let mut worst = Worst::default();
        worst.stopped(0, SECOND);
        assert_eq!(worst.worst(59 * SECOND), None);
        assert_eq!(worst.worst(60 * SECOND).map(|w| w.0), Some(SECOND));
    }

    proptest! {
        #[test]
        fn it_is_the_largest_of_all_windows(
            gaps in prop::collection::vec((1..200_i64, 1..40_i64), 1..60),
        ) {
            // In steps, so that the slow way below is exact.
            let mut pauses = Vec::new();
            let mut at = 0;
            for (gap, length) in gaps {
                pauses.push((at, at + length));
                at += length + gap;
            }
            let end = at + STEPS;
            let mut worst = Worst::default();
            for (from, to) in &pauses {
                worst.stopped(from * STEP, to * STEP);
            }
            let slow = (0..=end - STEPS)
                .map(|from| {
                    let overlap = |p: &(i64, i64)| (p.1.min(from + STEPS) - p.0.max(from)).max(0);
                    pauses.iter().map(overlap).sum::<i64>()
                })
                .max();
            prop_assert_eq!(worst.worst(end * STEP).map(|w| w.0 / STEP), slow);
        }
    }
}
