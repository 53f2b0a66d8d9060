//! `2025-11-22T02:55:40.123+0100` -> nanoseconds since 1970, UTC.
//!
//! The civil calendar is the proleptic Gregorian one; days are counted as in Howard Hinnant's "chrono-compatible
//! low-level date algorithms".

use crate::number::{SECONDS, decimal};

/// Bytes of a date and time without fraction and zone: `2025-11-22T02:55:40`.
const WHOLE: usize = 19;

/// A date at the start of the text, and what follows it. Without a zone it is taken as UTC.
pub(crate) fn wall(text: &[u8]) -> Option<(i64, &[u8])> {
    let (head, mut rest) = text.split_at_checked(WHOLE)?;
    if head[4] != b'-'
        || head[7] != b'-'
        || head[10] != b'T'
        || head[13] != b':'
        || head[16] != b':'
    {
        return None;
    }
    let year = pair(head, 0)? * 100 + pair(head, 2)?;
    let (month, day) = (pair(head, 5)?, pair(head, 8)?);
    let (hour, minute) = (pair(head, 11)?, pair(head, 14)?);
    if !(1..=12).contains(&month) || !(1..=31).contains(&day) || hour > 24 || minute > 59 {
        return None;
    }
    let mut nanoseconds = pair(head, 17)? * 1_000_000_000;
    if let [b'.' | b',', fraction @ ..] = rest
        && fraction.first().is_some_and(u8::is_ascii_digit)
    {
        // The second again, with its fraction: the two digits before the mark belong to it.
        let (value, after) = decimal(&text[WHOLE - 2..], SECONDS)?;
        nanoseconds = i64::try_from(value).ok()?;
        rest = after;
    }
    let mut offset = 0;
    match rest {
        [sign @ (b'+' | b'-'), zone @ ..] => {
            let hours = pair(zone, 0)?;
            let minutes_at = if zone.get(2) == Some(&b':') { 3 } else { 2 };
            offset = (hours * 60 + pair(zone, minutes_at)?) * 60;
            if *sign == b'-' {
                offset = -offset;
            }
            rest = &zone[minutes_at + 2..];
        }
        [b'Z', after @ ..] => rest = after,
        _ => {}
    }
    let seconds = days(year, month, day) * 86_400 + hour * 3600 + minute * 60 - offset;
    Some((
        seconds
            .checked_mul(1_000_000_000)?
            .checked_add(nanoseconds)?,
        rest,
    ))
}

/// Days from 1970-01-01.
fn days(year: i64, month: i64, day: i64) -> i64 {
    let year = if month <= 2 { year - 1 } else { year };
    let era = year.div_euclid(400);
    let year_of_era = year.rem_euclid(400);
    let day_of_year = (153 * ((month + 9) % 12) + 2) / 5 + day - 1;
    era * 146_097 + year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year - 719_468
}

/// Two digits.
fn pair(text: &[u8], at: usize) -> Option<i64> {
    let digit = |at: usize| {
        text.get(at)
            .filter(|byte| byte.is_ascii_digit())
            .map(|byte| i64::from(byte - b'0'))
    };
    Some(digit(at)? * 10 + digit(at + 1)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_zone_is_taken_off() {
        let utc = 1_763_780_140_123_000_000;
        assert_eq!(
            wall(b"2025-11-22T02:55:40.123+0000]"),
            Some((utc, &b"]"[..]))
        );
        assert_eq!(
            wall(b"2025-11-22T03:55:40.123+0100: "),
            Some((utc, &b": "[..]))
        );
        assert_eq!(
            wall(b"2025-11-21T21:25:40,123-05:30"),
            Some((utc, &b""[..]))
        );
        assert_eq!(wall(b"2025-11-22T02:55:40.123Z"), Some((utc, &b""[..])));
    }

    #[test]
    fn leap_days_are_days() {
        let day = 86_400_000_000_000;
        let (before, _) = wall(b"2024-02-28T00:00:00.000+0000").unwrap();
        let (after, _) = wall(b"2024-03-01T00:00:00.000+0000").unwrap();
        assert_eq!(after - before, 2 * day);
        assert_eq!(wall(b"1970-01-01T00:00:00").unwrap().0, 0);
    }

    #[test]
    fn what_is_no_date_is_refused() {
        for text in [
            &b""[..],
            b"2025-11-22T02:55",
            b"2025-13-22T02:55:40.123+0000",
            b"2025-11-22 02:55:40.123+0000",
            b"2025-1x-22T02:55:40.123+0000",
            b"2025-11-22T02:55:40.123+0",
        ] {
            assert_eq!(wall(text), None);
        }
    }
}
