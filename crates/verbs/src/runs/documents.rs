//! The documents on kept runs, and their pages.

use rungwise_model::Envelope;
use rungwise_report::Block;
use rungwise_report::block::{Cell, Column, Table, Tone};
use rungwise_report::numbers;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::documents::Document;

/// The state of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum State {
    /// Every file is unmodified.
    Complete,
    /// A file is missing, altered or added.
    Altered,
    /// It has no checksums: a process is still writing it, or was killed.
    Unfinished,
}

/// A run folder.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct Run {
    /// Name of its folder.
    pub id: String,
    /// Kind of its document: `tune`, `load`, `check`, `jvm-gc`.
    pub verb: String,
    /// Title of its page; empty where it is unfinished.
    pub title: String,
    /// Start, RFC 3339 in UTC; empty where it is not recorded.
    pub started: String,
    /// Its result in one word; null where it is not recorded.
    pub verdict: Option<String>,
    /// The folder.
    pub path: String,
    /// Every file matches its checksum and none was added; null where there are no checksums.
    pub verified: Option<bool>,
    /// Its state in one word.
    pub state: State,
    /// Each file that is missing, altered or added.
    pub problems: Vec<String>,
    /// Its command line.
    pub command: Vec<String>,
    /// Names of its files.
    pub files: Vec<String>,
}

/// The document of `runs list`, `runs show` and `runs verify`.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct RunsList {
    /// Common fields.
    #[serde(flatten)]
    pub envelope: Envelope,
    /// The folder of the runs.
    pub folder: String,
    /// Newest first.
    pub runs: Vec<Run>,
    /// Other folders beside them.
    #[serde(default)]
    pub others: Vec<String>,
}

/// The document of `runs prune`.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct RunsPrune {
    /// Common fields.
    #[serde(flatten)]
    pub envelope: Envelope,
    /// The folder of the runs.
    pub folder: String,
    /// Dry run: nothing was removed, and `removed` lists what would be.
    pub dry_run: bool,
    /// Ids of the removed runs, newest first.
    pub removed: Vec<String>,
    /// Ids of complete runs that were kept.
    pub kept: Vec<String>,
    /// Folders that are never removed, or could not be, each with the reason.
    pub left: Vec<(String, String)>,
}

impl Run {
    fn word(&self) -> &'static str {
        match self.state {
            State::Complete => "whole",
            State::Altered => "altered",
            State::Unfinished => "unfinished",
        }
    }
}

impl Document for RunsList {
    const KIND: &'static str = "runs-list";

    fn envelope(&self) -> &Envelope {
        &self.envelope
    }

    fn envelope_mut(&mut self) -> &mut Envelope {
        &mut self.envelope
    }

    fn title(&self) -> String {
        format!("Runs in {}", self.folder)
    }

    fn blocks(&self) -> Vec<Block> {
        if self.runs.is_empty() {
            return vec![Block::Prose(format!("{} contains no runs.", self.folder))];
        }
        let rows = self.runs.iter().map(|run| {
            vec![
                Cell::text(&*run.id),
                Cell::text(&*run.verb),
                Cell::text(run.verdict.as_deref().unwrap_or(numbers::ABSENT)),
                Cell::text(run.word()),
                Cell::text(&*run.title),
            ]
        });
        let mut blocks = vec![Block::Table(Table {
            caption: String::new(),
            columns: vec![
                Column::words("Run", "id"),
                Column::words("Verb", "verb"),
                Column::words("Verdict", "verdict"),
                Column::words("Files", "state"),
                Column::words("Title", "title"),
            ],
            rows: rows.collect(),
        })];
        for run in &self.runs {
            for problem in &run.problems {
                blocks.push(Block::Notice {
                    tone: Tone::Bad,
                    text: format!("{}: {problem}", run.path),
                });
            }
        }
        let is_one = self.envelope.document.as_deref() == Some("runs-show");
        if let [run] = &self.runs[..]
            && is_one
        {
            blocks.push(Block::Facts(vec![
                ("started".to_owned(), run.started.clone()),
                ("folder".to_owned(), run.path.clone()),
                ("files".to_owned(), run.files.join(", ")),
            ]));
            blocks.push(Block::Code(vec![run.command.join(" ")]));
        }
        blocks
    }
}

impl Document for RunsPrune {
    const KIND: &'static str = "runs-prune";

    fn envelope(&self) -> &Envelope {
        &self.envelope
    }

    fn envelope_mut(&mut self) -> &mut Envelope {
        &mut self.envelope
    }

    fn title(&self) -> String {
        format!("Removal of old runs in {}", self.folder)
    }

    fn blocks(&self) -> Vec<Block> {
        let removed = numbers::plural(self.removed.len(), "run");
        let done = if self.dry_run {
            "would be removed"
        } else {
            "removed"
        };
        let mut blocks = vec![Block::Prose(format!(
            "{removed} {done}, {} kept.",
            self.kept.len()
        ))];
        if !self.removed.is_empty() {
            blocks.push(Block::List(self.removed.clone()));
        }
        blocks.extend(self.left.iter().map(|(name, why)| Block::Notice {
            tone: Tone::Doubt,
            text: format!("{name} was not removed: {why}"),
        }));
        blocks
    }
}
