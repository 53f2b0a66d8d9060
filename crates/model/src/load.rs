//! A measurement of a workload: the document of `rungwise load`.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::Envelope;
use crate::connections::Connections;

/// Quantiles of one latency distribution, microseconds. All zero where nothing was received.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Quantiles {
    /// Median.
    pub p50: f64,
    /// 90th percentile.
    pub p90: f64,
    /// 99th percentile.
    pub p99: f64,
    /// 99.9th percentile.
    pub p999: f64,
    /// Largest value.
    pub max: f64,
}

/// The same replies, timed from two starts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Latency {
    /// From the *intended* start of each request: the wait for a slow generator or a full window counts.
    /// In a closed loop a request is intended when its slot becomes free, so the two differ only by
    /// the time a batch waits before it is handed to the kernel.
    pub corrected: Quantiles,
    /// From the moment the request was handed to the kernel, as most tools print it.
    pub uncorrected: Quantiles,
}

/// Share of the window from which on the generator's threads count as never waiting; a convention.
pub const SATURATED: f64 = 0.95;
/// A server at or above this share of its CPUs is the bottleneck, whatever the client does; a convention.
pub const SERVER_BUSY: f64 = 0.95;
/// Up to this idle share of the CPUs that client and server both use, the machine as a whole is the bottleneck; a
/// convention.
pub const ROOM: f64 = 0.05;
/// More drops per reply than this invalidate the loss count; small against the 2 % that a ladder resolves.
pub const DROPS: f64 = 0.001;
/// With more late sends than this the actual schedule differs from the requested one; likewise.
pub const LATE: f64 = 0.01;

/// How the generator sends and receives.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum TransportKind {
    /// UDP sockets.
    #[default]
    Sockets,
    /// The queues of a device, bypassing the network stack (`AF_XDP`).
    AfXdp,
}

/// How requests were sent and replies received.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Transport {
    /// Transport.
    pub kind: TransportKind,
    /// The device, if its queues were used.
    pub device: Option<String>,
    /// Whether the XDP program ran in the driver.
    pub native: Option<bool>,
    /// Its receive queues.
    pub queues: Option<u32>,
    /// Share of the received datagrams that came from a queue; the others came through the stack.
    pub by_queue: Option<f64>,
}

/// The generator's own cost and health. Without `certified` a measurement enters no verdict.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ClientHealth {
    /// How requests left and replies came; sockets in documents written before it was recorded.
    #[serde(default)]
    pub transport: Transport,
    /// CPU microseconds of the generator's threads per completed transaction; absent if the window was too short or
    /// nothing was completed.
    pub cpu_us_per_tx: Option<f64>,
    /// Share of the window in which the generator's threads ran or waited for a CPU, excluding polling for an imminent
    /// send. Absent in documents written before it was recorded.
    #[serde(default)]
    pub busy: Option<f64>,
    /// The generator's threads never waited, so the rate may be the generator's limit and not the server's.
    pub saturated: bool,
    /// CPU time of the server as a fraction of the CPUs it may use; absent if the server process was not given.
    #[serde(default)]
    pub server_busy: Option<f64>,
    /// Idle share of the CPUs that generator and server both run on; absent if they share none, or if it is unknown.
    #[serde(default)]
    pub shared_idle: Option<f64>,
    /// CPU used by other processes than generator and server, as a fraction of all CPUs; absent if it cannot be read.
    pub foreign_cpu: Option<f64>,
    /// The measurement may be used.
    pub certified: bool,
    /// Why not, one sentence each; empty when certified.
    pub reasons: Vec<String>,
    /// Share of open-loop sends that left more than 1 ms after their intended start.
    pub late_sends: f64,
    /// Most late sends waited for a reply to free their slot, not for the generator.
    #[serde(default)]
    pub starved: bool,
    /// Replies dropped by the kernel at the generator's own sockets.
    pub socket_drops: u64,
}

/// One second of a run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Second {
    /// Start of this second, seconds since the measured window began.
    pub at_s: f64,
    /// Requests sent.
    pub sent: u64,
    /// Replies received in time.
    pub received: u64,
    /// Requests whose timeout ended in this second.
    pub lost: u64,
    /// Median corrected latency, microseconds.
    pub p50_us: f64,
    /// 99th percentile of corrected latency, microseconds.
    pub p99_us: f64,
}

/// What is measured of TLS. Connections that were established before the window count as well.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Tls {
    /// The server's certificate was verified.
    pub verified: bool,
    /// Handshakes by what was negotiated, version and cipher suite: `TLS 1.3 TLS_AES_256_GCM_SHA384`.
    pub negotiated: BTreeMap<String, u64>,
    /// Full handshakes.
    pub full: u64,
    /// Handshakes that resumed an earlier session of their connection.
    pub resumed: u64,
    /// Time of a handshake, from the established connection on; part of no `connect_us`. All zero if there was none.
    pub handshake_us: Quantiles,
}

