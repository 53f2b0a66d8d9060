//! The highest rate at which a service keeps its limits.
//!
//! A closed loop shows about what the service can do at most. Open-loop steps at rising shares of that rate go up to the first one that
//! misses a limit, and bisection narrows the gap between the highest rate kept and the lowest one missed. One disturbance is enough to
//! spoil a p99, so a run that misses is repeated before it is believed; and luck is enough to pass once, so the rate that is
//! reported has been kept twice.

use std::time::Duration;

use rungwise_load::Error;
use rungwise_load::engine::{Completed, LATE};
use rungwise_load::parameters::{Driven, Site, Target};
use rungwise_load::values::Rate;
use rungwise_model::Exit;
use rungwise_model::load::{LimitSearch, LimitStep, SloResult, StepOutcome};
use rungwise_report::numbers;

use super::{Measured, Run, Session, Slo, WARMUP, problem};
use crate::Invocation;

/// Length of a step without `--for`.
const WINDOW: Duration = Duration::from_secs(5);
/// Shares of the rate of the closed loop to begin with.
const SHARES: [f64; 6] = [0.1, 0.25, 0.5, 0.75, 0.9, 1.0];
/// Factor between the steps above them.
const BEYOND: f64 = 1.15;
/// Factor between the steps below them, where even the lowest misses.
const BELOW: f64 = 0.5;
/// Share of the rate of the closed loop below which nothing is tried.
const LEAST: f64 = 0.01;
/// The gap that ends the search, as a ratio of the two rates.
const RESOLUTION: f64 = 1.05;
/// Runs at one rate that are not certified before the search goes no further there.
const ATTEMPTS: usize = 3;
/// Most runs: a service that changes while it is measured would be searched for ever.
const MOST_STEPS: usize = 40;
/// A service that answers less than this share of the offered rate does not keep up: its queue grows by a second's work every 100 s, and no
/// latency measured in a short run would hold.
const KEEPS_UP: f64 = 0.99;
/// Answers that may be missing at the end of a window, whatever the rate.
const AT_THE_END: f64 = 2.0;
/// The limit on errors where `--slo` names none.
const ERRORS: &str = "errors<0.1%";

/// Searches, and reports the run at the rate that was found.
pub(super) fn find(
    driven: &dyn Driven,
    site: &Site<'_>,
    args: &Run,
    invocation: &Invocation<'_>,
) -> anyhow::Result<Measured> {
    let warmup = args.warmup.unwrap_or(WARMUP);
    let limits = limits(driven, &site.target, &args.slo, warmup)?;
    let needed = driven.schedule().rate.map(|rate| rate.0);
    let closed = driven.paced(None).prepare(site).map_err(problem)?;
    if closed.has_own_pace() {
        let target = site.target.clone();
        let why = if closed.hold().is_some() {
            "connections are opened at --rate and pinged by --ping, so there is no highest rate to search for; remove --find-limit"
        } else {
            "a test plan decides itself how fast its users ask, so there is no highest rate to search for; remove --find-limit"
        };
        return Err(problem(Error::Workload {
            target,
            why: why.to_owned(),
        }));
    }
    let session = Session::open(&*closed, &site.target, args, invocation)?;
    let length = args.length(WINDOW, &*closed);
    invocation.say("closed loop, to see what the service can do at most ...");
    let fastest = session.measure(&*closed, &length)?;
    let judged = |completed: &Completed| -> Vec<SloResult> {
        limits.iter().map(|slo| slo.judge(completed)).collect()
    };
    if fastest.measurement.received == 0 {
        let slo = judged(&fastest);
        return Ok(session.document(fastest, slo, Exit::Inconclusive));
    }
    let closed_per_s = fastest.measurement.achieved_per_s;
    invocation.say(&format!("closed loop: {}", numbers::rate(closed_per_s)));
    let mut search = Search {
        closed_per_s,
        needed_per_s: needed,
        steps: Vec::new(),
    };
    let mut runs = Vec::new();
    let found = loop {
        let per_s = match search.next() {
            Next::Run(per_s) => per_s,
            Next::End(found) => break found,
        };
        let load = driven
            .paced(Some(Rate(per_s)))
            .prepare(site)
            .map_err(problem)?;
        let completed = session.measure(&*load, &length)?;
        let step = step(per_s, &judged(&completed), &completed);
        invocation.say(&line(&step));
        search.steps.push(step);
        runs.push(completed);
    };
    let exit = match (&found.ended, found.rate_per_s) {
        (Some(_), _) => Exit::Inconclusive,
        (None, Some(rate)) if needed.is_none_or(|needed| rate >= needed) => Exit::Done,
        (None, _) => Exit::Failed,
    };
    // The last run at the rate found that kept its limits, or the one at the lowest rate.
    let steps = &search.steps;
    let at_rate = |step: &LimitStep| {
        Some(step.offered_per_s) == found.rate_per_s && step.outcome == StepOutcome::Kept
    };
    let lowest = || {
        let rates = steps.iter().map(|step| step.offered_per_s);
        let lowest = rates.fold(f64::INFINITY, f64::min);
        steps.iter().rposition(|step| step.offered_per_s <= lowest)
    };
    let shown = steps.iter().rposition(at_rate).or_else(lowest);
    let completed = match shown {
        Some(shown) => runs.swap_remove(shown),
        None => fastest,
    };
    let slo = judged(&completed);
    let mut measured = session.document(completed, slo, exit);
    measured.report.limit = Some(LimitSearch {
        rate_per_s: found.rate_per_s,
        missed_per_s: found.missed_per_s,
        closed_per_s,
        needed_per_s: needed,
        ended: found.ended,
        steps: search.steps,
    });
    Ok(measured)
}

