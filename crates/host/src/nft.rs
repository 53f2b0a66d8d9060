//! `nf_tables` by nfnetlink, without the `nft` program: which chains there are with how many rules, and the table with
//! two base chains that the ladder adds in a lab namespace.
//!
//! The dumps are passive. The legacy tools are not: listing rules with them creates the tables that were to be looked
//! for. Nor is a module loaded: where `nf_tables` is a module that is not loaded, there are no chains, and the kernel
//! is not asked. Source: `linux/netfilter/nf_tables.h` and nfnetlink.h of Linux 6.18.

use std::collections::BTreeMap;
use std::fs;
use std::io;

use rungwise_model::kernel::Chain;

use crate::BaseChain;
use crate::netlink::{self, ACK, CREATE, DUMP, EXCLUSIVE, Message, Request, big_endian, find};

const NETFILTER: isize = libc::NETLINK_NETFILTER as isize;
const BATCH_BEGIN: u16 = 16;
const BATCH_END: u16 = 17;
const SUBSYSTEM: u16 = 10;
const NEW_TABLE: u16 = SUBSYSTEM << 8;
const DELETE_TABLE: u16 = SUBSYSTEM << 8 | 2;
const NEW_CHAIN: u16 = SUBSYSTEM << 8 | 3;
const GET_CHAIN: u16 = SUBSYSTEM << 8 | 4;
const NEW_RULE: u16 = SUBSYSTEM << 8 | 6;
const GET_RULE: u16 = SUBSYSTEM << 8 | 7;

const TABLE_NAME: u16 = 1;
const CHAIN_TABLE: u16 = 1;
const CHAIN_NAME: u16 = 3;
const CHAIN_HOOK: u16 = 4;
const CHAIN_POLICY: u16 = 5;
const CHAIN_USE: u16 = 6;
const CHAIN_TYPE: u16 = 7;
const HOOK_NUMBER: u16 = 1;
const HOOK_PRIORITY: u16 = 2;
const RULE_TABLE: u16 = 1;
const RULE_CHAIN: u16 = 2;
const RULE_EXPRESSIONS: u16 = 4;
const LIST_ELEMENT: u16 = 1;
const EXPRESSION_NAME: u16 = 1;

const INET: u8 = 1;
const DROP: u32 = 0;
const ACCEPT: u32 = 1;
const HOOK_INPUT: u32 = 1;
const HOOK_OUTPUT: u32 = 3;
/// struct nfgenmsg: family, version, resource id.
const FIXED: usize = 4;

/// Base chains of every family in the namespace of the calling thread. Needs `CAP_NET_ADMIN` in it.
pub(crate) fn base_chains() -> io::Result<Vec<BaseChain>> {
    let mut chains: Vec<BaseChain> = list()?
        .into_iter()
        .filter(|chain| !chain.hook.is_empty())
        .map(|chain| BaseChain {
            family: chain.family,
            table: chain.table,
            chain: chain.chain,
            hook: chain.hook,
            rules: chain.rules,
        })
        .collect();
    chains.sort();
    Ok(chains)
}

/// All chains of the namespace of the calling thread, sorted, with their rules counted.
pub(crate) fn chains() -> io::Result<Vec<Chain>> {
    let mut chains = list()?;
    // A base chain's count is exact. The kernel's count of another chain holds the jumps to it as well, so
    // its rules have to be counted; a dump of rules is long, and most hosts need none.
    if chains
        .iter()
        .any(|chain| chain.hook.is_empty() && chain.rules > 0)
    {
        let rules = count_rules()?;
        for chain in chains.iter_mut().filter(|chain| chain.hook.is_empty()) {
            let key = (
                chain.family.clone(),
                chain.table.clone(),
                chain.chain.clone(),
            );
            chain.rules = rules.get(&key).copied().unwrap_or_default();
        }
    }
    chains.sort_by(|one, other| {
        (&one.family, &one.table, &one.chain).cmp(&(&other.family, &other.table, &other.chain))
    });
    Ok(chains)
}

fn list() -> io::Result<Vec<Chain>> {
    if unloaded("nf_tables") {
        return Ok(Vec::new());
    }
    dump(GET_CHAIN, |chains: &mut Vec<Chain>, message| {
        chains.extend(chain(message));
    })
}

/// Family, table, chain.
type Name = (String, String, String);

fn count_rules() -> io::Result<BTreeMap<Name, u32>> {
    dump(GET_RULE, |rules: &mut BTreeMap<Name, u32>, message| {
        if let Some(name) = chain_of_rule(message) {
            *rules.entry(name).or_default() += 1;
        }
    })
}

