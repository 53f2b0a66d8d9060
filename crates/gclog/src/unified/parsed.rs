//! For the tests of this folder: what a few lines say, with names spelled out.

use crate::account::Account;
use crate::event::{Concurrent, Event, Pause};
use crate::names::{Name, Names};
use crate::parser::Parser;

/// The events of a log.
#[derive(Debug, Default)]
pub(super) struct Parsed {
    pub(super) pauses: Vec<Pause>,
    pub(super) concurrent: Vec<Concurrent>,
    /// All other events, as they are written in code.
    pub(super) others: Vec<String>,
    names: Names,
}

impl Parsed {
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
pub(super) fn parsed(log: &str) -> Parsed {
    let (parsed, account) = read(log);
    assert_eq!(account.unknown.lines, 0, "{:?}", account.samples);
    parsed
}

/// What these lines say, and the account of them.
pub(super) fn read(log: &str) -> (Parsed, Account) {
    let mut parsed = Parsed::default();
    let mut parser = Parser::new();
    let mut sink = |names: &Names, event: Event<'_>| {
        match event {
            Event::Pause(pause) => parsed.pauses.push(pause.clone()),
            Event::Concurrent(concurrent) => parsed.concurrent.push(*concurrent),
            Event::Safepoint(safepoint) => {
                let operation = safepoint.operation.map(|name| names.get(name));
                parsed.others.push(format!(
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
                parsed.others.push(format!("{thread:?} {duration_ns}"));
            }
            Event::References(references) => {
                let kind = names.get(references.kind);
                parsed
                    .others
                    .push(format!("{kind} {}", references.count.unwrap_or(0)));
            }
            Event::Fact(fact) => parsed.others.push(format!("{fact:?}")),
            other => parsed.others.push(format!("{other:?}")),
        }
        parsed.names = names.clone();
    };
    parser.push(log.as_bytes(), &mut sink);
    let account = parser.finish(&mut sink);
    (parsed, account)
}
