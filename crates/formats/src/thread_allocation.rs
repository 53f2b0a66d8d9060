//! What each thread of a `HotSpot` JVM has allocated since it began, as `Thread.print -e` prints it (JDK 11 and later).
//!
//! `"http-1" #23 [8123] daemon prio=5 os_prio=0 cpu=81.39ms elapsed=5.09s allocated=895K defined_classes=2 tid=0x..`. The number is
//! rounded down to a unit (`byte_size_in_proper_unit` in share/utilities/globalDefinitions.hpp), so each has an interval. Threads of
//! the JVM itself (GC, VM thread) allocate no Java objects and have no such number.

use std::collections::BTreeMap;

/// A thread's own numbers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Thread {
    /// The least that it has allocated, bytes.
    pub allocated: u64,
    /// It may have allocated less than this many bytes more: the unit in which the number was printed.
    pub unit: u64,
    /// It compiles Java code: the JVM starts and ends such threads as it needs them, and they allocate nothing for requests.
    pub compiles: bool,
    /// CPU time as printed; a thread with the same text in two prints did not run between them.
    pub cpu: String,
}

/// The threads by their number, which is not used again in the life of a JVM; empty if no line has one.
pub fn parse(text: &str) -> BTreeMap<u64, Thread> {
    text.lines().filter_map(thread).collect()
}

fn thread(line: &str) -> Option<(u64, Thread)> {
    // The name may contain anything, also what follows it; the last end of a name is the true one.
    let rest = line.strip_prefix('"')?;
    let (name, fields) = rest.rsplit_once("\" #")?;
    let mut words = fields.split_whitespace();
    let number = words.next()?.parse().ok()?;
    let value = |key: &str| {
        let mut words = fields.split_whitespace();
        words.find_map(|word| word.strip_prefix(key))
    };
    let (allocated, unit) = size(value("allocated=")?)?;
    let thread = Thread {
        allocated,
        unit,
        compiles: name.contains(" CompilerThread"),
        cpu: value("cpu=").unwrap_or_default().to_owned(),
    };
    Some((number, thread))
}

/// `895K` as 916480 in units of 1024.
pub(crate) fn size(text: &str) -> Option<(u64, u64)> {
    let end = text.find(|c: char| !c.is_ascii_digit())?;
    let (digits, unit) = text.split_at(end);
    let unit = match unit.as_bytes().first()? {
        b'B' => 1,
        b'K' => 1 << 10,
        b'M' => 1 << 20,
        b'G' => 1 << 30,
        _ => return None,
    };
    let number: u64 = digits.parse().ok()?;
    Some((number.checked_mul(unit)?, unit))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_of_all_releases_are_read_and_names_do_not_confuse() {
        let text = r#"
"main" #1 prio=5 os_prio=0 cpu=54.11ms elapsed=0.14s allocated=642K defined_classes=150 tid=0x00007ffb nid=0x455a runnable  [0x00007ffb]
"Reference Handler" #16 [15492] daemon prio=10 os_prio=0 cpu=0.14ms elapsed=0.08s allocated=304B defined_classes=0 tid=0x00007f nid=15492 waiting
"x" #9 allocated=7G" #73 daemon prio=5 os_prio=0 cpu=81.39ms elapsed=5.09s allocated=131M tid=0x00007f nid=0x44 waiting
"VM Thread" os_prio=0 cpu=3.96ms elapsed=0.12s tid=0x00007ffb9c16fd70 nid=0x4561 runnable
"old" #12 prio=5 os_prio=0 tid=0x00007f nid=0x1 runnable
"huge" #13 prio=5 allocated=99999999999999999999G tid=0x0
	at java.io.FileInputStream.readBytes
"#;
        let threads = parse(text);
        let parsed: Vec<_> = threads
            .iter()
            .map(|(number, thread)| (*number, thread.allocated, thread.unit))
            .collect();
        assert_eq!(
            parsed,
            [
                (1, 642 << 10, 1 << 10),
                (16, 304, 1),
                (73, 131 << 20, 1 << 20)
            ]
        );
        assert_eq!(threads[&73].cpu, "81.39ms");
    }
}
