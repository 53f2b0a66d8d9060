//! The ladder: an A/A check, then every rung on top of what was kept before it.
//!
//! Greedy one-at-a-time fails where two changes only help together (RPS alone cut Makita's server from
//! 270 k to 17 k transactions/s, RPS with `SO_REUSEPORT` gave 2.54 M), so a rung may name earlier ones that
//! are tried again together with it; a bundle that is kept is then pruned: each earlier member is taken out
//! again where the others are better without it.

use std::collections::BTreeMap;

use rungwise_knobs::Scope;
use rungwise_model::tune::{AaCheck, Delta, Outcome, Reference, Run, Rung, RungLatency, Verdict};
use rungwise_stats::budget::Budget;
use rungwise_stats::decide::Call;
use rungwise_stats::interval::centre_interval;
use rungwise_stats::noise::{Noise, smallest_effect};
use rungwise_stats::ratio;

use crate::Error;
use crate::auto::{Advice, ByRules};
use crate::compare::{Compared, Comparison, Observer, compare};
use crate::design::{Design, Judging, Objective, Part, Step};
use crate::record::Record;
use crate::stage::{Changes, Setting, Stage, StageError, Variant};

/// What is known so far; filled while climbing, so that an early end still has a report.
#[derive(Debug, Default)]
pub struct Climbed {
    /// The A/A check.
    pub aa: AaCheck,
    /// Finished rungs, the start first.
    pub rungs: Vec<Rung>,
    /// Ids of the kept ones.
    pub kept: Vec<String>,
    /// The configuration they add up to.
    pub final_variant: Variant,
    /// Final vs. initial configuration.
    pub overall: Option<Delta>,
    /// The same in one word; absent until the end.
    pub verdict: Option<Verdict>,
    /// The same as a sentence.
    pub sentence: String,
    /// What could not be measured.
    pub could_not: Vec<String>,
    /// The finding that the load generator was the limit, where the ladder ended for it.
    pub client_limit: Option<String>,
}

/// Climbs the whole ladder of `design`.
pub fn climb(
    design: &Design,
    stage: &mut dyn Stage,
    record: &mut dyn Record,
    observer: &mut dyn Observer,
    climbed: &mut Climbed,
) -> Result<(), Error> {
    climb_by(&ByRules, design, stage, record, observer, climbed)
}

/// The same with other advice than the rules', where the design does not list the rungs.
pub fn climb_by(
    advice: &dyn Advice,
    design: &Design,
    stage: &mut dyn Stage,
    record: &mut dyn Record,
    observer: &mut dyn Observer,
    climbed: &mut Climbed,
) -> Result<(), Error> {
    Climb {
        design,
        advice,
        stage,
        record,
        observer,
        climbed,
        not_kept: Vec::new(),
        lock_left: false,
        budget: design.judging.budget(),
        to_come: design.judging.comparisons,
    }
    .run()
}

pub(crate) struct Climb<'a> {
    pub(crate) design: &'a Design,
    pub(crate) advice: &'a dyn Advice,
    pub(crate) stage: &'a mut dyn Stage,
    pub(crate) record: &'a mut dyn Record,
    pub(crate) observer: &'a mut dyn Observer,
    pub(crate) climbed: &'a mut Climbed,
    /// Steps that were judged alone and not kept: candidates for a bundle.
    pub(crate) not_kept: Vec<Step>,
    /// The last change around a shared lock was not kept, so every variant may still wait for that lock.
    pub(crate) lock_left: bool,
    /// What is left of the chance of a wrong decision.
    pub(crate) budget: Budget,
    /// Comparisons that share it, at most: those that may still come.
    pub(crate) to_come: usize,
}

impl<'a> Climb<'a> {
    fn run(mut self) -> Result<(), Error> {
        let start = self.start()?;
        self.climbed.final_variant = start.clone();
        self.against_itself(&start)?;
        if let Some(auto) = &self.design.auto {
            self.by_evidence(auto)?;
        } else {
            let steps = &self.design.steps;
            for (i, step) in steps.iter().enumerate() {
                self.step(step, Design::count_comparisons(&steps[i + 1..]))?;
            }
        }
        self.overall(&start)
    }

