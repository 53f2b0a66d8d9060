//! The members of a systemd unit: all processes of its control group and of the groups below it. From
//! `/proc/PID/cgroup`, which names the groups of a process in every version and layout of control groups, without
//! looking for where they are mounted.

use std::io;
use std::path::Path;

use super::kin::Kin;
use crate::error::{Error, Result};

/// The processes of a unit such as `nginx.service`, or of any other control group of this name, `docker-1a2b….scope` say. A daemon that left
/// its session and its parent is among them. Never this process.
pub fn members_of_unit(unit: &str) -> io::Result<Vec<u32>> {
    let listed = crate::files::list(Path::new("/proc"))?;
    let pids = listed.iter().filter_map(|name| name.parse().ok());
    let members = pids.filter(|pid: &u32| {
        // One that has ended since it was listed has no file.
        let text = std::fs::read_to_string(format!("/proc/{pid}/cgroup"));
        *pid != std::process::id() && text.is_ok_and(|text| is_in(&text, unit))
    });
    Ok(members.collect())
}

/// The first process of a unit: the oldest whose parent is not a member.
///
/// # Errors
///
/// [`Error::Missing`] where no process is in such a group.
pub fn main_of_unit(unit: &str) -> Result<u32> {
    let tried = format!("find the processes of {unit}");
    let members = members_of_unit(unit).map_err(Error::system(tried.clone()))?;
    let kin: Vec<Kin> = members.iter().filter_map(|pid| Kin::read(*pid)).collect();
    let is_first = |one: &&Kin| !members.contains(&one.parent);
    let first = kin
        .iter()
        .filter(is_first)
        .min_by_key(|one| (one.started, one.pid));
    first.map(|one| one.pid).ok_or_else(|| Error::Missing {
        tried,
        why: "no process is in a control group of this name".to_owned(),
        remedy: format!(
            "check its state and its name with `systemctl status {unit}` or systemd-cgls"
        ),
    })
}

/// Whether a process with this `/proc/PID/cgroup` is in a group of this name, in any hierarchy: `NUMBER:CONTROLLERS:PATH`.
fn is_in(cgroup: &str, unit: &str) -> bool {
    let paths = cgroup.lines().filter_map(|line| line.splitn(3, ':').nth(2));
    paths
        .flat_map(|path| path.split('/'))
        .any(|group| !unit.is_empty() && group == unit)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_group_is_known_by_its_name_in_every_layout() {
        let unified = "0::/system.slice/nginx.service\n";
        let nested = "0::/system.slice/docker-1a.scope/workers\n";
        let hybrid = "5:cpu,cpuacct:/\n1:name=systemd:/system.slice/nginx.service\n0::/\n";
        assert!(is_in(unified, "nginx.service") && is_in(hybrid, "nginx.service"));
        assert!(is_in(nested, "docker-1a.scope"));
        assert!(!is_in(unified, "nginx") && !is_in(unified, "") && !is_in("", "nginx.service"));
    }

    #[test]
    fn a_unit_that_does_not_run_is_named() {
        let error = main_of_unit("rungwise-no-such.service")
            .unwrap_err()
            .to_string();
        assert!(error.contains("rungwise-no-such.service"), "{error}");
        assert!(error.contains("systemctl status"), "{error}");
    }
}
