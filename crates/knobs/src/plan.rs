//! A plan: the edits that make a wish hold, and what they will replace.
//!
//! Plain data, so that it can be shown, stored and carried out later. The values found are for the
//! reader and for [`Plan::drift`]; what an undo puts back is read again right before each write.

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
    /// What a person should know before agreeing.
    #[serde(default)]
    pub notes: Vec<String>,
}

/// One edit and what it replaces.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct PlannedEdit {
    /// Where.
    pub place: Place,
    /// What is to hold.
    pub edit: Edit,
    /// What was found when the plan was made; absent where the kernel does not tell: a switch of the
    /// service, most of what a person does.
    pub before: Option<String>,
}

/// A target that holds something else than expected.
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
    /// The edit would change something.
    pub fn changes(&self) -> bool {
        self.before
            .as_ref()
            .is_none_or(|before| !self.edit.same(before, &self.edit.value()))
    }
}

impl Plan {
    /// Carrying it out would change something.
    pub fn changes(&self) -> bool {
        self.edits.iter().any(PlannedEdit::changes)
    }

    /// The switches of the service, which the engine leaves to whoever runs the service.
    pub fn service(&self) -> impl Iterator<Item = (&str, &str)> {
        self.edits.iter().filter_map(|planned| match &planned.edit {
            Edit::Service { switch, value } => Some((switch.as_str(), value.as_str())),
            _ => None,
        })
    }

    /// What only a person can do, as `place: text`.
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
            // What a person does may have several lines.
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

    /// Targets that do not hold what this plan wants.
    pub fn verify(&self, places: &Places) -> Result<Vec<Drift>> {
        self.compare(places, |planned| Some(planned.edit.value().into_owned()))
    }

    /// Targets that no longer hold what they held when the plan was made.
    pub fn drift(&self, places: &Places) -> Result<Vec<Drift>> {
        self.compare(places, |planned| planned.before.clone())
    }

    /// Everything in the plan is something that its knob writes, and nothing twice. A plan may come from
    /// a file that others wrote: nothing it names is so much as read before this.
    pub(crate) fn check(&self) -> Result<()> {
        let bad = |why: String| Error::BadPlan {
            knob: self.knob.clone(),
            why,
        };
        let knob = find(&self.knob)?;
        for (index, planned) in self.edits.iter().enumerate() {
            let target = planned.edit.target();
            let value = planned.edit.value();
            // A person may have several things to do in one place, and what is kept is named before and after
            // what resets it.
            let repeats = matches!(planned.edit, Edit::ByHand { .. } | Edit::Keep { .. });
            if !knob.may_write(&planned.place, &planned.edit) {
                return Err(bad(format!("{target} is nothing that this knob writes")));
            }
            if !planned.edit.can_hold(&value) {
                return Err(bad(format!("'{value}' is no value for {target}")));
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
