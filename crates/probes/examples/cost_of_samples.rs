//! Cost of the samples of a window on this host: CPU time of this process, without sampling, rules and report.
//!
//!     cargo run --release -p rungwise-probes --example cost_of_samples -- [PID]
//!
//! Three windows of three seconds each; the number of samples is that of any window, so a longer one costs the same. It prints
//! the CPU times of gathering and of deriving evidence, so that a busy machine does not matter much.
#![expect(clippy::print_stdout, reason = "a measurement prints")]

use std::error::Error;
use std::time::Duration;

use rungwise_host::live::Live;
use rungwise_host::signals::Interrupt;
use rungwise_host::{clock, environment};
use rungwise_probes::capture::Process;
use rungwise_probes::gather;

fn main() -> Result<(), Box<dyn Error>> {
    let pid = environment::argv().get(1).map(|pid| pid.parse::<u32>());
    let pid = pid.transpose()?;
    let interrupt = Interrupt::install()?;
    for _ in 0..3 {
        let process = pid.map(|pid| Process {
            pid,
            name: "judged".to_owned(),
        });
        let began = clock::own_cpu()?;
        let capture = gather::gather(
            &Live,
            process,
            Duration::from_secs(3),
            |due| !interrupt.wait(due).unwrap_or(true),
            clock::now,
        );
        let gathered = clock::own_cpu()?;
        let readings = rungwise_probes::evidence(&capture).readings().count();
        println!(
            "gathered in {} ms, {readings} readings derived in {} ms of CPU",
            gathered.saturating_sub(began).as_millis(),
            clock::own_cpu()?.saturating_sub(gathered).as_millis()
        );
    }
    Ok(())
}
