//! Services of the machine, by their manager: `systemctl(1)` tells, starts and stops.
//!
//! A program and no D-Bus client: it is asked once per change, and says in words what is wrong.
#![expect(unsafe_code, reason = "pre_exec has no safe door in std")]

use std::io;
use std::os::unix::process::CommandExt as _;
use std::process::{Command, Stdio};

/// Whether the unit runs, or is on its way there; one that failed does not.
pub(crate) fn active(unit: &str) -> io::Result<bool> {
    state(
        unit,
        &systemctl(&["show", "--property=LoadState,ActiveState", "--", unit])?,
    )
}

/// Starts or stops the unit and waits until that is done.
pub(crate) fn set(unit: &str, active: bool) -> io::Result<()> {
    let verb = if active { "start" } else { "stop" };
    systemctl(&[verb, "--", unit]).map(drop)
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
            "systemctl says '{}' of {unit}",
            other.unwrap_or("nothing")
        ))),
    }
}

fn systemctl(words: &[&str]) -> io::Result<String> {
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
    let output = command.output().map_err(|error| match error.kind() {
        io::ErrorKind::NotFound => io::Error::other("there is no systemctl here"),
        _ => error,
    })?;
    if output.status.success() {
        return Ok(String::from_utf8_lossy(&output.stdout).into_owned());
    }
    let said = String::from_utf8_lossy(&output.stderr);
    Err(io::Error::other(format!(
        "systemctl {}: {}",
        words[0],
        said.lines().next().unwrap_or("it did not say why")
    )))
}

#[cfg(test)]
mod tests {
    use super::*;

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
