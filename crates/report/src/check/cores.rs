//! The map of the CPUs: how busy each is and with what, which interrupts land there, whom the stack steers to it.

use std::collections::{BTreeMap, BTreeSet};

use rungwise_model::evidence::{Evidence, Key, Subject, Unit};
use rungwise_model::keys;

use super::data::Named;
use super::readings::{self, number, words};
use super::scheduling::table;
use crate::block::{Block, Cell, Chart, Column, Map, MapGroup, MapRow, Plot, Table};
use crate::numbers;

/// Transmit queues that a CPU names; more of them are counted by device.
const QUEUES: usize = 2;

/// A column of the map: its name there, and its lasting one.
type Name = (&'static str, &'static str);

/// The shares of a CPU, with their names.
const SHARES: [(Name, &Key); 5] = [
    (("busy", "busy"), &keys::CPU_BUSY),
    (("softirq", "softirq"), &keys::CPU_SOFTIRQ),
    (("NET_RX", "net_rx"), &keys::SOFTIRQ_NET_RX_SHARE),
    (("irq", "irq"), &keys::CPU_IRQ),
    (("steal", "steal"), &keys::CPU_STEAL),
];

pub(super) fn blocks(evidence: &Evidence) -> Vec<Block> {
    let Some(map) = map(evidence) else {
        return Vec::new();
    };
    let mut blocks = vec![Block::section("cores", "CPUs"), Block::Chart(Box::new(map))];
    blocks.extend(times(evidence).map(|table| Block::Long {
        brief: String::new(),
        summary: String::new(),
        blocks: vec![Block::Table(table)],
    }));
    blocks
}

pub(super) fn tables(evidence: &Evidence) -> Vec<Named> {
    let map = map(evidence).into_iter().map(Named::picture);
    map.chain(Named::all([("core-times", times(evidence))]))
        .collect()
}

/// The CPUs that anything is known of.
fn cpus(evidence: &Evidence) -> BTreeSet<Subject> {
    readings::subjects(evidence, &[&keys::CPU_BUSY, &keys::SOFTIRQ_NET_RX_SHARE])
}

fn map(evidence: &Evidence) -> Option<Chart> {
    let cpus = cpus(evidence);
    if cpus.is_empty() {
        return None;
    }
    let landing = landing(evidence);
    let (waits, note) = waits(evidence);
    // A share that no CPU has is no column.
    let known: Vec<_> = SHARES
        .into_iter()
        .filter(|(_, key)| evidence.each(key).is_ok())
        .collect();
    let mut shares: Vec<Name> = known.iter().map(|(name, _)| *name).collect();
    if !waits.is_empty() {
        shares.push(("waited", "waited"));
    }
    // Words that no CPU has are no column either.
    let beside: Vec<_> = [
        (("interrupts of", "interrupts_of"), landing),
        (("RPS from", "rps_from"), steered(evidence)),
        (("XPS to", "xps_to"), sending(evidence)),
    ]
    .into_iter()
    .filter(|(_, map)| !map.is_empty())
    .collect();
    let words: Vec<Name> = beside.iter().map(|(name, _)| *name).collect();
    let mut nodes: BTreeMap<Option<u64>, Vec<MapRow>> = BTreeMap::new();
    for cpu in &cpus {
        let mut row: Vec<Option<f64>> = known
            .iter()
            .map(|(_, key)| number(evidence, key, cpu))
            .collect();
        let at: usize = cpu.name().parse().unwrap_or(usize::MAX);
        if !waits.is_empty() {
            row.push(waits.get(&at).copied());
        }
        let tallied = |map: &BTreeMap<usize, Vec<&str>>| {
            readings::tallied(map.get(&at).into_iter().flatten().copied())
        };
        let node = number(evidence, &keys::CPU_NODE, cpu).map(|node| node as u64);
        nodes.entry(node).or_default().push(MapRow {
            name: cpu.name().to_owned(),
            shares: row,
            words: beside.iter().map(|(_, map)| tallied(map)).collect(),
        });
    }
    let title = title(evidence);
    let data = data(&shares, &words, &nodes);
    let several = nodes.len() > 1;
    let groups = nodes
        .into_iter()
        .map(|(node, rows)| MapGroup {
            title: match node {
                Some(node) if several => node_title(evidence, node),
                None if several => "node unknown".to_owned(),
                _ => String::new(),
            },
            rows,
        })
        .collect();
    let names = |columns: Vec<Name>| columns.into_iter().map(|(name, _)| name).collect();
    Some(Chart {
        id: "core-map",
        title,
        note: format!(
            "Shares of the window; NET_RX: share of the host's receive soft interrupts{note}."
        ),
        plot: Plot::Map(Map {
            thing: "CPU",
            shares: names(shares),
            words: names(words),
            groups,
        }),
        data,
    })
}

