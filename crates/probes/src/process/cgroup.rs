//! Control groups: which have a CPU quota, how often it stopped them, who hits a memory limit.
//!
//! Source: kernel/sched/core.c (`cpu_cfs_stat_show`, `cpu_extra_stat_show`), mm/memcontrol.c, Linux 6.18;
//! Documentation/admin-guide/cgroup-v2.rst. Groups are looked for where systemd, Docker, Kubernetes and LXC put
//! them, and no deeper: a tree may hold thousands.

use std::collections::BTreeMap;

use rungwise_formats::cgroup::{self, Membership, Quota};
use rungwise_formats::flat;
use rungwise_model::evidence::{Absence, Evidence, Kind, Origin, Subject};
use rungwise_model::keys;

use super::unnamed;
use crate::capture::Raw;
use crate::window::shows;
use crate::{Cost, Probe, Rate, Source, Window, enter};

const MEMBERSHIP: &str = "/proc/{pid}/cgroup";
const MEMBERSHIPS: &str = "/proc/*/cgroup";
const OWN: &str = "/proc/self/cgroup";

/// The folders of groups below the root of a tree, and the files that are read in each, of both versions.
macro_rules! groups {
    ($($folder:literal)*) => {
        const FOLDERS: &[&str] = &[$($folder),*];

        static SOURCES: &[Source] = &[
            Source::once(MEMBERSHIP),
            Source::once("/proc/{owner}/cgroup"),
            Source::once(OWN),
            $(
                Source::ends(concat!("/sys/fs/cgroup", $folder, "/cpu.stat")),
                Source::once(concat!("/sys/fs/cgroup", $folder, "/cpu.max")),
                Source::ends(concat!("/sys/fs/cgroup", $folder, "/memory.events")),
                Source::ends(concat!("/sys/fs/cgroup/cpu", $folder, "/cpu.stat")),
                Source::once(concat!("/sys/fs/cgroup/cpu", $folder, "/cpu.cfs_quota_us")),
                Source::once(concat!("/sys/fs/cgroup/cpu", $folder, "/cpu.cfs_period_us")),
                Source::ends(concat!("/sys/fs/cgroup/memory", $folder, "/memory.failcnt")),
            )*
        ];
    };
}

groups! {
    // The root; in a container with a cgroup namespace, the container itself.
    ""
    // Right below it: slices, LXC of version 2, whatever somebody made by hand.
    "/*"
    // systemd, and what runs under it: Docker and Kubernetes with the systemd driver.
    "/*.slice/*.service"
    "/*.slice/*.scope"
    "/*.slice/*.slice"
    "/*.slice/*.slice/*.service"
    "/*.slice/*.slice/*.scope"
    "/*.slice/*.slice/*.slice"
    "/*.slice/*.slice/*.slice/*.scope"
    // Docker and Kubernetes with the cgroupfs driver: QoS class, pod, container.
    "/docker/*"
    "/kubepods/*"
    "/kubepods/pod*/*"
    "/kubepods/*/pod*"
    "/kubepods/*/pod*/*"
    // LXC of version 1.
    "/lxc/*"
}

/// The probe.
pub(crate) static PROBE: Probe = Probe {
    id: "sys-fs-cgroup",
    summary: "control groups with a CPU quota, their throttling, and memory limits that were hit",
    cost: Cost::Cheap,
    needs: &[],
    sources: SOURCES,
    yields: &[
        &keys::CGROUP_OF_PROCESS,
        &keys::CGROUP_OWN,
        &keys::CGROUP_QUOTA,
        &keys::CGROUP_THROTTLED,
        &keys::CGROUP_THROTTLED_TIME,
        &keys::MEMORY_CGROUP_RECLAIM,
    ],
    derive,
    doc: "\
Groups are looked for right below the root and in the places of systemd (up to three slices deep), Docker, \
Kubernetes and LXC, of version 2 \
(`cpu.max`) or, where the machine has it, of version 1 (`cpu.cfs_quota_us`). Only groups with a quota are listed; if \
none has one, the root group stands for all with a throttled share of zero. A group is held back by the quotas of \
the groups above it as well. Throttled time adds up over CPUs, so its share of the window may exceed one. A burst \
allowance (`cpu.max.burst`) is not read. Memory: of version 2 the events `high` and `max` of the group and those below \
it, of version 1 `failcnt`; listed are groups whose count moved, and the root with zero if none did. Inside a \
container only the container's own group is seen, and named `/`: the root of a host has no quota. What the host calls \
it, `/proc/self/cgroup` tells unless the container has a namespace of its own for control groups. Groups are told of \
the judged process and of those that have a told socket open. \
Sources: kernel/sched/core.c, mm/memcontrol.c of Linux 6.18; Documentation/admin-guide/cgroup-v2.rst.",
};

