//! What the threads of a `HotSpot` JVM had not used of their allocation buffers (TLABs) at a collection, as `-Xlog:gc+tlab=debug` prints it.
//!
//! `GC(5) TLAB totals: thrds: 18  refills: 43 max: 10 slow allocs: 3 max 1 waste: 25.7% gc: 189901512B max: 12B slow: 34856B max: 12B`, up to JDK
//! 13 with ` fast: 0B max: 0B` behind. A collection without a buffer since the last one prints none. Source: `ThreadLocalAllocStats::publish` in
//! share/gc/shared/threadLocalAllocBuffer.cpp.

/// The totals of a collection.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Totals {
    /// Bytes that were handed out and not used: at the collection, and when a buffer was exchanged for a new one.
    pub unused: u64,
    /// Objects allocated beside the buffers, because they did not fit.
    pub beside: u64,
}

/// The number of the collection and its totals, where `line` is of a log and contains them.
pub fn parse(line: &str) -> Option<(u64, Totals)> {
    let (before, totals) = line.split_once("TLAB totals: ")?;
    let (_, number) = before.rsplit_once("GC(")?;
    let number = number.trim_end().strip_suffix(')')?.parse().ok()?;
    let words: Vec<&str> = totals.split_whitespace().collect();
    let value = |key: &str| {
        let mut pairs = words.windows(2);
        pairs.find_map(|pair| (pair[0] == key).then(|| pair[1].strip_suffix('B')?.parse().ok())?)
    };
    let unused = ["slow:", "fast:"].iter().filter_map(|key| value(key));
    let unused = unused.fold(value("gc:")?, u64::saturating_add);
    let mut triples = words.windows(3);
    let beside = triples.find_map(|words| match words {
        ["slow", "allocs:", number] => number.parse().ok(),
        _ => None,
    })?;
    Some((number, Totals { unused, beside }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn totals_of_each_jdk_are_read() {
        for (line, expected) in [
            (
                "[1.223s][debug][gc,tlab      ] GC(0) TLAB totals: thrds: 5  refills: 50 max: 23 slow allocs: 7 max 0 waste:  5.6% gc: 1977464B max: \
                 715568B slow: 35344B max: 17608B",
                Some((0, 2_012_808, 7)),
            ),
            (
                "[0.5s][debug][gc,tlab] GC(12) TLAB totals: thrds: 2  refills: 69 max: 35 slow allocs: 0 max 0 waste:  0.7% gc: 8B max: 8B slow: 4B max: 4B \
                 fast: 2B max: 2B",
                Some((12, 14, 0)),
            ),
            ("GC(1) TLAB totals: gc: 8B slow: 4B", None),
            ("GC(x) TLAB totals: slow allocs: 0 gc: 8B", None),
            ("GC(1) TLAB: gc thread: 0x1 slow allocs: 0 gc: 8B", None),
        ] {
            let found = parse(line).map(|(number, it)| (number, it.unused, it.beside));
            assert_eq!(found, expected, "{line}");
        }
    }
}
