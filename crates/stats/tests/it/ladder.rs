//! The whole rule: what it keeps where nothing changed, and what it finds where something did.

use rungwise_stats::decide::{Call, Direction, Rules, judge};
use rungwise_stats::noise::smallest_effect;

use crate::machine::{Machine, Noise};

const LADDERS: usize = 1000;
const RUNGS: usize = 500;
const SD: f64 = 0.03;

fn rules() -> Rules {
    Rules {
        min_effect: 0.02,
        alpha_family: 0.01,
        rungs: 14,
        looks: vec![8, 16, 24],
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

#[test]
fn a_ladder_without_effects_keeps_something_at_most_as_often_as_alpha() {
    let rules = rules();
    let alpha = rules.alpha_family;
    let allowed = alpha + 3.0 * (alpha * (1.0 - alpha) / LADDERS as f64).sqrt();
    println!("| noise | ladders | that kept anything |");
    for noise in Noise::ALL {
        let mut machine = Machine::new(7, noise, SD, true);
        let wrong = (0..LADDERS)
            .filter(|_| {
                let kept = (0..rules.rungs)
                    .filter(|_| climb(&rules, &mut machine, 0.0) == Call::Keep)
                    .count();
                kept > 0
            })
            .count();
        println!("| {noise} | {LADDERS} | {wrong} |");
        assert!(wrong as f64 / LADDERS as f64 <= allowed, "{noise}: {wrong}");
    }
}

#[test]
fn an_effect_of_the_published_size_is_found_as_often_as_promised() {
    let rules = rules();
    let truths = [0.02, 0.03, 0.04, 0.06, 0.08];
    println!("| noise of a pair | smallest effect | kept of true effects {truths:?} |");
    for sd in [0.01, 0.02, 0.03] {
        let found = |truth: f64| {
            let mut machine = Machine::new(11, Noise::Normal, sd, false);
            let kept = (0..RUNGS)
                .filter(|_| climb(&rules, &mut machine, truth.ln_1p()) == Call::Keep)
                .count();
            kept as f64 / RUNGS as f64
        };
        let effect = smallest_effect(sd, 24, rules.alpha_per_look(), 0.8);
        let shares = truths.map(|truth| (100.0 * found(truth)).round());
        println!(
            "| {:.0} % | {:.1} % | {shares:?} |",
            100.0 * sd,
            100.0 * effect
        );
        // Below the minimum effect nothing is kept, however clearly it is seen.
        if effect > rules.min_effect {
            let share = found(effect);
            assert!(
                share >= 0.8 - 3.0 * (0.8 * 0.2 / RUNGS as f64).sqrt(),
                "{sd}: {share}"
            );
        }
    }
}
