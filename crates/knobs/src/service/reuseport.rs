//! One socket per worker, all bound to one port.

use crate::Result;
use crate::knob::{Context, Doc, Draft, Knob, Risk, Scope, Settable};
use crate::service;
use crate::target::Target;
use crate::turn::Turn;

/// `sock.reuseport`
pub(crate) static KNOB: Knob = Knob {
    id: "sock.reuseport",
    scope: Scope::Service,
    risk: Risk::Restart,
    settable: Settable::Yes,
    summary: "a socket per worker on one port instead of one shared socket",
    values: "on or off",
    doc: Doc {
        does: "Each worker binds its own socket to the same address (SO_REUSEPORT); the kernel picks one by a hash \
               over addresses and ports. No two workers share a socket's lock or queue.",
        helps: "When several threads read one UDP socket and its lock shows in softirq stacks \
                (queued_spin_lock_slowpath below __udp_enqueue_schedule_skb). Receive steering pays off only with it.",
        costs: "The hash distributes flows, not work: few flows are distributed unevenly. When a worker ends, the \
                datagrams in its queue are lost.",
        undone: service::RESTARTED,
        sources: "socket(7); the reference case: 17 k to 2,540 k transactions/s on top of receive steering.",
    },
    by_hand: &[],
    writes: &[Target::Switch("reuseport")],
    turn: Turn::Own {
        read: service::read,
        draft,
    },
};

fn draft(context: &Context<'_>, wish: &str) -> Result<Draft> {
    KNOB.on_off(wish)?;
    Ok(service::switch(context, "reuseport", &wish))
}
