//! What changing a knob did: the evidence before the change against the evidence after it.
//!
//! A finding asked for the change, so the finding's own number shows whether it worked. It may have worked and
//! moved the bottleneck: on the reference ladder steering alone cut 270,000 transactions/s to 17,000, because
//! the packets then contended for one socket, and both changes together reached 2,540,000. So new findings are
//! checked as well; they name the partner of a bundle.

use rungwise_model::check::{Finding, Grade, Lack, Outcome};
use rungwise_model::evidence::{Absence, Evidence, Missing, Quantity, Subject};
use rungwise_model::evidence_text::number_of;

use crate::measure::{Measure, Worse};
use crate::{Doc, RULES, Rule, Threshold};

const NOISE: Threshold = Threshold {
    name: "smallest difference that counts, as a share of the value before, where the values within the window are unknown",
    value: 0.1,
    origin: "own guess; where the parts of the window are known, their spread is used instead",
};

const SHORT: Threshold = Threshold {
    name: "window length in seconds, below which an unchanged number proves little",
    value: 5.0,
    origin: "own guess: half of the usual window; pages, queues and caches change within seconds",
};

/// A comparison of two captures.
#[derive(Debug)]
pub struct Change {
    /// Names what went wrong; never changes once published.
    pub id: &'static str,
    /// One line.
    pub summary: &'static str,
    /// Its thresholds.
    pub thresholds: &'static [Threshold],
    /// Its page.
    pub doc: Doc,
}

/// The bottleneck was moved and not removed.
static MOVED: Change = Change {
    id: "bottleneck-moved",
    summary: "a change fixed one finding and caused another",
    thresholds: &[NOISE],
    doc: Doc {
        looks_for: "The finding that asked for the change is gone or eased, and another one is new or worse.",
        hurts: "Judged alone, the change looks like a loss and is reverted, and the ladder stops below a rung that was right.",
        todo: "Try the change together with the knob that the new finding recommends, and judge the two as one (a bundle \
            of at most three). On the UDP ladder this is steering together with SO_REUSEPORT.",
        wrong: "This is expected on a ladder: each rung exposes the next limit. A finding that lacked evidence before \
            looks new; only rules that were clear before count.",
        sources: "The reference ladder (20 cores, 82599ES, Linux 4.6.3): steering alone x0.06, with SO_REUSEPORT x9.4.",
    },
};

/// The knob was changed and its finding was not.
static NO_EFFECT: Change = Change {
    id: "knob-no-effect",
    summary: "a knob was changed, but the evidence that asked for it stayed the same",
    thresholds: &[NOISE, SHORT],
    doc: Doc {
        looks_for: "The finding that asked for the change is still there, and its number differs from before by no more than \
            it varied within the windows.",
        hurts: "A setting that does nothing is one more thing to explain, to carry to the next kernel and to suspect.",
        todo: "Revert it. This load does not depend on the knob.",
        wrong: "The window is too short (confidence is then low), the load differed, or the setting takes effect later: interrupts move with the \
            next interrupt, memory with the next allocation, some settings with a restart.",
        sources: "The reference bank host: four of the five remedies tried had no effect (steering, kernel command line, \
            G1, disk queue).",
    },
};

/// All comparisons of two captures, sorted by id.
pub static CHANGES: &[&Change] = &[&MOVED, &NO_EFFECT];

/// What became of a rule's findings.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Course {
    /// Found before, clear after.
    Gone,
    /// Found in both, by a number that got better.
    Eased,
    /// Found in both, by about the same number.
    Same,
    /// Found in both, by a number that got worse.
    Worse,
    /// Clear before, found after.
    Come,
    /// Undecided in one of the two captures.
    Unknown,
}

/// One rule in both captures.
#[derive(Clone, Debug)]
pub struct RuleChange {
    /// The rule.
    pub rule: &'static str,
    /// What became of it.
    pub course: Course,
    /// Its most severe finding before.
    pub before: Finding,
    /// Its most severe finding after.
    pub after: Finding,
    /// Its number before and after as text, if it has one.
    pub numbers: Option<(String, String)>,
}

