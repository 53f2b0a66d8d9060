//! The end of a run: the document, the report and the run folder.

use std::path::Path;

use anyhow::Context as _;
use rungwise_experiment::design::{Auto, Design, Guard};
use rungwise_experiment::lab::{Blueprint, Found};
use rungwise_experiment::ladder::Climbed;
use rungwise_experiment::record::RunFolder;
use rungwise_experiment::stage::{Setting, Side};
use rungwise_host::live::Live;
use rungwise_host::machine;
use rungwise_load::engine::{SETTLE, TURN};
use rungwise_model::tune::{Rung, ServiceFile, TuneReport, Verdict};
use rungwise_model::{Envelope, Exit};
use rungwise_report::numbers;

use crate::Invocation;
use crate::documents::Document as _;
use crate::runs::store;

/// Everything a report is made from.
pub(super) struct Ending<'a> {
    pub(super) started: String,
    pub(super) design: &'a Design,
    pub(super) blueprint: &'a Blueprint,
    pub(super) climbed: Climbed,
    pub(super) method: Vec<String>,
    /// What the machine held of all that the run changed.
    pub(super) found: Vec<Found>,
    pub(super) path: &'a Path,
}

impl Ending<'_> {
    /// Exit code of a ladder that was climbed to its end.
    pub(super) fn exit(&self) -> Exit {
        match self.climbed.verdict {
            Some(Verdict::Better | Verdict::Same) => Exit::Done,
            Some(Verdict::Worse) => Exit::Failed,
            Some(Verdict::Inconclusive) | None => Exit::Inconclusive,
        }
    }

    /// Writes the run folder.
    pub(super) fn write(
        self,
        exit: Exit,
        invocation: &Invocation<'_>,
    ) -> anyhow::Result<TuneReport> {
        let path = self.path;
        let settings = |set: &mut dyn Iterator<Item = (&Setting, &String)>| -> Vec<_> {
            set.map(|(setting, value)| {
                serde_json::json!({ "knob": setting.knob, "side": setting.side, "value": value })
            })
            .collect()
        };
        let before = settings(&mut self.design.baseline.iter().map(|(s, value)| (s, value)));
        let after = settings(&mut self.climbed.final_variant.settings.iter());
        let found = serde_json::to_value(&self.found).context("cannot write the manifest")?;
        let seed = self.design.judging.seed;
        let report = self.report(exit, invocation);
        let latency = RunFolder::latency(path)
            .with_context(|| format!("cannot merge the latencies of {}", path.display()))?;
        let more = serde_json::json!({
            "scenario": report.scenario,
            "machine": report.machine,
            "design": "design.json",
            "seed": seed,
            "knobs": { "found": found, "before": before, "after": after },
            "method": report.method,
        });
        store::write(path, &report, &[("latency.hdr", latency)], more)?;
        Ok(report)
    }

    fn report(self, exit: Exit, invocation: &Invocation<'_>) -> TuneReport {
        let mut method = self.method;
        method.extend(judging(self.design));
        method.extend(turns(&self.climbed.rungs));
        method.push(format!("traffic: {}", self.blueprint));
        let kept = self.climbed.final_variant.settings.clone();
        let start = self.design.baseline.iter().cloned().collect();
        method.push(format!(
            "service at the start: {}",
            self.blueprint.service_line(&start)
        ));
        method.push(format!(
            "service with all kept changes: {}",
            self.blueprint.service_line(&kept)
        ));
        method.extend(self.climbed.rungs.iter().filter_map(|rung| {
            let changes = java_changes(self.blueprint, rung)?;
            Some(format!("rung {}: {changes}", rung.id))
        }));
        method.extend(self.blueprint.caveat());
        let mut with_kept = self.blueprint.service_files(&kept);
        let at_start = self.blueprint.service_files(&start).into_iter();
        let files = at_start
            .map(|(name, start)| ServiceFile {
                kept: with_kept.remove(&name).unwrap_or_default(),
                name,
                start,
            })
            .collect();
        let cut = self.climbed.verdict.is_none();
        TuneReport {
            envelope: Envelope {
                run: self
                    .path
                    .file_name()
                    .map(|name| name.to_string_lossy().into_owned()),
                ..invocation.envelope(TuneReport::KIND, self.started, exit)
            },
            scenario: self.design.scenario.clone(),
            title: self.design.title.clone(),
            verdict: self.climbed.verdict.unwrap_or(Verdict::Inconclusive),
            sentence: if cut {
                format!(
                    "The ladder was not finished; so far: {} finished, {} kept.",
                    numbers::plural(self.climbed.rungs.len(), "row"),
                    numbers::plural(self.climbed.kept.len(), "change")
                )
            } else {
                self.climbed.sentence
            },
            overall: self.climbed.overall,
            objective: self.design.judging.objective.field().to_owned(),
            minimise: self.design.judging.objective.less_is_better(),
            figures_of: self.blueprint.figures_of(),
            kept: self.climbed.kept,
            aa: self.climbed.aa,
            rungs: self.climbed.rungs,
            could_not: self.climbed.could_not,
            method,
            files,
            machine: machine::fingerprint(&Live),
            run_dir: self.path.display().to_string(),
        }
    }
}

