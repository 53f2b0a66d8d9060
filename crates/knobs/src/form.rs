//! How the value of a file is spelled: by the kernel, and in a wish.
//!
//! A form knows which spellings mean the same, which texts can be a value at all (what an undo may write back is
//! checked by it), and how users write the value: `off` for 0, `64KiB` for 65536, `0-3` for a mask.

use std::borrow::Cow;

use rungwise_model::units;

use crate::mask;
use crate::target::is_name;

/// What the kernel calls the bound 0 of a [`Form::WakeUp`] (drivers/base/power/sysfs.c, Linux 6.18).
const NO_TIME: &str = "n/a";

/// Longest bound on the time to wake up, us: a second, a guess above any idle state.
const LONGEST_WAKE_UP: u64 = 1_000_000;

/// How a file's value is written and compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// A CPU mask in hex.
    Mask,
    /// A list of CPUs: `0-3,8`; empty where none is named.
    CpuList,
    /// A table size that the kernel rounds up to a power of two.
    PowerOfTwo,
    /// A row of whole numbers; the kernel prints tabs where users write spaces.
    Words,
    /// A whole number within bounds, the kernel's where it states some.
    Number {
        /// Smallest.
        least: u64,
        /// Largest.
        most: u64,
    },
    /// A number of bytes within bounds; wished for as a size.
    Bytes {
        /// Smallest.
        least: u64,
        /// Largest.
        most: u64,
    },
    /// A number of microseconds within bounds; wished for as a time.
    Micros {
        /// Shortest.
        least: u64,
        /// Longest.
        most: u64,
    },
    /// CPU time and period of a control group: `200000 100000`, or `max 100000` without a limit.
    Quota,
    /// A limit of a control group: a whole number, or `max` without one.
    Limit,
    /// A bound on the time to wake up, microseconds; 0 is no bound and `n/a` is the bound 0. Wished for as a time, or off.
    WakeUp,
    /// 0 or 1; wished for as off or on.
    Switch,
    /// One word, such as the name of a governor.
    Word,
    /// One of these words, which the file does not list.
    OneOf(&'static [&'static str]),
    /// Whether a control group of version 1 is frozen. `FREEZING` is frozen, with threads that have not stopped yet.
    Freezer,
    /// One word of several that the file offers, the chosen one in brackets: `always [madvise] never`.
    Choice,
}

impl Form {
    /// Whether both are spellings of one value.
    pub fn same(self, one: &str, other: &str) -> bool {
        let (one, other) = (self.stored(one), self.stored(other));
        let equal = |read: fn(&str) -> Option<mask::Cpus>| match (read(&one), read(&other)) {
            (Some(one), Some(other)) => one == other,
            _ => one.trim() == other.trim(),
        };
        match self {
            Self::Mask => equal(mask::parse),
            Self::CpuList => equal(list),
            Self::PowerOfTwo => match (rounded(&one), rounded(&other)) {
                (Some(one), Some(other)) => one == other,
                _ => one.trim() == other.trim(),
            },
            _ => one.split_whitespace().eq(other.split_whitespace()),
        }
    }

    /// Whether `value` is of this form.
    pub fn holds(self, value: &str) -> bool {
        match self {
            Self::Mask => mask::parse(value).is_some(),
            Self::CpuList => list(value).is_some(),
            Self::PowerOfTwo => rounded(value).is_some(),
            Self::Word | Self::Choice => is_name(value.trim()),
            Self::OneOf(words) => words.contains(&value.trim()),
            Self::Freezer => ["THAWED", "FROZEN"].contains(&value.trim()),
            Self::Limit => value.trim() == "max" || value.trim().parse::<u64>().is_ok(),
            Self::WakeUp => value.trim() == NO_TIME || value.trim().parse::<u32>().is_ok(),
            Self::Quota => {
                let words: Vec<&str> = value.split_whitespace().collect();
                matches!(words[..], [quota, period]
                    if (quota == "max" || quota.parse::<u64>().is_ok()) && period.parse::<u64>().is_ok())
            }
            // Bounds are for wishes; what was found there before is put back as it was.
            Self::Words
            | Self::Number { .. }
            | Self::Bytes { .. }
            | Self::Micros { .. }
            | Self::Switch => {
                value.len() <= 128
                    && !value.trim().is_empty()
                    && value
                        .split_whitespace()
                        .all(|word| word.parse::<i64>().is_ok())
            }
        }
    }

