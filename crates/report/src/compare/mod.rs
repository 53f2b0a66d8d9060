//! What differs between the settings of two hosts, and which differences are relevant to rules.
//!
//! Counters and rates are left out: they differ between any two samples. What one side could not read is no
//! difference; it is listed apart with the reason. The same difference of many CPUs or queues is listed once.

mod page;

pub use page::blocks;

use std::collections::{BTreeMap, BTreeSet};

use rungwise_model::check::{Finding, Outcome};
use rungwise_model::compare::{Metric, NotCompared, RuleDifference, Verdict};
use rungwise_model::evidence::{Evidence, Key, Kind, Reading, Subject, Value};
use rungwise_model::evidence_text::number_of;
use rungwise_model::keys;

use crate::check::About;

/// Keys that somebody set, or that were bought: all else of the evidence is what the host did.
const SETTINGS: &[&Key] = &[
    &keys::AUDIT_ENABLED,
    &keys::AUDIT_RULES,
    &keys::BIOS_IOMMU,
    &keys::BIOS_PRODUCT,
    &keys::BIOS_VENDOR,
    &keys::CGROUP_QUOTA,
    &keys::COALESCE_ADAPTIVE,
    &keys::COALESCE_RX_USECS,
    &keys::CPU_EPP,
    &keys::CPU_GOVERNOR,
    &keys::CPU_IDLE_DRIVER,
    &keys::CPU_MODEL,
    &keys::CPU_NODE,
    &keys::CPU_ONLINE,
    &keys::CPU_SMT,
    &keys::DEVICE_DRIVER,
    &keys::DEVICE_FEATURE,
    &keys::DEVICE_GRO,
    &keys::DEVICE_KIND,
    &keys::DEVICE_MTU,
    &keys::DEVICE_NODE,
    &keys::DEVICE_SPEED,
    &keys::DIMM_CHANNELS,
    &keys::DIMM_CHANNELS_USED,
    &keys::DISK_NR_REQUESTS,
    &keys::DISK_READ_AHEAD,
    &keys::DISK_ROTATIONAL,
    &keys::DISK_SCHEDULER,
    &keys::DISK_VIRTUAL,
    &keys::IRQ_AFFINITY,
    &keys::IRQ_BALANCER,
    &keys::IRQ_EFFECTIVE,
    &keys::IRQ_HINT,
    &keys::KERNEL_CMDLINE,
    &keys::KERNEL_ISOLATED,
    &keys::KERNEL_MITIGATIONS,
    &keys::KERNEL_RELEASE,
    &keys::MEMORY_HUGEPAGES,
    &keys::MEMORY_MIN_FREE,
    &keys::MEMORY_SWAPPINESS,
    &keys::MEMORY_THP,
    &keys::MEMORY_THP_DEFRAG,
    &keys::MEMORY_TOTAL,
    &keys::NETFILTER_BASE_CHAINS,
    &keys::NETFILTER_DROP_POLICIES,
    &keys::NETFILTER_LEGACY_TABLES,
    &keys::NETFILTER_LONGEST_CHAIN,
    &keys::NETFILTER_RULES,
    &keys::NUMA_BALANCING,
    &keys::NUMA_NODES,
    &keys::QDISC_ROOT,
    &keys::QUEUES_MAXIMUM,
    &keys::QUEUES_RX,
    &keys::QUEUES_TX,
    &keys::RFS_ENTRIES,
    &keys::RING_RX,
    &keys::RING_RX_MAXIMUM,
    &keys::ROUTE_EARLY_DEMUX,
    &keys::ROUTE_RP_FILTER,
    &keys::RPS_CPUS,
    &keys::RPS_MASK,
    &keys::RSS_TABLE_QUEUES,
    &keys::RSS_TABLE_SIZE,
    &keys::RSS_UDP4_FIELDS,
    &keys::SELINUX_ACTIVE,
    &keys::SOFTNET_BACKLOG,
    &keys::SOFTNET_BUDGET,
    &keys::SOFTNET_BUDGET_USECS,
    &keys::TCP_CONGESTION,
    &keys::TCP_FLAGS,
    &keys::TCP_MEM_PRESSURE,
    &keys::TCP_SLOW_START_IDLE,
    &keys::TUNNEL_PRESENT,
    &keys::UDP_MEM_PRESSURE,
    &keys::VIRT_CONTAINER,
    &keys::VIRT_HYPERVISOR,
    &keys::XPS_CPUS,
    // Last: what a key above holds is not listed again.
    &keys::SYSCTL_VALUE,
];

