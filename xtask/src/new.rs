//! `cargo xtask new`: the stub of a new part in the layout of the house, and its entry in the registry.
//!
//! A stub compiles, so that the tree stays usable while it is being filled in, and carries the word
//! [`STUB`] wherever something is missing; a house test refuses that word, so none is ever called done.
//! The registries are plain text: a `mod` line and an entry in a sorted slice, which is all that
//! [`enter`] knows about Rust.

pub mod knob;
mod probe;
mod rule;
mod workload;

use std::path::Path;
use std::process::{Command, ExitCode};

use anyhow::{Context as _, Result, bail};

use crate::tree::Tree;

/// Stands wherever a stub must be filled in.
pub const STUB: &str = concat!("TO-BE-", "WRITTEN");

/// What can be added.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum Kind {
    /// Judges evidence: TOPIC/ID, named after the problem.
    Rule,
    /// A setting of a machine or a service: SCOPE.NAME, the system's own name.
    Knob,
    /// Reads a machine: SUBJECT/ID, named after its source.
    Probe,
    /// Makes traffic: ID, named after its shape.
    Workload,
}

/// Writes the stub for `id`; refuses to touch what exists.
pub fn run(tree: &Tree, kind: Kind, id: &str, scope: knob::Scope) -> Result<ExitCode> {
    let mut draft = Draft::new(tree);
    match kind {
        Kind::Rule => rule::write(&mut draft, id)?,
        Kind::Knob => knob::write(&mut draft, id, scope)?,
        Kind::Probe => probe::write(&mut draft, id)?,
        Kind::Workload => workload::write(&mut draft, id)?,
    }
    draft.commit()?;
    Ok(ExitCode::SUCCESS)
}

/// Files to be written, all or none.
struct Draft<'a> {
    tree: &'a Tree,
    files: Vec<(String, String)>,
}

impl<'a> Draft<'a> {
    fn new(tree: &'a Tree) -> Self {
        Self {
            tree,
            files: Vec::new(),
        }
    }

    /// A new file; one that exists is an error, because a stub must never replace work.
    fn create(&mut self, path: impl Into<String>, text: impl Into<String>) -> Result<()> {
        let path = path.into();
        if self.tree.join(&path).exists() {
            bail!("cannot write a stub to {path}: it exists; choose another id or edit the file");
        }
        self.files.push((path, text.into()));
        Ok(())
    }

    /// The text of a file as it will be: drafted or on disk.
    fn text(&self, path: &str) -> Option<String> {
        let drafted = self.files.iter().find(|(file, _)| file == path);
        drafted
            .map(|(_, text)| text.clone())
            .or_else(|| self.tree.read(path).ok())
    }

    /// Changes a file, or starts it with `first` if there is none.
    fn edit(
        &mut self,
        path: &str,
        first: &str,
        change: impl FnOnce(&str) -> Result<String>,
    ) -> Result<()> {
        let old = self.text(path).unwrap_or_else(|| first.to_owned());
        let new = change(&old).with_context(|| format!("cannot edit {path}"))?;
        self.files.retain(|(file, _)| file != path);
        self.files.push((path.to_owned(), new));
        Ok(())
    }

    fn commit(self) -> Result<()> {
        for (path, text) in &self.files {
            self.tree.write(path, text)?;
            eprintln!("xtask: wrote {path}");
        }
        let rust = self.files.iter().map(|(path, _)| Path::new(path));
        let rust = rust.filter(|path| path.extension().is_some_and(|end| end == "rs"));
        let status = Command::new("rustfmt")
            .args(["--edition", "2024"])
            .args(rust)
            .current_dir(self.tree.root())
            .stderr(std::process::Stdio::null())
            .status();
        if !status.is_ok_and(|status| status.success()) {
            eprintln!("xtask: run `cargo fmt`");
        }
        eprintln!("xtask: replace every {STUB}; the house tests reject it");
        Ok(())
    }
}

/// An id in two parts, such as `tcp/accept-queue-overflow` or `net.rps_cpus`.
struct Id<'a> {
    folder: &'a str,
    name: &'a str,
}

