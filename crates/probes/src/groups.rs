//! Walks the trees of control groups, wherever they are mounted, and reads those groups that are limited.
//!
//! A group may have any name and lie at any depth. So the trees are taken from `mountinfo` and walked once in the first
//! sample, and the settings of each group are read; counters follow in each sample, only of limited groups. On most
//! machines these are few: without a quota no counter is needed. Walk and list are limited, and cuts are reported.
//! Source: kernel/cgroup/cgroup.c, Linux 6.18; Documentation/admin-guide/cgroup-v1 and cgroup-v2.rst.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::io;
use std::path::Path;

use rungwise_formats::cgroup::{self, Tree};
use rungwise_host::Host;

use crate::capture::{Moment, Raw};
use crate::gather::{Form, Position, raw, reason};

/// Where the trees are mounted, in the mount namespace of rungwise.
pub(crate) const OWN_MOUNTS: &str = "/proc/self/mountinfo";

/// The mounts of the first process, for a mount namespace without control groups.
pub(crate) const FIRST_MOUNTS: &str = "/proc/1/mountinfo";

/// Root of the file system of the first process.
pub(crate) const FIRST_ROOT: &str = "/proc/1/root";

/// Groups that are read in one tree. A node of Kubernetes has some four for each of its 110 pods.
const MOST_GROUPS: usize = 1500;

/// Groups of one tree whose counters are read.
const MOST_LIMITED: usize = 500;

/// Freezers that are sampled: of eight services, in groups four levels deep.
const MOST_FREEZERS: usize = 32;

/// No runtime nests deeper: a container in a pod in a class in a slice in a container makes ten.
const DEEPEST: usize = 24;

/// Trees that are walked: one for each controller of version 1 that is of interest, and that of version 2.
const MOST_TREES: usize = 8;

/// When a counter is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Often {
    /// In each full sample.
    Each,
    /// At both ends.
    Ends,
    /// At the end.
    Last,
}

/// A file, and whether its text limits the group.
type Setting = (&'static str, fn(&str) -> bool);

/// One way in which a group is limited: files that say so, and what to read of a group that is.
#[derive(Debug)]
pub(crate) struct Limits {
    /// The controller of version 1; of version 2 there is one tree.
    pub(crate) controller: &'static str,
    /// Of version 2.
    pub(crate) unified: bool,
    /// Files of a setting, and whether the text limits the group.
    settings: &'static [Setting],
    counters: &'static [(&'static str, Often)],
}

const fn v1(
    controller: &'static str,
    settings: &'static [Setting],
    counters: &'static [(&'static str, Often)],
) -> Limits {
    Limits {
        controller,
        unified: false,
        settings,
        counters,
    }
}

const fn v2(
    controller: &'static str,
    settings: &'static [Setting],
    counters: &'static [(&'static str, Often)],
) -> Limits {
    Limits {
        unified: true,
        ..v1(controller, settings, counters)
    }
}

