//! Names of tasks by thread id, from perf records and `/proc`.
//!
//! A task that ran before the window began is looked up in `/proc` when its first sample is read; the name of a
//! short-lived task comes from the record of its creation or renaming.

use std::collections::HashMap;

use rungwise_host::Host;
use rungwise_host::live::Live;

use crate::perf::Seen;

/// Names kept; on a host that forks all the time older ones are dropped and looked up again.
const MOST: usize = 1 << 16;

/// What the task of the idle loop is called by the kernel.
const IDLE: &str = "swapper";

/// Name of a task that has ended and is unknown.
const ENDED: &str = "[ended]";

/// Names by thread id.
#[derive(Debug, Default)]
pub(crate) struct Tasks {
    names: HashMap<u32, String>,
}

impl Tasks {
    /// Learns names from a record of a ring.
    pub(crate) fn learn(&mut self, seen: &Seen<'_>) {
        match *seen {
            Seen::Sample(_) | Seen::Switched(_) => {}
            Seen::Named { thread, name } => self.named(thread, name),
            Seen::Born {
                thread,
                parent,
                parent_thread,
                ..
            } => self.born(thread, parent, parent_thread),
        }
    }

    /// A task was given a name.
    fn named(&mut self, thread: u32, name: &[u8]) {
        let name = String::from_utf8_lossy(name);
        self.keep(thread, name.trim_end_matches('\0'));
    }

    /// A task was made; it has the name of its parent until it takes another.
    fn born(&mut self, thread: u32, parent: u32, parent_thread: u32) {
        let name = self.name(parent, parent_thread).to_owned();
        self.keep(thread, &name);
    }

    /// Its name, or [`ENDED`].
    pub(crate) fn name(&mut self, process: u32, thread: u32) -> &str {
        if thread == 0 {
            return IDLE;
        }
        if !self.names.contains_key(&thread) {
            let path = format!("/proc/{process}/task/{thread}/comm");
            let name = Live.text(path.as_ref());
            self.keep(thread, name.as_deref().unwrap_or(ENDED));
        }
        self.names.get(&thread).map_or("", String::as_str)
    }

    fn keep(&mut self, thread: u32, name: &str) {
        if self.names.len() >= MOST {
            self.names.clear();
        }
        // The separator of frames cannot be a part of one.
        self.names.insert(thread, name.replace([';', '\n'], ":"));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_task_is_named_by_its_last_record_or_its_parent() {
        let mut tasks = Tasks::default();
        tasks.named(7, b"old\0\0\0");
        tasks.named(7, b"a;b");
        tasks.born(8, 7, 7);
        assert_eq!(tasks.name(7, 7), "a:b");
        assert_eq!(tasks.name(7, 8), "a:b");
        assert_eq!(tasks.name(0, 0), "swapper");
    }

    #[test]
    fn an_unknown_task_is_looked_up_and_one_that_ended_says_so() {
        let mut tasks = Tasks::default();
        let own = std::process::id();
        assert_ne!(tasks.name(own, own), ENDED);
        assert_eq!(tasks.name(u32::MAX, u32::MAX), ENDED);
    }
}