/// Memory that differs by less is the same: what the kernel keeps for itself varies from boot to boot.
const SAME_MEMORY: f64 = 0.01;

/// One of the two hosts.
#[derive(Debug)]
pub struct Side<'a> {
    /// Its name for the reader.
    pub name: &'a str,
    /// What was read of it.
    pub evidence: &'a Evidence,
    /// The findings of the rules.
    pub findings: &'a [Finding],
}

/// What differs, without the envelope.
#[derive(Debug, Default)]
pub struct Differences {
    /// Settings.
    pub metrics: Vec<Metric>,
    /// Rules.
    pub findings: Vec<RuleDifference>,
    /// What could be read on one side only.
    pub not_compared: Vec<NotCompared>,
}

/// Compares two hosts; `knobs` are ids by the file or feature that the knob turns.
pub fn differences(
    before: &Side<'_>,
    after: &Side<'_>,
    rules: &[About],
    knobs: &BTreeMap<String, String>,
) -> Differences {
    let mut all = Differences {
        findings: spoken(before, after),
        ..Differences::default()
    };
    let gone = lone_devices(before, after);
    let made = made_of(before, after);
    let mut keyed_sources = BTreeSet::new();
    for key in SETTINGS {
        let found = keyed(before, after, key, &gone, &mut all);
        for found in found {
            // What a key with a meaning holds is not listed again as a bare sysctl.
            let held = key == &&keys::SYSCTL_VALUE && !found.sources.is_disjoint(&keyed_sources);
            if !held {
                if key != &&keys::SYSCTL_VALUE {
                    keyed_sources.extend(found.sources.iter().cloned());
                }
                all.metrics.push(found.metric(key, rules, knobs, &made));
            }
        }
    }
    for (device, verdict) in gone {
        all.metrics.push(Metric {
            name: "device".to_owned(),
            group: "device".to_owned(),
            subjects: vec![format!("device/{device}")],
            before: (verdict == Verdict::OnlyBefore).then(|| "present".to_owned()),
            after: (verdict == Verdict::OnlyAfter).then(|| "present".to_owned()),
            before_value: None,
            after_value: None,
            unit: None,
            ratio: None,
            no_ratio: None,
            verdict,
            rules: Vec::new(),
            knob: None,
        });
    }
    all.metrics.sort_by_cached_key(|metric| {
        let first = metric.subjects.first().map(|subject| natural(subject));
        (metric.group.clone(), metric.name.clone(), first)
    });
    all
}

/// The keys whose readings were made of a file, by its path; of those that hold a sysctl as it is, none.
fn made_of(before: &Side<'_>, after: &Side<'_>) -> BTreeMap<String, BTreeSet<&'static str>> {
    let mut made: BTreeMap<String, BTreeSet<&'static str>> = BTreeMap::new();
    let readings = before.evidence.readings().chain(after.evidence.readings());
    for reading in readings.filter(|reading| reading.key != &keys::SYSCTL_VALUE) {
        for file in files(&reading.origin.source) {
            made.entry(file).or_default().insert(reading.key.id);
        }
    }
    made
}

/// The files that a source names: several have commas and spaces between them, and alternatives of a name stand in braces.
fn files(source: &str) -> impl Iterator<Item = String> {
    source.split(", ").flat_map(|part| {
        let braced = part.split_once('{').and_then(|(head, rest)| {
            let (inner, tail) = rest.split_once('}')?;
            let names = inner.split(',');
            Some(names.map(|name| format!("{head}{name}{tail}")).collect())
        });
        braced.unwrap_or_else(|| vec![part.to_owned()])
    })
}

