//! `disk-readahead`: the kernel reads ahead too little on a rotational disk, or too much on another.
//!
//! A disk reports itself whether it is rotational, and virtual ones report it wrongly: a paravirtual disk
//! here reports that it is rotational and reads 8 MiB ahead. So virtual disks are not judged.

use rungwise_model::check::{Finding, Grade};
use rungwise_model::evidence::Evidence;
use rungwise_model::keys;

use crate::{Doc, Judgement, Measure, Rule, Threshold, say};

const KIB: f64 = 1024.0;

const READS: Threshold = Threshold {
    name: "reads per second from which on a disk counts",
    value: 50.0,
    origin: "own guess: a rotational disk does about a hundred",
};

const SEQUENTIAL: Threshold = Threshold {
    name: "reads merged with an adjacent one, as a share of all, above which more read-ahead helps",
    value: 0.80,
    origin: "own guess: four reads of five",
};

const RANDOM: Threshold = Threshold {
    name: "the same, below which small reads are random",
    value: 0.20,
    origin: "own guess: the mirror of the threshold above",
};

const PIECE: Threshold = Threshold {
    name: "mean size of a read up to which it can be a random one, bytes",
    value: 64.0 * KIB,
    origin: "own guess: databases read pages of 4 to 16 KiB at random; larger reads are sequential already",
};

const WINDOW: Threshold = Threshold {
    name: "mean size of a read as a share of the read-ahead, from which on whole windows are read ahead",
    value: 0.75,
    origin: "mm/readahead.c: a sequential reader is served by reads of the size of the read-ahead",
};

const LITTLE: Threshold = Threshold {
    name: "read-ahead of a rotational disk, bytes",
    value: 1024.0 * KIB,
    origin: "own guess: a quarter of the 4096 KiB that the reference bank host sets for sequential work on rotational disks",
};

const MUCH: Threshold = Threshold {
    name: "read-ahead of other disks, bytes",
    value: 128.0 * KIB,
    origin: "include/linux/mm.h, VM_READAHEAD_PAGES: the default of the kernel",
};

pub(crate) static RULE: Rule = Rule {
    id: "disk-readahead",
    topic: "disk",
    summary: "read-ahead does not fit the disk and its reads",
    needs: &[
        &keys::DISK_READS,
        &keys::DISK_READ_AHEAD,
        &keys::DISK_READ_SIZE,
        &keys::DISK_ROTATIONAL,
        &keys::DISK_SEQUENTIAL,
        &keys::DISK_VIRTUAL,
    ],
    thresholds: &[READS, SEQUENTIAL, RANDOM, PIECE, WINDOW, LITTLE, MUCH],
    knobs: &["disk.read_ahead_kb"],
    measure: Some(Measure::more(&keys::DISK_READ_AHEAD)),
    doc: Doc {
        looks_for: "A rotational disk with more than 50 reads/s that reads less than 1 MiB ahead, if more than 80 % of its reads \
            were merged with an adjacent one or its reads are as large as the read-ahead itself. Or another disk that reads more \
            than 128 KiB ahead, while its reads are at most 64 KiB and hardly ever merged.",
        hurts: "A rotational disk that reads too little ahead moves its head between readers for every piece. Read-ahead for \
            random reads fills memory and bus with data that no program wants.",
        todo: "disk.read_ahead_kb=4096 for sequential work on rotational disks, 128 for random work on others.",
        wrong: "The rule infers sequential reads from merges and sizes: a program that reads large pieces at random past the page cache (O_DIRECT) \
            looks sequential. Virtual disks are ignored: one here reports that it is rotational and reads 8 MiB ahead. The kernel reads ahead only \
            where it detects a sequence, so too much of it seldom hurts random readers that do not map files.",
        sources: "The reference bank host: effective for sequential work on rotational disks only, not used in its \
            case; mm/readahead.c; Documentation/block/queue-sysfs.rst.",
    },
    judge,
};

fn judge(evidence: &Evidence) -> Judgement {
    let disks = evidence.each(&keys::DISK_READS)?;
    let mut findings = Vec::new();
    for (disk, reads) in disks {
        if reads.value < READS.value {
            continue;
        }
        let of = |key| evidence.quantity(key, disk);
        if of(&keys::DISK_VIRTUAL)?.value > 0.0 {
            continue;
        }
        let turns = of(&keys::DISK_ROTATIONAL)?;
        let ahead = of(&keys::DISK_READ_AHEAD)?;
        let sequential = of(&keys::DISK_SEQUENTIAL)?;
        let size = of(&keys::DISK_READ_SIZE)?;
        let turning = turns.value > 0.0;
        let merged = sequential.value > SEQUENTIAL.value;
        let whole = size.value >= WINDOW.value * ahead.value;
        let little = turning && ahead.value < LITTLE.value && (merged || whole);
        let random = sequential.value < RANDOM.value && size.value <= PIECE.value;
        let much = !turning && ahead.value > MUCH.value && random;
        if !little && !much {
            continue;
        }
        let (kind, wish) = if turning {
            ("a rotational disk", "4096")
        } else {
            ("a non-rotational disk", "128")
        };
        let sentence = format!(
            "{}, {kind}, reads {} ahead; its {} reads are {} each, and {} were merged with an adjacent one",
            disk.name(),
            say::bytes(ahead.value),
            say::rate(reads.value),
            say::bytes(size.value.round()),
            say::percent(sequential.value)
        );
        // Too little costs a rotational disk its sequence; too much seldom hurts (page of the rule).
        let finding = if little && merged {
            Finding::act(disk, sentence).severity(Grade::Medium)
        } else {
            Finding::watch(disk, sentence)
                .severity(Grade::Low)
                .confidence(Grade::Low)
        };
        findings.push(
            finding
                .cite(size.reading)
                .cite(ahead.reading)
                .cite(sequential.reading)
                .cite(turns.reading)
                .turn_device("disk.read_ahead_kb", disk.name(), wish)
                .refuted_by("bytes read per second do not change with it"),
        );
    }
    if findings.is_empty() {
        findings.push(Finding::clear(
            "no busy physical disk has a read-ahead that does not fit its reads",
        ));
    }
    Ok(findings)
}
