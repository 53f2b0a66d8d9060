//! Analyses GC logs in one pass, in memory that does not grow with them.

pub(crate) mod compare;
pub mod follow;
pub(crate) mod joined;
mod set;

use std::collections::BTreeSet;
use std::io::{Read as _, Seek as _, SeekFrom};
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::Context as _;
use memchr::memchr_iter;
use rungwise_gclog::{Account, Event, Names, Parser, Sample, Summarizer, Summary, evidence};
use rungwise_host::{clock, files};
use rungwise_model::check::Finding;
use rungwise_model::evidence::{Kind, Origin, Subject};
use rungwise_model::gc::{self, GcReport, LogFile, Slo};
use rungwise_model::{Envelope, Exit, keys, units};

use crate::Invocation;
use crate::check::{self, FailOn};
use crate::documents::Document as _;
use crate::input::{self, Part};
use crate::problem::Problem;
use set::{Ordered, Signs};

/// Analyse GC logs: findings, pauses, memory.
///
/// Logs of JDK 5 to 25, every collector, any log settings; plain, gzip or zip. Exit status: 0 nothing to act on, 1
/// findings at or above --fail-on or a pause beyond --slo, 3 the log contains no pauses and no rule could be decided, 4 not
/// a GC log.
#[derive(Debug, clap::Args)]
pub struct Request {
    /// Log files, a folder of them, or - for standard input; several are read in chronological order.
    #[arg(required = true, value_name = "FILE")]
    pub files: Vec<PathBuf>,
    /// Longest acceptable pause, such as 200ms.
    #[arg(long, value_name = "TIME", value_parser = units::duration)]
    pub slo: Option<Duration>,
    /// Request rate while the log was written, such as 500/s: gives the allocation per request.
    #[arg(long, value_name = "RATE", value_parser = request_rate)]
    pub rate: Option<f64>,
    /// Lowest outcome that exits with status 1.
    #[arg(long, value_enum, default_value_t = FailOn::Act)]
    pub fail_on: FailOn,
}

/// Requests per second, of which there are some.
pub fn request_rate(text: &str) -> Result<f64, String> {
    let rate = units::per_second(text).map_err(|error| error.to_string())?;
    if rate > 0.0 {
        Ok(rate)
    } else {
        Err("the rate is zero; pass a rate such as 500/s".to_owned())
    }
}

/// Reads the logs and judges them.
pub fn run(request: &Request, invocation: &Invocation<'_>) -> anyhow::Result<GcReport> {
    judge(&request.files, request.asked(), request.fail_on, invocation)
}

impl Request {
    fn asked(&self) -> Asked {
        Asked {
            slo: self.slo,
            rate: self.rate,
        }
    }
}

/// What the user tells beside the log.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Asked {
    slo: Option<Duration>,
    /// Requests per second.
    rate: Option<f64>,
}

/// Whether a file, or one in this folder, is a GC log: by what it says, not by its name. Where it cannot be read, whoever
/// reads it next says why.
pub(crate) fn is_log(path: &Path) -> bool {
    let parts = input::parts(path).unwrap_or_default();
    let mut parts = parts.iter().filter(|part| part.rests());
    parts.any(|part| set::beginning(part).is_ok_and(|beginning| beginning.is_log))
}

/// What there is in a file that is no log; nothing where it cannot be read, or is a JSON document that may tell more itself.
pub(crate) fn not_one(path: &Path) -> Option<String> {
    /// As much of the file as is looked at.
    const SHOWN: usize = 320;
    let parts = input::parts(path).ok()?;
    let [part] = &*parts else { return None };
    let mut text = Vec::new();
    // Of a packed file that is cut the beginning tells enough.
    let _ = part.open().ok()?.each(|piece| {
        text.extend_from_slice(piece);
        text.len() < SHOWN
    });
    let text = String::from_utf8_lossy(&text);
    let text = text.trim();
    if text.is_empty() {
        return Some("it is empty".to_owned());
    }
    let line = text.lines().next().unwrap_or_default();
    (!text.starts_with('{')).then(|| format!("it begins with {}", input::quoted(line)))
}

