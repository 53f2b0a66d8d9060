//! What a run prints: a line per trial, totals, the list of kinds, and the page docs/truth.md.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

use rungwise_rules::measured::{Measured, Point};
use serde::{Deserialize, Serialize};

use super::host::Tried;
use super::kept::{self, Trial};
use super::kinds::Kinds;
use super::score::{Harm, Score, lost, rule_of};

/// A trial as tables show it.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Row {
    /// Place in the run.
    pub number: usize,
    /// The kind.
    #[serde(rename = "kind")]
    pub id: String,
    /// Service, or JVM and collector.
    pub place: String,
    /// From 0 to 1.
    pub severity: f64,
    /// How much it hurt.
    pub harm: Harm,
    /// The same in figures.
    pub measured: String,
    /// The first sentence of the reader, or why the trial is void.
    pub said: String,
    /// What that is worth.
    pub score: Score,
    /// Rules that act beside the right one, without a part in it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub beside: Vec<String>,
    /// The effect of its advice, and whether it removed half of the harm.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cured: Option<(String, bool)>,
}

impl Row {
    /// Of a JVM problem.
    pub fn is_jvm(&self) -> bool {
        self.id.starts_with("jvm-")
    }

    /// One line of a terminal.
    pub fn line(&self) -> String {
        let said: String = self.said.chars().take(110).collect();
        let cured = match &self.cured {
            Some((effect, halved)) => {
                format!(
                    " [advice {}: {effect}]",
                    if *halved { "helps" } else { "does not help" }
                )
            }
            None => String::new(),
        };
        format!(
            "{:>3} {:9} {:22} {:26} severity {:.2} {:8} {:32} {said}{cured}",
            self.number,
            self.score.name(),
            self.id,
            self.place,
            self.severity,
            self.harm.name(),
            self.measured,
        )
    }
}

/// Rate and tail without and with the fault.
pub fn measured(tried: &Tried) -> String {
    let (without, with) = (&tried.without, &tried.with);
    format!(
        "lost {:.0} %, p99 {:.1} to {:.1} ms",
        lost(without, with) * 100.0,
        without.p99_ms,
        with.p99_ms
    )
}

fn count(rows: &[&Row], score: Score) -> usize {
    rows.iter().filter(|row| row.score == score).count()
}

/// How many of each score, and the shares that the bars are about.
pub fn totals(rows: &[Row]) -> String {
    let rows: Vec<&Row> = rows.iter().collect();
    let counts: Vec<String> = Score::ALL
        .iter()
        .map(|&score| format!("{} {}", count(&rows, score), score.name()))
        .collect();
    format!(
        "{} trials: {}\n{}",
        rows.len(),
        counts.join(", "),
        shares(&rows)
    )
}

fn shares(rows: &[&Row]) -> String {
    let first = count(rows, Score::First);
    let named = count(rows, Score::Named);
    let watched = count(rows, Score::Watched);
    let denied = count(rows, Score::Denied);
    let elsewhere = count(rows, Score::WrongSubject);
    let hurts = first + named + watched + elsewhere + denied + count(rows, Score::Missed);
    let wrong = count(rows, Score::FalseAct);
    let harmless = wrong + count(rows, Score::Quiet);
    let percent = |part: usize, whole: usize| {
        if whole == 0 {
            "-".to_owned()
        } else {
            format!("{:.0} %", part as f64 / whole as f64 * 100.0)
        }
    };
    let beside: usize = rows.iter().map(|row| row.beside.len()).sum();
    format!(
        "of {hurts} that hurt: cause first in {}, in the headline (act or watch) in {}, named or watched in {}, of a wrong subject in {elsewhere}, denied in {denied}, {beside} beside; of {harmless} \
         harmless: false act in {}\n",
        percent(first, hurts),
        percent(first + watched, hurts),
        percent(first + named + watched, hurts),
        percent(wrong, harmless)
    )
}

