//! Prints the kernel stacks of some seconds as folded text, for a flame graph, and their cost.
//!
//! `cargo run --release -p rungwise-profile --example stacks -- 10 > kernel.folded`, as root.
#![expect(
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "an example prints"
)]

use std::time::Duration;

use rungwise_formats::folded;
use rungwise_profile::{Counter, Options, Sampler};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let seconds = std::env::args().nth(1).map_or(Ok(5), |text| text.parse())?;
    let sampler = Sampler::start(&Options::default());
    let counter = Counter::start(Counter::LONGEST);
    std::thread::sleep(Duration::from_secs(seconds));
    let (stacks, events) = rungwise_profile::stop(sampler, counter);
    let (stacks, events) = (stacks??, events?);
    print!("{}", folded::write(&stacks.folded));
    let busy: u64 = stacks.folded.values().sum();
    eprintln!(
        "{} at {} Hz: {busy} busy, {} idle, {} lost; {:.3} s of CPU time in {seconds} s",
        stacks.event, stacks.hz, stacks.idle, stacks.lost, stacks.cost_s
    );
    eprintln!(
        "in {:.2} s: {} contentions, drops {:?}, system calls {:?}, refused {:?}",
        events.seconds,
        events.contentions.values().sum::<u64>(),
        events.drops,
        events.syscalls,
        events.refused
    );
    Ok(())
}
