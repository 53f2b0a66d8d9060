//! GRO for forwarded UDP: as a list of packets, or merged like TCP.

use crate::Result;
use crate::knob::{Context, Current, Doc, Draft, Knob, Risk, Scope, Settable};
use crate::target::Target;
use crate::turn::Turn;

const LIST: &str = "rx-gro-list";
const FORWARDING: &str = "rx-udp-gro-forwarding";

/// `net.gro_list_fwd`
pub(crate) static KNOB: Knob = Knob {
    id: "net.gro_list_fwd",
    scope: Scope::Device,
    risk: Risk::Disruptive,
    settable: Settable::Yes,
    summary: "merges UDP packets that are forwarded or read without UDP_GRO",
    values: "off, list or forwarding",
    doc: Doc {
        does: "Without it, GRO merges UDP only for sockets that request it (UDP_GRO). `list` chains packets of a flow \
               and later splits them unchanged; `forwarding` merges them as segments of one large datagram.",
        helps: "On gateways that forward few UDP flows: QUIC, WireGuard, VXLAN.",
        costs: "A comparison per packet, and corrupt packets where a driver on the path cannot split them again.",
        undone: "Both features are switched back, in reverse order.",
        sources: "Documentation/networking/segmentation-offloads.rst; net/ipv4/udp_offload.c (Linux 6.18).",
    },
    by_hand: &[],
    writes: &[Target::Feature(LIST), Target::Feature(FORWARDING)],
    turn: Turn::Own { read, draft },
};

fn read(context: &Context<'_>) -> Result<Current> {
    let device = context.device(&KNOB)?;
    let list = context.read_feature(&KNOB, device, LIST)?;
    let forwarding = context.read_feature(&KNOB, device, FORWARDING)?;
    // The kernel looks at the list first.
    let value = match (list.value.as_str(), forwarding.value.as_str()) {
        ("on", _) => "list",
        (_, "on") => "forwarding",
        _ => "off",
    };
    Ok(Current::known(value, vec![list, forwarding]))
}

fn draft(context: &Context<'_>, wish: &str) -> Result<Draft> {
    let (list, forwarding) = match wish {
        "off" => (false, false),
        "list" => (true, false),
        "forwarding" => (false, true),
        _ => return Err(KNOB.bad_wish(wish, "it is not a UDP GRO mode")),
    };
    let device = context.device(&KNOB)?;
    Ok(Draft::default()
        .feature(context.place, device, LIST, list)
        .feature(context.place, device, FORWARDING, forwarding))
}
