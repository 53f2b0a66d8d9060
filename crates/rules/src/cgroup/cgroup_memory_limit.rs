//! `cgroup-memory-limit`: a control group is short of memory though the machine is not, or the kernel killed a process for lack of memory.
//!
//! At its limit a group reclaims its own pages. That alone is normal: page cache grows up to any limit. It hurts when reclaimed
//! pages are needed again: pages read a second time (`workingset_refault_*`), faults that read from swap or files (`pgmajfault`),
//! tasks that wait (`memory.pressure`), or a process that is killed. A kill that no limited group counts is one of the machine
//! (`oom_kill` of /proc/vmstat counts both). Source: mm/memcontrol.c, `mm/oom_kill.c`, mm/workingset.c.

use std::fmt::Write as _;

use rungwise_model::check::{Finding, Grade};
use rungwise_model::evidence::{Evidence, Quantity, Subject};
use rungwise_model::keys;

use super::{cite_members, who};
use crate::{Doc, Judgement, Measure, Rule, Threshold, say};

const HITS: Threshold = Threshold {
    name: "times that the limit was hit, per second",
    value: 1.0,
    origin: "own guess: less often it is an occasional file that is read once",
};

const AGAIN: Threshold = Threshold {
    name: "pages that are read again (refaults), or major faults, per second",
    value: 50.0,
    origin: "own guess: at 0.1 ms each on flash, 0.5 % of the time of one thread; on a slow disk half of it",
};

const WAITING: Threshold = Threshold {
    name: "share of the window in which a task of the group waits for memory",
    value: 0.05,
    origin: "own guess, as in direct-reclaim",
};

pub(crate) static RULE: Rule = Rule {
    id: "cgroup-memory-limit",
    topic: "cgroup",
    summary: "the memory limit of a control group is too small for what runs in it, or the kernel killed a process for lack of memory",
    needs: &[
        &keys::CGROUP_MEMBERS,
        &keys::CGROUP_MEMORY_FAULTS,
        &keys::CGROUP_MEMORY_LIMIT,
        &keys::CGROUP_MEMORY_REFAULTS,
        &keys::CGROUP_MEMORY_SWAP,
        &keys::CGROUP_MEMORY_USED,
        &keys::CGROUP_MEMORY_WAIT,
        &keys::CGROUP_OOM_KILLS,
        &keys::CGROUP_OWN,
        &keys::MEMORY_CGROUP_RECLAIM,
        &keys::MEMORY_OOM_KILLS,
    ],
    thresholds: &[HITS, AGAIN, WAITING],
    knobs: &["mem.cgroup_limit"],
    measure: Some(Measure::more(&keys::MEMORY_CGROUP_RECLAIM)),
    doc: Doc {
        looks_for: "A control group in which the kernel killed a process for lack of memory in the window; or one that hits its \
            memory limit more than once a second and either rereads more than 50 pages a second, or waits for memory in more than \
            5 % of the window. Also processes that the kernel killed in the window, if no limited group accounts for them: the machine ran out of memory, or a group that is gone at the end of the window.",
        hurts: "The group reclaims its own memory while the machine has plenty. It rereads what it dropped from disk or swap, \
            and each read stops a thread. If nothing can be reclaimed, the kernel kills a process.",
        todo: "Raise the limit (mem.cgroup_limit), or reduce what the service holds: a smaller cache or heap, fewer workers. A JVM \
            needs its heap, metaspace, code, threads and direct buffers within the limit. Where the machine itself ran out, the kernel \
            log names the victim and the use of each process (`dmesg | grep -A 40 oom-kill`). Inside a container the limit is read-only: \
            the container runtime sets it.",
        wrong: "Page cache fills a group up to its limit, and a stream of files that are read once hits it all the time \
            without harm: so the rule requires pages that are read again. A kill in a group that was made after the window began looks like one of the machine. A batch job with a small limit may be meant to \
            be slow.",
        sources: "Documentation/admin-guide/cgroup-v2.rst (memory.events, memory.stat); \
            Documentation/admin-guide/cgroup-v1/memory.rst; mm/workingset.c.",
    },
    judge,
};

/// What the limit does to a group.
struct Harm<'e> {
    words: String,
    grade: Grade,
    cited: Vec<Quantity<'e>>,
}

