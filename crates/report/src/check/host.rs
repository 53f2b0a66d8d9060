//! The first page of the host: what it is, how loaded it is, and the tables a person looks at before any rule.

use rungwise_model::evidence::{Evidence, Key, Subject, Unit};
use rungwise_model::keys;

use super::data::{Fact, Named};
use super::fullness;
use super::readings::{self, number, shown, words};
use super::scheduling::table;
use crate::block::{Block, Table, Tile, Tone};
use crate::numbers;

/// Rows of a table.
const MOST: usize = 12;

/// Queues of a table: those of a card with as many as a large host has CPUs, in one direction.
const MOST_QUEUES: usize = 64;

pub(super) fn blocks(evidence: &Evidence) -> Vec<Block> {
    let tiles = tiles(evidence);
    let facts = facts(evidence);
    if tiles.is_empty() && facts.is_empty() {
        return Vec::new();
    }
    let mut blocks = vec![Block::section("host", "This host")];
    if !tiles.is_empty() {
        blocks.push(Block::Tiles(tiles.into_iter().map(tile).collect()));
    }
    if !facts.is_empty() {
        let facts = facts.into_iter().map(Fact::pair);
        blocks.push(Block::Facts(facts.collect()));
    }
    let picture = fullness::picture(evidence).map(|chart| Block::Chart(Box::new(chart)));
    let mut tables: Vec<Block> = picture.into_iter().collect();
    let detail = detail(evidence).into_iter();
    tables.extend(detail.map(|table| Block::Table(table.into_table())));
    if let Some(line) = command_line(evidence) {
        tables.push(Block::Prose(line.name));
        tables.push(Block::Code(vec![line.shown]));
    }
    if !tables.is_empty() {
        blocks.push(Block::Long {
            brief: String::new(),
            summary: String::new(),
            blocks: tables,
        });
    }
    blocks
}

pub(super) fn tables(evidence: &Evidence) -> Vec<Named> {
    let mut facts = facts(evidence);
    facts.extend(command_line(evidence));
    let mut tables = Named::all([
        ("load", Fact::table("Load of this host", tiles(evidence))),
        ("host", Fact::table("This host", facts)),
    ]);
    tables.extend(fullness::picture(evidence).map(Named::picture));
    tables.extend(detail(evidence));
    tables
}

fn detail(evidence: &Evidence) -> Vec<Named> {
    Named::all([
        ("devices", devices(evidence)),
        ("device-setup", device_setup(evidence)),
        ("queues", queues(evidence)),
        ("disks", disks(evidence)),
        ("udp-addresses", ports(evidence)),
        ("tcp-listeners", listeners(evidence)),
        ("tcp-connections", connections(evidence)),
    ])
}

fn tile(fact: Fact) -> Tile {
    Tile {
        label: fact.name,
        value: fact.shown,
        before: None,
        detail: fact.detail,
        tone: Tone::Plain,
    }
}

fn command_line(evidence: &Evidence) -> Option<Fact> {
    let line = words(evidence, &keys::KERNEL_CMDLINE, &Subject::host())?;
    Some(Fact::words("Kernel command line", line))
}

