//! Counters of losses and failures: each that grew, and what share of the traffic it was.
//!
//! Rules read the counters whose cause they know. This probe reads all others, so that no loss counted by the kernel
//! goes unnoticed: the rule `unexplained-loss` judges what no other rule explains.

mod counters;
mod drivers;
mod reasons;

use std::collections::BTreeMap;

use rungwise_formats::net_dev::{self, Device};
use rungwise_formats::{flat, per_cpu, snmp};
use rungwise_model::evidence::{Absence, Evidence, Kind, Origin, Subject};
use rungwise_model::kernel::{Answer, Question};
use rungwise_model::keys;

pub use counters::{LOSSES, Loss, ORDINARY};
pub use reasons::{COUNTED, Counted, UNCOUNTED};

use crate::{Cost, Probe, Rate, Source, When, Window};

const SNMP: &str = "/proc/net/snmp";
const NETSTAT: &str = "/proc/net/netstat";
const SNMP6: &str = "/proc/net/snmp6";
const DEV: &str = "/proc/net/dev";
const STAT: &str = "/proc/net/stat/*";
/// Files of [`STAT`], each a table with a row per CPU.
const TABLES: [&str; 5] = [
    "arp_cache",
    "ndisc_cache",
    "nf_conntrack",
    "rt_cache",
    "synproxy",
];

/// Files of a name and a number per line, which exist if their module is loaded, and the groups of their counters.
const FLAT: [(&str, &str); 3] = [
    ("/proc/net/sctp/snmp", "sctp"),
    ("/proc/net/tls_stat", "tls_stat"),
    ("/proc/net/xfrm_stat", "xfrm_stat"),
];

/// The probe.
pub(crate) static PROBE: Probe = Probe {
    id: "proc-net-losses",
    summary: "all counters of lost or failed packets, connections and look-ups",
    cost: Cost::Free,
    needs: &[],
    sources: &[
        Source::each(SNMP),
        Source::each(NETSTAT),
        Source::each(SNMP6),
        Source::each(DEV),
        Source::each(STAT),
        Source::ends(FLAT[0].0),
        Source::ends(FLAT[1].0),
        Source::ends(FLAT[2].0),
        Source::ask(Question::Devices, When::Ends),
    ],
    yields: &[&keys::LOSS_COUNTERS, &keys::LOSS_RATE, &keys::LOSS_SHARE],
    derive,
    doc: "\
All counters of losses, refusals and failures in `/proc/net/snmp`, `netstat`, `snmp6` and `/proc/net/stat`, of IPsec \
(`xfrm_stat`), TLS in the kernel (`tls_stat`) and SCTP where these are in use, and the \
columns `errs` and `drop` of `/proc/net/dev`, of one network namespace; of the statistics of drivers (`ethtool -S`) the \
largest of each device and direction whose name indicates a loss, if it exceeds what the kernel counts, and limits of the cloud. Only those that grew in the window have a \
rate. The share is relative to the traffic at the same place: packets, segments, opened connections, datagrams, \
packets of the device. Drops for a reason that no such counter covers are added by their reason, as a share of the \
packets that this namespace received; they are counted for the whole machine. Counters that are sums of others, or that only count consequences, are excluded. Sources: \
net/ipv4/proc.c, net/ipv6/proc.c, net/core/neighbour.c, net/core/net-procfs.c of Linux 6.18; \
Documentation/networking/snmp_counter.rst.",
};

/// The traffic that a loss is a share of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Of {
    /// IPv4 packets received and sent.
    Packets,
    /// IPv6 packets received and sent.
    Packets6,
    /// TCP segments received and sent, including retransmissions.
    Segments,
    /// TCP connections opened or attempted from either side.
    Opens,
    /// UDP datagrams over IPv4, including lost ones.
    Datagrams,
    /// UDP datagrams over IPv6.
    Datagrams6,
    /// ICMP messages.
    Messages,
    /// `ICMPv6` messages.
    Messages6,
    /// Look-ups of neighbours.
    Lookups,
    /// SCTP packets received and sent.
    Sctp,
}

