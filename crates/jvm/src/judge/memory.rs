//! What the options ask of the machine: memory, pointers, threads.

use rungwise_model::check::{Finding, Grade, Line};

use super::{
    Case, Collector, OptionRule, act, add, cite, clear, instead, or_clear, undecided, watch,
    watch_all,
};
use crate::command_line::Given;
use crate::release::Release;
use crate::size::{as_flag, shown};

pub(super) const HEAP_EXCEEDS_MEMORY: OptionRule = OptionRule {
    id: "jvm-heap-exceeds-memory",
    summary: "The JVM may need more memory than is available",
    looks_for: "`-Xmx` above the memory of the machine or the limit of the control group; and `-Xmx` plus the limits of \
        metaspace, code cache and direct memory above it, or within a tenth of it. The JVM starts, since memory is only reserved; \
        the kernel kills it, or swaps it out, when the heap fills.",
    remedy: "Leave room beside the heap: a quarter of the limit is usual. In a container prefer `-XX:MaxRAMPercentage=75.0` to `-Xmx`.",
    wrong: "A heap that never fills does no harm. Threads, native libraries and the page cache need memory too and are not counted.",
    sources: "`memory.max` of the control group, `/proc/meminfo`; HotSpot's native memory categories (`jcmd VM.native_memory`). \
        The tenth is a guess.",
    judge: heap_exceeds_memory,
};

/// Below this share of the room left beside heap and other bounds, it is reported. A guess: stacks of 200 threads are
/// 200 MiB, GC structures of G1 some percent of the heap.
const LEFT: f64 = 0.1;

fn heap_exceeds_memory(case: &Case) -> Vec<Finding> {
    let line = &case.line;
    let (Some(heap), Some(given)) = (line.number("MaxHeapSize"), line.given("MaxHeapSize")) else {
        return clear(
            "no heap size is set in bytes; the JVM takes a share of the available memory",
        );
    };
    let Some((room, what)) = case.machine.room() else {
        return undecided(
            "memory",
            "the memory of the machine is unknown",
            "pass --memory, or check a running process by its PID",
        );
    };
    let seen = Line {
        source: what.to_owned(),
        line: shown(room),
    };
    if heap > room {
        let sentence = format!("{} exceeds the {what}, {}", given.written, shown(room));
        let mut finding = act(given, sentence)
            .severity(Grade::High)
            .confidence(Grade::High);
        finding.evidence.push(seen);
        let fits = as_flag(three_quarters(room));
        return vec![instead(finding, given, format!("-Xmx{fits}"))];
    }
    let bounds = [
        "MaxMetaspaceSize",
        "ReservedCodeCacheSize",
        "MaxDirectMemorySize",
    ];
    let others: Vec<(&Given, u64)> = bounds
        .iter()
        .filter_map(|name| Some((line.given(name)?, line.number(name)?)))
        .collect();
    let beside: u64 = others
        .iter()
        .fold(0, |sum, (_, bytes)| sum.saturating_add(*bytes));
    let all = heap.saturating_add(beside);
    if all as f64 > room as f64 * (1.0 - LEFT) {
        let with = if others.is_empty() {
            ""
        } else {
            " and the limits of other memory"
        };
        let sentence = format!(
            "{}{with} may take {} of {}, the {what}: almost nothing is left for threads, code and the collector",
            given.written,
            shown(all),
            shown(room)
        );
        let severity = if all > room {
            Grade::Medium
        } else {
            Grade::Low
        };
        let mut finding = watch(given, sentence).severity(severity);
        finding.evidence.push(seen);
        for (given, _) in others {
            finding = cite(finding, given);
        }
        return vec![finding.refuted_by("resident memory well below the limit under full load")];
    }
    let mut findings = clear(format!(
        "heap and other limits take {} of {}",
        shown(all),
        shown(room)
    ));
    findings[0].distance = Some(1.0 - all as f64 / (room as f64 * (1.0 - LEFT)));
    findings
}

/// Of a room, in whole MiB.
fn three_quarters(room: u64) -> u64 {
    (room / 4 * 3) >> 20 << 20
}

pub(super) const HEAP_PAST_32G: OptionRule = OptionRule {
    id: "jvm-heap-past-32g-edge",
    summary: "The heap is slightly too large for compressed object pointers",
    looks_for: "`-Xmx` of 32 GiB or more, where object pointers grow from 4 to 8 bytes. That alone takes up to about half as much \
        again, so a heap of 32 to 48 GiB holds no more than one of 31 GiB.",
    remedy: "Stay below 32 GiB (`-Xmx31g`), or go to 48 GiB and more. `-XX:ObjectAlignmentInBytes=16` moves the edge to 64 GiB at \
        the cost of some padding.",
    wrong: "How much larger objects become depends on how many pointers they hold: byte arrays do not grow. ZGC never compresses \
        pointers and is excluded.",
    sources: "HotSpot `OopEncodingHeapMax` = 4 GiB x `ObjectAlignmentInBytes`; the factor of 1.5 is the usual estimate for object \
        graphs and only a guess for yours.",
    judge: heap_past_32g,
};