/// Load, in the order in which a person asks.
fn tiles(evidence: &Evidence) -> Vec<Fact> {
    let host = Subject::host();
    let value = |key| shown(evidence, key, &host);
    let of = |name, key| Fact::reading(evidence, name, key);
    // A number that is reckoned of several readings.
    let reckoned = |name: &str, raw: Option<f64>, unit: Unit, show: fn(f64) -> String| {
        raw.map(|raw| Fact {
            raw: Some(raw),
            unit,
            ..Fact::words(name, show(raw))
        })
    };
    let disk = readings::largest(evidence, &keys::DISK_BUSY, 1)
        .first()
        .and_then(|disk| number(evidence, &keys::DISK_BUSY, disk))
        .or_else(|| evidence.each(&keys::DISK_BUSY).ok().map(|_| 0.0));
    let packets = sum(evidence, &keys::DEVICE_RX_PACKETS);
    [
        of("CPU, mean", &keys::CPU_BUSY_MEAN).map(|fact| {
            fact.shown(numbers::share).detail([
                busiest(evidence, &keys::CPU_BUSY, "busiest CPU"),
                number(evidence, &keys::CPU_STEAL_MEAN, &host)
                    .filter(|share| *share > 0.0)
                    .map(|share| format!("{} stolen", numbers::share(share))),
            ])
        }),
        of("Memory available", &keys::MEMORY_AVAILABLE).map(|fact| {
            fact.shown(numbers::share).detail([
                value(&keys::MEMORY_TOTAL).map(|total| format!("of {total}")),
                value(&keys::MEMORY_SWAP_USED).map(|used| format!("{used} in swap")),
                number(evidence, &keys::MEMORY_SWAP_OUT, &host)
                    .filter(|pages| *pages > 0.0)
                    .map(|pages| format!("{} pages swapped out", numbers::rate(pages))),
            ])
        }),
        reckoned("Network in", packets, Unit::PerSecond, numbers::rate).map(|fact| {
            fact.detail([
                sum(evidence, &keys::DEVICE_RX_BYTES)
                    .map(|bytes| readings::said(&keys::DEVICE_RX_BYTES, bytes)),
                busiest(evidence, &keys::DEVICE_USE, "busiest link"),
            ])
        }),
        reckoned("Disk, busiest", disk, Unit::Fraction, numbers::share)
            .map(|fact| fact.detail([busiest(evidence, &keys::DISK_BUSY, "disk")])),
        of("TCP connections", &keys::TCP_ESTABLISHED).map(|fact| {
            let again = value(&keys::TCP_RETRANS_SHARE);
            fact.detail([again.map(|share| format!("{share} retransmitted"))])
        }),
        of("UDP in", &keys::UDP_RECEIVED).map(|fact| {
            fact.detail([
                number(evidence, &keys::UDP_RCVBUF_DROPS, &host)
                    .map(|rate| format!("{} dropped (buffer full)", numbers::rate(rate))),
                number(evidence, &keys::UDP_SENT, &host)
                    .map(|rate| format!("{} sent", numbers::rate(rate))),
            ])
        }),
    ]
    .into_iter()
    .flatten()
    .collect()
}

fn busiest(evidence: &Evidence, key: &'static Key, what: &str) -> Option<String> {
    let most = readings::largest(evidence, key, 1);
    let subject = most.first()?;
    let share = number(evidence, key, subject)?;
    Some(format!(
        "{what} {} {}",
        subject.name(),
        numbers::share(share)
    ))
}

/// Loopback carries every packet of a local service twice; it is left out of what the host receives.
fn sum(evidence: &Evidence, key: &'static Key) -> Option<f64> {
    let all = evidence.each(key).ok()?;
    let outer = all
        .iter()
        .filter(|(device, _)| words(evidence, &keys::DEVICE_KIND, device) != Some("loopback"));
    // Of nothing the sum of floats is -0.0, which a person would see.
    Some(outer.fold(0.0, |sum, (_, quantity)| sum + quantity.value))
}

