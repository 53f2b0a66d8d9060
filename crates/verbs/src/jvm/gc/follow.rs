//! A log while it is written: collections and findings as they come, the report at the end.
//!
//! A collection is handed on when the log contains its end, with what is known by then. Findings and status are those of
//! the summary so far, so that the last of them agree with the report. On a quiet log nothing runs at all.

use std::collections::{BTreeMap, VecDeque};
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use rungwise_gclog::{Area, Areas, Concurrent, Event, Names, Pause, Stamp, Summary};
use rungwise_host::follow::{Followed, Next, Stdin, Woken};
use rungwise_host::signals::Interrupt;
use rungwise_host::{clock, files};
use rungwise_model::Exit;
use rungwise_model::check::{Finding, Grade, Outcome};
use rungwise_model::gc::GcReport;
use rungwise_model::gc::Run;
use rungwise_model::gc_follow::{Collection, FollowLine, Standing};

use super::{Asked, Reading, Request, compare, judged, judged_log};
use crate::input;
use crate::problem::Problem;
use crate::{Invocation, Observer};

/// Bytes that are read at once.
const PIECE: usize = 256 * 1024;
/// A JVM prints the lines of a collection one by one: they are waited for, so that a busy log wakes us ten times a second
/// at most.
const REST: Duration = Duration::from_millis(100);
/// Time between two runs of the rules, which cost about a millisecond.
const JUDGE: Duration = Duration::from_secs(1);
/// Collections shown of what the log held already.
const BACKLOG: usize = 10;
/// Seconds of the log between two standings.
const STANDING_S: f64 = 60.0;
/// What is there is read before the end, for no longer than this: a pipe may never run dry.
const LAST_READ: Duration = Duration::from_secs(1);

/// How a log is followed.
pub struct Following<'a> {
    /// Ends after this time; without one, when it is interrupted.
    pub length: Option<Duration>,
    /// Hands on every collection that the log contains already, not only the last ten.
    pub from_start: bool,
    /// Takes what is new; it breaks where the reader is gone.
    pub each: &'a mut dyn FnMut(&[FollowLine]) -> ControlFlow<()>,
}

/// Follows the only log of the request, and judges it at the end.
pub fn run(
    request: &Request,
    following: Following<'_>,
    invocation: &Invocation<'_>,
) -> anyhow::Result<GcReport> {
    let [path] = &*request.files else {
        anyhow::bail!(
            "--follow reads one log; run it once per log, or pass the files without --follow"
        );
    };
    let started = clock::utc_now();
    let mut source = Source::open(path, invocation)?;
    let interrupt = invocation.interrupt()?;
    let mut reading = Reading::new(request.slo);
    let length = following.length;
    let mut feed = Feed::new(request.asked(), following);
    let mut until = length.and_then(|length| clock::now().checked_add(length));
    let mut piece = vec![0; PIECE];
    loop {
        match source.read(&mut piece) {
            Ok(Next::Bytes(count)) => {
                let piece = &piece[..count];
                source.check(&reading, piece)?;
                reading.push(piece, &mut |names, event| feed.event(names, event));
                feed.hand_on();
                if interrupt.raised() {
                    until = Some(earlier(until, clock::now() + LAST_READ));
                }
                if !late(until) && !feed.closed {
                    continue;
                }
            }
            Ok(Next::Anew) => {
                let name = source.name();
                if !reading.files.is_empty() {
                    invocation.say(&format!("rungwise: {name} starts over"));
                }
                reading.begin(&name, None, &mut |names, event| feed.event(names, event));
                continue;
            }
            Ok(Next::Nothing) => {
                feed.caught_up(&reading, &source.name(), invocation.observer);
                if !interrupt.raised() && !late(until) && !feed.closed {
                    rest(&source, &interrupt, &feed, until)?;
                    continue;
                }
            }
            Ok(Next::End) => feed.caught_up(&reading, &source.name(), invocation.observer),
            // What was read is not thrown away.
            Err(error) => {
                reading.broken(error.to_string());
                invocation.say(&format!("rungwise: {error}"));
            }
        }
        break;
    }
    if reading.files.is_empty() {
        let error = anyhow::anyhow!("cannot judge {}: it does not exist yet", source.name());
        return Err(Problem::with(Exit::Precondition, error));
    }
    let parts = match source.again() {
        Some(path) => input::parts(path)?,
        None => Vec::new(),
    };
    let log = reading.finish(parts, &mut |names, event| feed.event(names, event))?;
    feed.hand_on();
    let target = path.display().to_string();
    let judging = (request.asked(), request.fail_on);
    judged_log(log, &target, started, judging, invocation)
}

