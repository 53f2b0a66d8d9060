//! Receive packet steering: which CPUs process the packets of a receive queue.

use crate::knob::{Doc, Knob, Risk, Scope, Settable};
use crate::target::{Form, Target};
use crate::turn::Turn;

/// `net.rps_cpus`
pub(crate) static KNOB: Knob = Knob {
    id: "net.rps_cpus",
    scope: Scope::Device,
    risk: Risk::Live,
    settable: Settable::Yes,
    summary: "CPUs that take over protocol work from a device's receive queues",
    values: "off, all, or a CPU list such as 0-3,8",
    doc: Doc {
        does: "The CPU that polls a receive queue hashes each packet's addresses and ports and hands the packet \
               to one CPU of the queue's mask, by an inter-processor interrupt. One flow stays on one CPU.",
        helps: "When a device has fewer receive queues than the machine has CPUs, a few CPUs run all softirqs, and the \
                packets go to different sockets.",
        costs: "Interrupts between CPUs and a second queue per packet. With a single socket, throughput collapses: the \
                CPUs contend for the socket's lock (270 k to 17 k transactions/s in the reference case), so it is \
                judged together with SO_REUSEPORT. Where each CPU has its own queue, it only adds cost.",
        undone: "The previous mask of every queue is written back.",
        sources: "Documentation/networking/scaling.rst (Linux); the UDP ladder of the reference case (20 cores, \
                  82599ES, Linux 4.6.3); redpanda pull request 27680, where removing it halved softirq time.",
    },
    by_hand: &[],
    writes: &[Target::File(
        "/sys/class/net/*/queues/rx-*/rps_cpus",
        Form::Mask,
    )],
    turn: Turn::File,
};