/// What the host is.
fn facts(evidence: &Evidence) -> Vec<Fact> {
    let host = Subject::host();
    let value = |key| shown(evidence, key, &host);
    let joined = |parts: Vec<Option<String>>| {
        let parts: Vec<String> = parts.into_iter().flatten().collect();
        (!parts.is_empty()).then(|| parts.join(", "))
    };
    let cpus = number(evidence, &keys::CPU_ONLINE, &host);
    let nodes = number(evidence, &keys::NUMA_NODES, &host);
    let virt = joined(vec![
        words(evidence, &keys::VIRT_HYPERVISOR, &host).map(|name| match name {
            "unnamed" => "guest of an unnamed hypervisor".to_owned(),
            name => format!("guest of {name}"),
        }),
        words(evidence, &keys::VIRT_CONTAINER, &host).map(|name| format!("container of {name}")),
    ]);
    let held = |some, full, what: &str| {
        let (some, full) = (value(some)?, value(full));
        let all = full.map_or_else(String::new, |full| format!(", all tasks {full}"));
        Some(format!(
            "some tasks stalled on {what} {some} of the time{all}"
        ))
    };
    let bare = evidence.words(&keys::VIRT_HYPERVISOR, &host).is_ok();
    let of = |name, key| Fact::reading(evidence, name, key);
    let text_fact = |name: &str, words: Option<String>| Some(Fact::words(name, words?));
    [
        of("Kernel", &keys::KERNEL_RELEASE),
        text_fact(
            "CPU",
            joined(vec![
                value(&keys::CPU_MODEL),
                cpus.map(|count| numbers::plural(count as usize, "CPU")),
                nodes.map(|count| numbers::plural(count as usize, "node")),
                value(&keys::CPU_SMT).map(|smt| format!("SMT {smt}")),
            ]),
        ),
        text_fact(
            "Machine",
            joined(vec![value(&keys::BIOS_PRODUCT), value(&keys::BIOS_VENDOR)]),
        ),
        text_fact(
            "Virtualisation",
            virt.or_else(|| bare.then(|| "none detected".to_owned())),
        ),
        of("Load average", &keys::CPU_LOAD1),
        text_fact(
            "Stalled tasks",
            joined(vec![
                held(&keys::PSI_IO_SOME, &keys::PSI_IO_FULL, "I/O"),
                held(&keys::PSI_MEMORY_SOME, &keys::PSI_MEMORY_FULL, "memory"),
            ]),
        ),
        of("Dirty pages", &keys::MEMORY_DIRTY).map(|fact| Fact {
            shown: format!("{} of memory", fact.shown),
            ..fact
        }),
        of("IP packets in", &keys::IP_RECEIVED),
        text_fact(
            "Huge pages",
            joined(vec![
                value(&keys::MEMORY_THP).map(|mode| format!("transparent {mode}")),
                value(&keys::MEMORY_HUGEPAGES).map(|count| format!("{count} reserved")),
                number(evidence, &keys::MEMORY_HUGEPAGES, &host)
                    .filter(|reserved| *reserved > 0.0)
                    .and_then(|_| value(&keys::MEMORY_HUGEPAGES_FREE))
                    .map(|free| format!("{free} free")),
            ]),
        ),
        text_fact(
            "Packet filter",
            joined(vec![
                value(&keys::NETFILTER_RULES).map(|count| format!("{count} nft rules")),
                words(evidence, &keys::NETFILTER_LEGACY_TABLES, &host)
                    .map(|tables| format!("legacy tables {tables}")),
            ]),
        ),
        text_fact(
            "Security",
            joined(vec![
                value(&keys::SELINUX_ACTIVE).map(|state| format!("SELinux {state}")),
                value(&keys::KERNEL_MITIGATIONS),
            ]),
        ),
    ]
    .into_iter()
    .flatten()
    .collect()
}

fn devices(evidence: &Evidence) -> Option<Table> {
    let subjects = readings::subjects(evidence, &[&keys::DEVICE_RX_PACKETS, &keys::DEVICE_UP]);
    table(
        evidence,
        "Network devices: traffic",
        "Device",
        None,
        &[
            ("Kind", "kind", &keys::DEVICE_KIND),
            ("Packets in", "rx_packets_per_s", &keys::DEVICE_RX_PACKETS),
            ("Bytes in", "rx_bytes_per_s", &keys::DEVICE_RX_BYTES),
            ("Packets out", "tx_packets_per_s", &keys::DEVICE_TX_PACKETS),
            ("Bytes out", "tx_bytes_per_s", &keys::DEVICE_TX_BYTES),
            ("Link use", "use", &keys::DEVICE_USE),
            ("Packet size", "packet_bytes", &keys::DEVICE_PACKET_SIZE),
            ("Missed", "missed_per_s", &keys::DEVICE_MISSED),
            ("Dropped", "rx_dropped_per_s", &keys::DEVICE_RX_DROPPED),
            (
                "Packets per interrupt",
                "packets_per_irq",
                &keys::DEVICE_PACKETS_PER_IRQ,
            ),
        ],
        subjects.into_iter().take(MOST),
    )
}

