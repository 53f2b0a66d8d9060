//! A probe: what it reads, what that costs, and how the raw texts become evidence.
//!
//! Gathering and judging are apart. A probe only *names* its sources; one gatherer reads them all, each
//! once however many probes want it, and keeps the raw text. Then `derive`, a pure function, makes evidence
//! of it. So a probe cannot change the machine, a capture holds just what the probes read, and judging a
//! capture on a plane is the same code as judging this host.

use rungwise_model::evidence::{Evidence, Key};
use rungwise_model::kernel::Question;

use crate::window::Window;

/// One subject matter: its sources and what they mean.
#[derive(Debug)]
pub struct Probe {
    /// Named after its source: `proc-net-snmp`.
    pub id: &'static str,
    /// One line: what it tells.
    pub summary: &'static str,
    /// What reading costs.
    pub cost: Cost,
    /// What it needs beyond an ordinary user; it yields less without.
    pub needs: &'static [Need],
    /// What is read, and when.
    pub sources: &'static [Source],
    /// The keys it yields, or says why not.
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
    /// Files: `*` stands for a part of a name within one folder, `{pid}` for the process that is judged
    /// (without one, the source is left out), `{service}` for each process that serves clients or works, `{owner}` for each process that has a told socket open.
    Files(&'static str),
    /// Files of the threads of the judged process, beside their `schedstat`: of those alone that ran or waited to run
    /// since the look before (a setting, read once: since the first look). Of the others nothing has changed.
    Running(&'static str),
    /// Control groups, at whatever depth: of each its settings, and its counters where a setting limits it.
    Groups,
    /// A question to the kernel.
    Ask(Question),
}

/// When to read it. In this order, so that what several probes name is read as the one does that wants most of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum When {
    /// At both ends and between: counters and queue lengths of which the course matters.
    Each,
    /// At both ends: counters that are dear to read.
    Ends,
    /// Once, at the begin of the window: what it began with.
    Begin,
    /// Once, at the end of the window: settings.
    Once,
    /// Some seven times between each two looks: what lasts for milliseconds, of the few processes that serve clients or work.
    Often,
}

impl Source {
    /// Files that are read at the begin of the window.
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

    /// Files that are read at each look.
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
