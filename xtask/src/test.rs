//! `cargo xtask test`: the packages and the JVMs first, then every test of the workspace in one `cargo test`.
//!
//! `cargo test` on a whole workspace runs unit, integration and documentation tests and builds the
//! examples. Its output is not touched, so its closing lines stay where scripts look for them. What tests skipped, because a
//! JVM or the like was missing, is summed up behind them.

use std::collections::BTreeSet;
use std::process::ExitCode;
use std::time::Instant;

use anyhow::{Context as _, Result};

use crate::jvms;
use crate::packages::{self, Package};
use crate::tree::Tree;

/// Names the file in which tests note what they skip: `rungwise_testkit::skipped`.
const SKIPPED: &str = "RUNGWISE_SKIPPED";
/// That file.
const LIST: &str = "target/skipped.txt";

/// Exit status when a package is missing and may not be installed: a precondition, not a failure.
const PRECONDITION: u8 = 4;

/// Checks or installs the packages, then runs the tests with `args` handed on to `cargo test`.
pub fn run(tree: &Tree, no_install: bool, args: &[String]) -> Result<ExitCode> {
    if !provide(no_install)? {
        return Ok(ExitCode::from(PRECONDITION));
    }
    // One that is missing is no failure: archives come and go, and the test says that it was skipped.
    jvms::provide(no_install)?;
    tree.write(LIST, "")?;
    let began = Instant::now();
    let status = tree
        .cargo()
        .args(["test", "--workspace", "--no-fail-fast"])
        .args(args)
        .env("PATH", packages::path()?)
        .env(SKIPPED, tree.join(LIST))
        .status()
        .context("cannot run cargo test")?;
    ended(tree, status.success(), began)
}

/// Runs the tests that need neither root nor packages nor a JVM; what such a test finds missing after all is summed up as skipped.
pub fn fast(tree: &Tree, args: &[String]) -> Result<ExitCode> {
    tree.write(LIST, "")?;
    let began = Instant::now();
    let mut passed = true;
    // The binary's own tests run services, namespaces and JVMs, all but those of recorded hosts.
    for selected in [
        &["--workspace", "--exclude", "rungwise"][..],
        &["--package", "rungwise", "--bins", "--test", "hosts"],
    ] {
        let status = tree
            .cargo()
            .args(["test", "--no-fail-fast"])
            .args(selected)
            .args(args)
            .env(SKIPPED, tree.join(LIST))
            .status()
            .context("cannot run cargo test")?;
        passed &= status.success();
    }
    ended(tree, passed, began)
}

fn ended(tree: &Tree, passed: bool, began: Instant) -> Result<ExitCode> {
    let word = if passed {
        "every test passed"
    } else {
        "tests failed"
    };
    eprintln!("xtask: {word} after {} s", began.elapsed().as_secs());
    eprint!("{}", summed_up(&tree.read(LIST)?));
    Ok(if passed {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    })
}

/// What was skipped, each once; empty if nothing was.
fn summed_up(list: &str) -> String {
    let skipped: BTreeSet<&str> = list.lines().collect();
    if skipped.is_empty() {
        return String::new();
    }
    let (count, lines) = (skipped.len(), Vec::from_iter(skipped).join("\n  "));
    format!("xtask: not tested here, {count} in all:\n  {lines}\n")
}

/// Whether every package is there in the end; says which are needed, for what, and what is done.
pub(crate) fn provide(no_install: bool) -> Result<bool> {
    let missing = packages::missing();
    if missing.is_empty() {
        eprintln!(
            "xtask: the {} Debian packages that the tests need are installed",
            packages::PACKAGES.len()
        );
        return Ok(true);
    }
    eprintln!("xtask: the tests need these Debian packages:");
    for Package {
        name,
        program,
        reason,
        ..
    } in &missing
    {
        eprintln!("  {name:16} {program}: {reason}");
    }
    let command = packages::command_line(&missing);
    if no_install {
        eprintln!("xtask: not installed because of --no-install; as root: {command}");
        return Ok(false);
    }
    if !packages::is_root() {
        eprintln!(
            "xtask: cannot install them: not root; run this, then again:\n  sudo sh -c '{command}'"
        );
        return Ok(false);
    }
    packages::install(&missing)?;
    let still = packages::missing();
    for package in &still {
        eprintln!(
            "xtask: {} is installed, but its program {} is not in PATH; extend PATH",
            package.name, package.program
        );
    }
    Ok(still.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_skipped_is_summed_up_once_and_nothing_else_is_said() {
        assert_eq!(summed_up(""), "");
        let list = "SKIPPED b: no java-8\nSKIPPED a\nSKIPPED b: no java-8\n";
        assert_eq!(
            summed_up(list),
            "xtask: not tested here, 2 in all:\n  SKIPPED a\n  SKIPPED b: no java-8\n"
        );
    }
}
