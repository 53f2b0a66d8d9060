//! The score of a trial: how much the fault hurt by other means, and whether the reader named its cause.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::subjects::Subjects;

/// Characters of a sentence that the first line of a page surely has.
const WORDS: usize = 40;

/// What the load saw.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Seen {
    /// Good replies per second.
    pub rate: f64,
    /// Share of requests that failed or got no reply in time.
    pub errors: f64,
    /// Half of the good replies came within, from the intended start.
    pub p50_ms: f64,
    /// 99 of 100 of them.
    pub p99_ms: f64,
}

impl Seen {
    /// A load that fails already, by a second fault, shows no harm of another one.
    pub fn fails(&self) -> bool {
        self.errors >= 0.5
    }
}

/// How much a fault hurt.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Harm {
    /// Below 5 % of the rate, and p99 below 1.5 times what it was.
    Harmless,
    /// In between.
    Weak,
    /// A fifth of the rate is lost or fails, or p99 is five times what it was.
    Hurts,
}

impl Harm {
    /// Its name in tables.
    pub fn name(self) -> &'static str {
        match self {
            Self::Harmless => "harmless",
            Self::Weak => "weak",
            Self::Hurts => "hurts",
        }
    }

    /// Of a load that saw `without` the fault and `with` it. A p99 counts as hurt once it is 5 ms longer than before: below that, what
    /// else a machine of two CPUs does, the reader itself included, makes as much (one time slice of the scheduler is 3 ms).
    pub fn between(without: &Seen, with: &Seen) -> Self {
        let lost = lost(without, with);
        let longer = with.p99_ms - without.p99_ms;
        // A load that got no reply at all has no p99.
        let ratio = if with.rate == 0.0 {
            f64::INFINITY
        } else {
            with.p99_ms / without.p99_ms
        };
        if lost >= 0.2 || longer > 5.0 && ratio >= 5.0 {
            Self::Hurts
        } else if lost >= 0.05 || longer > 1.0 && ratio >= 1.5 {
            Self::Weak
        } else {
            Self::Harmless
        }
    }
}

/// Share of the rate that is lost, or of requests that fail, whichever is more.
pub fn lost(without: &Seen, with: &Seen) -> f64 {
    let rate = if without.rate > 0.0 {
        1.0 - with.rate / without.rate
    } else {
        0.0
    };
    rate.max(with.errors - without.errors).clamp(0.0, 1.0)
}

/// The score of the reader on a trial.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Score {
    /// It hurts, and the first finding to act on names the cause.
    First,
    /// It hurts, and a later finding to act on names it.
    Named,
    /// It hurts, nothing is to be acted on, and the headline names the cause as something to watch.
    Watched,
    /// It hurts, and the findings to act on that name it accuse another process, port, device, mount or group.
    WrongSubject,
    /// It hurts, neither a finding to act on nor the headline names it, and the verdict is no tick.
    Missed,
    /// It hurts, and the verdict is a tick.
    Denied,
    /// It does not hurt, and nothing is to be acted on.
    Quiet,
    /// It does not hurt, and something is to be acted on.
    FalseAct,
    /// It hurts a little: what is said is right either way.
    Weak,
    /// No judgement: the fault was not confirmed, or the machine was not as fast without it before as after.
    Void,
}

impl Score {
    /// All, in the order of the tables.
    pub const ALL: [Self; 10] = [
        Self::First,
        Self::Named,
        Self::Watched,
        Self::WrongSubject,
        Self::Missed,
        Self::Denied,
        Self::Quiet,
        Self::FalseAct,
        Self::Weak,
        Self::Void,
    ];

    /// Its name in tables.
    pub fn name(self) -> &'static str {
        match self {
            Self::First => "first",
            Self::Named => "named",
            Self::Watched => "watched",
            Self::WrongSubject => "wrong subject",
            Self::Missed => "missed",
            Self::Denied => "denied",
            Self::Quiet => "quiet",
            Self::FalseAct => "false act",
            Self::Weak => "weak",
            Self::Void => "void",
        }
    }

    /// Of what was said about a fault that hurt so, and beside it a second one that hurt so by itself. A second fault is a fault as well:
    /// what names it may stand before the first one, but it does not stand for it.
    pub fn rate(harm: Harm, second: Harm, expects: &Expects, said: &Said) -> Self {
        let is_own = |act: &Claim| expects.is_own(act) && !act.is_elsewhere;
        let is_true = |act: &Claim| second > Harm::Harmless && expects.is_second(act);
        let place = said.acts.iter().position(is_own);
        match harm {
            Harm::Weak => Self::Weak,
            Harm::Harmless if said.acts.iter().all(is_true) => Self::Quiet,
            Harm::Harmless => Self::FalseAct,
            Harm::Hurts => match place {
                Some(place) if said.acts[..place].iter().all(|act| expects.is_second(act)) => {
                    Self::First
                }
                Some(_) => Self::Named,
                None if said.acts.iter().any(|act| expects.is_own(act)) => Self::WrongSubject,
                None if said.tick => Self::Denied,
                None if said.headline.as_ref().is_some_and(is_own) => Self::Watched,
                None => Self::Missed,
            },
        }
    }
}

