//! The knobs of the machine around the service, brought to a variant's values and back.

use std::collections::BTreeSet;
use std::path::Path;

use rungwise_host::live::Live;
use rungwise_host::namespace::Namespace;
use rungwise_knobs::engine::Change;
use rungwise_knobs::guard::Guard;
use rungwise_knobs::{Applied, Context, Error, Place, Scope, Session};
use rungwise_model::Exit;
use serde::Serialize;

use super::topology::{self, Topology};
use crate::stage::{Setting, StageError, Variant};

/// The session of the journal and what is in force, oldest first.
pub(super) struct Knobs {
    session: Session,
    guard: Option<Guard>,
    applied: Vec<InForce>,
    cpus: Vec<usize>,
    pub(super) found: Vec<Found>,
}

/// What a file, feature or table held before the first change to it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Found {
    /// Id of the knob.
    pub knob: String,
    /// Where it is.
    pub place: Place,
    /// File, feature or table.
    pub target: String,
    /// What it held, as the kernel prints it.
    pub value: String,
}

struct InForce {
    /// Which of the places it holds in.
    at: usize,
    setting: Setting,
    value: String,
    applied: Applied,
}

impl Knobs {
    /// Opens a journal for the places of all `topologies`, and has a guard watch it.
    pub(super) fn open(
        topologies: &[&Topology],
        state_dir: &Path,
        cpus: &[usize],
    ) -> Result<Self, StageError> {
        let places = topology::places(topologies);
        let session = Session::begin(state_dir, places, "tune").map_err(of_knobs)?;
        let labs: Vec<_> = topologies
            .iter()
            .filter_map(|topology| topology.server_namespace())
            .map(Namespace::netns_fd)
            .collect();
        let guard = Guard::spawn(session.journal(), None, &labs).map_err(of_knobs)?;
        Ok(Self {
            session,
            guard: Some(guard),
            applied: Vec::new(),
            cpus: cpus.to_vec(),
            found: Vec::new(),
        })
    }

    /// Makes exactly the machine settings of each variant hold in its place. What is not wanted any more goes back, and what
    /// was set after it too, in reverse order: settings may rest on each other (threaded NAPI on GRO) or share
    /// a file (the flow table of both ends). Service switches are not ours.
    pub(super) fn bring_to(
        &mut self,
        variants: &[(&Topology, &Variant)],
    ) -> Result<(), StageError> {
        let wanted = |known: &InForce| {
            let here = variants.get(known.at);
            here.is_some_and(|(_, variant)| {
                variant.settings.get(&known.setting) == Some(&known.value)
            })
        };
        let stays = self
            .applied
            .iter()
            .take_while(|known| wanted(known))
            .count();
        for gone in self.applied.drain(stays..).rev() {
            let undo = self.session.undo(&gone.applied);
            if !undo.complete() {
                return Err(StageError::Broken(format!(
                    "cannot restore {}: {}",
                    gone.setting.knob,
                    undo.left_in_words()
                )));
            }
        }
        let all = variants.iter().enumerate();
        let all = all.flat_map(|(at, (topology, variant))| {
            let settings = variant.settings.iter();
            settings.map(move |(setting, value)| (at, setting, value, *topology))
        });
        for (at, setting, value, topology) in all {
            if self
                .applied
                .iter()
                .any(|known| known.at == at && known.setting == *setting)
            {
                continue;
            }
            // A name of the author's own is a switch: a scenario that declares none of this name is refused.
            let Ok(knob) = rungwise_knobs::find(&setting.knob) else {
                continue;
            };
            if knob.scope == Scope::Service {
                continue;
            }
            let end = topology
                .end(setting.side)
                .map_err(StageError::Unavailable)?;
            let context = Context {
                machine: &Live,
                here: &*end.host,
                place: &end.place,
                device: end.device.as_deref(),
                cpus: &self.cpus,
            };
            let unavailable = |error: Error| StageError::Unavailable(error.to_string());
            let plan = knob.plan(&context, value).map_err(unavailable)?;
            let applied = self.session.apply(&plan).map_err(|error| match error {
                Error::Journal { .. }
                | Error::Busy { .. }
                | Error::Distrusted { .. }
                | Error::Rollback { .. } => of_knobs(error),
                other => unavailable(other),
            })?;
            // Those of the other places are the same again.
            let first = if at == 0 { &*applied.changes } else { &[] };
            for Change {
                place,
                target,
                before,
                ..
            } in first
            {
                let known = |found: &Found| (&found.place, &found.target) == (place, target);
                if !self.found.iter().any(known) {
                    self.found.push(Found {
                        knob: applied.knob.clone(),
                        place: place.clone(),
                        target: target.clone(),
                        value: before.clone(),
                    });
                }
            }
            self.applied.push(InForce {
                at,
                setting: setting.clone(),
                value: value.clone(),
                applied,
            });
        }
        Ok(())
    }

