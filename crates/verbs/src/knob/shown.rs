//! `knob list` and `knob show`: current values of knobs, and which a finding recommends; and how the answers of the verb are made.

use std::fmt::Write as _;
use std::path::Path;

use rungwise_host::live::Live;
use rungwise_knobs::{Context, KNOBS, Knob, Reading, Scope, Settable};
use rungwise_model::Exit;
use rungwise_model::check::Outcome;
use schemars::JsonSchema;
use serde::Serialize;

use super::{Device, WINDOW, Work, asked, cpus, problem};
use crate::printed::Printed;

/// The current state of a knob; the document of `knob show`.
#[derive(Serialize, JsonSchema)]
pub(super) struct KnobState {
    id: &'static str,
    scope: Scope,
    risk: rungwise_knobs::Risk,
    summary: &'static str,
    /// The values that it accepts, for people.
    values: &'static str,
    /// Why rungwise does not change it; absent where it does.
    shown_only: Option<&'static str>,
    /// The current value, as a request would name it.
    current: Option<String>,
    /// Why the current value is unknown; absent where it is known.
    unknown: Option<String>,
    /// The readings behind it.
    readings: Vec<Reading>,
}

/// The document of `knob list`.
#[derive(Serialize, JsonSchema)]
pub(super) struct KnobList {
    /// All of them, by id.
    knobs: Vec<KnobState>,
}

/// The document of `knob list --why`.
#[derive(Serialize, JsonSchema)]
pub(super) struct Reasons {
    /// Knobs that findings recommend, the severest first.
    knobs: Vec<Reason>,
    /// All other knobs.
    not_asked_for: Vec<KnobState>,
}

/// A knob that a finding recommends.
#[derive(Serialize, JsonSchema)]
struct Reason {
    id: String,
    device: Option<String>,
    current: Option<String>,
    recommended: Option<String>,
    rule: String,
    subject: String,
    sentence: String,
}

impl Work<'_> {
    pub(super) fn list(&self, device: &Device) -> anyhow::Result<Printed> {
        let cpus = cpus()?;
        let context = Context::of_host(&Live, device.device.as_deref(), &cpus);
        let knobs: Vec<_> = KNOBS.iter().map(|knob| state_of(knob, &context)).collect();
        let mut text = lines(&knobs);
        if device.device.is_none() {
            text.push_str("\nname a device with --device to see the knobs of a device\n");
        }
        self.printed("knob-list", Exit::Done, KnobList { knobs }, text)
    }

    /// All knobs, first those that findings ask for, the severest finding first.
    pub(super) fn reasons(&self, device: &Device, from: Option<&Path>) -> anyhow::Result<Printed> {
        let findings = if let Some(check) = from {
            asked::stored(check)?.findings
        } else {
            let interrupt = self.invocation.interrupt()?;
            rungwise_rules::judge(&asked::observe(WINDOW, &interrupt, self.invocation)?)
        };
        let cpus = cpus()?;
        let mut knobs = Vec::new();
        let mut text = String::new();
        for finding in findings
            .iter()
            .filter(|finding| finding.outcome <= Outcome::Watch)
        {
            for turn in &finding.knobs {
                let context = Context::of_host(&Live, turn.device.as_deref(), &cpus);
                let current = rungwise_knobs::find(&turn.id)
                    .and_then(|knob| knob.current(&context))
                    .ok()
                    .and_then(|now| now.value.ok());
                let of = turn
                    .device
                    .as_deref()
                    .map_or_else(String::new, |device| format!(" of {device}"));
                let _ = writeln!(
                    text,
                    "{}{of}: now {}, recommended {}\n    {}: {}",
                    turn.id,
                    current.as_deref().unwrap_or("unknown"),
                    turn.to.as_deref().unwrap_or("for you to choose"),
                    finding.rule,
                    finding.sentence
                );
                knobs.push(Reason {
                    id: turn.id.clone(),
                    device: turn.device.clone(),
                    current,
                    recommended: turn.to.clone(),
                    rule: finding.rule.clone(),
                    subject: finding.subject.clone(),
                    sentence: finding.sentence.clone(),
                });
            }
        }
        let context = Context::of_host(&Live, device.device.as_deref(), &cpus);
        let not_asked_for: Vec<_> = KNOBS
            .iter()
            .filter(|knob| knobs.iter().all(|asked| asked.id != knob.id))
            .map(|knob| state_of(knob, &context))
            .collect();
        text.push_str(if knobs.is_empty() {
            "no finding recommends a knob; current values:\n"
        } else {
            "\nno finding recommends these:\n"
        });
        text.push_str(&lines(&not_asked_for));
        let reasons = Reasons {
            knobs,
            not_asked_for,
        };
        self.printed("knob-list-why", Exit::Done, reasons, text)
    }

    pub(super) fn show(&self, id: &str, device: &Device) -> anyhow::Result<Printed> {
        let knob = rungwise_knobs::find(id).map_err(problem)?;
        let cpus = cpus()?;
        let state = state_of(
            knob,
            &Context::of_host(&Live, device.device.as_deref(), &cpus),
        );
        let mut text = knob.page();
        let now = state.current.as_ref().or(state.unknown.as_ref());
        let _ = writeln!(
            text,
            "\n## Current value\n\n{}\n",
            now.map_or("", String::as_str)
        );
        for Reading { source, value } in &state.readings {
            let _ = writeln!(text, "    {source}: {value}");
        }
        self.printed("knob-show", Exit::Done, state, text)
    }
}

impl Work<'_> {
    /// The answer: the document, and its text.
    pub(super) fn printed(
        &self,
        kind: &'static str,
        exit: Exit,
        body: impl Serialize,
        text: String,
    ) -> anyhow::Result<Printed> {
        let envelope = self.invocation.envelope(kind, self.started.clone(), exit);
        Printed::new(kind, envelope, text, body)
    }
}

/// A line for each, below one that names the columns.
fn lines(knobs: &[KnobState]) -> String {
    let id = knobs.iter().map(|knob| knob.id.len()).max().unwrap_or(0);
    let mut text = format!(
        "{:id$}  {:7}  {:10}  {:<24}  what it is\n",
        "knob", "scope", "risk", "now"
    );
    for knob in knobs {
        let now = knob.current.as_deref().unwrap_or("-");
        let _ = writeln!(
            text,
            "{:id$}  {:7}  {:10}  {now:<24}  {}{}",
            knob.id,
            knob.scope.name(),
            knob.risk.name(),
            knob.summary,
            if knob.shown_only.is_some() {
                " (read-only)"
            } else {
                ""
            },
        );
    }
    text
}

fn state_of(knob: &'static Knob, context: &Context<'_>) -> KnobState {
    let (current, unknown, readings) = match knob.current(context) {
        Ok(current) => match current.value {
            Ok(value) => (Some(value), None, current.readings),
            Err(why) => (None, Some(why), current.readings),
        },
        Err(error) => (None, Some(error.to_string()), Vec::new()),
    };
    KnobState {
        id: knob.id,
        scope: knob.scope,
        risk: knob.risk,
        summary: knob.summary,
        values: knob.values,
        shown_only: match knob.settable {
            Settable::Yes => None,
            Settable::No(why) => Some(why),
        },
        current,
        unknown,
        readings,
    }
}
