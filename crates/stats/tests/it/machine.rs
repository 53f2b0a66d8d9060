//! A simulated machine: two variants, a slow drift that both share, and noise of a known kind.
//!
//! The truth is the log ratio that is put in. Drift is a sinusoid of 10 % with a period of some forty runs
//! plus a random walk; halves of a pair are neighbours in time, so most of it cancels and the rest is what
//! pairs really see.

use std::f64::consts::TAU;
use std::fmt;

use rand_pcg::Pcg64Mcg;
use rand_pcg::rand_core::{Rng, SeedableRng};
use rungwise_stats::schedule::pair_orders;

/// The law of the noise of one run. That of a pair, the difference of two, is symmetric: its median is zero.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Noise {
    Normal,
    /// Student's t with 3 degrees of freedom, scaled to the standard deviation: rare wild runs.
    HeavyTailed,
    /// Minus an exponential: a run is never much faster than usual and sometimes much slower.
    Skewed,
}

impl Noise {
    pub(crate) const ALL: [Self; 3] = [Self::Normal, Self::HeavyTailed, Self::Skewed];
}

impl fmt::Display for Noise {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Normal => "normal",
            Self::HeavyTailed => "heavy tails (t, 3 degrees of freedom)",
            Self::Skewed => "skewed (exponential)",
        })
    }
}

pub(crate) struct Machine {
    rng: Pcg64Mcg,
    noise: Noise,
    /// Standard deviation of the noise of one pair's log ratio.
    sd: f64,
    drift: bool,
}

impl Machine {
    pub(crate) fn new(seed: u64, noise: Noise, sd: f64, drift: bool) -> Self {
        Self {
            rng: Pcg64Mcg::seed_from_u64(seed),
            noise,
            sd,
            drift,
        }
    }

    /// Log ratios of `pairs` pairs whose true median is `truth`.
    pub(crate) fn pairs(&mut self, truth: f64, pairs: usize) -> Vec<f64> {
        let orders = pair_orders(pairs, self.rng.next_u64());
        let mut drift = Drift {
            phase: self.uniform() * TAU,
            runs: 0.0,
            walk: 0.0,
        };
        orders
            .into_iter()
            .map(|b_first| {
                let [first, second] = [(); 2].map(|()| {
                    let step = self.normal();
                    let drifted = drift.next(step);
                    self.one_run() + if self.drift { drifted } else { 0.0 }
                });
                truth
                    + if b_first {
                        first - second
                    } else {
                        second - first
                    }
            })
            .collect()
    }

    /// Noise of one run; a pair's log ratio is the difference of two.
    fn one_run(&mut self) -> f64 {
        let scale = self.sd / 2.0_f64.sqrt();
        match self.noise {
            Noise::Normal => scale * self.normal(),
            Noise::HeavyTailed => {
                let (z, chi) = (
                    self.normal(),
                    (0..3).map(|_| self.normal().powi(2)).sum::<f64>(),
                );
                // The variance of t3 is 3.
                scale * z / (chi / 3.0).sqrt() / 3.0_f64.sqrt()
            }
            Noise::Skewed => scale * (1.0 + self.uniform().ln()),
        }
    }

    /// In (0, 1).
    fn uniform(&mut self) -> f64 {
        ((self.rng.next_u64() >> 11) as f64 + 0.5) / 2.0_f64.powi(53)
    }

    /// Box & Muller, Annals of Mathematical Statistics 29 (1958).
    fn normal(&mut self) -> f64 {
        let radius = (-2.0 * self.uniform().ln()).sqrt();
        radius * (TAU * self.uniform()).cos()
    }
}

/// What all runs of a session share.
struct Drift {
    phase: f64,
    runs: f64,
    walk: f64,
}

impl Drift {
    fn next(&mut self, step: f64) -> f64 {
        self.runs += 1.0;
        self.walk += 0.005 * step;
        0.10 * (self.phase + TAU * self.runs / 40.0).sin() + self.walk
    }
}
