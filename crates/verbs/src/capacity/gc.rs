//! Predicts the GC frequency of a load, also with other heap sizes.

use std::path::PathBuf;
use std::time::Duration;

use rungwise_gclog::predict::{self, Given, Plain, Prediction, Watch};
use rungwise_host::clock;
use rungwise_model::capacity::{CapacityGcReport, Estimate, Layout, Load};
use rungwise_model::{Exit, units};

use super::asked;
use crate::documents::Document as _;
use crate::problem::Problem;
use crate::{Invocation, jvm};

/// Predict how often collections occur, from a load or a GC log, also with other heap sizes.
///
/// From a log, every figure has the interval that it should fall into if the load stays the same; an unknown figure has a reason.
/// Keys of --what-if: young, eden, heap (sizes), survivor-ratio, tenuring, rate (x2, or 800/s with --rate). Exit status: 0 done,
/// 2 the question contradicts itself or the log, 3 the log contains too little, 4 not a GC log.
#[derive(Debug, clap::Args)]
pub struct Request {
    /// GC logs of one JVM to predict from.
    #[arg(long, value_name = "LOG", num_args = 1..)]
    pub from: Vec<PathBuf>,
    /// Sizes to try: young=12g,tenuring=15.
    #[arg(long, value_name = "KEY=VALUE,...", requires = "from")]
    pub what_if: Option<String>,
    /// Bytes that a request allocates, such as 34KiB.
    #[arg(long, value_name = "SIZE", value_parser = asked::size, required_unless_present = "from", conflicts_with = "from")]
    pub alloc_per_request: Option<f64>,
    /// Requests per second, such as 500/s; with a log, the rate while it was written.
    #[arg(long, value_name = "RATE", value_parser = jvm::gc::request_rate, required_unless_present = "from")]
    pub rate: Option<f64>,
    /// Total requests while the log was written.
    #[arg(long, value_name = "COUNT", requires = "from", conflicts_with = "rate")]
    pub requests: Option<u64>,
    /// Size of Eden; with a log, where the log does not show it.
    #[arg(long, value_name = "SIZE", value_parser = asked::size, required_unless_present = "from")]
    pub eden: Option<f64>,
    /// Size of the heap; with a log, where the log does not show it.
    #[arg(long, value_name = "SIZE", value_parser = asked::size)]
    pub heap: Option<f64>,
    /// Size of one survivor space, where the log does not show it.
    #[arg(long, value_name = "SIZE", value_parser = asked::size, requires = "from")]
    pub survivor_space: Option<f64>,
    /// Long-lived bytes.
    #[arg(long, value_name = "SIZE", value_parser = asked::size, conflicts_with = "from", requires = "heap")]
    pub live: Option<f64>,
    /// Bytes that survive a young collection.
    #[arg(long, value_name = "SIZE", value_parser = asked::size, conflicts_with = "from", requires = "live")]
    pub survivors: Option<f64>,
    /// Mean young pause, such as 40ms.
    #[arg(long, value_name = "TIME", value_parser = units::duration, conflicts_with = "from")]
    pub pause: Option<Duration>,
}

/// Predicts from the load, or from the log.
pub fn run(request: &Request, invocation: &Invocation<'_>) -> anyhow::Result<CapacityGcReport> {
    let started = clock::utc_now();
    let predicted = match (request.alloc_per_request, request.rate, request.eden) {
        (Some(per_request), Some(rate), Some(eden)) => of_load(request, per_request, rate, eden)?,
        _ => of_log(request)?,
    };
    Ok(CapacityGcReport {
        envelope: invocation.envelope(CapacityGcReport::KIND, started, Exit::Done),
        target: predicted.target,
        notes: predicted.prediction.notes,
        load: predicted.load,
        layout: predicted.prediction.layout,
        now: predicted.prediction.now,
        next: predicted.prediction.next,
        what_if: predicted.prediction.what_if,
    })
}

struct Predicted {
    target: String,
    load: Load,
    prediction: Prediction,
}

fn of_load(request: &Request, per_request: f64, rate: f64, eden: f64) -> anyhow::Result<Predicted> {
    let allocation = per_request * rate;
    let now = predict::plain(&Plain {
        allocation,
        eden,
        pause_s: request.pause.map(|pause| pause.as_secs_f64()),
        heap: request.heap,
        live: request.live,
        survivors: request.survivors,
    })
    .map_err(failed)?;
    Ok(Predicted {
        target: "given figures".to_owned(),
        load: Load {
            requests_per_s: Some(rate),
            bytes_per_request: Some(Estimate::exact(per_request)),
            allocation_bytes_per_s: Some(Estimate::exact(allocation)),
        },
        prediction: Prediction {
            layout: Layout {
                heap_bytes: request.heap,
                eden_bytes: Some(eden),
                ..Layout::default()
            },
            now,
            ..Prediction::default()
        },
    })
}

fn of_log(request: &Request) -> anyhow::Result<Predicted> {
    let mut watch = Watch::new();
    let log = jvm::gc::read(&request.from, None, &mut |event| watch.event(event))?;
    let seen = watch.seen();
    let rate = match request.requests {
        Some(requests) => Some(requests as f64 / seen.seconds()),
        None => request.rate,
    };
    let rate = rate.filter(|rate| rate.is_finite());
    let change = request
        .what_if
        .as_deref()
        .map(|text| asked::change(text, rate))
        .transpose()?;
    let flags = seen
        .facts
        .flags
        .as_deref()
        .map(asked::of_flags)
        .unwrap_or_default();
    let given = Given {
        heap: request.heap.or(flags.heap),
        eden: request.eden,
        survivor: request.survivor_space,
        ..flags
    };
    let live = log.summary.longest_run().and_then(|run| run.live.as_ref());
    let mut prediction = predict::predict(&seen, &given, live, change.as_ref()).map_err(failed)?;
    let one = log
        .only_one_taken()
        .map(|one| format!("of the log: {one}; the others are left out"));
    prediction
        .notes
        .splice(0..0, log.notes.into_iter().chain(one));
    let names: Vec<String> = request
        .from
        .iter()
        .map(|path| path.display().to_string())
        .collect();
    let allocation = prediction.allocation;
    Ok(Predicted {
        target: names.join(", "),
        load: Load {
            requests_per_s: rate,
            bytes_per_request: rate.map(|rate| allocation.scaled(1.0 / rate)),
            allocation_bytes_per_s: Some(allocation),
        },
        prediction,
    })
}

/// A log that tells too little is no mistake of who asks.
fn failed(error: predict::Error) -> anyhow::Error {
    match error {
        predict::Error::TooLittle(_) => Problem::with(Exit::Inconclusive, error),
        predict::Error::Contradiction(_) => error.into(),
    }
}
