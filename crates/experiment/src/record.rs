//! What must survive an interruption: the design, and every pair as soon as it is measured.
//!
//! A resumed experiment walks the same decisions again from the recorded pairs (decisions are pure
//! functions of them) and measures on where they end, so there is no second code path for resuming.

use std::collections::HashMap;
use std::path::{Path, PathBuf};

use rungwise_host::files;
use rungwise_model::tune::Pair;
use rungwise_stats::histogram::Histogram;
use serde::{Deserialize, Serialize};

use crate::Error;
use crate::design::Design;

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

/// Keeps pairs, in memory or on disk.
pub trait Record {
    /// Pair `index` of `comparison`, where an earlier session measured it.
    fn recorded(&mut self, comparison: &str, index: usize) -> Option<PairRecord>;

    /// Keeps a new pair; returns when it is safe.
    fn keep(&mut self, comparison: &str, index: usize, pair: &PairRecord) -> Result<(), Error>;
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

/// The run folder's `design.json` and `pairs.jsonl`.
#[derive(Debug)]
pub struct RunFolder {
    path: PathBuf,
    pairs: files::Appender,
    earlier: HashMap<(String, usize), PairRecord>,
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

    /// The folder.
    pub fn path(&self) -> &Path {
        &self.path
    }
}

fn parse(line: &[u8]) -> Result<((String, usize), PairRecord), String> {
    let line: Line = serde_json::from_slice(line).map_err(|error| error.to_string())?;
    let record = PairRecord {
        pair: line.pair,
        latency_a: histogram(&line.latency_a)?,
        latency_b: histogram(&line.latency_b)?,
    };
    Ok(((line.comparison, line.index), record))
}

fn histogram(hex: &str) -> Result<Histogram, String> {
    let digits = hex.as_bytes();
    if !digits.len().is_multiple_of(2) {
        return Err("a histogram has half a byte".to_owned());
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
}
