//! Quantities with units: `250ms`, `64KiB`, `20k/s`, `2%`.
//!
//! A number without a unit is refused: half of all misread settings lack the unit.

use std::time::Duration;

/// Why a quantity was refused: the text, the reason, and a correct example.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("cannot read '{text}' as {what}: {why}; write it as {example}")]
pub struct UnitError {
    text: String,
    what: &'static str,
    why: String,
    example: &'static str,
}

const DURATIONS: &[(&str, f64)] = &[
    ("ns", 1e-9),
    ("us", 1e-6),
    ("ms", 1e-3),
    ("s", 1.0),
    ("m", 60.0),
    ("min", 60.0),
    ("h", 3600.0),
];

const SIZES: &[(&str, f64)] = &[
    ("B", 1.0),
    ("KiB", 1024.0),
    ("MiB", 1_048_576.0),
    ("GiB", 1_073_741_824.0),
    ("kB", 1e3),
    ("MB", 1e6),
    ("GB", 1e9),
];

const RATES: &[(&str, f64)] = &[
    ("/s", 1.0),
    ("k/s", 1e3),
    ("M/s", 1e6),
    ("/min", 1.0 / 60.0),
];

const BANDWIDTHS: &[(&str, f64)] = &[
    ("B/s", 1.0),
    ("kB/s", 1e3),
    ("MB/s", 1e6),
    ("GB/s", 1e9),
    ("KiB/s", 1024.0),
    ("MiB/s", 1_048_576.0),
    ("GiB/s", 1_073_741_824.0),
    ("kb/s", 1e3 / 8.0),
    ("Mb/s", 1e6 / 8.0),
    ("Gb/s", 1e9 / 8.0),
    ("kbit/s", 1e3 / 8.0),
    ("Mbit/s", 1e6 / 8.0),
    ("Gbit/s", 1e9 / 8.0),
];

/// Reads a time span: `250ms`, `1.5s`, `10m`.
pub fn duration(text: &str) -> Result<Duration, UnitError> {
    let seconds = quantity(text, DURATIONS, "a duration", "250ms, 2s or 10m")?;
    Duration::try_from_secs_f64(seconds).map_err(|error| UnitError {
        text: text.to_owned(),
        what: "a duration",
        why: error.to_string(),
        example: "250ms, 2s or 10m",
    })
}

/// A time span in the largest unit of which it is a whole number: `10m`, `90s`, `1500ms`.
pub fn written(span: Duration) -> String {
    const UNITS: &[(&str, u128)] = &[
        ("h", 3_600_000_000_000),
        ("m", 60_000_000_000),
        ("s", 1_000_000_000),
        ("ms", 1_000_000),
        ("us", 1000),
    ];
    let nanos = span.as_nanos();
    let whole = UNITS
        .iter()
        .find(|(_, size)| nanos > 0 && nanos.is_multiple_of(*size));
    match whole {
        Some((unit, size)) => format!("{}{unit}", nanos / size),
        None => format!("{nanos}ns"),
    }
}

/// Reads a size in bytes: `100B`, `64KiB`, `1.5MB`.
pub fn bytes(text: &str) -> Result<u64, UnitError> {
    quantity(text, SIZES, "a size", "100B, 64KiB or 4MiB").map(|bytes| bytes.round() as u64)
}

/// Reads a rate per second: `500/s`, `20k/s`, `1.5M/s`.
pub fn per_second(text: &str) -> Result<f64, UnitError> {
    quantity(text, RATES, "a rate", "500/s, 20k/s or 1.5M/s")
}

/// Reads bytes per second: `7MB/s`; as networks are sold, in bits: `1Gb/s` is 125 MB/s.
pub fn bytes_per_second(text: &str) -> Result<f64, UnitError> {
    let what = "bytes or bits per second";
    quantity(text, BANDWIDTHS, what, "7MB/s (bytes) or 1Gb/s (bits)")
}

/// Reads a share as a fraction: `2%` is 0.02.
pub fn fraction(text: &str) -> Result<f64, UnitError> {
    quantity(text, &[("%", 0.01)], "a share", "2% or 0.5%")
}

fn quantity(
    text: &str,
    units: &[(&str, f64)],
    what: &'static str,
    example: &'static str,
) -> Result<f64, UnitError> {
    let refuse = |why: String| UnitError {
        text: text.to_owned(),
        what,
        why,
        example,
    };
    let trimmed = text.trim();
    let split = trimmed
        .find(|c: char| !c.is_ascii_digit() && c != '.')
        .unwrap_or(trimmed.len());
    let (digits, unit) = trimmed.split_at(split);
    let value: f64 = digits
        .parse()
        .map_err(|_| refuse("it does not start with a number".to_owned()))?;
    let unit = unit.trim_start();
    if unit.is_empty() {
        return Err(refuse("the unit is missing".to_owned()));
    }
    let factor = units
        .iter()
        .find(|(name, _)| *name == unit)
        .map(|(_, factor)| *factor)
        .ok_or_else(|| {
            let known: Vec<_> = units.iter().map(|(name, _)| *name).collect();
            refuse(format!("'{unit}' is not one of {}", known.join(", ")))
        })?;
    Ok(value * factor)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn people_write_quantities_with_units() {
        assert_eq!(duration("250ms"), Ok(Duration::from_millis(250)));
        assert_eq!(duration("1.5 s"), Ok(Duration::from_millis(1500)));
        assert_eq!(bytes("64KiB"), Ok(65536));
        assert_eq!(per_second("20k/s"), Ok(20_000.0));
        assert_eq!(fraction("2%"), Ok(0.02));
        assert_eq!(bytes_per_second("7MB/s"), Ok(7e6));
        assert_eq!(bytes_per_second("1Gb/s"), Ok(125e6));
        assert!(bytes_per_second("1G").is_err());
    }

    #[test]
    fn a_span_is_written_as_it_is_read() {
        for text in ["2h", "10m", "90s", "1500ms", "250us", "7ns", "0ns"] {
            assert_eq!(written(duration(text).unwrap()), text);
        }
    }

    #[test]
    fn a_missing_or_wrong_unit_names_the_right_ones() {
        let error = duration("250").unwrap_err().to_string();
        assert!(
            error.contains("unit is missing") && error.contains("250ms"),
            "{error}"
        );
        let error = bytes("64kb").unwrap_err().to_string();
        assert!(
            error.contains("'kb' is not one of") && error.contains("KiB"),
            "{error}"
        );
        assert!(per_second("-5/s").is_err());
        assert!(duration("").is_err());
        assert!(duration("99999999999999999999999h").is_err());
    }
}
