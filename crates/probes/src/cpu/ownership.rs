//! Interrupts of network devices: their device and their rate.
//!
//! The attributes of each device are taken from the capture; [`rungwise_host::interrupts`] matches by them, here and
//! where a knob sets affinities. Counters are `unsigned int` per interrupt and CPU (`kstat_irqs` in kernel/irq/, Linux
//! 6.18) and wrap around; they also go back when a driver requests its interrupts again.

use std::collections::{BTreeMap, BTreeSet};

use rungwise_formats::interrupts::{self, Interrupt};
use rungwise_host::interrupts::{Devices, Shown, Signs};
use rungwise_model::evidence::Absence;

use crate::{Rate, Window};

/// The table of interrupts.
pub(crate) const INTERRUPTS: &str = "/proc/interrupts";

/// Bus attributes of a device.
pub(crate) const BUS: &str = "/sys/class/net/*/device/uevent";

/// Whether a device is up.
pub(crate) const STATE: &str = "/sys/class/net/*/operstate";

/// Message interrupts of a device on PCI, by number.
pub(crate) const MESSAGES: &str = "/sys/class/net/*/device/msi_irqs/*";

/// Network device of a virtio device; the contents of the file do not matter.
pub(crate) const VIRTIO: &str = "/sys/bus/virtio/devices/*/net/*/ifindex";

/// More interrupts per second than a CPU can handle: own guess, at a microsecond each (entry, acknowledgement, exit).
/// If wrapping around would need more, the counter went back instead.
const MOST_PER_S: f64 = 1e6;

/// Network devices with hardware below them.
pub(crate) struct Ownership<'a> {
    devices: Devices<'a>,
    /// Those that are up, on a bus whose devices have interrupts of their own: not USB or the bus of Hyper-V.
    expected: BTreeSet<&'a str>,
}

impl<'a> Ownership<'a> {
    /// The devices of the last full sample.
    pub(crate) fn of(window: &Window<'a>) -> Self {
        let (mut devices, mut expected) = (Devices::default(), BTreeSet::new());
        for (path, stars) in window.matching(BUS) {
            let ([name], Ok(text)) = (&stars[..], window.text(path)) else {
                continue;
            };
            *devices.entry(name) = Signs::of_bus(text);
            let state = window.text(&STATE.replace('*', name));
            // Drivers that cannot see a carrier say `unknown`.
            let up = state.is_ok_and(|state| matches!(state.trim(), "up" | "unknown"));
            let alias = text.lines().find_map(|line| line.strip_prefix("MODALIAS="));
            let bus = alias.and_then(|alias| alias.split(':').next());
            if up && matches!(bus, Some("pci" | "virtio" | "xen")) {
                expected.insert(*name);
            }
        }
        for (_, stars) in window.matching(MESSAGES) {
            if let [device, number] = stars[..]
                && let (Some(signs), Ok(number)) = (devices.known(device), number.parse())
            {
                signs.messages.insert(number);
            }
        }
        for (_, stars) in window.matching(VIRTIO) {
            if let [virtio, device] = stars[..]
                && let Some(signs) = devices.known(device)
            {
                signs.virtio = Some(virtio);
            }
        }
        Self { devices, expected }
    }

