//! Rungs from evidence: findings under load choose the next change.
//!
//! One capture at the start, then one after every rung with its change in force. The findings of a capture, strongest evidence first,
//! recommend knobs; the first that was not tried becomes the next rung and is judged in pairs like any other. A kept change changes the
//! machine, so the next rung comes from a new capture. A rung that was not kept although its finding disappeared has moved the bottleneck:
//! the knobs of the new finding are tried together with it (on the reference
//! ladder steering alone cut 270,000 transactions/s to 17,000, and with `SO_REUSEPORT` made 2,540,000).
//!
//! A capture also contains the load generator's own figures. If the generator was the limit, the rate does not describe the service, and
//! the ladder ends.
//!
//! Nothing here names a knob or a rule. Every capture and every decision is on disk before it is acted on; a resumed ladder takes the same
//! decisions from the same captures.

use rungwise_knobs::{Risk, Scope};
use rungwise_model::check::{Finding, Outcome as Found, Recommendation};
use rungwise_model::tune::{Asked, Became, Outcome, Rung};
use rungwise_probes::Capture;
use rungwise_rules::change::{self, Course};

use crate::Error;
use crate::design::{Auto, Part, Step};
use crate::ladder::{Climb, empty};
use crate::record::{Decision, capture_file};
use crate::scenario::OFF;
use crate::scenario::known::not_in_a_run;
use crate::stage::{Changes, Setting, Side, StageError, Variant};

/// Interprets a capture.
pub trait Advice {
    /// What was found, act and watch alone, most pressing first.
    fn findings(&self, capture: &Capture) -> Vec<Finding>;

    /// What a change did, from a capture without it and one with it, for the rule whose finding asked for it.
    fn change(&self, rule: &str, before: &Capture, after: &Capture) -> Change;
}

/// What a change did.
#[derive(Clone, Debug)]
pub struct Change {
    /// To the finding that asked for it.
    pub became: Became,
    /// Findings that appeared or grew instead, most pressing first.
    pub came: Vec<Finding>,
}

/// The advice of the rules.
#[derive(Clone, Copy, Debug)]
pub struct ByRules;

impl Advice for ByRules {
    fn findings(&self, capture: &Capture) -> Vec<Finding> {
        let mut findings = rungwise_rules::judge(&rungwise_probes::evidence(capture));
        findings.retain(|finding| matches!(finding.outcome, Found::Act | Found::Watch));
        findings
    }

    fn change(&self, rule: &str, before: &Capture, after: &Capture) -> Change {
        let before = rungwise_probes::evidence(before);
        let after = rungwise_probes::evidence(after);
        let steps = change::changed(&before, &after);
        let asked = steps.iter().find(|step| step.rule == rule);
        let mut came: Vec<_> = steps
            .iter()
            .filter(|step| step.rule != rule && step.in_its_place())
            .collect();
        // What was not there at all before, before what was and has grown: growth may be noise.
        came.sort_by_key(|step| {
            let after = &step.after;
            (
                step.course == Course::Worse,
                after.outcome,
                std::cmp::Reverse((after.severity, after.confidence)),
            )
        });
        Change {
            became: asked.map_or(Became::Undecided, |step| became(step.course)),
            came: came.into_iter().map(|step| step.after.clone()).collect(),
        }
    }
}

/// A course of the rules in one of four words.
pub fn became(course: Course) -> Became {
    match course {
        Course::Gone => Became::Gone,
        Course::Eased => Became::Weaker,
        Course::Same | Course::Worse | Course::Come => Became::Unchanged,
        Course::Unknown => Became::Undecided,
    }
}

/// A capture and its file.
struct StoredCapture {
    file: String,
    capture: Capture,
}

/// What a finding asks for.
enum Ask {
    /// It can be tried.
    Try(Step),
    /// It is not tried; the note says why.
    Leave(Step),
}

/// The state of the search.
struct Search<'a> {
    auto: &'a Auto,
    captures: usize,
    /// Everything that was tried, alone or in a bundle.
    tried: Vec<(Setting, String)>,
    /// What findings asked for and was not tried, once per knob and wish.
    left: Vec<Step>,
    rungs: u32,
    bundles: u32,
}

