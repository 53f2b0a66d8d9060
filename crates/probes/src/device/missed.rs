//! Packets for which a device had no buffer, however its driver counts them.
//!
//! The kernel has its own counters for these, which not every driver fills; many drivers count the same loss again in
//! their statistics. So the largest of these counters is used, never their sum. Sources:
//! Documentation/networking/statistics.rst, the drivers of Linux 6.18.

use std::collections::BTreeMap;

use rungwise_model::evidence::{Absence, Evidence, Origin, Subject};
use rungwise_model::kernel::{Answer, Question};
use rungwise_model::keys;

use super::counters;
use crate::{Cost, Probe, Rate, Source, When, Window, enter};

const SOURCE: &str = "/sys/class/net/DEV/statistics and ethtool -S";
const DEV: &str = "/proc/net/dev";
/// The kernel's own counters.
const STATISTICS: &[&str] = &[
    "/sys/class/net/*/statistics/rx_fifo_errors",
    "/sys/class/net/*/statistics/rx_missed_errors",
];

/// The probe.
pub(crate) static PROBE: Probe = Probe {
    id: "rx-missed",
    summary: "packets for which a device had no buffer",
    cost: Cost::Cheap,
    needs: &[],
    sources: &[
        Source::each(DEV),
        Source::ends(STATISTICS[0]),
        Source::ends(STATISTICS[1]),
        Source::ask(Question::Devices, When::Ends),
    ],
    yields: &[&keys::DEVICE_MISSED, &keys::DEVICE_MISSED_SHARE],
    derive,
    doc: "\
The probe reads rx_missed_errors and rx_fifo_errors of the kernel, and of the driver's statistics rx_missed*, \
rx_no_buffer*, rx_fifo*, rx_no_dma_resources*, *out_of_buffer and *hw_drop_overruns, per queue or in total. Different \
names may count the same packets; if several grew, the largest is reported. rx_dropped is excluded: it also counts \
frames that no protocol handles. The share is missed packets divided by missed and received packets. Sources: \
Documentation/networking/statistics.rst and the drivers of Linux 6.18.",
};

/// Whether a statistic of a driver counts packets for which there was no buffer.
pub(crate) fn counts_missed(name: &str) -> bool {
    let begins = [
        "rx_missed",
        "rx_no_buffer",
        "rx_no_dma_resources",
        "rx_fifo",
    ];
    let ends = ["out_of_buffer", "hw_drop_overruns"];
    begins.iter().any(|begin| name.starts_with(begin)) || ends.iter().any(|end| name.ends_with(end))
}

/// A name without its queue number: counters of one name add up.
pub(crate) fn family(name: &str) -> String {
    name.trim()
        .split(|c: char| c.is_ascii_digit())
        .filter(|part| !part.is_empty())
        .collect::<Vec<_>>()
        .join("N")
}

fn derive(window: &Window<'_>, evidence: &mut Evidence) {
    let columns = match counters::columns(window) {
        Ok(columns) => columns,
        Err(why) => return evidence.absent(PROBE.yields, &why, DEV),
    };
    let driver_rates = driver_rates(window);
    for ((device, _), packets) in columns
        .iter()
        .filter(|((_, name), _)| *name == "rx packets")
    {
        let of_kernel = STATISTICS.iter().filter_map(|pattern| {
            let path = pattern.replace('*', device);
            let rates = window.rates(&path, |text| {
                let number = text.trim().parse::<u64>().ok();
                number
                    .map(|number| ((), number as f64))
                    .into_iter()
                    .collect()
            });
            Some((path, rates.ok()?.remove(&())?))
        });
        let of_driver = driver_rates
            .iter()
            .filter(|((of, _), _)| of == device)
            .map(|((_, name), rate)| (format!("ethtool -S {device}: {name}"), rate.clone()));
        // The kernel's own counter comes first, and is reported if none is larger.
        let largest = of_kernel.chain(of_driver).reduce(|largest, other| {
            if other.1.delta > largest.1.delta {
                other
            } else {
                largest
            }
        });
        if let Some((source, missed)) = largest {
            add_missed(device, &source, &missed, packets, evidence);
        }
    }
    let none = window
        .unlisted(STATISTICS[0])
        .unwrap_or_else(|| Absence::because("no device counts missed packets"));
    enter::absent_if_unset(evidence, PROBE.yields, &none, SOURCE);
}

fn add_missed(device: &str, source: &str, missed: &Rate, packets: &Rate, evidence: &mut Evidence) {
    let subject = Subject::device(device);
    evidence.series(
        &keys::DEVICE_MISSED,
        subject.clone(),
        missed.per_s,
        missed.series.clone(),
        missed.origin(source),
    );
    let all = missed.delta + packets.delta;
    let share = if all > 0.0 { missed.delta / all } else { 0.0 };
    let line = format!("{}; rx packets {}", missed.line(), packets.line());
    evidence.number(
        &keys::DEVICE_MISSED_SHARE,
        subject,
        share,
        Origin::new(source, line),
    );
}

/// Rates of what drivers count, by device and name; empty if drivers report nothing.
fn driver_rates<'a>(window: &Window<'a>) -> BTreeMap<(&'a str, String), Rate> {
    let rates = window.answer_rates("devices", |answer| {
        let mut counters = BTreeMap::new();
        let Answer::Devices(devices) = answer else {
            return counters;
        };
        for device in devices {
            let statistics = device.statistics.iter();
            for (name, count) in statistics.filter(|(name, _)| counts_missed(name)) {
                let key = (&*device.name, family(name));
                *counters.entry(key).or_insert(0.0) += *count as f64;
            }
        }
        counters
    });
    rates.unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn drivers_have_many_names_for_a_packet_without_a_buffer() {
        for name in [
            "rx_missed_errors",
            "rx_no_buffer_count",
            "rx_fifo_errors",
            "rx_no_dma_resources",
            "rx_out_of_buffer",
            "rx3_hw_drop_overruns",
        ] {
            assert!(counts_missed(name), "{name}");
        }
        for name in ["rx_dropped", "fdir_miss", "tx_fifo_errors", "rx_errors"] {
            assert!(!counts_missed(name), "{name}");
        }
        assert_eq!(
            family("rx31_hw_drop_overruns"),
            family("rx3_hw_drop_overruns")
        );
    }
}
