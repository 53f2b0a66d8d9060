//! Documents whose page is one text, in every format but JSON.

use rungwise_model::{Envelope, Exit};
use schemars::JsonSchema;
use serde::Serialize;

/// What a verb answers whose page is one text.
#[derive(Clone, Debug)]
pub struct Printed {
    /// Name of the document's kind, such as `knob-plan`.
    pub kind: &'static str,
    /// Exit status.
    pub exit: Exit,
    /// The page.
    pub text: String,
    /// The document as JSON.
    pub json: String,
    /// What to say where it cannot be printed.
    pub unprinted: Option<&'static str>,
}

/// A document with the text that stands for its page.
#[derive(Serialize, JsonSchema)]
pub(crate) struct WithText<T: Serialize> {
    #[serde(flatten)]
    pub(crate) envelope: Envelope,
    /// What the verb prints for people.
    pub(crate) text: String,
    #[serde(flatten)]
    pub(crate) body: T,
}

impl Printed {
    /// The answer with this body. The envelope names its kind and its exit status.
    pub(crate) fn new(
        kind: &'static str,
        envelope: Envelope,
        text: String,
        body: impl Serialize,
    ) -> anyhow::Result<Self> {
        let exit = envelope.exit;
        let document = WithText {
            envelope,
            text: text.clone(),
            body,
        };
        Ok(Self {
            kind,
            exit,
            text,
            json: rungwise_report::json(&document)?,
            unprinted: None,
        })
    }
}
