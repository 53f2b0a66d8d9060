//! The run store: a folder per run with the document, its page, a manifest, what else was measured, and checksums.
//!
//! The checksums are written last, so a folder of a killed process has none and counts as unfinished.

use std::path::{Path, PathBuf};

use anyhow::Context as _;
use rungwise_host::{clock, files};
use rungwise_report::html;
use serde_json::Value;

use super::sums;
use crate::documents::Document;

pub(super) const MANIFEST: &str = "manifest.json";
pub(crate) const DOCUMENT: &str = "measurements.json";
const PAGE: &str = "report.html";

/// Writes the run folder at `path`, which may hold files already. `more` are fields of the manifest beside the common ones.
pub(crate) fn write<T: Document>(
    path: &Path,
    document: &T,
    extra: &[(&str, Vec<u8>)],
    more: Value,
) -> anyhow::Result<()> {
    let page = html::page(&document.title(), &document.blocks());
    let json = rungwise_report::json(document)?;
    let envelope = document.envelope();
    let mut manifest = serde_json::json!({
        "what": T::KIND,
        "title": document.title(),
        "verdict": document.verdict(),
        "envelope": envelope,
        "machine": envelope.written_on,
    });
    if let (Some(fields), Value::Object(more)) = (manifest.as_object_mut(), more) {
        fields.extend(more);
    }
    let manifest = serde_json::to_vec_pretty(&manifest).context("cannot write the manifest")?;
    let written = [
        (MANIFEST, manifest.as_slice()),
        (DOCUMENT, json.as_bytes()),
        (PAGE, page.as_bytes()),
    ];
    let extra = extra.iter().map(|(name, bytes)| (*name, bytes.as_slice()));
    for (name, bytes) in extra.chain(written) {
        files::replace(&path.join(name), bytes)
            .with_context(|| format!("cannot write {name} of the run folder {}", path.display()))?;
    }
    sums::write(path)
}

/// Keeps a document in a new run folder below `runs`, whose id it bears from then on. `extra` are files beside it.
pub fn keep<T: Document>(
    document: &mut T,
    extra: &[(&str, Vec<u8>)],
    runs: &Path,
) -> anyhow::Result<PathBuf> {
    let id = clock::run_id()?;
    let path = runs.join(&id);
    document.envelope_mut().run = Some(id);
    let kept = files::create_dir_all(&path)
        .map_err(anyhow::Error::from)
        .and_then(|()| write(&path, document, extra, Value::Null));
    if let Err(error) = kept {
        // The document is printed all the same, and names no run.
        document.envelope_mut().run = None;
        return Err(error.context(
            "cannot keep the run; pass a writable folder with --runs, or do not keep it",
        ));
    }
    Ok(path)
}
