//! Analyses thread dumps of a JVM, in files or taken from it while it runs.

use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::Context as _;
use rungwise_host::{clock, files};
use rungwise_model::check::{CheckedJvm, Finding, Outcome};
use rungwise_model::gc::Account;
use rungwise_model::threads::{Dump, ThreadsReport};
use rungwise_model::{Exit, units};
use rungwise_threaddump::{Parser, Stages, Summary, evidence, summary_by};

use super::live::{Shots, Taker};
use super::reversed;
use crate::Invocation;
use crate::check::{self, FailOn};
use crate::documents::Document as _;
use crate::file_type::{Read, Span};
use crate::input::{self, Part};
use crate::problem::Problem;

/// Bytes that are looked at to find out whether a file holds thread dumps.
const LONGEST_PREFIX: usize = 1 << 20;

/// Time between two dumps: a wait that lasts as long is no chance.
const EVERY: Duration = Duration::from_secs(2);
/// Dumps that are taken: three distinguish a queue from chance.
const COUNT: u32 = 3;
/// How long the search for owners of `ReentrantLock`s may stop a JVM; a request of a second that takes half a second more is noticed.
const MAX_PAUSE: Duration = Duration::from_millis(500);

/// Analyse thread dumps of a running JVM or in files: deadlocks, contended locks and pools, hot threads.
///
/// A process id: attaches to that `HotSpot` JVM (JDK 8 to 25, also in a container or of another user, as root), takes dumps, and reads the
/// CPU time of its threads from the kernel. Each dump stops the application for milliseconds, which the report states. Files: the output of
/// jstack, jcmd PID Thread.print and SIGQUIT (JDK 5 to 25), files of `Thread.dump_to_file`, and dumps of the management
/// beans (JMX, Spring Boot Actuator as text and JSON); plain, gzip or zip, also within the output of an
/// application. Take three dumps some seconds apart, with -l: they show stuck threads and threads that use CPU time. Exit status: 0
/// nothing to act on, 1 findings at or above --fail-on, 3 nothing found, but a deadlock cannot be excluded or the JVM ended, 4 no dump.
#[derive(Debug, clap::Args)]
pub struct Request {
    /// Process id of a JVM, or files with dumps, a folder of them, or - for standard input; dumps of one JVM are compared.
    #[arg(required = true, value_name = "PID|FILE")]
    pub files: Vec<PathBuf>,
    /// Dumps to take of a running JVM [default: 3].
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub count: Option<u32>,
    /// Time from one dump to the next [default: 2s].
    #[arg(long, value_name = "TIME", value_parser = units::duration)]
    pub every: Option<Duration>,
    /// Keep the dumps as the JVM wrote them in this folder.
    #[arg(long, value_name = "DIR")]
    pub keep_dumps: Option<PathBuf>,
    /// Leave out the owners of `ReentrantLock`s where their search, which walks the heap, would stop the JVM for longer [default: 500ms].
    #[arg(long, value_name = "TIME", value_parser = units::duration)]
    pub max_pause: Option<Duration>,
    /// Call code whose class names begin with PACKAGE by this name in the table of stages; may be repeated.
    #[arg(long = "stage", value_name = "NAME=PACKAGE,...")]
    pub stages: Vec<String>,
    /// A file with such names, one a line; --stage takes precedence.
    #[arg(long = "stages", value_name = "FILE")]
    pub stage_file: Option<PathBuf>,
    /// Request rate while the dumps were taken, such as 500/s: gives the time that a request spends in each stage.
    #[arg(long, value_name = "RATE", value_parser = super::gc::request_rate)]
    pub rate: Option<f64>,
    /// Lowest outcome that exits with status 1.
    #[arg(long, value_enum, default_value_t = FailOn::Act)]
    pub fail_on: FailOn,
}

