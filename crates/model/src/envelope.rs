//! The fields that every JSON document of rungwise starts with.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::Exit;
use crate::machine::Machine;

/// Version of the JSON documents. Fields may be added within a version; none is renamed or removed.
pub const SCHEMA_VERSION: u32 = 1;

/// The tool that wrote a document.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Tool {
    /// Semantic version of rungwise.
    pub version: String,
}

/// The fields common to all documents.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Envelope {
    /// Schema version of this document, see [`SCHEMA_VERSION`].
    pub schema: u32,
    /// Which document it is: `load`, `check`, `jvm-gc`, `knob-plan`. Absent in documents written before it was recorded.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub document: Option<String>,
    /// Id of the run folder that holds it; absent where it was not kept in one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub run: Option<String>,
    /// The machine that wrote it, not the one that a capture, a log or a dump describes. Absent in documents written
    /// before it was recorded.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub written_on: Option<Machine>,
    /// The tool that wrote it.
    pub tool: Tool,
    /// The command line, program name first, as given.
    pub command: Vec<String>,
    /// Start, RFC 3339 in UTC.
    pub started: String,
    /// End, RFC 3339 in UTC.
    pub finished: String,
    /// Exit status of the process.
    pub exit: Exit,
}
