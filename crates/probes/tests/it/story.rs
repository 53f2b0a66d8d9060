//! Evidence of hosts in texts, as a list.

use rungwise_model::evidence::Evidence;
use rungwise_model::evidence_text;
use rungwise_probes::capture::{Capture, Process};
use rungwise_probes::{PROBES, Window, host_text};

/// The capture that `text` tells; with `pid`, of that process.
pub(crate) fn capture(text: &str, pid: Option<u32>) -> Capture {
    let mut capture = Capture {
        process: pid.map(|pid| Process {
            pid,
            name: "judged".to_owned(),
        }),
        ..Capture::default()
    };
    host_text::parse(text, &mut capture).expect("a host in texts");
    capture
}

/// What these probes alone say of the capture.
pub(crate) fn derive(capture: &Capture, ids: &[&str]) -> Evidence {
    let window = Window::of(capture);
    let mut evidence = Evidence::over(window.seconds());
    for id in ids {
        let probe = PROBES.iter().find(|probe| probe.id == *id);
        let probe = probe.unwrap_or_else(|| panic!("no probe {id}"));
        (probe.derive)(&window, &mut evidence);
    }
    evidence
}

/// One line per reading: key, subject, value, course, raw text.
pub(crate) fn list(evidence: &Evidence) -> String {
    use std::fmt::Write as _;
    let mut text = String::new();
    for reading in evidence.readings() {
        let _ = write!(
            text,
            "{} {} = {}",
            reading.key.id,
            reading.subject,
            evidence_text::value(reading)
        );
        if reading.series.len() > 1 {
            let course: Vec<String> = reading
                .series
                .iter()
                .map(|value| evidence_text::number_of(reading.key.unit, *value))
                .collect();
            let _ = write!(text, " [{}]", course.join(", "));
        }
        let _ = writeln!(
            text,
            " | {}: {}",
            reading.origin.source,
            reading.origin.line.replace('\n', " / ")
        );
    }
    text
}
