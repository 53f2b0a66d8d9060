//! Numbers as people read them: `541 k/s`, `1.45 µs`, `+3.7 % [+1.2 %, +6.1 %]`.
//!
//! Never more than three significant digits, a true minus sign, and a narrow no-break space
//! (U+202F) between a number and its unit. The renderers for plain text turn that space into an
//! ordinary one. What is absent is [`ABSENT`], never zero.

use rungwise_model::tune::Delta;
use rungwise_stats::interval;

/// Shown in place of a missing value; the reason is given beside it.
pub const ABSENT: &str = "—";

/// Narrow no-break space, between a number and its unit.
pub const THIN: char = '\u{202f}';

/// Three significant digits with a true minus sign; thousands are separated.
pub fn significant(value: f64) -> String {
    if !value.is_finite() {
        return ABSENT.to_owned();
    }
    let rounded = round3(value.abs());
    let text = match rounded {
        0.0 => "0".to_owned(),
        v if v >= 1000.0 => grouped(v),
        v if v >= 100.0 => format!("{v:.0}"),
        v if v >= 10.0 => format!("{v:.1}"),
        v if v >= 1.0 => format!("{v:.2}"),
        v if v >= 0.1 => format!("{v:.3}"),
        v => format!(
            "{v:.*}",
            (2 - v.log10().floor() as i32).clamp(4, 12) as usize
        ),
    };
    if value < 0.0 && rounded > 0.0 {
        format!("−{text}")
    } else {
        text
    }
}

/// Events per second.
pub fn rate(per_s: f64) -> String {
    scaled(
        per_s,
        &[(1e9, "G/s"), (1e6, "M/s"), (1e3, "k/s"), (1.0, "/s")],
    )
}

/// A span given in microseconds.
pub fn micros(us: f64) -> String {
    scaled(us, &[(1e6, "s"), (1e3, "ms"), (1.0, "µs")])
}

/// A span given in microseconds, always in microseconds: for columns that are compared.
pub fn micros_only(us: f64) -> String {
    if us.is_finite() {
        format!("{}{THIN}µs", significant(us))
    } else {
        ABSENT.to_owned()
    }
}

/// A share given as a fraction, without a sign: `4.8 %`.
pub fn share(fraction: f64) -> String {
    if !fraction.is_finite() {
        return ABSENT.to_owned();
    }
    let percent = fraction * 100.0;
    let digits = usize::from(percent.abs() < 9.95);
    format!("{percent:.digits$}{THIN}%").replace('-', "−")
}

/// A relative change given as a fraction, with its sign: `+3.7 %`.
pub fn change(fraction: f64) -> String {
    if !fraction.is_finite() {
        return ABSENT.to_owned();
    }
    let percent = fraction.abs() * 100.0;
    let text = match percent {
        p if p < 9.95 => format!("{p:.1}"),
        p if p < 999.5 => format!("{p:.0}"),
        p => significant(p),
    };
    let sign = if text == "0.0" {
        "±"
    } else if fraction < 0.0 {
        "−"
    } else {
        "+"
    };
    format!("{sign}{text}{THIN}%")
}

/// The interval alone, in one piece that no line break parts: `[+1.2 %, +6.1 %]`.
pub fn interval(low: f64, high: f64) -> String {
    format!("[{},{THIN}{}]", change(low), change(high))
}

/// Point and interval of a relative change.
pub fn delta(delta: &Delta) -> String {
    format!(
        "{} {}",
        change(delta.point),
        interval(delta.low, delta.high)
    )
}

/// A ratio: `×1.65`.
pub fn factor(ratio: f64) -> String {
    if ratio.is_finite() {
        format!("×{}", significant(ratio))
    } else {
        ABSENT.to_owned()
    }
}

/// A span in whole seconds and minutes: `6 min 12 s`.
pub fn span(seconds: f64) -> String {
    if !seconds.is_finite() || seconds < 0.0 {
        return ABSENT.to_owned();
    }
    let whole = seconds.round() as u64;
    match (whole / 3600, whole / 60 % 60, whole % 60) {
        (0, 0, _) if seconds < 9.95 => format!("{seconds:.1}{THIN}s"),
        (0, 0, s) => format!("{s}{THIN}s"),
        (0, m, 0) => format!("{m}{THIN}min"),
        (0, m, s) => format!("{m}{THIN}min {s}{THIN}s"),
        (h, m, _) => format!("{h}{THIN}h {m}{THIN}min"),
    }
}

/// A moment of a run in hours, minutes and seconds, where minutes alone would not tell two apart: `1:06:40`.
pub fn clock(seconds: f64) -> String {
    if !seconds.is_finite() || seconds < 0.0 {
        return ABSENT.to_owned();
    }
    let whole = seconds.round() as u64;
    format!("{}:{:02}:{:02}", whole / 3600, whole / 60 % 60, whole % 60)
}