fn late(until: Option<Instant>) -> bool {
    until.is_some_and(|until| clock::now() >= until)
}

fn earlier(until: Option<Instant>, other: Instant) -> Instant {
    until.map_or(other, |until| until.min(other))
}

/// Waits for more, or for whatever is due.
fn rest(
    source: &Source,
    interrupt: &Interrupt,
    feed: &Feed<'_>,
    until: Option<Instant>,
) -> anyhow::Result<()> {
    let due = feed.due().map(|due| earlier(until, due)).or(until);
    let within = due.map(|due| due.saturating_duration_since(clock::now()));
    if source.wait(interrupt, within)? == Woken::Changed {
        interrupt.wait(REST)?;
    }
    Ok(())
}

/// Where the text comes from.
enum Source {
    File(PathBuf, Followed),
    Stdin(Stdin),
}

impl Source {
    fn open(path: &Path, invocation: &Invocation<'_>) -> anyhow::Result<Self> {
        if path == Path::new("-") {
            return Ok(Self::Stdin(Stdin::new()));
        }
        if files::is_folder(path) {
            anyhow::bail!(
                "cannot follow {}: it is a folder; name the log file that is being written",
                path.display()
            );
        }
        let followed = Followed::new(path, current)?;
        if !files::exists(&current(path)) {
            invocation.say(&format!("rungwise: waiting for {}", path.display()));
        }
        Ok(Self::File(path.to_owned(), followed))
    }

    fn read(&mut self, piece: &mut [u8]) -> rungwise_host::Result<Next> {
        match self {
            Self::File(_, followed) => followed.read(piece),
            Self::Stdin(stdin) => stdin.read(piece),
        }
    }

    fn wait(
        &self,
        interrupt: &Interrupt,
        within: Option<Duration>,
    ) -> rungwise_host::Result<Woken> {
        match self {
            Self::File(_, followed) => followed.wait(interrupt, within),
            Self::Stdin(stdin) => stdin.wait(interrupt, within),
        }
    }

    fn name(&self) -> String {
        match self {
            Self::File(path, followed) => followed.file().unwrap_or(path).display().to_string(),
            Self::Stdin(_) => "standard input".to_owned(),
        }
    }

    /// The file that holds all that was read.
    fn again(&self) -> Option<&Path> {
        match self {
            Self::File(_, followed) if followed.can_be_read_again() => followed.file(),
            _ => None,
        }
    }

    /// A packed file does not grow as its text does.
    fn check(&self, reading: &Reading, piece: &[u8]) -> anyhow::Result<()> {
        let begins = reading.files.last().is_some_and(|file| file.bytes == 0);
        if begins && input::is_packed(piece) {
            anyhow::bail!(
                "cannot follow {}: it is compressed or UTF-16, and only plain text can be followed",
                self.name()
            );
        }
        Ok(())
    }
}

/// The file that a JVM writes to now. JDK 8 with `UseGCLogFileRotation` calls it `gc.log.0.current`, `gc.log.1.current` and
/// so on, and takes the last word away when it is full; one that was killed leaves its own behind.
fn current(path: &Path) -> PathBuf {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let base = base(&name);
    if base.is_none() && files::exists(path) {
        return path.to_owned();
    }
    let base = base.unwrap_or(&name);
    let folder = match path.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder,
        _ => Path::new("."),
    };
    let names = files::list(folder).unwrap_or_default();
    let currents = names
        .iter()
        .filter(|other| self::base(other) == Some(base))
        .map(|name| path.with_file_name(name));
    currents
        .max_by_key(|path| files::modified(path).ok())
        .unwrap_or_else(|| path.to_owned())
}

/// `gc.log` of `gc.log.0.current`.
fn base(name: &str) -> Option<&str> {
    let (base, number) = name.strip_suffix(".current")?.rsplit_once('.')?;
    let is_number = !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit());
    is_number.then_some(base)
}

/// What was handed on.
struct Feed<'a> {
    following: Following<'a>,
    /// What the log held at first has been read.
    live: bool,
    /// Nobody reads any more.
    closed: bool,
    lines: VecDeque<FollowLine>,
    /// Line and duration of what was shown before the parser reported it, the last ones.
    shown: VecDeque<Key>,
    /// Who writes, where several JVMs do by turns.
    source: Option<String>,
    /// There were events since the rules looked last.
    news: bool,
    asked: Asked,
    judged: Option<Instant>,
    found: BTreeMap<(String, String), (Outcome, Grade)>,
    /// By run.
    stood: BTreeMap<u64, Stood>,
    /// The longest pause since, by who wrote it.
    longest_ns: BTreeMap<Option<String>, u64>,
}

