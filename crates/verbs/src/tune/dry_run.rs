//! `--dry-run`: the plan in words, nothing changed.

use std::fmt::Write as _;

use rungwise_experiment::design::{Auto, Design, Part, Point, Step};
use rungwise_experiment::lab::Blueprint;

use super::build::Building;
use crate::problem::without_orders;

/// The plan of a run.
pub(super) fn plan(design: &Design, blueprint: &Blueprint, building: Option<&Building>) -> String {
    let mut text = String::new();
    // Writing to a String cannot fail.
    let _ = render(&mut text, design, blueprint, building);
    without_orders(&text)
}

fn render(
    text: &mut String,
    design: &Design,
    blueprint: &Blueprint,
    building: Option<&Building>,
) -> std::fmt::Result {
    writeln!(text, "{}", design.title)?;
    writeln!(text)?;
    writeln!(
        text,
        "place    {}; every change is journalled and undone",
        blueprint.topology
    )?;
    if let Some(building) = building {
        writeln!(text, "build    {building}")?;
    }
    let start = design.baseline.iter().cloned().collect();
    writeln!(text, "service  {}", blueprint.service_line(&start))?;
    for (name, lines) in blueprint.service_files(&start) {
        writeln!(text, "file     {{scratch}}/{name}")?;
        for line in lines.lines() {
            writeln!(text, "         | {line}")?;
        }
    }
    writeln!(text, "traffic  {blueprint}")?;
    let judging = &design.judging;
    let most = judging.most_pairs();
    let limits = design
        .steps
        .iter()
        .filter(|step| step.part == Part::Limit)
        .count();
    // And the machine against itself.
    let compared = judging.comparisons + limits + 1;
    let looks: Vec<String> = judging.looks.iter().map(u32::to_string).collect();
    let looks = looks.join(", ");
    let each = blueprint.warmup_s() + blueprint.measured_s() + blueprint.counted_s();
    let requests = match blueprint.requests() {
        0 => String::new(),
        requests => format!(" and {requests} requests"),
    };
    let cells = |step: &Step| step.grid.as_ref().map_or(0, |grid| grid.cells().len());
    // Two runs a pair; a cell that is the state before its rung is not measured.
    let runs_of = |cells: usize| 2 * Design::PAIRS_OF_A_CELL as usize * cells;
    writeln!(
        text,
        "pairs    decisions after {looks}; {each:.2} s{requests} a run, two runs a pair, {compared} comparisons: {:.0} s of load if all of them take {most} pairs; discarded pairs, service restarts and waiting for a quiet machine come on top",
        2.0 * each * f64::from(most) * compared as f64
    )?;
    let all_cells: usize = design.steps.iter().map(cells).sum();
    if all_cells > 0 {
        let runs = runs_of(all_cells);
        writeln!(
            text,
            "cells    {all_cells} cells of grids, {} pairs each, which decide nothing: at most {runs} runs, {:.0} s of load more",
            Design::PAIRS_OF_A_CELL,
            each * runs as f64
        )?;
    }
    for control in &judging.controls {
        writeln!(text, "control  {control}")?;
    }
    if !design.baseline.is_empty() {
        writeln!(text, "start")?;
        for (setting, value) in &design.baseline {
            writeln!(
                text,
                "         {} = {value} ({})",
                setting.knob, setting.side
            )?;
        }
    }
    if let Some(auto) = &design.auto {
        writeln!(
            text,
            "rungs    found in captures of {:.1} s under load, before the first rung and after each: at most {}, and {} retries as a bundle",
            auto.capture_s,
            auto.max_rungs,
            Auto::BUNDLES
        )?;
        let switches: Vec<&str> = auto.switches.keys().map(String::as_str).collect();
        writeln!(
            text,
            "         candidates: what the rules recommend for the machine, and these switches: {}",
            if switches.is_empty() {
                "none".to_owned()
            } else {
                switches.join(", ")
            }
        )?;
    }
    for (index, step) in design.steps.iter().enumerate() {
        let part = match &step.part {
            Part::Step => String::new(),
            Part::Branch => " [judged, not kept for later rungs]".to_owned(),
            Part::Limit => " [limit, measured only]".to_owned(),
            Part::Observe { note } => format!(" [not run: {note}]"),
        };
        writeln!(
            text,
            "rung {:>2}  {}: {}{part}",
            index + 1,
            step.id,
            step.title
        )?;
        for (setting, value) in &step.set {
            writeln!(
                text,
                "         {} = {value} ({})",
                setting.knob, setting.side
            )?;
        }
        if let Some(grid) = &step.grid {
            let runs = runs_of(cells(step));
            writeln!(
                text,
                "         grid of {} cells: {runs} runs, {:.0} s; the best cell is judged against the state before, then its neighbours against it",
                cells(step),
                each * runs as f64
            )?;
            for axis in &grid.axes {
                writeln!(text, "         axis {}", axis.title)?;
                for point in &axis.points {
                    writeln!(text, "           {}: {}", point.label, changes_of(point))?;
                }
            }
        }
        let requests: Vec<&str> = step.workload_after.keys().collect();
        if !requests.is_empty() {
            writeln!(
                text,
                "         requests with another {}",
                requests.join(", ")
            )?;
        }
        let set = step.set.iter().cloned().collect();
        if let Some(changes) = blueprint.java_changes(&set) {
            writeln!(text, "         {changes}")?;
        }
        if !step.bundle_with.is_empty() {
            writeln!(
                text,
                "         tried together with {} if that was not kept alone",
                step.bundle_with.join(", ")
            )?;
        }
    }
    Ok(())
}

/// What a point of a grid changes.
fn changes_of(point: &Point) -> String {
    let set = point
        .set
        .iter()
        .map(|(setting, value)| format!("{} = {value} ({})", setting.knob, setting.side));
    let requests = point
        .workload
        .keys()
        .map(|key| format!("requests with another {key}"));
    let changes: Vec<String> = set.chain(requests).collect();
    if changes.is_empty() {
        "nothing".to_owned()
    } else {
        changes.join(", ")
    }
}
