//! Kept runs: keeps them, lists and verifies them, and removes old ones.
//!
//! Only folders of complete and unmodified runs are ever removed: never a file that you added, and never a run that a
//! process is still writing, since the checksums come last.

mod documents;
pub mod store;
pub(crate) mod sums;

use std::path::{Path, PathBuf};
use std::time::Duration;

use clap::Subcommand;
use rungwise_host::{clock, files};
use rungwise_model::{Exit, units};
use serde::Deserialize;

pub use documents::{Run, RunsList, RunsPrune, State};

use crate::Invocation;
use crate::documents::{Document as _, schema};

/// What is asked of kept runs.
#[derive(Debug, Subcommand)]
pub enum Request {
    /// List the runs below --runs, newest first.
    List,
    /// Show one run: its files, its command line, its result.
    Show {
        /// Folder or id of the run.
        run: PathBuf,
    },
    /// Compare runs with their checksums, and name each file that is missing, altered or added.
    ///
    /// Exit status: 0 all are unmodified, 1 a file is missing, altered or added, 3 only unfinished runs, which have
    /// no checksums.
    Verify {
        /// Folder or id of the run; without it, all runs below --runs.
        run: Option<PathBuf>,
    },
    /// Remove old runs: only complete and unmodified ones, never another folder.
    Prune {
        /// Keep the newest N runs.
        #[arg(long, value_name = "N", required_unless_present = "older_than")]
        keep: Option<usize>,
        /// Remove only runs that ended longer ago than this, such as 30d or 12h.
        #[arg(long, value_name = "TIME", value_parser = age)]
        older_than: Option<Duration>,
        /// Show what would be removed, and remove nothing.
        #[arg(long)]
        dry_run: bool,
    },
}

/// A duration in which days are allowed.
fn age(text: &str) -> Result<Duration, String> {
    let days = text
        .strip_suffix('d')
        .and_then(|days| days.trim().parse::<u32>().ok());
    match days {
        Some(days) => Ok(Duration::from_secs(u64::from(days) * 86_400)),
        None => units::duration(text).map_err(|error| format!("{error}; or 30d")),
    }
}

/// How the name of a run begins that is half removed. It is no run any more, and the next prune removes it.
const GONE: &str = ".pruned-";

/// The answer to a request.
#[derive(Debug)]
pub enum Answer {
    /// Runs that are listed, shown or verified.
    List(RunsList),
    /// Runs that were removed.
    Prune(RunsPrune),
}

/// Lists, shows or verifies runs, or removes old ones.
pub fn run(request: &Request, invocation: &Invocation<'_>) -> anyhow::Result<Answer> {
    let started = clock::utc_now();
    let list = match request {
        Request::List => show("runs-list", &[], started, invocation, |_| Exit::Done),
        Request::Show { run } => {
            let run = resolve(run, invocation.runs)?;
            show("runs-show", &[run], started, invocation, |_| Exit::Done)
        }
        Request::Verify { run } => {
            let run = run.as_deref().map(|run| resolve(run, invocation.runs));
            let run: Vec<PathBuf> = run.transpose()?.into_iter().collect();
            show("runs-verify", &run, started, invocation, |runs| {
                let any = |state| runs.iter().any(|run| run.state == state);
                if any(State::Altered) {
                    Exit::Failed
                } else if any(State::Unfinished) && !any(State::Complete) {
                    Exit::Inconclusive
                } else {
                    Exit::Done
                }
            })
        }
        Request::Prune {
            keep,
            older_than,
            dry_run,
        } => {
            let pruned = prune(*keep, *older_than, *dry_run, started, invocation);
            return pruned.map(Answer::Prune);
        }
    };
    list.map(Answer::List)
}

