//! wrk 4 and wrk2, with `--latency` for the quantiles.

use super::{Figures, Reader, quantile, text};

pub(super) static READER: Reader = Reader {
    id: "wrk",
    summary: "wrk 4.1 and wrk2, run with --latency",
    caveat: "wrk is a closed loop; its latencies omit the time that requests would have waited (coordinated omission); wrk2 -R counts it",
    gives: &[
        "rate", "errors", "mean", "p50", "p75", "p90", "p99", "p99.9", "max",
    ],
    looks_like: |text| text.trim_start().starts_with("Running ") && text.contains("Requests/sec:"),
    read,
};

fn read(output: &str) -> Result<Figures, String> {
    let rate = text::number_after(output, "Requests/sec:")
        .ok_or("no line 'Requests/sec:', which wrk prints at the end")?;
    let mut figures = Figures::default();
    // `  12345 requests in 2.00s, 9.99MB read`
    let totals = output
        .lines()
        .find_map(|line| line.trim().split_once(" requests in "));
    let all = totals.and_then(|(all, _)| text::number(all));
    figures.seconds = totals.and_then(|(_, rest)| text::time(rest.split(',').next()?));
    // `  Socket errors: connect 0, read 0, write 0, timeout 3`
    let sockets: f64 = text::after(output, "Socket errors:").map_or(0.0, |errors| {
        let words = errors.split([' ', ',']);
        words.filter_map(text::number).sum()
    });
    let refused = text::number_after(output, "Non-2xx or 3xx responses:").unwrap_or(0.0);
    let mut wrong = 0.0;
    if let Some(all) = all {
        figures.failed(sockets + refused, all + sockets);
        wrong = if all > 0.0 { refused / all } else { 0.0 };
    }
    // Answers with an error count as answers there.
    figures.rate_per_s = Some(rate * (1.0 - wrong.min(1.0)));
    for line in output.lines() {
        // `     99%    1.23ms`, and of wrk2 ` 99.000%    1.23ms`
        if let Some((percent, latency)) = line.trim().split_once('%')
            && let (Ok(percent), Some(latency)) = (percent.parse(), text::time(latency))
        {
            figures.latency(quantile(percent), Some(latency));
        }
    }
    // `    Latency   812.00us  120.00us   2.00ms   95.00%`
    if let Some(summary) = text::after(output, "Latency  ") {
        let mut words = summary.split_ascii_whitespace().map(text::time);
        figures.latency("mean", words.next().flatten());
        figures.latency("max", words.nth(1).flatten());
    }
    Ok(figures)
}