fn heap_past_32g(case: &Case) -> Vec<Finding> {
    let line = &case.line;
    let (collector, _) = case.collector();
    let (Some(heap), Some(given)) = (line.number("MaxHeapSize"), line.given("MaxHeapSize")) else {
        return clear("no heap size is set in bytes");
    };
    if collector == Collector::Z || line.switch("UseCompressedOops") == Some(false) {
        return clear("object pointers are not compressed at any heap size");
    }
    let alignment = line
        .number("ObjectAlignmentInBytes")
        .unwrap_or(8)
        .clamp(8, 256);
    let edge = (4u64 << 30) * alignment;
    let worth = edge / 2 * 3;
    if heap < edge || heap >= worth {
        return clear(format!(
            "{} is not between {} and {}",
            shown(heap),
            shown(edge),
            shown(worth)
        ));
    }
    let sentence = format!(
        "{} is just past {}, where object pointers grow to 8 bytes: it may hold less than {}",
        given.written,
        shown(edge),
        shown(edge - (1 << 30))
    );
    let finding = act(given, sentence);
    let finding = instead(finding, given, format!("-Xmx{}", as_flag(edge - (1 << 30))));
    vec![finding.refuted_by(
        "a live set after a full collection that is smaller with -Xmx32g or more than with -Xmx31g",
    )]
}

pub(super) const HEAP_NOT_SET: OptionRule = OptionRule {
    id: "jvm-heap-not-set",
    summary: "No heap size: the JVM takes a quarter of the memory",
    looks_for: "Neither `-Xmx` nor `MaxRAMPercentage` nor `MaxRAMFraction`. The maximum heap is then a quarter of the memory, or \
        of the limit of the control group; JDK 8 before 8u191 ignores the control group.",
    remedy: "Set `-Xmx`, or `-XX:MaxRAMPercentage=75.0` in a container that runs only the JVM (8u191 and later; older JVMs refuse \
        to start with it).",
    wrong: "A quarter is enough for many services.",
    sources: "HotSpot `MaxRAMPercentage` = 25; JDK-8146115 (container support, JDK 10 and 8u191).",
    judge: heap_not_set,
};

/// The update of JDK 8 that brought `MaxRAMPercentage` (JDK-8186248), as JDK 10 did.
const PERCENTAGE: u32 = 191;

fn heap_not_set(case: &Case) -> Vec<Finding> {
    let line = &case.line;
    let sized = [
        "MaxHeapSize",
        "MaxRAMPercentage",
        "MaxRAMFraction",
        "AggressiveHeap",
    ];
    if sized.iter().any(|name| line.given(name).is_some()) {
        return clear("the maximum heap is set");
    }
    let quarter = case
        .machine
        .room()
        .map_or_else(String::new, |(room, what)| {
            format!(": {} of the {what}, {}", shown(room / 4), shown(room))
        });
    let finding = watch_all(format!(
        "no heap size is set, so the JVM takes a quarter of the memory{quarter}"
    ));
    let finding = finding
        .severity(Grade::Low)
        .refuted_by("a heap that is never full (GC log)");
    let share = case.release >= Release(10)
        || case.release == Release(8) && case.update.is_some_and(|update| update >= PERCENTAGE);
    vec![match case.machine.room() {
        _ if share => add(finding, "-XX:MaxRAMPercentage=75.0"),
        Some((room, _)) => add(finding, &format!("-Xmx{}", as_flag(three_quarters(room)))),
        None => finding,
    }]
}

pub(super) const TOO_MANY_GC_THREADS: OptionRule = OptionRule {
    id: "jvm-gc-threads-exceed-cpus",
    summary: "More GC threads than CPUs",
    looks_for: "`ParallelGCThreads` or `ConcGCThreads` above the CPUs that the JVM may use. GC threads wait for each other during \
        a pause; one without a CPU makes the pause longer by a time slice.",
    remedy: "Remove the flags: the JVM counts the CPUs itself, in control groups too.",
    wrong: "A CPU quota limits CPU time over 100 ms, not the number of CPUs at one instant.",
    sources: "HotSpot `WorkerPolicy`: one per CPU up to 8, then five for every eight.",
    judge: too_many_threads,
};