/// The limits to keep; errors are always limited.
fn limits(
    driven: &dyn Driven,
    target: &Target,
    slo: &[Slo],
    warmup: Duration,
) -> anyhow::Result<Vec<Slo>> {
    let wrong = |why: String| {
        problem(Error::Workload {
            target: target.clone(),
            why,
        })
    };
    if driven.schedule().ramp.is_some() {
        let why = "--find-limit chooses the rates itself; remove --ramp";
        return Err(wrong(why.to_owned()));
    }
    if let Some(rate) = slo.iter().find(|slo| slo.is_of_rate()) {
        return Err(wrong(format!(
            "--find-limit searches for the rate, so '{rate}' is no limit to keep; give the rate that is needed as --rate"
        )));
    }
    if warmup.is_zero() {
        let why = "--find-limit asks whether a service keeps up, and a run without a warm-up begins with a gap; remove --warmup 0s";
        return Err(wrong(why.to_owned()));
    }
    let mut limits = slo.to_vec();
    if !limits.iter().any(Slo::is_of_errors) {
        limits.extend(ERRORS.parse::<Slo>());
    }
    Ok(limits)
}

/// What a run at this rate showed.
fn step(per_s: f64, slo: &[SloResult], completed: &Completed) -> LimitStep {
    let m = &completed.measurement;
    let due = per_s * m.window_s;
    let arrived = completed.arrived as f64;
    let mut missed: Vec<String> = Vec::new();
    for one in slo.iter().filter(|one| !one.met) {
        let value = match (one.value, one.metric.as_str()) {
            (None, _) => "nothing answered".to_owned(),
            (Some(value), "loss" | "errors") => numbers::share(value),
            (Some(value), _) => numbers::micros(value),
        };
        missed.push(format!("{}: {value}", one.slo));
    }
    if arrived < KEEPS_UP * due - AT_THE_END {
        let rate = numbers::rate(arrived / m.window_s);
        missed.push(format!("does not keep up: {rate} answered"));
    }
    // Late because every slot waited for an answer: that is the service's doing, or too few slots.
    let starved = m.client.starved && m.client.late_sends > LATE;
    if starved {
        let late = numbers::share(m.client.late_sends);
        missed.push(format!(
            "{late} of the requests found every connection or slot waiting for an answer"
        ));
    }
    let certified = m.client.certified || (starved && m.client.reasons.len() == 1);
    let (outcome, reasons) = match (certified, missed.is_empty()) {
        (false, _) => (StepOutcome::NotCertified, m.client.reasons.clone()),
        (true, true) => (StepOutcome::Kept, Vec::new()),
        (true, false) => (StepOutcome::Missed, missed),
    };
    LimitStep {
        offered_per_s: per_s,
        achieved_per_s: m.achieved_per_s,
        errors: (m.lost + completed.wrong) as f64 / m.sent.max(1) as f64,
        latency_us: m.latency_us.corrected,
        server_busy: m.client.server_busy,
        outcome,
        reasons,
    }
}

