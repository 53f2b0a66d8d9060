//! The document of `jvm gc`: the contents of a GC log.
//!
//! A log may contain several runs of a JVM. Time does not continue from one to the next, so every statistic is of one
//! [`Run`], with sums over all runs beside them. What the log does not show is null, never zero. Milliseconds are
//! nanoseconds of the log divided by a million: exact up to a hundred days.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::Envelope;
use crate::check::Finding;

mod live;
mod runs;
mod sizes;
mod troubles;

pub use live::{LiveSet, LiveSource};
pub use runs::{RunSums, longest};
pub use sizes::Sizes;
pub use troubles::{Trouble, Troubles};

/// The document of `jvm gc`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct GcReport {
    /// Common fields.
    #[serde(flatten)]
    pub envelope: Envelope,
    /// Target as named on the command line.
    pub target: String,
    /// Seconds that the log covers of the longest run; null where it has no clock.
    pub window_s: Option<f64>,
    /// The JVM of the longest run.
    pub jvm: Jvm,
    /// Files in the order in which they were read.
    pub files: Vec<LogFile>,
    /// Notes on the files: their order and why, and what is missing.
    pub notes: Vec<String>,
    /// How many lines were understood, ignored or unknown.
    pub account: Account,
    /// Pauses of all runs together.
    pub pauses: AllPauses,
    /// The pauses compared with the requested limit; null without one.
    pub slo: Option<Slo>,
    /// Share of the time of all runs without collection pauses; null where the log has no clock or prints no pause.
    pub throughput: Option<f64>,
    /// Mean over the time for which it is known.
    pub allocation_bytes_per_s: Option<f64>,
    /// Mean over the time for which it is known.
    pub promotion_bytes_per_s: Option<f64>,
    /// Runs of a JVM in order of their start; of very many the first 32, the longest and the last.
    pub runs: Vec<Run>,
    /// Number of runs not listed because there are too many.
    pub runs_left_out: u64,
    /// Sums over those; null if there are none.
    pub left_out: Option<RunSums>,
    /// Findings of the rules.
    pub findings: Vec<Finding>,
}

/// A file of the log, or standard input.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct LogFile {
    /// Its name; of a member of a ZIP archive, with the archive's: `logs.zip/gc.log`.
    pub name: String,
    /// Encoding or compression: `gzip`, `zip`, `UTF-16`; null for plain text.
    pub packed: Option<String>,
    /// Bytes of text.
    pub bytes: u64,
    /// Number of its first line; lines are counted through all files.
    pub first_line: u64,
    /// Why its text ends early; null if it is complete.
    pub broken: Option<String>,
}

/// A limit on pauses, and how many exceeded it. Pauses within others are not counted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Slo {
    /// The limit.
    pub limit_ms: f64,
    /// Pauses with a duration.
    pub pauses: u64,
    /// Those above the limit.
    pub beyond: u64,
    /// Sum of those above the limit.
    pub beyond_ms: f64,
    /// Whether no pause exceeded the limit; null if none did but the log lacks the pauses of some run.
    pub met: Option<bool>,
}

/// The JVM that wrote the log, as far as the log describes it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Jvm {
    /// As printed: `17.0.15+6-Debian-1deb12u1`.
    pub version: Option<String>,
    /// `Serial`, `Parallel`, `CMS`, `G1`, `ZGC`, `generational ZGC`, `Shenandoah`, `generational Shenandoah`, `Epsilon`.
    pub collector: Option<String>,
    /// Command line or flags, as printed.
    pub flags: Option<String>,
    /// CPUs that the JVM sees.
    pub cpus: Option<u64>,
    /// Memory of the machine or container.
    pub memory_bytes: Option<u64>,
    /// Swap of the machine.
    pub swap_bytes: Option<u64>,
    /// Size of a region of G1 or Shenandoah.
    pub region_bytes: Option<u64>,
    /// Maximum heap.
    pub max_heap_bytes: Option<u64>,
    /// GC threads used in pauses.
    pub parallel_workers: Option<u64>,
    /// Concurrent GC threads.
    pub concurrent_workers: Option<u64>,
}

