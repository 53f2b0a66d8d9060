//! Slow disks: a loop device whose file lies on a file system that is frozen most of the time, and one that carries few bytes a second.
//!
//! Each request that meets the freeze waits for its end, as it would for a volume that its provider limits. It needs neither a
//! device mapper nor a control group, which rungwise would name instead.

use std::path::Path;

use rungwise_host::namespace::Namespace;
use rungwise_host::process::Service;

use super::lab::{Lab, LimitedDisk, Planted, SlowDisk, shell_in};
use super::process::{REDIS, gets_of, ready, start};
use super::{Fault, How, Result, Says, acts};

/// What may act as well where redis waits for its disk.
const OF_REDIS: &[(&str, &str)] = &[
    ("idle-but-waiting", "redis waits for its disk"),
    ("tcp-recvq-pile", "redis does not read while it waits"),
];

pub(super) const SLOW: Fault = Fault {
    id: "slow disk",
    planted: "redis syncs each write (appendfsync always) to a disk that stops for 50 ms again and again, under four clients that write.",
    speaks: &[Says {
        first: true,
        ..acts("disk-saturated", "disk/loop*")
    }],
    may: OF_REDIS,
    how: How::Here(slow),
};

fn slow(_: &Path) -> Result<Planted> {
    // Before the namespaces are made: each has the mounts of that moment.
    let disk = SlowDisk::new()?;
    let Lab { server, client } = Lab::new()?;
    let (service, load) = syncing(&server, &client, &disk.folder())?;
    let stops = disk.stops(50, 0)?;
    Ok(Planted::in_namespace(server)
        .suffered_by(service.pid())
        .keep(load)
        // A writer ends only while the disk works.
        .keep(service)
        .keep(stops)
        .keep(disk)
        .keep(client))
}

/// redis that syncs each write to this folder, and four clients that write.
fn syncing(server: &Namespace, client: &Namespace, folder: &Path) -> Result<(Service, Service)> {
    let port = REDIS.to_string();
    let folder = folder.display().to_string();
    let service = start(
        server,
        &[
            "redis-server",
            "--port",
            &port,
            "--dir",
            &folder,
            "--save",
            "",
            "--appendonly",
            "yes",
            "--appendfsync",
            "always",
            "--auto-aof-rewrite-percentage",
            "0",
            "--protected-mode",
            "no",
        ],
    )?;
    ready(&service, REDIS)?;
    let load = gets_of(client, 4, &["set", "k", "v"])?;
    Ok((service, load))
}

pub(super) const OTHERS: Fault = Fault {
    id: "disk busy with other programs",
    planted: "redis syncs each write (appendfsync always) to a disk that carries 16 MB a second, under four clients that write, while four other programs \
        write past the page cache to the same disk.",
    speaks: &[Says {
        first: true,
        ..acts("disk-saturated", "disk/loop*")
    }],
    may: OF_REDIS,
    how: How::Here(others),
};

fn others(_: &Path) -> Result<Planted> {
    let disk = LimitedDisk::new(16)?;
    let Lab { server, client } = Lab::new()?;
    let (service, load) = syncing(&server, &client, &disk.folder())?;
    let folder = disk.folder().display().to_string();
    let writers: Vec<Service> = (0..4)
        .map(|number| {
            shell_in(
                &[],
                &format!("while :; do dd if=/dev/zero of={folder}/{number} bs=256k count=40 oflag=direct conv=notrunc 2>/dev/null; done"),
            )
        })
        .collect::<Result<_>>()?;
    Ok(Planted::in_namespace(server)
        .suffered_by(service.pid())
        .keep(load)
        .keep(writers)
        .keep(service)
        .keep(disk)
        .keep(client))
}

pub(super) const QUEUE: Fault = Fault {
    id: "full queue of a slow disk",
    planted: "Eight programs write past the page cache to a disk that stops for 50 ms again and again, and whose queue holds four requests.",
    speaks: &[
        acts("disk-queue", "disk/loop*"),
        acts("disk-saturated", "disk/loop*"),
    ],
    may: &[],
    how: How::Here(queue),
};

fn queue(_: &Path) -> Result<Planted> {
    let mut disk = SlowDisk::new()?;
    let Lab { server, client } = Lab::new()?;
    disk.set_queue(4)?;
    let folder = disk.folder().display().to_string();
    let writers: Vec<Service> = (0..8)
        .map(|number| {
            shell_in(
                &[],
                &format!(
                    "while :; do dd if=/dev/zero of={folder}/{number} bs=4k count=500 oflag=direct conv=notrunc 2>/dev/null; done"
                ),
            )
        })
        .collect::<Result<_>>()?;
    let stops = disk.stops(50, 0)?;
    Ok(Planted::in_namespace(server)
        .keep(writers)
        .keep(stops)
        .keep(disk)
        .keep(client))
}
