//! An existing load test: any program that loads the service and prints numbers.
//!
//! This module knows what such programs print ([`read`]) and what a scenario may pick from it ([`Pick`]). Starting the program, its
//! time limit and its CPU time belong to the lab that runs it.

pub mod read;

mod parameters;
mod pick;

use std::time::Duration;

pub use parameters::{MetricPlace, Parameters};
pub use pick::{Pick, PickError};
pub use read::{Figures, READERS, Reader};

/// What `rungwise explain command` shows.
pub(super) const WORKLOAD: super::Workload = super::Workload {
    id: "command",
    by_hand: false,
    summary: "Any load program that prints numbers: wrk, k6, JMeter, pgbench, redis-benchmark, a script.",
    doc: "\
- **who**: the program of `command`, started for each run, in the client's namespace where there is one.
- **messages, when, until**: up to the program. `{target}`, `{host}`, `{port}`, `{seconds}`, `{rate}`, `{connections}`, `{requests}` and `{output}` in \
    its arguments are replaced; with `{output}` its figures are read from that file, else from standard output.
- **reported**: what `reader` finds in the output (rate, errors, quantiles of latency), and each `[workload.metrics.NAME]`, picked by a JSON \
pointer or a regular expression. Its CPU time counts as the generator's.
- **limits**: the figures are the program's own. The result states their limits: for example, a closed loop omits waiting.

In a scenario: `[workload]` with `kind = \"command\"`.",
    metrics: &[],
    changes: &["connections", "rate"],
    warmup: Duration::ZERO,
    measure: Duration::from_secs(2),
    quick: Duration::from_secs(1),
};
