//! The document of `check`: one row per rule and subject, whatever its outcome.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::Envelope;
use crate::evidence::{Missing, Reading, Subject, Unit};
use crate::readings::Readings;
use crate::service::ServiceReport;
use crate::threads::{Stage, Taken, ThreadTime};

/// Outcome of a rule.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "snake_case")]
pub enum Outcome {
    /// It costs performance now, and something can be done.
    Act,
    /// Worth knowing: no cost yet, uncertain, or to be investigated.
    Watch,
    /// Evidence is missing.
    Undecided,
    /// The evidence is complete and shows no such problem.
    Clear,
}

/// A severity or a confidence.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "snake_case")]
pub enum Grade {
    /// Low.
    Low,
    /// Medium.
    Medium,
    /// High.
    High,
}

/// A raw line that a finding is based on.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Line {
    /// File or kernel interface.
    pub source: String,
    /// The text and the value derived from it.
    pub line: String,
}

impl Line {
    /// The raw line of a reading, with the value derived from it.
    pub fn of(reading: &Reading) -> Self {
        Self {
            source: reading.origin.source.clone(),
            line: format!(
                "{} ({} {} = {})",
                reading.origin.line,
                reading.key.id,
                reading.subject,
                crate::evidence_text::value(reading)
            ),
        }
    }
}

/// A change of a knob that a finding recommends.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Recommendation {
    /// The knob.
    pub id: String,
    /// The device, disk or control group, if the knob belongs to one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub device: Option<String>,
    /// Current value; null if unknown.
    pub from: Option<String>,
    /// The recommended value, in the knob's own notation; null if the choice is yours.
    pub to: Option<String>,
}

/// An estimated gain, not a measured one. Estimates of several findings do not add up.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Estimate {
    /// Lower end, as a fraction of the rate.
    pub low: f64,
    /// Upper end.
    pub high: f64,
    /// Basis of the estimate.
    pub basis: String,
}

/// A value that was needed and is missing.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Lack {
    /// The key.
    pub key: String,
    /// Why it is missing.
    pub reason: String,
    /// What you can do; empty if nothing helps.
    pub remedy: String,
}

impl From<Missing> for Lack {
    fn from(missing: Missing) -> Self {
        Self {
            key: missing.key.to_owned(),
            reason: missing.why.reason,
            remedy: missing.why.remedy,
        }
    }
}

/// The result of one rule for one subject.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Finding {
    /// The rule; filled in by the code that runs the rules.
    pub rule: String,
    /// Outcome.
    pub outcome: Outcome,
    /// `host`, `cpu/3`, `device/eth0`, ...
    pub subject: String,
    /// Severity: how much it costs.
    pub severity: Grade,
    /// Confidence.
    pub confidence: Grade,
    /// One sentence.
    pub sentence: String,
    /// The raw lines it is based on.
    pub evidence: Vec<Line>,
    /// Recommended changes, the most useful first.
    pub knobs: Vec<Recommendation>,
    /// Values needed to decide; only for undecided.
    pub missing: Vec<Lack>,
    /// Distance of the evidence from the threshold, as a fraction of the threshold: 0.9 is far, 0 is at it. Only for clear.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub distance: Option<f64>,
    /// Estimated gain of the change.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub estimate: Option<Estimate>,
    /// Expected effect of the recommended change, with its limit; empty if nothing is recommended or the effect is unknown.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub expected: String,
    /// The equivalent on newer releases, if the recommendation is for an old one; else empty.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub newer: String,
    /// What would prove it wrong; empty if it is not a finding.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub refuted_by: String,
}

impl Finding {
    fn new(outcome: Outcome, subject: &Subject, sentence: impl Into<String>) -> Self {
        Self {
            rule: String::new(),
            outcome,
            subject: subject.to_string(),
            severity: Grade::Medium,
            confidence: Grade::Medium,
            sentence: sentence.into(),
            evidence: Vec::new(),
            knobs: Vec::new(),
            missing: Vec::new(),
            distance: None,
            estimate: None,
            expected: String::new(),
            newer: String::new(),
            refuted_by: String::new(),
        }
    }

    /// It costs performance now, and something can be done; medium severity and confidence by default.
    pub fn act(subject: &Subject, sentence: impl Into<String>) -> Self {
        Self::new(Outcome::Act, subject, sentence)
    }

    /// Worth knowing.
    pub fn watch(subject: &Subject, sentence: impl Into<String>) -> Self {
        Self::new(Outcome::Watch, subject, sentence)
    }

    /// No such problem; the sentence says what was observed instead.
    pub fn clear(sentence: impl Into<String>) -> Self {
        Self::new(Outcome::Clear, &Subject::host(), sentence)
    }

