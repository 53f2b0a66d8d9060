//! Statistics as evidence: the `gc.*` keys of each run, every number with the line it comes from.
//!
//! A mean comes from many lines; it cites one line to start from, and names it: the last, the longest, the first. A
//! value that the log lacks is absent, with the JVM option that adds it.

mod heap;
mod pauses;
mod why;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

use rungwise_model::evidence::{Absence, Evidence, Key, Kind, Origin, Reading, Subject, Value};
use rungwise_model::{gc, keys};

use super::Summary;
use why::Why;

/// Where readings come from.
const SOURCE: &str = "GC log";

/// The evidence of a summary: one subject `jvm/N` per run. Its window is that of the longest run.
pub fn evidence(summary: &Summary) -> Evidence {
    with_lines(summary).0
}

/// The same, and the numbers of the lines that it cites.
pub(super) fn with_lines(summary: &Summary) -> (Evidence, BTreeSet<u64>) {
    let longest = summary.longest_run().and_then(|run| run.seconds);
    let mut evidence = Evidence::over(longest.unwrap_or(0.0));
    let mut lines = BTreeSet::new();
    let runs = summary.runs.len() as u64 + summary.runs_left_out;
    let all = Origin::new(SOURCE, format!("{runs} in the log"));
    evidence.number(&keys::GC_RUNS, Subject::host(), runs as f64, all);
    for run in &summary.runs {
        let mut teller = Teller {
            subject: Subject::new(Kind::Jvm, run.number),
            run,
            unified: unified(run),
            quotes: &summary.quotes,
            evidence: &mut evidence,
            lines: &mut lines,
        };
        teller.header();
        if tells_collections(run) {
            teller.pauses();
            teller.heap();
        } else {
            teller.without_collections();
        }
    }
    (evidence, lines)
}

/// There are collections in the log. If not, it counted none, and a zero would say that it did.
fn tells_collections(run: &gc::Run) -> bool {
    let pauses = &run.pauses;
    pauses.all.count + pauses.nested.count + pauses.unfinished > 0 || !run.concurrent.is_empty()
}

/// The log contains collections but not their pauses. Each collector stops threads, so the log does not print them:
/// under `-Xlog:gc` ZGC tells its cycles alone, under `-Xlog:gc+start` any collector the beginnings alone.
pub(super) fn hides_pauses(run: &gc::Run) -> bool {
    let pauses = &run.pauses;
    let begun = pauses.unfinished > 0 || !run.concurrent.is_empty();
    pauses.all.count + pauses.nested.count == 0 && begun
}

/// By the version, else by the names: the JVMs before unified logging called only Shenandoah's pauses `Pause ...`.
fn unified(run: &gc::Run) -> Option<bool> {
    let version = run.jvm.version.as_deref().unwrap_or_default();
    if version.starts_with(|c: char| c.is_ascii_digit()) {
        return Some(
            !["1.", "5.", "6.", "7.", "8."]
                .iter()
                .any(|old| version.starts_with(old)),
        );
    }
    let mut names = run.pauses.by_type.keys();
    let collector = run.jvm.collector.as_deref();
    if collector.is_some_and(|name| name.contains("ZGC")) {
        return Some(true);
    }
    if collector.is_some_and(|name| name.contains("Shenandoah")) || names.len() == 0 {
        return None;
    }
    Some(names.any(|name| name.contains("Pause ")))
}

/// Tells the readings of one run.
struct Teller<'a> {
    subject: Subject,
    run: &'a gc::Run,
    /// Written by unified logging, JDK 9 and later; `None` where the log does not show it.
    unified: Option<bool>,
    quotes: &'a BTreeMap<u64, String>,
    evidence: &'a mut Evidence,
    lines: &'a mut BTreeSet<u64>,
}

/// What a number rests on: words, and the moment that they end with.
#[derive(Clone, Copy)]
struct From<'a> {
    words: &'a str,
    moment: Option<&'a gc::Moment>,
}

impl<'a> From<'a> {
    fn words(words: &'a str) -> Self {
        Self {
            words,
            moment: None,
        }
    }

    fn moment(words: &'a str, moment: &'a gc::Moment) -> Self {
        Self {
            words,
            moment: Some(moment),
        }
    }

    fn maybe(words: &'a str, moment: Option<&'a gc::Moment>) -> Self {
        Self { words, moment }
    }
}

