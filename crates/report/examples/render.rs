//! Renders a saved `tune` document: `cargo run -p rungwise-report --example render -- html < report.json`.

use std::io::{Read as _, Write as _};

use rungwise_model::tune::TuneReport;
use rungwise_report::{html, markdown, terminal, tune};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut text = String::new();
    std::io::stdin().read_to_string(&mut text)?;
    let report: TuneReport = serde_json::from_str(&text)?;
    let blocks = tune::blocks(&report);
    let rendered = match std::env::args().nth(1).as_deref() {
        Some("html") => html::page(&report.scenario, &blocks),
        Some("markdown") => markdown::render(&blocks),
        _ => terminal::render(&blocks, 140, true),
    };
    std::io::stdout().write_all(rendered.as_bytes())?;
    Ok(())
}