/// All that is known of the time of each CPU.
fn times(evidence: &Evidence) -> Option<Table> {
    table(
        evidence,
        "Time and events per CPU",
        "CPU",
        None,
        &[
            ("User", "user", &keys::CPU_USER),
            ("System", "system", &keys::CPU_SYSTEM),
            ("Softirq", "softirq", &keys::CPU_SOFTIRQ),
            ("Irq", "irq", &keys::CPU_IRQ),
            ("Steal", "steal", &keys::CPU_STEAL),
            ("I/O wait", "iowait", &keys::CPU_IOWAIT),
            ("ksoftirqd", "ksoftirqd", &keys::SOFTIRQ_KSOFTIRQD),
            ("NET_RX", "net_rx_per_s", &keys::SOFTIRQ_NET_RX),
            ("Packets", "packets_per_s", &keys::SOFTNET_PROCESSED),
            ("System calls", "syscalls_per_s", &keys::SYSCALL_RATE),
        ],
        cpus(evidence).into_iter(),
    )
}

/// States where the receive work is, because that is what the map is looked at for.
fn title(evidence: &Evidence) -> String {
    let taking = number(evidence, &keys::SOFTIRQ_NET_RX_CPUS, &Subject::host());
    let all = number(evidence, &keys::CPU_ONLINE, &Subject::host());
    match (taking, all) {
        (Some(taking), Some(all)) => format!(
            "{} of {} process received packets",
            taking,
            numbers::plural(all as usize, "CPU")
        ),
        _ => "Activity per CPU".to_owned(),
    }
}

fn node_title(evidence: &Evidence, node: u64) -> String {
    let subject = Subject::node(node as usize);
    match number(evidence, &keys::SOFTIRQ_NET_RX_NODE_SHARE, &subject) {
        Some(share) => format!("node {node}: {} of receive softirqs", numbers::share(share)),
        None => format!("node {node}"),
    }
}

/// Network devices by the CPU that their interrupts reach: the one they are routed to, else the one that took most.
fn landing(evidence: &Evidence) -> BTreeMap<usize, Vec<&str>> {
    let mut landing: BTreeMap<usize, Vec<&str>> = BTreeMap::new();
    for (irq, device) in evidence.each_words(&keys::IRQ_DEVICE).unwrap_or_default() {
        let routed = words(evidence, &keys::IRQ_EFFECTIVE, irq)
            .map(readings::cpus)
            .filter(|cpus| cpus.len() == 1)
            .and_then(|cpus| cpus.first().copied());
        let busiest = number(evidence, &keys::IRQ_BUSIEST_CPU, irq).map(|cpu| cpu as usize);
        if let Some(cpu) = busiest.or(routed) {
            landing.entry(cpu).or_default().push(device.value);
        }
    }
    landing
}

/// Devices by the CPUs in the RPS masks of their queues.
fn steered(evidence: &Evidence) -> BTreeMap<usize, Vec<&str>> {
    by_cpu(evidence, &keys::RPS_MASK, device_of)
}

/// Transmit queues by the CPUs that send through them by XPS; of a CPU with several, their devices.
fn sending(evidence: &Evidence) -> BTreeMap<usize, Vec<&str>> {
    let mut sending = by_cpu(evidence, &keys::XPS_MASK, Subject::name);
    for queues in sending.values_mut().filter(|queues| queues.len() > QUEUES) {
        for queue in queues {
            *queue = queue.split(':').next().unwrap_or(queue);
        }
    }
    sending
}

/// What queues are called by the CPUs in their masks.
fn by_cpu<'e>(
    evidence: &'e Evidence,
    masks: &'static Key,
    called: fn(&Subject) -> &str,
) -> BTreeMap<usize, Vec<&'e str>> {
    let mut cpus: BTreeMap<usize, Vec<&str>> = BTreeMap::new();
    for (queue, mask) in evidence.each_words(masks).unwrap_or_default() {
        for cpu in readings::cpus(mask.value) {
            cpus.entry(cpu).or_default().push(called(queue));
        }
    }
    cpus
}

/// `eth0` of `eth0:rx-3`.
fn device_of(queue: &Subject) -> &str {
    queue.name().split(':').next().unwrap_or_default()
}

/// How long tasks waited for each CPU, and what that means: all of them where the kernel keeps it by CPU, else the
/// longest wait among the threads of the process last seen there.
fn waits(evidence: &Evidence) -> (BTreeMap<usize, f64>, &'static str) {
    let by_cpu = evidence.each(&keys::CPU_RUN_DELAY).unwrap_or_default();
    let all: BTreeMap<usize, f64> = by_cpu
        .into_iter()
        .filter_map(|(cpu, share)| Some((cpu.name().parse().ok()?, share.value)))
        .collect();
    if !all.is_empty() {
        let note = "; waited: share of runnable time that tasks spent waiting for the CPU";
        return (all, note);
    }
    let mut waits: BTreeMap<usize, f64> = BTreeMap::new();
    for (thread, cpu) in evidence.each(&keys::SCHED_LAST_CPU).unwrap_or_default() {
        if let Some(delay) = number(evidence, &keys::SCHED_RUN_DELAY, thread) {
            let longest = waits.entry(cpu.value as usize).or_default();
            *longest = longest.max(delay);
        }
    }
    let note = if waits.is_empty() {
        ""
    } else {
        "; waited: longest run delay of a thread of the process last seen there"
    };
    (waits, note)
}

