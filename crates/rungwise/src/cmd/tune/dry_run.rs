//! `--dry-run`: the plan in words, nothing changed.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use rungwise_experiment::design::{Design, Part};
use rungwise_experiment::lab::{Blueprint, Wanted};
use rungwise_experiment::scenario::Service;

/// The plan of a run.
pub(super) fn plan(design: &Design, blueprint: &Blueprint) -> String {
    let mut text = String::new();
    // Writing to a String cannot fail.
    let _ = render(&mut text, design, blueprint);
    text
}

fn render(text: &mut String, design: &Design, blueprint: &Blueprint) -> std::fmt::Result {
    writeln!(text, "{}", design.title)?;
    writeln!(text)?;
    let place = match &blueprint.topology {
        Wanted::Namespaces { queues } => {
            format!(
                "two network namespaces of its own, a veth pair with {queues} queues between them"
            )
        }
        Wanted::Loopback { why } => format!("loopback ({why})"),
        Wanted::Host { device } => format!(
            "this host{}; every change is journalled and undone",
            device
                .as_ref()
                .map_or_else(String::new, |name| format!(", device {name}"))
        ),
    };
    writeln!(text, "place    {place}")?;
    let service = match &blueprint.service {
        Service::Started(started) => started
            .command_for(&BTreeMap::new(), &blueprint.places)
            .map_or_else(|error| error.to_string(), |argv| argv.join(" ")),
        Service::Running { pid } => pid.map_or_else(
            || "runs already".to_owned(),
            |pid| format!("runs already as process {pid}"),
        ),
    };
    writeln!(text, "service  {service}")?;
    writeln!(text, "traffic  {blueprint}")?;
    let judging = &design.judging;
    let most = judging.most_pairs();
    let each = blueprint.workload.warmup.as_secs_f64() + blueprint.measured_s();
    writeln!(
        text,
        "pairs    looks at {:?}; at most {most} pairs a comparison, {each:.2} s a run, {} comparisons: at most {:.0} s plus waiting for quiet",
        judging.looks,
        judging.comparisons,
        2.0 * each * f64::from(most) * (judging.comparisons + 1) as f64
    )?;
    if !design.baseline.is_empty() {
        writeln!(text, "start")?;
        for (setting, value) in &design.baseline {
            writeln!(
                text,
                "         {} = {value} ({:?})",
                setting.knob, setting.side
            )?;
        }
    }
    for (index, step) in design.steps.iter().enumerate() {
        let part = match &step.part {
            Part::Step => String::new(),
            Part::Branch => " [judged, not carried on]".to_owned(),
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
                "         {} = {value} ({:?})",
                setting.knob, setting.side
            )?;
        }
        if !step.bundle_with.is_empty() {
            writeln!(
                text,
                "         tried together with {} where that was not kept alone",
                step.bundle_with.join(", ")
            )?;
        }
    }
    Ok(())
}