    /// The starting configuration, brought up as one: the service runs for the first time with all of it, since its
    /// command line may be complete only then. Knobs that are unavailable here are left out, and the report says so.
    fn start(&mut self) -> Result<Variant, Error> {
        let whole = Variant::default().with(&self.design.baseline);
        match self.stage.try_out(&whole) {
            Ok(()) => return Ok(whole),
            Err(StageError::Unavailable(_)) => {}
            Err(other) => return Err(other.into()),
        }
        let (switches, knobs): (Vec<_>, Vec<_>) = (self.design.baseline.iter().cloned())
            .partition(|(setting, _)| is_switch(&setting.knob));
        let mut start = Variant::default().with(&switches);
        self.stage.try_out(&start)?;
        for (setting, value) in knobs {
            let with = start.with(&[(setting.clone(), value.clone())]);
            match self.stage.try_out(&with) {
                Ok(()) => start = with,
                Err(StageError::Unavailable(why)) => self.climbed.could_not.push(format!(
                    "baseline setting {} = {value}: {why}",
                    setting.knob
                )),
                Err(other) => return Err(other.into()),
            }
        }
        // The service that runs now was started before those knobs were set; many hold only for what starts after them.
        self.stage.restart()?;
        self.stage.try_out(&start)?;
        Ok(start)
    }

    /// The A/A check; its runs also give the figures of the start.
    fn against_itself(&mut self, start: &Variant) -> Result<(), Error> {
        let judging = &self.design.judging;
        // One fixed look: the middle one, so that its noise estimate is worth something.
        let look = judging.looks[judging.looks.len() / 2];
        let single = Judging {
            looks: vec![look],
            ..judging.clone()
        };
        let alpha = judging.budget().part(judging.comparisons);
        let alpha_per_look = judging.rules(alpha).alpha_per_look();
        let compared = compare(
            &Comparison {
                id: "aa",
                title: "A/A check",
                a: start,
                b: start,
                // What the machine can show of the objective is not to be had from the cost.
                shared_lock: true,
                // Where rungs restart the service, what a start leaves to chance is part of their noise.
                fresh: self.design.restarts,
                alpha,
            },
            &single,
            self.stage,
            self.record,
            self.observer,
        )?;
        let of = |run| judging.objective.value_in(run).unwrap_or(f64::NAN);
        let ratios: Vec<f64> = compared
            .counted()
            .filter_map(|pair| ratio::log_ratio(of(&pair.a), of(&pair.b)))
            .collect();
        let difference = centre_interval(&ratios, alpha);
        let spread = Noise::of(&ratios).map(|noise| noise.cautious_sd());
        let smallest = spread
            .map(|sd| smallest_effect(sd, judging.most_pairs(), alpha_per_look, POWER))
            .filter(|effect| effect.is_finite());
        let delta = difference.map(|difference| Delta {
            point: ratio::to_change(difference.point),
            low: ratio::to_change(difference.low),
            high: ratio::to_change(difference.high),
            pairs: ratios.len() as u32,
            discarded: compared.discarded(),
        });
        if let Some(delta) = delta {
            self.climbed.aa = AaCheck {
                low: Some(delta.low),
                high: Some(delta.high),
                pairs: delta.pairs,
                smallest_effect: smallest,
                noise: spread,
                reason: None,
            };
            if delta.low > 0.0 || delta.high < 0.0 {
                self.climbed.could_not.push(format!(
                        "A/A check failed: two identical variants differ by {}; smaller gains cannot be trusted; run on a quieter machine",
                        interval(Some(delta))
                    ));
            }
        } else {
            let why = compared.too_few();
            self.climbed.could_not.push(format!(
                    "too few quiet pairs for the A/A check: {why}; stop other work on this machine or raise [experiment] discard_above"
                ));
            self.climbed.aa = AaCheck {
                pairs: ratios.len() as u32,
                reason: Some(why),
                ..AaCheck::default()
            };
        }
        let mut rung = self.row(&START, "start", "initial configuration", &compared);
        rung.outcome = Outcome::Observed;
        rung.reason = format!(
            "A/A check: {}; smallest effect detectable with {} pairs: {}",
            interval(delta),
            judging.most_pairs(),
            smallest.map_or_else(|| "unknown".to_owned(), percent)
        );
        rung.set = named(&start.settings.clone().into_iter().collect::<Vec<_>>());
        rung.reference.clone_from(&self.design.start_reference);
        rung.delta = None;
        rung.cpu_delta = None;
        self.finish(rung);
        Ok(())
    }

