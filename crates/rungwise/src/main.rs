//! The binary: reads the command line, hands it to a verb, prints its answer, turns the result into an exit code.
#![allow(
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "results go to stdout, everything else to stderr; this is the place that prints"
)]

mod cmd;

use std::io::Write as _;
use std::process::ExitCode;

use clap::Parser as _;
use rungwise_verbs::problem;

fn main() -> ExitCode {
    let cli = cmd::Cli::parse();
    match cli.verb.run(&cli.global) {
        Ok(exit) => ExitCode::from(u8::from(exit)),
        Err(error) => {
            // Unlike `eprintln!`, which panics where nobody reads: the exit code tells all the same.
            let _ = writeln!(std::io::stderr(), "rungwise: {}", problem::words(&error));
            ExitCode::from(u8::from(problem::exit_of(&error)))
        }
    }
}
