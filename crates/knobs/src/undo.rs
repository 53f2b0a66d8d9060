//! Undoing edits by compare-and-swap, newest first.
//!
//! A value is restored only if the target still has ours. If it has the previous value, there is nothing to do. Any
//! other value was written by someone else since: it is kept and reported. The same code serves a session that ends, a
//! plan that failed half-way, the guard and recovery after a crash, so it must give the same result when it is
//! interrupted and repeated.

use std::io;
use std::path::Path;

use rungwise_host::{Host, namespace};
use schemars::JsonSchema;
use serde::Serialize;

use crate::edit::{Edit, Place, Places};
use crate::journal::Pending;
use crate::target;

/// The result of an undo.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Undo {
    /// Edits that were undone.
    pub restored: Vec<Restored>,
    /// Edits that needed nothing: never made, already undone, or gone with their device or namespace.
    pub settled: Vec<String>,
    /// Edits that could not be undone.
    pub left: Vec<Left>,
}

/// A target that was restored.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Restored {
    /// Id of the knob.
    pub knob: String,
    /// Where.
    pub place: Place,
    /// File, feature or table.
    pub target: String,
    /// Its restored value.
    pub value: String,
}

/// A target that could not or must not be restored.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Left {
    /// Id of the knob.
    pub knob: String,
    /// Where.
    pub place: Place,
    /// File, feature or table.
    pub target: String,
    /// The value that we had set.
    pub ours: String,
    /// The value before.
    pub before: String,
    /// Why.
    pub why: Why,
}

/// Why a target was not restored.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Why {
    /// Someone else has changed it since.
    Foreign {
        /// Its current value.
        found: String,
    },
    /// The kernel refused.
    Failed {
        /// Its answer.
        error: String,
    },
    /// It belongs to another network namespace.
    Elsewhere {
        /// Inode of that namespace.
        netns: u64,
    },
    /// No knob writes it: the journal is not one of ours.
    Refused,
}

impl Undo {
    /// Whether everything was undone.
    pub fn complete(&self) -> bool {
        self.left.is_empty()
    }

    /// The targets that were not restored, for people.
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
                "holds '{found}', which replaced our '{ours}' from outside; the original value was '{before}', set it \
                 by hand if needed"
            ),
            Why::Failed { error } => {
                write!(
                    f,
                    "could not be restored from '{ours}' to '{before}': {error}"
                )
            }
            Why::Elsewhere { netns } => write!(
                f,
                "was '{before}' in network namespace {netns}, which is not this one; run the undo there (nsenter)"
            ),
            Why::Refused => write!(
                f,
                "is not a target of this knob; this entry of the journal is not trusted"
            ),
        }
    }
}

/// How an edit needed nothing more.
enum Settled {
    Restored,
    As(&'static str),
}

/// Undoes `pending`, which is in the order of the edits, newest first. `record` is called for each edit as soon as it
/// is no longer in force.
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
        // A queue length that someone else has set since is lost with our scheduler.
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
                error: format!("{device} is now called {name}"),
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
            if matches!(edit, Edit::Throttle { .. }) && error.kind() == io::ErrorKind::NotFound =>
        {
            return Ok(Settled::As("gone with its control group"));
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
