//! Casebooks: Markdown with an evidence block and an outcome block per case. The same file is the worked
//! example on the rule's page, so the format is made for readers.
//!
//!     ## Two of four CPUs take all the packets
//!     ```evidence
//!     window = 10s
//!     softirq.net_rx_share cpu/0 = 93% [90% 95% 94%]    # whole window, then its parts
//!     cpu.busy cpu/1-19 = 4%                            # a range of CPUs or nodes
//!     irq.device irq/41 = "eth0"
//!     stack.samples host = absent "not permitted"
//!     ```
//!     ```outcome
//!     act cpu/0 high medium: net.irq_affinity, net.rps_cpus@eth0=all
//!     says: "93 %"
//!     ```
//!
//! A judgement of two looks has `asked = rule-id` among its evidence and the second look in a block `after`.
//!
//! Outcomes are exactly the findings, in order: `act` or `watch` with subject, severity, confidence and
//! knobs (`@device` and `=wish` are compared where they are written), `clear`, or `undecided` with the key
//! that is missing. `says` is part of the first sentence.
//!
//! Two words of a heading are read by `parts.rs`: `near miss` and `false alarm`.

use std::path::{Path, PathBuf};

use rungwise_model::check::{Finding, Grade, Outcome, Turn};
use rungwise_model::evidence::{
    self, Absence, Evidence, Kind, Origin, Reading, Subject, Unit, Value,
};
use rungwise_model::units;

/// One rule's file.
pub(crate) struct Book {
    pub(crate) rule: String,
    pub(crate) cases: Vec<Case>,
}

/// One case of it.
pub(crate) struct Case {
    pub(crate) title: String,
    pub(crate) evidence: Evidence,
    /// The rule that asked for the change, and the evidence after it.
    pub(crate) change: Option<(String, Evidence)>,
    pub(crate) expected: Vec<Expected>,
    pub(crate) says: Vec<String>,
}

/// One line of an outcome block.
#[derive(Debug)]
pub(crate) enum Expected {
    Finding {
        outcome: Outcome,
        subject: String,
        severity: Grade,
        confidence: Grade,
        knobs: Vec<Wish>,
    },
    Clear,
    Undecided {
        missing: String,
    },
}

/// A knob as a casebook writes it: `id`, `id@device`, `id=wish`, `id@device=wish`.
#[derive(Debug)]
pub(crate) struct Wish {
    id: String,
    device: Option<String>,
    to: Option<String>,
}

/// The folder of the casebooks.
pub(crate) fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("cases")
}

/// Every casebook, in order of the rules; a file that is no casebook fails the test.
pub(crate) fn all() -> Vec<Book> {
    let mut paths: Vec<PathBuf> = std::fs::read_dir(folder())
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .collect();
    paths.sort();
    let books: Result<Vec<Book>, String> = paths
        .iter()
        .map(|path| {
            let text = std::fs::read_to_string(path).unwrap();
            let book = Book::parse(&text).map_err(|why| format!("{}: {why}", path.display()))?;
            if path.file_name().unwrap().to_str() != Some(&format!("{}.md", book.rule)) {
                return Err(format!("{}: its title is {}", path.display(), book.rule));
            }
            Ok(book)
        })
        .collect();
    books.unwrap_or_else(|why| panic!("{why}"))
}

impl Book {
    pub(crate) fn parse(text: &str) -> Result<Self, String> {
        let mut parts = text.split("\n## ");
        let head = parts.next().unwrap_or_default();
        let rule = head
            .lines()
            .next()
            .and_then(|line| line.strip_prefix("# "))
            .ok_or("it does not open with `# rule-id`")?;
        let cases: Result<Vec<Case>, String> = parts
            .map(|part| {
                let title = part.lines().next().unwrap_or_default();
                Case::parse(title, part).map_err(|why| format!("case '{title}': {why}"))
            })
            .collect();
        Ok(Self {
            rule: rule.to_owned(),
            cases: cases?,
        })
    }
}

impl Case {
    fn parse(title: &str, text: &str) -> Result<Self, String> {
        let (evidence, asked) = look(&block(text, "evidence")?)?;
        let change = match asked {
            None => None,
            Some(asked) => Some((asked, look(&block(text, "after")?)?.0)),
        };
        let (mut expected, mut says) = (Vec::new(), Vec::new());
        for line in block(text, "outcome")? {
            match line.strip_prefix("says: ") {
                Some(words) => says.push(quoted(words)?.to_owned()),
                None => expected.push(expect(&line).map_err(|why| format!("'{line}': {why}"))?),
            }
        }
        if expected.is_empty() {
            return Err("it expects nothing".to_owned());
        }
        Ok(Self {
            title: title.to_owned(),
            evidence,
            change,
            expected,
            says,
        })
    }
}

