//! The report of `check`: what to act on, what to watch, what could not be measured, what passed; then the
//! host itself, with a map of its CPUs, the packet path, what waited for a CPU and what the kernel did.
//!
//! The findings come from the rules: nothing is judged here.

mod cards;
mod cores;
mod data;
mod files;
mod fullness;
mod host;
mod kernel;
mod lacks;
mod losses;
mod readings;
mod resources;
mod scheduling;
mod service;

use std::collections::BTreeSet;

use rungwise_model::check::{
    self, Cell, CheckReport, Finding, Grade, Level, Outcome, Resource, Standing,
};
use rungwise_model::evidence::{Evidence, Subject};
use rungwise_model::keys;
use rungwise_model::readings::Readings;

use crate::block::{Block, Mark, Tone, Verdict};
use crate::numbers;
use crate::tune::moment;

/// What the report shows of a rule beyond its findings; it comes from the registry of rules.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct About {
    /// Its id.
    pub id: String,
    /// Its subject matter: `cpu`, `net`, ...
    pub topic: String,
    /// One line.
    pub summary: String,
    /// Its page, Markdown.
    pub page: String,
    /// Ids of the keys it reads.
    pub needs: Vec<String>,
    /// Knobs it may ask for.
    pub knobs: Vec<String>,
}

/// The whole report.
pub fn blocks(report: &CheckReport, evidence: &Evidence, rules: &[About]) -> Vec<Block> {
    let mut blocks = vec![Block::Verdict(verdict(report, evidence, rules))];
    blocks.extend(findings(report));
    blocks.extend(service::blocks(report.service.as_ref(), evidence));
    blocks.extend(files::blocks(&report.files));
    blocks.extend(resources::blocks(report));
    blocks.extend(report.jvm.iter().flat_map(crate::thread_times::of_check));
    blocks.extend(host::blocks(evidence));
    blocks.extend(cores::blocks(evidence));
    blocks.extend(losses::blocks(evidence));
    blocks.extend(scheduling::blocks(evidence));
    blocks.extend(kernel::blocks(evidence));
    blocks
}

/// What a document carries so that the page can be drawn from it alone.
pub fn readings(evidence: &Evidence) -> Readings {
    Readings::of(evidence, kernel::QUOTED)
}

/// The numbers of the page's tables and pictures, in the order of the page.
pub fn tables(evidence: &Evidence) -> Vec<check::Table> {
    [
        service::tables,
        host::tables,
        cores::tables,
        losses::tables,
        scheduling::tables,
        kernel::tables,
    ]
    .into_iter()
    .flat_map(|tables| tables(evidence))
    .map(|table| table.document())
    .collect()
}

/// What the rules say: to act on, to watch, not decided, passed.
pub(crate) fn findings(report: &CheckReport) -> Vec<Block> {
    let mut blocks = Vec::new();
    for (outcome, id, title) in [
        (Outcome::Act, "act", "Act"),
        (Outcome::Watch, "watch", "Watch"),
    ] {
        let cards = cards::by_outcome(report, outcome);
        if !cards.is_empty() {
            let count = findings_with(report, outcome).count();
            blocks.push(Block::section(id, format!("{title} ({count})")));
            blocks.push(Block::Cards(cards));
        }
    }
    blocks.extend(lacks::undecided(report));
    blocks.extend(lacks::passed(report));
    blocks
}

fn findings_with(report: &CheckReport, outcome: Outcome) -> impl Iterator<Item = &Finding> {
    report
        .findings
        .iter()
        .filter(move |finding| finding.outcome == outcome)
}

