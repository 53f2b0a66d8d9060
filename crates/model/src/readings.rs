//! Evidence as a document stores it: the input of pages, so that a stored document gives the same page again.
//!
//! Raw lines and series stay in the capture: no page shows them, and they are most of its size. A line that a page
//! shows is stored beside its number.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::evidence::{Absence, Evidence, Key, Origin, Reading, Value, key};

/// Readings by key, then by subject: `{"cpu.busy": {"cpu/0": 0.5}}`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(transparent)]
pub struct Readings(BTreeMap<String, BTreeMap<String, Stored>>);

/// One reading, in the unit of its key.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
pub enum Stored {
    /// A number.
    Number(f64),
    /// Text.
    Text(String),
    /// A number with the raw line that the page shows beside it.
    Quoted {
        /// The number.
        number: f64,
        /// The raw line.
        line: String,
    },
    /// Unknown.
    Absent {
        /// Why.
        reason: String,
        /// What you can do; empty if nothing helps.
        #[serde(default, skip_serializing_if = "String::is_empty")]
        remedy: String,
        /// The machine has no such thing.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        none: bool,
    },
}

impl Readings {
    /// All readings, those of `quoted` keys with their lines.
    pub fn of(evidence: &Evidence, quoted: &[&Key]) -> Self {
        let mut all: BTreeMap<String, BTreeMap<String, Stored>> = BTreeMap::new();
        for reading in evidence.readings() {
            let stored = match &reading.value {
                Value::Number(number) if quoted.contains(&reading.key) => Stored::Quoted {
                    number: *number,
                    line: reading.origin.line.clone(),
                },
                Value::Number(number) => Stored::Number(*number),
                Value::Text(text) => Stored::Text(text.clone()),
                Value::Absent(why) => Stored::Absent {
                    reason: why.reason.clone(),
                    remedy: why.remedy.clone(),
                    none: why.is_none,
                },
            };
            let of_key = all.entry(reading.key.id.to_owned()).or_default();
            of_key.insert(reading.subject.to_string(), stored);
        }
        Self(all)
    }

    /// Nothing was stored.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The evidence, for a window of that many seconds. A key or a subject unknown to this version is omitted.
    pub fn evidence(&self, seconds: f64) -> Evidence {
        let mut evidence = Evidence::over(seconds);
        for (id, subjects) in &self.0 {
            let Some(key) = key(id) else { continue };
            for (subject, stored) in subjects {
                let Ok(subject) = subject.parse() else {
                    continue;
                };
                let mut origin = Origin::default();
                let value = match stored {
                    Stored::Number(number) => Value::Number(*number),
                    Stored::Text(text) => Value::Text(text.clone()),
                    Stored::Quoted { number, line } => {
                        origin.line.clone_from(line);
                        Value::Number(*number)
                    }
                    Stored::Absent {
                        reason,
                        remedy,
                        none,
                    } => Value::Absent(Absence {
                        reason: reason.clone(),
                        remedy: remedy.clone(),
                        is_none: *none,
                    }),
                };
                evidence.add(Reading {
                    key,
                    subject,
                    value,
                    series: Vec::new(),
                    origin,
                });
            }
        }
        evidence
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::evidence::Subject;
    use crate::keys;

    #[test]
    fn stored_evidence_reads_back_with_its_numbers_words_lines_and_reasons() {
        let mut evidence = Evidence::over(10.0);
        let host = Subject::host;
        let origin = Origin::new("perf", "99 Hz");
        evidence.number(&keys::STACK_SAMPLES, host(), 0.1 + 0.2, origin);
        evidence.text(
            &keys::DEVICE_KIND,
            Subject::device("eth0"),
            "loopback",
            Origin::default(),
        );
        let why = Absence::none("no disk").remedy("add one");
        evidence.absent(&[&keys::DISK_BUSY], &why, "/proc/diskstats");
        let stored = Readings::of(&evidence, &[&keys::STACK_SAMPLES]);
        let text = serde_json::to_string(&stored).unwrap();
        let read: Readings = serde_json::from_str(&text).unwrap();
        assert_eq!(read, stored);
        let again = read.evidence(10.0);
        let samples = again.host(&keys::STACK_SAMPLES).unwrap();
        assert_eq!(samples.value.to_bits(), (0.1_f64 + 0.2).to_bits());
        assert_eq!(samples.reading.origin.line, "99 Hz");
        let kind = again.words(&keys::DEVICE_KIND, &Subject::device("eth0"));
        assert_eq!(kind.unwrap().value, "loopback");
        assert_eq!(again.missing(&keys::DISK_BUSY, &host()).why, why);
    }
}
