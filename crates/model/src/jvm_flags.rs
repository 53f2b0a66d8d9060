//! The options of a JVM and their findings: the document of `jvm flags`.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::Envelope;
use crate::check::{Finding, Grade};

/// The JDK that the options are judged for.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Jdk {
    /// Its feature number: 8, 17, 25.
    pub release: u8,
    /// Its version, where the process or the log contains it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub version: Option<String>,
    /// The update of a JDK up to 8, where it is known: 504 of `1.8.0_504`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub update: Option<u32>,
    /// The release whose flag table was used; a different one where this JDK has no table of its own.
    pub table: u8,
    /// The JVM that printed the table.
    pub table_source: String,
}

/// One option as given.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct JvmOption {
    /// As written: `-Xmx4g`.
    pub written: String,
    /// Where: `command line`, `JAVA_TOOL_OPTIONS`, ...
    pub origin: String,
    /// When it was added, deprecated and removed, in one sentence; empty if no table contains it.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub lifetime: String,
    /// Its state in each release with a table, oldest first; empty if no table contains it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub releases: Vec<FlagRelease>,
}

/// An option in one release.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct FlagRelease {
    /// The JDK.
    pub release: u8,
    /// `taken`, `experimental`, `diagnostic`, `deprecated`, `ignored`, or `unknown`: the JVM does not start with it.
    pub state: String,
    /// Default value; null where the JVM decides it at startup, or it is not a flag.
    pub default: Option<String>,
}

/// What the JVM runs on; null where unknown.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Surroundings {
    /// Memory of the machine.
    pub memory_bytes: Option<u64>,
    /// Memory limit of the control group.
    pub limit_bytes: Option<u64>,
    /// CPUs that the JVM may use.
    pub cpus: Option<f64>,
}

/// One change for a migration to another JDK.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct MigrationStep {
    /// Options to remove.
    pub out: Vec<String>,
    /// Options that replace them; empty if none are needed.
    pub into: Vec<String>,
    /// Why.
    pub why: String,
    /// Source of the statement.
    pub source: String,
    /// Confidence that the service behaves as before.
    pub confidence: Grade,
}

/// The same command line for another JDK.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct MigrationReport {
    /// The JDK.
    pub to: u8,
    /// What changes.
    pub steps: Vec<MigrationStep>,
    /// The new options, in order.
    pub options: Vec<String>,
    /// Findings about the new options on that JDK; those that passed are omitted.
    pub findings: Vec<Finding>,
}

/// The document of `jvm flags`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct JvmFlagsReport {
    /// Common fields.
    #[serde(flatten)]
    pub envelope: Envelope,
    /// `command line`, `pid 4242 (java)`, or the log that was read.
    pub target: String,
    /// The JDK.
    pub jdk: Jdk,
    /// What it runs on.
    pub surroundings: Surroundings,
    /// The options in the order in which the JVM reads them.
    pub options: Vec<JvmOption>,
    /// Act first, then watch, undecided, clear; within each the severest first.
    pub findings: Vec<Finding>,
    /// The migration to another JDK, with `--to`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub migration: Option<MigrationReport>,
}
