//! A wall clock of its own for one program, moved while it runs: the Debian package `faketime`.

#![expect(
    clippy::disallowed_methods,
    reason = "finds the library and writes a test's own file"
)]

use std::path::PathBuf;
use std::process::Command;

/// The wall clock that a program and its children see. The monotonic clock stays as it is, as it does when somebody sets the
/// time of a machine.
#[derive(Debug)]
pub struct WallClock(PathBuf);

impl WallClock {
    /// Kept in `file`, and right until it is told to jump.
    ///
    /// # Panics
    ///
    /// If the file cannot be written.
    pub fn new(file: PathBuf) -> Self {
        let clock = Self(file);
        clock.jump("+0");
        clock
    }

    /// Has `command` see this clock.
    ///
    /// # Panics
    ///
    /// Without the package.
    pub fn dress(&self, command: &mut Command) {
        let library = std::fs::read_dir("/usr/lib")
            .expect("Linux has this folder")
            .filter_map(|entry| Some(entry.ok()?.path().join("faketime/libfaketimeMT.so.1")))
            .find(|path| path.exists())
            .expect("install the package faketime");
        command
            .env("LD_PRELOAD", library)
            .env("FAKETIME_TIMESTAMP_FILE", &self.0)
            .envs([
                ("FAKETIME_NO_CACHE", "1"),
                ("FAKETIME_DONT_FAKE_MONOTONIC", "1"),
            ]);
    }

    /// From now on it differs from the machine's by `offset`: `-1h`, `+2d`.
    ///
    /// # Panics
    ///
    /// If the file cannot be written.
    pub fn jump(&self, offset: &str) {
        std::fs::write(&self.0, format!("{offset}\n")).expect("a folder of the test's own");
    }
}
