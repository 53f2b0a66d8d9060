//! What `check` is given: a stranger's capture, a host in texts, a casebook. Whatever it says, there is a judgement.

use std::path::Path;

use rungwise_model::check::{CheckReport, Outcome, Standing};
use rungwise_model::evidence::{Evidence, Value};
use rungwise_model::{Envelope, Exit, Tool};
use rungwise_probes::{Capture, bundle, host_text, mask};
use rungwise_report::{check, html, markdown, terminal};

use crate::book::Book;

/// A capture in a file, packed or not, or the text of a host.
pub fn bundle(bytes: &[u8]) {
    if let Ok(capture) = bundle::unpack(bytes, Path::new("fuzz.rungwise")) {
        captured(capture);
    }
    let mut capture = Capture::default();
    if let Ok(text) = std::str::from_utf8(bytes)
        && host_text::parse(text, &mut capture).is_ok()
    {
        captured(capture);
    }
}

fn captured(mut capture: Capture) {
    let evidence = rungwise_probes::evidence(&capture);
    for reading in evidence.readings() {
        let finite = !matches!(reading.value, Value::Number(number) if !number.is_finite());
        assert!(finite, "{} is not finite", reading.key.id);
    }
    judged(&evidence);

    mask::secrets(&mut capture);
    mask::addresses(&mut capture);
    let packed = bundle::pack(&capture).expect("a capture is JSON");
    // One from a text may have no sample, or samples that no clock gives.
    if let Ok(again) = bundle::unpack(&packed, Path::new("again")) {
        assert_eq!(again, capture, "it comes back otherwise");
    }
}

/// Every rule comes to a conclusion, and it can be shown.
fn judged(evidence: &Evidence) {
    let findings = rungwise_rules::judge(evidence);
    for finding in &findings {
        assert!(
            finding.outcome != Outcome::Undecided || !finding.missing.is_empty(),
            "{} does not say what it lacks",
            finding.rule
        );
    }
    let resources = rungwise_rules::resources(evidence);
    let report = CheckReport {
        service: None,
        place: None,
        jvm: None,
        files: Vec::new(),
        readings: rungwise_model::readings::Readings::default(),
        envelope: Envelope {
            schema: 1,
            document: None,
            run: None,
            written_on: None,
            tool: Tool {
                version: String::new(),
            },
            command: Vec::new(),
            started: String::new(),
            finished: String::new(),
            exit: Exit::Done,
        },
        target: "fuzz".to_owned(),
        host: String::new(),
        taken: None,
        window_s: evidence.seconds(),
        standing: Some(Standing::from_findings(&findings, &resources)),
        findings,
        resources,
        tables: check::tables(evidence),
    };
    rungwise_report::json(&report).expect("a check is JSON");
    let blocks = check::blocks(&report, evidence, &[]);
    let text = terminal::render(&blocks, 80, false);
    let order = text.chars().find(|c| c.is_control() && *c != '\n');
    assert_eq!(order, None, "an order to the terminal");
    html::page("fuzz", &blocks);
    markdown::render(&blocks);
}

/// A rule's book of cases: evidence as people write it, with values that no machine gives.
pub fn casebook(bytes: &[u8]) {
    let Ok(text) = std::str::from_utf8(bytes) else {
        return;
    };
    if let Ok(book) = Book::parse(text) {
        for case in &book.cases {
            judged(&case.evidence);
        }
    }
}
