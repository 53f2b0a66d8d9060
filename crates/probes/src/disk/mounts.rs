//! Free space on mounted file systems: bytes and inodes, and how fast they fill.
//!
//! Source: statfs(2); fs/statfs.c, Linux 6.18.

use std::collections::BTreeMap;

use rungwise_model::evidence::{Absence, Evidence, Kind, Origin, Subject};
use rungwise_model::kernel::{Answer, Mount, Question};
use rungwise_model::keys;

use crate::probe::When;
use crate::window::misplaced;
use crate::{Cost, Probe, Source, Window, enter};

const MOUNTS: &str = "mounts";

/// The probe.
pub(crate) static PROBE: Probe = Probe {
    id: "mounts",
    summary: "free space on mounted file systems: bytes and inodes",
    cost: Cost::Cheap,
    needs: &[],
    sources: &[Source::ask(Question::Mounts, When::Ends)],
    yields: &[
        &keys::MOUNT_AVAILABLE,
        &keys::MOUNT_FILLING,
        &keys::MOUNT_INODES_FREE,
        &keys::MOUNT_ROOM,
    ],
    derive,
    doc: "\
Writable local file systems, each once, up to 256. Network file systems, FUSE and all mounts below them are listed but \
not queried: `statfs` would hang if their server hangs. Available is what an unprivileged user can write: root can \
also use the reserved blocks of ext4. Mounts are those of rungwise's own mount namespace; the volumes of a container \
are mounted on its host as well. btrfs, xfs and others without a fixed number of inodes report none, or as many as fit \
in their free space. Sources: statfs(2); fs/statfs.c of Linux 6.18.",
};

fn derive(window: &Window<'_>, evidence: &mut Evidence) {
    let mounts = match window.answer(MOUNTS) {
        Ok(Answer::Mounts(mounts)) => mounts,
        Ok(other) => return evidence.absent(PROBE.yields, &misplaced(MOUNTS, other), MOUNTS),
        Err(why) => return evidence.absent(PROBE.yields, &why, MOUNTS),
    };
    let rates = window.answer_rates(MOUNTS, used).map_err(|why| why.reason);
    for mount in mounts {
        of_mount(
            evidence,
            mount,
            rates
                .as_ref()
                .ok()
                .and_then(|rates| rates.get(mount.point.as_str())),
        );
    }
    let none = Absence::none("no writable local file system is mounted here");
    enter::absent_if_unset(evidence, PROBE.yields, &none, MOUNTS);
}

fn of_mount(evidence: &mut Evidence, mount: &Mount, filling: Option<&crate::Rate>) {
    let subject = || Subject::new(Kind::Mount, &mount.point);
    let Some(room) = mount.room else {
        let why = Absence::because(format!("{} is not read: it may hang", mount.kind))
            .remedy("run df if its server is known to respond");
        for key in PROBE.yields {
            let origin = Origin::new("statfs", &mount.kind);
            enter::absent(evidence, key, subject(), why.clone(), origin);
        }
        return;
    };
    let line = format!("{} of {} bytes available", room.available, room.size);
    let origin = || Origin::new("statfs", &line);
    // A tmpfs without a limit has no size.
    if room.size == 0 {
        return;
    }
    let share = room.available as f64 / room.size as f64;
    evidence.number(&keys::MOUNT_AVAILABLE, subject(), share.min(1.0), origin());
    evidence.number(
        &keys::MOUNT_ROOM,
        subject(),
        room.available as f64,
        origin(),
    );
    if room.inodes > 0 {
        let share = room.inodes_free as f64 / room.inodes as f64;
        let line = format!("{} of {} inodes free", room.inodes_free, room.inodes);
        let origin = Origin::new("statfs", line);
        evidence.number(&keys::MOUNT_INODES_FREE, subject(), share.min(1.0), origin);
    }
    if let Some(rate) = filling {
        enter::rate(
            evidence,
            &keys::MOUNT_FILLING,
            subject(),
            rate,
            1.0,
            "statfs",
        );
    }
}

/// Bytes in use. A decrease has no rate, like a counter that went backwards.
fn used(answer: &Answer) -> BTreeMap<&str, f64> {
    let Answer::Mounts(mounts) = answer else {
        return BTreeMap::new();
    };
    let used = |mount: &Mount| {
        let room = mount.room?;
        Some(room.size.saturating_sub(room.available) as f64)
    };
    mounts
        .iter()
        .filter_map(|mount| Some((mount.point.as_str(), used(mount)?)))
        .collect()
}
