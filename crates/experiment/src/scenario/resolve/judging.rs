//! The metric that decides, its limits, and how pairs are run and judged.

use std::time::Duration;

use rungwise_load::Parameters;
use rungwise_load::engine::Arrival;
use rungwise_load::parameters::Driven;
use rungwise_model::metric::BYTES_PER_REQUEST;
use rungwise_model::units;
use rungwise_stats::decide::Direction;
use rungwise_stats::interval::FEWEST;

use super::super::document::{At, ExperimentTable, ObjectiveTable};
use super::super::problem::did_you_mean;
use super::super::{JvmReadings, command};
use super::Reader;
use crate::design::{Control, Guard, Judging, Objective};
use crate::metric;

/// A guess at the most pairs worth waiting for; the interval's time grows with their square.
const MOST_PAIRS: u32 = 500;
/// Requests of a part of a run; more is a slip of the pen, as they take days.
const MOST_REQUESTS: u64 = 1_000_000_000;
/// Fewer requests allocate less than the JVM rounds its counters; a guess.
const FEWEST_COUNTED: u64 = 100;

/// The parts of a run that have a number of requests.
pub(super) struct ByCount {
    /// Before it is measured, 0 for none.
    pub(super) warmup: u64,
    /// After it, where their allocation is counted; absent, as many as were answered.
    pub(super) counted: Option<u64>,
}

impl Reader<'_, '_> {
    pub(super) fn objective(
        &mut self,
        table: &ObjectiveTable,
        workload: &Parameters,
    ) -> (Objective, Vec<Guard>) {
        let objective = match (&table.maximise, &table.minimise) {
            (Some(metric), None) => self.metric(metric, Direction::HigherIsBetter, workload),
            (None, Some(metric)) => self.metric(metric, Direction::LowerIsBetter, workload),
            (None, None) => Objective::rate(),
            (Some(_), Some(minimise)) => {
                let message = "only one metric can decide: set 'maximise' or 'minimise'; make the other a guard";
                self.problems
                    .add(minimise.span(), "objective.minimise", message);
                Objective::rate()
            }
        };
        if table.maximise.is_none()
            && table.minimise.is_none()
            && !metric::reportable(workload).contains(&"rate")
            // Where its reader was refused, that is what is wrong.
            && !self.problems.mentions("workload")
        {
            let message = "the default objective is the rate, which this workload does not report; name one of its metrics";
            self.problems.add(0..0, "objective", message);
        }
        let mut guards = Vec::new();
        for (index, at) in table.guards.iter().enumerate() {
            let read = guard(at.get(), workload);
            match read.and_then(|guard| within_reach(guard, at.get(), workload)) {
                Ok(guard) => guards.push(guard),
                Err(message) => {
                    let key = format!("objective.guards[{index}]");
                    self.problems.add(at.span(), key, message);
                }
            }
        }
        (objective, guards)
    }

    /// What is asked for, by the metric that decides, a guard, a control, or for its own sake. The service is `started` by rungwise, or ran before.
    pub(super) fn jvm_readings(
        &mut self,
        table: &ObjectiveTable,
        experiment: &ExperimentTable,
        (objective, guards): &(Objective, Vec<Guard>),
        started: bool,
    ) -> JvmReadings {
        let mut names = vec![objective.metric()];
        names.extend(experiment.controls.keys().map(String::as_str));
        names.extend(guards.iter().filter_map(|guard| match guard {
            Guard::Other { name, .. } => Some(name.as_str()),
            _ => None,
        }));
        for (index, at) in table.readings.iter().enumerate() {
            let name = at.get().as_str();
            if !metric::OF_JVM.contains(&name) {
                let near = did_you_mean(name, metric::OF_JVM);
                let message = format!(
                    "'{name}' is not {}; every other metric is always recorded{near}",
                    metric::OF_JVM.join(" or ")
                );
                let key = format!("objective.readings[{index}]");
                self.problems.add(at.span(), key, message);
            }
            names.push(name);
        }
        let of_gc = names.iter().find(|name| metric::OF_GC.contains(name));
        if let (Some(name), false) = (of_gc, started) {
            let message = format!(
                "{name} is read from a log that the JVM is asked to write, and this service runs already; use a service with a 'command', \
                 or read its own log with `rungwise jvm gc`"
            );
            self.problems.add(0..0, "objective", message);
        }
        JvmReadings {
            allocation: names.contains(&BYTES_PER_REQUEST),
            collections: of_gc.is_some(),
        }
    }