impl RuleChange {
    /// It is new or worse, and a knob applies: a machine that is merely busier has no new bottleneck.
    pub fn in_its_place(&self) -> bool {
        matches!(self.course, Course::Come | Course::Worse) && !self.after.knobs.is_empty()
    }
}

/// Every rule that found something in one of the two captures, in order of the rules.
pub fn changed(before: &Evidence, after: &Evidence) -> Vec<RuleChange> {
    RULES
        .iter()
        .filter_map(|rule| step(rule, before, after))
        .collect()
}

/// What the change that the rule `asked` for did: one row of `knob-no-effect`, then one of `bottleneck-moved`.
pub fn judge(asked: &Rule, before: &Evidence, after: &Evidence) -> Vec<Finding> {
    let steps = changed(before, after);
    let step = steps.iter().find(|step| step.rule == asked.id);
    let window = before.seconds().min(after.seconds());
    let mut findings = [
        step.map_or_else(|| never_found(asked), |step| no_effect(step, window)),
        step.map_or_else(|| never_found(asked), |step| moved(step, &steps)),
    ];
    for (finding, rule) in findings.iter_mut().zip([&NO_EFFECT, &MOVED]) {
        rule.id.clone_into(&mut finding.rule);
    }
    findings.into()
}

fn step(rule: &'static Rule, before: &Evidence, after: &Evidence) -> Option<RuleChange> {
    let (was, is) = (severest(rule, before)?, severest(rule, after)?);
    if !found(&was) && !found(&is) {
        return None;
    }
    let measure = rule.measure;
    let subject = if found(&was) {
        &was.subject
    } else {
        &is.subject
    };
    let numbers = measure.and_then(|measure| {
        let numbers = (
            measure.read(before, subject)?,
            measure.read(after, subject)?,
        );
        Some((measure, numbers))
    });
    let course = match (was.outcome, is.outcome) {
        (Outcome::Undecided, _) | (_, Outcome::Undecided) => Course::Unknown,
        (Outcome::Clear, _) => Course::Come,
        (_, Outcome::Clear) => Course::Gone,
        _ => match numbers {
            Some((measure, (was, is))) => compare(measure, was, is),
            None => by_outcome(&was, &is),
        },
    };
    let words = |quantity: Quantity<'_>| number_of(quantity.reading.key.unit, quantity.value);
    Some(RuleChange {
        rule: rule.id,
        course,
        before: was,
        after: is,
        numbers: numbers.map(|(_, (was, is))| (words(was), words(is))),
    })
}

/// The most important finding: act before watch, then by severity.
fn severest(rule: &Rule, evidence: &Evidence) -> Option<Finding> {
    rule.findings(evidence)
        .into_iter()
        .min_by_key(|finding| (finding.outcome, std::cmp::Reverse(finding.severity)))
}

fn found(finding: &Finding) -> bool {
    matches!(finding.outcome, Outcome::Act | Outcome::Watch)
}

/// Compares two numbers; a difference within the spread of either window counts as none.
fn compare(measure: Measure, was: Quantity<'_>, is: Quantity<'_>) -> Course {
    let noise = [was, is]
        .iter()
        .filter_map(spread)
        .reduce(f64::max)
        .unwrap_or(was.value.abs() * NOISE.value);
    let grown = match measure.worse {
        Worse::More => is.value - was.value,
        Worse::Less => was.value - is.value,
    };
    if grown > noise {
        Course::Worse
    } else if grown < -noise {
        Course::Eased
    } else {
        Course::Same
    }
}

/// Largest minus smallest part of the window; `None` if the window has one reading.
fn spread(quantity: &Quantity<'_>) -> Option<f64> {
    let parts = || quantity.reading.series.iter().copied();
    let (least, most) = (parts().reduce(f64::min)?, parts().reduce(f64::max)?);
    (quantity.reading.series.len() > 1).then_some(most - least)
}