/// One dump, restarted when the rules changed meanwhile.
fn dump<T: Default>(kind: u16, take: impl Fn(&mut T, &Message<'_>)) -> io::Result<T> {
    let mut request = Request::default();
    request.message(kind, DUMP, &[0; FIXED]);
    // A host whose rules change during four dumps in a row deserves the error.
    let mut again = 3;
    loop {
        let mut found = T::default();
        match request.each(NETFILTER, |message| take(&mut found, message)) {
            Ok(()) => return Ok(found),
            Err(error) if error.kind() == io::ErrorKind::Interrupted && again > 0 => again -= 1,
            Err(error) => return Err(explained(error)),
        }
    }
}

/// Whether this kernel has the module and it is not loaded. Where that cannot be seen (no `/lib/modules`, as in a
/// container), it counts as loaded: asking for it then loads it, as any use of it does.
fn unloaded(module: &str) -> bool {
    let Ok(release) = fs::read_to_string("/proc/sys/kernel/osrelease") else {
        return false;
    };
    let list = format!("/lib/modules/{}/modules.dep", release.trim());
    match (
        fs::read_to_string("/proc/modules"),
        fs::read_to_string(list),
    ) {
        (Ok(loaded), Ok(known)) => {
            is_module(&known, module)
                && !loaded
                    .lines()
                    .any(|line| line.split(' ').next() == Some(module))
        }
        _ => false,
    }
}

/// A line of `modules.dep` is `kernel/net/netfilter/nf_tables.ko.xz: ...`; what is built in has none.
fn is_module(known: &str, module: &str) -> bool {
    known.lines().any(|line| {
        let path = line.split(':').next().unwrap_or_default();
        let file = path.rsplit('/').next().unwrap_or_default();
        file.split('.').next() == Some(module)
    })
}

/// One transaction: table `name` with chains `input` and `output`, each with a rule that counts.
pub(crate) fn plant_chains(name: &str) -> io::Result<()> {
    let mut batch = Request::default();
    batch
        .message(BATCH_BEGIN, 0, &batch_header())
        .message(NEW_TABLE, ACK | CREATE | EXCLUSIVE, &[INET, 0, 0, 0])
        .text(TABLE_NAME, name);
    for (chain, hook) in [("input", HOOK_INPUT), ("output", HOOK_OUTPUT)] {
        batch
            .message(NEW_CHAIN, ACK | CREATE | EXCLUSIVE, &[INET, 0, 0, 0])
            .text(CHAIN_TABLE, name)
            .text(CHAIN_NAME, chain)
            .nested(CHAIN_HOOK, |inner| {
                inner
                    .attribute(HOOK_NUMBER, &hook.to_be_bytes())
                    .attribute(HOOK_PRIORITY, &0_u32.to_be_bytes());
            })
            .attribute(CHAIN_POLICY, &ACCEPT.to_be_bytes())
            .text(CHAIN_TYPE, "filter");
        batch
            .message(NEW_RULE, ACK | CREATE, &[INET, 0, 0, 0])
            .text(RULE_TABLE, name)
            .text(RULE_CHAIN, chain)
            .nested(RULE_EXPRESSIONS, |list| {
                list.nested(LIST_ELEMENT, |expression| {
                    expression.text(EXPRESSION_NAME, "counter");
                });
            });
    }
    batch.message(BATCH_END, 0, &batch_header());
    batch.send(NETFILTER).map_err(explained)
}

/// Deletes an inet table and everything in it.
pub(crate) fn remove_table(name: &str) -> io::Result<()> {
    let mut batch = Request::default();
    batch
        .message(BATCH_BEGIN, 0, &batch_header())
        .message(DELETE_TABLE, ACK, &[INET, 0, 0, 0])
        .text(TABLE_NAME, name)
        .message(BATCH_END, 0, &batch_header());
    batch.send(NETFILTER).map_err(explained)
}

/// The batch's header names the subsystem, in network byte order.
fn batch_header() -> [u8; FIXED] {
    let [high, low] = SUBSYSTEM.to_be_bytes();
    [0, 0, high, low]
}

/// A chain without a hook is only jumped to: no packet meets it by itself.
fn chain(message: &Message<'_>) -> Option<Chain> {
    if message.kind != NEW_CHAIN {
        return None;
    }
    let family = *message.fixed(FIXED).first()?;
    let part = |kind| find(message.rest(FIXED), kind);
    let hook = part(CHAIN_HOOK)
        .and_then(|hook| find(hook, HOOK_NUMBER))
        .map(big_endian);
    Some(Chain {
        family: family_name(family),
        table: part(CHAIN_TABLE).map(netlink::text).unwrap_or_default(),
        chain: part(CHAIN_NAME).map(netlink::text).unwrap_or_default(),
        hook: hook.map(|hook| hook_name(family, hook)).unwrap_or_default(),
        policy: match (hook, part(CHAIN_POLICY).map(big_endian)) {
            (Some(_), Some(DROP)) => "drop".to_owned(),
            (Some(_), Some(ACCEPT)) => "accept".to_owned(),
            _ => String::new(),
        },
        // References to the chain; nothing can jump to a base chain, so these are its rules.
        rules: part(CHAIN_USE).map(big_endian).unwrap_or_default(),
    })
}

fn chain_of_rule(message: &Message<'_>) -> Option<Name> {
    if message.kind != NEW_RULE {
        return None;
    }
    let part = |kind| find(message.rest(FIXED), kind).map(netlink::text);
    Some((
        family_name(*message.fixed(FIXED).first()?),
        part(RULE_TABLE)?,
        part(RULE_CHAIN)?,
    ))
}

fn family_name(family: u8) -> String {
    match family {
        1 => "inet".to_owned(),
        2 => "ip".to_owned(),
        3 => "arp".to_owned(),
        5 => "netdev".to_owned(),
        7 => "bridge".to_owned(),
        10 => "ip6".to_owned(),
        other => format!("family {other}"),
    }
}

fn hook_name(family: u8, hook: u32) -> String {
    let names: &[&str] = match family {
        3 => &["input", "output", "forward"],
        5 => &["ingress", "egress"],
        _ => &[
            "prerouting",
            "input",
            "forward",
            "output",
            "postrouting",
            "ingress",
        ],
    };
    names
        .get(hook as usize)
        .map_or_else(|| format!("hook {hook}"), |name| (*name).to_owned())
}

/// Names the missing kernel feature; other errors stay as the kernel gave them.
fn explained(error: io::Error) -> io::Error {
    let missing = match error.raw_os_error() {
        Some(libc::EPROTONOSUPPORT) => "nfnetlink (CONFIG_NETFILTER_NETLINK)",
        // nfnetlink's answer for a subsystem that is not there.
        Some(libc::EINVAL | libc::EOPNOTSUPP) => {
            "nf_tables for this request (CONFIG_NF_TABLES, CONFIG_NF_TABLES_INET)"
        }
        _ => return error,
    };
    io::Error::new(
        io::ErrorKind::Unsupported,
        format!("this kernel lacks {missing}: {error}"),
    )
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::netlink::testing;

    #[test]
    fn hooks_have_the_names_of_their_family() {
        assert_eq!(hook_name(INET, 1), "input");
        assert_eq!(hook_name(3, 1), "output");
        assert_eq!(hook_name(5, 0), "ingress");
        assert_eq!(hook_name(2, 77), "hook 77");
    }

    #[test]
    fn a_module_is_known_by_the_name_of_its_file() {
        let known = "kernel/net/netfilter/nf_tables.ko.xz: kernel/net/netfilter/nfnetlink.ko.xz\n\
                     kernel/net/netfilter/nft_compat.ko:\n";
        assert!(is_module(known, "nf_tables") && is_module(known, "nft_compat"));
        assert!(!is_module(known, "nfnetlink") && !is_module("", "nf_tables"));
    }

    #[test]
    fn a_chain_without_a_hook_has_neither_hook_nor_policy() {
        let mut request = Request::default();
        request
            .message(NEW_CHAIN, 0, &[2, 0, 0, 0])
            .text(CHAIN_TABLE, "filter")
            .text(CHAIN_NAME, "DOCKER")
            .attribute(CHAIN_POLICY, &ACCEPT.to_be_bytes())
            .attribute(CHAIN_USE, &3_u32.to_be_bytes());
        let mut found = Vec::new();
        testing::receive(&request, |message| found.extend(chain(message)));
        let expected = Chain {
            family: "ip".to_owned(),
            table: "filter".to_owned(),
            chain: "DOCKER".to_owned(),
            rules: 3,
            ..Chain::default()
        };
        assert_eq!(found, [expected]);
    }

    proptest! {
        #[test]
        fn any_answer_is_read_without_a_panic(
            kind in prop_oneof![Just(NEW_CHAIN), Just(NEW_RULE)],
            body: Vec<u8>,
        ) {
            let message = testing::message(kind, &body);
            let _ = (chain(&message), chain_of_rule(&message));
        }
    }
}