/// All kinds with the rules that name them, and the rules that do not exist.
pub fn list(kinds: &Kinds, known: &BTreeSet<String>) -> String {
    let mut text = String::new();
    let mut unknown = BTreeSet::new();
    let host = kinds.host.iter().map(|kind| {
        (
            &kind.id,
            "host",
            &kind.resource,
            &kind.aspect,
            kind.services.join(" "),
            &kind.expects,
            &kind.about,
        )
    });
    let jvm = kinds.jvm.iter().map(|kind| {
        let jdks: Vec<String> = kind.jdks.iter().map(ToString::to_string).collect();
        (
            &kind.id,
            "jvm",
            &kind.resource,
            &kind.aspect,
            format!("jdk {}", jdks.join(" ")),
            &kind.expects,
            &kind.about,
        )
    });
    for (id, layer, resource, aspect, places, expects, about) in host.chain(jvm) {
        let expects: Vec<String> = expects
            .iter()
            .map(|rule| {
                if known.contains(rule_of(rule)) {
                    rule.clone()
                } else {
                    unknown.insert(rule.clone());
                    format!("{rule} (no such rule yet)")
                }
            })
            .collect();
        let _ = writeln!(
            text,
            "{id}  [{layer}, {resource}, {aspect}; {places}]\n    {about}\n    named by: {}",
            or_none(&expects.join(", "))
        );
    }
    let _ = writeln!(
        text,
        "{} host kinds, {} JVM kinds; rules that do not exist yet: {}",
        kinds.host.len(),
        kinds.jvm.len(),
        or_none(&unknown.into_iter().collect::<Vec<_>>().join(", "))
    );
    text
}

fn or_none(text: &str) -> &str {
    if text.is_empty() { "none" } else { text }
}

