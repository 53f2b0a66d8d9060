//! One comparison: pairs of two variants, gated, interleaved, judged at fixed decision points.

use std::collections::BTreeMap;

use rungwise_model::tune::{Delta, Half, Pair, Run};
use rungwise_stats::decide::{self, Call};
use rungwise_stats::histogram::Histogram;
use rungwise_stats::interval::{Interval, median};
use rungwise_stats::ratio;
use rungwise_stats::schedule::Orders;

use crate::Error;
use crate::design::{Control, Guard, Judging};
use crate::metric;
use crate::record::{PairRecord, Record};
use crate::stage::{Stage, StageError, Variant};

/// What is compared.
#[derive(Debug)]
pub struct Comparison<'a> {
    /// Unique within the experiment; pairs are recorded under it.
    pub id: &'a str,
    /// For the progress line.
    pub title: &'a str,
    /// Without the change.
    pub a: &'a Variant,
    /// With it.
    pub b: &'a Variant,
    /// CPU cost alone may not decide.
    pub shared_lock: bool,
    /// The service is started afresh for each half, whether the halves differ or not.
    pub fresh: bool,
    /// Chance of a wrong decision, over all decision points.
    pub alpha: f64,
}

/// What came of it.
#[derive(Debug)]
pub struct Compared {
    /// Every pair in the order measured, discarded ones included.
    pub pairs: Vec<Pair>,
    /// The decision.
    pub call: Call,
    /// Why, one sentence.
    pub reason: String,
    /// Change of the objective.
    pub delta: Option<Delta>,
    /// Change of the CPU cost per transaction.
    pub cpu_delta: Option<Delta>,
    /// Judged by cost because there were no quiet pairs.
    pub cost_only: bool,
    /// It ended because the service failed with the change; the reason says how.
    pub failed: bool,
    /// Chance that an interval misses the truth.
    pub alpha_per_look: f64,
    /// How many of the pairs, from the first, were used for the decision.
    judged_pairs: usize,
    /// Latency of the counted runs without the change.
    pub latency_a: Histogram,
    /// Latency of the counted runs with it.
    pub latency_b: Histogram,
}

/// Progress of a comparison, for a live view.
#[derive(Clone, Debug)]
pub struct Progress {
    /// What is compared.
    pub title: String,
    /// Pairs that count so far.
    pub pairs: u32,
    /// Pairs at the next decision point.
    pub next_look: u32,
    /// Pairs left out so far.
    pub discarded: u32,
    /// Median ratio B to A of the objective so far, 1 is no change.
    pub ratio: Option<f64>,
    /// Foreign share of the CPUs, latest reading.
    pub foreign: f64,
    /// Waiting for the machine to become quiet.
    pub waiting: bool,
}

/// Follows an experiment while it runs.
pub trait Observer {
    /// A pair began, ended or waits.
    fn progress(&mut self, progress: &Progress);
    /// A rung is finished.
    fn rung(&mut self, rung: &rungwise_model::tune::Rung);
}

/// Runs `comparison` to a decision.
pub fn compare(
    comparison: &Comparison<'_>,
    judging: &Judging,
    stage: &mut dyn Stage,
    record: &mut dyn Record,
    observer: &mut dyn Observer,
) -> Result<Compared, Error> {
    let seed = seed_of(judging.seed, comparison.id);
    let rules = judging.rules(comparison.alpha);
    let attempts = judging.most_pairs() + judging.max_discards;
    let mut orders = Orders::new(seed);
    let mut measured = Measured {
        alpha_per_look: rules.alpha_per_look(),
        ..Measured::default()
    };
    // A quiet pair is the quiet check of the next one. Before the first pair, and after one of an earlier session, there is none.
    let mut quiet = false;
    for index in 0..attempts as usize {
        let b_first = orders.draw();
        let first = if b_first { Half::B } else { Half::A };
        let pair = if let Some(earlier) = record.recorded(comparison.id, index) {
            quiet = false;
            earlier
        } else {
            if !quiet {
                wait_for_quiet(comparison, judging, &measured, stage, observer)?;
            }
            let spared = measured.pairs.iter().any(|pair| pair.again.is_some());
            let seed = seed.wrapping_add(index as u64);
            let mut pair = match measure(comparison, first, seed, spared, stage) {
                Err(Error::ServiceFailed { half: Half::B, why }) if comparison.changes() => {
                    // What hangs must not be there for the next comparison.
                    let _ = stage.restart();
                    return Ok(measured.failed(&why, judging));
                }
                measured => measured?,
            };
            quiet = disturbance(&pair.pair) <= judging.discard_above;
            for run in [&mut pair.pair.a, &mut pair.pair.b] {
                if !judging.guards_errors() {
                    doubt_errors(run);
                }
                doubt(
                    run,
                    judging
                        .controls
                        .iter()
                        .filter_map(|control| outside(run, control))
                        .collect(),
                );
            }
            pair.pair.discarded = unfit(&pair.pair, judging);
            record.keep(comparison.id, index, &pair)?;
            pair
        };
        if !measured.push(pair, judging) {
            orders.again(b_first);
        }
        observer.progress(&measured.progress(comparison, judging, false));

        let judgement = decide::judge(
            &rules,
            judging.objective.direction(),
            &measured.objective,
            measured.known_cost(),
        );
        if judgement.call != Call::MorePairs {
            return Ok(measured.finish(judgement, false, judging));
        }
        if measured.discarded() >= judging.max_discards {
            break;
        }
    }
    Ok(measured.without_quiet(comparison, judging))
}

