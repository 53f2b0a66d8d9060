//! The audit subsystem: a record per system call that matches a rule, a check per system call otherwise.

use crate::Result;
use crate::by_hand::{Manual, Way};
use crate::knob::{Context, Current, Doc, Knob, Reading, Risk, Scope, Settable};
use crate::turn::Turn;

const COMMAND_LINE: &str = "/proc/cmdline";

/// `sec.auditd`
pub(crate) static KNOB: Knob = Knob {
    id: "sec.auditd",
    scope: Scope::Host,
    risk: Risk::Reboot,
    settable: Settable::No(
        "it is the owner's audit trail, and once audit was on, system calls stay slower until the next boot; decide \
         with the owner, boot with audit=0, and measure before and after",
    ),
    summary: "kernel audit of system calls",
    values: "audit=0, audit=1 or nothing, as in the kernel command line; shown only",
    doc: Doc {
        does: "Once audit was switched on, every task created since runs the audit hooks at each system call, with or \
               without rules, until the next boot.",
        helps: "Off helps services with many small system calls, when audit functions take above 1.5 % of CPU.",
        costs: "Off ends the audit trail; compliance rules may demand it.",
        undone: "rungwise does not set it, because switching audit off again does not restore the previous cost.",
        sources: "kernel/audit.c (audit_ever_enabled), Linux 6.18; the reference case: 5,490 k to 5,860 k \
                  transactions/s without it.",
    },
    by_hand: &[
        Manual {
            wish: "off",
            way: Way::Command,
            text: "systemctl disable auditd",
        },
        Manual {
            wish: "off",
            way: Way::CommandLine,
            text: "audit=0",
        },
    ],
    writes: &[],
    turn: Turn::Shown(read),
};

fn read(context: &Context<'_>) -> Result<Current> {
    let line = context.read_machine(&KNOB, COMMAND_LINE)?.value;
    let word = line
        .split_whitespace()
        .rev()
        .find(|word| word.starts_with("audit="));
    // Only the word itself is kept: a command line may hold secrets.
    Ok(match word {
        Some(word) => Current::known(
            word,
            vec![Reading {
                source: COMMAND_LINE.to_owned(),
                value: word.to_owned(),
            }],
        ),
        None => Current::unknown("the kernel command line lacks audit=; run auditctl -s"),
    })
}
