//! Each worker stays on one CPU.

use crate::Result;
use crate::knob::{Context, Doc, Draft, Knob, Risk, Scope, Settable};
use crate::mask;
use crate::service;
use crate::target::Target;

/// `cpu.pin_threads`
pub(crate) static KNOB: Knob = Knob {
    id: "cpu.pin_threads",
    scope: Scope::Service,
    risk: Risk::Restart,
    settable: Settable::Yes,
    summary: "each worker stays on one CPU",
    values: "off, on (the CPUs it may use, in order), or a CPU list",
    doc: Doc {
        does: "Worker i may run on the i-th CPU only (sched_setaffinity).",
        helps: "With one socket per worker and steering by CPU: the thread runs where its data was just \
               touched.",
        costs: "The scheduler cannot move a worker away from a busy CPU. Two services pinned to the same \
               CPUs hurt each other.",
        undone: service::RESTARTED,
        sources: "sched_setaffinity(2); the reference case: 4,250 k to 5,050 k transactions/s.",
    },
    writes: &[Target::Switch("pin_threads")],
    read: service::read,
    draft,
};

fn draft(context: &Context<'_>, wish: &str) -> Result<Draft> {
    let value = match wish {
        "on" | "off" => wish.to_owned(),
        list => mask::format_list(&mask::parse_list(list).map_err(|why| KNOB.bad_wish(wish, why))?),
    };
    Ok(service::switch(context, "pin_threads", &value))
}
