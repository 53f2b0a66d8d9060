//! Knobs of a device that are one file, one file per queue, or one feature.

use crate::knob::{COMMON, Doc, Knob, PUT_BACK, Risk, Scope};
use crate::target::{Form, Target};
use crate::turn::Turn;

const LINK: Knob = Knob {
    scope: Scope::Device,
    ..COMMON
};

/// `net.arfs`
pub(crate) static ARFS: Knob = Knob {
    id: "net.arfs",
    risk: Risk::Disruptive,
    summary: "receive flow steering in the card, by its n-tuple filters",
    values: "on or off",
    doc: Doc {
        does: "With n-tuple filters on and receive flow steering set up (net.rfs), the driver programs the card to \
               deliver each flow to the queue of its reader.",
        helps: "When net.rfs helps and the card supports it (CONFIG_RFS_ACCEL, ntuple in ethtool -k not fixed).",
        costs: "Many short flows keep rewriting the card's filter table. Off deletes all filters of the device, \
                including those set with ethtool -N.",
        undone: "The feature is switched back; deleted filters are not recreated.",
        sources: "Documentation/networking/scaling.rst (Linux), section on accelerated RFS.",
    },
    writes: &[Target::Feature("rx-ntuple-filter")],
    turn: Turn::Feature,
    ..LINK
};

/// `net.bql`
pub(crate) static BQL: Knob = Knob {
    id: "net.bql",
    summary: "upper limit of bytes queued in each transmit ring of a device",
    values: "a size, such as 128KiB",
    doc: Doc {
        does: "Byte queue limits adapt to what the device needs to stay busy; limit_max is their upper limit.",
        helps: "When packets wait in the ring behind large packets of other flows, although the qdisc could reorder \
                them.",
        costs: "Throughput, if the limit is below what the device needs between two interrupts.",
        undone: "The previous limit of every queue is written back.",
        sources: "Documentation/ABI/testing/sysfs-class-net-queues; lib/dynamic_queue_limits.c (Linux 6.18).",
    },
    writes: &[Target::File(
        "/sys/class/net/*/queues/tx-*/byte_queue_limits/limit_max",
        Form::Bytes {
            least: 1514,
            most: u32::MAX as u64,
        },
    )],
    ..LINK
};

/// `net.lro`
pub(crate) static LRO: Knob = Knob {
    id: "net.lro",
    risk: Risk::Disruptive,
    summary: "the device merges received packets without keeping their boundaries",
    values: "on or off",
    doc: Doc {
        does: "The card or its driver merges packets of a flow; unlike net.gro it does not record where they were \
               merged.",
        helps: "Off: hosts that route or bridge, where it corrupts forwarded packets. On: saves a little CPU for bulk \
                TCP that this host receives.",
        costs: "On breaks a router, a bridge and a host of virtual machines.",
        undone: "The feature is switched back.",
        sources: "Documentation/networking/netdev-features.rst and ip-sysctl.rst, ip_forward (Linux).",
    },
    writes: &[Target::Feature("rx-lro")],
    turn: Turn::Feature,
    ..LINK
};

/// `net.mtu`
pub(crate) static MTU: Knob = Knob {
    id: "net.mtu",
    risk: Risk::Disruptive,
    summary: "largest packet size of a device",
    values: "a number of bytes without unit, such as 9000",
    doc: Doc {
        does: "Larger packets carry the same bytes in fewer packets.",
        helps: "On a closed network where most packets are nearly full: 9000 at both ends and on every switch between.",
        costs: "If one hop has a smaller MTU, packets are fragmented or dropped silently. Many drivers take the link \
                down for a moment. Below 1280 the device loses IPv6, and its addresses do not come back.",
        undone: "The previous size is written back.",
        sources: "Documentation/networking/ip-sysctl.rst (Linux); net/ipv6/addrconf.c for the loss of IPv6.",
    },
    writes: &[Target::File(
        "/sys/class/net/*/mtu",
        // A lower MTU ends IPv6 on the device, and undo would not restore its addresses.
        Form::Number {
            least: 1280,
            most: 65_535,
        },
    )],
    ..LINK
};

/// `net.txqueuelen`
pub(crate) static TXQUEUELEN: Knob = Knob {
    id: "net.txqueuelen",
    summary: "length of a device's default transmit queue, in packets",
    values: "a number of packets, such as 1000",
    doc: Doc {
        does: "pfifo_fast drops new packets once this many wait; other qdiscs take it as their limit when they are \
               created.",
        helps: "Rarely: when that qdisc drops bursts although the link has capacity.",
        costs: "Delay for everything behind a long queue.",
        undone: PUT_BACK,
        sources: "net/sched/sch_generic.c (Linux 6.18); RHEL 7 network guide.",
    },
    writes: &[Target::File(
        "/sys/class/net/*/tx_queue_len",
        Form::Number {
            least: 1,
            most: 1_000_000,
        },
    )],
    ..LINK
};
