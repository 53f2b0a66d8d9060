//! Lines of a name and a number: `/proc/vmstat`, and `cpu.stat` and `memory.events` of a control group.
//!
//! The kernel calls the format "flat keyed" (Documentation/admin-guide/cgroup-v2.rst, Linux 6.18; mm/vmstat.c
//! prints the same). Names come and go between versions; a line that is anything else is left out.

use std::collections::BTreeMap;

/// All numbers by name.
pub fn parse(text: &str) -> BTreeMap<&str, u64> {
    text.lines()
        .filter_map(|line| {
            let mut words = line.split_ascii_whitespace();
            let entry = (words.next()?, words.next()?.parse().ok()?);
            words.next().is_none().then_some(entry)
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn names_have_numbers_and_other_lines_are_left_out() {
        let found = parse("nr_periods 12\nnr_throttled 3\n\nNode 0, zone DMA\nx y\nlow -1\n");
        assert_eq!(
            found.into_iter().collect::<Vec<_>>(),
            [("nr_periods", 12), ("nr_throttled", 3)]
        );
    }

    proptest! {
        #[test]
        fn any_text_is_read_without_a_panic(text in any::<String>()) {
            parse(&text);
        }

        #[test]
        fn what_is_written_is_read_again(map in prop::collection::btree_map("[a-z_]{1,12}", any::<u64>(), 0..20)) {
            use std::fmt::Write as _;
            let text = map.iter().fold(String::new(), |mut text, (name, value)| {
                let _ = writeln!(text, "{name} {value}");
                text
            });
            let read: BTreeMap<String, u64> = parse(&text).into_iter().map(|(name, value)| (name.to_owned(), value)).collect();
            prop_assert_eq!(read, map);
        }
    }
}