/// What a log says of the time since it had `from` bytes: the header is read for the facts about the JVM, and what follows `from` for
/// the rest. Nothing if no collection was logged since.
pub(crate) fn since(path: &Path, from: u64) -> anyhow::Result<Option<Summary>> {
    /// A header stands at the beginning; what comes after this much is no header.
    const HEADER: u64 = 1 << 20;
    const PIECE: usize = 1 << 16;
    let mut file = files::open(path)?;
    let mut parser = Parser::new();
    let mut summarizer = Summarizer::new();
    let mut piece = vec![0; PIECE];
    let mut left = from.min(HEADER) as usize;
    let mut facts = |names: &Names, event: Event<'_>| {
        if matches!(event, Event::Fact(_)) {
            summarizer.event(names, event);
        }
    };
    while left > 0 {
        let most = left.min(PIECE);
        let count = file.read(&mut piece[..most])?;
        if count == 0 {
            break;
        }
        parser.push(&piece[..count], &mut facts);
        left -= count;
    }
    if from > HEADER {
        // The line at the end of the header is cut.
        parser.push(b"\n", &mut facts);
    }
    // The file may have been rotated: then all of it is new.
    let length = file.metadata()?.len();
    file.seek(SeekFrom::Start(if length < from { 0 } else { from }))?;
    let mut sink = |names: &Names, event: Event<'_>| summarizer.event(names, event);
    loop {
        let count = file.read(&mut piece)?;
        if count == 0 {
            break;
        }
        parser.push(&piece[..count], &mut sink);
    }
    parser.finish(&mut sink);
    let summary = summarizer.summary();
    Ok((summary.pauses.count > 0).then_some(summary))
}

/// The first bytes of a log's text, unpacked; of several files those of the oldest.
pub(crate) fn head(path: &Path, most: usize) -> anyhow::Result<Vec<u8>> {
    let (parts, _) = chosen(&[path.to_owned()])?;
    let mut text = Vec::new();
    if let Some((part, _)) = parts.first() {
        part.open()?.each(|piece| {
            text.extend_from_slice(piece);
            text.len() < most
        })?;
    }
    text.truncate(most);
    Ok(text)
}

/// Reads the logs and judges them.
pub(crate) fn judge(
    paths: &[PathBuf],
    asked: Asked,
    fail_on: FailOn,
    invocation: &Invocation<'_>,
) -> anyhow::Result<GcReport> {
    let started = clock::utc_now();
    let names: Vec<String> = paths
        .iter()
        .map(|path| path.display().to_string())
        .collect();
    let log = read(paths, asked.slo, &mut |_| {})?;
    judged_log(
        log,
        &names.join(", "),
        started,
        (asked, fail_on),
        invocation,
    )
}

/// The document of logs that were read.
fn judged_log(
    mut log: Log,
    target: &str,
    started: String,
    (asked, fail_on): (Asked, FailOn),
    invocation: &Invocation<'_>,
) -> anyhow::Result<GcReport> {
    let mut found = judged(&log.summary, asked);
    // The lines that findings rest on are read again only where there are findings.
    if !found.is_empty() && log.quote()? {
        found = judged(&log.summary, asked);
    }
    let envelope = invocation.envelope(GcReport::KIND, started, exit(&log, &found, fail_on));
    Ok(log.report(target, envelope, found))
}

/// What the rules about GC logs say.
fn judged(summary: &Summary, asked: Asked) -> Vec<Finding> {
    let mut evidence = evidence(summary);
    for run in &summary.runs {
        for (key, option, value) in [
            (
                &keys::GC_PAUSE_GOAL,
                "--slo",
                asked.slo.map(|slo| slo.as_secs_f64()),
            ),
            (&keys::GC_REQUEST_RATE, "--rate", asked.rate),
        ] {
            if let Some(value) = value {
                let subject = Subject::new(Kind::Jvm, run.number);
                evidence.number(key, subject, value, Origin::new("command line", option));
            }
        }
    }
    rungwise_rules::judge_logs(&evidence)
}