/// The evidence of a block, and the rule that asked for a change.
fn look(lines: &[String]) -> Result<(Evidence, Option<String>), String> {
    let (mut evidence, mut asked) = (Evidence::over(0.0), None);
    for line in lines {
        if let Some(window) = line.strip_prefix("window = ") {
            let window = units::duration(window).map_err(|why| why.to_string())?;
            evidence = Evidence::over(window.as_secs_f64());
        } else if let Some(rule) = line.strip_prefix("asked = ") {
            asked = Some(rule.to_owned());
        } else {
            for reading in readings(line).map_err(|why| format!("'{line}': {why}"))? {
                evidence.add(reading);
            }
        }
    }
    Ok((evidence, asked))
}

/// The lines of a fenced block, without comments and blank lines.
fn block(text: &str, name: &str) -> Result<Vec<String>, String> {
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

/// `key subject = value`, once per subject of a range.
fn readings(line: &str) -> Result<Vec<Reading>, String> {
    let (name, value) = line.split_once(" = ").ok_or("it has no ` = `")?;
    let (id, subject) = name.split_once(' ').ok_or("it has no subject")?;
    let key = evidence::key(id).ok_or("there is no such key")?;
    let (value, series) = self::value(key.unit, value.trim())?;
    let absent = matches!(value, Value::Absent(_));
    let subjects = subjects(subject.trim())?;
    for subject in &subjects {
        // A key that could not be read at all is noted at the host, whatever it is a property of.
        if subject.kind() != key.of && !(absent && subject.kind() == Kind::Host) {
            return Err(format!("{id} is a property of {:?}", key.of));
        }
    }
    Ok(subjects
        .into_iter()
        .map(|subject| Reading {
            key,
            subject,
            value: value.clone(),
            series: series.clone(),
            origin: Origin::new("casebook", line),
        })
        .collect())
}

fn subjects(text: &str) -> Result<Vec<Subject>, String> {
    let subject: Subject = text.parse()?;
    let range = subject
        .name()
        .split_once('-')
        .filter(|_| matches!(subject.kind(), Kind::Cpu | Kind::Node));
    let Some((first, last)) = range else {
        return Ok(vec![subject]);
    };
    let number = |text: &str| text.parse::<usize>().map_err(|why| why.to_string());
    Ok((number(first)?..=number(last)?)
        .map(|number| Subject::new(subject.kind(), number))
        .collect())
}

fn value(unit: Unit, text: &str) -> Result<(Value, Vec<f64>), String> {
    if let Some(why) = text.strip_prefix("absent ") {
        return Ok((Value::Absent(Absence::because(quoted(why)?)), Vec::new()));
    }
    if unit == Unit::Text {
        return Ok((Value::Text(quoted(text)?.to_owned()), Vec::new()));
    }
    let (whole, series) = match text.split_once('[') {
        None => (text, ""),
        Some((whole, rest)) => {
            let series = rest.strip_suffix(']').ok_or("the series has no `]`")?;
            (whole.trim(), series)
        }
    };
    let series: Result<Vec<f64>, String> = series
        .split_whitespace()
        .map(|part| number(unit, part))
        .collect();
    Ok((Value::Number(number(unit, whole)?), series?))
}

/// A number with the unit of its key; plain numbers where people write none.
fn number(unit: Unit, text: &str) -> Result<f64, String> {
    if let (Ok(plain), false) = (text.parse::<f64>(), unit == Unit::Fraction) {
        return Ok(plain);
    }
    let number = match unit {
        Unit::Fraction => units::fraction(text),
        Unit::PerSecond => units::per_second(text),
        Unit::Bytes => units::bytes(text).map(|bytes| bytes as f64),
        Unit::BytesPerSecond => {
            let bytes = text.strip_suffix("/s").ok_or("write it like 7MB/s")?;
            units::bytes(bytes).map(|bytes| bytes as f64)
        }
        Unit::Seconds => units::duration(text).map(|span| span.as_secs_f64()),
        Unit::Count | Unit::Ratio | Unit::Text => return Err(format!("'{text}' is no number")),
    };
    number.map_err(|why| why.to_string())
}

fn quoted(text: &str) -> Result<&str, String> {
    text.trim()
        .strip_prefix('"')
        .and_then(|text| text.strip_suffix('"'))
        .ok_or_else(|| format!("'{text}' stands not in quotes"))
}

fn expect(line: &str) -> Result<Expected, String> {
    let (head, knobs) = line.split_once(": ").unwrap_or((line, ""));
    let words: Vec<&str> = head.trim_end_matches(':').split_whitespace().collect();
    let outcome = match words[..] {
        ["clear"] => return Ok(Expected::Clear),
        ["undecided", key] => {
            evidence::key(key).ok_or("there is no such key")?;
            let missing = key.to_owned();
            return Ok(Expected::Undecided { missing });
        }
        ["act", ..] => Outcome::Act,
        ["watch", ..] => Outcome::Watch,
        _ => return Err("it is neither act, watch, clear nor undecided KEY".to_owned()),
    };
    let [_, subject, severity, confidence] = words[..] else {
        return Err("write OUTCOME SUBJECT SEVERITY CONFIDENCE: KNOBS".to_owned());
    };
    let knobs = knobs.split(", ").filter(|knob| !knob.trim().is_empty());
    Ok(Expected::Finding {
        outcome,
        subject: subject.parse::<Subject>()?.to_string(),
        severity: grade(severity)?,
        confidence: grade(confidence)?,
        knobs: knobs.map(|knob| Wish::parse(knob.trim())).collect(),
    })
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

    fn is(&self, turn: &Turn) -> bool {
        turn.id == self.id
            && (self.device.is_none() || turn.device == self.device)
            && (self.to.is_none() || turn.to == self.to)
    }
}

impl Expected {
    /// The rule said this.
    pub(crate) fn is(&self, said: &Finding) -> bool {
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
    pub(crate) fn wishes(&self) -> impl Iterator<Item = &str> {
        let knobs = match self {
            Self::Finding { knobs, .. } => &knobs[..],
            _ => &[],
        };
        let spelled = knobs.iter().filter(|knob| knob.to.is_some());
        spelled.map(|knob| knob.id.as_str())
    }

    /// The knob that it asks for first.
    pub(crate) fn remedy(&self) -> Option<&str> {
        match self {
            Self::Finding { knobs, .. } => knobs.first().map(|knob| knob.id.as_str()),
            _ => None,
        }
    }

    /// Its outcome.
    pub(crate) fn outcome(&self) -> Outcome {
        match self {
            Self::Clear => Outcome::Clear,
            Self::Undecided { .. } => Outcome::Undecided,
            Self::Finding { outcome, .. } => *outcome,
        }
    }
}

/// A finding as a casebook would write it.
pub(crate) fn written(said: &Finding) -> String {
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

fn wish(turn: &Turn) -> String {
    let device = turn.device.iter().map(|device| format!("@{device}"));
    let to = turn.to.iter().map(|to| format!("={to}"));
    std::iter::once(turn.id.clone())
        .chain(device)
        .chain(to)
        .collect()
}

#[test]
fn a_case_is_read_as_it_is_written() {
    let text = "# some-rule\n\n## A title\nprose\n\n```evidence\nwindow = 10s\n# a comment\n\
        softirq.net_rx_share cpu/0 = 93% [90% 96%]  # course\ncpu.busy cpu/1-3 = 4%\n\
        irq.device irq/41 = \"eth0 # 1\"\nstack.samples host = absent \"not permitted\"\n\
        tcp.snd_wnd connection/10.0.0.1:80>10.0.0.2:9 = -1\ntcp.bytes_sent connection/10.0.0.1:80>10.0.0.2:9 = 7MB/s\n```\n\n\
        ```outcome\nact cpu/0 high low: net.rps_cpus@eth0=all, net.rfs\nwatch host low low\nundecided stack.samples\nsays: \"93 %\"\n```\n";
    let book = Book::parse(text).unwrap();
    assert_eq!(book.rule, "some-rule");
    let case = &book.cases[0];
    assert_eq!((case.title.as_str(), case.says.len()), ("A title", 1));
    assert!((case.evidence.seconds() - 10.0).abs() < 1e-9);
    let numbers: Vec<String> = case
        .evidence
        .readings()
        .map(|reading| format!("{} {} {:?}", reading.key.id, reading.subject, reading.value))
        .collect();
    assert_eq!(numbers.len(), 8, "{numbers:#?}");
    assert!(numbers.contains(&"cpu.busy cpu/2 Number(0.04)".to_owned()));
    assert!(numbers.contains(&"irq.device irq/41 Text(\"eth0 # 1\")".to_owned()));
    let outcomes: Vec<Outcome> = case.expected.iter().map(Expected::outcome).collect();
    assert_eq!(outcomes, [Outcome::Act, Outcome::Watch, Outcome::Undecided]);
}

#[test]
fn a_casebook_that_cannot_be_meant_is_refused() {
    let case = |evidence: &str, outcome: &str| {
        format!("# r\n\n## t\n```evidence\n{evidence}\n```\n```outcome\n{outcome}\n```\n")
    };
    for (evidence, outcome, why) in [
        ("cpu.bussy host = 1%", "clear", "no such key"),
        ("cpu.busy host = 1%", "clear", "property of Cpu"),
        ("cpu.busy cpu/0 = 1", "clear", "unit is missing"),
        ("cpu.busy cpu/0 = 1% [2%", "clear", "no `]`"),
        ("window = 10s", "", "expects nothing"),
        ("window = 10s", "perhaps", "neither act"),
        ("window = 10s", "act host high", "SUBJECT"),
        ("window = 10s", "act moon high high", "no kind"),
        ("window = 10s", "undecided nothing.known", "no such key"),
    ] {
        let refused = Book::parse(&case(evidence, outcome))
            .err()
            .unwrap_or_default();
        assert!(refused.contains(why), "{evidence} / {outcome}: {refused}");
    }
}
