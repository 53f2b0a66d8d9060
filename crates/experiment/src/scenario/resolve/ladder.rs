//! Where the ladder starts, its rungs, and whether they can be climbed.

use rungwise_knobs::Knob;
use rungwise_model::tune::Reference;
use rungwise_model::units;

use super::super::document::{
    At, AutoTable, BaselineTable, End, ReferenceTable, RungTable, ServiceTable, Settings,
};
use super::super::problem::{any_of, did_you_mean};
use super::super::{Start, Switches};
use super::Reader;
use crate::design::{Auto, Grid, Part, Step};
use crate::stage::{Changes, Setting, Side};

/// Ids of comparisons and rows that do not come from the file.
const OWN_IDS: [&str; 3] = ["aa", "overall", "start"];

/// A guess at the most worth waiting for: about ten minutes of pairs.
const MOST_RUNGS: u32 = 40;

impl Reader<'_, '_> {
    pub(super) fn start(&mut self, table: &BaselineTable, switches: &Switches) -> Start {
        let sides = self.sides(table.on.as_ref(), "baseline.on");
        Start {
            title: table.title.clone().unwrap_or_else(|| "start".to_owned()),
            set: self.settings(&table.set, &sides, switches, "baseline.set"),
            reference: table
                .reference
                .as_ref()
                .and_then(|at| self.reference(at, "baseline.reference")),
        }
    }

    /// How rungs are found, where the rules choose them.
    pub(super) fn auto(
        &mut self,
        table: Option<&At<AutoTable>>,
        wanted: bool,
        on_this_host: bool,
        switches: &Switches,
    ) -> Option<Auto> {
        if !wanted {
            if let Some(table) = table {
                let message =
                    "has no effect with a list of rungs; remove it or set rungs = \"auto\"";
                self.problems.add(table.span(), "auto", message);
            }
            return None;
        }
        let table = table.map(At::get);
        let max_rungs = table
            .and_then(|table| table.max_rungs.as_ref())
            .map_or(8, |most| {
                self.between(most, "auto.max_rungs", 1, MOST_RUNGS)
            });
        let window = self.duration(
            table.and_then(|table| table.look.as_ref()),
            "auto.look",
            4_000,
        );
        Some(Auto {
            max_rungs,
            capture_s: window.as_secs_f64(),
            disruptive: table.and_then(|table| table.disruptive).unwrap_or(false),
            on_this_host,
            switches: switches
                .iter()
                .map(|(id, values)| (id.clone(), values.keys().cloned().collect()))
                .collect(),
            java: false,
            device: None,
        })
    }

    pub(super) fn rungs(
        &mut self,
        rungs: &[At<RungTable>],
        switches: &Switches,
        service: &ServiceTable,
    ) -> Vec<Step> {
        let mut steps: Vec<Step> = Vec::new();
        for (index, at) in rungs.iter().enumerate() {
            let key = format!("rungs[{index}]");
            let rung = at.get();
            let id = rung.id.get();
            if id.is_empty() || id.chars().any(|c| c.is_whitespace() || c.is_control()) {
                self.problems.add(
                    rung.id.span(),
                    format!("{key}.id"),
                    "an id must be a single word",
                );
            }
            // Pairs are recorded under the id, bundles are named by theirs joined with '+', and cells of a grid behind '@'.
            if OWN_IDS.contains(&id.as_str()) || id.contains(['+', '@']) {
                let message = format!("'{id}' is reserved; choose another");
                self.problems
                    .add(rung.id.span(), format!("{key}.id"), message);
            }
            if steps.iter().any(|step| step.id == *id) {
                let message = format!("'{id}' is the id of an earlier rung; choose another");
                self.problems
                    .add(rung.id.span(), format!("{key}.id"), message);
            }
            let mut part = self.part(at, &key);
            self.bundle(rung, &part, &steps, rungs, &key);
            if service.command.is_none() {
                self.no_switches(&rung.set, &format!("{key}.set"));
            }
            let sides = self.sides(rung.on.as_ref(), &format!("{key}.on"));
            let grid = self.grid(rung, &sides, switches, service, &key);
            // Requests are no setting that could be kept.
            if part == Part::Step && grid.as_ref().is_some_and(Grid::changes_workload) {
                part = Part::Branch;
            }
            steps.push(Step {
                id: id.clone(),
                title: rung.title.clone().unwrap_or_else(|| id.clone()),
                part,
                set: self.settings(&rung.set, &sides, switches, &format!("{key}.set")),
                grid,
                bundle_with: rung
                    .bundle_with
                    .iter()
                    .map(|member| member.get().clone())
                    .collect(),
                workload: rung
                    .workload
                    .as_ref()
                    .map_or(Changes::NONE, |changes| changes.get().clone()),
                workload_after: rung
                    .workload_after
                    .as_ref()
                    .map_or(Changes::NONE, |changes| changes.get().clone()),
                shared_lock: rung.shared_lock,
                label: rung.label.clone(),
                reference: rung
                    .reference
                    .as_ref()
                    .and_then(|table| self.reference(table, &format!("{key}.reference"))),
                asked: None,
            });
        }
        steps
    }