/// The schemas of this verb's documents, by name.
pub(crate) fn schemas() -> [(&'static str, serde_json::Value); 2] {
    [
        ("runs-list", schema::<RunsList>()),
        ("runs-prune", schema::<RunsPrune>()),
    ]
}

/// These runs, or all.
fn show(
    kind: &str,
    named: &[PathBuf],
    started: String,
    invocation: &Invocation<'_>,
    exit: impl Fn(&[Run]) -> Exit,
) -> anyhow::Result<RunsList> {
    let (runs, others) = match named {
        [] => all(invocation.runs)?,
        named => {
            let mut runs = Vec::new();
            for path in named {
                runs.push(read(path).ok_or_else(|| {
                    anyhow::anyhow!(
                        "cannot show {}: it is not a run folder: it has neither {} nor design.json; name a run from `rungwise runs list`",
                        path.display(),
                        store::MANIFEST
                    )
                })?);
            }
            (runs, Vec::new())
        }
    };
    let exit = exit(&runs);
    Ok(RunsList {
        envelope: invocation.envelope(kind, started, exit),
        folder: invocation.runs.display().to_string(),
        runs,
        others,
    })
}

/// The folder of a run that is named by its path or its id.
pub(crate) fn resolve(run: &Path, runs: &Path) -> anyhow::Result<PathBuf> {
    if files::is_folder(run) {
        return Ok(run.to_owned());
    }
    let by_id = runs.join(run);
    let is_id = run.components().count() == 1 && run.is_relative();
    anyhow::ensure!(
        is_id && files::is_folder(&by_id),
        "cannot find the run {}: there is no such folder, and {} contains no run with that id; list them with `rungwise runs list`",
        run.display(),
        runs.display()
    );
    Ok(by_id)
}

/// All runs below `runs`, newest first, and the names of folders that are none.
fn all(runs: &Path) -> anyhow::Result<(Vec<Run>, Vec<String>)> {
    if !files::exists(runs) {
        return Ok((Vec::new(), Vec::new()));
    }
    let names = files::folders(runs).map_err(|error| {
        anyhow::anyhow!(
            "cannot list the runs in {}: {error}; name another folder with --runs",
            runs.display()
        )
    })?;
    let (mut all, mut others) = (Vec::new(), Vec::new());
    for name in names.into_iter().filter(|name| !name.starts_with(GONE)) {
        match read(&runs.join(&name)) {
            Some(run) => all.push(run),
            None => others.push(name),
        }
    }
    // Stamps of one form sort as text; of runs that began in one second the id decides.
    all.sort_by(|a, b| (&b.started, &b.id).cmp(&(&a.started, &a.id)));
    Ok((all, others))
}

/// What a manifest is read for.
#[derive(Debug, Deserialize)]
struct Manifest {
    what: String,
    #[serde(default)]
    title: Option<String>,
    #[serde(default)]
    scenario: Option<String>,
    #[serde(default)]
    verdict: Option<String>,
    envelope: Stamps,
}

#[derive(Debug, Deserialize)]
struct Stamps {
    #[serde(default)]
    command: Vec<String>,
    started: String,
}

/// The longest manifest that is read; one of a long ladder is a hundredth of it.
const LONGEST: u64 = 16 << 20;

/// The run of a folder; nothing where it is none.
fn read(path: &Path) -> Option<Run> {
    let name = path.file_name().unwrap_or(path.as_os_str());
    let id = name.to_string_lossy().into_owned();
    let has = |name: &str| files::is_plain(&path.join(name));
    let text = has(store::MANIFEST)
        .then(|| files::read_at_most(&path.join(store::MANIFEST), LONGEST).ok())
        .flatten();
    let manifest = text.and_then(|text| serde_json::from_slice::<Manifest>(&text).ok());
    let has_sums = has(sums::SUMS);
    // A tune writes its design first; what keeps a document is named as a run from the first byte.
    if manifest.is_none() && !has("design.json") && !has_sums && !is_stamped(&id) {
        return None;
    }
    let mut run = Run {
        verb: manifest.as_ref().map_or_else(
            || {
                if has("design.json") {
                    "tune"
                } else {
                    "unknown"
                }
                .to_owned()
            },
            |manifest| manifest.what.clone(),
        ),
        title: String::new(),
        started: stamp(&id),
        verdict: None,
        path: path.display().to_string(),
        verified: None,
        state: State::Unfinished,
        problems: Vec::new(),
        command: Vec::new(),
        files: files::list(path).unwrap_or_default(),
        id,
    };
    if let Some(manifest) = manifest {
        let title = manifest.title.or(manifest.scenario);
        run.title = title.unwrap_or_default();
        run.verdict = manifest.verdict;
        run.started = manifest.envelope.started;
        run.command = manifest.envelope.command;
    } else if has_sums {
        run.problems
            .push(format!("{} cannot be read as a manifest", store::MANIFEST));
    }
    if !has_sums {
        return Some(run);
    }
    match sums::differences(path) {
        Ok((wrong, added)) => run.problems.extend(wrong.into_iter().chain(added)),
        Err(error) => run.problems.push(error.to_string()),
    }
    let whole = run.problems.is_empty();
    run.verified = Some(whole);
    run.state = if whole {
        State::Complete
    } else {
        State::Altered
    };
    Some(run)
}

/// `20261121T131500Z-3fa9`, as [`clock::run_id`] makes it.
fn is_stamped(id: &str) -> bool {
    let Some((stamp, end)) = id.split_once('-') else {
        return false;
    };
    stamp.len() == 16
        && stamp.ends_with('Z')
        && stamp
            .get(..8)
            .is_some_and(|day| day.bytes().all(|b| b.is_ascii_digit()))
        && end.len() == 4
        && end.bytes().all(|b| b.is_ascii_hexdigit())
}

/// The time that an id begins with, RFC 3339; empty for another name.
fn stamp(id: &str) -> String {
    if !is_stamped(id) || !id.is_ascii() {
        return String::new();
    }
    format!(
        "{}-{}-{}T{}:{}:{}Z",
        &id[..4],
        &id[4..6],
        &id[6..8],
        &id[9..11],
        &id[11..13],
        &id[13..15]
    )
}

/// Removes complete runs beyond the newest `keep` that are older than `older_than`.
fn prune(
    keep: Option<usize>,
    older_than: Option<Duration>,
    dry_run: bool,
    started: String,
    invocation: &Invocation<'_>,
) -> anyhow::Result<RunsPrune> {
    let (runs, others) = all(invocation.runs)?;
    let mut report = RunsPrune {
        envelope: invocation.envelope(RunsPrune::KIND, started, Exit::Done),
        folder: invocation.runs.display().to_string(),
        dry_run,
        removed: Vec::new(),
        kept: Vec::new(),
        left: Vec::new(),
    };
    let mut newest = 0;
    for run in runs {
        match run.state {
            State::Complete => {}
            State::Unfinished => {
                let why = "it is unfinished: a process may still be writing it, or `rungwise tune --resume` may continue it";
                report.left.push((run.id, why.to_owned()));
                continue;
            }
            State::Altered => {
                let why = format!("it is altered: {}", run.problems.join(", "));
                report.left.push((run.id, why));
                continue;
            }
        }
        newest += 1;
        let path = Path::new(&run.path);
        let is_old = older_than.is_none_or(|limit| {
            // Of a run whose age is unknown, nothing is removed.
            files::age(&path.join(sums::SUMS)).is_ok_and(|age| age > limit)
        });
        if keep.is_some_and(|keep| newest <= keep) || !is_old {
            report.kept.push(run.id);
            continue;
        }
        match if dry_run {
            Ok(())
        } else {
            remove(path, &run.id, invocation.runs)
        } {
            Ok(()) => report.removed.push(run.id),
            Err(error) => {
                report.envelope.exit = Exit::Usage;
                report.left.push((run.id, error.to_string()));
            }
        }
    }
    for name in others {
        let why = "it is not a rungwise run".to_owned();
        report.left.push((name, why));
    }
    if !dry_run && files::exists(invocation.runs) {
        sweep(invocation.runs);
    }
    Ok(report)
}

/// Takes the name away first, in one step: a removal that is killed leaves no half run under the name of a whole one.
fn remove(path: &Path, id: &str, runs: &Path) -> anyhow::Result<()> {
    let gone = runs.join(format!("{GONE}{id}"));
    files::rename(path, &gone)?;
    // A run that was resumed meanwhile has no checksums any more, and is given back.
    if !files::exists(&gone.join(sums::SUMS)) {
        files::rename(&gone, path)?;
        anyhow::bail!("another process resumed it meanwhile");
    }
    Ok(files::remove_folder(&gone)?)
}

/// What a killed prune left half removed.
fn sweep(runs: &Path) {
    for name in files::folders(runs).unwrap_or_default() {
        if name.strip_prefix(GONE).is_some_and(is_stamped) {
            // The next one tries again.
            let _ = files::remove_folder(&runs.join(name));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_of_runs_are_known_by_their_form_and_hold_their_time() {
        assert_eq!(stamp("20261121T131500Z-3fa9"), "2026-11-21T13:15:00Z");
        for other in [
            "",
            "notes",
            "20261121T131500Z",
            "20261121T131500Z-3faé",
            "2026é121T131500Z-3fa9",
        ] {
            assert!(!is_stamped(other) && stamp(other).is_empty(), "{other}");
        }
    }

    #[test]
    fn an_age_is_in_days_or_in_smaller_units() {
        assert_eq!(age("30d").unwrap(), Duration::from_hours(720));
        assert_eq!(age("12h").unwrap(), Duration::from_hours(12));
        assert!(age("soon").unwrap_err().contains("30d"));
    }
}
