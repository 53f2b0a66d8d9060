//! Values of a workload's parameters as users write them: the same text in a scenario, on the command line and in a stored
//! design.
//!
//! Each type reads with [`FromStr`] and writes what it reads with [`Display`](fmt::Display). In a JSON schema each has a `format`
//! of its own, by which [`check`] finds the type again: a reader of files can then name every wrong value at its place, not only
//! the first.

use std::fmt;
use std::net::IpAddr;
use std::str::FromStr;
use std::time::Duration;

use rungwise_model::units;
use rungwise_serve::udp::{XdpDevice, XdpMode};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::stream::transport::Version;
use crate::workloads::{dubbo, http, tcp};

/// Most CPUs of a kernel: `NR_CPUS` of x86-64 with `MAXSMP`, arch/x86/Kconfig of Linux 6.18.
const MOST_CPUS: usize = 8192;

/// A time span: `250ms`, `2s`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(try_from = "String", into = "String")]
#[schemars(with = "String", inline, extend("format" = "time"))]
pub struct Time(pub Duration);

/// Requests per second, more than 0: `500/s`, `20k/s`.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(try_from = "String", into = "String")]
#[schemars(with = "String", inline, extend("format" = "rate"))]
pub struct Rate(pub f64);

/// A rate that changes linearly over the measured window: `1k/s..50k/s`.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(try_from = "String", into = "String")]
#[schemars(with = "String", inline, extend("format" = "ramp"))]
pub struct Ramp {
    /// Requests per second at the beginning.
    pub from_per_s: f64,
    /// Requests per second at the end.
    pub to_per_s: f64,
}

/// Bytes: `100B`, `2KiB`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(try_from = "String", into = "String")]
#[schemars(with = "String", inline, extend("format" = "size"))]
pub struct Size(pub usize);

/// How many, or one for each CPU that may be used: `4`, `{cpus}`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(try_from = "NumberOrText", into = "NumberOrText")]
#[schemars(with = "NumberOrText", inline, extend("format" = "count"))]
pub enum Count {
    /// As many as this, 1 or more.
    Fixed(u32),
    /// As many as there are CPUs.
    Cpus,
}

/// The CPUs that threads are pinned to: `true` for those that may be used, in turn; `false`; or a list as in `0,2-5`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(try_from = "SwitchOrText", into = "SwitchOrText")]
#[schemars(with = "SwitchOrText", inline, extend("format" = "cpus"))]
pub enum Pins {
    /// None: the scheduler moves the threads.
    #[default]
    Off,
    /// Those that this process may use, in turn.
    Allowed,
    /// These, in this order. A CPU may come twice.
    List(Vec<usize>),
}

/// Whose queues `AF_XDP` uses: those of a device that is named, or of the one that the generator has.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(try_from = "String", into = "String")]
#[schemars(with = "String", inline, extend("format" = "af-xdp"))]
pub enum XdpPlace {
    /// This device: `eth0`, `eth0:native`.
    Device(XdpDevice),
    /// The generator's own device: `generic`, `native`.
    Own(XdpMode),
}

/// How a count is written in a file.
#[derive(Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
enum NumberOrText {
    Number(u32),
    Text(String),
}

/// How pins are written in a file.
#[derive(Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
enum SwitchOrText {
    Switch(bool),
    Text(String),
}

