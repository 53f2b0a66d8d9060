//! redis-benchmark, with `--csv`.

use super::{CLOSED_LOOP, Figures, Reader};

pub(super) static READER: Reader = Reader {
    id: "redis-benchmark",
    summary: "redis-benchmark 6.2 to 8.0 (and valkey-benchmark), run with --csv",
    caveat: CLOSED_LOOP,
    gives: &["rate", "mean", "p50", "p95", "p99", "max"],
    looks_like: |text| header(text).is_some(),
    read,
};

/// The line that names the columns, and those behind it.
fn header(text: &str) -> Option<(Vec<&str>, std::str::Lines<'_>)> {
    let mut lines = text.lines();
    let names = lines.find(|line| line.starts_with("\"test\",\"rps\""))?;
    Some((cells(names), lines))
}

/// The names of tests have commas in them (`MSET (10 keys)` has none, scripts may).
fn cells(line: &str) -> Vec<&str> {
    line.trim().trim_matches('"').split("\",\"").collect()
}

fn read(output: &str) -> Result<Figures, String> {
    let (names, lines) = header(output)
        .ok_or("no line '\"test\",\"rps\",...'; run redis-benchmark 6.2 or newer with --csv")?;
    let column = |name: &str| names.iter().position(|known| *known == name);
    let rows: Vec<Vec<&str>> = lines
        .filter(|line| line.starts_with('"'))
        .map(cells)
        .collect();
    if rows.is_empty() {
        return Err("a header line but no test below it".to_owned());
    }
    let value = |row: &Vec<&str>, name: &str| -> Option<f64> {
        row.get(column(name)?)?
            .parse()
            .ok()
            .filter(|value: &f64| value.is_finite())
    };
    // Tests run one after the other, so many requests each: the rate of all is the harmonic mean.
    let rates: Vec<f64> = rows.iter().filter_map(|row| value(row, "rps")).collect();
    let mut figures = Figures::default();
    if rates.len() == rows.len() && rates.iter().all(|rate| *rate > 0.0) {
        let times: f64 = rates.iter().map(|rate| 1.0 / rate).sum();
        figures.rate_per_s = Some(rates.len() as f64 / times);
    }
    // Quantiles of several tests have no quantile in common; the worst is said.
    let worst = |name: &str| {
        let values = rows.iter().filter_map(|row| value(row, name));
        values.max_by(f64::total_cmp).map(|ms| ms / 1e3)
    };
    for (name, key) in [
        ("avg_latency_ms", "mean"),
        ("p50_latency_ms", "p50"),
        ("p95_latency_ms", "p95"),
        ("p99_latency_ms", "p99"),
        ("max_latency_ms", "max"),
    ] {
        figures.latency(key, worst(name));
    }
    Ok(figures)
}
