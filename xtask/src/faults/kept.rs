//! Trials that are kept: one line of `crates/rules/data/trials.jsonl` each, from which docs/truth.md and the curves of rules are made.
//!
//! A curve is taken of trials with nothing beside the fault: harm of a second fault is not harm of the first.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::process::Command;

use anyhow::{Context as _, Result, bail};
use rungwise_rules::measured::{COLUMNS, Measured, Point};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::kinds::Kinds;
use super::known_rules;
use super::score::{Claim, Expects, Harm, Said, Score, Seen, rule_of};
use super::table::{self, Row};
use crate::tree::Tree;

/// Trials, a line each.
pub const TRIALS: &str = "crates/rules/data/trials.jsonl";
/// What `rungwise explain` shows of them.
pub const CURVES: &str = "crates/rules/data/measured.tsv";
/// The page.
pub const PAGE: &str = "docs/truth.md";
/// Characters of a finding's sentence that are kept.
const SENTENCE: usize = 160;

/// A trial that was made.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Trial {
    /// The command of the run.
    pub command: String,
    /// Its day.
    pub day: String,
    /// `host` or `jvm`.
    pub layer: String,
    /// What tables show.
    #[serde(flatten)]
    pub row: Row,
    /// Drawn values, of a second fault as well.
    pub params: BTreeMap<String, String>,
    /// From 0, the lightest ordinary load, to 1, the heaviest.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub load: Option<f64>,
    /// What the load measured before the fault, with it, and after it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub before: Option<Seen>,
    /// See `before`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub with: Option<Seen>,
    /// See `before`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub after: Option<Seen>,
    /// Rules to act on, first things first.
    pub acts: Vec<String>,
    /// Rules to watch.
    pub watches: Vec<String>,
    /// Mark and word of the verdict, as `✗ act`; trials before 2026-11-27 lack it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub verdict: Option<String>,
    /// Rules to act on with a finding about something else than what was planted.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub elsewhere: BTreeSet<String>,
}

impl Trial {
    /// Of a line in target/faults or of one that was kept; `day` is for lines without one.
    pub fn parse(line: &Value, day: &str) -> Result<Self> {
        let Some(facts) = line.get("facts") else {
            return Ok(serde_json::from_value(line.clone())?);
        };
        let seen = |name: &str| {
            let seen = serde_json::from_value::<Option<Seen>>(facts[name].clone());
            seen.ok().flatten().map(rounded)
        };
        let mut row: Row = serde_json::from_value(line.clone())?;
        row.severity = round(row.severity, 3);
        row.said = row.said.chars().take(SENTENCE).collect();
        let verdict = line["verdict"].as_str();
        let said = Said::from_document(line, verdict.unwrap_or_default(), None);
        let elsewhere = line.get("elsewhere").cloned().unwrap_or_default();
        let params = facts.get("params").cloned().unwrap_or_default();
        let layer = if row.is_jvm() { "jvm" } else { "host" };
        Ok(Self {
            command: line["command"].as_str().context("no command")?.to_owned(),
            day: line["day"].as_str().unwrap_or(day).to_owned(),
            layer: layer.to_owned(),
            params: serde_json::from_value::<Option<_>>(params)?.unwrap_or_default(),
            load: facts["load"].as_f64().map(|load| round(load, 2)),
            before: seen("without"),
            with: seen("with"),
            after: seen("after"),
            acts: once(rules(said.acts)),
            watches: once(rules(said.watches)),
            verdict: verdict.map(|line| line.split(": ").next().unwrap_or(line).to_owned()),
            elsewhere: serde_json::from_value::<Option<_>>(elsewhere)?.unwrap_or_default(),
            row,
        })
    }

    /// Rules that name what was planted.
    pub fn expects(&self, kinds: &Kinds) -> Expects {
        let second = self.row.place.split_once(" with ");
        let second = second.map(|(_, id)| kinds.expects(id)).unwrap_or_default();
        Expects {
            own: kinds.expects(&self.row.id).to_vec(),
            second: second.to_vec(),
        }
    }

