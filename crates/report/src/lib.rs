//! Results as people read them: blocks to a terminal, an HTML file or Markdown.
//!
//! [`tune`] and [`load`] turn a document of the model into [`block::Block`]s; the renderers
//! ([`html`], [`terminal`], [`markdown`]) show every block and decide nothing. JSON needs no
//! blocks: it is the document itself. This crate does no I/O, never reads the clock and judges
//! no measurement anew.

pub mod block;
pub mod csv;
pub mod html;
pub mod load;
pub mod markdown;
pub mod numbers;
pub mod scale;
pub mod terminal;
pub mod tune;

pub use block::Block;

/// A document of the model as JSON: the schema is the model's.
pub fn json(document: &impl serde::Serialize) -> Result<String, Error> {
    let mut text = serde_json::to_string_pretty(document)?;
    text.push('\n');
    Ok(text)
}

/// Why a report could not be written.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A document that JSON cannot hold.
    #[error(
        "cannot write the report as JSON: {0}; this is a defect of rungwise, please report it with the run folder"
    )]
    Json(#[from] serde_json::Error),
}