/// How many lines of the log were understood, ignored or unknown. Every byte is in exactly one of the three groups.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Account {
    /// Bytes of the log.
    pub bytes: u64,
    /// Bytes of lines that were used.
    pub understood: u64,
    /// Bytes of lines of a known form that contain nothing needed.
    pub ignored: u64,
    /// Bytes of lines not understood.
    pub unknown: u64,
    /// Lines of the log.
    pub lines: u64,
    /// Lines that were used.
    pub understood_lines: u64,
    /// Lines ignored on purpose.
    pub ignored_lines: u64,
    /// Lines not understood.
    pub unknown_lines: u64,
    /// The last line has no end: the log is cut, or still being written.
    pub cut: bool,
    /// The line that ends a pause whose start is missing because the log begins within the pause; null if there is none.
    pub begins_within: Option<Sample>,
    /// The first few lines not understood.
    pub samples: Vec<Sample>,
}

/// A line of the log.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Sample {
    /// Its number, from 1.
    pub line: u64,
    /// Its first part.
    pub text: String,
}

/// Pauses of all runs together.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct AllPauses {
    /// Pauses with a duration, those within other pauses included.
    pub count: u64,
    /// The longest.
    pub longest_ms: f64,
    /// Sum, excluding those within other pauses: the outer pause includes their time.
    pub total_ms: f64,
    /// By name as printed, with its cause: `Pause Young (Normal) (G1 Evacuation Pause)`.
    pub by_type: BTreeMap<String, Total>,
}

/// Number and total duration.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Total {
    /// How many.
    pub count: u64,
    /// Sum, exact.
    pub total_ms: f64,
    /// Longest, exact.
    pub longest_ms: f64,
}

/// A distribution of durations. Count, sum, minimum and maximum are exact, quantiles within 0.4 %.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Spread {
    /// How many.
    pub count: u64,
    /// Sum, exact.
    pub total_ms: f64,
    /// Shortest, exact.
    pub min_ms: f64,
    /// Mean.
    pub mean_ms: f64,
    /// Median.
    pub p50_ms: f64,
    /// 90th percentile.
    pub p90_ms: f64,
    /// 95th percentile.
    pub p95_ms: f64,
    /// 99th percentile.
    pub p99_ms: f64,
    /// 99.9th percentile.
    pub p999_ms: f64,
    /// Longest, exact.
    pub longest_ms: f64,
}

impl From<Spread> for Total {
    fn from(spread: Spread) -> Self {
        Self {
            count: spread.count,
            total_ms: spread.total_ms,
            longest_ms: spread.longest_ms,
        }
    }
}

/// One event with its line in the log.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Moment {
    /// Line of the log, from 1; null if there is none.
    pub line: Option<u64>,
    /// Seconds on the clock of the run: uptime if the log has it, else since its first timestamp.
    pub at_s: Option<f64>,
    /// Name as printed.
    pub name: String,
    /// Cause, where logged.
    pub cause: Option<String>,
    /// How long.
    pub duration_ms: Option<f64>,
    /// Heap in use before.
    pub heap_before_bytes: Option<u64>,
    /// Heap in use after.
    pub heap_after_bytes: Option<u64>,
}

/// A quantity over the run, in a limited number of steps of equal length; steps without a value are omitted.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Course {
    /// Length of a step, seconds.
    pub step_s: f64,
    /// The steps, oldest first.
    pub points: Vec<Point>,
}

/// One step of a [`Course`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Point {
    /// Mean time of the values, seconds on the clock of the run.
    pub at_s: f64,
    /// Smallest value.
    pub min: f64,
    /// Mean value.
    pub mean: f64,
    /// Largest value.
    pub max: f64,
    /// Number of values.
    pub count: u64,
}