/// A step for those who wait.
fn line(step: &LimitStep) -> String {
    let rate = numbers::rate(step.offered_per_s);
    let word = match step.outcome {
        StepOutcome::Kept => "kept",
        StepOutcome::Missed => "missed",
        StepOutcome::NotCertified => "not certified",
    };
    let p99 = numbers::micros(step.latency_us.p99);
    // Why a run is not certified takes sentences; the report has them.
    let why = match step.outcome {
        StepOutcome::Missed => format!(" ({})", step.reasons.join("; ")),
        _ => String::new(),
    };
    format!("{rate}: {word}, p99 {p99}{why}")
}

/// A search under way.
#[derive(Debug)]
struct Search {
    closed_per_s: f64,
    needed_per_s: Option<f64>,
    steps: Vec<LimitStep>,
}

/// What the steps so far call for.
#[derive(Debug, PartialEq)]
enum Next {
    Run(f64),
    End(Found),
}

/// The end of a search.
#[derive(Debug, Default, PartialEq)]
struct Found {
    rate_per_s: Option<f64>,
    missed_per_s: Option<f64>,
    ended: Option<String>,
}

/// How often the runs at a rate had each outcome.
#[derive(Clone, Copy, Debug, Default)]
struct Tally {
    kept: usize,
    missed: usize,
    not_certified: usize,
}

impl Search {
    fn at(&self, per_s: f64) -> Tally {
        let mut tally = Tally::default();
        let at = |step: &&LimitStep| step.offered_per_s.total_cmp(&per_s).is_eq();
        for step in self.steps.iter().filter(at) {
            match step.outcome {
                StepOutcome::Kept => tally.kept += 1,
                StepOutcome::Missed => tally.missed += 1,
                StepOutcome::NotCertified => tally.not_certified += 1,
            }
        }
        tally
    }

    /// The rates that were tried and are as `wanted`.
    fn tried(&self, wanted: impl Fn(Tally) -> bool) -> impl Iterator<Item = f64> {
        let rates = self.steps.iter().map(|step| step.offered_per_s);
        rates.filter(move |per_s| wanted(self.at(*per_s)))
    }

    fn next(&self) -> Next {
        let missed = self.tried(Tally::is_missed).reduce(f64::min);
        let unclear = self.tried(Tally::is_unclear).reduce(f64::min);
        let ceiling = missed.into_iter().chain(unclear).reduce(f64::min);
        let below = |per_s: f64| ceiling.is_none_or(|ceiling| per_s < ceiling);
        let kept = self.tried(Tally::is_kept).filter(|rate| below(*rate));
        let kept = kept.reduce(f64::max);
        let found = |ended: Option<String>| {
            let twice = kept.filter(|kept| self.at(*kept).kept > 1);
            Next::End(Found {
                rate_per_s: twice,
                missed_per_s: missed,
                ended,
            })
        };
        if self.steps.len() >= MOST_STEPS {
            let ended = format!(
                "no clear limit after {MOST_STEPS} runs: the service changes while it is measured"
            );
            return found(Some(ended));
        }
        // One run does not settle a rate, unless it kept its limits and others go on from there.
        if let Some(last) = self.steps.last()
            && self.at(last.offered_per_s).is_open()
        {
            return Next::Run(last.offered_per_s);
        }
        let is_narrow = |kept: f64| match (ceiling, missed) {
            (Some(ceiling), Some(missed)) => ceiling < missed || missed / kept <= RESOLUTION,
            (ceiling, _) => ceiling.is_some(),
        };
        // The rate that is needed decides, so it is not left to the gap.
        let needed = self.needed_per_s.filter(|needed| {
            let untried = self
                .steps
                .iter()
                .all(|step| step.offered_per_s.total_cmp(needed).is_ne());
            untried
                && below(*needed)
                && ceiling.is_some()
                && kept.is_some_and(|kept| kept < *needed)
        });
        match kept {
            Some(kept) if is_narrow(kept) && needed.is_some() => Next::Run(needed.unwrap_or(kept)),
            Some(kept) if is_narrow(kept) && self.at(kept).kept < 2 => Next::Run(kept),
            Some(kept) if is_narrow(kept) => found(self.not_certified(unclear, missed)),
            Some(kept) => match ceiling {
                Some(ceiling) => Next::Run((kept * ceiling).sqrt()),
                None => Next::Run(self.above(kept)),
            },
            None => match ceiling {
                None => Next::Run(self.above(0.0)),
                Some(ceiling)
                    if unclear.is_none() && ceiling * BELOW >= LEAST * self.closed_per_s =>
                {
                    Next::Run(ceiling * BELOW)
                }
                Some(_) => found(self.not_certified(unclear, missed)),
            },
        }
    }