/// Rules that name what a trial planted: `rule`, or `rule: words` of a rule that names several causes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Expects {
    /// Of the planted kind.
    pub own: Vec<String>,
    /// Of the second fault beside it.
    pub second: Vec<String>,
}

impl Expects {
    /// A finding names the planted kind, be it of the right subject or not.
    pub fn is_own(&self, claim: &Claim) -> bool {
        self.own.iter().any(|expected| claim.is(expected))
    }

    /// Rules that act beside the one that names the cause, and neither name a planted fault of the right subject nor follow from one.
    pub fn beside(&self, acts: &[Claim]) -> Vec<String> {
        let planted = self.own.iter().chain(&self.second);
        let follow: BTreeSet<&str> = planted
            .flat_map(|expected| rungwise_rules::consequences(rule_of(expected)))
            .collect();
        let is_planted = |act: &&Claim| {
            let named = self.is_own(act) || self.is_second(act);
            named && !act.is_elsewhere || follow.contains(act.rule.as_str())
        };
        let beside = acts.iter().filter(|act| !is_planted(act));
        let beside: BTreeSet<&str> = beside.map(|act| act.rule.as_str()).collect();
        beside.into_iter().map(str::to_owned).collect()
    }

    /// A finding names the second fault.
    pub fn is_second(&self, claim: &Claim) -> bool {
        self.second.iter().any(|expected| claim.is(expected))
    }
}

/// A finding, as far as it is scored.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Claim {
    /// Its rule.
    pub rule: String,
    /// Its sentence.
    pub sentence: String,
    /// Its subject is not what was planted.
    pub is_elsewhere: bool,
}

impl Claim {
    /// It is what is expected: `rule` or `rule: words`.
    fn is(&self, expected: &str) -> bool {
        match expected.split_once(": ") {
            Some((of, words)) => of == self.rule && self.sentence.contains(words),
            None => expected == self.rule,
        }
    }
}

/// The rule of an expectation.
pub fn rule_of(expected: &str) -> &str {
    expected.split(": ").next().unwrap_or(expected)
}

/// What a reader said.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Said {
    /// Findings to act on, first things first.
    pub acts: Vec<Claim>,
    /// Those to watch.
    pub watches: Vec<Claim>,
    /// The verdict is a tick: `✓`.
    pub tick: bool,
    /// The finding to watch that the verdict begins with, where nothing is to be acted on.
    pub headline: Option<Claim>,
    /// The first sentence, act before watch.
    pub first: String,
}

impl Said {
    /// Of a document of `check`, `jvm gc` or `jvm threads`, and of the first line of its page: what a user sees decides whether it is a tick.
    /// `subjects` is what was planted, where it is known.
    pub fn from_document(document: &Value, verdict: &str, subjects: Option<&Subjects>) -> Self {
        let findings = document["findings"].as_array();
        let with = |outcome: &str| {
            let all = findings.into_iter().flatten();
            let text = |value: &Value| value.as_str().map(str::to_owned);
            all.filter(|finding| finding["outcome"] == outcome)
                .filter_map(|finding| {
                    let rule = text(&finding["rule"])?;
                    let subject = finding["subject"].as_str().unwrap_or("host");
                    let is_elsewhere =
                        subjects.is_some_and(|subjects| !subjects.include(&rule, subject));
                    Some(Claim {
                        rule,
                        sentence: text(&finding["sentence"]).unwrap_or_default(),
                        is_elsewhere,
                    })
                })
                .collect::<Vec<Claim>>()
        };
        let (acts, watches) = (with("act"), with("watch"));
        let begins = verdict.split_once(": ").map_or("", |(_, text)| text);
        let names = |claim: &&Claim| {
            let words: String = claim.sentence.chars().take(WORDS).collect();
            !words.is_empty() && begins.starts_with(&words)
        };
        let headline = watches.iter().find(names).filter(|_| acts.is_empty());
        let headline = headline.cloned();
        let first = acts.first().or(watches.first());
        let first = first.map(|claim| format!("{}: {}", claim.rule, claim.sentence));
        Self {
            acts,
            watches,
            tick: is_tick(verdict),
            headline,
            first: first.unwrap_or_else(|| "nothing".to_owned()),
        }
    }
}