impl Climb<'_> {
    /// Climbs by findings, until they recommend nothing new or the design's bound is reached.
    pub(crate) fn by_evidence(&mut self, auto: &Auto) -> Result<(), Error> {
        let mut search = Search {
            auto,
            captures: 0,
            tried: Vec::new(),
            left: Vec::new(),
            rungs: 0,
            bundles: 0,
        };
        let start = self.climbed.final_variant.clone();
        let mut here = self.capture(&mut search, &start)?;
        let mut findings = self.judged(&here)?;
        while self.climbed.client_limit.is_none() {
            if let Some(limit) = rungwise_rules::client_limit(&findings) {
                self.end_at_client(&here.file, &limit.sentence)?;
                break;
            }
            let Some(step) = search.next(&findings, &here, &self.climbed.final_variant) else {
                break;
            };
            if search.rungs == auto.max_rungs {
                let why = format!(
                    "{} was recommended by {} and not tried: [auto] max_rungs = {} was reached",
                    step.title,
                    step.asked.as_ref().map_or("", |asked| &asked.rule),
                    auto.max_rungs
                );
                self.climbed.could_not.push(why);
                break;
            }
            if let Some(next) = self.found(&mut search, &step, &here, &findings)? {
                here = next;
                findings = self.judged(&here)?;
            }
        }
        for step in &search.left {
            let Part::Observe { note } = &step.part else {
                continue;
            };
            // What was tried after all is recorded there.
            let mut tried = search.tried.iter();
            if !tried.any(|(setting, _)| setting.knob == step.id) {
                self.finish(empty(step, Outcome::Observed, note));
            }
        }
        Ok(())
    }

    /// Tries a step, and a bundle with it where its evidence asks for one. Returns the new current capture, if something was kept.
    fn found(
        &mut self,
        search: &mut Search<'_>,
        step: &Step,
        here: &StoredCapture,
        findings: &[Finding],
    ) -> Result<Option<StoredCapture>, Error> {
        search.rungs += 1;
        self.to_come = 1 + search.to_come();
        search.tried.extend(step.set.iter().cloned());
        self.record.decide(&Decision::Try {
            step: Box::new(step.clone()),
        })?;
        let before = self.climbed.final_variant.clone();
        let after = before.with(&step.set);
        let mut rung = self.judge(step, &step.id, &step.title, &before, &after)?;
        let there = match rung.outcome {
            Outcome::Skipped => None,
            _ => self.capture_with(search, step, &after)?,
        };
        let change = self.change(step, here, there.as_ref());
        record_change(rung.asked.as_mut(), change.as_ref());
        let limit = self.client_limit(&mut rung, there.as_ref());
        let outcome = rung.outcome;
        self.finish(rung);
        if step.shared_lock && outcome != Outcome::Skipped {
            self.lock_left = outcome != Outcome::Kept;
        }
        if outcome == Outcome::Kept {
            self.keep(&step.id, after);
            return Ok(match there {
                Some(there) => Some(there),
                None => Some(self.capture(search, &self.climbed.final_variant.clone())?),
            });
        }
        if outcome == Outcome::Skipped {
            return Ok(None);
        }
        if let Some((capture, sentence)) = limit {
            return self.end_at_client(&capture, &sentence).map(|()| None);
        }
        let came = self.moved(step, here, there.as_ref(), findings);
        let partners = search.partners(step, &came, there.as_ref(), self);
        if partners.is_empty() || search.bundles == Auto::BUNDLES {
            self.not_kept.push(step.clone());
            return Ok(None);
        }
        search.bundles += 1;
        self.to_come = Auto::MEMBERS + search.to_come();
        self.together(search, step, &partners, here)
    }

    /// Tries `step` together with `partners`; returns the new current capture, if the bundle was kept.
    fn together(
        &mut self,
        search: &mut Search<'_>,
        step: &Step,
        partners: &[Step],
        here: &StoredCapture,
    ) -> Result<Option<StoredCapture>, Error> {
        let members: Vec<Step> = [step].into_iter().chain(partners).cloned().collect();
        for member in &members {
            search.tried.extend(member.set.iter().cloned());
        }
        self.record.decide(&Decision::Bundle {
            steps: members.clone(),
        })?;
        let ids: Vec<&str> = members.iter().map(|member| member.id.as_str()).collect();
        let bundle = Step {
            id: ids.join("+"),
            title: format!("{}, together with {}", step.title, ids[1..].join(", ")),
            set: members
                .iter()
                .flat_map(|member| member.set.iter().cloned())
                .collect(),
            shared_lock: members.iter().any(|member| member.shared_lock),
            ..step.clone()
        };
        let before = self.climbed.final_variant.clone();
        let with = before.with(&bundle.set);
        let mut rung = self.judge(&bundle, &bundle.id, &bundle.title, &before, &with)?;
        let there = match rung.outcome {
            Outcome::Skipped => None,
            _ => self.capture_with(search, &bundle, &with)?,
        };
        let change = self.change(step, here, there.as_ref());
        record_change(rung.asked.as_mut(), change.as_ref());
        let limit = self.client_limit(&mut rung, there.as_ref());
        let kept = rung.outcome == Outcome::Kept;
        self.finish(rung);
        if !kept {
            self.not_kept.extend(members);
            if let Some((capture, sentence)) = limit {
                self.end_at_client(&capture, &sentence)?;
            }
            return Ok(None);
        }
        self.keep(&bundle.id, with.clone());
        self.lock_left &= !bundle.shared_lock;
        // What is in force is no partner for later steps.
        self.not_kept
            .retain(|earlier| !members.iter().any(|member| member.set == earlier.set));
        if limit.is_some() {
            // Nothing can be judged against the generator's own limit, not even what the bundle could do without.
            return Ok(there);
        }
        // Partners were asked for because the first was in force; it is the condition of them all and stays.
        let mut now = with.clone();
        for partner in partners.iter().rev() {
            let rest = without(&now, partner, &before);
            if self.prune(partner, &bundle.id, &now, rest.clone())? {
                now = rest;
            }
        }
        if now == with
            && let Some(there) = there
        {
            return Ok(Some(there));
        }
        self.capture(search, &now).map(Some)
    }

    /// The capture and finding that show that the load generator was the limit with the change of `rung` in force. Its measurements do not
    /// judge the service then, unless the rate rose nevertheless.
    fn client_limit(
        &self,
        rung: &mut Rung,
        there: Option<&StoredCapture>,
    ) -> Option<(String, String)> {
        let there = there?;
        let findings = self.advice.findings(&there.capture);
        let limit = rungwise_rules::client_limit(&findings)?;
        if rung.outcome != Outcome::Kept {
            rung.outcome = Outcome::Inconclusive;
            rung.reason = format!("{}; but with the change, {}", rung.reason, limit.sentence);
        }
        Some((there.file.clone(), limit.sentence.clone()))
    }

    /// Ends the ladder.
    fn end_at_client(&mut self, capture: &str, sentence: &str) -> Result<(), Error> {
        self.record.decide(&Decision::ClientLimit {
            capture: capture.to_owned(),
            sentence: sentence.to_owned(),
        })?;
        self.climbed.could_not.push(format!(
            "further changes: {sentence}; give the generator more threads, dedicated CPUs or its own machine"
        ));
        self.climbed.client_limit = Some(sentence.to_owned());
        Ok(())
    }

    /// Captures the machine with a change in force. If that fails, the ladder continues without it.
    fn capture_with(
        &mut self,
        search: &mut Search<'_>,
        step: &Step,
        variant: &Variant,
    ) -> Result<Option<StoredCapture>, Error> {
        match self.capture(search, variant) {
            Ok(stored) => Ok(Some(stored)),
            Err(Error::Stage(StageError::ServiceFailed(why) | StageError::Unavailable(why))) => {
                let why = format!("capture with {}: {why}", step.title);
                self.climbed.could_not.push(why);
                Ok(None)
            }
            Err(other) => Err(other),
        }
    }

    /// Captures the machine while `variant` runs; returns an earlier session's capture where there is one.
    fn capture(
        &mut self,
        search: &mut Search<'_>,
        variant: &Variant,
    ) -> Result<StoredCapture, Error> {
        let index = search.captures;
        search.captures += 1;
        let capture = if let Some(earlier) = self.record.captured(index) {
            earlier
        } else {
            let seed = self.design.judging.seed.wrapping_add(index as u64);
            let capture = self.stage.capture(variant, search.auto.capture_s, seed)?;
            self.record.keep_capture(index, &capture)?;
            capture
        };
        Ok(StoredCapture {
            file: capture_file(index),
            capture,
        })
    }

    /// The findings of a capture, which decide from now on.
    fn judged(&mut self, stored: &StoredCapture) -> Result<Vec<Finding>, Error> {
        let findings = self.advice.findings(&stored.capture);
        self.record.decide(&Decision::Captured {
            capture: stored.file.clone(),
            findings: named(&findings),
        })?;
        Ok(findings)
    }

    /// Findings that replaced one that asked for `step`, if one of those disappeared with it.
    fn moved(
        &self,
        step: &Step,
        here: &StoredCapture,
        there: Option<&StoredCapture>,
        findings: &[Finding],
    ) -> Vec<Finding> {
        let Some(there) = there else {
            return Vec::new();
        };
        let asks = |finding: &&Finding| {
            let mut turns = finding.knobs.iter();
            turns.any(|turn| step.set.iter().any(|(setting, _)| setting.knob == turn.id))
        };
        findings
            .iter()
            .filter(asks)
            .map(|finding| {
                self.advice
                    .change(&finding.rule, &here.capture, &there.capture)
            })
            .find(|change| matches!(change.became, Became::Gone | Became::Weaker))
            .map_or_else(Vec::new, |change| change.came)
    }

    fn change(
        &self,
        step: &Step,
        here: &StoredCapture,
        there: Option<&StoredCapture>,
    ) -> Option<Change> {
        let rule = &step.asked.as_ref()?.rule;
        Some(self.advice.change(rule, &here.capture, &there?.capture))
    }
}

