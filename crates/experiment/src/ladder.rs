//! The ladder: the machine against itself, then every rung on top of what was kept before it.
//!
//! Greedy one-at-a-time fails where two changes only help together (RPS alone cut Makita's server from
//! 270 k to 17 k transactions/s, RPS with `SO_REUSEPORT` gave 2.54 M), so a rung may name earlier ones that
//! are tried again together with it; a bundle that is kept is then pruned: each earlier member must show
//! that taking it out again does not help.

use rungwise_model::tune::{AaCheck, Delta, Outcome, Reference, Rung, RungLatency, Verdict};
use rungwise_stats::decide::Call;
use rungwise_stats::noise::{Noise, smallest_effect};
use rungwise_stats::ratio;

use crate::Error;
use crate::compare::{Compared, Comparison, Observer, compare};
use crate::design::{Design, Judging, Part, Step};
use crate::record::Record;
use crate::stage::{Setting, Stage, StageError, Traffic, Variant};

/// What is known so far; filled while climbing, so that an early end still has a report.
#[derive(Debug, Default)]
pub struct Climbed {
    /// The machine against itself.
    pub aa: AaCheck,
    /// Finished rungs, the start first.
    pub rungs: Vec<Rung>,
    /// Ids of the kept ones.
    pub kept: Vec<String>,
    /// The configuration they add up to.
    pub final_variant: Variant,
    /// Final configuration against the first.
    pub overall: Option<Delta>,
    /// The same in one word; absent until the end.
    pub verdict: Option<Verdict>,
    /// The same as a sentence.
    pub sentence: String,
    /// What could not be measured.
    pub could_not: Vec<String>,
}

/// Climbs the whole ladder of `design`.
pub fn climb(
    design: &Design,
    stage: &mut dyn Stage,
    record: &mut dyn Record,
    observer: &mut dyn Observer,
    climbed: &mut Climbed,
) -> Result<(), Error> {
    Climb {
        design,
        stage,
        record,
        observer,
        climbed,
        not_kept: Vec::new(),
    }
    .run()
}

struct Climb<'a> {
    design: &'a Design,
    stage: &'a mut dyn Stage,
    record: &'a mut dyn Record,
    observer: &'a mut dyn Observer,
    climbed: &'a mut Climbed,
    /// Steps that were judged alone and not kept: candidates for a bundle.
    not_kept: Vec<&'a Step>,
}

impl<'a> Climb<'a> {
    fn run(mut self) -> Result<(), Error> {
        let start = self.start()?;
        self.climbed.final_variant = start.clone();
        self.against_itself(&start)?;
        for step in &self.design.steps {
            self.step(step)?;
        }
        self.overall(&start)
    }

    /// The starting configuration, as far as it can be had here; what cannot is said.
    fn start(&mut self) -> Result<Variant, Error> {
        let mut start = Variant::default();
        self.stage.try_out(&start)?;
        for (setting, value) in &self.design.baseline {
            let with = start.with(&[(setting.clone(), value.clone())]);
            match self.stage.try_out(&with) {
                Ok(()) => start = with,
                Err(StageError::Unavailable(why)) => self.climbed.could_not.push(format!(
                    "the start without {} = {value}: {why}",
                    setting.knob
                )),
                Err(other) => return Err(other.into()),
            }
        }
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
        let compared = compare(
            &Comparison {
                id: "aa",
                title: "the machine against itself",
                a: start,
                b: start,
                shared_lock: false,
            },
            &single,
            self.stage,
            self.record,
            self.observer,
        )?;
        let ratios: Vec<f64> = compared
            .counted()
            .filter_map(|pair| ratio::log_ratio(pair.a.rate_per_s, pair.b.rate_per_s))
            .collect();
        let spread = Noise::of(&ratios).map(|noise| noise.cautious_sd());
        let smallest = spread
            .map(|sd| {
                smallest_effect(
                    sd,
                    judging.most_pairs(),
                    judging.rules().alpha_per_look(),
                    POWER,
                )
            })
            .filter(|effect| effect.is_finite());
        let (low, high) = compared
            .delta
            .map_or((0.0, 0.0), |delta| (delta.low, delta.high));
        self.climbed.aa = AaCheck {
            low,
            high,
            pairs: ratios.len() as u32,
            smallest_effect: smallest,
            noise: spread,
        };
        if matches!(compared.call, Call::Keep | Call::Revert) {
            self.climbed.could_not.push(format!(
                "the machine differs from itself: two identical variants differ by {}; no gain below that can be trusted; run on a quieter machine",
                interval(compared.delta)
            ));
        }
        if ratios.is_empty() {
            self.climbed.could_not.push(format!(
                "no quiet pair for the A/A check: {}; stop other work on this machine or raise [experiment] discard_above",
                compared.reason
            ));
        }
        let mut rung = self.row(&START, "start", "the starting configuration", &compared);
        rung.outcome = Outcome::Observed;
        rung.reason = format!(
            "measured against itself: {}; smallest effect that {} pairs can show here: {}",
            interval(compared.delta),
            judging.most_pairs(),
            smallest.map_or_else(|| "unknown".to_owned(), percent)
        );
        rung.set = named(&start.settings.clone().into_iter().collect::<Vec<_>>());
        rung.reference = self.design.start_reference.clone();
        rung.delta = None;
        rung.cpu_delta = None;
        self.finish(rung);
        Ok(())
    }

