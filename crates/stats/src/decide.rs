//! Keep, revert, same, inconclusive: the rule that turns pairs into a decision.
//!
//! Decisions are taken only at decision points fixed beforehand. The chance of a wrong decision of a comparison, its part of the
//! ladder's [`Budget`](crate::budget::Budget), is split equally over its decision points (Bonferroni; Pocock, "Group Sequential Methods
//! in the Design and Analysis of Clinical Trials", Biometrika 64 (1977), for why each decision point spends alpha).
//! It is the bluntest split and the only one that assumes nothing about how decision points depend on each other;
//! a false gain uses only one of the two sides, so the bound is loose by at least a factor of two.
//! A comparison that the pairs still allowed will hardly decide ends early as inconclusive (futility), which takes
//! nothing from the bound.
//! One primary metric decides; the CPU cost per transaction beside it may veto: where rate and cost
//! exclude zero in contradicting directions something else than the change was measured.

use std::fmt::Write as _;

use crate::interval::{FEWEST, Interval, Outlook, centre_interval, outlook};
use crate::ratio;

/// What a decision must satisfy.
#[derive(Clone, Debug, PartialEq)]
pub struct Rules {
    /// Smallest relative effect worth keeping, a fraction.
    pub min_effect: f64,
    /// Chance of any wrong decision over all decision points.
    pub alpha: f64,
    /// Numbers of pairs at which a decision may be taken, ascending.
    pub looks: Vec<u32>,
}

impl Rules {
    /// The share of alpha that one decision point may spend, both sides together.
    pub fn alpha_per_look(&self) -> f64 {
        self.alpha / self.looks.len().max(1) as f64
    }

    fn is_look(&self, pairs: usize) -> bool {
        self.looks.iter().any(|look| *look as usize == pairs)
    }

    fn last_look(&self) -> usize {
        self.looks.iter().max().map_or(0, |look| *look as usize)
    }

    fn is_last_look(&self, pairs: usize) -> bool {
        pairs >= self.last_look()
    }

    /// This decision point did not decide, and the last one is very unlikely to.
    fn is_futile(&self, log_ratios: &[f64]) -> bool {
        if !self.is_look(log_ratios.len()) {
            return false;
        }
        let alpha = self.alpha_per_look();
        let now = centre_interval(log_ratios, alpha);
        let later = outlook(log_ratios, alpha, self.last_look());
        now.zip(later)
            .is_some_and(|(now, Outlook { reach, drift })| {
                let smallest = ratio::from_change(self.min_effect);
                let may_be_same = reach + (now.point.abs() - drift).max(0.0) < smallest;
                let may_exclude_zero = now.point.abs() + drift > reach;
                !may_be_same && !may_exclude_zero
            })
    }

    /// The first decision point after `pairs`.
    fn next_look(&self, pairs: usize) -> Option<u32> {
        self.looks
            .iter()
            .copied()
            .filter(|look| *look as usize > pairs)
            .min()
    }
}

/// Which way of the primary metric is good.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    /// A rate.
    HigherIsBetter,
    /// A latency, a cost.
    LowerIsBetter,
}

/// What to do with a change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Call {
    /// Better, and by enough.
    Keep,
    /// Worse.
    Revert,
    /// No difference as large as the minimum effect.
    Same,
    /// The allowed pairs do not decide it, or the metrics contradict each other.
    Inconclusive,
    /// Not yet.
    MorePairs,
}

/// A call, what it rests on, and why in one sentence.
#[derive(Clone, Debug, PartialEq)]
pub struct Conclusion {
    /// What to do.
    pub call: Call,
    /// Log ratio of the primary metric, with change over without; absent where it could not be computed.
    pub primary: Option<Interval>,
    /// Log ratio of the CPU cost per transaction; absent where it could not be computed.
    pub cost: Option<Interval>,
    /// One sentence for the report, lower case, no full stop.
    pub reason: String,
}

