//! Counters of losses that only drivers keep (`ethtool -S`): what the wire, the hypervisor or the cloud discards.
//!
//! Each driver has names of its own, so counters are recognised by words in their names. What counts bytes, what an XDP program rejects on
//! purpose and what the rule `nic-ring-drop` reads is left out. Drivers count many losses again, per queue and in total, so only the largest
//! of a device and direction is reported, and each limit of the cloud. Sources: the drivers of Linux 6.18 (ena, gve, `virtio_net`,
//! `hv_netvsc`, vmxnet3, mlx5, bnxt, i40e, ice, ixgbe, veth).

use std::collections::BTreeMap;

use rungwise_model::evidence::Evidence;
use rungwise_model::kernel::{Answer, NetDevice};

use super::tell;
use crate::device::missed;
use crate::{Rate, Window};

/// Limits of the cloud and of the hypervisor, by a word in the name of their counter; the first that fits decides.
const LIMITS: [(&str, &str); 6] = [
    (
        "bw_in_allowance_exceeded",
        "packets delayed or dropped by the cloud because the instance exceeds its inbound bandwidth",
    ),
    (
        "bw_out_allowance_exceeded",
        "packets delayed or dropped by the cloud because the instance exceeds its outbound bandwidth",
    ),
    (
        "pps_allowance_exceeded",
        "packets delayed or dropped by the cloud because the instance exceeds its packets per second",
    ),
    (
        "conntrack_allowance_exceeded",
        "packets dropped by the cloud because the instance exceeds its tracked connections",
    ),
    (
        "allowance_exceeded",
        "packets dropped by the cloud because the instance exceeds a limit",
    ),
    (
        "ratelimit",
        "packets dropped by the hypervisor because the device exceeds its rate",
    ),
];

/// Words in the names of other counters of losses.
const MEANINGS: [(&str, &str); 5] = [
    ("crc_err", "packets damaged on the wire"),
    ("symbol_err", "errors on the wire"),
    (
        "no_space",
        "packets for which the transmit queue had no room",
    ),
    ("no_mem", "packets for which there was no memory"),
    ("alloc", "receive buffers that could not be allocated"),
];

/// Words in the name of any other counter of lost packets.
const LOST: [&str; 3] = ["drop", "discard", "overrun"];

/// What is no loss, or is judged elsewhere.
const EXCLUDED: [&str; 6] = ["byte", "octet", "xdp", "pause", "prio", "veb."];

/// What a limit's counter counts.
fn limit(name: &str) -> Option<&'static str> {
    let limit = LIMITS.iter().find(|(word, _)| name.contains(word));
    limit.map(|(_, meaning)| *meaning)
}

/// What a statistic of a driver counts, if it is a loss that nothing else reads.
fn meaning(name: &str) -> Option<&'static str> {
    let name = name.to_ascii_lowercase();
    let has = |word: &&str| name.contains(*word);
    if EXCLUDED.iter().any(has) || missed::counts_missed(&name) {
        return None;
    }
    let fails = name.contains("fail") || name.contains("err");
    let known = MEANINGS.iter().find(|(word, _)| has(word));
    let known = known.filter(|(word, _)| *word != "alloc" || fails);
    limit(&name)
        .or(known.map(|(_, meaning)| *meaning))
        .or_else(|| {
            LOST.iter()
                .any(has)
                .then_some("packets that the device or its driver dropped")
        })
}

/// Direction in the name of a counter: `tx` or `rx`.
fn direction(name: &str) -> &'static str {
    if name.contains("tx") || name.contains("_out_") {
        "tx"
    } else {
        "rx"
    }
}

/// Adds what only drivers count; `passed` are the packets and `lost` the losses that the kernel counts by device and direction, which drivers
/// count again. Returns the number of counters read.
pub(super) fn add(
    window: &Window<'_>,
    passed: &BTreeMap<(&str, &str), f64>,
    lost: &BTreeMap<(&str, &str), f64>,
    evidence: &mut Evidence,
) -> u32 {
    let rates = rates(window, |_, name| {
        meaning(name).map(|_| missed::family(name))
    });
    // virtio counts what an XDP program rejects among its drops as well.
    let rejected = rejected(window);
    let mut largest: BTreeMap<(&str, &str), (&str, &Rate)> = BTreeMap::new();
    let mut limits = Vec::new();
    for ((device, name), rate) in &rates {
        let of = (*device, direction(name));
        if limit(name).is_some() {
            limits.push((of, (&**name, rate)));
            continue;
        }
        // Both are read at slightly different moments.
        let known = lost.get(&of).copied().unwrap_or_default();
        let rejected = rejected.get(device).filter(|_| of.1 == "rx");
        let known = known + rejected.copied().unwrap_or_default();
        let most = largest.get(&of).map_or(0.0, |(_, most)| most.per_s);
        if rate.per_s > 1.02 * known + 1.0 && rate.per_s > most {
            largest.insert(of, (name, rate));
        }
    }
    for (of, (name, rate)) in largest.into_iter().chain(limits) {
        let whole = passed.get(&of).copied().unwrap_or_default() + rate.per_s;
        let label = format!("driver.{name}");
        tell(
            evidence,
            (of.0, &label),
            rate,
            whole,
            meaning(name).unwrap_or_default(),
        );
    }
    rates.len() as u32
}

