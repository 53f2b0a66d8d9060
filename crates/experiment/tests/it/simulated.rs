//! A stage without a machine: rates follow from declared effects, noise and drift from a seed.

use std::collections::BTreeMap;

use rungwise_experiment::stage::{Sample, Stage, StageError, Variant};
use rungwise_model::machine::CpuWindow;
use rungwise_model::tune::Run;
use rungwise_probes::{Capture, Moment};
use rungwise_stats::histogram::Histogram;

#[derive(Clone, Default)]
pub(crate) struct Simulated {
    state: u64,
    effects: BTreeMap<String, f64>,
    pair_effects: Vec<(String, String, f64)>,
    costs: BTreeMap<String, f64>,
    losses: BTreeMap<String, f64>,
    wrongs: BTreeMap<String, f64>,
    unavailable: BTreeMap<String, String>,
    /// Knobs that end the service: from which run with them on, and how often.
    deadly: Vec<(String, usize, usize)>,
    /// Checks of the machine that find it busy before one finds it quiet.
    pub(crate) loud: usize,
    pub(crate) restarts: usize,
    /// What was set up, in order: the knobs of each variant.
    pub(crate) tried: Vec<String>,
    disturb_every: usize,
    interrupt_after: usize,
    by_call: bool,
    noise: Option<f64>,
    runs: usize,
    clock: f64,
}

impl Simulated {
    pub(crate) fn new(seed: u64) -> Self {
        Self {
            state: seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1,
            ..Self::default()
        }
    }

    pub(crate) fn effect(mut self, knob: &str, factor: f64) -> Self {
        self.effects.insert(knob.to_owned(), factor);
        self
    }

    pub(crate) fn pair_effect(mut self, one: &str, other: &str, factor: f64) -> Self {
        self.pair_effects
            .push((one.to_owned(), other.to_owned(), factor));
        self
    }

    pub(crate) fn cost(mut self, knob: &str, factor: f64) -> Self {
        self.costs.insert(knob.to_owned(), factor);
        self
    }

    pub(crate) fn loss(mut self, knob: &str, share: f64) -> Self {
        self.losses.insert(knob.to_owned(), share);
        self
    }

    /// Answers so many requests with an error.
    pub(crate) fn wrong(mut self, knob: &str, share: f64) -> Self {
        self.wrongs.insert(knob.to_owned(), share);
        self
    }

    pub(crate) fn unavailable(mut self, knob: &str, why: &str) -> Self {
        self.unavailable.insert(knob.to_owned(), why.to_owned());
        self
    }

    pub(crate) fn deadly(self, knob: &str) -> Self {
        self.deadly_after(knob, 0, usize::MAX)
    }

    /// Ends the service `times` times after as many runs as are `spared`.
    pub(crate) fn deadly_after(mut self, knob: &str, spared: usize, times: usize) -> Self {
        self.deadly.push((knob.to_owned(), spared, times));
        self
    }

    pub(crate) fn loud(mut self, checks: usize) -> Self {
        self.loud = checks;
        self
    }

    pub(crate) fn disturb_every(mut self, runs: usize) -> Self {
        self.disturb_every = runs;
        self
    }

    pub(crate) fn interrupt_after(mut self, runs: usize) -> Self {
        self.interrupt_after = runs;
        self
    }

    /// Noise depends on variant and seed of the call only, so that a resumed run sees the same values.
    pub(crate) fn by_call(mut self) -> Self {
        self.by_call = true;
        self
    }

    /// Hardly any noise between runs.
    pub(crate) fn steady(mut self) -> Self {
        self.noise = Some(0.0005);
        self
    }

    fn uniform(&mut self) -> f64 {
        // xorshift64*
        self.state ^= self.state >> 12;
        self.state ^= self.state << 25;
        self.state ^= self.state >> 27;
        (self.state.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 11) as f64 / (1u64 << 53) as f64
    }

    fn normal(&mut self) -> f64 {
        (0..12).map(|_| self.uniform()).sum::<f64>() - 6.0
    }
}

impl Stage for Simulated {
    fn try_out(&mut self, variant: &Variant) -> Result<(), StageError> {
        let knobs: Vec<&str> = variant.settings.keys().map(|s| s.knob.as_str()).collect();
        self.tried.push(knobs.join(","));
        match self.unavailable.iter().find(|(knob, _)| on(variant, knob)) {
            Some((_, why)) => Err(StageError::Unavailable(why.clone())),
            None => Ok(()),
        }
    }

