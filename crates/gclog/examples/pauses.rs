//! The pauses of a GC log on standard input, and the lines that were not understood.
//!
//! ```sh
//! cargo run --release -p rungwise-gclog --example pauses < gc.log
//! ```

#![expect(clippy::print_stdout, reason = "this is what it is for")]

use std::io::Read as _;

use rungwise_gclog::{Event, Names, Parser};

fn main() -> std::io::Result<()> {
    let mut sink = |names: &Names, event: Event<'_>| {
        if let Event::Pause(pause) = event
            && let Some(ns) = pause.duration_ns
        {
            let name = names.get(pause.name);
            println!("line {}: {name}, {} ms", pause.line, ns as f64 / 1e6);
        }
    };
    let mut parser = Parser::new();
    let mut piece = vec![0; 64 * 1024];
    loop {
        let length = std::io::stdin().read(&mut piece)?;
        if length == 0 {
            break;
        }
        parser.push(&piece[..length], &mut sink);
    }
    let account = parser.finish(&mut sink);
    println!(
        "{} of {} lines not understood",
        account.unknown.lines,
        account.lines()
    );
    for sample in account.samples {
        println!("line {}: {}", sample.line, sample.text);
    }
    Ok(())
}
