//! How much of what is allocated is still alive when so and so many bytes more have been allocated.
//!
//! An age table is this curve in steps: of age k are the bytes born between k - 1 and k collections ago that still live, and
//! from one collection to the next a Eden is allocated. Nothing is supposed of the curve but that the dead stay dead: the share
//! that lives only falls. So within a step it lies between the mean of the step before and that of the step behind, which
//! bounds any sum over other steps. Beyond the last step it lies between nothing and the last mean. The point there lies between
//! objects that go on dying as they did over the last two steps and such that no longer die: what has lived long dies more slowly.

use rungwise_model::capacity::Estimate;

/// Live bytes by age, the age in bytes allocated since birth.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Survival {
    steps: Vec<Step>,
}

#[derive(Clone, Copy, Debug, PartialEq)]
struct Step {
    /// Where it ends; it begins where the one before ends.
    end: f64,
    /// Bytes of this age that live.
    alive: Estimate,
}

impl Survival {
    /// The next step, `length` long.
    pub(super) fn push(&mut self, length: f64, alive: Estimate) {
        let end = self.known() + length;
        self.steps.push(Step { end, alive });
    }

    /// Up to which age it is known.
    pub(super) fn known(&self) -> f64 {
        self.steps.last().map_or(0.0, |step| step.end)
    }

    /// The same objects where `factor` times as much is allocated in the same time: each lives as long in seconds.
    pub(super) fn at_rate(&self, factor: f64) -> Self {
        let steps = self.steps.iter().map(|step| Step {
            end: step.end * factor,
            alive: step.alive.scaled(factor),
        });
        Self {
            steps: steps.collect(),
        }
    }

    /// Live bytes of ages up to this one.
    pub(super) fn up_to(&self, age: f64) -> Estimate {
        self.between(0.0, age)
    }

    /// Live bytes of ages from `young` to `old`.
    pub(super) fn between(&self, young: f64, old: f64) -> Estimate {
        let mut sum = Estimate::default();
        let mut begin = 0.0;
        for (index, step) in self.steps.iter().enumerate() {
            let (from, to) = (young.max(begin), old.min(step.end));
            if to > from {
                sum = sum.plus(self.part(index, begin, from, to));
            }
            begin = step.end;
        }
        let (from, to) = (young.max(begin), old);
        if to > from {
            sum = sum.plus(self.beyond(from, to));
        }
        sum
    }

    /// Mean share that lives over a step; all of it before the first one, nothing for certain behind the last.
    fn share(&self, index: usize) -> Estimate {
        let begin = index
            .checked_sub(1)
            .map_or(0.0, |last| self.steps[last].end);
        let step = self.steps[index];
        step.alive.scaled(1.0 / (step.end - begin))
    }

    fn part(&self, index: usize, begin: f64, from: f64, to: f64) -> Estimate {
        let Step { end, alive } = self.steps[index];
        let (length, wanted) = (end - begin, to - from);
        let part = wanted / length;
        if part > 1.0 - 1e-9 {
            return alive;
        }
        let before = index
            .checked_sub(1)
            .map_or(1.0, |last| self.share(last).high.min(1.0));
        let behind = if index + 1 < self.steps.len() {
            self.share(index + 1).low
        } else {
            0.0
        };
        let (head, tail) = (from <= begin, to >= end);
        // The young part of a step holds no less than its share, the old part no more.
        let low = if head {
            part * alive.low
        } else {
            wanted * behind
        };
        let low = low.max(alive.low - (length - wanted) * before);
        let most = if tail {
            part * alive.high
        } else {
            wanted * before
        };
        let rest = (length - wanted) * behind;
        let high = most.min(alive.high - rest).max(low);
        Estimate {
            point: f64::midpoint(low, high),
            low,
            high,
        }
    }

