//! The scheduler of a block device, and what it does to the number of requests.

use crate::Result;
use crate::knob::{Context, Current, Doc, Draft, Knob, Risk, Scope, Settable};
use crate::target::{Form, Target};
use crate::turn::{self, Turn};

/// `disk.scheduler`
pub(crate) static KNOB: Knob = Knob {
    id: "disk.scheduler",
    scope: Scope::Disk,
    risk: Risk::Disruptive,
    settable: Settable::Yes,
    summary: "who orders the requests of a disk",
    values: "one that the disk offers: none, mq-deadline, kyber or bfq",
    doc: Doc {
        does: "Requests wait in the scheduler, which merges and orders them; none passes them on as they come.",
        helps: "none for fast devices, where ordering only costs CPU; mq-deadline or bfq for spinning disks, where \
                writes starve reads.",
        costs: "Another distribution of latencies. The queue is emptied first, and disk.nr_requests falls back to what \
                the new scheduler starts with.",
        undone: "The former scheduler is chosen again, with what it starts with: set disk.nr_requests again if it was \
                 not that; the plan names it.",
        sources: "Documentation/block/switching-sched.rst (Linux); no clear gain in the reference case of the bank.",
    },
    by_hand: &[],
    writes: &[Target::File("/sys/block/*/queue/scheduler", Form::Choice)],
    turn: Turn::Own { read, draft },
};

fn read(context: &Context<'_>) -> Result<Current> {
    turn::file(&KNOB, context)
}

fn draft(context: &Context<'_>, wish: &str) -> Result<Draft> {
    let draft = turn::draft_file(&KNOB, context, wish)?;
    let mut requests = Vec::new();
    for path in context.files(&KNOB, "/sys/block/*/queue/nr_requests")? {
        requests.push(context.read_machine(&KNOB, &path)?.value);
    }
    Ok(draft.note(format!(
        "nr_requests is {} now and becomes what the new scheduler starts with",
        requests.join(", ")
    )))
}
