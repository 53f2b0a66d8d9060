//! Segmentation offload: the stack builds one large packet, the device or its driver splits it.

use crate::Result;
use crate::knob::{Context, Current, Doc, Draft, Knob, Risk, Scope, Settable};
use crate::target::Target;
use crate::turn::Turn;

const GENERIC: &str = "tx-generic-segmentation";
const TCP: &str = "tx-tcp-segmentation";

/// `net.tso_gso`
pub(crate) static KNOB: Knob = Knob {
    id: "net.tso_gso",
    scope: Scope::Device,
    risk: Risk::Disruptive,
    settable: Settable::Yes,
    summary: "splits large packets late: in the device (TSO) or in its driver (GSO)",
    values: "on or off",
    doc: Doc {
        does: "TCP passes down packets of up to 64 KiB; the device (tx-tcp-segmentation) or the last step before it \
               (tx-generic-segmentation) splits them to the link's MTU.",
        helps: "Bulk TCP senders. No effect on single small datagrams.",
        costs: "Bursts on the wire. Off: bulk TCP needs much more CPU. In the device, only TCP over IPv4 is switched; \
                tx-tcp6-segmentation is unchanged.",
        undone: "Both features are switched back, in reverse order.",
        sources: "Documentation/networking/segmentation-offloads.rst (Linux).",
    },
    by_hand: &[],
    writes: &[Target::Feature(GENERIC), Target::Feature(TCP)],
    turn: Turn::Own { read, draft },
};

fn read(context: &Context<'_>) -> Result<Current> {
    let device = context.device(&KNOB)?;
    let generic = context.read_feature(&KNOB, device, GENERIC)?;
    let tcp = context.read_feature(&KNOB, device, TCP)?;
    let value = if generic.value == tcp.value {
        generic.value.clone()
    } else {
        "mixed".to_owned()
    };
    Ok(Current::known(value, vec![generic, tcp]))
}

fn draft(context: &Context<'_>, wish: &str) -> Result<Draft> {
    let on = KNOB.on_off(wish)?;
    let device = context.device(&KNOB)?;
    Ok(Draft::default()
        .feature(context.place, device, GENERIC, on)
        .feature(context.place, device, TCP, on))
}
