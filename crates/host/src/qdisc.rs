//! Queueing disciplines by rtnetlink: all of them with their counters, and the root of a device.
//!
//! A root without configuration has the handle `0:`; the kernel made it (`net.core.default_qdisc`, `mq` over several
//! queues). What [`set_root`] puts there carries a handle of its own, one of [`OURS`], so that it can be distinguished
//! from one that an administrator configured with limits and classes, which is never replaced: its parameters could not
//! be restored. Source: linux/rtnetlink.h, `gen_stats.h`, `net/sched/sch_api.c` of Linux 6.18.

use std::collections::BTreeMap;
use std::io;

use rungwise_model::kernel::Qdisc;

use crate::link;
use crate::netlink::{
    ACK, CREATE, DUMP, Message, REPLACE, Request, find, number32, number64, text,
};
use crate::setting::DEFAULT;

const NEW_QDISC: u16 = 36;
const DELETE_QDISC: u16 = 37;
const GET_QDISC: u16 = 38;
const TCA_KIND: u16 = 1;
const TCA_OPTIONS: u16 = 2;
const TBF_PARAMETERS: u16 = 1;
const TBF_RATE64: u16 = 4;
const TCA_STATS: u16 = 3;
const TCA_STATS2: u16 = 7;
const STATS_BASIC: u16 = 1;
const STATS_QUEUE: u16 = 3;
const STATS_PACKETS64: u16 = 8;
const ROOT: u32 = 0xffff_ffff;
/// Handles of a root that we put there; any other numbers would do, the first spells "rw". Two, because one handle
/// cannot change its kind: what replaces ours comes with the other, in one request, so a process that dies before or
/// after it leaves one of the two.
const OURS: [u32; 2] = [0x7277_0000, 0x7278_0000];
/// struct tcmsg: family, padding, index, handle, parent, info.
const FIXED: usize = 20;

/// All of the namespace of the calling thread.
pub(crate) fn list() -> io::Result<Vec<Qdisc>> {
    let names: BTreeMap<u32, String> = link::list()?
        .into_iter()
        .map(|link| (link.index, link.name))
        .collect();
    let mut qdiscs = Vec::new();
    dump(|message| {
        if let Some((index, qdisc)) = qdisc(message) {
            // Without a name the device came or went between the two dumps.
            if let Some(device) = names.get(&index) {
                qdiscs.push(Qdisc {
                    device: device.clone(),
                    ..qdisc
                });
            }
        }
    })?;
    Ok(qdiscs)
}

/// The root of a device, as [`crate::DeviceSetting::RootQdisc`] spells it.
pub(crate) fn root(device: &str) -> io::Result<String> {
    Ok(spell(found(link::index(device)?)?.as_ref()))
}

/// Puts a qdisc with its defaults at the root, or gives the choice back to the kernel: one request, so that there
/// is no moment at which neither is there.
pub(crate) fn set_root(device: &str, value: &str) -> io::Result<()> {
    let index = link::index(device)?;
    let found = found(index)?;
    let before = spell(found.as_ref());
    if before == value {
        return Ok(());
    }
    if before.contains(' ') {
        return Err(io::Error::new(
            io::ErrorKind::PermissionDenied,
            format!("{device} already has a root qdisc ({before}); remove it first"),
        ));
    }
    if value.contains(' ') {
        return Err(io::Error::new(
            io::ErrorKind::InvalidInput,
            "a qdisc is set by its kind only, with its defaults",
        ));
    }
    let there = found.map_or(0, |(handle, _)| handle);
    if value == DEFAULT {
        return change(index, DELETE_QDISC, 0, there, None);
    }
    let other = OURS.into_iter().find(|ours| *ours != there);
    let other = other.expect("there are two");
    change(index, NEW_QDISC, CREATE | REPLACE, other, Some(value))
}

