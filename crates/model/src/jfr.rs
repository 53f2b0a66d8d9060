//! The document of `jvm jfr`: what a JDK Flight Recorder file says of the run of a JVM.
//!
//! What is counted how, and what a recording leaves out: `docs/jfr.md`.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::Envelope;
use crate::check::Finding;

/// The document of `jvm jfr`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct JfrReport {
    /// Common fields.
    #[serde(flatten)]
    pub envelope: Envelope,
    /// Target as named on the command line.
    pub target: String,
    /// Notes on the file and on how it was read.
    pub notes: Vec<String>,
    /// What the recording says.
    #[serde(flatten)]
    pub recording: Recording,
    /// Act first, then watch, undecided, clear.
    pub findings: Vec<Finding>,
}

/// What a recording says.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Recording {
    /// Version of the file format.
    pub format: String,
    /// Chunks that were read.
    pub chunks: u64,
    /// Bytes of the file, unpacked.
    pub file_bytes: u64,
    /// Start, RFC 3339 in UTC.
    pub began: String,
    /// End of what was read, likewise; empty in documents written before it was recorded.
    #[serde(default)]
    pub ended: String,
    /// Seconds from the start of the first chunk to the end of the last.
    pub duration_s: f64,
    /// Places where the file is damaged, cut or not finished, and what is missing for it.
    pub damage: Vec<String>,
    /// The JVM and its machine.
    pub jvm: Jvm,
    /// Events by type.
    pub events: BTreeMap<String, u64>,
    /// The shortest duration that the JVM recorded, by type, as configured: `20 ms`. Shorter events are missing.
    pub thresholds: BTreeMap<String, String>,
    /// Stack samples.
    pub samples: Samples,
    /// Methods by samples at their own code, most first.
    pub hot_methods: Vec<HotMethod>,
    /// Threads by samples and CPU use, most first.
    pub threads: Vec<ThreadUse>,
    /// What threads that do not run wait in, by wall-clock samples, most first.
    pub waiting_methods: Vec<HotMethod>,
    /// Kinds of code by the samples that have it on their stack.
    pub code: Vec<Code>,
    /// Allocation.
    pub allocation: Allocation,
    /// Contended locks by the time that threads waited, most first.
    pub locks: Vec<Lock>,
    /// Waits that are no contention: `Object.wait`, conditions and queues, sleep. Most time first.
    pub waits: Vec<Wait>,
    /// Reads and writes by file or peer, most time first.
    pub io: Vec<Io>,
    /// Exceptions.
    pub exceptions: Exceptions,
    /// Garbage collections.
    pub collections: Vec<Collection>,
    /// Time until all threads had stopped at a safepoint; null if not recorded.
    pub safepoint_begin: Option<Times>,
    /// Operations that the JVM ran, most time first.
    pub operations: Vec<Operation>,
    /// CPU use.
    pub cpu: Option<Cpu>,
    /// Old objects that were still alive: candidates for a leak.
    pub old_objects: Vec<OldObject>,
    /// Limits of the container and how often they were reached; null outside one or if not recorded.
    pub container: Option<Container>,
    /// Flags of the JVM that are not at their default, by name: value and origin.
    pub flags: BTreeMap<String, Flag>,
}

/// The JVM and its machine; null is not recorded.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Jvm {
    /// Its version, as it prints it.
    pub version: Option<String>,
    /// Name of the JVM.
    pub name: Option<String>,
    /// Process id, within its container.
    pub pid: Option<u64>,
    /// Start of the JVM, RFC 3339 in UTC.
    pub started: Option<String>,
    /// Main class or archive; its arguments may be secret and are left out.
    pub main: Option<String>,
    /// Collector of the young generation.
    pub collector: Option<String>,
    /// CPU model.
    pub cpu: Option<String>,
    /// CPUs of the machine.
    pub cpus: Option<u64>,
    /// Memory of the machine or container.
    pub memory_bytes: Option<u64>,
    /// Threads started during the recording.
    pub thread_starts: u64,
    /// Java threads, the highest number.
    pub most_threads: Option<u64>,
}

/// Stack samples by what the thread did.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Samples {
    /// In Java code, running (`jdk.ExecutionSample`).
    pub running: u64,
    /// In native code, running or blocked there (`jdk.NativeMethodSample`); not in `hot_methods`.
    pub native: u64,
    /// By CPU time (`jdk.CPUTimeSample`, JDK 25).
    pub cpu_time: u64,
    /// Not running (wall-clock samples of async-profiler).
    pub waiting: u64,
    /// The type of event that `hot_methods` counts; null without samples.
    pub source: Option<String>,
    /// Samples in `hot_methods`.
    pub counted: u64,
}

/// A method by its samples.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct HotMethod {
    /// Class and name.
    pub method: String,
    /// Samples in its own code.
    #[serde(rename = "self")]
    pub own: u64,
    /// Samples with it anywhere on the stack, once each.
    pub total: u64,
    /// `own` as a share of all samples.
    pub own_share: f64,
    /// `total` as a share of all samples.
    pub total_share: f64,
    /// The thread, or group of threads whose names differ by numbers only, with most of its own samples.
    pub thread: Option<String>,
}

/// A thread, or several whose names differ by numbers only.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ThreadUse {
    /// The name, with `*` for numbers that differ.
    pub name: String,
    /// Its threads.
    pub threads: u64,
    /// Samples that found it running.
    pub samples: u64,
    /// `samples` as a share of all samples.
    pub share: f64,
    /// The method with most of these samples.
    pub method: Option<String>,
    /// Time that it waited for contended locks.
    pub lock_ms: f64,
    /// Bytes that it allocated, by the JVM's own counter or by allocation events; null without either.
    pub allocated_bytes: Option<u64>,
}