/// Time along a run in steps of equal length, by what it was spent on. An event longer than a step is spread over the
/// steps that it covers.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Breakdown {
    /// Start of the first step, seconds on the clock of the run.
    pub from_s: f64,
    /// Length of a step, seconds.
    pub step_s: f64,
    /// The parts, largest sum first; beyond a dozen the rest is one part, `(other)`.
    pub parts: Vec<Portion>,
}

/// One part of a [`Breakdown`].
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Portion {
    /// As printed.
    pub name: String,
    /// Sum over the run.
    pub total_ms: f64,
    /// Value of each step, oldest first, up to the last non-zero step.
    pub steps_ms: Vec<f64>,
}

/// A growth with its 95 % interval.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Slope {
    /// The growth.
    pub point: f64,
    /// Lower end.
    pub low: f64,
    /// Upper end.
    pub high: f64,
}

/// One run of a JVM.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Run {
    /// Its number in the log, from 1.
    pub number: u64,
    /// The JVM that wrote this run, where several write to the log in turn and its lines identify it: `web-0/app` of a
    /// pod, `pid 4711`. Null for all others.
    pub source: Option<String>,
    /// Another run is longer and shown in charts, so each course of this one has at most eight steps. They are of equal
    /// length only if each of the finer steps had a value.
    pub coarse: bool,
    /// The JVM, as far as the run describes it.
    pub jvm: Jvm,
    /// The log starts with the JVM, so time and allocation count from uptime zero.
    pub whole: bool,
    /// Start of the covered time, seconds on the clock of the run; null if the log has no clock.
    pub began_s: Option<f64>,
    /// The same in milliseconds since 1970, UTC, where the log prints dates.
    pub began_unix_ms: Option<i64>,
    /// Length of the covered time; null if the log has no clock.
    pub seconds: Option<f64>,
    /// Pauses.
    pub pauses: Pauses,
    /// Share of the time without pauses.
    pub throughput: Option<Throughput>,
    /// Bytes that the application allocated.
    pub allocation: Option<Rate>,
    /// Bytes that young collections moved to the old generation.
    pub promotion: Option<Promotion>,
    /// Age tables.
    pub ages: Option<AgeTable>,
    /// What survives old collections.
    pub live: Option<LiveSet>,
    /// Heap and its parts.
    pub heap: Heap,
    /// How often the JVM changed the size of the heap; null if no collection logs a capacity.
    pub resizes: Option<Resizes>,
    /// Share of the young collections after which a survivor space was full, of those that log it.
    pub survivors_full: Option<f64>,
    /// Old collections: full ones and concurrent cycles.
    pub old: OldCollections,
    /// Concurrent cycles by cause, where the log records it, as for ZGC.
    pub cycle_causes: BTreeMap<String, u64>,
    /// Remarks of CMS and G1.
    pub remark: Option<Remarks>,
    /// Concurrent phases and cycles, by name.
    pub concurrent: BTreeMap<String, Concurrent>,
    /// The same over the run; phases lie within cycles and within each other.
    pub concurrent_course: Breakdown,
    /// Safepoints of all kinds.
    pub safepoints: Option<Safepoints>,
    /// CPU time of the pauses.
    pub cpu: Option<CpuUse>,
    /// References processed, by kind.
    pub references: BTreeMap<String, References>,
    /// Threads that waited for memory.
    pub stalls: Option<Stalls>,
    /// Free lists of CMS's old generation.
    pub fragmentation: Option<Fragmentation>,
    /// Failures.
    pub troubles: Troubles,
    /// The collector's own totals, by name as printed: for Shenandoah those at the end of the JVM, for ZGC those of its last table.
    pub statistics: BTreeMap<String, Statistic>,
}

