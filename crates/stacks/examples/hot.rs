//! Prints the hottest frames of a profile: `cargo run -p rungwise-stacks --example hot -- x.folded`.

#![expect(
    clippy::disallowed_methods,
    clippy::print_stdout,
    reason = "an example opens a file and prints"
)]

use std::fs::File;
use std::io::Read as _;

use rungwise_stacks::{Cut, Reader, hot};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let path = std::env::args().nth(1).ok_or("usage: hot FILE")?;
    let mut file = File::open(&path)?;
    let mut reader = Reader::default();
    let mut piece = vec![0; 256 * 1024];
    loop {
        let count = file.read(&mut piece)?;
        if count == 0 || !reader.push(&piece[..count]) {
            break;
        }
    }
    let profile = reader.finish()?;
    let total = profile.stacks.total();
    println!(
        "{}, {} distinct stacks, {total} in all",
        profile.format.name(),
        profile.stacks.distinct()
    );
    for hot in hot(&profile.stacks).iter().take(10) {
        let share = 100.0 * hot.own as f64 / total.max(1) as f64;
        println!("{share:>5.1} %  {}", hot.frame);
    }
    let cut = Cut::to_size(&profile.stacks, 1_000_000);
    println!(
        "a page of 1 MB has {} frames of at least {}; {} smaller ones are cut",
        cut.nodes.len(),
        cut.least,
        cut.left_out
    );
    Ok(())
}