    fn step(&mut self, step: &'a Step) -> Result<(), Error> {
        if let Part::Observe { note } = &step.part {
            self.finish(empty(step, Outcome::Observed, note));
            return Ok(());
        }
        let partners: Vec<&Step> = self
            .not_kept
            .iter()
            .copied()
            .filter(|earlier| step.bundle_with.contains(&earlier.id))
            .collect();
        if !partners.is_empty() && self.bundle(step, &partners)? {
            return Ok(());
        }
        let before = Variant {
            traffic: step.traffic.clone(),
            ..self.climbed.final_variant.clone()
        };
        let after = before.with(&step.set);
        if before == after {
            self.finish(empty(step, Outcome::Skipped, "it is already so"));
            return Ok(());
        }
        let rung = self.judge(step, &step.id, &step.title, &before, &after)?;
        match (&step.part, rung.outcome) {
            (Part::Step, Outcome::Kept) => {
                self.climbed.kept.push(step.id.clone());
                self.climbed.final_variant = Variant {
                    traffic: Traffic::default(),
                    ..after
                };
            }
            (Part::Step, Outcome::Skipped) => {}
            (Part::Step, _) => self.not_kept.push(step),
            _ => {}
        }
        self.finish(rung);
        Ok(())
    }

    /// Tries `step` together with `partners`; true when the bundle was kept.
    fn bundle(&mut self, step: &'a Step, partners: &[&'a Step]) -> Result<bool, Error> {
        let before = Variant {
            traffic: step.traffic.clone(),
            ..self.climbed.final_variant.clone()
        };
        let mut set = Vec::new();
        let mut ids = Vec::new();
        let mut factor = Some(1.0);
        for member in partners.iter().copied().chain([step]) {
            set.extend(member.set.iter().cloned());
            ids.push(member.id.as_str());
            factor = factor
                .zip(member.reference.as_ref().and_then(|known| known.factor))
                .map(|(product, factor)| product * factor);
        }
        let id = ids.join("+");
        let title = format!(
            "{}, together with {}",
            step.title,
            ids[..ids.len() - 1].join(", ")
        );
        let mut rung = self.judge(step, &id, &title, &before, &before.with(&set))?;
        rung.set = named(&set);
        rung.reference = step.reference.as_ref().map(|known| Reference {
            factor,
            ..known.clone()
        });
        rung.sign_differs = sign_differs(&rung);
        let kept = rung.outcome == Outcome::Kept;
        self.finish(rung);
        if !kept {
            return Ok(false);
        }
        self.climbed.kept.push(id);
        self.climbed.final_variant = Variant {
            traffic: Traffic::default(),
            ..before.with(&set)
        };
        self.not_kept
            .retain(|earlier| !partners.iter().any(|partner| partner.id == earlier.id));
        for partner in partners {
            self.prune(partner)?;
        }
        Ok(true)
    }

    /// Takes a member of a kept bundle out again where the rest is better without it.
    fn prune(&mut self, member: &'a Step) -> Result<(), Error> {
        let before = self.climbed.final_variant.clone();
        let mut after = before.clone();
        for (setting, _) in &member.set {
            let start = self
                .design
                .baseline
                .iter()
                .find(|(known, _)| known == setting);
            match start {
                Some((_, value)) => after.settings.insert(setting.clone(), value.clone()),
                None => after.settings.remove(setting),
            };
        }
        let id = format!("{}.out", member.id);
        let title = format!("{}: taken out of the bundle again", member.title);
        let mut rung = self.judge(member, &id, &title, &before, &after)?;
        rung.reference = None;
        rung.sign_differs = false;
        rung.set = named(&start_values(&member.set, &self.design.baseline));
        if rung.outcome == Outcome::Kept {
            self.climbed.kept.push(id);
            self.climbed.final_variant = after;
            self.not_kept.push(member);
        }
        self.finish(rung);
        Ok(())
    }

    fn judge(
        &mut self,
        step: &Step,
        id: &str,
        title: &str,
        before: &Variant,
        after: &Variant,
    ) -> Result<Rung, Error> {
        match self.stage.try_out(after) {
            Ok(()) => {}
            Err(StageError::Unavailable(why)) => {
                self.climbed.could_not.push(format!("{id}: {why}"));
                return Ok(Rung {
                    id: id.to_owned(),
                    title: title.to_owned(),
                    ..empty(step, Outcome::Skipped, &why)
                });
            }
            Err(StageError::ServiceFailed(why)) => return Ok(failed(step, id, title, &why)),
            Err(other) => return Err(other.into()),
        }
        let compared = compare(
            &Comparison {
                id,
                title,
                a: before,
                b: after,
                shared_lock: step.shared_lock,
            },
            &self.design.judging,
            self.stage,
            self.record,
            self.observer,
        );
        match compared {
            Ok(compared) => Ok(self.row(step, id, title, &compared)),
            Err(Error::ServiceFailed {
                half: rungwise_model::tune::Half::B,
                why,
            }) => Ok(failed(step, id, title, &why)),
            Err(other) => Err(other),
        }
    }

    fn overall(&mut self, start: &Variant) -> Result<(), Error> {
        let judged: Vec<Outcome> = self
            .climbed
            .rungs
            .iter()
            .filter(|rung| rung.delta.is_some())
            .map(|rung| rung.outcome)
            .collect();
        if self.climbed.final_variant == *start {
            let doubtful = judged.iter().all(|outcome| {
                matches!(
                    outcome,
                    Outcome::Inconclusive | Outcome::Observed | Outcome::Skipped
                )
            });
            let (verdict, sentence) = if doubtful {
                (
                    Verdict::Inconclusive,
                    "No rung could be decided on this machine; the first configuration stays.",
                )
            } else {
                (
                    Verdict::Same,
                    "No rung helped; the first configuration stays.",
                )
            };
            self.climbed.verdict = Some(verdict);
            sentence.clone_into(&mut self.climbed.sentence);
            return Ok(());
        }
        let last = self.climbed.final_variant.clone();
        let compared = compare(
            &Comparison {
                id: "overall",
                title: "the first configuration against the last",
                a: start,
                b: &last,
                shared_lock: true,
            },
            &self.design.judging,
            self.stage,
            self.record,
            self.observer,
        )?;
        let metric = match self.design.judging.objective {
            crate::design::Objective::Rate => "transaction rate",
            crate::design::Objective::P99 => "p99 latency",
        };
        let change = interval(compared.delta);
        let kept = self.climbed.kept.len();
        let (verdict, sentence) = match compared.call {
            Call::Keep => (
                Verdict::Better,
                format!("The {kept} kept rungs change the {metric} by {change} against the start."),
            ),
            Call::Revert => (
                Verdict::Worse,
                format!(
                    "The kept rungs together made the {metric} worse by {change}: {}.",
                    compared.reason
                ),
            ),
            Call::Same => (
                Verdict::Same,
                format!("The kept rungs together leave the {metric} as it was ({change})."),
            ),
            Call::Inconclusive | Call::MorePairs => (
                Verdict::Inconclusive,
                format!(
                    "{kept} rungs were kept, but first against last could not be decided ({change}): {}.",
                    compared.reason
                ),
            ),
        };
        self.climbed.overall = compared.delta;
        self.climbed.verdict = Some(verdict);
        self.climbed.sentence = sentence;
        let mut rung = self.row(
            &START,
            "overall",
            "the last configuration against the first",
            &compared,
        );
        rung.outcome = Outcome::Observed;
        rung.set = named(&last.settings.into_iter().collect::<Vec<_>>());
        self.finish(rung);
        Ok(())
    }

    fn row(&self, step: &Step, id: &str, title: &str, compared: &Compared) -> Rung {
        let (outcome, reason) = match (&step.part, compared.call) {
            (Part::Limit, _) => (
                Outcome::Observed,
                "measured as a limit; it replaces the service and cannot be kept".to_owned(),
            ),
            (_, Call::Keep) => (Outcome::Kept, compared.reason.clone()),
            (_, Call::Revert) => (Outcome::Reverted, compared.reason.clone()),
            (_, Call::Same) => (Outcome::Same, compared.reason.clone()),
            (_, Call::Inconclusive | Call::MorePairs) => {
                (Outcome::Inconclusive, compared.reason.clone())
            }
        };
        let latency = compared.latency_b.quantiles();
        let mut rung = Rung {
            id: id.to_owned(),
            title: title.to_owned(),
            outcome,
            reason,
            rate_per_s: compared.median_of(|pair| pair.b.rate_per_s),
            cpu_us_per_tx: compared.median_of(|pair| pair.b.cpu_us_per_tx),
            latency_us: (!compared.latency_b.is_empty()).then_some(RungLatency {
                p50: latency.p50,
                p99: latency.p99,
            }),
            delta: compared.delta,
            cpu_delta: compared.cpu_delta,
            cost_only: compared.cost_only,
            label: step.label.clone(),
            set: named(&step.set),
            reference: step.reference.clone(),
            sign_differs: false,
            pairs: compared.pairs.clone(),
        };
        rung.sign_differs = sign_differs(&rung);
        rung
    }

    fn finish(&mut self, rung: Rung) {
        self.observer.rung(&rung);
        self.climbed.rungs.push(rung);
    }
}

