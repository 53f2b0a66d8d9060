//! Memory: limits, how often they were hit, and the cost for the group.

use std::collections::BTreeMap;

use rungwise_formats::cgroup::{self, Tree};
use rungwise_formats::flat;
use rungwise_model::evidence::{Absence, Evidence, Origin};
use rungwise_model::keys;

use super::{Group, groups, none, number, waited};
use crate::window::Window;
use crate::{Rate, enter};

/// Limited groups.
pub(super) fn derive(
    window: &Window<'_>,
    evidence: &mut Evidence,
    trees: &[Tree],
) -> Vec<(Group, &'static str)> {
    let mut limited = Vec::new();
    for (unified, file) in [(false, "memory.limit_in_bytes"), (true, "memory.max")] {
        for group in groups(window, trees, unified, "memory", file) {
            let Some((limit, line)) = limit(window, &group) else {
                continue;
            };
            let origin = Origin::new(&group.folder, line);
            evidence.number(&keys::CGROUP_MEMORY_LIMIT, group.subject(), limit, origin);
            used(window, evidence, &group, limit);
            hits(window, evidence, &group);
            kills(window, evidence, &group);
            stat(window, evidence, &group);
            if unified {
                let key = &keys::CGROUP_MEMORY_WAIT;
                waited(window, evidence, key, &group, "memory.pressure");
            }
            limited.push((group, "memory"));
        }
    }
    let moved = limited.is_empty() && unlimited_hits(window, evidence, trees);
    if limited.is_empty() {
        let files = ["memory.limit_in_bytes", "memory.max"];
        if !moved {
            let keys = (&[][..], &[&keys::MEMORY_CGROUP_RECLAIM][..]);
            let files = [
                "memory.limit_in_bytes",
                "memory.max",
                "memory.failcnt",
                "memory.events",
            ];
            none(window, evidence, keys, ("no memory limit was hit", &files));
        }
        let others = [
            &keys::CGROUP_MEMORY_FAULTS,
            &keys::CGROUP_MEMORY_LIMIT,
            &keys::CGROUP_MEMORY_REFAULTS,
            &keys::CGROUP_MEMORY_SWAP,
            &keys::CGROUP_MEMORY_USED,
            &keys::CGROUP_MEMORY_WAIT,
        ];
        let keys = (&others[..], &[&keys::CGROUP_OOM_KILLS][..]);
        none(window, evidence, keys, ("no memory limit", &files));
    } else {
        let why = Absence::none("cgroup v1 does not count it");
        enter::absent_if_unset(
            evidence,
            &[&keys::CGROUP_MEMORY_WAIT],
            &why,
            "control groups",
        );
    }
    limited
}

/// Captures of older versions contain the counters but not the limits; returns whether a limit was hit.
fn unlimited_hits(window: &Window<'_>, evidence: &mut Evidence, trees: &[Tree]) -> bool {
    let mut any = false;
    for (unified, file) in [(false, "memory.failcnt"), (true, "memory.events")] {
        for group in groups(window, trees, unified, "memory", file) {
            let path = group.file(file);
            let rate = window.rates(&path, count_hits).ok();
            let Some(rate) = rate.and_then(|mut rates| rates.remove(&())) else {
                continue;
            };
            if rate.delta > 0.0 {
                any = true;
                let (key, subject) = (&keys::MEMORY_CGROUP_RECLAIM, group.subject());
                enter::counter(evidence, key, subject, (&rate, 1.0), (&path, "limit hit"));
            }
        }
    }
    any
}

/// The limit in bytes and its source text; none without a limit.
fn limit(window: &Window<'_>, group: &Group) -> Option<(f64, String)> {
    let files: &[&str] = if group.unified {
        &["memory.high", "memory.max"]
    } else {
        &["memory.limit_in_bytes"]
    };
    let limits = files.iter().filter_map(|file| {
        let text = window.text(&group.file(file)).ok()?;
        Some((cgroup::limit(text)?, *file))
    });
    let (bytes, file) = limits.min()?;
    Some((bytes as f64, format!("{file} {bytes}")))
}

fn used(window: &Window<'_>, evidence: &mut Evidence, group: &Group, limit: f64) {
    let path = group.file(if group.unified {
        "memory.current"
    } else {
        "memory.usage_in_bytes"
    });
    let key = &keys::CGROUP_MEMORY_USED;
    let share = |text: &str| {
        text.trim()
            .parse::<f64>()
            .ok()
            .map(|bytes| bytes / limit.max(1.0))
    };
    let last = window.text(&path);
    let line = last.clone().unwrap_or_default().trim();
    let Some(value) = last.as_ref().ok().and_then(|text| share(text)) else {
        let why = last.err().unwrap_or_else(|| {
            Absence::because(format!("{path} contains '{line}', which is not a number"))
        });
        let origin = Origin::new(&path, "");
        return enter::absent(evidence, key, group.subject(), why, origin);
    };
    let texts = window.texts(&path).unwrap_or_default();
    let course = texts
        .into_iter()
        .filter_map(|(_, text)| share(text))
        .collect();
    let origin = Origin::new(&path, line);
    evidence.series(key, group.subject(), value, course, origin);
}