    fn beyond(&self, from: f64, to: f64) -> Estimate {
        let Some(last) = self.steps.len().checked_sub(1) else {
            return Estimate::default();
        };
        let middle = |index: usize| {
            let begin = index
                .checked_sub(1)
                .map_or(0.0, |before| self.steps[before].end);
            f64::midpoint(begin, self.steps[index].end)
        };
        let share = self.share(last);
        let high = (to - from) * share.high;
        let flat = share.point * (to - from);
        let falling = match last.checked_sub(1) {
            Some(before) if share.point > 0.0 => {
                // Dying at a constant rate between the middles of the last two steps.
                let fall = (self.share(before).point / share.point).ln();
                let rate = (fall / (middle(last) - middle(before))).max(0.0);
                let at = |age: f64| (-rate * (age - middle(last))).exp();
                if rate * (to - from) > 1e-9 {
                    share.point * (at(from) - at(to)) / rate
                } else {
                    flat
                }
            }
            // Nothing says how fast it falls.
            _ => flat / 4.0,
        };
        let point = (falling * flat).sqrt();
        Estimate {
            point: point.min(high),
            low: 0.0,
            high,
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Objects of which `share` live, each dying with a probability that depends on its age alone: `alive` is the integral.
    fn curve(step: f64, steps: usize, alive: impl Fn(f64) -> f64) -> Survival {
        let mut survival = Survival::default();
        for index in 0..steps {
            let (from, to) = (index as f64 * step, (index + 1) as f64 * step);
            survival.push(step, Estimate::exact(alive(to) - alive(from)));
        }
        survival
    }

    #[test]
    fn whole_steps_are_known_exactly() {
        let survival = curve(10.0, 4, |age| 1.0 - (-age / 20.0).exp());
        let twice = survival.between(0.0, 20.0);
        assert!((twice.high - twice.low).abs() < 1e-12, "{twice:?}");
        assert!((twice.point - (1.0 - (-1.0_f64).exp())).abs() < 1e-12);
    }

    #[test]
    fn beyond_what_is_known_objects_die_but_no_faster() {
        let alive = |age: f64| 20.0 * (1.0 - (-age / 20.0).exp());
        let survival = curve(10.0, 3, alive);
        let beyond = survival.between(30.0, 60.0);
        let constant = alive(60.0) - alive(30.0);
        assert!(
            beyond.low <= 0.0 && constant < beyond.point && beyond.point < beyond.high,
            "{beyond:?}"
        );
    }

    #[test]
    fn at_twice_the_rate_twice_as_much_lives_at_twice_the_age() {
        let survival = curve(10.0, 3, f64::sqrt);
        let twice = survival.at_rate(2.0);
        assert!((twice.up_to(40.0).point - 2.0 * survival.up_to(20.0).point).abs() < 1e-12);
    }

    #[test]
    fn of_nothing_known_nothing_is_said() {
        assert_eq!(Survival::default().up_to(10.0), Estimate::default());
    }

    proptest! {
        /// The share that lives is a mixture of objects that die at once, at a constant rate, at a fixed age, or never.
        #[test]
        fn no_curve_that_only_falls_leaves_its_bounds(
            rate in 0.001..1.0f64,
            fixed in 1.0..80.0f64,
            weights in [0.0..1.0f64, 0.0..1.0, 0.0..1.0, 0.0..1.0],
            step in 2.0..20.0f64,
            steps in 1usize..8,
            from in 0.0..100.0f64,
            length in 0.0..100.0f64,
        ) {
            let sum: f64 = weights.iter().sum::<f64>().max(1e-3);
            let alive = |age: f64| {
                (weights[0] * (1.0 - (-rate * age).exp()) / rate + weights[1] * age.min(fixed) + weights[2] * age) / sum
            };
            let survival = curve(step, steps, alive);
            let estimate = survival.between(from, from + length);
            let truth = alive(from + length) - alive(from);
            prop_assert!(estimate.low <= truth + 1e-9 && truth <= estimate.high + 1e-9, "{:?} {}", estimate, truth);
            prop_assert!(estimate.low <= estimate.point + 1e-9 && estimate.point <= estimate.high + 1e-9, "{:?}", estimate);
        }
    }
}