/// Takes or reads the dumps and judges them.
pub fn run(request: &Request, invocation: &Invocation<'_>) -> anyhow::Result<ThreadsReport> {
    let stages = request.names()?;
    let started = clock::utc_now();
    let mut report = match &*request.files {
        [one] if pid(one).is_some() => {
            let pid = pid(one).unwrap_or_default();
            request.of_process(pid, &stages, started, invocation)?
        }
        files => {
            request.stands_for_files()?;
            let read = summed(files, &stages)?;
            judged(named(files), read, request.fail_on, started, invocation)
        }
    };
    if let Some(rate) = request.rate {
        for stage in &mut report.stages {
            stage.ms_per_request = Some(stage.mean_threads / rate * 1e3);
        }
    }
    Ok(report)
}

impl Request {
    fn names(&self) -> anyhow::Result<Stages> {
        let mut stages = Stages::default();
        for line in &self.stages {
            stages.add(line).map_err(anyhow::Error::new)?;
        }
        if let Some(path) = &self.stage_file {
            let text = files::read(path)?;
            let text = String::from_utf8_lossy(&text);
            let added = stages.add_lines(&text);
            added.with_context(|| format!("cannot read stages from {}", path.display()))?;
        }
        Ok(stages)
    }

    /// Refuses what only a running JVM can be asked for.
    fn stands_for_files(&self) -> anyhow::Result<()> {
        for (option, given) in [
            ("--count", self.count.is_some()),
            ("--every", self.every.is_some()),
            ("--keep-dumps", self.keep_dumps.is_some()),
            ("--max-pause", self.max_pause.is_some()),
        ] {
            anyhow::ensure!(
                !given,
                "cannot use {option} with {}: it is for a running JVM; remove {option}, or pass one process id",
                named(&self.files)
            );
        }
        if let Some(number) = self.files.iter().find(|path| pid(path).is_some()) {
            anyhow::bail!(
                "cannot judge {}: pass one process id alone, or files; {} is neither a file nor alone",
                named(&self.files),
                number.display()
            );
        }
        Ok(())
    }

    fn of_process(
        &self,
        pid: u32,
        stages: &Stages,
        started: String,
        invocation: &Invocation<'_>,
    ) -> anyhow::Result<ThreadsReport> {
        if let Some(folder) = &self.keep_dumps {
            files::create_dir_all(folder)?;
        }
        let (count, every) = (self.count.unwrap_or(COUNT), self.every.unwrap_or(EVERY));
        let refused = |error| Problem::with(Exit::Precondition, error);
        let mut taker = Taker::open(pid, self.max_pause.unwrap_or(MAX_PAUSE)).map_err(refused)?;
        let interrupt = invocation.interrupt()?;
        let (dumps, apart) = (count, units::written(every));
        invocation.say(&format!(
            "taking {dumps} thread dumps of pid {pid}, {apart} apart ..."
        ));
        let mut ended = None;
        let began = clock::now();
        for number in 0..count {
            let due = began + every * number;
            // What was taken until a signal is judged.
            if interrupt.wait(due.saturating_duration_since(clock::now()))? {
                break;
            }
            match taker.take() {
                Ok(()) => {
                    for (name, text) in taker.last() {
                        if let Some(folder) = &self.keep_dumps {
                            files::create_new(&folder.join(name), text)?;
                        }
                    }
                }
                Err(error) if taker.count() == 0 => return Err(refused(error)),
                Err(error) => {
                    ended = Some(format!(
                        "dump {} of {count} is missing: {error}",
                        number + 1
                    ));
                    break;
                }
            }
        }
        if taker.count() == 0 {
            let error =
                anyhow::anyhow!("cannot judge pid {pid}: interrupted before the first dump");
            return Err(Problem::with(Exit::Interrupted, error));
        }
        let Shots {
            dumps,
            account,
            taken,
            mut notes,
            ownerless,
        } = taker.finish();
        if dumps.iter().all(|dump| dump.threads.is_empty()) {
            return Err(no_dump(&format!("pid {pid}"), &account));
        }
        let is_cut = ended.is_some();
        notes.extend(ended);
        let summary = summary_by(dumps, stages);
        notes.extend(ownerless.filter(|_| summary.lacks_owners()));
        let read = (summary, account, notes);
        let target = format!("pid {pid}");
        let mut report = judged(target, read, self.fail_on, started, invocation);
        report.taken = Some(taken);
        if interrupt.raised() {
            report.envelope.exit = Exit::Interrupted;
        } else if is_cut && report.envelope.exit == Exit::Done {
            report.envelope.exit = Exit::Inconclusive;
        }
        Ok(report)
    }
}