/// Words and numbers of a name in turn, so that `rx-10` comes after `rx-9`.
fn natural(name: &str) -> Vec<(String, u64)> {
    let mut parts = Vec::new();
    let mut rest = name;
    while !rest.is_empty() {
        let digits = rest
            .find(|c: char| c.is_ascii_digit())
            .unwrap_or(rest.len());
        let (word, tail) = rest.split_at(digits);
        let end = tail
            .find(|c: char| !c.is_ascii_digit())
            .unwrap_or(tail.len());
        let (number, tail) = tail.split_at(end);
        parts.push((word.to_owned(), number.parse().unwrap_or(u64::MAX)));
        rest = tail;
    }
    parts
}

/// The differences in one sentence.
pub fn sentence(before: &str, after: &str, all: &Differences) -> String {
    if all.metrics.is_empty() && all.findings.is_empty() {
        return "no setting differs, and the rules report the same on both".to_owned();
    }
    let cared = all
        .metrics
        .iter()
        .filter(|metric| !metric.rules.is_empty())
        .count();
    let more = |worse: fn(&RuleDifference) -> bool| {
        all.findings
            .iter()
            .filter(|difference| worse(difference))
            .count()
    };
    let care = match cared {
        0 => "none relevant to rules".to_owned(),
        1 => "1 of them relevant to rules".to_owned(),
        all_of if all_of == all.metrics.len() => "all of them relevant to rules".to_owned(),
        some => format!("{some} of them relevant to rules"),
    };
    let differ = match all.metrics.len() {
        0 => "no setting differs".to_owned(),
        1 => format!("1 setting differs, {care}"),
        some => format!("{some} settings differ, {care}"),
    };
    let mut text = vec![differ];
    for (count, side) in [
        (more(|d| d.before < d.after), before),
        (more(|d| d.before > d.after), after),
    ] {
        if count > 0 {
            text.push(format!("{} more on {side}", said(count)));
        }
    }
    text.join("; ")
}

fn said(count: usize) -> String {
    match count {
        1 => "1 rule reports".to_owned(),
        count => format!("{count} rules report"),
    }
}

/// Devices of one side only: each stands once, and not once more per setting.
fn lone_devices(before: &Side<'_>, after: &Side<'_>) -> BTreeMap<String, Verdict> {
    let devices = |side: &Side<'_>| -> BTreeSet<String> {
        let kinds = side.evidence.each_words(&keys::DEVICE_KIND);
        kinds
            .unwrap_or_default()
            .into_iter()
            .map(|(device, _)| device.name().to_owned())
            .collect()
    };
    let (first, second) = (devices(before), devices(after));
    let only = |of: &BTreeSet<String>, not: &BTreeSet<String>, verdict| {
        of.difference(not)
            .map(|device| (device.clone(), verdict))
            .collect::<Vec<_>>()
    };
    let mut lone = only(&first, &second, Verdict::OnlyBefore);
    lone.extend(only(&second, &first, Verdict::OnlyAfter));
    lone.into_iter().collect()
}

/// Readings of a key by what it is about, as both hosts would call it: an interrupt by its name, for numbers
/// are given out anew at each boot.
fn readings<'a>(side: &Side<'a>, key: &Key) -> BTreeMap<Subject, &'a Reading> {
    side.evidence
        .readings()
        .filter(|reading| reading.key == key)
        .map(|reading| {
            let name = (reading.subject.kind() == Kind::Irq)
                .then(|| side.evidence.words(&keys::IRQ_NAME, &reading.subject).ok())
                .flatten();
            let subject = match name {
                Some(name) => Subject::new(Kind::Irq, name.value),
                None => reading.subject.clone(),
            };
            (subject, reading)
        })
        .collect()
}

