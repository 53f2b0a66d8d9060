//! The journal's file: appended, locked while in use, removed when nothing is left.
//!
//! The lock is flock(2) on the journal itself. Its holder may undo: the session while it lives, else the guard or
//! `rungwise knob undo`, whichever comes first. The kernel releases it however a process ends. Journals are in
//! `STATE/journals` and are numbered, so that the newest is undone first.

use std::fs::{File, Metadata, OpenOptions, TryLockError};
use std::io::{self, Read as _, Write as _};
use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};

use rungwise_host::files;

use super::Log;
use crate::error::{Error, Result};

/// Longest journal that is read; the longest ladder writes a hundredth of it.
const LONGEST: u64 = 64 << 20;

/// The end of a journal's name while it is open.
const OPEN: &str = "jsonl";

/// An open journal and its lock.
#[derive(Debug)]
pub struct JournalFile {
    file: File,
    path: PathBuf,
    length: u64,
    /// A half-written line could not be cut off: nothing may be appended after it.
    broken: bool,
}

/// A watched journal. It is identified by its file, not by its name: numbers are reused, and a guard must not undo a
/// later session instead of its own.
#[derive(Debug)]
pub struct Watched {
    file: File,
    path: PathBuf,
}

/// What became of an attempt to take over a journal.
#[derive(Debug)]
pub enum Claim {
    /// It is ours to work on.
    Ours(JournalFile, Vec<u8>),
    /// Another process holds it.
    Held(Vec<u8>),
    /// It is gone: another process ended it.
    Gone,
}

/// An open journal in the state directory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stored {
    /// The file.
    pub path: PathBuf,
    /// Its number; a higher one is newer.
    pub number: u64,
}

impl JournalFile {
    /// Makes a new journal in `state/journals` and locks it.
    pub(crate) fn create(state: &Path) -> Result<Self> {
        let dir = state.join("journals");
        files::create_dir_all(&dir).map_err(|error| Error::Journal {
            tried: "create the directory of",
            path: dir.clone(),
            answer: io::Error::other(error.to_string()),
        })?;
        // Those set aside keep their numbers.
        let names = files::list(&dir).map_err(journal("list the others next to", &dir))?;
        let taken = names
            .iter()
            .filter_map(|name| name.split('.').next()?.parse::<u32>().ok());
        let mut number = taken.max().map_or(1, |last| u64::from(last) + 1);
        loop {
            let path = dir.join(format!("{number:06}.{OPEN}"));
            let opened = OpenOptions::new()
                .read(true)
                .append(true)
                .create_new(true)
                .mode(0o600)
                .open(&path);
            match opened {
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => number += 1,
                Err(answer) => return Err(journal("create", &path)(answer)),
                Ok(file) => {
                    // A reader (`knob verify`) may hold it for a moment, and an undo, too: it is still empty, so they
                    // remove it.
                    file.lock().map_err(journal("lock", &path))?;
                    let made = Watched { file, path };
                    if !made.still_there() {
                        continue;
                    }
                    files::sync_dir(&dir).map_err(journal("sync the directory of", &made.path))?;
                    return Ok(Self {
                        file: made.file,
                        path: made.path,
                        length: 0,
                        broken: false,
                    });
                }
            }
        }
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Cuts off what follows the last complete line, so that the next line starts cleanly.
    pub(crate) fn cut(&mut self, whole: usize) -> io::Result<()> {
        let whole = whole as u64;
        if whole < self.length {
            self.file.set_len(whole)?;
            self.length = whole;
        }
        Ok(())
    }

    /// Removes the journal: everything it is about has ended.
    pub(crate) fn remove(self) -> Result<()> {
        files::remove(&self.path).map_err(|error| Error::Journal {
            tried: "remove",
            path: self.path.clone(),
            answer: io::Error::other(error.to_string()),
        })
    }

    /// Renames the journal so that it is not read again, but kept for people to read.
    pub(crate) fn set_aside(self) -> Result<PathBuf> {
        let aside = self.path.with_extension("closed");
        std::fs::rename(&self.path, &aside).map_err(journal("set aside", &self.path))?;
        Ok(aside)
    }
}

impl Log for JournalFile {
    fn append(&mut self, lines: &[u8], durable: bool) -> io::Result<()> {
        if self.broken {
            return Err(io::Error::other("an earlier line could not be completed"));
        }
        let written = self.file.write_all(lines).and_then(|()| {
            if durable {
                self.file.sync_data()
            } else {
                Ok(())
            }
        });
        match written {
            Ok(()) => {
                self.length += lines.len() as u64;
                Ok(())
            }
            Err(error) => {
                self.broken = self.file.set_len(self.length).is_err();
                Err(error)
            }
        }
    }
}

/// The open journals below `state`, the newest first.
pub fn stored(state: &Path) -> Result<Vec<Stored>> {
    let dir = state.join("journals");
    let names = match files::list(&dir) {
        Ok(names) => names,
        Err(error) if error.kind() == io::ErrorKind::NotFound => Vec::new(),
        Err(answer) => return Err(journal("look for", &dir)(answer)),
    };
    let mut found: Vec<Stored> = names
        .iter()
        .filter_map(|name| {
            let number: u32 = name.strip_suffix(OPEN)?.strip_suffix('.')?.parse().ok()?;
            let path = dir.join(name);
            let number = number.into();
            Some(Stored { path, number })
        })
        .collect();
    found.sort_by_key(|stored| std::cmp::Reverse(stored.number));
    Ok(found)
}

impl Watched {
    /// Opens the journal at `path`; `None` if there is none.
    pub fn open(path: &Path) -> Result<Option<Self>> {
        let path = path.to_owned();
        match OpenOptions::new().read(true).append(true).open(&path) {
            Ok(file) => Ok(Some(Self { file, path })),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(answer) => Err(journal("open", &path)(answer)),
        }
    }

