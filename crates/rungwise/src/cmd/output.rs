//! Where a result goes: standard output or the file that `-o` names.

use std::io::{ErrorKind, Write as _};

use anyhow::Context as _;

use super::Global;

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

    /// Progress and warnings, to standard error; silent with `-q`.
    pub(crate) fn say(&self, line: &str) {
        if !self.quiet {
            eprintln!("{line}");
        }
    }
}
