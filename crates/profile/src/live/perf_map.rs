//! Perf maps: `/tmp/perf-PID.map`, in which a run-time compiler writes where its functions are.
//!
//! A line is `BEGIN LENGTH NAME`, both numbers in hexadecimal. `HotSpot` writes the file when asked (`Compiler.perfmap`, JDK 17), Node and
//! Python append to it as they compile. Source: tools/perf/Documentation/jit-interface.txt of Linux.

use std::collections::BTreeMap;

/// Functions kept: ten times the code cache of a large service.
const MOST: usize = 1 << 20;
/// The longest name.
const LONGEST: usize = 4096;

/// Functions by the address of their first byte.
#[derive(Debug, Default)]
pub(super) struct PerfMap {
    functions: BTreeMap<u64, (u64, Box<str>)>,
    /// Lines that are none.
    pub(super) unknown: u64,
}

impl PerfMap {
    /// Of the text of a file. A function takes the place of earlier ones at the same address.
    pub(super) fn parse(bytes: &[u8]) -> Self {
        let mut map = Self::default();
        for line in bytes
            .split(|byte| *byte == b'\n')
            .filter(|line| !line.is_empty())
        {
            match entry(line) {
                Some((begin, end, name)) if map.functions.len() < MOST => {
                    map.functions.insert(begin, (end, name));
                }
                _ => map.unknown += 1,
            }
        }
        map
    }

    /// The function at an address.
    pub(super) fn function(&self, address: u64) -> Option<&str> {
        let (_, (end, name)) = self.functions.range(..=address).next_back()?;
        (address < *end).then_some(name)
    }
}

fn entry(line: &[u8]) -> Option<(u64, u64, Box<str>)> {
    let line = String::from_utf8_lossy(line.get(..LONGEST).unwrap_or(line));
    let (begin, rest) = line.trim().split_once(' ')?;
    let (length, name) = rest.split_once(' ')?;
    let number = |text: &str| u64::from_str_radix(text.trim_start_matches("0x"), 16).ok();
    let begin = number(begin)?;
    let end = begin.checked_add(number(length)?)?;
    (!name.is_empty()).then(|| (begin, end, name.into()))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn an_address_belongs_to_the_last_function_that_contains_it() {
        let map = PerfMap::parse(
            b"7f00 20 old\n0x7f00 10 int shop.Cart.add(int)\n7f40 8 Interpreter\nno line\n",
        );
        assert_eq!(map.function(0x7f0f), Some("int shop.Cart.add(int)"));
        assert_eq!(map.function(0x7f10), None);
        assert_eq!(map.function(0x7f47), Some("Interpreter"));
        assert_eq!((map.functions.len(), map.unknown), (2, 1));
    }

    proptest! {
        #[test]
        fn no_bytes_make_it_panic(bytes: Vec<u8>, text in "([0-9a-f]{0,18} ){0,3}[ -~]{0,9}\n") {
            let _ = PerfMap::parse(&bytes).function(7);
            let _ = PerfMap::parse(text.as_bytes()).function(u64::MAX);
        }
    }
}