/// Whether the first line of a page says that nothing is wrong.
pub fn is_tick(verdict: &str) -> bool {
    verdict.trim_start().starts_with('✓')
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn seen(rate: f64, errors: f64, p99_ms: f64) -> Seen {
        Seen {
            rate,
            errors,
            p50_ms: 0.2,
            p99_ms,
        }
    }

    #[test]
    fn harm_is_lost_rate_failed_requests_or_a_long_tail() {
        let without = seen(1000.0, 0.0, 2.0);
        let harm = |with| Harm::between(&without, &with);
        assert_eq!(harm(seen(960.0, 0.0, 2.9)), Harm::Harmless);
        assert_eq!(harm(seen(940.0, 0.0, 2.0)), Harm::Weak);
        assert_eq!(harm(seen(1000.0, 0.0, 3.2)), Harm::Weak);
        assert_eq!(harm(seen(790.0, 0.0, 2.0)), Harm::Hurts);
        assert_eq!(harm(seen(1000.0, 0.25, 2.0)), Harm::Hurts);
        assert_eq!(harm(seen(1000.0, 0.0, 6.9)), Harm::Weak);
        assert_eq!(harm(seen(1000.0, 0.0, 10.1)), Harm::Hurts);
        assert_eq!(harm(seen(0.0, 1.0, 0.0)), Harm::Hurts);
    }

    #[test]
    fn a_tail_that_is_many_times_longer_but_below_a_millisecond_is_no_harm() {
        let harm = Harm::between(&seen(1000.0, 0.0, 0.2), &seen(1000.0, 0.0, 1.1));
        assert_eq!(harm, Harm::Harmless);
    }

    fn said(findings: &[(&str, &str)], verdict: &str) -> Said {
        let findings: Vec<Value> = findings
            .iter()
            .map(|(rule, outcome)| json!({"rule": rule, "outcome": outcome, "sentence": "s"}))
            .collect();
        Said::from_document(&json!({"findings": findings}), verdict, None)
    }

    #[test]
    fn a_rule_of_several_causes_names_one_by_its_words() {
        let expects = expects(&["gc-live-growth: too small"], &[]);
        let score = |sentence: &str| {
            let findings =
                json!([{"rule": "gc-live-growth", "outcome": "act", "sentence": sentence}]);
            Score::rate(
                Harm::Hurts,
                Harm::Harmless,
                &expects,
                &Said::from_document(&json!({"findings": findings}), "", None),
            )
        };
        assert_eq!(score("the heap is too small"), Score::First);
        assert_eq!(score("a leak"), Score::Missed);
    }

    fn expects(own: &[&str], second: &[&str]) -> Expects {
        let owned = |rules: &[&str]| rules.iter().map(|&rule| rule.to_owned()).collect();
        Expects {
            own: owned(own),
            second: owned(second),
        }
    }

    #[test]
    fn a_cause_is_first_later_watched_missed_or_denied() {
        let expects = expects(&["cfs-throttled"], &[]);
        let score = |harm, said| Score::rate(harm, Harm::Harmless, &expects, &said);
        let first = said(
            &[("cfs-throttled", "act"), ("other", "act")],
            "✗ act: it is",
        );
        let later = said(
            &[("other", "act"), ("cfs-throttled", "act")],
            "✗ act: it is",
        );
        let watched = |verdict: &str| {
            let watch = |rule: &str, sentence: &str| json!({"rule": rule, "outcome": "watch", "sentence": sentence});
            let findings = [
                watch("noise-gate", "the machine is not quiet"),
                watch("cfs-throttled", "the group is throttled"),
            ];
            Said::from_document(&json!({"findings": findings}), verdict, None)
        };
        let wrong = said(&[("other", "act"), ("cfs-throttled", "clear")], "✗ act: no");
        let unseen = said(&[], "? incomplete: 1 resource");
        let tick = said(
            &[("cfs-throttled", "watch")],
            "✓ nothing to act on: 9 rules",
        );
        assert_eq!(score(Harm::Hurts, first.clone()), Score::First);
        assert_eq!(score(Harm::Hurts, later), Score::Named);
        for (verdict, expected) in [
            ("• watch: the group is throttled; 9 rules", Score::Watched),
            (
                "! saturated: the group is throttled; no rule",
                Score::Watched,
            ),
            ("• watch: the machine is not quiet; 9 rules", Score::Missed),
            ("! saturated: no rule requires action", Score::Missed),
        ] {
            assert_eq!(score(Harm::Hurts, watched(verdict)), expected, "{verdict}");
        }
        assert_eq!(score(Harm::Hurts, wrong), Score::Missed);
        assert_eq!(score(Harm::Hurts, unseen), Score::Missed);
        assert_eq!(score(Harm::Hurts, tick.clone()), Score::Denied);
        assert_eq!(score(Harm::Harmless, tick), Score::Quiet);
        assert_eq!(score(Harm::Harmless, first.clone()), Score::FalseAct);
        assert_eq!(score(Harm::Weak, first), Score::Weak);
    }

    #[test]
    fn the_second_fault_may_be_named_before_the_planted_one_but_not_instead() {
        let expects = expects(&["descriptors-full"], &["priority-low"]);
        let score = |acts: &[&str]| {
            let findings: Vec<_> = acts.iter().map(|&rule| (rule, "act")).collect();
            let said = said(&findings, "✗ act: s");
            let harmless = Score::rate(Harm::Harmless, Harm::Weak, &expects, &said);
            let named = acts.iter().all(|act| *act == "priority-low");
            assert_eq!(harmless == Score::Quiet, named, "{acts:?}: {harmless:?}");
            Score::rate(Harm::Hurts, Harm::Hurts, &expects, &said)
        };
        assert_eq!(score(&["priority-low", "descriptors-full"]), Score::First);
        assert_eq!(score(&["other", "descriptors-full"]), Score::Named);
        assert_eq!(
            score(&["priority-low", "other", "descriptors-full"]),
            Score::Named
        );
        assert_eq!(score(&["priority-low"]), Score::Missed);
    }

    #[test]
    fn beside_is_what_neither_names_a_planted_fault_nor_follows_from_one() {
        let expects = expects(&["cgroup-frozen"], &["nf-drop"]);
        let claim = |rule: &str, is_elsewhere| Claim {
            rule: rule.to_owned(),
            is_elsewhere,
            ..Claim::default()
        };
        let acts = [
            claim("cgroup-frozen", false),
            claim("tcp-listen-overflow", false),
            claim("nf-drop", false),
            claim("steal", false),
            claim("cgroup-frozen", true),
        ];
        assert_eq!(expects.beside(&acts), ["cgroup-frozen", "steal"]);
    }

    #[test]
    fn the_right_rule_about_another_process_is_a_wrong_subject() {
        let expects = expects(&["affinity-narrow"], &[]);
        let subjects = Subjects {
            service: [51].into(),
            ..Subjects::default()
        };
        let score = |pids: &[u32]| {
            let findings: Vec<Value> = pids
                .iter()
                .map(|pid| json!({"rule": "affinity-narrow", "outcome": "act", "subject": format!("process/{pid}")}))
                .collect();
            let said =
                Said::from_document(&json!({"findings": findings}), "✗ act: s", Some(&subjects));
            Score::rate(Harm::Hurts, Harm::Harmless, &expects, &said)
        };
        assert_eq!(score(&[51, 66]), Score::First);
        assert_eq!(score(&[66, 51]), Score::Named);
        assert_eq!(score(&[66]), Score::WrongSubject);
    }

    #[test]
    fn a_tick_is_what_the_page_shows() {
        let watch =
            json!({"findings": [{"rule": "gc-full", "outcome": "watch", "sentence": "2 of them"}]});
        let said = |verdict| Said::from_document(&watch, verdict, None);
        assert!(said("✓ nothing to act on: 9 pauses take 1 ms").tick);
        assert!(!said("• to watch: 2 of them").tick);
        assert!(!said("? incomplete: a deadlock cannot be excluded").tick);
        assert_eq!(said("").first, "gc-full: 2 of them");
        assert_eq!(Said::from_document(&json!({}), "", None).first, "nothing");
    }
}
