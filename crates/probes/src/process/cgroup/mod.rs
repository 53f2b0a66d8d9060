//! Control groups: their limits, and the effect of the limits.
//!
//! Source: kernel/sched/core.c (`cpu_cfs_stat_show`, `cpu_extra_stat_show`), mm/memcontrol.c, block/blk-throttle.c,
//! kernel/cgroup/pids.c and freezer.c, Linux 6.18; Documentation/admin-guide/cgroup-v1 and cgroup-v2.rst. `groups`
//! defines which files are read and how groups are found at any depth.

mod cpu;
mod limits;
mod members;
mod memory;

use std::collections::BTreeSet;

use rungwise_formats::cgroup::{self, Membership, Tree};
use rungwise_formats::pressure;
use rungwise_model::evidence::{Absence, Evidence, Key, Kind, Origin, Subject};
use rungwise_model::kernel::Answer;
use rungwise_model::keys;

use super::unnamed;
use crate::capture::Raw;
use crate::groups;
use crate::probe::{What, When};
use crate::window::shows;
use crate::{Cost, Probe, Source, Window, enter};

const MEMBERSHIP: &str = "/proc/{pid}/cgroup";
const MEMBERSHIPS: &str = "/proc/*/cgroup";
const OWN: &str = "/proc/self/cgroup";

/// The probe.
pub(crate) static PROBE: Probe = Probe {
    id: "sys-fs-cgroup",
    summary: "limited control groups, and the effect of their limits: CPU, memory, disks, processes, freezer",
    cost: Cost::Cheap,
    needs: &[],
    sources: &[
        Source::once(MEMBERSHIP),
        Source::once("/proc/{owner}/cgroup"),
        Source::once(OWN),
        Source {
            what: What::Groups,
            when: When::Each,
        },
        Source {
            what: What::Groups,
            when: When::Often,
        },
    ],
    yields: &[
        &keys::CGROUP_CPU_RAN,
        &keys::CGROUP_CPU_WAIT,
        &keys::CGROUP_FROZEN,
        &keys::CGROUP_FROZEN_SHARE,
        &keys::CGROUP_IO_LIMIT,
        &keys::CGROUP_IO_USED,
        &keys::CGROUP_IO_WAIT,
        &keys::CGROUP_MEMBERS,
        &keys::CGROUP_MEMORY_FAULTS,
        &keys::CGROUP_MEMORY_LIMIT,
        &keys::CGROUP_MEMORY_REFAULTS,
        &keys::CGROUP_MEMORY_SWAP,
        &keys::CGROUP_MEMORY_USED,
        &keys::CGROUP_MEMORY_WAIT,
        &keys::CGROUP_OF_PROCESS,
        &keys::CGROUP_OOM_KILLS,
        &keys::CGROUP_OWN,
        &keys::CGROUP_PIDS,
        &keys::CGROUP_PIDS_LIMIT,
        &keys::CGROUP_PIDS_REFUSED,
        &keys::CGROUP_PIDS_USED,
        &keys::CGROUP_REFUSED,
        &keys::CGROUP_QUOTA,
        &keys::CGROUP_THROTTLED,
        &keys::CGROUP_THROTTLED_TIME,
        &keys::CGROUP_WEIGHT,
        &keys::MEMORY_CGROUP_RECLAIM,
    ],
    derive,
    doc: "\
The trees are taken from `/proc/self/mountinfo`, and from that of the first process if this namespace has none, so any \
layout is covered: cgroup v1, v2, both. Each tree is walked once at the start of the window, up to 1,500 groups and 24 \
levels; the key reports what was cut. The settings of each group are read, but counters only of limited groups: a \
group without a quota has no throttling to count. The groups of all processes are read if some group is limited. A \
group that is limited after the first sample is missed. The freezers above services are read in every sample: a group \
that is frozen for 10 ms per second may still be missed. If no group is limited, the root has the value zero. The \
limits of the groups above also apply to a group. Throttled time is summed over CPUs, so its share of the window may \
exceed one. A burst allowance (`cpu.max.burst`) is not read. Memory: limit hits are `high` and `max` of \
`memory.events.local` (`memory.events` before Linux 5.3), with cgroup v1 `failcnt`. Pages read again shortly after \
they were reclaimed are `workingset_refault`, from Linux 4.20 on. Waits (`*.pressure`) exist in cgroup v2 only; with \
v1, the CPU wait is the run delay of the member whose first thread, or another read thread, waited longest. Of \
hugetlb and misc only refusals are counted, with cgroup v2. For \
`blkio.throttle` and `io.max` the share is that of the tightest limit. Inside a container only the container's own \
group is visible, as `/`: the root of a host has no quota. `/proc/self/cgroup` contains its name on the host, unless \
the container has its own cgroup namespace. Sources: kernel/sched/core.c, mm/memcontrol.c, block/blk-throttle.c, \
kernel/cgroup/pids.c of Linux 6.18; Documentation/admin-guide/cgroup-v1, cgroup-v2.rst.",
};

