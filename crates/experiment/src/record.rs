//! What must survive an interruption: the design, and every pair as soon as it is measured.
//!
//! A resumed experiment walks the same decisions again from the recorded pairs (decisions are pure
//! functions of them) and measures on where they end, so there is no second code path for resuming.

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::path::{Path, PathBuf};

use rungwise_host::files;
use rungwise_model::tune::{Half, Pair};
use rungwise_probes::{Capture, bundle};
use rungwise_stats::histogram::{self, Entry, Histogram};
use serde::{Deserialize, Serialize};

use crate::Error;
use crate::design::{Design, Step};
use crate::stage::Sample;

/// A measured pair with the full latency distribution of both halves.
#[derive(Clone, Debug)]
pub struct PairRecord {
    /// The pair as reported.
    pub pair: Pair,
    /// Latency of the half without the change.
    pub latency_a: Histogram,
    /// Latency of the half with it.
    pub latency_b: Histogram,
}

impl PairRecord {
    /// Of two runs that were just measured.
    pub(crate) fn measured(
        a: Sample,
        b: Sample,
        first: Half,
        in_turns: bool,
        again: Option<String>,
    ) -> Self {
        Self {
            pair: Pair {
                a: a.run,
                b: b.run,
                first,
                in_turns,
                discarded: None,
                again,
            },
            latency_a: a.latency,
            latency_b: b.latency,
        }
    }
}

/// Keeps pairs, in memory or on disk.
pub trait Record {
    /// Pair `index` of `comparison`, where an earlier session measured it.
    fn recorded(&mut self, comparison: &str, index: usize) -> Option<PairRecord>;

    /// Keeps a new pair; returns when it is safe.
    fn keep(&mut self, comparison: &str, index: usize, pair: &PairRecord) -> Result<(), Error>;

    /// Capture `index`, where an earlier session took it.
    fn captured(&mut self, index: usize) -> Option<Capture>;

    /// Keeps a new capture; returns when it is safe.
    fn keep_capture(&mut self, index: usize, capture: &Capture) -> Result<(), Error>;

    /// Keeps the next decision about the rungs; one of an earlier session must be the same.
    fn decide(&mut self, decision: &Decision) -> Result<(), Error>;
}

/// What was decided about the rungs of a ladder that finds its own.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "decided")]
pub enum Decision {
    /// To act on this capture.
    #[serde(rename = "looked")]
    Captured {
        /// File of the capture.
        #[serde(rename = "look")]
        capture: String,
        /// What was found, most pressing first: rule and sentence.
        findings: Vec<(String, String)>,
    },
    /// To try this.
    Try {
        /// The rung.
        step: Box<Step>,
    },
    /// To try these together.
    Bundle {
        /// The rungs.
        steps: Vec<Step>,
    },
    /// To try nothing more, since the load generator was the limit.
    ClientLimit {
        /// File of the capture that shows it.
        #[serde(rename = "look")]
        capture: String,
        /// The finding.
        sentence: String,
    },
}

/// The file of a capture in its run folder.
pub fn capture_file(index: usize) -> String {
    format!("look-{index:02}.rungwise")
}

/// Forgets everything: for tests and dry calculations.
#[derive(Debug, Default)]
pub struct Forget;

impl Record for Forget {
    fn recorded(&mut self, _: &str, _: usize) -> Option<PairRecord> {
        None
    }

    fn keep(&mut self, _: &str, _: usize, _: &PairRecord) -> Result<(), Error> {
        Ok(())
    }

    fn captured(&mut self, _: usize) -> Option<Capture> {
        None
    }

    fn keep_capture(&mut self, _: usize, _: &Capture) -> Result<(), Error> {
        Ok(())
    }

    fn decide(&mut self, _: &Decision) -> Result<(), Error> {
        Ok(())
    }
}

#[derive(Serialize, Deserialize)]
struct Line {
    comparison: String,
    index: usize,
    #[serde(flatten)]
    pair: Pair,
    latency_a: String,
    latency_b: String,
}

/// Decisions as they were taken, a line each.
const PLAN: &str = "plan.jsonl";