/// All of them.
pub(crate) const LIMITS: &[Limits] = &[
    v2(
        "cpu",
        &[("cpu.max", is_not_max)],
        &[("cpu.stat", Often::Each)],
    ),
    v2(
        "cpu",
        &[("cpu.weight", |text| text.trim() != "100")],
        &[("cpu.pressure", Often::Each), ("cpu.stat", Often::Each)],
    ),
    v2(
        "memory",
        &[("memory.max", is_not_max), ("memory.high", is_not_max)],
        &[
            ("memory.current", Often::Each),
            ("memory.events", Often::Each),
            ("memory.events.local", Often::Each),
            ("memory.pressure", Often::Each),
            ("memory.stat", Often::Ends),
            ("memory.swap.current", Often::Last),
        ],
    ),
    v2(
        "io",
        &[("io.max", is_said)],
        &[("io.stat", Often::Each), ("io.pressure", Often::Each)],
    ),
    v2(
        "pids",
        &[("pids.max", is_not_max)],
        &[("pids.current", Often::Last), ("pids.events", Often::Ends)],
    ),
    v2(
        "freezer",
        &[("cgroup.freeze", is_frozen)],
        &[("cgroup.events", Often::Ends)],
    ),
    // Other sizes of huge pages are those of other architectures.
    v2(
        "hugetlb",
        &[
            ("hugetlb.2MB.max", is_not_max),
            ("hugetlb.1GB.max", is_not_max),
        ],
        &[
            ("hugetlb.2MB.events", Often::Ends),
            ("hugetlb.1GB.events", Often::Ends),
        ],
    ),
    v2(
        "misc",
        &[("misc.max", |text| {
            text.lines().any(|line| !line.trim_end().ends_with(" max"))
        })],
        &[("misc.events", Often::Ends)],
    ),
    v1(
        "cpu",
        &[("cpu.cfs_quota_us", |text| text.trim() != "-1")],
        &[
            ("cpu.cfs_period_us", Often::Last),
            ("cpu.stat", Often::Each),
        ],
    ),
    v1("cpu", &[("cpu.shares", |text| text.trim() != "1024")], &[]),
    v1(
        "memory",
        &[("memory.limit_in_bytes", |text| {
            cgroup::limit(text).is_some()
        })],
        &[
            ("memory.failcnt", Often::Each),
            ("memory.oom_control", Often::Ends),
            ("memory.stat", Often::Ends),
            ("memory.usage_in_bytes", Often::Each),
        ],
    ),
    v1(
        "blkio",
        &[
            ("blkio.throttle.read_bps_device", is_said),
            ("blkio.throttle.read_iops_device", is_said),
            ("blkio.throttle.write_bps_device", is_said),
            ("blkio.throttle.write_iops_device", is_said),
        ],
        &[
            ("blkio.throttle.io_service_bytes", Often::Each),
            ("blkio.throttle.io_serviced", Often::Each),
        ],
    ),
    v1(
        "pids",
        &[("pids.max", is_not_max)],
        &[("pids.current", Often::Last), ("pids.events", Often::Ends)],
    ),
    v1("freezer", &[("freezer.state", is_frozen)], &[]),
    v2(
        "cpuset",
        &[("cpuset.cpus", is_said)],
        &[("cpuset.cpus.effective", Often::Last)],
    ),
    v1(
        "cpuset",
        &[("cpuset.cpus", is_said)],
        &[("cpuset.effective_cpus", Often::Last)],
    ),
];

/// Of `freezer.state` (version 1) or `cgroup.freeze` (version 2): the processes of the group are stopped, or are about to be.
pub(crate) fn is_frozen(text: &str) -> bool {
    ["FROZEN", "FREEZING", "1"].contains(&text.trim())
}

fn is_not_max(text: &str) -> bool {
    text.split_whitespace()
        .next()
        .is_some_and(|word| word != "max")
}

/// What a line in an events file of a group counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Event {
    /// This rule reads it.
    Rule(&'static str),
    /// It is no loss, for this reason.
    Ordinary(&'static str),
}

/// Lines of the events files of version 2 and of `pids.events` of version 1, by file and name; `*` stands for any part of either.
/// Of a file that also exists as `.local` the names are the same.
pub static EVENTS: &[(&str, &str, Event)] = &[
    ("cgroup.events", "frozen", Event::Rule("cgroup-frozen")),
    (
        "cgroup.events",
        "populated",
        Event::Ordinary("a state of the group"),
    ),
    ("hugetlb.*.events", "max", Event::Rule("unexplained-loss")),
    ("memory.events", "high", Event::Rule("cgroup-memory-limit")),
    (
        "memory.events",
        "low",
        Event::Ordinary(
            "protected memory was reclaimed: the machine is short, which is memory pressure",
        ),
    ),
    ("memory.events", "max", Event::Rule("cgroup-memory-limit")),
    (
        "memory.events",
        "oom",
        Event::Ordinary("each follows a hit of the limit, and a kill is counted by itself"),
    ),
    (
        "memory.events",
        "oom_group_kill",
        Event::Ordinary("each of the killed processes is counted by itself"),
    ),
    (
        "memory.events",
        "oom_kill",
        Event::Rule("cgroup-memory-limit"),
    ),
    (
        "memory.swap.events",
        "*",
        Event::Ordinary("the pages stay in memory, whose limit counts what follows"),
    ),
    ("misc.events", "*.max", Event::Rule("unexplained-loss")),
    ("pids.events", "max", Event::Rule("cgroup-pids-limit")),
];

fn is_said(text: &str) -> bool {
    !text.trim().is_empty()
}

/// Counts forks that were refused.
pub(crate) const PIDS_EVENTS: &str = "pids.events";

/// Every group of version 2 has it, and the one at the top often has no other file that is read.
const CONTROLLERS: &str = "cgroup.controllers";

/// All files that may be read of a group.
pub fn files() -> impl Iterator<Item = &'static str> {
    let of_limits = LIMITS.iter().flat_map(|limits| {
        let settings = limits.settings.iter().map(|(file, _)| *file);
        settings.chain(limits.counters.iter().map(|(file, _)| *file))
    });
    of_limits.chain([CONTROLLERS])
}

