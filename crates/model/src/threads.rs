//! The document of `jvm threads`: deadlocks, locks and their waiters, pools, threads that do not move.
//!
//! How threads are classified and what the shares mean: `docs/jvm-threads.md`.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::Envelope;
use crate::check::Finding;
use crate::gc::{Account, Sample};

/// The document of `jvm threads`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ThreadsReport {
    /// Common fields.
    #[serde(flatten)]
    pub envelope: Envelope,
    /// Target as named on the command line; empty in documents written before it was recorded.
    #[serde(default)]
    pub target: String,
    /// Notes on the files and on how they were read.
    pub notes: Vec<String>,
    /// How many lines of the files were understood, ignored or unknown.
    pub account: Account,
    /// The dumps in chronological order.
    pub dumps: Vec<Dump>,
    /// Threads that stayed at the same place in the last dumps of their JVM, where they should have moved.
    pub stuck: Vec<Stuck>,
    /// Resources that threads wait for and no thread owns, in the last dump of each JVM, most threads first.
    #[serde(default)]
    pub waits: Vec<SharedWait>,
    /// Threads that used much of a CPU between the dumps.
    #[serde(default)]
    pub hot: Vec<Hot>,
    /// Carriers of virtual threads, of each JVM with any.
    #[serde(default)]
    pub carriers: Vec<Carriers>,
    /// CPU use and waits of all threads over the dumps, one row for threads of a pool that do the same; the busiest and those at locks first.
    #[serde(default)]
    pub times: Vec<ThreadTime>,
    /// Where threads with something to do were, by stages of the code, largest first.
    #[serde(default)]
    pub stages: Vec<Stage>,
    /// Thread pools without a free thread.
    #[serde(default)]
    pub full_pools: Vec<FullPool>,
    /// How the dumps were taken; null if they come from files.
    #[serde(default)]
    pub taken: Option<Taken>,
    /// Act first, then watch, undecided, clear.
    pub findings: Vec<Finding>,
}

/// Format of a dump.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Form {
    /// `jstack`, `jcmd PID Thread.print`, SIGQUIT.
    #[default]
    Print,
    /// `jcmd PID Thread.dump_to_file`, JDK 21 and later.
    Plain,
    /// `jcmd PID Thread.dump_to_file -format=json`.
    Json,
    /// The management beans (`ThreadInfo`): JMX, `VisualVM`, Spring Boot Actuator as text and JSON.
    Beans,
}

impl Form {
    /// A file of `Thread.dump_to_file`: it contains virtual threads and lacks the owners of `ReentrantLock`.
    pub fn is_file(self) -> bool {
        matches!(self, Self::Plain | Self::Json)
    }
}

/// One thread dump.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Dump {
    /// Its number, from 1, in chronological order.
    pub number: u64,
    /// Number of its JVM, from 1: dumps of one JVM are compared with one another.
    pub jvm: u64,
    /// The file that contains it.
    pub file: String,
    /// Its first line in that file.
    pub line: u64,
    /// When it was taken, as printed; null if not recorded.
    pub taken: Option<String>,
    /// Version of the JVM, as printed.
    pub version: Option<String>,
    /// Its format.
    pub form: Form,
    /// It contains the owners of `ReentrantLock` and similar locks (`jstack -l`, `jcmd PID Thread.print -l`).
    #[serde(rename = "synchronizers_told")]
    pub has_synchronizers: bool,
    /// Threads, including those of the JVM itself.
    pub threads: u64,
    /// Threads by state, `RUNNABLE` and so on; those without one are of the JVM itself, or the format lacks it.
    pub by_state: BTreeMap<String, u64>,
    /// Threads by what they do.
    pub doing: Doing,
    /// Threads that wait for a lock as a share of those that are not idle and not of the JVM; null if the format lacks
    /// it or there are none.
    pub waiting_share: Option<f64>,
    /// Deadlocks.
    pub deadlocks: Vec<Deadlock>,
    /// Locks that threads wait for, most waiters first.
    pub locks: Vec<Lock>,
    /// Groups of threads whose names differ by numbers only, largest group first.
    pub pools: Vec<Pool>,
}

/// Threads by what they do; each is in one group.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Doing {
    /// Of the JVM itself, and carriers of virtual threads.
    pub jvm: u64,
    /// Waiting for work: at a queue, a selector, a listening socket.
    pub idle: u64,
    /// Running, or in native code such as a read.
    pub running: u64,
    /// Waiting for a lock.
    pub lock_waiting: u64,
    /// Waiting for something else: a condition, an answer, a time.
    pub waiting: u64,
}

/// Threads that wait for one another in a cycle that none of them can leave.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Deadlock {
    /// Names of the threads; each waits for what the next one holds, the last for what the first holds.
    pub threads: Vec<String>,
    /// Ids of the locks, each awaited by the thread at the same position.
    pub locks: Vec<String>,
    /// Their classes.
    pub classes: Vec<String>,
    /// The JVM itself reports it; else it was derived from lock owners.
    pub reported: bool,
    /// The lines it is based on.
    pub lines: Vec<Sample>,
}

