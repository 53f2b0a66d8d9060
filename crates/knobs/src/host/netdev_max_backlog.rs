//! Length of each CPU's queue of packets that another CPU or a virtual device handed over.

use crate::knob::{Doc, Knob, Risk, Scope, Settable};
use crate::target::{Form, Target};
use crate::turn::Turn;

/// `net.netdev_max_backlog`
pub(crate) static KNOB: Knob = Knob {
    id: "net.netdev_max_backlog",
    scope: Scope::Host,
    risk: Risk::Live,
    settable: Settable::Yes,
    summary: "packets that may wait for a CPU after receive steering or on veth and loopback",
    values: "a number of packets, such as 5000",
    doc: Doc {
        does: "Packets that receive steering, loopback or a veth without NAPI hand to a CPU wait in its backlog; \
               beyond this number they are dropped and counted in column 2 of /proc/net/softnet_stat.",
        helps: "When that column grows. Hardware queues without receive steering never pass through the backlog.",
        costs: "Latency: packets wait longer in a long queue.",
        undone: "The previous number is written back.",
        sources: "Documentation/admin-guide/sysctl/net.rst; enqueue_to_backlog in net/core/dev.c (Linux 6.18).",
    },
    by_hand: &[],
    writes: &[Target::File(
        "/proc/sys/net/core/netdev_max_backlog",
        // The kernel's type is an int.
        Form::Number {
            least: 1,
            most: i32::MAX as u64,
        },
    )],
    turn: Turn::File,
};