impl Comparison<'_> {
    fn changes(&self) -> bool {
        self.a != self.b
    }
}

#[derive(Default)]
struct Measured {
    alpha_per_look: f64,
    pairs: Vec<Pair>,
    /// Log ratios B to A of the pairs that count.
    objective: Vec<f64>,
    cost: Vec<f64>,
    latency_a: Histogram,
    latency_b: Histogram,
    /// Of every pair whose only fault is foreign load.
    noisy: Noisy,
    /// The same at the last decision point with enough of them.
    noisy_at_look: Noisy,
}

/// Pairs of which the CPU cost is known, however much others ran beside them.
#[derive(Clone, Default)]
struct Noisy {
    /// All pairs up to the last of them.
    pairs: usize,
    /// Log ratios of the CPU cost.
    cost: Vec<f64>,
    latency_a: Histogram,
    latency_b: Histogram,
}

impl Measured {
    /// Answers whether the pair counts.
    fn push(&mut self, record: PairRecord, judging: &Judging) -> bool {
        let PairRecord {
            pair,
            latency_a,
            latency_b,
        } = record;
        let objective = &judging.objective;
        let change = objective
            .value_in(&pair.a)
            .zip(objective.value_in(&pair.b))
            .and_then(|(a, b)| ratio::log_ratio(a, b));
        let counts = pair.discarded.is_none() && change.is_some();
        if let (true, Some(change)) = (counts, change) {
            self.objective.push(change);
            self.cost.extend(cost(&pair));
            self.latency_a.merge(&latency_a);
            self.latency_b.merge(&latency_b);
        }
        if let Some(cost) = certified_cost(&pair) {
            self.noisy.pairs = self.pairs.len() + 1;
            self.noisy.cost.push(cost);
            self.noisy.latency_a.merge(&latency_a);
            self.noisy.latency_b.merge(&latency_b);
            if judging.looks.contains(&(self.noisy.cost.len() as u32)) {
                self.noisy_at_look = self.noisy.clone();
            }
        }
        self.pairs.push(pair);
        counts
    }

    /// Cost counts only if every counted pair has one.
    fn known_cost(&self) -> &[f64] {
        if self.cost.len() == self.objective.len() {
            &self.cost
        } else {
            &[]
        }
    }

    fn discarded(&self) -> u32 {
        self.pairs
            .iter()
            .filter(|pair| pair.discarded.is_some())
            .count() as u32
    }

    fn progress(&self, comparison: &Comparison<'_>, judging: &Judging, waiting: bool) -> Progress {
        let pairs = self.objective.len() as u32;
        Progress {
            title: comparison.title.to_owned(),
            pairs,
            next_look: judging
                .looks
                .iter()
                .copied()
                .find(|look| *look > pairs)
                .unwrap_or(pairs),
            discarded: self.discarded(),
            ratio: median(&self.objective).map(f64::exp),
            foreign: self.pairs.last().map_or(0.0, disturbance),
            waiting,
        }
    }

    /// No more pairs may be tried and no decision point decided.
    fn without_quiet(self, comparison: &Comparison<'_>, judging: &Judging) -> Compared {
        let cost = &self.noisy_at_look.cost;
        if !cost.is_empty() && !comparison.shared_lock {
            let mut judgement = decide::judge_cost_only(&judging.rules(comparison.alpha), cost);
            if judgement.call == Call::MorePairs {
                judgement.call = Call::Inconclusive;
                "no quiet pairs, and CPU cost alone is inconclusive"
                    .clone_into(&mut judgement.reason);
            }
            return self.finish(judgement, true, judging);
        }
        let why = if comparison.shared_lock {
            "and CPU cost understates a shared lock, so cost alone may not decide"
        } else {
            "and too few pairs were left to judge even the CPU cost"
        };
        let mut reason = format!(
            "{} of {} pairs had too much foreign load or were not certified, {why}",
            self.discarded(),
            self.pairs.len()
        );
        if let Some(moved) = moved_by_the_change(&self.pairs, judging) {
            reason = format!("{reason}; {moved}");
        }
        let judgement = decide::Conclusion {
            call: Call::Inconclusive,
            primary: None,
            cost: None,
            reason,
        };
        self.finish(judgement, false, judging)
    }