/// One group in one tree.
#[derive(Clone, Debug)]
struct Group {
    /// Name in `/proc/PID/cgroup`; the root is `/`.
    name: String,
    folder: String,
    unified: bool,
}

impl Group {
    fn subject(&self) -> Subject {
        Subject::new(Kind::Cgroup, &self.name)
    }

    fn file(&self, name: &str) -> String {
        format!("{}/{name}", self.folder)
    }
}

fn derive(window: &Window<'_>, evidence: &mut Evidence) {
    let of_groups = |key: &&&'static Key| {
        let of_no_group = [&keys::CGROUP_OWN, &keys::CGROUP_OF_PROCESS];
        !of_no_group.contains(*key)
    };
    let trees = trees(window);
    match &trees {
        Ok(trees) => {
            let mut limited = Vec::new();
            limited.extend(cpu::derive(window, evidence, trees));
            limited.extend(memory::derive(window, evidence, trees));
            limited.extend(limits::derive(window, evidence, trees));
            members::derive(window, evidence, &limited);
            cut(window, evidence, trees);
        }
        Err(why) => {
            let keys: Vec<_> = PROBE.yields.iter().filter(of_groups).copied().collect();
            evidence.absent(&keys, why, "/sys/fs/cgroup");
        }
    }
    own(window, evidence);
    of_processes(window, evidence, trees.as_deref());
}

/// The group of the process is outside all mounts, so its limits are unknown.
fn out_of_sight(window: &Window<'_>, evidence: &mut Evidence, pid: u32, trees: &[Tree]) {
    let path = MEMBERSHIPS.replace('*', &pid.to_string());
    let Some(group) = window
        .text(&path)
        .ok()
        .and_then(|text| group_of(text, &path).ok())
    else {
        return;
    };
    let shows = |tree: &Tree| {
        tree.unified == group.unified && tree.may_have("cpu") && tree.folder(group.path).is_some()
    };
    if trees.iter().any(shows) {
        return;
    }
    let why = Absence::because(format!(
        "no cgroup mount here contains the group of the process, {}",
        group.path
    ))
    .remedy("run rungwise on the host, or where its control groups are mounted");
    let subject = Subject::new(Kind::Cgroup, group.path);
    for key in [
        &keys::CGROUP_QUOTA,
        &keys::CGROUP_THROTTLED,
        &keys::CGROUP_THROTTLED_TIME,
    ] {
        if evidence.reading(key, &subject).is_none() {
            let origin = Origin::new(&path, "");
            enter::absent(evidence, key, subject.clone(), why.clone(), origin);
        }
    }
}

