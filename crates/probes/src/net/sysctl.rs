//! Sysctls of the network stack: `/proc/sys/net`.
//!
//! Values are reported unchanged; rules judge them, and the defaults depend on the kernel. Source:
//! Documentation/networking/ip-sysctl.rst and admin-guide/sysctl/net.rst (Linux 6.18).

use rungwise_model::evidence::{Absence, Evidence, Key, Origin, Subject};
use rungwise_model::keys;

use crate::{Cost, Probe, Source, Window, enter};

const CONGESTION: &str = "/proc/sys/net/ipv4/tcp_congestion_control";
const RP_FILTER: &str = "/proc/sys/net/ipv4/conf/*/rp_filter";
const RP_FILTER_ALL: &str = "/proc/sys/net/ipv4/conf/all/rp_filter";
const RP_FILTER_NEW: &str = "/proc/sys/net/ipv4/conf/default/rp_filter";
const EARLY_DEMUX: &[&str] = &[
    "/proc/sys/net/ipv4/ip_early_demux",
    "/proc/sys/net/ipv4/udp_early_demux",
];

/// Keys that are the number in a file.
static NUMBERS: &[(&Key, &str)] = &[
    (
        &keys::RFS_ENTRIES,
        "/proc/sys/net/core/rps_sock_flow_entries",
    ),
    (
        &keys::SOFTNET_BACKLOG,
        "/proc/sys/net/core/netdev_max_backlog",
    ),
    (&keys::SOFTNET_BUDGET, "/proc/sys/net/core/netdev_budget"),
    (
        &keys::SOFTNET_BUDGET_USECS,
        "/proc/sys/net/core/netdev_budget_usecs",
    ),
    (
        &keys::TCP_SLOW_START_IDLE,
        "/proc/sys/net/ipv4/tcp_slow_start_after_idle",
    ),
];

/// TCP sysctls that cost throughput or safety when off, by their common name.
const FLAGS: &[(&str, &str)] = &[
    ("moderate_rcvbuf", "/proc/sys/net/ipv4/tcp_moderate_rcvbuf"),
    ("sack", "/proc/sys/net/ipv4/tcp_sack"),
    ("syncookies", "/proc/sys/net/ipv4/tcp_syncookies"),
    ("timestamps", "/proc/sys/net/ipv4/tcp_timestamps"),
    ("window_scaling", "/proc/sys/net/ipv4/tcp_window_scaling"),
];

/// The probe.
pub(crate) static PROBE: Probe = Probe {
    id: "proc-sys-net",
    summary: "sysctls of the network stack that rules compare with their observations",
    cost: Cost::Free,
    needs: &[],
    sources: &[
        Source::once("/proc/sys/net/core/netdev_budget"),
        Source::once("/proc/sys/net/core/netdev_budget_usecs"),
        Source::once("/proc/sys/net/core/netdev_max_backlog"),
        Source::once("/proc/sys/net/core/rps_sock_flow_entries"),
        Source::once(RP_FILTER),
        Source::once("/proc/sys/net/ipv4/ip_early_demux"),
        Source::once(CONGESTION),
        Source::once("/proc/sys/net/ipv4/tcp_moderate_rcvbuf"),
        Source::once("/proc/sys/net/ipv4/tcp_sack"),
        Source::once("/proc/sys/net/ipv4/tcp_slow_start_after_idle"),
        Source::once("/proc/sys/net/ipv4/tcp_syncookies"),
        Source::once("/proc/sys/net/ipv4/tcp_timestamps"),
        Source::once("/proc/sys/net/ipv4/tcp_window_scaling"),
        Source::once("/proc/sys/net/ipv4/udp_early_demux"),
    ],
    yields: &[
        &keys::RFS_ENTRIES,
        &keys::ROUTE_EARLY_DEMUX,
        &keys::ROUTE_RP_FILTER,
        &keys::SOFTNET_BACKLOG,
        &keys::SOFTNET_BUDGET,
        &keys::SOFTNET_BUDGET_USECS,
        &keys::TCP_CONGESTION,
        &keys::TCP_FLAGS,
        &keys::TCP_SLOW_START_IDLE,
    ],
    derive,
    doc: "\
Most of net.ipv4 belongs to a network namespace; net.core.netdev_* and rps_sock_flow_entries belong to the machine and \
are visible in its initial namespace only, so in a container they are absent. The reverse path filter in force on a \
device is the larger of conf/all and conf/DEVICE. Early demultiplexing counts as on when both ip_early_demux and \
udp_early_demux are; kernels before 4.13 have the first only. Sources: ip-sysctl.rst and net/core/sysctl_net_core.c of \
Linux 6.18.",
};

