//! `cargo xtask test`: the packages and the JVMs first, then every test of the workspace in one `cargo test`.
//!
//! `cargo test` on a whole workspace runs unit, integration and documentation tests and builds the
//! examples. Its output is not touched, so its closing lines stay where scripts look for them.

use std::process::ExitCode;
use std::time::Instant;

use anyhow::{Context as _, Result};

use crate::jvms;
use crate::packages::{self, Package};
use crate::tree::Tree;

/// Exit status when a package is missing and may not be installed: a precondition, not a failure.
const PRECONDITION: u8 = 4;

/// Checks or installs the packages, then runs the tests with `args` handed on to `cargo test`.
pub fn run(tree: &Tree, no_install: bool, args: &[String]) -> Result<ExitCode> {
    if !provide(no_install)? {
        return Ok(ExitCode::from(PRECONDITION));
    }
    // One that is missing is no failure: archives come and go, and the test says that it was skipped.
    jvms::provide(no_install)?;
    let began = Instant::now();
    let status = tree
        .cargo()
        .args(["test", "--workspace", "--no-fail-fast"])
        .args(args)
        .env("PATH", packages::path()?)
        .status()
        .context("cannot run cargo test")?;
    let word = if status.success() {
        "every test passed"
    } else {
        "tests failed"
    };
    eprintln!("xtask: {word} after {} s", began.elapsed().as_secs());
    Ok(if status.success() {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    })
}

/// Whether every package is there in the end; says which are needed, for what, and what is done.
fn provide(no_install: bool) -> Result<bool> {
    let missing = packages::missing();
    if missing.is_empty() {
        eprintln!(
            "xtask: the {} Debian packages that the tests need are there",
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
        eprintln!("xtask: not installed, as --no-install asks; as root: {command}");
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
            "xtask: {} is installed, but its program {} is not found; extend PATH",
            package.name, package.program
        );
    }
    Ok(still.is_empty())
}
