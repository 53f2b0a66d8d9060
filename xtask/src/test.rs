//! `cargo xtask test`: the packages and the JVMs first, then every test of the workspace in one `cargo test`.
//!
//! `cargo test` on a whole workspace runs unit, integration and documentation tests and builds the
//! examples. Its output is not touched, so its closing lines stay where scripts look for them. Which tests failed, and what
//! was skipped because a JVM or the like was missing, is summed up behind them: a log is often kept by its end only.

use std::collections::BTreeSet;
use std::io::{BufRead as _, BufReader, IsTerminal as _, Write as _};
use std::process::{Command, ExitCode, Stdio};
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
    let mut cargo = tree.cargo();
    cargo
        .args(["test", "--workspace", "--no-fail-fast"])
        .args(args)
        .env("PATH", packages::path()?)
        .env(SKIPPED, tree.join(LIST));
    let (passed, failures) = ran(&mut cargo)?;
    ended(tree, passed, &failures, began)
}

/// Runs the tests that need neither root nor packages nor a JVM; what such a test finds missing after all is summed up as skipped.
pub fn fast(tree: &Tree, args: &[String]) -> Result<ExitCode> {
    tree.write(LIST, "")?;
    let began = Instant::now();
    let (mut passed, mut failures) = (true, Failures::default());
    // The binary's own tests run services, namespaces and JVMs, all but those of recorded hosts.
    for selected in [
        &["--workspace", "--exclude", "rungwise"][..],
        &["--package", "rungwise", "--bins", "--test", "hosts"],
    ] {
        let mut cargo = tree.cargo();
        cargo
            .args(["test", "--no-fail-fast"])
            .args(selected)
            .args(args)
            .env(SKIPPED, tree.join(LIST));
        let (has_passed, more) = ran(&mut cargo)?;
        passed &= has_passed;
        failures.lines.extend(more.lines);
    }
    ended(tree, passed, &failures, began)
}

/// Runs `cargo test`; whether it passed, and which tests failed. On a terminal, where they are in sight, these are not collected.
fn ran(cargo: &mut Command) -> Result<(bool, Failures)> {
    let mut failures = Failures::default();
    if std::io::stdout().is_terminal() {
        let status = cargo.status().context("cannot run cargo test")?;
        return Ok((status.success(), failures));
    }
    let mut child = cargo
        .stdout(Stdio::piped())
        .spawn()
        .context("cannot run cargo test")?;
    let output = child.stdout.take().context("cargo test has no output")?;
    let mut output = BufReader::new(output);
    let mut line = Vec::new();
    let mut stdout = std::io::stdout().lock();
    while output.read_until(b'\n', &mut line)? > 0 {
        stdout.write_all(&line)?;
        failures.read(String::from_utf8_lossy(&line).trim_end());
        line.clear();
    }
    Ok((child.wait()?.success(), failures))
}

/// Lines of each message of a panic that are kept: its place and the begin of what it says.
const KEPT: usize = 4;

/// Names of failed tests, and how their messages begin.
#[derive(Debug, Default, PartialEq)]
struct Failures {
    lines: Vec<String>,
    /// Lines that still belong to the message.
    wanted: usize,
}

impl Failures {
    /// Takes the next line of the output.
    fn read(&mut self, line: &str) {
        let is_name = line.starts_with("---- ") && line.ends_with(" stdout ----");
        let is_panic = line.starts_with("thread '") && line.contains(" panicked at ");
        if is_panic {
            self.wanted = KEPT;
        }
        if is_name || self.wanted > 0 {
            self.lines.push(line.to_owned());
        }
        self.wanted = self.wanted.saturating_sub(1);
    }
}

fn ended(tree: &Tree, passed: bool, failures: &Failures, began: Instant) -> Result<ExitCode> {
    let word = if passed {
        "every test passed"
    } else {
        "tests failed"
    };
    for line in &failures.lines {
        eprintln!("  {line}");
    }
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
    fn failed_tests_are_named_with_the_begin_of_their_messages() {
        let output = "\
test a ... ok
test b ... FAILED

failures:

---- b stdout ----
the service listens

thread 'b' (7) panicked at src/b.rs:3:5:
assertion `left == right` failed: stdout:
{
  \"schema\": 1,
  \"document\": \"check\"
}

failures:
    b
";
        let mut failures = Failures::default();
        output.lines().for_each(|line| failures.read(line));
        let expected = [
            "---- b stdout ----",
            "thread 'b' (7) panicked at src/b.rs:3:5:",
            "assertion `left == right` failed: stdout:",
            "{",
            "  \"schema\": 1,",
        ];
        assert_eq!(failures.lines, expected);
    }

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
