//! Where a result goes: standard output or the file that `-o` names; and progress, which goes to standard error.

use std::io::{ErrorKind, IsTerminal, Write as _};
use std::path::Path;

use anyhow::Context as _;
use rungwise_host::signals::Interrupt;
use rungwise_host::{environment, files};
use rungwise_model::Exit;
use rungwise_model::load::Second;
use rungwise_report::numbers;
use rungwise_verbs::documents::{self, Document, Form, Format};
use rungwise_verbs::printed::Printed;
use rungwise_verbs::problem::words;
use rungwise_verbs::runs::store;
use rungwise_verbs::{Invocation, Observer};

use super::{Color, Global};

/// Columns of the terminal, 100 where there is none.
pub(crate) fn width() -> usize {
    terminal_size::terminal_size_of(std::io::stderr())
        .or_else(|| terminal_size::terminal_size_of(std::io::stdout()))
        .map_or(100, |(width, _)| usize::from(width.0).max(40))
}

/// Free bytes that must be there before the work begins. A capture of a large machine is below it.
const ROOM: usize = 1 << 20;

/// Writes a result to `path`. Where that fails (the disk has filled meanwhile), the result is written elsewhere and the error says
/// where: what took minutes to measure is not lost.
pub(crate) fn keep(path: &Path, bytes: &[u8]) -> anyhow::Result<()> {
    let Err(error) = files::replace(path, bytes) else {
        return Ok(());
    };
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let name = format!("rungwise-{}-{name}", std::process::id());
    let kept = environment::other_folders()
        .into_iter()
        .map(|folder| folder.join(&name))
        .find(|other| files::create_new(other, bytes).is_ok());
    Err(match kept {
        Some(other) => anyhow::anyhow!("{error}; the result is in {} instead", other.display()),
        None => anyhow::anyhow!("{error}; the result is lost, because no other folder is writable"),
    })
}

impl Global {
    /// The format that was asked for, by name or by how the name of the file ends that the result goes to; else text.
    pub(crate) fn format(&self) -> Format {
        let ending = || self.output.as_ref()?.extension()?.to_str();
        self.format.unwrap_or_else(|| match ending() {
            Some("html" | "htm") => Format::Html,
            Some("json") => Format::Json,
            Some("md") => Format::Markdown,
            Some("sarif") => Format::Sarif,
            _ => Format::Text,
        })
    }

    /// How pages are written.
    pub(super) fn form(&self) -> Form {
        Form {
            format: self.format(),
            width: width(),
            color: self.color_of_result(),
        }
    }

