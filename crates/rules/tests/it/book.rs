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
//!     qdisc.dropped host = none "this host has no network device"
//!     ```
//!     ```outcome
//!     act cpu/0 high medium: net.irq_affinity, net.rps_cpus@eth0=all
//!     says: "93 %"
//!     ```
//!
//! A comparison of two captures has `asked = rule-id` among its evidence and the second capture in a block `after`.
//!
//! Outcomes are those of all casebooks: `rungwise_testkit::casebook`.
//!
//! Two words of a heading are read by `parts.rs`: `near miss` and `false alarm`.

use std::path::{Path, PathBuf};

use rungwise_model::evidence::{
    self, Absence, Evidence, Kind, Origin, Reading, Subject, Unit, Value,
};
use rungwise_model::units;
use rungwise_testkit::casebook::{self, Expectation, Expected, block, quoted};

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
    pub(crate) expectation: Expectation,
}

/// The folder of the casebooks.
pub(crate) fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("cases")
}

/// Every casebook, in order of the rules; a file that is no casebook fails the test.
pub(crate) fn all() -> Vec<Book> {
    let read = |book| Book::read(book).unwrap_or_else(|why| panic!("{why}"));
    casebook::books(&folder()).into_iter().map(read).collect()
}

impl Book {
    fn read(book: casebook::Book) -> Result<Self, String> {
        let case = |(title, text): &(String, String)| {
            Case::parse(title, text).map_err(|why| format!("{}: case '{title}': {why}", book.rule))
        };
        Ok(Self {
            cases: book.cases.iter().map(case).collect::<Result<_, _>>()?,
            rule: book.rule,
        })
    }

    pub(crate) fn parse(text: &str) -> Result<Self, String> {
        Self::read(casebook::Book::parse(text)?)
    }
}

impl Case {
    fn parse(title: &str, text: &str) -> Result<Self, String> {
        let (evidence, asked) = parse_evidence(&block(text, "evidence")?)?;
        let change = match asked {
            None => None,
            Some(asked) => Some((asked, parse_evidence(&block(text, "after")?)?.0)),
        };
        let expectation = Expectation::parse(text)?;
        for expected in &expectation.findings {
            match expected {
                Expected::Finding { subject, .. } => {
                    let known: Subject = subject.parse()?;
                    if known.to_string() != *subject {
                        return Err(format!("write {known} and not {subject}"));
                    }
                }
                Expected::Undecided { missing } => {
                    evidence::key(missing).ok_or("there is no such key")?;
                }
                Expected::Clear => {}
            }
        }
        Ok(Self {
            title: title.to_owned(),
            evidence,
            change,
            expectation,
        })
    }
}

/// The evidence of a block, and the rule that asked for a change.
fn parse_evidence(lines: &[String]) -> Result<(Evidence, Option<String>), String> {
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
    if let Some(why) = text.strip_prefix("none ") {
        return Ok((Value::Absent(Absence::none(quoted(why)?)), Vec::new()));
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

#[test]
fn a_case_is_read_as_it_is_written() {
    use rungwise_model::check::Outcome;

    let text = "# some-rule\n\n## A title\nprose\n\n```evidence\nwindow = 10s\n# a comment\n\
        softirq.net_rx_share cpu/0 = 93% [90% 96%]  # course\ncpu.busy cpu/1-3 = 4%\n\
        irq.device irq/41 = \"eth0 # 1\"\nstack.samples host = absent \"not permitted\"\n\
        tcp.snd_wnd connection/10.0.0.1:80>10.0.0.2:9 = -1\ntcp.bytes_sent connection/10.0.0.1:80>10.0.0.2:9 = 7MB/s\n```\n\n\
        ```outcome\nact cpu/0 high low: net.rps_cpus@eth0=all, net.rfs\nwatch host low low\nundecided stack.samples\nsays: \"93 %\"\n```\n";
    let book = Book::parse(text).unwrap();
    assert_eq!(book.rule, "some-rule");
    let case = &book.cases[0];
    let expectation = &case.expectation;
    assert_eq!(
        (case.title.as_str(), expectation.says.len()),
        ("A title", 1)
    );
    assert!((case.evidence.seconds() - 10.0).abs() < 1e-9);
    let numbers: Vec<String> = case
        .evidence
        .readings()
        .map(|reading| format!("{} {} {:?}", reading.key.id, reading.subject, reading.value))
        .collect();
    assert_eq!(numbers.len(), 8, "{numbers:#?}");
    assert!(numbers.contains(&"cpu.busy cpu/2 Number(0.04)".to_owned()));
    assert!(numbers.contains(&"irq.device irq/41 Text(\"eth0 # 1\")".to_owned()));
    let outcomes: Vec<_> = expectation.findings.iter().map(Expected::outcome).collect();
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
        ("window = 10s", "act moon high high", "not a kind"),
        ("window = 10s", "undecided nothing.known", "no such key"),
    ] {
        let refused = Book::parse(&case(evidence, outcome))
            .err()
            .unwrap_or_default();
        assert!(refused.contains(why), "{evidence} / {outcome}: {refused}");
    }
}
