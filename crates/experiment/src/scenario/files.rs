//! Files of a service: texts that are written into its scratch folder before each start, and the parts of them that switches change.
//!
//! The braces of a configuration file are its own (nginx, JSON, Caddy), so only `{name}` of a name that stands for something is replaced:
//! those of [`super::PLACEHOLDERS`] and the switches. A slip in such a name would go unnoticed where the service ignores it, so a
//! name that is nearly known is refused; doubled braces write it as it is. `${name}` is a variable of the file.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Component, Path};

use super::fill::{FillError, Places};
use super::problem::{Collector, Problem, did_you_mean, in_order};
use super::{Effect, Problems, Scenario, Service, Started, Switches};

/// A template is read to this many bytes: more is no configuration.
pub const LARGEST: u64 = 1 << 20;
/// From this likeness on a name is a slip: one letter in four, a guess. `cpu` is one of `cpus`, `service` none of `server`.
const SLIP: f64 = 0.75;

/// Where the text of a file comes from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Source {
    /// The scenario contains it.
    Inline(String),
    /// Another file contains it.
    Template {
        /// Path of that file.
        path: String,
        /// Its text, once it was read.
        text: Option<String>,
    },
}

impl Source {
    fn text(&self) -> Option<&str> {
        match self {
            Self::Inline(text) => Some(text),
            Self::Template { text, .. } => text.as_deref(),
        }
    }
}

/// Where the scenario names files and texts for them, for messages that are still to be written.
#[derive(Clone, Debug, Default)]
pub(super) struct Named {
    /// The files that are read from elsewhere, by name.
    pub(super) templates: BTreeMap<String, Problem>,
    /// The switches with a text, by id.
    pub(super) switches: BTreeMap<String, Problem>,
}

/// A part of a file's text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Part<'t> {
    /// As it is.
    Text(&'t str),
    /// `{name}`: a known name, or one that is nearly known.
    Name(&'t str),
}

/// The parts of `text`, where `known` are the names that stand for something.
fn parts<'t>(text: &'t str, known: &BTreeSet<&str>) -> Vec<Part<'t>> {
    let mut parts = Vec::new();
    let (mut from, mut at) = (0, 0);
    while let Some(found) = text[at..].find('{') {
        let brace = at + found;
        at = brace + 1;
        // No name is so long, or contains another brace.
        let name = text[at..]
            .split(['{', '}', '\n'])
            .next()
            .unwrap_or_default();
        if !text[at + name.len()..].starts_with('}') {
            continue;
        }
        let before = &text[..brace];
        if before.ends_with('$') || !(known.contains(name) || is_slip(name, known)) {
            continue;
        }
        let end = at + name.len() + 1;
        if before.ends_with('{') && text[end..].starts_with('}') {
            // Doubled braces: without the outer ones it is what the file should contain.
            parts.extend([
                Part::Text(&text[from..brace - 1]),
                Part::Text(&text[brace..end]),
            ]);
            (from, at) = (end + 1, end + 1);
        } else {
            parts.extend([Part::Text(&text[from..brace]), Part::Name(name)]);
            (from, at) = (end, end);
        }
    }
    parts.push(Part::Text(&text[from..]));
    parts
}

/// Whether someone who wrote this between braces meant one of the known names.
fn is_slip(name: &str, known: &BTreeSet<&str>) -> bool {
    let word = name.starts_with(|c: char| c.is_ascii_alphabetic())
        && name
            .chars()
            .all(|c| c.is_ascii_alphanumeric() || "_.-".contains(c));
    let family = |name: &str| name.split_once('.').map(|(family, _)| family.to_owned());
    let meant = |known: &str| {
        strsim::normalized_damerau_levenshtein(name, known) >= SLIP
            || (family(name).is_some() && family(name) == family(known))
    };
    word && known.iter().any(|known| meant(known))
}