    /// A finding to watch names what was planted.
    pub fn is_watched(&self, kinds: &Kinds) -> bool {
        let own = kinds.expects(&self.row.id).iter();
        let mut own = own.map(|expected| rule_of(expected));
        own.any(|rule| self.watches.iter().any(|said| said == rule))
    }

    /// The cause was only watched, and it is unknown whether the verdict was a tick.
    pub fn is_verdict_unknown(&self, kinds: &Kinds) -> bool {
        let only_watched = self.acts.is_empty() && self.is_watched(kinds);
        let missed = self.row.score == Score::Missed && self.layer == "host";
        missed && only_watched && self.verdict.is_none()
    }

    /// How much the second fault hurt by itself: the load before the planted one, against the load after both.
    fn harm_of_second(&self) -> Harm {
        match (&self.before, &self.after) {
            (Some(before), Some(after)) if self.row.place.contains(" with ") => {
                Harm::between(after, before)
            }
            _ => Harm::Harmless,
        }
    }

    /// Scores a trial again that was scored before verdicts were kept: a second fault stood for the planted one then, and a finding to
    /// watch for one to act on. One whose load failed before the fault is void, and what names a second fault that hurts is no false act.
    pub fn judge_again(&mut self, kinds: &Kinds) {
        if self.before.is_some_and(|load| load.fails()) {
            self.row.score = Score::Void;
            self.row.beside.clear();
            self.row.cured = None;
        }
        let scores = [
            Score::First,
            Score::Named,
            Score::WrongSubject,
            Score::Missed,
            Score::Denied,
        ];
        let is_false = self.row.score == Score::FalseAct;
        let harm_of_second = self.harm_of_second();
        let may_name_second = is_false && harm_of_second > Harm::Harmless;
        let without_verdict = self.verdict.is_none() && scores.contains(&self.row.score);
        if !without_verdict && !may_name_second {
            return;
        }
        // The sentence of the first finding is kept, those of others are not.
        let first = self.row.said.split_once(": ");
        let with_sentence = |rule: &String| {
            let own = first.filter(|(first, _)| first == rule);
            Claim {
                rule: rule.clone(),
                sentence: own.map_or_else(String::new, |(_, sentence)| sentence.to_owned()),
                is_elsewhere: self.elsewhere.contains(rule),
            }
        };
        // The page of `jvm gc` had a tick over findings to watch.
        let ticks = kinds.reads_gc_log(&self.row.id) && self.acts.is_empty();
        let said = Said {
            acts: self.acts.iter().map(with_sentence).collect(),
            tick: ticks || self.row.score == Score::Denied,
            ..Said::default()
        };
        let expects = self.expects(kinds);
        self.row.score = Score::rate(self.row.harm, harm_of_second, &expects, &said);
        self.row.beside = match self.row.score {
            Score::First | Score::Named => expects.beside(&said.acts),
            _ => Vec::new(),
        };
    }

    /// All of it was drawn at random. Trials of chosen kinds, severities or curves do not count in shares of all faults.
    pub fn is_drawn(&self) -> bool {
        let asked = [" --kind ", " --severity "];
        let drawn = self.command.contains(" --random ");
        drawn && !asked.iter().any(|option| self.command.contains(option))
    }

    /// A judged trial with nothing beside the fault.
    fn is_of_curve(&self) -> bool {
        let place = &self.row.place;
        let beside = place.contains(" beside ") || place.contains(" with ");
        !beside && self.row.score != Score::Void
    }
}

fn round(value: f64, digits: i32) -> f64 {
    let scale = 10_f64.powi(digits);
    (value * scale).round() / scale
}

fn rounded(seen: Seen) -> Seen {
    Seen {
        rate: round(seen.rate, 1),
        errors: round(seen.errors, 4),
        p50_ms: round(seen.p50_ms, 3),
        p99_ms: round(seen.p99_ms, 3),
    }
}

fn rules(said: Vec<Claim>) -> Vec<String> {
    said.into_iter().map(|claim| claim.rule).collect()
}

fn once(rules: Vec<String>) -> Vec<String> {
    let mut seen = BTreeSet::new();
    let first = |rule: &String| seen.insert(rule.clone());
    rules.into_iter().filter(first).collect()
}

