//! Tables with a heading line and a row of numbers per CPU, without saying which: sums by column.
//!
//! `/proc/net/stat/nf_conntrack` is hex (`net/netfilter/nf_conntrack_standalone.c`), and kernels have added,
//! renamed and emptied columns; `/sys/fs/selinux/avc/cache_stats` is decimal (security/selinux/selinuxfs.c).
//! Read on Linux 6.18.

use std::collections::BTreeMap;

/// Sums by column, of numbers to base `radix`. A row of another length than the headings is left out, and
/// without a single row there is no sum.
///
/// # Panics
///
/// If `radix` is above 36.
pub fn sums(text: &str, radix: u32) -> BTreeMap<&str, u64> {
    let mut lines = text.lines();
    let names: Vec<&str> = lines
        .next()
        .unwrap_or_default()
        .split_ascii_whitespace()
        .collect();
    let mut sums = BTreeMap::new();
    for line in lines {
        let numbers: Option<Vec<u64>> = line
            .split_ascii_whitespace()
            .map(|word| u64::from_str_radix(word, radix).ok())
            .collect();
        let Some(numbers) = numbers.filter(|numbers| numbers.len() == names.len()) else {
            continue;
        };
        for (name, number) in names.iter().zip(numbers) {
            let sum: &mut u64 = sums.entry(*name).or_default();
            *sum = sum.wrapping_add(number);
        }
    }
    sums
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn columns_are_summed_over_the_cpus() {
        let text = "\
entries  clashres found new invalid ignore delete chainlength insert insert_failed drop early_drop icmp_error  expect_new expect_create expect_delete search_restart
00040000  00000000 00000000 00000000 0000001f 00000000 00000000 00000000 00000000 0000000a 000000ff 00000000 00000000  00000000 00000000 00000000 00000000
00040000  00000000 00000000 00000000 00000000 00000000 00000000 00000000 00000000 00000001 00000001 00000000 00000000  00000000 00000000 00000000 00000000
";
        let sums = sums(text, 16);
        assert_eq!((sums["drop"], sums["insert_failed"]), (256, 11));
    }

    #[test]
    fn rows_that_do_not_fit_the_headings_are_left_out() {
        let text = "lookups hits misses\n10 9 1\n10 9\n10 9 x\n5 3 2\n";
        assert_eq!(sums(text, 10)["misses"], 3);
        assert!(sums("lookups hits misses\n", 10).is_empty());
        assert!(sums("", 10).is_empty());
    }

    proptest! {
        #[test]
        fn no_text_is_a_panic(text in "(([a-f0-9]{0,17} ){0,5}\\n){0,5}|.*", radix in 2..=36_u32) {
            let _ = sums(&text, radix);
        }
    }
}