/// The page docs/truth.md, of one run or of several.
pub fn page(trials: &[Trial], kinds: &Kinds) -> String {
    let (drawn, asked): (Vec<&Trial>, Vec<&Trial>) =
        trials.iter().partition(|trial| trial.is_drawn());
    let rows: Vec<Row> = drawn.iter().map(|trial| trial.row.clone()).collect();
    let mut page =
        "# Truth as a number\n\nWritten by `cargo xtask faults --write` and `cargo xtask docs` from these trials:\n\n"
            .to_owned();
    commands(&mut page, &drawn);
    if !asked.is_empty() {
        page += "\nTrials of chosen kinds count only where harm begins, not in shares:\n\n";
        commands(&mut page, &asked);
    }
    page += "\n[trials.jsonl](../crates/rules/data/trials.jsonl) contains all trials with their parameters, one per line. `.ci/run` plants a small fixed\n\
         set, `.ci/release` random faults of both layers with a fresh seed.\n";
    page += "\n\
         Each trial plants a fault in a service under an ordinary load (20 to 60 % of one CPU), confirms it by other means, and asks\n\
         `rungwise check`, `jvm threads` or `jvm gc`. Kind, severity, service, load and neighbours follow from the seed. Harm is what a\n\
         client with a fixed schedule sees: *hurts* where 20 % of the rate is lost or fails, or p99 is five times as long and at least 5 ms\n\
         longer; *harmless* below 5 %, 1.5 times or 1 ms; *weak* in between. For a JVM problem, the program counts its own harm.\n\n\
         Faults that hurt: *first*, the first finding to act on names the planted cause, or only findings that name the second fault stand\n\
         before it; *named*, a later finding to act on does; *watched*, nothing is to be acted on, and the headline names the cause as\n\
         something to watch; *wrong subject*, findings to act on that name it accuse another process, port, device, mount or control group\n\
         than the planted one; *missed*, none of these; *denied*, none names it, and the verdict is a tick. Where there is a second\n\
         fault, harm is measured against a load with that one alone (until 2026-11-27 against one with neither). *Beside* counts rules that act in a first or named trial and have no part in it.\n\n\
         Harmless trials: *quiet*, nothing to act on; *false act*, something to act on. A problem of a JVM that will hurt later (a leak, failed\n\
         evacuations of a small heap) counts as weak where it is named early. A trial is *void* if the fault was not confirmed, if the\n\
         service was still slow after the undo, or if half of its requests failed before the fault was planted.\n\n\
         Until 2026-11-27, a second fault's rules counted as the planted kind's own, a finding to watch as one that names the cause, and subjects\n\
         were not compared. Older trials were scored again from the rules that they keep. They keep no subjects, only the first sentence: in\n\
         three trials of cpu-pinned-together it accuses the busy process, and they are wrong subjects.\n\n";
    let unknown = drawn.iter().filter(|trial| trial.is_verdict_unknown(kinds));
    let unknown = unknown.count();
    if unknown > 0 {
        let _ = writeln!(
            page,
            "Trials of 2026-11-25 and 2026-11-26 keep the findings but not the verdict. In {unknown} of those that count as missed, a finding \
             to watch\nnamed the cause; whether a tick stood above it is unknown.\n"
        );
    }
    let all: Vec<&Row> = rows.iter().collect();
    let never = never_hurt(trials, kinds);
    for layer in ["host", "JVM"] {
        let of = rows
            .iter()
            .filter(|row| row.is_jvm() == (layer == "JVM"))
            .filter(|row| !never.contains_key(row.id.as_str()));
        let of: Vec<&Row> = of.collect();
        if of.is_empty() {
            continue;
        }
        let healthy = of.iter().filter(|row| kinds.is_healthy(&row.id));
        let healthy: Vec<&Row> = healthy.copied().collect();
        let (wrong, loads) = (count(&healthy, Score::FalseAct), healthy.len());
        let shares = shares(&of);
        let _ = writeln!(
            page,
            "**{layer}**, {} trials: {}; of {loads} healthy loads: false act in {wrong}\n",
            of.len(),
            shares.trim_end()
        );
    }
    page += "## By day\n\nRules change from day to day.\n\n";
    let mut by_day: BTreeMap<String, Vec<&Row>> = BTreeMap::new();
    for trial in &drawn {
        let layer = &trial.layer;
        let day = format!("{} {layer}", trial.day);
        by_day.entry(day).or_default().push(&trial.row);
    }
    table(&mut page, "day", &by_day);
    page += "\n## By severity\n\n";
    let mut by_severity: BTreeMap<String, Vec<&Row>> = BTreeMap::new();
    let mut by_kind: BTreeMap<String, Vec<&Row>> = BTreeMap::new();
    for row in all {
        let third = third(row.severity).to_owned();
        by_severity.entry(third).or_default().push(row);
        by_kind.entry(row.id.clone()).or_default().push(row);
    }
    table(&mut page, "severity", &by_severity);
    page += "\n## By kind\n\nThe severities show where a fault begins to hurt, and where it begins to be named.\n\n\
        | kind | trials, by severity |\n|---|---|\n";
    for (kind, rows) in &by_kind {
        let mut rows = rows.clone();
        rows.sort_by(|a, b| a.severity.total_cmp(&b.severity));
        let course: Vec<String> = rows
            .iter()
            .map(|row| format!("{:.2} {}", row.severity, row.score.name()))
            .collect();
        let _ = writeln!(page, "| {kind} | {} |", course.join(", "));
    }
    begins(&mut page, trials, kinds);
    undetected(&mut page, trials, kinds);
    page += "\n## What fell short\n\n| score | kind | in | severity | load | said first |\n|---|---|---|--:|---|---|\n";
    let short = [
        Score::Denied,
        Score::Missed,
        Score::WrongSubject,
        Score::Watched,
        Score::Named,
        Score::FalseAct,
    ];
    for score in short {
        for trial in drawn.iter().filter(|trial| trial.row.score == score) {
            let row = &trial.row;
            let watched = score == Score::Missed && trial.is_watched(kinds);
            let watched = if watched { ", only watched" } else { "" };
            let score = format!("{}{watched}", score.name());
            let (id, place) = (&row.id, &row.place);
            let said: String = row.said.replace('|', "/").chars().take(160).collect();
            let load = &row.measured;
            let _ = writeln!(
                page,
                "| {score} | {id} | {place} | {:.2} | {load} | {said} |",
                row.severity
            );
        }
    }
    page += "\n## Beside the right finding\n\nRules that acted in trials that are first or named, and neither name a planted fault nor follow from one \
        (`crates/rules/src/causes.rs`).\n\n| rule | trials | of kinds |\n|---|--:|---|\n";
    let mut beside: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for row in &rows {
        for rule in &row.beside {
            beside.entry(rule).or_default().push(&row.id);
        }
    }
    for (rule, mut kinds) in beside {
        let count = kinds.len();
        kinds.sort_unstable();
        kinds.dedup();
        let _ = writeln!(page, "| {rule} | {count} | {} |", kinds.join(", "));
    }
    let taken: Vec<_> = rows
        .iter()
        .filter_map(|row| Some((row, row.cured.as_ref()?)))
        .collect();
    if !taken.is_empty() {
        page += "\n## Advice\n\nIf findings to act on recommend knobs with values, `rungwise knob apply --from` set them while the fault\n\
            was present. Advice helps if it removes half of the harm. Until 2026-11-28 it refused values of\n`cpu.pin_threads` without an error, so those trials show the fault as it was.\n\n| kind | in | helps | what it did |\n|---|---|---|---|\n";
        for (row, (effect, halved)) in taken {
            let helps = if *halved { "yes" } else { "no" };
            let effect = effect.replace('|', "/");
            let _ = writeln!(page, "| {} | {} | {helps} | {effect} |", row.id, row.place);
        }
    }
    page += "\n## Kinds\n\n";
    let host = kinds.host.iter();
    let host = host.map(|kind| (&kind.id, &kind.about, &kind.expects));
    let jvm = kinds.jvm.iter();
    let jvm = jvm.map(|kind| (&kind.id, &kind.about, &kind.expects));
    for (id, about, expects) in host
        .chain(jvm)
        .filter(|(id, _, _)| trials.iter().any(|trial| trial.row.id == **id))
    {
        let _ = write!(page, "- **{id}**: {about}");
        if !expects.is_empty() {
            let _ = write!(page, "; named by {}", expects.join(", "));
        }
        page += "\n";
    }
    page
}

