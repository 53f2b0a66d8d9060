//! The percentile distribution of `HdrHistogram` as text: wrk2 -L, memtier's .txt, `hdr-plot` files.

use super::{Figures, Reader, quantile, text};

pub(super) static READER: Reader = Reader {
    id: "hdr",
    summary: "HdrHistogram's text, 'Value Percentile TotalCount 1/(1-Percentile)', in milliseconds; latencies only, no rate",
    caveat: "whether it includes waiting depends on the program that recorded it",
    gives: &[
        "mean", "p50", "p75", "p90", "p95", "p99", "p99.9", "p99.99", "max",
    ],
    // wrk2 prints one below its own figures.
    looks_like: |text| text.lines().any(is_header) && !text.contains("Requests/sec:"),
    read,
};

fn is_header(line: &str) -> bool {
    let mut words = line.split_ascii_whitespace();
    words.next() == Some("Value") && words.next() == Some("Percentile")
}

fn read(output: &str) -> Result<Figures, String> {
    let mut lines = output.lines();
    lines
        .find(|line| is_header(line))
        .ok_or("no line 'Value Percentile TotalCount 1/(1-Percentile)'")?;
    let mut points: Vec<(f64, f64)> = Vec::new();
    let mut figures = Figures::default();
    for line in lines {
        let line = line.trim();
        // `#[Mean    =        0.123, StdDeviation   =        0.045]`
        if let Some(rest) = line.strip_prefix("#[") {
            for part in rest.trim_end_matches(']').split(',') {
                let Some((name, value)) = part.split_once('=') else {
                    continue;
                };
                let key = match name.trim() {
                    "Mean" => "mean",
                    "Max" => "max",
                    _ => continue,
                };
                figures.latency(key, text::number(value).map(|ms| ms / 1e3));
            }
            continue;
        }
        let mut words = line.split_ascii_whitespace().map(str::parse::<f64>);
        if let (Some(Ok(value)), Some(Ok(share))) = (words.next(), words.next())
            && (0.0..=1.0).contains(&share)
        {
            points.push((share, value));
        }
    }
    if points.is_empty() {
        return Err("no line of the distribution".to_owned());
    }
    // The value at a quantile is that of the first line that reaches it.
    for percent in [50.0, 75.0, 90.0, 95.0, 99.0, 99.9, 99.99] {
        let reached = points
            .iter()
            .find(|(share, _)| *share * 100.0 >= percent - 1e-9);
        figures.latency(quantile(percent), reached.map(|(_, ms)| ms / 1e3));
    }
    Ok(figures)
}
