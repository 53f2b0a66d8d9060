//! A socket of a group prefers the packets of one CPU.

use crate::Result;
use crate::knob::{Context, Doc, Draft, Knob, Risk, Scope, Settable};
use crate::service;
use crate::target::Target;
use crate::turn::Turn;

/// `sock.incoming_cpu`
pub(crate) static KNOB: Knob = Knob {
    id: "sock.incoming_cpu",
    scope: Scope::Service,
    risk: Risk::Restart,
    settable: Settable::Yes,
    summary: "each socket of a group prefers packets of its worker's CPU",
    values: "on or off",
    doc: Doc {
        does: "SO_INCOMING_CPU on a socket of a reuseport group scores it higher for packets that arrive on \
               that CPU.",
        helps: "Where attaching a program is not allowed; otherwise sock.reuseport_bpf does the same without \
               a search.",
        costs: "The kernel compares all sockets of the group per packet. Older kernels ignore it within a \
               group.",
        undone: service::RESTARTED,
        sources: "socket(7); compute_score in net/ipv4/udp.c (Linux 6.18).",
    },
    by_hand: &[],
    writes: &[Target::Switch("incoming_cpu")],
    turn: Turn::Own {
        read: service::read,
        draft,
    },
};

fn draft(context: &Context<'_>, wish: &str) -> Result<Draft> {
    KNOB.on_off(wish)?;
    Ok(service::switch(context, "incoming_cpu", &wish))
}