    /// The next step up.
    fn above(&self, per_s: f64) -> f64 {
        let top = per_s.max(self.closed_per_s) * BEYOND;
        let shares = SHARES.iter().map(|share| share * self.closed_per_s);
        let needed = self.needed_per_s.filter(|needed| *needed <= top);
        let steps = shares.chain(needed).filter(|step| *step > per_s);
        steps.reduce(f64::min).unwrap_or(per_s * BEYOND)
    }

    /// Why the search could go no higher, where that is not a limit missed.
    fn not_certified(&self, unclear: Option<f64>, missed: Option<f64>) -> Option<String> {
        let rate = unclear.filter(|unclear| missed.is_none_or(|missed| *unclear < missed))?;
        let at = |step: &&LimitStep| step.offered_per_s.total_cmp(&rate).is_eq();
        let step = self.steps.iter().rfind(at)?;
        let rate = numbers::rate(rate);
        let why = step.reasons.join("; ");
        Some(format!("{rate} could not be measured: {why}"))
    }
}

impl Tally {
    fn is_missed(self) -> bool {
        self.missed > 1
    }

    fn is_kept(self) -> bool {
        self.kept > 0 && self.missed < 2
    }

    fn is_unclear(self) -> bool {
        self.not_certified >= ATTEMPTS
    }

    /// Another run must settle it.
    fn is_open(self) -> bool {
        let missed_once = self.missed == 1 && self.kept < 2;
        let nothing_yet = self.missed == 0 && self.kept == 0;
        (missed_once || nothing_yet) && !self.is_unclear()
    }
}

#[cfg(test)]
mod tests {
    use rungwise_model::load::Quantiles;

    use super::*;

    /// Searches for the limit of a service whose runs end as `outcome` says of the rate and the number of the run.
    fn search(
        closed_per_s: f64,
        needed_per_s: Option<f64>,
        outcome: impl Fn(f64, usize) -> StepOutcome,
    ) -> (Found, Vec<f64>) {
        let mut search = Search {
            closed_per_s,
            needed_per_s,
            steps: Vec::new(),
        };
        loop {
            match search.next() {
                Next::End(found) => {
                    let rates = search.steps.iter().map(|step| step.offered_per_s);
                    return (found, rates.collect());
                }
                Next::Run(per_s) => {
                    let outcome = outcome(per_s, search.steps.len());
                    search.steps.push(LimitStep {
                        offered_per_s: per_s,
                        achieved_per_s: per_s,
                        errors: 0.0,
                        latency_us: Quantiles::default(),
                        server_busy: None,
                        outcome,
                        reasons: vec!["as planned".to_owned()],
                    });
                }
            }
        }
    }

    fn kept_up_to(limit: f64) -> impl Fn(f64, usize) -> StepOutcome {
        move |per_s, _| {
            if per_s <= limit {
                StepOutcome::Kept
            } else {
                StepOutcome::Missed
            }
        }
    }

    #[test]
    fn any_limit_is_found_within_the_resolution_and_kept_twice() {
        for limit in [
            15.0, 99.0, 100.0, 260.0, 730.0, 990.0, 1000.0, 1300.0, 5000.0,
        ] {
            let (found, rates) = search(1000.0, None, kept_up_to(limit));
            let (rate, missed) = (found.rate_per_s.unwrap(), found.missed_per_s.unwrap());
            assert!(rate <= limit && limit < missed, "{limit}: {found:?}");
            assert!(missed / rate <= RESOLUTION, "{limit}: {found:?}");
            assert!(found.ended.is_none());
            let at = |wanted: f64| {
                rates
                    .iter()
                    .filter(|rate| rate.total_cmp(&wanted).is_eq())
                    .count()
            };
            assert!(at(rate) >= 2 && at(missed) >= 2, "{limit}: {rates:?}");
            assert!(rates.len() <= MOST_STEPS, "{limit}: {rates:?}");
        }
    }

    #[test]
    fn a_service_that_keeps_no_rate_has_no_limit() {
        let (found, rates) = search(1000.0, None, kept_up_to(1.0));
        assert_eq!((found.rate_per_s, found.ended), (None, None));
        assert!(rates.iter().all(|rate| *rate >= LEAST * 1000.0));
    }

