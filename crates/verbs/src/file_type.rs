//! Types of files that are judged without a host: which one a file is, and what judges it.
//!
//! A type is known by what a file contains, never by its name. The first type that recognises a file is taken.

use std::path::{Path, PathBuf};

use crate::Invocation;
use crate::check::{Checked, FailOn};
use crate::jvm::{gc, threads};

/// A type of file.
pub(crate) struct FileType {
    /// For a sentence: `a GC log`.
    pub(crate) name: &'static str,
    /// Whether a file, or a file in this folder, is one. Where a file cannot be read, the judge says why.
    pub(crate) recognises: fn(&Path) -> bool,
    /// Judges the file.
    pub(crate) check: fn(&Path, FailOn, &Invocation<'_>) -> anyhow::Result<Checked>,
}

/// All types, in the order in which they are tried.
const FILE_TYPES: &[&FileType] = &[&THREAD_DUMPS, &GC_LOG];

const THREAD_DUMPS: FileType = FileType {
    name: "thread dumps",
    recognises: threads::is_dump,
    check: |path, fail_on, invocation| {
        let report = threads::judge(&[PathBuf::from(path)], fail_on, invocation)?;
        Ok(Checked::Dumps(Box::new(report)))
    },
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
};

/// The type of a file, if it is one of these.
pub(crate) fn of(path: &Path) -> Option<&'static FileType> {
    let mut types = FILE_TYPES.iter().copied();
    types.find(|file_type| (file_type.recognises)(path))
}