/// Pauses of a run.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Pauses {
    /// Those with a duration that do not lie within another.
    pub all: Spread,
    /// Those within another pause, such as the young collection before a remark.
    pub nested: Total,
    /// Those whose duration the log does not show.
    pub unfinished: u64,
    /// By name as printed, with its cause; nested ones included.
    pub by_type: BTreeMap<String, Spread>,
    /// By kind: `young`, `mixed`, `full`, `degenerated`, `start`, `remark`, `cleanup`, `other`.
    pub by_kind: BTreeMap<String, Spread>,
    /// By cause.
    pub by_cause: BTreeMap<String, Spread>,
    /// Parts of the pauses, by name of the pause.
    pub phases: BTreeMap<String, Vec<Phase>>,
    /// The longest ones, longest first.
    pub longest: Vec<Moment>,
    /// Parts of the longest one.
    pub longest_phases: Vec<PhaseOfOne>,
    /// Over the run by kind, as in `by_kind`, milliseconds; excluding nested ones.
    pub courses: BTreeMap<String, Course>,
    /// Their outermost phases, and the remainder under the name of the pause. The sum of a step is the time that
    /// threads were stopped in it.
    pub made_of: Breakdown,
    /// Pauses by duration: upper bound of the bin in milliseconds, and their number.
    pub histogram: Vec<(f64, u64)>,
    /// Time from one young collection's start to the next.
    pub young_interval: Option<Spread>,
    /// Young pauses over the run, milliseconds.
    pub young_course: Course,
    /// How the young pause grows with the use of the young generation.
    pub young_cost: Option<Cost>,
    /// Collections and cycles for metaspace later than five minutes after the start of the run.
    pub metadata_late: u64,
    /// Full collections by cause.
    pub full_causes: BTreeMap<String, Total>,
}

/// A phase of all pauses of one name.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Phase {
    /// As printed.
    pub name: String,
    /// Nesting depth, 0 for the outermost.
    pub depth: u8,
    /// How long.
    pub time: Spread,
}

/// A phase of one pause.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct PhaseOfOne {
    /// As printed.
    pub name: String,
    /// Nesting depth.
    pub depth: u8,
    /// How long.
    pub duration_ms: f64,
}

/// Cost of a pause per GiB in the young generation: least squares over the pauses, with a 95 % interval.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Cost {
    /// Pauses.
    pub count: u64,
    /// Seconds of pause per GiB.
    pub s_per_gib: Slope,
    /// Seconds of pause for an empty young generation.
    pub base_s: f64,
    /// Share of the pauses' variation that it explains.
    pub explained: f64,
}

/// Share of the time without pauses.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Throughput {
    /// Of the whole run.
    pub whole: f64,
    /// Of the worst window.
    pub worst: f64,
    /// Length of that window, seconds: 60, or the run.
    pub worst_window_s: f64,
    /// Its end, seconds on the clock of the run.
    pub worst_until_s: f64,
}

/// A rate over the time for which it is known.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Rate {
    /// Bytes in that time.
    pub bytes: u64,
    /// That time, seconds.
    pub known_s: f64,
    /// Mean.
    pub bytes_per_s: f64,
    /// Highest mean over ten seconds of known time, or over all of it where that is longer; null if less is known.
    pub peak_bytes_per_s: Option<f64>,
    /// Where that span ended.
    pub peak: Option<Moment>,
    /// The first and the last collection used for it.
    pub ends: Vec<Moment>,
    /// Over the run, bytes per second from one collection to the next.
    pub course: Course,
}

/// What young collections moved to the old generation.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Promotion {
    /// Rate over the time between the collections for which it is known; null if the log has no clock.
    pub rate: Option<Rate>,
    /// Collections for which it is known.
    pub collections: u64,
    /// Mean per collection.
    pub mean_bytes: f64,
    /// Largest of one collection.
    pub largest_bytes: u64,
    /// That collection.
    pub largest: Moment,
}

/// The age tables of a run.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct AgeTable {
    /// Number of tables.
    pub count: u64,
    /// The last one's collection.
    pub last: Moment,
    /// Mean bytes of age 1, 2, ...; a table that does not print an age counts as zero there.
    pub mean_bytes: Vec<f64>,
    /// Share of the bytes of age 1, 2, ... that the next table has at the next age. Null if no table has any.
    pub survival: Vec<Option<f64>>,
    /// Desired survivor size, mean.
    pub desired_bytes: Option<f64>,
    /// Threshold, mean.
    pub threshold: Option<f64>,
    /// Maximum threshold, last seen.
    pub threshold_max: Option<u64>,
    /// Tables with a threshold below the maximum.
    pub lowered: u64,
    /// Tables whose bytes exceed the desired size.
    pub overflows: u64,
    /// Tables with a desired size.
    pub with_desired: u64,
    /// Tables with a threshold.
    pub with_threshold: u64,
}

