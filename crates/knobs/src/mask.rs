//! CPU masks and CPU lists, as `/sys` prints and people write them.
//!
//! A mask is hex in groups of 32 bits, the highest first (`lib/bitmap-str.c`, Linux 6.18); its width
//! depends on the machine, so `3`, `03` and `00000000,00000003` are one mask.

use std::collections::BTreeSet;
use std::fmt::Write as _;

/// Highest CPU number that is accepted: a guess above any machine (`CONFIG_NR_CPUS` ends at 8192).
const MOST_CPUS: usize = 8192;

/// A set of CPU numbers.
pub type Cpus = BTreeSet<usize>;

/// Reads a mask; `None` if it is not one.
pub fn parse(text: &str) -> Option<Cpus> {
    let mut cpus = Cpus::new();
    let groups: Vec<&str> = text.trim().split(',').collect();
    for (index, group) in groups.iter().rev().enumerate() {
        let well_formed =
            (1..=8).contains(&group.len()) && group.bytes().all(|b| b.is_ascii_hexdigit());
        if !well_formed || index * 32 >= MOST_CPUS {
            return None;
        }
        let bits = u32::from_str_radix(group, 16).ok()?;
        cpus.extend(
            (0..32)
                .filter(|bit| bits >> bit & 1 == 1)
                .map(|bit| index * 32 + bit),
        );
    }
    Some(cpus)
}

/// Writes a mask as the kernel reads it.
pub fn format(cpus: &Cpus) -> String {
    let mut groups = vec![0_u32; cpus.last().map_or(1, |last| last / 32 + 1)];
    for cpu in cpus {
        groups[cpu / 32] |= 1 << (cpu % 32);
    }
    let mut text = String::new();
    for (index, group) in groups.iter().rev().enumerate() {
        let _ = if index == 0 {
            write!(text, "{group:x}")
        } else {
            write!(text, ",{group:08x}")
        };
    }
    text
}

/// Reads a list such as `0-3,8`; the error says what is wrong.
pub fn parse_list(text: &str) -> Result<Cpus, String> {
    let mut cpus = Cpus::new();
    for part in text.split(',') {
        let number = |text: &str| {
            text.trim()
                .parse::<usize>()
                .ok()
                .filter(|cpu| *cpu < MOST_CPUS)
                .ok_or_else(|| format!("'{part}' is neither a CPU number nor a range such as 0-3"))
        };
        let (first, last) = match part.split_once('-') {
            Some((first, last)) => (number(first)?, number(last)?),
            None => (number(part)?, number(part)?),
        };
        if first > last {
            return Err(format!("the range '{part}' runs backwards"));
        }
        cpus.extend(first..=last);
    }
    Ok(cpus)
}

/// Writes a list as people do: `0-3,8`.
pub fn format_list(cpus: &Cpus) -> String {
    let mut ranges: Vec<(usize, usize)> = Vec::new();
    for &cpu in cpus {
        match ranges.last_mut() {
            Some((_, last)) if *last + 1 == cpu => *last = cpu,
            _ => ranges.push((cpu, cpu)),
        }
    }
    let parts: Vec<String> = ranges
        .iter()
        .map(|&(first, last)| {
            if first == last {
                first.to_string()
            } else {
                format!("{first}-{last}")
            }
        })
        .collect();
    parts.join(",")
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn one_mask_has_many_spellings() {
        let expected = Cpus::from([0, 1]);
        for spelling in ["3", "03", "00000003", "00000000,00000003", "0,3\n"] {
            assert_eq!(parse(spelling).as_ref(), Some(&expected), "{spelling}");
        }
        assert_eq!(parse("0"), Some(Cpus::new()));
        for wrong in ["", "xyz", "3,", "123456789", "-1", "0x3", "+3"] {
            assert_eq!(parse(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn lists_read_like_those_of_taskset() {
        assert_eq!(
            parse_list("0-2,8").map(|cpus| format_list(&cpus)),
            Ok("0-2,8".to_owned())
        );
        assert!(parse_list("3-1").unwrap_err().contains("backwards"));
        assert!(parse_list("a").is_err());
        assert!(parse_list("").is_err());
        assert!(parse_list("0-99999999999").is_err());
    }

    proptest! {
        #[test]
        fn what_is_written_is_read_again(cpus in proptest::collection::btree_set(0..200_usize, 0..20)) {
            prop_assert_eq!(parse(&format(&cpus)), Some(cpus.clone()));
            if !cpus.is_empty() {
                prop_assert_eq!(parse_list(&format_list(&cpus)), Ok(cpus));
            }
        }

        #[test]
        fn no_text_is_a_panic(text in ".*") {
            let _ = parse(&text);
            let _ = parse_list(&text);
        }
    }
}
