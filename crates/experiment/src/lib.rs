//! Experiments: what is compared, in which order, and when and how it is decided.
//!
//! A [`design::Design`] is fixed and written to disk first. [`ladder::climb`] walks it: the A/A check, then rung after rung on top of what
//! was kept, each a [`compare::compare`] of
//! interleaved pairs. A rung may be a [`design::Grid`], of which the best cell is looked for first. Where the rungs are not listed, [`auto`]
//! chooses them from captures under load. Runs happen on a [`stage::Stage`]; [`lab`] is the real one. [`scenario`] reads
//! the scenario file.

pub mod auto;
pub mod compare;
pub mod design;
mod grid;
pub mod lab;
pub mod ladder;
pub mod metric;
pub mod record;
pub mod scenario;
pub mod stage;

use rungwise_model::tune::Half;

/// Why an experiment ended early.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A run could not be had.
    #[error(transparent)]
    Stage(#[from] stage::StageError),
    /// The service ended or stopped answering under load.
    #[error("the service failed in half {half:?}: {why}")]
    ServiceFailed {
        /// The variant that ran.
        half: Half,
        /// What was seen.
        why: String,
    },
    /// The run folder could not be used.
    #[error(transparent)]
    Folder(#[from] rungwise_host::Error),
    /// The design of a run to be resumed is invalid.
    #[error("cannot use the run's design: {0}; start a new run")]
    Design(String),
}