/// Kinds that hurt in no trial, and their trials; not healthy loads, which are not meant to, and not void trials.
fn never_hurt<'a>(trials: &'a [Trial], kinds: &Kinds) -> BTreeMap<&'a str, Vec<&'a Trial>> {
    let mut of: BTreeMap<&str, Vec<&Trial>> = BTreeMap::new();
    for trial in trials {
        if trial.row.score != Score::Void && !kinds.is_healthy(&trial.row.id) {
            of.entry(&trial.row.id).or_default().push(trial);
        }
    }
    let hurts = |trial: &&Trial| trial.row.harm == Harm::Hurts;
    of.retain(|_, trials| !trials.iter().any(hurts));
    of
}

/// Kinds that show no detection.
fn undetected(page: &mut String, trials: &[Trial], kinds: &Kinds) {
    *page += "\n## Kinds that never hurt\n\n\
        Planted, and harmless or weak at every severity on this machine: that no finding names them proves nothing. Their trials count in\n\
        neither share above.\n\n\
        | kind | trials | quiet | weak | false act |\n|---|--:|--:|--:|--:|\n";
    for (kind, trials) in never_hurt(trials, kinds) {
        let rows: Vec<&Row> = trials.iter().map(|trial| &trial.row).collect();
        let cells = [Score::Quiet, Score::Weak, Score::FalseAct].map(|score| {
            let count = count(&rows, score);
            if count == 0 {
                String::new()
            } else {
                count.to_string()
            }
        });
        let _ = writeln!(page, "| {kind} | {} | {} |", rows.len(), cells.join(" | "));
    }
    let with_second = |trial: &&Trial| trial.row.place.contains(" with ");
    let mut only_beside: BTreeMap<&str, bool> = BTreeMap::new();
    for trial in trials {
        if trial.row.harm == Harm::Hurts && trial.row.score != Score::Void {
            let only = only_beside.entry(&trial.row.id).or_insert(true);
            *only &= with_second(&trial);
        }
    }
    let only: Vec<&str> = only_beside
        .into_iter()
        .filter_map(|(kind, only)| only.then_some(kind))
        .collect();
    if !only.is_empty() {
        let _ = writeln!(
            page,
            "\nHurt only beside a second fault, whose harm it may have been, and counted: {}.",
            only.join(", ")
        );
    }
    let unplanted: Vec<&str> = kinds
        .ids()
        .filter(|id| !trials.iter().any(|trial| trial.row.id == *id))
        .collect();
    if !unplanted.is_empty() {
        let _ = writeln!(
            page,
            "\nWith a generator, and in no trial so far: {}.",
            unplanted.join(", ")
        );
    }
    *page += "\n## Kinds without a generator\n\n\
        Kinds of the [design](../xtask/faults/design.csv) that `cargo xtask faults` does not plant, and why.\n\n\
        | kind | why |\n|---|---|\n";
    for (kind, why) in &kinds.ungenerated {
        let _ = writeln!(page, "| {kind} | {why} |");
    }
}

