//! A temporary folder for the files of one run: locked while the run lives, and swept by the next one if it was killed.
//!
//! The lock is a flock(2) on the folder itself, which the kernel releases however the process ends. Unlike a process id in the
//! name, it also holds for a process of another PID namespace that shares the temporary folder.

use std::fs::{self, File};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use tempfile::TempDir;

use crate::error::{Error, Result};
use crate::files;

/// Prefix of the names; distinctive, since folders with it are removed.
const PREFIX: &str = ".rungwise-scratch-";
/// Other runs that sweep at the same moment may take so many folders away before each is locked; a guess.
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
        Self::create_in(&std::env::temp_dir())
    }

    fn create_in(parent: &Path) -> Result<Self> {
        sweep(parent);
        for _ in 0..TRIES {
            let dir = tempfile::Builder::new()
                .prefix(PREFIX)
                .permissions(fs::Permissions::from_mode(0o755))
                .tempdir_in(parent)
                .map_err(Error::file("create a temporary folder in", parent))?;
            // Another run may sweep it before it is locked; then it does not exist any more.
            if let Some(lock) = locked(dir.path())
                && dir.path().exists()
            {
                return Ok(Self { dir, _lock: lock });
            }
        }
        Err(Error::Missing {
            tried: format!("lock a temporary folder in {}", parent.display()),
            why: "its file system refuses flock(2)".to_owned(),
            remedy: "set TMPDIR to a folder on a local file system".to_owned(),
        })
    }

    /// The path of a file or folder in it.
    pub fn join(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }
}

/// The open folder, if its lock was free.
fn locked(dir: &Path) -> Option<File> {
    let file = File::open(dir).ok()?;
    file.try_lock().is_ok().then_some(file)
}

/// Removes the unlocked folders. One that cannot be removed stays for the system to clean up.
fn sweep(parent: &Path) {
    for name in files::folders(parent).unwrap_or_default() {
        let dir = parent.join(&name);
        let is_ours = || {
            fs::symlink_metadata(&dir).is_ok_and(|about| files::not_ours_alone(&about).is_none())
        };
        if name.starts_with(PREFIX) && is_ours() && locked(&dir).is_some() {
            let _ = files::remove_folder(&dir);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_unlocked_folder_is_swept_and_a_locked_one_is_not() {
        let parent = tempfile::tempdir().unwrap();
        let held = Scratch::create_in(parent.path()).unwrap();
        fs::write(held.join("output"), "kept").unwrap();
        let killed = parent.path().join(".rungwise-scratch-1234/service");
        fs::create_dir_all(&killed).unwrap();
        let strangers = parent.path().join("rungwise-1234");
        fs::create_dir(&strangers).unwrap();
        let next = Scratch::create_in(parent.path()).unwrap();
        assert!(!killed.exists() && !killed.parent().unwrap().exists());
        assert!(strangers.exists() && held.join("output").exists());
        let (first, second) = (held.join(""), next.join(""));
        assert_ne!(first, second);
        drop((held, next));
        assert!(!first.exists() && !second.exists());
    }
}
