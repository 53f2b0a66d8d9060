//! Memory of a run: what is allocated and promoted, what survives, how full the parts of the heap were, and trouble.

use rungwise_model::gc::{Part, Run, Trouble};

use super::{millis, per_second, size};
use crate::block::{Block, Cell, Column, Table};
use crate::numbers;

pub(super) fn blocks(run: &Run) -> Vec<Block> {
    let facts = facts(run);
    let mut blocks = Vec::new();
    if !facts.is_empty() || !run.heap.parts.is_empty() {
        blocks.push(Block::section("memory", "Memory"));
    }
    if !facts.is_empty() {
        blocks.push(Block::Facts(facts));
    }
    if !run.heap.parts.is_empty() {
        blocks.push(Block::Table(parts(run)));
    }
    if let Some(ages) = run.ages.as_ref().filter(|ages| !ages.mean_bytes.is_empty()) {
        let rows = ages.mean_bytes.iter().enumerate().map(|(index, bytes)| {
            vec![
                Cell::number(Some((index + 1) as f64), |age| format!("{age:.0}")),
                Cell::number(Some(*bytes), size),
                Cell::number(ages.survival.get(index).copied().flatten(), numbers::share),
            ]
        });
        blocks.push(Block::Table(Table {
            caption: "Objects by age (young collections survived), mean of the age tables."
                .to_owned(),
            columns: vec![
                Column::number("Age", "age"),
                Column::number("Size", "bytes"),
                Column::number("Survival to next age", "survival"),
            ],
            rows: rows.collect(),
        }));
    }
    let troubles = troubles(run);
    if !troubles.is_empty() {
        blocks.push(Block::section("troubles", "Problems"));
        blocks.push(Block::Facts(troubles));
    }
    blocks
}

fn facts(run: &Run) -> Vec<(String, String)> {
    let mut facts = Vec::new();
    let mut fact = |name: &str, value: String| facts.push((name.to_owned(), value));
    if let Some(rate) = &run.allocation {
        fact("Allocated", per_second(rate.bytes_per_s));
    }
    if let Some(promotion) = &run.promotion {
        let rate = promotion.rate.as_ref().map_or_else(String::new, |rate| {
            format!("{}, ", per_second(rate.bytes_per_s))
        });
        fact(
            "Promoted to the old generation",
            format!(
                "{rate}{} per collection, at most {}",
                size(promotion.mean_bytes),
                numbers::bytes(promotion.largest_bytes)
            ),
        );
    }
    if let Some(live) = &run.live {
        fact(
            "Live set",
            format!(
                "{} at the end, between {} and {}; {} from: {}",
                numbers::bytes(live.last_bytes),
                numbers::bytes(live.min_bytes),
                numbers::bytes(live.max_bytes),
                numbers::plural(usize::try_from(live.samples).unwrap_or(usize::MAX), "value"),
                live.source.word()
            ),
        );
        if let Some(slope) = live.bytes_per_hour {
            let shown = |bytes: f64| {
                let sign = if bytes < 0.0 { "−" } else { "" };
                format!("{sign}{}", size(bytes.abs()))
            };
            fact(
                "Live set growth per hour",
                format!(
                    "{}, between {} and {}",
                    shown(slope.point),
                    shown(slope.low),
                    shown(slope.high)
                ),
            );
        }
    }
    if let Some(bytes) = run.heap.eden_freed_bytes {
        fact("Freed per young collection", size(bytes));
    }
    if let Some(interval) = &run.pauses.young_interval {
        fact(
            "Young collection interval",
            format!(
                "median {}, minimum {}",
                millis(interval.p50_ms),
                millis(interval.min_ms)
            ),
        );
    }
    if let Some(share) = run.heap.humongous_share.filter(|share| *share > 0.0) {
        fact(
            "Humongous objects",
            format!("at most {} of the heap", numbers::share(share)),
        );
    }
    if run.old.cycles > 0 {
        fact("Concurrent cycles", numbers::count(run.old.cycles));
    }
    if let Some(cpu) = &run.cpu {
        fact(
            "CPU time of pauses",
            format!(
                "{} user, {} system, {} wall clock",
                millis(cpu.user_ms),
                millis(cpu.sys_ms),
                millis(cpu.real_ms)
            ),
        );
    }
    if let Some(stalls) = &run.stalls {
        fact(
            "Allocation stalls",
            format!(
                "{} times, {} in total, longest {}",
                numbers::count(stalls.time.count),
                millis(stalls.time.total_ms),
                millis(stalls.time.longest_ms)
            ),
        );
    }
    facts
}

fn parts(run: &Run) -> Table {
    /// From the whole to its parts, and then what lies beside it.
    const ORDER: [&str; 7] = [
        "heap",
        "young",
        "eden",
        "survivor",
        "old",
        "humongous",
        "metaspace",
    ];
    let known = ORDER
        .iter()
        .filter_map(|&name| Some((name, run.heap.parts.get(name)?)));
    let rows = known.map(|(name, part): (&str, &Part)| {
        let bytes = |value: Option<u64>| Cell::number(value.map(|bytes| bytes as f64), size);
        vec![
            Cell::text(name),
            bytes(Some(part.peak_bytes)),
            bytes(part.last_bytes),
            bytes(part.capacity_bytes),
            bytes(part.largest_capacity_bytes),
        ]
    });
    Table {
        caption: "Heap and its parts.".to_owned(),
        columns: vec![
            Column::words("Part", "part"),
            Column::number("Peak", "peak_bytes"),
            Column::number("After last collection", "last_bytes"),
            Column::number("Capacity", "capacity_bytes"),
            Column::number("Largest capacity", "largest_capacity_bytes").rank(1),
        ],
        rows: rows.collect(),
    }
}

fn troubles(run: &Run) -> Vec<(String, String)> {
    let troubles = &run.troubles;
    let named: [(&str, &Trouble); 6] = [
        ("Evacuation failed", &troubles.evacuation_failed),
        ("Promotion failed", &troubles.promotion_failed),
        ("Concurrent mode failure", &troubles.concurrent_mode_failure),
        (
            "Concurrent mode interrupted",
            &troubles.concurrent_mode_interrupted,
        ),
        ("Delayed by native code (GCLocker)", &troubles.gc_locker),
        ("Out of memory", &troubles.out_of_memory),
    ];
    let some = named.into_iter().filter(|(_, trouble)| trouble.count > 0);
    some.map(|(name, trouble)| {
        let line = trouble.first.as_ref().and_then(|first| first.line);
        let line = line.map_or_else(String::new, |line| format!(", first in line {line}"));
        let times = usize::try_from(trouble.count).unwrap_or(usize::MAX);
        let times = numbers::plural(times, "time");
        (
            name.to_owned(),
            format!("{times}, pauses of {}{line}", millis(trouble.total_ms)),
        )
    })
    .collect()
}
