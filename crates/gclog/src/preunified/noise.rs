//! Lines that HotSpot prints and that say nothing asked for.
//!
//! They are distinguished from those of the application by their words, so that the account of a log can call unknown what
//! is unknown. Only lines that nothing else understood come here.

/// How they begin, without indentation.
const STARTS: &[&str] = &[
    // PrintAdaptiveSizePolicy
    "avg_survived_padded_avg:",
    "AdaptiveSize",
    "PSAdaptiveSizePolicy",
    // Memory of macOS, below the header
    "/proc/meminfo:",
    // PrintFLSStatistics=2
    "size[",
    // PrintSafepointStatistics, at the end of the JVM
    "vmop  ",
    "Polling page always armed",
    "Maximum sync time ",
    "Maximum vm operation time ",
    // CMS
    "CMS: Large ",
    "GC locker: Trying a full collection because scavenge failed",
    // PrintStringDeduplicationStatistics
    "[Last Exec: ",
    "[Total Exec: ",
    "[Inspected: ",
    "[Skipped: ",
    "[Hashed: ",
    "[Known: ",
    "[New: ",
    "[Deduplicated: ",
    "[Young: ",
    "[Old: ",
    "[Table]",
    "[Memory Usage: ",
    "[Size: ",
    "[Entries: ",
    "[Resize Count: ",
    "[Rehash Count: ",
    "[Age Threshold: ",
    "[Queue]",
    "[Dropped: ",
    // Shenandoah, also before anything tells that it is it
    "Cancelling GC: ",
    "Cancelling concurrent GC: ",
];

/// The same of Shenandoah. Some are so common that they count only where Shenandoah is known to write.
const STARTS_OF_SHENANDOAH: &[&str] = &[
    "Trigger: ",
    "Free: ",
    "Failed to allocate ",
    "Collectable Garbage: ",
    "Adaptive CSet Selection",
    "Using ",
    "Pacer for ",
    "Humongous object threshold: ",
    "Max TLAB size: ",
    "Heuristics ergonomically sets ",
    "Shenandoah GC mode: ",
    "Shenandoah heuristics: ",
    "Initialize Shenandoah heap: ",
    "Reference processing: ",
    "Soft Max Heap Size: ",
    "Good progress for ",
    "All times are wall-clock times",
    "all workers. Dividing the <total>",
    "Allocation pacing accrued:",
    "Status: ",
    "Reserved region:",
    "Collection set:",
    "- [0x",
    "- map (",
    "Under allocation pressure, concurrent cycles may cancel",
    "under stop-the-world pause or result in",
    "tune GC heuristics, set more aggressive pacing delay",
    "to avoid Degenerated and Full GC cycles.",
    "ALLOCATION TRACING",
];

/// A line of this kind; `text` has no indentation.
pub(super) fn is_known(text: &[u8], shenandoah: bool) -> bool {
    let starts = |all: &[&str]| all.iter().any(|start| text.starts_with(start.as_bytes()));
    // The heap at the end of a JVM.
    text == b"Heap"
        || starts(STARTS)
        || is_work_of_cms(text)
        || text.ends_with(b" VM operations coalesced during safepoint")
        || shenandoah
            && (starts(STARTS_OF_SHENANDOAH)
                || is_of_shenandoahs_heap(text)
                || is_of_its_statistics(text))
}

/// `Finished young gen rescan work in 1th thread: 0.000 sec`.
fn is_work_of_cms(text: &[u8]) -> bool {
    text.starts_with(b"Finished ")
        && text.ends_with(b" sec")
        && memchr::memmem::find(text, b"th thread: ").is_some()
}

/// `268435456K total, 261685248K committed, 226747245K used`, `8192 x 32768K regions`.
fn is_of_shenandoahs_heap(text: &[u8]) -> bool {
    text.first().is_some_and(u8::is_ascii_digit)
        && (text.ends_with(b" used") || text.ends_with(b" regions"))
        || text
            .iter()
            .all(|byte| matches!(byte, b',' | b' ' | b'-' | b'='))
}

/// `Weak References   26451 us`, `Concurrent Reset = 4.337 s (a = 4879 us) ...`, `12 of 4087 ms ( 0.3%): thread`.
fn is_of_its_statistics(text: &[u8]) -> bool {
    let has = |what: &[u8]| memchr::memmem::find(text, what).is_some();
    text.ends_with(b" us")
        || has(b" us, parallelism: ")
        || has(b" us, workers (us): ")
        || has(b" us) (n = ")
        || text.ends_with(b" user requested GCs")
        || text.ends_with(b" degenerated concurrent markings")
        || text.ends_with(b" degenerated update references")
        || (has(b" ms (") && has(b"%): "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn statistics_of_shenandoah_are_known_and_prose_is_not() {
        assert!(is_known(b"Weak References               26451 us", true));
        assert!(is_known(b"12 of  4087 ms (  0.3%): thread-7227", true));
        assert!(is_known(b"8192 x 32768K regions", true));
        assert!(!is_known(b"Started server in 12 ms", true));
        assert!(!is_known(b"The heap is full of us, he said", true));
    }

    #[test]
    fn common_words_are_not_shenandoahs_where_it_does_not_write() {
        assert!(is_known(b"Using 2 of 2 workers for init marking", true));
        assert!(!is_known(b"Using 2 of 2 connections", false));
        assert!(!is_known(b"Heap dump file created", false));
    }
}
