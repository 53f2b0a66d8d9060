//! Limits of control groups other than the CPU quota: memory, disks, processes, weight, freezer.

pub(crate) mod cgroup_frozen;
pub(crate) mod cgroup_io_limit;
pub(crate) mod cgroup_memory_limit;
pub(crate) mod cgroup_pids_limit;
pub(crate) mod cpu_weight_low;

use rungwise_model::check::Finding;
use rungwise_model::evidence::{Evidence, Subject};
use rungwise_model::keys;

use crate::cpu::group;

/// `control group /docker/web (nginx (41), nginx (42))`
fn who(group: &Subject, evidence: &Evidence) -> String {
    let named = group::named(group, evidence);
    match evidence.words(&keys::CGROUP_MEMBERS, group) {
        Ok(members) => format!("{named} ({})", members.value),
        Err(_) => named,
    }
}

/// Cites the members of the group, if known.
fn cite_members(finding: Finding, group: &Subject, evidence: &Evidence) -> Finding {
    match evidence.words(&keys::CGROUP_MEMBERS, group) {
        Ok(members) => finding.cite(members.reading),
        Err(_) => finding,
    }
}
