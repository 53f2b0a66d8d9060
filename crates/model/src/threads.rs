//! What `jvm threads` says of thread dumps: deadlocks, locks with those that wait for them, pools, threads that do not move.
//!
//! How threads are told apart and what the shares mean: `docs/jvm-threads.md`.

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
    /// What the reader should know of the files and of how they were read.
    pub notes: Vec<String>,
    /// What became of every line of the files.
    pub account: Account,
    /// The dumps in the order of their time.
    pub dumps: Vec<Dump>,
    /// Threads that stood at the same place in the last dumps of their JVM, and ought not to.
    pub stuck: Vec<Stuck>,
    /// Act first, then watch, undecided, clear.
    pub findings: Vec<Finding>,
}

/// In which form a dump was written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Form {
    /// `jstack`, `jcmd PID Thread.print`, SIGQUIT.
    #[default]
    Print,
    /// `jcmd PID Thread.dump_to_file`, JDK 21 and later.
    Plain,
    /// The same with `-format=json`.
    Json,
}

/// One thread dump.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Dump {
    /// Its number, from 1, in the order of time.
    pub number: u64,
    /// Number of its JVM, from 1: dumps of one JVM are compared with one another.
    pub jvm: u64,
    /// The file it stands in.
    pub file: String,
    /// Its first line there.
    pub line: u64,
    /// When it was taken, as printed; null where it is not told.
    pub taken: Option<String>,
    /// Version of the JVM, as printed.
    pub version: Option<String>,
    /// How it was written.
    pub form: Form,
    /// The owners of `ReentrantLock` and its like are told (`jstack -l`, `jcmd PID Thread.print -l`).
    pub synchronizers_told: bool,
    /// Threads, those of the JVM itself too.
    pub threads: u64,
    /// Threads by state, `RUNNABLE` and so on; those without one are of the JVM itself, or the form does not tell.
    pub by_state: BTreeMap<String, u64>,
    /// Threads by what they do.
    pub doing: Doing,
    /// Threads that wait for a lock as a share of those that are not idle and not of the JVM; null where the form does not
    /// tell, and where there are none.
    pub waiting_share: Option<f64>,
    /// Cycles of threads that wait for one another.
    pub deadlocks: Vec<Deadlock>,
    /// Locks that threads wait for, most wanted first.
    pub locks: Vec<Lock>,
    /// Threads with names that differ by numbers only, largest group first.
    pub pools: Vec<Pool>,
}

/// Threads by what they do; each is in one group.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Doing {
    /// Of the JVM itself, and carriers of virtual threads.
    pub jvm: u64,
    /// Waiting for work: of a queue, a selector, a listening socket.
    pub idle: u64,
    /// Running, or in native code such as a read.
    pub running: u64,
    /// Waiting for a lock.
    pub lock_waiting: u64,
    /// Waiting for something else: a condition, an answer, a time.
    pub waiting: u64,
}

/// Threads that wait for one another in a circle, which none of them can leave.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Deadlock {
    /// Names of the threads; each waits for what the next one holds, the last for what the first holds.
    pub threads: Vec<String>,
    /// Ids of the locks; each is waited for by the thread of the same place.
    pub locks: Vec<String>,
    /// Their classes.
    pub classes: Vec<String>,
    /// The JVM itself reports it; else it was found from who holds what.
    pub reported: bool,
    /// The lines it rests on.
    pub lines: Vec<Sample>,
}

/// A lock that threads wait for.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Lock {
    /// Its address, or class and hash. Of no meaning in another dump: objects move.
    pub id: String,
    /// Class of the object.
    pub class: String,
    /// `monitor` of `synchronized`, or `synchronizer` such as a `ReentrantLock`.
    pub kind: String,
    /// Name of the thread that holds it; null where no thread does (it was just being handed over), or where it is not told.
    pub owner: Option<String>,
    /// The owner, the owner of what that thread waits for, and so on.
    pub chain: Vec<String>,
    /// Why no owner is named; null where one is.
    pub owner_unknown: Option<String>,
    /// What the owner does: its state.
    pub owner_state: Option<String>,
    /// The frames on top of the owner's stack, those of the JDK left out where there are others.
    pub owner_frames: Vec<String>,
    /// What that means, where the frames are known: `writes a log`.
    pub owner_doing: Option<String>,
    /// Names of the threads that wait for it.
    pub waiters: Vec<String>,
    /// Threads that wait for it or for what its waiters hold, and so on.
    pub behind: u64,
    /// The lines it rests on: the first waiter's, the owner's.
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
    /// What all of its threads wait for, so that none takes work; null where some do.
    pub starved: Option<String>,
}

/// A thread that stood at the same place in several dumps.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Stuck {
    /// Number of its JVM.
    pub jvm: u64,
    /// Its name.
    pub thread: String,
    /// Its state in the last dump.
    pub state: Option<String>,
    /// The last dumps that have the same stack of it.
    pub dumps: u64,
    /// Share of one CPU that it used meanwhile; null where the dumps do not tell.
    pub cpu_share: Option<f64>,
    /// What it waits for, or what others wait for that it holds, in words.
    pub why: String,
    /// The frames on top.
    pub frames: Vec<String>,
}
