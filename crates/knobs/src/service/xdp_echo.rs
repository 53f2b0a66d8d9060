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
    summary: "answers in the device's receive path; the upper limit, not a service",
    values: "off, generic or native",
    doc: Doc {
        does: "A program at the device swaps addresses and ports of each datagram to the service's port and \
               sends the frame back. No socket, no handler, no thread takes part.",
        helps: "It shows the share of the network stack in a transaction. No real handler can run there.",
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
        _ => Err(KNOB.bad_wish(wish, "it is no mode of XDP")),
    }
}