fn derive(window: &Window<'_>, evidence: &mut Evidence) {
    for &(key, path) in NUMBERS {
        match number(window, path) {
            Ok((number, line)) => {
                evidence.number(key, Subject::host(), number, Origin::new(path, line));
            }
            Err(why) => evidence.absent(&[key], &why, path),
        }
    }
    match window.text(CONGESTION) {
        Ok(text) => {
            let origin = Origin::new(CONGESTION, text.trim());
            evidence.text(&keys::TCP_CONGESTION, Subject::host(), text.trim(), origin);
        }
        Err(why) => evidence.absent(&[&keys::TCP_CONGESTION], &why, CONGESTION),
    }
    flags(window, evidence);
    early_demux(window, evidence);
    rp_filter(window, evidence);
}

/// The number in a file, and the text.
fn number<'a>(window: &Window<'a>, path: &str) -> Result<(f64, &'a str), Absence> {
    let text = window.text(path)?.trim();
    let number: i64 = text.parse().map_err(|_| {
        Absence::because(format!("{path} contains '{text}', which is not a number"))
    })?;
    Ok((number as f64, text))
}

fn flags(window: &Window<'_>, evidence: &mut Evidence) {
    const SOURCE: &str =
        "/proc/sys/net/ipv4/tcp_{moderate_rcvbuf,sack,syncookies,timestamps,window_scaling}";
    let read: Result<Vec<_>, Absence> = FLAGS
        .iter()
        .map(|(name, path)| Ok((*name, number(window, path)?)))
        .collect();
    let read = match read {
        Ok(read) => read,
        Err(why) => return evidence.absent(&[&keys::TCP_FLAGS], &why, SOURCE),
    };
    let off: Vec<&str> = read
        .iter()
        .filter(|(_, (number, _))| *number <= 0.0)
        .map(|(name, _)| *name)
        .collect();
    let lines: Vec<String> = read
        .iter()
        .map(|(name, (_, text))| format!("tcp_{name} = {text}"))
        .collect();
    let origin = Origin::new(SOURCE, lines.join(", "));
    evidence.text(&keys::TCP_FLAGS, Subject::host(), off.join(" "), origin);
}

fn early_demux(window: &Window<'_>, evidence: &mut Evidence) {
    let read: Vec<_> = EARLY_DEMUX
        .iter()
        .map(|path| number(window, path))
        .collect();
    let key = &keys::ROUTE_EARLY_DEMUX;
    match &read[..] {
        [Err(why), ..] => evidence.absent(&[key], why, EARLY_DEMUX[0]),
        read => {
            let known: Vec<_> = read.iter().filter_map(|read| read.as_ref().ok()).collect();
            let on = known.iter().all(|(number, _)| *number > 0.0);
            let texts: Vec<&str> = known.iter().map(|(_, text)| *text).collect();
            let source = "/proc/sys/net/ipv4/{ip,udp}_early_demux";
            let origin = Origin::new(source, texts.join(", "));
            evidence.number(key, Subject::host(), f64::from(u8::from(on)), origin);
        }
    }
}

fn rp_filter(window: &Window<'_>, evidence: &mut Evidence) {
    let key = &keys::ROUTE_RP_FILTER;
    let all = match number(window, RP_FILTER_ALL) {
        Ok((all, _)) => all,
        Err(why) => return evidence.absent(&[key], &why, RP_FILTER),
    };
    for (path, stars) in window.matching(RP_FILTER) {
        let (Ok((own, _)), [device]) = (number(window, path), &stars[..]) else {
            continue;
        };
        if path != RP_FILTER_ALL && path != RP_FILTER_NEW {
            let origin = Origin::new(path, format!("{own}, and conf/all {all}"));
            evidence.number(key, Subject::device(device), own.max(all), origin);
        }
    }
    let none = Absence::because("no device has a reverse path filter");
    enter::absent_if_unset(evidence, &[key], &none, RP_FILTER);
}
