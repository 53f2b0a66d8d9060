//! Simultaneous multithreading: two logical CPUs per core.

use crate::Result;
use crate::by_hand::{Manual, Way};
use crate::knob::{Context, Current, Doc, Knob, Risk, Scope, Settable};
use crate::turn::Turn;

const CONTROL: &str = "/sys/devices/system/cpu/smt/control";

/// `bios.smt`
pub(crate) static KNOB: Knob = Knob {
    id: "bios.smt",
    scope: Scope::Host,
    risk: Risk::Disruptive,
    settable: Settable::No(
        "it changes which CPUs exist, for every mask and every pinned thread on the machine; \
         switch it in the firmware or in /sys/devices/system/cpu/smt/control, then measure anew",
    ),
    summary: "two logical CPUs per core (Hyper-Threading)",
    values: "on, off, forceoff, notsupported or notimplemented; shown only",
    doc: Doc {
        does: "Each core runs two threads that share its execution units and caches.",
        helps: "Throughput, when all cores are busy and threads wait for memory or locks.",
        costs: "Each thread alone is slower. Security policy (L1TF, MDS) may forbid it. Every CPU mask that was \
                computed before is wrong after.",
        undone: "rungwise does not turn it; a person turns it back where it was turned.",
        sources: "Documentation/ABI/testing/sysfs-devices-system-cpu (smt/control); the reference case: 6,010 k to 7,010 k transactions/s.",
    },
    by_hand: &[
        Manual {
            wish: "on",
            way: Way::Command,
            text: "echo on > /sys/devices/system/cpu/smt/control   # then set every CPU mask and pin anew",
        },
        Manual {
            wish: "on",
            way: Way::Firmware,
            text: "Hyper-Threading (SMT): Enabled",
        },
        Manual {
            wish: "off",
            way: Way::Command,
            text: "echo off > /sys/devices/system/cpu/smt/control   # then set every CPU mask and pin anew",
        },
    ],
    writes: &[],
    turn: Turn::Shown(read),
};

fn read(context: &Context<'_>) -> Result<Current> {
    let reading = context.read_machine(&KNOB, CONTROL)?;
    Ok(Current::known(reading.value.clone(), vec![reading]))
}
