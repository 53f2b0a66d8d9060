//! House tests: they keep `docs/` and the sources true to what CONTRIBUTING.md says.
//!
//! Each test collects every offender before it fails, so that one run shows all there is to mend.
#![expect(
    clippy::disallowed_methods,
    clippy::unwrap_used,
    reason = "tests read the source tree and start cargo"
)]

mod arrows;
mod docs;
mod new;
mod registries;
mod sources;

use xtask::tree::Tree;

/// Fails with every offender on a line of its own.
#[track_caller]
fn none_of(offenders: &[String], rule: &str) {
    assert!(
        offenders.is_empty(),
        "{rule}:\n  {}",
        offenders.join("\n  ")
    );
}

/// The files of the checkout whose name ends in `suffix`, with their text.
fn texts(tree: &Tree, suffix: &str) -> Vec<(String, String)> {
    let files = tree.files_ending(suffix).unwrap();
    files
        .into_iter()
        .map(|file| (file.clone(), tree.read(&file).unwrap()))
        .collect()
}
