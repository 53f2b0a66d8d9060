//! Counters of IP, TCP and UDP: `/proc/net/snmp`, `netstat` and `snmp6`.
//!
//! A table lists the counters of each key. The first must exist; the others, mainly those of IPv6, are added if the
//! kernel has them. TCP counts both families in one place. Source: net/ipv4/proc.c and net/ipv6/proc.c (Linux 6.18);
//! `Documentation/networking/snmp_counter.rst`.

use std::collections::BTreeMap;

use rungwise_formats::snmp::{self, Counters};
use rungwise_model::evidence::{Absence, Evidence, Key, Origin, Subject};
use rungwise_model::keys;

use super::rates::{self, Named, Sum};
use crate::{Cost, Probe, Rate, Source, Window};

const SNMP: &str = "/proc/net/snmp";
const NETSTAT: &str = "/proc/net/netstat";
const SNMP6: &str = "/proc/net/snmp6";
/// What is cited as the source of numbers of several files.
const ALL: &str = "/proc/net/{snmp,netstat,snmp6}";

/// The probe.
pub(crate) static PROBE: Probe = Probe {
    id: "proc-net-snmp",
    summary: "packet, loss and retransmission counters of IP, TCP and UDP",
    cost: Cost::Free,
    needs: &[],
    sources: &[
        Source::each(SNMP),
        Source::each(NETSTAT),
        Source::each(SNMP6),
    ],
    yields: &[
        &keys::IP_DISCARDED,
        &keys::IP_FORWARDED,
        &keys::IP_FRAGMENTS_SHARE,
        &keys::IP_MALFORMED,
        &keys::IP_NO_ROUTE,
        &keys::IP_REASSEMBLY_FAILED,
        &keys::IP_RECEIVED,
        &keys::IP_REVERSE_PATH,
        &keys::TCP_ATTEMPTS_FAILED,
        &keys::TCP_CONNECTS,
        &keys::TCP_DUPLICATES_REPORTED,
        &keys::TCP_LISTEN_DROPS,
        &keys::TCP_LISTEN_OVERFLOWS,
        &keys::TCP_LOST_RETRANSMIT,
        &keys::TCP_MEM_PRESSURES,
        &keys::TCP_MTUP_FAIL,
        &keys::TCP_OPENED,
        &keys::TCP_OUT_OF_ORDER,
        &keys::TCP_RESETS_SENT,
        &keys::TCP_RESET_UNREAD,
        &keys::TCP_RETRANSMITTED,
        &keys::TCP_RETRANS_SHARE,
        &keys::TCP_SEGMENTS_DROPPED,
        &keys::TCP_SYNQ_FULL,
        &keys::TCP_SYN_RETRANS_SHARE,
        &keys::TCP_TIMEOUTS,
        &keys::TCP_ZERO_WINDOW_PROBES,
        &keys::UDP_CHECKSUM,
        &keys::UDP_MEM_ERRORS,
        &keys::UDP_NO_PORTS,
        &keys::UDP_RCVBUF_DROPS,
        &keys::UDP_RCVBUF_SHARE,
        &keys::UDP_RECEIVED,
        &keys::UDP_SENT,
        &keys::UDP_SHARE,
        &keys::UDP_SNDBUF_DROPS,
    ],
    derive,
    doc: "\
The counters are those of one network namespace. `InDatagrams` of UDP counts reads by programs, not arrivals, so \
arrivals are InDatagrams + InErrors + NoPorts; InErrors includes RcvbufErrors and MemErrors. `InReceives` of IP counts \
packets after GRO: forty merged segments are one. Some kernels also count probes of a closed window as \
retransmissions: a stalled reader is not a lossy link. `MemErrors` of UDP exists since Linux 5.12. OutNoRoutes grows \
with each connect to an unreachable network, so a laptop without IPv6 has some. Sources: net/ipv4/proc.c, \
net/ipv6/proc.c, net/ipv4/udp.c of Linux 6.18; Documentation/networking/snmp_counter.rst.",
};

type Name = (&'static str, &'static str);