    /// The service failed with the change, and not for the first time.
    fn failed(self, why: &str, judging: &Judging) -> Compared {
        let judgement = decide::Conclusion {
            call: Call::Revert,
            primary: None,
            cost: None,
            reason: format!("the service failed twice with this change; last failure: {why}"),
        };
        Compared {
            failed: true,
            ..self.finish(judgement, false, judging)
        }
    }

    fn finish(self, judgement: decide::Conclusion, cost_only: bool, judging: &Judging) -> Compared {
        let discarded = self.discarded();
        let (judged_pairs, counted, latency_a, latency_b) = if cost_only {
            let noisy = self.noisy_at_look;
            let counted = noisy.cost.len();
            (noisy.pairs, counted, noisy.latency_a, noisy.latency_b)
        } else {
            let counted = self.objective.len();
            (self.pairs.len(), counted, self.latency_a, self.latency_b)
        };
        let delta = |interval: Option<Interval>| {
            interval.map(|interval| Delta {
                point: ratio::to_change(interval.point),
                low: ratio::to_change(interval.low),
                high: ratio::to_change(interval.high),
                pairs: counted as u32,
                discarded,
            })
        };
        let mut compared = Compared {
            call: judgement.call,
            reason: judgement.reason,
            delta: delta(judgement.primary),
            cpu_delta: delta(judgement.cost),
            cost_only,
            failed: false,
            alpha_per_look: self.alpha_per_look,
            judged_pairs,
            latency_a,
            latency_b,
            pairs: self.pairs,
        };
        if compared.call == Call::Keep
            && let Some(veto) = compared.broken_guard(&judging.guards)
        {
            compared.call = Call::Revert;
            compared.reason = veto;
        }
        compared
    }
}

impl Compared {
    /// Pairs that were measured and left out.
    pub fn discarded(&self) -> u32 {
        self.pairs
            .iter()
            .filter(|pair| pair.discarded.is_some())
            .count() as u32
    }

    /// The pairs that count.
    pub fn counted(&self) -> impl Iterator<Item = &Pair> {
        let counts = |pair: &&Pair| {
            if self.cost_only {
                certified_cost(pair).is_some()
            } else {
                pair.discarded.is_none()
            }
        };
        self.pairs[..self.judged_pairs].iter().filter(counts)
    }

    /// Median of a figure of the counted pairs.
    pub fn median_of(&self, figure: impl Fn(&Pair) -> f64) -> Option<f64> {
        median(&self.counted().map(figure).collect::<Vec<_>>())
    }

    /// Medians, with the change, of the metrics that every counted run has beside those with fields of their own.
    pub fn metrics(&self) -> BTreeMap<String, f64> {
        let runs: Vec<_> = self.counted().map(|pair| &pair.b.metrics).collect();
        let first = runs.first().into_iter().flat_map(|metrics| metrics.keys());
        first
            .filter(|name| runs.iter().all(|metrics| metrics.contains_key(*name)))
            .filter_map(|name| {
                let of = |pair: &Pair| pair.b.metrics.get(name).copied().unwrap_or(f64::NAN);
                Some((name.clone(), self.median_of(of)?))
            })
            .collect()
    }

    /// Why there are too few pairs for an interval.
    pub(crate) fn too_few(&self) -> String {
        let mut last = self.pairs.iter().rev();
        let last = last.find_map(|pair| pair.discarded.as_deref());
        format!(
            "{} of {} pairs had too much foreign load or were not certified, the last: {}",
            self.discarded(),
            self.pairs.len(),
            last.unwrap_or("reason not recorded")
        )
    }

    /// The guard rail that does not hold with the change, and not because of the variant without it alone.
    pub(crate) fn broken_guard(&self, guards: &[Guard]) -> Option<String> {
        guards.iter().find_map(|guard| match guard {
            Guard::Loss { at_most } => self.risen("loss", *at_most, |run| run.loss),
            Guard::Errors { at_most } => {
                let name = "loss and error replies";
                self.risen(name, *at_most, |run| run.loss + run.wrong)
            }
            // A program's own figures come without their distribution.
            Guard::P99 { at_most_us } if self.latency_b.is_empty() => {
                self.above("p99", *at_most_us)
            }
            Guard::P99 { at_most_us } => {
                let before = self.latency_a.quantiles().p99;
                let after = self.latency_b.quantiles().p99;
                rose("p99", before, after, *at_most_us)
            }
            Guard::Other { name, at_most } => self.above(name, *at_most),
        })
    }