fn judge(evidence: &Evidence) -> Judgement {
    let kills = evidence.each(&keys::CGROUP_OOM_KILLS).unwrap_or_default();
    let machine = killed_by_the_machine(evidence, &kills);
    let hits = match evidence.each(&keys::MEMORY_CGROUP_RECLAIM) {
        Err(_) if machine.is_some() => Vec::new(),
        hits => hits?,
    };
    let mut groups: Vec<&Subject> = hits.iter().chain(&kills).map(|(group, _)| *group).collect();
    groups.sort_unstable();
    groups.dedup();
    let mut findings = Vec::from_iter(machine);
    for group in groups {
        let Some(harm) = harm(evidence, group) else {
            continue;
        };
        let mut sentence = who(group, evidence);
        let limit = evidence.quantity(&keys::CGROUP_MEMORY_LIMIT, group).ok();
        if let Some(limit) = limit {
            let _ = write!(
                sentence,
                " is at its memory limit of {}",
                say::bytes(limit.value)
            );
        } else {
            sentence += " is at its memory limit";
        }
        let _ = write!(sentence, ": {}", harm.words);
        let mut finding = Finding::act(group, sentence)
            .severity(harm.grade)
            .confidence(Grade::High)
            .refuted_by("with twice the limit the group rereads as many pages");
        let used = evidence.quantity(&keys::CGROUP_MEMORY_USED, group).ok();
        for reading in harm.cited.into_iter().chain(limit).chain(used) {
            finding = finding.cite(reading.reading);
        }
        finding = match group.name() {
            // Set from outside.
            "/" => finding.consider("mem.cgroup_limit"),
            name => finding.consider_device("mem.cgroup_limit", name),
        };
        findings.push(cite_members(finding, group, evidence));
    }
    if findings.is_empty() {
        let most = hits
            .iter()
            .max_by(|(_, a), (_, b)| a.value.total_cmp(&b.value));
        let clear = match most {
            Some((group, hits)) if hits.value > 0.0 => Finding::clear(format!(
                "control group {} hits its memory limit {}, but rereads little of what it reclaims",
                group.name(),
                say::rate(hits.value)
            ))
            .cite(hits.reading),
            _ => Finding::clear("no control group hit a memory limit"),
        };
        findings.push(clear);
    }
    Ok(findings)
}

/// The kills that no limited group accounts for. A group counts those of the groups below it as well.
fn killed_by_the_machine(
    evidence: &Evidence,
    kills: &[(&Subject, Quantity<'_>)],
) -> Option<Finding> {
    let all = evidence.host(&keys::MEMORY_OOM_KILLS).ok()?;
    let is_below = |group: &Subject, other: &Subject| {
        let rest = group
            .name()
            .strip_prefix(other.name().trim_end_matches('/'));
        group != other && rest.is_some_and(|rest| rest.starts_with('/'))
    };
    let topmost = kills.iter().filter(|(group, own)| {
        own.value > 0.0
            && !kills
                .iter()
                .any(|(other, more)| more.value >= own.value && is_below(group, other))
    });
    let left = all.value - topmost.map(|(_, own)| own.value).sum::<f64>();
    if left < 1.0 {
        return None;
    }
    let who = match left {
        one if one <= 1.0 => "a process".to_owned(),
        more => format!("{} processes", say::whole(more)),
    };
    let sentence = format!(
        "the kernel killed {who} for lack of memory, and not at the limit of a control group that was read: the machine ran out of memory, or a group that is gone"
    );
    let finding = Finding::act(&Subject::host(), sentence)
        .severity(Grade::High)
        .confidence(Grade::Medium)
        .cite(all.reading);
    Some(finding.refuted_by("the kernel log names a control group in `oom_memcg` of the kill"))
}

fn harm<'e>(evidence: &'e Evidence, group: &Subject) -> Option<Harm<'e>> {
    let of = |key| evidence.quantity(key, group).ok();
    let kills = of(&keys::CGROUP_OOM_KILLS).filter(|kills| kills.value > 0.0);
    if let Some(kills) = kills {
        return Some(Harm {
            words: match kills.value {
                one if one <= 1.0 => "the kernel killed one of its processes".to_owned(),
                more => format!("the kernel killed {} of its processes", say::whole(more)),
            },
            grade: Grade::High,
            cited: vec![kills],
        });
    }
    let hits = of(&keys::MEMORY_CGROUP_RECLAIM)?;
    if hits.value <= HITS.value {
        return None;
    }
    let again = |key| of(key).filter(|rate: &Quantity<'_>| rate.value > AGAIN.value);
    let refaults = again(&keys::CGROUP_MEMORY_REFAULTS);
    let faults = again(&keys::CGROUP_MEMORY_FAULTS);
    let waits = of(&keys::CGROUP_MEMORY_WAIT).filter(|wait| wait.value > WAITING.value);
    let mut words = Vec::new();
    if let Some(refaults) = &refaults {
        words.push(format!(
            "it rereads {} pages that it had to drop",
            say::rate(refaults.value)
        ));
    }
    if let Some(faults) = &faults {
        let swap = of(&keys::CGROUP_MEMORY_SWAP).filter(|swap| swap.value > 0.0);
        let from = swap.map_or(String::new(), |swap| {
            format!(" ({} of it in swap)", say::bytes(swap.value))
        });
        words.push(format!(
            "{} page faults wait for a disk{from}",
            say::rate(faults.value)
        ));
    }
    if let Some(waits) = &waits {
        words.push(format!(
            "tasks wait for memory in {} of the time",
            say::percent(waits.value)
        ));
    }
    if words.is_empty() {
        return None;
    }
    let cited = [Some(hits), refaults, faults, waits].into_iter().flatten();
    Some(Harm {
        words: words.join(", "),
        grade: Grade::High,
        cited: cited.collect(),
    })
}
