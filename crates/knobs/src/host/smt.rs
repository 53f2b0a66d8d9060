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
        does: "Each core runs two threads that share its execution units and caches. off disables the second thread of \
               every core until the next boot, on enables it again.",
        helps: "Throughput, when all cores are busy and threads wait for memory or locks.",
        costs: "on: each thread alone is slower, and security policy (L1TF, MDS) may forbid it. off: CPUs disappear \
                under running threads; threads pinned to one of them lose their pin, interrupts move, cpusets shrink. \
                Either way, CPU masks computed before the change are wrong afterwards (RPS, XPS, interrupts, pins).",
        undone: "The CPUs are switched back. Pins, interrupts and cpusets that the kernel changed when CPUs \
                 disappeared are not restored.",
        sources: "Documentation/ABI/testing/sysfs-devices-system-cpu (smt/control); the reference case: 6,010 k to 7,010 k transactions/s.",
    },
    by_hand: &[Manual {
        wish: "on",
        way: Way::Firmware,
        text: "Hyper-Threading (SMT): Enabled",
    }],
    // Not forceoff, which cannot be undone before the next boot.
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
        "forceoff" => "it was forced off; only a boot without nosmt=force restores it",
        "notsupported" => {
            "the processor has one thread per core, or its firmware shows only one; enable it in the firmware setup \
             (Hyper-Threading, SMT)"
        }
        "notimplemented" => "this kernel cannot switch it; use the firmware setup",
        _ => {
            return Ok(draft.note(
                "the set of CPUs changes: set every CPU mask and pin again (RPS, XPS, interrupts, threads), also after \
                 the undo",
            ));
        }
    };
    Err(Error::NotSettable {
        knob: KNOB.id,
        why: why.to_owned(),
    })
}
