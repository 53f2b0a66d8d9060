//! Analyses thread dumps of a JVM.

use std::path::{Path, PathBuf};

use anyhow::Context as _;
use rungwise_host::{clock, files};
use rungwise_model::Exit;
use rungwise_model::check::{Finding, Outcome};
use rungwise_model::evidence::Evidence;
use rungwise_model::gc::Account;
use rungwise_model::threads::ThreadsReport;
use rungwise_threaddump::{Parser, Summary, evidence, summary};

use super::input::{self, Part};
use crate::Invocation;
use crate::check::{self, FailOn};
use crate::documents::Document as _;
use crate::problem::Problem;

/// Bytes that are looked at to find out whether a file holds thread dumps.
const LOOK: usize = 1 << 20;

/// Analyse thread dumps: deadlocks, contended locks and pools, hot threads.
///
/// Reads the output of jstack, jcmd PID Thread.print and SIGQUIT (JDK 5 to 25), files of `Thread.dump_to_file`, and dumps of the management
/// beans (JMX, Spring Boot Actuator as text and JSON); plain, gzip or zip, also within the output of an
/// application. Take three dumps some seconds apart, with -l: they show stuck threads and threads that use CPU time. Exit status: 0
/// nothing to act on, 1 findings at or above --fail-on, 3 nothing found, but a deadlock cannot be excluded, 4 no dump found.
#[derive(Debug, clap::Args)]
pub struct Request {
    /// Files with dumps, a folder of them, or - for standard input; dumps of one JVM are compared.
    #[arg(required = true, value_name = "FILE")]
    pub files: Vec<PathBuf>,
    /// Lowest outcome that exits with status 1.
    #[arg(long, value_enum, default_value_t = FailOn::Act)]
    pub fail_on: FailOn,
}

/// Reads the dumps and judges them.
pub fn run(request: &Request, invocation: &Invocation<'_>) -> anyhow::Result<ThreadsReport> {
    judge(&request.files, request.fail_on, invocation)
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
    let mut left = LOOK;
    parser.begin(&part.name);
    // A document ends at its end; a part of it says nothing.
    let mut is_document = false;
    // A packed file may be cut right here; what it has is enough.
    let _ = part.open()?.each(|piece| {
        is_document |= left == LOOK && Parser::is_document(piece);
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
    let target = named(paths);
    let (summary, account, mut notes) = summed(paths)?;
    let findings = rungwise_rules::judge_dumps(&evidence(&summary));
    notes.extend(summary.notes);
    Ok(ThreadsReport {
        envelope: invocation.envelope(ThreadsReport::KIND, started, exit(&findings, fail_on)),
        target,
        notes,
        account,
        dumps: summary.dumps,
        stuck: summary.stuck,
        waits: summary.waits,
        hot: summary.hot,
        carriers: summary.carriers,
        findings,
    })
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

/// What the dumps of one JVM say, as evidence.
pub(crate) fn of_one_jvm(paths: &[PathBuf]) -> anyhow::Result<Evidence> {
    let (summary, _, notes) = summed(paths)?;
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
    Ok(evidence(&summary))
}

fn named(paths: &[PathBuf]) -> String {
    let names: Vec<String> = paths
        .iter()
        .map(|path| path.display().to_string())
        .collect();
    names.join(", ")
}

/// Reads the dumps: what they say, how much of them was understood, and what could not be read.
fn summed(paths: &[PathBuf]) -> anyhow::Result<(Summary, Account, Vec<String>)> {
    let mut parser = Parser::new();
    let mut notes = Vec::new();
    for part in parts(paths)? {
        read(&part, &mut parser, &mut notes)?;
    }
    let (dumps, account) = parser.finish();
    if dumps.iter().all(|dump| dump.threads.is_empty()) {
        return Err(no_dump(&named(paths), &account));
    }
    Ok((summary(dumps), account, notes))
}

fn parts(paths: &[PathBuf]) -> anyhow::Result<Vec<Part>> {
    let mut parts = Vec::new();
    for path in paths {
        if let Some(pid) = pid(path) {
            return Err(Problem::with(Exit::Usage, of_process(&pid)));
        }
        let found = input::parts(path)?;
        if found.is_empty() {
            let error = anyhow::anyhow!("cannot read {}: it contains no files", path.display());
            return Err(Problem::with(Exit::Precondition, error));
        }
        parts.extend(found);
    }
    Ok(parts)
}

/// A process id where a file should be.
fn pid(path: &Path) -> Option<String> {
    let name = path.to_str()?;
    let is_number = !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_digit());
    (is_number && !files::exists(path)).then(|| name.to_owned())
}

/// How to take the dumps of a process.
fn of_process(pid: &str) -> anyhow::Error {
    anyhow::anyhow!(
        "cannot read thread dumps of process {pid}: this verb reads dumps and does not attach to JVMs. As the user of the JVM, take three \
         and judge them:\n\n    for i in 1 2 3; do jcmd {pid} Thread.print -l > dump.$i; sleep 5; done\n    rungwise jvm threads dump.1 dump.2 \
         dump.3\n\nWithout jcmd (a JRE): kill -QUIT {pid} prints a dump to the standard output of the JVM. With virtual threads, also run jcmd \
         {pid} Thread.dump_to_file -format=json /tmp/dump.json, and pass that file with the others"
    )
}

fn read(part: &Part, parser: &mut Parser, notes: &mut Vec<String>) -> anyhow::Result<()> {
    parser.begin(&part.name);
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