fn by_outcome(was: &Finding, is: &Finding) -> Course {
    let weight = |finding: &Finding| (std::cmp::Reverse(finding.outcome), finding.severity);
    match weight(is).cmp(&weight(was)) {
        std::cmp::Ordering::Less => Course::Eased,
        std::cmp::Ordering::Equal => Course::Same,
        std::cmp::Ordering::Greater => Course::Worse,
    }
}

/// `window`: the shorter of the two windows, in seconds.
fn no_effect(step: &RuleChange, window: f64) -> Finding {
    let numbers = step.numbers.as_ref().map_or_else(String::new, |(was, is)| {
        format!(" ({was} before, {is} after)")
    });
    match step.course {
        Course::Unknown => undecided(step),
        Course::Gone => Finding::clear(format!("{} is gone{numbers}", step.rule)),
        Course::Eased => Finding::clear(format!("{} remains but eased{numbers}", step.rule)),
        Course::Come => Finding::clear(format!("{} was not found before", step.rule)),
        Course::Same | Course::Worse => {
            let (verb, todo, sure) = match step.course {
                Course::Same if window < SHORT.value => (
                    "did not move",
                    format!(
                        " in windows of {window:.0} s: measure longer before you revert the change"
                    ),
                    Grade::Low,
                ),
                course => (
                    if course == Course::Same {
                        "did not move"
                    } else {
                        "got worse"
                    },
                    ": revert the change".to_owned(),
                    if step.numbers.is_some() {
                        Grade::High
                    } else {
                        Grade::Medium
                    },
                ),
            };
            let sentence = format!("{} {verb}{numbers}{todo}", step.rule);
            cite_both(Finding::watch(&subject(step), sentence), step)
                .confidence(sure)
                .refuted_by(
                    "the number changes in a longer window under the same load, or after a restart",
                )
        }
    }
}

fn moved(asked: &RuleChange, steps: &[RuleChange]) -> Finding {
    if asked.course == Course::Unknown {
        return undecided(asked);
    }
    let worked = matches!(asked.course, Course::Gone | Course::Eased);
    let come = steps
        .iter()
        .filter(|step| step.rule != asked.rule && step.in_its_place())
        .filter(|step| step.after.outcome == Outcome::Act)
        .max_by_key(|step| (step.after.severity, step.after.confidence));
    match come.filter(|_| worked) {
        None => Finding::clear(format!("no new finding in place of {}", asked.rule)),
        Some(come) => {
            let went = if asked.course == Course::Gone {
                "is gone"
            } else {
                "eased"
            };
            let came = if come.course == Course::Come {
                "is new"
            } else {
                "got worse"
            };
            let sentence = format!(
                "{} {went} and {} {came} ({}): try both changes together before judging the first",
                asked.rule, come.rule, come.after.sentence
            );
            let mut finding = cite_both(Finding::watch(&subject(come), sentence), come);
            finding.knobs.clone_from(&come.after.knobs);
            finding
                .severity(come.after.severity)
                .confidence(come.after.confidence)
                .refuted_by("the new finding appears without the change as well")
        }
    }
}

fn subject(step: &RuleChange) -> Subject {
    step.after
        .subject
        .parse()
        .unwrap_or_else(|_| Subject::host())
}

/// The raw lines of both captures.
fn cite_both(mut finding: Finding, step: &RuleChange) -> Finding {
    let lines = step.before.evidence.iter().chain(&step.after.evidence);
    finding.evidence.extend(lines.cloned());
    finding
}

/// One of the two captures lacks what the rule needs.
fn undecided(step: &RuleChange) -> Finding {
    let lacks = step.before.missing.iter().chain(&step.after.missing);
    Finding::undecided(lacks.cloned().collect())
}

/// Nothing to compare: the rule found nothing in either capture.
fn never_found(asked: &Rule) -> Finding {
    Finding::undecided(vec![Lack::from(Missing {
        key: asked.needs.first().map_or("", |key| key.id),
        subject: Subject::host(),
        why: Absence::because(format!("{} found nothing in either capture", asked.id)),
    })])
}
