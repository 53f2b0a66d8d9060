//! Many datagrams per system call.

use crate::Result;
use crate::knob::{Context, Doc, Draft, Knob, Risk, Scope, Settable};
use crate::service;
use crate::target::Target;
use crate::turn::Turn;

/// `sock.recvmmsg`
pub(crate) static KNOB: Knob = Knob {
    id: "sock.recvmmsg",
    scope: Scope::Service,
    risk: Risk::Restart,
    settable: Settable::Yes,
    summary: "receives and sends several datagrams per system call",
    values: "off, or datagrams per call from 2 to 1024",
    doc: Doc {
        does: "recvmmsg and sendmmsg move the datagrams that are waiting, up to this many, and wait only for the \
               first.",
        helps: "Above some 100 k datagrams/s, when system calls take more than 20 % of busy samples.",
        costs: "A datagram may wait for those before it in the batch. Beyond 32 there was no further gain here.",
        undone: service::RESTARTED,
        sources: "recvmmsg(2), sendmmsg(2); 1.68 to 1.45 us of server CPU per transaction on a veth pair, \
               Linux 6.18.",
    },
    by_hand: &[],
    writes: &[Target::Switch("recvmmsg")],
    turn: Turn::Own {
        read: service::read,
        draft,
    },
};

fn draft(context: &Context<'_>, wish: &str) -> Result<Draft> {
    match wish {
        "off" => Ok(service::switch(context, "recvmmsg", &wish)),
        _ => Ok(service::switch(
            context,
            "recvmmsg",
            &KNOB.number(wish, 2..=1024)?,
        )),
    }
}
