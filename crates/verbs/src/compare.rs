//! What differs between two captured hosts, and which differences are relevant to rules; or between two
//! GC logs or profiles.

mod profiles;
mod stored;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use rungwise_host::recorded::Recorded;
use rungwise_host::{clock, files};
use rungwise_knobs::{Context, KNOBS};
use rungwise_model::check::Finding;
use rungwise_model::compare::{CompareReport, Of};
use rungwise_model::evidence::Evidence;
use rungwise_model::profile::ProfileReport;
use rungwise_model::tune::Verdict;
use rungwise_model::{Exit, keys};
use rungwise_report::compare::{self, Side};

use crate::documents::{self, Document as _, Stored};
use crate::file_type::GC_LOG;
use crate::{Invocation, check, jvm, profile};

/// Compare the settings of two hosts, GC logs or profiles before and after a change, or two stored documents.
///
/// Of hosts, only settings are compared, and those relevant to rules come first: sysctls, devices and their features, drivers,
/// interrupts, CPUs, memory, firmware, kernel; counters differ between any two samples and are left out. Of GC logs, either side may be
/// several of the same setting, separated by commas: four or more per side show how much runs vary by themselves. Of two profiles
/// (files that `rungwise profile` reads), shares of frames are compared, and the HTML report has a difference flame graph. Of two documents of load,
/// tune or check, it shows what got better or worse. Exit status: 0; with --fail-on worse 1 if it is worse, 3 if that cannot be decided.
#[derive(Debug, clap::Args)]
pub struct Request {
    /// A capture (`rungwise capture -o before.rungwise`), a GC log, a folder of GC logs, or several (a.log,b.log); a profile; or
    /// a document or run of load, tune, check or profile.
    pub before: PathBuf,
    /// The capture, the logs, the profile or the document to compare it with.
    pub after: PathBuf,
    /// Exit with 1 if the second document is worse than the first: loads and tunes by their intervals, checks by new
    /// findings to act on.
    #[arg(long, value_enum)]
    pub fail_on: Option<FailOn>,
}

/// The result that ends with status 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
#[expect(
    missing_docs,
    reason = "a doc comment would turn the help text into its long form"
)]
pub enum FailOn {
    Worse,
}

/// The documents of both sides, where both are documents that a verb stored, or runs.
fn stored_documents(
    request: &Request,
    invocation: &Invocation<'_>,
) -> anyhow::Result<Option<[Stored; 2]>> {
    let stored = |path: &Path| -> anyhow::Result<Option<Stored>> {
        let path = documents::locate(path, invocation.runs).unwrap_or_else(|_| path.to_owned());
        let first = files::leads_to_plain(&path).then(|| files::read_at_most(&path, 64));
        let first = first.and_then(Result::ok).unwrap_or_default();
        // JSON; `{Heap before GC` begins a log of JDK 8.
        let fields = first.trim_ascii_start().strip_prefix(b"{");
        let begins = fields.is_some_and(|rest| rest.trim_ascii_start().starts_with(b"\""));
        begins.then(|| Stored::read(&path)).transpose()
    };
    match (stored(&request.before)?, stored(&request.after)?) {
        (Some(before), Some(after)) => Ok(Some([before, after])),
        _ => Ok(None),
    }
}

/// One captured host, judged.
struct Host {
    name: String,
    evidence: Evidence,
    findings: Vec<Finding>,
    replay: Recorded,
}

impl Host {
    fn open(path: &Path) -> anyhow::Result<Self> {
        let capture = check::open(path)?;
        let evidence = check::evidence(&capture, &path.display().to_string())?;
        Ok(Self {
            name: path.display().to_string(),
            findings: rungwise_rules::judge(&evidence),
            replay: check::replay::host(&capture),
            evidence,
        })
    }

    fn side(&self) -> Side<'_> {
        Side {
            name: &self.name,
            evidence: &self.evidence,
            findings: &self.findings,
        }
    }

    /// Knobs by the files that they turn, here.
    fn knobs(&self) -> BTreeMap<String, String> {
        let devices = self.evidence.each_words(&keys::DEVICE_KIND);
        let devices: Vec<Option<&str>> = devices
            .unwrap_or_default()
            .into_iter()
            .map(|(device, _)| Some(device.name()))
            .chain([None])
            .collect();
        let cpus: Vec<usize> = (0..self
            .evidence
            .each(&keys::CPU_BUSY)
            .map_or(1, |all| all.len()))
            .collect();
        let mut knobs = BTreeMap::new();
        for device in devices {
            let context = Context::of_host(&self.replay, device, &cpus);
            for knob in KNOBS {
                let Ok(current) = knob.current(&context) else {
                    continue;
                };
                for reading in current.readings {
                    knobs.insert(reading.source, knob.id.to_owned());
                }
            }
        }
        knobs
    }
}