/// A size in bytes, in powers of 1024.
pub fn bytes(count: u64) -> String {
    const GIB: f64 = 1024.0 * 1024.0 * 1024.0;
    scaled(
        count as f64,
        &[
            (GIB, "GiB"),
            (1024.0 * 1024.0, "MiB"),
            (1024.0, "KiB"),
            (1.0, "B"),
        ],
    )
}

/// A size in whole bytes, `10 018 B`: what differs by a few bytes differs to the eye.
pub fn whole_bytes(bytes: f64) -> String {
    format!("{}{THIN}B", count(bytes.max(0.0).round() as u64))
}

/// A count with separated thousands; exact, because it is counted and not measured.
pub fn count(count: u64) -> String {
    let digits = count.to_string();
    let mut text = String::with_capacity(digits.len() * 2);
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            text.push(THIN);
        }
        text.push(digit);
    }
    text
}

/// `1 run`, `2 runs`.
pub fn plural(count: usize, noun: &str) -> String {
    let s = if count == 1 { "" } else { "s" };
    format!("{count} {noun}{s}")
}

/// Median of the finite values; absent when there is none.
pub fn median(values: impl IntoIterator<Item = f64>) -> Option<f64> {
    let finite: Vec<f64> = values.into_iter().filter(|v| v.is_finite()).collect();
    interval::median(&finite)
}

fn round3(value: f64) -> f64 {
    if value == 0.0 || value < 1e-12 {
        return 0.0;
    }
    let scale = 10_f64.powi(2 - value.log10().floor() as i32);
    (value * scale).round() / scale
}

fn grouped(value: f64) -> String {
    if value < 1e18 {
        count(value.round() as u64)
    } else {
        format!("{value:.2e}")
    }
}

/// Rounds first and chooses the unit after, so that 999 999 is `1.00 M` and not `1 000 k`.
fn scaled(value: f64, units: &[(f64, &str)]) -> String {
    if !value.is_finite() {
        return ABSENT.to_owned();
    }
    let smallest = units.last().copied().unwrap_or((1.0, ""));
    let (size, unit) = units
        .iter()
        .copied()
        .find(|(size, _)| round3(value.abs() / size) >= 1.0)
        .unwrap_or(smallest);
    format!("{}{THIN}{unit}", significant(value / size))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plain(text: &str) -> String {
        text.replace(THIN, " ")
    }

    #[test]
    fn a_whole_unit_of_bytes_is_not_reported_in_the_smaller_one() {
        assert_eq!(plain(&bytes(1 << 30)), "1.00 GiB");
        assert_eq!(plain(&bytes((1 << 30) - 1)), "1.00 GiB");
        assert_eq!(plain(&bytes(1000 << 20)), "1 000 MiB");
    }

    #[test]
    fn rates_have_three_significant_digits_and_the_right_unit() {
        assert_eq!(plain(&rate(541_234.0)), "541 k/s");
        assert_eq!(plain(&rate(5_741_000.0)), "5.74 M/s");
        assert_eq!(plain(&rate(999_999.0)), "1.00 M/s");
        assert_eq!(plain(&rate(0.0)), "0 /s");
        assert_eq!(plain(&rate(17.04)), "17.0 /s");
        assert_eq!(rate(f64::NAN), "—");
    }

    #[test]
    fn spans_change_unit_where_people_do() {
        assert_eq!(plain(&micros(1.449)), "1.45 µs");
        assert_eq!(plain(&micros(0.17)), "0.170 µs");
        assert_eq!(plain(&micros(4325.0)), "4.33 ms");
        assert_eq!(plain(&span(372.4)), "6 min 12 s");
        assert_eq!(plain(&span(3.25)), "3.2 s");
    }

    #[test]
    fn changes_carry_a_true_sign() {
        assert_eq!(plain(&change(0.037)), "+3.7 %");
        assert_eq!(plain(&change(-0.49)), "−49 %");
        assert_eq!(plain(&change(9.0)), "+900 %");
        assert_eq!(plain(&change(148.4)), "+14 800 %");
        assert_eq!(plain(&change(-0.0004)), "±0.0 %");
        assert_eq!(plain(&interval(0.012, 0.061)), "[+1.2 %, +6.1 %]");
    }

    #[test]
    fn no_value_shows_more_than_three_significant_digits() {
        for power in -9..12 {
            for lead in [1.0, 1.2345, 4.9996, 9.996, 9.9949] {
                let text = significant(lead * 10_f64.powi(power));
                let digits: String = text.chars().filter(char::is_ascii_digit).collect();
                let shown = digits.trim_start_matches('0').trim_end_matches('0');
                assert!(shown.len() <= 3, "{lead}e{power} became {text}");
            }
        }
    }

    #[test]
    fn the_median_of_nothing_is_absent() {
        assert_eq!(median([]), None);
        assert_eq!(median([f64::NAN, 3.0]), Some(3.0));
        assert_eq!(median([4.0, 1.0, 2.0, 3.0]), Some(2.5));
    }
}