    /// The message if the median of a metric is above its limit.
    fn above(&self, name: &str, at_most: f64) -> Option<String> {
        let of = |run: &Run| metric::value(run, name).unwrap_or(f64::NAN);
        let before = self.median_of(|pair| of(&pair.a))?;
        let after = self.median_of(|pair| of(&pair.b))?;
        rose(name, before, after, at_most)
    }

    /// The message if a share of the requests is above its limit, and not because of the variant without the change alone.
    fn risen(&self, name: &str, at_most: f64, share: fn(&Run) -> f64) -> Option<String> {
        let before = self.median_of(|pair| share(&pair.a))?;
        let after = self.median_of(|pair| share(&pair.b))?;
        (after > at_most && after > before).then(|| {
            format!(
                "guard rail violated: {name} rose from {:.2} % to {:.2} % of requests (limit {:.2} %)",
                before * 100.0,
                after * 100.0,
                at_most * 100.0
            )
        })
    }
}

/// The message if a metric is above its limit, and not because of the variant without the change alone.
fn rose(name: &str, before: f64, after: f64, at_most: f64) -> Option<String> {
    let show = |value: f64| {
        if metric::is_share(name) {
            format!("{:.1} %", value * 100.0)
        } else {
            format!("{value:.0}{}", metric::unit(name))
        }
    };
    (after > at_most && after > before).then(|| {
        let [before, after, at_most] = [before, after, at_most].map(show);
        format!("guard rail violated: {name} rose from {before} to {after} (limit {at_most})")
    })
}

/// Measures a pair. One end of the service may be the machine's doing (out of memory) and not the change's: unless the
/// change was `spared` before, the half is run once more.
fn measure(
    comparison: &Comparison<'_>,
    first: Half,
    seed: u64,
    spared: bool,
    stage: &mut dyn Stage,
) -> Result<PairRecord, Error> {
    let mut again = None;
    let mut is_fresh = comparison.fresh;
    if is_fresh {
        stage.restart()?;
    }
    let swapped = first == Half::B;
    if let Some([a, b]) = stage.run_in_turns([comparison.a, comparison.b], swapped, seed)? {
        return Ok(PairRecord::measured(a, b, first, true, None));
    }
    let mut half = |which: Half| {
        let variant = match which {
            Half::A => comparison.a,
            Half::B => comparison.b,
        };
        let restarted = if comparison.fresh && !std::mem::take(&mut is_fresh) {
            stage.restart()
        } else {
            Ok(())
        };
        let may_fail = which == Half::B && comparison.changes() && !spared;
        let ran = match restarted.and_then(|()| stage.run(variant, seed)) {
            Err(StageError::ServiceFailed(why)) if may_fail => {
                again = Some(why);
                // How it ended is known.
                let _ = stage.restart();
                stage.run(variant, seed)
            }
            ran => ran,
        };
        ran.map_err(|error| match error {
            StageError::ServiceFailed(why) => Error::ServiceFailed { half: which, why },
            // It could be set up when it was tried out, so the lab has changed under us.
            StageError::Unavailable(why) => Error::Stage(StageError::Broken(why)),
            other => Error::Stage(other),
        })
    };
    let (a, b) = if first == Half::A {
        let a = half(Half::A)?;
        (a, half(Half::B)?)
    } else {
        let b = half(Half::B)?;
        (half(Half::A)?, b)
    };
    Ok(PairRecord::measured(a, b, first, false, again))
}

/// More requests than this share answered with errors, and where no guard rail judges them the run is of something else
/// than the service's work; small against the 2 % that a ladder resolves, and more than a name that times out now and then.
const WRONG: f64 = 0.001;

/// An error reply is cheaper than an answer: such a run must not count as fast.
fn doubt_errors(run: &mut Run) {
    if run.wrong <= WRONG {
        return;
    }
    let why = format!(
        "{:.1} % of requests were answered with an error (SERVFAIL, REFUSED and the like); fix the service, remove such queries from the \
         file, or allow a share of them with a guard such as 'errors <= 5%'",
        run.wrong * 100.0
    );
    doubt(run, vec![why]);
}

