//! House tests: they keep `docs/` and the sources true to what CONTRIBUTING.md says.
//!
//! Each test collects every offender before it fails, so that one run shows all there is to mend.
#![expect(
    clippy::disallowed_methods,
    clippy::unwrap_used,
    reason = "tests read the source tree and start cargo"
)]

mod arrows;
mod builds;
mod docs;
mod licences;
mod new;
mod registries;
mod sources;
mod words;

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

/// What a command prints that succeeds.
#[track_caller]
fn printed(command: &mut std::process::Command) -> String {
    let out = command.output().unwrap();
    let said = String::from_utf8_lossy(&out.stderr);
    assert!(out.status.success(), "{said}");
    String::from_utf8(out.stdout).unwrap()
}

/// The text files of the checkout whose name ends in `suffix`; pictures and other bytes are left out.
fn texts(tree: &Tree, suffix: &str) -> Vec<(String, String)> {
    let files = tree.files_ending(suffix).unwrap().into_iter();
    files
        .filter_map(|file| {
            let bytes = std::fs::read(tree.join(&file)).unwrap();
            Some((file, String::from_utf8(bytes).ok()?))
        })
        .collect()
}