/// Why `text`, a string where the schema asks for `format`, is not such a value; `None` where it is one, or where `format` is not
/// of this module.
pub fn check(format: &str, text: &str) -> Option<String> {
    fn refused<T: FromStr<Err = String>>(text: &str) -> Option<String> {
        text.parse::<T>().err()
    }
    match format {
        "time" => refused::<Time>(text),
        "rate" => refused::<Rate>(text),
        "ramp" => refused::<Ramp>(text),
        "size" => refused::<Size>(text),
        "count" => refused::<Count>(text),
        "cpus" => refused::<Pins>(text),
        "af-xdp" => refused::<XdpPlace>(text),
        "dubbo-arguments" => refused::<dubbo::Arguments>(text),
        "dubbo-attachment" => refused::<dubbo::Attachment>(text),
        "dubbo-types" => refused::<dubbo::Types>(text),
        "http-url" => refused::<http::Url>(text),
        "http-header" => refused::<http::Header>(text),
        "http-method" => refused::<http::Method>(text),
        "http-expect" => refused::<http::Expect>(text),
        "tcp-content" => refused::<tcp::Content>(text),
        "tcp-delimiter" => refused::<tcp::Delimiter>(text),
        "tcp-frames" => refused::<tcp::Frames>(text),
        "tls-version" => refused::<Version>(text),
        "ip" => text.parse::<IpAddr>().err().map(|_| {
            format!("'{text}' is not an IP address; write it as 192.0.2.1 or 2001:db8::1")
        }),
        _ => None,
    }
}

/// `; did you mean 'x'?` for the candidate nearest to `word`, empty where none is near.
pub(crate) fn nearest<'c>(word: &str, candidates: impl IntoIterator<Item = &'c str>) -> String {
    let likeness =
        |candidate: &&str| (strsim::normalized_damerau_levenshtein(word, candidate) * 1e3) as u32;
    // A guess: two slips in five letters are still a slip, three are another word.
    let near = candidates
        .into_iter()
        .filter(|candidate| likeness(candidate) >= 600);
    near.max_by_key(likeness)
        .map_or(String::new(), |near| format!("; did you mean '{near}'?"))
}

impl Count {
    /// The number on a machine with `cpus` CPUs.
    pub fn on(self, cpus: usize) -> usize {
        match self {
            Self::Fixed(number) => number as usize,
            Self::Cpus => cpus,
        }
    }
}

impl Pins {
    /// The CPUs, where `allowed` may be used; absent where nothing is pinned.
    pub fn among(&self, allowed: &[usize]) -> Option<Vec<usize>> {
        match self {
            Self::Off => None,
            Self::Allowed => Some(allowed.to_vec()),
            Self::List(list) => Some(list.clone()),
        }
    }
}

impl XdpPlace {
    /// The device, where the generator's own is `own`.
    pub fn on(&self, own: &str) -> XdpDevice {
        match self {
            Self::Device(device) => device.clone(),
            Self::Own(mode) => XdpDevice {
                device: own.to_owned(),
                mode: *mode,
            },
        }
    }
}

impl FromStr for Time {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        units::duration(text)
            .map(Self)
            .map_err(|error| error.to_string())
    }
}

impl fmt::Display for Time {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&units::written(self.0))
    }
}

impl FromStr for Rate {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let rate = units::per_second(text).map_err(|error| error.to_string())?;
        if rate > 0.0 && rate.is_finite() {
            Ok(Self(rate))
        } else {
            Err(format!("'{text}' is not a usable rate; it must be above 0"))
        }
    }
}

impl fmt::Display for Rate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&per_second(self.0))
    }
}

impl FromStr for Ramp {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (from, to) = text
            .split_once("..")
            .ok_or_else(|| format!("cannot read '{text}' as a ramp; write it as 1k/s..50k/s"))?;
        let rate = |text| units::per_second(text).map_err(|error| error.to_string());
        Ok(Self {
            from_per_s: rate(from)?,
            to_per_s: rate(to)?,
        })
    }
}

impl fmt::Display for Ramp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{}..{}",
            per_second(self.from_per_s),
            per_second(self.to_per_s)
        )
    }
}

impl FromStr for Size {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let bytes = units::bytes(text).map_err(|error| error.to_string())?;
        let bytes = usize::try_from(bytes).map_err(|error| error.to_string())?;
        Ok(Self(bytes))
    }
}

impl fmt::Display for Size {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}B", self.0)
    }
}

