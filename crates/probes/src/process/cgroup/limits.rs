//! I/O limits, number of processes, freezer.

use std::collections::BTreeMap;

use rungwise_formats::cgroup::Tree;
use rungwise_formats::flat;
use rungwise_model::evidence::{Absence, Evidence, Origin};
use rungwise_model::keys;

use super::members::members;
use super::{Group, groups, none, number, waited};
use crate::groups::{PIDS_EVENTS, is_frozen};
use crate::window::text_of;
use crate::{Rate, Window, enter};

/// Limited groups.
pub(super) fn derive(
    window: &Window<'_>,
    evidence: &mut Evidence,
    trees: &[Tree],
) -> Vec<(Group, &'static str)> {
    let mut limited = io(window, evidence, trees);
    limited.extend(pids(window, evidence, trees));
    limited.extend(frozen(window, evidence, trees));
    limited.extend(refused(window, evidence, trees));
    limited
}

const IO: [&str; 5] = [
    "io.max",
    "blkio.throttle.read_bps_device",
    "blkio.throttle.read_iops_device",
    "blkio.throttle.write_bps_device",
    "blkio.throttle.write_iops_device",
];

fn io(window: &Window<'_>, evidence: &mut Evidence, trees: &[Tree]) -> Vec<(Group, &'static str)> {
    let mut found: BTreeMap<(String, bool), (Group, Vec<Limit>)> = BTreeMap::new();
    for file in IO {
        let unified = file == "io.max";
        let controller = if unified { "io" } else { "blkio" };
        for group in groups(window, trees, unified, controller, file) {
            let text = window.text(&group.file(file)).unwrap_or_default();
            let limits: Vec<Limit> = text
                .lines()
                .flat_map(|line| Limit::parse(file, line))
                .collect();
            let entry = found
                .entry((group.name.clone(), unified))
                .or_insert_with(|| (group, Vec::new()));
            entry.1.extend(limits);
        }
    }
    found.retain(|_, (_, limits)| !limits.is_empty());
    if found.is_empty() {
        let others = [&keys::CGROUP_IO_LIMIT, &keys::CGROUP_IO_WAIT];
        let keys = (&others[..], &[&keys::CGROUP_IO_USED][..]);
        let files = ["io.max", "blkio.throttle.read_bps_device"];
        none(
            window,
            evidence,
            keys,
            ("no limit on reads and writes", &files),
        );
    }
    let mut limited = Vec::new();
    for (group, limits) in found.into_values() {
        tightest(window, evidence, &group, &limits);
        if group.unified {
            waited(
                window,
                evidence,
                &keys::CGROUP_IO_WAIT,
                &group,
                "io.pressure",
            );
        }
        limited.push((group, if limits[0].unified { "io" } else { "blkio" }));
    }
    let why = Absence::none("cgroup v1 does not count it");
    enter::absent_if_unset(evidence, &[&keys::CGROUP_IO_WAIT], &why, "control groups");
    limited
}

