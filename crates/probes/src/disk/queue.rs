//! `/sys/block/*/queue`: queue settings of each disk, and whether the disk is virtual.
//!
//! Source: block/blk-sysfs.c, Linux 6.18. A virtual disk repeats a value of the hypervisor or a default: measured on
//! virtio, `rotational` 1 and a read-ahead of 8 MiB on a disk that does not rotate.

use rungwise_formats::choice;
use rungwise_model::evidence::{Absence, Evidence, Key, Kind, Origin, Subject};
use rungwise_model::keys;

use super::{SCHEDULERS, STATS, in_use};
use crate::{Cost, Probe, Source, Window, enter};

const VENDORS: &str = "/sys/block/*/device/vendor";
const MODELS: &str = "/sys/block/*/device/model";
/// One for each hardware queue (Linux 3.16 and later).
const HARDWARE: &str = "/sys/block/*/mq/*/nr_tags";

/// The probe.
pub(crate) static PROBE: Probe = Probe {
    id: "sys-block-queue",
    summary: "scheduler, queue length and read-ahead of each disk; whether it is virtual",
    cost: Cost::Cheap,
    needs: &[],
    sources: &[
        Source::once("/sys/block/*/queue/nr_requests"),
        Source::once("/sys/block/*/queue/read_ahead_kb"),
        Source::once("/sys/block/*/queue/rotational"),
        Source::once(SCHEDULERS),
        Source::once(HARDWARE),
        Source::once(VENDORS),
        Source::once(MODELS),
        Source::once(STATS),
    ],
    yields: &[
        &keys::DISK_HARDWARE_QUEUES,
        &keys::DISK_NR_REQUESTS,
        &keys::DISK_READ_AHEAD,
        &keys::DISK_ROTATIONAL,
        &keys::DISK_SCHEDULER,
        &keys::DISK_VIRTUAL,
    ],
    derive,
    doc: "\
`rotational` of a virtual disk is unreliable, and so are the queue and the scheduler of a device on top of others \
(dm-0, md0). A disk counts as virtual by its name (vda, xvda, loop0, zram0, dm-0, md0, nbd0, rbd0) or its vendor \
(QEMU, VMware, Microsoft, VirtualBox, Amazon, Google). nr_requests applies to each hardware queue. Adapters that share \
tags between queues (megaraid_sas, mpt3sas) show several queues but have the capacity of one; nothing below /sys \
distinguishes them. Sources: block/blk-sysfs.c of Linux 6.18; Documentation/ABI/stable/sysfs-block.",
};

/// Keys, files below `queue/`, and what their numbers are multiplied by.
const NUMBERS: &[(&Key, &str, f64)] = &[
    (&keys::DISK_NR_REQUESTS, "nr_requests", 1.0),
    (&keys::DISK_READ_AHEAD, "read_ahead_kb", 1024.0),
    (&keys::DISK_ROTATIONAL, "rotational", 1.0),
];

/// Drivers whose disks are virtual or made of others; a number or a letter follows.
const NAMES: &[&str] = &[
    "dm-", "drbd", "loop", "md", "nbd", "ram", "rbd", "vd", "xvd", "zram",
];

/// Vendors of virtual disks.
const MAKERS: &[&str] = &[
    "QEMU",
    "VMware",
    "Msft",
    "VBOX",
    "Amazon Elastic Block Store",
    "Google",
    "nvme_card-pd",
    "0x1af4",
];

fn derive(window: &Window<'_>, evidence: &mut Evidence) {
    let disks = in_use(window);
    if disks.is_empty() {
        let why = Absence::because("no disk in use below /sys/block");
        return evidence.absent(PROBE.yields, &why, "/sys/block");
    }
    for disk in disks {
        let subject = || Subject::new(Kind::Disk, disk);
        for (key, name, unit) in NUMBERS {
            let path = format!("/sys/block/{disk}/queue/{name}");
            let text = window.text(&path).map(str::trim);
            let value = text.clone().and_then(|text| {
                let number = text.parse::<u64>();
                let number = number.map_err(|_| {
                    Absence::because(format!("{path} contains '{text}', which is not a number"))
                })?;
                Ok(number as f64 * unit)
            });
            let origin = Origin::new(path, text.unwrap_or_default());
            enter::number(evidence, key, subject(), value, origin);
        }
        let path = SCHEDULERS.replace('*', disk);
        let text = window.text(&path).unwrap_or_default().trim();
        let scheduler = choice::selected(text).ok_or_else(|| {
            Absence::because(format!("{path} marks none of its values as selected"))
        });
        let origin = Origin::new(path, text);
        enter::text(
            evidence,
            &keys::DISK_SCHEDULER,
            subject(),
            scheduler,
            origin,
        );

        let (value, line) = hardware_queues(window, disk);
        let origin = Origin::new(format!("/sys/block/{disk}/mq"), line);
        enter::number(
            evidence,
            &keys::DISK_HARDWARE_QUEUES,
            subject(),
            value,
            origin,
        );

        let maker = maker(window, disk);
        let is_virtual = f64::from(u8::from(is_virtual(disk, &maker)));
        let origin = Origin::new(format!("/sys/block/{disk}/device"), maker);
        evidence.number(&keys::DISK_VIRTUAL, subject(), is_virtual, origin);
    }
}

/// Number of hardware queues of the disk, and its source. A device on top of others has none.
fn hardware_queues(window: &Window<'_>, disk: &str) -> (Result<f64, Absence>, String) {
    let queues = window.matching(&HARDWARE.replacen('*', disk, 1));
    let Some((_, last)) = queues.last() else {
        let why = Absence::because("the disk shows no hardware queues of its own");
        return (Err(why), String::new());
    };
    let tags: Vec<&str> = queues
        .iter()
        .filter_map(|(path, _)| Some(window.text(path).ok()?.trim()))
        .collect();
    let alike = tags.iter().all(|tag| Some(tag) == tags.first());
    let line = match tags.first() {
        Some(tag) if alike => format!("{} folders, nr_tags {tag}", queues.len()),
        _ => format!("{} folders, the last {last:?}", queues.len()),
    };
    (Ok(queues.len() as f64), line)
}

/// The vendor that the disk reports, if any.
fn maker(window: &Window<'_>, disk: &str) -> String {
    let texts: Vec<&str> = [VENDORS, MODELS]
        .iter()
        .filter_map(|pattern| window.text(&pattern.replace('*', disk)).ok())
        .map(str::trim)
        .collect();
    texts.join(" ")
}

fn is_virtual(disk: &str, maker: &str) -> bool {
    NAMES.iter().any(|name| disk.starts_with(name))
        || MAKERS.iter().any(|name| maker.contains(name))
}
