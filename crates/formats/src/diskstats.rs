//! `/proc/diskstats`: what each block device did since boot.
//!
//! Documentation/admin-guide/iostats.rst; block/genhd.c, Linux 6.18. Eleven numbers always, four more for
//! discards since 4.18, two for flushes since 5.5. Sectors are 512 bytes whatever the disk says. The times are
//! milliseconds in 32 bits: they turn over after 49.7 days of busy time.

use std::collections::BTreeMap;

/// Counters of one device.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Disk {
    /// Reads completed.
    pub reads: u64,
    /// Reads that were merged with a neighbour before they were queued.
    pub reads_merged: u64,
    /// Sectors read, of 512 bytes.
    pub sectors_read: u64,
    /// Milliseconds that all reads took, from submission to completion.
    pub read_ms: u64,
    /// Writes completed.
    pub writes: u64,
    /// Milliseconds that all writes took.
    pub write_ms: u64,
    /// Milliseconds with at least one request under way.
    pub busy_ms: u64,
    /// Milliseconds times requests under way.
    pub queued_ms: u64,
    /// Flushes of the disk's cache completed; nothing before Linux 5.5.
    pub flushes: Option<u64>,
    /// Milliseconds that all flushes took.
    pub flush_ms: Option<u64>,
}

/// All devices by name, partitions included.
pub fn parse(text: &str) -> BTreeMap<&str, Disk> {
    text.lines()
        .filter_map(|line| {
            let mut words = line.split_ascii_whitespace().skip(2);
            let name = words.next()?;
            let mut numbers = [0; 11];
            for number in &mut numbers {
                *number = words.next()?.parse().ok()?;
            }
            let [
                reads,
                reads_merged,
                sectors_read,
                read_ms,
                writes,
                _,
                _,
                write_ms,
                _,
                busy_ms,
                queued_ms,
            ] = numbers;
            // Four numbers of discards stand between.
            let mut more = words.skip(4).map_while(|word| word.parse().ok());
            let (flushes, flush_ms) = (more.next(), more.next());
            let disk = Disk {
                reads,
                reads_merged,
                sectors_read,
                read_ms,
                writes,
                write_ms,
                busy_ms,
                queued_ms,
                flushes,
                flush_ms,
            };
            Some((name, disk))
        })
        .collect()
}

/// The line of one device, to be cited.
pub fn line<'a>(text: &'a str, name: &str) -> Option<&'a str> {
    text.lines()
        .find(|line| line.split_ascii_whitespace().nth(2) == Some(name))
        .map(str::trim)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const LINE: &str = " 254       0 vda 1556224 99561 110142666 2455198 224827 217416 91361888 528601 0 161928 3010447 125190 101 49963192 21854 36548 4793\n";

    #[test]
    fn columns_have_names_and_old_and_new_kernels_are_read_alike() {
        let disk = Disk {
            reads: 1_556_224,
            reads_merged: 99_561,
            sectors_read: 110_142_666,
            read_ms: 2_455_198,
            writes: 224_827,
            write_ms: 528_601,
            busy_ms: 161_928,
            queued_ms: 3_010_447,
            flushes: Some(36_548),
            flush_ms: Some(4_793),
        };
        assert_eq!(parse(LINE)["vda"], disk);
        let old = LINE.split(" 125190").next().unwrap();
        let before = Disk {
            flushes: None,
            flush_ms: None,
            ..disk
        };
        assert_eq!(parse(old)["vda"], before);
        assert!(line(LINE, "vda").unwrap().starts_with("254"));
        assert!(parse("   8       1 sda1 35486 38030 38030\n").is_empty());
    }

    proptest! {
        #[test]
        fn any_text_is_read_without_a_panic(text in "([0-9]{1,21} |sda |\n|.){0,40}") {
            parse(&text);
            line(&text, "sda");
        }
    }
}