impl Of {
    /// The counters that add up to it.
    pub(in crate::net) fn counters(self) -> &'static [(&'static str, &'static str)] {
        match self {
            Self::Packets => &[("Ip", "InReceives"), ("Ip", "OutRequests")],
            Self::Packets6 => &[("Ip6", "InReceives"), ("Ip6", "OutRequests")],
            Self::Segments => &[
                ("Tcp", "InSegs"),
                ("Tcp", "OutSegs"),
                ("Tcp", "RetransSegs"),
            ],
            Self::Opens => &[
                ("Tcp", "ActiveOpens"),
                ("Tcp", "PassiveOpens"),
                ("TcpExt", "ListenDrops"),
            ],
            Self::Datagrams => &[
                ("Udp", "InDatagrams"),
                ("Udp", "InErrors"),
                ("Udp", "NoPorts"),
                ("Udp", "OutDatagrams"),
            ],
            Self::Datagrams6 => &[
                ("Udp6", "InDatagrams"),
                ("Udp6", "InErrors"),
                ("Udp6", "NoPorts"),
                ("Udp6", "OutDatagrams"),
            ],
            Self::Messages => &[("Icmp", "InMsgs"), ("Icmp", "OutMsgs")],
            Self::Messages6 => &[("Icmp6", "InMsgs"), ("Icmp6", "OutMsgs")],
            Self::Sctp => &[("sctp", "SctpInSCTPPacks"), ("sctp", "SctpOutSCTPPacks")],
            Self::Lookups => &[("arp_cache", "lookups"), ("ndisc_cache", "lookups")],
        }
    }
}

type Name<'a> = (&'a str, &'a str);

fn derive(window: &Window<'_>, evidence: &mut Evidence) {
    let (rates, failed) = read(window);
    if let Some(why) = failed.filter(|_| rates.is_empty()) {
        return evidence.absent(PROBE.yields, &why, SNMP);
    }
    let mut counted = 0;
    for loss in LOSSES {
        let Some(rate) = rates.get(&(loss.group, loss.name)) else {
            continue;
        };
        counted += 1;
        let parts = loss.of.counters().iter();
        let whole: f64 = parts.filter_map(|name| Some(rates.get(name)?.per_s)).sum();
        tell(evidence, (loss.group, loss.name), rate, whole, loss.meaning);
    }
    counted += devices(window, evidence);
    dropped(window, evidence);
    let origin = Origin::new("/proc/net", format!("{counted} counters at both ends"));
    evidence.number(
        &keys::LOSS_COUNTERS,
        Subject::host(),
        f64::from(counted),
        origin,
    );
    let none = Absence::none("no counter of losses grew");
    evidence.absent(&[&keys::LOSS_RATE, &keys::LOSS_SHARE], &none, "/proc/net");
}

/// Adds a counter that grew.
fn tell(evidence: &mut Evidence, (group, name): Name<'_>, rate: &Rate, whole: f64, meaning: &str) {
    if rate.delta <= 0.0 {
        return;
    }
    let subject = Subject::new(Kind::Counter, format_args!("{group}:{name}"));
    let origin = Origin::new(
        "/proc/net",
        format!("{group} {name} ({meaning}) {}", rate.line()),
    );
    let share = if whole > 0.0 {
        (rate.per_s / whole).min(1.0)
    } else {
        1.0
    };
    evidence.series(
        &keys::LOSS_RATE,
        subject.clone(),
        rate.per_s,
        rate.series.clone(),
        origin.clone(),
    );
    evidence.number(&keys::LOSS_SHARE, subject, share, origin);
}

/// A file and what reads it.
type Parser<'a> = (&'static str, fn(&'a str) -> snmp::Counters<'a>);

