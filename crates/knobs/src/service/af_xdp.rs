//! Datagrams from the device's queues by `AF_XDP`, bypassing the network stack.

use crate::Result;
use crate::knob::{Context, Doc, Draft, Knob, Risk, Scope, Settable};
use crate::service;
use crate::target::Target;
use crate::turn::Turn;

/// `sock.af_xdp`
pub(crate) static KNOB: Knob = Knob {
    id: "sock.af_xdp",
    scope: Scope::Service,
    risk: Risk::Restart,
    settable: Settable::Yes,
    summary: "receives datagrams from the device's queues, bypassing the network stack",
    values: "off, generic or native",
    doc: Doc {
        does: "A program on the device redirects the datagrams for the service's address and port to AF_XDP sockets, \
               one per receive queue, and worker i answers those of queue i in the frames they came in. Routing, \
               firewall and UDP sockets are bypassed, and one poll(2) sends a round and waits for the next. Packets \
               that the program passes on (fragments, IP options, loopback) are served from the sockets.",
        helps: "A service of many small datagrams whose cost is the network stack's. Traffic must be spread over the \
                queues, with worker i on the CPU that receives queue i; XPS at the sender does that over a veth pair. \
                Use the native mode there: in the generic one most frames lose their queue.",
        costs: "CAP_BPF, CAP_NET_ADMIN and CAP_NET_RAW, Linux 5.9, one fixed address, 4 MiB of pinned memory for each \
                worker. Firewall, source validation, packet captures and UDP counters do not see these packets. A \
                reply goes to the MAC address that its request came from, whatever the routes are.",
        undone: service::RESTARTED,
        sources: "Documentation/networking/af_xdp.rst; net/xdp/xsk.c, drivers/net/veth.c of Linux 6.18.",
    },
    by_hand: &[],
    writes: &[Target::Switch("af_xdp")],
    turn: Turn::Own {
        read: service::read,
        draft,
    },
};

fn draft(context: &Context<'_>, wish: &str) -> Result<Draft> {
    match wish {
        "off" | "generic" | "native" => Ok(service::switch(context, "af_xdp", &wish)),
        _ => Err(KNOB.bad_wish(wish, "it is not an XDP mode")),
    }
}
