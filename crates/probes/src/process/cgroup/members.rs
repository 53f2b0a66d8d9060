//! Members of a limited group: its processes and those of the groups below it, busiest first.

use std::collections::BTreeMap;

use rungwise_formats::cgroup;
use rungwise_formats::task;
use rungwise_model::evidence::{Absence, Evidence, Origin};
use rungwise_model::keys;

use super::super::{Ran, run_rates, stat_rates};
use super::{Group, MEMBERSHIPS};
use crate::{Window, enter};

/// Number of processes named.
const MOST: usize = 4;

/// A process of a group.
#[derive(Debug)]
pub(super) struct Member<'a> {
    pid: u32,
    name: &'a str,
    /// Ticks of CPU time in the window.
    ticks: f64,
}

/// The processes of a group and of those below it, busiest first.
pub(super) fn members<'a>(window: &Window<'a>, group: &Group, controller: &str) -> Vec<Member<'a>> {
    let below = format!("{}/", group.name.trim_end_matches('/'));
    let is_in = |path: &str| path == group.name || path.starts_with(&below);
    let mut members: Vec<Member<'a>> = window
        .matching(MEMBERSHIPS)
        .into_iter()
        .filter_map(|(path, stars)| {
            let of = cgroup::membership(window.text(path).ok()?, controller)?;
            (of.unified == group.unified && is_in(of.path)).then_some(())?;
            let pid: u32 = stars.first()?.parse().ok()?;
            let stat = format!("/proc/{pid}/stat");
            let name = task::stat(window.text(&stat).ok()?)?.name;
            let ticks = stat_rates(window, &stat).map_or(0.0, |used| used.ticks.delta);
            Some(Member { pid, name, ticks })
        })
        .collect();
    members.sort_by(|a, b| b.ticks.total_cmp(&a.ticks).then(a.pid.cmp(&b.pid)));
    members
}

pub(super) fn derive(
    window: &Window<'_>,
    evidence: &mut Evidence,
    limited: &[(Group, &'static str)],
) {
    let mut named = BTreeMap::new();
    for (group, controller) in limited {
        // A group of the same name in another tree has other processes as a rule only where the limits are others.
        named.entry(&group.name).or_insert((group, *controller));
    }
    let key = &keys::CGROUP_MEMBERS;
    for (group, controller) in named.into_values() {
        let members = members(window, group, controller);
        let origin = Origin::new(MEMBERSHIPS, format!("{} processes", members.len()));
        if members.is_empty() {
            let why = Absence::because("no process in it can be seen");
            enter::absent(evidence, key, group.subject(), why, origin);
        } else {
            let words = words(&members);
            evidence.text(key, group.subject(), &words, origin);
        }
        if !group.unified
            && evidence
                .quantity(&keys::CGROUP_WEIGHT, &group.subject())
                .is_ok()
        {
            wait(window, evidence, group, &members);
        }
    }
    let why = Absence::none("no control group is limited");
    enter::absent_if_unset(evidence, &[key], &why, MEMBERSHIPS);
}

/// `redis-server (812), redis-bgsave (900) and 3 more`
fn words(members: &[Member<'_>]) -> String {
    let named: Vec<String> = members
        .iter()
        .take(MOST)
        .map(|member| format!("{} ({})", member.name, member.pid))
        .collect();
    let named = named.join(", ");
    match members.len().saturating_sub(MOST) {
        0 => named,
        more => format!("{named} and {more} more"),
    }
}

/// The CPU wait of the member whose first thread, or another read thread, waited longest.
fn wait(window: &Window<'_>, evidence: &mut Evidence, group: &Group, members: &[Member<'_>]) {
    let waits = members.iter().flat_map(|member| {
        let threads = window.matching(&format!("/proc/{}/task/*/schedstat", member.pid));
        let own = format!("/proc/{}/schedstat", member.pid);
        let paths = threads.into_iter().map(|(path, _)| path.to_owned());
        let paths = paths.chain([own]);
        paths.filter_map(|path| Some((run_rates(window, &path).ok()?, path)))
    });
    let most = waits.max_by(|(a, _), (b, _)| a.waited.per_s.total_cmp(&b.waited.per_s));
    let (key, subject) = (&keys::CGROUP_CPU_WAIT, group.subject());
    if let Some((Ran { ran, waited }, path)) = most {
        enter::share(
            evidence,
            key,
            subject,
            (&waited, 1e-9),
            (&path, "waited ns"),
        );
        let (key, subject) = (&keys::CGROUP_CPU_RAN, group.subject());
        enter::share(evidence, key, subject, (&ran, 1e-9), (&path, "ran ns"));
    } else {
        let why = Absence::because("no process in it is visible for the whole window");
        enter::absent(evidence, key, subject, why, Origin::new(MEMBERSHIPS, ""));
    }
}