    /// Evidence is missing.
    pub fn undecided(missing: Vec<Lack>) -> Self {
        let sentence = missing.first().map_or_else(String::new, |lack| {
            format!("{} is unknown: {}", lack.key, lack.reason)
        });
        Self {
            missing,
            ..Self::new(Outcome::Undecided, &Subject::host(), sentence)
        }
    }

    /// Sets the severity.
    #[must_use]
    pub fn severity(mut self, grade: Grade) -> Self {
        self.severity = grade;
        self
    }

    /// Sets the confidence.
    #[must_use]
    pub fn confidence(mut self, grade: Grade) -> Self {
        self.confidence = grade;
        self
    }

    /// Cites a reading.
    #[must_use]
    pub fn cite(mut self, reading: &Reading) -> Self {
        self.evidence.push(Line::of(reading));
        self
    }

    /// Recommends a value for a knob of the host.
    #[must_use]
    pub fn turn(mut self, knob: &str, to: impl Into<String>) -> Self {
        self.knobs.push(Recommendation {
            id: knob.to_owned(),
            device: None,
            from: None,
            to: Some(to.into()),
        });
        self
    }

    /// Recommends a value for a knob of a device, a disk or a control group.
    #[must_use]
    pub fn turn_device(mut self, knob: &str, device: &str, to: impl Into<String>) -> Self {
        self = self.turn(knob, to);
        if let Some(turn) = self.knobs.last_mut() {
            turn.device = Some(device.to_owned());
        }
        self
    }

    /// Names a knob whose value the user has to choose.
    #[must_use]
    pub fn consider(mut self, knob: &str) -> Self {
        self.knobs.push(Recommendation {
            id: knob.to_owned(),
            device: None,
            from: None,
            to: None,
        });
        self
    }

    /// The same for a knob of a device, a disk or a control group.
    #[must_use]
    pub fn consider_device(mut self, knob: &str, device: &str) -> Self {
        self = self.consider(knob);
        if let Some(turn) = self.knobs.last_mut() {
            turn.device = Some(device.to_owned());
        }
        self
    }

    /// Sets the distance from the threshold: `value` against `line`, where higher is worse.
    #[must_use]
    pub fn below(mut self, value: f64, line: f64) -> Self {
        self.distance = Some(((line - value) / line).clamp(0.0, 1.0));
        self
    }

    /// The same where lower is worse.
    #[must_use]
    pub fn above(mut self, value: f64, line: f64) -> Self {
        self.distance = Some(((value - line) / value.abs().max(f64::MIN_POSITIVE)).clamp(0.0, 1.0));
        self
    }

    /// Sets the expected effect of the recommended change.
    #[must_use]
    pub fn expect(mut self, what: impl Into<String>) -> Self {
        self.expected = what.into();
        self
    }

    /// Sets the equivalent on newer releases.
    #[must_use]
    pub fn newer(mut self, what: impl Into<String>) -> Self {
        self.newer = what.into();
        self
    }

    /// Sets what would prove it wrong.
    #[must_use]
    pub fn refuted_by(mut self, what: impl Into<String>) -> Self {
        self.refuted_by = what.into();
        self
    }

    /// Sets the estimated gain, as fractions of the rate.
    #[must_use]
    pub fn estimate(mut self, low: f64, high: f64, basis: impl Into<String>) -> Self {
        self.estimate = Some(Estimate {
            low,
            high,
            basis: basis.into(),
        });
        self
    }
}

/// The data of a table or a chart of the page.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Table {
    /// Its stable id: `core-map`, `loss-ladder`, ...
    pub id: String,
    /// Title; for a chart, its statement.
    pub title: String,
    /// The columns in the order of the page; a column without any value is omitted.
    pub columns: Vec<Column>,
    /// The rows in the order of the page: a value for each column, by the column's key.
    pub rows: Vec<BTreeMap<String, Option<Scalar>>>,
}

/// A column of a [`Table`].
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Column {
    /// Its stable key, under which rows contain its values.
    pub key: String,
    /// Heading.
    pub name: String,
    /// Unit of its numbers; null if it differs by row.
    pub unit: Option<Unit>,
}

/// A value in a [`Table`]; what is unknown is null there, never zero.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
pub enum Scalar {
    /// A number, not rounded.
    Number(f64),
    /// Text.
    Text(String),
}

/// Utilisation, saturation and errors of a resource: a row of the USE table
/// (Gregg, "Thinking Methodically about Performance", 2012).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Resource {
    /// Its stable id: `cpus`, `disks`, `tcp`.
    pub id: String,
    /// Its common name.
    pub title: String,
    /// How much of it is in use; null if not applicable.
    pub utilisation: Option<Cell>,
    /// Whether work waits for it.
    pub saturation: Option<Cell>,
    /// Whether it drops or refuses work.
    pub errors: Option<Cell>,
}

impl Resource {
    /// Its cells with their aspects.
    pub fn cells(&self) -> impl Iterator<Item = (&'static str, &Cell)> {
        [
            ("utilisation", &self.utilisation),
            ("saturation", &self.saturation),
            ("errors", &self.errors),
        ]
        .into_iter()
        .filter_map(|(aspect, cell)| Some((aspect, cell.as_ref()?)))
    }
}

