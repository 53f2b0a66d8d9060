//! Memory of all TCP and UDP sockets, and the pressure thresholds: `/proc/net/sockstat`.
//!
//! Both files count pages. No file contains the page size directly; it follows from a number printed in pages and in
//! kilobytes: the size of our own address space, in `statm` and `status`. Sources: net/ipv4/proc.c,
//! `fs/proc/task_mmu.c` (Linux 6.18).

use rungwise_formats::{fields, snmp};
use rungwise_model::evidence::{Absence, Evidence, Key, Origin, Subject};
use rungwise_model::keys;

use crate::{Cost, Probe, Source, Window};

const SOCKSTAT: &str = "/proc/net/sockstat";
const TCP_MEM: &str = "/proc/sys/net/ipv4/tcp_mem";
const UDP_MEM: &str = "/proc/sys/net/ipv4/udp_mem";
const STATM: &str = "/proc/self/statm";
const STATUS: &str = "/proc/self/status";

/// The probe.
pub(crate) static PROBE: Probe = Probe {
    id: "proc-net-sockstat",
    summary: "memory of all TCP and UDP sockets, and the pressure thresholds",
    cost: Cost::Free,
    needs: &[],
    sources: &[
        Source::each(SOCKSTAT),
        Source::once(TCP_MEM),
        Source::once(UDP_MEM),
        Source::once(STATM),
        Source::once(STATUS),
    ],
    yields: &[
        &keys::TCP_MEM,
        &keys::TCP_MEM_PRESSURE,
        &keys::UDP_MEM,
        &keys::UDP_MEM_PRESSURE,
    ],
    derive,
    doc: "\
The kernel accounts socket memory for the whole machine, so `mem` is the same in every network namespace, and tcp_mem \
and udp_mem are visible in the initial one only: in a container the thresholds are absent. Up to 1 MiB per CPU is \
reserved in advance, so `mem` changes in steps. The page size (4, 16 or 64 KiB) is derived from the size of this \
process in pages and in kilobytes; free memory is not suitable, since its two figures differ by a factor of two and \
more under a hypervisor that reclaims pages. Sources: net/ipv4/proc.c, include/net/sock.h of Linux 6.18.",
};

fn derive(window: &Window<'_>, evidence: &mut Evidence) {
    let page = match page_bytes(window) {
        Ok(page) => page,
        Err(why) => return evidence.absent(PROBE.yields, &why, STATM),
    };
    used(window, evidence, &keys::TCP_MEM, "TCP", page);
    used(window, evidence, &keys::UDP_MEM, "UDP", page);
    mark(window, evidence, &keys::TCP_MEM_PRESSURE, TCP_MEM, page);
    mark(window, evidence, &keys::UDP_MEM_PRESSURE, UDP_MEM, page);
}

fn used(
    window: &Window<'_>,
    evidence: &mut Evidence,
    key: &'static Key,
    protocol: &str,
    page: f64,
) {
    let pages = |text| snmp::parse_sockstat(text).get(&(protocol, "mem")).copied();
    let course: Vec<u64> = match window.texts(SOCKSTAT) {
        Ok(texts) => texts
            .into_iter()
            .filter_map(|(_, text)| pages(text))
            .collect(),
        Err(why) => return evidence.absent(&[key], &why, SOCKSTAT),
    };
    let Some(last) = course.last() else {
        let why = Absence::because(format!("{SOCKSTAT} shows no memory of {protocol}"));
        return evidence.absent(&[key], &why, SOCKSTAT);
    };
    evidence.series(
        key,
        Subject::host(),
        *last as f64 * page,
        course.iter().map(|pages| *pages as f64 * page).collect(),
        Origin::new(
            SOCKSTAT,
            format!("{protocol}: mem {last} pages of {page} B"),
        ),
    );
}

fn mark(
    window: &Window<'_>,
    evidence: &mut Evidence,
    key: &'static Key,
    path: &'static str,
    page: f64,
) {
    let text = match window.text(path) {
        Ok(text) => text.trim(),
        Err(why) => {
            // Every kernel has it, and shows it to the first namespace alone (net/ipv4/sysctl_net_ipv4.c).
            let why = match window.text(SOCKSTAT) {
                Ok(_) if why.reason.starts_with("this kernel has no") => Absence::because(format!(
                    "{path} is visible only in the network namespace of the host"
                ))
                .remedy("run rungwise on the host"),
                _ => why,
            };
            return evidence.absent(&[key], &why, path);
        }
    };
    // Low, pressure, high.
    let pages = text.split_ascii_whitespace().nth(1).map(str::parse::<u64>);
    let Some(Ok(pages)) = pages else {
        let why = Absence::because(format!(
            "{path} contains '{text}', which is not three numbers"
        ));
        return evidence.absent(&[key], &why, path);
    };
    let origin = Origin::new(path, format!("{text} pages of {page} B"));
    evidence.number(key, Subject::host(), pages as f64 * page, origin);
}

/// Bytes per page. The process may grow between the two reads; pages differ by a factor of two at least.
fn page_bytes(window: &Window<'_>) -> Result<f64, Absence> {
    let unknown = || Absence::because("the page size could not be determined");
    let statm = window.text(STATM)?.split_ascii_whitespace().next();
    let pages: Option<u64> = statm.and_then(|pages| pages.parse().ok());
    let bytes = fields::number(window.text(STATUS)?, "VmSize").ok_or_else(unknown)?;
    let ratio = bytes as f64 / pages.ok_or_else(unknown)? as f64;
    let page = ratio.log2().round().exp2();
    // x86 has pages of 4 KiB; arm64 and powerpc have 64 KiB at most.
    (4096.0..=65536.0)
        .contains(&page)
        .then_some(page)
        .ok_or_else(unknown)
}