    /// A metric that the workload reports, and of which this is the better way.
    fn metric(
        &mut self,
        at: &At<String>,
        direction: Direction,
        workload: &Parameters,
    ) -> Objective {
        let (name, key, other) = match direction {
            Direction::HigherIsBetter => (at.get(), "objective.maximise", "minimise"),
            Direction::LowerIsBetter => (at.get(), "objective.minimise", "maximise"),
        };
        if matches!(name.as_str(), "loss" | "errors") {
            let message = format!(
                "{name} cannot be the objective: a ratio to 0 is undefined; make it a guard: guards = [\"{name} == 0\"]"
            );
            self.problems.add(at.span(), key, message);
        } else if metric::OF_GC.contains(&name.as_str()) {
            let limit = match metric::unit(name).trim() {
                "us" => "200ms",
                "" => "5%",
                _ => "50MB",
            };
            let message = format!(
                "{name} cannot be the objective: without a collection it is 0, and a ratio to 0 is undefined; make it one of the readings, \
                 or a guard: guards = [\"{name} <= {limit}\"]"
            );
            self.problems.add(at.span(), key, message);
        } else if metric::better(name).is_some_and(|better| better != direction) {
            let message = format!("wrong direction for this metric; use {other} = \"{name}\"");
            self.problems.add(at.span(), key, message);
        } else if !metric::reportable(workload).contains(&name.as_str()) {
            self.problems
                .add(at.span(), key, unreported(name, workload));
        }
        match direction {
            Direction::HigherIsBetter => Objective::maximise(name),
            Direction::LowerIsBetter => Objective::minimise(name),
        }
    }

    pub(super) fn experiment(
        &mut self,
        table: &ExperimentTable,
        workload: &Parameters,
        (objective, guards): (Objective, Vec<Guard>),
        comparisons: usize,
    ) -> (Duration, Duration, Judging) {
        let looks = match &table.looks {
            None => vec![8, 16, 24],
            Some(looks) => self.looks(looks),
        };
        let judging = Judging {
            controls: self.controls(table, workload, &objective, &guards),
            objective,
            guards,
            min_effect: self.share(table.min_effect.as_ref(), "min_effect", 0.02),
            alpha: self.alpha(table.alpha.as_ref()),
            looks,
            comparisons,
            quiet: self.share(table.quiet.as_ref(), "quiet", 0.12),
            discard_above: self.share(table.discard_above.as_ref(), "discard_above", 0.05),
            quiet_wait_s: self
                .duration(table.quiet_wait.as_ref(), "experiment.quiet_wait", 5_000)
                .as_secs_f64(),
            max_discards: table.max_discards.unwrap_or(12),
            seed: table.seed.as_ref().map_or(1, |seed| *seed.get()),
        };
        let kind = workload.traffic().kind();
        let millis = |time: Duration| time.as_millis() as u64;
        let warmup = match (&table.warmup, millis(kind.warmup)) {
            (Some(at), 0) => {
                let message = "this workload has no warm-up setting; let the program warm up";
                self.problems.add(at.span(), "experiment.warmup", message);
                Duration::ZERO
            }
            (None, 0) => Duration::ZERO,
            (None, _) if table.warmup_requests.is_some() => Duration::ZERO,
            (at, default) => self.duration(at.as_ref(), "experiment.warmup", default),
        };
        let measure = self.duration(
            table.measure.as_ref(),
            "experiment.measure",
            millis(kind.measure),
        );
        (warmup, measure, judging)
    }

    fn controls(
        &mut self,
        table: &ExperimentTable,
        workload: &Parameters,
        objective: &Objective,
        guards: &[Guard],
    ) -> Vec<Control> {
        let guarded = |name: &str| {
            guards.iter().any(|guard| match guard {
                Guard::Other { name: other, .. } => other == name,
                Guard::P99 { .. } => name == "p99",
                Guard::Loss { .. } | Guard::Errors { .. } => false,
            })
        };
        let mut controls = Vec::new();
        for (name, at) in &table.controls {
            let read = if name == objective.metric() || guarded(name) {
                Err(format!(
                    "{name} decides about changes: pairs may not be discarded by it; choose a metric that no change should move"
                ))
            } else {
                control(name, at.get(), workload)
            };
            match read {
                Ok(control) => controls.push(control),
                Err(message) => {
                    let key = format!("experiment.controls.{name}");
                    self.problems.add(at.span(), key, message);
                }
            }
        }
        controls
    }

