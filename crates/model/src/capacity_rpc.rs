//! Connections, threads and links that a rate of calls needs: the document of `capacity rpc`.
//!
//! Arithmetic over the figures of one call: a connection carries so many bytes per second, a link so many, and by Little's law as many
//! calls are under way as arrive while one lasts. Measured figures come from a document of `load`.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::Envelope;

/// With less room than this above what is wanted, calls queue: 80 % of a limit, a convention.
pub const ROOM: f64 = 1.25;

/// The document of `capacity rpc`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct CapacityRpcReport {
    /// Common fields.
    #[serde(flatten)]
    pub envelope: Envelope,
    /// Where the figures of a call come from: `figures as given`, or the document of a load.
    pub target: String,
    /// Caveats.
    pub notes: Vec<String>,
    /// Calls per second that all sites together are to serve.
    pub wanted_per_s: f64,
    /// What one call is.
    pub call: Call,
    /// What one site has; absent figures limit nothing.
    pub site: Site,
    /// What one site can serve by each of its limits, the tightest first.
    pub limits: Vec<Limit>,
    /// What each site has to serve: with all of them, and with one fewer.
    pub plans: Vec<Plan>,
}

/// The figures of one call.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Call {
    /// Bytes in the direction that has more of them.
    pub bytes: f64,
    /// Bytes per second that one connection carries in that direction.
    pub connection_bytes_per_s: f64,
    /// Time that a thread of the service spends on it, seconds.
    pub service_s: Option<f64>,
}

/// What a site has.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Site {
    /// Bytes per second of its link.
    pub link_bytes_per_s: Option<f64>,
    /// Connections of all consumers to it.
    pub connections: Option<u32>,
    /// Threads that serve calls.
    pub threads: Option<u32>,
}

/// A limit of one site.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Limit {
    /// What is used up: `connections`, `link`, `threads`.
    pub resource: String,
    /// Calls per second that it allows.
    pub calls_per_s: f64,
    /// How that follows from the figures.
    pub because: String,
}

/// What each site needs where so many of them serve all calls.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Plan {
    /// Sites that serve.
    pub sites: u32,
    /// Calls per second of each.
    pub calls_per_s: f64,
    /// Fewest connections that carry them.
    pub connections: u64,
    /// Calls under way at the same time in its threads; absent without the time of a call.
    pub busy_threads: Option<f64>,
    /// Share of the link; absent without a link.
    pub link_use: Option<f64>,
    /// What one site can serve by its tightest limit, as a multiple of what it has to; absent where nothing limits it.
    pub headroom: Option<f64>,
}