fn verdict(report: &CheckReport, evidence: &Evidence, rules: &[About]) -> Verdict {
    let count = |outcome| findings_with(report, outcome).count();
    let (act, watch, undecided, clear) = (
        count(Outcome::Act),
        count(Outcome::Watch),
        count(Outcome::Undecided),
        count(Outcome::Clear),
    );
    // A rule may say something of each of many subjects.
    let decided: BTreeSet<&str> = (report.findings.iter())
        .filter(|finding| finding.outcome != Outcome::Undecided)
        .map(|finding| finding.rule.as_str())
        .collect();
    let speak: BTreeSet<&str> = (report.findings.iter())
        .filter(|finding| matches!(finding.outcome, Outcome::Act | Outcome::Watch))
        .map(|finding| finding.rule.as_str())
        .collect();
    let silent = decided.difference(&speak).count();
    let decided = decided.len();
    let mut caveats = Vec::new();
    let standing = Standing::from_findings(&report.findings, &report.resources);
    let (mark, sentence) = match findings_with(report, Outcome::Act).next() {
        Some(first) => (MARK_ACT, limited_by(first, rules)),
        None => match standing {
            Standing::Act | Standing::Saturated => {
                let high = resources::high(&report.resources);
                let none = format!("no rule requires action, but readings are high: {high}");
                let sentence = match watched_of_high(report, rules) {
                    Some(watched) => format!("{watched}; {none}"),
                    None => none,
                };
                (MARK_SATURATED, sentence)
            }
            Standing::Unseen if decided == 0 => (
                MARK_UNSEEN,
                "no rule could be decided: data is missing".to_owned(),
            ),
            Standing::Unseen => {
                let sentence = format!(
                    "nothing found, but not measured: {}",
                    resources::unseen(&report.resources)
                );
                (MARK_UNSEEN, sentence)
            }
            Standing::Healthy => {
                let silent = numbers::plural(silent, "rule");
                // Noise says more about comparisons than about the service.
                let first = findings_with(report, Outcome::Watch)
                    .find(|finding| finding.rule != NOISE_GATE)
                    .or_else(|| findings_with(report, Outcome::Watch).next());
                let (mark, watched) = match first {
                    Some(first) if watch > 1 => (
                        MARK_WATCH,
                        format!("{}, and {} more to watch; ", first.sentence, watch - 1),
                    ),
                    Some(first) => (MARK_WATCH, format!("{}; ", first.sentence)),
                    None => (MARK_HEALTHY, String::new()),
                };
                let seen = match report.resources.len() {
                    0 => String::new(),
                    _ => ", and every resource was measured".to_owned(),
                };
                let nearest = match nearest(evidence) {
                    Some((resource, share)) => {
                        format!(
                            "; nearest to its limit: {resource} at {}",
                            numbers::share(share)
                        )
                    }
                    None => String::new(),
                };
                (
                    mark,
                    format!("{watched}{silent} found nothing{seen}{nearest}"),
                )
            }
        },
    };
    if undecided > 0 {
        let rules = numbers::plural(undecided, "rule");
        caveats.push((format!("{rules} could not be decided"), "undecided"));
    }
    if !files::apart(&report.files).is_empty() {
        caveats.push(("the files cover different times".to_owned(), "files"));
    }
    let mut context = vec![report.target.clone()];
    // What a JVM wrote has no window; the table of files has the time of each.
    if report.files.is_empty() || report.place.is_some() {
        context.extend([
            report
                .taken
                .as_deref()
                .map_or_else(|| "time not recorded".to_owned(), moment),
            format!("{} window", numbers::span(report.window_s)),
        ]);
    }
    context.push(format!("{act} to act on, {watch} to watch, {clear} passed"));
    Verdict {
        mark,
        sentence,
        context,
        caveats,
    }
}

/// What is to be watched about a reading that is high, without its details: of the rule that explains it, or of one for readings that no
/// rule explains.
fn watched_of_high<'r>(report: &'r CheckReport, rules: &[About]) -> Option<&'r str> {
    let is_residual = |rule: &str| {
        let mut residual = rules.iter().filter(|about| about.topic == RESIDUAL);
        residual.any(|about| about.id == rule)
    };
    let cells = report.resources.iter().flat_map(Resource::cells);
    let high: Vec<&Cell> = cells
        .map(|(_, cell)| cell)
        .filter(|cell| cell.level == Level::High)
        .collect();
    let mut watched = findings_with(report, Outcome::Watch);
    let first = watched.find(|finding| {
        high.iter().any(|cell| match cell.explained_by.as_str() {
            "" => cell.subject == finding.subject && is_residual(&finding.rule),
            rule => rule == finding.rule,
        })
    })?;
    first.sentence.split("; ").next()
}

/// The resource that the severest finding is about, and the finding as the reason. A guess is not called a limit.
fn limited_by(first: &Finding, rules: &[About]) -> String {
    let topic = rules
        .iter()
        .find(|rule| rule.id == first.rule)
        .map_or("", |rule| rule.topic.as_str());
    let sure = first.severity >= Grade::Medium && first.confidence >= Grade::Medium;
    match resource(topic) {
        Some(resource) if sure => format!("{resource} limits this host: {}", first.sentence),
        _ => first.sentence.clone(),
    }
}

/// What a topic is called in a sentence.
fn resource(topic: &str) -> Option<&'static str> {
    Some(match topic {
        "cpu" => "the CPU",
        "device" => "the network device",
        "disk" => "the disk",
        "firmware" => "the firmware setup",
        "memory" => "memory",
        "net" => "the network stack",
        "numa" => "memory on other NUMA nodes",
        "security" => "security auditing",
        "tcp" => "TCP",
        "virt" => "the hypervisor",
        _ => return None,
    })
}

/// Topic of the rules about readings that no other rule explains.
const RESIDUAL: &str = "residual";

/// What it says is about comparisons, so it is the last to name in a verdict.
const NOISE_GATE: &str = "noise-gate";