    /// The parts of a run that have a number of requests.
    pub(super) fn by_count(
        &mut self,
        table: &ExperimentTable,
        workload: &Parameters,
        allocation: bool,
    ) -> ByCount {
        let driven = workload.traffic().driven().is_some();
        let counts = match workload {
            Parameters::Command(command) => command::sends_counted(command),
            _ => driven,
        };
        if let Some(at) = &table.warmup_requests {
            let why = if !counts {
                Some(
                    "workload.command has no {requests}, so the program cannot be asked for a warm-up",
                )
            } else if table.warmup.is_some() {
                Some("set either 'warmup' or 'warmup_requests'")
            } else if !(1..=MOST_REQUESTS).contains(at.get()) {
                Some("must be 1 to 1000000000")
            } else {
                None
            };
            if let Some(why) = why {
                let key = "experiment.warmup_requests";
                self.problems.add(at.span(), key, why);
            }
        }
        if let Some(at) = &table.counted_requests {
            let why = if !driven {
                Some("the program decides how many requests it sends")
            } else if !allocation {
                Some("nothing is counted; name bytes_per_request in [objective]")
            } else if !(FEWEST_COUNTED..=MOST_REQUESTS).contains(at.get()) {
                Some("must be 100 to 1000000000")
            } else {
                None
            };
            if let Some(why) = why {
                let key = "experiment.counted_requests";
                self.problems.add(at.span(), key, why);
            }
        }
        ByCount {
            warmup: table.warmup_requests.as_ref().map_or(0, |at| *at.get()),
            counted: table.counted_requests.as_ref().map(|at| *at.get()),
        }
    }

    fn alpha(&mut self, at: Option<&At<String>>) -> f64 {
        let alpha = self.share(at, "alpha", 0.01);
        if let Some(at) = at.filter(|_| (1.0 - alpha).abs() < f64::EPSILON) {
            let message = "at 100% every decision may be wrong; choose less, such as 1%";
            self.problems.add(at.span(), "experiment.alpha", message);
        }
        alpha
    }

    pub(super) fn looks(&mut self, looks: &At<Vec<At<u32>>>) -> Vec<u32> {
        let key = "experiment.looks";
        if looks.get().is_empty() {
            self.problems.add(
                looks.span(),
                key,
                "set at least one number of pairs, such as [8, 16, 24]",
            );
        }
        let mut before = 0;
        for look in looks.get() {
            let pairs = *look.get();
            if !(FEWEST as u32..=MOST_PAIRS).contains(&pairs) {
                let message =
                    format!("{pairs} pairs: a decision point needs {FEWEST} to {MOST_PAIRS}");
                self.problems.add(look.span(), key, message);
            } else if pairs <= before {
                self.problems.add(
                    look.span(),
                    key,
                    format!("{pairs} comes after {before}; decision points must increase"),
                );
            }
            before = pairs;
        }
        looks.get().iter().map(|look| *look.get()).collect()
    }
}