fn exit(log: &Log, findings: &[Finding], fail_on: FailOn) -> Exit {
    let met = log.slo.map(|slo| slo.met);
    match check::exit(findings, fail_on) {
        _ if met == Some(Some(false)) => Exit::Failed,
        Exit::Done | Exit::Inconclusive if met == Some(None) => Exit::Inconclusive,
        // Without rules that say something, pauses are still an answer.
        Exit::Inconclusive if log.summary.pauses.count > 0 => Exit::Done,
        exit => exit,
    }
}

/// Logs that were read.
#[derive(Debug)]
pub(crate) struct Log {
    parts: Vec<Part>,
    files: Vec<LogFile>,
    pub(crate) notes: Vec<String>,
    account: Account,
    pub(crate) summary: Summary,
    slo: Option<Slo>,
}

/// Reads all of the logs, each line once, and shows each event to `also`.
pub(crate) fn read(
    paths: &[PathBuf],
    slo: Option<Duration>,
    also: &mut dyn FnMut(&Event<'_>),
) -> anyhow::Result<Log> {
    let (parts, notes) = chosen(paths)?;
    let mut reading = Reading {
        notes,
        ..Reading::new(slo)
    };
    let mut also = |_: &Names, event: &Event<'_>| also(event);
    for (part, another) in &parts {
        let mut text = part.open()?;
        reading.begin(&part.name, text.packed, &mut also);
        if *another {
            reading.restart(&mut also);
        }
        let broken = text.each(|piece| {
            reading.push(piece, &mut also);
            true
        });
        if let Some(why) = broken.with_context(|| format!("cannot read {}", part.name))? {
            reading.broken(why);
        }
    }
    let parts = parts.into_iter().map(|(part, _)| part).collect();
    reading.finish(parts, &mut also)
}

/// What takes the text of logs, one after the other, and shows each event to somebody else too.
#[derive(Debug, Default)]
struct Reading {
    parser: Parser,
    takers: Takers,
    files: Vec<LogFile>,
    notes: Vec<String>,
    /// The last line has no end yet.
    within_line: bool,
}

/// Who takes the events.
#[derive(Debug, Default)]
struct Takers {
    signs: Signs,
    limit: Option<Limit>,
    summarizer: Summarizer,
}

/// Whom events are shown to.
type Also<'a> = dyn FnMut(&Names, &Event<'_>) + 'a;

impl Takers {
    fn event(&mut self, names: &Names, event: Event<'_>, also: &mut Also<'_>) {
        self.signs.event(&event);
        also(names, &event);
        if let Some(limit) = &mut self.limit {
            limit.event(&event);
        }
        self.summarizer.event(names, event);
    }
}

impl Reading {
    fn new(slo: Option<Duration>) -> Self {
        Self {
            takers: Takers {
                limit: slo.map(Limit::new),
                ..Takers::default()
            },
            ..Self::default()
        }
    }

    /// Another file begins. A line does not go on in it.
    fn begin(&mut self, name: &str, packed: Option<&str>, also: &mut Also<'_>) {
        if std::mem::take(&mut self.within_line) {
            self.parse(b"\n", also);
        }
        self.files.push(LogFile {
            name: name.to_owned(),
            packed: packed.map(str::to_owned),
            first_line: self.parser.lines() + 1,
            ..LogFile::default()
        });
    }

    /// Another JVM has written what comes.
    fn restart(&mut self, also: &mut Also<'_>) {
        let takers = &mut self.takers;
        let mut sink = |names: &Names, event: Event<'_>| takers.event(names, event, also);
        self.parser.restart(&mut sink);
    }

