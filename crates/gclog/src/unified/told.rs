//! For the tests of this folder: what a few lines say, with names spelled out.

use crate::account::Account;
use crate::event::{Concurrent, Event, Pause};
use crate::names::{Name, Names};
use crate::parser::Parser;

/// What was told.
#[derive(Debug, Default)]
pub(super) struct Told {
    pub(super) pauses: Vec<Pause>,
    pub(super) concurrent: Vec<Concurrent>,
    /// All other events, as they are written in code.
    pub(super) others: Vec<String>,
    names: Names,
}

impl Told {
    pub(super) fn name(&self, name: Name) -> &str {
        self.names.get(name)
    }

    /// Names of the pauses.
    pub(super) fn titles(&self) -> Vec<&str> {
        self.pauses
            .iter()
            .map(|pause| self.name(pause.name))
            .collect()
    }
}

/// What these lines say, which are all known.
pub(super) fn told(log: &str) -> Told {
    let (told, account) = read(log);
    assert_eq!(account.unknown.lines, 0, "{:?}", account.samples);
    told
}

/// What these lines say, and the account of them.
pub(super) fn read(log: &str) -> (Told, Account) {
    let mut told = Told::default();
    let mut parser = Parser::new();
    let mut sink = |names: &Names, event: Event<'_>| {
        match event {
            Event::Pause(pause) => told.pauses.push(pause.clone()),
            Event::Concurrent(concurrent) => told.concurrent.push(*concurrent),
            Event::Safepoint(safepoint) => {
                let operation = safepoint.operation.map(|name| names.get(name));
                told.others.push(format!(
                    "{operation:?} {:?} {}",
                    safepoint.reaching_ns, safepoint.total_ns
                ));
            }
            Event::Stall {
                thread,
                duration_ns,
                ..
            } => {
                let thread = thread.map(|name| names.get(name));
                told.others.push(format!("{thread:?} {duration_ns}"));
            }
            Event::References(references) => {
                let kind = names.get(references.kind);
                told.others
                    .push(format!("{kind} {}", references.count.unwrap_or(0)));
            }
            Event::Fact(fact) => told.others.push(format!("{fact:?}")),
            other => told.others.push(format!("{other:?}")),
        }
        told.names = names.clone();
    };
    parser.push(log.as_bytes(), &mut sink);
    let account = parser.finish(&mut sink);
    (told, account)
}