/// Rates of the statistics that `named` gives a name, added up by device and that name.
fn rates<'a>(
    window: &Window<'a>,
    named: impl Fn(&NetDevice, &str) -> Option<String>,
) -> BTreeMap<(&'a str, String), Rate> {
    let rates = window.answer_rates("devices", |answer| {
        let mut counters = BTreeMap::new();
        let Answer::Devices(devices) = answer else {
            return counters;
        };
        for device in devices {
            for (name, count) in &device.statistics {
                if let Some(name) = named(device, name) {
                    *counters.entry((&*device.name, name)).or_insert(0.0) += *count as f64;
                }
            }
        }
        counters
    });
    rates.unwrap_or_default()
}

/// Packets per second that XDP programs reject, by device of virtio.
fn rejected<'a>(window: &Window<'a>) -> BTreeMap<&'a str, f64> {
    let drops = rates(window, |device, name| {
        let of_virtio = device
            .driver
            .as_ref()
            .is_some_and(|of| of.driver == "virtio_net");
        let rejects = name.starts_with("rx") && name.ends_with("xdp_drops");
        (of_virtio && rejects).then(String::new)
    });
    let drops = drops.into_iter();
    drops
        .map(|((device, _), rate)| (device, rate.per_s))
        .collect()
}

#[cfg(test)]
mod tests {
    use rungwise_model::evidence::{Kind, Subject};
    use rungwise_model::kernel::Driver;
    use rungwise_model::keys;

    use super::*;
    use crate::capture::{Capture, Moment, Reply};

    fn moment(at_s: f64, device: NetDevice) -> Moment {
        let mut moment = Moment {
            at_s,
            ..Moment::default()
        };
        let answer = Reply::Answer(Answer::Devices(vec![device]));
        moment.answers.insert("devices".to_owned(), answer);
        moment
    }

    #[test]
    fn each_driver_counts_losses_under_its_own_names() {
        for (driver, losses, others) in [
            (
                "ena",
                &[
                    "bw_in_allowance_exceeded",
                    "pps_allowance_exceeded",
                    "conntrack_allowance_exceeded",
                    "rx_drops",
                    "tx_drops",
                ][..],
                &[
                    "rx_packets",
                    "queue_0_tx_cnt",
                    "queue_0_tx_bytes",
                    "queue_0_rx_xdp_drop",
                    "suspend",
                    "total_resets",
                ][..],
            ),
            (
                "gve",
                &[
                    "rx_dropped_pkt[0]",
                    "tx_dropped_pkt[0]",
                    "rx_buf_alloc_fail",
                ],
                &["rx_packets", "rx_drops_bytes", "interface_up_cnt"],
            ),
            (
                "virtio_net",
                &["rx_queue_0_drops", "rx0_hw_drops", "tx0_hw_drop_ratelimits"],
                &[
                    "rx_queue_0_packets",
                    "rx_queue_0_xdp_drops",
                    "rx_queue_0_kicks",
                    "rx0_hw_drop_overruns",
                ],
            ),
            (
                "hv_netvsc",
                &[
                    "tx_no_memory",
                    "tx_no_space",
                    "rx_no_memory",
                    "vf_tx_dropped",
                ],
                &["stop_queue", "vf_rx_packets", "tx_send_full"],
            ),
            (
                "mlx5",
                &[
                    "rx_discards_phy",
                    "tx_discards_phy",
                    "rx_crc_errors_phy",
                    "rx_buff_alloc_err",
                    "tx_queue_dropped",
                ],
                &[
                    "rx_prio0_discards",
                    "rx_out_of_buffer",
                    "rx_xdp_drop",
                    "rx_steer_missed_packets",
                    "tx_pause_ctrl_phy",
                ],
            ),
            (
                "bnxt",
                &[
                    "rx_total_discard_pkts",
                    "rx_oom_discards",
                    "tx_total_discard_pkts",
                ],
                &["rx_ucast_packets", "rx_discard_bytes"],
            ),
            (
                "i40e",
                &["port.rx_crc_errors", "rx_alloc_fail", "rx_dropped"],
                &[
                    "rx_missed_errors",
                    "fdir_sb_match",
                    "veb.rx_discards",
                    "tx_hwtstamp_timeouts",
                ],
            ),
            (
                "vmxnet3",
                &["  drv dropped rx total", "  pkts rx discard"],
                &["  ucast pkts rx", "ring full"],
            ),
        ] {
            let of = |names: &[&str]| {
                names
                    .iter()
                    .map(|name| meaning(name).is_some())
                    .collect::<Vec<_>>()
            };
            assert_eq!(of(losses), vec![true; losses.len()], "{driver}: {losses:?}");
            assert_eq!(
                of(others),
                vec![false; others.len()],
                "{driver}: {others:?}"
            );
        }
        assert!(
            meaning("pps_allowance_exceeded")
                .unwrap()
                .contains("packets per second")
        );
        assert_eq!(
            [
                direction("bw_out_allowance_exceeded"),
                direction("queue_N_tx_drops"),
                direction("rx_drops")
            ],
            ["tx", "tx", "rx"]
        );
    }

