//! A session: applies plans, and undoes them when it ends.
//!
//! For each plan: read the current values, write all intents to disk with one `fdatasync`, then write, read back and
//! compare edit by edit. If any step fails, the plan's earlier edits are undone before the error is returned. A session
//! that is dropped undoes everything it did; one that dies leaves its journal to the guard or to [`crate::recovery`].

use std::path::{Path, PathBuf};

use rungwise_host::{clock, environment, process};
use serde::Serialize;

use crate::Place;
use crate::edit::{Edit, Places};
use crate::error::{Error, Result};
use crate::journal::{Entry, Header, Intent, JournalFile, Line, Log, Pending, VERSION};
use crate::plan::{Plan, PlannedEdit};
use crate::undo::{self, Undo};

/// A change that is in force.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Change {
    /// Where.
    pub place: Place,
    /// File, feature or table.
    pub target: String,
    /// Its value before.
    pub before: String,
    /// Its value now, as the kernel prints it.
    pub after: String,
}

/// An applied plan; pass it to [`Session::undo`] to undo it.
#[derive(Debug)]
#[must_use = "a plan that was applied is undone with it"]
pub struct Applied {
    /// Id of the knob.
    pub knob: String,
    /// What changed. Empty if every value was already set.
    pub changes: Vec<Change>,
    /// Switches of the service, which the caller must apply.
    pub service: Vec<(String, String)>,
    intents: Vec<u64>,
}

/// Applies plans and keeps the journal.
pub struct Session {
    keeper: Keeper<JournalFile>,
    places: Places,
}

/// The engine over any log, so that tests can crash it between any two steps.
pub struct Keeper<L: Log> {
    log: Option<L>,
    path: PathBuf,
    next_seq: u64,
    open: Vec<Pending>,
}

impl Session {
    /// Opens a journal below `state` and locks it. Changes nothing else.
    pub fn begin(state: &Path, places: Places, purpose: &str) -> Result<Self> {
        let header = header(&places, purpose)?;
        let file = JournalFile::create(state)?;
        let path = file.path().to_owned();
        let keeper = Keeper::begin(file, path.clone(), header).inspect_err(|_| {
            // Empty or torn, it says nothing; but a full disk is no reason to leave it behind.
            let _ = rungwise_host::files::remove(&path);
        })?;
        Ok(Self { keeper, places })
    }

    /// The journal, for the guard and for messages.
    pub fn journal(&self) -> &Path {
        &self.keeper.path
    }

    /// Applies the plan, or changes nothing.
    pub fn apply(&mut self, plan: &Plan) -> Result<Applied> {
        self.keeper.apply(&self.places, plan)
    }

    /// Undoes one plan. Undo overlapping plans in reverse order.
    pub fn undo(&mut self, applied: &Applied) -> Undo {
        self.keeper.undo(&self.places, Some(&applied.intents))
    }

    /// Undoes everything.
    pub fn undo_all(&mut self) -> Undo {
        self.keeper.undo(&self.places, None)
    }

    /// Changes that are in force.
    pub fn changes(&self) -> usize {
        self.keeper.open.len()
    }

    /// Undoes everything and ends the journal. If something could not be undone, the journal stays.
    pub fn close(mut self) -> Result<Undo> {
        let undo = self.undo_all();
        if undo.complete() {
            self.keeper.end()?;
        } else {
            self.keeper.log = None;
        }
        Ok(undo)
    }

    /// Leaves the changes in force; the journal stays for `knob undo`.
    pub fn keep(mut self) -> Result<PathBuf> {
        if self.keeper.open.is_empty() {
            self.keeper.end()?;
        } else {
            self.keeper.log = None;
            self.keeper.open.clear();
        }
        Ok(self.keeper.path.clone())
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        if self.keeper.log.is_some() && self.undo_all().complete() {
            // A session is dropped while another error is handled; the journal contains what is left.
            let _ = self.keeper.end();
        }
    }
}