/// The tree of a controller: where it is mounted, and which version it is.
#[derive(Clone, Copy)]
struct Tree {
    root: &'static str,
    unified: bool,
}

fn derive(window: &Window<'_>, evidence: &mut Evidence) {
    match tree(window) {
        Ok(tree) => {
            cpu(window, evidence, tree);
            memory(window, evidence, tree);
        }
        Err(why) => evidence.absent(PROBE.yields, &why, "/sys/fs/cgroup"),
    }
    own(window, evidence);
    of_owners(window, evidence);
    of_process(window, evidence);
}

/// The tree that has the CPU controller.
fn tree(window: &Window<'_>) -> Result<Tree, Absence> {
    let tree = |root, unified| {
        let path = format!("{root}/cpu.stat");
        window.text(&path).map(|_| Tree { root, unified })
    };
    tree("/sys/fs/cgroup", true)
        .or_else(|_| tree("/sys/fs/cgroup/cpu", false))
        .map_err(|why| not_mounted(window).unwrap_or(why))
}

/// Where `/sys` is there and nothing below the usual place of control groups, nobody mounted them: the kernel may well have
/// them.
fn not_mounted(window: &Window<'_>) -> Option<Absence> {
    let last = window.moments().last()?;
    let asked = last.files.get("/sys/fs/cgroup/cpu.stat")?;
    let is_missing = matches!(asked, Raw::Failed { failed } if failed == "ENOENT");
    (is_missing && shows(last, "/sys/") && !shows(last, "/sys/fs/cgroup/")).then(|| {
        Absence::because("no control groups are mounted at /sys/fs/cgroup")
            .remedy("mount -t cgroup2 none /sys/fs/cgroup, or look from the host")
    })
}

/// Groups that have `file`, each with its path in the tree and its folder; the root is `/`.
fn groups<'a>(window: &Window<'a>, root: &str, file: &str) -> Vec<(&'a str, &'a str)> {
    let mut groups: Vec<(&str, &str)> = FOLDERS
        .iter()
        .flat_map(|folder| window.matching(&format!("{root}{folder}/{file}")))
        .filter(|(path, _)| window.text(path).is_ok())
        .filter_map(|(path, _)| {
            let folder = path.strip_suffix(file)?.strip_suffix('/')?;
            let group = folder.strip_prefix(root)?;
            Some((if group.is_empty() { "/" } else { group }, folder))
        })
        .collect();
    // `/kubepods/pod7` is found as a class and as a pod.
    groups.sort_unstable();
    groups.dedup();
    groups
}

fn cpu(window: &Window<'_>, evidence: &mut Evidence, tree: Tree) {
    let groups = groups(window, tree.root, "cpu.stat");
    let mut limited = 0;
    for (group, folder) in &groups {
        if let Some((cpus, line)) = quota(window, folder, tree.unified) {
            limited += 1;
            let subject = Subject::new(Kind::Cgroup, group);
            let origin = Origin::new(*folder, line);
            evidence.number(&keys::CGROUP_QUOTA, subject, cpus, origin);
            throttling(window, evidence, group, folder);
        }
    }
    if limited == 0 {
        let line = format!("no CPU quota (groups looked at: {})", groups.len());
        evidence.absent(&[&keys::CGROUP_QUOTA], &Absence::because(&line), tree.root);
        for key in [&keys::CGROUP_THROTTLED, &keys::CGROUP_THROTTLED_TIME] {
            let subject = Subject::new(Kind::Cgroup, "/");
            evidence.number(key, subject, 0.0, Origin::new(tree.root, &line));
        }
    }
}

