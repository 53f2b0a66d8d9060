//! Tests over the corpus, and on what real JVMs print.

mod corpus;
mod golden;
mod jvms;
mod summaries;

use rungwise_model::gc::Account;
use rungwise_threaddump::{Dump, Parser};

fn read(name: &str, bytes: &[u8]) -> (Vec<Dump>, Account) {
    let mut parser = Parser::new();
    parser.begin(name);
    parser.push(bytes);
    parser.finish()
}
