//! A temporary folder for the files of one run: locked while the run lives, and swept by the next one if it was killed.
//!
//! The lock is a flock(2) on the folder itself, which the kernel releases however the process ends. Unlike a process id in the
//! name, it also holds for a process of another PID namespace that shares the temporary folder.

use std::fs::{self, File, TryLockError};
use std::io;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use tempfile::TempDir;

use crate::error::{Error, Result};
use crate::files;

/// Prefix of the names; distinctive, since folders with it are removed.
const PREFIX: &str = ".rungwise-scratch-";
/// Other runs that sweep at the same moment may remove this many folders before each is locked; a guess.
const TRIES: usize = 16;

/// A temporary folder, empty at first, removed with all that is in it when this is dropped.
#[derive(Debug)]
pub struct Scratch {
    dir: TempDir,
    // Dropped after the folder is removed: until then no other run may sweep it.
    _lock: File,
}

impl Scratch {
    /// Creates one below the system's temporary folder, and removes those that killed runs of this user left there.
    ///
    /// Users of other ids can read it: services give up root.
    pub fn create() -> Result<Self> {
        Self::create_below(&std::env::temp_dir())
    }

    /// The same below another folder: for files that get their place in the same file system by [`files::rename`].
    pub fn create_below(parent: &Path) -> Result<Self> {
        Self::create_in(parent, locked)
    }

    fn create_in(parent: &Path, lock: fn(&Path) -> io::Result<Option<File>>) -> Result<Self> {
        sweep(parent);
        for _ in 0..TRIES {
            let dir = tempfile::Builder::new()
                .prefix(PREFIX)
                .permissions(fs::Permissions::from_mode(0o755))
                .tempdir_in(parent)
                .map_err(Error::file("create a temporary folder in", parent))?;
            match lock(dir.path()) {
                Ok(Some(lock)) if dir.path().exists() => return Ok(Self { dir, _lock: lock }),
                // Another run sweeps it before it is locked, or has done so.
                Ok(_) => {}
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                Err(error) => return Err(unlocked(parent, &format!("flock(2): {error}"))),
            }
        }
        let why = format!("other runs removed {TRIES} folders before they could be locked");
        Err(unlocked(parent, &why))
    }

    /// The path of a file or folder in it.
    pub fn join(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }
}

/// A temporary file without a name: gone with the process, however it ends.
pub fn unnamed() -> Result<File> {
    let parent = std::env::temp_dir();
    tempfile::tempfile_in(&parent).map_err(Error::file("create a temporary file in", &parent))
}

fn unlocked(parent: &Path, why: &str) -> Error {
    Error::Missing {
        tried: format!("lock a temporary folder in {}", parent.display()),
        why: why.to_owned(),
        remedy: "set TMPDIR to a folder on a local file system".to_owned(),
    }
}

/// The open folder, if its lock was free.
fn locked(dir: &Path) -> io::Result<Option<File>> {
    let file = File::open(dir)?;
    match file.try_lock() {
        Ok(()) => Ok(Some(file)),
        Err(TryLockError::WouldBlock) => Ok(None),
        Err(TryLockError::Error(error)) => Err(error),
    }
}

/// Removes the unlocked folders. One that cannot be removed stays for the system to clean up.
fn sweep(parent: &Path) {
    for name in files::folders(parent).unwrap_or_default() {
        let dir = parent.join(&name);
        let is_ours = || {
            fs::symlink_metadata(&dir).is_ok_and(|about| files::not_ours_alone(&about).is_none())
        };
        if name.starts_with(PREFIX) && is_ours() && matches!(locked(&dir), Ok(Some(_))) {
            let _ = files::remove_folder(&dir);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_that_cannot_be_locked_is_an_error_with_its_reason() {
        let parent = tempfile::tempdir().unwrap();
        let no_locks = |_: &Path| Err(io::Error::from_raw_os_error(37));
        let error = Scratch::create_in(parent.path(), no_locks).unwrap_err();
        assert!(error.to_string().contains("No locks available"), "{error}");
        let taken = |_: &Path| Ok(None);
        let error = Scratch::create_in(parent.path(), taken).unwrap_err();
        assert!(
            error.to_string().contains("other runs removed 16"),
            "{error}"
        );
        assert_eq!(files::folders(parent.path()).unwrap(), Vec::<String>::new());
    }

    #[test]
    fn an_unlocked_folder_is_swept_and_a_locked_one_is_not() {
        let parent = tempfile::tempdir().unwrap();
        let held = Scratch::create_in(parent.path(), locked).unwrap();
        fs::write(held.join("output"), "kept").unwrap();
        let killed = parent.path().join(".rungwise-scratch-1234/service");
        fs::create_dir_all(&killed).unwrap();
        let strangers = parent.path().join("rungwise-1234");
        fs::create_dir(&strangers).unwrap();
        let next = Scratch::create_in(parent.path(), locked).unwrap();
        assert!(!killed.exists() && !killed.parent().unwrap().exists());
        assert!(strangers.exists() && held.join("output").exists());
        let (first, second) = (held.join(""), next.join(""));
        assert_ne!(first, second);
        drop((held, next));
        assert!(!first.exists() && !second.exists());
    }
}