/// Where the trees are mounted, from the texts of a sample; none if no text contains it.
pub(crate) fn trees<'t>(text: impl Fn(&str) -> Option<&'t str>) -> Vec<Tree> {
    let mut trees = text(OWN_MOUNTS).map(cgroup::trees).unwrap_or_default();
    if trees.is_empty() {
        trees = text(FIRST_MOUNTS).map(cgroup::trees).unwrap_or_default();
        for tree in &mut trees {
            tree.point.insert_str(0, FIRST_ROOT);
        }
    }
    // A tree may be mounted many times, for each container once: the mount that shows most of it is the one to walk.
    trees.sort_by_key(|tree| (tree.root.len(), tree.point.len()));
    let mut seen: Vec<Tree> = Vec::new();
    for tree in trees {
        let again = |other: &Tree| other.unified == tree.unified && other.options == tree.options;
        let limits = limits_in(&tree).next().is_some();
        if limits && !seen.iter().any(again) && seen.len() < MOST_TREES {
            seen.push(tree);
        }
    }
    seen
}

/// What limits groups in this tree.
fn limits_in(tree: &Tree) -> impl Iterator<Item = &'static Limits> {
    LIMITS
        .iter()
        .filter(move |limits| limits.unified == tree.unified && tree.may_have(limits.controller))
}

/// The groups that are read again in each full sample.
#[derive(Debug, Default)]
pub(crate) struct Groups {
    counters: BTreeMap<String, Often>,
    /// Number of refused forks in each group, in the first sample.
    refused: BTreeMap<String, Raw>,
    /// Some group is limited in more than its number of processes, as nearly every service is by systemd, and its CPUs,
    /// which each process reports itself.
    wants_members: bool,
    /// Freezers of the groups that a service is in, read at every sample.
    freezers: BTreeSet<String>,
}

/// In which groups a process is.
const MEMBERSHIP: &str = "cgroup";

impl Groups {
    /// Reads the groups: finds them in the first sample, and reads their counters in each.
    pub(crate) fn read(
        &mut self,
        host: &dyn Host,
        position: Position,
        moment: &mut Moment,
        mut again: impl FnMut(&str) -> io::Result<Vec<u8>>,
    ) {
        if matches!(position, Position::First | Position::Only) {
            self.find(host, moment);
        }
        let settings: Vec<(&String, Often)> = self
            .counters
            .iter()
            .map(|(path, often)| (path, *often))
            .collect();
        for (path, often) in settings {
            let due = match often {
                Often::Each => true,
                Often::Ends => position != Position::Between,
                Often::Last => matches!(position, Position::Last | Position::Only),
            };
            if !due || moment.files.contains_key(path) {
                continue;
            }
            if let Some(raw) = raw(again(path), Form::Text, true) {
                if path.ends_with("/pids.events") {
                    let before = self
                        .refused
                        .entry(path.clone())
                        .or_insert_with(|| raw.clone());
                    self.wants_members |= *before != raw;
                }
                moment.files.insert(path.clone(), raw);
            }
        }
        if self.wants_members && matches!(position, Position::Last | Position::Only) {
            members(host, moment);
        }
    }