impl Keeper<JournalFile> {
    /// Marks the journal as ended and removes it.
    fn end(&mut self) -> Result<()> {
        self.append_quietly(&Entry::End);
        self.log.take().map_or(Ok(()), JournalFile::remove)
    }
}

impl<L: Log> Keeper<L> {
    /// Writes the header.
    pub fn begin(log: L, path: PathBuf, header: Header) -> Result<Self> {
        let mut keeper = Self {
            log: Some(log),
            path,
            next_seq: 0,
            open: Vec::new(),
        };
        keeper.append(&[Entry::Header(header)], false)?;
        Ok(keeper)
    }

    /// See [`Session::apply`].
    pub fn apply(&mut self, places: &Places, plan: &Plan) -> Result<Applied> {
        let mut applied = Applied {
            knob: plan.knob.clone(),
            changes: Vec::new(),
            service: plan
                .service()
                .map(|(switch, value)| (switch.to_owned(), value.to_owned()))
                .collect(),
            intents: Vec::new(),
        };
        plan.check()?;
        let by_hand: Vec<String> = plan.by_hand().collect();
        if !by_hand.is_empty() {
            return Err(Error::NotSettable {
                knob: crate::find(&plan.knob)?.id,
                why: format!("done by hand: {}", by_hand.join("; ")),
            });
        }
        let intents = intents(places, plan)?;
        if intents.is_empty() {
            return Ok(applied);
        }
        let first = self.next_seq;
        let entries: Vec<Entry> = intents.iter().cloned().map(Entry::Intent).collect();
        self.append(&entries, true)?;
        let opened = (first..).zip(intents).map(|(seq, intent)| Pending {
            seq,
            intent,
            readback: None,
        });
        self.open.extend(opened);
        applied.intents = (first..self.next_seq).collect();
        for seq in first..self.next_seq {
            match self.carry_out(places, seq) {
                Ok(change) => applied.changes.push(change),
                Err(cause) => return Err(self.back_out(places, &applied.intents, cause)),
            }
        }
        Ok(applied)
    }

    /// See [`Session::undo`]; without `intents`, everything.
    pub fn undo(&mut self, places: &Places, intents: Option<&[u64]>) -> Undo {
        let (now, later): (Vec<_>, Vec<_>) = std::mem::take(&mut self.open)
            .into_iter()
            .partition(|pending| intents.is_none_or(|intents| intents.contains(&pending.seq)));
        self.open = later;
        let mut back = Vec::new();
        let undo = undo::run(places, &now, |intent, how| {
            back.push(intent);
            // A lost line is no harm: undoing again finds the old value in place.
            self.append_quietly(&Entry::Undone {
                intent,
                how: how.to_owned(),
            });
        });
        self.open.extend(
            now.into_iter()
                .filter(|pending| !back.contains(&pending.seq)),
        );
        self.open.sort_by_key(|pending| pending.seq);
        undo
    }

    fn carry_out(&mut self, places: &Places, seq: u64) -> Result<Change> {
        let pending = self
            .open
            .iter_mut()
            .find(|pending| pending.seq == seq)
            .expect("each intent was opened with its number");
        let Intent {
            knob,
            place,
            edit,
            before,
            ..
        } = &pending.intent;
        let host = at(places, knob, place)?;
        let (target, wanted) = (edit.target(), edit.value().into_owned());
        edit.write(host, &wanted).map_err(|answer| {
            Error::kernel(
                knob,
                format!("write '{wanted}' to {target}"),
                host.name(),
                answer,
            )
        })?;
        let found = edit.current(host).map_err(|answer| {
            Error::kernel(knob, format!("read back {target}"), host.name(), answer)
        })?;
        let holds = edit.same(&found, &wanted);
        let change = Change {
            place: place.clone(),
            target: target.clone(),
            before: before.clone(),
            after: found.clone(),
        };
        let knob = knob.clone();
        // What was read back is ours, whether it is what we wanted or not.
        pending.readback = Some(found.clone());
        self.append_quietly(&Entry::Done {
            intent: seq,
            readback: found.clone(),
        });
        if holds {
            Ok(change)
        } else {
            Err(Error::Mismatch {
                knob,
                target,
                wanted,
                found,
            })
        }
    }