/// The trials in a file, of target/faults or kept.
pub fn read(file: &Path) -> Result<Vec<Trial>> {
    let text =
        std::fs::read_to_string(file).with_context(|| format!("cannot read {}", file.display()))?;
    let day = day(Some(file))?;
    (1..)
        .zip(text.lines())
        .map(|(number, line)| {
            let trial = serde_json::from_str(line).map_err(anyhow::Error::from);
            trial
                .and_then(|line| Trial::parse(&line, &day))
                .with_context(|| format!("{}:{number}: cannot read the trial", file.display()))
        })
        .collect()
}

/// Today, or the day on which a file was last written.
pub fn day(file: Option<&Path>) -> Result<String> {
    let mut command = Command::new("date");
    command.args(["--utc", "+%F"]);
    if let Some(file) = file {
        command.arg("--reference").arg(file);
    }
    let output = command.output().context("cannot run date")?;
    if !output.status.success() {
        let said = String::from_utf8_lossy(&output.stderr);
        bail!("cannot read the day: {}", said.trim());
    }
    Ok(String::from_utf8_lossy(&output.stdout).trim().to_owned())
}

/// Adds trials to the kept ones, one that was kept before in its place, and writes curves and page.
pub fn write(tree: &Tree, kinds: &Kinds, trials: Vec<Trial>) -> Result<()> {
    let mut kept = if tree.join(TRIALS).exists() {
        read(&tree.join(TRIALS))?
    } else {
        Vec::new()
    };
    for trial in trials {
        let same = |old: &&mut Trial| {
            (&old.command, &old.day, old.row.number)
                == (&trial.command, &trial.day, trial.row.number)
        };
        match kept.iter_mut().find(same) {
            Some(old) => *old = trial,
            None => kept.push(trial),
        }
    }
    for trial in &mut kept {
        trial.judge_again(kinds);
    }
    let mut lines = String::new();
    for trial in &kept {
        lines += &serde_json::to_string(trial).context("cannot write a trial")?;
        lines.push('\n');
    }
    tree.write(TRIALS, &lines)?;
    for (file, text) in generated(&kept, kinds) {
        tree.write(file, &text)?;
    }
    Ok(())
}

/// The files that follow from the kept trials, each with its text.
pub fn generated(kept: &[Trial], kinds: &Kinds) -> [(&'static str, String); 2] {
    [
        (CURVES, curves(kept, kinds, &known_rules())),
        (PAGE, table::page(kept, kinds)),
    ]
}

/// The table of curves, a row per rule that exists, kind and place.
pub fn curves(trials: &[Trial], kinds: &Kinds, known: &BTreeSet<String>) -> String {
    let mut rows: Vec<Measured> = by_kind(trials, kinds)
        .into_iter()
        .flat_map(|(_, expects, curves)| {
            let rules = expects.iter().map(|one| rule_of(one).to_owned());
            let rules = rules.filter(|rule| known.contains(rule));
            rules
                .flat_map(|rule| {
                    let rules = [rule];
                    curves
                        .iter()
                        .filter_map(|curve| curve.measured(&rules))
                        .collect::<Vec<_>>()
                })
                .collect::<Vec<_>>()
        })
        .collect();
    rows.sort_by(|a, b| (&a.rule, &a.kind, &a.place).cmp(&(&b.rule, &b.kind, &b.place)));
    let rows: String = rows.iter().map(|row| row.row() + "\n").collect();
    format!("{COLUMNS}\n{rows}")
}

/// Kinds that some rule names, each with its curves, a place each, of all its rules.
pub fn by_kind<'a>(
    trials: &'a [Trial],
    kinds: &'a Kinds,
) -> Vec<(&'a str, Vec<String>, Vec<Curve<'a>>)> {
    let host = kinds.host.iter();
    let host = host.map(|kind| (&kind.id, &kind.about, &kind.expects, &kind.params));
    let jvm = kinds.jvm.iter();
    let jvm = jvm.map(|kind| (&kind.id, &kind.about, &kind.expects, &kind.params));
    let mut found = Vec::new();
    for (id, about, expects, params) in host.chain(jvm) {
        let mut places: BTreeMap<&str, Vec<&Trial>> = BTreeMap::new();
        for trial in trials.iter().filter(|trial| trial.row.id == *id) {
            if trial.is_of_curve() {
                places.entry(&trial.row.place).or_default().push(trial);
            }
        }
        if expects.is_empty() || places.is_empty() {
            continue;
        }
        let curves = places.into_values().map(|mut trials| {
            trials.sort_by(|a, b| a.row.severity.total_cmp(&b.row.severity));
            let params = params.keys().map(String::as_str).collect();
            Curve {
                about,
                params,
                trials,
            }
        });
        found.push((id.as_str(), expects.clone(), curves.collect()));
    }
    found.sort_by_key(|(id, _, _)| *id);
    found
}

