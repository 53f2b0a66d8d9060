//! Undoing edits by compare-and-swap, newest first.
//!
//! A value is put back only if the target still holds ours. If it holds what was there before, there
//! is nothing to do. Anything else was written by somebody else since: it is theirs now, and we stand
//! aside and say so. The same code serves a session that ends, a plan that failed half-way, the guard
//! and recovery after a crash, so it must give the same result when it is interrupted and run again.

use std::io;
use std::path::Path;

use rungwise_host::{Host, namespace};
use schemars::JsonSchema;
use serde::Serialize;

use crate::edit::{Edit, Place, Places};
use crate::journal::Pending;
use crate::target;

/// What became of an undo.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Undo {
    /// Edits that were put back.
    pub restored: Vec<Restored>,
    /// Edits that needed nothing: never made, back already, or gone with their device or namespace.
    pub settled: Vec<String>,
    /// Edits that are not as they were.
    pub left: Vec<Left>,
}

/// A target that was put back.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Restored {
    /// Id of the knob.
    pub knob: String,
    /// Where.
    pub place: Place,
    /// File, feature or table.
    pub target: String,
    /// What it holds again.
    pub value: String,
}

/// A target that could not or must not be put back.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Left {
    /// Id of the knob.
    pub knob: String,
    /// Where.
    pub place: Place,
    /// File, feature or table.
    pub target: String,
    /// What we had set.
    pub ours: String,
    /// What it held before.
    pub before: String,
    /// Why.
    pub why: Why,
}

/// Why a target was left.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Why {
    /// Somebody else has changed it since.
    Foreign {
        /// What it holds.
        found: String,
    },
    /// The kernel did not let us.
    Failed {
        /// Its answer.
        error: String,
    },
    /// It belongs to a network namespace that is not this one.
    Elsewhere {
        /// Inode of that namespace.
        netns: u64,
    },
    /// No knob writes this: the journal is not one of ours.
    Refused,
}

impl Undo {
    /// Everything is as it was.
    pub fn complete(&self) -> bool {
        self.left.is_empty()
    }

    /// What was left, for people.
    pub fn left_in_words(&self) -> String {
        let words: Vec<String> = self.left.iter().map(ToString::to_string).collect();
        words.join("; ")
    }

    pub(crate) fn append(&mut self, other: Self) {
        self.restored.extend(other.restored);
        self.settled.extend(other.settled);
        self.left.extend(other.left);
    }
}

impl std::fmt::Display for Left {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self {
            knob,
            place,
            target,
            ours,
            before,
            why,
        } = self;
        write!(f, "{knob}: {target} on {place} ")?;
        match why {
            Why::Foreign { found } => write!(
                f,
                "holds '{found}', which replaced our '{ours}' from outside; the original value was '{before}', set it by hand if wanted"
            ),
            Why::Failed { error } => {
                write!(
                    f,
                    "could not be put back from '{ours}' to '{before}': {error}"
                )
            }
            Why::Elsewhere { netns } => write!(
                f,
                "was '{before}' in network namespace {netns}, which is not this one; run the undo there (nsenter)"
            ),
            Why::Refused => write!(
                f,
                "is nothing that this knob writes; the journal is not trusted in this"
            ),
        }
    }
}

/// How an edit needed nothing more.
enum Settled {
    Restored,
    As(&'static str),
}

/// Undoes `pending`, which is in the order of the edits, newest first. `record` is told of each edit
/// that is no longer in force, right after it is so.
pub(crate) fn run(places: &Places, pending: &[Pending], mut record: impl FnMut(u64, &str)) -> Undo {
    let mut undo = Undo::default();
    for pending in pending.iter().rev() {
        let intent = &pending.intent;
        let target = intent.edit.target();
        match settle(places, pending) {
            Ok(Settled::Restored) => {
                record(pending.seq, "put back");
                undo.restored.push(Restored {
                    knob: intent.knob.clone(),
                    place: intent.place.clone(),
                    target,
                    value: intent.before.clone(),
                });
            }
            Ok(Settled::As(how)) => {
                record(pending.seq, how);
                undo.settled
                    .push(format!("{target} on {}: {how}", intent.place));
            }
            Err(why) => undo.left.push(Left {
                knob: intent.knob.clone(),
                place: intent.place.clone(),
                target,
                ours: ours(pending).into_owned(),
                before: intent.before.clone(),
                why,
            }),
        }
    }
    undo
}

fn ours(pending: &Pending) -> std::borrow::Cow<'_, str> {
    let edit = &pending.intent.edit;
    match &pending.readback {
        // A queue that somebody has lengthened since goes with our scheduler all the same.
        Some(_) if matches!(edit, Edit::Scheduler { .. }) => edit.value(),
        Some(readback) => readback.into(),
        None => edit.value(),
    }
}