impl<'a> Id<'a> {
    /// Splits at the first `mark`; both parts are lower case words.
    fn split(id: &'a str, mark: char, example: &str) -> Result<Self> {
        let Some((folder, name)) = id.split_once(mark) else {
            bail!("cannot use the id {id}: it lacks {mark:?}; write it like {example}");
        };
        word(folder, example)?;
        word(name, example)?;
        Ok(Self { folder, name })
    }

    /// The Rust module for the second part.
    fn module(&self) -> String {
        module(self.name)
    }
}

/// The Rust module for a word of an id.
fn module(word: &str) -> String {
    word.replace(['-', '.'], "_")
}

/// Accepts lower case letters, digits and inner `-`, `_`, `.`; starts with a letter.
fn word(word: &str, example: &str) -> Result<()> {
    let plain = word.starts_with(|c: char| c.is_ascii_lowercase())
        && word
            .chars()
            .all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || "-_.".contains(c))
        && !word.ends_with(['-', '_', '.']);
    if !plain {
        bail!("cannot use {word:?} in an id: use lower-case words, for example {example}");
    }
    Ok(())
}

/// Adds `mod module;` in order among the `mod` lines, like them public or not.
fn add_mod(text: &str, module: &str) -> Result<String> {
    let name_of = |line: &str| -> Option<String> {
        let (_, rest) = line.split_once("mod ")?;
        let name = rest.strip_suffix(';')?;
        (line.starts_with("mod ") || line.starts_with("pub")).then(|| name.to_owned())
    };
    let mut lines: Vec<String> = text.lines().map(str::to_owned).collect();
    let mods: Vec<(usize, String)> = lines
        .iter()
        .enumerate()
        .filter_map(|(at, line)| Some((at, name_of(line)?)))
        .collect();
    if mods.iter().any(|(_, name)| name == module) {
        bail!("module {module} is already registered");
    }
    let (at, prefix) = match mods.last() {
        None => {
            // Below the opening comment and the inner attributes.
            let at = lines
                .iter()
                .position(|line| !line.starts_with("//") && !line.starts_with("#!"));
            let at = at.unwrap_or(lines.len());
            lines.insert(at, String::new());
            (at + 1, String::new())
        }
        Some((last, _)) => {
            let next = mods.iter().find(|(_, name)| name.as_str() > module);
            let like = next.map_or(*last, |(at, _)| *at);
            let prefix = lines[like]
                .split("mod ")
                .next()
                .unwrap_or_default()
                .to_owned();
            (next.map_or(last + 1, |(at, _)| *at), prefix)
        }
    };
    lines.insert(at, format!("{prefix}mod {module};"));
    Ok(lines.join("\n") + "\n")
}

/// Adds `entry` to the slice that `opening` starts, in the order of a key of each entry.
fn add_entry_by(
    text: &str,
    opening: &str,
    entry: &str,
    key: impl Fn(&str) -> String,
) -> Result<String> {
    let at = text
        .find(opening)
        .with_context(|| format!("no slice opens with `{opening}`"))?;
    let start = at + opening.len();
    let length = text[start..].find("];").context("the slice has no end")?;
    let inside = &text[start..start + length];
    if inside.contains("//") {
        bail!("the slice contains comments, which would be lost; add `{entry}` by hand");
    }
    let mut entries: Vec<&str> = inside
        .split(',')
        .map(str::trim)
        .filter(|e| !e.is_empty())
        .collect();
    if entries.contains(&entry) {
        bail!("`{entry}` is already registered");
    }
    let at = entries.partition_point(|other| key(other) < key(entry));
    entries.insert(at, entry);
    let body = entries.join(",\n    ");
    Ok(format!(
        "{}\n    {body},\n{}",
        &text[..start],
        &text[start + length..]
    ))
}

/// Adds `entry` to the slice of `registry` in the order of ids, which do not follow from the entries.
fn enter_by_id(
    draft: &mut Draft<'_>,
    registry: &str,
    opening: &str,
    entry: &str,
    id: &str,
) -> Result<()> {
    let known = ids(draft, registry, opening)?;
    if known.iter().any(|(_, other)| other == id) {
        bail!("cannot add {id}: it exists");
    }
    draft.edit(registry, "", |text| {
        add_entry_by(text, opening, entry, |other| {
            let found = known.iter().find(|(entry, _)| entry == other);
            found.map_or_else(|| id.to_owned(), |(_, id)| id.clone())
        })
    })
}

