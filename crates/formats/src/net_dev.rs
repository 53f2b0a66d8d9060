//! `/proc/net/dev`: what each network device counted.
//!
//! Two lines of headings, then a line per device. Its column `drop` is `rx_dropped` *and* `rx_missed_errors`
//! together, `frame` is four kinds of errors: `/sys/class/net/DEV/statistics` has them separately.
//! Source: `dev_seq_printf_stats` in net/core/net-procfs.c (Linux 6.18).

use std::collections::BTreeMap;

/// Counters of a device since it was made.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Device {
    /// Bytes received.
    pub rx_bytes: u64,
    /// Packets received.
    pub rx_packets: u64,
    /// Received packets with errors.
    pub rx_errors: u64,
    /// Received packets dropped, those that the device had no buffer for included.
    pub rx_dropped: u64,
    /// Bytes sent.
    pub tx_bytes: u64,
    /// Packets sent.
    pub tx_packets: u64,
    /// Packets that could not be sent.
    pub tx_errors: u64,
    /// Packets dropped on the way out.
    pub tx_dropped: u64,
}

/// All devices by name; lines that are not devices, such as the headings, are skipped.
pub fn parse(text: &str) -> BTreeMap<&str, Device> {
    text.lines().filter_map(device).collect()
}

fn device(line: &str) -> Option<(&str, Device)> {
    // The last colon: the name of an alias has one of its own.
    let (name, numbers) = line.rsplit_once(':')?;
    let numbers: Vec<u64> = numbers
        .split_ascii_whitespace()
        .map(|word| word.parse().ok())
        .collect::<Option<_>>()?;
    let [rx_bytes, rx_packets, rx_errors, rx_dropped, ..] = *numbers.get(..8)? else {
        return None;
    };
    let [tx_bytes, tx_packets, tx_errors, tx_dropped, ..] = *numbers.get(8..12)? else {
        return None;
    };
    let device = Device {
        rx_bytes,
        rx_packets,
        rx_errors,
        rx_dropped,
        tx_bytes,
        tx_packets,
        tx_errors,
        tx_dropped,
    };
    Some((name.trim_start(), device))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn devices_are_found_below_the_headings() {
        let text = "\
Inter-|   Receive                                                |  Transmit
 face |bytes    packets errs drop fifo frame compressed multicast|bytes    packets errs drop fifo colls carrier compressed
    lo: 5448105499 27643134    0    0    0     0          0         0 5448105499 27643134    0    0    0     0       0          0
eth0:1:315398199   12767    1    2    0     0          0         0   935035    9146    3    4    0     0       0          0
";
        let devices = parse(text);
        let eth0 = Device {
            rx_bytes: 315_398_199,
            rx_packets: 12_767,
            rx_errors: 1,
            rx_dropped: 2,
            tx_bytes: 935_035,
            tx_packets: 9_146,
            tx_errors: 3,
            tx_dropped: 4,
        };
        assert_eq!(
            devices.keys().copied().collect::<Vec<_>>(),
            ["eth0:1", "lo"]
        );
        assert_eq!(devices["eth0:1"], eth0);
    }

    #[test]
    fn a_short_line_is_no_device() {
        assert!(parse("lo: 1 2 3\neth0: 1 2 3 4 5 6 7 8 9 10 11 x\n").is_empty());
    }

    proptest! {
        #[test]
        fn no_text_is_a_panic(text in "([a-z0-9:]{0,6}: ?([0-9]{0,21} ){0,18}\\n){0,4}|.*") {
            let _ = parse(&text);
        }
    }
}
