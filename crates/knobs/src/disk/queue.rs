//! The request queue of a block device: one file each.

use crate::knob::{COMMON, Doc, Knob, PUT_BACK, Risk, Scope};
use crate::target::{Form, Target};

const DISK: Knob = Knob {
    scope: Scope::Disk,
    ..COMMON
};

/// `disk.nr_requests`
pub(crate) static NR_REQUESTS: Knob = Knob {
    id: "disk.nr_requests",
    risk: Risk::Disruptive,
    summary: "requests that a disk's I/O scheduler may queue, reads and writes each",
    values: "a number, such as 512",
    doc: Doc {
        does: "A thread that submits more waits until a request completes.",
        helps: "When the queue is full (aqu-sz near this limit at 100 % busy) and the scheduler could reorder more \
                requests.",
        costs: "Memory, and under mixed load a read waits behind more writes. Without a scheduler it cannot exceed \
                what the device takes.",
        undone: PUT_BACK,
        sources: "Documentation/ABI/stable/sysfs-block (Linux); no clear gain in the reference case of the bank.",
    },
    writes: &[Target::File(
        "/sys/block/*/queue/nr_requests",
        // BLKDEV_MIN_RQ is 4; the upper bound is a guess above any device.
        Form::Number {
            least: 4,
            most: 65_536,
        },
    )],
    ..DISK
};

/// `disk.queue_depth`
pub(crate) static QUEUE_DEPTH: Knob = Knob {
    id: "disk.queue_depth",
    risk: Risk::Disruptive,
    summary: "outstanding commands of a SCSI disk",
    values: "a number, such as 256",
    doc: Doc {
        does: "Up to this many commands are outstanding at the device; the rest wait in the scheduler.",
        helps: "When aqu-sz stays at this limit and the array behind the device has many disks.",
        costs: "An overloaded array answers every command late. The driver may take less than requested; the result is \
                shown.",
        undone: PUT_BACK,
        sources: "Documentation/scsi/scsi_mid_low_api.rst (Linux); the reference case of the bank gives the command only.",
    },
    writes: &[Target::File(
        "/sys/block/*/device/queue_depth",
        Form::Number {
            least: 1,
            most: 4096,
        },
    )],
    ..DISK
};

/// `disk.read_ahead_kb`
pub(crate) static READ_AHEAD: Knob = Knob {
    id: "disk.read_ahead_kb",
    summary: "how far the kernel reads ahead of a sequential reader",
    values: "a number of KiB, a multiple of the page size, such as 4096",
    doc: Doc {
        does: "A file that is read sequentially is fetched up to this far ahead of the reader.",
        helps: "Large on spinning disks with sequential readers; small or 0 for random access and fast devices.",
        costs: "Random readers fetch data that they never use. Open files keep the previous value until they are \
                reopened.",
        undone: PUT_BACK,
        sources: "Documentation/ABI/stable/sysfs-block (Linux); blockdev --setra counts sectors of 512 bytes, not KiB.",
    },
    writes: &[Target::File(
        "/sys/block/*/queue/read_ahead_kb",
        Form::Number {
            least: 0,
            most: 1 << 20,
        },
    )],
    ..DISK
};

/// `disk.rq_affinity`
pub(crate) static RQ_AFFINITY: Knob = Knob {
    id: "disk.rq_affinity",
    summary: "CPU on which a finished request is completed",
    values: "0 (the CPU of the interrupt), 1 (near the submitter) or 2 (on the submitter's CPU)",
    doc: Doc {
        does: "With 1 a completion moves to a CPU that shares a cache with the submitter, with 2 to the submitter's \
               own.",
        helps: "2, when one CPU handles the completions of many submitters.",
        costs: "An interrupt between CPUs per request.",
        undone: PUT_BACK,
        sources: "Documentation/ABI/stable/sysfs-block (Linux); a knob of A-Tune.",
    },
    writes: &[Target::File(
        "/sys/block/*/queue/rq_affinity",
        Form::Number { least: 0, most: 2 },
    )],
    ..DISK
};

/// `disk.wbt`
pub(crate) static WBT: Knob = Knob {
    id: "disk.wbt",
    risk: Risk::Disruptive,
    summary: "read latency that background writes must not exceed",
    values: "a time such as 2ms; 0us is off",
    doc: Doc {
        does: "When reads take longer than this, the kernel throttles background writes.",
        helps: "Lower, when log flushes slow down reads; off, when only throughput counts.",
        costs: "Background writes starve, and memory stays dirty for longer.",
        undone: PUT_BACK,
        sources: "Documentation/ABI/stable/sysfs-block (Linux); block/blk-wbt.c (Linux 6.18).",
    },
    writes: &[Target::File(
        "/sys/block/*/queue/wbt_lat_usec",
        Form::Micros {
            least: 0,
            most: 10_000_000,
        },
    )],
    ..DISK
};
