//! `gc-heap-exceeds-memory`: the heap may grow beyond the memory that the JVM detects.
//!
//! A JVM reserves its heap and starts; the kernel swaps it out, or kills the process, when the heap fills. The log's header
//! contains both sizes. `jvm-heap-exceeds-memory` checks a command line for the same.

use rungwise_model::check::{Finding, Grade};
use rungwise_model::evidence::{Evidence, Missing};
use rungwise_model::keys;

use super::options::Goal;
use super::run::{JDK, OPTIONS, Run, each};
use crate::rule::needs;
use crate::{Doc, Judgement, Measure, Rule, Threshold, say};

const LEFT: Threshold = Threshold {
    name: "share of memory left beside the heap and the limits of other areas, below which it is too little",
    value: 0.1,
    origin: "own guess: 200 stacks of 1 MiB, the collector's own structures and the system need a few percent each",
};

const FITS: Threshold = Threshold {
    name: "share of memory recommended for a heap that is too large",
    value: 0.75,
    origin: "leaving a quarter beside the heap is usual for containers",
};

pub(crate) static RULE: Rule = Rule {
    id: "gc-heap-exceeds-memory",
    topic: "jvm",
    summary: "the heap may grow beyond the memory",
    needs: needs!(
        [
            &keys::GC_HEAP_MAX,
            &keys::GC_LIVE,
            &keys::GC_MEMORY,
            &keys::GC_SWAP
        ],
        JDK
    ),
    thresholds: &[LEFT, FITS],
    knobs: &[OPTIONS],
    measure: Some(Measure::more(&keys::GC_HEAP_MAX)),
    doc: Doc {
        looks_for: "A maximum heap above the memory in the log's header, or one that leaves less than a tenth of it once the limits of \
            metaspace or permanent generation, code cache and direct memory are added, if the flags in the log set them.",
        hurts: "A collection touches the whole heap. If part of it is in swap, a pause of milliseconds becomes one of seconds or minutes; \
            without swap the kernel kills the process.",
        todo: "Give the heap three quarters of the memory (-Xmx; from JDK 10 and 8u191 on -XX:MaxRAMPercentage=75.0 without -Xmx), or the \
            machine more memory. A live set above that needs the memory.",
        wrong: "A heap that never fills does no harm. In a container, JDK 8 before 8u191 logs the memory of the machine, so a lower limit is \
            not visible here. Other processes, threads and native libraries are not counted.",
        sources: "HotSpot os::print_memory_info and gcInitLogger.cpp (contents of the header); garbagecat (heap and permanent generation \
            beyond physical memory).",
    },
    judge,
};

/// Flags that limit memory beside the heap.
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
    // JDK 8 logs a limit for metaspace without one that exceeds any machine; it limits nothing.
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
        "{} may take {} of {} of memory",
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
            "{sentence}: little is left for threads, code and the collector"
        ))
        .severity(if all > memory.value {
            Grade::Medium
        } else {
            Grade::Low
        })
        .refuted_by("the resident memory of the process under full load is well below that")
        .consider(OPTIONS);
    Ok(run.cite(finding, &keys))
}

fn beyond(run: &Run<'_>, heap: f64, memory: f64) -> Finding {
    let then = match run.value(&keys::GC_SWAP) {
        Some(swap) if swap > 0.0 => "the rest goes to swap, and each collection reads it back",
        Some(_) => "without swap the kernel kills the process when it fills",
        None => "the kernel swaps it out or kills the process when it fills",
    };
    let sentence = format!(
        "the maximum heap of {} exceeds the {} of memory: {then}",
        say::bytes(heap),
        say::bytes(memory)
    );
    let fits = memory * FITS.value;
    let live = run.value(&keys::GC_LIVE).filter(|live| *live > fits);
    let finding = |sentence: String| {
        run.act(sentence)
            .refuted_by("the machine or the limit has more memory than the JVM logged")
    };
    if let Some(live) = live {
        let live = say::bytes(live);
        return finding(format!(
            "{sentence}; {live} are live, so it needs more memory"
        ));
    }
    let mib = |bytes: f64| (bytes / (1024.0 * 1024.0)).floor().max(1.0) as u64;
    let smaller = finding(sentence).expect("no page of the heap in swap, and no OOM kill");
    // The JVM does not start with a heap that is larger at first than at most, and a unified log names no command line.
    let flags = run.words(&keys::GC_FLAGS);
    let first = match run.size_of("InitialHeapSize=") {
        Some(first) => first > fits,
        None => flags.is_none(),
    };
    let first = first.then(|| mib(fits));
    run.lower(
        smaller,
        Goal::HeapMaxMib {
            most: mib(fits),
            first,
        },
    )
}