/// Heap and its parts.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Heap {
    /// By part: `heap`, `young`, `eden`, `survivor`, `old`, `humongous`, `metaspace`.
    pub parts: BTreeMap<String, Part>,
    /// Mean bytes that a young collection frees in the young generation; about the size of Eden.
    pub eden_freed_bytes: Option<f64>,
    /// Mean use of the young generation after a young collection.
    pub survivors_bytes: Option<f64>,
    /// Largest share of the heap's capacity that humongous objects took.
    pub humongous_share: Option<f64>,
    /// Time of that maximum.
    pub humongous: Option<Moment>,
    /// Sizes of humongous objects: of those whose allocation requested a cycle or more heap, else of those in the heap,
    /// each counted at every collection that lists it; null if the log lists none.
    pub humongous_sizes: Option<Sizes>,
    /// Growth of metaspace per hour over the second half of the run, bytes.
    pub metaspace_bytes_per_hour: Option<Slope>,
}

/// A part of the heap.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Part {
    /// Before collections.
    pub before: Course,
    /// After collections.
    pub after: Course,
    /// Maximum in use.
    pub peak_bytes: u64,
    /// In use after the last collection.
    pub last_bytes: Option<u64>,
    /// Capacity, last seen.
    pub capacity_bytes: Option<u64>,
    /// Capacity, largest seen.
    pub largest_capacity_bytes: Option<u64>,
    /// The last collection that logs it.
    pub last: Moment,
}

/// Changes of the heap's capacity (with Parallel: of the old generation's) by 5 % and more.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Resizes {
    /// All of them.
    pub count: u64,
    /// Those later than five minutes after the start of the run.
    pub late: u64,
    /// The collection that showed the last one.
    pub last: Option<Moment>,
}

/// Full collections and concurrent cycles.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct OldCollections {
    /// Completed concurrent cycles.
    pub cycles: u64,
    /// Their length.
    pub cycle_length: Option<Spread>,
    /// Mean occupancy at their start: of the old generation with CMS, of the heap after the young collection that starts one
    /// with G1, else of the heap.
    pub occupancy: Option<f64>,
    /// The last of those starts.
    pub occupancy_at: Option<Moment>,
    /// Time from the start of one old collection to the next.
    pub interval: Option<Spread>,
    /// Mean share of the old generation that one frees.
    pub reclaimed: Option<f64>,
    /// The last collection that is in this mean.
    pub reclaimed_at: Option<Moment>,
}

/// Remarks of CMS and G1, excluding a young collection within them.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Remarks {
    /// How long.
    pub time: Spread,
    /// Those with a young collection within them.
    pub scavenged: u64,
    /// The longest.
    pub longest: Moment,
    /// Duration of the longest, excluding the young collection within it.
    pub longest_own_ms: f64,
    /// Its parts.
    pub longest_phases: Vec<PhaseOfOne>,
    /// Use of the young generation at the longest.
    pub longest_young_bytes: Option<u64>,
    /// Capacity of the young generation at the longest.
    pub longest_young_capacity_bytes: Option<u64>,
    /// The young collection within the remark that was longest including it.
    pub scavenge: Option<Scavenge>,
    /// How they grow with the use of the young generation.
    pub young_cost: Option<Cost>,
}

/// A young collection within a remark.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Scavenge {
    /// Use of the young generation before.
    pub before_bytes: Option<u64>,
    /// Use of the young generation after.
    pub after_bytes: Option<u64>,
    /// How long.
    pub duration_ms: f64,
    /// Duration of the remark including it.
    pub remark_ms: f64,
}