/// The names that stand for something in a file of a service with these switches.
fn known(switches: &Switches) -> BTreeSet<&str> {
    let own = super::PLACEHOLDERS.iter().map(|(name, _)| *name);
    let texts = switches.iter().filter(|(_, values)| has_text(values));
    own.chain(texts.map(|(id, _)| id.as_str())).collect()
}

fn has_text(values: &BTreeMap<String, Effect>) -> bool {
    values
        .values()
        .any(|effect| matches!(effect, Effect::Text(_)))
}

/// Replaces the names in a file's text by what `value` gives for them.
fn fill(
    text: &str,
    known: &BTreeSet<&str>,
    value: impl Fn(&str) -> Result<Option<String>, FillError>,
) -> Result<String, FillError> {
    let mut filled = String::with_capacity(text.len());
    for part in parts(text, known) {
        match part {
            Part::Text(text) => filled.push_str(text),
            Part::Name(name) => {
                let found = value(name)?;
                filled.push_str(&found.ok_or_else(|| FillError::Slip {
                    name: name.to_owned(),
                    near: did_you_mean(name, known.iter().copied()),
                })?);
            }
        }
    }
    Ok(filled)
}

impl Started {
    /// The files for these values of the switches, by name; `value_of` gives the value of a switch.
    pub(super) fn filled<'s>(
        &self,
        places: &Places,
        value_of: impl Fn(&str) -> Option<&'s str>,
    ) -> Result<BTreeMap<String, String>, FillError> {
        let known = known(&self.switches);
        let own = super::PLACEHOLDERS.iter().map(|(name, _)| *name).collect();
        let of_switch = |id: &str| {
            let Some(values) = self.switches.get(id).filter(|values| has_text(values)) else {
                return Ok(None);
            };
            let value = value_of(id);
            let effect = values.get(value.unwrap_or(super::OFF));
            let Some(Effect::Text(text)) = effect else {
                return Ok(Some(String::new()));
            };
            fill(text, &own, |name| places.value(name)).map(Some)
        };
        let value = |name: &str| match places.value(name)? {
            Some(value) => Ok(Some(value)),
            None => of_switch(name),
        };
        let texts = self.files.iter();
        texts
            .filter_map(|(name, source)| Some((name, source.text()?)))
            .map(|(name, text)| Ok((name.clone(), fill(text, &known, value)?)))
            .collect()
    }
}

/// Why a file cannot have this name below the scratch folder.
pub(super) fn misnamed(name: &str) -> Option<String> {
    let mut components = Path::new(name).components();
    let fine = !name.is_empty()
        && !name.ends_with('/')
        && !name.chars().any(char::is_control)
        && components.all(|part| matches!(part, Component::Normal(_)));
    (!fine).then(|| {
        format!(
            "'{name}' is not the name of a file below {{scratch}}; write it as server.conf or conf.d/site.conf"
        )
    })
}

/// Why two files cannot have these names.
pub(super) fn conflict(name: &str, other: &str) -> Option<String> {
    let (path, other_path) = (Path::new(name), Path::new(other));
    let (file, below) = match (path.starts_with(other_path), other_path.starts_with(path)) {
        (true, true) => {
            return Some(format!(
                "'{name}' and '{other}' name the same file; remove one of them"
            ));
        }
        (true, false) => (other, name),
        (false, true) => (name, other),
        (false, false) => return None,
    };
    Some(format!(
        "'{file}' is a file, so '{below}' cannot be below it; rename one of them"
    ))
}

/// A name in a text that cannot be replaced.
pub(super) struct Mistake {
    /// The name.
    pub(super) name: String,
    /// The byte of its brace.
    pub(super) at: usize,
    /// What is wrong with it.
    pub(super) why: String,
}