/// The trees of control groups, or why there are none.
fn trees(window: &Window<'_>) -> Result<Vec<Tree>, Absence> {
    let mounts = |path: &str| window.texts(path).ok()?.first().map(|(_, text)| *text);
    let listed = groups::trees(mounts);
    // A mount hidden by another one is listed, but invisible. Settings are in the first sample.
    let is_seen = |tree: &Tree| {
        let folder = format!("{}/", tree.point);
        window.moments().iter().any(|moment| shows(moment, &folder))
    };
    if listed.iter().any(is_seen) {
        return Ok(listed);
    }
    if !listed.is_empty() {
        return Err(nowhere());
    }
    // A capture of an older version, or a host in texts: the usual places.
    let usual = |point: &str, options: &str, unified| {
        let folder = format!("{point}/");
        let last = window.moments().last()?;
        shows(last, &folder).then(|| Tree {
            unified,
            options: options.to_owned(),
            root: "/".to_owned(),
            point: point.to_owned(),
        })
    };
    if window.text("/sys/fs/cgroup/cpu.stat").is_ok()
        || window.text("/sys/fs/cgroup/cpu.max").is_ok()
    {
        return Ok(usual("/sys/fs/cgroup", "", true).into_iter().collect());
    }
    let controllers = ["cpu", "memory", "blkio", "pids", "freezer"];
    let trees: Vec<Tree> = controllers
        .into_iter()
        .filter_map(|name| usual(&format!("/sys/fs/cgroup/{name}"), name, false))
        .collect();
    if !trees.is_empty() {
        return Ok(trees);
    }
    match window.text(groups::OWN_MOUNTS) {
        Err(why) if mounts(groups::OWN_MOUNTS).is_none() => Err(not_mounted(window).unwrap_or(why)),
        _ => Err(nowhere()),
    }
}

fn nowhere() -> Absence {
    Absence::because("no control groups are mounted")
        .remedy("run mount -t cgroup2 none /sys/fs/cgroup, or run rungwise on the host")
}

/// A capture of an older version requested only the root's file.
fn not_mounted(window: &Window<'_>) -> Option<Absence> {
    let last = window.moments().last()?;
    let asked = last.files.get("/sys/fs/cgroup/cpu.stat")?;
    let is_missing = matches!(asked, Raw::Failed { failed } if failed == "ENOENT");
    (is_missing && shows(last, "/sys/") && !shows(last, "/sys/fs/cgroup/")).then(nowhere)
}

/// Groups that have `file` in the last full sample, in the trees of that cgroup version that may have the controller.
fn groups(
    window: &Window<'_>,
    trees: &[Tree],
    unified: bool,
    controller: &str,
    file: &str,
) -> Vec<Group> {
    let Some(last) = window.moments().last() else {
        return Vec::new();
    };
    let mut groups = Vec::new();
    let suitable = |tree: &&Tree| tree.unified == unified && tree.may_have(controller);
    for tree in trees.iter().filter(suitable) {
        let top = format!("{}/", tree.point);
        let below = last.files.range(top.clone()..);
        for (path, raw) in below.take_while(|(path, _)| path.starts_with(&top)) {
            let folder = path
                .strip_suffix(file)
                .and_then(|folder| folder.strip_suffix('/'));
            if let (Some(folder), Raw::Text(_)) = (folder, raw) {
                let below = &folder[tree.point.len()..];
                let name = format!("{}{below}", tree.root.trim_end_matches('/'));
                groups.push(Group {
                    name: if name.is_empty() {
                        "/".to_owned()
                    } else {
                        name
                    },
                    folder: folder.to_owned(),
                    unified,
                });
            }
        }
    }
    groups.sort_by(|a, b| a.name.cmp(&b.name));
    groups
}

/// Number of groups read for a limit of this kind: their settings are in the first sample.
fn groups_read(window: &Window<'_>, file: &[&str]) -> usize {
    let number = |moment: &crate::Moment| {
        let is_one = |path: &&String| {
            let name = path.rsplit('/').next().unwrap_or_default();
            file.contains(&name)
        };
        moment.files.keys().filter(is_one).count()
    };
    window
        .moments()
        .iter()
        .map(number)
        .max()
        .unwrap_or_default()
}

