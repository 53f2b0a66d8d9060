//! `gc-heap-exceeds-memory`: the heap may grow beyond the memory that the JVM has found.
//!
//! A JVM reserves its heap and starts; the kernel pages it out, or ends the process, when the heap fills. The header of a
//! log tells both sizes. The same question is asked of a command line by `jvm-heap-exceeds-memory`.

use rungwise_model::check::{Finding, Grade};
use rungwise_model::evidence::{Evidence, Missing};
use rungwise_model::keys;

use super::options::Goal;
use super::run::{OPTIONS, Run, each};
use crate::{Doc, Judgement, Rule, Threshold, say};

const LEFT: Threshold = Threshold {
    name: "share of the memory beside the heap and the bounds of other memory, below which it is too little",
    value: 0.1,
    origin: "own guess: 200 stacks of 1 MiB, the collector's own structures and the system want some percent each",
};

const FITS: Threshold = Threshold {
    name: "share of the memory that a heap is given where it was too large",
    value: 0.75,
    origin: "a quarter beside the heap is usual for containers",
};

pub(crate) static RULE: Rule = Rule {
    id: "gc-heap-exceeds-memory",
    topic: "jvm",
    summary: "the heap may grow beyond the memory",
    needs: &[
        &keys::GC_COLLECTOR,
        &keys::GC_FLAGS,
        &keys::GC_HEAP_MAX,
        &keys::GC_LIVE,
        &keys::GC_MEMORY,
        &keys::GC_SWAP,
        &keys::GC_UNIFIED,
        &keys::GC_VERSION,
    ],
    thresholds: &[LEFT, FITS],
    knobs: &[OPTIONS],
    doc: Doc {
        looks_for: "A largest heap above the memory that the log's header tells, or one that leaves less than a tenth of it once the \
            bounds of metaspace or permanent generation, code cache and direct memory are added, where the flags in the log set them.",
        hurts: "A collection touches the whole heap. Where part of it is in swap, a pause of milliseconds becomes one of seconds or \
            minutes; without swap the kernel ends the process.",
        todo: "Give the heap three quarters of the memory (-Xmx; from JDK 10 and 8u191 on -XX:MaxRAMPercentage=75.0 without -Xmx), \
            or the machine more memory. A live set above that needs the memory.",
        wrong: "A heap that never fills does no harm. A JDK 8 before 8u191 tells the memory of the machine in a container too, so that \
            a limit below it is not seen here. Other processes, threads and native libraries are not counted.",
        sources: "HotSpot os::print_memory_info and gcInitLogger.cpp (what the header tells); garbagecat (heap and permanent generation \
            beyond physical memory).",
    },
    judge,
};

/// Flags that bound memory beside the heap.
const BESIDE: [&str; 4] = [
    "MaxPermSize=",
    "MaxMetaspaceSize=",
    "ReservedCodeCacheSize=",
    "MaxDirectMemorySize=",
];

fn judge(evidence: &Evidence) -> Judgement {
    each(evidence, &keys::GC_HEAP_MAX, of_run)
}

fn of_run(run: &Run<'_>) -> Result<Finding, Missing> {
    let heap = run.number(&keys::GC_HEAP_MAX)?;
    let memory = run.number(&keys::GC_MEMORY)?;
    let keys = [&keys::GC_HEAP_MAX, &keys::GC_MEMORY, &keys::GC_SWAP];
    if heap.value > memory.value {
        let finding = run.cite(beyond(run, heap.value, memory.value), &keys);
        return Ok(finding.severity(Grade::High).confidence(Grade::High));
    }
    // A bound that no machine has, as the log of JDK 8 prints for metaspace without one, bounds nothing.
    let beside: Vec<(&str, f64)> = BESIDE
        .iter()
        .filter_map(|flag| Some((flag.trim_end_matches('='), run.size_of(flag)?)))
        .filter(|(_, bytes)| *bytes < memory.value)
        .collect();
    let all = heap.value + beside.iter().map(|(_, bytes)| bytes).sum::<f64>();
    let room = memory.value * (1.0 - LEFT.value);
    let parts: Vec<&str> = std::iter::once("the heap")
        .chain(beside.iter().map(|(flag, _)| *flag))
        .collect();
    let sentence = format!(
        "{} may take {} of {}",
        parts.join(" and "),
        say::bytes(all),
        say::bytes(memory.value)
    );
    if all < room {
        let clear = Finding::clear(sentence).below(all, room);
        return Ok(clear.cite(heap.reading).cite(memory.reading));
    }
    let finding = run
        .watch(format!(
            "{sentence}: hardly anything is left for threads, code and the collector"
        ))
        .severity(if all > memory.value {
            Grade::Medium
        } else {
            Grade::Low
        })
        .refuted_by("resident memory of the process under full load, well below the memory")
        .consider(OPTIONS);
    Ok(run.cite(finding, &keys))
}

fn beyond(run: &Run<'_>, heap: f64, memory: f64) -> Finding {
    let then = match run.told(&keys::GC_SWAP) {
        Some(swap) if swap > 0.0 => {
            "what does not fit goes to swap, and each collection reads it back"
        }
        Some(_) => "without swap the kernel ends the process when it fills",
        None => "the kernel swaps it out or ends the process when it fills",
    };
    let sentence = format!(
        "the heap may grow to {} and there are {} of memory: {then}",
        say::bytes(heap),
        say::bytes(memory)
    );
    let fits = memory * FITS.value;
    let live = run.told(&keys::GC_LIVE).filter(|live| *live > fits);
    let finding = |sentence: String| {
        run.act(sentence)
            .refuted_by("a machine or limit with more memory than the JVM that wrote the log saw")
    };
    if let Some(live) = live {
        let live = say::bytes(live);
        return finding(format!(
            "{sentence}; {live} are live, so it needs the memory"
        ));
    }
    let mib = |bytes: f64| (bytes / (1024.0 * 1024.0)).floor().max(1.0) as u64;
    let smaller = finding(sentence).expect("no page of the heap in swap, and no end by the kernel");
    // The JVM does not start with a heap that is larger at first than at most.
    let first = run
        .size_of("InitialHeapSize=")
        .filter(|first| *first > fits)
        .map(|_| mib(fits));
    run.lower(
        smaller,
        Goal::HeapMaxMib {
            most: mib(fits),
            first,
        },
    )
}