/// The run folder's `design.json` and `pairs.jsonl`; where rungs are found, `plan.jsonl` and a bundle per capture.
#[derive(Debug)]
pub struct RunFolder {
    path: PathBuf,
    pairs: files::Appender,
    earlier: HashMap<(String, usize), PairRecord>,
    /// Decisions of an earlier session that this one has not come to yet.
    decided: VecDeque<Decision>,
    damaged: Vec<String>,
}

impl RunFolder {
    /// Makes the folder and writes the design, durably, before anything is measured.
    pub fn create(path: &Path, design: &Design) -> Result<Self, Error> {
        files::create_dir_all(path)?;
        let json =
            serde_json::to_vec_pretty(design).map_err(|error| Error::Design(error.to_string()))?;
        files::replace(&path.join("design.json"), &json)?;
        let pairs = files::Appender::open(&path.join("pairs.jsonl"))?;
        Ok(Self {
            path: path.to_owned(),
            pairs,
            earlier: HashMap::new(),
            decided: VecDeque::new(),
            damaged: Vec::new(),
        })
    }

    /// Opens the folder of an interrupted run: its design, and its pairs as far as they are whole.
    pub fn resume(path: &Path) -> Result<(Self, Design), Error> {
        let design = files::read(&path.join("design.json"))?;
        let design: Design =
            serde_json::from_slice(&design).map_err(|error| Error::Design(error.to_string()))?;
        let text = files::read(&path.join("pairs.jsonl"))?;
        let mut earlier = HashMap::new();
        let mut damaged = Vec::new();
        for (number, line) in text.split(|byte| *byte == b'\n').enumerate() {
            if line.is_empty() {
                continue;
            }
            match parse(line) {
                Ok((key, record)) => {
                    earlier.insert(key, record);
                }
                Err(why) => damaged.push(format!(
                    "pairs.jsonl line {}: {why}; the pair is measured again",
                    number + 1
                )),
            }
        }
        let decided = decisions(path, design.auto.is_some(), &mut damaged)?;
        // A torn last line must not swallow the next one.
        let mut pairs = files::Appender::open(&path.join("pairs.jsonl"))?;
        if text.last().is_some_and(|byte| *byte != b'\n') {
            pairs.append(b"\n")?;
        }
        Ok((
            Self {
                path: path.to_owned(),
                pairs,
                earlier,
                decided,
                damaged,
            },
            design,
        ))
    }

    /// Seconds of the experiment that earlier sessions took.
    pub fn earlier_s(&self) -> f64 {
        let ends = self
            .earlier
            .values()
            .flat_map(|record| [&record.pair.a, &record.pair.b])
            .map(|run| run.at_s + run.cpu.seconds);
        ends.fold(0.0, f64::max)
    }

    /// Lines that could not be used, each with its reason.
    pub fn damaged(&self) -> &[String] {
        &self.damaged
    }

    /// The latency of every comparison as one histogram log: `RUNG/a` and `RUNG/b` merged over the pairs that
    /// count.
    pub fn latency(path: &Path) -> Result<Vec<u8>, Error> {
        let text = files::read(&path.join("pairs.jsonl"))?;
        // A pair that was measured again after a torn line stands in the file once only.
        let mut merged: BTreeMap<String, Entry> = BTreeMap::new();
        for line in text.split(|byte| *byte == b'\n') {
            let Ok(((comparison, _), record)) = parse(line) else {
                continue;
            };
            if record.pair.discarded.is_some() {
                continue;
            }
            let halves = [
                ("a", record.latency_a, &record.pair.a),
                ("b", record.latency_b, &record.pair.b),
            ];
            for (half, histogram, run) in halves {
                let name = format!("{comparison}/{half}");
                let entry = merged.entry(name.clone()).or_insert_with(|| Entry {
                    name,
                    histogram: Histogram::new(),
                    seconds: 0.0,
                });
                entry.histogram.merge(&histogram);
                entry.seconds += run.cpu.seconds;
            }
        }
        let entries: Vec<Entry> = merged.into_values().collect();
        Ok(histogram::log(
            "latency from intended start, nanoseconds; a without the change, b with it",
            &entries,
        ))
    }

    /// The folder.
    pub fn path(&self) -> &Path {
        &self.path
    }
}

