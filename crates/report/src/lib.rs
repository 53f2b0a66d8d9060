//! Results as people read them: blocks to a terminal, an HTML file or Markdown.
//!
//! [`capacity`], [`check`], [`compare`], [`gc`], [`load`] and [`tune`] turn a document of the model into [`block::Block`]s; the renderers
//! ([`html`], [`terminal`], [`markdown`]) show every block and decide nothing. JSON needs no
//! blocks: it is the document itself. This crate does no I/O, never reads the clock and does
//! not judge measurements again.

pub mod block;
pub mod capacity;
pub mod capacity_rpc;
pub mod check;
pub mod compare;
pub mod csv;
mod flame;
pub mod gc;
pub mod heap_per_request;
pub mod html;
pub mod jfr;
pub mod load;
pub mod markdown;
pub mod numbers;
pub mod profile;
pub mod sarif;
pub mod scale;
pub mod terminal;
mod thread_times;
mod thread_waits;
pub mod threads;
pub mod tune;

use std::fmt::Write as _;

pub use block::Block;

/// A document of the model as JSON: the schema is the model's.
pub fn json(document: &impl serde::Serialize) -> Result<String, Error> {
    let mut text = without_orders(serde_json::to_string_pretty(document)?);
    text.push('\n');
    Ok(text)
}

/// JSON with the control characters beyond ASCII escaped as well: they may stand in it raw (RFC 8259, section 7),
/// and a terminal that shows the document obeys them. Outside of strings there are none.
pub fn without_orders(json: String) -> String {
    let order = |c: char| ('\u{7f}'..='\u{9f}').contains(&c);
    if !json.contains(order) {
        return json;
    }
    let mut safe = String::with_capacity(json.len());
    for c in json.chars() {
        if order(c) {
            let _ = write!(safe, "\\u{:04x}", u32::from(c));
        } else {
            safe.push(c);
        }
    }
    safe
}

/// Why a report could not be written.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A document that JSON cannot hold.
    #[error(
        "cannot write the report as JSON: {0}; this is a bug in rungwise; please report it with the run folder"
    )]
    Json(#[from] serde_json::Error),
}

#[cfg(test)]
mod tests {
    #[test]
    fn a_document_gives_a_terminal_no_orders() {
        let text = super::json(&["a\u{9b}2J\u{7f}\u{1b}é"]).unwrap();
        assert_eq!(text, "[\n  \"a\\u009b2J\\u007f\\u001bé\"\n]\n");
        let read: [String; 1] = serde_json::from_str(&text).unwrap();
        assert_eq!(read, ["a\u{9b}2J\u{7f}\u{1b}é"]);
    }
}