fn hits(window: &Window<'_>, evidence: &mut Evidence, group: &Group) {
    let key = &keys::MEMORY_CGROUP_RECLAIM;
    let files: &[&str] = if group.unified {
        &["memory.events.local", "memory.events"]
    } else {
        &["memory.failcnt"]
    };
    let mut why = None;
    for path in files.iter().map(|file| group.file(file)) {
        match window.rates(&path, count_hits) {
            Ok(mut rates) => {
                if let Some(rate) = rates.remove(&()) {
                    let subject = group.subject();
                    enter::counter(evidence, key, subject, (&rate, 1.0), (&path, "limit hit"));
                    return;
                }
            }
            Err(absence) => why = Some(absence),
        }
    }
    let why = why.unwrap_or_else(|| Absence::because("the counter was reset in the window"));
    enter::absent(
        evidence,
        key,
        group.subject(),
        why,
        Origin::new(&group.folder, ""),
    );
}

/// How often a limit was hit: `memory.events` of cgroup v2, or the one number of cgroup v1.
fn count_hits(text: &str) -> BTreeMap<(), f64> {
    let events = flat::parse(text);
    let event = |name| events.get(name).copied();
    let number = match (event("high"), event("max")) {
        (Some(high), Some(max)) => Some(high.saturating_add(max)),
        _ => text.trim().parse().ok(),
    };
    number
        .map(|number: u64| ((), number as f64))
        .into_iter()
        .collect()
}

fn kills(window: &Window<'_>, evidence: &mut Evidence, group: &Group) {
    let path = group.file(if group.unified {
        "memory.events"
    } else {
        "memory.oom_control"
    });
    let rates = window.rates(&path, |text| {
        let kills = flat::parse(text).get("oom_kill").copied();
        kills.map(|kills| ((), kills as f64)).into_iter().collect()
    });
    let (value, line) = match rates.map(|mut rates| rates.remove(&())) {
        Ok(Some(rate)) => (Ok(rate.delta), format!("oom_kill {}", rate.line())),
        // Before Linux 4.13 nothing counts it.
        Ok(None) => (
            Err(Absence::because("this kernel does not count it")),
            String::new(),
        ),
        Err(why) => (Err(why), String::new()),
    };
    let origin = Origin::new(&path, line);
    enter::number(
        evidence,
        &keys::CGROUP_OOM_KILLS,
        group.subject(),
        value,
        origin,
    );
}

/// Values of `memory.stat`. In cgroup v1 the lines with `total_` include the groups below.
fn stat(window: &Window<'_>, evidence: &mut Evidence, group: &Group) {
    let path = group.file("memory.stat");
    let rates = window.rates(&path, sums);
    let rate = |name: Sum| -> Result<Rate, Absence> {
        let rates = rates.as_ref().map_err(Absence::clone)?;
        let none = || Absence::because("this kernel does not count it, or the group was reset");
        rates.get(&name).cloned().ok_or_else(none)
    };
    for (key, sum, name) in [
        (&keys::CGROUP_MEMORY_FAULTS, Sum::MajorFaults, "pgmajfault"),
        (
            &keys::CGROUP_MEMORY_REFAULTS,
            Sum::Refaults,
            "workingset_refault",
        ),
    ] {
        match rate(sum) {
            Ok(rate) => {
                enter::counter(evidence, key, group.subject(), (&rate, 1.0), (&path, name));
            }
            Err(why) => {
                let origin = Origin::new(&path, "");
                enter::absent(evidence, key, group.subject(), why, origin);
            }
        }
    }
    let swap = if group.unified {
        number(window, &group.file("memory.swap.current"))
    } else {
        window.text(&path).map(|text| {
            let stat = flat::parse(text);
            let swap = ["total_swap", "swap"]
                .into_iter()
                .find_map(|name| stat.get(name));
            swap.copied().unwrap_or_default() as f64
        })
    };
    let origin = Origin::new(&path, "swap");
    enter::number(
        evidence,
        &keys::CGROUP_MEMORY_SWAP,
        group.subject(),
        swap,
        origin,
    );
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Sum {
    MajorFaults,
    Refaults,
}

fn sums(text: &str) -> BTreeMap<Sum, f64> {
    let mut sums = BTreeMap::new();
    let stat = flat::parse(text);
    let deep = stat.contains_key("total_pgmajfault");
    for (name, value) in stat {
        let name = match name.strip_prefix("total_") {
            Some(name) => name,
            None if deep => continue,
            None => name,
        };
        let sum = match name {
            "pgmajfault" => Sum::MajorFaults,
            // One counter before Linux 5.9, one for each kind of page since.
            "workingset_refault" | "workingset_refault_anon" | "workingset_refault_file" => {
                Sum::Refaults
            }
            _ => continue,
        };
        *sums.entry(sum).or_default() += value as f64;
    }
    sums
}
