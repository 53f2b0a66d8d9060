//! Prints the summary of a recording as JSON: `cargo run --release -p rungwise-jfr --example summary -- rec.jfr`.

#![expect(
    clippy::disallowed_methods,
    clippy::print_stdout,
    reason = "an example opens a file and prints"
)]

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let path = std::env::args().nth(1).ok_or("usage: summary FILE")?;
    let summary = rungwise_jfr::summary(std::fs::File::open(&path)?)?;
    println!("{}", serde_json::to_string_pretty(&summary)?);
    Ok(())
}