fn device_setup(evidence: &Evidence) -> Option<Table> {
    let subjects = readings::subjects(evidence, &[&keys::DEVICE_RX_PACKETS, &keys::DEVICE_UP]);
    table(
        evidence,
        "Network devices: setup",
        "Device",
        None,
        &[
            ("Driver", "driver", &keys::DEVICE_DRIVER),
            ("Node", "node", &keys::DEVICE_NODE),
            ("MTU", "mtu_bytes", &keys::DEVICE_MTU),
            ("RX queues", "rx_queues", &keys::QUEUES_RX),
            ("Max queues", "queues_max", &keys::QUEUES_MAXIMUM),
            ("RX ring", "ring_rx", &keys::RING_RX),
            ("Max RX ring", "ring_rx_max", &keys::RING_RX_MAXIMUM),
            ("RSS queues", "rss_queues", &keys::RSS_TABLE_QUEUES),
            ("RPS CPUs", "rps_cpus", &keys::RPS_CPUS),
            ("XPS CPUs", "xps_cpus", &keys::XPS_CPUS),
            ("GRO", "gro", &keys::DEVICE_GRO),
            ("Qdisc", "qdisc", &keys::QDISC_ROOT),
        ],
        subjects.into_iter().take(MOST),
    )
}

/// The busiest queues; where no driver counts, those that steering is set for.
fn queues(evidence: &Evidence) -> Option<Table> {
    let mut subjects = readings::largest(evidence, &keys::QUEUE_PACKETS, MOST_QUEUES);
    if subjects.is_empty() {
        let set = |queue: &Subject| {
            [&keys::RPS_MASK, &keys::XPS_MASK, &keys::XPS_RXQS]
                .into_iter()
                .any(|key| words(evidence, key, queue).is_some())
        };
        let all = readings::subjects(
            evidence,
            &[&keys::RPS_MASK, &keys::XPS_MASK, &keys::XPS_RXQS],
        );
        subjects.extend(all.into_iter().filter(set).take(MOST_QUEUES));
    }
    table(
        evidence,
        "Network queues, busiest first",
        "Queue",
        None,
        &[
            ("Packets", "packets_per_s", &keys::QUEUE_PACKETS),
            ("Share of device", "share", &keys::QUEUE_SHARE),
            ("RPS to CPUs", "rps_cpus", &keys::RPS_MASK),
            ("XPS from CPUs", "xps_cpus", &keys::XPS_MASK),
            ("XPS from receive queues", "xps_rxqs", &keys::XPS_RXQS),
        ],
        subjects.into_iter(),
    )
}

fn disks(evidence: &Evidence) -> Option<Table> {
    let subjects = readings::subjects(evidence, &[&keys::DISK_BUSY]);
    table(
        evidence,
        "Disks",
        "Disk",
        None,
        &[
            ("Busy", "busy", &keys::DISK_BUSY),
            ("Queued", "queue", &keys::DISK_QUEUE),
            ("Time per request", "await_s", &keys::DISK_AWAIT),
            ("Reads", "reads_per_s", &keys::DISK_READS),
            ("Writes", "writes_per_s", &keys::DISK_WRITES),
            ("Scheduler", "scheduler", &keys::DISK_SCHEDULER),
            ("Queue length", "nr_requests", &keys::DISK_NR_REQUESTS),
            ("Queues", "hardware_queues", &keys::DISK_HARDWARE_QUEUES),
            ("Read-ahead", "read_ahead_bytes", &keys::DISK_READ_AHEAD),
        ],
        subjects.into_iter().take(MOST),
    )
}

