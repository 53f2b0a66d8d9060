//! A program picks the socket of a group by the receiving CPU.

use crate::Result;
use crate::knob::{Context, Doc, Draft, Knob, Risk, Scope, Settable};
use crate::service;
use crate::target::Target;
use crate::turn::Turn;

/// `sock.reuseport_bpf`
pub(crate) static KNOB: Knob = Knob {
    id: "sock.reuseport_bpf",
    scope: Scope::Service,
    risk: Risk::Restart,
    settable: Settable::Yes,
    summary: "picks the socket of a reuseport group by CPU instead of by hash",
    values: "off, cbpf (CPU modulo workers) or ebpf (any map)",
    doc: Doc {
        does: "A program attached to the group returns the index of the socket: the CPU that runs the softirq. With \
               worker i on CPU i a datagram never changes CPUs.",
        helps: "With sock.reuseport on, at least as many sockets as softirq CPUs, and workers pinned.",
        costs: "Sockets must be bound in the order of the CPUs; a CPU without a worker falls back to the hash or the \
                modulo.",
        undone: service::RESTARTED,
        sources: "socket(7), SO_ATTACH_REUSEPORT_CBPF (Linux 4.5) and _EBPF (4.19); the reference case: 2,540 \
               k to 4,250 k transactions/s.",
    },
    by_hand: &[],
    writes: &[Target::Switch("reuseport_bpf")],
    turn: Turn::Own {
        read: service::read,
        draft,
    },
};

fn draft(context: &Context<'_>, wish: &str) -> Result<Draft> {
    match wish {
        "off" | "cbpf" | "ebpf" => Ok(service::switch(context, "reuseport_bpf", &wish)),
        _ => Err(KNOB.bad_wish(wish, "it is not a steering method")),
    }
}
