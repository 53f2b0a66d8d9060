//! The stub of a rule: `crates/rules/src/<topic>/<id>.rs`, its casebook, its two registry lines.
//!
//! The first rule brings the crate along; its `Evidence` is as small as a stub can be and says so.

use anyhow::Result;

use super::{Draft, Id, STUB, enter};

const MANIFEST: &str = r#"[package]
name = "rungwise-rules"
description = "Evidence to Outcome: one rule, one file, one casebook"
version.workspace = true
edition.workspace = true
rust-version.workspace = true
license.workspace = true
publish.workspace = true

[lints]
workspace = true

[dependencies]
rungwise-model.workspace = true
"#;

const CRATE: &str = r"//! Evidence to Outcome: one file per rule, folders by topic, a casebook per rule.
//!
//! A rule is a pure function: the same evidence gives the same outcome, and silence is not one.

/// Each topic's rules.
const TOPICS: &[&[&Rule]] = &[];

/// Every rule, by topic.
pub fn all() -> impl Iterator<Item = &'static Rule> {
    TOPICS.iter().copied().flatten().copied()
}

/// What is known about a machine: readings by key. {STUB}: unit, subject, window and source of
/// each reading, as plain data in `rungwise-model`.
pub type Evidence = std::collections::BTreeMap<String, f64>;

/// A sickness that evidence can show.
#[derive(Debug)]
pub struct Rule {
    /// Names the sickness.
    pub id: &'static str,
    /// Keys of the readings it needs.
    pub keys: &'static [&'static str],
    /// Markdown with the five headings of a rule.
    pub doc: &'static str,
    /// The judgement.
    pub judge: fn(&Evidence) -> Outcome,
}

/// What a rule says.
#[derive(Clone, Debug, PartialEq)]
pub enum Outcome {
    /// The sickness is there: one sentence with the cited reading.
    Finding(String),
    /// It is not: how far the reading is from the line, as a fraction of it.
    Clear(f64),
    /// What was missing.
    Undecided(Vec<&'static str>),
}
";

const TOPIC: &str = "//! Rules about {TOPIC}, sorted by id.

use crate::Rule;

pub(crate) const RULES: &[&Rule] = &[];
";

const RULE: &str = r#"//! `{ID}`: {STUB}, what this is, the idea, the source.

use crate::{Evidence, Outcome, Rule};

pub(crate) const RULE: Rule = Rule {
    id: "{ID}",
    keys: &[],
    doc: "
# What it looks for
{STUB}
# Why it hurts
{STUB}
# What to do
{STUB}
# How it can be wrong
{STUB}
# Sources
{STUB}
",
    judge,
};

fn judge(_evidence: &Evidence) -> Outcome {
    Outcome::Undecided(RULE.keys.to_vec())
}
"#;

const CASEBOOK: &str = "# {ID}

{STUB}: prose, an evidence block and the expected outcome for each; at least one Finding, one Clear, one
Undecided, and one near miss on each side of the line.
";

pub(super) fn write(draft: &mut Draft<'_>, id: &str) -> Result<()> {
    let id = Id::split(id, '/', "tcp/accept-queue-overflow")?;
    let (topic, module) = (super::module(id.folder), id.module());
    let fill = |text: &str| {
        text.replace("{STUB}", STUB)
            .replace("{ID}", id.name)
            .replace("{TOPIC}", id.folder)
    };
    let home = "crates/rules";
    if draft.text(&format!("{home}/Cargo.toml")).is_none() {
        draft.create(format!("{home}/Cargo.toml"), MANIFEST)?;
        draft.create(format!("{home}/src/lib.rs"), fill(CRATE))?;
    }
    draft.create(format!("{home}/src/{topic}/{module}.rs"), fill(RULE))?;
    draft.create(format!("{home}/cases/{}.md", id.name), fill(CASEBOOK))?;
    let list = format!("{home}/src/{topic}/mod.rs");
    if draft.text(&list).is_none() {
        draft.edit(&format!("{home}/src/lib.rs"), CRATE, |text| {
            enter(
                text,
                &topic,
                "TOPICS: &[&[&Rule]] = &[",
                &format!("{topic}::RULES"),
            )
        })?;
    }
    draft.edit(&list, &fill(TOPIC), |text| {
        enter(
            text,
            &module,
            "RULES: &[&Rule] = &[",
            &format!("&{module}::RULE"),
        )
    })
}