/// One aspect of a resource.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Cell {
    /// Below its threshold, at or above it, not read, or not present.
    pub level: Level,
    /// The reading nearest to its threshold, or furthest beyond it; null if there is none.
    pub value: Option<f64>,
    /// Threshold of that reading.
    pub line: Option<f64>,
    /// Unit of both.
    pub unit: Option<Unit>,
    /// Its subject: `cpu/0`, `disk/vda`, `host`; empty if nothing was read.
    pub subject: String,
    /// What was read, or why nothing was.
    pub note: String,
    /// The rule that explains a high cell; empty if none does.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub explained_by: String,
}

/// Level of a [`Cell`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Level {
    /// Read, and below its threshold.
    Low,
    /// At its threshold or beyond.
    High,
    /// Not read, or read in part only.
    Unseen,
    /// This machine has no such resource.
    None,
}

/// Overall result of a check, the strongest first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Standing {
    /// A rule recommends to act.
    Act,
    /// A resource is saturated or has errors.
    Saturated,
    /// No problem found, but some resources could not be read.
    Unseen,
    /// No problem found, and all resources were read.
    Healthy,
}

impl Standing {
    /// The result for these findings and resources. In a document without resources, such as one for a file, only the
    /// findings count.
    pub fn from_findings(findings: &[Finding], resources: &[Resource]) -> Self {
        let has = |level| {
            let mut cells = resources.iter().flat_map(Resource::cells);
            cells.any(|(_, cell)| cell.level == level)
        };
        let decided = |finding: &Finding| finding.outcome != Outcome::Undecided;
        if findings
            .iter()
            .any(|finding| finding.outcome == Outcome::Act)
        {
            Self::Act
        } else if has(Level::High) {
            Self::Saturated
        } else if has(Level::Unseen) || !findings.iter().any(decided) {
            Self::Unseen
        } else {
            Self::Healthy
        }
    }
}

/// The document of `check`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct CheckReport {
    /// Common fields.
    #[serde(flatten)]
    pub envelope: Envelope,
    /// `this host`, `pid 4242 (nginx) on this host`, or the file that was judged.
    pub target: String,
    /// Where it was judged; null for the files of a JVM, and in documents written before it was recorded.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub place: Option<Place>,
    /// Name of the captured host; empty in documents written before it was recorded.
    #[serde(default)]
    pub host: String,
    /// Time of the capture, RFC 3339 in UTC, not of its judgement. None if it was not recorded.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub taken: Option<String>,
    /// Length of the window in seconds.
    pub window_s: f64,
    /// Act first, then watch, undecided, clear; within each the severest first.
    pub findings: Vec<Finding>,
    /// Overall result; null in documents written before it was recorded.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub standing: Option<Standing>,
    /// The USE table; empty in documents written before it was recorded.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub resources: Vec<Resource>,
    /// Data of the charts and tables of the page; empty in documents written before it was recorded.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tables: Vec<Table>,
    /// Readings of the host that the page shows; empty in documents written before it was recorded.
    #[serde(default, skip_serializing_if = "Readings::is_empty")]
    pub readings: Readings,
    /// The JVM that was asked during the window; null if the process is none, or `--no-jvm` was given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub jvm: Option<CheckedJvm>,
    /// The connections of the service that was named; null without `--socket`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub service: Option<ServiceReport>,
    /// The files that were judged together; empty where one thing was judged.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub files: Vec<JudgedFile>,
}

/// A file that was judged together with others, and the time that it covers.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct JudgedFile {
    /// Its name as it was given.
    pub file: String,
    /// What it is: `a capture`, `a GC log`, `thread dumps`, `a Flight Recorder file`.
    pub what: String,
    /// When it begins: RFC 3339 in UTC, or as a thread dump prints it; null if not recorded.
    pub from: Option<String>,
    /// When it ends, likewise; null for a capture.
    pub to: Option<String>,
}

/// What a running JVM was asked for during the window of a check.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct CheckedJvm {
    /// How its thread dumps were taken and what they cost it; null if none could be taken.
    pub taken: Option<Taken>,
    /// CPU use and waits of its threads over the dumps.
    pub times: Vec<ThreadTime>,
    /// Where its threads were, by stages of the code.
    pub stages: Vec<Stage>,
    /// The GC log that it writes; null if none was found.
    pub gc_log: Option<String>,
    /// Why something is missing.
    pub notes: Vec<String>,
}

/// Where a check was made: its findings may change this host only if they are about it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Place {
    /// On the host, in the network namespace of rungwise.
    Host,
    /// On the host, in the network namespace of the judged process, which is another one.
    OtherNamespace,
    /// In a capture.
    Capture,
}
