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
not queried: `statfs` would hang if their server hangs. They count as not measured if one is the root, or if the judged \
process or a service has files open there (the first 512 descriptors). Available is what an unprivileged user can write: \
root can also use the reserved blocks of ext4. Mounts are those of rungwise's own mount namespace, and those that only \
the judged process, its children or services have in theirs, such as /dev/shm of a container: they are read below \
/proc/PID/root, which of another user's process needs root. btrfs, xfs and others without a fixed number of inodes report none, or as many as fit \
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
        let why = unread(mount);
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

/// Why there is no number. A file system that no service uses is not part of what is judged.
fn unread(mount: &Mount) -> Absence {
    let Mount { kind, point, .. } = mount;
    if !mount.failed.is_empty() {
        return Absence::because(format!("{point}: {}", mount.failed)).remedy("run as root");
    }
    let not_read = |who: &str| {
        Absence::because(format!("{kind} at {point}{who} is not read: it may hang"))
            .remedy("run df if its server is known to respond")
    };
    match mount.used_by {
        Some(pid) => not_read(&format!(", where process {pid} has files open,")),
        None if is_root(point) => not_read(""),
        None => Absence::none(format!("no service has files open on {kind} at {point}")),
    }
}

/// The root, here or of another mount namespace.
fn is_root(point: &str) -> bool {
    let below = point.strip_prefix("/proc/");
    point == "/" || below.is_some_and(|it| it.ends_with("/root") && it.matches('/').count() == 1)
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::capture::{Capture, Moment, Reply};

    fn evidence_of(mounts: Vec<Mount>) -> Evidence {
        let reply = Reply::Answer(Answer::Mounts(mounts));
        let capture = Capture {
            moments: vec![Moment {
                answers: [(MOUNTS.to_owned(), reply)].into(),
                ..Moment::default()
            }],
            ..Capture::default()
        };
        let mut evidence = Evidence::over(1.0);
        derive(&Window::of(&capture), &mut evidence);
        evidence
    }

    fn mount(point: &str, kind: &str, room: Option<(u64, u64)>) -> Mount {
        let room = room.map(|(size, available)| rungwise_model::kernel::Room {
            size,
            available,
            ..rungwise_model::kernel::Room::default()
        });
        Mount {
            point: point.to_owned(),
            kind: kind.to_owned(),
            room,
            failed: String::new(),
            used_by: None,
        }
    }

    #[test]
    fn a_network_file_system_is_missed_only_where_a_service_uses_it() {
        let root = || mount("/", "ext4", Some((100, 50)));
        let key = &keys::MOUNT_AVAILABLE;
        let unused = evidence_of(vec![root(), mount("/backup", "nfs4", None)]);
        assert!(unused.unread(key).is_none());
        let used = Mount {
            used_by: Some(51),
            ..mount("/data", "nfs4", None)
        };
        let why = evidence_of(vec![root(), used]).unread(key).unwrap().why;
        assert!(why.reason.contains("process 51"), "{}", why.reason);
        let refused = Mount {
            failed: "Permission denied".to_owned(),
            ..mount("/proc/51/root/dev/shm", "tmpfs", None)
        };
        assert!(evidence_of(vec![root(), refused]).unread(key).is_some());
        for root in ["/", "/proc/51/root"] {
            let remote = evidence_of(vec![mount(root, "9p", None)]);
            assert!(remote.unread(key).is_some(), "{root}");
        }
    }

    #[test]
    fn a_full_file_system_of_another_mount_namespace_has_its_path_there() {
        let evidence = evidence_of(vec![
            mount("/", "ext4", Some((100, 50))),
            mount("/proc/51/root/dev/shm", "tmpfs", Some((262_144, 0))),
        ]);
        let shm = Subject::new(Kind::Mount, "/proc/51/root/dev/shm");
        let share = evidence.quantity(&keys::MOUNT_AVAILABLE, &shm).unwrap();
        assert!(share.value.abs() < 1e-9);
    }
}
