//! The first file system of a guest: an archive in cpio's "newc" form (Linux, Documentation/driver-api/early-userspace/buffer-format.rst).
#![expect(
    clippy::disallowed_methods,
    reason = "tests copy programs of the machine into a guest"
)]

use std::collections::BTreeSet;
use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::process::Command;

const FOLDER: u32 = 0o040_755;
const PROGRAM: u32 = 0o100_755;
const LINK: u32 = 0o120_777;

/// What the archive contains is named by its place in the guest, without the leading slash.
pub(super) struct Archive<W> {
    out: W,
    number: u32,
    names: BTreeSet<PathBuf>,
}

impl<W: Write> Archive<W> {
    pub(super) fn new(out: W) -> Self {
        Self {
            out,
            number: 0,
            names: BTreeSet::new(),
        }
    }

    fn entry(&mut self, name: &Path, mode: u32, data: &[u8]) -> io::Result<()> {
        self.number += 1;
        let name = name.to_string_lossy();
        let length = |bytes: usize| u32::try_from(bytes).map_err(io::Error::other);
        let fields = [
            self.number,
            mode,
            0,
            0,
            1,
            0,
            length(data.len())?,
            0,
            0,
            0,
            0,
            length(name.len() + 1)?,
            0,
        ];
        let mut head = String::from("070701");
        head.extend(fields.map(|field| format!("{field:08X}")));
        head.push_str(&name);
        head.push('\0');
        for part in [head.as_bytes(), data] {
            self.out.write_all(part)?;
            let padding = part.len().next_multiple_of(4) - part.len();
            self.out.write_all(&[0; 3][..padding])?;
        }
        Ok(())
    }

    /// A folder and those above it, each once.
    pub(super) fn folder(&mut self, name: &Path) -> io::Result<()> {
        let above: Vec<&Path> = name.ancestors().collect();
        for folder in above.into_iter().rev() {
            if !folder.as_os_str().is_empty() && self.names.insert(folder.to_owned()) {
                self.entry(folder, FOLDER, &[])?;
            }
        }
        Ok(())
    }

    pub(super) fn link(&mut self, name: &str, to: &str) -> io::Result<()> {
        self.entry(Path::new(name), LINK, to.as_bytes())
    }

    /// A file, unless there is one of that name.
    pub(super) fn file(&mut self, name: &Path, data: &[u8]) -> io::Result<()> {
        self.folder(name.parent().unwrap_or(Path::new("")))?;
        if self.names.insert(name.to_owned()) {
            self.entry(name, PROGRAM, data)?;
        }
        Ok(())
    }

    /// A program of this machine as `/usr/bin/NAME`, and the libraries that it loads.
    pub(super) fn program(&mut self, name: &str, program: &Path) -> io::Result<()> {
        let data = fs::read(program)?;
        self.file(&Path::new("usr/bin").join(name), &data)?;
        let listed = Command::new("ldd").arg(program).output()?;
        let listed = String::from_utf8_lossy(&listed.stdout).into_owned();
        for library in listed
            .split_whitespace()
            .filter(|word| word.starts_with('/'))
        {
            let place = library.trim_start_matches('/');
            // `/lib` is a link to `/usr/lib` in the guest.
            let place = if place.starts_with("usr/") {
                place.to_owned()
            } else {
                format!("usr/{place}")
            };
            self.file(Path::new(&place), &fs::read(library)?)?;
        }
        Ok(())
    }

    pub(super) fn end(mut self) -> io::Result<()> {
        self.entry(Path::new("TRAILER!!!"), 0, &[])?;
        self.out.flush()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entries_begin_at_multiples_of_four_and_folders_are_made_once() {
        let mut bytes = Vec::new();
        let mut archive = Archive::new(&mut bytes);
        archive.file(Path::new("a/b/c"), b"12345").unwrap();
        archive.file(Path::new("a/b/d"), b"").unwrap();
        archive.end().unwrap();
        let text = String::from_utf8(bytes).unwrap();
        let begins: Vec<usize> = text.match_indices("070701").map(|(at, _)| at).collect();
        assert_eq!(begins.len(), 5, "{text:?}");
        assert!(begins.iter().all(|at| at % 4 == 0), "{begins:?}");
        let padded = format!("12345{}070701", "\0".repeat(3));
        assert!(text.contains(&padded), "{text:?}");
    }
}
