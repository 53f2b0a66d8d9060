//! What one request costs in heap: the document of `jvm heap-per-request`.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::Envelope;
use crate::capacity::Estimate;

/// The document of `jvm heap-per-request`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct HeapPerRequestReport {
    /// Common fields.
    #[serde(flatten)]
    pub envelope: Envelope,
    /// The JVM: `pid 4242`.
    pub target: String,
    /// The load: request, connections, arrival.
    pub load: String,
    /// Version of the JVM in its own words; null if it does not give one.
    pub jvm: Option<String>,
    /// `serial`, `parallel`, `cms`, `g1`, `zgc`, `shenandoah`, `epsilon`; null if it is none of these.
    pub collector: Option<String>,
    /// Bytes of heap that one answered request allocates; null if there is no answer.
    pub bytes_per_request: Option<Estimate>,
    /// Why there is no answer, or why it is not settled; null if it is.
    pub because: Option<String>,
    /// Caveats.
    pub notes: Vec<String>,
    /// The methods, and what each measured over the same requests.
    pub methods: Vec<Method>,
    /// Heap that the requests occupied divided by their number, as a GC log gives it; null if collections cannot be forced.
    pub occupied: Option<Occupied>,
    /// Blocks of requests in the order in which they ran. Those that the answer is from are marked.
    pub blocks: Vec<Block>,
    /// The last blocks no longer fell or rose.
    pub steady: bool,
    /// Allocation without load, bytes per second; subtracted from all figures.
    pub background_bytes_per_s: Option<Estimate>,
    /// Bytes allocated to accept a connection and to answer its first request, subtracted together with that request; null if each request
    /// has a connection of its own.
    pub connection_bytes: Option<Estimate>,
    /// Requests of all blocks.
    pub requests: Requests,
    /// What follows for the frequency of collections, at the rate that was asked for; null if none was.
    pub collections: Option<Collections>,
}

/// How the allocation is measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum MethodKind {
    /// The sum of the threads' own counters (`Thread.print -e`).
    ThreadCounters,
    /// Heap in use between two forced collections, less what threads hold and have not used.
    HeapUsed,
    /// Heap before and after each collection in the JVM's GC log, less the unused buffers that the log contains (`gc+tlab=debug`).
    GcLog,
}

/// A method and its result.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Method {
    /// Which.
    pub kind: MethodKind,
    /// Bytes per request, over the requests that all methods measured; null if it gives nothing.
    pub bytes_per_request: Option<Estimate>,
    /// Why it gives nothing, or a bound only; null otherwise.
    pub because: Option<String>,
}

/// Heap that the requests occupied.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Occupied {
    /// Growth of the heap in use divided by requests.
    pub bytes_per_request: f64,
    /// How much more that is than the answer of these requests, as a share of it; null if there is none.
    pub bias: Option<f64>,
    /// Bytes that threads held in their buffers (TLABs) and had not used; null if unknown.
    pub unused_bytes: Option<f64>,
}

/// A block of requests.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Block {
    /// Requests answered.
    pub requests: u64,
    /// Its length, seconds.
    pub seconds: f64,
    /// Bytes allocated per request; background and connections are still in it.
    pub bytes_per_request: Estimate,
    /// The answer is from this block and others.
    pub measured: bool,
}

/// Requests of a load.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Requests {
    /// Sent.
    pub sent: u64,
    /// Answered as expected.
    pub answered: u64,
    /// Sent and not answered as expected; they allocate too, but are no requests of the answer.
    pub failed: u64,
    /// Errors by kind, as in the document of `load`.
    pub errors: BTreeMap<String, u64>,
}

/// Young collections at a rate.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Collections {
    /// Requests per second, as asked.
    pub rate_per_s: f64,
    /// Bytes allocated per second at that rate, background included.
    pub allocation_bytes_per_s: Estimate,
    /// Size of Eden; an interval where the collector resizes it. Null if the collector has none.
    pub eden_bytes: Option<Estimate>,
    /// Young collections per minute; null if the collector has no Eden.
    pub young_per_min: Option<Estimate>,
    /// Young collections that the same calculation gives for the measured blocks, and how many there were; null without Eden.
    pub check: Option<Check>,
}

/// The calculation applied to what was measured.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Check {
    /// By calculation.
    pub calculated: Estimate,
    /// Counted by the JVM.
    pub counted: u64,
}
