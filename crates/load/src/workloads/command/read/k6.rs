//! k6: the summary as JSON, and points as NDJSON.

use std::collections::BTreeSet;

use serde_json::Value;

use super::{Figures, Reader, quantile};

pub(super) static READER: Reader = Reader {
    id: "k6",
    summary: "k6 0.4x to 1.x: --summary-export={output}, handleSummary, or --out json={output}",
    caveat: "without an arrival-rate executor a closed loop, whose latencies omit waiting; iterations that an arrival-rate executor drops \
        are not in the latencies",
    gives: &[
        "rate", "errors", "mean", "p50", "p90", "p95", "p99", "p99.9", "max",
    ],
    looks_like: |text| {
        let text = text.trim_start();
        text.starts_with('{') && (text.contains("\"http_reqs\"") || text.contains("\"iterations\""))
    },
    read,
};

fn read(output: &str) -> Result<Figures, String> {
    let first = output.lines().next().unwrap_or_default();
    let is_points =
        serde_json::from_str::<Value>(first).is_ok_and(|line| line["metric"].is_string());
    if is_points {
        points(output)
    } else {
        summary(output)
    }
}

fn summary(output: &str) -> Result<Figures, String> {
    let document: Value =
        serde_json::from_str(output).map_err(|error| format!("not JSON: {error}"))?;
    let metrics = &document["metrics"];
    // handleSummary has its numbers one level deeper.
    let of = |metric: &str| {
        let metric = &metrics[metric];
        if metric["values"].is_object() {
            metric["values"].clone()
        } else {
            metric.clone()
        }
    };
    let requests = ["http_reqs", "iterations"].map(of);
    let rate = requests.iter().find_map(|metric| metric["rate"].as_f64());
    let rate = rate.ok_or("no rate at /metrics/http_reqs or /metrics/iterations")?;
    let count = requests.iter().find_map(|metric| metric["count"].as_f64());
    // `value` in --summary-export, `rate` in handleSummary.
    let failed = of("http_req_failed");
    let errors = failed["value"].as_f64().or(failed["rate"].as_f64());
    let mut figures = Figures {
        rate_per_s: Some(rate * (1.0 - errors.unwrap_or(0.0))),
        errors,
        seconds: count.filter(|_| rate > 0.0).map(|count| count / rate),
        ..Figures::default()
    };
    let latency = [of("http_req_duration"), of("iteration_duration")];
    let latency = latency
        .into_iter()
        .find(Value::is_object)
        .unwrap_or_default();
    let ms = |name: &str| latency[name].as_f64().map(|ms| ms / 1e3);
    for (name, key) in [("avg", "mean"), ("med", "p50"), ("max", "max")] {
        figures.latency(key, ms(name));
    }
    for name in latency
        .as_object()
        .into_iter()
        .flatten()
        .map(|(name, _)| name)
    {
        let percent = name
            .strip_prefix("p(")
            .and_then(|rest| rest.strip_suffix(')'));
        if let Some(percent) = percent.and_then(|percent| percent.parse().ok()) {
            figures.latency(quantile(percent), ms(name));
        }
    }
    Ok(figures)
}

/// `{"type":"Point","metric":"http_req_duration","data":{"time":"2026-01-02T03:04:05.6+01:00","value":1.2,"tags":{...}}}`
fn points(output: &str) -> Result<Figures, String> {
    let mut latencies = Vec::new();
    let (mut all, mut failed) = (0.0_f64, 0.0_f64);
    let mut times = BTreeSet::new();
    for (number, line) in output.lines().enumerate() {
        if line.trim().is_empty() {
            continue;
        }
        let point: Value = serde_json::from_str(line)
            .map_err(|error| format!("line {} is not JSON: {error}", number + 1))?;
        if point["type"] != "Point" {
            continue;
        }
        let value = point["data"]["value"].as_f64().unwrap_or(0.0);
        match point["metric"].as_str() {
            Some("http_reqs") => {
                all += value;
                times.extend(point["data"]["time"].as_str().and_then(seconds_of_day));
            }
            Some("http_req_failed") => failed += value,
            Some("http_req_duration") => latencies.push(value / 1e3),
            _ => {}
        }
    }
    let mut figures = Figures::default();
    figures.failed(failed, all);
    // Points carry the time of their end; the span between first and last is the run but for one request.
    if let (Some(first), Some(last)) = (times.first(), times.last()) {
        let mut span = (*last - *first) as f64 / 1e6;
        if span > 43_200.0 {
            return Err(
                "its points span midnight, so their times of day cannot be ordered".to_owned(),
            );
        }
        span = span.max(1e-6);
        figures.seconds = Some(span);
        figures.rate_per_s = Some((all - failed).max(0.0) / span);
    }
    super::text::quantiles(&mut figures, &mut latencies);
    Ok(figures)
}

/// Microseconds since midnight of an RFC 3339 time; all of a run have the same zone.
fn seconds_of_day(time: &str) -> Option<u64> {
    let clock = time.split_once('T')?.1;
    let mut parts = clock.splitn(3, ':');
    let hours: u64 = parts.next()?.parse().ok()?;
    let minutes: u64 = parts.next()?.parse().ok()?;
    let seconds = parts.next()?;
    let end = seconds.find(['Z', '+', '-']).unwrap_or(seconds.len());
    let seconds: f64 = seconds[..end].parse().ok()?;
    (hours < 24 && minutes < 60 && (0.0..61.0).contains(&seconds))
        .then(|| (hours * 3600 + minutes * 60) * 1_000_000 + (seconds * 1e6) as u64)
}