/// What is measured of HTTP beyond requests and their latency.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Http {
    /// `HTTP/1.1` or `HTTP/2`. Absent in documents from before it could be another than HTTP/1.1.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub protocol: String,
    /// Complete responses to requests of the window by status, whether they count as answers or not.
    pub statuses: BTreeMap<String, u64>,
    /// Bytes received in the window, heads and bodies.
    pub received_bytes: u64,
    /// Connections that were established, including those before the window.
    pub connections: u64,
    /// Time to establish a connection, without TLS; all zero if none was established.
    pub connect_us: Quantiles,
    /// What is measured of HTTP/2; absent with HTTP/1.1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub http2: Option<Http2>,
    /// What is measured of TLS; absent without it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tls: Option<Tls>,
    /// Time from the send to the first byte of the response, or of an interim one (1xx).
    pub first_byte_us: Quantiles,
    /// Requests of the window by their names in a list; absent without a list.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub requests: Vec<NamedRequests>,
}

/// What is measured of HTTP/2 alone.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Http2 {
    /// Requests at the same time on each connection, at most.
    pub streams: u64,
    /// Requests of the window whose stream the server reset, by error code: `REFUSED_STREAM`. They are the error `stream_reset`.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub resets: BTreeMap<String, u64>,
    /// Connections that the server ended in the window (GOAWAY), by error code; `NO_ERROR` is an orderly end.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub goaways: BTreeMap<String, u64>,
    /// Connections on which the server broke the protocol, by what was wrong. Their requests are the error `malformed`.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub broken: BTreeMap<String, u64>,
    /// Requests of the window that were sent again because the server ended the connection and had not looked at them. Each counts once.
    pub repeated: u64,
}

/// What is measured of requests and replies on streams beyond requests and their latency: TCP, redis, memcached, Dubbo.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Stream {
    /// What is spoken: `RESP2`.
    pub protocol: String,
    /// Bytes of requests sent in the window.
    pub sent_bytes: u64,
    /// Bytes received in the window.
    pub received_bytes: u64,
    /// Connections that were established, including those before the window.
    pub connections: u64,
    /// Those of them that replaced one that had ended.
    pub reconnects: u64,
    /// Time to establish a connection, without TLS; all zero if none was established.
    pub connect_us: Quantiles,
    /// Answers to requests of the window by kind: `hits`, `misses`; absent where there is one kind.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub answers: BTreeMap<String, u64>,
    /// How the server worded the errors with which it replied, by their names in `errors`.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub quotes: BTreeMap<String, Quote>,
    /// What the server said without being asked, by kind, in the window or not: `heartbeats`, `read_only`. Absent where it said nothing.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub events: BTreeMap<String, u64>,
    /// Connections on which the server broke the protocol in the window, by what it did. A request on each is the error `malformed`, or `timeout`,
    /// `closed` or `reset` where it stopped within a reply.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub broken: BTreeMap<String, u64>,
    /// What is measured of TLS; absent without it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tls: Option<Tls>,
    /// Requests of the window by command; absent where there is one.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub requests: Vec<NamedRequests>,
}

/// An error in a server's own words.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Quote {
    /// Its class: `MOVED`.
    pub class: String,
    /// The first one of the class: `MOVED 3999 127.0.0.1:6381`.
    pub text: String,
}

/// The requests of one name.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct NamedRequests {
    /// Name in the list, method and path, or the command; `(others)` for those beyond the first 200 names.
    pub name: String,
    /// Requests sent.
    pub sent: u64,
    /// Those without an answer: lost, or a reply that was not expected.
    pub errors: u64,
    /// Median latency from the intended start, microseconds; 0 without an answer.
    pub p50_us: f64,
    /// 99th percentile of it.
    pub p99_us: f64,
}

/// The measurement of a workload, without the document's envelope.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Measurement {
    /// Mean intended rate; absent in a closed loop, where the server sets the rate.
    pub offered_per_s: Option<f64>,
    /// Replies per second over the measured window.
    pub achieved_per_s: f64,
    /// Length of the measured window, seconds.
    pub window_s: f64,
    /// Requests sent in the window.
    pub sent: u64,
    /// Replies that came in time, to requests of the window.
    pub received: u64,
    /// Requests of the window without a reply in time.
    pub lost: u64,
    /// Other errors by kind: `late`, `duplicate`, `unexpected`, `truncated`, `send`, `refused`, DNS
    /// response codes as `rcode_servfail` and so on; of HTTP `timeout`, `connect`, `tls`, `closed`, `reset`, `stream_reset`, `malformed`, `status_5xx`,
    /// `body`; of streams also `greeting`, `abandoned` and `reply_err` and others by class; each of these is also lost; of held connections
    /// `connect_refused`, `connect_timeout`, `no_port` and others, connections that were not established, and `closed` and `reset`, those that ended. Kinds that did not occur are absent.
    pub errors: BTreeMap<String, u64>,
    /// Latency of the received replies.
    pub latency_us: Latency,
    /// What is measured of HTTP alone; absent for other workloads.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub http: Option<Http>,
    /// What is measured of requests on streams alone; absent for other workloads.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stream: Option<Stream>,
    /// What is measured of connections that are held open; absent for other workloads. Requests are then pings.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub connections: Option<Connections>,
    /// The generator's own cost and health.
    pub client: ClientHealth,
    /// The run second by second; an incomplete last second is not listed.
    pub seconds: Vec<Second>,
}