/// Every entry of the slice with its id, which is read from the file of the entry.
fn ids(draft: &Draft<'_>, registry: &str, opening: &str) -> Result<Vec<(String, String)>> {
    let text = draft
        .text(registry)
        .with_context(|| format!("cannot read {registry}"))?;
    let source = registry.trim_end_matches("/lib.rs");
    let (_, rest) = text
        .split_once(opening)
        .with_context(|| format!("no slice of {registry} opens with `{opening}`"))?;
    let inside = rest.split("];").next().unwrap_or_default();
    let entries = inside.split(',').map(str::trim);
    entries
        .filter(|entry| !entry.is_empty())
        .map(|entry| {
            let id = id_of(draft, source, entry)
                .with_context(|| format!("cannot find the id of `{entry}` below {source}"))?;
            Ok((entry.to_owned(), id))
        })
        .collect()
}

/// The id of the entry `&topic::file::NAME`: the first text in the definition of `NAME`.
fn id_of(draft: &Draft<'_>, source: &str, entry: &str) -> Option<String> {
    let (path, name) = entry.strip_prefix('&')?.rsplit_once("::")?;
    let path = format!("{source}/{}", path.replace("::", "/"));
    let text = draft
        .text(&format!("{path}.rs"))
        .or_else(|| draft.text(&format!("{path}/mod.rs")))?;
    let (_, definition) = text.split_once(&format!("static {name}: "))?;
    Some(definition.split('"').nth(1)?.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `text` with a `mod` line and an entry, both in order.
    fn enter(text: &str, module: &str, opening: &str, entry: &str) -> Result<String> {
        let text = add_mod(text, module)?;
        add_entry_by(&text, opening, entry, str::to_owned)
    }

    #[test]
    fn an_entry_keeps_mod_lines_and_slice_sorted() {
        let text = "//! Knobs.\n\nmod alpha;\nmod gamma;\n\npub const ALL: &[&Knob] = &[&alpha::KNOB, &gamma::KNOB];\n";
        let new = enter(text, "beta", "ALL: &[&Knob] = &[", "&beta::KNOB").unwrap();
        assert_eq!(
            new,
            "//! Knobs.\n\nmod alpha;\nmod beta;\nmod gamma;\n\npub const ALL: &[&Knob] = &[\n    &alpha::KNOB,\n    &beta::KNOB,\n    &gamma::KNOB,\n];\n"
        );
        let last = enter(&new, "omega", "ALL: &[&Knob] = &[", "&omega::KNOB").unwrap();
        assert!(last.contains("mod gamma;\nmod omega;\n"), "{last}");
    }

    #[test]
    fn the_first_entry_goes_below_the_opening_comment() {
        let new = enter(
            "//! Rules.\nconst R: &[&Rule] = &[];\n",
            "one",
            "R: &[&Rule] = &[",
            "&one::RULE",
        )
        .unwrap();
        assert_eq!(
            new,
            "//! Rules.\n\nmod one;\nconst R: &[&Rule] = &[\n    &one::RULE,\n];\n"
        );
    }

    #[test]
    fn an_entry_is_never_made_twice() {
        let text = "mod one;\nconst R: &[&Rule] = &[&one::RULE];\n";
        assert!(enter(text, "one", "R: &[&Rule] = &[", "&one::RULE").is_err());
    }

    #[test]
    fn ids_that_are_no_module_names_are_refused() {
        for id in [
            "Net.foo",
            "net.",
            ".foo",
            "net.foo bar",
            "net.../x",
            "net.foo-",
        ] {
            assert!(Id::split(id, '.', "net.rps_cpus").is_err(), "{id}");
        }
        assert_eq!(
            Id::split("net.core.somaxconn", '.', "x").unwrap().module(),
            "core_somaxconn"
        );
    }
}