    #[test]
    fn one_disturbed_run_changes_nothing() {
        let (calm, rates) = search(1000.0, None, kept_up_to(800.0));
        for disturbed in 0..rates.len() {
            let (found, _) = search(1000.0, None, |per_s, run| {
                if run == disturbed {
                    StepOutcome::Missed
                } else {
                    kept_up_to(800.0)(per_s, run)
                }
            });
            assert_eq!(found, calm, "run {disturbed}");
        }
    }

    #[test]
    fn a_rate_kept_by_luck_is_not_reported() {
        // Once in two runs it keeps more than it can.
        let (found, _) = search(1000.0, None, |per_s, run| match per_s {
            ..=600.0 => StepOutcome::Kept,
            ..=900.0 if run % 3 == 0 => StepOutcome::Kept,
            _ => StepOutcome::Missed,
        });
        assert!(found.rate_per_s.unwrap() <= 900.0);
        assert!(found.missed_per_s.is_some());
    }

    #[test]
    fn where_the_generator_is_the_limit_the_rate_below_is_said_and_why_it_ends() {
        let (found, rates) = search(1000.0, None, |per_s, _| {
            if per_s > 900.0 {
                StepOutcome::NotCertified
            } else {
                StepOutcome::Kept
            }
        });
        assert_eq!((found.rate_per_s, found.missed_per_s), (Some(900.0), None));
        let ended = found.ended.unwrap();
        assert!(
            ended.ends_with("could not be measured: as planned"),
            "{ended}"
        );
        assert_eq!(
            rates
                .iter()
                .filter(|rate| rate.total_cmp(&1000.0).is_eq())
                .count(),
            ATTEMPTS
        );
    }

    #[test]
    fn a_run_that_is_not_certified_once_is_repeated() {
        let (found, _) = search(1000.0, None, |per_s, run| {
            if run % 4 == 1 {
                StepOutcome::NotCertified
            } else {
                kept_up_to(700.0)(per_s, run)
            }
        });
        let rate = found.rate_per_s.unwrap();
        assert!(rate <= 700.0 && rate * RESOLUTION >= 660.0, "{found:?}");
        assert!(found.ended.is_none(), "{found:?}");
    }

    #[test]
    fn the_rate_that_is_needed_is_a_step() {
        let (_, rates) = search(1000.0, Some(333.0), kept_up_to(500.0));
        assert!(rates.contains(&333.0));
        // Also where the closed loop was too slow, and where the gap is narrow already.
        for needed in [1200.0, 1203.0] {
            let (found, rates) = search(1000.0, Some(needed), kept_up_to(1210.0));
            assert!(rates.contains(&needed), "{rates:?}");
            assert!(found.rate_per_s.unwrap() >= needed, "{found:?}");
        }
        // One far above would only flood the service.
        let (_, rates) = search(1000.0, Some(50_000.0), kept_up_to(500.0));
        assert!(rates.iter().all(|rate| *rate <= 1000.0));
    }

    fn completed(change: impl FnOnce(&mut Completed)) -> Completed {
        let mut completed = Completed::default();
        let m = &mut completed.measurement;
        (m.window_s, m.sent, m.received) = (5.0, 500, 500);
        m.client.certified = true;
        completed.arrived = 500;
        change(&mut completed);
        completed
    }

    #[test]
    fn a_run_that_does_not_keep_up_or_finds_no_free_connection_misses() {
        let outcome = |change: fn(&mut Completed)| {
            let step = step(100.0, &[], &completed(change));
            (step.outcome, step.reasons.concat())
        };
        assert_eq!(outcome(|_| {}).0, StepOutcome::Kept);
        let (missed, why) = outcome(|completed| completed.arrived = 480);
        assert_eq!(missed, StepOutcome::Missed);
        assert!(why.contains("does not keep up"), "{why}");
        let starved: fn(&mut Completed) = |completed| {
            let client = &mut completed.measurement.client;
            (client.certified, client.starved) = (false, true);
            (client.late_sends, client.reasons) = (0.2, vec!["late".to_owned()]);
        };
        let (missed, why) = outcome(starved);
        assert_eq!(missed, StepOutcome::Missed);
        assert!(why.contains("waiting for an answer"), "{why}");
        let (unclear, why) = outcome(|completed| {
            let client = &mut completed.measurement.client;
            (client.certified, client.reasons) = (false, vec!["foreign load".to_owned()]);
            completed.arrived = 100;
        });
        assert_eq!(
            (unclear, &*why),
            (StepOutcome::NotCertified, "foreign load")
        );
    }
}