    /// Judges a step; `after_it` comparisons may follow it at most.
    fn step(&mut self, step: &Step, after_it: usize) -> Result<(), Error> {
        if let Part::Observe { note } = &step.part {
            self.finish(empty(step, Outcome::Observed, note));
            return Ok(());
        }
        if let Some(grid) = &step.grid {
            return self.grid(step, grid, after_it);
        }
        let partners: Vec<Step> = self
            .not_kept
            .iter()
            .filter(|earlier| step.bundle_with.contains(&earlier.id))
            .cloned()
            .collect();
        // A bundle is followed by the step alone, or by a check of each partner.
        self.to_come = 1 + partners.len() + after_it;
        if !partners.is_empty() && self.bundle(step, &partners)? {
            return Ok(());
        }
        let before = self.before(step);
        let mut after = before.with(&step.set);
        after.workload = after.workload.and(&step.workload_after);
        if before == after {
            self.finish(empty(step, Outcome::Skipped, "already in effect"));
            return Ok(());
        }
        let mut rung = self.judge(step, &step.id, &step.title, &before, &after)?;
        if let Some(first) = partners.first() {
            self.compare_with_theirs(&mut rung, step, first);
        }
        match (&step.part, rung.outcome) {
            (Part::Step, Outcome::Kept) => self.keep(&step.id, after),
            (Part::Step, Outcome::Skipped) => {}
            (Part::Step, _) => self.not_kept.push(step.clone()),
            _ => {}
        }
        if step.shared_lock {
            self.lock_left = rung.outcome != Outcome::Kept;
        }
        self.finish(rung);
        Ok(())
    }

    /// What is kept so far, under the workload of `step`.
    pub(crate) fn before(&self, step: &Step) -> Variant {
        Variant {
            workload: step.workload.clone(),
            ..self.climbed.final_variant.clone()
        }
    }

    pub(crate) fn keep(&mut self, id: &str, variant: Variant) {
        self.climbed.kept.push(id.to_owned());
        self.climbed.final_variant = Variant {
            workload: Changes::NONE,
            ..variant
        };
    }

    /// Tries `step` together with `partners`; true when the bundle was kept.
    fn bundle(&mut self, step: &Step, partners: &[Step]) -> Result<bool, Error> {
        let before = self.before(step);
        let mut members: Vec<&Step> = partners.iter().chain([step]).collect();
        let with = |members: &[&Step]| {
            members
                .iter()
                .fold(before.clone(), |variant, member| variant.with(&member.set))
        };
        let ids: Vec<&str> = members.iter().map(|member| member.id.as_str()).collect();
        let id = ids.join("+");
        let title = format!(
            "{}, together with {}",
            step.title,
            ids[..ids.len() - 1].join(", ")
        );
        let mut rung = self.judge(step, &id, &title, &before, &with(&members))?;
        let set: Vec<_> = members
            .iter()
            .flat_map(|member| &member.set)
            .cloned()
            .collect();
        rung.set = named(&set);
        self.compare_with_theirs(&mut rung, step, members[0]);
        let kept = rung.outcome == Outcome::Kept;
        self.finish(rung);
        if !kept {
            return Ok(false);
        }
        self.keep(&id, with(&members));
        self.lock_left &= !members.iter().any(|member| member.shared_lock);
        self.not_kept
            .retain(|earlier| !partners.iter().any(|partner| partner.id == earlier.id));
        for partner in partners {
            let rest: Vec<&Step> = members
                .iter()
                .copied()
                .filter(|member| member.id != partner.id)
                .collect();
            if self.prune(partner, &id, &with(&members), with(&rest))? {
                members = rest;
            }
        }
        Ok(true)
    }

    /// A published step, relative to their state before `first`: ours was tried without their steps in between.
    fn compare_with_theirs(&self, rung: &mut Rung, step: &Step, first: &Step) {
        let theirs = self.reference_before(first);
        rung.reference = step.reference.as_ref().map(|known| Reference {
            factor: theirs.map(|before| known.rate_per_s / before.rate_per_s),
            ..known.clone()
        });
        rung.sign_differs = self.sign_differs(rung);
    }

