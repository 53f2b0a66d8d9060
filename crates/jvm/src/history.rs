//! The history of an option across JDKs: when it was added, how its default changed, when it was removed.
//!
//! Only releases with a table are known directly; a date that a JVM itself prints is shown.

use std::fmt::Write as _;

use crate::command_line::Given;
use crate::judge::entry;
use crate::release::Release;
use crate::table::{Default, Flag, Kind};

/// How a release takes an option.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    /// The release does not have the option and refuses to start with it.
    Unknown,
    /// Accepted.
    Taken,
    /// Needs `-XX:+UnlockExperimentalVMOptions`.
    Experimental,
    /// Needs `-XX:+UnlockDiagnosticVMOptions`.
    Diagnostic,
    /// Accepted with a warning that it will be removed.
    Deprecated,
    /// Accepted with a warning, without effect.
    Ignored,
}

impl State {
    /// As in the document.
    pub fn word(self) -> &'static str {
        match self {
            Self::Unknown => "unknown",
            Self::Taken => "taken",
            Self::Experimental => "experimental",
            Self::Diagnostic => "diagnostic",
            Self::Deprecated => "deprecated",
            Self::Ignored => "ignored",
        }
    }

    fn has_effect(self) -> bool {
        !matches!(self, Self::Unknown | Self::Ignored)
    }
}

/// An option in one release.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Standing {
    /// The release.
    pub release: Release,
    /// How it takes the option.
    pub state: State,
    /// Its default; `None` if the JVM decides it at startup, or the option is not a flag.
    pub default: Option<&'static str>,
}

/// The option in each release with a table, oldest first; empty if no table contains the option.
pub fn history(given: &Given) -> Vec<Standing> {
    let all: Vec<Standing> = Release::known()
        .map(|release| {
            let flag = known(given, release);
            Standing {
                release,
                state: flag.map_or(State::Unknown, state),
                default: flag.and_then(|flag| match flag.default {
                    Default::Constant(text) => Some(text),
                    Default::Decided | Default::None => None,
                }),
            }
        })
        .collect();
    if all.iter().all(|standing| standing.state == State::Unknown) {
        return Vec::new();
    }
    all
}

/// The same as a sentence: `in JDK 7 to 11; deprecated since JDK 9; not in 17, 21, 25`. Empty where nothing is known.
pub fn lifetime(given: &Given) -> String {
    let all = history(given);
    let of = |wanted: &dyn Fn(&Standing) -> bool| {
        let releases = all.iter().filter(|standing| wanted(standing));
        listed(
            &releases
                .map(|standing| standing.release)
                .collect::<Vec<_>>(),
        )
    };
    if all.is_empty() {
        return String::new();
    }
    let mut text = match of(&|standing| standing.state.has_effect()) {
        releases if releases.is_empty() => "in no known JDK".to_owned(),
        releases => format!("in JDK {releases}"),
    };
    for (state, words) in [
        (State::Experimental, "experimental in"),
        (State::Diagnostic, "diagnostic in"),
    ] {
        let releases = of(&|standing| standing.state == state);
        if !releases.is_empty() {
            let _ = write!(text, "; {words} {releases}");
        }
    }
    for (state, words) in [
        (State::Deprecated, "deprecated"),
        (State::Ignored, "ignored"),
    ] {
        let releases = of(&|standing| standing.state == state);
        if releases.is_empty() {
            continue;
        }
        let since = all
            .iter()
            .filter(|standing| standing.state == state)
            .find_map(|standing| known(given, standing.release)?.since());
        let _ = match since {
            Some(since) => write!(text, "; {words} since {since}"),
            None => write!(text, "; {words} in {releases}"),
        };
    }
    let gone = of(&|standing| standing.state == State::Unknown);
    if !gone.is_empty() {
        let _ = write!(text, "; not in {gone}");
    }
    let mut defaults: Vec<(&str, Vec<Release>)> = Vec::new();
    for standing in all.iter().filter(|standing| standing.state.has_effect()) {
        if let Some(default) = standing.default.filter(|default| !default.is_empty()) {
            match defaults.last_mut() {
                Some((last, releases)) if *last == default => releases.push(standing.release),
                _ => defaults.push((default, vec![standing.release])),
            }
        }
    }
    if defaults.len() > 1 {
        let each: Vec<String> = defaults
            .iter()
            .map(|(default, releases)| format!("{default} in {}", listed(releases)))
            .collect();
        let _ = write!(text, "; default {}", each.join(", "));
    }
    text
}

