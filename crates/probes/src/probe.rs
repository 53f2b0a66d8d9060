//! A probe: what it reads, what that costs, and how it derives evidence from the raw texts.
//!
//! Gathering and judging are apart. A probe only *names* its sources; one gatherer reads them all, each once however
//! many probes want it, and keeps the raw text. Then `derive`, a pure function, derives evidence from it. So a probe
//! cannot change the machine, a capture contains exactly what the probes read, and the same code judges a capture
//! offline and this host.

use rungwise_model::evidence::{Evidence, Key};
use rungwise_model::kernel::Question;

use crate::window::Window;

/// One subject matter: its sources and what they mean.
#[derive(Debug)]
pub struct Probe {
    /// Named after its source: `proc-net-snmp`.
    pub id: &'static str,
    /// One line: what it reads.
    pub summary: &'static str,
    /// What reading costs.
    pub cost: Cost,
    /// What it needs beyond an ordinary user; it yields less without.
    pub needs: &'static [Need],
    /// What is read, and when.
    pub sources: &'static [Source],
    /// The keys it yields, or for which it gives a reason.
    pub yields: &'static [&'static Key],
    /// Raw texts to evidence. Pure; never panics; for each key of `yields` a value or an absence.
    pub derive: fn(&Window<'_>, &mut Evidence),
    /// Its page: what to know about the source, kernel file and version, traps.
    pub doc: &'static str,
}

/// What reading costs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cost {
    /// A file or a few.
    Free,
    /// Grows with devices, CPUs or processes.
    Cheap,
    /// Interrupts the machine at a chosen rate.
    Sampled,
}

/// What a source needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Need {
    /// Root.
    Root,
    /// `perf_event_open` for the whole machine.
    Perf,
    /// A mounted tracefs, which the tool mounts in a mount namespace of its own.
    Tracefs,
}

/// One thing to read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Source {
    /// What.
    pub what: What,
    /// When.
    pub when: When,
}

/// What to read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum What {
    /// Files: `*` stands for a part of a name within one folder, `{pid}` for the judged process (without one, the
    /// source is skipped), `{service}` for each process that serves clients or uses CPU, `{owner}` for each process
    /// that has a listed socket open.
    Files(&'static str),
    /// Files of the threads of the judged process, next to their `schedstat`: only of threads that ran or waited to run
    /// since the previous full sample (a setting, read once: since the first one). The files of other threads have not
    /// changed.
    Running(&'static str),
    /// Control groups, at whatever depth: of each its settings, and its counters where a setting limits it.
    Groups,
    /// A question to the kernel.
    Ask(Question),
}

/// When to read it. In this order, so that a source named by several probes is read as often as the most demanding one needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum When {
    /// At both ends and in between: counters and queue lengths whose course matters.
    Each,
    /// At both ends: counters that are expensive to read.
    Ends,
    /// Once, at the start of the window: the initial state.
    Begin,
    /// Once, at the end of the window: settings.
    Once,
    /// Some seven times between two full samples: what lasts for milliseconds, of the few processes that serve clients or use CPU.
    Often,
}

impl Source {
    /// Files that are read at the start of the window.
    pub const fn begin(pattern: &'static str) -> Self {
        Self {
            what: What::Files(pattern),
            when: When::Begin,
        }
    }

    /// Files that are read once.
    pub const fn once(pattern: &'static str) -> Self {
        Self {
            what: What::Files(pattern),
            when: When::Once,
        }
    }

    /// Files that are read at both ends of the window.
    pub const fn ends(pattern: &'static str) -> Self {
        Self {
            what: What::Files(pattern),
            when: When::Ends,
        }
    }

    /// Files that are read in each full sample.
    pub const fn each(pattern: &'static str) -> Self {
        Self {
            what: What::Files(pattern),
            when: When::Each,
        }
    }

    /// Files that are read often, of `{service}` processes.
    pub const fn often(pattern: &'static str) -> Self {
        Self {
            what: What::Files(pattern),
            when: When::Often,
        }
    }

    /// Files of threads that run, read when they have run.
    pub const fn running(pattern: &'static str, when: When) -> Self {
        Self {
            what: What::Running(pattern),
            when,
        }
    }

    /// A question that is asked.
    pub const fn ask(question: Question, when: When) -> Self {
        Self {
            what: What::Ask(question),
            when,
        }
    }
}