fn ports(evidence: &Evidence) -> Option<Table> {
    let mut subjects: Vec<Subject> = readings::subjects(evidence, &[&keys::UDP_SOCKETS])
        .into_iter()
        .collect();
    let fullest = |port: &Subject| number(evidence, &keys::UDP_SOCKET_QUEUE, port).unwrap_or(0.0);
    subjects.sort_by(|a, b| fullest(b).total_cmp(&fullest(a)));
    table(
        evidence,
        "UDP addresses, fullest queue first",
        "Address",
        None,
        &[
            ("Process", "process", &keys::UDP_PROCESS),
            ("Sockets", "sockets", &keys::UDP_SOCKETS),
            ("Dropped", "drops_per_s", &keys::UDP_SOCKET_DROPS),
            ("Queue fill", "queue", &keys::UDP_SOCKET_QUEUE),
            ("Buffer", "rcvbuf_bytes", &keys::UDP_RCVBUF),
            ("Readers", "readers", &keys::UDP_READERS),
        ],
        subjects.into_iter().take(MOST),
    )
}

fn listeners(evidence: &Evidence) -> Option<Table> {
    let subjects = readings::subjects(evidence, &[&keys::TCP_ACCEPT_BACKLOG]);
    table(
        evidence,
        "TCP listeners",
        "Address",
        None,
        &[
            ("Waiting for accept", "waiting", &keys::TCP_ACCEPT_QUEUE),
            ("Accept queue limit", "backlog", &keys::TCP_ACCEPT_BACKLOG),
        ],
        subjects.into_iter().take(MOST),
    )
}

fn connections(evidence: &Evidence) -> Option<Table> {
    table(
        evidence,
        "TCP connections by bytes sent",
        "Connection",
        None,
        &[
            ("Process", "process", &keys::TCP_PROCESS),
            ("Sent", "sent_bytes_per_s", &keys::TCP_BYTES_SENT),
            (
                "Received",
                "received_bytes_per_s",
                &keys::TCP_BYTES_RECEIVED,
            ),
            ("Round trip", "rtt_s", &keys::TCP_RTT),
            ("Congestion window", "cwnd", &keys::TCP_CWND),
            ("Receive queue", "recvq_bytes", &keys::TCP_RECVQ),
            ("Receive buffer", "rcvbuf_bytes", &keys::TCP_RCVBUF),
            ("Send queue", "sendq_bytes", &keys::TCP_SENDQ),
            (
                "Peer window limited",
                "rwnd_limited",
                &keys::TCP_RWND_LIMITED,
            ),
            (
                "Send buffer limited",
                "sndbuf_limited",
                &keys::TCP_SNDBUF_LIMITED,
            ),
            ("Retransmitted", "retrans", &keys::TCP_RETRANS_BYTES_SHARE),
        ],
        readings::largest(evidence, &keys::TCP_BYTES_SENT, MOST).into_iter(),
    )
}

#[cfg(test)]
mod tests {
    use rungwise_model::evidence::Origin;

    use super::*;

    #[test]
    fn what_nothing_but_loopback_carries_is_zero_and_not_minus_zero() {
        let mut evidence = Evidence::over(10.0);
        let lo = || Subject::device("lo");
        let origin = || Origin::new("sysfs", "");
        evidence.text(&keys::DEVICE_KIND, lo(), "loopback", origin());
        evidence.number(&keys::DEVICE_RX_PACKETS, lo(), 5e5, origin());
        let packets = sum(&evidence, &keys::DEVICE_RX_PACKETS).unwrap();
        assert!(packets == 0.0 && packets.is_sign_positive(), "{packets}");
    }
}