/// What a rung changed about the `java` of the service, in words.
fn java_changes(blueprint: &Blueprint, rung: &Rung) -> Option<String> {
    let set = rung.set.iter().map(|(knob, value)| {
        let setting = Setting {
            knob: knob.clone(),
            side: Side::Server,
        };
        (setting, value.clone())
    });
    blueprint.java_changes(&set.collect())
}

/// In how many rungs the variants took turns.
fn turns(rungs: &[Rung]) -> Option<String> {
    let of = |in_turns: bool| {
        let measured = |rung: &&Rung| rung.pairs.iter().any(|pair| pair.in_turns == in_turns);
        rungs.iter().filter(measured).count()
    };
    let (in_turns, in_halves) = (of(true), of(false));
    (in_turns > 0).then(|| {
        format!(
            "{}: both variants ran at once, each with a service and a network of its own, and the load switched between them every {} ms; \
             the first {} ms after a switch are not counted; {}: the halves of a pair ran one after the other",
            numbers::plural(in_turns, "row"),
            TURN.as_millis(),
            SETTLE.as_millis(),
            numbers::plural(in_halves, "row")
        )
    })
}

/// The design in words.
fn judging(design: &Design) -> Vec<String> {
    let judging = &design.judging;
    let percent = |fraction: f64| format!("{:.1} %", fraction * 100.0);
    let guards: Vec<String> = judging
        .guards
        .iter()
        .map(|guard| match guard {
            Guard::Loss { at_most } => format!("loss at most {}", percent(*at_most)),
            Guard::Errors { at_most } => {
                format!("loss and error replies at most {}", percent(*at_most))
            }
            Guard::P99 { at_most_us } => format!("p99 at most {at_most_us:.0} us"),
            Guard::Other { name, at_most } => format!("{name} at most {at_most}"),
        })
        .collect();
    let found = design.auto.as_ref().map(|auto| {
        format!(
            "rungs recommended by findings under load, in the order of their evidence, each from a capture of {:.1} s (look-NN.rungwise in the run folder: `rungwise check` judges it again); at most {} rungs and {} bundles of {}; every decision is in plan.jsonl",
            auto.capture_s,
            auto.max_rungs,
            Auto::BUNDLES,
            Auto::MEMBERS
        )
    });
    let part = judging.budget().part(judging.comparisons);
    let mut lines = vec![
        format!(
            "pairs of one run without and one run with the change, interleaved, order random and balanced, seed {}",
            judging.seed
        ),
        format!(
            "decisions after {} pairs; chance of any wrong decision over the whole ladder at most {}: each of up to {} comparisons gets an equal part of what is left of it, and a comparison that shows a difference leaves its part to the others; decision points share a part equally, so the first interval is one of {:.3} %; Hodges-Lehmann centre of the log ratios, hull of its exact signed-rank interval and its t interval",
            judging
                .looks
                .iter()
                .map(u32::to_string)
                .collect::<Vec<_>>()
                .join(", "),
            percent(judging.alpha),
            judging.comparisons,
            100.0 * (1.0 - judging.rules(part).alpha_per_look())
        ),
        format!(
            "kept from {} on; guard rails: {}",
            percent(judging.min_effect),
            if guards.is_empty() {
                "none".to_owned()
            } else {
                guards.join(", ")
            }
        ),
        format!(
            "a pair is discarded if either half saw more than {} foreign CPU; the next pair, like the first of a comparison, waits for less than {}, {} s at most; at most {} discarded pairs per rung",
            percent(judging.discard_above),
            percent(judging.quiet),
            judging.quiet_wait_s,
            judging.max_discards
        ),
    ];
    lines.extend(judging.controls.iter().map(ToString::to_string));
    lines.extend(found);
    lines
}