    /// Chooses the freezers to sample: of the groups that the process of this `/proc/PID/cgroup` is in, and of those above.
    pub(crate) fn choose(&mut self, membership: &str, first: &Moment) {
        // No tree of version 1 has a controller of this name, which leaves the tree of version 2.
        for (controller, file) in [("freezer", "freezer.state"), ("none", "cgroup.freeze")] {
            let Some(group) = cgroup::membership(membership, controller) else {
                continue;
            };
            let above: Vec<&str> = Path::new(group.path)
                .ancestors()
                .filter_map(Path::to_str)
                .filter(|path| path.len() > 1)
                .collect();
            for path in first.files.keys() {
                let folder = path
                    .strip_suffix(file)
                    .and_then(|path| path.strip_suffix('/'));
                let is_above =
                    folder.is_some_and(|folder| above.iter().any(|name| folder.ends_with(name)));
                if is_above && self.freezers.len() < MOST_FREEZERS {
                    self.freezers.insert(path.clone());
                }
            }
        }
    }

    /// Reads the chosen freezers. One that is closed now is read at the end as well, with the members of its group.
    pub(crate) fn sample(&mut self, host: &dyn Host, moment: &mut Moment) {
        for path in &self.freezers {
            let Some(raw) = raw(host.read(Path::new(path)), Form::Text, true) else {
                continue;
            };
            if matches!(&raw, Raw::Text(text) if is_frozen(text)) {
                self.wants_members = true;
            }
            moment.files.insert(path.clone(), raw);
            self.counters.insert(path.clone(), Often::Last);
        }
    }

    /// Walks all trees.
    fn find(&mut self, host: &dyn Host, moment: &mut Moment) {
        for file in [OWN_MOUNTS, FIRST_MOUNTS] {
            let read = host.read(Path::new(file));
            let raw = match read {
                // Other mounts are not kept: their sources and options may be confidential.
                Ok(bytes) => Raw::Text(lines_of_trees(&String::from_utf8_lossy(&bytes))),
                Err(error) => Raw::Failed {
                    failed: reason(&error),
                },
            };
            let found = matches!(&raw, Raw::Text(text) if !text.is_empty());
            moment.files.insert(file.to_owned(), raw);
            if found {
                break;
            }
        }
        let trees = trees(|file| match moment.files.get(file) {
            Some(Raw::Text(text)) => Some(text.as_str()),
            _ => None,
        });
        for tree in trees {
            self.walk(host, &tree, moment);
        }
    }

    fn walk(&mut self, host: &dyn Host, tree: &Tree, moment: &mut Moment) {
        let limits: Vec<&Limits> = limits_in(tree).collect();
        if limits.is_empty() {
            return;
        }
        if tree.unified {
            let path = format!("{}/{CONTROLLERS}", tree.point);
            if let Some(raw) = raw(host.read(Path::new(&path)), Form::Text, true) {
                moment.files.insert(path, raw);
            }
        }
        let mut waiting = VecDeque::from([(tree.point.clone(), 0, false)]);
        let (mut seen, mut limited) = (0, 0);
        while let Some((folder, depth, below_limit)) = waiting.pop_front() {
            if seen == MOST_GROUPS || limited == MOST_LIMITED {
                let failed = format!(
                    "{} has more than {seen} control groups; the others were skipped",
                    tree.point
                );
                moment
                    .files
                    .insert(cut(&tree.point), Raw::Failed { failed });
                break;
            }
            seen += 1;
            let by: Vec<&str> = limits
                .iter()
                .filter(|limits| self.settings(host, &folder, limits, moment))
                .map(|limits| limits.controller)
                .collect();
            // In version 1 every group has a cpuset, so having one does not make it limited.
            limited += usize::from(by.iter().any(|controller| *controller != "cpuset"));
            // Before Linux 6.11 the group that asked counts what the limit of a group above refuses.
            let own = by.contains(&"pids");
            if below_limit && !own {
                self.counters
                    .insert(format!("{folder}/{PIDS_EVENTS}"), Often::Ends);
            }
            if depth < DEEPEST {
                let below = host.folders(Path::new(&folder)).unwrap_or_default();
                let below = below.into_iter().map(|name| format!("{folder}/{name}"));
                let is_below = below_limit || own;
                waiting.extend(below.map(|folder| (folder, depth + 1, is_below)));
            }
        }
    }