/// The names that cannot be replaced in the text of a file, or else of a switch; each where it is first.
pub(super) fn mistakes(text: &str, switches: &Switches, of_file: bool) -> Vec<Mistake> {
    let all = known(switches);
    let own: BTreeSet<&str> = super::PLACEHOLDERS.iter().map(|(name, _)| *name).collect();
    let replaced = if of_file { &all } else { &own };
    let mut mistakes: Vec<Mistake> = Vec::new();
    let mut at = 0;
    for part in parts(text, &all) {
        let name = match part {
            Part::Text(part) => {
                // Doubled braces leave out a byte before and behind.
                at = part.as_ptr() as usize - text.as_ptr() as usize + part.len();
                continue;
            }
            Part::Name(name) => name,
        };
        if replaced.contains(name) || mistakes.iter().any(|known| known.name == name) {
            continue;
        }
        let why = if all.contains(name) {
            format!(
                "'{{{name}}}' is of a switch; the text of a switch cannot contain that of another"
            )
        } else {
            FillError::Slip {
                name: name.to_owned(),
                near: did_you_mean(name, replaced.iter().copied()),
            }
            .to_string()
        };
        let name = name.to_owned();
        mistakes.push(Mistake { name, at, why });
    }
    mistakes
}

/// Each switch with a text that no file has a place for.
pub(super) fn without_place(started: &Started) -> Vec<(String, String)> {
    let known = known(&started.switches);
    let mut named = BTreeSet::new();
    for source in started.files.values() {
        let Some(text) = source.text() else {
            // They are looked at once all of them are read.
            return Vec::new();
        };
        named.extend(
            parts(text, &known)
                .into_iter()
                .filter_map(|part| match part {
                    Part::Name(name) => Some(name),
                    Part::Text(_) => None,
                }),
        );
    }
    let with_text = started
        .switches
        .iter()
        .filter(|(_, values)| has_text(values));
    with_text
        .filter(|(id, _)| !named.contains(id.as_str()))
        .map(|(id, _)| {
            let message = if started.files.is_empty() {
                format!("a text goes to '{{{id}}}' in a file, and there is none; add [service.files], or write arguments as a list")
            } else {
                format!("no file contains '{{{id}}}', so the text would have no effect")
            };
            (id.clone(), message)
        })
        .collect()
}

impl Scenario {
    /// Takes the texts of the templates from `read`, which gets their paths.
    ///
    /// # Errors
    ///
    /// Those that cannot be read, and what is wrong with their text, at its place in the template.
    pub fn read_templates(
        &mut self,
        read: &dyn Fn(&str) -> Result<String, String>,
    ) -> Result<(), Problems> {
        let Service::Started(started) = &mut self.service else {
            return Ok(());
        };
        let mut wrong = Vec::new();
        let mut texts = BTreeMap::new();
        for (name, source) in &started.files {
            let Source::Template { path, .. } = source else {
                continue;
            };
            match read(path) {
                Ok(text) => {
                    let mut problems = Collector::new(&text);
                    for Mistake { at, why, .. } in mistakes(&text, &started.switches, true) {
                        problems.add(at..at, "", why);
                    }
                    if let Some(problems) = problems.into_problems(path) {
                        return Err(problems);
                    }
                    texts.insert(name.clone(), text);
                }
                Err(message) => wrong.extend(self.files.templates.get(name).map(|at| Problem {
                    message,
                    ..at.clone()
                })),
            }
        }
        for (name, read) in texts {
            if let Some(Source::Template { text, .. }) = started.files.get_mut(&name) {
                *text = Some(read);
            }
        }
        let useless = without_place(started).into_iter();
        wrong.extend(useless.filter_map(|(id, message)| {
            let at = self.files.switches.get(&id)?.clone();
            Some(Problem { message, ..at })
        }));
        match in_order(&self.file, wrong) {
            Some(problems) => Err(problems),
            None => Ok(()),
        }
    }

    /// Path and text of each template, as far as it was read.
    pub fn templates(&self) -> impl Iterator<Item = (&str, &str)> {
        let files = match &self.service {
            Service::Started(started) => Some(&started.files),
            Service::Running(_) => None,
        };
        let sources = files.into_iter().flat_map(BTreeMap::values);
        sources.filter_map(|source| match source {
            Source::Template { path, text } => Some((path.as_str(), text.as_deref()?)),
            Source::Inline(_) => None,
        })
    }
}
