//! Each worker stays on one CPU.
//!
//! A restarted service gets a switch for it; the threads of a running process are pinned one by one, and each is
//! identified by its start time so that the undo never changes a later thread of the same number.

use std::path::Path;

use crate::edit::{Edit, Place, Thread};
use crate::knob::{Context, Doc, Draft, Knob, Risk, Scope, Settable};
use crate::mask;
use crate::service;
use crate::target::Target;
use crate::turn::Turn;
use crate::{Error, Result};

/// `cpu.pin_threads`
pub(crate) static KNOB: Knob = Knob {
    id: "cpu.pin_threads",
    scope: Scope::Service,
    risk: Risk::Restart,
    settable: Settable::Yes,
    summary: "pins each worker to one CPU",
    values: "off, on (the CPUs it may use, in order), a CPU list, or for running processes PID,...:LIST (their threads \
             may use these CPUs) or PID,...:each:LIST (one CPU per thread, in turn)",
    doc: Doc {
        does: "Worker i may run on the i-th CPU only (sched_setaffinity). In a running process every existing thread \
               is pinned; threads created later inherit from their creator.",
        helps: "With one socket per worker and steering by CPU: the thread runs where its data was just \
               touched.",
        costs: "The scheduler cannot move a worker away from a busy CPU. Two services pinned to the same \
               CPUs hurt each other.",
        undone: "The service is restarted without the switch. Threads of a running process get their previous CPUs \
                 back, unless they have been pinned again or have ended.",
        sources: "sched_setaffinity(2); the reference case: 4,250 k to 5,050 k transactions/s.",
    },
    by_hand: &[],
    writes: &[Target::Switch("pin_threads"), Target::Affinity],
    turn: Turn::Own {
        read: service::read,
        draft,
    },
};

fn draft(context: &Context<'_>, wish: &str) -> Result<Draft> {
    if let Some((pids, cpus)) = wish.split_once(':') {
        return running(context, pids, cpus, wish);
    }
    let value = match wish {
        "on" | "off" => wish.to_owned(),
        list => mask::format_list(&mask::parse_list(list).map_err(|why| KNOB.bad_wish(wish, why))?),
    };
    Ok(service::switch(context, "pin_threads", &value))
}

/// The threads of running processes.
fn running(context: &Context<'_>, pids: &str, cpus: &str, wish: &str) -> Result<Draft> {
    let number = |pid: &str| {
        pid.parse()
            .map_err(|_| KNOB.bad_wish(wish, format!("'{pid}' is not a process id")))
    };
    let pids: Vec<u32> = pids.split(',').map(number).collect::<Result<_>>()?;
    let (each, list) = match cpus.strip_prefix("each:") {
        Some(list) => (true, list),
        None => (false, cpus),
    };
    let cpus = mask::parse_list(list).map_err(|why| KNOB.bad_wish(wish, why))?;
    let failed =
        |tried: String| move |answer| Error::kernel(KNOB.id, tried, context.machine.name(), answer);
    let mut threads: Vec<(u32, u32)> = Vec::new();
    for pid in pids {
        let dir = format!("/proc/{pid}/task");
        let names = context
            .machine
            .list(Path::new(&dir))
            .map_err(failed(format!("list {dir}")))?;
        let mut own: Vec<u32> = names.iter().filter_map(|name| name.parse().ok()).collect();
        own.sort_unstable();
        threads.extend(own.into_iter().map(|tid| (pid, tid)));
    }
    let mut draft = Draft::default();
    for ((pid, tid), cpu) in threads.into_iter().zip(cpus.iter().cycle()) {
        let thread = match Thread::find(context.machine, pid, tid) {
            Ok(thread) => thread,
            // Ended since the list was read.
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => continue,
            Err(error) => return Err(failed(format!("read thread {tid}"))(error)),
        };
        let value = if each {
            cpu.to_string()
        } else {
            mask::format_list(&cpus)
        };
        draft = draft.edit(&Place::Host, Edit::Affinity { thread, value });
    }
    Ok(draft.note("threads that the process creates from now on inherit from their creator"))
}