/// Whether a file, or one in this folder, holds thread dumps: by what it says, not by its name. Where it cannot be read,
/// whoever reads it next says why.
pub(crate) fn is_dump(path: &Path) -> bool {
    let parts = input::parts(path).unwrap_or_default();
    let mut parts = parts.iter().filter(|part| part.rests());
    parts.any(|part| begins_with_dump(part).unwrap_or(false))
}

/// The first million bytes hold a dump, and are mostly of it.
fn begins_with_dump(part: &Part) -> anyhow::Result<bool> {
    let mut parser = Parser::new();
    let mut left = LONGEST_PREFIX;
    parser.begin(&part.name);
    // A document ends at its end; a part of it says nothing.
    let mut is_document = false;
    // A packed file may be cut right here; what it has is enough.
    let _ = part.open()?.each(|piece| {
        is_document |= left == LONGEST_PREFIX && Parser::is_document(piece);
        let piece = &piece[..piece.len().min(left)];
        parser.push(piece);
        left -= piece.len();
        left > 0 && !is_document
    })?;
    let (dumps, account) = parser.finish();
    let threads: usize = dumps.iter().map(|dump| dump.threads.len()).sum();
    Ok(is_document || threads > 0 && account.understood_lines >= account.unknown_lines)
}

/// Reads the dumps and judges them.
pub(crate) fn judge(
    paths: &[PathBuf],
    fail_on: FailOn,
    invocation: &Invocation<'_>,
) -> anyhow::Result<ThreadsReport> {
    let started = clock::utc_now();
    let read = summed(paths, &Stages::default())?;
    Ok(judged(named(paths), read, fail_on, started, invocation))
}

/// The document of dumps that were read.
fn judged(
    target: String,
    (summary, account, mut notes): Summed,
    fail_on: FailOn,
    started: String,
    invocation: &Invocation<'_>,
) -> ThreadsReport {
    let findings = rungwise_rules::judge_dumps(&evidence(&summary));
    notes.extend(summary.notes);
    ThreadsReport {
        envelope: invocation.envelope(ThreadsReport::KIND, started, exit(&findings, fail_on)),
        target,
        notes,
        account,
        dumps: summary.dumps,
        stuck: summary.stuck,
        waits: summary.waits,
        hot: summary.hot,
        carriers: summary.carriers,
        times: summary.times,
        stages: summary.stages,
        full_pools: summary.full_pools,
        taken: None,
        findings,
    }
}

/// Nothing to act on is inconclusive where the dumps cannot exclude a deadlock.
fn exit(findings: &[Finding], fail_on: FailOn) -> Exit {
    let is_unseen =
        |finding: &Finding| finding.rule == "deadlock" && finding.outcome == Outcome::Undecided;
    let may_be = findings.iter().any(is_unseen)
        && findings
            .iter()
            .all(|finding| finding.outcome != Outcome::Act);
    match check::exit(findings, fail_on) {
        Exit::Done if may_be && !matches!(fail_on, FailOn::Never) => Exit::Inconclusive,
        exit => exit,
    }
}