    fn run(&mut self, variant: &Variant, seed: u64) -> Result<Sample, StageError> {
        self.runs += 1;
        if self.interrupt_after > 0 && self.runs > self.interrupt_after {
            return Err(StageError::Interrupted);
        }
        if self.by_call {
            let settings = variant.settings.iter();
            let names: String = settings.map(|(s, value)| s.knob.clone() + value).collect();
            self.state = names.bytes().fold(seed | 1, |hash, byte| {
                (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
            }) | 1;
            self.normal();
        } else {
            self.clock += 0.5;
        }
        let on = |knob: &str| on(variant, knob);
        for (knob, spared, times) in &mut self.deadly {
            if !on(knob) {
                continue;
            }
            if *spared > 0 {
                *spared -= 1;
            } else if *times > 0 {
                *times -= 1;
                return Err(StageError::ServiceFailed(format!("killed by {knob}")));
            }
        }
        let mut rate = 500_000.0;
        let mut cost = 3.0;
        for (knob, factor) in &self.effects {
            if on(knob) {
                rate *= factor;
            }
        }
        for (one, other, factor) in &self.pair_effects {
            if on(one) && on(other) {
                rate *= factor;
            }
        }
        for (knob, factor) in &self.costs {
            if on(knob) {
                cost *= factor;
            }
        }
        let share = |of: &BTreeMap<String, f64>| {
            let on = of.iter().filter(|(knob, _)| on(knob));
            on.map(|(_, share)| *share).sum()
        };
        let (loss, wrong) = (share(&self.losses), share(&self.wrongs));
        let drift = (self.clock / 20.0).sin() * 0.05;
        let noise = self.noise.unwrap_or(0.017);
        rate *= (drift + noise * self.normal()).exp();
        cost *= (0.015 * self.normal()).exp();
        let disturbed = self.disturb_every > 0 && self.runs.is_multiple_of(self.disturb_every);
        let mut latency = Histogram::new();
        latency.record(200_000);
        latency.record(600_000);
        Ok(Sample {
            run: Run {
                at_s: self.clock,
                rate_per_s: rate,
                loss,
                wrong,
                cpu_us_per_tx: cost,
                server_us_per_tx: cost / 2.0,
                client_us_per_tx: cost / 2.0,
                p50_us: Some(200.0),
                p99_us: Some(600.0 * 500_000.0 / rate),
                metrics: BTreeMap::new(),
                unavailable: BTreeMap::new(),
                cpu: CpuWindow {
                    foreign: if disturbed { 0.3 } else { 0.01 },
                    ..CpuWindow::default()
                },
                certified: Ok(()),
                served: None,
            },
            latency,
        })
    }

    fn restart(&mut self) -> Result<(), StageError> {
        self.restarts += 1;
        Ok(())
    }

    /// What the capture shows is the variant itself, in the name of the machine: `bpf,reuseport`.
    fn capture(&mut self, variant: &Variant, _: f64, _: u64) -> Result<Capture, StageError> {
        self.runs += 1;
        if self.interrupt_after > 0 && self.runs > self.interrupt_after {
            return Err(StageError::Interrupted);
        }
        let knobs: Vec<&str> = variant.settings.keys().map(|s| s.knob.as_str()).collect();
        let mut capture = Capture {
            moments: vec![Moment::default()],
            ..Capture::default()
        };
        capture.machine.hostname = knobs.join(",");
        Ok(capture)
    }

    fn foreign_now(&mut self) -> Result<f64, StageError> {
        if !self.by_call {
            self.clock += 0.1;
        }
        let loud = self.loud > 0;
        self.loud -= usize::from(loud);
        Ok(if loud { 0.5 } else { 0.01 })
    }

    fn elapsed_s(&self) -> f64 {
        self.clock
    }
}

/// A knob is set (`reuseport`), or to a value (`connections=4`), or a parameter of the workload is changed (`workload.burst`).
fn on(variant: &Variant, what: &str) -> bool {
    let changed = what.strip_prefix("workload.");
    variant.workload.keys().any(|key| Some(key) == changed)
        || variant
            .settings
            .iter()
            .any(|(s, value)| s.knob == what || format!("{}={value}", s.knob) == what)
}