/// Line and duration.
type Key = (u64, Option<u64>);

/// A collection of each JVM may be shown before it is reported.
const SHOWN: usize = 64;

/// Sums of a run at some time.
#[derive(Clone, Debug, Default)]
struct Stood {
    run: u64,
    source: Option<String>,
    at_s: f64,
    pauses: u64,
    paused_ms: f64,
    allocated: u64,
    known_s: f64,
}

impl<'a> Feed<'a> {
    fn new(asked: Asked, following: Following<'a>) -> Self {
        Self {
            following,
            asked,
            live: false,
            closed: false,
            lines: VecDeque::new(),
            shown: VecDeque::new(),
            source: None,
            news: false,
            judged: None,
            found: BTreeMap::new(),
            stood: BTreeMap::new(),
            longest_ns: BTreeMap::new(),
        }
    }

    fn event(&mut self, names: &Names, event: &Event<'_>) {
        self.news = true;
        let mut collection = match event {
            Event::Pause(pause) => {
                if let Some(ns) = pause.duration_ns.filter(|_| !pause.nested) {
                    let longest = self.longest_ns.entry(self.source.clone()).or_default();
                    *longest = ns.max(*longest);
                }
                of_pause(names, pause)
            }
            Event::Concurrent(concurrent) if concurrent.cycle => of_cycle(names, concurrent),
            Event::Turn { from, .. } => return self.source = Some((*from).to_owned()),
            Event::Restart => return self.put(FollowLine::Restart),
            Event::OutOfMemory { .. } => return self.put(FollowLine::OutOfMemory),
            _ => return,
        };
        let was_shown = key(event).is_some_and(|key| self.shown.contains(&key));
        if !was_shown {
            collection.source.clone_from(&self.source);
            self.put(FollowLine::Collection(collection));
        }
    }

    fn put(&mut self, line: FollowLine) {
        if !self.live && !self.following.from_start && self.lines.len() == BACKLOG {
            self.lines.pop_front();
        }
        self.lines.push_back(line);
    }

    /// All that is there was read.
    fn caught_up(&mut self, reading: &Reading, name: &str, observer: &dyn Observer) {
        let source = self.source.clone();
        for (writer, waiting) in reading.parser.waiting() {
            let Some(key) = key(&waiting).filter(|key| !self.shown.contains(key)) else {
                continue;
            };
            self.source = writer.map(str::to_owned);
            self.event(reading.parser.names(), &waiting);
            self.shown.truncate(SHOWN - 1);
            self.shown.push_front(key);
        }
        self.source = source;
        if !self.live && !reading.files.is_empty() {
            self.live = true;
            let lines = reading.parser.lines();
            observer.say(&format!("rungwise: following {name}, {lines} lines so far"));
        }
        self.hand_on();
        if self.due().is_some_and(|due| clock::now() >= due) {
            self.judge(&reading.summary());
            self.hand_on();
        }
    }

    /// When the rules should run next.
    fn due(&self) -> Option<Instant> {
        let after = |last: Instant| last + JUDGE;
        self.news
            .then(|| self.judged.map_or_else(clock::now, after))
    }

    fn judge(&mut self, summary: &Summary) {
        self.news = false;
        self.judged = Some(clock::now());
        for finding in judged(summary, self.asked) {
            if self.is_news(&finding) {
                self.put(FollowLine::Finding(finding));
            }
        }
        for now in summary.runs.iter().filter_map(Stood::of) {
            self.stand(now);
        }
        let has_run = |number| summary.runs.iter().any(|run| run.number == number);
        self.stood.retain(|number, _| has_run(*number));
    }

    /// It was not said before, or not as something so bad.
    fn is_news(&mut self, finding: &Finding) -> bool {
        let (outcome, severity) = (finding.outcome, finding.severity);
        if outcome > Outcome::Watch {
            return false;
        }
        let key = (finding.rule.clone(), finding.subject.clone());
        let before = self.found.get(&key).copied();
        let is_news = before.is_none_or(|(worst, grade)| outcome < worst || severity > grade);
        if is_news {
            let worst = before.map_or((outcome, severity), |(worst, grade)| {
                (worst.min(outcome), grade.max(severity))
            });
            self.found.insert(key, worst);
        }
        is_news
    }

