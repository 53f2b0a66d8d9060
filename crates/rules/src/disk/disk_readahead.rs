//! `disk-readahead`: the kernel reads ahead too little of a turning disk, or too much of another.
//!
//! A disk says itself whether it turns, and virtual ones lie: a paravirtual disk here claims to turn and to
//! read 8 MiB ahead. What a virtual disk says is therefore not judged.

use rungwise_model::check::{Finding, Grade};
use rungwise_model::evidence::Evidence;
use rungwise_model::keys;

use crate::{Doc, Judgement, Rule, Threshold, say};

const KIB: f64 = 1024.0;

const READS: Threshold = Threshold {
    name: "reads per second of a disk that counts",
    value: 50.0,
    origin: "own guess: a turning disk does about a hundred",
};

const SEQUENTIAL: Threshold = Threshold {
    name: "reads merged with a neighbour, as a share of all, from which on more read-ahead helps",
    value: 0.80,
    origin: "own guess: four reads of five",
};

const RANDOM: Threshold = Threshold {
    name: "the same, below which reads of small size are random",
    value: 0.20,
    origin: "own guess: the mirror of the line above",
};

const PIECE: Threshold = Threshold {
    name: "mean size of a read up to which it can be a random one, bytes",
    value: 64.0 * KIB,
    origin: "own guess: databases read pages of 4 to 16 KiB at random; larger reads are in order already",
};

const WINDOW: Threshold = Threshold {
    name: "mean size of a read as a share of the read-ahead, from which on whole windows are read ahead",
    value: 0.75,
    origin: "mm/readahead.c: a reader in order is served by reads of the size of the read-ahead",
};

const LITTLE: Threshold = Threshold {
    name: "read-ahead of a turning disk, bytes",
    value: 1024.0 * KIB,
    origin: "own guess, a quarter of what the reference bank host sets; the reference bank host sets 4096 KiB for sequential work on turning disks",
};

const MUCH: Threshold = Threshold {
    name: "read-ahead of other disks, bytes",
    value: 128.0 * KIB,
    origin: "include/linux/mm.h, VM_READAHEAD_PAGES: what the kernel starts with",
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
    doc: Doc {
        looks_for: "A turning disk with more than 50 reads/s that reads less than 1 MiB ahead, and of whose reads more than 80 % \
            were merged with a neighbour, or which are as large as the read-ahead itself. Or another disk whose reads are at \
            most 64 KiB and hardly ever merged, and that reads more than 128 KiB ahead.",
        hurts: "A turning disk that reads too little ahead moves its head between readers for every piece. Reading ahead of \
            random reads fills memory and bus with what nobody asked for.",
        todo: "disk.read_ahead_kb=4096 for sequential work on turning disks, 128 for random work on others.",
        wrong: "Sequence is told by merges and sizes: a program that reads large pieces at random past the page cache (O_DIRECT) \
            looks like one that reads in order. A virtual disk's word counts for nothing: one here says that it turns and reads 8 MiB ahead. The kernel reads \
            ahead only where it sees a sequence, so too much of it seldom hurts random readers that do not map files.",
        sources: "The reference bank host: effective for sequential work on turning disks only, not used in its case; \
            mm/readahead.c; Documentation/block/queue-sysfs.rst.",
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
            ("a turning disk", "4096")
        } else {
            ("a disk that does not turn", "128")
        };
        let sentence = format!(
            "{}, {kind}, reads {} ahead; its {} reads are {} each, and {} were merged with a neighbour",
            disk.name(),
            say::bytes(ahead.value),
            say::rate(reads.value),
            say::bytes(size.value.round()),
            say::percent(sequential.value)
        );
        // Too little costs a turning disk its sequence; too much seldom hurts (page of the rule).
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
            "no disk that can be judged reads much with a read-ahead that does not fit",
        ));
    }
    Ok(findings)
}
