//! GRO for UDP that is forwarded: as a list of packets, or joined like TCP.

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
    summary: "joins UDP packets that are forwarded or read without UDP_GRO",
    values: "off, list or forwarding",
    doc: Doc {
        does: "Without it, GRO joins UDP only for sockets that ask (UDP_GRO). `list` chains packets of a flow and \
               takes them apart again unchanged; `forwarding` joins them as segments of one large datagram.",
        helps: "On gateways that forward UDP of few flows: QUIC, WireGuard, VXLAN.",
        costs: "A comparison per packet, and wrong packets where a driver on the path cannot split them again.",
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
        _ => return Err(KNOB.bad_wish(wish, "it is no mode of GRO for UDP")),
    };
    let device = context.device(&KNOB)?;
    Ok(Draft::default()
        .feature(context.place, device, LIST, list)
        .feature(context.place, device, FORWARDING, forwarding))
}
