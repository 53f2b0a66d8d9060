//! CPU: quotas and throttling, weights other than the default.

use std::collections::BTreeMap;

use rungwise_formats::cgroup::{self, Quota, Tree};
use rungwise_formats::flat;
use rungwise_model::evidence::{Absence, Evidence, Origin};
use rungwise_model::keys;

use super::{Group, groups, none, number, waited};
use crate::{Window, enter};

/// Limited groups, with the controller that limits them.
pub(super) fn derive(
    window: &Window<'_>,
    evidence: &mut Evidence,
    trees: &[Tree],
) -> Vec<(Group, &'static str)> {
    let mut limited = Vec::new();
    for (unified, file) in [(false, "cpu.cfs_quota_us"), (true, "cpu.max")] {
        for group in groups(window, trees, unified, "cpu", file) {
            if let Some((cpus, line)) = quota(window, &group) {
                let origin = Origin::new(&group.folder, line);
                evidence.number(&keys::CGROUP_QUOTA, group.subject(), cpus, origin);
                throttling(window, evidence, &group);
                limited.push((group, "cpu"));
            }
        }
    }
    if limited.is_empty() {
        let zeros = [&keys::CGROUP_THROTTLED, &keys::CGROUP_THROTTLED_TIME];
        let files = ["cpu.cfs_quota_us", "cpu.max", "cpu.stat"];
        let keys = (&[&keys::CGROUP_QUOTA][..], &zeros[..]);
        none(window, evidence, keys, ("no CPU quota", &files));
    }
    weights(window, evidence, trees, &mut limited);
    limited
}

/// The quota in CPUs and its source text; none without a quota.
fn quota(window: &Window<'_>, group: &Group) -> Option<(f64, String)> {
    let text = |file: &str| window.text(&group.file(file)).ok();
    let (quota, line) = if group.unified {
        let text = text("cpu.max")?;
        (cgroup::cpu_max(text)?, format!("cpu.max {}", text.trim()))
    } else {
        let quota = text("cpu.cfs_quota_us")?;
        // A group without a quota has its period not read.
        let period = text("cpu.cfs_period_us")?;
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

fn throttling(window: &Window<'_>, evidence: &mut Evidence, group: &Group) {
    let path = group.file("cpu.stat");
    let subject = || group.subject();
    let rates = match window.rates(&path, counters) {
        Ok(rates) => rates,
        Err(why) => {
            for key in [&keys::CGROUP_THROTTLED, &keys::CGROUP_THROTTLED_TIME] {
                let origin = Origin::new(&path, "");
                enter::absent(evidence, key, subject(), why.clone(), origin);
            }
            return;
        }
    };
    let why = || {
        Absence::because(format!(
            "{path} was reset in the window, or lacks the counter"
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

/// CPU time of a group of version 2, as a share of the window.
fn ran(window: &Window<'_>, evidence: &mut Evidence, group: &Group) {
    let path = group.file("cpu.stat");
    let (key, subject) = (&keys::CGROUP_CPU_RAN, group.subject());
    match window.rates(&path, counters) {
        Ok(rates) => {
            if let Some(rate) = rates.get("usage_usec") {
                enter::counter(evidence, key, subject, (rate, 1e-6), (&path, "usage_usec"));
            }
        }
        Err(why) => enter::absent(evidence, key, subject, why, Origin::new(&path, "")),
    }
}

/// Weights other than the default. The cost of a low one shows in `members`, and with cgroup v2 in the group's own pressure.
fn weights(
    window: &Window<'_>,
    evidence: &mut Evidence,
    trees: &[Tree],
    limited: &mut Vec<(Group, &'static str)>,
) {
    let mut seen = 0;
    for (unified, file, default) in [(false, "cpu.shares", 1024.0), (true, "cpu.weight", 100.0)] {
        for group in groups(window, trees, unified, "cpu", file) {
            let path = group.file(file);
            let Ok(weight) = number(window, &path) else {
                continue;
            };
            let is_default = (weight - default).abs() < 0.5;
            if is_default || group.name == "/" {
                continue;
            }
            seen += 1;
            let origin = Origin::new(&path, format!("{weight}"));
            let (key, value) = (&keys::CGROUP_WEIGHT, weight / default);
            evidence.number(key, group.subject(), value, origin);
            if unified {
                let key = &keys::CGROUP_CPU_WAIT;
                waited(window, evidence, key, &group, "cpu.pressure");
                ran(window, evidence, &group);
            }
            limited.push((group, "cpu"));
        }
    }
    if seen == 0 {
        let keys = (
            &[&keys::CGROUP_WEIGHT][..],
            &[&keys::CGROUP_CPU_RAN, &keys::CGROUP_CPU_WAIT][..],
        );
        let files = ["cpu.shares", "cpu.weight"];
        none(
            window,
            evidence,
            keys,
            ("every CPU weight is the default", &files),
        );
    }
}
