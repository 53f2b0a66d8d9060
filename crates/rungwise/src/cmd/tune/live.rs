//! The ladder while it is climbed: finished rungs as rows, the current one as a line that is rewritten.
//!
//! All of it goes to standard error; the report that goes to standard output comes at the end.

use std::io::{IsTerminal as _, Write as _};

use rungwise_experiment::compare::{Observer, Progress};
use rungwise_experiment::design::Design;
use rungwise_model::tune::Rung;
use rungwise_report::terminal;
use rungwise_verbs::problem::without_orders;
use rungwise_verbs::tune;

use crate::cmd::Global;
use crate::cmd::output;

#[expect(clippy::struct_excessive_bools, reason = "each is a fact of its own")]
pub(super) struct Live {
    table: terminal::Live,
    rows: bool,
    rewriting: bool,
    color: bool,
    width: usize,
    dirty: bool,
}

impl Live {
    pub(super) fn new(global: &Global) -> Self {
        Self {
            table: terminal::Live::default(),
            rows: !global.quiet,
            rewriting: std::io::stderr().is_terminal() && !global.quiet,
            color: global.color_on(&std::io::stderr()),
            width: output::width(),
            dirty: false,
        }
    }

    /// Leaves the cursor on a line of its own.
    fn close(&mut self) {
        if self.dirty {
            show("\r\x1b[K");
            self.dirty = false;
        }
    }
}

impl tune::Observer for Live {
    fn begin(&mut self, design: &Design) {
        if self.rows {
            let header = self.table.header(self.width);
            show(&format!("{}\n\n{header}\n", without_orders(&design.title)));
        }
    }

    fn end(&mut self) {
        self.close();
    }
}

/// Unlike `eprint!`, which panics: a closed terminal or pipe must not end the experiment.
fn show(text: &str) {
    let _ = std::io::stderr().write_all(text.as_bytes());
}

impl Observer for Live {
    fn progress(&mut self, progress: &Progress) {
        if self.rewriting {
            let line = self.table.status(
                &terminal::Progress {
                    rung: progress.title.clone(),
                    pair: progress.pairs + progress.discarded,
                    pairs: progress.next_look,
                    ratio: progress.ratio,
                    foreign: Some(progress.foreign),
                    waiting: progress.waiting,
                },
                self.width,
            );
            show(&format!("\r\x1b[K{line}"));
            self.dirty = true;
        }
    }

    fn rung(&mut self, rung: &Rung) {
        self.close();
        if self.rows {
            show(&format!("{}\n", self.table.row(rung, self.color)));
        }
    }
}