/// Handle and kind of a configured root; absent where the kernel chose.
fn found(wanted: u32) -> io::Result<Option<(u32, Qdisc)>> {
    let mut found = None;
    dump(|message| {
        let fixed = message.fixed(FIXED);
        if number32(fixed, 4) == Some(wanted)
            && number32(fixed, 12) == Some(ROOT)
            && let Some((_, qdisc)) = qdisc(message)
        {
            found = number32(fixed, 8).map(|handle| (handle, qdisc));
        }
    })?;
    Ok(found.filter(|(handle, _)| *handle != 0))
}

fn spell(found: Option<&(u32, Qdisc)>) -> String {
    match found {
        None => DEFAULT.to_owned(),
        Some((handle, qdisc)) if OURS.contains(handle) => qdisc.kind.clone(),
        Some((_, qdisc)) => format!("{} {}", qdisc.kind, qdisc.handle),
    }
}

/// One request about the root; the kernel refuses to delete a root with another handle.
fn change(index: u32, kind: u16, flags: u16, handle: u32, qdisc: Option<&str>) -> io::Result<()> {
    let mut request = Request::default();
    request.message(kind, ACK | flags, &traffic_control(index, handle));
    if let Some(qdisc) = qdisc {
        request.text(TCA_KIND, qdisc);
    }
    request.in_words().send(libc::NETLINK_ROUTE as isize)
}