    /// Reads the settings of one group, and remembers its counters if it is limited.
    fn settings(
        &mut self,
        host: &dyn Host,
        folder: &str,
        limits: &Limits,
        moment: &mut Moment,
    ) -> bool {
        let mut is_limited = false;
        for (file, limits) in limits.settings {
            let path = format!("{folder}/{file}");
            // The group at the top has no limits, and one may go while it is looked at.
            let Some(raw) = raw(host.read(Path::new(&path)), Form::Text, true) else {
                continue;
            };
            is_limited |= matches!(&raw, Raw::Text(text) if limits(text));
            moment.files.insert(path, raw);
        }
        if is_limited {
            self.wants_members |= !["pids", "cpuset"].contains(&limits.controller);
            let settings = limits.settings.iter().map(|(file, _)| (*file, Often::Last));
            for (file, often) in settings.chain(limits.counters.iter().copied()) {
                self.counters.insert(format!("{folder}/{file}"), often);
            }
        }
        is_limited
    }
}

/// Reads in which groups each process is: of a group above others the kernel lists none of their processes.
fn members(host: &dyn Host, moment: &mut Moment) {
    let processes = host.list(Path::new("/proc")).unwrap_or_default();
    for pid in processes {
        if !pid.bytes().all(|byte| byte.is_ascii_digit()) {
            continue;
        }
        let path = format!("/proc/{pid}/{MEMBERSHIP}");
        if moment.files.contains_key(&path) {
            continue;
        }
        if let Some(raw) = raw(host.read(Path::new(&path)), Form::Text, true) {
            moment.files.insert(path, raw);
        }
    }
}

/// Marks groups in a capture that were not read.
pub(crate) fn cut(point: &str) -> String {
    format!("{point}/*")
}

fn lines_of_trees(mountinfo: &str) -> String {
    let lines = mountinfo.lines().filter(|line| cgroup::is_tree(line));
    lines.fold(String::new(), |text, line| text + line + "\n")
}

#[cfg(test)]
mod tests {
    use rungwise_host::recorded::Recorded;

    use super::*;

    const MOUNT: &str = "41 40 0:20 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n";

    /// The files that are read at the end of a window.
    fn read(host: &Recorded) -> Vec<String> {
        let mut groups = Groups::default();
        for position in [Position::First, Position::Last] {
            let mut moment = Moment::default();
            groups.read(host, position, &mut moment, |path| {
                host.read(Path::new(path))
            });
            if position == Position::Last {
                return moment.files.into_keys().collect();
            }
            assert!(
                moment
                    .files
                    .contains_key("/sys/fs/cgroup/cgroup.controllers"),
                "a tree without groups is seen"
            );
        }
        Vec::new()
    }

    #[test]
    fn refusals_are_read_in_groups_below_a_limit_on_processes() {
        let host = Recorded::new("this host", 1)
            .file(OWN_MOUNTS, MOUNT)
            .file("/sys/fs/cgroup/cgroup.controllers", "pids\n");
        assert!(read(&host).is_empty());
        let host = ["a", "b"].iter().fold(host, |host, top| {
            let limit = if *top == "a" { "6" } else { "max" };
            let file = |folder: &str, name: &str| format!("/sys/fs/cgroup/{folder}/{name}");
            let below = format!("{top}/x/y");
            host.file(&file(top, "pids.max"), limit)
                .file(&file(top, "pids.events"), "max 0")
                .file(&file(&below, "pids.max"), "max")
                .file(&file(&below, "pids.events"), "max 7")
        });
        let events: Vec<String> = read(&host)
            .into_iter()
            .filter(|path| path.ends_with("pids.events"))
            .collect();
        assert_eq!(
            events,
            [
                "/sys/fs/cgroup/a/pids.events",
                "/sys/fs/cgroup/a/x/y/pids.events"
            ]
        );
    }
}
