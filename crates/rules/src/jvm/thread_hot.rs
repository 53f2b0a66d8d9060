//! `thread-hot`: a thread uses a CPU from dump to dump.
//!
//! The JVM prints the CPU time of each thread since JDK 11, so two dumps show which thread used it, whatever the stacks are. The stack
//! identifies a loop only in code with known endless loops.

use rungwise_model::check::{Finding, Grade};
use rungwise_model::evidence::{Evidence, Missing, Subject};
use rungwise_model::keys;

use super::dumps;
use crate::{Doc, Judgement, Measure, Rule, Threshold, say};

const SHARE: Threshold = Threshold {
    name: "share of one CPU that a thread used between the dumps",
    value: 0.80,
    origin: "own guess: one CPU then limits what the thread does",
};

const MAPS: Threshold = Threshold {
    name: "threads in the same call of a map, from which on it is a loop and not work",
    value: 2.0,
    origin: "own guess: a map that is broken by a race traps every thread that uses it",
};

pub(crate) static RULE: Rule = Rule {
    id: "thread-hot",
    topic: "jvm",
    summary: "a thread uses a whole CPU, or spins in code known for endless loops",
    needs: &[
        &keys::THREADS_DUMPS,
        &keys::THREADS_HOT,
        &keys::THREADS_HOT_JVM,
        &keys::THREADS_HOT_JVM_NAME,
        &keys::THREADS_HOT_LOOP,
        &keys::THREADS_HOT_LOOP_KIND,
        &keys::THREADS_HOT_LOOP_THREADS,
        &keys::THREADS_HOT_SHARE,
    ],
    thresholds: &[SHARE, MAPS],
    knobs: &[],
    measure: Some(Measure::more(&keys::THREADS_HOT_SHARE)),
    doc: Doc {
        looks_for: "Threads by the growth of cpu= from the first dump to the last; on JDK 8, which prints none, threads that run Java code \
            in all of at least three dumps. Frames identify three kinds of loops, if the same line of the application calls them each time: \
            backtracking regular expressions, maps that several threads changed at once, and threads that yield or try a lock in a loop \
            (livelock).",
        hurts: "One CPU limits a thread that computes all the time, and the thread takes it from others. An endless loop never ends, nor \
            does its request; it keeps the pool thread and the resources that the thread holds.",
        todo: "regex: rewrite the pattern without nested repetition ((a+)+), use possessive quantifiers, limit the length of the input. map: \
            use ConcurrentHashMap. spin: wait on a condition or with tryLock(time), and back off by a random time. Otherwise inspect the \
            frames, or take a CPU profile of the thread; split the work over more threads if possible.",
        wrong: "A thread that computes all the time may just do its job; so without a known loop the rule only watches. A thread that \
            matches regular expressions one after the other at one line looks like one that backtracks.",
        sources: "HotSpot, Thread::print_on (cpu=, JDK-8200720); the programs livelock, regex and hashmap-loop in crates/testkit/java on JDK 8 to 25.",
    },
    judge,
};

fn judge(evidence: &Evidence) -> Judgement {
    dumps::each(evidence, of_jvm)
}

fn of_jvm(evidence: &Evidence, jvm: &Subject) -> Result<Vec<Finding>, Missing> {
    let share = evidence.quantity(&keys::THREADS_HOT_SHARE, jvm)?;
    let mut findings = Vec::new();
    findings.extend(in_loop(evidence, jvm)?);
    if share.value >= SHARE.value
        && let Ok(hot) = evidence.words(&keys::THREADS_HOT, jvm)
    {
        let sentence = format!("hot thread: {}", hot.value);
        findings.push(
            Finding::watch(jvm, sentence)
                .severity(Grade::Medium)
                .confidence(Grade::High)
                .cite(hot.reading)
                .cite(share.reading)
                .refuted_by("its cpu= grows more slowly in later dumps"),
        );
    }
    if let Ok(of_jvm) = evidence.quantity(&keys::THREADS_HOT_JVM, jvm)
        && of_jvm.value >= SHARE.value
    {
        let name = evidence.words(&keys::THREADS_HOT_JVM_NAME, jvm)?;
        let sentence = format!(
            "threads of the JVM itself use {} of a CPU: {}",
            say::percent(of_jvm.value),
            name.value
        );
        findings.push(
            Finding::watch(jvm, sentence)
                .severity(Grade::Medium)
                .confidence(Grade::High)
                .cite(of_jvm.reading)
                .cite(name.reading)
                .refuted_by("they are GC threads, and rungwise jvm gc shows short collections"),
        );
    }
    if findings.is_empty() {
        let sentence = format!(
            "no thread used more than {} of a CPU",
            say::percent(SHARE.value)
        );
        findings.push(
            Finding::clear(sentence)
                .below(share.value, SHARE.value)
                .cite(share.reading),
        );
    }
    Ok(findings)
}

fn in_loop(evidence: &Evidence, jvm: &Subject) -> Result<Option<Finding>, Missing> {
    let Ok(found) = evidence.words(&keys::THREADS_HOT_LOOP, jvm) else {
        return Ok(None);
    };
    let kind = evidence.words(&keys::THREADS_HOT_LOOP_KIND, jvm)?;
    let threads = evidence.quantity(&keys::THREADS_HOT_LOOP_THREADS, jvm)?;
    let what = match kind.value {
        "regex" => "a regular expression that backtracks",
        "map" => "a map that threads changed without a lock",
        _ => "threads that spin without progress",
    };
    let sentence = format!("endless loop, likely {what}: {}", found.value);
    let acts = kind.value != "map" || threads.value >= MAPS.value;
    let finding = if acts {
        Finding::act(jvm, sentence).severity(Grade::High)
    } else {
        Finding::watch(jvm, sentence).severity(Grade::Medium)
    };
    Ok(Some(
        finding
            .confidence(Grade::Medium)
            .cite(found.reading)
            .cite(kind.reading)
            .cite(threads.reading)
            .expect("the CPU that these threads use")
            .refuted_by("a later dump shows the application at another line"),
    ))
}