/// Paths with commas between them; one that is there as written is itself.
fn several(path: &Path) -> Vec<PathBuf> {
    match path.to_str() {
        Some(text) if text.contains(',') && !files::exists(path) => {
            let parts = text.split(',').filter(|part| !part.is_empty());
            parts.map(PathBuf::from).collect()
        }
        _ => vec![path.to_owned()],
    }
}

/// The file of a profile, if the name is that of one or of a run that keeps one.
fn profile_at(path: &Path, invocation: &Invocation<'_>) -> Option<PathBuf> {
    let path = documents::locate(path, invocation.runs).unwrap_or_else(|_| path.to_owned());
    profile::is_profile(&path).then_some(path)
}

fn unlike(log: &Path, other: &Path) -> String {
    format!(
        "cannot compare {} with {}: the first is a GC log, the other is not",
        log.display(),
        other.display()
    )
}

/// Compares two hosts, two GC logs, two profiles or two stored documents.
pub fn run(request: &Request, invocation: &Invocation<'_>) -> anyhow::Result<CompareReport> {
    let started = clock::utc_now();
    let documents = stored_documents(request, invocation)?;
    let are_profiles = |documents: &[Stored; 2]| {
        documents
            .iter()
            .all(|document| document.kind == ProfileReport::KIND)
    };
    if let Some([before, after]) = documents.filter(|documents| !are_profiles(documents)) {
        let names = [&request.before, &request.after].map(|path| path.display().to_string());
        let [a, b] = &names;
        let mut report = stored::compare((a, &before), (b, &after), started, invocation)?;
        let exit = match (request.fail_on, report.verdict) {
            (Some(FailOn::Worse), Some(Verdict::Worse)) => Exit::Failed,
            (Some(FailOn::Worse), Some(Verdict::Inconclusive)) => Exit::Inconclusive,
            _ => Exit::Done,
        };
        report.envelope.exit = exit;
        return Ok(report);
    }
    anyhow::ensure!(
        request.fail_on.is_none(),
        "cannot judge {} and {} with --fail-on: that option needs two documents of load, tune or check; remove --fail-on, or name two of these",
        request.before.display(),
        request.after.display()
    );
    let (before, after) = (several(&request.before), several(&request.after));
    for path in before.iter().chain(&after) {
        if let Some(why) = files::why_missing(path) {
            anyhow::bail!(
                "cannot compare {} with {}: {}: {why}",
                request.before.display(),
                request.after.display(),
                path.display()
            );
        }
    }
    let none = |paths: &[PathBuf]| {
        paths
            .iter()
            .find(|path| !(GC_LOG.recognises)(path))
            .cloned()
    };
    match (none(&before), none(&after)) {
        (None, None) => {
            return jvm::gc::compare::compare([&before, &after], started, invocation);
        }
        (Some(_), Some(_)) => {}
        (None, Some(other)) => anyhow::bail!(unlike(&request.before, &other)),
        (Some(other), None) => anyhow::bail!(unlike(&request.after, &other)),
    }
    let (first, second) = (
        profile_at(&request.before, invocation),
        profile_at(&request.after, invocation),
    );
    match (first, second) {
        (Some(first), Some(second)) => {
            return profiles::compare([&first, &second], started, invocation);
        }
        (None, None) => {}
        (first, _) => {
            let (profile, other) = if first.is_some() {
                (&request.before, &request.after)
            } else {
                (&request.after, &request.before)
            };
            anyhow::bail!(
                "cannot compare {} with {}: {} is a profile, {} is not; name two profiles",
                request.before.display(),
                request.after.display(),
                profile.display(),
                other.display()
            );
        }
    }
    let (before, after) = (Host::open(&request.before)?, Host::open(&request.after)?);
    let mut knobs = before.knobs();
    knobs.extend(after.knobs());
    let all = compare::differences(&before.side(), &after.side(), &check::about(), &knobs);
    Ok(CompareReport {
        envelope: invocation.envelope(CompareReport::KIND, started, Exit::Done),
        sentence: compare::sentence(&before.name, &after.name, &all),
        before: before.name,
        after: after.name,
        notes: Vec::new(),
        metrics: all.metrics,
        findings: all.findings,
        not_compared: all.not_compared,
        of: Some(Of::Hosts),
        verdict: None,
        clauses: Vec::new(),
        before_logs: Vec::new(),
        after_logs: Vec::new(),
        profiles: None,
    })
}