/// A lock that threads wait for.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Lock {
    /// Its address, or class and hash. Meaningless in another dump, since objects move.
    pub id: String,
    /// Class of the object.
    pub class: String,
    /// `monitor` of `synchronized`, or `synchronizer` such as a `ReentrantLock`.
    pub kind: String,
    /// Name of the thread that holds it; null if no thread holds it (it is being handed over) or the dump does not show the owner.
    pub owner: Option<String>,
    /// The owner, the owner of what that thread waits for, and so on.
    pub chain: Vec<String>,
    /// Why the owner is unknown; null if it is known.
    pub owner_unknown: Option<String>,
    /// What the owner does: its state.
    pub owner_state: Option<String>,
    /// The frames on top of the owner's stack, excluding those of the JDK if there are others.
    pub owner_frames: Vec<String>,
    /// What the owner does, for known frames: `writes a log`.
    pub owner_doing: Option<String>,
    /// Names of the threads that wait for it.
    pub waiters: Vec<String>,
    /// Threads that wait for it or for what its waiters hold, and so on.
    pub behind: u64,
    /// The lines it is based on: the first waiter's and the owner's.
    pub lines: Vec<Sample>,
}

/// Threads whose names differ by numbers only.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Pool {
    /// The name with `*` for the numbers.
    pub name: String,
    /// Its threads.
    pub threads: u64,
    /// Waiting for work.
    pub idle: u64,
    /// Running.
    pub running: u64,
    /// Waiting for a lock.
    pub lock_waiting: u64,
    /// Waiting for something else.
    pub waiting: u64,
    /// What all of its threads wait for, so that none takes work; null if some do.
    pub starved: Option<String>,
    /// All of its threads wait for results of other tasks that no thread computes: those tasks wait in the pool's own queue.
    #[serde(default)]
    pub waits_for_itself: Option<Itself>,
}

/// A pool whose threads all wait for results.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Itself {
    /// What they wait for, in words.
    pub what: String,
    /// The method that waits.
    pub at: Option<String>,
    /// Threads of other pools that are at work, and so may compute the results.
    pub others: u64,
    /// Results that only a thread can compute (`FutureTask`, `ForkJoinTask`); else anything may complete them, such as a selector.
    pub needs_thread: bool,
    /// Threads of the pool that did not move in any dump of the JVM.
    pub still: u64,
}

/// A thread that stayed at the same place in several dumps.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Stuck {
    /// Number of its JVM.
    pub jvm: u64,
    /// Its name.
    pub thread: String,
    /// Its state in the last dump.
    pub state: Option<String>,
    /// Number of the last dumps in which its stack is the same.
    pub dumps: u64,
    /// Share of one CPU that it used meanwhile; null if the dumps do not record it.
    pub cpu_share: Option<f64>,
    /// What it waits for, or what it holds that others wait for, in words.
    pub why: String,
    /// The frames on top.
    pub frames: Vec<String>,
}

/// Threads that wait for the same resource, which no thread owns: a permit, a latch, an answer, a connection of a pool.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct SharedWait {
    /// Number of its JVM.
    pub jvm: u64,
    /// `connection`, `semaphore`, `latch`, `barrier`, `phaser`, `exchanger`, `task`, `future`, `reply`, `full-queue`,
    /// `condition`, `thread-end`, `notify`, or `read-lock`: a read-write lock held by readers.
    pub kind: String,
    /// What they wait for, in words.
    pub what: String,
    /// The method that waits, outside the JDK and the pool.
    pub at: Option<String>,
    /// Names of the threads that wait in the last dump.
    pub waiters: Vec<String>,
    /// How many threads wait for it in each dump of this format, oldest first.
    pub counts: Vec<u64>,
    /// Waiters of the last dump that did not move in any dump: same stack, no CPU time. 0 with a single dump.
    pub still: u64,
    /// Of those that did not move, the threads that handle a request: with calls of servlets, Dubbo, gRPC and other servers on their stacks.
    #[serde(default)]
    pub requests: u64,
    /// Names of some threads that may release it: those past the place where these wait; for a latch, a task, a future, a full queue and a
    /// phaser those in a call that releases it, in any dump; for a phaser, a barrier and an exchanger those that met these in an earlier dump.
    pub holders: Vec<String>,
    /// How many threads may release it.
    pub past: u64,
    /// What most of those do.
    pub holders_doing: Option<String>,
    /// For `read-lock`: threads that wait for a lock which one of the waiters holds. If one of them is a reader, it is a deadlock.
    pub behind: Vec<String>,
    /// The pool whose threads wait, its name with `*` for the number; null if they are not of one pool.
    pub pool: Option<String>,
    /// The line it is based on: the first waiter's.
    pub lines: Vec<Sample>,
}