/// Trials of one kind in one place, by severity; there is at least one.
#[derive(Debug)]
pub struct Curve<'a> {
    about: &'a str,
    params: Vec<&'a str>,
    trials: Vec<&'a Trial>,
}

impl Curve<'_> {
    /// Where harm begins and where one of these rules does.
    pub fn measured(&self, rules: &[String]) -> Option<Measured> {
        let first = |is: &dyn Fn(&Trial) -> bool| {
            let found = self.trials.iter().find(|trial| is(trial));
            found.map(|trial| self.point(trial))
        };
        let harm = |harm: Harm| first(&|trial| trial.row.harm == harm);
        let says = |said: &[String]| said.iter().any(|rule| rules.contains(rule));
        let mut harmless = self.trials.iter().rev();
        let harmless = harmless.find(|trial| trial.row.harm == Harm::Harmless);
        let (hurts, act) = (harm(Harm::Hurts), first(&|trial| says(&trial.acts)));
        let below = |point: &Point, other: &Option<Point>| {
            let other = other.as_ref();
            other.is_none_or(|other| point.severity < other.severity)
        };
        let days = || self.trials.iter().map(|trial| &trial.day);
        let any = self.trials.first()?;
        Some(Measured {
            rule: rules.join(", "),
            kind: any.row.id.clone(),
            place: any.row.place.clone(),
            about: self.about.to_owned(),
            harmless: harmless.map(|trial| self.point(trial)),
            weak: harm(Harm::Weak).filter(|point| below(point, &hurts)),
            watch: first(&|trial| says(&trial.watches)).filter(|point| below(point, &act)),
            hurts,
            act,
            trials: self.trials.len(),
            from: days().min()?.clone(),
            to: days().max()?.clone(),
        })
    }

    fn point(&self, trial: &Trial) -> Point {
        let params: Vec<String> = self
            .params
            .iter()
            .filter_map(|name| Some(format!("{name}={}", trial.params.get(*name)?)))
            .collect();
        Point {
            severity: trial.row.severity,
            params: params.join(" "),
        }
    }
}

#[cfg(test)]
pub(super) mod tests {
    use serde_json::json;

    use super::*;

    /// A trial of `perten` in redis.
    pub(in crate::faults) fn trial(id: &str, severity: f64, harm: Harm, score: Score) -> Trial {
        Trial {
            command: "cargo xtask faults --random 2 --seed 1".to_owned(),
            day: "2026-11-25".to_owned(),
            layer: "host".to_owned(),
            row: Row {
                number: 1,
                id: id.to_owned(),
                place: "redis".to_owned(),
                severity,
                harm,
                measured: String::new(),
                said: String::new(),
                score,
                beside: Vec::new(),
                cured: None,
            },
            params: BTreeMap::from([("perten".to_owned(), format!("{:.0}", severity * 1000.0))]),
            load: None,
            before: None,
            with: None,
            after: None,
            acts: Vec::new(),
            watches: Vec::new(),
            verdict: None,
            elsewhere: BTreeSet::new(),
        }
    }

    fn loss(severity: f64, harm: Harm, acts: &[&str], watches: &[&str]) -> Trial {
        let owned = |rules: &[&str]| rules.iter().map(|&rule| rule.to_owned()).collect();
        Trial {
            acts: owned(acts),
            watches: owned(watches),
            ..trial("net-loss-random", severity, harm, Score::Quiet)
        }
    }

    fn table_of(trials: &[Trial]) -> String {
        let known = BTreeSet::from(["tcp-retrans".to_owned()]);
        let kinds = Kinds::built_in().unwrap();
        let table = curves(trials, &kinds, &known);
        assert_eq!(table.lines().next(), Some(COLUMNS));
        table
    }

