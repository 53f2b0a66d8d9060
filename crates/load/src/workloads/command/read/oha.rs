//! oha: its JSON.

use serde_json::Value;

use super::{CLOSED_LOOP, Figures, Reader};

pub(super) static READER: Reader = Reader {
    id: "oha",
    summary: "oha 1.x, run with --output-format json (before 1.9: --json)",
    caveat: CLOSED_LOOP,
    gives: &[
        "rate", "errors", "mean", "p50", "p75", "p90", "p95", "p99", "p99.9", "p99.99", "max",
    ],
    looks_like: |text| text.trim_start().starts_with('{') && text.contains("\"requestsPerSec\""),
    read,
};

fn read(output: &str) -> Result<Figures, String> {
    let document: Value =
        serde_json::from_str(output).map_err(|error| format!("not JSON: {error}"))?;
    let summary = &document["summary"];
    let rate = summary["requestsPerSec"]
        .as_f64()
        .ok_or("no number at /summary/requestsPerSec")?;
    let mut figures = Figures {
        seconds: summary["total"].as_f64(),
        ..Figures::default()
    };
    let count = |part: &str, wanted: fn(&str) -> bool| -> f64 {
        let counts = document[part].as_object().into_iter().flatten();
        let counts = counts.filter(|(name, _)| wanted(name));
        counts.filter_map(|(_, count)| count.as_f64()).sum()
    };
    let answered = count("statusCodeDistribution", |_| true);
    let refused = count("statusCodeDistribution", |code| code >= "400");
    // Requests that were under way when the time was over are no errors.
    let broken = count("errorDistribution", |name| {
        name != "aborted due to deadline"
    });
    figures.failed(refused + broken, answered + broken);
    figures.rate_per_s = Some(rate * (1.0 - figures.errors.unwrap_or(0.0)));
    figures.latency("mean", summary["average"].as_f64());
    figures.latency("max", summary["slowest"].as_f64());
    figures.percentiles(&document["latencyPercentiles"], 1.0);
    Ok(figures)
}
