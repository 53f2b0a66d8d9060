//! `/proc/diskstats`: requests, their size and latency, queue length.
//!
//! The mean queue is the growth of "milliseconds times requests in flight" divided by the window, the mean time is the
//! growth of their total milliseconds divided by their number: aqu-sz and await of iostat. Source:
//! Documentation/admin-guide/iostats.rst, block/genhd.c, Linux 6.18.

use std::collections::BTreeMap;

use rungwise_formats::diskstats as format;
use rungwise_model::evidence::{Absence, Evidence, Kind, Origin, Subject};
use rungwise_model::keys;

use super::{SCHEDULERS, STATS, in_use};
use crate::{Cost, Probe, Rate, Source, Window, enter};

/// The probe.
pub(crate) static PROBE: Probe = Probe {
    id: "proc-diskstats",
    summary: "requests of each disk, their size and latency, queue length",
    cost: Cost::Free,
    needs: &[],
    sources: &[Source::each(STATS), Source::once(SCHEDULERS)],
    yields: &[
        &keys::DISK_AWAIT,
        &keys::DISK_BUSY,
        &keys::DISK_FLUSHES,
        &keys::DISK_FLUSH_TIME,
        &keys::DISK_QUEUE,
        &keys::DISK_READS,
        &keys::DISK_READ_SIZE,
        &keys::DISK_SEQUENTIAL,
        &keys::DISK_WRITES,
    ],
    derive,
    doc: "\
Whole disks that have been used since boot; partitions and unused loop and RAM devices are excluded. A device on top \
of others (dm-0, md0) counts the same requests again. `busy` near 100 % means that a request was always in flight, not \
that the disk is saturated: an SSD serves many at a time. The mean time covers reads and writes from submission to \
completion, including time in the scheduler, but not discards. Flushes, which fsync waits for, are counted from Linux \
5.5 on, for devices with a cache to flush. Since Linux 5.0 `busy` is sampled by the tick if requests are short, so it \
is coarse in a short window. The times are 32 bits wide; if one overflows in the window, its key is absent. Sources: \
Documentation/admin-guide/iostats.rst, block/blk-core.c of Linux 6.18; iostat(1).",
};

/// Sectors are 512 bytes here, whatever the disk says.
const SECTOR: f64 = 512.0;

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Count {
    Reads,
    ReadsMerged,
    SectorsRead,
    Writes,
    Requests,
    RequestMs,
    BusyMs,
    QueuedMs,
    Flushes,
    FlushMs,
}

type Counters<'a> = BTreeMap<(&'a str, Count), Rate>;

fn derive(window: &Window<'_>, evidence: &mut Evidence) {
    let rates = match window.rates(STATS, counts) {
        Ok(rates) => rates,
        Err(why) => return evidence.absent(PROBE.yields, &why, STATS),
    };
    let disks = in_use(window);
    if disks.is_empty() {
        let why = window
            .unlisted(SCHEDULERS)
            .unwrap_or_else(|| Absence::none("no disk has read or written anything since boot"));
        return evidence.absent(PROBE.yields, &why, STATS);
    }
    for disk in disks {
        of_disk(evidence, disk, &rates);
    }
}

fn of_disk(evidence: &mut Evidence, disk: &str, rates: &Counters<'_>) {
    let subject = || Subject::new(Kind::Disk, disk);
    let rate = |count| rates.get(&(disk, count));
    for (key, count, unit, name) in [
        (&keys::DISK_READS, Count::Reads, 1.0, "reads"),
        (&keys::DISK_WRITES, Count::Writes, 1.0, "writes"),
        (&keys::DISK_BUSY, Count::BusyMs, 1e-3, "busy ms"),
        (&keys::DISK_QUEUE, Count::QueuedMs, 1e-3, "queued ms"),
        (&keys::DISK_FLUSHES, Count::Flushes, 1.0, "flushes"),
    ] {
        if let Some(rate) = rate(count) {
            let put = if *key == keys::DISK_BUSY {
                enter::share
            } else {
                enter::counter
            };
            put(evidence, key, subject(), (rate, unit), (STATS, name));
        } else {
            let why = Absence::because("the counter overflowed, or the disk is new");
            enter::absent(evidence, key, subject(), why, Origin::new(STATS, ""));
        }
    }
    for (key, sum, number, unit, what) in [
        (
            &keys::DISK_AWAIT,
            Count::RequestMs,
            Count::Requests,
            1e-3,
            "ms",
        ),
        (
            &keys::DISK_READ_SIZE,
            Count::SectorsRead,
            Count::Reads,
            SECTOR,
            "sectors read",
        ),
        (
            &keys::DISK_FLUSH_TIME,
            Count::FlushMs,
            Count::Flushes,
            1e-3,
            "flush ms",
        ),
    ] {
        let (value, line) = match (rate(sum), rate(number)) {
            (Some(sum), Some(number)) if number.delta > 0.0 => (
                Ok(sum.delta / number.delta * unit),
                format!("{what} {}; requests {}", sum.line(), number.line()),
            ),
            _ => (Err(idle()), String::new()),
        };
        enter::number(evidence, key, subject(), value, Origin::new(STATS, line));
    }
    sequential(evidence, disk, rate(Count::ReadsMerged), rate(Count::Reads));
}

/// Merged reads as a share of those requested: %rrqm of iostat.
fn sequential(evidence: &mut Evidence, disk: &str, merged: Option<&Rate>, reads: Option<&Rate>) {
    let (value, line) = match (merged, reads) {
        (Some(merged), Some(reads)) if merged.delta + reads.delta > 0.0 => (
            Ok(merged.delta / (merged.delta + reads.delta)),
            format!(
                "{} reads, {} more merged into them",
                reads.delta, merged.delta
            ),
        ),
        _ => (Err(idle()), String::new()),
    };
    let subject = Subject::new(Kind::Disk, disk);
    let origin = Origin::new(STATS, line);
    enter::number(evidence, &keys::DISK_SEQUENTIAL, subject, value, origin);
}

fn idle() -> Absence {
    Absence::because("no such request was completed in the window")
}

fn counts(text: &str) -> BTreeMap<(&str, Count), f64> {
    let mut counts = BTreeMap::new();
    for (name, disk) in format::parse(text) {
        for (count, value) in [
            (Count::Reads, disk.reads),
            (Count::ReadsMerged, disk.reads_merged),
            (Count::SectorsRead, disk.sectors_read),
            (Count::Writes, disk.writes),
            (Count::Requests, disk.reads.saturating_add(disk.writes)),
            (Count::RequestMs, disk.read_ms.saturating_add(disk.write_ms)),
            (Count::BusyMs, disk.busy_ms),
            (Count::QueuedMs, disk.queued_ms),
        ] {
            counts.insert((name, count), value as f64);
        }
        let flushes = [
            (Count::Flushes, disk.flushes),
            (Count::FlushMs, disk.flush_ms),
        ];
        for (count, value) in flushes {
            if let Some(value) = value {
                counts.insert((name, count), value as f64);
            }
        }
    }
    counts
}
