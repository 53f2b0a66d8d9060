//! What surrounds a verb: who hears of progress, what ends it early, where runs are kept.

use std::path::Path;

use rungwise_host::live::Live;
use rungwise_host::signals::Interrupt;
use rungwise_host::{clock, machine};
use rungwise_model::load::Second;
use rungwise_model::{Envelope, Exit, SCHEMA_VERSION, Tool};

/// Hears of progress while a verb works.
pub trait Observer {
    /// A line for a person, such as `sampling this host for 10 s ...`.
    fn say(&self, line: &str);

    /// A second of a load has passed.
    fn second(&self, _: &Second) {}
}

/// What a verb works with beside its request.
pub struct Invocation<'a> {
    /// Hears of progress.
    pub observer: &'a dyn Observer,
    /// Gives the flag that ends the work early. A verb asks for it when its input is open: signals that are held back while a pipe has
    /// nothing to say could not end the process.
    pub interrupt: &'a dyn Fn() -> rungwise_host::Result<Interrupt>,
    /// Folder of the run folders.
    pub runs: &'a Path,
    /// The command line that documents record.
    pub command: Vec<String>,
}

impl Invocation<'_> {
    pub(crate) fn say(&self, line: &str) {
        self.observer.say(line);
    }

    pub(crate) fn interrupt(&self) -> rungwise_host::Result<Interrupt> {
        (self.interrupt)()
    }

    /// The common fields of a document of that kind that is finished now.
    pub(crate) fn envelope(&self, kind: &str, started: String, exit: Exit) -> Envelope {
        Envelope {
            schema: SCHEMA_VERSION,
            document: Some(kind.to_owned()),
            run: None,
            written_on: Some(machine::fingerprint(&Live)),
            tool: Tool {
                version: env!("CARGO_PKG_VERSION").to_owned(),
            },
            command: self.command.clone(),
            started,
            finished: clock::utc_now(),
            exit,
        }
    }
}
