//! The map of the CPUs: how busy each is and with what, which interrupts land there, whom the stack steers to it.

use std::collections::BTreeMap;

use rungwise_model::evidence::{Evidence, Key, Subject};
use rungwise_model::keys;

use super::look::{self, number, words};
use super::section;
use crate::block::{Block, Cell, Chart, Column, Map, MapGroup, MapRow, Plot, Table};
use crate::numbers;

/// The shares of a CPU, with their names.
const SHARES: [(&str, &Key); 5] = [
    ("busy", &keys::CPU_BUSY),
    ("softirq", &keys::CPU_SOFTIRQ),
    ("NET_RX", &keys::SOFTIRQ_NET_RX_SHARE),
    ("irq", &keys::CPU_IRQ),
    ("steal", &keys::CPU_STEAL),
];

pub(super) fn blocks(evidence: &Evidence) -> Vec<Block> {
    let cpus = look::subjects(evidence, &[&keys::CPU_BUSY, &keys::SOFTIRQ_NET_RX_SHARE]);
    if cpus.is_empty() {
        return Vec::new();
    }
    let landing = landing(evidence);
    let steered = steered(evidence);
    let waits = waits(evidence);
    // A share that no CPU has is no column.
    let known: Vec<_> = SHARES
        .into_iter()
        .filter(|(_, key)| evidence.each(key).is_ok())
        .collect();
    let mut shares: Vec<&'static str> = known.iter().map(|(name, _)| *name).collect();
    if !waits.is_empty() {
        shares.push("waited");
    }
    // Words that no CPU has are no column either.
    let beside: Vec<_> = [("interrupts of", landing), ("RPS from", steered)]
        .into_iter()
        .filter(|(_, map)| !map.is_empty())
        .collect();
    let words: Vec<&'static str> = beside.iter().map(|(name, _)| *name).collect();
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
            look::tallied(map.get(&at).into_iter().flatten().copied())
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
                None if several => "node not known".to_owned(),
                _ => String::new(),
            },
            rows,
        })
        .collect();
    let waited = if waits.is_empty() {
        ""
    } else {
        "; waited: longest run delay of a thread of the process last seen there"
    };
    vec![
        section("cores", "CPUs"),
        Block::Chart(Box::new(Chart {
            id: "core-map",
            title,
            note: format!(
                "Shares of the window; NET_RX: share of all receive soft interrupts of the host{waited}."
            ),
            plot: Plot::Map(Map {
                thing: "CPU",
                shares,
                words,
                groups,
            }),
            data,
        })),
    ]
}

/// States where the receive work is, because that is what the map is looked at for.
fn title(evidence: &Evidence) -> String {
    let taking = number(evidence, &keys::SOFTIRQ_NET_RX_CPUS, &Subject::host());
    let all = number(evidence, &keys::CPU_ONLINE, &Subject::host());
    match (taking, all) {
        (Some(taking), Some(all)) => format!(
            "{} of {} take receive work",
            taking,
            numbers::plural(all as usize, "CPU")
        ),
        _ => "What each CPU did".to_owned(),
    }
}

fn node_title(evidence: &Evidence, node: u64) -> String {
    let subject = Subject::node(node as usize);
    match number(evidence, &keys::SOFTIRQ_NET_RX_NODE_SHARE, &subject) {
        Some(share) => format!("node {node}: {} of the receive work", numbers::share(share)),
        None => format!("node {node}"),
    }
}

/// Network devices by the CPU that their interrupts reach: the one they are routed to, else the one that took most.
fn landing(evidence: &Evidence) -> BTreeMap<usize, Vec<&str>> {
    let mut landing: BTreeMap<usize, Vec<&str>> = BTreeMap::new();
    for (irq, device) in evidence.each_words(&keys::IRQ_DEVICE).unwrap_or_default() {
        let routed = words(evidence, &keys::IRQ_EFFECTIVE, irq)
            .map(look::cpus)
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
    let mut steered: BTreeMap<usize, Vec<&str>> = BTreeMap::new();
    for (queue, mask) in evidence.each_words(&keys::RPS_MASK).unwrap_or_default() {
        let device = queue.name().split(':').next().unwrap_or_default();
        for cpu in look::cpus(mask.value) {
            steered.entry(cpu).or_default().push(device);
        }
    }
    steered
}

/// Longest run delay among the threads last seen on each CPU.
fn waits(evidence: &Evidence) -> BTreeMap<usize, f64> {
    let mut waits: BTreeMap<usize, f64> = BTreeMap::new();
    for (thread, cpu) in evidence.each(&keys::SCHED_LAST_CPU).unwrap_or_default() {
        if let Some(delay) = number(evidence, &keys::SCHED_RUN_DELAY, thread) {
            let longest = waits.entry(cpu.value as usize).or_default();
            *longest = longest.max(delay);
        }
    }
    waits
}

fn data(
    shares: &[&'static str],
    words: &[&'static str],
    nodes: &BTreeMap<Option<u64>, Vec<MapRow>>,
) -> Table {
    let mut columns = vec![
        Column::number("CPU", "title"),
        Column::number("Node", "node"),
    ];
    columns.extend(shares.iter().map(|name| Column::number(*name, name)));
    columns.extend(words.iter().map(|name| Column::words(*name, name)));
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
        caption: "What each CPU did".to_owned(),
        columns,
        rows,
    }
}