    /// The published figure for the state in which `step` was tried.
    fn reference_before(&self, step: &Step) -> Option<&'a Reference> {
        let design = self.design;
        design
            .steps
            .iter()
            .take_while(|earlier| earlier.id != step.id)
            .filter_map(|earlier| earlier.reference.as_ref())
            .last()
            .or(design.start_reference.as_ref())
    }

    /// Takes a member of a kept bundle out again where the others are better without it; true when it is out.
    pub(crate) fn prune(
        &mut self,
        member: &Step,
        bundle: &str,
        before: &Variant,
        after: Variant,
    ) -> Result<bool, Error> {
        if *before == after {
            return Ok(false);
        }
        // No id of a scenario holds a '+', so none is taken for this one.
        let id = format!("{bundle}-{}", member.id);
        let title = format!("{}: removed from the bundle", member.title);
        let mut rung = self.judge(member, &id, &title, before, &after)?;
        rung.reference = None;
        rung.sign_differs = false;
        // The finding asked for the member, and nobody for its end.
        rung.asked = None;
        rung.set = back(&member.set, before, &after);
        let out = rung.outcome == Outcome::Kept;
        if out {
            self.keep(&id, after);
            self.not_kept.push(member.clone());
        }
        self.finish(rung);
        Ok(out)
    }

    pub(crate) fn judge(
        &mut self,
        step: &Step,
        id: &str,
        title: &str,
        before: &Variant,
        after: &Variant,
    ) -> Result<Rung, Error> {
        if let Some(why) = self.refused(after)? {
            return Ok(self.skipped(step, id, title, &why));
        }
        let compared = self.compared(
            &step.part,
            &Comparison {
                id,
                title,
                a: before,
                b: after,
                shared_lock: step.shared_lock || self.lock_left,
                // One service for both halves would be older in each run; those of other rungs are not.
                fresh: self.design.restarts && !step.workload_after.is_none(),
                alpha: self.budget.part(self.to_come),
            },
        )?;
        self.note_spared(id, &compared);
        Ok(self.row(step, id, title, &compared))
    }

    /// Why a variant cannot be measured here, if it cannot.
    pub(crate) fn refused(&mut self, variant: &Variant) -> Result<Option<String>, Error> {
        match self.stage.try_out(variant) {
            Ok(()) => Ok(None),
            Err(StageError::Unavailable(why)) => Ok(Some(why)),
            // It cannot even be started: nothing is known of what the change does.
            Err(StageError::ServiceFailed(why)) => Ok(Some(format!(
                "the service does not start with this change: {why}"
            ))),
            Err(other) => Err(other.into()),
        }
    }

    /// Notes it where the service failed once and the change was not blamed.
    pub(crate) fn note_spared(&mut self, id: &str, compared: &Compared) {
        let spared = compared.pairs.iter().find_map(|pair| pair.again.as_deref());
        if let (Some(why), false) = (spared, compared.failed) {
            self.climbed.could_not.push(format!(
                "{id}: the service failed once with this change but not when that half was repeated, so the change is not blamed: {why}; \
                 see the service's log, and dmesg for out-of-memory kills"
            ));
        }
    }

    /// Compares at the comparison's part of alpha. A comparison that rejects "no difference" leaves its part to those that follow.
    pub(crate) fn compared(
        &mut self,
        part: &Part,
        comparison: &Comparison<'_>,
    ) -> Result<Compared, Error> {
        let compared = compare(
            comparison,
            &self.design.judging,
            self.stage,
            self.record,
            self.observer,
        )?;
        // A limit decides nothing.
        if *part != Part::Limit {
            self.to_come -= 1;
            if !matches!(compared.call, Call::Keep | Call::Revert) {
                self.budget.spend(comparison.alpha);
            }
        }
        Ok(compared)
    }

    fn skipped(&mut self, step: &Step, id: &str, title: &str, why: &str) -> Rung {
        self.climbed.could_not.push(format!("{id}: {why}"));
        Rung {
            id: id.to_owned(),
            title: title.to_owned(),
            ..empty(step, Outcome::Skipped, why)
        }
    }

    /// Nothing was kept.
    fn unchanged(&mut self) {
        let count = |wanted: &[Outcome]| {
            let rungs = self.climbed.rungs.iter();
            rungs.filter(|rung| wanted.contains(&rung.outcome)).count()
        };
        let decided = count(&[Outcome::Kept, Outcome::Reverted, Outcome::Same]);
        let open = count(&[Outcome::Inconclusive]);
        let (verdict, sentence) = match (decided, open) {
            _ if self.climbed.client_limit.is_some() => (
                Verdict::Inconclusive,
                "No change was shown to help; the initial configuration stays.".to_owned(),
            ),
            (0, _) => (
                Verdict::Inconclusive,
                "No change could be decided on this machine; the initial configuration stays."
                    .to_owned(),
            ),
            (_, 0) => (
                Verdict::Same,
                "No change helped; the initial configuration stays.".to_owned(),
            ),
            (_, open) => (
                Verdict::Same,
                format!(
                    "No change was shown to help and {open} could not be decided; the initial configuration stays."
                ),
            ),
        };
        self.climbed.verdict = Some(verdict);
        self.climbed.sentence = sentence + &self.why_no_further();
    }

    /// One more sentence, if the load generator ended the ladder.
    fn why_no_further(&self) -> String {
        self.climbed
            .client_limit
            .as_ref()
            .map_or_else(String::new, |limit| {
                format!(" Nothing further was tried, because {limit}.")
            })
    }

    fn overall(&mut self, start: &Variant) -> Result<(), Error> {
        if self.climbed.final_variant == *start {
            self.unchanged();
            return Ok(());
        }
        let last = self.climbed.final_variant.clone();
        self.to_come = 1;
        let compared = self.compared(
            &Part::Step,
            &Comparison {
                id: "overall",
                title: "final vs. initial configuration",
                a: start,
                b: &last,
                shared_lock: true,
                fresh: false,
                alpha: self.budget.part(self.to_come),
            },
        )?;
        let metric = self.design.judging.objective.words();
        let reason = &compared.reason;
        let (verdict, sentence) = match (compared.call, compared.delta) {
            (Call::Keep, Some(delta)) => (
                Verdict::Better,
                format!(
                    "The kept changes together {} the {metric} by {} [{:+.1} %, {:+.1} %]: final vs. initial configuration, {} pairs.",
                    if delta.point > 0.0 { "raise" } else { "lower" },
                    percent(delta.point.abs()),
                    delta.low * 100.0,
                    delta.high * 100.0,
                    delta.pairs
                ),
            ),
            (Call::Revert, _) => (
                Verdict::Worse,
                format!(
                    "The kept changes together are worse than the initial configuration: {reason}."
                ),
            ),
            (Call::Same, _) => (
                Verdict::Same,
                format!("The kept changes together do not change the {metric}: {reason}."),
            ),
            _ => (
                Verdict::Inconclusive,
                format!(
                    "Changes were kept, but final vs. initial configuration is undecided: {reason}."
                ),
            ),
        };
        self.climbed.overall = compared.delta;
        self.climbed.verdict = Some(verdict);
        self.climbed.sentence = sentence + &self.why_no_further();
        let mut rung = self.row(
            &START,
            "overall",
            "final vs. initial configuration",
            &compared,
        );
        rung.outcome = Outcome::Observed;
        rung.set = named(&last.settings.into_iter().collect::<Vec<_>>());
        self.finish(rung);
        Ok(())
    }

    fn row(&self, step: &Step, id: &str, title: &str, compared: &Compared) -> Rung {
        let (outcome, reason) = match (&step.part, compared.call) {
            (Part::Limit | Part::Branch, _) if compared.failed => {
                (Outcome::Observed, compared.reason.clone())
            }
            (Part::Limit, _) => (
                Outcome::Observed,
                "a limit, measured for comparison only".to_owned(),
            ),
            // Kept, it would be missing from what is kept.
            (Part::Branch, _) => (Outcome::Observed, not_carried(&compared.reason)),
            (_, call) => (outcome(call), compared.reason.clone()),
        };
        let latency = compared.latency_b.quantiles();
        let mut rung = Rung {
            id: id.to_owned(),
            title: title.to_owned(),
            outcome,
            reason,
            rate_per_s: compared.median_of(|pair| pair.b.rate_per_s),
            cpu_us_per_tx: compared.median_of(|pair| pair.b.cpu_us_per_tx),
            latency_us: if compared.latency_b.is_empty() {
                reported(compared)
            } else {
                Some(RungLatency {
                    p50: latency.p50,
                    p99: latency.p99,
                })
            },
            metrics: compared.metrics(),
            delta: compared.delta,
            cpu_delta: compared.cpu_delta,
            cost_only: compared.cost_only,
            label: step.label.clone(),
            set: named(&step.set),
            reference: step.reference.clone(),
            sign_differs: false,
            asked: step.asked.clone(),
            grid: None,
            confidence: Some(1.0 - compared.alpha_per_look),
            discarded: compared.discarded(),
            pairs: compared.pairs.clone(),
        };
        rung.sign_differs = self.sign_differs(&rung);
        rung
    }

    /// Our interval lies wholly on the other side of "no change" than their factor, which is one of rates.
    fn sign_differs(&self, rung: &Rung) -> bool {
        let theirs = rung.reference.as_ref().and_then(|known| known.factor);
        let is_rate = self.design.judging.objective == Objective::rate();
        match (rung.delta, theirs) {
            (Some(delta), Some(factor)) if is_rate => {
                (factor > 1.0 && delta.high < 0.0) || (factor < 1.0 && delta.low > 0.0)
            }
            _ => false,
        }
    }

    pub(crate) fn finish(&mut self, rung: Rung) {
        self.observer.rung(&rung);
        self.climbed.rungs.push(rung);
    }
}

