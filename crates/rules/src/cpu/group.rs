//! Control groups as several rules use them: which one throttles a process, and its name for display.
//!
//! A quota limits its group and all groups below it. `/` has one only inside a container, where it is the
//! container's own group under another name (Documentation/admin-guide/cgroup-v2.rst, Namespace).

use rungwise_model::check::Finding;
use rungwise_model::evidence::{Evidence, Kind, Quantity, Subject};
use rungwise_model::keys;

/// The name of a container's own group inside the container.
const ROOT: &str = "/";

/// The group of a process, if known.
pub(crate) fn of_process<'e>(evidence: &'e Evidence, pid: &str) -> Option<&'e str> {
    let process = Subject::new(Kind::Process, pid);
    let group = evidence.words(&keys::CGROUP_OF_PROCESS, &process).ok()?;
    Some(group.value)
}

/// The first group that is throttled in more than `above` of its periods and passes `holds`.
pub(crate) fn throttled(
    evidence: &Evidence,
    above: f64,
    holds: impl Fn(&str) -> bool,
) -> Option<(&Subject, Quantity<'_>)> {
    let groups = evidence.each(&keys::CGROUP_THROTTLED).ok()?;
    groups
        .into_iter()
        .find(|(group, share)| share.value > above && holds(group.name()))
}

/// Whether a quota of `group` limits the processes in `own`.
pub(crate) fn holds(group: &str, own: &str) -> bool {
    let below = own.strip_prefix(group.trim_end_matches('/'));
    below.is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

/// `control group /docker/web`, or the container's own with its name on the host, if known.
pub(crate) fn named(group: &Subject, evidence: &Evidence) -> String {
    if group.name() != ROOT {
        return format!("control group {}", group.name());
    }
    let own = evidence.words(&keys::CGROUP_OWN, &Subject::host());
    match own {
        Ok(own) if own.value != ROOT => {
            format!("this container's control group ({} on its host)", own.value)
        }
        _ => "this container's control group".to_owned(),
    }
}

/// Recommends another quota for the group, by name if a knob can find it.
pub(crate) fn consider_quota(finding: Finding, group: &Subject) -> Finding {
    match group.name() {
        // Set from outside: the files of its own group are shown to a container to read.
        ROOT => finding.consider("cpu.cfs_quota"),
        name => finding.consider_device("cpu.cfs_quota", name),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_quota_holds_its_group_and_what_is_below_it() {
        for (group, own, expected) in [
            ("/docker/web", "/docker/web", true),
            ("/docker/web", "/docker/web/worker", true),
            ("/docker/web", "/docker/web2", false),
            ("/docker/web", "/docker", false),
            ("/", "/docker/web", true),
            ("/", "/", true),
        ] {
            assert_eq!(holds(group, own), expected, "{group} {own}");
        }
    }
}