    /// It has not been removed or set aside. Another journal of the same name is another journal.
    pub fn still_there(&self) -> bool {
        let same =
            |mine: Metadata, now: Metadata| (mine.dev(), mine.ino()) == (now.dev(), now.ino());
        self.file
            .metadata()
            .is_ok_and(|mine| std::fs::metadata(&self.path).is_ok_and(|now| same(mine, now)))
    }

    /// Takes it over; with `wait`, as soon as its holder releases it.
    ///
    /// A journal that another user owns or may write is refused: undoing it would execute their commands.
    pub fn claim(mut self, wait: bool) -> Result<Claim> {
        let ours = if wait {
            self.file.lock().map(|()| true)
        } else {
            match self.file.try_lock() {
                Ok(()) => Ok(true),
                Err(TryLockError::WouldBlock) => Ok(false),
                Err(TryLockError::Error(error)) => Err(error),
            }
        };
        let ours = ours.map_err(journal("lock", &self.path))?;
        if !self.still_there() {
            return Ok(Claim::Gone);
        }
        let about = self.file.metadata();
        let about = about.map_err(journal("examine", &self.path))?;
        let why = if !about.is_file() {
            Some("it is not a regular file".to_owned())
        } else if about.len() > LONGEST {
            Some(format!("it is {} bytes long", about.len()))
        } else {
            files::not_ours_alone(&about)
        };
        let Self { file, path } = &mut self;
        if let Some(why) = why {
            let path = path.clone();
            return Err(Error::Distrusted { path, why });
        }
        let mut bytes = Vec::new();
        file.read_to_end(&mut bytes)
            .map_err(journal("read", path))?;
        if !ours {
            return Ok(Claim::Held(bytes));
        }
        let journal = JournalFile {
            file: self.file,
            path: self.path,
            length: bytes.len() as u64,
            broken: false,
        };
        Ok(Claim::Ours(journal, bytes))
    }
}

fn journal(tried: &'static str, path: &Path) -> impl FnOnce(io::Error) -> Error {
    let path = path.to_owned();
    move |answer| Error::Journal {
        tried,
        path,
        answer,
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicBool, Ordering};

    use super::*;

    #[test]
    fn a_journal_that_was_undone_before_it_was_locked_is_made_again() {
        let state = tempfile::tempdir().unwrap();
        let over = AtomicBool::new(false);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                while !over.load(Ordering::Relaxed) {
                    for empty in stored(state.path()).unwrap() {
                        let watched = Watched::open(&empty.path).unwrap();
                        if let Some(Claim::Ours(file, _)) =
                            watched.map(|it| it.claim(false).unwrap())
                        {
                            file.remove().unwrap();
                        }
                    }
                }
            });
            for nth in 0..2000 {
                let made = JournalFile::create(state.path()).unwrap();
                let (mine, there) = (made.file.metadata(), std::fs::metadata(made.path()));
                let same = there.is_ok_and(|there| there.ino() == mine.unwrap().ino());
                if !same {
                    over.store(true, Ordering::Relaxed);
                }
                assert!(same, "journal {nth} is in no folder");
            }
            over.store(true, Ordering::Relaxed);
        });
    }
}