    /// The devices that an interrupt may belong to, the likeliest first.
    pub(crate) fn owners(&self, irq: &Interrupt<'_>) -> Vec<&'a str> {
        self.devices.owners(&Shown {
            number: irq.number,
            chip: irq.chip,
            name: irq.name,
        })
    }

    /// Devices that are up and should have interrupts, and whether one of these is theirs.
    pub(crate) fn matched(&self, rows: &[Interrupt<'_>]) -> BTreeMap<&'a str, bool> {
        let owners: BTreeSet<&str> = rows.iter().flat_map(|row| self.owners(row)).collect();
        let expected = self.expected.iter();
        expected
            .map(|name| (*name, owners.contains(name)))
            .collect()
    }
}

/// Interrupts per second, summed over all rows with the same `name` in the last sample; the reason, if one of their
/// counters went back. Rows missing from any sample are omitted.
///
/// A CPU that goes offline takes its column with it, so the rates are unknown for a window in which a CPU came or went.
pub(crate) fn rates_by<'a, K: Ord>(
    window: &Window<'a>,
    name: impl Fn(&Interrupt<'a>) -> Option<K>,
) -> Result<BTreeMap<K, Result<Rate, Absence>>, Absence> {
    let texts = window.texts(INTERRUPTS)?;
    let mut headers = texts.iter().map(|(_, text)| text.lines().next());
    let first = headers.next();
    if !headers.all(|header| Some(header) == first) {
        return Err(Absence::because(
            "a CPU came or went during the window, and its counts with it",
        ));
    }
    // A single sample has no rates; the reason is set elsewhere.
    window.rates::<()>(INTERRUPTS, |_| BTreeMap::new())?;
    let samples: Vec<(f64, BTreeMap<&str, Interrupt<'a>>)> = texts
        .into_iter()
        .map(|(at, text)| {
            let rows = interrupts::parse(text).map_or(Vec::new(), |table| table.rows);
            (at, rows.into_iter().map(|row| (row.tag, row)).collect())
        })
        .collect();
    let mut found: BTreeMap<K, Result<Rate, Absence>> = BTreeMap::new();
    for (tag, row) in samples.last().into_iter().flat_map(|(_, rows)| rows) {
        let course: Option<Vec<(f64, &Interrupt<'_>)>> = samples
            .iter()
            .map(|(at, rows)| Some((*at, rows.get(tag)?)))
            .collect();
        let (Some(name), Some(course)) = (name(row), course) else {
            continue;
        };
        let rate = rate(&course).ok_or_else(|| {
            Absence::because(format!(
                "the counter of interrupt {tag} went back during the window, as happens when a driver requests it again"
            ))
        });
        let sum = match (found.remove(&name), rate) {
            (None, rate) => rate,
            (Some(Ok(sum)), Ok(rate)) => Ok(plus(sum, &rate)),
            (Some(Err(why)), _) | (_, Err(why)) => Err(why),
        };
        found.insert(name, sum);
    }
    Ok(found)
}

/// The rate of one interrupt; nothing if a counter of it went back.
fn rate(course: &[(f64, &Interrupt<'_>)]) -> Option<Rate> {
    let ((began, first), (ended, _)) = (course.first()?, course.last()?);
    let grown: Vec<(u64, f64)> = course
        .windows(2)
        .map(|two| {
            let ((from, before), (to, after)) = (&two[0], &two[1]);
            let mut counts = before.counts.iter().zip(&after.counts);
            let all = counts.try_fold(0_u64, |all, (before, after)| {
                Some(all.saturating_add(grown(*before, *after, to - from)?))
            })?;
            Some((all, to - from))
        })
        .collect::<Option<_>>()?;
    let begin = first.total() as f64;
    let delta = grown.iter().map(|(all, _)| *all as f64).sum::<f64>();
    let passed = grown.iter().all(|(_, seconds)| *seconds > 0.0);
    (passed && ended > began).then(|| Rate {
        ends: (begin, begin + delta),
        delta,
        unfinished: 0.0,
        per_s: delta / (ended - began),
        series: (grown.iter())
            .map(|(all, seconds)| *all as f64 / seconds)
            .collect(),
    })
}

/// How much a counter of 32 bits grew in so many seconds, once round at most; nothing if it went back.
pub(crate) fn grown(before: u64, after: u64, seconds: f64) -> Option<u64> {
    after.checked_sub(before).or_else(|| {
        let (before, after) = (u32::try_from(before).ok()?, u32::try_from(after).ok()?);
        let round = after.wrapping_sub(before);
        (f64::from(round) <= MOST_PER_S * seconds).then(|| u64::from(round))
    })
}

/// The sum of two rates of the same samples.
fn plus(mut sum: Rate, added: &Rate) -> Rate {
    sum.ends = (sum.ends.0 + added.ends.0, sum.ends.1 + added.ends.1);
    sum.delta += added.delta;
    sum.per_s += added.per_s;
    let pairs = sum.series.iter_mut().zip(&added.series);
    pairs.for_each(|(sum, added)| *sum += added);
    sum
}

/// Interrupts per second of each network device that has any of its own, and none of whose counters went back.
pub(crate) fn rates<'a>(window: &Window<'a>) -> Result<BTreeMap<&'a str, Rate>, Absence> {
    let ownership = Ownership::of(window);
    let rates = rates_by(window, |row| ownership.owners(row).first().copied())?;
    let mut why =
        Absence::because("no row of /proc/interrupts could be matched to a network device");
    let mut known = BTreeMap::new();
    for (device, rate) in rates {
        match rate {
            Ok(rate) => {
                known.insert(device, rate);
            }
            Err(unknown) => why = unknown,
        }
    }
    if known.is_empty() {
        Err(why)
    } else {
        Ok(known)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::capture::{Capture, Moment, Raw};

    /// Ten seconds between samples of interrupts 24 and 25 of eth0, two CPUs each.
    fn capture(samples: &[[[u64; 2]; 2]]) -> Capture {
        let moment = |(index, [first, second]): (usize, &[[u64; 2]; 2])| {
            let row = |number: u32, [left, right]: &[u64; 2]| {
                format!("{number}: {left} {right} PCI-MSI {number}-edge eth0-TxRx-{number}\n")
            };
            let table = format!("  CPU0 CPU1\n{}{}", row(24, first), row(25, second));
            let uevent = "MODALIAS=pci:v1\n".to_owned();
            Moment {
                at_s: index as f64 * 10.0,
                files: [
                    (INTERRUPTS.to_owned(), Raw::Text(table)),
                    (BUS.replace('*', "eth0"), Raw::Text(uevent)),
                ]
                .into(),
                ..Moment::default()
            }
        };
        Capture {
            moments: samples.iter().enumerate().map(moment).collect(),
            ..Capture::default()
        }
    }

    #[test]
    fn a_counter_that_goes_round_keeps_its_device() {
        let most = u64::from(u32::MAX);
        let capture = capture(&[
            [[most - 99, 7], [1000, 0]],
            [[900, 7], [2000, 0]],
            [[1900, 7], [2000, 500]],
        ]);
        let rates = rates(&Window::of(&capture)).unwrap();
        let rate = &rates["eth0"];
        assert_eq!((rate.delta, rate.per_s), (3500.0, 175.0));
        assert_eq!(rate.series, [200.0, 150.0]);
    }

    #[test]
    fn a_counter_that_was_set_back_leaves_its_device_out_and_says_so() {
        let capture = capture(&[[[5000, 0], [10, 0]], [[20, 0], [30, 0]]]);
        let window = Window::of(&capture);
        let why = rates(&window).unwrap_err();
        assert!(why.reason.contains("interrupt 24 went back"), "{why:?}");
        let each = rates_by(&window, |row| row.number).unwrap();
        assert!(each[&24].is_err());
        assert_eq!(each[&25].as_ref().unwrap().series, [2.0]);
    }

    #[test]
    fn no_counter_goes_round_faster_than_a_cpu_takes_interrupts() {
        let most = u64::from(u32::MAX);
        assert_eq!(grown(5, 9, 1.0), Some(4));
        assert_eq!(grown(most, 0, 1.0), Some(1));
        assert_eq!(grown(most - 999_999, 0, 1.0), Some(1_000_000));
        assert_eq!(grown(most - 1_000_000, 0, 1.0), None);
        // It never was one of 32 bits.
        assert_eq!(grown(most + 9, 3, 1e6), None);
    }

    #[test]
    fn one_sample_has_no_rates() {
        let capture = capture(&[[[1, 1], [1, 1]]]);
        let why = rates(&Window::of(&capture)).unwrap_err();
        assert!(why.reason.contains("a rate needs two"), "{why:?}");
    }
}
