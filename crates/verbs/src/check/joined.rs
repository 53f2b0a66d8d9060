//! Files of one system, judged together: a capture of the host, and what its JVM wrote.

use std::path::{Path, PathBuf};

use rungwise_host::files;
use rungwise_model::Exit;
use rungwise_model::check::{CheckReport, CheckedJvm, JudgedFile, Standing};
use rungwise_model::evidence::Evidence;
use rungwise_probes::Capture;

use super::{Request, exit, join};
use crate::Invocation;
use crate::documents::Document as _;
use crate::file_type::{self, FILE_TYPES, FileType, Span};
use crate::problem::Problem;

/// Files by their types.
pub(super) struct Files {
    /// The host that was captured.
    pub(super) capture: Option<PathBuf>,
    /// What its JVM wrote, in the order of the types.
    groups: Vec<(&'static FileType, Vec<PathBuf>)>,
    names: Vec<String>,
}

/// What the files say together, apart from the capture.
pub(super) struct Joined {
    pub(super) jvm: CheckedJvm,
    pub(super) files: Vec<JudgedFile>,
}

impl Files {
    pub(super) fn classify(paths: &[PathBuf]) -> anyhow::Result<Self> {
        let mut capture = None;
        let mut groups: Vec<_> = FILE_TYPES.iter().map(|kind| (*kind, Vec::new())).collect();
        for path in paths {
            let is_readable = files::leads_to_plain(path) || files::is_folder(path);
            anyhow::ensure!(
                is_readable || files::why_missing(path).is_some(),
                "cannot judge {} with other files: its type is detected first, and it can be read only once; save it to a file",
                path.display()
            );
            let kind = is_readable.then(|| file_type::detect(path)).flatten();
            let group =
                kind.and_then(|kind| groups.iter_mut().find(|group| group.0.name == kind.name));
            if let Some((_, group)) = group {
                group.push(path.clone());
            } else if let Some(other) = capture.replace(path.clone()) {
                return Err(two_hosts(&other, path));
            }
        }
        groups.retain(|(_, paths)| !paths.is_empty());
        let names = paths.iter().map(|path| path.display().to_string());
        Ok(Self {
            capture,
            groups,
            names: names.collect(),
        })
    }

    /// For a sentence.
    pub(super) fn target(&self) -> String {
        self.names.join(", ")
    }

    /// Adds what the files say to the evidence of the capture, if there is one.
    pub(super) fn join(
        &self,
        evidence: &mut Evidence,
        capture: Option<&Capture>,
    ) -> anyhow::Result<Joined> {
        let mut jvm = CheckedJvm::default();
        let mut spans: Vec<(String, &str, Span)> = Vec::new();
        if let (Some(capture), Some(path)) = (capture, &self.capture) {
            // A capture does not record its end; the verdict shows the length of the window.
            let span = Span {
                from: capture.taken.clone(),
                to: None,
            };
            spans.push((path.display().to_string(), "a capture", span));
        }
        let process = capture.and_then(|capture| capture.process.as_ref());
        for (kind, paths) in &self.groups {
            let read = (kind.read)(paths)?;
            join(evidence, &read.evidence, process);
            add(&mut jvm, read.jvm);
            let names: Vec<String> = paths
                .iter()
                .map(|path| path.display().to_string())
                .collect();
            spans.push((names.join(", "), kind.name, read.time));
        }
        Ok(Joined {
            jvm,
            files: spans.into_iter().map(judged_file).collect(),
        })
    }

    /// Judges what a JVM wrote, without its host.
    pub(super) fn judge(
        &self,
        request: &Request,
        started: String,
        invocation: &Invocation<'_>,
    ) -> anyhow::Result<CheckReport> {
        let mut evidence = Evidence::default();
        let joined = self.join(&mut evidence, None)?;
        let findings = rungwise_rules::judge_jvm(&evidence);
        let exit = exit(&findings, request.fail_on);
        Ok(CheckReport {
            envelope: invocation.envelope(CheckReport::KIND, started, exit),
            target: self.target(),
            place: None,
            host: String::new(),
            taken: None,
            window_s: 0.0,
            standing: Some(Standing::from_findings(&findings, &[])),
            findings,
            resources: Vec::new(),
            tables: Vec::new(),
            readings: rungwise_report::check::readings(&evidence),
            jvm: Some(joined.jvm),
            service: None,
            files: joined.files,
        })
    }
}

fn two_hosts(one: &Path, other: &Path) -> anyhow::Error {
    let found = |path: &Path| match files::why_missing(path) {
        Some(why) => format!("{}: {why}", path.display()),
        None => format!(
            "{} is not a GC log, a thread dump or a recording",
            path.display()
        ),
    };
    let error = anyhow::anyhow!(
        "cannot judge these files together: {}; {}. At most one of them may be a capture of a host; `rungwise compare A B` compares \
         two",
        found(one),
        found(other)
    );
    Problem::with(Exit::Usage, error)
}

fn add(all: &mut CheckedJvm, read: CheckedJvm) {
    all.times.extend(read.times);
    all.stages.extend(read.stages);
    all.notes.extend(read.notes);
}

fn judged_file((file, what, span): (String, &str, Span)) -> JudgedFile {
    JudgedFile {
        file,
        what: what.to_owned(),
        from: span.from,
        to: span.to,
    }
}
