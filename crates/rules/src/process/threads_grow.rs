//! `threads-grow`: a process keeps creating threads.
//!
//! A thread per request needs as many threads as requests are open. When replies get slow the number explodes, and with it
//! memory, context switches and the wait for locks, until the pids limit stops it.
use rungwise_model::check::{Finding, Grade};
use rungwise_model::evidence::Evidence;
use rungwise_model::keys;

use super::{SERVICE, called, is_service};
use crate::rule::needs;
use crate::{Doc, Judgement, Measure, Rule, Threshold, say};

const ADDED: Threshold = Threshold {
    name: "threads added in the window, as a share of those at its end",
    value: 0.30,
    origin: "own guess: at this pace they double within three windows",
};

const MANY: Threshold = Threshold {
    name: "threads per CPU above which more of them only wait",
    value: 64.0,
    origin: "own guess: far above what pools are sized to",
};

pub(crate) static RULE: Rule = Rule {
    id: "threads-grow",
    topic: "process",
    summary: "a process keeps creating threads",
    needs: needs!(
        [
            &keys::CPU_ONLINE,
            &keys::PROCESS_THREADS,
            &keys::PROCESS_THREADS_ADDED
        ],
        SERVICE
    ),
    thresholds: &[ADDED, MANY],
    knobs: &[],
    measure: Some(Measure::more(&keys::PROCESS_THREADS_ADDED)),
    doc: Doc {
        looks_for: "A process with more than 64 threads per CPU that added more than 30 % of them within the window and created some in every part of it.",
        hurts: "Each thread takes a stack and scheduler time, and more threads wait for the same locks. At the limit of the group (pids.max), of the user or of the machine the service fails.",
        todo: "Bound the pool and queue in front of it; find what made the replies slow (upstream-slow, user-lock).",
        wrong: "A process that has just started creates its pool; one that answers on no port is only watched.",
        sources: "pthread_create(3), EAGAIN; kernel.threads-max in Documentation/admin-guide/sysctl/kernel.rst; cgroup-v2.rst, pids.",
    },
    judge,
};

fn judge(evidence: &Evidence) -> Judgement {
    let added = evidence.each(&keys::PROCESS_THREADS_ADDED)?;
    let online = evidence.host(&keys::CPU_ONLINE)?;
    let mut findings = Vec::new();
    let mut fastest = 0.0_f64;
    for (process, added) in added {
        let threads = evidence.quantity(&keys::PROCESS_THREADS, process)?;
        if threads.value < MANY.value * online.value {
            continue;
        }
        let share = added.value / threads.value.max(1.0);
        fastest = fastest.max(share);
        if share <= ADDED.value || !added.lasts(|more| more > 0.0) {
            continue;
        }
        let sentence = format!(
            "{} keeps creating threads: {:.0} more within the window, {:.0} now",
            called(evidence, process),
            added.value,
            threads.value
        );
        let finding = if is_service(evidence, process.name()) {
            Finding::act(process, sentence).severity(Grade::High)
        } else {
            Finding::watch(process, sentence).severity(Grade::Low)
        };
        findings.push(
            finding
                .cite(added.reading)
                .cite(threads.reading)
                .refuted_by("the number of threads stays the same in the next window"),
        );
    }
    if findings.is_empty() {
        let sentence = format!(
            "no process with many threads creates many more ({} at most)",
            say::percent(fastest)
        );
        findings.push(
            Finding::clear(sentence)
                .below(fastest.min(ADDED.value), ADDED.value)
                .cite(online.reading),
        );
    }
    Ok(findings)
}
