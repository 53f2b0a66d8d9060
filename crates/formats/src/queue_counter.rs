//! Names of packet counters of single queues among a driver's statistics (`ethtool -S`).
//!
//! No two drivers agree, and there is no other source before `netdev` netlink (Linux 6.9). A name is split into
//! words, its numbers are removed, and the rest is looked up in a short list of forms, each with the drivers that
//! use it; a name of an unknown form is not a queue counter. Sources: the drivers of Linux 6.18 and outputs
//! collected by `isc-projects/ethq tests`.

/// Which way packets go.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Direction {
    /// Received.
    Rx,
    /// Sent.
    Tx,
}

/// A packet counter of a queue; a queue may have several, to be added up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct QueueCounter {
    /// Direction of the queue.
    pub direction: Direction,
    /// Number of the queue.
    pub queue: u32,
}

/// Forms with `rx` written for either direction and `#` for the number of the queue.
const FORMS: &[&str] = &[
    "rx queue # packets", // ixgbe, igb, igc, ice, fm10k, hv_netvsc; virtio_net before Linux 6.10
    "rx queue # rx packets", // drivers out of tree
    "rx # packets",       // mlx4, mlx5 (rx3_packets); i40e, iavf (rx-3.packets)
    "rx # rx packets",    // i40e before Linux 4.18, sfc (rx-3.rx_packets)
    "rx # pkts",          // ionic
    "rxq # packets",      // hns3, hinic
    "rxq # rx pkts",      // be2net (rxq3: rx_pkts)
    "rx q # pkts",        // idpf (rx_q-3_pkts)
    "rx packets #",       // gve (rx_packets[3])
    "queue # rx cnt",     // ena
    "rvec # rx pkts",     // nfp
    "# rx ucast packets", // bnxt_en, bnx2x ([3]: rx_ucast_packets), with the next two
    "# rx mcast packets",
    "# rx bcast packets",
];

/// The queue whose packets the statistic `name` counts; `None` for every other statistic.
pub fn parse(name: &str) -> Option<QueueCounter> {
    let mut form = String::with_capacity(name.len() + 4);
    let mut queue = None;
    let mut direction = None;
    for word in words(name) {
        let word = if word.as_bytes()[0].is_ascii_digit() {
            // A second number makes it something else: rx_65_to_127_byte_packets.
            if queue.replace(word.parse().ok()?).is_some() {
                return None;
            }
            "#"
        } else {
            let (found, neutral) = match word {
                "rx" => (Direction::Rx, "rx"),
                "tx" => (Direction::Tx, "rx"),
                "rxq" => (Direction::Rx, "rxq"),
                "txq" => (Direction::Tx, "rxq"),
                word => {
                    push(&mut form, word);
                    continue;
                }
            };
            if direction.replace(found).is_some_and(|known| known != found) {
                return None;
            }
            neutral
        };
        push(&mut form, word);
    }
    FORMS.contains(&form.as_str()).then_some(QueueCounter {
        direction: direction?,
        queue: queue?,
    })
}

fn push(form: &mut String, word: &str) {
    if !form.is_empty() {
        form.push(' ');
    }
    form.push_str(word);
}

/// Runs of letters and runs of digits; everything else separates.
fn words(name: &str) -> impl Iterator<Item = &str> {
    let mut rest = name;
    std::iter::from_fn(move || {
        rest = rest.trim_start_matches(|c: char| !c.is_ascii_alphanumeric());
        let digits = rest.as_bytes().first()?.is_ascii_digit();
        let end = rest
            .find(|c: char| !c.is_ascii_alphanumeric() || c.is_ascii_digit() != digits)
            .unwrap_or(rest.len());
        let (word, after) = rest.split_at(end);
        rest = after;
        Some(word)
    })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn every_driver_has_its_own_name_for_the_packets_of_a_queue() {
        for name in [
            "rx_queue_17_packets",
            "rx_queue_17_rx_packets",
            "rx17_packets",
            "rx-17.packets",
            "rx-17.rx_packets",
            "rx_17_pkts",
            "rxq17_packets",
            "rxq#17_packets",
            "rxq17: rx_pkts",
            "rx_q-17_pkts",
            "rx_packets[17]",
            "queue_17_rx_cnt",
            "rvec_17_rx_pkts",
            "[17]: rx_ucast_packets",
            "[17]: rx_mcast_packets",
            "[17]: rx_bcast_packets",
        ] {
            for (name, direction) in [
                (name.to_owned(), Direction::Rx),
                (name.replace("rx", "tx"), Direction::Tx),
            ] {
                let expected = QueueCounter {
                    direction,
                    queue: 17,
                };
                assert_eq!(parse(&name), Some(expected), "{name}");
            }
        }
    }

    #[test]
    fn what_looks_like_it_and_counts_something_else_is_left_out() {
        for name in [
            "rx_packets",
            "rx_queue_3_bytes",
            "rx_queue_3_drops",
            "rx_queue_0_xdp_packets",
            "rx0_xdp_packets",
            "rx0_lro_packets",
            "rx_prio3_packets",
            "rx_65_to_127_byte_packets",
            "tx-xdp-cpu-3.tx_packets",
            "veb.tc_3_rx_packets",
            "queue_3_rx_rx_copybreak_pkt",
            "[3]: tpa_packets",
            "[3]: driver_filtered_tx_pkt",
            "rxq3: rx_mcast_pkts",
            "rxq3_pktnum_rcd",
            "ucast pkts rx",
            "rx-3.tx_packets",
            "rx99999999999_packets",
            "",
        ] {
            assert_eq!(parse(name), None, "{name}");
        }
    }

    proptest! {
        #[test]
        fn no_name_is_a_panic(name in "[rtx]{2}[_-]?(queue)?[_-]?[0-9]{0,12}[_.]packets|.*") {
            let _ = parse(&name);
        }
    }
}
