//! Findings as cards. Where a rule reports many subjects, the card shows the first and lists the others below it.

use rungwise_model::check::{CheckReport, Estimate, Finding, Grade, Outcome, Recommendation};

use crate::block::{Card, Mark, Tone, Turning};
use crate::numbers;

pub(super) fn by_outcome(report: &CheckReport, outcome: Outcome) -> Vec<Card> {
    let mut cards: Vec<Card> = Vec::new();
    for finding in super::findings_with(report, outcome) {
        let card = card(finding);
        match cards.iter_mut().find(|known| known.rule == card.rule) {
            Some(first) => first.also.push(card),
            None => cards.push(card),
        }
    }
    cards
}

fn card(finding: &Finding) -> Card {
    let act = finding.outcome == Outcome::Act;
    let mark = match (act, finding.severity) {
        (true, Grade::High) => ("✗", "high", Tone::Bad),
        (true, Grade::Medium) => ("✗", "medium", Tone::Bad),
        (true, Grade::Low) => ("✗", "low", Tone::Doubt),
        (false, _) => ("•", "watch", Tone::Quiet),
    };
    let estimate = finding
        .estimate
        .as_ref()
        .map_or_else(String::new, estimated);
    Card {
        mark: Mark {
            symbol: mark.0,
            word: mark.1,
            tone: mark.2,
        },
        sentence: finding.sentence.clone(),
        rule: finding.rule.clone(),
        tags: vec![
            finding.subject.clone(),
            format!("{} severity", grade(finding.severity)),
            format!("{} confidence", grade(finding.confidence)),
        ],
        estimate,
        notes: notes(finding),
        turns: finding.knobs.iter().map(turning).collect(),
        evidence: finding
            .evidence
            .iter()
            .map(|line| format!("{}: {}", line.source, line.line))
            .collect(),
        refuted_by: finding.refuted_by.clone(),
        explain: format!("rungwise explain {}", finding.rule),
        also: Vec::new(),
        short: !act,
    }
}

fn notes(finding: &Finding) -> Vec<String> {
    [
        ("expected", &finding.expected),
        ("newer releases", &finding.newer),
    ]
    .into_iter()
    .filter(|(_, text)| !text.is_empty())
    .map(|(lead, text)| format!("{lead}: {text}"))
    .collect()
}

fn estimated(estimate: &Estimate) -> String {
    // From a doubling on, people think in factors.
    let shown = |gain: f64| match gain {
        gain if estimate.high >= 1.0 => numbers::factor(1.0 + gain),
        gain if gain.abs() < 5e-4 => "no change".to_owned(),
        gain => numbers::change(gain),
    };
    format!(
        "estimate, not measured: {} to {}; {}; estimates do not add up",
        shown(estimate.low),
        shown(estimate.high),
        estimate.basis
    )
}

pub(crate) fn grade(grade: Grade) -> &'static str {
    match grade {
        Grade::Low => "low",
        Grade::Medium => "medium",
        Grade::High => "high",
    }
}

fn turning(turn: &Recommendation) -> Turning {
    let knob = match &turn.device {
        Some(device) => format!("{} of {device}", turn.id),
        None => turn.id.clone(),
    };
    let from = match &turn.from {
        Some(from) => format!("now {}", once(from)),
        None => "current value unknown".to_owned(),
    };
    Turning {
        knob,
        from,
        to: turn
            .to
            .clone()
            .unwrap_or_else(|| "for you to choose".to_owned()),
        command: option(turn).or_else(|| command(turn)).unwrap_or_default(),
    }
}

/// Twenty queues with the same value are shown once.
fn once(from: &str) -> String {
    let words: Vec<&str> = from.split_whitespace().collect();
    match words.as_slice() {
        [first, rest @ ..] if !rest.is_empty() && rest.iter().all(|word| word == first) => {
            format!("{first}, {} times", words.len())
        }
        _ => from.to_owned(),
    }
}

/// What to write in the place of an option of a JVM (`-Xmx`), which is no knob of this host.
fn option(turn: &Recommendation) -> Option<String> {
    turn.to.clone().filter(|_| turn.id.starts_with('-'))
}

/// What shows the change without making it; an option of a JVM is not changed by us.
pub(crate) fn command(turn: &Recommendation) -> Option<String> {
    if turn.id.starts_with('-') {
        return None;
    }
    let wish = quoted(&format!("{}={}", turn.id, turn.to.as_ref()?));
    Some(match &turn.device {
        Some(device) => format!("rungwise knob plan {wish} --device {}", quoted(device)),
        None => format!("rungwise knob plan {wish}"),
    })
}

/// A word as a POSIX shell takes it for one.
fn quoted(word: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_.,:/=@%+".contains(c);
    if !word.is_empty() && word.chars().all(plain) {
        word.to_owned()
    } else {
        format!("'{}'", word.replace('\'', r"'\''"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn queues_that_stand_alike_are_reported_once() {
        assert_eq!(once("0-4 0-4 0-4"), "0-4, 3 times");
        assert_eq!(once("0-4 5"), "0-4 5");
        assert_eq!(once("on"), "on");
    }

    #[test]
    fn a_large_gain_is_reported_as_a_factor() {
        let estimate = |low, high| {
            let basis = "the reference case".to_owned();
            estimated(&Estimate { low, high, basis })
        };
        assert!(estimate(0.0, 148.0).contains("×1.00 to ×149"));
        assert!(estimate(0.02, 0.11).contains("+2.0"));
    }

    #[test]
    fn an_option_of_a_jvm_is_written_and_no_knob_is_planned() {
        let turn = Recommendation {
            id: "-Xmx".to_owned(),
            device: None,
            from: Some("-Xmx32g".to_owned()),
            to: Some("-Xmx31g".to_owned()),
        };
        assert_eq!(turning(&turn).command, "-Xmx31g");
        assert_eq!(command(&turn), None);
    }

    #[test]
    fn a_wish_reaches_the_shell_as_one_word() {
        let turn = |to: &str| Recommendation {
            id: "net.rps_cpus".to_owned(),
            device: Some("eth0".to_owned()),
            from: None,
            to: Some(to.to_owned()),
        };
        assert_eq!(
            command(&turn("0-3")).unwrap(),
            "rungwise knob plan net.rps_cpus=0-3 --device eth0"
        );
        assert_eq!(
            command(&turn("a b; c'd")).unwrap(),
            r"rungwise knob plan 'net.rps_cpus=a b; c'\''d' --device eth0"
        );
    }
}
