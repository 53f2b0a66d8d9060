//! What `check` says of a machine: one row per rule and subject, whatever its outcome.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::Envelope;
use crate::evidence::{Missing, Reading, Subject, Unit};
use crate::readings::Readings;

/// What came of a rule.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "snake_case")]
pub enum Outcome {
    /// It costs now, and something can be done.
    Act,
    /// Worth knowing: not yet a cost, not sure, or nothing to do but look further.
    Watch,
    /// Evidence is missing.
    Undecided,
    /// The evidence is there and shows no such sickness.
    Clear,
}

/// How much, or how sure.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "snake_case")]
pub enum Grade {
    /// Little.
    Low,
    /// Some.
    Medium,
    /// Much.
    High,
}

/// A raw line that a finding rests on.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Line {
    /// File or kernel interface.
    pub source: String,
    /// What stood there, and the value made of it.
    pub line: String,
}

impl Line {
    /// What a reading rests on, with the value made of it.
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

/// A turn of a knob that a finding asks for.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Turn {
    /// The knob.
    pub id: String,
    /// The device, disk or control group, for a knob of one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub device: Option<String>,
    /// How it stands; null where that is unknown.
    pub from: Option<String>,
    /// The wish, in the knob's own words; null where it is for a person to choose.
    pub to: Option<String>,
}

/// A gain that is not measured but reckoned. Estimates of several findings do not add up.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Estimate {
    /// Least, as a fraction of the rate.
    pub low: f64,
    /// Most.
    pub high: f64,
    /// What it is reckoned from.
    pub basis: String,
}

/// A value that was needed and not there.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Lack {
    /// The key.
    pub key: String,
    /// Why it is not there.
    pub reason: String,
    /// What a person can do; empty where nothing helps.
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

/// What one rule says of one subject.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Finding {
    /// The rule; filled in by whoever runs the rules.
    pub rule: String,
    /// What came of it.
    pub outcome: Outcome,
    /// `host`, `cpu/3`, `device/eth0`, ...
    pub subject: String,
    /// How much it costs.
    pub severity: Grade,
    /// How sure it is.
    pub confidence: Grade,
    /// One sentence.
    pub sentence: String,
    /// The raw lines it rests on.
    pub evidence: Vec<Line>,
    /// What it asks for, most wanted first.
    pub knobs: Vec<Turn>,
    /// What would be needed to decide; only for undecided.
    pub missing: Vec<Lack>,
    /// How far the evidence is from the line, as a fraction of the line: 0.9 is far, 0 is on it. Only for clear.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub distance: Option<f64>,
    /// What is expected of the change.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub estimate: Option<Estimate>,
    /// What the wish is expected to bring, with its bound; empty where nothing is wished, or nobody can tell.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub expected: String,
    /// What serves the same end on newer releases, where what is wished is of an old one; else empty.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub newer: String,
    /// What would prove it wrong; empty where it is not a finding.
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

    /// It costs now, and something can be done; medium in severity and confidence unless said otherwise.
    pub fn act(subject: &Subject, sentence: impl Into<String>) -> Self {
        Self::new(Outcome::Act, subject, sentence)
    }

    /// Worth knowing.
    pub fn watch(subject: &Subject, sentence: impl Into<String>) -> Self {
        Self::new(Outcome::Watch, subject, sentence)
    }

    /// No such sickness; the sentence says what was seen instead.
    pub fn clear(sentence: impl Into<String>) -> Self {
        Self::new(Outcome::Clear, &Subject::host(), sentence)
    }

    /// Cannot tell.
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

    /// Asks for a knob of the host.
    #[must_use]
    pub fn turn(mut self, knob: &str, to: impl Into<String>) -> Self {
        self.knobs.push(Turn {
            id: knob.to_owned(),
            device: None,
            from: None,
            to: Some(to.into()),
        });
        self
    }

    /// Asks for a knob of a device, a disk or a control group.
    #[must_use]
    pub fn turn_device(mut self, knob: &str, device: &str, to: impl Into<String>) -> Self {
        self = self.turn(knob, to);
        if let Some(turn) = self.knobs.last_mut() {
            turn.device = Some(device.to_owned());
        }
        self
    }

    /// Names a knob whose value a person has to choose.
    #[must_use]
    pub fn consider(mut self, knob: &str) -> Self {
        self.knobs.push(Turn {
            id: knob.to_owned(),
            device: None,
            from: None,
            to: None,
        });
        self
    }

    /// The same of a knob of a device, a disk or a control group.
    #[must_use]
    pub fn consider_device(mut self, knob: &str, device: &str) -> Self {
        self = self.consider(knob);
        if let Some(turn) = self.knobs.last_mut() {
            turn.device = Some(device.to_owned());
        }
        self
    }

    /// Says how far the evidence is from the line: `value` against `line`, where more is worse.
    #[must_use]
    pub fn below(mut self, value: f64, line: f64) -> Self {
        self.distance = Some(((line - value) / line).clamp(0.0, 1.0));
        self
    }

    /// The same where less is worse.
    #[must_use]
    pub fn above(mut self, value: f64, line: f64) -> Self {
        self.distance = Some(((value - line) / value.abs().max(f64::MIN_POSITIVE)).clamp(0.0, 1.0));
        self
    }

    /// Says what the wish is expected to bring.
    #[must_use]
    pub fn expect(mut self, what: impl Into<String>) -> Self {
        self.expected = what.into();
        self
    }

    /// Says what serves the same end on newer releases.
    #[must_use]
    pub fn newer(mut self, what: impl Into<String>) -> Self {
        self.newer = what.into();
        self
    }

    /// Says what would prove it wrong.
    #[must_use]
    pub fn refuted_by(mut self, what: impl Into<String>) -> Self {
        self.refuted_by = what.into();
        self
    }

    /// Says what is expected of the change, as fractions of the rate.
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

