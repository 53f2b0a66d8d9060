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
    summary: "I/O scheduler of a disk",
    values: "one that the disk offers: none, mq-deadline, kyber or bfq",
    doc: Doc {
        does: "Requests wait in the scheduler, which merges and orders them; none passes them on in order of arrival.",
        helps: "none for fast devices, where ordering only costs CPU; mq-deadline or bfq for spinning disks, where \
                writes starve reads.",
        costs: "Latencies are distributed differently. The queue is drained first, and disk.nr_requests is reset to \
                the new scheduler's default.",
        undone: "The previous scheduler is selected again, and then disk.nr_requests is restored. A number that \
                 someone else has set for the new scheduler is lost.",
        sources: "Documentation/block/switching-sched.rst, block/elevator.c (Linux 6.18); no clear gain in the reference case of the bank.",
    },
    by_hand: &[],
    // The file lists what the disk offers; the pair is written.
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
            && let Some(elevator) = Elevator::from_path(path)
        {
            *edit = Edit::Scheduler {
                elevator,
                value: std::mem::take(value),
            };
        }
    }
    Ok(draft.note(
        "nr_requests is reset to the new scheduler's default; the undo restores the current number",
    ))
}
