//! Digits -> nanoseconds and bytes, in integers: what is printed is what is counted.
//!
//! All functions read a number at the start of a text and give it with what follows.

/// Units of the durations that logs print, as the power of ten of a nanosecond.
pub(crate) const SECONDS: u32 = 9;
/// Milliseconds.
pub(crate) const MILLISECONDS: u32 = 6;
/// Microseconds.
pub(crate) const MICROSECONDS: u32 = 3;

/// No pause, phase or cycle lasts longer: ten years. A number above it is damage, and sums of such would overflow.
pub(crate) const LONGEST_NS: u64 = 10 * 365 * 86_400 * 1_000_000_000;

/// Powers of ten.
const TENS: [u64; 10] = [
    1,
    10,
    100,
    1_000,
    10_000,
    100_000,
    1_000_000,
    10_000_000,
    100_000_000,
    1_000_000_000,
];
/// As many digits always fit.
const DIGITS: usize = 19;

/// A whole number.
#[inline]
pub(crate) fn whole(text: &[u8]) -> Option<(u64, &[u8])> {
    let mut value = 0u64;
    let mut at = 0;
    while let Some(digit) = text.get(at).map(|byte| byte.wrapping_sub(b'0'))
        && digit < 10
    {
        value = value.wrapping_mul(10).wrapping_add(u64::from(digit));
        at += 1;
    }
    (1..=DIGITS).contains(&at).then(|| (value, &text[at..]))
}

/// `12`, `0.5`, `0,5`, or with the mark of Pashto and Persian (U+066B), the only other one of glibc's locales; times ten to
/// the power of `places`, 9 at most. Digits beyond that are dropped: a log of HotSpot prints none.
#[inline]
pub(crate) fn decimal(text: &[u8], places: u32) -> Option<(u64, &[u8])> {
    let (value, rest) = whole(text)?;
    let value = value.checked_mul(*TENS.get(places as usize)?)?;
    let ([b'.' | b',', fraction @ ..] | [0xD9, 0xAB, fraction @ ..]) = rest else {
        return Some((value, rest));
    };
    let (mut left, mut part, mut at) = (places as usize, 0, 0);
    while let Some(digit) = fraction.get(at).map(|byte| byte.wrapping_sub(b'0'))
        && digit < 10
    {
        if left > 0 {
            left -= 1;
            part += u64::from(digit) * TENS[left];
        }
        at += 1;
    }
    if at == 0 {
        // The mark ends a clause.
        return Some((value, rest));
    }
    Some((value.checked_add(part)?, &fraction[at..]))
}

/// A size with its unit: `24M`, `1234.5K`, `24 K`, `512B`, `17M`; bytes, rounded to the nearest where a fraction
/// is none of a byte. A letter or digit right after the unit makes it no size, but the B of `KB`.
pub(crate) fn size(text: &[u8]) -> Option<(u64, &[u8])> {
    let (number, unit) = whole(text)?;
    let (fraction, digits, unit) = match unit {
        [b'.' | b',', rest @ ..] | [0xD9, 0xAB, rest @ ..]
            if rest.first().is_some_and(u8::is_ascii_digit) =>
        {
            let (fraction, after) = whole(rest)?;
            (fraction, rest.len() - after.len(), after)
        }
        _ => (0, 0, unit),
    };
    let unit = unit.strip_prefix(b" ").unwrap_or(unit);
    let (shift, rest) = match unit {
        [b'B', rest @ ..] => (0, rest),
        [b'K', rest @ ..] => (10, rest),
        [b'M', rest @ ..] => (20, rest),
        [b'G', rest @ ..] => (30, rest),
        [b'T', rest @ ..] => (40, rest),
        _ => return None,
    };
    let rest = match rest {
        [b'B', rest @ ..] if shift > 0 => rest,
        _ => rest,
    };
    if rest.first().is_some_and(u8::is_ascii_alphanumeric) {
        return None;
    }
    let one = 1u64 << shift;
    let value = number.checked_mul(one)?;
    if digits == 0 {
        return Some((value, rest));
    }
    let tens = 10u128.checked_pow(u32::try_from(digits).ok()?)?;
    let part = (u128::from(fraction) * u128::from(one) + tens / 2) / tens;
    Some((value.checked_add(u64::try_from(part).ok()?)?, rest))
}

/// `24M->4M(256M)`: before, after, capacity; spaces between them are allowed, the capacity may be missing.
pub(crate) fn change(text: &[u8]) -> Option<(u64, u64, Option<u64>, &[u8])> {
    let (before, rest) = size(text)?;
    let (after, rest) = size(rest.strip_prefix(b"->")?)?;
    let inner = rest.strip_prefix(b" ").unwrap_or(rest);
    if let Some(inner) = inner.strip_prefix(b"(")
        && let Some((capacity, behind)) = size(inner)
        && let Some(behind) = behind.strip_prefix(b")")
    {
        return Some((before, after, Some(capacity), behind));
    }
    Some((before, after, None, rest))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_duration_is_exact_with_point_or_comma() {
        assert_eq!(
            decimal(b"0.1193963 secs", SECONDS),
            Some((119_396_300, &b" secs"[..]))
        );
        assert_eq!(
            decimal(b"0,1193963 secs", SECONDS),
            Some((119_396_300, &b" secs"[..]))
        );
        assert_eq!(
            decimal("0\u{66b}1193963 secs".as_bytes(), SECONDS),
            Some((119_396_300, &b" secs"[..]))
        );
        assert_eq!(size("1\u{66b}5K".as_bytes()), Some((1536, &b""[..])));
    }

    #[test]
    fn what_is_no_number_is_not_made_one() {
        assert_eq!(whole(b""), None);
        assert_eq!(whole(b"x1"), None);
        assert_eq!(whole(b"99999999999999999999"), None);
        assert_eq!(decimal(b".5", SECONDS), None);
        assert_eq!(decimal(b"99999999999.5", SECONDS), None);
        assert_eq!(size(b"12"), None);
        assert_eq!(size(b"12Many"), None);
        assert_eq!(size(b"99999999999999T"), None);
    }

    #[test]
    fn a_comma_that_ends_a_clause_is_no_decimal_mark() {
        assert_eq!(
            decimal(b"12, 13", SECONDS),
            Some((12_000_000_000, &b", 13"[..]))
        );
    }

    #[test]
    fn a_size_is_in_bytes() {
        assert_eq!(size(b"24M->"), Some((24 << 20, &b"->"[..])));
        assert_eq!(size(b"5803756 K (5"), Some((5_803_756 << 10, &b" (5"[..])));
        assert_eq!(size(b"1234.5K"), Some((1_264_128, &b""[..])));
        assert_eq!(size(b"0.0B("), Some((0, &b"("[..])));
        assert_eq!(size(b"1.1M"), Some((1_153_434, &b""[..])));
        assert_eq!(size(b"8192KB "), Some((8 << 20, &b" "[..])));
    }

    #[test]
    fn a_change_may_lack_its_capacity() {
        assert_eq!(
            change(b"24M->4M(256M) 3.5ms"),
            Some((24 << 20, 4 << 20, Some(256 << 20), &b" 3.5ms"[..]))
        );
        assert_eq!(
            change(b"24M->4M 3.5ms"),
            Some((24 << 20, 4 << 20, None, &b" 3.5ms"[..]))
        );
        assert_eq!(change(b"24->4(20)"), None);
    }
}