/// A limit that was to be kept (`--slo`).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SloResult {
    /// As it was written: `p99<50ms`.
    pub slo: String,
    /// What it limits: `rate`, `loss`, `errors`, or a quantile of the latency such as `p99`.
    pub metric: String,
    /// What was measured, in microseconds, as a share or per second; absent where there was nothing to measure.
    pub value: Option<f64>,
    /// It was kept.
    pub met: bool,
}

/// The JSON document of `rungwise load`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct LoadReport {
    /// Common fields.
    #[serde(flatten)]
    pub envelope: Envelope,
    /// Target of the load: address and port, or `unix:` and the path of a socket.
    pub target: String,
    /// What was measured.
    #[serde(flatten)]
    pub measurement: Measurement,
    /// The limits of `--slo`; absent where none was given.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub slo: Vec<SloResult>,
    /// The search for the highest rate (`--find-limit`). The measurement is then the last one at that rate, or the one at the lowest rate where
    /// none kept the limits.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limit: Option<LimitSearch>,
}

/// A search for the highest rate at which the limits are kept.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct LimitSearch {
    /// Highest rate at which a run kept all limits, and a second run as well; absent if there was none.
    pub rate_per_s: Option<f64>,
    /// Lowest rate above it at which a limit was missed; absent if none was.
    pub missed_per_s: Option<f64>,
    /// Rate in a closed loop, from which the steps were derived.
    pub closed_per_s: f64,
    /// The rate that is needed (`--rate`).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub needed_per_s: Option<f64>,
    /// Why the search ended before its end; absent if it did not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ended: Option<String>,
    /// The runs, in their order.
    pub steps: Vec<LimitStep>,
}

/// One open-loop run of a search.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct LimitStep {
    /// Offered rate.
    pub offered_per_s: f64,
    /// Replies per second.
    pub achieved_per_s: f64,
    /// Share of the requests without an answer, or with an error for an answer.
    pub errors: f64,
    /// Latency from the intended start, microseconds.
    pub latency_us: Quantiles,
    /// CPU time of the server as a fraction of the CPUs it may use; absent if its processes are unknown.
    pub server_busy: Option<f64>,
    /// What the run showed.
    pub outcome: StepOutcome,
    /// Which limits were missed, or why the run shows nothing.
    pub reasons: Vec<String>,
}

/// What one run of a search showed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum StepOutcome {
    /// All limits were kept, and the service kept up with the rate.
    Kept,
    /// A limit was missed, or the service did not keep up.
    Missed,
    /// Nothing: the generator does not certify the run.
    NotCertified,
}

/// The part of a load generator's report that is stored with the capture of the machine it loaded.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct GeneratorReport {
    /// Replies per second over the window; absent if the report has latencies only.
    #[serde(default)]
    pub achieved_per_s: Option<f64>,
    /// Replies that came in time, to requests of the window.
    pub received: u64,
    /// Its cost and health; absent if the report has latencies only.
    #[serde(default)]
    pub client: Option<ClientHealth>,
    /// Median latency from the intended start, microseconds; absent in reports stored by an older version.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub median_us: Option<f64>,
    /// Latency distribution in rising order: milliseconds, and how many replies took no longer. Absent if the report
    /// has quantiles only.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub latencies_ms: Option<Vec<(f64, u64)>>,
    /// The same load at a lower rate, if measured.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub light: Option<LightLoad>,
    /// When its load ran: `from 2026-01-02T03:04:05Z to 2026-01-02T03:04:16Z`; absent if it is the window of the capture.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ran: Option<String>,
}

/// A second load of the same service at a lower rate.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct LightLoad {
    /// Replies per second over the window.
    pub achieved_per_s: f64,
    /// Median latency from the intended start, microseconds.
    pub median_us: f64,
}

impl From<&Measurement> for GeneratorReport {
    fn from(measurement: &Measurement) -> Self {
        Self {
            achieved_per_s: Some(measurement.achieved_per_s),
            received: measurement.received,
            client: Some(measurement.client.clone()),
            median_us: Some(measurement.latency_us.corrected.p50),
            latencies_ms: None,
            light: None,
            ran: None,
        }
    }
}
