//! Connections that are held open: what `rungwise load connections` measures beside its pings.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::load::Quantiles;

/// What is measured of connections that are held open.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Connections {
    /// Connections that were asked for.
    pub asked: u64,
    /// Connections that were tried. Fewer where `--partial` took what fits, a limit was met, or the run was interrupted.
    pub tried: u64,
    /// Connections that were established, those of a storm aside.
    pub opened: u64,
    /// Connections that were open at the end of the window.
    pub held: u64,
    /// Seconds from the first connect until the last connection was established or had failed.
    pub opening_s: f64,
    /// Connects per second that were asked for.
    pub rate_per_s: f64,
    /// Time from when a connect was due until it was established; all zero if none was.
    pub connect_us: Quantiles,
    /// Time between two pings of a connection, seconds; absent without pings.
    pub ping_s: Option<f64>,
    /// Source addresses; 0 where the kernel chose the one.
    pub sources: u64,
    /// Threads that drove the connections.
    pub threads: u64,
    /// Memory that the generator's process used more than before the first connect, bytes per open connection; without that of the kernel. Absent
    /// without connections, or where it did not grow.
    pub client_bytes_each: Option<f64>,
    /// Messages to every connection; absent where none was asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub broadcast: Option<Broadcasts>,
    /// The reconnect storm; absent where none was asked for, or the run ended before it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub storm: Option<Storm>,
    /// Connections that read nothing.
    #[serde(default)]
    pub slow_readers: u64,
    /// Connections that vanished without a word when the window began.
    #[serde(default)]
    pub half_open: u64,
    /// Why this is a part of what was asked for; absent where it is all.
    pub partial: Option<String>,
    /// The run was interrupted.
    #[serde(default)]
    pub interrupted: bool,
    /// What was computed before the first connect.
    pub limits: Vec<HostLimit>,
}

/// Messages that the server sent to every connection because the generator asked for them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Broadcasts {
    /// Messages that were asked for.
    pub messages: u64,
    /// Arrivals that were expected: for each message the connections that were open.
    pub expected: u64,
    /// Messages that arrived, over all connections.
    pub received: u64,
    /// Time from when the message was due to be asked for until it was read from each connection.
    pub fan_out_us: Quantiles,
}

/// A storm of reconnects: all connections end at once, and all clients come back at once.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Storm {
    /// Connections that were ended.
    pub dropped: u64,
    /// Those that were established again.
    pub back: u64,
    /// Time from the beginning of the storm until a connection was back.
    pub back_us: Quantiles,
}

/// A limit of this host for the connections of a run.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct HostLimit {
    /// `descriptors`, `open_files`, `ports`, `conntrack`, `epoll_watches`, `memory`, `time_wait` or `tcp_memory`.
    pub id: String,
    /// Connections that it allows; absent where it is unknown or bounds nothing.
    pub allows: Option<u64>,
    /// It allows as many as were asked for.
    pub suffices: bool,
    /// What it was computed from.
    pub basis: String,
    /// What moves it.
    pub knob: String,
}