    fn stand(&mut self, now: Stood) {
        let before = self.stood.get(&now.run);
        if before.is_some_and(|before| now.at_s < before.at_s + STANDING_S) {
            return;
        }
        let longest_ns = self.longest_ns.remove(&now.source);
        if let Some(standing) = before.and_then(|before| now.since(before, longest_ns)) {
            self.put(FollowLine::Standing(standing));
        }
        self.stood.insert(now.run, now);
    }

    /// Hands on what there is to say.
    fn hand_on(&mut self) {
        if !self.live && !self.following.from_start || self.lines.is_empty() {
            return;
        }
        let lines: Vec<_> = self.lines.drain(..).collect();
        self.closed |= (self.following.each)(&lines).is_break();
    }
}

impl Stood {
    /// Nothing of a run without a clock.
    fn of(run: &Run) -> Option<Self> {
        let allocation = run.allocation.as_ref();
        Some(Self {
            run: run.number,
            source: run.source.clone(),
            at_s: run.began_s? + run.seconds?,
            pauses: run.pauses.all.count,
            paused_ms: run.pauses.all.total_ms,
            allocated: allocation.map_or(0, |rate| rate.bytes),
            known_s: allocation.map_or(0.0, |rate| rate.known_s),
        })
    }

    fn since(&self, before: &Self, longest_ns: Option<u64>) -> Option<Standing> {
        let seconds = self.at_s - before.at_s;
        let paused_ms = self.paused_ms - before.paused_ms;
        let known_s = self.known_s - before.known_s;
        let allocated = self.allocated.saturating_sub(before.allocated);
        (seconds > 0.0).then(|| Standing {
            source: self.source.clone(),
            until_s: self.at_s,
            seconds,
            pauses: self.pauses.saturating_sub(before.pauses),
            paused_ms,
            longest_ms: longest_ns.map(|ns| ns as f64 / 1e6),
            share: (self.pauses > 0).then(|| paused_ms / 1e3 / seconds),
            allocation_bytes_per_s: (known_s > 0.0).then(|| allocated as f64 / known_s),
        })
    }
}

/// Line and duration of a collection.
fn key(event: &Event<'_>) -> Option<Key> {
    match event {
        Event::Pause(pause) => Some((pause.line, pause.duration_ns)),
        Event::Concurrent(concurrent) => Some((concurrent.line, concurrent.duration_ns)),
        _ => None,
    }
}

fn of_pause(names: &Names, pause: &Pause) -> Collection {
    Collection {
        line: pause.line,
        kind: compare::word(pause.kind).to_owned(),
        name: names.get(pause.name).to_owned(),
        cause: pause.cause.map(|cause| names.get(cause).to_owned()),
        duration_ms: pause.duration_ns.map(|ns| ns as f64 / 1e6),
        nested: pause.nested,
        ..blank(pause.began, &pause.areas)
    }
}

fn of_cycle(names: &Names, cycle: &Concurrent) -> Collection {
    Collection {
        line: cycle.line,
        kind: "cycle".to_owned(),
        name: names.get(cycle.name).to_owned(),
        cause: cycle.cause.map(|cause| names.get(cause).to_owned()),
        duration_ms: cycle.duration_ns.map(|ns| ns as f64 / 1e6),
        ..blank(cycle.at(), &cycle.areas)
    }
}

/// Time and heap alone.
fn blank(began: Stamp, areas: &Areas) -> Collection {
    let heap = areas.get(Area::Heap);
    Collection {
        at_s: began.uptime_ns.map(|ns| ns as f64 / 1e9),
        at: began.wall_ns.and_then(clock::utc),
        heap_before_bytes: heap.before,
        heap_after_bytes: heap.after,
        heap_bytes: heap.capacity,
        ..Collection::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn jdk_8_writes_to_the_newest_of_the_numbered_files() {
        let dir = tempfile::tempdir().unwrap();
        let path = |name: &str| dir.path().join(name);
        let log = path("gc.log");
        assert_eq!(current(&log), log);
        for name in [
            "gc.log.0.current",
            "other.log.7.current",
            "gc.log.x.current",
        ] {
            files::replace(&path(name), b"").unwrap();
        }
        assert_eq!(current(&log), path("gc.log.0.current"));
        assert_eq!(current(&path("gc.log.4.current")), path("gc.log.0.current"));
        assert_eq!(base("gc.log.current"), None);
        files::replace(&log, b"").unwrap();
        assert_eq!(current(&log), log);
    }
}
