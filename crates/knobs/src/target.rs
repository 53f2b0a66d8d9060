//! The targets that the knobs of the registry may write.
//!
//! Every knob declares its targets. Together they are the allow-list of the engine and, more
//! important, of recovery: a journal is a file that others might have written, and an undo must not
//! be a way to write `/etc/passwd`. A path that no knob could have written is refused.

use rungwise_host::{DeviceSetting, MountOption};

use crate::edit::{Edit, OUR_TABLES, Place};
use crate::host::audit_rules::may_be_left_out;

pub use crate::form::Form;

/// Something a knob may write.
#[derive(Clone, Copy, Debug)]
pub enum Target {
    /// A file. A `*` in the pattern stands for one name, or within a name for a part of it; `**` stands for
    /// one or more names.
    File(&'static str, Form),
    /// A feature of any device.
    Feature(&'static str),
    /// Our own table, in a lab namespace only.
    OurTable,
    /// A setting of any device that has no file.
    Setting(DeviceSetting),
    /// Twin files of one quantity, bytes and percent, of which one is in force.
    Twin(&'static str, &'static str),
    /// The scheduler of any disk, with the length of its queue.
    Scheduler,
    /// The CPUs of a thread.
    Affinity,
    /// The open files of a process.
    OpenFiles,
    /// An option of any mounted file system.
    Mount(MountOption),
    /// The limits of any control group on a disk.
    Throttle,
    /// The audit rule that exempts a user who is not root.
    AuditNever,
    /// A unit of the service manager.
    Unit(&'static str),
    /// A switch of the service.
    Switch(&'static str),
}

impl Target {
    /// Whether this target covers `edit` at `place`.
    pub fn covers(&self, place: &Place, edit: &Edit) -> bool {
        match (self, edit) {
            (Self::File(pattern, _), Edit::WriteFile { path, .. } | Edit::Keep { path, .. }) => {
                matches(pattern, path)
            }
            (
                Self::Feature(known),
                Edit::Feature {
                    device, feature, ..
                },
            ) => known == feature && is_name(device),
            (Self::OurTable, Edit::NftTable { name, .. }) => {
                *place != Place::Host && name.starts_with(OUR_TABLES) && is_name(name)
            }
            (
                Self::Setting(known),
                Edit::Setting {
                    device, setting, ..
                },
            ) => known == setting && is_name(device),
            (Self::Twin(bytes, percent), Edit::Twin { files, .. }) => {
                files.bytes == *bytes && files.percent == *percent
            }
            (Self::Scheduler, Edit::Scheduler { elevator, .. }) => {
                *place == Place::Host && matches("/sys/block/*", &elevator.disk)
            }
            (Self::Affinity, Edit::Affinity { .. }) | (Self::OpenFiles, Edit::OpenFiles { .. }) => {
                *place == Place::Host
            }
            (Self::Mount(known), Edit::Mount { option, .. }) => {
                *place == Place::Host && known == option
            }
            (Self::Throttle, Edit::Throttle { row, .. }) => {
                *place == Place::Host && row.is_allowed()
            }
            (Self::AuditNever, Edit::AuditNever { user }) => {
                *place == Place::Host && may_be_left_out(*user)
            }
            (Self::Unit(known), Edit::Unit { unit, .. }) => *place == Place::Host && known == unit,
            (Self::Switch(known), Edit::Service { switch, .. }) => known == switch,
            _ => false,
        }
    }
}

/// The form of a file that a knob of the registry writes.
pub fn form_of(path: &str) -> Option<Form> {
    crate::KNOBS
        .iter()
        .flat_map(|knob| knob.writes)
        .find_map(|target| match target {
            Target::File(pattern, form) if matches(pattern, path) => Some(*form),
            _ => None,
        })
}

/// Whether some knob of the registry could have made this edit, with this value before it. A value that was already set
/// is never written, so an undo never writes it back.
pub(crate) fn could_be_ours(knob: &str, place: &Place, edit: &Edit, before: &str) -> bool {
    let changes = matches!(edit, Edit::Keep { .. }) || !edit.same(before, &edit.value());
    crate::find(knob).is_ok_and(|knob| knob.may_write(place, edit))
        && edit.can_hold(&edit.value())
        && edit.can_hold(before)
        && changes
}

/// Longest path that is accepted; the kernel's own limit.
const PATH_MAX: usize = 4096;

pub(crate) fn matches(pattern: &str, path: &str) -> bool {
    fn rest(wanted: &[&str], given: &[&str]) -> bool {
        match (wanted, given) {
            ([], []) => true,
            (["**", after @ ..], [name, more @ ..]) => {
                is_group(name) && (rest(after, more) || rest(wanted, more))
            }
            ([part, after @ ..], [name, more @ ..]) => {
                matches_name(part, name) && rest(after, more)
            }
            _ => false,
        }
    }
    // Nearly all patterns of the registry end here.
    let fixed = pattern.split('*').next().unwrap_or_default();
    if !path.starts_with(fixed) || path.len() > PATH_MAX {
        return false;
    }
    let parts = |text| str::split(text, '/').collect::<Vec<_>>();
    rest(&parts(pattern), &parts(path))
}

pub(crate) fn matches_name(pattern: &str, name: &str) -> bool {
    match pattern.split_once('*') {
        None => pattern == name,
        Some((head, tail)) => name
            .strip_prefix(head)
            .and_then(|rest| rest.strip_suffix(tail))
            .is_some_and(is_name),
    }
}

/// A name of a device, queue or table: never a way out of its directory.
pub(crate) fn is_name(name: &str) -> bool {
    let allowed = |b: u8| b.is_ascii_alphanumeric() || b"._-:@+".contains(&b);
    !name.is_empty() && name.len() <= 64 && name != "." && name != ".." && name.bytes().all(allowed)
}

/// A name of a control group: longer than others, and with spaces or any other sign but a slash.
fn is_group(name: &str) -> bool {
    let way_out = [".", ".."].contains(&name);
    !name.is_empty() && name.len() <= 255 && !way_out && !name.contains(char::is_control)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pattern_covers_its_files_and_never_a_way_out() {
        let pattern = "/sys/class/net/*/queues/rx-*/rps_cpus";
        assert!(matches(
            pattern,
            "/sys/class/net/eth0.5/queues/rx-12/rps_cpus"
        ));
        for path in [
            "/etc/passwd",
            "/sys/class/net/../queues/rx-0/rps_cpus",
            "/sys/class/net/eth0/queues/rx-/rps_cpus",
            "/sys/class/net/eth0/queues/rx-../rps_cpus",
            "/sys/class/net/eth0/queues/rx-0/rps_cpus/",
            "/sys/class/net/eth0/../eth1/queues/rx-0/rps_cpus",
            "sys/class/net/eth0/queues/rx-0/rps_cpus",
            "/sys/class/net/e th/queues/rx-0/rps_cpus",
            "/sys/class/net/eth0\0/queues/rx-0/rps_cpus",
            "",
        ] {
            assert!(!matches(pattern, path), "{path}");
        }
    }

    #[test]
    fn a_group_may_lie_at_any_depth_and_never_outside() {
        let pattern = "/sys/fs/cgroup/**/cpu.max";
        for path in [
            "/sys/fs/cgroup/system.slice/cpu.max",
            "/sys/fs/cgroup/system.slice/docker-1.scope/cpu.max",
            r"/sys/fs/cgroup/machine.slice/machine-qemu\x2d1.scope/cpu.max",
            "/sys/fs/cgroup/tier two/unit=3,b/cpu.max",
        ] {
            assert!(matches(pattern, path), "{path}");
        }
        for path in [
            "/sys/fs/cgroup/cpu.max",
            "/sys/fs/cgroup/../x/cpu.max",
            "/sys/fs/cgroup/a/../../x/cpu.max",
            "/sys/fs/cgroup/a//cpu.max",
            "/sys/fs/cgroup/a/cpu.max/b",
            "/sys/fs/cgroup/a\n/cpu.max",
        ] {
            assert!(!matches(pattern, path), "{path}");
        }
    }

    #[test]
    fn a_table_of_somebody_else_or_on_the_host_is_not_ours() {
        let table = |name: &str| Edit::NftTable {
            name: name.to_owned(),
            present: true,
        };
        let lab = Place::Namespace("server".to_owned());
        assert!(Target::OurTable.covers(&lab, &table("rungwise_obstacle")));
        assert!(!Target::OurTable.covers(&lab, &table("firewall")));
        assert!(!Target::OurTable.covers(&Place::Host, &table("rungwise_obstacle")));
    }
}
