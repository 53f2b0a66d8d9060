//! Several datagrams to one peer in one send.

use crate::Result;
use crate::knob::{Context, Doc, Draft, Knob, Risk, Scope, Settable};
use crate::service;
use crate::target::Target;
use crate::turn::Turn;

/// `sock.udp_segment`
pub(crate) static KNOB: Knob = Knob {
    id: "sock.udp_segment",
    scope: Scope::Service,
    risk: Risk::Restart,
    settable: Settable::Yes,
    summary: "sends replies to one peer as one large buffer that is split late",
    values: "on or off",
    doc: Doc {
        does: "UDP_SEGMENT hands the stack one buffer that is split into datagrams of equal size just before the \
               device.",
        helps: "Bursts to one peer only: many equal replies that are ready together.",
        costs: "If the buffer is lost, all its datagrams are lost. It does not help where each peer gets one datagram.",
        undone: service::RESTARTED,
        sources: "udp(7), Linux 4.18; see sock.udp_gro for what was measured.",
    },
    by_hand: &[],
    writes: &[Target::Switch("udp_segment")],
    turn: Turn::Own {
        read: service::read,
        draft,
    },
};

fn draft(context: &Context<'_>, wish: &str) -> Result<Draft> {
    KNOB.on_off(wish)?;
    Ok(service::switch(context, "udp_segment", &wish))
}
