//! hey: its text.

use super::{CLOSED_LOOP, Figures, Reader, quantile, text};

pub(super) static READER: Reader = Reader {
    id: "hey",
    summary: "hey 0.1.4, its text (not -o csv)",
    caveat: CLOSED_LOOP,
    gives: &[
        "rate", "errors", "mean", "p50", "p75", "p90", "p95", "p99", "max",
    ],
    looks_like: |text| text.contains("Requests/sec:") && text.contains("Slowest:"),
    read,
};

fn read(output: &str) -> Result<Figures, String> {
    let rate = text::number_after(output, "Requests/sec:")
        .ok_or("no line 'Requests/sec:', which hey prints in its summary")?;
    let mut figures = Figures {
        rate_per_s: Some(rate),
        seconds: text::number_after(output, "Total:"),
        ..Figures::default()
    };
    figures.latency("mean", text::number_after(output, "Average:"));
    figures.latency("max", text::number_after(output, "Slowest:"));
    let (mut all, mut failed, mut of_status) = (0.0, 0.0, true);
    for line in output.lines().map(str::trim) {
        // `99% in 0.0020 secs`
        if let Some((percent, seconds)) = line.split_once("% in ")
            && let Ok(percent) = percent.parse()
        {
            figures.latency(quantile(percent), text::number(seconds));
        }
        if line.starts_with("Error distribution:") {
            of_status = false;
        }
        // `[200] 10000 responses`, and of errors `[5] Get "http://...": EOF`
        if let Some((inside, rest)) = line.strip_prefix('[').and_then(|rest| rest.split_once(']')) {
            let Some(inside) = text::number(inside) else {
                continue;
            };
            let count = if of_status {
                text::number(rest).unwrap_or(0.0)
            } else {
                inside
            };
            all += count;
            if !of_status || inside >= 400.0 {
                failed += count;
            }
        }
    }
    figures.failed(failed, all);
    if let (Some(rate), Some(errors)) = (figures.rate_per_s, figures.errors) {
        figures.rate_per_s = Some(rate * (1.0 - errors));
    }
    Ok(figures)
}
