//! Errors that carry the exit code of `product.md`'s table; any other error is a usage or tool error.

use rungwise_model::Exit;

/// An error with its exit code.
#[derive(Debug)]
pub(crate) struct Problem {
    exit: Exit,
    source: anyhow::Error,
}

impl Problem {
    /// `error`, to be reported with `exit`.
    pub(crate) fn new(exit: Exit, error: impl Into<anyhow::Error>) -> anyhow::Error {
        anyhow::Error::new(Self {
            exit,
            source: error.into(),
        })
    }
}

impl std::fmt::Display for Problem {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{:#}", self.source)
    }
}

impl std::error::Error for Problem {}

/// The exit code that an error asks for.
pub(crate) fn exit_of(error: &anyhow::Error) -> Exit {
    error
        .chain()
        .find_map(|cause| cause.downcast_ref::<Problem>())
        .map_or(Exit::Usage, |problem| problem.exit)
}
