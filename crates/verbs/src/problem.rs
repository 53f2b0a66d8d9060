//! Errors that carry the exit code of `product.md`'s table; any other error is a usage or tool error.

use rungwise_model::Exit;

/// An error with its exit code.
#[derive(Debug)]
pub struct Problem {
    exit: Exit,
    source: anyhow::Error,
}

impl Problem {
    /// `error`, to be reported with `exit`.
    pub fn with(exit: Exit, error: impl Into<anyhow::Error>) -> anyhow::Error {
        anyhow::Error::new(Self {
            exit,
            source: error.into(),
        })
    }
}

impl std::fmt::Display for Problem {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&words(&self.source))
    }
}

impl std::error::Error for Problem {}

/// The error and its causes in one line. A cause that its parent's message already contains is left out.
pub fn words(error: &anyhow::Error) -> String {
    let mut line = String::new();
    for cause in error.chain().map(ToString::to_string) {
        if line.is_empty() {
            line = cause;
        } else if !line.contains(&cause) {
            line = format!("{line}: {cause}");
        }
    }
    without_orders(&line)
}

/// Messages quote foreign names and texts; a terminal must not interpret their control characters.
pub fn without_orders(text: &str) -> String {
    let order = |c: char| c.is_control() && !matches!(c, '\n' | '\t');
    text.replace(order, "\u{fffd}")
}

/// The exit code that an error asks for.
pub fn exit_of(error: &anyhow::Error) -> Exit {
    error
        .chain()
        .find_map(|cause| cause.downcast_ref::<Problem>())
        .map_or(Exit::Usage, |problem| problem.exit)
}

#[cfg(test)]
mod tests {
    use anyhow::Context as _;

    use super::*;

    #[test]
    fn a_cause_is_reported_once() {
        let error = std::io::Error::from(std::io::ErrorKind::NotFound);
        let message = format!("cannot open it: {error}");
        let error = anyhow::Error::new(error).context(message.clone());
        assert_eq!(words(&error), message);
        let error = anyhow::anyhow!("a\u{1b}[2Jb\u{9b}31m\nc");
        assert_eq!(words(&error), "a\u{fffd}[2Jb\u{fffd}31m\nc");
        let error = anyhow::anyhow!("inner").context("outer");
        assert_eq!(words(&error), "outer: inner");
    }

    #[test]
    fn a_problem_keeps_its_exit_code_under_context() {
        let error: anyhow::Result<()> =
            Err(Problem::with(Exit::Precondition, anyhow::anyhow!("x")));
        assert_eq!(
            exit_of(&error.context("y").unwrap_err()),
            Exit::Precondition
        );
    }
}
