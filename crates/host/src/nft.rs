//! `nf_tables` by nfnetlink, without the `nft` program: which base chains every packet passes, and
//! the table with two of them that the ladder plants in a lab namespace.
//!
//! The dump is passive. The legacy tools are not: listing rules with them creates the tables that
//! were to be looked for. Source: `linux/netfilter/nf_tables.h` and nfnetlink.h of Linux 6.18.

use std::io;

use crate::BaseChain;
use crate::netlink::{self, ACK, Answer, CREATE, DUMP, EXCLUSIVE, Request, attributes, big_endian};

const NETFILTER: isize = libc::NETLINK_NETFILTER as isize;
const BATCH_BEGIN: u16 = 16;
const BATCH_END: u16 = 17;
const SUBSYSTEM: u16 = 10;
const NEW_TABLE: u16 = SUBSYSTEM << 8;
const DELETE_TABLE: u16 = SUBSYSTEM << 8 | 2;
const NEW_CHAIN: u16 = SUBSYSTEM << 8 | 3;
const GET_CHAIN: u16 = SUBSYSTEM << 8 | 4;
const NEW_RULE: u16 = SUBSYSTEM << 8 | 6;

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
const ACCEPT: u32 = 1;
const HOOK_INPUT: u32 = 1;
const HOOK_OUTPUT: u32 = 3;
/// struct nfgenmsg: family, version, resource id.
const FIXED: usize = 4;

/// Base chains of every family in the namespace of the calling thread. Needs `CAP_NET_ADMIN` in it.
pub(crate) fn base_chains() -> io::Result<Vec<BaseChain>> {
    let mut request = Request::default();
    request.message(GET_CHAIN, DUMP, &[0; FIXED]);
    // A host whose rules change during four dumps in a row deserves the error.
    let mut again = 3;
    let answers = loop {
        match request.send(NETFILTER) {
            Err(error) if error.kind() == io::ErrorKind::Interrupted && again > 0 => again -= 1,
            answers => break answers,
        }
    };
    let answers = answers.map_err(explained)?;
    let mut chains: Vec<BaseChain> = answers.iter().filter_map(base_chain).collect();
    chains.sort();
    Ok(chains)
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
    batch.send(NETFILTER).map(drop).map_err(explained)
}

/// Deletes an inet table and everything in it.
pub(crate) fn remove_table(name: &str) -> io::Result<()> {
    let mut batch = Request::default();
    batch
        .message(BATCH_BEGIN, 0, &batch_header())
        .message(DELETE_TABLE, ACK, &[INET, 0, 0, 0])
        .text(TABLE_NAME, name)
        .message(BATCH_END, 0, &batch_header());
    batch.send(NETFILTER).map(drop).map_err(explained)
}

/// The batch's header names the subsystem, in network byte order.
fn batch_header() -> [u8; FIXED] {
    let [high, low] = SUBSYSTEM.to_be_bytes();
    [0, 0, high, low]
}

/// A chain without a hook is only jumped to: no packet meets it by itself.
fn base_chain(answer: &Answer) -> Option<BaseChain> {
    if answer.kind != NEW_CHAIN {
        return None;
    }
    let family = *answer.fixed(FIXED).first()?;
    let parts = answer.attributes(FIXED);
    let part = |kind| {
        parts
            .iter()
            .find(|(found, _)| *found == kind)
            .map(|(_, value)| *value)
    };
    let hook = attributes(part(CHAIN_HOOK)?)
        .into_iter()
        .find(|(kind, _)| *kind == HOOK_NUMBER)
        .map(|(_, value)| big_endian(value))?;
    Some(BaseChain {
        family: family_name(family),
        table: part(CHAIN_TABLE).map(netlink::text).unwrap_or_default(),
        chain: part(CHAIN_NAME).map(netlink::text).unwrap_or_default(),
        hook: hook_name(family, hook),
        // References to the chain; nothing can jump to a base chain, so these are its rules.
        rules: part(CHAIN_USE).map(big_endian).unwrap_or_default(),
    })
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

/// Says which kernel feature is missing; other errors stay as the kernel gave them.
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
        format!("this kernel offers no {missing}: {error}"),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hooks_have_the_names_of_their_family() {
        assert_eq!(hook_name(INET, 1), "input");
        assert_eq!(hook_name(3, 1), "output");
        assert_eq!(hook_name(5, 0), "ingress");
        assert_eq!(hook_name(2, 77), "hook 77");
    }
}
