//! Checksums of a run folder, in the format of sha256sum(1): written when a session ends, compared before the next one.
//!
//! A session that continues removes them first: what a killed one leaves has none, and is read as far as it is complete.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::io::Read as _;
use std::path::Path;

use rungwise_host::files;
use sha2::{Digest as _, Sha256};

pub(super) const SUMS: &str = "SHA256SUMS";

/// Writes the sums of every file of the run folder.
pub(crate) fn write(run: &Path) -> anyhow::Result<()> {
    let mut lines = String::new();
    for name in files::list(run)? {
        if name != SUMS {
            let _ = writeln!(lines, "{}  {name}", sum(&files::read(&run.join(&name))?));
        }
    }
    Ok(files::replace(&run.join(SUMS), lines.as_bytes())?)
}

/// Fails where a file is not what the last session left, and names each. One that a person added is no matter.
pub(crate) fn verify(run: &Path) -> anyhow::Result<()> {
    if !files::exists(&run.join(SUMS)) {
        return Ok(());
    }
    let (wrong, _) = differences(run)?;
    anyhow::ensure!(
        wrong.is_empty(),
        "cannot resume {}: {}; restore it, start a new run, or remove {SUMS} to continue with what is readable",
        run.display(),
        wrong.join(", ")
    );
    Ok(())
}

/// What is missing or altered, and what was added.
pub(super) fn differences(run: &Path) -> anyhow::Result<(Vec<String>, Vec<String>)> {
    let lines = String::from_utf8_lossy(&files::read(&run.join(SUMS))?).into_owned();
    let listed: BTreeSet<&str> = lines
        .lines()
        .filter_map(|line| Some(line.split_once("  ")?.1))
        .collect();
    let wrong = lines.lines().filter_map(|line| differs(run, line));
    let added = files::list(run)?
        .into_iter()
        .filter(|name| name != SUMS && !listed.contains(&**name))
        .map(|name| format!("{name} is not listed in {SUMS}, it was added"));
    Ok((wrong.collect(), added.collect()))
}

/// What is wrong with the file of a line, if something is.
fn differs(run: &Path, line: &str) -> Option<String> {
    let Some((expected, name)) = line.split_once("  ") else {
        return Some(format!("{SUMS} contains '{line}', which is not a checksum"));
    };
    // A line may have been added to it: no file outside of the folder is read, and none that never ends.
    if name.contains('/') || name == ".." {
        return Some(format!(
            "{SUMS} names '{name}', which is not a file of the run"
        ));
    }
    let path = run.join(name);
    if !files::exists(&path) {
        return Some(format!("{name} is missing"));
    }
    if !files::is_plain(&path) {
        return Some(format!("{name} is no longer a regular file"));
    }
    match sum_of(&path) {
        Ok(found) if found == expected => None,
        Ok(_) => Some(format!(
            "{name} does not match {SUMS}: it was changed or truncated"
        )),
        Err(error) => Some(format!("{name} cannot be read ({error})")),
    }
}

/// Takes the sums away, since the files change from here on.
pub(crate) fn forget(run: &Path) -> anyhow::Result<()> {
    let path = run.join(SUMS);
    if files::exists(&path) {
        files::remove(&path)?;
    }
    Ok(())
}

/// SHA-256 in hexadecimal digits.
pub(crate) fn sum(bytes: &[u8]) -> String {
    hex(Sha256::digest(bytes).as_ref())
}

/// The same of a file, a piece at a time: captures and pairs of a long ladder are large.
fn sum_of(path: &Path) -> anyhow::Result<String> {
    let mut file = files::open(path)?;
    let mut digest = Sha256::new();
    let mut piece = vec![0; 1 << 16];
    loop {
        match file.read(&mut piece)? {
            0 => return Ok(hex(digest.finalize().as_ref())),
            length => digest.update(&piece[..length]),
        }
    }
}

fn hex(bytes: &[u8]) -> String {
    let mut hex = String::new();
    for byte in bytes {
        let _ = write!(hex, "{byte:02x}");
    }
    hex
}
