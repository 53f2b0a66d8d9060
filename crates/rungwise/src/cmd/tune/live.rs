//! The ladder while it is climbed: finished rungs as rows, the current one as a line that is rewritten.
//!
//! All of it goes to standard error; the report that goes to standard output comes at the end.

use std::io::{IsTerminal as _, Write as _};

use rungwise_experiment::compare::{Observer, Progress};
use rungwise_experiment::design::Design;
use rungwise_model::tune::Rung;
use rungwise_report::terminal;

use crate::cmd::Global;
use crate::problem::without_orders;

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
    pub(super) fn new(global: &Global, design: &Design) -> Self {
        let terminal = std::io::stderr().is_terminal();
        let mut live = Self {
            table: terminal::Live::default(),
            rows: !global.quiet,
            rewriting: terminal && !global.quiet,
            color: global.color_on(&std::io::stderr()),
            width: crate::cmd::output::width(),
            dirty: false,
        };
        if live.rows {
            let header = live.table.header(live.width);
            show(&format!("{}\n\n{header}\n", without_orders(&design.title)));
        }
        live
    }

    /// Leaves the cursor on a line of its own.
    pub(super) fn close(&mut self) {
        if self.dirty {
            show("\r\x1b[K");
            self.dirty = false;
        }
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