/// `loss <= 1%`, `errors == 0`, `p99 < 20ms`. An error is a request without a right reply in time: lost, or answered with an
/// error. A value equal to the limit passes: no measurement distinguishes `<` from `<=`.
fn guard(text: &str, workload: &Parameters) -> Result<Guard, String> {
    let shape = "write a guard as 'loss <= 1%', 'errors == 0' or 'p99 < 20ms'";
    let (metric, limit) = match text.split_once("==") {
        Some((metric, limit)) if limit.trim() == "0" => (metric, "0%"),
        _ => {
            let limit = text.split_once('<');
            let (metric, limit) =
                limit.ok_or_else(|| format!("'{text}' is not a limit; {shape}"))?;
            (metric, limit.strip_prefix('=').unwrap_or(limit).trim())
        }
    };
    let name = metric.trim();
    let mut known = metric::reportable(workload);
    known.retain(|known| *known != "rate");
    if !known.contains(&name) {
        let near = did_you_mean(name, known.iter().copied());
        return Err(format!(
            "'{name}' cannot be a guard for this workload{near}; choose one of {}",
            known.join(", ")
        ));
    }
    match name {
        metric @ ("loss" | "errors") => match units::fraction(limit) {
            Ok(at_most) if at_most < 1.0 && metric == "loss" => Ok(Guard::Loss { at_most }),
            Ok(at_most) if at_most < 1.0 => Ok(Guard::Errors { at_most }),
            Ok(_) => Err(format!(
                "'{text}' has no effect: a share cannot exceed 100%"
            )),
            Err(error) => Err(error.to_string()),
        },
        "p99" => match units::duration(limit) {
            Ok(at_most) if at_most.is_zero() => Err(format!(
                "'{text}' can never hold: every reply takes some time"
            )),
            Ok(at_most) => Ok(Guard::P99 {
                at_most_us: at_most.as_secs_f64() * 1e6,
            }),
            Err(error) => Err(error.to_string()),
        },
        other => {
            let at_most = amount(other, limit)?;
            let at_most =
                at_most.ok_or_else(|| format!("'{limit}' is not a number; write '{other} < 5'"))?;
            Ok(Guard::Other {
                name: other.to_owned(),
                at_most,
            })
        }
    }
}

/// A value of a metric; none if it is no number.
fn amount(metric: &str, text: &str) -> Result<Option<f64>, String> {
    if metric::is_time(metric) {
        let time = units::duration(text).map_err(|error| error.to_string())?;
        return Ok(Some(time.as_secs_f64() * 1e6));
    }
    if metric::is_bytes(metric) {
        let bytes = units::bytes(text).map_err(|error| error.to_string())?;
        return Ok(Some(bytes as f64));
    }
    if metric::is_share(metric) {
        let share = units::fraction(text).map_err(|error| error.to_string())?;
        return Ok(Some(share));
    }
    let number = text.trim_end_matches('%').parse::<f64>().ok();
    Ok(number.filter(|number| number.is_finite() && *number >= 0.0))
}

/// `service_s = "0.135..0.165"`
fn control(name: &str, text: &str, workload: &Parameters) -> Result<Control, String> {
    if matches!(name, "loss" | "errors") {
        return Err(format!(
            "make it a guard: guards = [\"{name} <= 1%\"]; a control is for what no change should move"
        ));
    }
    if !metric::reportable(workload).contains(&name) {
        return Err(unreported(name, workload));
    }
    let ends = text.split_once("..");
    let ends = ends.map(|(from, to)| (from.trim(), to.trim()));
    let shape = || format!("'{text}' is not a range; write {name} = \"0.9..1.1\"");
    let (from, to) = ends.ok_or_else(shape)?;
    let (from, to) = (amount(name, from)?, amount(name, to)?);
    let (Some(from), Some(to)) = (from, to) else {
        return Err(shape());
    };
    if from >= to {
        return Err(format!(
            "'{text}' is empty: the first value must be below the second"
        ));
    }
    Ok(Control {
        name: name.to_owned(),
        from,
        to,
    })
}

fn unreported(name: &str, workload: &Parameters) -> String {
    let known = metric::reportable(workload);
    format!(
        "this workload does not report '{name}'{}; it reports {}",
        did_you_mean(name, known.iter().copied()),
        known.join(", ")
    )
}

/// A guard that can fail. In a closed loop a request leaves as soon as its slot is free, and what comes after the timeout is
/// no reply: no latency reaches it.
fn within_reach(guard: Guard, text: &str, workload: &Parameters) -> Result<Guard, String> {
    let schedule = workload.traffic().driven().map(Driven::schedule);
    let closed = schedule.filter(|schedule| schedule.arrival() == Arrival::Closed);
    let timeout = closed.map(|schedule| schedule.timeout.0);
    match (&guard, timeout) {
        (Guard::P99 { at_most_us }, Some(timeout))
            if *at_most_us >= timeout.as_secs_f64() * 1e6 =>
        {
            Err(format!(
                "'{text}' has no effect: a reply after the timeout of {} ms counts as lost; choose less, or a longer workload.timeout",
                timeout.as_secs_f64() * 1e3
            ))
        }
        _ => Ok(guard),
    }
}
