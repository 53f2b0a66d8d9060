//! What the grammars of lines share: names, time, the number of the line, and where events go.

use crate::clock::Clock;
use crate::event::Event;
use crate::names::Names;

/// Whose events were emitted so far.
#[derive(Debug, Default)]
pub(crate) struct Teller {
    /// The JVM of the last event.
    jvm: usize,
    /// There are several JVMs.
    pub(crate) turns: bool,
}

/// What a grammar needs to read a line.
pub(crate) struct Context<'a> {
    /// Names as printed.
    pub(crate) names: &'a mut Names,
    /// The clock of its writer.
    pub(crate) clock: &'a mut Clock,
    /// The line that is read, from 1.
    pub(crate) line: u64,
    /// The place of its writer among all.
    pub(crate) place: usize,
    /// Its writer, as it is shown.
    pub(crate) writer: &'a str,
    /// Its writer has events.
    pub(crate) has_events: &'a mut bool,
    pub(crate) teller: &'a mut Teller,
    pub(crate) sink: &'a mut dyn FnMut(&Names, Event<'_>),
}

impl Context<'_> {
    /// Emits an event.
    pub(crate) fn tell(&mut self, event: Event<'_>) {
        self.turn();
        *self.has_events = true;
        (self.sink)(self.names, event);
    }

    /// Emits whose events follow, if the last one was of another JVM.
    pub(crate) fn turn(&mut self) {
        let jvm = self.place;
        if self.teller.jvm != jvm {
            (self.teller.jvm, self.teller.turns) = (jvm, true);
            let from = self.writer;
            (self.sink)(self.names, Event::Turn { jvm, from });
        }
    }
}