/// Rates of all counters by group and name, and why one of the two main files has none.
fn read<'a>(window: &Window<'a>) -> (BTreeMap<Name<'a>, Rate>, Option<Absence>) {
    let mut all = BTreeMap::new();
    let mut failed = None;
    let parsers: [Parser<'a>; 3] = [
        (SNMP, snmp::parse),
        (NETSTAT, snmp::parse),
        (SNMP6, snmp::parse6),
    ];
    for (path, parse) in parsers {
        let as_numbers = |text| parse(text).into_iter().map(|(name, n)| (name, n as f64));
        match window.rates(path, |text| as_numbers(text).collect()) {
            Ok(rates) => all.extend(rates),
            // A kernel without IPv6 has no such file.
            Err(_) if path == SNMP6 => {}
            Err(why) => failed = Some(why),
        }
    }
    for (path, group) in FLAT {
        let of_group = |text| {
            let counters = flat::parse(text).into_iter();
            counters
                .map(|(name, n)| ((group, name), n as f64))
                .collect()
        };
        all.extend(window.rates(path, of_group).unwrap_or_default());
    }
    for table in TABLES {
        let sums = |text| {
            let sums = per_cpu::sums(text, 16).into_iter();
            sums.map(|(name, sum)| ((table, name), sum as f64))
                .collect()
        };
        // A missing table belongs to a module that is not loaded.
        all.extend(
            window
                .rates(&format!("/proc/net/stat/{table}"), sums)
                .unwrap_or_default(),
        );
    }
    (all, failed)
}

type Column = (&'static str, &'static str, fn(&Device) -> u64);

/// Columns of `/proc/net/dev` that count losses.
const COLUMNS: [Column; 4] = [
    ("rx_errors", "received packets with errors", |device| {
        device.rx_errors
    }),
    ("rx_dropped", "received packets dropped", |device| {
        device.rx_dropped
    }),
    ("tx_errors", "packets that could not be sent", |device| {
        device.tx_errors
    }),
    ("tx_dropped", "packets dropped on transmit", |device| {
        device.tx_dropped
    }),
];

/// Adds the losses of devices; returns the number of counters read.
fn devices(window: &Window<'_>, evidence: &mut Evidence) -> u32 {
    let mut counted = 0;
    let mut passed_by: BTreeMap<(&str, &str), f64> = BTreeMap::new();
    let mut lost_by = passed_by.clone();
    for (name, meaning, column) in COLUMNS {
        let of = |column: fn(&Device) -> u64| {
            let parse = move |text| {
                net_dev::parse(text)
                    .into_iter()
                    .map(move |(name, device)| (name, column(&device) as f64))
                    .collect()
            };
            window.rates(DEV, parse).unwrap_or_default()
        };
        let direction = &name[..2];
        let packets = of(if direction == "rx" {
            |device| device.rx_packets
        } else {
            |device| device.tx_packets
        });
        for (device, rate) in of(column) {
            counted += 1;
            let passed = packets.get(device).map_or(0.0, |packets| packets.per_s);
            passed_by.insert((device, direction), passed);
            *lost_by.entry((device, direction)).or_default() += rate.per_s;
            tell(
                evidence,
                (device, name),
                &rate,
                passed + rate.per_s,
                meaning,
            );
        }
    }
    counted + drivers::add(window, &passed_by, &lost_by, evidence)
}

