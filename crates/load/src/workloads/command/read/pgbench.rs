//! pgbench.

use super::{Figures, Reader, text};

pub(super) static READER: Reader = Reader {
    id: "pgbench",
    summary: "pgbench of PostgreSQL 9.6 to 17",
    caveat: "without --rate a closed loop; only mean latency, no quantiles",
    gives: &["rate", "errors", "mean"],
    looks_like: |text| text.contains("tps = ") && text.contains("transaction type:"),
    read,
};

fn read(output: &str) -> Result<Figures, String> {
    // Before PostgreSQL 14 a second line counts the time of connecting as well.
    let rate = text::number_after(output, "tps =")
        .ok_or("no line 'tps = ', which pgbench prints at the end")?;
    let mut figures = Figures {
        rate_per_s: Some(rate),
        seconds: text::number_after(output, "duration:"),
        ..Figures::default()
    };
    let done = text::number_after(output, "number of transactions actually processed:");
    let failed = text::number_after(output, "number of failed transactions:").unwrap_or(0.0);
    if let Some(done) = done {
        figures.failed(failed, done + failed);
    }
    let mean = text::number_after(output, "latency average =");
    figures.latency("mean", mean.map(|ms| ms / 1e3));
    Ok(figures)
}
