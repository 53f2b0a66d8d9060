//! The scheduler of a block device, and what it does to the number of requests.

use crate::Result;
use crate::edit::{Edit, Elevator};
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
        undone: "The former scheduler is chosen again, and then disk.nr_requests is set to what it was. A number that \
                 somebody has set for the new scheduler goes with it.",
        sources: "Documentation/block/switching-sched.rst, block/elevator.c (Linux 6.18); no clear gain in the reference case of the bank.",
    },
    by_hand: &[],
    // The file tells what the disk offers; written is the pair.
    writes: &[
        Target::File("/sys/block/*/queue/scheduler", Form::Choice),
        Target::Scheduler,
    ],
    turn: Turn::Own { read, draft },
};

fn read(context: &Context<'_>) -> Result<Current> {
    turn::file(&KNOB, context)
}

fn draft(context: &Context<'_>, wish: &str) -> Result<Draft> {
    let mut draft = turn::draft_file(&KNOB, context, wish)?;
    for (_, edit) in &mut draft.edits {
        if let Edit::WriteFile { path, value } = edit
            && let Some(elevator) = Elevator::of(path)
        {
            *edit = Edit::Scheduler {
                elevator,
                value: std::mem::take(value),
            };
        }
    }
    Ok(draft.note(
        "nr_requests becomes what the new scheduler starts with; the undo puts back what it is now",
    ))
}