    #[test]
    fn a_curve_has_the_points_where_harm_and_the_rule_begin() {
        let trials = [
            loss(0.8, Harm::Hurts, &["tcp-retrans"], &[]),
            loss(0.1, Harm::Harmless, &[], &[]),
            loss(0.4, Harm::Weak, &["noise-gate"], &["tcp-retrans"]),
            loss(0.2, Harm::Harmless, &[], &[]),
            loss(0.6, Harm::Hurts, &["tcp-retrans"], &[]),
        ];
        let table = table_of(&trials);
        let row = table.lines().nth(1).unwrap();
        assert!(row.starts_with("tcp-retrans\tnet-loss-random\tredis\t"));
        assert!(
            row.ends_with(
                "\t0.200 perten=200\t0.400 perten=400\t0.600 perten=600\t0.400 perten=400\t0.600 perten=600\t5\t2026-11-25\t2026-11-25"
            ),
            "{row}"
        );
        assert_eq!(table.lines().count(), 2);
    }

    #[test]
    fn what_begins_above_something_worse_is_left_out() {
        let trials = [
            loss(0.5, Harm::Hurts, &["tcp-retrans"], &[]),
            loss(0.7, Harm::Weak, &[], &["tcp-retrans"]),
        ];
        let table = table_of(&trials);
        assert!(
            table.contains("\t\t\t0.500 perten=500\t\t0.500 perten=500\t2\t"),
            "{table}"
        );
    }

    #[test]
    fn void_trials_and_those_with_something_beside_are_of_no_curve() {
        let mut beside = loss(0.8, Harm::Hurts, &[], &[]);
        beside.row.place = "redis beside a neighbour".to_owned();
        let mut void = loss(0.8, Harm::Hurts, &[], &[]);
        void.row.score = Score::Void;
        assert_eq!(table_of(&[beside, void]).lines().count(), 1);
    }

    #[test]
    fn rules_that_do_not_exist_have_no_curve() {
        let kinds = Kinds::built_in().unwrap();
        let trials = [loss(0.8, Harm::Hurts, &[], &[])];
        assert_eq!(curves(&trials, &kinds, &BTreeSet::new()).lines().count(), 1);
    }

    fn line() -> Value {
        let seen =
            json!({"rate": 1769.04, "errors": 0.0, "p50_ms": 0.098_023, "p99_ms": 0.678_628});
        json!({
            "command": "cargo xtask faults", "verdict": "✗ act: tcp: s", "number": 3, "kind": "net-loss-random", "place": "redis", "severity": 0.123_456,
            "harm": "hurts", "measured": "lost 0 %", "said": "s".repeat(300), "score": "first", "cured": null,
            "facts": {"load": 0.268_78, "params": {"perten": "61"}, "without": seen, "with": seen, "after": seen},
            "findings": [
                {"rule": "tcp-retrans", "outcome": "act", "sentence": "s"},
                {"rule": "tcp-retrans", "outcome": "act", "sentence": "s"},
                {"rule": "noise-gate", "outcome": "watch", "sentence": "s"},
            ],
        })
    }

