//! Readings as text, with customary units.

use crate::evidence::{Reading, Unit, Value};

/// The value of a reading: `12.5 %`, `4711 /s`, `64.0 KiB`, `unknown: not permitted`.
pub fn value(reading: &Reading) -> String {
    match &reading.value {
        Value::Number(number) => number_of(reading.key.unit, *number),
        Value::Text(text) if text.is_empty() => "none".to_owned(),
        Value::Text(text) => text.clone(),
        Value::Absent(why) => format!("unknown: {}", why.reason),
    }
}

/// A number in its unit.
pub fn number_of(unit: Unit, number: f64) -> String {
    match unit {
        Unit::Fraction => format!("{} %", plain(number * 100.0)),
        Unit::PerSecond => format!("{}/s", plain(number)),
        Unit::Bytes => bytes(number),
        Unit::BytesPerSecond => format!("{}/s", bytes(number)),
        Unit::Seconds if number.abs() < 1e-3 => format!("{} us", plain(number * 1e6)),
        Unit::Seconds if number.abs() < 1.0 => format!("{} ms", plain(number * 1e3)),
        Unit::Seconds => format!("{} s", plain(number)),
        Unit::Count | Unit::Ratio | Unit::Text => plain(number),
    }
}

fn bytes(number: f64) -> String {
    let (mut number, mut unit) = (number, "B");
    for larger in ["KiB", "MiB", "GiB", "TiB"] {
        if number.abs() < 1024.0 {
            break;
        }
        number /= 1024.0;
        unit = larger;
    }
    format!("{} {unit}", plain(number))
}

/// Three significant digits, never an exponent.
fn plain(number: f64) -> String {
    let size = number.abs();
    if number.fract() == 0.0 || size >= 100.0 {
        format!("{number:.0}")
    } else if size >= 10.0 {
        format!("{number:.1}")
    } else if size >= 0.1 {
        format!("{number:.2}")
    } else {
        format!("{number:.4}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_carry_the_units_that_people_use() {
        for (unit, number, text) in [
            (Unit::Fraction, 0.125, "12.5 %"),
            (Unit::PerSecond, 4711.0, "4711/s"),
            (Unit::Bytes, 65536.0, "64 KiB"),
            (Unit::BytesPerSecond, 1.5 * 1024.0 * 1024.0, "1.50 MiB/s"),
            (Unit::Seconds, 0.0042, "4.20 ms"),
            (Unit::Count, 20.0, "20"),
        ] {
            assert_eq!(number_of(unit, number), text);
        }
    }
}
