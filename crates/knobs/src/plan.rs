//! A plan: the edits that make a wish hold, and what they will replace.
//!
//! Plain data, so that it can be shown, stored and applied later. The values found are for the reader and for
//! [`Plan::drift`]; the values that an undo restores are read again right before each write.

use std::fmt::Write as _;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::edit::{Edit, Place, Places};
use crate::error::{Error, Result};
use crate::find;

/// Edits of one knob.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Plan {
    /// Id of the knob.
    pub knob: String,
    /// The wish in the user's words.
    pub wish: String,
    /// The edits, in order.
    pub edits: Vec<PlannedEdit>,
    /// What you should know before agreeing.
    #[serde(default)]
    pub notes: Vec<String>,
}

/// One edit and what it replaces.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct PlannedEdit {
    /// Where.
    pub place: Place,
    /// The change.
    pub edit: Edit,
    /// The value when the plan was made; absent where the kernel does not show it: a switch of the service, most manual
    /// changes.
    pub before: Option<String>,
}

/// A target whose value is not the expected one.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Drift {
    /// Id of the knob.
    pub knob: String,
    /// Where.
    pub place: Place,
    /// File, feature or table.
    pub target: String,
    /// What was expected.
    pub wanted: String,
    /// What was found.
    pub found: String,
}

impl PlannedEdit {
    /// Whether the edit would change something.
    pub fn changes(&self) -> bool {
        self.before
            .as_ref()
            .is_none_or(|before| !self.edit.same(before, &self.edit.value()))
    }
}

impl Plan {
    /// Whether applying it would change something.
    pub fn changes(&self) -> bool {
        self.edits.iter().any(PlannedEdit::changes)
    }

    /// The switches of the service, which the engine does not set.
    pub fn service(&self) -> impl Iterator<Item = (&str, &str)> {
        self.edits.iter().filter_map(|planned| match &planned.edit {
            Edit::Service { switch, value } => Some((switch.as_str(), value.as_str())),
            _ => None,
        })
    }

    /// The manual changes, as `place: text`.
    pub fn by_hand(&self) -> impl Iterator<Item = String> {
        self.edits.iter().filter_map(|planned| match &planned.edit {
            Edit::ByHand { way, text } => Some(format!("{}: {text}", way.place())),
            _ => None,
        })
    }

    /// What would change, for people.
    pub fn diff(&self) -> String {
        let mut text = format!("{} = {}\n", self.knob, self.wish);
        for planned in &self.edits {
            let place = match &planned.place {
                Place::Host => String::new(),
                place @ Place::Namespace(_) => format!("{place}: "),
            };
            let target = planned.edit.target();
            // A manual change may have several lines.
            let value = planned.edit.value().replace('\n', "\n      ");
            let _ = match &planned.before {
                None => writeln!(text, "  {place}{target}\n    + {value}"),
                Some(_) if matches!(planned.edit, Edit::Keep { .. }) => {
                    writeln!(text, "  {place}{target}\n      {value} (kept)")
                }
                Some(before) if before.is_empty() => {
                    writeln!(text, "  {place}{target}\n    - (nothing)\n    + {value}")
                }
                Some(before) if planned.changes() => {
                    writeln!(text, "  {place}{target}\n    - {before}\n    + {value}")
                }
                Some(before) => writeln!(text, "  {place}{target}\n      {before} (already)"),
            };
        }
        for note in &self.notes {
            let _ = writeln!(text, "  note: {note}");
        }
        text
    }

    /// Targets without the value that this plan wants.
    pub fn verify(&self, places: &Places) -> Result<Vec<Drift>> {
        self.compare(places, |planned| Some(planned.edit.value().into_owned()))
    }

    /// Targets that have changed since the plan was made.
    pub fn drift(&self, places: &Places) -> Result<Vec<Drift>> {
        self.compare(places, |planned| planned.before.clone())
    }

    /// Checks that the plan names only targets of its knob, and none twice. A plan may come from someone else's file:
    /// nothing that it names is even read before this.
    pub(crate) fn check(&self) -> Result<()> {
        let bad = |why: String| Error::BadPlan {
            knob: self.knob.clone(),
            why,
        };
        let knob = find(&self.knob)?;
        for (index, planned) in self.edits.iter().enumerate() {
            let target = planned.edit.target();
            let value = planned.edit.value();
            // One place may need several manual changes, and a preserved file is named before and after the edit that
            // resets it.
            let repeats = matches!(planned.edit, Edit::ByHand { .. } | Edit::Keep { .. });
            if !knob.may_write(&planned.place, &planned.edit) {
                return Err(bad(format!("this knob does not write {target}")));
            }
            if !planned.edit.can_hold(&value) {
                return Err(bad(format!("'{value}' is not a valid value for {target}")));
            }
            let twice =
                |other: &PlannedEdit| other.place == planned.place && other.edit.target() == target;
            if !repeats && self.edits[..index].iter().any(twice) {
                return Err(bad(format!("{target} is named twice")));
            }
        }
        Ok(())
    }

    fn compare(
        &self,
        places: &Places,
        expected: impl Fn(&PlannedEdit) -> Option<String>,
    ) -> Result<Vec<Drift>> {
        self.check()?;
        let mut drifts = Vec::new();
        for planned in &self.edits {
            let (Some(wanted), true) = (expected(planned), planned.edit.readable()) else {
                continue;
            };
            let host = places.at(&planned.place).ok_or_else(|| Error::NoPlace {
                knob: self.knob.clone(),
                place: planned.place.to_string(),
            })?;
            let target = planned.edit.target();
            let found = planned.edit.current(host).map_err(|answer| {
                Error::kernel(&self.knob, format!("read {target}"), host.name(), answer)
            })?;
            if !planned.edit.same(&found, &wanted) {
                drifts.push(Drift {
                    knob: self.knob.clone(),
                    place: planned.place.clone(),
                    target,
                    wanted,
                    found,
                });
            }
        }
        Ok(drifts)
    }
}

impl std::fmt::Display for Drift {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self {
            knob,
            place,
            target,
            wanted,
            found,
        } = self;
        write!(
            f,
            "{knob}: {target} on {place} is '{found}', not '{wanted}'"
        )
    }
}