/// What a release knows of an option: of `-Xmx` of the flag that it sets.
fn known(given: &Given, release: Release) -> Option<&'static Flag> {
    let table = release.table();
    entry(table, given).or_else(|| table.find(&given.sets.first()?.name))
}

fn state(flag: &Flag) -> State {
    match flag.kind {
        Kind::Refused => State::Unknown,
        Kind::Gone => State::Ignored,
        _ if flag.is_deprecated() => State::Deprecated,
        Kind::Experimental => State::Experimental,
        Kind::Diagnostic => State::Diagnostic,
        Kind::Product | Kind::Manageable | Kind::Alias | Kind::Option => State::Taken,
    }
}

/// `7 to 11, 21` of those that have a table: three neighbours and more are joined.
fn listed(releases: &[Release]) -> String {
    let place = |release: &Release| Release::known().position(|known| known == *release);
    let mut spans: Vec<(Release, Release)> = Vec::new();
    for release in releases {
        match spans.last_mut() {
            Some((_, last)) if place(last).map(|at| at + 1) == place(release) => *last = *release,
            _ => spans.push((*release, *release)),
        }
    }
    let spans = spans.iter().map(|(first, last)| {
        let others = place(last)
            .zip(place(first))
            .map_or(0, |(last, first)| last - first);
        match others {
            0 => first.0.to_string(),
            1 => format!("{}, {}", first.0, last.0),
            _ => format!("{} to {}", first.0, last.0),
        }
    });
    spans.collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::command_line::Origin;

    fn lifetime_of(option: &str) -> String {
        lifetime(&Given::new(option, Origin::Line))
    }

    #[test]
    fn an_option_is_described_from_its_coming_to_its_going() {
        assert_eq!(
            lifetime_of("-XX:+UseConcMarkSweepGC"),
            "in JDK 7 to 11; deprecated since JDK 9; not in 17 to 25"
        );
        assert_eq!(
            lifetime_of("-XX:MaxPermSize=64m"),
            "in JDK 7; ignored since JDK 8; not in 17 to 25"
        );
        let biased = lifetime_of("-XX:+UseBiasedLocking");
        assert!(biased.contains("deprecated since JDK 15"), "{biased}");
        assert!(biased.contains("default true in"), "{biased}");
        let z = lifetime_of("-XX:+UseZGC");
        assert!(
            z.contains("experimental in 11") && z.contains("not in 7, 8"),
            "{z}"
        );
        assert!(
            lifetime_of("-Xmx4g").starts_with("in JDK 7 to 25"),
            "{}",
            lifetime_of("-Xmx4g")
        );
        assert_eq!(lifetime_of("-XX:+NoSuchFlag"), "");
        assert_eq!(lifetime_of("-Dfoo=bar"), "");
    }

    #[test]
    fn a_changed_default_is_reported() {
        let text = lifetime_of("-XX:+CMSClassUnloadingEnabled");
        assert!(
            text.ends_with("default false in 7, true in 8, 11"),
            "{text}"
        );
    }

    #[test]
    fn every_flag_of_every_table_has_a_history() {
        for release in Release::known() {
            for flag in release.table().flags() {
                let name = if flag.name.starts_with('-') {
                    flag.name.to_owned()
                } else {
                    format!("-XX:{}=1", flag.name)
                };
                let given = Given::new(name, Origin::Line);
                let refused = flag.kind == Kind::Refused;
                assert!(refused || !lifetime(&given).is_empty(), "{}", flag.name);
            }
        }
    }
}
