//! `/proc/softirqs`: soft interrupts by kind and CPU since boot.
//!
//! One count is one call of the handler, not one packet, and loopback, veth and RPS count like hardware.
//! Columns are the *possible* CPUs, so a machine with room for hot-plug shows zeros. Source:
//! fs/proc/softirqs.c, Linux 6.18.

use std::collections::BTreeMap;

use crate::columns;

/// Counts of one kind (`NET_RX`, `TIMER`, ...) by CPU; `None` if the text is no such table or lacks the kind.
pub fn parse(text: &str, kind: &str) -> Option<BTreeMap<usize, u64>> {
    let (cpus, rows) = columns::parse(text)?;
    let row = rows.into_iter().find(|row| row.tag == kind)?;
    Some(cpus.into_iter().zip(row.counts).collect())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const TEXT: &str = "                    CPU0       CPU1       \n          HI:          0          0\n      NET_RX:  636638186  631794674\n         RCU:     913029     950413\n";

    #[test]
    fn a_kind_is_read_by_cpu() {
        let found = parse(TEXT, "NET_RX").unwrap();
        assert_eq!(found, BTreeMap::from([(0, 636_638_186), (1, 631_794_674)]));
        assert_eq!(parse(TEXT, "HRTIMER"), None);
        assert_eq!(parse("", "NET_RX"), None);
    }

    proptest! {
        #[test]
        fn no_text_is_a_panic(text in ".*", cut in 0..200_usize) {
            let _ = parse(&text, "NET_RX");
            let _ = parse(&format!("CPU0 CPU1\n{text}"), "NET_RX");
            let _ = parse(TEXT.get(..cut).unwrap_or(TEXT), "NET_RX");
        }
    }
}
