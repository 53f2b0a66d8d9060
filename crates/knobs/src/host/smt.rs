//! Simultaneous multithreading: two logical CPUs per core.

use crate::Result;
use crate::by_hand::{Manual, Way};
use crate::error::Error;
use crate::knob::{COMMON, Context, Current, Doc, Draft, Knob, Risk};
use crate::target::{Form, Target};
use crate::turn::{self, Turn};

const CONTROL: &str = "/sys/devices/system/cpu/smt/control";

/// `bios.smt`
pub(crate) static KNOB: Knob = Knob {
    id: "bios.smt",
    risk: Risk::Disruptive,
    summary: "two logical CPUs per core (Hyper-Threading)",
    values: "on or off",
    doc: Doc {
        does: "Each core runs two threads that share its execution units and caches. off takes the second one of every \
               core out of service until the next boot, on brings it back.",
        helps: "Throughput, when all cores are busy and threads wait for memory or locks.",
        costs: "on: each thread alone is slower, and security policy (L1TF, MDS) may forbid it. off: CPUs go away under \
                what runs on them; threads pinned to one lose their pin, interrupts move, groups of CPUs shrink. Either \
                way every CPU mask that was computed before is wrong after (RPS, XPS, interrupts, pins).",
        undone: "The CPUs come back or go as they came. Pins, interrupts and groups of CPUs that the kernel changed when \
                 CPUs went are not put back by it.",
        sources: "Documentation/ABI/testing/sysfs-devices-system-cpu (smt/control); the reference case: 6,010 k to 7,010 k transactions/s.",
    },
    by_hand: &[Manual {
        wish: "on",
        way: Way::Firmware,
        text: "Hyper-Threading (SMT): Enabled",
    }],
    // Not forceoff, which nothing takes back before the next boot.
    writes: &[Target::File(CONTROL, Form::OneOf(&["on", "off"]))],
    turn: Turn::Own { read, draft },
    ..COMMON
};

fn read(context: &Context<'_>) -> Result<Current> {
    turn::file(&KNOB, context)
}

fn draft(context: &Context<'_>, wish: &str) -> Result<Draft> {
    let draft = turn::draft_file(&KNOB, context, wish)?;
    let why = match context.read_machine(&KNOB, CONTROL)?.value.as_str() {
        "forceoff" => "it was forced off, which only a boot without nosmt=force takes back",
        "notsupported" => {
            "the processor has one thread per core, or its firmware shows only one; enable it there (Hyper-Threading, SMT)"
        }
        "notimplemented" => "this kernel cannot switch it; use the setup of the firmware",
        _ => {
            return Ok(draft.note(
                "which CPUs exist changes: set every CPU mask and pin anew (RPS, XPS, interrupts, threads), also after the undo",
            ));
        }
    };
    Err(Error::NotSettable {
        knob: KNOB.id,
        why: why.to_owned(),
    })
}