impl FromStr for Count {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        if text == "{cpus}" {
            return Ok(Self::Cpus);
        }
        let digits = text.bytes().all(|byte| byte.is_ascii_digit());
        let number = text.parse().ok().filter(|number| digits && *number > 0);
        number.map(Self::Fixed).ok_or_else(|| {
            format!(
                "cannot read '{text}' as a number; write 1 or more, or {{cpus}} for one on each CPU"
            )
        })
    }
}

impl fmt::Display for Count {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Fixed(number) => write!(f, "{number}"),
            Self::Cpus => f.write_str("{cpus}"),
        }
    }
}

impl FromStr for Pins {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "true" => return Ok(Self::Allowed),
            "false" => return Ok(Self::Off),
            _ => {}
        }
        let number = |word: &str| {
            let digits = word.bytes().all(|byte| byte.is_ascii_digit());
            let cpu = word.parse::<usize>().ok().filter(|_| digits);
            cpu.filter(|cpu| *cpu < MOST_CPUS)
                .ok_or_else(|| format!("cannot read '{text}' as CPUs; write the list as 0,2-5"))
        };
        let mut cpus = Vec::new();
        for part in text.split(',') {
            let (first, last) = part.split_once('-').unwrap_or((part, part));
            let (first, last) = (number(first)?, number(last)?);
            if first > last {
                return Err(format!(
                    "cannot read '{part}' as CPUs: the range is reversed; write it as {last}-{first}"
                ));
            }
            cpus.extend(first..=last);
        }
        Ok(Self::List(cpus))
    }
}

impl fmt::Display for Pins {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Off => f.write_str("false"),
            Self::Allowed => f.write_str("true"),
            Self::List(cpus) => {
                let words: Vec<String> = cpus.iter().map(usize::to_string).collect();
                f.write_str(&words.join(","))
            }
        }
    }
}

impl FromStr for XdpPlace {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "generic" => Ok(Self::Own(XdpMode::Generic)),
            "native" => Ok(Self::Own(XdpMode::Native)),
            device => device.parse().map(Self::Device),
        }
    }
}

impl fmt::Display for XdpPlace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Device(device) => write!(f, "{device}"),
            Self::Own(XdpMode::Generic) => f.write_str("generic"),
            Self::Own(XdpMode::Native) => f.write_str("native"),
        }
    }
}

impl TryFrom<NumberOrText> for Count {
    type Error = String;

    fn try_from(written: NumberOrText) -> Result<Self, String> {
        match written {
            NumberOrText::Number(number) => number.to_string().parse(),
            NumberOrText::Text(text) => text.parse(),
        }
    }
}

impl From<Count> for NumberOrText {
    fn from(count: Count) -> Self {
        match count {
            Count::Fixed(number) => Self::Number(number),
            Count::Cpus => Self::Text(count.to_string()),
        }
    }
}

impl TryFrom<SwitchOrText> for Pins {
    type Error = String;

    fn try_from(written: SwitchOrText) -> Result<Self, String> {
        match written {
            SwitchOrText::Switch(true) => Ok(Self::Allowed),
            SwitchOrText::Switch(false) => Ok(Self::Off),
            SwitchOrText::Text(text) => text.parse(),
        }
    }
}

impl From<Pins> for SwitchOrText {
    fn from(pins: Pins) -> Self {
        match pins {
            Pins::Off => Self::Switch(false),
            Pins::Allowed => Self::Switch(true),
            Pins::List(_) => Self::Text(pins.to_string()),
        }
    }
}

/// Serde reads and writes these types as text.
macro_rules! as_text {
    ($($value:ty),+) => {$(
        impl TryFrom<String> for $value {
            type Error = String;

            fn try_from(text: String) -> Result<Self, String> {
                text.parse()
            }
        }

        impl From<$value> for String {
            fn from(value: $value) -> Self {
                value.to_string()
            }
        }
    )+};
}

as_text!(Time, Rate, Ramp, Size, XdpPlace);
pub(crate) use as_text;

