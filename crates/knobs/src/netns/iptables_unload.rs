//! Netfilter base chains: every packet walks them, even where they hold no rule.
//!
//! On the host they belong to the firewall: they are shown and never removed. In a lab namespace we add a table of our
//! own and remove it again, to measure its cost.

use crate::edit::{Edit, OUR_TABLES, Place};
use crate::knob::{Context, Current, Doc, Draft, Knob, Reading, Risk, Scope, Settable};
use crate::target::Target;
use crate::turn::Turn;
use crate::{Error, Result};

/// `net.iptables_unload`
pub(crate) static KNOB: Knob = Knob {
    id: "net.iptables_unload",
    scope: Scope::Netns,
    risk: Risk::Disruptive,
    settable: Settable::Yes,
    summary: "netfilter chains that every packet walks; added and removed in a lab only",
    values: "loaded or absent, in a lab namespace; shown on a host",
    doc: Doc {
        does: "Each registered base chain is called for each packet at its hook. In a lab, `loaded` adds a table of \
               ours with a chain on input and one on output, a counting rule in each; `absent` removes it.",
        helps: "Where chains are registered, contain no rule that is needed, and nf_hook_slow takes above 1 % in \
                profiles.",
        costs: "The firewall. Only its owner can decide that, so on a host it is only shown. It is read by netlink, \
                because `iptables-legacy -L` creates the tables that it lists.",
        undone: "Our table is removed or added again. Other tables are never touched.",
        sources: "The reference case: 5,180 k to 5,380 k transactions/s without the tables; -5.7 % with two \
                  counting rules on a veth pair, Linux 6.18.",
    },
    by_hand: &[],
    writes: &[Target::OurTable],
    turn: Turn::Own { read, draft },
};

/// The table that a lab adds.
fn table() -> String {
    format!("{OUR_TABLES}obstacle")
}

fn read(context: &Context<'_>) -> Result<Current> {
    let chains = context.here.base_chains().map_err(|answer| {
        Error::kernel(
            KNOB.id,
            "list base chains".to_owned(),
            context.here.name(),
            answer,
        )
    })?;
    let readings: Vec<_> = chains
        .iter()
        .map(|chain| Reading {
            source: format!("{} {} {}", chain.family, chain.table, chain.chain),
            value: format!("hook {}, {} rules", chain.hook, chain.rules),
        })
        .collect();
    let value = if readings.is_empty() {
        "absent"
    } else {
        "loaded"
    };
    Ok(Current::known(value, readings))
}

fn draft(context: &Context<'_>, wish: &str) -> Result<Draft> {
    let present = match wish {
        "loaded" => true,
        "absent" => false,
        _ => return Err(KNOB.bad_wish(wish, "it is neither loaded nor absent")),
    };
    if *context.place == Place::Host {
        return Err(Error::NotSettable {
            knob: KNOB.id,
            why: "chains on a host belong to its firewall; remove them yourself with nft if you own them, \
                  and see them with `rungwise knob show net.iptables_unload`"
                .to_owned(),
        });
    }
    let edit = Edit::NftTable {
        name: table(),
        present,
    };
    Ok(Draft {
        edits: vec![(context.place.clone(), edit)],
        notes: Vec::new(),
    })
}
