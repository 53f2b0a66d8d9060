//! Checksums of a run folder, in the format of sha256sum(1): written when a session ends, compared before the next one.
//!
//! A session that goes on takes them away first: what a killed one leaves has none, and is read as far as it is whole.

use std::fmt::Write as _;
use std::path::Path;

use rungwise_host::files;
use sha2::{Digest as _, Sha256};

const SUMS: &str = "SHA256SUMS";

/// Writes the sums of every file of the run folder.
pub(super) fn write(run: &Path) -> anyhow::Result<()> {
    let mut lines = String::new();
    for name in files::list(run)? {
        if name != SUMS {
            let _ = writeln!(lines, "{}  {name}", sum(&files::read(&run.join(&name))?));
        }
    }
    Ok(files::replace(&run.join(SUMS), lines.as_bytes())?)
}

/// Fails where a file is not what the last session left, and names each.
pub(super) fn verify(run: &Path) -> anyhow::Result<()> {
    let path = run.join(SUMS);
    if !files::exists(&path) {
        return Ok(());
    }
    let lines = String::from_utf8_lossy(&files::read(&path)?).into_owned();
    let wrong: Vec<String> = lines
        .lines()
        .filter_map(|line| differs(run, line))
        .collect();
    anyhow::ensure!(
        wrong.is_empty(),
        "cannot resume {}: {}; put it back, start a new run, or remove {SUMS} to go on with what can still be read",
        run.display(),
        wrong.join(", ")
    );
    Ok(())
}

/// What is wrong with the file of a line, if something is.
fn differs(run: &Path, line: &str) -> Option<String> {
    let Some((expected, name)) = line.split_once("  ") else {
        return Some(format!("{SUMS} holds '{line}', which is no checksum"));
    };
    if !files::exists(&run.join(name)) {
        return Some(format!("{name} is gone"));
    }
    match files::read(&run.join(name)) {
        Ok(bytes) if sum(&bytes) == expected => None,
        Ok(_) => Some(format!(
            "{name} is not what {SUMS} says, it was changed or cut"
        )),
        Err(error) => Some(error.to_string()),
    }
}

/// Takes the sums away, since the files change from here on.
pub(super) fn forget(run: &Path) -> anyhow::Result<()> {
    let path = run.join(SUMS);
    if files::exists(&path) {
        files::remove(&path)?;
    }
    Ok(())
}

/// SHA-256 in hexadecimal digits.
pub(super) fn sum(bytes: &[u8]) -> String {
    let mut hex = String::new();
    for byte in Sha256::digest(bytes) {
        let _ = write!(hex, "{byte:02x}");
    }
    hex
}
