//! Whether packets with one of the host's own addresses as their source are accepted.

use crate::Result;
use crate::knob::{Context, Current, Doc, Draft, Knob, Risk, Scope, Settable};
use crate::target::{Form, Target};
use crate::turn::Turn;

const ALL: &str = "/proc/sys/net/ipv4/conf/all/accept_local";

/// `net.accept_local`
pub(crate) static KNOB: Knob = Knob {
    id: "net.accept_local",
    scope: Scope::Netns,
    risk: Risk::Disruptive,
    settable: Settable::Yes,
    summary: "accepts packets whose source is one of the host's own addresses",
    values: "on or off",
    doc: Doc {
        does: "With it off, the kernel looks up each source address to check that it is not one of the host's own, \
               even when the reverse path filter is off. On saves that look-up. It is on for a device if conf/all or \
               conf/DEVICE is.",
        helps: "Together with net.rp_filter at 0: only both together end the second route look-up per packet.",
        costs: "A neighbour can spoof the host's own addresses.",
        undone: "The previous value is written back.",
        sources: "Documentation/networking/ip-sysctl.rst; fib_validate_source in net/ipv4/fib_frontend.c (Linux \
                  6.18); the reference case sets both.",
    },
    by_hand: &[],
    writes: &[
        Target::File(ALL, Form::Words),
        Target::File("/proc/sys/net/ipv4/conf/*/accept_local", Form::Words),
    ],
    turn: Turn::Own { read, draft },
};

fn read(context: &Context<'_>) -> Result<Current> {
    let all = context.read(&KNOB, ALL)?;
    let own = context.read(&KNOB, &path(context)?)?;
    let on = all.value != "0" || own.value != "0";
    Ok(Current::known(
        if on { "on" } else { "off" },
        vec![all, own],
    ))
}

fn draft(context: &Context<'_>, wish: &str) -> Result<Draft> {
    let on = KNOB.on_off(wish)?;
    let mut draft = Draft::default();
    if !on && context.read(&KNOB, ALL)?.value != "0" {
        draft = draft
            .file(context.place, ALL, &0)
            .note("conf/all is switched off with it, for all devices of the namespace");
    }
    Ok(draft.file(context.place, path(context)?, &u8::from(on)))
}

fn path(context: &Context<'_>) -> Result<String> {
    Ok(format!(
        "/proc/sys/net/ipv4/conf/{}/accept_local",
        context.interface(&KNOB)?
    ))
}