fn data(shares: &[Name], words: &[Name], nodes: &BTreeMap<Option<u64>, Vec<MapRow>>) -> Table {
    let mut columns = vec![
        Column::number("CPU", "title").unit(Unit::Text),
        Column::number("Node", "node").unit(Unit::Count),
    ];
    let shares = shares.iter();
    columns.extend(shares.map(|(name, key)| Column::number(*name, key).unit(Unit::Fraction)));
    let words = words.iter();
    columns.extend(words.map(|(name, key)| Column::words(*name, key).unit(Unit::Text)));
    let rows = nodes
        .iter()
        .flat_map(|(node, rows)| rows.iter().map(move |row| (node, row)))
        .map(|(node, row)| {
            let node = node.map(|node| node as f64);
            let mut cells = vec![
                Cell::text(&row.name),
                Cell::number(node, |node| format!("{node:.0}")),
            ];
            let shares = row.shares.iter();
            cells.extend(shares.map(|share| Cell::number(*share, numbers::share)));
            cells.extend(row.words.iter().map(Cell::text));
            cells
        })
        .collect();
    Table {
        caption: "Activity per CPU".to_owned(),
        columns,
        rows,
    }
}

#[cfg(test)]
mod tests {
    use rungwise_model::evidence::{Kind, Origin};

    use super::*;

    fn masks(masks: &[(&str, &str)]) -> Evidence {
        let mut evidence = Evidence::over(10.0);
        for (queue, cpus) in masks {
            let queue = Subject::new(Kind::Queue, queue);
            evidence.text(&keys::XPS_MASK, queue, *cpus, Origin::default());
        }
        evidence
    }

    #[test]
    fn a_cpu_names_the_queues_that_it_sends_through() {
        let evidence = masks(&[("eth0:tx-0", "0"), ("eth0:tx-1", "1"), ("eth1:tx-0", "0-1")]);
        let sending = sending(&evidence);
        assert_eq!(sending[&0], ["eth0:tx-0", "eth1:tx-0"]);
        assert_eq!(sending[&1], ["eth0:tx-1", "eth1:tx-0"]);
    }

    #[test]
    fn a_cpu_with_many_queues_names_their_devices() {
        let evidence = masks(&[("eth0:tx-0", "0-1"), ("eth0:tx-1", "0"), ("eth0:tx-2", "0")]);
        let sending = sending(&evidence);
        assert_eq!(sending[&0], ["eth0"; 3]);
        assert_eq!(sending[&1], ["eth0:tx-0"]);
    }

    #[test]
    fn the_map_has_a_column_of_xps_where_there_is_any() {
        let mut evidence = masks(&[("eth0:tx-0", "1")]);
        let words = |evidence: &Evidence| match &blocks(evidence)[1] {
            Block::Chart(chart) => match &chart.plot {
                Plot::Map(map) => (map.words.clone(), map.groups[0].rows.clone()),
                other => panic!("{other:?}"),
            },
            other => panic!("{other:?}"),
        };
        for cpu in 0..2 {
            evidence.number(&keys::CPU_BUSY, Subject::cpu(cpu), 0.5, Origin::default());
        }
        let (names, rows) = words(&evidence);
        assert_eq!(names, ["XPS to"]);
        assert_eq!(rows[1].words, ["eth0:tx-0"]);
        let mut none = Evidence::over(10.0);
        none.number(&keys::CPU_BUSY, Subject::cpu(0), 0.5, Origin::default());
        assert!(words(&none).0.is_empty());
    }

    #[test]
    fn what_the_kernel_keeps_by_cpu_goes_before_what_threads_tell() {
        let mut evidence = Evidence::over(10.0);
        let thread = Subject::new(Kind::Thread, "7:8");
        let readings = [
            (&keys::SCHED_LAST_CPU, thread.clone(), 1.0),
            (&keys::SCHED_RUN_DELAY, thread, 0.4),
        ];
        for (key, subject, value) in readings {
            evidence.number(key, subject, value, Origin::default());
        }
        assert_eq!(waits(&evidence).0, [(1, 0.4)].into());
        evidence.number(
            &keys::CPU_RUN_DELAY,
            Subject::cpu(0),
            0.25,
            Origin::default(),
        );
        assert_eq!(waits(&evidence).0, [(0, 0.25)].into());
    }
}