/// A kind of code on the stacks of samples.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Code {
    /// `logging`, `serialization`, `jdbc`, `tls`, `json`, `xml`, `compression`, `regex`, `reflection`, `locks`.
    pub kind: String,
    /// Samples with such code on their stack.
    pub samples: u64,
    /// The same as a share.
    pub share: f64,
    /// The entry into that code with most samples.
    pub method: String,
    /// The method that calls it most often.
    pub caller: Option<String>,
}

/// Allocation; estimated from samples unless the JVM recorded every TLAB.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Allocation {
    /// The types of events it is computed from; null without any.
    pub source: Option<String>,
    /// Bytes allocated.
    pub bytes: u64,
    /// Of these, outside of TLABs; null if not recorded.
    pub outside_tlab_bytes: Option<u64>,
    /// By class, most bytes first.
    pub classes: Vec<Allocated>,
    /// By the method that allocates, most bytes first.
    pub methods: Vec<Allocated>,
}

/// Bytes of one class, or by one method.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Allocated {
    /// The class or method.
    pub name: String,
    /// Events.
    pub events: u64,
    /// Bytes.
    pub bytes: u64,
    /// Bytes as a share of all.
    pub share: f64,
}

/// How often and how long.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Times {
    /// Events.
    pub count: u64,
    /// Their time together.
    pub total_ms: f64,
    /// The longest.
    pub longest_ms: f64,
}

/// A contended lock: all objects of one class.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Lock {
    /// Class of the object; `unknown` if not recorded.
    pub class: String,
    /// `monitor` of `synchronized`, or `synchronizer` such as a `ReentrantLock`.
    pub kind: String,
    /// Waits.
    #[serde(flatten)]
    pub times: Times,
    /// Threads that waited.
    pub threads: u64,
    /// Objects, by address.
    pub objects: u64,
    /// The thread that held it before most of these waits; only monitors record it.
    pub owner: Option<String>,
    /// Where threads waited, most time first.
    pub sites: Vec<Site>,
}

/// A place in the code.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Site {
    /// Frames, innermost first, without those of the JDK if there are others.
    pub frames: Vec<String>,
    /// Events there.
    #[serde(flatten)]
    pub times: Times,
}

/// A wait that is no contention.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Wait {
    /// `object-wait`, `park`, `sleep`.
    pub kind: String,
    /// Class of the object; empty for a sleep.
    pub class: String,
    /// Waits.
    #[serde(flatten)]
    pub times: Times,
    /// Where most of the time was spent.
    pub at: Option<String>,
}

/// Reads or writes of one file, or of one peer.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Io {
    /// `file-read`, `file-write`, `file-force`, `socket-read`, `socket-write`.
    pub kind: String,
    /// Path, or host and port.
    pub place: String,
    /// Operations.
    #[serde(flatten)]
    pub times: Times,
    /// Bytes.
    pub bytes: u64,
    /// Where most of the time was spent.
    pub at: Option<String>,
}

/// Exceptions and errors.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Exceptions {
    /// Throwables created during the recording, by the JVM's own counter; null if not recorded.
    pub thrown: Option<u64>,
    /// The same per second.
    pub thrown_per_s: Option<f64>,
    /// By class, most first; each one only if the recording's settings ask for it.
    pub classes: Vec<Thrown>,
}

/// Throwables of one class.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Thrown {
    /// The class.
    pub class: String,
    /// How many.
    pub count: u64,
    /// Whether it is an error.
    pub is_error: bool,
    /// One of the messages, shortened.
    pub message: Option<String>,
    /// Where most were created.
    pub at: Option<String>,
}

/// Collections of one kind and cause.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Collection {
    /// `G1New`, `ParallelOld`.
    pub name: String,
    /// Why.
    pub cause: String,
    /// Its pauses: the number is of collections, the longest is the longest single pause.
    #[serde(flatten)]
    pub pauses: Times,
}

/// An operation of the JVM.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Operation {
    /// Its name.
    pub name: String,
    /// Whether threads were stopped for it.
    pub stops_threads: bool,
    /// Its runs.
    #[serde(flatten)]
    pub times: Times,
}

/// CPU use as shares of all CPUs of the machine.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Cpu {
    /// The JVM in user mode, mean.
    pub jvm_user: f64,
    /// The JVM in the kernel, mean.
    pub jvm_system: f64,
    /// The whole machine, mean.
    pub machine: f64,
    /// The whole machine, highest.
    pub machine_most: f64,
    /// Other processes: the machine less the JVM, mean.
    pub others: f64,
    /// Measurements.
    pub samples: u64,
}

/// Objects of one class that survived since they were sampled.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct OldObject {
    /// Class.
    pub class: String,
    /// Sampled objects.
    pub count: u64,
    /// Age of the oldest at the end of the recording.
    pub oldest_s: f64,
    /// Where most were allocated.
    pub at: Option<String>,
    /// From the object to its root, as far as recorded.
    pub path: Vec<String>,
    /// The root.
    pub root: Option<String>,
}

/// Limits of a container.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Container {
    /// `cgroupv1`, `cgroupv2`.
    pub kind: String,
    /// CPUs that the JVM may use.
    pub cpus: Option<u64>,
    /// CPU quota as a number of CPUs; null if there is none.
    pub quota_cpus: Option<f64>,
    /// Memory limit; null if there is none.
    pub memory_limit_bytes: Option<u64>,
    /// Periods in which the quota ended, as a share of all; null if not recorded.
    pub throttled_share: Option<f64>,
    /// Time without CPU because of the quota; null if not recorded.
    pub throttled_ms: Option<f64>,
}

/// A flag of the JVM.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Flag {
    /// Its value.
    pub value: String,
    /// Who set it: `Command line`, `Ergonomic`.
    pub origin: String,
}