/// A run is not certified for these reasons, if there are any.
fn doubt(run: &mut Run, why: Vec<String>) {
    if why.is_empty() {
        return;
    }
    let mut reasons = run.certified.clone().err().unwrap_or_default();
    reasons.extend(why);
    run.certified = Err(reasons);
}

/// Foreign load of the half that saw more of it.
fn disturbance(pair: &Pair) -> f64 {
    pair.a.cpu.foreign.max(pair.b.cpu.foreign)
}

/// Log ratio of the CPU cost.
fn cost(pair: &Pair) -> Option<f64> {
    ratio::log_ratio(pair.a.cpu_us_per_tx, pair.b.cpu_us_per_tx)
}

/// The same of a pair that foreign load alone may have spoilt.
fn certified_cost(pair: &Pair) -> Option<f64> {
    let certified = pair.a.certified.is_ok() && pair.b.certified.is_ok();
    cost(pair).filter(|_| certified)
}

/// Why a pair does not count.
fn unfit(pair: &Pair, judging: &Judging) -> Option<String> {
    for (half, run) in [("A", &pair.a), ("B", &pair.b)] {
        if judging.is_timed() && run.cpu.foreign > judging.discard_above {
            return Some(format!(
                "half {half}: {:.1} % foreign CPU (limit {:.1} %)",
                run.cpu.foreign * 100.0,
                judging.discard_above * 100.0
            ));
        }
        if let Err(reasons) = &run.certified {
            return Some(format!(
                "half {half}: not certified: {}",
                reasons.join("; ")
            ));
        }
        if !judging
            .objective
            .value_in(run)
            .is_some_and(|value| value.is_finite() && value > 0.0)
        {
            let name = judging.objective.metric();
            return Some(match run.unavailable.get(name) {
                Some(why) => format!("half {half}: no {name}: {why}"),
                None => format!("half {half}: no {name} above zero to compare"),
            });
        }
        let unknown = |guard: &&Guard| match guard {
            Guard::P99 { .. } => run.p99_us.is_none(),
            Guard::Other { name, .. } => metric::value(run, name).is_none(),
            Guard::Loss { .. } | Guard::Errors { .. } => false,
        };
        if let Some(guard) = judging.guards.iter().find(unknown) {
            let name = match guard {
                Guard::Other { name, .. } => name,
                _ => "p99",
            };
            let why = run.unavailable.get(name);
            let why = why.map_or_else(String::new, |why| format!(": {why}"));
            return Some(format!("half {half} lacks the guarded metric {name}{why}"));
        }
    }
    None
}

/// Why a run does not count by this control.
fn outside(run: &Run, control: &Control) -> Option<String> {
    let Control { name, from, to } = control;
    let Some(value) = metric::value(run, name) else {
        return Some(format!("no {name}, which is a control"));
    };
    let unit = metric::unit(name);
    (!(*from..=*to).contains(&value)).then(|| {
        let shown = (value * 1e4).round() / 1e4;
        format!("{name} is {shown}{unit}, outside its range as a control, {from} to {to}{unit}")
    })
}

/// Of pairs in which a control is out of its range, those that show the change itself to move it: always the half with the change,
/// never the other.
fn moved_by_the_change(pairs: &[Pair], judging: &Judging) -> Option<String> {
    const ENOUGH: usize = 3;
    judging.controls.iter().find_map(|control| {
        let out = |of: fn(&Pair) -> &Run| {
            let runs = pairs.iter().map(of);
            runs.filter(|run| outside(run, control).is_some()).count()
        };
        let (without, with) = (out(|pair| &pair.a), out(|pair| &pair.b));
        (without == 0 && with >= ENOUGH).then(|| {
            format!(
                "{} left its range with the change {with} times and never without it: the change itself moves it, so here it is no control",
                control.name
            )
        })
    })
}

fn wait_for_quiet(
    comparison: &Comparison<'_>,
    judging: &Judging,
    measured: &Measured,
    stage: &mut dyn Stage,
    observer: &mut dyn Observer,
) -> Result<(), Error> {
    if !judging.is_timed() {
        return Ok(());
    }
    let began = stage.elapsed_s();
    loop {
        let foreign = stage.foreign_now()?;
        if foreign < judging.quiet || stage.elapsed_s() - began >= judging.quiet_wait_s {
            return Ok(());
        }
        let mut progress = measured.progress(comparison, judging, true);
        progress.foreign = foreign;
        observer.progress(&progress);
    }
}

/// A seed of its own for every comparison (FNV-1a of its id, mixed with the experiment's seed), so that a
/// resumed or reordered ladder draws the same orders.
pub(crate) fn seed_of(seed: u64, id: &str) -> u64 {
    id.bytes().fold(seed ^ 0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    })
}
