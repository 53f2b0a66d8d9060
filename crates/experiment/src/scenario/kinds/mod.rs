//! The kinds of workload as a scenario writes them: a file each, and a line where the file's kind is looked at.

mod command;
mod udp;

use std::fmt::Debug;

use schemars::JsonSchema;
use serde::Deserialize;

use super::Workload;
use super::document::{At, Document};
use super::resolve::Reader;
use crate::design::Step;
use crate::stage::Traffic;

pub use command::{Command, Output};
pub(crate) use udp::change;
pub use udp::{Request, Udp};

pub(super) use command::CommandTable;
pub(super) use udp::UdpTable;

/// The tables of all kinds, for the schema that is published; no file is read as one.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(untagged)]
#[expect(dead_code, reason = "its schema is all that is wanted of it")]
pub(super) enum AnyTable {
    /// `kind = "udp"`.
    Udp(UdpTable),
    /// `kind = "command"`.
    Command(CommandTable),
}

/// What rungs may change, of all kinds.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(untagged)]
#[expect(dead_code, reason = "its schema is all that is wanted of it")]
pub(super) enum AnyChange {
    /// Of `kind = "udp"`.
    Udp(udp::UdpChange),
    /// Of `kind = "command"`.
    Command(command::CommandChange),
}

/// The tables of a kind, as they are written.
pub(super) trait Tables: for<'de> Deserialize<'de> + JsonSchema + Debug {
    /// What a rung may change of it.
    type Change: for<'de> Deserialize<'de> + JsonSchema + Debug;
}

impl Tables for AnyTable {
    type Change = AnyChange;
}

/// A kind of workload: what its tables mean.
pub(super) trait Kind: Tables {
    /// Discarded at the start of every run, where the scenario does not say.
    const WARMUP_MS: u64;
    /// Measured length of every run, where the scenario does not say.
    const MEASURE_MS: u64;

    /// The traffic that the table means; what is wrong goes to the reader's problems.
    fn resolve(table: &At<Self>, reader: &mut Reader<'_, '_>) -> Option<Workload>;

    /// What a rung changes; `key` is the rung's.
    fn traffic(change: &Self::Change, reader: &mut Reader<'_, '_>, key: &str) -> Traffic;

    /// Notes what cannot be driven though each value is right by itself.
    fn drivable(
        workload: &Workload,
        document: &Document<Self>,
        rungs: &[Step],
        reader: &mut Reader<'_, '_>,
    );
}
