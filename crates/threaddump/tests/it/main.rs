//! Tests over the corpus, and on what real JVMs print.

mod corpus;
mod golden;
mod jvms;
mod told;

use std::io::Write as _;

use rungwise_model::gc::Account;
use rungwise_threaddump::{Dump, Parser};

fn read(name: &str, bytes: &[u8]) -> (Vec<Dump>, Account) {
    let mut parser = Parser::new();
    parser.begin(name);
    parser.push(bytes);
    parser.finish()
}

/// Says why a test, or a part of it, cannot run. Past the harness, which keeps what tests that pass print.
fn skipped(why: impl std::fmt::Display) {
    let test = std::thread::current();
    let _ = writeln!(
        std::io::stderr(),
        "SKIPPED {}: {why}",
        test.name().unwrap_or_default()
    );
}
