//! Messages that are known and say nothing that is asked for.
//!
//! Where tags are printed they tell so, but `-Xlog:gc*:...:uptime` prints none. Then it is the words by which noise is
//! distinguished from what the application prints, so that the account can call unknown what is unknown.

use memchr::memmem;

/// How they begin.
const STARTS: &[&[u8]] = &[
    b"\"a\" is average time",
    b"\"lvls\" are quantiles",
    b"---",
    b"===",
    b"Activate regions",
    b"Adaptive CSet",
    b"AdaptiveSize",
    b"Added expensive regions",
    b"Address Space",
    b"Alignments:",
    b"All times are wall-clock",
    b"Allocated:",
    b"Allocation Rate:",
    b"Allocation pacing",
    b"At end of Concurrent ",
    b"At start of update refs",
    b"Attempt heap ",
    b"Attempting full compaction",
    b"Available space",
    b"Available: ",
    b"Base_footprint",
    b"Bootstrap cycle for old generation",
    b"CDS archive",
    b"Cancel marking",
    b"Cancelling",
    b"Capacity:",
    b"Card Set container",
    b"CardTable entry size",
    b"Chosen CSet",
    b"Cleaned string",
    b"Clearing All SoftReferences",
    b"Collectable Garbage",
    b"Collector:",
    b"Compressed Oops:",
    b"Compressed class space",
    b"Concurrent Refinement Workers",
    b"Concurrent refinement",
    b"Concurrent uncommit",
    b"Consider -XX",
    b"Contention:",
    b"Critical:",
    b"Discovered  references",
    b"Discovered references",
    b"Encoding Range",
    b"Encountered references",
    b"Enqueued    references",
    b"Enqueued references",
    b"Evacuation Targets",
    b"Expand the heap",
    b"Expanding mark stack",
    b"Failed to allocate",
    b"Final:",
    b"Finish adding old regions",
    b"Finish choosing CSet",
    b"Free Set",
    b"Free headroom",
    b"Free:",
    b"G1 Service Thread",
    b"GC Overhead Limit",
    b"GC STATISTICS",
    b"GC Workers",
    b"Garbage:",
    b"Good progress",
    b"Heap After GC",
    b"Heap Backing",
    b"Heap Before GC",
    b"Heap Initial Capacity",
    b"Heap Min Capacity",
    b"Heap Region Count",
    b"Heap address",
    b"Heap backed",
    b"Heuristics ergonomically",
    b"Heuristics: ",
    b"Higher delay would prevent",
    b"Humongous Object Threshold",
    b"Initial Capacity",
    b"Initial Refinement",
    b"Initialize mark stack",
    b"Klass ",
    b"Large Page",
    b"Live:",
    b"Live_space",
    b"Load:",
    b"MMU",
    b"Major Collection:",
    b"Mark Stack Usage",
    b"Mark:",
    b"MarkStackSize:",
    b"Medium Page",
    b"Memory:",
    b"Metaspace After GC",
    b"Metaspace Before GC",
    b"Metaspace:",
    b"Min Capacity",
    b"Min heap equals",
    b"Minor Collection:",
    b"Minor_pause",
    b"NMethods:",
    b"NUMA Support",
    b"Narrow klass",
    b"OS takes longer to unblock",
    b"Old Generation:",
    b"Old eden_size",
    b"PSAdaptiveSizePolicy",
    b"PSYoungGen::",
    b"Pacer for",
    b"Pacing delays are measured",
    b"Page Size",
    b"Periodic GC",
    b"Phantom:",
    b"Phase:",
    b"Pre-mapping",
    b"Pre-touch",
    b"Preempting old generation",
    b"Protection zone",
    b"Raise max pacing delay",
    b"Rebuilding NMethod",
    b"Reclaimed:",
    b"Regions:",
    b"Register NMethod",
    b"Relocation Stall",
    b"Relocation:",
    b"Request concurrent cycle",
    b"Reserve:",
    b"Reserved Space",
    b"Rule Major",
    b"Rule Minor",
    b"Rule:",
    b"Running G1",
    b"Runtime Workers",
    b"SMC:",
    b"Safepointing mechanism",
    b"Shenandoah GC mode",
    b"Skipped phase",
    b"Soft Max",
    b"Soft:",
    b"Start GC cycle",
    b"Subphase:",
    b"System:",
    b"TLAB",
    b"Target occupancy",
    b"Tenured: promo attempt",
    b"Terminating old gc cycle",
    b"Thread blocked to start GC",
    b"Trigger",
    b"Uncommit",
    b"Under allocation pressure",
    b"Unregister NMethod",
    b"Updated Refinement",
    b"UseCompressedClassPointers",
    b"Using legacy single-generation mode",
    b"Weak:",
    b"Workers:",
    b"Young Generation:",
    b"Young generation size",
    b"active_workers_by_JT",
    b"all workers. Dividing",
    b"and post-safepoint housekeeping",
    b"capacities are the right sizes",
    b"continue mixed",
    b"do not continue mixed",
    b"eden: [",
    b"from the STW pause times",
    b"from: [",
    b"invisible to the usual profiling",
    b"minor pause",
    b"observed pacing delays",
    b"old_gen_capacity",
    b"request mixed gcs",
    b"request young-only gcs",
    b"time in the pacing code",
    b"to avoid Degenerated and Full",
    b"to: [",
    b"tune GC heuristics",
    b"under stop-the-world pause",
];

