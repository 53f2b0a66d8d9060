//! The whole rule: what it keeps where nothing changed, and what it finds where something did.

use rungwise_stats::budget::Budget;
use rungwise_stats::decide::{Call, Direction, Rules, judge};
use rungwise_stats::noise::smallest_effect;
use rungwise_stats::ratio;

use crate::machine::{Machine, Noise};

const LADDERS: usize = 1000;
const RUNGS: usize = 500;
const SD: f64 = 0.03;
const COMPARISONS: usize = 14;
const ALPHA: f64 = 0.01;

fn rules(alpha: f64) -> Rules {
    Rules {
        min_effect: 0.02,
        alpha,
        looks: vec![8, 16, 24],
    }
}

/// How a ladder of rungs with these true effects is judged.
fn ladder(machine: &mut Machine, truths: &[f64]) -> Vec<Call> {
    let mut budget = Budget::new(ALPHA);
    (truths.iter().enumerate())
        .map(|(i, truth)| {
            let part = budget.part(truths.len() - i);
            let call = climb(&rules(part), machine, *truth);
            if !matches!(call, Call::Keep | Call::Revert) {
                budget.spend(part);
            }
            call
        })
        .collect()
}

/// Its call is wrong about the true effect.
fn is_wrong(call: Call, truth: f64) -> bool {
    match call {
        Call::Keep => truth <= 0.0,
        Call::Revert => truth >= 0.0,
        Call::Same => truth.abs() >= ratio::from_change(0.02),
        Call::Inconclusive | Call::MorePairs => false,
    }
}

/// One rung as the engine climbs it: pairs are added until a call is made.
fn climb(rules: &Rules, machine: &mut Machine, truth: f64) -> Call {
    let all = machine.pairs(truth, 24);
    rules
        .looks
        .iter()
        .map(|look| {
            judge(
                rules,
                Direction::HigherIsBetter,
                &all[..*look as usize],
                &[],
            )
            .call
        })
        .find(|call| *call != Call::MorePairs)
        .expect("the last look never asks for more")
}

/// Ladders in which something was decided wrongly; alpha is allowed, and three standard errors.
fn wrong_ladders(truths: &[f64], noise: Noise) -> usize {
    let allowed = ALPHA + 3.0 * (ALPHA * (1.0 - ALPHA) / LADDERS as f64).sqrt();
    let mut machine = Machine::new(7, noise, SD, true);
    let wrong = (0..LADDERS)
        .filter(|_| {
            let calls = ladder(&mut machine, truths);
            calls
                .into_iter()
                .zip(truths)
                .any(|(call, truth)| is_wrong(call, *truth))
        })
        .count();
    assert!(wrong as f64 / LADDERS as f64 <= allowed, "{noise}: {wrong}");
    wrong
}

#[test]
fn a_ladder_decides_something_wrongly_at_most_as_often_as_alpha() {
    let nothing = [0.0; COMPARISONS];
    // Each clear gain hands its part on to a rung without effect.
    let gains: Vec<f64> = [0.5, 0.0].into_iter().cycle().take(COMPARISONS).collect();
    let small = [0.02_f64.ln_1p(); COMPARISONS];
    println!(
        "| noise | ladders | wrong: no rung has an effect | every other one gains 65 % | all gain 2 % |"
    );
    for noise in Noise::ALL {
        let [nothing, gains, small] =
            [&nothing[..], &gains, &small].map(|truths| wrong_ladders(truths, noise));
        println!("| {noise} | {LADDERS} | {nothing} | {gains} | {small} |");
    }
}

#[test]
fn an_effect_of_the_published_size_is_found_as_often_as_promised() {
    let rules = rules(ALPHA / COMPARISONS as f64);
    // An effect is seen once its interval excludes zero; what is kept must reach the minimum effect as well.
    let seen = Rules {
        min_effect: f64::MIN_POSITIVE,
        ..rules.clone()
    };
    let truths = [0.02, 0.03, 0.04, 0.06, 0.08];
    println!("| noise of a pair | smallest effect | kept of true effects {truths:?} |");
    for sd in [0.01, 0.02, 0.03] {
        let found = |rules: &Rules, truth: f64| {
            let mut machine = Machine::new(11, Noise::Normal, sd, false);
            let kept = (0..RUNGS)
                .filter(|_| climb(rules, &mut machine, truth.ln_1p()) == Call::Keep)
                .count();
            kept as f64 / RUNGS as f64
        };
        let effect = smallest_effect(sd, 24, rules.alpha_per_look(), 0.8);
        let shares = truths.map(|truth| (100.0 * found(&rules, truth)).round());
        println!(
            "| {:.0} % | {:.1} % | {shares:?} |",
            100.0 * sd,
            100.0 * effect
        );
        let share = found(&seen, effect);
        assert!(
            share >= 0.8 - 3.0 * (0.8 * 0.2 / RUNGS as f64).sqrt(),
            "{sd}: {share}"
        );
    }
}