    /// What surrounds the verb that is called.
    pub(super) fn invocation(&self) -> Invocation<'_> {
        Invocation {
            observer: self,
            interrupt: &Interrupt::install,
            runs: &self.runs,
            command: without_password(environment::argv()),
        }
    }

    /// Prints the document of a verb, kept in a run folder where that was asked for.
    ///
    /// It is printed also where it cannot be kept, and the error comes after it.
    pub(super) fn finish<T: Document>(&self, document: &mut T, keep: bool) -> anyhow::Result<Exit> {
        let kept = keep.then(|| store::keep(document, &[], &self.runs));
        let exit = self.draw(document)?;
        if let Some(path) = kept.transpose()? {
            self.say(&format!("kept: rungwise report {}", path.display()));
        }
        Ok(exit)
    }

    /// Prints a document in the format that was asked for.
    pub(super) fn draw<T: Document>(&self, document: &T) -> anyhow::Result<Exit> {
        self.emit(&documents::render(document, self.form())?)?;
        Ok(document.envelope().exit)
    }

    /// Prints an answer whose page is one text.
    pub(super) fn print(&self, printed: &Printed) -> anyhow::Result<Exit> {
        let text = match self.format() {
            Format::Json => &printed.json,
            Format::Text | Format::Markdown | Format::Html | Format::Sarif => &printed.text,
        };
        self.write(printed, text)
    }

    /// Writes `text` as the answer; an error says what to do about it.
    pub(super) fn write(&self, printed: &Printed, text: &str) -> anyhow::Result<Exit> {
        let put = self.emit(text).map_err(|error| match &self.output {
            Some(_) => anyhow::anyhow!("{}; name another file with -o", words(&error)),
            None => error,
        });
        match printed.unprinted {
            Some(remedy) => put.context(remedy)?,
            None => put?,
        }
        Ok(printed.exit)
    }

    /// Refuses an output that could not be written, before the work whose result it is to hold.
    pub(crate) fn check_output(&self) -> anyhow::Result<()> {
        let Some(path) = &self.output else {
            return Ok(());
        };
        let folder = path
            .parent()
            .filter(|folder| !folder.as_os_str().is_empty());
        if let Some(folder) = folder.filter(|folder| !files::is_folder(folder)) {
            anyhow::bail!(
                "cannot write the result to {}: {} is not a folder; create the folder, or name another file with -o",
                path.display(),
                folder.display()
            );
        }
        if files::is_folder(path) {
            anyhow::bail!(
                "cannot write the result to {}: it is a folder; name another file with -o",
                path.display()
            );
        }
        files::try_replace(path, ROOM)
            .map_err(|error| anyhow::anyhow!("{error}; name another file with -o"))?;
        // A capture or a log is gone once a report stands in its place. The output itself is named once.
        let named = |word: &&String| {
            // `-oFILE`, `-qoFILE`.
            let attached = word
                .strip_prefix('-')
                .filter(|word| !word.starts_with('-'))
                .and_then(|word| word.split_once('o'));
            let word = attached.map_or(&***word, |(_, file)| file);
            let mut names = word.split([',', '=']).chain([word]).map(Path::new);
            names.any(|name| files::is_one_file(name, path))
        };
        let read = environment::argv().iter().filter(named).count() > 1;
        anyhow::ensure!(
            !read,
            "cannot write the result to {}: it is the input file; name another file with -o",
            path.display()
        );
        Ok(())
    }

    /// Whether the result gets colour; a file gets it only where it is asked for by name.
    pub(crate) fn color_of_result(&self) -> bool {
        match self.output {
            Some(_) => self.color == Color::Always,
            None => self.color_on(&std::io::stdout()),
        }
    }

    /// Prints `text` to standard output, or writes it to the file of `-o`. A broken pipe is a normal end.
    pub(crate) fn emit(&self, text: &str) -> anyhow::Result<()> {
        if let Some(path) = &self.output {
            return keep(path, text.as_bytes());
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
}

/// The command line as documents record it: a password on it is no part of it.
fn without_password(mut words: Vec<String>) -> Vec<String> {
    const OPTION: &str = "--password";
    let is_secret = |text: &str| !text.starts_with("file:");
    for at in 1..words.len() {
        if words[at - 1] == OPTION && is_secret(&words[at]) {
            MASKED.clone_into(&mut words[at]);
        } else if let Some(text) = words[at].strip_prefix("--password=")
            && is_secret(text)
        {
            words[at] = format!("{OPTION}={MASKED}");
        }
    }
    words
}

/// Stands for a secret.
const MASKED: &str = "(masked)";

impl Observer for Global {
    /// To standard error; silent with `-q`.
    fn say(&self, line: &str) {
        if !self.quiet {
            // Unlike `eprintln!`, which panics: nobody reading is no reason to stop, least of all before an undo.
            let _ = writeln!(std::io::stderr(), "{line}");
        }
    }

    fn second(&self, second: &Second) {
        if std::io::stderr().is_terminal() {
            self.say(&format!(
                "{:>5.0} s  {:>12}  p50 {:>9}  p99 {:>9}  lost {}",
                second.at_s + 1.0,
                numbers::rate(second.received as f64),
                numbers::micros(second.p50_us),
                numbers::micros(second.p99_us),
                numbers::count(second.lost),
            ));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_password_is_in_no_document() {
        let recorded = |words: &[&str]| {
            let words = words.iter().map(|word| (*word).to_owned());
            without_password(words.collect()).join(" ")
        };
        for (words, expected) in [
            (
                &["r", "--password", "hunter2", "x"][..],
                "r --password (masked) x",
            ),
            (&["r", "--password=hunter2"], "r --password=(masked)"),
            (&["r", "--password", "file:a"], "r --password file:a"),
            (&["r", "--password"], "r --password"),
        ] {
            assert_eq!(recorded(words), expected);
        }
    }
}
