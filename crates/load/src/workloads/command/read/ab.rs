//! `ApacheBench`.

use super::{CLOSED_LOOP, Figures, Reader, quantile, text};

pub(super) static READER: Reader = Reader {
    id: "ab",
    summary: "ApacheBench 2.3",
    caveat: CLOSED_LOOP,
    gives: &[
        "rate", "errors", "mean", "p50", "p75", "p90", "p95", "p99", "max",
    ],
    looks_like: |text| text.contains("This is ApacheBench") || text.contains("Complete requests:"),
    read,
};

fn read(output: &str) -> Result<Figures, String> {
    let rate = text::number_after(output, "Requests per second:")
        .ok_or("no line 'Requests per second:', which ab prints at the end")?;
    let all = text::number_after(output, "Complete requests:").unwrap_or(0.0);
    // `(Connect: 0, Receive: 0, Length: 100, Exceptions: 0)`. An answer of another length counts as failed there, so pages that vary
    // want -l; an error page has another length as a rule, and is counted once.
    let failed = text::number_after(output, "Failed requests:").unwrap_or(0.0);
    let lengths = output.split_once("Length: ").filter(|_| failed > 0.0);
    let lengths = lengths
        .and_then(|(_, rest)| text::number(rest))
        .unwrap_or(0.0);
    let refused = text::number_after(output, "Non-2xx responses:").unwrap_or(0.0);
    let failed = (failed - lengths).max(0.0) + lengths.max(refused);
    let mut figures = Figures {
        seconds: text::number_after(output, "Time taken for tests:"),
        ..Figures::default()
    };
    figures.failed(failed, all);
    figures.rate_per_s = Some(rate * (1.0 - figures.errors.unwrap_or(0.0)));
    figures.latency(
        "mean",
        text::number_after(output, "Time per request:").map(|ms| ms / 1e3),
    );
    for line in output.lines().map(str::trim) {
        // `99%      5`, in whole milliseconds; ` 100%      9 (longest request)`
        let Some((percent, ms)) = line.split_once('%') else {
            continue;
        };
        let (Ok(percent), Some(ms)) = (percent.parse::<f64>(), text::number(ms)) else {
            continue;
        };
        let name = if percent >= 100.0 {
            "max".to_owned()
        } else {
            quantile(percent)
        };
        figures.latency(name, Some(ms / 1e3));
    }
    Ok(figures)
}