fn dump(take: impl FnMut(&Message<'_>)) -> io::Result<()> {
    let mut request = Request::default();
    request.message(GET_QDISC, DUMP, &[0; FIXED]);
    request.each(libc::NETLINK_ROUTE as isize, take)
}

/// The fixed header of a request about the root.
fn traffic_control(index: u32, handle: u32) -> [u8; FIXED] {
    let mut fixed = [0; FIXED];
    fixed[4..8].copy_from_slice(&index.to_ne_bytes());
    fixed[8..12].copy_from_slice(&handle.to_ne_bytes());
    fixed[12..16].copy_from_slice(&ROOT.to_ne_bytes());
    fixed
}

/// Index of the device and the qdisc, still without the device's name.
fn qdisc(message: &Message<'_>) -> Option<(u32, Qdisc)> {
    if message.kind != NEW_QDISC {
        return None;
    }
    let fixed = message.fixed(FIXED);
    let parts = message.rest(FIXED);
    let counters = find(parts, TCA_STATS2)
        .map(counters)
        .or_else(|| find(parts, TCA_STATS).map(old_counters))
        .unwrap_or_default();
    let kind = find(parts, TCA_KIND).map(text)?;
    let rate = (kind == "tbf")
        .then(|| tbf_rate(find(parts, TCA_OPTIONS)?))
        .flatten();
    let qdisc = Qdisc {
        device: String::new(),
        kind,
        rate,
        handle: format!("{:x}:", number32(fixed, 8)? >> 16),
        parent: class(number32(fixed, 12)?),
        ..counters
    };
    Some((number32(fixed, 4)?, qdisc))
}

/// Bytes per second of a `tbf`: `struct tc_tbf_qopt` begins with a `tc_ratespec`, whose rate is its last word; rates of 4 GiB/s
/// and more stand in an attribute of their own.
fn tbf_rate(options: &[u8]) -> Option<u64> {
    let wide = find(options, TBF_RATE64).and_then(|rate| number64(rate, 0));
    let narrow = || number32(find(options, TBF_PARAMETERS)?, 8).map(u64::from);
    wide.or_else(narrow)
}

/// `TCA_STATS2`: nested; the queue is length, backlog in bytes, drops, requeues, overlimits.
fn counters(stats: &[u8]) -> Qdisc {
    let queue = find(stats, STATS_QUEUE).unwrap_or_default();
    let word = |index: usize| number32(queue, index * 4).unwrap_or_default();
    let basic = find(stats, STATS_BASIC).unwrap_or_default();
    // 64 bits where the kernel has them (since 5.5), before that they wrap.
    let packets = find(stats, STATS_PACKETS64)
        .and_then(|packets| number64(packets, 0))
        .or_else(|| number32(basic, 8).map(u64::from));
    Qdisc {
        packets: packets.unwrap_or_default(),
        bytes: number64(basic, 0).unwrap_or_default(),
        backlog: word(0),
        drops: word(2),
        overlimits: word(4),
        ..Qdisc::default()
    }
}

/// struct `tc_stats`: bytes in 64 bits, packets, drops, overlimits, two rates, queue length, backlog.
fn old_counters(stats: &[u8]) -> Qdisc {
    let word = |at: usize| number32(stats, at).unwrap_or_default();
    Qdisc {
        packets: word(8).into(),
        bytes: number64(stats, 0).unwrap_or_default(),
        drops: word(12),
        overlimits: word(16),
        backlog: word(28),
        ..Qdisc::default()
    }
}

/// `print_tc_classid` of iproute2.
fn class(id: u32) -> String {
    match (id >> 16, id & 0xffff) {
        _ if id == ROOT => "root".to_owned(),
        (0, 0) => "none".to_owned(),
        (0, minor) => format!(":{minor:x}"),
        (major, 0) => format!("{major:x}:"),
        (major, minor) => format!("{major:x}:{minor:x}"),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::netlink::testing;

    #[test]
    fn classes_are_spelled_as_tc_spells_them() {
        assert_eq!(class(ROOT), "root");
        assert_eq!(class(0x8001_0000), "8001:");
        assert_eq!(class(0x0001_000a), "1:a");
        assert_eq!(class(2), ":2");
        assert_eq!(class(0xffff_fff1), "ffff:fff1");
    }

    #[test]
    fn counters_come_from_either_form() {
        let words = |words: &[u32]| -> Vec<u8> {
            words.iter().flat_map(|word| word.to_ne_bytes()).collect()
        };
        let mut request = Request::default();
        request
            .message(NEW_QDISC, 0, &traffic_control(3, OURS[0]))
            .text(TCA_KIND, "fq")
            .nested(TCA_STATS2, |stats| {
                stats
                    .attribute(STATS_BASIC, &words(&[0, 0, 17]))
                    .attribute(STATS_QUEUE, &words(&[5, 900, 2, 0, 4]));
            });
        request
            .message(NEW_QDISC, 0, &traffic_control(4, 0))
            .text(TCA_KIND, "pfifo")
            .attribute(TCA_STATS, &words(&[0, 0, 17, 2, 4, 0, 0, 5, 900]));
        let mut found = Vec::new();
        testing::receive(&request, |message| found.extend(qdisc(message)));
        for (_, qdisc) in &found {
            assert_eq!((qdisc.packets, qdisc.drops), (17, 2), "{qdisc:?}");
            assert_eq!((qdisc.overlimits, qdisc.backlog), (4, 5), "{qdisc:?}");
        }
        let [(3, fq), (4, pfifo)] = &found[..] else {
            panic!("{found:?}");
        };
        assert_eq!((fq.handle.as_str(), fq.parent.as_str()), ("7277:", "root"));
        assert_eq!(
            (pfifo.handle.as_str(), pfifo.kind.as_str()),
            ("0:", "pfifo")
        );
    }

    #[test]
    fn a_tbf_shows_its_rate() {
        let mut parameters = vec![0; 36];
        parameters[8..12].copy_from_slice(&2_500_000_u32.to_ne_bytes());
        let mut request = Request::default();
        request
            .message(NEW_QDISC, 0, &traffic_control(3, 0x8001_0000))
            .text(TCA_KIND, "tbf")
            .nested(TCA_OPTIONS, |options| {
                options.attribute(TBF_PARAMETERS, &parameters);
            });
        let mut found = Vec::new();
        testing::receive(&request, |message| found.extend(qdisc(message)));
        assert_eq!(found[0].1.rate, Some(2_500_000));
    }

    proptest! {
        #[test]
        fn any_answer_is_read_without_a_panic(body: Vec<u8>) {
            let _ = qdisc(&testing::message(NEW_QDISC, &body));
            let _ = (counters(&body), old_counters(&body));
        }
    }
}
