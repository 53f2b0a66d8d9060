//! Files around a JVM that is asked: those that it writes for us, and its program.
//!
//! A diagnostic command such as `Thread.dump_to_file` writes where the JVM can, so the file is in the JVM's own `/tmp`, under a name of ours.

use std::fs::{self, File};
use std::hash::{BuildHasher as _, Hasher as _, RandomState};
use std::io;
use std::os::unix::fs::{FileExt as _, MetadataExt as _};
use std::path::{Path, PathBuf};
use std::time::Duration;

use super::{Error, Jvm, LONGEST, Result, within};
use crate::files;

/// Beginning of the name of a file that a JVM writes for us.
const WRITTEN: &str = ".rungwise-jvm-";
/// A file of that name that is older was left by a run that was killed: no command takes as long.
const LEFT_AFTER: Duration = Duration::from_mins(10);

/// Removes files of runs that were killed.
fn sweep(folder: &File, uid: u32) {
    let Ok(entries) = fs::read_dir(within(folder, "")) else {
        return;
    };
    for entry in entries.flatten() {
        let is_ours = entry
            .file_name()
            .to_str()
            .is_some_and(|name| name.starts_with(WRITTEN));
        let is_old = |about: &fs::Metadata| {
            let age = about.modified().ok().and_then(|then| then.elapsed().ok());
            about.uid() == uid && age.is_some_and(|age| age > LEFT_AFTER)
        };
        if is_ours && entry.metadata().is_ok_and(|about| is_old(&about)) {
            let _ = fs::remove_file(entry.path());
        }
    }
}

/// A file that a JVM writes, removed when dropped.
pub(super) struct Written {
    /// Its name in the `/tmp` of the JVM.
    pub(super) name: String,
    path: PathBuf,
    uid: u32,
}

impl Written {
    /// One that the JVM of this user may write into its `/tmp`. Its name cannot be guessed, and the JVM refuses to write where a file is
    /// already. Files of runs that were killed are removed.
    pub(super) fn in_tmp(folder: &File, uid: u32) -> Self {
        sweep(folder, uid);
        let seed = RandomState::new().build_hasher().finish();
        let name = format!("{WRITTEN}{seed:016x}.json");
        let path = within(folder, &name);
        Self { name, path, uid }
    }

    pub(super) fn read(&self) -> io::Result<Vec<u8>> {
        files::read_of_user(&self.path, self.uid, LONGEST)
    }
}

impl Drop for Written {
    fn drop(&mut self) {
        // Without it there is nothing left to remove.
        let _ = fs::remove_file(&self.path);
    }
}

/// The places of compiled methods in the memory of a JVM.
#[derive(Debug)]
pub struct PerfMap {
    /// The text of the file.
    pub bytes: Vec<u8>,
    /// It was there already, and is left there.
    pub is_old: bool,
}

impl Jvm {
    /// The perf map of the JVM: `/tmp/perf-PID.map`, as it is where there is one, else written by `Compiler.perfmap` (JDK 17 and later)
    /// and removed again.
    ///
    /// # Errors
    ///
    /// As for [`Jvm::command`], or the JVM wrote no such file.
    pub fn perf_map(&self, within_time: Duration) -> Result<PerfMap> {
        const COMMAND: &str = "Compiler.perfmap";
        self.as_its_user(|| {
            let Some(folder) = &self.folders[1] else {
                return Err(self.refused(COMMAND, "its /tmp is not open"));
            };
            let path = within(folder, &format!("perf-{}.map", self.inner));
            let is_old = fs::symlink_metadata(&path).is_ok();
            let uid = self.user.0;
            // Before the command: a JVM that is given up may write it still.
            let _removed = (!is_old).then(|| Written {
                name: String::new(),
                path: path.clone(),
                uid,
            });
            if !is_old {
                self.ask(COMMAND, within_time)?;
            }
            let read = files::read_of_user(&path, uid, LONGEST);
            let bytes = read.map_err(|error| Error::NoFile {
                pid: self.pid,
                command: COMMAND.to_owned(),
                why: error.to_string(),
            })?;
            Ok(PerfMap { bytes, is_old })
        })
    }
}

/// Whether an ELF program has the section in which `native-image` of `GraalVM` keeps the initial heap.
pub(super) fn is_native_image(program: &Path) -> bool {
    /// Names of sections take some hundred bytes.
    const NAMES: u64 = 1 << 16;
    let names = || -> io::Result<Vec<u8>> {
        let file = File::open(program)?;
        let mut header = [0; 64];
        file.read_exact_at(&mut header, 0)?;
        let half = |at: usize| u64::from(u16::from_le_bytes([header[at], header[at + 1]]));
        let mut first = [0; 8];
        first.copy_from_slice(&header[40..48]);
        // Of 64 bits and little-endian: e_shoff, e_shentsize, e_shstrndx.
        if &header[..6] != b"\x7fELF\x02\x01" {
            return Ok(Vec::new());
        }
        let at = u64::from_le_bytes(first).saturating_add(half(58) * half(62));
        let mut section = [0; 64];
        file.read_exact_at(&mut section, at)?;
        let number = |at: usize| {
            let mut bytes = [0; 8];
            bytes.copy_from_slice(&section[at..at + 8]);
            u64::from_le_bytes(bytes)
        };
        let mut names = vec![0; number(32).min(NAMES) as usize];
        file.read_exact_at(&mut names, number(24))?;
        Ok(names)
    };
    names().is_ok_and(|names| {
        let mut names = names.split(|byte| *byte == 0);
        names.any(|name| name == b".svm_heap")
    })
}