    /// The next bytes of the file that began last.
    fn push(&mut self, piece: &[u8], also: &mut Also<'_>) {
        self.parse(piece, also);
        if let (Some(file), Some(last)) = (self.files.last_mut(), piece.last()) {
            file.bytes += piece.len() as u64;
            self.within_line = *last != b'\n';
        }
    }

    fn parse(&mut self, piece: &[u8], also: &mut Also<'_>) {
        let takers = &mut self.takers;
        let mut sink = |names: &Names, event: Event<'_>| takers.event(names, event, also);
        self.parser.push(piece, &mut sink);
    }

    /// The rest of the file that began last cannot be read.
    fn broken(&mut self, why: String) {
        if let Some(file) = self.files.last_mut() {
            self.notes.push(format!(
                "{}: {why} after {} bytes of text; the rest is missing",
                file.name, file.bytes
            ));
            file.broken = Some(why);
        }
    }

    /// What was reported so far.
    fn summary(&self) -> Summary {
        self.takers.summarizer.summary()
    }

    /// The end of all. `parts` can be read again, one for each file, or are none.
    fn finish(self, parts: Vec<Part>, also: &mut Also<'_>) -> anyhow::Result<Log> {
        let mut takers = self.takers;
        let mut sink = |names: &Names, event: Event<'_>| takers.event(names, event, also);
        let account = self.parser.finish(&mut sink);
        let summary = takers.summarizer.summary();
        if !takers.signs.are_of_a_log(&account) && summary.pauses.count == 0 {
            let collectors = summary.runs.iter().map(|run| run.jvm.collector.as_deref());
            let epsilon = collectors.clone().next().is_some()
                && collectors.into_iter().all(|name| name == Some("Epsilon"));
            return Err(no_log(&self.files, &account, epsilon));
        }
        let mut notes = self.notes;
        notes.extend(interleaving_note(&summary));
        notes.extend(account.by_turns.map(|line| {
            format!(
                "two JVMs write into this log alternately, as their uptimes show by line {line}, and the lines do not identify the JVM: \
                 the figures mix both; give each JVM its own file (-Xlog:gc*:file=gc-%p.log, JDK 8 \
                 -Xloggc:gc-%p.log), or log the pid in each line (-Xlog:gc*:file=gc.log:time,uptime,pid,tid,level,tags)"
            )
        }));
        if account.left_out.lines > 0 {
            notes.push(format!(
                "too many JVMs write into this log at once to separate them, so {} lines are left out; pass the lines of each JVM as a \
                 separate file",
                account.left_out.lines
            ));
        }
        if account.dropped_messages > 0 {
            notes.push(format!(
                "the JVM dropped {} messages because the buffer of its asynchronous log was full: collections may be among them, so the \
                 counts here are too low; enlarge it with -XX:AsyncLogBufferSize, or remove -Xlog:async",
                account.dropped_messages
            ));
        }
        Ok(Log {
            parts,
            files: self.files,
            notes,
            account,
            slo: takers.limit.map(|limit| limit.judge(&summary)),
            summary,
        })
    }
}

