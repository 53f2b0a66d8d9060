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

/// The same without an early end: the call, and the number of pairs that it took.
fn climb_to_the_end(rules: &Rules, all: &[f64]) -> (Call, u32) {
    let last = rules.looks.len() - 1;
    let at = |look: &u32| {
        let pairs = &all[..*look as usize];
        judge(rules, Direction::HigherIsBetter, pairs, &[]).call
    };
    (rules.looks.iter().enumerate())
        .map(|(i, look)| (i, at(look), *look))
        .find(|(i, call, _)| *i == last || matches!(call, Call::Keep | Call::Revert | Call::Same))
        .map(|(_, call, look)| (call, look))
        .expect("the last look is there")
}

#[test]
fn an_early_end_spares_pairs_and_hardly_a_decision() {
    let rules = rules(ALPHA / COMPARISONS as f64);
    println!(
        "| noise of a pair | true effect | decided to the end | with early ends | pairs to the end | with early ends |"
    );
    for sd in [0.01, 0.02, 0.03, 0.05] {
        for truth in [0.0_f64, 0.01, 0.02, 0.04, 0.08] {
            let mut machine = Machine::new(13, Noise::Normal, sd, false);
            let (mut patient, mut early, mut all_pairs, mut pairs) = (0, 0, 0, 0);
            for _ in 0..RUNGS {
                let sample = machine.pairs(truth.ln_1p(), 24);
                let (call, used) = climb_to_the_end(&rules, &sample);
                patient += usize::from(call != Call::Inconclusive);
                all_pairs += used;
                let (call, used) = (rules.looks.iter())
                    .map(|look| {
                        let pairs = &sample[..*look as usize];
                        (
                            judge(&rules, Direction::HigherIsBetter, pairs, &[]).call,
                            *look,
                        )
                    })
                    .find(|(call, _)| *call != Call::MorePairs)
                    .expect("the last look never asks for more");
                early += usize::from(call != Call::Inconclusive);
                pairs += used;
            }
            println!(
                "| {:.0} % | {:.0} % | {:.1} % | {:.1} % | {:.1} | {:.1} |",
                100.0 * sd,
                100.0 * truth,
                100.0 * patient as f64 / RUNGS as f64,
                100.0 * early as f64 / RUNGS as f64,
                f64::from(all_pairs) / RUNGS as f64,
                f64::from(pairs) / RUNGS as f64,
            );
            assert!(
                patient - early <= RUNGS / 100,
                "{sd} {truth}: {patient} {early}"
            );
        }
    }
}