/// The numbers of a table or a picture of the page.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Table {
    /// Its lasting name: `core-map`, `loss-ladder`, ...
    pub id: String,
    /// What it shows; of a picture, what it says.
    pub title: String,
    /// The columns in the order of the page; one that nobody has a value for is left out.
    pub columns: Vec<Column>,
    /// The rows in the order of the page: each has a value for each column, by the column's key.
    pub rows: Vec<BTreeMap<String, Option<Scalar>>>,
}

/// A column of a [`Table`].
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Column {
    /// Its lasting name, under which rows hold its values.
    pub key: String,
    /// Heading for people.
    pub name: String,
    /// What its numbers are measured in; null where that differs by row.
    pub unit: Option<Unit>,
}

/// A value in a [`Table`]; what is unknown is null there, never zero.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
pub enum Scalar {
    /// A number, not rounded.
    Number(f64),
    /// Words.
    Text(String),
}

/// How full a resource is, whether something waits for it, and whether it fails: a row of the USE table
/// (Gregg, "Thinking Methodically about Performance", 2012).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Resource {
    /// Its lasting name: `cpus`, `disks`, `tcp`.
    pub id: String,
    /// What people call it.
    pub title: String,
    /// How much of it is in use; null where the aspect makes no sense.
    pub utilisation: Option<Cell>,
    /// Whether something waits for it.
    pub saturation: Option<Cell>,
    /// Whether it loses or refuses something.
    pub errors: Option<Cell>,
}

impl Resource {
    /// Its cells with the aspect that each is of.
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
    /// Below its line, at or above it, not seen, or nothing there.
    pub level: Level,
    /// The reading nearest to its line, or furthest beyond; null where there is none.
    pub value: Option<f64>,
    /// The line of that reading.
    pub line: Option<f64>,
    /// Unit of both.
    pub unit: Option<Unit>,
    /// What it was read of: `cpu/0`, `disk/vda`, `host`; empty where nothing was read.
    pub subject: String,
    /// What was read, or why it was not.
    pub note: String,
    /// The rule that explains a high cell; empty where none does.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub explained_by: String,
}

/// Level of a [`Cell`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Level {
    /// Read, and below its line.
    Low,
    /// At its line or beyond.
    High,
    /// Not read, or only a part of it.
    Unseen,
    /// This machine has no such thing.
    None,
}

/// What a check comes to, strongest first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Standing {
    /// A rule asks to act.
    Act,
    /// Something is saturated, lost or waited for.
    Saturated,
    /// Nothing was found, but not all that matters was seen.
    Unseen,
    /// Nothing was found, and all that matters was seen.
    Healthy,
}

impl Standing {
    /// Of these findings and resources. Of a document without resources, as those of a file, the findings alone count.
    pub fn of(findings: &[Finding], resources: &[Resource]) -> Self {
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
    /// Name of the host that was looked at; empty in documents of before it was told.
    #[serde(default)]
    pub host: String,
    /// When it was looked at, RFC 3339 in UTC: of a capture not the time of the judgement. None where it was not recorded.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub taken: Option<String>,
    /// Length of the window in seconds.
    pub window_s: f64,
    /// Act first, then watch, undecided, clear; within each the severest first.
    pub findings: Vec<Finding>,
    /// What the check comes to; null in documents of before it was recorded.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub standing: Option<Standing>,
    /// The USE table; empty in documents of before it was recorded.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub resources: Vec<Resource>,
    /// What the pictures and tables of the page show of the host; empty in documents of before it was told.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tables: Vec<Table>,
    /// What was read of the host and shown on the page; empty in documents written before it was recorded.
    #[serde(default, skip_serializing_if = "Readings::is_empty")]
    pub readings: Readings,
}