/// An amount of one kind of request to one disk.
#[derive(Clone, Debug)]
struct Limit {
    /// `8:0`
    disk: String,
    kind: Counter,
    per_s: f64,
    unified: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Counter {
    ReadBytes,
    Reads,
    WrittenBytes,
    Writes,
}

impl Counter {
    /// Name of the limit in `io.max`, of the count in `io.stat`, and of both in cgroup v1.
    const ALL: [(Self, &'static str, &'static str, &'static str); 4] = [
        (Self::ReadBytes, "rbps", "rbytes", "read_bps"),
        (Self::Reads, "riops", "rios", "read_iops"),
        (Self::WrittenBytes, "wbps", "wbytes", "write_bps"),
        (Self::Writes, "wiops", "wios", "write_iops"),
    ];

    fn words(self) -> &'static str {
        match self {
            Self::ReadBytes => "bytes read/s",
            Self::Reads => "reads/s",
            Self::WrittenBytes => "bytes written/s",
            Self::Writes => "writes/s",
        }
    }
}

impl Limit {
    /// The limits in a line: `8:0 rbps=max wiops=100` of cgroup v2, `8:0 100` of cgroup v1.
    fn parse(file: &str, line: &str) -> Vec<Self> {
        let unified = file == "io.max";
        let mut words = line.split_ascii_whitespace();
        let Some(disk) = words.next() else {
            return Vec::new();
        };
        let limit = |kind, number: &str| {
            let per_s = number.parse::<u64>().ok()?;
            (per_s > 0).then(|| Self {
                disk: disk.to_owned(),
                kind,
                per_s: per_s as f64,
                unified,
            })
        };
        let of_word = |word: &str| {
            if unified {
                let (name, number) = word.split_once('=')?;
                let (kind, ..) = Counter::ALL
                    .into_iter()
                    .find(|(_, known, ..)| *known == name)?;
                limit(kind, number)
            } else {
                let known =
                    |(.., name): &(_, _, _, &str)| file.contains(&format!(".{name}_device"));
                let (kind, ..) = Counter::ALL.into_iter().find(known)?;
                limit(kind, word)
            }
        };
        words.filter_map(of_word).collect()
    }
}

/// The limit with the highest use.
fn tightest(window: &Window<'_>, evidence: &mut Evidence, group: &Group, limits: &[Limit]) {
    let mut most: Option<(f64, &Limit, Rate, String)> = None;
    let mut why = Absence::because("the group has not used that disk");
    for limit in limits {
        let rate = match rate(window, group, limit) {
            Ok(Some(found)) => found,
            Ok(None) => continue,
            Err(absence) => {
                why = absence;
                continue;
            }
        };
        let share = rate.0.per_s / limit.per_s;
        if most.as_ref().is_none_or(|(most, ..)| share > *most) {
            most = Some((share, limit, rate.0, rate.1));
        }
    }
    let (used, said) = (&keys::CGROUP_IO_USED, &keys::CGROUP_IO_LIMIT);
    let Some((share, limit, rate, path)) = most else {
        let origin = Origin::new(&group.folder, "");
        // A group that did nothing used nothing of its limit.
        let idle = why.reason.starts_with("the group");
        if idle {
            return evidence.number(used, group.subject(), 0.0, origin);
        }
        return enter::absent(evidence, used, group.subject(), why, origin);
    };
    let words = format!(
        "{} {} of {}",
        limit.per_s,
        limit.kind.words(),
        disk_of(window, &limit.disk)
    );
    evidence.text(
        said,
        group.subject(),
        &words,
        Origin::new(&group.folder, &words),
    );
    let course = rate
        .series
        .iter()
        .map(|per_s| per_s / limit.per_s)
        .collect();
    let origin = Origin::new(path, format!("{} {}", limit.kind.words(), rate.line()));
    evidence.series(used, group.subject(), share, course, origin);
}

/// `vda` for `254:0`, as /proc/diskstats has it.
fn disk_of(window: &Window<'_>, number: &str) -> String {
    let text = window.text("/proc/diskstats").unwrap_or_default();
    let name = text.lines().find_map(|line| {
        let mut words = line.split_ascii_whitespace();
        let (major, minor) = (words.next()?, words.next()?);
        (number == format!("{major}:{minor}")).then(|| words.next())?
    });
    name.unwrap_or(number).to_owned()
}

/// The amount of this kind, and its source file.
fn rate(
    window: &Window<'_>,
    group: &Group,
    limit: &Limit,
) -> Result<Option<(Rate, String)>, Absence> {
    let bytes = matches!(limit.kind, Counter::ReadBytes | Counter::WrittenBytes);
    let path = group.file(match (group.unified, bytes) {
        (true, _) => "io.stat",
        (false, true) => "blkio.throttle.io_service_bytes",
        (false, false) => "blkio.throttle.io_serviced",
    });
    let rates = window.rates(&path, |text| count(text, limit))?;
    // A disk that was not used has no line yet, at the begin or at all.
    Ok(rates.into_values().next().map(|rate| (rate, path)))
}

fn count(text: &str, limit: &Limit) -> BTreeMap<(), f64> {
    let of_disk = |line: &&str| line.split_ascii_whitespace().next() == Some(limit.disk.as_str());
    let reads = matches!(limit.kind, Counter::ReadBytes | Counter::Reads);
    let number = text.lines().filter(of_disk).find_map(|line| {
        let mut words = line.split_ascii_whitespace().skip(1);
        if limit.unified {
            let (_, _, name, _) = Counter::ALL
                .into_iter()
                .find(|(kind, ..)| *kind == limit.kind)?;
            words.find_map(|word| {
                word.strip_prefix(name)?
                    .strip_prefix('=')?
                    .parse::<u64>()
                    .ok()
            })
        } else {
            let wanted = if reads { "Read" } else { "Write" };
            (words.next() == Some(wanted)).then(|| words.next()?.parse::<u64>().ok())?
        }
    });
    // A file without the disk counts nothing of it.
    [((), number.unwrap_or_default() as f64)].into()
}

fn pids(
    window: &Window<'_>,
    evidence: &mut Evidence,
    trees: &[Tree],
) -> Vec<(Group, &'static str)> {
    let mut limited = Vec::new();
    for unified in [false, true] {
        for group in groups(window, trees, unified, "pids", "pids.max") {
            let Ok(limit) = number(window, &group.file("pids.max")) else {
                continue;
            };
            let origin = Origin::new(group.file("pids.max"), format!("{limit}"));
            evidence.number(&keys::CGROUP_PIDS_LIMIT, group.subject(), limit, origin);
            let path = group.file("pids.current");
            let used = number(window, &path);
            let line = window.text(&path).unwrap_or_default().trim();
            let (key, origin) = (&keys::CGROUP_PIDS, Origin::new(&path, line));
            let share = used.clone().map(|used| used / limit.max(1.0));
            let is_full = used.as_ref().is_ok_and(|used| *used >= limit);
            enter::number(evidence, key, group.subject(), used, origin.clone());
            let key = &keys::CGROUP_PIDS_USED;
            enter::number(evidence, key, group.subject(), share, origin);
            let mut path = group.file(PIDS_EVENTS);
            let (mut refused, mut line) = match forks_refused(window, &path) {
                Ok((refused, line)) => (Ok(refused), line),
                Err(why) => (Err(why), String::new()),
            };
            if is_full && refused.as_ref().is_ok_and(|own| *own == 0.0) {
                let below = refused_below(window, trees, &group);
                if let Some((more, of, from)) = below {
                    (refused, line, path) = (Ok(more), of, from);
                }
            }
            let (key, origin) = (&keys::CGROUP_PIDS_REFUSED, Origin::new(&path, line));
            enter::number(evidence, key, group.subject(), refused, origin);
            limited.push((group, "pids"));
        }
    }
    if limited.is_empty() {
        let others = [
            &keys::CGROUP_PIDS,
            &keys::CGROUP_PIDS_LIMIT,
            &keys::CGROUP_PIDS_USED,
        ];
        let keys = (&others[..], &[&keys::CGROUP_PIDS_REFUSED][..]);
        none(
            window,
            evidence,
            keys,
            ("no limit on processes", &["pids.max"]),
        );
    }
    limited
}

/// Forks that were refused in the window, with the line of the counter.
fn forks_refused(window: &Window<'_>, path: &str) -> Result<(f64, String), Absence> {
    let rates = window.rates(path, |text| {
        let refused = flat::parse(text).get("max").copied();
        let refused = refused.map(|refused| ((), refused as f64));
        refused.into_iter().collect()
    });
    let rate = rates?.remove(&());
    let rate = rate.ok_or_else(|| Absence::because("the counter was reset"))?;
    Ok((rate.delta, format!("max {}", rate.line())))
}

/// Refusals in groups below that have no limit of their own, with the line and the file of the largest. Version 1, and
/// version 2 before Linux 6.11, count them there and not in the group with the limit.
fn refused_below(
    window: &Window<'_>,
    trees: &[Tree],
    group: &Group,
) -> Option<(f64, String, String)> {
    let below = format!("{}/", group.name.trim_end_matches('/'));
    let others = groups(window, trees, group.unified, "pids", PIDS_EVENTS);
    let refused: Vec<(f64, String, String)> = others
        .into_iter()
        .filter(|other| other.name.starts_with(&below))
        .filter(|other| number(window, &other.file("pids.max")).is_err())
        .filter_map(|other| {
            let path = other.file(PIDS_EVENTS);
            let (refused, line) = forks_refused(window, &path).ok()?;
            Some((refused, line, path))
        })
        .collect();
    let sum = refused.iter().map(|(refused, ..)| refused).sum();
    let most = refused.into_iter().max_by(|a, b| a.0.total_cmp(&b.0));
    most.filter(|_| sum > 0.0)
        .map(|(_, line, path)| (sum, line, path))
}

/// What limits on huge pages and on other counted resources refused: the program that asked got an error.
fn refused(
    window: &Window<'_>,
    evidence: &mut Evidence,
    trees: &[Tree],
) -> Vec<(Group, &'static str)> {
    const FILES: [(&str, &str); 3] = [
        ("hugetlb", "hugetlb.1GB.events"),
        ("hugetlb", "hugetlb.2MB.events"),
        ("misc", "misc.events"),
    ];
    let key = &keys::CGROUP_REFUSED;
    let mut found: BTreeMap<String, (Group, &'static str, f64, Vec<String>)> = BTreeMap::new();
    for (controller, file) in FILES {
        for group in groups(window, trees, true, controller, file) {
            let of_limits = |text| {
                let events = flat::parse(text).into_iter();
                // `max` of hugetlb, `sev.max` of misc.
                let refusals = events.filter(|(name, _)| name.rsplit('.').next() == Some("max"));
                refusals.map(|(name, n)| (name, n as f64)).collect()
            };
            let rates = window.rates(&group.file(file), of_limits);
            let rates = rates.unwrap_or_default();
            let entry = found
                .entry(group.name.clone())
                .or_insert_with(|| (group, controller, 0.0, Vec::new()));
            for (name, rate) in rates {
                entry.2 += rate.delta;
                entry.3.push(format!("{file} {name} {}", rate.line()));
            }
        }
    }
    if found.is_empty() {
        let files = ["hugetlb.2MB.max", "hugetlb.1GB.max", "misc.max"];
        let what = "no limit on huge pages or other counted resources";
        none(window, evidence, (&[], &[key]), (what, &files));
    }
    let limited = found.into_values();
    limited
        .map(|(group, controller, refused, lines)| {
            let origin = Origin::new(&group.folder, lines.join("; "));
            evidence.number(key, group.subject(), refused, origin);
            (group, controller)
        })
        .collect()
}

fn frozen(
    window: &Window<'_>,
    evidence: &mut Evidence,
    trees: &[Tree],
) -> Vec<(Group, &'static str)> {
    let mut found = Vec::new();
    let moments = window.often();
    for (unified, file) in [(false, "freezer.state"), (true, "cgroup.freeze")] {
        for group in groups(window, trees, unified, "freezer", file) {
            let path = group.file(file);
            let states = moments
                .iter()
                .filter_map(|moment| text_of(moment, &path).ok());
            let (mut frozen, mut samples) = (0_u32, 0_u32);
            for state in states {
                samples += 1;
                frozen += u32::from(is_frozen(state));
            }
            if frozen == 0 {
                continue;
            }
            let inside = members(window, &group, "freezer").len();
            // Freezers are sampled only where a service is inside.
            let inside = if samples > 2 { inside.max(1) } else { inside };
            let line = format!("frozen in {frozen} of {samples} samples");
            let subject = || group.subject();
            let share = f64::from(frozen) / f64::from(samples);
            let origin = || Origin::new(&path, &line);
            evidence.number(&keys::CGROUP_FROZEN, subject(), inside as f64, origin());
            evidence.number(&keys::CGROUP_FROZEN_SHARE, subject(), share, origin());
            found.push((group, "freezer"));
        }
    }
    if found.is_empty() {
        let zeros = [&keys::CGROUP_FROZEN, &keys::CGROUP_FROZEN_SHARE];
        let files = ["freezer.state", "cgroup.freeze"];
        none(window, evidence, (&[], &zeros), ("no frozen group", &files));
    }
    found
}