/// The differences of one key, the same ones of several subjects put together.
fn keyed(
    before: &Side<'_>,
    after: &Side<'_>,
    key: &'static Key,
    gone: &BTreeMap<String, Verdict>,
    all: &mut Differences,
) -> Vec<Found> {
    let (first, second) = (readings(before, key), readings(after, key));
    let subjects: BTreeSet<&Subject> = first.keys().chain(second.keys()).collect();
    let mut found: BTreeMap<_, Found> = BTreeMap::new();
    for subject in subjects {
        let (one, other) = (first.get(subject), second.get(subject));
        let device = subject.name().split(':').next().unwrap_or_default();
        if gone.contains_key(device) {
            continue;
        }
        let lacks = [
            (before, lack(before, key, one)),
            (after, lack(after, key, other)),
        ];
        match &lacks {
            [(_, None), (_, None)] => {}
            [(_, Some(_)), (_, Some(_))] => continue,
            _ => {
                for (side, why) in lacks {
                    all.not_compared.extend(why.map(|reason| NotCompared {
                        name: named(key, subject),
                        side: side.name.to_owned(),
                        reason,
                    }));
                }
                continue;
            }
        }
        let (was, is) = (one.map(|r| &r.value), other.map(|r| &r.value));
        if alike(key, was, is) {
            continue;
        }
        let shown = (was.map(|v| shown(key, v)), is.map(|v| shown(key, v)));
        // Rounded for people they might look the same.
        let shown = if near(was, is) {
            (was.map(exact), is.map(exact))
        } else {
            shown
        };
        let name = match key.of {
            Kind::Setting => named(key, subject),
            _ => key.id.to_owned(),
        };
        found
            .entry((name.clone(), shown.clone()))
            .or_insert_with(|| Found {
                name,
                shown,
                ..Found::default()
            })
            .add(subject, [one, other]);
    }
    found.into_values().collect()
}

/// Why one side does not have it; a reason of the host holds for all its subjects.
fn lack(side: &Side<'_>, key: &'static Key, reading: Option<&&Reading>) -> Option<String> {
    let reading = match reading {
        Some(reading) => Some(*reading),
        None => side.evidence.reading(key, &Subject::host()),
    };
    match &reading?.value {
        Value::Absent(why) => Some(why.reason.clone()),
        _ => None,
    }
}

/// One difference, and all that has it.
#[derive(Debug, Default)]
struct Found {
    name: String,
    shown: (Option<String>, Option<String>),
    subjects: Vec<String>,
    sources: BTreeSet<String>,
}

impl Found {
    fn add(&mut self, subject: &Subject, readings: [Option<&&Reading>; 2]) {
        match (subject.kind(), subject.name().split_once(':')) {
            (Kind::Host, _) | (Kind::Setting, None) => {}
            (Kind::Setting, Some((device, _))) => self.subjects.push(format!("device/{device}")),
            _ => self.subjects.push(subject.to_string()),
        }
        let sources = readings.into_iter().flatten();
        self.sources
            .extend(sources.flat_map(|reading| files(&reading.origin.source)));
    }

    fn metric(
        self,
        key: &Key,
        rules: &[About],
        knobs: &BTreeMap<String, String>,
        made: &BTreeMap<String, BTreeSet<&'static str>>,
    ) -> Metric {
        let knob = self.sources.iter().find_map(|source| knobs.get(source));
        // One key holds all sysctls, so a rule that needs it cares for those that it turns, or that other keys that it
        // needs are made of.
        let read: BTreeSet<&str> = if key == &keys::SYSCTL_VALUE {
            let made = self.sources.iter().filter_map(|source| made.get(source));
            made.flatten().copied().collect()
        } else {
            [key.id].into()
        };
        let cares = |rule: &&About| {
            rule.needs.iter().any(|need| read.contains(&**need))
                || knob.is_some_and(|knob| rule.knobs.contains(knob))
        };
        let (before, after) = self.shown;
        Metric {
            name: self.name,
            group: group(key.id),
            subjects: self.subjects,
            verdict: verdict(before.as_ref(), after.as_ref()),
            before,
            after,
            before_value: None,
            after_value: None,
            unit: None,
            ratio: None,
            no_ratio: None,
            rules: rules
                .iter()
                .filter(cares)
                .map(|rule| rule.id.clone())
                .collect(),
            knob: knob.cloned(),
        }
    }
}

fn named(key: &Key, subject: &Subject) -> String {
    match subject.kind() {
        Kind::Host => key.id.to_owned(),
        Kind::Setting => {
            let name = subject.name();
            name.split_once(':')
                .map_or(name, |(_, name)| name)
                .to_owned()
        }
        _ => format!("{} of {subject}", key.id),
    }
}