/// The decisions of an earlier session as far as they are whole. The file is cut behind them.
fn decisions(
    path: &Path,
    found: bool,
    damaged: &mut Vec<String>,
) -> Result<VecDeque<Decision>, Error> {
    let path = path.join(PLAN);
    if !found || !files::exists(&path) {
        return Ok(VecDeque::new());
    }
    let text = files::read(&path)?;
    let mut whole = 0;
    let mut decided = VecDeque::new();
    for line in text.split_inclusive(|byte| *byte == b'\n') {
        match serde_json::from_slice(line) {
            Ok(decision) if line.ends_with(b"\n") => decided.push_back(decision),
            _ => {
                damaged.push(format!(
                    "{PLAN} line {}: truncated; the decision is made again",
                    decided.len() + 1
                ));
                break;
            }
        }
        whole += line.len();
    }
    if whole < text.len() {
        files::replace(&path, &text[..whole])?;
    }
    Ok(decided)
}

fn parse(line: &[u8]) -> Result<((String, usize), PairRecord), String> {
    let line: Line = serde_json::from_slice(line).map_err(|error| error.to_string())?;
    let record = PairRecord {
        pair: line.pair,
        latency_a: unhex(&line.latency_a)?,
        latency_b: unhex(&line.latency_b)?,
    };
    Ok(((line.comparison, line.index), record))
}

fn unhex(hex: &str) -> Result<Histogram, String> {
    let digits = hex.as_bytes();
    if !digits.len().is_multiple_of(2) {
        return Err("a histogram has an odd number of hexadecimal digits".to_owned());
    }
    let bytes: Option<Vec<u8>> = digits
        .chunks_exact(2)
        .map(|pair| {
            let high = char::from(pair[0]).to_digit(16)?;
            let low = char::from(pair[1]).to_digit(16)?;
            u8::try_from(high * 16 + low).ok()
        })
        .collect();
    let bytes = bytes.ok_or("a histogram is not hexadecimal")?;
    Histogram::from_bytes(&bytes).map_err(|error| error.to_string())
}

fn hex(histogram: &Histogram) -> String {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    histogram
        .to_bytes()
        .iter()
        .flat_map(|byte| [byte >> 4, byte & 15])
        .map(|nibble| char::from(DIGITS[usize::from(nibble)]))
        .collect()
}

impl Record for RunFolder {
    fn recorded(&mut self, comparison: &str, index: usize) -> Option<PairRecord> {
        self.earlier.remove(&(comparison.to_owned(), index))
    }

    fn keep(&mut self, comparison: &str, index: usize, record: &PairRecord) -> Result<(), Error> {
        let line = Line {
            comparison: comparison.to_owned(),
            index,
            pair: record.pair.clone(),
            latency_a: hex(&record.latency_a),
            latency_b: hex(&record.latency_b),
        };
        let mut bytes =
            serde_json::to_vec(&line).map_err(|error| Error::Design(error.to_string()))?;
        bytes.push(b'\n');
        Ok(self.pairs.append(&bytes)?)
    }

    fn captured(&mut self, index: usize) -> Option<Capture> {
        bundle::read(&self.path.join(capture_file(index))).ok()
    }

    fn keep_capture(&mut self, index: usize, capture: &Capture) -> Result<(), Error> {
        let packed = bundle::pack(capture).map_err(|error| Error::Design(error.to_string()))?;
        Ok(files::replace(
            &self.path.join(capture_file(index)),
            &packed,
        )?)
    }

    fn decide(&mut self, decision: &Decision) -> Result<(), Error> {
        match self.decided.pop_front() {
            Some(earlier) if earlier == *decision => Ok(()),
            // Pairs are recorded under the rungs that were chosen then.
            Some(_) => Err(Error::Design(format!(
                "its captures now lead to other rungs than those in {PLAN}: another version of rungwise started it"
            ))),
            None => {
                let mut bytes = serde_json::to_vec(decision)
                    .map_err(|error| Error::Design(error.to_string()))?;
                bytes.push(b'\n');
                let mut plan = files::Appender::open(&self.path.join(PLAN))?;
                Ok(plan.append(&bytes)?)
            }
        }
    }
}
