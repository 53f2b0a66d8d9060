//! Sets of CPUs as the kernel prints them: lists (`0-3,8`) and masks (`00000000,0000010f`).
//!
//! A mask is hex in groups of 32 bits, the highest first; its width depends on the machine. Source:
//! lib/bitmap-str.c, Linux 6.18.

use std::collections::BTreeSet;
use std::fmt::Write as _;

/// Highest number that is believed (`CONFIG_NR_CPUS` ends at 8192): a wild range must not fill memory.
const MOST: usize = 8192;

/// A set of CPU numbers, or of node numbers.
pub type Cpus = BTreeSet<usize>;

/// Reads a list. An empty text is the empty set; `None` if it is no list.
pub fn parse(text: &str) -> Option<Cpus> {
    let mut cpus = Cpus::new();
    let text = text.trim();
    if text.is_empty() {
        return Some(cpus);
    }
    let mut named = 0;
    for part in text.split(',') {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        let (first, last): (usize, usize) = (first.parse().ok()?, last.parse().ok()?);
        if first > last || last >= MOST {
            return None;
        }
        // A short text that names all of them over and over must not take minutes.
        named += last - first + 1;
        if named > MOST {
            return None;
        }
        cpus.extend(first..=last);
    }
    Some(cpus)
}

/// Reads a mask; `None` if it is none.
pub fn parse_mask(text: &str) -> Option<Cpus> {
    let mut cpus = Cpus::new();
    for (index, group) in text.trim().rsplit(',').enumerate() {
        let hex = group.bytes().all(|byte| byte.is_ascii_hexdigit());
        if !hex || group.len() > 8 || index * 32 >= MOST {
            return None;
        }
        let bits = u32::from_str_radix(group, 16).ok()?;
        let set = (0..32).filter(|bit| bits >> bit & 1 == 1);
        cpus.extend(set.map(|bit| index * 32 + bit));
    }
    Some(cpus)
}

/// Writes a list: `0-3,8`; empty for the empty set.
pub fn format(cpus: &Cpus) -> String {
    let mut text = String::new();
    let mut rest = cpus.iter().copied().peekable();
    while let Some(first) = rest.next() {
        let mut last = first;
        while let Some(next) = rest.next_if_eq(&(last + 1)) {
            last = next;
        }
        let comma = if text.is_empty() { "" } else { "," };
        let _ = if first == last {
            write!(text, "{comma}{first}")
        } else {
            write!(text, "{comma}{first}-{last}")
        };
    }
    text
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn lists_are_read_as_the_kernel_prints_them() {
        let cpus = parse("0-3,8,10-11\n").unwrap();
        assert_eq!(cpus, Cpus::from([0, 1, 2, 3, 8, 10, 11]));
        assert_eq!(format(&cpus), "0-3,8,10-11");
        assert_eq!(parse("\n"), Some(Cpus::new()));
        let endless = "0-8191,".repeat(100_000) + "0";
        for wrong in ["3-1", "x", "1,", "0-4294967295", "-1", "1 2", &endless] {
            assert_eq!(parse(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn masks_have_their_highest_group_first() {
        assert_eq!(parse_mask("00000001,00000003\n"), parse("0-1,32"));
        assert_eq!(parse_mask("0"), Some(Cpus::new()));
        assert_eq!(parse_mask("ff,c0000000"), parse("30-39"));
        for wrong in ["", "g", "1,", "123456789", "+1"] {
            assert_eq!(parse_mask(wrong), None, "{wrong}");
        }
    }

    proptest! {
        #[test]
        fn what_is_written_is_read_again(
            cpus in proptest::collection::btree_set(0..300_usize, 0..40),
        ) {
            prop_assert_eq!(parse(&format(&cpus)), Some(cpus));
        }

        #[test]
        fn no_text_is_a_panic(text in "[0-9a-f,x\\-\n ]{0,60}|.*") {
            let _ = parse(&text);
            let _ = parse_mask(&text);
        }
    }
}