/// Medians of the quantiles that a program gave, which come without their distribution.
fn reported(compared: &Compared) -> Option<RungLatency> {
    let median =
        |of: fn(&Run) -> Option<f64>| compared.median_of(|pair| of(&pair.b).unwrap_or(f64::NAN));
    let (p50, p99) = (median(|run| run.p50_us)?, median(|run| run.p99_us)?);
    (p50.is_finite() && p99.is_finite()).then_some(RungLatency { p50, p99 })
}

/// Chance of seeing an effect of the published smallest size.
const POWER: f64 = 0.8;

/// The pseudo step behind the rows that no scenario line asked for.
static START: Step = Step {
    id: String::new(),
    title: String::new(),
    part: Part::Step,
    set: Vec::new(),
    grid: None,
    bundle_with: Vec::new(),
    workload: Changes::NONE,
    workload_after: Changes::NONE,
    shared_lock: false,
    label: None,
    reference: None,
    asked: None,
};

/// What a call makes of a change that can be kept.
pub(crate) fn outcome(call: Call) -> Outcome {
    match call {
        Call::Keep => Outcome::Kept,
        Call::Revert => Outcome::Reverted,
        Call::Same => Outcome::Same,
        Call::Inconclusive | Call::MorePairs => Outcome::Inconclusive,
    }
}