/// What the dumps of one JVM say.
pub(crate) fn of_one_jvm(paths: &[PathBuf]) -> anyhow::Result<Read> {
    let (summary, _, notes) = summed(paths, &Stages::default())?;
    if let Some(broken) = notes.first() {
        anyhow::bail!("cannot use {}: {broken}", named(paths));
    }
    let jvms = summary.dumps.iter().map(|dump| dump.jvm).max();
    if let Some(jvms) = jvms.filter(|jvms| *jvms > 1) {
        anyhow::bail!(
            "cannot use {}: these are dumps of {jvms} JVMs; pass only those of the judged JVM",
            named(paths)
        );
    }
    let taken = |dump: Option<&Dump>| dump.and_then(|dump| dump.taken.clone());
    let (first, last) = (summary.dumps.first(), summary.dumps.last());
    Ok(Read {
        evidence: evidence(&summary),
        time: Span {
            from: taken(first),
            to: taken(last),
        },
        jvm: CheckedJvm {
            times: summary.times,
            stages: summary.stages,
            notes: summary.notes,
            ..CheckedJvm::default()
        },
    })
}

fn named(paths: &[PathBuf]) -> String {
    let names: Vec<String> = paths
        .iter()
        .map(|path| path.display().to_string())
        .collect();
    names.join(", ")
}

/// Dumps that were read: what they say, how much of them was understood, and what could not be read.
type Summed = (Summary, Account, Vec<String>);

fn summed(paths: &[PathBuf], stages: &Stages) -> anyhow::Result<Summed> {
    let mut parser = Parser::new();
    let mut notes = Vec::new();
    for part in parts(paths)? {
        read(&part, &mut parser, &mut notes)?;
    }
    let (dumps, account) = parser.finish();
    if dumps.iter().all(|dump| dump.threads.is_empty()) {
        return Err(no_dump(&named(paths), &account));
    }
    Ok((summary_by(dumps, stages), account, notes))
}

fn parts(paths: &[PathBuf]) -> anyhow::Result<Vec<Part>> {
    let mut parts = Vec::new();
    for path in paths {
        anyhow::ensure!(
            pid(path).is_none(),
            "cannot read {0}: there is no such file; `rungwise jvm threads {0}` takes dumps of a process",
            path.display()
        );
        let found = input::parts(path)?;
        if found.is_empty() {
            let error = anyhow::anyhow!("cannot read {}: it contains no files", path.display());
            return Err(Problem::with(Exit::Precondition, error));
        }
        parts.extend(found);
    }
    Ok(parts)
}

/// A process id where a file could be.
fn pid(path: &Path) -> Option<u32> {
    let name = path.to_str()?;
    let is_number = name.bytes().all(|byte| byte.is_ascii_digit());
    name.parse()
        .ok()
        .filter(|_| is_number && !files::exists(path))
}

fn read(part: &Part, parser: &mut Parser, notes: &mut Vec<String>) -> anyhow::Result<()> {
    parser.begin(&part.name);
    if let Some(turned) = reversed::turned(part)? {
        parser.push(&turned);
        notes.push(format!(
            "{}: its lines stand in reverse order, the newest first; it was read from its end",
            part.name
        ));
        return Ok(());
    }
    let broken = part
        .open()?
        .each(|piece| {
            parser.push(piece);
            true
        })
        .with_context(|| format!("cannot read {}", part.name))?;
    notes.extend(broken.map(|why| format!("{}: {why}; the rest is missing", part.name)));
    Ok(())
}

/// What was found where a dump should be.
fn no_dump(target: &str, account: &Account) -> anyhow::Error {
    let found = match account.samples.first() {
        None if account.bytes == 0 => "it is empty".to_owned(),
        None => format!("none of its {} bytes belongs to a dump", account.bytes),
        Some(sample) => format!(
            "none of its {} lines begins a thread; line {} is {}",
            account.lines,
            sample.line,
            input::quoted(&sample.text)
        ),
    };
    let error = anyhow::anyhow!(
        "cannot judge {target}: {found}; take a dump with jcmd PID Thread.print -l or jstack -l PID"
    );
    Problem::with(Exit::Precondition, error)
}