/// Keys that are a sum of counters.
static SUMS: &[(&Key, &[Name])] = &[
    (
        &keys::IP_DISCARDED,
        &[
            ("Ip", "InDiscards"),
            ("Ip", "OutDiscards"),
            ("Ip6", "InDiscards"),
            ("Ip6", "OutDiscards"),
        ],
    ),
    (
        &keys::IP_FORWARDED,
        &[("Ip", "ForwDatagrams"), ("Ip6", "OutForwDatagrams")],
    ),
    (
        &keys::IP_MALFORMED,
        &[
            ("Ip", "InHdrErrors"),
            ("Ip", "InAddrErrors"),
            ("Ip", "InUnknownProtos"),
            ("IpExt", "InTruncatedPkts"),
            ("Ip6", "InHdrErrors"),
            ("Ip6", "InAddrErrors"),
            ("Ip6", "InUnknownProtos"),
            ("Ip6", "InTruncatedPkts"),
        ],
    ),
    (
        &keys::IP_NO_ROUTE,
        &[
            ("Ip", "OutNoRoutes"),
            ("IpExt", "InNoRoutes"),
            ("Ip6", "OutNoRoutes"),
            ("Ip6", "InNoRoutes"),
        ],
    ),
    (&keys::IP_RECEIVED, RECEIVED),
    (
        &keys::IP_REASSEMBLY_FAILED,
        &[("Ip", "ReasmFails"), ("Ip6", "ReasmFails")],
    ),
    (
        &keys::TCP_DUPLICATES_REPORTED,
        &[("TcpExt", "TCPDSACKRecv"), ("TcpExt", "TCPDSACKOfoRecv")],
    ),
    (&keys::TCP_CONNECTS, &[("Tcp", "ActiveOpens")]),
    (
        &keys::TCP_OPENED,
        &[("Tcp", "PassiveOpens"), ("Tcp", "ActiveOpens")],
    ),
    (
        &keys::TCP_OUT_OF_ORDER,
        &[
            ("TcpExt", "TCPSACKReorder"),
            ("TcpExt", "TCPTSReorder"),
            ("TcpExt", "TCPRenoReorder"),
        ],
    ),
    (
        &keys::TCP_RESET_UNREAD,
        &[("TcpExt", "TCPAbortOnClose"), ("TcpExt", "TCPAbortOnData")],
    ),
    (&keys::TCP_ATTEMPTS_FAILED, &[("Tcp", "AttemptFails")]),
    (&keys::TCP_RESETS_SENT, &[("Tcp", "OutRsts")]),
    (&keys::TCP_RETRANSMITTED, &[("Tcp", "RetransSegs")]),
    (
        &keys::UDP_SNDBUF_DROPS,
        &[("Udp", "SndbufErrors"), ("Udp6", "SndbufErrors")],
    ),
    (&keys::IP_REVERSE_PATH, &[("TcpExt", "IPReversePathFilter")]),
    (&keys::TCP_LISTEN_DROPS, &[("TcpExt", "ListenDrops")]),
    (
        &keys::TCP_LISTEN_OVERFLOWS,
        &[("TcpExt", "ListenOverflows")],
    ),
    (
        &keys::TCP_LOST_RETRANSMIT,
        &[("TcpExt", "TCPLostRetransmit")],
    ),
    (
        &keys::TCP_MEM_PRESSURES,
        &[("TcpExt", "TCPMemoryPressures")],
    ),
    (&keys::TCP_MTUP_FAIL, &[("TcpExt", "TCPMTUPFail")]),
    (
        &keys::TCP_SEGMENTS_DROPPED,
        &[
            ("Tcp", "InErrs"),
            ("TcpExt", "PFMemallocDrop"),
            ("TcpExt", "TCPBacklogDrop"),
            ("TcpExt", "TCPOFODrop"),
            ("TcpExt", "TCPRcvQDrop"),
            ("TcpExt", "TCPZeroWindowDrop"),
        ],
    ),
    (
        &keys::TCP_SYNQ_FULL,
        &[
            ("TcpExt", "TCPReqQFullDrop"),
            ("TcpExt", "TCPReqQFullDoCookies"),
        ],
    ),
    (&keys::TCP_TIMEOUTS, &[("TcpExt", "TCPTimeouts")]),
    (&keys::TCP_ZERO_WINDOW_PROBES, &[("TcpExt", "TCPWinProbe")]),
    (
        &keys::UDP_CHECKSUM,
        &[("Udp", "InCsumErrors"), ("Udp6", "InCsumErrors")],
    ),
    (
        &keys::UDP_MEM_ERRORS,
        &[("Udp", "MemErrors"), ("Udp6", "MemErrors")],
    ),
    (
        &keys::UDP_NO_PORTS,
        &[("Udp", "NoPorts"), ("Udp6", "NoPorts")],
    ),
    (&keys::UDP_RCVBUF_DROPS, RCVBUF_ERRORS),
    (
        &keys::UDP_RECEIVED,
        &[("Udp", "InDatagrams"), ("Udp6", "InDatagrams")],
    ),
    (
        &keys::UDP_SENT,
        &[("Udp", "OutDatagrams"), ("Udp6", "OutDatagrams")],
    ),
];