/// A concurrent phase or cycle.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Concurrent {
    /// Wall time.
    pub time: Spread,
    /// CPU time, where printed.
    pub cpu_ms: Option<f64>,
    /// Number aborted.
    pub aborted: u64,
    /// It is a whole cycle, not a part of one.
    pub cycle: bool,
    /// Number without a duration.
    pub unfinished: u64,
    /// The last aborted one.
    pub last_aborted: Option<Moment>,
}

/// Safepoints of all kinds.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Safepoints {
    /// From the safepoint request until all threads ran again.
    pub stopped: Spread,
    /// Time to safepoint, where printed.
    pub reaching: Option<Spread>,
    /// Longest time to safepoint.
    pub reaching_longest: Option<Moment>,
    /// Longest non-GC safepoint; of all where operations are not printed.
    pub longest: Option<Moment>,
    /// Stopped time outside collection pauses.
    pub outside_ms: f64,
    /// Share of the run in which threads were stopped; null where the log has no clock.
    pub share: Option<f64>,
    /// Time in which the application ran, where printed.
    pub ran_ms: Option<f64>,
    /// By operation, where printed.
    pub operations: BTreeMap<String, Operation>,
    /// Over the run, milliseconds from the safepoint request until all threads ran again.
    pub course: Course,
    /// Over the run, time to safepoint in milliseconds.
    pub reaching_course: Course,
}

/// Safepoints of one operation.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Operation {
    /// It is part of a collection.
    pub collection: bool,
    /// From the safepoint request until all threads ran again.
    pub stopped: Spread,
    /// Time to safepoint.
    pub reaching: Option<Spread>,
}

/// CPU time of the pauses that print it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct CpuUse {
    /// Pauses with a CPU line, excluding nested ones.
    pub pauses: u64,
    /// User time.
    pub user_ms: f64,
    /// System time.
    pub sys_ms: f64,
    /// Wall time.
    pub real_ms: f64,
    /// Those of 50 ms and more: the log's resolution of 10 ms is too coarse for shorter ones.
    pub judged: u64,
    /// Of those: user time.
    pub judged_user_ms: f64,
    /// Of those: system time.
    pub judged_sys_ms: f64,
    /// Of those: wall time.
    pub judged_real_ms: f64,
    /// Of those: user and sys below real by more than the rounding, and by a tenth where the collector is
    /// single-threaded by design.
    pub inverted: u64,
    /// Of those: sys above user.
    pub sys_heavy: u64,
    /// The longest of those judged.
    pub judged_longest: Option<Moment>,
    /// The longest inverted one.
    pub inverted_longest: Option<Moment>,
    /// The longest with sys above user.
    pub sys_longest: Option<Moment>,
    /// Over the run, user milliseconds per pause.
    pub user_course: Course,
    /// System time.
    pub sys_course: Course,
    /// Wall time.
    pub real_course: Course,
}

/// References of one kind.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct References {
    /// Found in all collections.
    pub count: u64,
    /// Largest number in one collection.
    pub most: u64,
    /// Time, where printed.
    pub time: Option<Spread>,
}

/// Threads that waited for memory.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Stalls {
    /// How long.
    pub time: Spread,
    /// By thread, where printed.
    pub threads: BTreeMap<String, Total>,
    /// The longest; its name is the thread.
    pub longest: Moment,
}

/// Free lists of CMS's old generation.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Fragmentation {
    /// Free bytes when space ran out (a promotion failed, or CMS did not finish in time), else as last logged.
    pub free_bytes: u64,
    /// Largest free block, at that moment.
    pub largest_bytes: u64,
    /// Largest block as a share of the free space.
    pub course: Course,
    /// That moment.
    pub last: Moment,
}

/// A row of the collector's own totals since the start of its JVM.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Statistic {
    /// Line of the log.
    pub line: u64,
    /// Count; null if not printed.
    pub count: Option<u64>,
    /// Mean.
    pub mean_ms: f64,
    /// Longest.
    pub longest_ms: f64,
}
