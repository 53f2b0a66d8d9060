//! A thread dump as it was written, before analysis.

use std::collections::BTreeMap;
use std::sync::Arc;

use rungwise_model::threads::Form;

/// One dump.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Dump {
    /// The name of its file, as passed to the parser.
    pub file: Arc<str>,
    /// Its first line there, from 1.
    pub line: u64,
    /// How it was written.
    pub form: Form,
    /// Process id, if the dump has it.
    pub pid: Option<u64>,
    /// When it was taken, as printed.
    pub taken: Option<String>,
    /// Version of the JVM, as printed.
    pub version: Option<String>,
    /// Some thread has the list of its ownable synchronizers, even if it is empty.
    pub has_synchronizers: bool,
    /// In the order of the dump.
    pub threads: Vec<Thread>,
    /// Deadlocks that the JVM itself reports.
    pub reported: Vec<Reported>,
    /// Threads that the kernel knows and the dump lacks; see [`Dump::join`].
    pub others: Vec<Task>,
}

/// What the kernel knows of a thread at the time of a dump.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Task {
    /// Its number in the pid namespace of the JVM: `nid` of the dump.
    pub native: u64,
    /// Its name, 15 bytes at most.
    pub name: String,
    /// CPU time that it used, seconds.
    pub cpu_s: f64,
    /// The part of it in the kernel, seconds, in steps of 10 ms.
    pub system_s: f64,
    /// Time that it waited for a CPU, seconds; if the kernel counts it.
    pub queued_s: Option<f64>,
}

impl Dump {
    /// Adds what the kernel knew of the threads when the dump was taken, `at_s` on one clock for all dumps.
    ///
    /// A JVM that prints its own CPU times keeps them: they are of the very moment of the stack.
    pub fn join(&mut self, at_s: f64, tasks: Vec<Task>) {
        let mut tasks: BTreeMap<u64, Task> =
            tasks.into_iter().map(|task| (task.native, task)).collect();
        for thread in &mut self.threads {
            thread.elapsed_s.get_or_insert(at_s);
            if let Some(task) = thread.native.and_then(|native| tasks.remove(&native)) {
                thread.cpu_s.get_or_insert(task.cpu_s);
                thread.system_s = Some(task.system_s);
                thread.queued_s = task.queued_s;
            }
        }
        self.others = tasks.into_values().collect();
    }
}

/// One thread.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Thread {
    /// Its name; a virtual thread may have none.
    pub name: Arc<str>,
    /// `#12`: the identifier that Java code sees, JDK 8 and later.
    pub id: Option<u64>,
    /// `tid=0x...`: address within the JVM.
    pub address: Option<Arc<str>>,
    /// It is a virtual one.
    pub is_virtual: bool,
    /// Identifier of the virtual thread that it runs, as its carrier.
    pub carries: Option<u64>,
    /// Its state according to the JVM; threads of the JVM itself have none.
    pub state: Option<State>,
    /// CPU time that it used, in seconds; JDK 11 and later.
    pub cpu_s: Option<f64>,
    /// Seconds since its start, JDK 11 and later; or since another moment that is the same in all dumps.
    pub elapsed_s: Option<f64>,
    /// `nid`: its number in the kernel, in the pid namespace of the JVM.
    pub native: Option<u64>,
    /// CPU time in the kernel, seconds; see [`Dump::join`].
    pub system_s: Option<f64>,
    /// Time that it waited for a CPU, seconds; see [`Dump::join`].
    pub queued_s: Option<f64>,
    /// Line of its name.
    pub line: u64,
    /// Its stack, innermost first, without the word `at`.
    pub frames: Vec<Arc<str>>,
    /// What it waits for.
    pub wait: Option<Wait>,
    /// Locks that it holds, innermost first.
    pub holds: Vec<Hold>,
}