    /// The value in the file's text.
    pub fn stored(self, text: &str) -> Cow<'_, str> {
        match self {
            Self::Choice => text
                .split_whitespace()
                .find_map(|word| word.strip_prefix('[')?.strip_suffix(']'))
                .map_or_else(|| text.into(), Cow::from),
            // The kernel takes no `FREEZING`, and shows it for a moment after `FROZEN` was written.
            Self::Freezer if text.trim() == "FREEZING" => "FROZEN".into(),
            _ => text.into(),
        }
    }

    /// The value as a wish spells it.
    pub(crate) fn wish(self, value: &str) -> String {
        let value = self.stored(value);
        let value = value.trim();
        match (self, value) {
            (Self::Mask, _) => match mask::parse(value) {
                Some(cpus) if cpus.is_empty() => "off".to_owned(),
                Some(cpus) => mask::format_list(&cpus),
                None => value.to_owned(),
            },
            (Self::Switch | Self::WakeUp, "0") => "off".to_owned(),
            (Self::Switch, "1") => "on".to_owned(),
            (Self::WakeUp, NO_TIME) => "0us".to_owned(),
            (Self::Bytes { .. }, _) => format!("{value}B"),
            (Self::Micros { .. } | Self::WakeUp, _) => format!("{value}us"),
            (Self::Words, _) => value.split_whitespace().collect::<Vec<_>>().join(" "),
            _ => value.to_owned(),
        }
    }

    /// The value that fulfils a wish; `cpus` are those that `all` means. The error says what is wrong.
    pub(crate) fn value(self, wish: &str, cpus: &[usize]) -> Result<String, String> {
        let within = |number: u64, least: u64, most: u64, unit: &str| {
            if (least..=most).contains(&number) {
                Ok(number.to_string())
            } else {
                Err(format!("it is not between {least}{unit} and {most}{unit}"))
            }
        };
        match self {
            Self::Mask => match wish {
                "off" => Ok(mask::format(&mask::Cpus::new())),
                "all" => Ok(mask::format(&cpus.iter().copied().collect())),
                list => mask::parse_list(list).map(|cpus| mask::format(&cpus)),
            },
            Self::CpuList => match wish {
                "all" => Ok(mask::format_list(&cpus.iter().copied().collect())),
                list => mask::parse_list(list).map(|cpus| mask::format_list(&cpus)),
            },
            Self::PowerOfTwo => within(number(wish)?, 0, 1 << 31, ""),
            Self::Number { least, most } => within(number(wish)?, least, most, ""),
            Self::Bytes { least, most } => within(bytes(wish)?, least, most, "B"),
            Self::Micros { least, most } => within(micros(wish)?, least, most, "us"),
            Self::WakeUp if wish == "off" => Ok("0".to_owned()),
            Self::WakeUp => match micros(wish)? {
                0 => Ok(NO_TIME.to_owned()),
                time => within(time, 1, LONGEST_WAKE_UP, "us"),
            },
            Self::Freezer if ["THAWED", "FROZEN"].contains(&wish) => Ok(wish.to_owned()),
            Self::Freezer => Err("it is not THAWED or FROZEN".to_owned()),
            Self::OneOf(words) if words.contains(&wish) => Ok(wish.to_owned()),
            Self::OneOf(words) => Err(format!("it is not {}", words.join(" or "))),
            Self::Switch => match wish {
                "on" | "1" => Ok("1".to_owned()),
                "off" | "0" => Ok("0".to_owned()),
                // What some switches know beside on and off, and what they may hold already.
                "2" => Ok("2".to_owned()),
                _ => Err("it is neither on nor off".to_owned()),
            },
            Self::Word | Self::Choice if is_name(wish) => Ok(wish.to_owned()),
            Self::Word | Self::Choice => Err("it is not one word".to_owned()),
            Self::Quota => Err("it is given in CPUs".to_owned()),
            Self::Limit if wish == "none" => Ok("max".to_owned()),
            Self::Limit => Ok(bytes(wish)?.to_string()),
            Self::Words => {
                let words: Result<Vec<String>, String> = wish
                    .split_whitespace()
                    .map(|word| bytes(word).map(|number| number.to_string()))
                    .collect();
                Ok(words?.join(" "))
            }
        }
    }
}

fn number(text: &str) -> Result<u64, String> {
    text.parse()
        .map_err(|_| "it is not a whole number".to_owned())
}

/// A size; a bare number counts bytes, as the kernel prints it.
pub(crate) fn bytes(text: &str) -> Result<u64, String> {
    number(text).or_else(|_| units::bytes(text).map_err(|error| error.to_string()))
}

/// A time; a bare number counts microseconds, as the kernel prints it.
fn micros(text: &str) -> Result<u64, String> {
    number(text).or_else(|_| {
        let time = units::duration(text).map_err(|error| error.to_string())?;
        u64::try_from(time.as_micros()).map_err(|error| error.to_string())
    })
}

