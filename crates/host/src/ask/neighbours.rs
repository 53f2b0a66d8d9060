//! Neighbour tables by rtnetlink: how full they are, what they refused, and which neighbours do not answer.
//!
//! `/proc/net/stat/arp_cache` shows the same counters in the first network namespace only; rtnetlink shows them in all.
//! Tables are shared by all namespaces, and so are their limits. Source: linux/neighbour.h, `neightbl_fill_info` and
//! `neigh_fill_info` of net/core/neighbour.c (Linux 6.18).

use std::collections::BTreeMap;
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use rungwise_model::kernel::{Neighbour, NeighbourTable, Neighbours};

use crate::link;
use crate::netlink::{DUMP, Message, Request, find, number32, number64, text};

const NEW_NEIGHBOUR: u16 = 28;
const GET_NEIGHBOUR: u16 = 30;
const NEW_TABLE: u16 = 64;
const GET_TABLE: u16 = 66;
/// struct ndmsg: family, padding, ifindex, state, flags, type.
const NEIGHBOUR_FIXED: usize = 12;
/// struct ndtmsg: family, padding.
const TABLE_FIXED: usize = 4;
const DESTINATION: u16 = 1;
const TABLE_NAME: u16 = 1;
const TABLE_LIMIT: u16 = 4;
const TABLE_CONFIG: u16 = 5;
const TABLE_STATS: u16 = 7;
const INCOMPLETE: u16 = 0x01;
const FAILED: u16 = 0x20;
/// Neighbours that are named; the others are counted.
const NAMED: usize = 100;

/// Both tables, and the neighbours of the calling thread's namespace that do not answer.
pub(super) fn tables() -> io::Result<Neighbours> {
    let mut found = Neighbours::default();
    let mut request = Request::default();
    request.message(GET_TABLE, DUMP, &[0; TABLE_FIXED]);
    request.each(libc::NETLINK_ROUTE as isize, |message| {
        found.tables.extend(table(message));
    })?;
    let mut silent = Vec::new();
    let mut request = Request::default();
    request.message(GET_NEIGHBOUR, DUMP, &[0; NEIGHBOUR_FIXED]);
    request.each(libc::NETLINK_ROUTE as isize, |message| {
        if let Some(neighbour) = unanswered(message) {
            found.unanswered_count += 1;
            if silent.len() < NAMED {
                silent.push(neighbour);
            }
        }
    })?;
    if !silent.is_empty() {
        let names: BTreeMap<u32, String> = link::list()?
            .into_iter()
            .map(|link| (link.index, link.name))
            .collect();
        let named = silent.into_iter().filter_map(|(index, neighbour)| {
            let device = names.get(&index)?.clone();
            Some(Neighbour {
                device,
                ..neighbour
            })
        });
        found.unanswered = named.collect();
    }
    Ok(found)
}

/// The part of a table that is its own; a table has further messages with the parameters of each device.
fn table(message: &Message<'_>) -> Option<NeighbourTable> {
    if message.kind != NEW_TABLE {
        return None;
    }
    let parts = message.rest(TABLE_FIXED);
    // struct ndt_config: two lengths of 16 bits, then words: entries first. struct ndt_stats: 64 bits each.
    let config = find(parts, TABLE_CONFIG)?;
    let stats = find(parts, TABLE_STATS)?;
    Some(NeighbourTable {
        name: find(parts, TABLE_NAME).map(text)?,
        entries: number32(config, 4)?,
        limit: find(parts, TABLE_LIMIT).and_then(|limit| number32(limit, 0))?,
        failed: number64(stats, 24)?,
        // Since Linux 4.3.
        refused: number64(stats, 80).unwrap_or_default(),
    })
}

/// The index of the device and a neighbour that does not answer, still without the device's name.
fn unanswered(message: &Message<'_>) -> Option<(u32, Neighbour)> {
    if message.kind != NEW_NEIGHBOUR {
        return None;
    }
    let fixed = message.fixed(NEIGHBOUR_FIXED);
    let state = u16::from_ne_bytes(fixed.get(8..10)?.try_into().ok()?);
    if state & (INCOMPLETE | FAILED) == 0 {
        return None;
    }
    let address = find(message.rest(NEIGHBOUR_FIXED), DESTINATION)?;
    let address: IpAddr = if let Ok(four) = <[u8; 4]>::try_from(address) {
        Ipv4Addr::from(four).into()
    } else {
        Ipv6Addr::from(<[u8; 16]>::try_from(address).ok()?).into()
    };
    let neighbour = Neighbour {
        device: String::new(),
        address,
        failed: state & FAILED != 0,
    };
    Some((number32(fixed, 4)?, neighbour))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::netlink::testing;

    #[test]
    fn a_table_has_its_limit_and_what_it_refused() {
        let mut config = vec![0; 28];
        config[4] = 17;
        let stats: Vec<u8> = (0_u64..11).flat_map(u64::to_ne_bytes).collect();
        let mut request = Request::default();
        request
            .message(NEW_TABLE, 0, &[2, 0, 0, 0])
            .text(TABLE_NAME, "arp_cache")
            .attribute(TABLE_LIMIT, &1024_u32.to_ne_bytes())
            .attribute(TABLE_CONFIG, &config)
            .attribute(TABLE_STATS, &stats);
        let mut found = Vec::new();
        testing::receive(&request, |message| found.extend(table(message)));
        assert_eq!((found[0].entries, found[0].limit), (17, 1024));
        assert_eq!((found[0].failed, found[0].refused), (3, 10));
    }

    #[test]
    fn a_neighbour_that_answers_is_not_listed() {
        let with = |state: u16| {
            let mut fixed = [0; NEIGHBOUR_FIXED];
            fixed[4] = 7;
            fixed[8..10].copy_from_slice(&state.to_ne_bytes());
            let mut request = Request::default();
            request
                .message(NEW_NEIGHBOUR, 0, &fixed)
                .attribute(DESTINATION, &[10, 0, 0, 9]);
            let mut found = Vec::new();
            testing::receive(&request, |message| found.extend(unanswered(message)));
            found
        };
        assert!(with(0x02).is_empty());
        let failed = with(FAILED);
        assert_eq!(failed[0].0, 7);
        assert!(failed[0].1.failed);
        assert_eq!(failed[0].1.address.to_string(), "10.0.0.9");
    }

    proptest! {
        #[test]
        fn any_answer_is_read_without_a_panic(body: Vec<u8>) {
            let _ = table(&testing::message(NEW_TABLE, &body));
            let _ = unanswered(&testing::message(NEW_NEIGHBOUR, &body));
        }
    }
}
