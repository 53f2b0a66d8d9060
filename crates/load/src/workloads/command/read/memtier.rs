//! `memtier_benchmark`, with `--json-out-file`.

use serde_json::Value;

use super::{CLOSED_LOOP, Figures, Reader};

pub(super) static READER: Reader = Reader {
    id: "memtier",
    summary: "memtier_benchmark 1.3 and 2.0, --json-out-file={output}",
    caveat: CLOSED_LOOP,
    gives: &["rate", "mean", "p50", "p99", "p99.9", "max"],
    looks_like: |text| text.trim_start().starts_with('{') && text.contains("\"ALL STATS\""),
    read,
};

fn read(output: &str) -> Result<Figures, String> {
    let document: Value =
        serde_json::from_str(output).map_err(|error| format!("not JSON: {error}"))?;
    let totals = &document["ALL STATS"]["Totals"];
    let rate = totals["Ops/sec"]
        .as_f64()
        .ok_or("no number at /ALL STATS/Totals/Ops~1sec")?;
    let mut figures = Figures {
        rate_per_s: Some(rate),
        seconds: document["ALL STATS"]["Runtime"]["Total duration"]
            .as_f64()
            .map(|ms| ms / 1e3),
        ..Figures::default()
    };
    let ms = |value: &Value| value.as_f64().map(|ms| ms / 1e3);
    figures.latency(
        "mean",
        ms(&totals["Average Latency"]).or(ms(&totals["Latency"])),
    );
    figures.latency("max", ms(&totals["Max Latency"]));
    figures.percentiles(&totals["Percentile Latencies"], 1e-3);
    Ok(figures)
}