    fn back_out(&mut self, places: &Places, intents: &[u64], cause: Error) -> Error {
        let undo = self.undo(places, Some(intents));
        if undo.complete() {
            return cause;
        }
        Error::Rollback {
            cause: Box::new(cause),
            undo,
            journal: self.path.clone(),
        }
    }

    fn append(&mut self, entries: &[Entry], durable: bool) -> Result<()> {
        let lines: Vec<u8> = (self.next_seq..)
            .zip(entries)
            .flat_map(|(seq, entry)| {
                let entry = entry.clone();
                Line { seq, entry }.encode()
            })
            .collect();
        let log = self
            .log
            .as_mut()
            .expect("the log is open until the session ends");
        log.append(&lines, durable)
            .map_err(|answer| Error::Journal {
                tried: "write",
                path: self.path.clone(),
                answer,
            })?;
        self.next_seq += entries.len() as u64;
        Ok(())
    }

    /// For entries that recovery can do without. A log that fails refuses the next intent anyway.
    fn append_quietly(&mut self, entry: &Entry) {
        let _ = self.append(std::slice::from_ref(entry), false);
    }
}

/// The edits that would change something, with what they replace.
fn intents(places: &Places, plan: &Plan) -> Result<Vec<Intent>> {
    let mut intents = Vec::new();
    for PlannedEdit { place, edit, .. } in &plan.edits {
        if matches!(edit, Edit::Service { .. }) {
            continue;
        }
        let host = at(places, &plan.knob, place)?;
        let failed = |tried: String| {
            let name = host.name();
            move |answer| Error::kernel(&plan.knob, tried, name, answer)
        };
        let before = edit
            .current(host)
            .map_err(failed(format!("read {}", edit.target())))?;
        let kept = matches!(edit, Edit::Keep { .. });
        if !kept && edit.same(&before, &edit.value()) {
            continue;
        }
        if kept && !edit.same(&before, &edit.value()) {
            return Err(Error::BadPlan {
                knob: plan.knob.clone(),
                why: format!(
                    "{} must stay at '{}' but is '{before}'",
                    edit.target(),
                    edit.value()
                ),
            });
        }
        // An undo would refuse to write it.
        if !edit.can_hold(&before) {
            return Err(Error::BadPlan {
                knob: plan.knob.clone(),
                why: format!(
                    "{} is '{before}', which could not be restored",
                    edit.target()
                ),
            });
        }
        intents.push(Intent {
            knob: plan.knob.clone(),
            place: place.clone(),
            netns: host
                .netns()
                .map_err(failed("identify the network namespace".to_owned()))?,
            ifindex: edit.device().and_then(|device| undo::ifindex(host, device)),
            edit: edit.clone(),
            before,
        });
    }
    Ok(intents)
}

fn at<'p>(places: &'p Places, knob: &str, place: &Place) -> Result<&'p dyn rungwise_host::Host> {
    places.at(place).ok_or_else(|| Error::NoPlace {
        knob: knob.to_owned(),
        place: place.to_string(),
    })
}

fn header(places: &Places, purpose: &str) -> Result<Header> {
    let boot_id = crate::recovery::boot_id(at(places, "the journal", &Place::Host)?)?;
    Ok(Header {
        version: VERSION,
        tool: env!("CARGO_PKG_VERSION").to_owned(),
        boot_id,
        pid: std::process::id(),
        started_ticks: process::started_ticks(std::process::id()).unwrap_or_default(),
        command: environment::argv(),
        created: clock::utc_now(),
        purpose: purpose.to_owned(),
    })
}