/// Judges a change by the log ratios of its pairs, with the change over without it.
///
/// `cost_log_ratios` may be empty where the cost is unknown: then it has no veto.
pub fn judge(
    rules: &Rules,
    direction: Direction,
    primary_log_ratios: &[f64],
    cost_log_ratios: &[f64],
) -> Conclusion {
    let alpha = rules.alpha_per_look();
    let primary = centre_interval(primary_log_ratios, alpha);
    let cost = centre_interval(cost_log_ratios, alpha);
    let (mut call, mut reason) = call(
        rules,
        direction,
        primary_log_ratios.len(),
        primary,
        cost,
        "",
    );
    if call == Call::MorePairs && rules.is_futile(primary_log_ratios) {
        call = Call::Inconclusive;
        let last = rules.last_look();
        let _ = write!(reason, "; {last} pairs would hardly decide it either");
    }
    Conclusion {
        call,
        primary,
        cost,
        reason,
    }
}

/// Judges a change by its CPU cost per transaction alone, where there are no quiet pairs for the rate.
///
/// Valid only if the cost does not depend on waiting: never for a change around a shared lock.
pub fn judge_cost_only(rules: &Rules, cost_log_ratios: &[f64]) -> Conclusion {
    let cost = centre_interval(cost_log_ratios, rules.alpha_per_look());
    let (call, reason) = call(
        rules,
        Direction::LowerIsBetter,
        cost_log_ratios.len(),
        cost,
        None,
        "CPU cost only, ",
    );
    Conclusion {
        call,
        primary: None,
        cost,
        reason,
    }
}

fn call(
    rules: &Rules,
    direction: Direction,
    pairs: usize,
    primary: Option<Interval>,
    cost: Option<Interval>,
    label: &str,
) -> (Call, String) {
    if !rules.is_look(pairs) {
        return match rules.next_look(pairs) {
            Some(next) => (
                Call::MorePairs,
                format!("{label}{pairs} of {next} pairs until the next decision point"),
            ),
            None => (
                Call::Inconclusive,
                format!("{label}{pairs} pairs are not a decision point of this design"),
            ),
        };
    }
    let Some(interval) = primary else {
        let why = if pairs < FEWEST {
            format!("{label}{pairs} pairs are too few for an interval")
        } else {
            format!("{label}one of {pairs} pairs has no usable number")
        };
        return undecided(rules, pairs, why);
    };

    // From here on up is good.
    let good = match direction {
        Direction::HigherIsBetter => interval,
        Direction::LowerIsBetter => interval.mirrored(),
    };
    let smallest = ratio::from_change(rules.min_effect);
    let seen = format!("{label}{} over {pairs} pairs", describe(&interval));
    let wanted = percent(rules.min_effect);

    if let Some(cost) = cost {
        let contradiction = if good.is_above_zero() && cost.is_above_zero() {
            Some(("better", "costlier"))
        } else if good.is_below_zero() && cost.is_below_zero() {
            Some(("worse", "cheaper"))
        } else {
            None
        };
        if let Some((metric, price)) = contradiction {
            let price_seen = describe(&cost);
            return (
                Call::Inconclusive,
                format!(
                    "{seen} is {metric}, but the CPU cost per transaction is {price}: {price_seen}"
                ),
            );
        }
    }
    if good.is_above_zero() && good.point >= smallest {
        (
            Call::Keep,
            format!("{seen}: better by at least the required {wanted}"),
        )
    } else if good.is_below_zero() {
        (Call::Revert, format!("{seen}: worse"))
    } else if good.is_inside(smallest) {
        (
            Call::Same,
            format!("{seen}: no difference as large as {wanted}"),
        )
    } else if good.is_above_zero() {
        undecided(
            rules,
            pairs,
            format!("{seen}: better by less than the required {wanted}"),
        )
    } else {
        undecided(
            rules,
            pairs,
            format!("{seen}: the pairs show neither a difference nor its absence"),
        )
    }
}