/// The root gets zero if no group is limited in this way: `what` is the reason, `files` are the settings.
fn none(
    window: &Window<'_>,
    evidence: &mut Evidence,
    (keys, zeros): (&[&'static Key], &[&'static Key]),
    (what, files): (&str, &[&str]),
) {
    let groups_read = groups_read(window, files);
    let source = "control groups";
    if groups_read == 0 && window.texts(groups::OWN_MOUNTS).is_err() {
        let why = Absence::because("this capture does not contain the limits of control groups")
            .remedy("record it again with `rungwise capture`");
        evidence.absent(keys, &why, source);
        return evidence.absent(zeros, &why, source);
    }
    let line = format!("{what} (groups read: {groups_read})");
    evidence.absent(keys, &Absence::none(&line), source);
    for key in zeros {
        let subject = Subject::new(Kind::Cgroup, "/");
        evidence.number(key, subject, 0.0, Origin::new(source, &line));
    }
}

/// A file of one number.
fn number(window: &Window<'_>, path: &str) -> Result<f64, Absence> {
    let text = window.text(path)?.trim();
    let number = text.parse::<u64>();
    let number = number.map_err(|_| {
        Absence::because(format!("{path} contains '{text}', which is not a number"))
    })?;
    Ok(number as f64)
}

/// The share of the window in which some task of the group waited, from its `*.pressure` (cgroup v2).
fn waited(
    window: &Window<'_>,
    evidence: &mut Evidence,
    key: &'static Key,
    group: &Group,
    file: &str,
) {
    let path = group.file(file);
    let totals = |text| {
        let total = pressure::parse(text).map(|pressure| pressure.some.total_us as f64);
        total.map(|total| ((), total)).into_iter().collect()
    };
    match window.rates(&path, totals) {
        Ok(mut rates) => {
            if let Some(rate) = rates.remove(&()) {
                let name = (path.as_str(), "some total us");
                enter::share(evidence, key, group.subject(), (&rate, 1e-6), name);
            }
        }
        Err(why) => {
            let origin = Origin::new(&path, "");
            enter::absent(evidence, key, group.subject(), why, origin);
        }
    }
}

/// Records for keys without a limited group that other groups were not read.
fn cut(window: &Window<'_>, evidence: &mut Evidence, trees: &[Tree]) {
    let mut cut = BTreeSet::new();
    for moment in window.moments() {
        for tree in trees {
            if let Some(Raw::Failed { failed }) = moment.files.get(&groups::cut(&tree.point)) {
                cut.insert(failed.clone());
            }
        }
    }
    for why in cut {
        // The groups read stay; the host's reading reports that there are more.
        let subject = Subject::host();
        let remedy = "run `rungwise check --pid PID`";
        for key in [&keys::CGROUP_QUOTA, &keys::CGROUP_MEMORY_LIMIT] {
            if evidence.reading(key, &subject).is_none() {
                let why = Absence::because(&why).remedy(remedy);
                evidence.absent(&[key], &why, "control groups");
            }
        }
    }
}

/// The group of rungwise itself: the name of its container on the host.
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

/// The groups of the processes that have a reported socket open, and of the judged one.
fn of_processes(window: &Window<'_>, evidence: &mut Evidence, trees: Result<&[Tree], &Absence>) {
    let key = &keys::CGROUP_OF_PROCESS;
    let judged = window.capture().process.as_ref().map(|process| process.pid);
    let mut pids: BTreeSet<u32> = judged.into_iter().collect();
    if let Ok(Answer::Owners(owners)) = window.answer("owners") {
        pids.extend(owners.values().map(|owner| owner.pid));
    } else {
        let all = window.matching(MEMBERSHIPS).into_iter();
        pids.extend(all.filter_map(|(_, stars)| stars.first()?.parse::<u32>().ok()));
    }
    for pid in pids {
        let path = MEMBERSHIPS.replace('*', &pid.to_string());
        let text = window.text(&path);
        let group = text.clone().and_then(|text| group_of(text, &path));
        if group.is_err() && judged != Some(pid) {
            continue;
        }
        let subject = Subject::new(Kind::Process, pid);
        let origin = Origin::new(path.clone(), text.unwrap_or_default().trim());
        let name = group.map(|group| group.path);
        enter::text(evidence, key, subject, name, origin);
    }
    if let (Some(pid), Ok(trees)) = (judged, trees) {
        out_of_sight(window, evidence, pid, trees);
    }
    if judged.is_none() {
        enter::absent_if_unset(evidence, &[key], &unnamed(), MEMBERSHIP);
    }
}
