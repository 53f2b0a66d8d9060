//! Services of the machine, by their manager: `systemctl(1)` queries, starts and stops them.
//!
//! A program and no D-Bus client: it runs once per change, and its error messages are readable.
#![expect(unsafe_code, reason = "pre_exec has no safe wrapper in std")]

use std::io;
use std::os::fd::AsFd as _;
use std::os::unix::process::CommandExt as _;
use std::process::{Command, Output, Stdio};
use std::time::Duration;

use crate::{process, wait};

/// Longest that the manager may take to report a state, which it does within milliseconds unless it hangs; a guess. How
/// long a unit takes to start or stop is its own matter, and the manager has limits for it.
const TELLS_WITHIN: Duration = Duration::from_secs(5);

/// Whether the unit runs, or is on its way there; one that failed does not.
pub(crate) fn active(unit: &str) -> io::Result<bool> {
    state(
        unit,
        &systemctl(
            &["show", "--property=LoadState,ActiveState", "--", unit],
            Some(TELLS_WITHIN),
        )?,
    )
}

/// Starts or stops the unit and waits until that is done.
pub(crate) fn set(unit: &str, active: bool) -> io::Result<()> {
    let verb = if active { "start" } else { "stop" };
    systemctl(&[verb, "--", unit], None).map(drop)
}

fn state(unit: &str, shown: &str) -> io::Result<bool> {
    let of = |name: &str| {
        shown
            .lines()
            .find_map(|line| line.strip_prefix(name)?.strip_prefix('='))
    };
    match (of("LoadState"), of("ActiveState")) {
        (Some("not-found"), _) => Err(io::Error::other(format!("there is no unit {unit} here"))),
        (_, Some("active" | "activating" | "reloading" | "refreshing")) => Ok(true),
        (_, Some("inactive" | "deactivating" | "failed")) => Ok(false),
        (_, other) => Err(io::Error::other(format!(
            "systemctl reports '{}' for {unit}",
            other.unwrap_or("nothing")
        ))),
    }
}

fn systemctl(words: &[&str], within: Option<Duration>) -> io::Result<String> {
    let mut command = Command::new("systemctl");
    command.args(words).env("LC_ALL", "C").stdin(Stdio::null());
    let die_with_us = || {
        // SAFETY: prctl with these arguments touches no memory.
        match unsafe { libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL) } {
            0 => Ok(()),
            _ => Err(io::Error::last_os_error()),
        }
    };
    // SAFETY: `die_with_us` makes one system call and does not allocate. A tool that was killed must not leave a
    // systemctl behind that stops the unit after the guard has looked.
    unsafe { command.pre_exec(die_with_us) };
    let output = ended(&mut command, within).map_err(|error| match error.kind() {
        io::ErrorKind::NotFound => io::Error::other("there is no systemctl here"),
        io::ErrorKind::TimedOut => io::Error::other(format!(
            "systemctl {} did not answer within {} s; check the service manager: systemctl is-system-running",
            words[0],
            TELLS_WITHIN.as_secs()
        )),
        _ => error,
    })?;
    if output.status.success() {
        return Ok(String::from_utf8_lossy(&output.stdout).into_owned());
    }
    let said = String::from_utf8_lossy(&output.stderr);
    Err(io::Error::other(format!(
        "systemctl {}: {}",
        words[0],
        said.lines().next().unwrap_or("no error message")
    )))
}

/// Runs a program with little output to its end, or kills it when the time is over.
fn ended(command: &mut Command, within: Option<Duration>) -> io::Result<Output> {
    let mut child = command
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()?;
    if let Some(time) = within {
        let over = process::pidfd(child.id()).and_then(|pidfd| wait::readable(pidfd.as_fd(), time));
        if !over? {
            child.kill()?;
            child.wait()?;
            return Err(io::ErrorKind::TimedOut.into());
        }
    }
    child.wait_with_output()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_does_not_answer_in_time_is_ended_and_who_does_is_heard() {
        let mut sleeper = Command::new("sleep");
        let error = ended(sleeper.arg("600"), Some(Duration::from_millis(20))).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::TimedOut);
        for within in [None, Some(Duration::from_mins(1))] {
            let said = ended(Command::new("echo").arg("active"), within).unwrap();
            assert_eq!(said.stdout, b"active\n");
        }
    }

    #[test]
    fn a_unit_on_its_way_is_where_it_goes_and_one_that_is_not_there_is_an_error() {
        let shown = |load, active| {
            state(
                "x.service",
                &format!("LoadState={load}\nActiveState={active}\n"),
            )
        };
        for (active, runs) in [
            ("active", true),
            ("activating", true),
            ("deactivating", false),
            ("inactive", false),
            ("failed", false),
        ] {
            assert_eq!(shown("loaded", active).unwrap(), runs, "{active}");
        }
        let error = shown("not-found", "inactive").unwrap_err().to_string();
        assert!(error.contains("no unit x.service"), "{error}");
        assert!(state("x.service", "").is_err());
    }
}