fn list(text: &str) -> Option<mask::Cpus> {
    match text.trim() {
        "" => Some(mask::Cpus::new()),
        text => mask::parse_list(text).ok(),
    }
}

fn rounded(text: &str) -> Option<u64> {
    match text.trim().parse::<u64>().ok()? {
        0 => Some(0),
        size => size.checked_next_power_of_two(),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const FORMS: [Form; 15] = [
        Form::Limit,
        Form::Quota,
        Form::WakeUp,
        Form::OneOf(&["on", "off"]),
        Form::Freezer,
        Form::Mask,
        Form::CpuList,
        Form::PowerOfTwo,
        Form::Words,
        Form::Number { least: 0, most: 9 },
        Form::Bytes { least: 0, most: 9 },
        Form::Micros { least: 0, most: 9 },
        Form::Switch,
        Form::Word,
        Form::Choice,
    ];

    #[test]
    fn values_compare_by_what_they_mean() {
        assert!(Form::Mask.same("00000000,00000003", "3"));
        assert!(!Form::Mask.same("1", "3"));
        assert!(Form::CpuList.same("0,1", "0-1") && Form::CpuList.same("", "\n"));
        assert!(Form::PowerOfTwo.same("5000", "8192"));
        assert!(!Form::PowerOfTwo.same("0", "1"));
        assert!(Form::Words.same("4096 87380 6291456", "4096\t87380\t6291456\n"));
        assert!(!Form::Words.same("4096", "4096 1"));
        assert!(Form::Choice.same("always [madvise] never", "madvise"));
        assert!(!Form::Choice.same("always [madvise] never", "always"));
        assert!(
            Form::Freezer.same("FREEZING\n", "FROZEN") && !Form::Freezer.same("FREEZING", "THAWED")
        );
    }

    #[test]
    fn a_value_of_another_form_is_refused() {
        assert!(!Form::Words.holds("root::0:0"));
        assert!(!Form::Words.holds(""));
        assert!(!Form::Mask.holds("3\n4"));
        assert!(Form::Words.holds("4096 87380 6291456"));
        assert!(Form::CpuList.holds("") && !Form::CpuList.holds("0-1 /etc"));
        // What would hold until the next boot.
        assert!(
            Form::OneOf(&["on", "off"]).holds("on")
                && !Form::OneOf(&["on", "off"]).holds("forceoff")
        );
        for word in ["", "..", "a/b", "a b", "|/tmp/x", "a\nb"] {
            assert!(!Form::Word.holds(word), "{word}");
        }
    }

    #[test]
    fn a_wish_is_read_with_its_unit_and_within_its_bounds() {
        let bytes = Form::Bytes {
            least: 4096,
            most: 1 << 30,
        };
        assert_eq!(bytes.value("1MiB", &[]).as_deref(), Ok("1048576"));
        assert_eq!(bytes.wish("1048576"), "1048576B");
        assert!(bytes.value("1B", &[]).unwrap_err().contains("4096B"));
        let time = Form::Micros {
            least: 0,
            most: 1_000_000,
        };
        assert_eq!(time.value("5ms", &[]).as_deref(), Ok("5000"));
        assert_eq!(Form::Switch.value("off", &[]).as_deref(), Ok("0"));
        for (wish, stored) in [("0us", "n/a"), ("off", "0"), ("2ms", "2000")] {
            assert_eq!(Form::WakeUp.value(wish, &[]).as_deref(), Ok(stored));
        }
        assert_eq!(Form::WakeUp.wish("n/a"), "0us");
        assert_eq!(Form::Mask.value("all", &[0, 2]).as_deref(), Ok("5"));
        assert_eq!(Form::Choice.wish("always [madvise] never"), "madvise");
    }

    proptest! {
        #[test]
        fn no_text_is_a_panic_and_what_a_wish_becomes_can_be_held(text in ".{0,40}") {
            for form in FORMS {
                form.stored(&text);
                form.wish(&text);
                form.same(&text, "1");
                if let Ok(value) = form.value(&text, &[0, 1]) {
                    // A row may be wished empty; its knob counts the words.
                    prop_assert!(form.holds(&value) || value.is_empty(), "{form:?}: {text}");
                    prop_assert!(form.same(&value, &value));
                }
            }
        }

        #[test]
        fn a_number_is_wished_for_as_it_is_read(number in 0..u64::from(u32::MAX)) {
            let most = u64::from(u32::MAX);
            for form in [
                Form::Number { least: 0, most },
                Form::Bytes { least: 0, most },
                Form::Micros { least: 0, most },
            ] {
                let stored = number.to_string();
                prop_assert_eq!(form.value(&form.wish(&stored), &[]), Ok(stored));
            }
        }
    }
}
