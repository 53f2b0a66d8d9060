//! Undo from the journal alone: after a crash, after `knob apply`, after a reboot.
//!
//! The journal may be torn or damaged, or come from another boot. After another boot, nothing is in force any more:
//! every knob sets the running kernel only, so nothing is written, and a target that still has our value (set by a boot
//! script, perhaps) is only listed.

use std::path::{Path, PathBuf};

use rungwise_host::Host;

use crate::edit::{Place, Places};
use crate::error::{Error, Result};
use crate::journal::{
    self, Claim, Damage, Entry, Header, JournalFile, Line, Log, Pending, Recovered, Watched,
};
use crate::plan::Drift;
use crate::undo::{self, Undo};

/// The result for one journal.
#[derive(Debug)]
pub struct Recovery {
    /// The journal.
    pub journal: PathBuf,
    /// Who wrote it; absent if its header is missing.
    pub header: Option<Header>,
    /// What was restored, and what was not.
    pub undo: Undo,
    /// The machine has rebooted since; nothing was written.
    pub rebooted: bool,
    /// After a reboot: targets that still have our value.
    pub still: Vec<String>,
    /// Lines that could not be used.
    pub damage: Vec<Damage>,
    /// Nothing remains to be done; the journal was removed or set aside.
    pub closed: bool,
}

/// A journal that is open.
#[derive(Debug)]
pub struct Open {
    /// The file.
    pub journal: PathBuf,
    /// Its content.
    pub recovered: Recovered,
}

/// The state of edits in force.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Stand {
    /// Targets that still have our value.
    pub holding: usize,
    /// Targets that do not.
    pub drift: Vec<Drift>,
    /// Targets that cannot be read from here, and why.
    pub elsewhere: Vec<String>,
}

/// What to do with values that someone else has changed since.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Leftovers {
    /// Keep the journal open and report them again next time.
    Report,
    /// Accept them as they are and close the journal.
    Abandon,
}

/// The open journals below `state`, newest first, with what they say.
pub fn open(state: &Path) -> Result<Vec<Open>> {
    let mut found = Vec::new();
    for stored in journal::stored(state)? {
        let Some(watched) = Watched::open(&stored.path)? else {
            continue;
        };
        let (Claim::Held(bytes) | Claim::Ours(_, bytes)) = watched.claim(false)? else {
            continue;
        };
        found.push(Open {
            journal: stored.path,
            recovered: journal::read(&bytes),
        });
    }
    Ok(found)
}

/// The changes of open journals below `state` that are in force at `places`, a sentence each, newest first.
pub fn in_force(state: &Path, places: &Places) -> Result<Vec<String>> {
    let host = places.at(&Place::Host);
    let boot_id = host.map(boot_id).transpose()?;
    let sentences = open(state)?.into_iter().filter_map(|open| {
        let header = open.recovered.header.filter(|header| Some(&header.boot_id) == boot_id.as_ref())?;
        let holding = verify(&open.recovered.pending, places).holding;
        (holding > 0).then(|| {
            format!(
                "changes by '{}' are in force ({holding} of {}, journal {}) and count as the machine's own settings; \
                 to undo them, run `rungwise knob undo` before a run",
                header.command.join(" "),
                open.recovered.pending.len(),
                open.journal.display()
            )
        })
    });
    Ok(sentences.collect())
}

/// Undoes the changes that are in force according to the journal at `path`. `None` if it was gone: another process was
/// first. With `wait`, waits for a process that is using it.
pub fn recover(
    path: &Path,
    places: &Places,
    leftovers: Leftovers,
    wait: bool,
) -> Result<Option<Recovery>> {
    match Watched::open(path)? {
        Some(watched) => recover_watched(watched, path, places, leftovers, wait),
        None => Ok(None),
    }
}

/// The same for the very journal that was watched.
pub(crate) fn recover_watched(
    watched: Watched,
    path: &Path,
    places: &Places,
    leftovers: Leftovers,
    wait: bool,
) -> Result<Option<Recovery>> {
    let (mut file, bytes) = match watched.claim(wait)? {
        Claim::Gone => return Ok(None),
        Claim::Ours(file, bytes) => (file, bytes),
        Claim::Held(bytes) => {
            let by = journal::read(&bytes)
                .header
                .map_or("an unidentified process".to_owned(), |header| {
                    format!("process {} ({})", header.pid, header.command.join(" "))
                });
            let path = path.to_owned();
            return Err(Error::Busy { path, by });
        }
    };
    let recovered = journal::read(&bytes);
    if let Some(why) = recovered.distrust() {
        if leftovers == Leftovers::Abandon {
            file.set_aside()?;
        }
        let path = path.to_owned();
        return Err(Error::Distrusted { path, why });
    }
    // If the torn end stays, the next line would follow half a line; then nothing is appended.
    let appendable = file.cut(recovered.whole).is_ok();
    let mut recovery = undo_recovered(recovered, places, |line| {
        if appendable {
            // The undo counts, not its record: doing it again finds the old values in place.
            let _ = file.append(&line.encode(), false);
        }
    })?;
    path.clone_into(&mut recovery.journal);
    close(file, &mut recovery, leftovers)?;
    Ok(Some(recovery))
}