fn alike(key: &Key, one: Option<&Value>, other: Option<&Value>) -> bool {
    match (one, other) {
        (Some(Value::Number(a)), Some(Value::Number(b))) if key == &keys::MEMORY_TOTAL => {
            (a - b).abs() <= a.max(*b) * SAME_MEMORY
        }
        (one, other) => one == other,
    }
}

/// Two numbers within a hundredth of each other.
fn near(one: Option<&Value>, other: Option<&Value>) -> bool {
    match (one, other) {
        (Some(Value::Number(a)), Some(Value::Number(b))) => {
            (a - b).abs() <= a.abs().max(b.abs()) * 0.01
        }
        _ => false,
    }
}

fn shown(key: &Key, value: &Value) -> String {
    match value {
        Value::Number(number) => number_of(key.unit, *number),
        other => exact(other),
    }
}

fn exact(value: &Value) -> String {
    match value {
        Value::Number(number) => number.to_string(),
        Value::Text(text) if text.is_empty() => "none".to_owned(),
        Value::Text(text) => text.clone(),
        Value::Absent(why) => format!("unknown: {}", why.reason),
    }
}

fn verdict(one: Option<&String>, other: Option<&String>) -> Verdict {
    match (one, other) {
        (Some(_), None) => Verdict::OnlyBefore,
        (None, _) => Verdict::OnlyAfter,
        (Some(_), Some(_)) => Verdict::Differs,
    }
}

/// The subject matter of a key: what stands before the point, with the kin put together.
fn group(id: &str) -> String {
    let first = id.split('.').next().unwrap_or(id);
    match first {
        "coalesce" | "queues" | "ring" | "rss" | "rps" | "xps" | "qdisc" => "device",
        "bios" | "dimm" => "firmware",
        "softnet" | "rfs" | "route" | "udp" | "tcp" | "tunnel" | "netfilter" => "net",
        "audit" | "selinux" => "security",
        "sysctl" => "other sysctls",
        "irq" => "interrupts",
        other => other,
    }
    .to_owned()
}

