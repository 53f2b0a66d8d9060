//! Casebooks: Markdown with the given and the outcome of each case, which tests run and people read.
//!
//! What is given stands in a block that each sort of casebook reads by itself: evidence, or options. The outcome block is
//! the same for all, and read here:
//!
//! ````text
//! ```outcome
//! act cpu/0 high medium: net.irq_affinity, net.rps_cpus@eth0=all
//! says: "93 %"
//! ```
//! ````
//!
//! Outcomes are exactly the findings, in order: `act` or `watch` with subject, severity, confidence and knobs (`@device` and
//! `=wish` are compared where they are written), `clear`, or `undecided` with the key that is missing. `says` is part of
//! the first sentence.
#![expect(clippy::disallowed_methods, reason = "reads the casebooks of a crate")]

use std::path::Path;

use rungwise_model::check::{Finding, Grade, Outcome, Recommendation};

/// One file: what it is about, and the text of each case.
pub struct Book {
    /// The rule, from its first line.
    pub rule: String,
    /// Title and text of each case.
    pub cases: Vec<(String, String)>,
}

/// What a case expects.
pub struct Expectation {
    /// One per finding, in order.
    pub findings: Vec<Expected>,
    /// Parts of the first sentence.
    pub says: Vec<String>,
}

/// One line of an outcome block.
#[derive(Debug)]
pub enum Expected {
    /// Something to act on, or to watch.
    Finding {
        /// `act` or `watch`.
        outcome: Outcome,
        /// As the finding writes it.
        subject: String,
        /// How much it costs.
        severity: Grade,
        /// How sure it is.
        confidence: Grade,
        /// What it asks for, in order.
        knobs: Vec<Wish>,
    },
    /// Nothing was found.
    Clear,
    /// It could not be read.
    Undecided {
        /// The key that is missing.
        missing: String,
    },
}

/// A knob as a casebook writes it: `id`, `id@device`, `id=wish`, `id@device=wish`.
#[derive(Debug)]
pub struct Wish {
    id: String,
    device: Option<String>,
    to: Option<String>,
}

/// Every casebook of a folder, in order of their names.
///
/// # Panics
///
/// If a file is no casebook, or is not named after its rule.
pub fn books(folder: &Path) -> Vec<Book> {
    let entries = std::fs::read_dir(folder).expect("the folder of casebooks is there");
    let mut paths: Vec<_> = entries
        .map(|entry| entry.expect("the folder can be listed").path())
        .collect();
    paths.sort();
    let book = |path: &Path| {
        let text = std::fs::read_to_string(path).map_err(|why| why.to_string())?;
        let book = Book::parse(&text)?;
        let name = path.file_stem().and_then(|name| name.to_str());
        if name != Some(&book.rule) {
            return Err(format!("its title is {}", book.rule));
        }
        Ok(book)
    };
    let read = |path: &std::path::PathBuf| {
        book(path).unwrap_or_else(|why| panic!("{}: {why}", path.display()))
    };
    paths.iter().map(read).collect()
}

impl Book {
    /// Reads a file.
    ///
    /// # Errors
    ///
    /// If it does not open with a title.
    pub fn parse(text: &str) -> Result<Self, String> {
        let mut parts = text.split("\n## ");
        let head = parts.next().unwrap_or_default();
        let rule = head
            .lines()
            .next()
            .and_then(|line| line.strip_prefix("# "))
            .ok_or("it does not open with `# rule-id`")?;
        let title = |part: &str| part.lines().next().unwrap_or_default().to_owned();
        Ok(Self {
            rule: rule.to_owned(),
            cases: parts.map(|part| (title(part), part.to_owned())).collect(),
        })
    }
}

/// The lines of a fenced block, without comments and blank lines.
///
/// # Errors
///
/// If there is not exactly one of that name, or it does not end.
pub fn block(text: &str, name: &str) -> Result<Vec<String>, String> {
    let opening = format!("```{name}\n");
    let (_, rest) = text
        .split_once(&opening)
        .ok_or_else(|| format!("it has no block `{name}`"))?;
    let (inside, rest) = rest
        .split_once("\n```")
        .ok_or_else(|| format!("its block `{name}` does not end"))?;
    if rest.contains(&opening) {
        return Err(format!("it has two blocks `{name}`"));
    }
    Ok(inside
        .lines()
        .map(|line| without_comment(line).trim().to_owned())
        .filter(|line| !line.is_empty())
        .collect())
}

/// A comment starts with `#` outside quotes.
fn without_comment(line: &str) -> &str {
    let mut inside = false;
    for (at, c) in line.char_indices() {
        match c {
            '"' => inside = !inside,
            '#' if !inside => return &line[..at],
            _ => {}
        }
    }
    line
}

/// What stands between quotes.
///
/// # Errors
///
/// If it does not stand in quotes.
pub fn quoted(text: &str) -> Result<&str, String> {
    text.trim()
        .strip_prefix('"')
        .and_then(|text| text.strip_suffix('"'))
        .ok_or_else(|| format!("'{text}' stands not in quotes"))
}

impl Expectation {
    /// Reads the outcome block of a case.
    ///
    /// # Errors
    ///
    /// If there is none, or a line of it cannot be meant.
    pub fn parse(case: &str) -> Result<Self, String> {
        let (mut findings, mut says) = (Vec::new(), Vec::new());
        for line in block(case, "outcome")? {
            match line.strip_prefix("says: ") {
                Some(words) => says.push(quoted(words)?.to_owned()),
                None => {
                    findings
                        .push(Expected::parse(&line).map_err(|why| format!("'{line}': {why}"))?);
                }
            }
        }
        if findings.is_empty() {
            return Err("it expects nothing".to_owned());
        }
        Ok(Self { findings, says })
    }

