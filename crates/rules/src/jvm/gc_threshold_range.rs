//! `gc-threshold-range`: a tenuring threshold that no age can reach.
//!
//! The age of an object has four bits, so 15 is the oldest. JDK 7 accepts any larger value and never reaches it: survivors
//! are copied until they overflow. JDK 8 exits with an error; from JDK 9 on 16 is accepted and means "never".

use rungwise_model::check::{Finding, Grade};
use rungwise_model::evidence::{Evidence, Missing};
use rungwise_model::keys;

use super::options::Goal;
use super::run::{JDK, OPTIONS, Run, each};
use crate::rule::needs;
use crate::{Doc, Judgement, Measure, Rule, Threshold};

const OLDEST: Threshold = Threshold {
    name: "tenuring threshold",
    value: 15.0,
    origin: "HotSpot markOop.hpp and markWord.hpp: four bits of age",
};

pub(crate) static RULE: Rule = Rule {
    id: "gc-threshold-range",
    topic: "jvm",
    summary: "a tenuring threshold that no age can reach",
    needs: needs!([&keys::GC_AGE_THRESHOLD_MAX], JDK),
    thresholds: &[OLDEST],
    knobs: &[OPTIONS],
    measure: Some(Measure::more(&keys::GC_AGE_THRESHOLD_MAX)),
    doc: Doc {
        looks_for: "-XX:MaxTenuringThreshold above 15 in the options in the log, or such a maximum in its age tables.",
        hurts: "Nothing is promoted by age: survivors are copied in each young collection until they overflow. In the reference case 30 \
            tripled the young pauses to 0.2 s.",
        todo: "-XX:MaxTenuringThreshold=15 instead of more than 16, with any collector that has ages (Serial, Parallel, CMS, G1). JDK 7 takes a larger \
            value as \"never\", JDK 8 refuses to start with it, later releases accept only 16: a command line with it does not survive the \
            move to JDK 8.",
        wrong: "16 can be intended, for a service whose objects all die young; from JDK 9 on it means \"never\", so the rule only watches and \
            recommends no option: 15 did not halve what a planted service copies.",
        sources: "The reference case of long connections; HotSpot markWord.hpp (age_bits = 4).",
    },
    judge,
};

fn judge(evidence: &Evidence) -> Judgement {
    each(evidence, &keys::GC_AGE_THRESHOLD_MAX, of_run)
}

fn of_run(run: &Run<'_>) -> Result<Finding, Missing> {
    if let Some(clear) = run.copies_beside() {
        return Ok(clear);
    }
    let flags = run.words(&keys::GC_FLAGS);
    let given = flags.and_then(|flags| {
        let mut options = flags.value.split_whitespace();
        let value = options.find_map(|option| option.strip_prefix("-XX:MaxTenuringThreshold="))?;
        value.parse::<f64>().ok()
    });
    let (threshold, reading) = if let (Some(given), Some(flags)) = (given, flags) {
        (given, flags.reading)
    } else {
        let roof = run.number(&keys::GC_AGE_THRESHOLD_MAX)?;
        (roof.value, roof.reading)
    };
    if threshold <= OLDEST.value {
        let sentence = format!("a tenuring threshold of {threshold:.0} fits an object's age");
        return Ok(Finding::clear(sentence).cite(reading));
    }
    let sentence = format!(
        "a tenuring threshold of {threshold:.0} is above 15, the oldest age that an object can have"
    );
    let never = threshold == OLDEST.value + 1.0 && run.release().is_none_or(|release| release > 8);
    let finding = if never {
        run.watch(format!("{sentence}: \"never\", which may be intended"))
            .confidence(Grade::Low)
    } else {
        run.act(sentence).confidence(Grade::High)
    };
    let finding = finding
        .severity(Grade::Medium)
        .refuted_by("the oldest age of the age tables is empty")
        .cite(reading);
    // With 15 instead of 16 a planted service copied 0.57 to 0.95 as much (JDK 17 and 21).
    if never {
        return Ok(finding);
    }
    let finding = finding.expect("survivors are copied at most fifteen times; in the reference case young pauses fell by half");
    Ok(run.lower(finding, Goal::PromoteAt(OLDEST.value as u32)))
}