/// A thread that used much of a CPU from the first dump of its JVM to the last.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Hot {
    /// Number of its JVM.
    pub jvm: u64,
    /// Its name; for threads of the JVM itself the common name of their kind.
    pub thread: String,
    /// Share of one CPU; for threads of the JVM itself the sum. Null if the JVM prints no CPU time (JDK 8); the thread
    /// then ran in every dump.
    pub cpu_share: Option<f64>,
    /// Number of dumps this is based on.
    pub dumps: u64,
    /// A thread of the JVM itself: garbage collection, compilation.
    pub is_of_jvm: bool,
    /// Whether its stack differs between the dumps.
    pub moves: bool,
    /// The innermost method that is on its stack in every dump.
    pub at: Option<String>,
    /// Code known for endless loops that it was in, called from the same line, in every dump: `regex`, `map`, `spin`.
    pub looks_like: Option<String>,
    /// The frames on top in the last dump.
    pub frames: Vec<String>,
}

/// The threads that run virtual threads.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Carriers {
    /// Number of its JVM.
    pub jvm: u64,
    /// Their name with `*` for the number.
    pub pool: String,
    /// How many there are.
    pub carriers: u64,
    /// Carriers that have the same virtual thread in all printed dumps and used no CPU time.
    pub held: u64,
    /// Number of printed dumps this is based on.
    pub dumps: u64,
    /// Virtual threads pinned to their carrier, according to their frames.
    pub pinned: u64,
    /// Virtual threads without a frame: no carrier has run them yet. 0 if no dump lists virtual threads.
    pub unstarted: u64,
    /// Virtual threads in the last dump that lists them; null if none does.
    pub virtual_threads: Option<u64>,
    /// Frame that pins a virtual thread to its carrier.
    pub at: Option<String>,
}

/// Threads of a JVM that do the same, over its printed dumps: one thread, or those of a pool.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ThreadTime {
    /// Number of its JVM.
    pub jvm: u64,
    /// Name of the thread, or of the pool with `*` for the number.
    pub name: String,
    /// How many threads.
    pub threads: u64,
    /// `jvm`, `idle`, `running`, `lock_waiting`, `waiting`: what they did in the last dump. `unlisted`: the dumps lack them, and the kernel
    /// has them.
    pub doing: String,
    /// What they wait for or do, in words; empty for idle threads and those of the JVM.
    pub what: String,
    /// The innermost method outside the JDK in the last dump; null if they differ or there is none.
    pub at: Option<String>,
    /// CPU time from the first dump to the last as a share of one CPU, all together; null if unknown.
    pub cpu_share: Option<f64>,
    /// The part of it in the kernel, as a share of one CPU; null if the kernel was not asked.
    pub system_share: Option<f64>,
    /// Time that they waited for a CPU, as a share of the time, mean; null if the kernel was not asked or does not count it.
    pub queued_share: Option<f64>,
    /// In how many dumps they did what, added up over the threads.
    pub samples: Doing,
}

/// A stage of the code: a package, or what the user or this tool calls by a name.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Stage {
    /// Number of the JVM.
    pub jvm: u64,
    /// Its name: `jdbc`, `log`, a package.
    pub name: String,
    /// Samples whose innermost frame of any stage is of this one; a sample is a thread with something to do in a dump.
    pub own: Doing,
    /// Those as a share of all samples.
    pub own_share: f64,
    /// Share of the samples with any frame of this stage; these shares overlap.
    pub total_share: f64,
    /// Threads inside this stage, mean of the dumps. By Little's law this is the rate of requests multiplied by the time that one spends here.
    pub mean_threads: f64,
    /// Time that a request spends inside, ms; null unless the rate of requests was given.
    pub ms_per_request: Option<f64>,
}

/// A thread pool without a free thread in most of the dumps.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct FullPool {
    /// Number of its JVM.
    pub jvm: u64,
    /// Its name with `*` for the number.
    pub name: String,
    /// Its threads.
    pub threads: u64,
    /// The least share of its threads that were busy in any dump.
    pub busy_share: f64,
    /// What most of its threads wait for in the end, through locks and connections: `waits for the database`.
    pub cause: String,
    /// How many of its threads: the median of the dumps, of which the other fields are as well.
    pub behind: u64,
    /// How the others get there, in words: the lock or connection in between; null if they wait directly.
    pub through: Option<String>,
    /// The method that waits.
    pub at: Option<String>,
}

/// How the dumps of a running JVM were taken and what that cost it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Taken {
    /// Its process.
    pub pid: u64,
    /// The commands it was asked, as `jcmd` has them.
    pub commands: Vec<String>,
    /// Time from the first dump to the last, seconds.
    pub span_s: f64,
    /// Each dump.
    pub dumps: Vec<Cost>,
}

/// What a dump cost the JVM.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Cost {
    /// Start, seconds after that of the first dump.
    pub at_s: f64,
    /// The command.
    pub command: String,
    /// From the command to the complete answer, ms; the application was stopped for less.
    pub answered_ms: f64,
    /// Time that the application was stopped meanwhile, ms, by the JVM's own count; null without its performance data. Collections in
    /// between are part of it.
    pub stopped_ms: Option<f64>,
    /// Bytes of the answer.
    pub bytes: u64,
}
