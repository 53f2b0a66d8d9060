//! Types of files that are judged without a host: which one a file is, and what judges it.
//!
//! A type is known by what a file contains, never by its name. The first type that recognises a file is taken.

use std::path::{Path, PathBuf};

use rungwise_model::check::CheckedJvm;
use rungwise_model::evidence::Evidence;

use crate::Invocation;
use crate::check::{Checked, FailOn};
use crate::jvm::{gc, jfr, threads};

/// A type of file.
pub(crate) struct FileType {
    /// For a sentence: `a GC log`.
    pub(crate) name: &'static str,
    /// Whether a file, or a file in this folder, is one. Where a file cannot be read, the judge says why.
    pub(crate) recognises: fn(&Path) -> bool,
    /// Judges the file.
    pub(crate) check: fn(&Path, FailOn, &Invocation<'_>) -> anyhow::Result<Checked>,
    /// What files of this type say, to be judged together with others.
    pub(crate) read: fn(&[PathBuf]) -> anyhow::Result<Read>,
}

/// What files of one type say.
#[derive(Debug, Default)]
pub(crate) struct Read {
    pub(crate) evidence: Evidence,
    /// What the page shows of the JVM.
    pub(crate) jvm: CheckedJvm,
    /// The time that all of them cover.
    pub(crate) time: Span,
}

/// The time that files cover: RFC 3339 in UTC, or as thread dumps print it; absent where it is not recorded.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Span {
    pub(crate) from: Option<String>,
    pub(crate) to: Option<String>,
}

/// All types, in the order in which they are tried.
pub(crate) const FILE_TYPES: &[&FileType] = &[&RECORDING, &THREAD_DUMPS, &GC_LOG];

/// JDK Flight Recorder. Its first bytes say so; text of it may look like anything.
const RECORDING: FileType = FileType {
    name: "a Flight Recorder file",
    recognises: jfr::is_recording,
    check: |path, fail_on, invocation| {
        let report = jfr::judge(path, fail_on, invocation)?;
        Ok(Checked::Recording(Box::new(report)))
    },
    read: jfr::of_one_jvm,
};

const THREAD_DUMPS: FileType = FileType {
    name: "thread dumps",
    recognises: threads::is_dump,
    check: |path, fail_on, invocation| {
        let report = threads::judge(&[PathBuf::from(path)], fail_on, invocation)?;
        Ok(Checked::Dumps(Box::new(report)))
    },
    read: threads::of_one_jvm,
};

/// Logs of `HotSpot`'s collectors, JDK 5 to 25.
pub(crate) const GC_LOG: FileType = FileType {
    name: "a GC log",
    recognises: gc::is_log,
    check: |path, fail_on, invocation| {
        let asked = gc::Asked::default();
        let report = gc::judge(&[PathBuf::from(path)], asked, fail_on, invocation)?;
        Ok(Checked::GcLog(Box::new(report)))
    },
    read: gc::joined::of_files,
};

/// The type of a file, if it is one of these.
pub(crate) fn detect(path: &Path) -> Option<&'static FileType> {
    let mut types = FILE_TYPES.iter().copied();
    types.find(|file_type| (file_type.recognises)(path))
}