/// Keys that are the share of a sum in another.
static SHARES: &[(&Key, &[Name], &[Name])] = &[
    (
        &keys::IP_FRAGMENTS_SHARE,
        &[
            ("Ip", "ReasmReqds"),
            ("Ip", "FragCreates"),
            ("Ip6", "ReasmReqds"),
            ("Ip6", "FragCreates"),
        ],
        &[
            ("Ip", "InReceives"),
            ("Ip", "OutRequests"),
            ("Ip6", "InReceives"),
            ("Ip6", "OutRequests"),
        ],
    ),
    (
        &keys::TCP_RETRANS_SHARE,
        &[("Tcp", "RetransSegs")],
        // A segment that is sent again is no part of OutSegs (`__tcp_transmit_skb` of Linux 4.0 and later).
        &[("Tcp", "OutSegs"), ("Tcp", "RetransSegs")],
    ),
    (
        &keys::TCP_SYN_RETRANS_SHARE,
        &[("TcpExt", "TCPSynRetrans")],
        &[("Tcp", "RetransSegs")],
    ),
    (&keys::UDP_RCVBUF_SHARE, RCVBUF_ERRORS, UDP_ARRIVED),
    (&keys::UDP_SHARE, UDP_ARRIVED, RECEIVED),
];

const RECEIVED: &[Name] = &[("Ip", "InReceives"), ("Ip6", "InReceives")];
const RCVBUF_ERRORS: &[Name] = &[("Udp", "RcvbufErrors"), ("Udp6", "RcvbufErrors")];
const UDP_ARRIVED: &[Name] = &[
    ("Udp", "InDatagrams"),
    ("Udp", "InErrors"),
    ("Udp", "NoPorts"),
    ("Udp6", "InDatagrams"),
    ("Udp6", "InErrors"),
    ("Udp6", "NoPorts"),
];

fn derive(window: &Window<'_>, evidence: &mut Evidence) {
    let read = Read::of(window);
    for (key, counters) in SUMS {
        match read.sum(counters) {
            Ok(sum) => sum.add(evidence, key, Subject::host(), ALL),
            Err(why) => evidence.absent(&[key], &why, ALL),
        }
    }
    for (key, part, whole) in SHARES {
        match read.share(part, whole) {
            Ok((share, series, origin)) => {
                evidence.series(key, Subject::host(), share, series, origin);
            }
            Err(why) => evidence.absent(&[key], &why, ALL),
        }
    }
}

/// Contents of the three files.
struct Read<'a> {
    rates: BTreeMap<(&'a str, &'a str), Rate>,
    /// Why the counters of IPv4 and TCP are missing: by their protocol's file.
    failed: BTreeMap<&'static str, Absence>,
}

impl<'a> Read<'a> {
    fn of(window: &Window<'a>) -> Self {
        let mut read = Self {
            rates: BTreeMap::new(),
            failed: BTreeMap::new(),
        };
        read.file(window, SNMP, snmp::parse);
        read.file(window, NETSTAT, snmp::parse);
        read.file(window, SNMP6, snmp::parse6);
        read
    }

    fn file(
        &mut self,
        window: &Window<'a>,
        path: &'static str,
        parse: impl Fn(&'a str) -> Counters<'a>,
    ) {
        let as_numbers = |text| parse(text).into_iter().map(|(name, n)| (name, n as f64));
        match window.rates(path, |text| as_numbers(text).collect()) {
            Ok(rates) => self.rates.extend(rates),
            Err(why) => {
                self.failed.insert(path, why);
            }
        }
    }

    fn sum(&self, counters: &[Name]) -> Result<Sum, Absence> {
        let first = *counters.first().expect("no key is a sum of nothing");
        if !self.rates.contains_key(&first) {
            return Err(self.missing(first));
        }
        let parts: Vec<_> = counters
            .iter()
            .filter_map(|name| Some((format!("{} {}", name.0, name.1), self.rates.get(name)?)))
            .collect();
        let named = parts.iter().map(|(name, rate)| Named { name, rate });
        Ok(Sum::of(named).expect("the first is there"))
    }

    fn share(&self, part: &[Name], whole: &[Name]) -> Result<(f64, Vec<f64>, Origin), Absence> {
        let (part, whole) = (self.sum(part)?, self.sum(whole)?);
        let line = format!("{} of {}", part.line, whole.line);
        let (share, series) = rates::share(&part.rate, &whole.rate).ok_or_else(|| {
            Absence::because(format!("the part grew but the whole did not: {line}"))
        })?;
        Ok((share, series, Origin::new(ALL, line)))
    }

    fn missing(&self, (protocol, name): Name) -> Absence {
        let path = match protocol {
            "TcpExt" | "IpExt" => NETSTAT,
            _ => SNMP,
        };
        self.failed.get(path).cloned().unwrap_or_else(|| {
            Absence::because(format!(
                "this kernel has no counter {protocol} {name}, or it was reset during the window"
            ))
        })
    }
}
