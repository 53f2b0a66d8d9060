//! What the kernel did while it was busy: shares of sampled stacks, and how often a lock was contended.

use rungwise_model::evidence::{Evidence, Key, Subject, Unit};
use rungwise_model::keys;

use super::data::{Fact, Named};
use super::readings::{number, shown, words};
use crate::block::{Block, Cell, Column, Table};
use crate::numbers;

/// Parts of the kernel, by their keys; the UDP lock is a share of soft interrupts and stands apart.
const PARTS: [(&str, &Key); 14] = [
    ("System call auditing", &keys::STACK_AUDIT),
    ("Source address validation", &keys::STACK_FIB_VALIDATE),
    ("Generic receive offload", &keys::STACK_GRO),
    ("IOMMU map and unmap", &keys::STACK_IOMMU),
    ("IP ID selection", &keys::STACK_IP_ID),
    ("Spinning on locks, all", &keys::STACK_LOCK),
    ("Spinning on transmit queues", &keys::STACK_XMIT_LOCK),
    ("Uncontended transmit queue locks", &keys::STACK_XMIT_SPIN),
    ("Netfilter, all", &keys::STACK_NETFILTER),
    ("Netfilter, rule evaluation", &keys::STACK_NFT_RULES),
    ("Receive packet steering", &keys::STACK_RPS),
    ("SELinux", &keys::STACK_SELINUX),
    ("Packet and object allocation", &keys::STACK_SLAB),
    ("System call entry and exit", &keys::STACK_SYSCALL_ENTRY),
];

pub(super) fn blocks(evidence: &Evidence) -> Vec<Block> {
    let facts = facts(evidence);
    if facts.is_empty() {
        return Vec::new();
    }
    let mut blocks = vec![
        Block::section("kernel", "Time in the kernel"),
        Block::Facts(facts.into_iter().map(Fact::pair).collect()),
    ];
    if let Some(table) = parts(evidence) {
        blocks.push(Block::Long {
            brief: String::new(),
            summary: String::new(),
            blocks: vec![Block::Table(table)],
        });
    }
    blocks
}

pub(super) fn tables(evidence: &Evidence) -> Vec<Named> {
    Named::all([
        ("kernel", Fact::table("Time in the kernel", facts(evidence))),
        ("kernel-parts", parts(evidence)),
    ])
}

fn facts(evidence: &Evidence) -> Vec<Fact> {
    let host = Subject::host();
    let value = |key| shown(evidence, key, &host);
    let joined = |parts: [Option<String>; 3]| {
        let parts: Vec<String> = parts.into_iter().flatten().collect();
        (!parts.is_empty()).then(|| parts.join(", "))
    };
    [
        (
            "Hottest kernel function",
            words(evidence, &keys::STACK_TOP, &host).map(str::to_owned),
        ),
        (
            "Spinning on locks",
            joined([
                value(&keys::STACK_LOCK).map(|share| format!("{share} of busy samples")),
                value(&keys::STACK_UDP_LOCK)
                    .map(|share| format!("{share} of soft interrupts under the UDP enqueue")),
                None,
            ]),
        ),
        ("Samples", samples(evidence)),
        (
            "Contended locks",
            joined([
                value(&keys::LOCK_CONTENTIONS),
                value(&keys::LOCK_UDP_CONTENTIONS)
                    .map(|rate| format!("{rate} under the UDP enqueue")),
                value(&keys::LOCK_XMIT_CONTENTIONS).map(|rate| format!("{rate} while sending")),
            ]),
        ),
    ]
    .into_iter()
    .filter_map(|(name, value)| Some(Fact::words(name, value?)))
    .collect()
}

/// Keys of which the page shows the raw line.
pub(super) const QUOTED: &[&Key] = &[&keys::STACK_SAMPLES];

/// How many there are, and what it cost to take them.
fn samples(evidence: &Evidence) -> Option<String> {
    let taken = evidence.host(&keys::STACK_SAMPLES).ok()?;
    let line = &taken.reading.origin.line;
    (!line.is_empty()).then(|| {
        format!("{line}, plus about 20 µs of interrupt time per sample, which no counter includes")
    })
}

/// The parts in which there was any time, largest first.
fn parts(evidence: &Evidence) -> Option<Table> {
    let host = Subject::host();
    let mut parts: Vec<(&str, f64)> = PARTS
        .iter()
        .filter_map(|(name, key)| Some((*name, number(evidence, key, &host)?)))
        .filter(|(_, share)| *share > 0.0)
        .collect();
    parts.sort_by(|a, b| b.1.total_cmp(&a.1));
    let rows: Vec<Vec<Cell>> = parts
        .into_iter()
        .map(|(name, share)| vec![Cell::text(name), Cell::number(Some(share), numbers::share)])
        .collect();
    (!rows.is_empty()).then(|| Table {
        caption: "Shares of the busy samples; one sample may count in several parts".to_owned(),
        columns: vec![
            Column::words("Part of the kernel", "title").unit(Unit::Text),
            Column::number("Share", "share").unit(Unit::Fraction),
        ],
        rows,
    })
}

#[cfg(test)]
mod tests {
    use rungwise_model::evidence::{Absence, Origin};

    use super::*;

    #[test]
    fn parts_without_time_are_left_out_and_the_largest_comes_first() {
        let mut evidence = Evidence::over(10.0);
        for (key, share) in [
            (&keys::STACK_AUDIT, 0.0),
            (&keys::STACK_GRO, 0.1),
            (&keys::STACK_LOCK, 0.4),
        ] {
            evidence.number(key, Subject::host(), share, Origin::default());
        }
        let table = parts(&evidence).expect("a table");
        let names: Vec<&str> = table.rows.iter().map(|row| row[0].text.as_str()).collect();
        assert_eq!(names, ["Spinning on locks, all", "Generic receive offload"]);
    }

    #[test]
    fn without_samples_there_is_no_section() {
        let mut evidence = Evidence::over(10.0);
        let why = Absence::because("not permitted");
        evidence.absent(&[&keys::STACK_TOP, &keys::STACK_LOCK], &why, "");
        assert!(blocks(&evidence).is_empty());
    }
}