impl Search<'_> {
    /// Comparisons that may still follow what is judged now, at most: rungs, bundles with their checks, and the overall one.
    fn to_come(&self) -> usize {
        let bundles = Auto::BUNDLES - self.bundles;
        (self.auto.max_rungs - self.rungs) as usize + bundles as usize * Auto::MEMBERS + 1
    }

    /// The first wish of these findings that was not tried and does not hold.
    fn next(
        &mut self,
        findings: &[Finding],
        stored: &StoredCapture,
        now: &Variant,
    ) -> Option<Step> {
        for ask in findings
            .iter()
            .flat_map(|finding| asks(finding, &stored.file, self.auto))
        {
            match ask {
                Ask::Try(step) if self.is_new(&step, now) => return Some(step),
                Ask::Try(_) => {}
                Ask::Leave(step) => {
                    if !self.left.iter().any(|known| known.id == step.id) {
                        self.left.push(step);
                    }
                }
            }
        }
        None
    }

    fn is_new(&self, step: &Step, now: &Variant) -> bool {
        let untried = step
            .set
            .iter()
            .any(|(setting, value)| !self.tried.contains(&(setting.clone(), value.clone())));
        untried && now.with(&step.set) != *now
    }

    /// What is tried together with a step that was not kept: what that asks for which came with it; else what the same
    /// finding had asked for before, which alone was not kept either.
    fn partners(
        &self,
        step: &Step,
        came: &[Finding],
        there: Option<&StoredCapture>,
        climb: &Climb<'_>,
    ) -> Vec<Step> {
        let now = &climb.climbed.final_variant;
        let asked = there.into_iter().flat_map(|there| {
            let asks = move |finding| asks(finding, &there.file, self.auto);
            came.iter().flat_map(asks)
        });
        let asked = asked.filter_map(|ask| match ask {
            Ask::Try(partner) => Some(partner),
            Ask::Leave(_) => None,
        });
        let partners = adding_to(step, now, asked);
        if !partners.is_empty() {
            return partners;
        }
        let rule = step.asked.as_ref().map(|asked| &asked.rule);
        let same = |earlier: &&Step| earlier.asked.as_ref().map(|asked| &asked.rule) == rule;
        adding_to(step, now, climb.not_kept.iter().filter(same).cloned())
    }
}