/// The undo itself, over any log.
pub fn undo_recovered(
    recovered: Recovered,
    places: &Places,
    mut record: impl FnMut(Line),
) -> Result<Recovery> {
    let mut recovery = Recovery {
        journal: PathBuf::new(),
        header: recovered.header,
        undo: Undo::default(),
        rebooted: false,
        still: Vec::new(),
        damage: recovered.damage,
        closed: false,
    };
    let mut seq = recovered.next_seq;
    let mut record = |entry: Entry| {
        record(Line { seq, entry });
        seq += 1;
    };
    let Some(header) = &recovery.header else {
        return Ok(recovery);
    };
    if recovered.ended && recovered.pending.is_empty() {
        return Ok(recovery);
    }
    let host = places.at(&Place::Host).ok_or_else(|| Error::NoPlace {
        knob: "the journal".to_owned(),
        place: Place::Host.to_string(),
    })?;
    if boot_id(host)? != header.boot_id {
        recovery.rebooted = true;
        recovery.still = still_ours(host, &recovered.pending);
        record(Entry::Note {
            text: "the machine has rebooted; nothing was written".to_owned(),
        });
        return Ok(recovery);
    }
    let undo = undo::run(places, &recovered.pending, |intent, how| {
        record(Entry::Undone {
            intent,
            how: how.to_owned(),
        });
    });
    recovery.undo.append(undo);
    Ok(recovery)
}

/// The state of edits in force, given in the order in which they were made.
pub fn verify(pending: &[Pending], places: &Places) -> Stand {
    // Only the last edit of a target counts.
    let mut last: Vec<&Pending> = Vec::new();
    for pending in pending {
        last.retain(|other| {
            other.intent.place != pending.intent.place
                || other.intent.edit.target() != pending.intent.edit.target()
        });
        last.push(pending);
    }
    let mut stand = Stand::default();
    for Pending { intent, .. } in last {
        let target = intent.edit.target();
        let elsewhere = |why: &str| format!("{}: {target} on {}: {why}", intent.knob, intent.place);
        let Some(host) = places.at(&intent.place) else {
            stand.elsewhere.push(elsewhere("it belongs to a run"));
            continue;
        };
        // The same path in another namespace is another setting.
        if host.netns().is_ok_and(|netns| netns != intent.netns) {
            let why = format!("it was set in network namespace {}", intent.netns);
            stand.elsewhere.push(elsewhere(&why));
            continue;
        }
        let wanted = intent.edit.value().into_owned();
        let found = match intent.edit.current(host) {
            Ok(found) if intent.edit.same(&found, &wanted) => {
                stand.holding += 1;
                continue;
            }
            Ok(found) => found,
            Err(error) => format!("unreadable: {error}"),
        };
        stand.drift.push(Drift {
            knob: intent.knob.clone(),
            place: intent.place.clone(),
            target,
            wanted,
            found,
        });
    }
    stand
}

/// Identity of the running boot.
pub fn boot_id(host: &dyn Host) -> Result<String> {
    const PATH: &str = "/proc/sys/kernel/random/boot_id";
    host.text(Path::new(PATH))
        .map_err(|answer| Error::kernel("the journal", format!("read {PATH}"), host.name(), answer))
}

fn still_ours(host: &dyn Host, pending: &[Pending]) -> Vec<String> {
    pending
        .iter()
        .filter(|pending| pending.intent.place == Place::Host)
        .filter_map(|Pending { intent, .. }| {
            let found = intent.edit.current(host).ok()?;
            let ours = intent.edit.same(&found, &intent.edit.value());
            ours.then(|| format!("{} holds '{found}'", intent.edit.target()))
        })
        .collect()
}

fn close(file: JournalFile, recovery: &mut Recovery, leftovers: Leftovers) -> Result<()> {
    let clean = recovery.undo.complete() && recovery.damage.is_empty();
    if clean && !recovery.rebooted {
        file.remove()?;
    } else if clean || recovery.rebooted || leftovers == Leftovers::Abandon {
        file.set_aside()?;
    } else {
        return Ok(());
    }
    recovery.closed = true;
    Ok(())
}
