//! Several datagrams of one flow in one receive.

use crate::Result;
use crate::knob::{Context, Doc, Draft, Knob, Risk, Scope, Settable};
use crate::service;
use crate::target::Target;
use crate::turn::Turn;

/// `sock.udp_gro`
pub(crate) static KNOB: Knob = Knob {
    id: "sock.udp_gro",
    scope: Scope::Service,
    risk: Risk::Restart,
    settable: Settable::Yes,
    summary: "receives bursts of one flow as one large buffer",
    values: "on or off",
    doc: Doc {
        does: "UDP_GRO hands neighbouring datagrams of one flow to the service as one buffer, with the size \
               of the pieces beside it.",
        helps: "Bursts of one flow only: QUIC, media, bulk. It needs net.gro on at the device, or a sender \
               on the same host that uses UDP_SEGMENT.",
        costs: "The service must split the buffer. For single datagrams of many flows it is a loss.",
        undone: service::RESTARTED,
        sources: "udp(7), Linux 5.0; with UDP_SEGMENT 5,741 k against 617 k transactions/s for bursts of 16 on \
               a veth pair, Linux 6.18; without bursts 560 k.",
    },
    by_hand: &[],
    writes: &[Target::Switch("udp_gro")],
    turn: Turn::Own {
        read: service::read,
        draft,
    },
};

fn draft(context: &Context<'_>, wish: &str) -> Result<Draft> {
    KNOB.on_off(wish)?;
    Ok(service::switch(context, "udp_gro", &wish))
}