/// Each command once, with its day.
fn commands(page: &mut String, trials: &[&Trial]) {
    let mut seen = BTreeSet::new();
    for trial in trials {
        let command = (&trial.command, &trial.day);
        if seen.insert(command) {
            let (command, day) = command;
            let _ = writeln!(page, "    {command}    # {day}");
        }
    }
}

/// Where harm begins and where findings do, a line per kind.
fn begins(page: &mut String, trials: &[Trial], kinds: &Kinds) {
    *page += "\n## Where harm begins\n\n\
        Parameters of the most severe trial that was harmless, and of the least severe one that was weak, that hurt, and in which a rule that\n\
        names the kind said to watch or to act. Only trials without a second fault or neighbour. `rungwise explain RULE` shows the same \
        for each rule.\n\n\
        | kind | trials | harmless up to | weak from | hurts from | watch from | act from |\n|---|--:|---|---|---|---|---|\n";
    for (kind, expects, curves) in kept::by_kind(trials, kinds) {
        let curves: Vec<Measured> = curves
            .iter()
            .filter_map(|curve| curve.measured(&expects))
            .collect();
        let count: usize = curves.iter().map(|curve| curve.trials).sum();
        let cell = |of: fn(&Measured) -> &Option<Point>| {
            let points = curves.iter().filter_map(|curve| {
                let params = &of(curve).as_ref()?.params;
                let params = if params.is_empty() { "always" } else { params };
                Some(format!("{}: {params}", curve.place))
            });
            points.collect::<Vec<_>>().join("; ")
        };
        let cells = [
            cell(|curve| &curve.harmless),
            cell(|curve| &curve.weak),
            cell(|curve| &curve.hurts),
            cell(|curve| &curve.watch),
            cell(|curve| &curve.act),
        ];
        let _ = writeln!(page, "| {kind} | {count} | {} |", cells.join(" | "));
    }
}

fn third(severity: f64) -> &'static str {
    match severity {
        low if low < 1.0 / 3.0 => "0 to 0.33",
        middle if middle < 2.0 / 3.0 => "0.33 to 0.67",
        _ => "0.67 to 1",
    }
}

