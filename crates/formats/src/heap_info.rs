//! How much of a `HotSpot` heap is in use, as `GC.heap_info` prints it, under any collector of JDK 8 to 25.
//!
//! Each generation has a line (`PSYoungGen total 76288K, used 13107K`), or the whole heap (`ZHeap used 4M, capacity ..`, `376M committed,
//! 3072K used` of Shenandoah). Lines of the spaces within a generation give addresses and shares instead; Metaspace is no heap.
//! Numbers are rounded down to their unit.

use crate::thread_allocation::size;

/// Bytes in use.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Used {
    /// The least.
    pub bytes: u64,
    /// It may be less than this many bytes more: the sum of the units.
    pub unit: u64,
    /// The size of a region, which G1 and Shenandoah print with their heap.
    pub region: Option<u64>,
}

/// The sum over the generations; `None` if no line has such a number.
pub fn parse(text: &str) -> Option<Used> {
    let mut used = Used::default();
    let lines = text
        .lines()
        .take_while(|line| !line.trim_start().starts_with("Metaspace"));
    for line in lines {
        let words: Vec<&str> = line.split_whitespace().collect();
        let found = words.windows(2).find_map(|pair| match pair {
            ["used", number] => size(number.trim_end_matches(',')),
            [number, "used"] if !number.ends_with(',') => size(number),
            _ => None,
        });
        if let Some((bytes, unit)) = found {
            used.bytes = used.bytes.saturating_add(bytes);
            used.unit = used.unit.saturating_add(unit);
        }
        if let [_, "x", .., "regions"] = words[..] {
            // `512K` or `512 K`.
            used.region = size(&words[2..words.len() - 1].concat()).map(|(bytes, _)| bytes);
        }
        if let ["region", "size", number, ..] = words[..] {
            used.region = size(number).map(|(bytes, _)| bytes);
        }
    }
    (used.unit > 0).then_some(used)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_collector_is_read() {
        let k = 1 << 10;
        for (text, bytes, unit) in [
            (
                " def new generation   total 314560K, used 151084K [0x1, 0x2, 0x3)\n  eden space 279616K,  54% used [0x1, 0x2, 0x3)\n  \
                 tenured generation   total 699072K, used 1660K [0x1)\n Metaspace       used 2510K, committed 2752K",
                152_744 * k,
                2 * k,
            ),
            (
                "PSYoungGen      total 113152K, used 11673K [0x1\n eden space 97280K, 12% used [0x1,0x2,0x3)\nParOldGen       total 258048K, \
                 used 1166K [0x1",
                12_839 * k,
                2 * k,
            ),
            (
                "garbage-first heap   total reserved 524288K, committed 389120K, used 3583K [0x1)\n region size 1024K, 3 young (3072K)",
                3583 * k,
                k,
            ),
            (
                " ZHeap           used 4M, capacity 378M, max capacity 512M\n Cache           374M (1)",
                4 << 20,
                1 << 20,
            ),
            (
                "Shenandoah Heap\n 512M max, 512M soft max, 376M committed, 3072K used\n 2048 x 256 K regions\n",
                3072 * k,
                k,
            ),
        ] {
            let used = parse(text).unwrap();
            assert_eq!((used.bytes, used.unit), (bytes, unit), "{text}");
        }
        let shenandoah = "1024M committed, 121M used\n 2048 x 512K regions";
        assert_eq!(parse(shenandoah).unwrap().region, Some(512 * k));
        let g1 =
            "garbage-first heap   total 4096K, used 2032K [0x1)\n  region size 1024K, 0 young (0K)";
        assert_eq!(parse(g1).unwrap().region, Some(1024 * k));
        assert_eq!(parse("Metaspace used 1K"), None);
    }
}
