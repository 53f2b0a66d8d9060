//! Numbers and lists as a sentence needs them: short, with the unit that people use.

use std::collections::BTreeSet;

use rungwise_model::evidence::Unit;
use rungwise_model::evidence_text;

/// A share in percent, two significant digits: `93 %`, `4.8 %`, `0.76 %`; `99.8 %` is not all.
pub(crate) fn percent(share: f64) -> String {
    let percent = share * 100.0;
    let digits = match percent.abs() {
        size if (99.5..99.95).contains(&size) => 1,
        size if size >= 10.0 || size == 0.0 => 0,
        size if size >= 1.0 => 1,
        _ => 2,
    };
    format!("{percent:.digits$} %")
}

/// Events per second: `1200/s`, `0.20/s`.
pub(crate) fn rate(per_second: f64) -> String {
    // From 10 on, digits behind the point are noise.
    let shown = if per_second.abs() >= 10.0 {
        per_second.round()
    } else {
        per_second
    };
    evidence_text::number_of(Unit::PerSecond, shown)
}

/// Bytes: `64 KiB`.
pub(crate) fn bytes(number: f64) -> String {
    evidence_text::number_of(Unit::Bytes, number)
}

/// A count with its noun: `1 CPU`, `20 CPUs`.
pub(crate) fn count(number: f64, noun: &str) -> String {
    let plural = if (number - 1.0).abs() < 0.5 { "" } else { "s" };
    format!("{number:.0} {noun}{plural}")
}

/// A count alone: `20`.
pub(crate) fn whole(number: f64) -> String {
    format!("{number:.0}")
}

/// Numbers of CPUs as the kernel lists them: `0-4,10-14`.
pub(crate) fn cpus(numbers: &BTreeSet<usize>) -> String {
    let mut runs: Vec<(usize, usize)> = Vec::new();
    for &number in numbers {
        match runs.last_mut() {
            Some((_, last)) if *last + 1 == number => *last = number,
            _ => runs.push((number, number)),
        }
    }
    let runs: Vec<_> = runs
        .into_iter()
        .map(|(first, last)| match last - first {
            0 => format!("{first}"),
            _ => format!("{first}-{last}"),
        })
        .collect();
    runs.join(",")
}

/// The same with the noun: `CPU 3`, `CPUs 0-4,10-14`.
pub(crate) fn the_cpus(numbers: &BTreeSet<usize>) -> String {
    let noun = if numbers.len() == 1 { "CPU" } else { "CPUs" };
    format!("{noun} {}", cpus(numbers))
}

/// The CPUs of a kernel list such as `0-4,10-14`; what is not a number is left out.
pub(crate) fn parse_cpus(list: &str) -> BTreeSet<usize> {
    /// No machine has more (`NR_CPUS` of x86 and arm64 is 8192 at most); longer ranges are not from a kernel.
    const MOST: usize = 8192;
    list.trim()
        .split(',')
        .filter_map(|run| {
            let (first, last) = run.split_once('-').unwrap_or((run, run));
            let (first, last) = (first.trim().parse().ok()?, last.trim().parse().ok()?);
            (last < MOST).then_some(first..=last)
        })
        .flatten()
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_have_two_digits_that_matter() {
        for (share, text) in [
            (0.93, "93 %"),
            (0.07, "7.0 %"),
            (0.0076, "0.76 %"),
            (0.0, "0 %"),
            (1.0, "100 %"),
            (0.998, "99.8 %"),
        ] {
            assert_eq!(percent(share), text);
        }
    }

    #[test]
    fn lists_of_cpus_read_back_as_written() {
        for list in ["", "0", "0-4,10-14", "1,3,5-7"] {
            assert_eq!(cpus(&parse_cpus(list)), list);
        }
        assert_eq!(cpus(&parse_cpus("x,3-1,4,0-99999999999")), "4");
    }
}
