//! The echo inside the kernel, before any socket: an upper limit.

use crate::Result;
use crate::knob::{Context, Doc, Draft, Knob, Risk, Scope, Settable};
use crate::service;
use crate::target::Target;
use crate::turn::Turn;

/// `net.xdp_echo`
pub(crate) static KNOB: Knob = Knob {
    id: "net.xdp_echo",
    scope: Scope::Service,
    risk: Risk::Restart,
    settable: Settable::Yes,
    summary: "answers in the device's receive path; an upper limit, not a service",
    values: "off, generic or native",
    doc: Doc {
        does: "A program on the device swaps addresses and ports of each datagram for the service's port and sends the \
               frame back. No socket, handler or thread is involved.",
        helps: "It shows the network stack's share of a transaction. No real handler can run there.",
        costs: "Payloads are returned as they came. On veth the native mode is slower than the generic one, \
               because a socket buffer has to be turned into a frame.",
        undone: service::RESTARTED,
        sources: "Documentation/networking/af_xdp.rst; 1,212 k transactions/s generic and 883 k native on a \
               veth pair, Linux 6.18.",
    },
    by_hand: &[],
    writes: &[Target::Switch("xdp_echo")],
    turn: Turn::Own {
        read: service::read,
        draft,
    },
};

fn draft(context: &Context<'_>, wish: &str) -> Result<Draft> {
    match wish {
        "off" | "generic" | "native" => Ok(service::switch(context, "xdp_echo", &wish)),
        _ => Err(KNOB.bad_wish(wish, "it is not an XDP mode")),
    }
}