fn undecided(rules: &Rules, pairs: usize, why: String) -> (Call, String) {
    if rules.is_last_look(pairs) {
        (Call::Inconclusive, why)
    } else {
        (Call::MorePairs, why)
    }
}

/// `+5.2 % (+3.1 % to +7.4 %)`.
fn describe(interval: &Interval) -> String {
    let change = |log: f64| signed_percent(ratio::to_change(log));
    format!(
        "{} ({} to {})",
        change(interval.point),
        change(interval.low),
        change(interval.high)
    )
}

fn percent(fraction: f64) -> String {
    let hundredths = (fraction * 1e4).round() / 100.0;
    format!("{hundredths} %")
}

fn signed_percent(fraction: f64) -> String {
    let percent = fraction * 100.0;
    // One decimal tells the late steps of a ladder apart; a factor needs none.
    if percent.abs() >= 100.0 {
        format!("{percent:+.0} %")
    } else {
        format!("{percent:+.1} %")
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn rules() -> Rules {
        Rules {
            min_effect: 0.02,
            alpha: 0.05,
            looks: vec![8, 16],
        }
    }

    /// `pairs` log ratios around `centre` with a spread of about one percent.
    fn around(centre: f64, pairs: usize) -> Vec<f64> {
        (0..pairs)
            .map(|i| centre + 0.01 * ((i * 7 % pairs) as f64 / (pairs - 1) as f64 - 0.5))
            .collect()
    }

    fn call_of(primary: &[f64], cost: &[f64]) -> Call {
        judge(&rules(), Direction::HigherIsBetter, primary, cost).call
    }

    #[test]
    fn alpha_is_split_over_looks() {
        let rules = Rules {
            alpha: 0.01,
            looks: vec![8, 16, 24],
            ..rules()
        };
        assert!((rules.alpha_per_look() - 0.01 / 3.0).abs() < 1e-18);
    }

    #[test]
    fn a_clear_gain_is_kept_and_a_clear_loss_reverted() {
        assert_eq!(call_of(&around(0.10, 8), &[]), Call::Keep);
        assert_eq!(call_of(&around(-0.10, 8), &[]), Call::Revert);
        let latency = judge(&rules(), Direction::LowerIsBetter, &around(-0.10, 8), &[]);
        assert_eq!(latency.call, Call::Keep, "{}", latency.reason);
    }

    #[test]
    fn a_difference_smaller_than_asked_for_is_the_same() {
        assert_eq!(call_of(&around(0.0, 16), &[]), Call::Same);
    }

    #[test]
    fn a_gain_around_the_minimum_effect_is_kept_only_from_it_on() {
        let exact = ratio::from_change(0.02);
        let kept = judge(
            &rules(),
            Direction::HigherIsBetter,
            &around(exact + 1e-9, 16),
            &[],
        );
        assert_eq!(kept.call, Call::Keep, "{}", kept.reason);
        let short = judge(
            &rules(),
            Direction::HigherIsBetter,
            &around(exact - 0.001, 16),
            &[],
        );
        assert_eq!(short.call, Call::Inconclusive);
        assert!(
            short.reason.contains("less than the required 2 %"),
            "{}",
            short.reason
        );
    }

    #[test]
    fn undecided_asks_for_pairs_until_the_last_look() {
        let wide = |factor: f64, pairs| {
            around(0.0, pairs)
                .into_iter()
                .map(|x| factor * x)
                .collect::<Vec<_>>()
        };
        assert_eq!(call_of(&wide(6.0, 8), &[]), Call::MorePairs);
        assert_eq!(call_of(&wide(20.0, 16), &[]), Call::Inconclusive);
    }

    #[test]
    fn what_the_last_pairs_would_hardly_decide_ends_early() {
        let rules = Rules {
            looks: vec![8, 10],
            ..rules()
        };
        let wide: Vec<f64> = around(0.0, 8).into_iter().map(|x| 20.0 * x).collect();
        let ended = judge(&rules, Direction::HigherIsBetter, &wide, &[]);
        assert_eq!(ended.call, Call::Inconclusive);
        assert!(
            ended
                .reason
                .ends_with("; 10 pairs would hardly decide it either"),
            "{}",
            ended.reason
        );
        let near = judge(&rules, Direction::HigherIsBetter, &around(0.003, 8), &[]);
        assert_ne!(near.call, Call::Inconclusive, "{}", near.reason);
    }

    #[test]
    fn between_looks_nothing_is_decided() {
        let early = judge(&rules(), Direction::HigherIsBetter, &around(0.5, 12), &[]);
        assert_eq!(early.call, Call::MorePairs);
        assert_eq!(early.reason, "12 of 16 pairs until the next decision point");
        assert_eq!(call_of(&around(0.5, 20), &[]), Call::Inconclusive);
        assert_eq!(call_of(&[], &[]), Call::MorePairs);
    }

    #[test]
    fn rate_and_cost_that_contradict_each_other_are_inconclusive() {
        let faster_but_costlier = judge(
            &rules(),
            Direction::HigherIsBetter,
            &around(0.10, 8),
            &around(0.10, 8),
        );
        assert_eq!(faster_but_costlier.call, Call::Inconclusive);
        assert!(
            faster_but_costlier.reason.contains("costlier"),
            "{}",
            faster_but_costlier.reason
        );
        assert_eq!(
            call_of(&around(-0.10, 8), &around(-0.10, 8)),
            Call::Inconclusive
        );
        assert_eq!(call_of(&around(0.10, 8), &around(-0.10, 8)), Call::Keep);
        assert_eq!(call_of(&around(-0.10, 8), &around(0.10, 8)), Call::Revert);
        assert_eq!(call_of(&around(0.10, 8), &around(0.0, 8)), Call::Keep);
    }

    #[test]
    fn a_pair_without_a_number_decides_nothing() {
        let mut pairs = around(0.10, 16);
        pairs[3] = f64::NAN;
        let judgement = judge(&rules(), Direction::HigherIsBetter, &pairs, &[]);
        assert_eq!(
            (judgement.call, judgement.primary),
            (Call::Inconclusive, None)
        );
    }

    #[test]
    fn cost_only_says_so_and_keeps_what_is_cheaper() {
        let judgement = judge_cost_only(&rules(), &around(-0.10, 8));
        assert_eq!(judgement.call, Call::Keep);
        assert!(
            judgement.reason.starts_with("CPU cost only, -9.5 %"),
            "{}",
            judgement.reason
        );
        assert_eq!(
            judge_cost_only(&rules(), &around(0.10, 8)).call,
            Call::Revert
        );
    }

    #[test]
    fn a_reason_is_one_sentence_with_its_numbers() {
        let judgement = judge(&rules(), Direction::HigherIsBetter, &around(0.10, 8), &[]);
        assert_eq!(
            judgement.reason,
            "+10.5 % (+10.0 % to +11.0 %) over 8 pairs: better by at least the required 2 %"
        );
    }

    proptest! {
        #[test]
        fn any_numbers_get_a_call_and_a_reason(
            primary in prop::collection::vec(any::<f64>(), 0..20),
            cost in prop::collection::vec(any::<f64>(), 0..20),
            looks in prop::collection::vec(0..20_u32, 0..4),
        ) {
            let rules = Rules { min_effect: 0.02, alpha: 0.01, looks };
            let judgement = judge(&rules, Direction::LowerIsBetter, &primary, &cost);
            prop_assert!(!judgement.reason.is_empty());
        }

        #[test]
        fn both_directions_are_mirror_images(centre in -0.1..0.1f64, cost in -0.1..0.1f64) {
            let primary = around(centre, 8);
            let negated: Vec<f64> = primary.iter().map(|x| -x).collect();
            let cost = around(cost, 8);
            prop_assert_eq!(
                judge(&rules(), Direction::HigherIsBetter, &primary, &cost).call,
                judge(&rules(), Direction::LowerIsBetter, &negated, &cost).call
            );
        }
    }
}