    #[test]
    fn the_largest_counter_beyond_those_of_the_kernel_is_reported_and_each_limit() {
        let at = |at_s: f64, counts: &[(&str, u64)]| {
            let mut device = NetDevice {
                name: "eth0".to_owned(),
                ..NetDevice::default()
            };
            let counts = counts
                .iter()
                .map(|(name, count)| ((*name).to_owned(), *count));
            device.statistics = counts.collect();
            moment(at_s, device)
        };
        let names = [
            "rx_queue_0_drops",
            "rx_queue_1_drops",
            "rx_discards",
            "tx_drops",
            "pps_allowance_exceeded",
            "rx_packets",
        ];
        let begin = names.map(|name| (name, 0));
        let end = [300, 300, 500, 1_000, 20, 9_000];
        let end: Vec<_> = names.into_iter().zip(end).collect();
        let capture = Capture {
            moments: vec![at(0.0, &begin), at(10.0, &end)],
            ..Capture::default()
        };
        let passed = [(("eth0", "rx"), 540.0), (("eth0", "tx"), 900.0)].into();
        // The kernel counts those of tx as well, and read them a moment earlier.
        let lost = [(("eth0", "tx"), 99.0)].into();
        let mut evidence = Evidence::over(10.0);
        let read = add(&Window::of(&capture), &passed, &lost, &mut evidence);
        assert_eq!(read, 4);
        let shares = evidence.each(&keys::LOSS_SHARE).unwrap();
        assert_eq!(shares.len(), 2);
        let of = |name| {
            let counter = Subject::new(Kind::Counter, name);
            evidence
                .quantity(&keys::LOSS_SHARE, &counter)
                .unwrap()
                .value
        };
        assert!((of("eth0:driver.rx_queue_N_drops") - 0.1).abs() < 1e-9);
        assert!(of("eth0:driver.pps_allowance_exceeded") > 0.0);
    }

    #[test]
    fn what_an_xdp_program_rejects_excuses_only_the_drops_of_virtio() {
        let lost = |driver: &str| {
            let at = |at_s: f64, count: u64| {
                let driver = Driver {
                    driver: driver.to_owned(),
                    ..Driver::default()
                };
                let counts = ["rx_queue_0_drops", "rx_queue_0_xdp_drops"];
                let device = NetDevice {
                    name: "eth0".to_owned(),
                    driver: Some(driver),
                    statistics: counts.map(|name| (name.to_owned(), count)).into(),
                    ..NetDevice::default()
                };
                moment(at_s, device)
            };
            let capture = Capture {
                moments: vec![at(0.0, 0), at(10.0, 500)],
                ..Capture::default()
            };
            let mut evidence = Evidence::over(10.0);
            let none = BTreeMap::new();
            add(&Window::of(&capture), &none, &none, &mut evidence);
            evidence.each(&keys::LOSS_SHARE).is_ok()
        };
        assert!(!lost("virtio_net"));
        assert!(lost("veth"));
    }
}