/// The quota in CPUs and the text that says so; nothing where there is none.
fn quota(window: &Window<'_>, folder: &str, unified: bool) -> Option<(f64, String)> {
    let text = |file: &str| window.text(&format!("{folder}/{file}")).ok();
    let (quota, line) = if unified {
        let text = text("cpu.max")?;
        (cgroup::cpu_max(text)?, format!("cpu.max {}", text.trim()))
    } else {
        let (quota, period) = (text("cpu.cfs_quota_us")?, text("cpu.cfs_period_us")?);
        let line = format!(
            "cpu.cfs_quota_us {}, cpu.cfs_period_us {}",
            quota.trim(),
            period.trim()
        );
        (cgroup::cfs_quota(quota, period)?, line)
    };
    match quota {
        Quota::Cpus(cpus) => Some((cpus, line)),
        Quota::Unlimited => None,
    }
}

fn throttling(window: &Window<'_>, evidence: &mut Evidence, group: &str, folder: &str) {
    let path = format!("{folder}/cpu.stat");
    let subject = || Subject::new(Kind::Cgroup, group);
    let rates = match window.rates(&path, counters) {
        Ok(rates) => rates,
        Err(why) => {
            for key in [&keys::CGROUP_THROTTLED, &keys::CGROUP_THROTTLED_TIME] {
                enter::absent(
                    evidence,
                    key,
                    subject(),
                    why.clone(),
                    Origin::new(&path, ""),
                );
            }
            return;
        }
    };
    let why = || {
        Absence::because(format!(
            "{path} was reset in the window, or does not tell it"
        ))
    };
    let (share, line) = match (rates.get("nr_throttled"), rates.get("nr_periods")) {
        (Some(throttled), Some(periods)) => (
            // A period passes only while the group has something to run.
            Ok(if periods.delta > 0.0 {
                throttled.delta / periods.delta
            } else {
                0.0
            }),
            format!(
                "nr_throttled {}; nr_periods {}",
                throttled.line(),
                periods.line()
            ),
        ),
        _ => (Err(why()), String::new()),
    };
    let origin = Origin::new(&path, line);
    enter::number(evidence, &keys::CGROUP_THROTTLED, subject(), share, origin);

    let key = &keys::CGROUP_THROTTLED_TIME;
    let time = [("throttled_usec", 1e-6), ("throttled_time", 1e-9)]
        .into_iter()
        .find_map(|(name, unit)| Some((rates.get(name)?, unit, name)));
    match time {
        Some((rate, unit, name)) => {
            enter::counter(evidence, key, subject(), (rate, unit), (&path, name));
        }
        None => enter::absent(evidence, key, subject(), why(), Origin::new(&path, "")),
    }
}

fn counters(text: &str) -> BTreeMap<&str, f64> {
    flat::parse(text)
        .into_iter()
        .map(|(name, value)| (name, value as f64))
        .collect()
}

fn memory(window: &Window<'_>, evidence: &mut Evidence, tree: Tree) {
    let (root, file) = if tree.unified {
        ("/sys/fs/cgroup", "memory.events")
    } else {
        ("/sys/fs/cgroup/memory", "memory.failcnt")
    };
    let key = &keys::MEMORY_CGROUP_RECLAIM;
    let groups = groups(window, root, file);
    let Some((_, first)) = groups.first() else {
        let why = Absence::none("no control group limits memory");
        return evidence.absent(&[key], &why, root);
    };
    if let Err(why) = window.rates(&format!("{first}/{file}"), hits) {
        return evidence.absent(&[key], &why, root);
    }
    let mut moved = 0;
    for (group, folder) in &groups {
        let path = format!("{folder}/{file}");
        let Some(rate) = hits_of(window, &path) else {
            continue;
        };
        if rate.delta > 0.0 {
            moved += 1;
            let subject = Subject::new(Kind::Cgroup, group);
            enter::counter(evidence, key, subject, (&rate, 1.0), (&path, "limit hit"));
        }
    }
    if moved == 0 {
        let line = format!("no limit was hit (groups looked at: {})", groups.len());
        let subject = Subject::new(Kind::Cgroup, "/");
        evidence.number(key, subject, 0.0, Origin::new(root, line));
    }
}

