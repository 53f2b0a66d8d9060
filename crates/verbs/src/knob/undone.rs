//! The outcome of each journal, as JSON and as text.

use std::fmt::Write as _;
use std::path::PathBuf;

use rungwise_knobs::Error;
use rungwise_knobs::recovery::Recovery;
use schemars::JsonSchema;
use serde::Serialize;

/// The document of `knob undo`.
#[derive(Serialize, JsonSchema)]
pub(super) struct Undone {
    /// The outcome of each journal, the newest first.
    pub(super) journals: Vec<UndoneJournal>,
}

#[derive(Serialize, JsonSchema)]
pub(super) struct UndoneJournal {
    journal: PathBuf,
    purpose: Option<String>,
    pub(super) closed: bool,
    rebooted: bool,
    still: Vec<String>,
    damage: Vec<String>,
    #[serde(flatten)]
    undo: rungwise_knobs::Undo,
    pub(super) error: Option<String>,
}

impl From<Recovery> for UndoneJournal {
    fn from(recovery: Recovery) -> Self {
        Self {
            journal: recovery.journal,
            purpose: recovery.header.map(|header| header.purpose),
            closed: recovery.closed,
            rebooted: recovery.rebooted,
            still: recovery.still,
            damage: recovery
                .damage
                .iter()
                .map(|damage| format!("line {}: {}", damage.line, damage.what))
                .collect(),
            undo: recovery.undo,
            error: None,
        }
    }
}

impl UndoneJournal {
    pub(super) fn failed(journal: PathBuf, error: &Error) -> Self {
        Self {
            journal,
            purpose: None,
            closed: false,
            rebooted: false,
            still: Vec::new(),
            damage: Vec::new(),
            undo: rungwise_knobs::Undo::default(),
            error: Some(error.to_string()),
        }
    }

    pub(super) fn tell(&self, text: &mut String) {
        for restored in &self.undo.restored {
            let _ = writeln!(
                text,
                "{}: {} on {} is '{}' again",
                restored.knob, restored.target, restored.place, restored.value
            );
        }
        for settled in &self.undo.settled {
            let _ = writeln!(text, "{settled}");
        }
        for left in &self.undo.left {
            let _ = writeln!(text, "{left}");
        }
        let journal = self.journal.display();
        if self.rebooted {
            let _ = writeln!(
                text,
                "{journal}: the machine has rebooted since; nothing was in force"
            );
        }
        for still in &self.still {
            let _ = writeln!(text, "{still} nevertheless, but not because of rungwise");
        }
        for damage in &self.damage {
            let _ = writeln!(
                text,
                "{journal}: {damage}; a change that it recorded may be in force"
            );
        }
        if let Some(error) = &self.error {
            let _ = writeln!(text, "{error}");
        } else if !self.closed {
            let _ = writeln!(
                text,
                "not everything was restored; the journal stays: {journal}; \
                 to accept that: rungwise knob undo --abandon"
            );
        }
    }
}