/// Rules that act or watch on one side and say less on the other.
fn spoken(before: &Side<'_>, after: &Side<'_>) -> Vec<RuleDifference> {
    let worst = |side: &Side<'_>| -> BTreeMap<String, Finding> {
        let mut worst: BTreeMap<String, Finding> = BTreeMap::new();
        for finding in side.findings {
            let known = worst
                .entry(finding.rule.clone())
                .or_insert_with(|| finding.clone());
            if finding.outcome < known.outcome {
                *known = finding.clone();
            }
        }
        worst
    };
    let (first, second) = (worst(before), worst(after));
    first
        .into_iter()
        .filter_map(|(rule, one)| {
            let other = second.get(&rule)?;
            let louder = if one.outcome < other.outcome {
                &one
            } else {
                other
            };
            let differs = one.outcome != other.outcome && louder.outcome <= Outcome::Watch;
            differs.then(|| RuleDifference {
                rule,
                before: one.outcome,
                after: other.outcome,
                sentence: louder.sentence.clone(),
            })
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use rungwise_model::evidence::{Absence, Origin};

    use super::*;

    fn host(governor: &str, cpus: usize) -> Evidence {
        let mut evidence = Evidence::over(10.0);
        for cpu in 0..cpus {
            let (key, origin) = (&keys::CPU_GOVERNOR, Origin::default());
            evidence.text(key, Subject::cpu(cpu), governor, origin);
        }
        evidence
    }

    fn compare(one: &Evidence, other: &Evidence) -> Differences {
        let side = |name, evidence| Side {
            name,
            evidence,
            findings: &[],
        };
        differences(&side("a", one), &side("b", other), &[], &BTreeMap::new())
    }

    #[test]
    fn the_same_difference_of_many_cpus_stands_once() {
        let all = compare(&host("powersave", 20), &host("performance", 20));
        assert_eq!(all.metrics.len(), 1);
        assert_eq!(all.metrics[0].subjects.len(), 20);
        assert_eq!(all.metrics[0].before.as_deref(), Some("powersave"));
        assert!(compare(&host("x", 2), &host("x", 2)).metrics.is_empty());
    }

    #[test]
    fn what_one_side_could_not_read_is_no_difference() {
        let (mut one, mut other) = (Evidence::over(1.0), Evidence::over(1.0));
        one.absent(
            &[&keys::AUDIT_ENABLED],
            &Absence::because("not permitted"),
            "",
        );
        let origin = Origin::default();
        other.number(&keys::AUDIT_ENABLED, Subject::host(), 1.0, origin);
        let all = compare(&one, &other);
        assert!(all.metrics.is_empty());
        assert_eq!(all.not_compared.len(), 1);
        assert_eq!(all.not_compared[0].reason, "not permitted");
    }

    #[test]
    fn numbers_that_look_the_same_are_reported_exactly() {
        let of = |number| {
            let mut evidence = Evidence::over(1.0);
            let origin = Origin::default();
            evidence.number(&keys::MEMORY_MIN_FREE, Subject::host(), number, origin);
            evidence
        };
        let all = compare(&of(67_108_864.0), &of(67_112_960.0));
        assert_eq!(all.metrics[0].before.as_deref(), Some("67108864"));
        assert_eq!(all.metrics[0].after.as_deref(), Some("67112960"));
    }

    #[test]
    fn a_rule_cares_for_the_sysctls_that_it_turns_or_that_what_it_reads_is_made_of() {
        let of = |value: &str| {
            let mut evidence = Evidence::over(1.0);
            let used = "/proc/sys/net/netfilter/nf_conntrack_{count,max}";
            let origin = Origin::new(used, "");
            evidence.number(&keys::CONNTRACK_USE, Subject::host(), 0.5, origin);
            for name in [
                "fs.file-max",
                "net.core.rmem_max",
                "net.netfilter.nf_conntrack_max",
            ] {
                let setting = Subject::new(Kind::Setting, name);
                let origin = Origin::new(format!("/proc/sys/{}", name.replace('.', "/")), value);
                evidence.text(&keys::SYSCTL_VALUE, setting, value, origin);
            }
            evidence
        };
        let (one, other) = (of("1"), of("2"));
        let side = |evidence| Side {
            name: "x",
            evidence,
            findings: &[],
        };
        let rule = |id: &str, need: &Key, knobs: &[&str]| About {
            id: id.to_owned(),
            topic: String::new(),
            summary: String::new(),
            page: String::new(),
            needs: vec![need.id.to_owned()],
            knobs: knobs.iter().map(|id| (*id).to_owned()).collect(),
        };
        let rules = [
            rule("udp-rcvbuf-drop", &keys::SYSCTL_VALUE, &["net.rmem_max"]),
            rule("conntrack-full", &keys::CONNTRACK_USE, &[]),
        ];
        let file = "/proc/sys/net/core/rmem_max".to_owned();
        let knobs = [(file, "net.rmem_max".to_owned())].into();
        let all = differences(&side(&one), &side(&other), &rules, &knobs);
        let cares = |name: &str| {
            let metric = all.metrics.iter().find(|metric| metric.name == name);
            metric.unwrap().rules.clone()
        };
        assert_eq!(cares("net.core.rmem_max"), ["udp-rcvbuf-drop"]);
        let conntrack = cares("net.netfilter.nf_conntrack_max");
        assert_eq!(conntrack, ["conntrack-full"]);
        assert!(cares("fs.file-max").is_empty());
    }

    #[test]
    fn the_tenth_queue_comes_after_the_ninth() {
        assert!(natural("eth0-rx-9") < natural("eth0-rx-10"));
        assert!(natural("eth0") < natural("eth1"));
    }

    #[test]
    fn an_interrupt_is_known_by_its_name() {
        let of = |number: usize| {
            let mut evidence = Evidence::over(1.0);
            let irq = Subject::new(Kind::Irq, number);
            let origin = Origin::default();
            evidence.text(&keys::IRQ_NAME, irq.clone(), "eth0-rx-0", origin.clone());
            evidence.text(&keys::IRQ_AFFINITY, irq, "0-3", origin);
            evidence
        };
        assert!(compare(&of(30), &of(77)).metrics.is_empty());
    }
}