    pub(super) fn part(&mut self, at: &At<RungTable>, key: &str) -> Part {
        let rung = at.get();
        let branch = rung.branch.as_ref().filter(|branch| *branch.get());
        let limit = rung.limit.as_ref().filter(|limit| *limit.get());
        if let (Some(_), Some(limit)) = (branch, limit) {
            let message = "a rung is a 'branch' or a 'limit', not both";
            self.problems
                .add(limit.span(), format!("{key}.limit"), message);
        }
        if let Some(note) = &rung.observe {
            let more = [
                (!rung.set.is_empty(), "set"),
                (!rung.axes.is_empty(), "axes"),
                (!rung.bundle_with.is_empty(), "bundle_with"),
                (rung.workload.is_some(), "workload"),
                (rung.workload_after.is_some(), "workload_after"),
                (branch.is_some(), "branch"),
                (limit.is_some(), "limit"),
            ];
            for (_, more) in more.into_iter().filter(|(there, _)| *there) {
                let message = format!(
                    "an observed rung is never run, so '{more}' has no effect; remove one of them"
                );
                self.problems
                    .add(note.span(), format!("{key}.observe"), message);
            }
            return Part::Observe {
                note: note.get().clone(),
            };
        }
        // A value that was refused for its shape has left the set and has its own problem.
        if let (Some(after), None, None) = (&rung.workload_after, branch, limit) {
            let message =
                "requests are no setting that could be kept; add branch = true, or limit = true";
            self.problems
                .add(after.span(), format!("{key}.workload_after"), message);
        }
        let sets_nothing =
            rung.set.is_empty() && rung.axes.is_empty() && rung.workload_after.is_none();
        let is_refused = ["set", "axes"]
            .iter()
            .any(|part| self.problems.mentions(&format!("{key}.{part}")));
        if sets_nothing && !is_refused {
            let message = "the rung changes nothing; give the change in 'set', or the reason to skip it in 'observe'";
            self.problems.add(at.span(), key, message);
        }
        match (branch, limit) {
            (_, Some(_)) => Part::Limit,
            (Some(_), None) => Part::Branch,
            (None, None) => Part::Step,
        }
    }

    pub(super) fn bundle(
        &mut self,
        rung: &RungTable,
        part: &Part,
        earlier: &[Step],
        all: &[At<RungTable>],
        key: &str,
    ) {
        for member in &rung.bundle_with {
            let id = member.get();
            let message = match earlier.iter().find(|step| step.id == *id) {
                Some(step) if step.grid.is_some() => {
                    format!("'{id}' is a grid, which is not tried again; name a rung with 'set'")
                }
                Some(step) if step.part == Part::Step && *part == Part::Step => continue,
                Some(_) if *part != Part::Step => {
                    "only a rung that can be kept may have a bundle".to_owned()
                }
                Some(_) => format!(
                    "'{id}' is never kept, so it cannot be tried again; name a rung without observe, branch and limit"
                ),
                None if id == rung.id.get() => "a rung cannot be bundled with itself".to_owned(),
                None if all.iter().any(|at| at.get().id.get() == id) => {
                    format!("'{id}' comes later; a bundle can retry only earlier rungs")
                }
                None => {
                    let near = did_you_mean(id, earlier.iter().map(|step| step.id.as_str()));
                    format!("there is no rung '{id}' before this one{near}")
                }
            };
            self.problems
                .add(member.span(), format!("{key}.bundle_with"), message);
        }
    }

    /// Service switches of a service that cannot be restarted; recognised by their prefix, as no declaration exists.
    pub(super) fn no_switches(&mut self, set: &Settings, key: &str) {
        for (id, _) in set.iter().filter(|(id, _)| {
            let knob = rungwise_knobs::find(id.get());
            id.get().starts_with("sock.") || knob.is_ok_and(Knob::is_of_java)
        }) {
            let message = format!(
                "'{}' is a service switch, and a running service cannot be restarted with other arguments; set 'command'",
                id.get()
            );
            self.problems.add(id.span(), key, message);
        }
    }

    pub(super) fn settings(
        &mut self,
        set: &Settings,
        sides: &[Side],
        switches: &Switches,
        key: &str,
    ) -> Vec<(Setting, String)> {
        let mut settings = Vec::new();
        for (id, value) in set {
            let switch = switches.get(id.get());
            self.name(
                id,
                Some(value),
                switch.is_some(),
                &format!("{key}.\"{}\"", id.get()),
            );
            if let Some(values) = switch.filter(|values| !values.contains_key(value.get())) {
                let declared = values.keys().map(String::as_str);
                let near = did_you_mean(value.get(), declared.clone());
                let message = format!(
                    "'{}' is not {}, the declared values of this switch{near}",
                    value.get(),
                    any_of(declared)
                );
                self.problems
                    .add(value.span(), format!("{key}.\"{}\"", id.get()), message);
            }
            let of_java = rungwise_knobs::find(id.get()).is_ok_and(Knob::is_of_java);
            let ends = if switch.is_some() || of_java {
                &[Side::Server]
            } else {
                sides
            };
            settings.extend(ends.iter().map(|side| {
                let setting = Setting {
                    knob: id.get().clone(),
                    side: *side,
                };
                (setting, value.get().clone())
            }));
        }
        settings
    }

    pub(super) fn sides(&mut self, on: Option<&At<Vec<At<End>>>>, key: &str) -> Vec<Side> {
        let Some(on) = on.filter(|on| !on.get().is_empty()) else {
            return vec![Side::Server];
        };
        let mut sides = Vec::new();
        for end in on.get() {
            let side = match end.get() {
                End::Server => Side::Server,
                End::Client => Side::Client,
            };
            if sides.contains(&side) {
                self.problems
                    .add(end.span(), key, "this end is listed twice");
            } else {
                sides.push(side);
            }
        }
        sides
    }

    pub(super) fn reference(&mut self, table: &ReferenceTable, key: &str) -> Option<Reference> {
        let rate_per_s = self.unit(&table.rate, &format!("{key}.rate"), units::per_second)?;
        if table
            .factor
            .is_some_and(|factor| !(factor.is_finite() && factor > 0.0))
        {
            self.problems.add(
                table.rate.span(),
                format!("{key}.factor"),
                "a factor is a positive number",
            );
        }
        Some(Reference {
            rate_per_s,
            factor: table.factor,
            source: table.source.clone(),
        })
    }
}
