//! Findings of `check` as SARIF, for code-scanning pages and CI systems that show it.
//!
//! What costs is an error or a warning by its severity, what is worth knowing a note. What could not be
//! measured is a notification of the tool and no result, and what passed is left out: viewers show a result
//! as a problem whatever its kind. Format: OASIS SARIF 2.1.0 with errata 01.

use rungwise_model::check::{CheckReport, Finding, Grade, Outcome};
use serde_json::{Value, json};

use crate::Error;
use crate::check::About;

const SCHEMA: &str =
    "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json";

/// The whole document; `rules` are all that were evaluated, with or without findings.
pub fn render(report: &CheckReport, rules: &[About]) -> Result<String, Error> {
    let results: Vec<Value> = report
        .findings
        .iter()
        .filter_map(|finding| Some(result(finding, level(finding)?, rules)))
        .collect();
    let notes: Vec<Value> = report
        .findings
        .iter()
        .filter(|finding| finding.outcome == Outcome::Undecided)
        .map(notification)
        .collect();
    let envelope = &report.envelope;
    crate::json(&json!({
        "$schema": SCHEMA,
        "version": "2.1.0",
        "runs": [{
            "tool": { "driver": {
                "name": "rungwise",
                "semanticVersion": envelope.tool.version,
                "rules": rules.iter().map(descriptor).collect::<Vec<_>>(),
            }},
            "invocations": [{
                "arguments": envelope.command.get(1..).unwrap_or_default(),
                "startTimeUtc": envelope.started,
                "endTimeUtc": envelope.finished,
                "exitCode": u8::from(envelope.exit),
                // Findings are no failure of the tool.
                "executionSuccessful": true,
                "toolExecutionNotifications": notes,
            }],
            "results": results,
            "properties": { "target": report.target, "window_s": report.window_s },
        }],
    }))
}

/// How a viewer shows it; nothing for what is no result.
fn level(finding: &Finding) -> Option<&'static str> {
    match (finding.outcome, finding.severity) {
        (Outcome::Act, Grade::High) => Some("error"),
        (Outcome::Act, Grade::Medium | Grade::Low) => Some("warning"),
        (Outcome::Watch, _) => Some("note"),
        (Outcome::Undecided | Outcome::Clear, _) => None,
    }
}

fn descriptor(rule: &About) -> Value {
    json!({
        "id": rule.id,
        "shortDescription": { "text": rule.summary },
        // GitHub asks for it as well.
        "fullDescription": { "text": rule.summary },
        "help": { "text": rule.page, "markdown": rule.page },
        "properties": { "tags": [rule.topic] },
    })
}

fn result(finding: &Finding, level: &str, rules: &[About]) -> Value {
    let mut result = json!({
        "ruleId": finding.rule,
        "level": level,
        "message": { "text": finding.sentence },
        "locations": [location(finding)],
        // The same trouble of the same subject is the same alert, whatever its numbers today.
        "partialFingerprints": {
            "ruleAndSubject/v1": format!("{} {}", finding.rule, lasting(&finding.subject)),
        },
        "properties": {
            "severity": finding.severity,
            "confidence": finding.confidence,
            "evidence": finding.evidence,
            "knobs": finding.knobs,
            "estimate": finding.estimate,
            "expected": finding.expected,
            "newer": finding.newer,
            "refuted_by": finding.refuted_by,
        },
    });
    if let Some(index) = rules.iter().position(|rule| rule.id == finding.rule) {
        result["ruleIndex"] = json!(index);
    }
    result
}

/// The subject, and where the first raw line stands: GitHub refuses a result without a file and a line in it.
fn location(finding: &Finding) -> Value {
    let first = finding.evidence.first();
    let source = first.map_or(finding.rule.as_str(), |line| line.source.as_str());
    let mut location = json!({
        "logicalLocations": [{ "fullyQualifiedName": finding.subject, "kind": "resource" }],
        "physicalLocation": {
            "artifactLocation": { "uri": uri(source) },
            "region": { "startLine": 1 },
        },
    });
    if let Some(line) = first {
        location["message"] = json!({ "text": line.line });
    }
    location
}

/// A source as a URI (RFC 3986): a path as that of a file (RFC 8089); a pattern or an interface of the kernel has no file, and
/// its name stands for it.
fn uri(source: &str) -> String {
    use std::fmt::Write as _;
    let plain = |b: u8| b.is_ascii_alphanumeric() || b"-._~/@+,=".contains(&b);
    let mut uri = if source.starts_with('/') {
        "file://".to_owned()
    } else {
        String::new()
    };
    for byte in source.bytes() {
        if plain(byte) {
            uri.push(char::from(byte));
        } else {
            // Writing to a string never fails.
            let _ = write!(uri, "%{byte:02X}");
        }
    }
    uri
}

/// The subject as it is tomorrow: a process or thread has another number then.
fn lasting(subject: &str) -> &str {
    let numbered = ["process/", "thread/", "jvm/", "deadlock/"];
    match subject.split_once('/') {
        Some((kind, _)) if numbered.iter().any(|known| subject.starts_with(known)) => kind,
        _ => subject,
    }
}

fn notification(finding: &Finding) -> Value {
    let remedy = finding
        .missing
        .first()
        .map(|lack| lack.remedy.as_str())
        .filter(|remedy| !remedy.is_empty())
        .map_or_else(String::new, |remedy| format!("; {remedy}"));
    json!({
        "associatedRule": { "id": finding.rule },
        "level": "note",
        "message": { "text": format!("{}{remedy}", finding.sentence) },
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_costs_is_an_error_and_what_passed_is_no_result() {
        let host = rungwise_model::evidence::Subject::host();
        let act = |grade| Finding::act(&host, "it hurts").severity(grade);
        assert_eq!(level(&act(Grade::High)), Some("error"));
        assert_eq!(level(&act(Grade::Low)), Some("warning"));
        assert_eq!(level(&Finding::watch(&host, "look")), Some("note"));
        assert_eq!(level(&Finding::clear("fine")), None);
        assert_eq!(level(&Finding::undecided(Vec::new())), None);
    }

    #[test]
    fn every_source_is_a_uri() {
        assert_eq!(uri("/proc/net/snmp"), "file:///proc/net/snmp");
        assert_eq!(uri("/sys/block/*/stat"), "file:///sys/block/%2A/stat");
        assert_eq!(uri("lock:contention_begin"), "lock%3Acontention_begin");
    }

    #[test]
    fn the_same_trouble_after_a_restart_is_the_same_alert() {
        use rungwise_model::evidence::{Kind, Subject};
        let of = |kind, name| lasting(&Subject::new(kind, name).to_string()).to_owned();
        assert_eq!(of(Kind::Process, "4242"), of(Kind::Process, "812"));
        assert_eq!(of(Kind::Thread, "4243"), of(Kind::Thread, "17"));
        assert_ne!(of(Kind::Port, "udp/9000"), of(Kind::Port, "udp/53"));
    }
}
