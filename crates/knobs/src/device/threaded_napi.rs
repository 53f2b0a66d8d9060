//! Threaded NAPI: a device is polled by kernel threads instead of softirqs.

use crate::knob::{Doc, Knob, Risk, Scope, Settable};
use crate::target::{Form, Target};
use crate::turn::Turn;

/// `net.threaded_napi`
pub(crate) static KNOB: Knob = Knob {
    id: "net.threaded_napi",
    scope: Scope::Device,
    risk: Risk::Disruptive,
    settable: Settable::Yes,
    summary: "polls a device in kernel threads instead of softirqs",
    values: "on or off",
    doc: Doc {
        does: "Each receive queue gets a kernel thread (napi/DEVICE-N) that polls it. The scheduler balances it \
               against the service's threads, and it can be pinned.",
        helps: "When softirq time starves a service thread on the same CPU.",
        costs: "Adds scheduling latency to the receive path. A veth has NAPI only while GRO is on; otherwise the \
                kernel refuses with 'operation not supported'.",
        undone: "The previous state is written back. On a veth, undo it before GRO; undo does so, because it runs in \
                 reverse order.",
        sources: "Documentation/networking/napi.rst (Linux); the refusal was measured on Linux 6.18.",
    },
    by_hand: &[],
    writes: &[Target::File("/sys/class/net/*/threaded", Form::Switch)],
    turn: Turn::File,
};