const MARK_ACT: Mark = Mark {
    symbol: "✗",
    word: "act",
    tone: Tone::Bad,
};

const MARK_SATURATED: Mark = Mark {
    symbol: "!",
    word: "saturated",
    tone: Tone::Doubt,
};

const MARK_UNSEEN: Mark = Mark {
    symbol: "?",
    word: "incomplete",
    tone: Tone::Doubt,
};

const MARK_WATCH: Mark = Mark {
    symbol: "•",
    word: "watch",
    tone: Tone::Doubt,
};

const MARK_HEALTHY: Mark = Mark {
    symbol: "✓",
    word: "nothing to act on",
    tone: Tone::Good,
};

/// The resource of which most is in use.
fn nearest(evidence: &Evidence) -> Option<(String, f64)> {
    let host = Subject::host();
    let fullest = [
        (&keys::CPU_BUSY, "CPU"),
        (&keys::DEVICE_USE, "the link of"),
        (&keys::DISK_BUSY, "disk"),
    ]
    .into_iter()
    .filter_map(|(key, what)| {
        let subject = readings::largest(evidence, key, 1).pop()?;
        let share = readings::number(evidence, key, &subject)?;
        Some((format!("{what} {}", subject.name()), share))
    });
    let memory = readings::number(evidence, &keys::MEMORY_AVAILABLE, &host)
        .map(|available| ("memory".to_owned(), 1.0 - available));
    fullest.chain(memory).max_by(|a, b| a.1.total_cmp(&b.1))
}

#[cfg(test)]
mod tests {
    use rungwise_model::evidence::Kind;
    use rungwise_model::{Envelope, Exit, SCHEMA_VERSION, Tool};

    use super::*;

    fn report(findings: Vec<Finding>, resources: Vec<Resource>) -> CheckReport {
        CheckReport {
            place: None,
            envelope: Envelope {
                schema: SCHEMA_VERSION,
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
            target: String::new(),
            host: String::new(),
            taken: None,
            window_s: 10.0,
            findings,
            standing: None,
            resources,
            tables: Vec::new(),
            readings: Readings::default(),
            jvm: None,
            service: None,
            files: Vec::new(),
        }
    }

    fn said(rule: &str, finding: Finding) -> Finding {
        Finding {
            rule: rule.to_owned(),
            ..finding
        }
    }

    #[test]
    fn a_rule_that_speaks_of_many_subjects_is_one_rule() {
        let cpu = |number: u32| Finding::watch(&Subject::new(Kind::Cpu, number), "busy");
        let findings = vec![
            said("a", cpu(0)),
            said("a", cpu(1)),
            said("b", Finding::clear("calm")),
        ];
        let report = report(findings, Vec::new());
        let verdict = verdict(&report, &Evidence::over(10.0), &[]);
        assert!(
            verdict
                .sentence
                .starts_with("busy, and 1 more to watch; 1 rule found nothing"),
            "{}",
            verdict.sentence
        );
        assert_eq!(verdict.mark.symbol, "•");
    }

    #[test]
    fn a_high_reading_is_named_by_what_is_to_be_watched_about_it() {
        let process = Subject::new(Kind::Process, 7);
        let about = |id: &str, topic: &str| About {
            id: id.to_owned(),
            topic: topic.to_owned(),
            summary: String::new(),
            page: String::new(),
            needs: Vec::new(),
            knobs: Vec::new(),
        };
        let rules = [
            about("unexplained-wait", "residual"),
            about("zombies", "process"),
        ];
        let sentence = |rule: &str, subject: &Subject, explained_by: &str| {
            let watch = Finding::watch(subject, "clients wait; where to look");
            let cell = Cell {
                level: Level::High,
                value: Some(4.0),
                line: Some(1.0),
                unit: Some(rungwise_model::evidence::Unit::Count),
                subject: process.to_string(),
                note: String::new(),
                explained_by: explained_by.to_owned(),
            };
            let resource = Resource {
                id: "requests".to_owned(),
                title: "Requests".to_owned(),
                utilisation: None,
                saturation: Some(cell),
                errors: None,
            };
            let report = report(vec![said(rule, watch)], vec![resource]);
            verdict(&report, &Evidence::over(10.0), &rules).sentence
        };
        let high = "no rule requires action, but readings are high: saturation of requests 4";
        let named = format!("clients wait; {high}");
        assert_eq!(sentence("unexplained-wait", &process, ""), named);
        assert_eq!(sentence("runq-delay", &process, "runq-delay"), named);
        assert_eq!(sentence("zombies", &process, ""), high);
        assert_eq!(sentence("zombies", &process, "runq-delay"), high);
        let other = Subject::new(Kind::Process, 8);
        assert_eq!(sentence("unexplained-wait", &other, ""), high);
    }
}
