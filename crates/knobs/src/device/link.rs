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
    summary: "filters in the card, by which it can do receive flow steering itself",
    values: "on or off",
    doc: Doc {
        does: "With n-tuple filters on and receive flow steering set up (net.rfs), the driver tells the card to which \
               queue each flow's reader belongs.",
        helps: "When net.rfs helps and the card supports it (CONFIG_RFS_ACCEL, ntuple in ethtool -k not fixed).",
        costs: "Many short flows keep rewriting the card's filter table. Off deletes all filters of the device, those \
                that somebody set with ethtool -N as well.",
        undone: "The feature is switched back; filters that were lost are not made again.",
        sources: "Documentation/networking/scaling.rst (Linux), section on accelerated RFS.",
    },
    writes: &[Target::Feature("rx-ntuple-filter")],
    turn: Turn::Feature,
    ..LINK
};

/// `net.bql`
pub(crate) static BQL: Knob = Knob {
    id: "net.bql",
    summary: "most bytes that may wait in each transmit ring of a device",
    values: "a size, such as 128KiB",
    doc: Doc {
        does: "Byte queue limits follow by themselves what the device needs to stay busy; limit_max is their upper limit.",
        helps: "When packets wait in the ring, behind large ones of others, although the qdisc could order them.",
        costs: "Throughput, if the roof is below what the device needs between two interrupts.",
        undone: "The former roof of every queue is written back.",
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
    summary: "the device joins received packets, without keeping what it takes to part them again",
    values: "on or off",
    doc: Doc {
        does: "The card or its driver joins packets of a flow; unlike net.gro it forgets where they were joined.",
        helps: "Off on hosts that route or bridge, where it corrupts what is forwarded. On spares a little CPU for \
                bulk TCP that ends here.",
        costs: "On is wrong on a router, a bridge and a host of virtual machines.",
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
    summary: "largest packet of a device",
    values: "a number of bytes without unit, such as 9000",
    doc: Doc {
        does: "Larger packets mean fewer of them for the same bytes.",
        helps: "On a closed network where packets are nearly full: 9000 at both ends and in every switch between.",
        costs: "If one hop has less, packets are cut or vanish without a word. Many drivers take the link down for \
                a moment. Below 1280 the device loses IPv6, and its addresses do not come back.",
        undone: "The former size is written back.",
        sources: "Documentation/networking/ip-sysctl.rst (Linux); net/ipv6/addrconf.c for the loss of IPv6.",
    },
    writes: &[Target::File(
        "/sys/class/net/*/mtu",
        // Lower ends IPv6 on the device, and undo would not bring its addresses back.
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
    summary: "packets that the default queue of a device holds",
    values: "a number of packets, such as 1000",
    doc: Doc {
        does: "pfifo_fast drops what comes when so many packets wait; other qdiscs take it as their limit when they \
               are made.",
        helps: "Rarely: when that qdisc drops although the link has room, in bursts.",
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
