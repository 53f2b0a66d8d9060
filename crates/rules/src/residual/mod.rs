//! Saturation, waits and losses that no other rule explains: a finding of their own, so that nothing is missed.
//!
//! These rules look for effects. Each first evaluates the rules that know causes, as the table of [`crate::resources`] lists them.

mod losses;
pub(crate) mod resource_saturated;
pub(crate) mod unexplained_loss;
pub(crate) mod unexplained_wait;

use rungwise_model::check::Finding;
use rungwise_model::evidence::{Evidence, Missing, Subject};
use rungwise_model::keys;

use crate::cpu::group;
use crate::resources::{self, High, Means};

pub(crate) use losses::is_a_loss;

/// What a residual rule looks for; `None` for any other rule.
pub(crate) fn means_of(rule: &str) -> Option<Means> {
    let all = [
        (&resource_saturated::RULE, Means::Full),
        (&unexplained_loss::RULE, Means::Lost),
        (&unexplained_wait::RULE, Means::Waited),
    ];
    all.into_iter()
        .find_map(|(known, means)| (known.id == rule).then_some(means))
}

/// All unexplained high readings of this meaning.
fn unexplained(evidence: &Evidence, means: Means) -> Vec<High<'_>> {
    let mut all = resources::high(evidence);
    all.retain(|high| high.gauge.means == means && high.explained_by.is_none());
    all
}

/// The finding that nothing is unexplained; or what is missing if none of the gauges was read.
fn clear(evidence: &Evidence, means: Means, sentence: &str) -> Result<Vec<Finding>, Missing> {
    let gauges = || {
        let rows = resources::ROWS.iter();
        rows.flat_map(resources::Row::gauges)
            .filter(|gauge| gauge.means == means)
    };
    let seen = gauges()
        .filter(|gauge| evidence.each(gauge.key).is_ok())
        .count();
    if seen == 0 {
        let first = gauges().next().expect("the table has gauges of each sense");
        return Err(evidence.missing(first.key, &Subject::host()));
    }
    Ok(vec![Finding::clear(sentence.to_owned())])
}

/// Which processes used the CPU time: `mostly rustc 812 (1.20 CPUs), cc1 813 in /build (0.50 CPUs)`, or that they are unknown.
pub(crate) fn busiest(evidence: &Evidence) -> String {
    /// So many are named.
    const NAMED: usize = 3;
    /// And none with less, CPUs.
    const LEAST: f64 = 0.05;
    let Ok(mut all) = evidence.each(&keys::SCHED_PROCESS_CPU) else {
        return "by which processes is unknown".to_owned();
    };
    all.retain(|(_, cpus)| cpus.value >= LEAST);
    all.sort_by(|a, b| b.1.value.total_cmp(&a.1.value));
    all.truncate(NAMED);
    let used: f64 = all.iter().map(|(_, cpus)| cpus.value).sum();
    let named = all.into_iter().map(|(process, cpus)| {
        let name = evidence.words(&keys::SCHED_PROCESS_NAME, process);
        let name = name.map_or("process", |name| name.value);
        let group = group::of_process(evidence, process.name());
        let group = group.filter(|group| *group != "/");
        let within = group.map_or_else(String::new, |group| format!(" in {group}"));
        format!("{name} {}{within} ({:.2} CPUs)", process.name(), cpus.value)
    });
    let named = named.collect::<Vec<_>>().join(", ");
    let busy: f64 = evidence
        .each(&keys::CPU_BUSY)
        .map_or(0.0, |cpus| cpus.iter().map(|(_, share)| share.value).sum());
    if named.is_empty() {
        "used by many small or short-lived processes".to_owned()
    } else if used > busy / 2.0 {
        format!("mostly {named}")
    } else {
        format!("{named}; the rest by many small or short-lived processes")
    }
}
