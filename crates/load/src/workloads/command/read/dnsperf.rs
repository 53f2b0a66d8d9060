//! dnsperf.

use super::{Figures, Reader, text};

pub(super) static READER: Reader = Reader {
    id: "dnsperf",
    summary: "dnsperf 2.10 to 2.14",
    caveat: "a closed loop of -q queries; only mean and maximum latency, no quantiles; lost queries are not included",
    gives: &["rate", "errors", "mean", "max"],
    looks_like: |text| text.contains("Queries per second:") && text.contains("Queries sent:"),
    read,
};

fn read(output: &str) -> Result<Figures, String> {
    let rate = text::number_after(output, "Queries per second:")
        .ok_or("no line 'Queries per second:', which dnsperf prints at the end")?;
    let sent = text::number_after(output, "Queries sent:").unwrap_or(0.0);
    let completed = text::number_after(output, "Queries completed:").unwrap_or(0.0);
    // `Response codes:       NOERROR 900 (90.00%), SERVFAIL 100 (10.00%)`: the others are answers to no question.
    let wrong: f64 = text::after(output, "Response codes:").map_or(0.0, |codes| {
        let codes = codes
            .split(',')
            .filter_map(|code| code.trim().split_once(' '));
        let wrong = codes.filter(|(code, _)| !matches!(*code, "NOERROR" | "NXDOMAIN"));
        wrong.filter_map(|(_, count)| text::number(count)).sum()
    });
    let mut figures = Figures {
        seconds: text::number_after(output, "Run time (s):"),
        ..Figures::default()
    };
    figures.failed((sent - completed).max(0.0) + wrong, sent);
    let right = if completed > 0.0 {
        1.0 - wrong / completed
    } else {
        1.0
    };
    figures.rate_per_s = Some(rate * right.max(0.0));
    if let Some(latency) = text::after(output, "Average Latency (s):") {
        figures.latency("mean", text::number(latency));
        let largest = latency
            .split_once("max ")
            .and_then(|(_, max)| text::number(max));
        figures.latency("max", largest);
    }
    Ok(figures)
}