/// What to say of JVMs that write by turns.
fn interleaving_note(summary: &Summary) -> Option<String> {
    /// More than anybody reads.
    const NAMED: usize = 5;
    let mut names: Vec<&str> = Vec::new();
    for name in summary.runs.iter().filter_map(|run| run.source.as_deref()) {
        if !names.contains(&name) {
            names.push(name);
        }
    }
    if names.len() < 2 {
        return None;
    }
    let more = match names.len().saturating_sub(NAMED) {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    names.truncate(NAMED);
    Some(format!(
        "several JVMs write into this log, and its lines identify them: {}{more}; each is a separate run, and no statistic \
         mixes them",
        names.join("; ")
    ))
}

/// The parts to read in the order of their time, and what to say of them.
fn chosen(paths: &[PathBuf]) -> anyhow::Result<(Ordered<Part>, Vec<String>)> {
    let mut notes = Vec::new();
    let mut parts = Vec::new();
    for path in paths {
        let found = input::parts(path)?;
        if found.is_empty() {
            let error = anyhow::anyhow!("cannot read {}: it contains no files", path.display());
            return Err(Problem::with(Exit::Precondition, error));
        }
        parts.extend(found);
    }
    if parts.len() < 2 {
        let parts = parts.into_iter().map(|part| (part, false)).collect();
        return Ok((parts, notes));
    }
    let mut known = Vec::new();
    let mut others = Vec::new();
    for part in parts {
        if !part.rests() {
            anyhow::bail!(
                "cannot read {} together with other files: it can be read only once, so its position among them is unknown; pass \
                 it alone",
                part.name
            );
        }
        let beginning = set::beginning(&part)?;
        if beginning.is_log {
            known.push((part, beginning));
        } else {
            others.push(part.name);
        }
    }
    if known.is_empty() {
        let error = anyhow::anyhow!(
            "cannot judge {}: none of the {} files is a GC log",
            paths
                .iter()
                .map(|path| path.display().to_string())
                .collect::<Vec<_>>()
                .join(", "),
            others.len()
        );
        return Err(Problem::with(Exit::Precondition, error));
    }
    if !others.is_empty() {
        notes.push(format!("not GC logs, so skipped: {}", others.join(", ")));
    }
    let (known, copies) = set::without_copies(known)?;
    notes.extend(copies);
    let (parts, note) = set::ordered(known);
    notes.extend(note);
    Ok((parts, notes))
}

/// What was found where a GC log should be. Epsilon is a collector that never collects.
fn no_log(files: &[LogFile], account: &Account, epsilon: bool) -> anyhow::Error {
    let names: Vec<&str> = files.iter().map(|file| &*file.name).collect();
    if epsilon {
        let error = anyhow::anyhow!(
            "cannot judge {}: its JVM runs Epsilon, which never collects, so there is nothing to judge; choose another collector, \
             such as -XX:+UseG1GC",
            names.join(", ")
        );
        return Problem::with(Exit::Precondition, error);
    }
    let broken = files.iter().find_map(|file| file.broken.as_deref());
    let found = match (account.bytes(), account.samples.first()) {
        (0, _) => broken.unwrap_or("it is empty").to_owned(),
        (bytes, None) => format!("none of its {bytes} bytes belong to a GC event"),
        (_, Some(sample)) => format!(
            "none of its {} lines is a GC event; line {} is {}",
            account.lines(),
            sample.line,
            input::quoted(&sample.text)
        ),
    };
    let error = anyhow::anyhow!(
        "cannot judge {}: {found}; start the JVM with -Xlog:gc*:file=gc.log (JDK 8: -Xloggc:gc.log \
         -XX:+PrintGCDetails)",
        names.join(", ")
    );
    Problem::with(Exit::Precondition, error)
}

/// Counts pauses against a limit.
#[derive(Clone, Copy, Debug)]
struct Limit {
    longest: Duration,
    pauses: u64,
    beyond: u64,
    beyond_ns: u128,
}

impl Limit {
    fn new(longest: Duration) -> Self {
        Self {
            longest,
            pauses: 0,
            beyond: 0,
            beyond_ns: 0,
        }
    }

    fn event(&mut self, event: &Event<'_>) {
        if let Event::Pause(pause) = event
            && let Some(ns) = pause.duration_ns.filter(|_| !pause.nested)
        {
            self.pauses += 1;
            if u128::from(ns) > self.longest.as_nanos() {
                self.beyond += 1;
                self.beyond_ns += u128::from(ns);
            }
        }
    }

    fn judge(self, summary: &Summary) -> Slo {
        let met = match self.beyond {
            0 => summary.tells_pauses().then_some(true),
            _ => Some(false),
        };
        Slo {
            limit_ms: self.longest.as_secs_f64() * 1e3,
            pauses: self.pauses,
            beyond: self.beyond,
            beyond_ms: self.beyond_ns as f64 / 1e6,
            met,
        }
    }
}

impl Log {
    /// What to say where one of several runs is looked at.
    pub(crate) fn only_one_taken(&self) -> Option<String> {
        let runs = self.summary.runs.len() as u64 + self.summary.runs_left_out;
        (runs > 1).then(|| {
            format!(
                "it contains {runs} JVM runs, and only the one with the longest logged time is used"
            )
        })
    }

    /// Reads the lines again that the evidence cites; false where the log can be read once only.
    fn quote(&mut self) -> anyhow::Result<bool> {
        let cited = self.summary.cited();
        let Some(last) = cited.last().copied() else {
            return Ok(false);
        };
        if self.parts.is_empty() || !self.parts.iter().all(Part::rests) {
            return Ok(false);
        }
        let mut quotes = Vec::new();
        for (part, file) in self.parts.iter().zip(&self.files) {
            let mut lines = Lines::from(file.first_line);
            // A log that is still written to may be longer now.
            let mut left = file.bytes;
            part.open()?.each(|piece| {
                let piece = &piece
                    [..usize::try_from(left).map_or(piece.len(), |left| piece.len().min(left))];
                left -= piece.len() as u64;
                lines.push(piece, &cited, |line, text| {
                    quotes.push((line, String::from_utf8_lossy(text).into_owned()));
                });
                left > 0 && lines.number <= last
            })?;
            let number = lines.number;
            if !lines.kept.is_empty() && cited.contains(&number) {
                quotes.push((number, String::from_utf8_lossy(&lines.kept).into_owned()));
            }
        }
        for (line, text) in quotes {
            self.summary.quote(line, &text);
        }
        Ok(true)
    }

    fn report(self, target: &str, envelope: Envelope, findings: Vec<Finding>) -> GcReport {
        let summary = self.summary;
        let longest = summary.longest_run();
        GcReport {
            envelope,
            target: target.to_owned(),
            window_s: longest.and_then(|run| run.seconds),
            jvm: longest.map(|run| run.jvm.clone()).unwrap_or_default(),
            files: self.files,
            notes: self.notes,
            account: account_report(self.account),
            slo: self.slo,
            throughput: summary.throughput(),
            allocation_bytes_per_s: summary.allocation_bytes_per_s(),
            promotion_bytes_per_s: summary.promotion_bytes_per_s(),
            pauses: summary.pauses,
            runs: summary.runs,
            runs_left_out: summary.runs_left_out,
            left_out: (summary.runs_left_out > 0).then_some(summary.left_out),
            findings,
        }
    }
}

/// Longest text of a line that is quoted.
const QUOTED: usize = 1000;

/// Finds lines by their number, and keeps the beginning of each.
#[derive(Debug)]
struct Lines {
    number: u64,
    kept: Vec<u8>,
}

impl Lines {
    fn from(number: u64) -> Self {
        Self {
            number,
            kept: Vec::new(),
        }
    }

    /// Shows each of the wanted lines that ends in this piece.
    fn push(&mut self, piece: &[u8], wanted: &BTreeSet<u64>, mut each: impl FnMut(u64, &[u8])) {
        // Of a long log few pieces hold one: in the others ends of lines are counted at many bytes a cycle.
        let ends = memchr_iter(b'\n', piece).count() as u64;
        if wanted
            .range(self.number..=self.number + ends)
            .next()
            .is_none()
        {
            self.number += ends;
            self.kept.clear();
            return;
        }
        for text in piece.split_inclusive(|&byte| byte == b'\n') {
            let room = QUOTED.saturating_sub(self.kept.len());
            let line = text.strip_suffix(b"\n");
            let mut bare = line.unwrap_or(text);
            if self.kept.is_empty() {
                // What copytruncate leaves, which is no text.
                let zeros = bare.iter().take_while(|&&byte| byte == 0).count();
                bare = &bare[zeros..];
            }
            self.kept.extend(&bare[..bare.len().min(room)]);
            if line.is_some() {
                if wanted.contains(&self.number) {
                    each(self.number, &self.kept);
                }
                self.kept.clear();
                self.number += 1;
            }
        }
    }
}

fn account_report(account: Account) -> gc::Account {
    gc::Account {
        bytes: account.bytes(),
        understood: account.understood.bytes,
        ignored: account.ignored.bytes,
        unknown: account.unknown.bytes,
        lines: account.lines(),
        understood_lines: account.understood.lines,
        ignored_lines: account.ignored.lines,
        unknown_lines: account.unknown.lines,
        cut: account.cut,
        begins_within: account.begins_within.map(sample),
        samples: account.samples.into_iter().map(sample).collect(),
    }
}

fn sample(sample: Sample) -> gc::Sample {
    gc::Sample {
        line: sample.line,
        text: sample.text,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_keep_their_numbers_whatever_the_pieces() {
        let text = b"one\ntwo\r\n\nfour";
        let all = [(7, &b"one"[..]), (8, b"two\r"), (9, b""), (10, b"four")];
        // Every choice of lines, in pieces of every length.
        for choice in 0..1_u32 << all.len() {
            let is_wanted = |index: &usize| choice >> index & 1 == 1;
            let wanted: Vec<_> = (0..all.len())
                .filter(is_wanted)
                .map(|index| all[index])
                .collect();
            let numbers = wanted.iter().map(|(number, _)| *number).collect();
            for length in 1..=text.len() {
                let mut lines = Lines::from(7);
                let mut seen = Vec::new();
                for piece in text.chunks(length) {
                    lines.push(piece, &numbers, |number, line| {
                        seen.push((number, line.to_vec()));
                    });
                }
                if numbers.contains(&lines.number) {
                    seen.push((lines.number, lines.kept));
                }
                let expected = wanted.iter().map(|(number, line)| (*number, line.to_vec()));
                assert!(seen.into_iter().eq(expected), "{choice:b}, {length}");
            }
        }
    }

    #[test]
    fn a_pause_as_long_as_the_limit_is_within_it() {
        let log = b"[1s][info][gc] GC(0) Pause Young (Normal) (G1 Evacuation Pause) 24M->4M(256M) 200.000ms\n\
                    [2s][info][gc] GC(1) Pause Young (Normal) (G1 Evacuation Pause) 24M->4M(256M) 200.001ms\n";
        let slo = against(log, 200);
        assert_eq!((slo.pauses, slo.beyond, slo.met), (2, 1, Some(false)));
        assert_eq!(against(log, 201).met, Some(true));
    }

    #[test]
    fn a_limit_is_undecided_where_the_log_prints_cycles_and_no_pauses() {
        let cycle = b"[1s][info][gc] GC(0) Garbage Collection (Warmup) 96M(100%)->40M(42%)\n";
        assert_eq!(against(cycle, 200).met, None);
        let other = b"[2s][info][gc] Using G1\n[3s][info][gc] GC(0) Pause Young (Normal) (G1 Evacuation Pause) 24M->4M(256M) 1.000ms\n";
        assert_eq!(against(&[&cycle[..], other].concat(), 200).met, None);
        assert_eq!(against(other, 200).met, Some(true));
    }

    fn against(log: &[u8], ms: u64) -> Slo {
        let mut takers = Takers {
            limit: Some(Limit::new(Duration::from_millis(ms))),
            ..Takers::default()
        };
        let mut parser = Parser::new();
        let mut sink = |names: &Names, event: Event<'_>| takers.event(names, event, &mut |_, _| {});
        parser.push(log, &mut sink);
        parser.finish(&mut sink);
        takers.limit.unwrap().judge(&takers.summarizer.summary())
    }
}
