//! Analyses a recording of JDK Flight Recorder.

use std::fs::File;
use std::io::{Seek as _, SeekFrom, Write as _};
use std::path::{Path, PathBuf};

use anyhow::Context as _;
use rungwise_host::{clock, files, scratch};
use rungwise_jfr::{MAGIC, evidence, summary};
use rungwise_model::Exit;
use rungwise_model::check::CheckedJvm;
use rungwise_model::jfr::{JfrReport, Recording};

use crate::Invocation;
use crate::check::{self, FailOn};
use crate::documents::Document as _;
use crate::file_type::{Read, Span};
use crate::input::{self, Part};
use crate::problem::Problem;

/// Analyse a Flight Recorder file: hot methods, allocation, locks, I/O, exceptions.
///
/// Reads recordings of JDK 9 to 25 and 8u262 and later (format 1.0 to 2.1), and those of async-profiler; plain, gzip or zip. A recording
/// that is cut or was not finished gives what it has. Record a running JVM with
/// `jcmd PID JFR.start settings=profile duration=60s filename=rec.jfr`. Exit status: 0 nothing to act on, 1 findings at or above
/// --fail-on, 3 nothing could be decided, 4 not a recording that can be read.
#[derive(Debug, clap::Args)]
pub struct Request {
    /// The recording, or - for standard input.
    #[arg(value_name = "FILE")]
    pub file: PathBuf,
    /// Lowest outcome that exits with status 1.
    #[arg(long, value_enum, default_value_t = FailOn::Act)]
    pub fail_on: FailOn,
}

/// Reads the recording and judges it.
pub fn run(request: &Request, invocation: &Invocation<'_>) -> anyhow::Result<JfrReport> {
    judge(&request.file, request.fail_on, invocation)
}

/// Whether a file is a recording, by its first bytes. Where it cannot be read, whoever reads it next says why.
pub(crate) fn is_recording(path: &Path) -> bool {
    if files::is_folder(path) {
        return false;
    }
    let parts = input::parts(path).unwrap_or_default();
    let [part] = &parts[..] else {
        return false;
    };
    part.rests() && begins_as_recording(part).unwrap_or(false)
}

fn begins_as_recording(part: &Part) -> anyhow::Result<bool> {
    let mut first = Vec::new();
    let _ = part.open()?.each(|piece| {
        let missing = MAGIC.len() - first.len();
        first.extend_from_slice(&piece[..piece.len().min(missing)]);
        first.len() < MAGIC.len()
    })?;
    Ok(first == MAGIC)
}

/// Reads the recording and judges it.
pub(crate) fn judge(
    path: &Path,
    fail_on: FailOn,
    invocation: &Invocation<'_>,
) -> anyhow::Result<JfrReport> {
    let started = clock::utc_now();
    let (recording, notes) = read(path)?;
    let findings = rungwise_rules::judge_recordings(&evidence(&recording));
    Ok(JfrReport {
        envelope: invocation.envelope(JfrReport::KIND, started, check::exit(&findings, fail_on)),
        target: path.display().to_string(),
        notes,
        recording,
        findings,
    })
}

/// What the recording of one JVM says.
pub(crate) fn of_one_jvm(paths: &[PathBuf]) -> anyhow::Result<Read> {
    let [path] = paths else {
        let error = anyhow::anyhow!(
            "cannot judge {} recordings together; pass the one of the time in question",
            paths.len()
        );
        return Err(Problem::with(Exit::Usage, error));
    };
    let (recording, notes) = read(path)?;
    Ok(Read {
        evidence: evidence(&recording),
        time: Span {
            from: Some(recording.began),
            to: Some(recording.ended),
        },
        jvm: CheckedJvm {
            notes: [notes, recording.damage].concat(),
            ..CheckedJvm::default()
        },
    })
}

fn read(path: &Path) -> anyhow::Result<(Recording, Vec<String>)> {
    let target = path.display().to_string();
    let (file, notes) = opened(path)?;
    let recording = summary(file).map_err(|error| {
        let is_read = matches!(error, rungwise_jfr::Error::Io(_));
        let error = anyhow::anyhow!("cannot read {target} as a recording: {error}");
        if is_read {
            error
        } else {
            Problem::with(Exit::Precondition, error)
        }
    })?;
    if recording.chunks == 0 {
        let why = recording.damage.join("; ");
        let error = anyhow::anyhow!("cannot judge {target}: no chunk of it can be read: {why}");
        return Err(Problem::with(Exit::Precondition, error));
    }
    Ok((recording, notes))
}

/// The recording as a file that can be read at any place, and notes on how it was packed.
pub(crate) fn opened(path: &Path) -> anyhow::Result<(File, Vec<String>)> {
    let parts = input::parts(path)?;
    let [part] = &parts[..] else {
        let found = parts.len();
        let error = anyhow::anyhow!(
            "cannot read {}: it contains {found} files, and one recording is read at a time; name one of them",
            path.display()
        );
        return Err(Problem::with(Exit::Usage, error));
    };
    let mut text = part.open()?;
    if text.packed.is_none() && part.rests() {
        return Ok((files::open(path)?, Vec::new()));
    }
    // Constants come behind the events that need them, and a stream cannot be read backwards.
    let mut unpacked = scratch::unnamed()?;
    let mut failed = Ok(());
    let broken = text
        .each(|piece| {
            failed = unpacked.write_all(piece);
            failed.is_ok()
        })
        .with_context(|| format!("cannot read {}", part.name))?;
    failed.with_context(|| {
        format!(
            "cannot unpack {} into the temporary folder; set TMPDIR to a folder with more room",
            part.name
        )
    })?;
    unpacked.seek(SeekFrom::Start(0))?;
    let note = |why| format!("{}: {why}; the rest is missing", part.name);
    Ok((unpacked, broken.map(note).into_iter().collect()))
}