fn settle(places: &Places, pending: &Pending) -> Result<Settled, Why> {
    let intent = &pending.intent;
    let edit = &intent.edit;
    if !target::could_be_ours(&intent.knob, &intent.place, edit, &intent.before) {
        return Err(Why::Refused);
    }
    let Some(host) = places.at(&intent.place) else {
        // A lab's namespace ends with the process that made it.
        return Ok(Settled::As("ended with its namespace"));
    };
    let failed = |error: io::Error| Why::Failed {
        error: error.to_string(),
    };
    let netns = host.netns().map_err(failed)?;
    if netns != intent.netns {
        if namespace::may_exist(intent.netns) {
            return Err(Why::Elsewhere {
                netns: intent.netns,
            });
        }
        return Ok(Settled::As("ended with its namespace"));
    }
    if let (Some(index), Some(device)) = (intent.ifindex, edit.device())
        && ifindex(host, device) != Some(index)
    {
        return match name_of(host, index).map_err(failed)? {
            None => Ok(Settled::As("gone with its device")),
            Some(name) => Err(Why::Failed {
                error: format!("{device} is called {name} now"),
            }),
        };
    }
    let found = match edit.current(host) {
        Err(error)
            if matches!(edit, Edit::Affinity { .. }) && error.kind() == io::ErrorKind::NotFound =>
        {
            return Ok(Settled::As("gone with its thread"));
        }
        Err(error)
            if matches!(edit, Edit::OpenFiles { .. })
                && error.kind() == io::ErrorKind::NotFound =>
        {
            return Ok(Settled::As("gone with its process"));
        }
        Err(error)
            if matches!(edit, Edit::Mount { .. }) && error.kind() == io::ErrorKind::NotFound =>
        {
            return Ok(Settled::As("gone with its mount"));
        }
        // The device is there, its queue is not any more (ethtool -L).
        Err(error) if intent.ifindex.is_some() && error.kind() == io::ErrorKind::NotFound => {
            return Ok(Settled::As("gone with its queue"));
        }
        found => found.map_err(failed)?,
    };
    // Before the test for ours: a value that was ours and the old one alike never became an intent.
    if edit.same(&found, &intent.before) {
        return Ok(Settled::As("held its old value"));
    }
    if !edit.same(&found, &ours(pending))
        && !edit.was_reset(&found)
        && !edit.is_half_back(host, &found, &intent.before)
    {
        return Err(Why::Foreign { found });
    }
    edit.write(host, &intent.before).map_err(failed)?;
    let found = edit.current(host).map_err(failed)?;
    if edit.same(&found, &intent.before) {
        Ok(Settled::Restored)
    } else {
        Err(Why::Failed {
            error: format!("it was written and reads '{found}'"),
        })
    }
}

/// Index of a device, if it exists.
pub(crate) fn ifindex(host: &dyn Host, device: &str) -> Option<u32> {
    let path = format!("/sys/class/net/{device}/ifindex");
    host.text(Path::new(&path)).ok()?.parse().ok()
}

/// The device with this index, if there is one. Without a view of all devices that is unknown.
fn name_of(host: &dyn Host, index: u32) -> io::Result<Option<String>> {
    let names = host.list(Path::new("/sys/class/net"))?;
    Ok(names
        .into_iter()
        .find(|name| ifindex(host, name) == Some(index)))
}
