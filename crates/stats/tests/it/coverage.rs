//! Coverage: how often the interval holds the truth.

use rungwise_stats::interval::centre_interval;

use crate::machine::{Machine, Noise};

const SIMULATIONS: usize = 2000;
const TRUTH: f64 = 0.03;
const SD: f64 = 0.03;

/// Share of intervals that miss the truth.
fn missed(noise: Noise, drift: bool, pairs: usize, alpha: f64) -> f64 {
    let mut machine = Machine::new(2024, noise, SD, drift);
    let misses = (0..SIMULATIONS)
        .filter(|_| {
            let interval = centre_interval(&machine.pairs(TRUTH, pairs), alpha)
                .expect("8 finite values or more");
            TRUTH < interval.low || interval.high < TRUTH
        })
        .count();
    misses as f64 / SIMULATIONS as f64
}

#[test]
fn the_interval_covers_the_truth_at_least_as_often_as_it_says() {
    let alpha = 0.05;
    // Three standard errors of such a share.
    let allowed = alpha + 3.0 * (alpha * (1.0 - alpha) / SIMULATIONS as f64).sqrt();
    println!("| noise | drift | 8 pairs | 16 pairs | 24 pairs |");
    for noise in Noise::ALL {
        for drift in [false, true] {
            let cells = [8, 16, 24].map(|pairs| {
                let share = missed(noise, drift, pairs, alpha);
                assert!(
                    share <= allowed,
                    "{noise}, drift {drift}, {pairs} pairs: missed {share}"
                );
                format!("{:.1} %", 100.0 * (1.0 - share))
            });
            println!(
                "| {noise} | {} | {} |",
                if drift { "yes" } else { "no" },
                cells.join(" | ")
            );
        }
    }
}
