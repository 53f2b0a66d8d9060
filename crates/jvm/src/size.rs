//! Numbers as `HotSpot` reads them (`512m`, `0x10`, `2T`) and as people do.

/// Reads an integer with at most one of the suffixes `k`, `m`, `g`, `t` in either case, decimal or `0x`; the same as
/// `parse_integer` of `HotSpot` (`share/runtime/arguments.cpp`, `share/utilities/parseInteger.hpp`).
pub fn bytes(text: &str) -> Option<u64> {
    let (digits, radix) = match text.strip_prefix("0x").or_else(|| text.strip_prefix("0X")) {
        Some(digits) => (digits, 16),
        None => (text, 10),
    };
    let (digits, shift) = match digits.as_bytes().last()? {
        b'k' | b'K' => (&digits[..digits.len() - 1], 10),
        b'm' | b'M' => (&digits[..digits.len() - 1], 20),
        b'g' | b'G' => (&digits[..digits.len() - 1], 30),
        b't' | b'T' => (&digits[..digits.len() - 1], 40),
        _ => (digits, 0),
    };
    if digits.starts_with(['+', '-']) {
        return None;
    }
    let number = u64::from_str_radix(digits, radix).ok()?;
    number.checked_mul(1 << shift)
}

/// The same as people read it: `31 GiB`, `5.5 GiB`, `2 MiB`; the unit that leaves the shortest number that is exact
/// to a hundredth.
pub fn shown(bytes: u64) -> String {
    for (shift, unit) in [(40, "TiB"), (30, "GiB"), (20, "MiB"), (10, "KiB")] {
        let one = 1u64 << shift;
        if bytes >= one {
            let whole = format!("{:.2}", bytes as f64 / one as f64);
            let short = whole.trim_end_matches('0').trim_end_matches('.');
            return format!("{short} {unit}");
        }
    }
    format!("{bytes} B")
}

/// The same as a flag takes it, in the largest unit that is exact: `6g`, `5632m`.
pub(crate) fn as_flag(bytes: u64) -> String {
    for (shift, unit) in [(30, 'g'), (20, 'm'), (10, 'k')] {
        if bytes != 0 && bytes.is_multiple_of(1 << shift) {
            return format!("{}{unit}", bytes >> shift);
        }
    }
    bytes.to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn suffixes_are_read_as_hotspot_reads_them() {
        assert_eq!(bytes("512m"), Some(512 << 20));
        assert_eq!(bytes("4G"), Some(4 << 30));
        assert_eq!(bytes("1t"), Some(1 << 40));
        assert_eq!(bytes("0x10k"), Some(16 << 10));
        assert_eq!(bytes("70"), Some(70));
        for wrong in [
            "",
            "m",
            "4gb",
            "4 g",
            "-1",
            "+1",
            "1.5g",
            "99999999999999999999",
            "99999999999t",
            "é",
        ] {
            assert_eq!(bytes(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn sizes_are_shown_in_the_unit_that_fits() {
        assert_eq!(shown(32 << 30), "32 GiB");
        assert_eq!(shown((5 << 30) + (1 << 29)), "5.5 GiB");
        assert_eq!(shown(1000), "1000 B");
        assert_eq!(as_flag((5 << 30) + (1 << 29)), "5632m");
        assert_eq!(as_flag(0), "0");
    }
}
