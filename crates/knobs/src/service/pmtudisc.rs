//! Never fragment: saves the choice of an IP identification.

use crate::Result;
use crate::knob::{Context, Doc, Draft, Knob, Risk, Scope, Settable};
use crate::service;
use crate::target::Target;
use crate::turn::Turn;

/// `sock.pmtudisc`
pub(crate) static KNOB: Knob = Knob {
    id: "sock.pmtudisc",
    scope: Scope::Service,
    risk: Risk::Restart,
    settable: Settable::Yes,
    summary: "sends with DF set, which saves the IP identification per datagram",
    values: "want (the kernel's default) or do (never fragment)",
    doc: Doc {
        does: "IP_MTU_DISCOVER = IP_PMTUDISC_DO sets DF on each datagram. A packet that cannot be \
               fragmented needs no unique identification, and __ip_select_ident with its shared counter is \
               skipped.",
        helps: "When __ip_select_ident shows in profiles and every reply fits the path.",
        costs: "A reply larger than the path's MTU fails with EMSGSIZE instead of being fragmented.",
        undone: service::RESTARTED,
        sources: "ip(7); the reference case: 5,860 k to 6,010 k transactions/s; +3.7 % on a veth pair, Linux \
               6.18.",
    },
    by_hand: &[],
    writes: &[Target::Switch("pmtudisc")],
    turn: Turn::Own {
        read: service::read,
        draft,
    },
};

fn draft(context: &Context<'_>, wish: &str) -> Result<Draft> {
    match wish {
        "want" | "do" => Ok(service::switch(context, "pmtudisc", &wish)),
        _ => Err(KNOB.bad_wish(wish, "it is neither want nor do")),
    }
}
