//! `/proc/PID/limits`: resource limits of the judged process.

use rungwise_formats::limits::{self, Limit};
use rungwise_model::evidence::{Absence, Evidence, Kind, Origin, Subject, Unit};
use rungwise_model::evidence_text::number_of;
use rungwise_model::keys;

use super::unnamed;
use crate::{Cost, Need, Probe, Source, Window, enter};

const LIMITS: &str = "/proc/{pid}/limits";

/// Limits that network services reach; other limits are reported only if set.
const ALWAYS: [&str; 3] = ["open files", "processes", "locked memory"];

/// Those that are small for every process and limit no service.
const NEVER: [&str; 7] = [
    "core file size",
    "stack size",
    "pending signals",
    "msgqueue size",
    "nice priority",
    "realtime priority",
    "file locks",
];

/// The probe.
pub(crate) static PROBE: Probe = Probe {
    id: "proc-pid-limits",
    summary: "resource limits of the judged process: open files, threads, locked memory",
    cost: Cost::Free,
    needs: &[Need::Root],
    sources: &[Source::once(LIMITS)],
    yields: &[&keys::PROCESS_LIMITS],
    derive,
    doc: "\
The soft limits, which apply; if the process can raise one itself, the hard limit follows in parentheses. A connection \
is an open file. `processes` counts the threads of the user on the whole machine, and does not apply to root. Other \
users' processes need root. Sources: fs/proc/base.c of Linux 6.18; getrlimit(2).",
};

fn derive(window: &Window<'_>, evidence: &mut Evidence) {
    let Some(process) = &window.capture().process else {
        return evidence.absent(PROBE.yields, &unnamed(), LIMITS);
    };
    let path = LIMITS.replace("{pid}", &process.pid.to_string());
    let subject = Subject::new(Kind::Process, process.pid);
    let joined = window.text(&path).and_then(|text| {
        let entries: Vec<String> = limits::parse(text)
            .filter_map(|limit| tell(&limit))
            .collect();
        let none = || Absence::because(format!("{path} contains no limits"));
        (!entries.is_empty())
            .then(|| entries.join(", "))
            .ok_or_else(none)
    });
    let line = joined.clone().unwrap_or_default();
    let joined = joined.as_deref().map_err(Absence::clone);
    enter::text(
        evidence,
        &keys::PROCESS_LIMITS,
        subject,
        joined,
        Origin::new(path, &line),
    );
}

/// `open files 1024 (up to 524288)`
fn tell(limit: &Limit<'_>) -> Option<String> {
    let Limit {
        name,
        soft,
        hard,
        unit,
    } = *limit;
    if NEVER.contains(&name) || (soft.is_none() && !ALWAYS.contains(&name)) {
        return None;
    }
    let number = |limit: u64| match unit {
        "bytes" => number_of(Unit::Bytes, limit as f64),
        "seconds" | "us" => format!("{limit} {unit}"),
        // The name contains the unit.
        _ => limit.to_string(),
    };
    let written = |limit: Option<u64>| limit.map_or("unlimited".to_owned(), number);
    let raised = if hard == soft {
        String::new()
    } else {
        format!(" (up to {})", written(hard))
    };
    Some(format!("{name} {}{raised}", written(soft)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_limit_says_what_it_is_counted_in() {
        let text = "\
Max locked memory         8388608              unlimited            bytes
Max open files            1024                 524288               files
Max realtime timeout      200                  200                  us
";
        let entries: Vec<String> = limits::parse(text)
            .filter_map(|limit| tell(&limit))
            .collect();
        assert_eq!(
            entries,
            [
                "locked memory 8 MiB (up to unlimited)",
                "open files 1024 (up to 524288)",
                "realtime timeout 200 us",
            ]
        );
    }
}