    /// Whether one of these settings, as it is in force, has changed something beyond the namespaces of the lab.
    pub(super) fn reach_the_host(&self, settings: &BTreeSet<&Setting>) -> bool {
        self.applied.iter().any(|known| {
            let changes = &known.applied.changes;
            settings.contains(&known.setting)
                && changes.iter().any(|change| change.place == Place::Host)
        })
    }

    /// Has the guard end this service, too, when this process is killed.
    pub(super) fn answer_for(&mut self, service: u32) {
        if let Some(guard) = &mut self.guard {
            guard.answer_for(service);
        }
    }

    /// Undoes everything and ends the journal.
    pub(super) fn close(mut self) -> Result<(), String> {
        let journal = self.session.journal().display().to_string();
        let undo = self
            .session
            .close()
            .map_err(|error| format!("{error}; the journal is {journal}"))?;
        if let Some(guard) = self.guard.take() {
            guard.dismiss();
        }
        if undo.complete() {
            Ok(())
        } else {
            Err(format!(
                "some settings could not be put back: {}; the journal is {journal}; run: rungwise knob undo",
                undo.left_in_words()
            ))
        }
    }
}

#[expect(clippy::needless_pass_by_value, reason = "the shape of map_err")]
fn of_knobs(error: Error) -> StageError {
    if error.exit() == Exit::Precondition {
        StageError::Precondition(error.to_string())
    } else {
        StageError::Broken(error.to_string())
    }
}

#[cfg(test)]
mod tests {
    use rungwise_host::Host as _;
    use rungwise_host::privilege::{self, Privilege};

    use super::*;
    use crate::lab::Wanted;
    use crate::stage::Side;

    #[test]
    fn settings_that_share_a_file_go_back_in_reverse_order() {
        assert_eq!(
            privilege::detect(),
            Privilege::Root,
            "this test needs root: the flow tables are refused to everybody else"
        );
        let table = || Live.text(Path::new("/proc/sys/net/core/rps_sock_flow_entries"));
        let before = table().unwrap();
        let topology = Topology::build(&Wanted::Namespaces { queues: 1 }).unwrap();
        let state = tempfile::tempdir().unwrap();
        let session = Session::begin(state.path(), topology::places(&[&topology]), "test").unwrap();
        let mut knobs = Knobs {
            session,
            // The program that could be its guard is not this test.
            guard: None,
            applied: Vec::new(),
            cpus: vec![0],
            found: Vec::new(),
        };
        let flows = |side, flows: &str| {
            let knob = "net.rfs".to_owned();
            (Setting { knob, side }, flows.to_owned())
        };
        // Both ends' tables, and behind them the one table of the machine.
        let both =
            Variant::default().with(&[flows(Side::Server, "512"), flows(Side::Client, "1024")]);
        knobs.bring_to(&[(&topology, &both)]).unwrap();
        assert_eq!(table().unwrap(), "1024");
        let one = Variant::default().with(&[flows(Side::Client, "1024")]);
        knobs.bring_to(&[(&topology, &one)]).unwrap();
        assert_eq!(table().unwrap(), "1024");
        knobs.close().unwrap();
        assert_eq!(table().unwrap(), before);
    }
}
