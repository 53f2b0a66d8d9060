//! Numbers in lines of text.

use super::{Figures, quantile};

/// What follows `label` in the first line that begins with it, blanks aside.
pub(super) fn after<'t>(text: &'t str, label: &str) -> Option<&'t str> {
    text.lines()
        .find_map(|line| line.trim_start().strip_prefix(label))
        .map(str::trim)
}

/// The number at the beginning of a text; `1234`, `12.5`, `1e3`, with whatever unit behind it.
pub(in super::super) fn number(text: &str) -> Option<f64> {
    let text = text.trim_start();
    let end = text
        .find(|c: char| !(c.is_ascii_digit() || matches!(c, '.' | '-' | '+' | 'e' | 'E')))
        .unwrap_or(text.len());
    let number: f64 = text[..end].trim_end_matches(['e', 'E']).parse().ok()?;
    number.is_finite().then_some(number)
}

/// The number behind `label`.
pub(super) fn number_after(text: &str, label: &str) -> Option<f64> {
    number(after(text, label)?)
}

/// A time with its unit, `1.23ms`, in seconds.
pub(super) fn time(text: &str) -> Option<f64> {
    let text = text.trim();
    let value = number(text)?;
    let unit =
        text.trim_start_matches(|c: char| c.is_ascii_digit() || matches!(c, '.' | '-' | '+'));
    let unit = unit.split_ascii_whitespace().next().unwrap_or("");
    let factor = match unit {
        "ns" => 1e-9,
        "us" | "\u{b5}s" => 1e-6,
        "ms" => 1e-3,
        "s" | "sec" | "secs" => 1.0,
        "m" | "min" => 60.0,
        "h" => 3600.0,
        _ => return None,
    };
    Some(value * factor)
}

/// Mean, largest and the usual quantiles of latencies in seconds, which are sorted for it.
pub(super) fn quantiles(figures: &mut Figures, seconds: &mut [f64]) {
    if seconds.is_empty() {
        return;
    }
    seconds.sort_by(f64::total_cmp);
    let count = seconds.len();
    figures.latency("mean", Some(seconds.iter().sum::<f64>() / count as f64));
    figures.latency("max", seconds.last().copied());
    for percent in [50.0, 90.0, 95.0, 99.0, 99.9] {
        // The smallest that so many do not exceed.
        let rank = (percent / 100.0 * count as f64).ceil() as usize;
        figures.latency(
            quantile(percent),
            seconds.get(rank.clamp(1, count) - 1).copied(),
        );
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_read_with_what_stands_behind_them() {
        assert_eq!(number("1234.5 [#/sec] (mean)"), Some(1234.5));
        assert_eq!(number("12e"), Some(12.0));
        assert_eq!(number("none"), None);
        assert_eq!(number_after("a: 1\n  b: 2.5ms\n", "b:"), Some(2.5));
        let times = [
            ("812.00us", 0.000_812),
            ("1.50ms", 0.0015),
            ("2.00s", 2.0),
            ("1.02m", 61.2),
        ];
        for (text, seconds) in times {
            assert!((time(text).unwrap() - seconds).abs() < 1e-9, "{text}");
        }
        assert_eq!(time("5"), None);
    }
}
