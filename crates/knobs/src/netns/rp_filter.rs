//! Reverse path filter: whether the source address of a packet is looked up as well.

use crate::Result;
use crate::knob::{Context, Current, Doc, Draft, Knob, Risk, Scope, Settable};
use crate::target::{Form, Target};
use crate::turn::Turn;

const ALL: &str = "/proc/sys/net/ipv4/conf/all/rp_filter";

/// `net.rp_filter`
pub(crate) static KNOB: Knob = Knob {
    id: "net.rp_filter",
    scope: Scope::Netns,
    risk: Risk::Disruptive,
    settable: Settable::Yes,
    summary: "source validation by reverse path, as it acts on one device",
    values: "0 (off), 1 (strict) or 2 (loose)",
    doc: Doc {
        does: "For each received IPv4 packet the kernel also looks up the route back to its source and drops the \
               packet if there is none (2) or it leads elsewhere (1). On a device the larger of conf/all and \
               conf/DEVICE applies.",
        helps: "0 saves a route look-up per packet, where the host has one link or spoofed sources are filtered \
                upstream. The last part of the check ends only with net.accept_local on as well.",
        costs: "0 removes protection against spoofed sources; do not use it on a router or a host with several links. \
                Lowering conf/all may lower other devices too.",
        undone: "Both previous values are written back.",
        sources: "Documentation/networking/ip-sysctl.rst; fib_validate_source in net/ipv4/fib_frontend.c (Linux \
                  6.18); the reference case: 5,380 k to 5,490 k transactions/s.",
    },
    by_hand: &[],
    writes: &[
        Target::File(ALL, Form::Words),
        Target::File("/proc/sys/net/ipv4/conf/*/rp_filter", Form::Words),
    ],
    turn: Turn::Own { read, draft },
};

fn read(context: &Context<'_>) -> Result<Current> {
    let all = context.read(&KNOB, ALL)?;
    let own = context.read(&KNOB, &path(context)?)?;
    let acting = number(&all.value).max(number(&own.value));
    Ok(Current::known(acting.to_string(), vec![all, own]))
}

fn draft(context: &Context<'_>, wish: &str) -> Result<Draft> {
    let wanted = KNOB.number(wish, 0..=2)?;
    let all = number(&context.read(&KNOB, ALL)?.value);
    let mut draft = Draft::default();
    // The larger applies, so `all` is only ever lowered, never raised.
    if all > wanted {
        draft = draft
            .file(context.place, ALL, &wanted)
            .note("conf/all is lowered: devices whose own value is lower lose protection too");
    }
    Ok(draft.file(context.place, path(context)?, &wanted))
}

fn path(context: &Context<'_>) -> Result<String> {
    Ok(format!(
        "/proc/sys/net/ipv4/conf/{}/rp_filter",
        context.interface(&KNOB)?
    ))
}

fn number(text: &str) -> u64 {
    text.trim().parse().unwrap_or(0)
}
