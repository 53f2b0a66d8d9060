//! The processes that placeholders in file patterns match.

use std::collections::BTreeSet;

use super::OWNER;
use crate::capture::Moment;
use crate::process::{self, Services};

/// Processes that a placeholder in a pattern matches.
#[derive(Default)]
pub(super) struct Chosen {
    /// `{family}`: the process that is judged and its descendants.
    pub(super) family: BTreeSet<u32>,
    /// `{busy}`: processes with several threads that used most of a CPU in the first part of the window.
    pub(super) busy: Option<BTreeSet<u32>>,
    /// `{postgres}`: processes of this name, whose titles show what they wait for.
    pub(super) postgres: BTreeSet<u32>,
    /// `{backend}`: the same, where they are few enough to be read often.
    pub(super) backend: BTreeSet<u32>,
    /// `{full}`: processes whose table of descriptors is as large as their limit, so that a count is worth its cost.
    pub(super) full: BTreeSet<u32>,
    /// `{waiting}`: processes in an uninterruptible wait, or with sockets that wait for them.
    pub(super) waiting: BTreeSet<u32>,
    /// `{service}` and `{seldom}`: processes that serve clients, and from the second full sample on also those that use CPU, read often and
    /// in the full samples.
    pub(super) services: Services,
}

/// Processes of `PostgreSQL` up to which their titles are read often, at 5 us each.
const MOST_BACKENDS: usize = 100;

/// Processes whose threads are read at the end of the window because others wait for them.
pub(super) const MOST_WAITING: usize = 8;

/// Of a family, processes whose mount namespaces are read, at some 30 us each.
const MOST_OF_FAMILY: usize = 16;

impl Chosen {
    /// Patterns that are read after all full samples: the processes are known only then.
    pub(super) fn at_the_end(pattern: &str) -> bool {
        [OWNER, "{full}", "{waiting}"]
            .iter()
            .any(|placeholder| pattern.contains(placeholder))
    }

    pub(super) fn of(&self, pattern: &str) -> Option<(&'static str, &BTreeSet<u32>)> {
        static NONE: BTreeSet<u32> = BTreeSet::new();
        [
            ("{busy}", self.busy.as_ref().unwrap_or(&NONE)),
            ("{family}", &self.family),
            ("{postgres}", &self.postgres),
            ("{full}", &self.full),
            ("{waiting}", &self.waiting),
            ("{service}", &self.services.often),
            ("{seldom}", &self.services.seldom),
            ("{backend}", &self.backend),
        ]
        .into_iter()
        .find(|(placeholder, _)| pattern.contains(placeholder))
    }

    /// The processes whose mount namespaces are read: the judged one with its children, and those that serve clients or use CPU.
    pub(super) fn working(&self) -> Vec<u32> {
        let family = self.family.iter().copied().take(MOST_OF_FAMILY);
        let all: BTreeSet<u32> = family.chain(self.services.all()).collect();
        all.into_iter().collect()
    }

    /// From the list of all processes in this sample.
    pub(super) fn update(
        &mut self,
        judged: Option<u32>,
        earlier: Option<&Moment>,
        moment: &Moment,
    ) {
        if let Some(judged) = judged {
            self.family = process::family_at(moment, judged);
        }
        if let (None, Some(earlier)) = (&self.busy, earlier) {
            self.busy = Some(process::busy_between(earlier, moment));
        }
        self.postgres = process::postgres_at(moment);
        self.backend.clear();
        if self.postgres.len() <= MOST_BACKENDS {
            self.backend.clone_from(&self.postgres);
        }
    }
}
