//! For tests: what a few lines tell, as text.

use std::fmt::Write as _;

use crate::event::{AREAS, Event, Pause};
use crate::names::Names;
use crate::parser::Parser;

/// Reads lines and gives each event as a line of its own; unknown lines as `? text`.
pub(super) fn event_lines(log: &str) -> Vec<String> {
    let mut lines = Vec::new();
    let mut parser = Parser::new();
    let mut sink = |names: &Names, event: Event<'_>| lines.push(line(names, event));
    parser.push(log.as_bytes(), &mut sink);
    let account = parser.finish(&mut sink);
    let unknown = account.samples.iter();
    lines.extend(unknown.map(|sample| format!("? {}", sample.text)));
    lines
}

/// The only pause of some lines.
pub(super) fn pause(log: &str) -> Pause {
    let mut pauses = Vec::new();
    let mut parser = Parser::new();
    let mut sink = |_: &Names, event: Event<'_>| {
        if let Event::Pause(pause) = event {
            pauses.push(pause.clone());
        }
    };
    parser.push(log.as_bytes(), &mut sink);
    parser.finish(&mut sink);
    assert_eq!(pauses.len(), 1);
    pauses.remove(0)
}

fn line(names: &Names, event: Event<'_>) -> String {
    let at = |uptime: Option<u64>| {
        uptime.map_or_else(|| "?".to_owned(), |ns| (ns / 1_000_000).to_string())
    };
    match event {
        Event::Pause(pause) => {
            let name = names.get(pause.name);
            let began = at(pause.began.uptime_ns);
            let mut parts = vec![format!("{name} {:?} at {began} ms", pause.kind)];
            let duration = pause.duration_ns;
            parts.push(duration.map_or_else(|| "cut".to_owned(), |ns| format!("{ns} ns")));
            parts.extend(pause.cause.map(|cause| names.get(cause).to_owned()));
            for area in AREAS {
                let change = pause.areas.get(area);
                if let (Some(before), Some(after)) = (change.before, change.after) {
                    parts.push(format!("{area:?} {}->{}K", before / 1024, after / 1024));
                }
            }
            parts.extend(pause.nested.then(|| "nested".to_owned()));
            for phase in &pause.phases {
                let (depth, name) = (">".repeat(phase.depth.into()), names.get(phase.name));
                parts.push(format!("{depth}{name} {}", phase.duration_ns));
            }
            parts.join(", ")
        }
        Event::Concurrent(phase) => format!(
            "{} at {} ms, {:?} ns{}",
            names.get(phase.name),
            at(phase.began.uptime_ns),
            phase.duration_ns,
            if phase.aborted { ", aborted" } else { "" }
        ),
        Event::Safepoint(safepoint) => {
            let mut text = format!(
                "stopped at {} ms, {} ns",
                at(safepoint.began.uptime_ns),
                safepoint.total_ns
            );
            if let (Some(name), Some(ns)) = (safepoint.operation, safepoint.reaching_ns) {
                let _ = write!(text, ", {}, reached {ns} ns", names.get(name));
            }
            text
        }
        Event::Ran {
            at: when,
            duration_ns,
        } => format!("ran until {} ms, {duration_ns} ns", at(when.uptime_ns)),
        other => format!("{other:?}"),
    }
}