fn hits_of(window: &Window<'_>, path: &str) -> Option<Rate> {
    window.rates(path, hits).ok()?.remove(&())
}

/// How often a limit was hit: `memory.events` of version 2, or the one number of version 1.
fn hits(text: &str) -> BTreeMap<(), f64> {
    let events = flat::parse(text);
    let event = |name| events.get(name).copied();
    let number = match (event("high"), event("max")) {
        (Some(high), Some(max)) => Some(high.saturating_add(max)),
        _ => text.trim().parse().ok(),
    };
    number
        .map(|number| ((), number as f64))
        .into_iter()
        .collect()
}

/// The group of this tool itself: what a container with the host's names is called there.
fn own(window: &Window<'_>, evidence: &mut Evidence) {
    let text = window.text(OWN);
    let name = text
        .clone()
        .and_then(|text| group_of(text, OWN))
        .map(|group| group.path);
    let origin = Origin::new(OWN, text.unwrap_or_default().trim());
    enter::text(evidence, &keys::CGROUP_OWN, Subject::host(), name, origin);
}

/// The group for CPU time that a text of `/proc/PID/cgroup` names.
fn group_of<'a>(text: &'a str, path: &str) -> Result<Membership<'a>, Absence> {
    cgroup::membership(text, "cpu")
        .ok_or_else(|| Absence::because(format!("{path} names no group for CPU time")))
}

/// The groups of the processes that have a told socket open.
fn of_owners(window: &Window<'_>, evidence: &mut Evidence) {
    for (path, stars) in window.matching(MEMBERSHIPS) {
        let pid: Option<u32> = stars.first().and_then(|pid| pid.parse().ok());
        if let (Some(pid), Ok(text)) = (pid, window.text(path))
            && let Ok(group) = group_of(text, path)
        {
            let subject = Subject::new(Kind::Process, pid);
            let origin = Origin::new(path, text.trim());
            evidence.text(&keys::CGROUP_OF_PROCESS, subject, group.path, origin);
        }
    }
}

fn of_process(window: &Window<'_>, evidence: &mut Evidence) {
    let key = &keys::CGROUP_OF_PROCESS;
    let Some(process) = &window.capture().process else {
        return enter::unless_told(evidence, &[key], &unnamed(), MEMBERSHIP);
    };
    let path = MEMBERSHIP.replace("{pid}", &process.pid.to_string());
    let text = window.text(&path);
    let group = text.clone().and_then(|text| group_of(text, &path));
    let subject = Subject::new(Kind::Process, process.pid);
    let origin = Origin::new(path.clone(), text.unwrap_or_default().trim());
    let name = group.clone().map(|group| group.path);
    enter::text(evidence, key, subject, name, origin);

    // The group lies where none was looked for: what holds the process back is not known.
    if let (Ok(group), Ok(tree)) = (group, tree(window)) {
        let folder = match group.path {
            "/" => tree.root.to_owned(),
            path => format!("{}{path}", tree.root),
        };
        if group.unified == tree.unified && window.text(&format!("{folder}/cpu.stat")).is_err() {
            let why = Absence::because(format!(
                "the group of the process, {}, lies outside the places that are looked at",
                group.path
            ));
            for key in [
                &keys::CGROUP_QUOTA,
                &keys::CGROUP_THROTTLED,
                &keys::CGROUP_THROTTLED_TIME,
            ] {
                let subject = Subject::new(Kind::Cgroup, group.path);
                enter::absent(evidence, key, subject, why.clone(), Origin::new(&path, ""));
            }
        }
    }
}
