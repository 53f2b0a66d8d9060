//! What a start with a flight recording refuses: `-XX:StartFlightRecording` and `-XX:FlightRecorderOptions`.
//!
//! `share/jfr/dcmd/jfrDcmds.cpp`, `jfrOptionSet.cpp`; tried on 8u504, 11.0.13, 17.0.15, 21.0.8 and 25.0.3.

use super::Case;
use super::spelled::Taken;
use crate::release::Release;
use crate::size;

/// What this JDK does with the value of the flag; `None` for another flag.
pub(super) fn taken(case: &Case, flag: &str, text: &str) -> Option<Taken> {
    let judged = match flag {
        "StartFlightRecording" => of_start,
        "FlightRecorderOptions" => of_options,
        _ => return None,
    };
    let mut unknown = None;
    for part in text.split(',').filter(|part| !part.is_empty()) {
        let (key, value) = part.split_once('=').unwrap_or((part, ""));
        match judged(case.release, key, value) {
            Taken::Yes => {}
            Taken::Unknown(why) => unknown = Some(why),
            no @ Taken::No(_) => return Some(no),
        }
    }
    Some(unknown.map_or(Taken::Yes, Taken::Unknown))
}

fn of_start(release: Release, key: &str, value: &str) -> Taken {
    let no = |why: String| Taken::No(why);
    match key {
        "delay" | "duration" | "maxage" if !is_span(value) => {
            no(format!("'{value}' is not a time such as 10s or 1h"))
        }
        "delay" if is_none(value) => Taken::Unknown("a zero delay was not tested".to_owned()),
        "delay" | "duration" if is_short(value) => no(format!("'{value}' is less than 1s")),
        "compress" | "defaultrecording" if release <= Release(11) => {
            no(format!("a recording of {release} has no option '{key}'"))
        }
        // JDK 11 and older read a number up to the first letter they do not know.
        "maxsize" if release > Release(11) && size::bytes(value).is_none() => {
            no(format!("'{value}' is not a size"))
        }
        "disk" | "dumponexit" | "path-to-gc-roots" if !["true", "false"].contains(&value) => {
            no(format!("'{value}' is neither true nor false"))
        }
        "settings"
            if !["default", "profile", "none", "default.jfc", "profile.jfc"].contains(&value) =>
        {
            Taken::Unknown(format!(
                "the JVM refuses to start if it cannot read the settings {value}"
            ))
        }
        "compress" | "defaultrecording" | "delay" | "disk" | "dumponexit" | "duration"
        | "filename" | "maxage" | "maxsize" | "name" | "path-to-gc-roots" | "settings" => {
            Taken::Yes
        }
        // From JDK 17 on it may be a setting of an event.
        _ if release >= Release(17) => Taken::Yes,
        _ => no(format!("a recording of {release} has no option '{key}'")),
    }
}

fn of_options(release: Release, key: &str, value: &str) -> Taken {
    let bytes = size::bytes(value);
    let whole = value.parse::<u64>();
    match key {
        "globalbuffersize" | "maxchunksize" | "memorysize" | "threadbuffersize"
            if bytes.is_none() =>
        {
            Taken::No(format!("'{value}' is not a size"))
        }
        "maxchunksize" if bytes.is_some_and(|bytes| bytes < 1 << 20) => {
            Taken::No("the minimum chunk size is 1 MiB".to_owned())
        }
        "globalbuffersize" | "memorysize" | "threadbuffersize" => {
            Taken::Unknown("its limits depend on the sizes of the other buffers".to_owned())
        }
        "samplethreads" | "retransform" | "preserve-repository"
            if !["true", "false"].contains(&value) =>
        {
            Taken::No(format!("'{value}' is neither true nor false"))
        }
        // Added in a JDK from 18 to 21.
        "preserve-repository" if release <= Release(17) => Taken::No(format!(
            "the flight recorder of {release} has no option '{key}'"
        )),
        "numglobalbuffers" | "old-object-queue-size" | "stackdepth" if whole.is_err() => {
            Taken::No(format!("'{value}' is not a whole number"))
        }
        "maxchunksize"
        | "stackdepth"
        | "numglobalbuffers"
        | "old-object-queue-size"
        | "repository"
        | "retransform"
        | "samplethreads"
        | "sampleprotection"
        | "preserve-repository"
        | "loglevel" => Taken::Yes,
        _ => Taken::No(format!(
            "the flight recorder of {release} has no option '{key}'"
        )),
    }
}

fn is_none(text: &str) -> bool {
    text.trim_start_matches('0')
        .chars()
        .all(|c| c.is_ascii_alphabetic())
}

/// It is less than a second, with whatever unit.
fn is_short(text: &str) -> bool {
    let unit = text.trim_start_matches(|c: char| c.is_ascii_digit());
    let Ok(number) = text[..text.len() - unit.len()].parse::<u64>() else {
        return false;
    };
    let second = match unit {
        "ns" => 1_000_000_000,
        "us" => 1_000_000,
        "ms" => 1000,
        _ => 1,
    };
    number < second
}

/// `10s`, `1h`; a number without a unit only where it is 0.
fn is_span(text: &str) -> bool {
    let unit = text.trim_start_matches(|c: char| c.is_ascii_digit());
    let digits = &text[..text.len() - unit.len()];
    !digits.is_empty() && (["ns", "us", "ms", "s", "m", "h", "d"].contains(&unit) || text == "0")
}