fn table(page: &mut String, title: &str, groups: &BTreeMap<String, Vec<&Row>>) {
    let names: Vec<&str> = Score::ALL.iter().map(|score| score.name()).collect();
    let _ = writeln!(
        page,
        "| {title} | trials | {} | beside |",
        names.join(" | ")
    );
    let _ = writeln!(page, "|---|--:|{}", "--:|".repeat(names.len() + 1));
    for (name, rows) in groups {
        let cells: Vec<String> = Score::ALL
            .iter()
            .map(|&score| match count(rows, score) {
                0 => String::new(),
                some => some.to_string(),
            })
            .collect();
        let beside = match rows.iter().map(|row| row.beside.len()).sum() {
            0 => String::new(),
            some => usize::to_string(&some),
        };
        let (count, cells) = (rows.len(), cells.join(" | "));
        let _ = writeln!(page, "| {name} | {count} | {cells} | {beside} |");
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::faults::kept::tests::trial;

    fn row(id: &str, severity: f64, harm: Harm, score: Score) -> Row {
        Row {
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
        }
    }

    #[test]
    fn shares_are_of_the_trials_that_hurt_and_of_those_that_do_not() {
        let rows = [
            row("a", 0.9, Harm::Hurts, Score::First),
            row("a", 0.9, Harm::Hurts, Score::Named),
            row("b", 0.9, Harm::Hurts, Score::Watched),
            row("b", 0.9, Harm::Hurts, Score::Denied),
            row("b", 0.1, Harm::Harmless, Score::Quiet),
            row("b", 0.5, Harm::Hurts, Score::Void),
        ];
        let text = totals(&rows);
        assert!(
            text.contains("of 4 that hurt: cause first in 25 %, in the headline (act or watch) in 50 %, named or watched in 75 %, of a wrong subject in 0, denied in 1, 0 beside"),
            "{text}"
        );
        assert!(text.contains("of 1 harmless: false act in 0 %"), "{text}");
    }

    #[test]
    fn the_page_has_a_row_per_kind_and_per_third() {
        let kinds = Kinds::built_in().unwrap();
        let trials = [
            trial("cpu-stopped", 0.9, Harm::Hurts, Score::First),
            trial("cpu-stopped", 0.1, Harm::Harmless, Score::Quiet),
        ];
        let page = page(&trials, &kinds);
        let command = "    cargo xtask faults --random 2 --seed 1    # 2026-11-25\n";
        assert_eq!(page.matches(command).count(), 1, "{page}");
        let course = "| cpu-stopped | 0.10 quiet, 0.90 first |";
        assert!(page.contains(course), "{page}");
        assert!(page.contains("| 0 to 0.33 | 1 |"));
        assert!(page.contains("| denied | quiet | false act | weak | void | beside |"));
        assert!(page.contains("- **cpu-stopped**: "));
    }

    #[test]
    fn trials_of_chosen_kinds_count_for_curves_alone() {
        let kinds = Kinds::built_in().unwrap();
        let drawn = trial("net-loss-random", 0.1, Harm::Harmless, Score::Quiet);
        let mut asked = trial("net-loss-random", 0.9, Harm::Hurts, Score::Denied);
        asked.command = "cargo xtask faults --steps 2 --seed 1 --kind net-loss-random".to_owned();
        let page = page(&[drawn, asked], &kinds);
        assert!(
            page.contains("**host**, 1 trials: of 0 that hurt"),
            "{page}"
        );
        assert!(
            page.contains("| net-loss-random | 2 | redis: perten=100 |"),
            "{page}"
        );
        assert!(page.contains("    cargo xtask faults --steps 2"), "{page}");
    }

    #[test]
    fn the_page_shows_where_harm_begins_a_line_per_kind() {
        let kinds = Kinds::built_in().unwrap();
        let loss = |severity, harm| trial("net-loss-random", severity, harm, Score::Quiet);
        let mut named = loss(0.7, Harm::Hurts);
        named.acts.push("tcp-retrans".to_owned());
        let mut other = loss(0.3, Harm::Harmless);
        other.row.place = "nginx".to_owned();
        let trials = [
            loss(0.1, Harm::Harmless),
            loss(0.5, Harm::Weak),
            named,
            other,
        ];
        let page = page(&trials, &kinds);
        let line = "| net-loss-random | 4 | nginx: perten=300; redis: perten=100 | redis: perten=500 | redis: perten=700 |  | redis: perten=700 |\n";
        assert!(page.contains(line), "{page}");
    }

    #[test]
    fn kinds_that_never_hurt_count_in_no_share() {
        let kinds = Kinds::built_in().unwrap();
        let trials = [
            trial("cpu-stopped", 0.9, Harm::Hurts, Score::First),
            trial("net-nagle-delack", 0.9, Harm::Weak, Score::Weak),
            trial("net-nagle-delack", 0.1, Harm::Harmless, Score::FalseAct),
            trial("svc-healthy-redis", 0.1, Harm::Harmless, Score::Quiet),
        ];
        let page = page(&trials, &kinds);
        assert!(
            page.contains("**host**, 2 trials: of 1 that hurt"),
            "{page}"
        );
        assert!(
            page.contains("of 1 harmless: false act in 0 %; of 1 healthy loads: false act in 0"),
            "{page}"
        );
        assert!(
            page.contains("| net-nagle-delack | 2 |  | 1 | 1 |"),
            "{page}"
        );
        assert!(
            page.contains("| mem-numa-remote | not possible here"),
            "{page}"
        );
    }

    #[test]
    fn a_run_without_trials_has_no_shares() {
        assert!(totals(&[]).contains("of 0 that hurt: cause first in -"));
    }

    #[test]
    fn the_list_names_rules_that_do_not_exist() {
        let kinds = Kinds::built_in().unwrap();
        let known = BTreeSet::from(["cfs-throttled".to_owned()]);
        let text = list(&kinds, &known);
        assert!(text.contains("process-stopped (no such rule yet)"));
        assert!(text.contains("named by: cfs-throttled\n"));
    }
}