/// The first of `candidates` that add something to `step`: what holds already adds nothing, and of two values of one
/// setting the second would only take the first away.
fn adding_to(step: &Step, now: &Variant, candidates: impl Iterator<Item = Step>) -> Vec<Step> {
    let mut partners: Vec<Step> = Vec::new();
    for candidate in candidates {
        let sets = |one: &Step| {
            let mut settings = one.set.iter().map(|(setting, _)| setting);
            settings.any(|setting| candidate.set.iter().any(|(own, _)| own == setting))
        };
        let taken = sets(step) || partners.iter().any(sets);
        if !taken && now.with(&candidate.set) != *now {
            partners.push(candidate);
        }
    }
    partners.truncate(Auto::MEMBERS - 1);
    partners
}

/// What a finding asks for, in its order.
fn asks(finding: &Finding, capture: &str, auto: &Auto) -> Vec<Ask> {
    finding
        .knobs
        .iter()
        .map(|turn| {
            let step = |value: &str, part: Part| Step {
                id: turn.id.clone(),
                title: if value.is_empty() {
                    turn.id.clone()
                } else {
                    format!("{} = {value}", turn.id)
                },
                part,
                set: if value.is_empty() {
                    Vec::new()
                } else {
                    vec![(server(&turn.id), value.to_owned())]
                },
                grid: None,
                bundle_with: Vec::new(),
                workload: Changes::NONE,
                workload_after: Changes::NONE,
                shared_lock: is_about_locks(&turn.id),
                label: None,
                reference: None,
                asked: Some(Asked {
                    rule: finding.rule.clone(),
                    subject: finding.subject.clone(),
                    sentence: finding.sentence.clone(),
                    capture: capture.to_owned(),
                    became: None,
                    came: Vec::new(),
                }),
            };
            match wish(turn, auto) {
                Ok(value) => Ask::Try(Step {
                    // The same knob may be asked for again, by another value.
                    id: format!("{}={value}", turn.id),
                    ..step(&value, Part::Step)
                }),
                Err(note) => Ask::Leave(step("", Part::Observe { note })),
            }
        })
        .collect()
}

