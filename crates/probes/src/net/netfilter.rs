//! Packet filters: chains of `nf_tables`, and the loaded tables of legacy iptables.
//!
//! No tool is used for listing: even `iptables-legacy -S` creates the table that it lists, which every packet then
//! traverses. The names of loaded tables are read from a file, the chains by netlink. Sources:
//! `net/netfilter/x_tables.c`, `net/netfilter/nf_tables_api.c` (Linux 6.18).

use rungwise_model::evidence::{Evidence, Origin, Subject};
use rungwise_model::kernel::{Answer, Chain, Question};
use rungwise_model::keys;

use super::is_not_there;
use crate::window::misplaced;
use crate::{Cost, Need, Probe, Source, When, Window};

const NETLINK: &str = "nf_tables netlink (nft list ruleset)";
const NAMES: &[(&str, &str)] = &[
    ("ip", "/proc/net/ip_tables_names"),
    ("ip6", "/proc/net/ip6_tables_names"),
];
/// Hooks on the path of packets that this host itself receives or sends.
const ON_PATH: &[&str] = &[
    "ingress",
    "prerouting",
    "input",
    "output",
    "postrouting",
    "egress",
];

/// The probe.
pub(crate) static PROBE: Probe = Probe {
    id: "netfilter",
    summary: "chains and rules that packets traverse, and tables of legacy iptables",
    cost: Cost::Cheap,
    needs: &[Need::Root],
    sources: &[
        Source::ask(Question::Netfilter, When::Once),
        Source::once(NAMES[0].1),
        Source::once(NAMES[1].1),
    ],
    yields: &[
        &keys::NETFILTER_BASE_CHAINS,
        &keys::NETFILTER_DROP_POLICIES,
        &keys::NETFILTER_LEGACY_TABLES,
        &keys::NETFILTER_LONGEST_CHAIN,
        &keys::NETFILTER_LONGEST_FORWARD,
        &keys::NETFILTER_RULES,
    ],
    derive,
    doc: "\
A base chain is attached to a hook and costs every packet there, with or without rules; chains on `forward` are not on \
the path of a host's own packets and are reported separately. Chains of iptables-nft are nf_tables chains and are \
counted as such. Rules in chains that a base chain jumps to are counted in netfilter.rules, not in the length of the \
base chain: how many of them a packet traverses depends on the packet. The rules of legacy tables cannot be counted \
without creating tables, so only the names of the loaded tables are reported. The files do not exist if the modules \
are not loaded, and then there are no such tables. Sources: nf_tables_api.c and x_tables.c of Linux 6.18.",
};

fn derive(window: &Window<'_>, evidence: &mut Evidence) {
    match window.answer("netfilter") {
        Ok(Answer::Netfilter(chains)) => count(chains, evidence),
        Ok(other) => evidence.absent(PROBE.yields, &misplaced("netfilter", other), NETLINK),
        Err(why) => evidence.absent(PROBE.yields, &why, NETLINK),
    }
    legacy(window, evidence);
}

fn count(chains: &[Chain], evidence: &mut Evidence) {
    let base: Vec<&Chain> = chains
        .iter()
        .filter(|chain| ON_PATH.contains(&chain.hook.as_str()))
        .collect();
    let dropping = chains
        .iter()
        .filter(|chain| !chain.hook.is_empty() && chain.policy == "drop")
        .count();
    let longest = base.iter().map(|chain| chain.rules).max().unwrap_or(0);
    let forward = chains
        .iter()
        .filter(|chain| chain.hook == "forward")
        .max_by_key(|chain| chain.rules);
    let rules: u64 = chains.iter().map(|chain| u64::from(chain.rules)).sum();
    let line = base.iter().map(|chain| describe(chain)).collect::<Vec<_>>();
    let line = if line.is_empty() {
        format!("no base chain on the path; {} other chains", chains.len())
    } else {
        line.join(", ")
    };
    for (key, number) in [
        (&keys::NETFILTER_BASE_CHAINS, base.len() as f64),
        (&keys::NETFILTER_DROP_POLICIES, dropping as f64),
        (&keys::NETFILTER_LONGEST_CHAIN, f64::from(longest)),
        (&keys::NETFILTER_RULES, rules as f64),
    ] {
        let origin = Origin::new(NETLINK, line.as_str());
        evidence.number(key, Subject::host(), number, origin);
    }
    let rules = forward.map_or(0, |chain| chain.rules);
    let line = forward.map_or_else(|| "no base chain on forward".to_owned(), describe);
    evidence.number(
        &keys::NETFILTER_LONGEST_FORWARD,
        Subject::host(),
        f64::from(rules),
        Origin::new(NETLINK, line),
    );
}

fn describe(chain: &Chain) -> String {
    format!(
        "{} {} {} hook {} policy {} rules {}",
        chain.family, chain.table, chain.chain, chain.hook, chain.policy, chain.rules
    )
}

fn legacy(window: &Window<'_>, evidence: &mut Evidence) {
    let key = &keys::NETFILTER_LEGACY_TABLES;
    let mut tables = Vec::new();
    let mut line = Vec::new();
    for (family, path) in NAMES {
        match window.text(path) {
            Ok(text) => {
                let names: Vec<&str> = text.split_whitespace().collect();
                line.push(format!("{path}: {}", names.join(" ")));
                tables.extend(names.iter().map(|name| format!("{family} {name}")));
            }
            Err(_) if is_not_there(window, path) => line.push(format!("no {path}")),
            Err(why) => return evidence.absent(&[key], &why, path),
        }
    }
    let origin = Origin::new("/proc/net/{ip,ip6}_tables_names", line.join("; "));
    evidence.text(key, Subject::host(), tables.join(", "), origin);
}
