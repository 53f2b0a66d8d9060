//! Where a result goes: standard output or the file that `-o` names.

use std::io::{ErrorKind, IsTerminal, Write as _};

use anyhow::Context as _;
use rungwise_host::environment;
use rungwise_model::tune::TuneReport;
use rungwise_report::{html, markdown, terminal};

use super::{Color, Format, Global};

/// Columns of the terminal, 100 where there is none.
pub(crate) fn width() -> usize {
    terminal_size::terminal_size_of(std::io::stderr())
        .or_else(|| terminal_size::terminal_size_of(std::io::stdout()))
        .map_or(100, |(width, _)| usize::from(width.0).max(40))
}

/// Prints a tune report in the format that was asked for.
pub(crate) fn tune(report: &TuneReport, global: &Global) -> anyhow::Result<()> {
    let blocks = rungwise_report::tune::blocks(report);
    let text = match global.format {
        Format::Json => rungwise_report::json(report)?,
        Format::Html => html::page(&report.title, &blocks),
        Format::Markdown => markdown::render(&blocks),
        Format::Text | Format::Sarif => {
            terminal::render(&blocks, width(), global.color_on(&std::io::stdout()))
        }
    };
    global.emit(&text)
}

impl Global {
    /// Prints `text` to standard output, or writes it to the file of `-o`. A broken pipe is a normal end.
    pub(crate) fn emit(&self, text: &str) -> anyhow::Result<()> {
        if let Some(path) = &self.output {
            return rungwise_host::files::replace(path, text.as_bytes())
                .with_context(|| format!("cannot write the result to {}", path.display()));
        }
        let mut out = std::io::stdout().lock();
        match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
            Err(error) if error.kind() == ErrorKind::BrokenPipe => Ok(()),
            other => other.context("cannot write the result to standard output"),
        }
    }

    /// Whether `stream` gets colour.
    pub(crate) fn color_on(&self, stream: &impl IsTerminal) -> bool {
        match self.color {
            Color::Always => true,
            Color::Never => false,
            Color::Auto => {
                stream.is_terminal()
                    && !environment::no_color()
                    && environment::term().is_some_and(|term| term != "dumb")
            }
        }
    }

    /// Progress and warnings, to standard error; silent with `-q`.
    pub(crate) fn say(&self, line: &str) {
        if !self.quiet {
            // Unlike `eprintln!`, which panics: nobody reading is no reason to stop, least of all before an undo.
            let _ = writeln!(std::io::stderr(), "{line}");
        }
    }
}
