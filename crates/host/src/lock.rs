//! One instance at a time: two ladders on one machine would measure each other.
//!
//! An exclusive flock(2) on `DIR/lock`, which the kernel releases however the process ends, so there are no stale
//! locks. The file contains the holder and stays when it is released: removing it would race with the next holder. A
//! child made by fork alone shares the lock; exec closes it.
//!
//! The folder must be ours alone: in one that others may write, a link in the lock's place would have root overwrite
//! what it points to. The lock file is ours alone too, since any user who may read a file may lock it.

use std::fmt;
use std::fs::{File, OpenOptions, TryLockError};
use std::io::{Read as _, Seek as _, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;

use crate::error::{Error, Result};
use crate::{clock, environment, files};

/// The lock, held until dropped.
#[derive(Debug)]
pub struct InstanceLock {
    _file: File,
}

/// The holder of the lock, as far as it is recorded.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Held {
    /// Its process id.
    pub pid: u32,
    /// Since when, RFC 3339.
    pub since: String,
    /// Its command line.
    pub command: String,
}

impl fmt::Display for Held {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "cannot start: another instance is running")?;
        if self.pid != 0 {
            write!(
                formatter,
                " (pid {}, since {}: {})",
                self.pid, self.since, self.command
            )?;
        }
        write!(formatter, "; wait for it or stop it")
    }
}

impl std::error::Error for Held {}

impl InstanceLock {
    /// Takes the lock of `dir`, which must exist; [`Error::Held`] if another process has it.
    pub fn acquire(dir: &Path) -> Result<Self> {
        let about = std::fs::metadata(dir).map_err(Error::file("examine", dir))?;
        if let Some(why) = files::not_ours_alone(&about) {
            return Err(Error::Missing {
                tried: format!("keep journals and the lock in {}", dir.display()),
                why,
                remedy: "set RUNGWISE_STATE to a folder that only you may write".to_owned(),
            });
        }
        let path = dir.join("lock");
        let mut file = OpenOptions::new()
            .read(true)
            .write(true)
            .create(true)
            .truncate(false)
            .mode(0o600)
            .open(&path)
            .map_err(Error::file("open", &path))?;
        match file.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => {
                let mut text = String::new();
                // A holder that has not written yet reads as unknown.
                let _ = file.read_to_string(&mut text);
                return Err(Held::parse(&text).into());
            }
            Err(TryLockError::Error(error)) => return Err(Error::file("lock", &path)(error)),
        }
        let command = environment::argv().join(" ").replace('\n', " ");
        let text = format!("{}\n{}\n{command}\n", std::process::id(), clock::utc_now());
        file.set_len(0)
            .and_then(|()| file.rewind())
            .and_then(|()| file.write_all(text.as_bytes()))
            .map_err(Error::file("write", &path))?;
        Ok(Self { _file: file })
    }
}

impl Held {
    fn parse(text: &str) -> Self {
        let mut lines = text.lines().map(str::to_owned);
        Self {
            pid: lines
                .next()
                .and_then(|pid| pid.parse().ok())
                .unwrap_or_default(),
            since: lines.next().unwrap_or_default(),
            command: lines.next().unwrap_or_default(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_second_to_come_learns_who_is_there() {
        let dir = tempfile::tempdir().unwrap();
        let first = InstanceLock::acquire(dir.path()).unwrap();
        let Err(Error::Held(held)) = InstanceLock::acquire(dir.path()) else {
            panic!("two instances at once");
        };
        assert_eq!(held.pid, std::process::id());
        assert!(
            held.since.ends_with('Z') && !held.command.is_empty(),
            "{held:?}"
        );
        drop(first);
        InstanceLock::acquire(dir.path()).unwrap();
    }

    #[test]
    fn a_folder_that_others_may_write_is_refused_and_nothing_in_it_touched() {
        use std::os::unix::fs::PermissionsExt as _;
        let dir = tempfile::tempdir().unwrap();
        let victim = dir.path().join("victim");
        std::fs::write(&victim, "precious").unwrap();
        std::os::unix::fs::symlink(&victim, dir.path().join("lock")).unwrap();
        std::fs::set_permissions(dir.path(), std::fs::Permissions::from_mode(0o1777)).unwrap();
        let error = InstanceLock::acquire(dir.path()).unwrap_err();
        assert!(
            error.is_precondition() && error.to_string().contains("other users may write to it"),
            "{error}"
        );
        assert_eq!(std::fs::read_to_string(&victim).unwrap(), "precious");
    }

    #[test]
    fn a_torn_note_reads_as_unknown() {
        assert_eq!(Held::parse(""), Held::default());
        assert_eq!(Held::parse("zz\n2026").pid, 0);
        assert!(
            Held::parse("")
                .to_string()
                .ends_with("running; wait for it or stop it")
        );
    }
}