fn too_many_threads(case: &Case) -> Vec<Finding> {
    let line = &case.line;
    let flags = ["ParallelGCThreads", "ConcGCThreads", "ParallelCMSThreads"];
    let given: Vec<(&Given, u64)> = flags
        .iter()
        .filter_map(|name| Some((line.given(name)?, line.number(name)?)))
        .collect();
    if given.is_empty() {
        return clear("the JVM chooses the number of its GC threads");
    }
    let asked = line.number("ActiveProcessorCount").map(|cpus| cpus as f64);
    let Some(cpus) = case.machine.cpus.or(asked) else {
        return undecided(
            "cpus",
            "the CPUs of the machine are unknown",
            "pass --cpus, or check a running process by its PID",
        );
    };
    let mut findings = Vec::new();
    for (given, threads) in given {
        if threads as f64 > cpus.ceil() {
            let sentence = format!(
                "{}: more threads than the {cpus} CPUs available to the JVM",
                given.written
            );
            let mut finding = act(given, sentence);
            finding.evidence.push(Line {
                source: "CPUs".to_owned(),
                line: cpus.to_string(),
            });
            let finding = instead(finding, given, super::TAKE_OUT);
            findings.push(
                finding.refuted_by("user time close to threads x real time in pauses (GC log)"),
            );
        }
    }
    or_clear(findings, "no more GC threads than CPUs")
}

#[cfg(test)]
mod tests {
    use rungwise_model::check::Outcome::{self, Act, Clear, Undecided, Watch};

    use super::super::outcome_of;
    use crate::machine::Machine;

    fn on(memory_gib: u64, limit_gib: u64, cpus: f64) -> Machine {
        Machine {
            memory: Some(memory_gib << 30),
            limit: (limit_gib > 0).then_some(limit_gib << 30),
            cpus: Some(cpus),
        }
    }

    fn outcome(line: &str, machine: Machine, rule: &str) -> Outcome {
        outcome_of(17, line, machine, rule).0
    }

    #[test]
    fn a_heap_is_held_against_machine_and_control_group() {
        let rule = "jvm-heap-exceeds-memory";
        assert_eq!(outcome("-Xmx9g", on(8, 0, 4.0), rule), Act);
        assert_eq!(outcome("-Xmx5g", on(8, 4, 4.0), rule), Act);
        assert_eq!(outcome("-Xmx4g", on(8, 4, 4.0), rule), Watch);
        assert_eq!(
            outcome("-Xmx3g -XX:MaxDirectMemorySize=1g", on(8, 4, 4.0), rule),
            Watch
        );
        assert_eq!(outcome("-Xmx3g", on(8, 4, 4.0), rule), Clear);
        assert_eq!(outcome("-Xmx3g", Machine::default(), rule), Undecided);
        assert_eq!(
            outcome("-XX:MaxRAMPercentage=90", on(8, 4, 4.0), rule),
            Clear
        );
    }

    #[test]
    fn the_edge_is_at_32_gib_and_moves_with_the_alignment() {
        let rule = "jvm-heap-past-32g-edge";
        let any = Machine::default();
        assert_eq!(outcome("-Xmx32g", any, rule), Act);
        assert_eq!(outcome("-Xmx47g", any, rule), Act);
        for line in [
            "-Xmx32767m",
            "-Xmx48g",
            "-Xmx32g -XX:+UseZGC",
            "-Xmx32g -XX:-UseCompressedOops",
            "-Xmx40g -XX:ObjectAlignmentInBytes=16",
        ] {
            assert_eq!(outcome(line, any, rule), Clear, "{line}");
        }
    }

    #[test]
    fn a_heap_without_size_is_reported() {
        let rule = "jvm-heap-not-set";
        let (found, sentences) = outcome_of(17, "", on(8, 4, 4.0), rule);
        assert_eq!(found, Watch);
        assert!(sentences[0].contains("1 GiB"), "{}", sentences[0]);
        assert_eq!(
            outcome("-XX:MaxRAMPercentage=50", on(8, 0, 4.0), rule),
            Clear
        );
    }

    #[test]
    fn gc_threads_are_held_against_cpus() {
        let rule = "jvm-gc-threads-exceed-cpus";
        assert_eq!(outcome("-XX:ParallelGCThreads=8", on(8, 0, 4.0), rule), Act);
        assert_eq!(
            outcome("-XX:ParallelGCThreads=4", on(8, 0, 4.0), rule),
            Clear
        );
        assert_eq!(
            outcome("-XX:ParallelGCThreads=4", on(8, 0, 3.5), rule),
            Clear
        );
        assert_eq!(
            outcome("-XX:ParallelGCThreads=4", Machine::default(), rule),
            Undecided
        );
        assert_eq!(outcome("-Xmx1g", Machine::default(), rule), Clear);
    }
}