    #[test]
    fn a_line_is_kept_short_with_parameters_loads_and_rules() {
        let trial = Trial::parse(&line(), "2026-11-25").unwrap();
        assert_eq!(trial.params["perten"], "61");
        assert_eq!(trial.acts, ["tcp-retrans"]);
        assert_eq!(trial.watches, ["noise-gate"]);
        assert_eq!(trial.day, "2026-11-25");
        assert_eq!(trial.verdict.as_deref(), Some("✗ act"));
        let text = serde_json::to_string(&trial).unwrap();
        assert!(text.contains(r#""severity":0.123,"#), "{text}");
        assert!(
            text.contains(r#""with":{"rate":1769.0,"errors":0.0,"p50_ms":0.098,"p99_ms":0.679}"#),
            "{text}"
        );
        assert!(text.len() < 900, "{text}");
        // A kept line is read as it was written, whatever the day.
        let again = Trial::parse(&serde_json::from_str(&text).unwrap(), "2027-01-01").unwrap();
        assert_eq!(serde_json::to_string(&again).unwrap(), text);
    }

    #[test]
    fn a_trial_that_failed_has_no_facts_and_is_kept() {
        let mut line = line();
        line["facts"] = Value::Null;
        line["score"] = json!("void");
        let trial = Trial::parse(&line, "2026-11-25").unwrap();
        assert!(trial.params.is_empty() && trial.with.is_none());
    }

    #[test]
    fn written_trials_join_the_kept_ones_and_replace_themselves() {
        let folder = tempfile::tempdir().unwrap();
        let tree = Tree::at(folder.path());
        let kinds = Kinds::built_in().unwrap();
        let numbered = |number| {
            let mut trial = loss(0.5, Harm::Hurts, &["tcp-retrans"], &[]);
            trial.row.number = number;
            trial
        };
        let kept = || tree.read(TRIALS).unwrap().lines().count();
        write(&tree, &kinds, vec![numbered(1), numbered(2)]).unwrap();
        assert_eq!(kept(), 2);
        write(&tree, &kinds, vec![numbered(2), numbered(3)]).unwrap();
        assert_eq!(kept(), 3);
        assert_eq!(tree.read(CURVES).unwrap().lines().count(), 2);
        assert!(tree.read(PAGE).unwrap().contains("3 trials"));
    }

    #[test]
    fn an_old_trial_is_scored_by_the_rules_of_the_planted_kind() {
        let kinds = Kinds::built_in().unwrap();
        let again = |acts: &[&str], watches: &[&str], place: &str, score| {
            let mut trial = loss(0.9, Harm::Hurts, acts, watches);
            place.clone_into(&mut trial.row.place);
            trial.row.score = score;
            trial.judge_again(&kinds);
            let once = trial.row.score;
            trial.judge_again(&kinds);
            assert_eq!(trial.row.score, once);
            (once, trial.is_verdict_unknown(&kinds))
        };
        let beside = "redis with cpu-sched-idle";
        let first = again(&["priority-low"], &[], beside, Score::First);
        assert_eq!(first, (Score::Missed, false));
        let both = again(&["priority-low", "tcp-retrans"], &[], beside, Score::Named);
        assert_eq!(both, (Score::First, false));
        let mut failing = loss(0.9, Harm::Hurts, &["tcp-retrans"], &[]);
        failing.row.beside.push("nf-drop".to_owned());
        failing.before = Some(Seen {
            errors: 0.6,
            ..Seen::default()
        });
        failing.judge_again(&kinds);
        assert_eq!(failing.row.score, Score::Void);
        assert!(failing.row.beside.is_empty());
        let mut second = loss(0.9, Harm::Harmless, &["priority-low"], &[]);
        beside.clone_into(&mut second.row.place);
        let seen = |p99_ms| Seen {
            rate: 1.0,
            p99_ms,
            ..Seen::default()
        };
        (second.before, second.after) = (Some(seen(1.0)), Some(seen(1.0)));
        second.row.score = Score::FalseAct;
        second.judge_again(&kinds);
        assert_eq!(
            second.row.score,
            Score::FalseAct,
            "the second is harmless as well"
        );
        second.before = Some(seen(20.0));
        second.judge_again(&kinds);
        assert_eq!(second.row.score, Score::Quiet);
        let watched = again(&[], &["tcp-retrans"], "redis", Score::Named);
        assert_eq!(watched, (Score::Missed, true));
        let mut trial = loss(0.9, Harm::Hurts, &["tcp-retrans", "steal"], &[]);
        trial.row.score = Score::First;
        trial.judge_again(&kinds);
        assert_eq!(trial.row.beside, ["steal"]);
        let denied = again(&[], &[], "redis", Score::Denied);
        assert_eq!(denied, (Score::Denied, false));
    }

    #[test]
    fn a_gc_log_without_a_finding_to_act_on_had_a_tick() {
        let kinds = Kinds::built_in().unwrap();
        let mut trial = loss(0.9, Harm::Hurts, &[], &["gc-full"]);
        trial.row.id = "jvm-gc-threads".to_owned();
        trial.row.score = Score::Missed;
        trial.judge_again(&kinds);
        assert_eq!(trial.row.score, Score::Denied);
    }
}