/// Chance of seeing an effect of the published smallest size.
const POWER: f64 = 0.8;

/// The pseudo step behind the rows that no scenario line asked for.
static START: Step = Step {
    id: String::new(),
    title: String::new(),
    part: Part::Step,
    set: Vec::new(),
    bundle_with: Vec::new(),
    traffic: Traffic {
        burst: None,
        depth: None,
        batch: None,
    },
    shared_lock: false,
    label: None,
    reference: None,
};

fn start_values(
    set: &[(Setting, String)],
    baseline: &[(Setting, String)],
) -> Vec<(Setting, String)> {
    set.iter()
        .map(|(setting, _)| {
            let value = baseline
                .iter()
                .find(|(known, _)| known == setting)
                .map_or_else(|| "as found".to_owned(), |(_, value)| value.clone());
            (setting.clone(), value)
        })
        .collect()
}

fn named(set: &[(Setting, String)]) -> Vec<(String, String)> {
    set.iter()
        .map(|(setting, value)| (setting.knob.clone(), value.clone()))
        .collect()
}

/// A rung without measurements.
fn empty(step: &Step, outcome: Outcome, reason: &str) -> Rung {
    Rung {
        id: step.id.clone(),
        title: step.title.clone(),
        outcome,
        reason: reason.to_owned(),
        rate_per_s: None,
        cpu_us_per_tx: None,
        latency_us: None,
        delta: None,
        cpu_delta: None,
        cost_only: false,
        label: step.label.clone(),
        set: named(&step.set),
        reference: step.reference.clone(),
        sign_differs: false,
        pairs: Vec::new(),
    }
}

fn failed(step: &Step, id: &str, title: &str, why: &str) -> Rung {
    Rung {
        id: id.to_owned(),
        title: title.to_owned(),
        ..empty(
            step,
            Outcome::Reverted,
            &format!("the service failed with it: {why}"),
        )
    }
}

/// Our interval lies wholly on the other side of "no change" than their factor.
fn sign_differs(rung: &Rung) -> bool {
    let Some((delta, factor)) = rung
        .delta
        .zip(rung.reference.as_ref().and_then(|r| r.factor))
    else {
        return false;
    };
    (factor > 1.0 && delta.high < 0.0) || (factor < 1.0 && delta.low > 0.0)
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