/// Adds packets that were dropped, but not counted in `/proc/net`, as a share of the packets that devices received.
fn dropped(window: &Window<'_>, evidence: &mut Evidence) {
    let Ok(Answer::Events(events)) = window.answer("events") else {
        return;
    };
    let seconds = events.drop_seconds.unwrap_or(events.seconds);
    let received = |text| {
        let devices = net_dev::parse(text).into_iter();
        devices
            .map(|(name, device)| (name, device.rx_packets as f64))
            .collect()
    };
    let Ok(received) = window.rates(DEV, received) else {
        return;
    };
    let whole: f64 = received.values().map(|rate| rate.per_s).sum();
    for (reason, meaning) in UNCOUNTED {
        let count = events.drops.get(*reason).copied().unwrap_or_default();
        if count == 0 || seconds <= 0.0 {
            continue;
        }
        let per_s = count as f64 / seconds;
        let subject = Subject::new(Kind::Counter, format_args!("skb:{reason}"));
        let line = format!("{reason} ({meaning}) {count} in {seconds:.2} s");
        let origin = Origin::new("skb:kfree_skb", line);
        let share = if whole > 0.0 {
            (per_s / whole).min(1.0)
        } else {
            1.0
        };
        evidence.number(&keys::LOSS_RATE, subject.clone(), per_s, origin.clone());
        evidence.number(&keys::LOSS_SHARE, subject, share, origin);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rungwise_model::kernel::Events;

    use crate::capture::{Capture, Moment, Raw, Reply};

    fn window(texts: [(&str, [&str; 2]); 2]) -> Capture {
        let moments = [0, 1].map(|at| Moment {
            at_s: at as f64 * 10.0,
            files: texts
                .iter()
                .map(|(path, ends)| ((*path).to_owned(), Raw::Text(ends[at].to_owned())))
                .collect(),
            ..Moment::default()
        });
        Capture {
            moments: moments.into(),
            ..Capture::default()
        }
    }

    #[test]
    fn a_counter_that_grew_has_a_rate_and_a_share_of_what_passed() {
        let capture = window([
            (
                SNMP,
                [
                    "Udp: InDatagrams NoPorts InErrors OutDatagrams SndbufErrors\nUdp: 0 0 0 0 0\n",
                    "Udp: InDatagrams NoPorts InErrors OutDatagrams SndbufErrors\nUdp: 400 0 0 600 10\n",
                ],
            ),
            (
                DEV,
                [
                    "eth0: 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0\n",
                    "eth0: 0 0 0 0 0 0 0 0 0 90 0 10 0 0 0 0\n",
                ],
            ),
        ]);
        let mut evidence = Evidence::over(10.0);
        derive(&Window::of(&capture), &mut evidence);
        let of = |key, name: &str| {
            evidence
                .quantity(key, &Subject::new(Kind::Counter, name))
                .unwrap()
                .value
        };
        for (key, name, expected) in [
            (&keys::LOSS_RATE, "Udp:SndbufErrors", 1.0),
            (&keys::LOSS_SHARE, "Udp:SndbufErrors", 0.01),
            (&keys::LOSS_SHARE, "eth0:tx_dropped", 0.1),
        ] {
            assert!((of(key, name) - expected).abs() < 1e-9, "{} {name}", key.id);
        }
        assert_eq!(evidence.each(&keys::LOSS_RATE).unwrap().len(), 2);
        // NoPorts and SndbufErrors; the four columns of the device.
        let counters = evidence.host(&keys::LOSS_COUNTERS).unwrap();
        assert!((counters.value - 6.0).abs() < 1e-9);
    }

    #[test]
    fn a_drop_that_no_counter_covers_is_a_loss_by_its_reason() {
        let mut capture = window([
            (
                SNMP,
                ["Udp: InDatagrams\nUdp: 0\n", "Udp: InDatagrams\nUdp: 400\n"],
            ),
            (
                DEV,
                [
                    "eth0: 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0\n",
                    "eth0: 0 1000 0 0 0 0 0 0 0 90 0 0 0 0 0 0\n",
                ],
            ),
        ]);
        let drops = [
            ("NOT_SPECIFIED".to_owned(), 250),
            ("NO_SOCKET".to_owned(), 9),
        ];
        let events = Events {
            seconds: 2.0,
            drop_seconds: Some(10.0),
            drops: drops.into(),
            ..Events::default()
        };
        let last = capture.moments.last_mut().unwrap();
        last.answers
            .insert("events".to_owned(), Reply::Answer(Answer::Events(events)));
        let mut evidence = Evidence::over(10.0);
        derive(&Window::of(&capture), &mut evidence);
        let shares = evidence.each(&keys::LOSS_SHARE).unwrap();
        let found: Vec<_> = shares
            .iter()
            .map(|(subject, share)| (subject.name(), share.value))
            .collect();
        assert_eq!(found, [("skb:NOT_SPECIFIED", 0.25)]);
    }

    #[test]
    fn no_counter_is_both_a_loss_and_ordinary() {
        for loss in LOSSES {
            let ordinary = ORDINARY.iter().find(|(group, _)| *group == loss.group);
            assert!(
                ordinary.is_some_and(|(_, names)| !names.contains(&loss.name)),
                "{loss:?}"
            );
            assert!(!loss.meaning.ends_with('.'), "{loss:?}");
        }
    }
}