/// `java.lang.Thread.State`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    /// Not started.
    New,
    /// Running, ready to run, or in native code, such as a read.
    Runnable,
    /// Waits to enter a monitor.
    Blocked,
    /// Waits without a limit.
    Waiting,
    /// Waits for some time, or sleeps.
    TimedWaiting,
    /// Ended.
    Terminated,
}

const STATES: [(State, &str); 6] = [
    (State::New, "NEW"),
    (State::Runnable, "RUNNABLE"),
    (State::Blocked, "BLOCKED"),
    (State::Waiting, "WAITING"),
    (State::TimedWaiting, "TIMED_WAITING"),
    (State::Terminated, "TERMINATED"),
];

impl State {
    /// The name that Java has for it.
    pub fn name(self) -> &'static str {
        let entry = STATES.iter().find(|(state, _)| *state == self);
        entry.map_or("", |(_, name)| name)
    }

    /// The state of this name.
    pub fn from_name(name: &str) -> Option<Self> {
        let entry = STATES.iter().find(|(_, known)| *known == name);
        entry.map(|(state, _)| *state)
    }
}

/// An object that threads synchronize on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Lock {
    /// Its address as printed, or class and identity hash. Objects move, so it is of no use beyond the dump.
    pub id: Arc<str>,
    /// Its class.
    pub class: Arc<str>,
}

/// What a thread waits for.
#[derive(Clone, Debug, PartialEq)]
pub struct Wait {
    /// In which way.
    pub how: How,
    /// The object, if the dump has it.
    pub lock: Option<Lock>,
    /// Identifier of the thread that holds it, if the dump has it.
    pub owner: Option<u64>,
    /// Number of the line that shows the wait.
    pub line: u64,
    /// The line, without leading blanks.
    pub text: String,
}

/// Ways to wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum How {
    /// To enter a monitor, or to enter it again at the end of `Object.wait`.
    Enter,
    /// In `Object.wait`: the monitor is free meanwhile.
    Notify,
    /// In `LockSupport.park`.
    Park,
    /// For another thread to initialise a class; HotSpot names the class since JDK 12 or so, before that it is unknown.
    Initialise,
}

/// A lock that a thread holds.
#[derive(Clone, Debug, PartialEq)]
pub struct Hold {
    /// The object.
    pub lock: Lock,
    /// It is an ownable synchronizer; otherwise a monitor.
    pub is_synchronizer: bool,
    /// The line that says so.
    pub line: u64,
    /// The line as it stands there, without blanks before it.
    pub text: String,
}

/// A deadlock that the JVM itself reports.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Reported {
    /// Line of `Found one Java-level deadlock`.
    pub line: u64,
    /// Who takes part, in the order of the report.
    pub members: Vec<Member>,
}

/// A thread in it.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Member {
    /// Name of the thread.
    pub thread: Arc<str>,
    /// What it waits for.
    pub lock: Option<Lock>,
    /// Line of the name.
    pub line: u64,
    /// The line that says what it waits for, without blanks before it.
    pub text: String,
}

impl Thread {
    /// Its name, or its identifier where it has none, as most virtual threads.
    pub(crate) fn label(&self) -> String {
        match self.id {
            Some(id) if self.name.is_empty() => format!("thread #{id}"),
            _ => self.name.to_string(),
        }
    }

    /// The monitor that it gave back when it went into `Object.wait`, so that its stack shows it as held and it is not.
    ///
    /// JDK 5 and 6 leave out the `waiting on` line of compiled frames; then it is the innermost monitor.
    pub(crate) fn released(&self) -> Option<&str> {
        let waits = self
            .frames
            .first()
            .is_some_and(|top| top.contains("java.lang.Object.wait"));
        match &self.wait {
            Some(wait) if wait.how == How::Initialise => None,
            Some(wait) => wait.lock.as_ref().map(|lock| &*lock.id),
            None if waits => self.holds.first().map(|hold| &*hold.lock.id),
            None => None,
        }
    }
}