    /// How what was said differs from what is expected; `None` where it does not.
    pub fn differs(&self, said: &[Finding]) -> Option<String> {
        let same = said.len() == self.findings.len()
            && said
                .iter()
                .zip(&self.findings)
                .all(|(said, expected)| expected.is(said));
        let first = said.first().map_or("", |first| &first.sentence);
        if same && self.says.iter().all(|words| first.contains(words)) {
            return None;
        }
        let expected = self
            .findings
            .iter()
            .map(|expected| format!("    expected {expected:?}\n"));
        let says = self
            .says
            .iter()
            .map(|words| format!("    expected the words {words:?}\n"));
        let said = said
            .iter()
            .map(|said| format!("    said     {}\n", written(said)));
        Some(expected.chain(says).chain(said).collect())
    }
}

impl Expected {
    fn parse(line: &str) -> Result<Self, String> {
        let (head, knobs) = line.split_once(": ").unwrap_or((line, ""));
        let words: Vec<&str> = head.trim_end_matches(':').split_whitespace().collect();
        let outcome = match words[..] {
            ["clear"] => return Ok(Self::Clear),
            ["undecided", key] => {
                let missing = key.to_owned();
                return Ok(Self::Undecided { missing });
            }
            ["act", ..] => Outcome::Act,
            ["watch", ..] => Outcome::Watch,
            _ => return Err("it is neither act, watch, clear nor undecided KEY".to_owned()),
        };
        let [_, subject, severity, confidence] = words[..] else {
            return Err("write OUTCOME SUBJECT SEVERITY CONFIDENCE: KNOBS".to_owned());
        };
        let knobs = knobs.split(", ").filter(|knob| !knob.trim().is_empty());
        Ok(Self::Finding {
            outcome,
            subject: subject.to_owned(),
            severity: grade(severity)?,
            confidence: grade(confidence)?,
            knobs: knobs.map(|knob| Wish::parse(knob.trim())).collect(),
        })
    }

    fn is(&self, said: &Finding) -> bool {
        match self {
            Self::Clear => said.outcome == Outcome::Clear,
            Self::Undecided { missing } => {
                said.outcome == Outcome::Undecided
                    && said.missing.iter().any(|lack| lack.key == *missing)
            }
            Self::Finding {
                outcome,
                subject,
                severity,
                confidence,
                knobs,
            } => {
                said.outcome == *outcome
                    && said.subject == *subject
                    && said.severity == *severity
                    && said.confidence == *confidence
                    && knobs.len() == said.knobs.len()
                    && knobs
                        .iter()
                        .zip(&said.knobs)
                        .all(|(wish, turn)| wish.is(turn))
            }
        }
    }

    /// Knobs whose wish is written out.
    pub fn wishes(&self) -> impl Iterator<Item = &str> {
        let knobs = match self {
            Self::Finding { knobs, .. } => &knobs[..],
            _ => &[],
        };
        let spelled = knobs.iter().filter(|knob| knob.to.is_some());
        spelled.map(|knob| knob.id.as_str())
    }

    /// The knob that it asks for first.
    pub fn remedy(&self) -> Option<&str> {
        match self {
            Self::Finding { knobs, .. } => knobs.first().map(|knob| knob.id.as_str()),
            _ => None,
        }
    }

    /// Its outcome.
    pub fn outcome(&self) -> Outcome {
        match self {
            Self::Clear => Outcome::Clear,
            Self::Undecided { .. } => Outcome::Undecided,
            Self::Finding { outcome, .. } => *outcome,
        }
    }
}

fn grade(word: &str) -> Result<Grade, String> {
    match word {
        "low" => Ok(Grade::Low),
        "medium" => Ok(Grade::Medium),
        "high" => Ok(Grade::High),
        _ => Err(format!("'{word}' is neither low, medium nor high")),
    }
}

impl Wish {
    fn parse(text: &str) -> Self {
        let (name, to) = match text.split_once('=') {
            Some((name, to)) => (name, Some(to.to_owned())),
            None => (text, None),
        };
        let (id, device) = match name.split_once('@') {
            Some((id, device)) => (id, Some(device.to_owned())),
            None => (name, None),
        };
        Self {
            id: id.to_owned(),
            device,
            to,
        }
    }

    fn is(&self, turn: &Recommendation) -> bool {
        turn.id == self.id
            && (self.device.is_none() || turn.device == self.device)
            && (self.to.is_none() || turn.to == self.to)
    }
}

/// A finding as a casebook would write it.
pub fn written(said: &Finding) -> String {
    let word = |grade: Grade| format!("{grade:?}").to_lowercase();
    let line = match said.outcome {
        Outcome::Clear => "clear".to_owned(),
        Outcome::Undecided => {
            let keys: Vec<&str> = said.missing.iter().map(|lack| lack.key.as_str()).collect();
            format!("undecided {}", keys.join(" "))
        }
        outcome => {
            let knobs: Vec<String> = said.knobs.iter().map(wish).collect();
            format!(
                "{} {} {} {}: {}",
                format!("{outcome:?}").to_lowercase(),
                said.subject,
                word(said.severity),
                word(said.confidence),
                knobs.join(", ")
            )
        }
    };
    format!("{line}    says: \"{}\"", said.sentence)
}

fn wish(turn: &Recommendation) -> String {
    let device = turn.device.iter().map(|device| format!("@{device}"));
    let to = turn.to.iter().map(|to| format!("={to}"));
    std::iter::once(turn.id.clone())
        .chain(device)
        .chain(to)
        .collect()
}