impl Teller<'_> {
    /// A number where there is one, else why not.
    fn number(&mut self, key: &'static Key, value: Option<f64>, from: From<'_>, why: Why) {
        self.series(key, value, Vec::new(), from, why);
    }

    fn series(
        &mut self,
        key: &'static Key,
        value: Option<f64>,
        series: Vec<f64>,
        from: From<'_>,
        why: Why,
    ) {
        match value {
            Some(value) => {
                let origin = self.origin(from);
                let subject = self.subject.clone();
                self.evidence.series(key, subject, value, series, origin);
            }
            None => self.absent(key, why),
        }
    }

    fn text(&mut self, key: &'static Key, value: Option<String>, from: From<'_>, why: Why) {
        match value {
            Some(value) => {
                let origin = self.origin(from);
                self.evidence.text(key, self.subject.clone(), value, origin);
            }
            None => self.absent(key, why),
        }
    }

    fn absent(&mut self, key: &'static Key, why: Why) {
        let (reason, remedy) = why.words();
        let remedy = why::for_log(remedy, self.unified);
        self.evidence.add(Reading {
            key,
            subject: self.subject.clone(),
            value: Value::Absent(Absence::because(reason).remedy(remedy)),
            series: Vec::new(),
            origin: Origin::new(SOURCE, ""),
        });
    }

    fn origin(&mut self, from: From<'_>) -> Origin {
        let mut text = from.words.to_owned();
        if let Some(moment) = from.moment {
            if !text.is_empty() {
                text.push_str(": ");
            }
            match moment.line {
                Some(line) => {
                    self.lines.insert(line);
                    let _ = write!(text, "line {line} of the log: ");
                    match self.quotes.get(&line) {
                        Some(quote) => text.push_str(quote),
                        None => describe(&mut text, moment),
                    }
                }
                None => describe(&mut text, moment),
            }
        }
        Origin::new(SOURCE, text)
    }

    /// All that asks for collections is absent; a log of safepoints still tells of those.
    fn without_collections(&mut self) {
        for key in keys::all().filter(|key| key.id.starts_with("gc.") && key.of == Kind::Jvm) {
            if self.evidence.reading(key, &self.subject).is_none() {
                self.absent(key, Why::Nothing);
            }
        }
        self.safepoints();
        if self.run.stalls.is_some() {
            self.stalls();
        }
        let run = self.run;
        if run.troubles.out_of_memory.count > 0 {
            self.trouble(&keys::GC_OUT_OF_MEMORY, &run.troubles.out_of_memory);
        }
    }

    fn header(&mut self) {
        let jvm = &self.run.jvm;
        let from = From::words("from the log's JVM header");
        let why = Why::Header;
        self.text(&keys::GC_VERSION, jvm.version.clone(), from, why);
        self.text(&keys::GC_COLLECTOR, jvm.collector.clone(), from, why);
        self.text(&keys::GC_FLAGS, jvm.flags.clone(), from, why);
        for (key, value) in [
            (&keys::GC_CPUS, jvm.cpus),
            (&keys::GC_MEMORY, jvm.memory_bytes),
            (&keys::GC_SWAP, jvm.swap_bytes),
        ] {
            self.number(key, value.map(|value| value as f64), from, Why::Machine);
        }
        for (key, value) in [
            (&keys::GC_REGION, jvm.region_bytes),
            (&keys::GC_WORKERS, jvm.parallel_workers),
            (&keys::GC_CONCURRENT_WORKERS, jvm.concurrent_workers),
        ] {
            self.number(key, value.map(|value| value as f64), from, why);
        }
        let unified = self.unified.map(|is| if is { 1.0 } else { 0.0 });
        let shape = From::words("from the version, else from the names of pauses");
        self.number(&keys::GC_UNIFIED, unified, shape, why);
        let span = From::words("first to last timestamp of the run");
        self.number(&keys::GC_SECONDS, self.run.seconds, span, Why::Clock);
        let first = From::words("first timestamp of the run; zero if the log begins with the JVM");
        self.number(&keys::GC_BEGAN, self.run.began_s, first, Why::Clock);
        self.absent(&keys::GC_PAUSE_GOAL, Why::Goal);
        self.absent(&keys::GC_REQUEST_RATE, Why::Requests);
    }
}

/// What a line said, in the words of its event.
fn describe(text: &mut String, moment: &gc::Moment) {
    text.push_str(&moment.name);
    if let Some(cause) = &moment.cause
        && !moment.name.contains(&**cause)
    {
        let _ = write!(text, " ({cause})");
    }
    if let (Some(before), Some(after)) = (moment.heap_before_bytes, moment.heap_after_bytes) {
        let _ = write!(text, " {}K->{}K", before / 1024, after / 1024);
    }
    if let Some(ms) = moment.duration_ms {
        let _ = write!(text, " {ms} ms");
    }
    if let Some(at) = moment.at_s {
        let _ = write!(text, " at {at:.3} s");
    }
}

/// How many, in words: `3 pauses`.
fn counted(count: u64, one: &str, many: &str) -> String {
    format!("{count} {}", if count == 1 { one } else { many })
}
