//! The checkout: where it is and which files belong to it.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, Result, bail};

/// A checkout of the project.
#[derive(Clone, Debug)]
pub struct Tree {
    root: PathBuf,
}

impl Tree {
    /// The checkout that xtask was built in.
    pub fn ours() -> Self {
        Self::at(Path::new(env!("CARGO_MANIFEST_DIR")).join(".."))
    }

    /// The checkout at `root`.
    pub fn at(root: impl Into<PathBuf>) -> Self {
        let root = root.into();
        let root = root.canonicalize().unwrap_or(root);
        Self { root }
    }

    /// Its top folder.
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// `path` below the top folder.
    pub fn join(&self, path: impl AsRef<Path>) -> PathBuf {
        self.root.join(path)
    }

    /// Text of a file of the checkout.
    pub fn read(&self, path: impl AsRef<Path>) -> Result<String> {
        let path = self.join(path);
        std::fs::read_to_string(&path).with_context(|| format!("cannot read {}", path.display()))
    }

    /// Writes a file of the checkout and the folders above it.
    pub fn write(&self, path: impl AsRef<Path>, text: &str) -> Result<()> {
        let path = self.join(path);
        if let Some(folder) = path.parent() {
            std::fs::create_dir_all(folder)
                .with_context(|| format!("cannot create {}", folder.display()))?;
        }
        std::fs::write(&path, text).with_context(|| format!("cannot write {}", path.display()))
    }

    /// Every file of the project, sorted, relative to the top: what git tracks or would track.
    /// Without git (a source archive) every file below the top outside `target` and `runs`.
    pub fn files(&self) -> Result<Vec<String>> {
        let listed = Command::new("git")
            .args([
                "ls-files",
                "-z",
                "--cached",
                "--others",
                "--exclude-standard",
            ])
            .current_dir(&self.root)
            .output();
        let mut files: BTreeSet<String> = BTreeSet::new();
        match listed {
            Ok(out) if out.status.success() && self.join(".git").exists() => {
                let names = String::from_utf8_lossy(&out.stdout);
                files.extend(names.split_terminator('\0').map(str::to_owned));
            }
            _ => walk(&self.root, &self.root, &mut files)?,
        }
        // A file that is deleted but not yet committed is still listed.
        files.retain(|file| self.join(file).is_file());
        Ok(files.into_iter().collect())
    }

    /// The same, only those whose name ends in `suffix`.
    pub fn files_ending(&self, suffix: &str) -> Result<Vec<String>> {
        let mut files = self.files()?;
        files.retain(|file| file.ends_with(suffix));
        Ok(files)
    }

    /// The cargo that runs us, started at the top of the checkout.
    pub fn cargo(&self) -> Command {
        let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
        let mut command = Command::new(cargo);
        command.current_dir(&self.root);
        command
    }
}

fn walk(top: &Path, folder: &Path, files: &mut BTreeSet<String>) -> Result<()> {
    let entries =
        std::fs::read_dir(folder).with_context(|| format!("cannot list {}", folder.display()))?;
    for entry in entries {
        let path = entry?.path();
        let Some(name) = path.strip_prefix(top).ok().and_then(Path::to_str) else {
            bail!("cannot use the name of {}: not UTF-8", path.display());
        };
        if [".git", "target", "runs"].contains(&name) || name.ends_with("/target") {
            continue;
        }
        if path.is_dir() {
            walk(top, &path, files)?;
        } else {
            files.insert(name.to_owned());
        }
    }
    Ok(())
}