/// Rows of the heap that is printed before and after collections and at the end of a JVM.
const ROWS: &[&[u8]] = &[
    b"Metaspace  ",
    b"PSOldGen ",
    b"PSYoungGen ",
    b"ParOldGen ",
    b"class space",
    b"concurrent mark-sweep",
    b"def new generation",
    b"eden space",
    b"from space",
    b"garbage-first heap",
    b"object space",
    b"par new generation",
    b"tenured generation",
    b"the space",
    b"to   space",
];

/// A message of this kind.
pub(super) fn is_quiet(text: &[u8]) -> bool {
    let text = text.trim_ascii();
    text == b"Heap"
        || is_workers(text)
        || begins(text, STARTS)
        || is_row(text)
        || is_statistics(text)
}

/// The second line of a message, which has no decorations before JDK 25 (`gc/shared/workerPolicy.cpp`, trace).
pub(super) fn is_second_line(text: &[u8]) -> bool {
    text.starts_with(b" active_workers_by_JT: ")
}

/// A row of a heap; `text` has no indentation.
pub(super) fn is_row(text: &[u8]) -> bool {
    begins(text, ROWS)
}

/// The text begins with one of these. The first byte decides mostly, and many lines of an application come here.
fn begins(text: &[u8], starts: &[&[u8]]) -> bool {
    starts
        .iter()
        .any(|start| start.first() == text.first() && text.starts_with(start))
}

/// `Using 2 workers of 2 for evacuation`, `Using 1 of 1 workers for init marking`.
fn is_workers(text: &[u8]) -> bool {
    text.strip_prefix(b"Using ")
        .and_then(<[u8]>::first)
        .is_some_and(u8::is_ascii_digit)
}

/// Rows of the statistics of Shenandoah and ZGC, such as `Weak References   26451 us` and `Last 10s   Last 10m`.
fn is_statistics(text: &[u8]) -> bool {
    let has = |what: &[u8]| memmem::find(text, what).is_some();
    match text.first() {
        None => true,
        Some(b'L') => text.starts_with(b"Last 10s "),
        Some(b'A') if text.starts_with(b"Avg / Max ") => true,
        Some(b'"') => text.starts_with(b"\"(G)\" (gross)") || text.starts_with(b"\"(N)\" (net)"),
        // `93 successful concurrent GCs`, `1 happened at Outside of Cycle`.
        Some(b'0'..=b'9') if !text.ends_with(b" us") => {
            text.ends_with(b" GCs")
                || has(b" invoked ")
                || has(b" caused by ")
                || has(b" happened at ")
                || has(b" upgraded ")
                || has(b" ms (") && has(b"%): ")
        }
        _ => {
            text.ends_with(b" us")
                || has(b" us, workers (us): ")
                || has(b" us, parallelism: ")
                || has(b" us) (n = ")
                || (has(b" ms (") && has(b"%): "))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_second_line_is_ignored_also_where_lines_have_decorations() {
        let (_, account) = super::super::parsed::read(
            "[0.1s][trace][gc,task] GC(1) GCPolicy calc_default_active_workers() : active_workers(): 2\n \
             active_workers_by_JT: 6  active_workers_by_heap_size: 2\n",
        );
        assert_eq!((account.ignored.lines, account.unknown.lines), (2, 0));
    }

    #[test]
    fn statistics_are_quiet_and_prose_is_not() {
        for text in [
            "  Update Region States                8 us",
            "CMR: CLDG Roots    27 us, workers (us): ---, 27, ---,",
            "Concurrent Reset   =    0.004 s (a =     4879 us) (n = 1)",
            " Last 10s              Last 10m              Last 10h                Total",
            " garbage-first heap   total 204800K, used 68989K [0x00000000f0000000, 0x0000000100000000)",
            "Heap",
        ] {
            assert!(is_quiet(text.as_bytes()), "{text}");
        }
        for text in [
            "Started server in 12 ms",
            "Heap dump file created",
            "Lasting 10s",
        ] {
            assert!(!is_quiet(text.as_bytes()), "{text}");
        }
    }
}