/// The value to try, or why none is.
fn wish(turn: &Recommendation, auto: &Auto) -> Result<String, String> {
    if let Some(values) = auto.switches.get(&turn.id) {
        let mut others = values.iter().filter(|value| *value != OFF);
        return match (&turn.to, others.next(), others.next()) {
            (Some(wanted), ..) if values.contains(wanted) => Ok(wanted.clone()),
            (Some(wanted), ..) => Err(format!(
                "the scenario has no value '{wanted}' for this switch; add it to [service.switches]"
            )),
            // One way to switch it is no choice.
            (None, Some(only), None) => Ok(only.clone()),
            (None, ..) => Err("the finding leaves the value to you".to_owned()),
        };
    }
    let knob = rungwise_knobs::find(&turn.id).map_err(|error| error.to_string())?;
    if auto.java && knob.is_of_java() {
        return match &turn.to {
            Some(wanted) if knob.java_change(wanted).is_some() => Ok(wanted.clone()),
            Some(wanted) => Err(format!(
                "'{wanted}' is no value of this knob; write {}",
                knob.values
            )),
            None => Err("the finding leaves the value to you".to_owned()),
        };
    }
    if let Some(why) = not_in_a_run(knob) {
        return Err(why.to_owned());
    }
    match (knob.scope, knob.risk) {
        (Scope::Service, _) => {
            return Err(
                "this is a service switch; declare its arguments in [service.switches]".to_owned(),
            );
        }
        (Scope::Disk | Scope::Cgroup, _) => {
            return Err(format!(
                "this knob belongs to {}; a ladder does not change it; use `rungwise knob apply`",
                turn.device.as_deref().unwrap_or("a disk or control group")
            ));
        }
        (_, Risk::Reboot) => return Err("needs a reboot".to_owned()),
        // In a namespace of our own the lab alone is disturbed.
        (scope, Risk::Disruptive)
            if !auto.disruptive && (auto.on_this_host || scope == Scope::Host) =>
        {
            return Err(
                "may disrupt other services on this machine; set disruptive = true in [auto] to try it"
                    .to_owned(),
            );
        }
        _ => {}
    }
    if let (Scope::Device | Scope::Netns, Some(device)) = (knob.scope, &turn.device)
        && auto.device.as_ref() != Some(device)
    {
        return Err(format!(
            "recommended for {device}, but this ladder uses another device"
        ));
    }
    turn.to
        .clone()
        .ok_or_else(|| "the finding leaves the value to you".to_owned())
}

/// A rule that reads how threads contend for a lock asks for this knob, so the CPU cost alone cannot judge it.
fn is_about_locks(knob: &str) -> bool {
    rungwise_rules::RULES.iter().any(|rule| {
        rule.knobs.contains(&knob) && rule.needs.iter().any(|key| key.id.starts_with("lock."))
    })
}

fn server(knob: &str) -> Setting {
    Setting {
        knob: knob.to_owned(),
        side: Side::Server,
    }
}

/// `variant` with the settings of `member` as they were before.
fn without(variant: &Variant, member: &Step, before: &Variant) -> Variant {
    let mut rest = variant.clone();
    for (setting, _) in &member.set {
        match before.settings.get(setting) {
            Some(value) => rest.settings.insert(setting.clone(), value.clone()),
            None => rest.settings.remove(setting),
        };
    }
    rest
}

fn named(findings: &[Finding]) -> Vec<(String, String)> {
    findings
        .iter()
        .map(|finding| (finding.rule.clone(), finding.sentence.clone()))
        .collect()
}

fn record_change(asked: Option<&mut Asked>, change: Option<&Change>) {
    if let (Some(asked), Some(change)) = (asked, change) {
        asked.became = Some(change.became);
        asked.came = named(&change.came);
    }
}