/// A rate in the largest unit of which it is a whole number; exact in any case.
fn per_second(rate: f64) -> String {
    let units = [(1e6, "M/s"), (1e3, "k/s")];
    let whole = units
        .iter()
        .find(|(size, _)| rate >= *size && (rate % size).abs() < f64::EPSILON);
    match whole {
        Some((size, unit)) => format!("{}{unit}", rate / size),
        None => format!("{rate}/s"),
    }
}

#[cfg(test)]
mod tests {
    use std::fmt::{Debug, Display};

    use super::*;

    #[track_caller]
    fn same_again<T>(texts: &[&str])
    where
        T: FromStr<Err = String>
            + Display
            + PartialEq
            + Debug
            + Serialize
            + for<'de> Deserialize<'de>,
    {
        for text in texts {
            let value: T = text.parse().unwrap_or_else(|why| panic!("{text}: {why}"));
            assert_eq!(
                value.to_string().parse::<T>().as_ref(),
                Ok(&value),
                "{text}"
            );
            let stored = serde_json::to_value(&value).unwrap();
            assert_eq!(
                serde_json::from_value::<T>(stored).unwrap(),
                value,
                "{text}"
            );
        }
    }

    #[test]
    fn what_is_written_is_read_as_the_same_value() {
        same_again::<Time>(&["250ms", "1.5s", "10m", "0s", "7ns"]);
        same_again::<Rate>(&["500/s", "20k/s", "1.5M/s", "0.1/s", "33.333/s"]);
        same_again::<Ramp>(&["0/s..50k/s", "1k/s..1.5M/s"]);
        same_again::<Size>(&["100B", "2KiB", "1.5MB"]);
        same_again::<Count>(&["1", "64", "{cpus}"]);
        same_again::<Pins>(&["true", "false", "0,2-5", "5,1,1"]);
        same_again::<XdpPlace>(&["generic", "native", "eth0", "eth0:native"]);
        assert_eq!(Rate(20_000.0).to_string(), "20k/s");
        assert_eq!(Rate(20_500.0).to_string(), "20500/s");
    }

    #[test]
    fn what_cannot_be_read_says_how_to_write_it() {
        for (format, text, word) in [
            ("time", "10", "250ms"),
            ("rate", "20k", "20k/s"),
            ("rate", "0/s", "above 0"),
            ("ramp", "1k/s", "1k/s..50k/s"),
            ("size", "100", "100B"),
            ("count", "0", "{cpus}"),
            ("count", "+1", "{cpus}"),
            ("cpus", "", "0,2-5"),
            ("cpus", "a", "0,2-5"),
            ("cpus", "0,", "0,2-5"),
            ("cpus", "1-2-3", "0,2-5"),
            ("cpus", "8192", "0,2-5"),
            ("cpus", "0-4294967295", "0,2-5"),
            ("cpus", "3-1", "write it as 1-3"),
            ("af-xdp", "eth0:fast", "DEVICE:native"),
            ("af-xdp", ":native", "DEVICE:native"),
            ("ip", "192.0.2", "192.0.2.1"),
        ] {
            let why = check(format, text).unwrap_or_else(|| panic!("{format} {text} was read"));
            assert!(why.contains(word), "{why}");
        }
        assert_eq!(check("count", "{cpus}"), None);
        assert_eq!(check("date", "anything"), None);
    }

    #[test]
    fn the_order_of_cpus_is_kept() {
        assert_eq!("5,1".parse(), Ok(Pins::List(vec![5, 1])));
        assert_eq!(
            "0,2-3".parse::<Pins>().unwrap().among(&[]),
            Some(vec![0, 2, 3])
        );
        assert_eq!(Pins::Allowed.among(&[4, 7]), Some(vec![4, 7]));
        assert_eq!(Pins::Off.among(&[4, 7]), None);
        assert_eq!((Count::Cpus.on(4), Count::Fixed(3).on(4)), (4, 3));
    }
}
