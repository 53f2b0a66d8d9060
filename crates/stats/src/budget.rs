//! The chance of a wrong decision over a ladder, and what is left of it.
//!
//! Each comparison is judged at an equal part of what is left. A comparison that rejects "no difference" hands its part
//! on, as in the step-down procedure of Holm (Scandinavian Journal of Statistics 6 (1979)) and its sequential form, the fallback
//! procedure (Wiens & Dmitrienko, Journal of Biopharmaceutical Statistics 15 (2005)); so does one that never took place. All others
//! use their part up.
//!
//! The bound holds because only the first wrong decision counts: before it, every part that was handed on belongs to a
//! comparison that was decided rightly. It also holds for decisions in the wrong direction, since the pairs of different
//! comparisons are independent and a difference that is nearly always seen is hardly ever seen with the wrong sign (Shaffer, Annals
//! of Statistics 8 (1980)).

/// What is left.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Budget {
    left: f64,
}

impl Budget {
    /// For a ladder whose chance of any wrong decision is to be `alpha` at most.
    pub fn new(alpha: f64) -> Self {
        Self { left: alpha }
    }

    /// The part of one of `comparisons` that may still come, itself included.
    pub fn part(&self, comparisons: usize) -> f64 {
        self.left / comparisons.max(1) as f64
    }

    /// A comparison did not reject "no difference" and used its part up.
    pub fn spend(&mut self, part: f64) {
        self.left = (self.left - part).max(0.0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_are_equal_until_one_is_handed_on() {
        let mut budget = Budget::new(0.01);
        let first = budget.part(4);
        budget.spend(first);
        assert!((budget.part(3) - first).abs() < 1e-15);
        // The second one hands its part on.
        let rest = budget.part(2);
        assert!((rest - 1.5 * first).abs() < 1e-15);
        budget.spend(rest);
        assert!((budget.part(1) - rest).abs() < 1e-15);
        budget.spend(rest);
        assert!(budget.part(1) < 1e-15);
    }

    #[test]
    fn what_is_spent_never_exceeds_alpha() {
        let mut budget = Budget::new(0.01);
        let mut spent = 0.0;
        for (left, rejects) in (1..=14).rev().zip([true, false, false].into_iter().cycle()) {
            let part = budget.part(left);
            if !rejects {
                budget.spend(part);
                spent += part;
            }
        }
        assert!(spent <= 0.01 + 1e-15);
    }
}