/// The reason of a branch, whatever it was judged.
pub(crate) fn not_carried(reason: &str) -> String {
    format!("for its own traffic only, not carried forward: {reason}")
}

/// What the settings of a member become when it is taken out.
fn back(set: &[(Setting, String)], before: &Variant, after: &Variant) -> Vec<(String, String)> {
    set.iter()
        .map(|(setting, _)| (setting, after.settings.get(setting)))
        .filter(|(setting, value)| before.settings.get(*setting) != *value)
        .map(|(setting, value)| {
            let value = value.map_or("as found", String::as_str);
            (setting.knob.clone(), value.to_owned())
        })
        .collect()
}

/// A switch of the service: no knob of the machine, or one that is declared as the service's.
fn is_switch(knob: &str) -> bool {
    rungwise_knobs::find(knob).map_or(true, |knob| knob.scope == Scope::Service)
}

pub(crate) fn named(set: &[(Setting, String)]) -> Vec<(String, String)> {
    set.iter()
        .map(|(setting, value)| (setting.knob.clone(), value.clone()))
        .collect()
}

/// A rung without measurements.
pub(crate) fn empty(step: &Step, outcome: Outcome, reason: &str) -> Rung {
    Rung {
        id: step.id.clone(),
        title: step.title.clone(),
        outcome,
        reason: reason.to_owned(),
        rate_per_s: None,
        cpu_us_per_tx: None,
        latency_us: None,
        metrics: BTreeMap::new(),
        delta: None,
        cpu_delta: None,
        cost_only: false,
        label: step.label.clone(),
        set: named(&step.set),
        reference: step.reference.clone(),
        sign_differs: false,
        asked: step.asked.clone(),
        grid: None,
        confidence: None,
        discarded: 0,
        pairs: Vec::new(),
    }
}

fn percent(fraction: f64) -> String {
    format!("{:.1} %", fraction * 100.0)
}

fn interval(delta: Option<Delta>) -> String {
    delta.map_or_else(
        || "no interval".to_owned(),
        |delta| {
            format!(
                "{:+.1} % [{:+.1} %, {:+.1} %] over {} pairs",
                delta.point * 100.0,
                delta.low * 100.0,
                delta.high * 100.0,
                delta.pairs
            )
        },
    )
}
