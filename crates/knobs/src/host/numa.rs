//! NUMA: where memory and threads lie. Sysctls of the whole machine, and commands that start a service.

use crate::by_hand::{Manual, Way};
use crate::knob::{COMMON, Doc, Knob, PUT_BACK, Risk, Settable};
use crate::target::{Form, Target};
use crate::turn::Turn;

const STARTED: &str = "a service inherits its memory policy from the process that starts it; start it with this command";

/// `numa.balancing`
pub(crate) static BALANCING: Knob = Knob {
    id: "numa.balancing",
    risk: Risk::Disruptive,
    summary: "whether the kernel moves pages and threads towards each other",
    values: "0 (off), 1 (on), 2 (memory tiers) or 3 (both)",
    doc: Doc {
        does: "The kernel unmaps pages from time to time to see which threads access them (numa_hint_faults), then \
               moves each page to that node, or the thread to the page.",
        helps: "Off for services that are bound to a node and still take hint faults. On for unbound ones on \
                several nodes with much remote memory.",
        costs: "Either setting may be slower, and tools disagree: PerfSpect recommends on, TuneD's network-latency \
                off. Measure.",
        undone: "The previous value is written back. Pages stay where they were moved.",
        sources: "Documentation/admin-guide/sysctl/kernel.rst (Linux); PerfSpect; TuneD; A-Tune.",
    },
    writes: &[Target::File(
        "/proc/sys/kernel/numa_balancing",
        Form::Number { least: 0, most: 3 },
    )],
    ..COMMON
};

/// `numa.bind_node`
pub(crate) static BIND_NODE: Knob = Knob {
    id: "numa.bind_node",
    risk: Risk::Restart,
    settable: Settable::No(STARTED),
    summary: "the service and its memory on one node, that of its network device",
    values: "the number of a node, such as 0",
    doc: Doc {
        does: "Threads run on the CPUs of the node, and memory comes only from it.",
        helps: "When more than 20 % of the service's memory is remote, or its threads run on several nodes, and it \
                fits one node.",
        costs: "When the node is full the service swaps or is killed, even if the other node has free memory; \
                numa.localalloc is the milder option.",
        undone: "The service is restarted without it.",
        sources: "numactl(8), set_mempolicy(2); the reference case of the bank gives the method without a figure.",
    },
    by_hand: &[
        Manual {
            wish: "NUMBER",
            way: Way::Command,
            text: "numactl --cpunodebind=NUMBER --membind=NUMBER COMMAND...",
        },
        Manual {
            wish: "NUMBER",
            way: Way::Command,
            text: "systemctl set-property UNIT AllowedMemoryNodes=NUMBER",
        },
    ],
    turn: Turn::Unseen,
    ..COMMON
};

/// `numa.interleave`
pub(crate) static INTERLEAVE: Knob = Knob {
    id: "numa.interleave",
    risk: Risk::Restart,
    settable: Settable::No(STARTED),
    summary: "the service's memory interleaved over all nodes, page by page",
    values: "all",
    doc: Doc {
        does: "Successive pages come from successive nodes, so that all memory controllers are used.",
        helps: "One process with one huge heap, threads on all nodes, limited by memory bandwidth.",
        costs: "Latency becomes the average of local and remote.",
        undone: "The service is restarted without it.",
        sources: "numactl(8), set_mempolicy(2).",
    },
    by_hand: &[Manual {
        wish: "all",
        way: Way::Command,
        text: "numactl --interleave=all COMMAND...",
    }],
    turn: Turn::Unseen,
    ..COMMON
};

/// `numa.localalloc`
pub(crate) static LOCALALLOC: Knob = Knob {
    id: "numa.localalloc",
    risk: Risk::Restart,
    settable: Settable::No(STARTED),
    summary: "memory from the allocating thread's node, from others only when it is full",
    values: "the number of a node, such as 0",
    doc: Doc {
        does: "Threads run on the CPUs of the node; memory comes from it while it has some free.",
        helps: "Where numa.bind_node is wanted and memory may overflow the node.",
        costs: "Only the loss of the other node's CPUs.",
        undone: "The service is restarted without it.",
        sources: "numactl(8), set_mempolicy(2).",
    },
    by_hand: &[Manual {
        wish: "NUMBER",
        way: Way::Command,
        text: "numactl --cpunodebind=NUMBER --localalloc COMMAND...",
    }],
    turn: Turn::Unseen,
    ..COMMON
};

/// `numa.zone_reclaim`
pub(crate) static ZONE_RECLAIM: Knob = Knob {
    id: "numa.zone_reclaim",
    summary: "whether a full node reclaims its own cache before it uses another's memory",
    values: "a sum of 1 (reclaim), 2 (write dirty pages) and 4 (swap); 0 is off",
    doc: Doc {
        does: "With it, an allocation on a full node drops that node's page cache instead of going to the next.",
        helps: "0, when nodes reclaim (zone_reclaim counters) while others have free memory.",
        costs: "Stalls where it is on. Nothing where it is 0.",
        undone: PUT_BACK,
        sources: "Documentation/admin-guide/sysctl/vm.rst (Linux).",
    },
    writes: &[Target::File(
        "/proc/sys/vm/zone_reclaim_mode",
        Form::Number { least: 0, most: 7 },
    )],
    ..COMMON
};
