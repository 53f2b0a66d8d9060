//! Generic receive offload: packets of one flow are merged before the stack sees them.

use crate::knob::{Doc, Knob, Risk, Scope, Settable};
use crate::target::Target;
use crate::turn::Turn;

const FEATURE: &str = "rx-gro";

/// `net.gro`
pub(crate) static KNOB: Knob = Knob {
    id: "net.gro",
    scope: Scope::Device,
    risk: Risk::Disruptive,
    settable: Settable::Yes,
    summary: "merges received packets of one flow before the stack sees them",
    values: "on or off",
    doc: Doc {
        does: "The driver's poll loop compares each packet with those of the same poll and merges neighbours of a flow \
               into one large packet, so that the stack runs once for many packets.",
        helps: "On: bulk TCP, forwarding, QUIC receivers with UDP_GRO. Off: a service that receives only small UDP \
                datagrams, where nothing can be merged and the comparison is wasted (4.9 % of CPU in the reference \
                case).",
        costs: "Off: TCP loses much of its receive throughput. On a veth, off also removes NAPI, and net.threaded_napi \
                can then not be set.",
        undone: "The feature is switched back; on a veth, threaded NAPI must be set again if it was on.",
        sources: "Documentation/networking/segmentation-offloads.rst (Linux); the reference case: 5,050 k to \
                  5,180 k transactions/s for off; drivers/net/veth.c.",
    },
    by_hand: &[],
    writes: &[Target::Feature(FEATURE)],
    turn: Turn::Feature,
};
