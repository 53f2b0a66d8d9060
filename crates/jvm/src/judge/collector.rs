//! Which collector a command line chooses, and flags that do not go with it.

use std::fmt;

use rungwise_model::check::{Finding, Grade};

use super::{Case, OptionRule, TAKE_OUT, act, cite, instead, or_clear, watch};
use crate::command_line::Given;
use crate::release::Release;
use crate::table::Kind;

/// A collector of `HotSpot`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Collector {
    /// `UseSerialGC`.
    Serial,
    /// `UseParallelGC`, `UseParallelOldGC`.
    Parallel,
    /// `UseParNewGC` without CMS: parallel young, serial old; to JDK 8.
    ParNew,
    /// `UseConcMarkSweepGC`, to JDK 13.
    Cms,
    /// `UseG1GC`.
    G1,
    /// `UseZGC`.
    Z,
    /// `UseShenandoahGC`.
    Shenandoah,
    /// `UseEpsilonGC`: none at all.
    Epsilon,
}

impl fmt::Display for Collector {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Serial => "Serial",
            Self::Parallel => "Parallel",
            Self::ParNew => "ParNew",
            Self::Cms => "CMS",
            Self::G1 => "G1",
            Self::Z => "ZGC",
            Self::Shenandoah => "Shenandoah",
            Self::Epsilon => "Epsilon",
        })
    }
}

/// Switches by which a collector is chosen; `ParNew` and `ParallelOld` go with another one.
pub(crate) const SWITCHES: [(&str, Collector); 9] = [
    ("UseConcMarkSweepGC", Collector::Cms),
    ("UseParNewGC", Collector::ParNew),
    ("UseSerialGC", Collector::Serial),
    ("UseParallelGC", Collector::Parallel),
    ("UseParallelOldGC", Collector::Parallel),
    ("UseG1GC", Collector::G1),
    ("UseZGC", Collector::Z),
    ("UseShenandoahGC", Collector::Shenandoah),
    ("UseEpsilonGC", Collector::Epsilon),
];

/// A machine below either is not "server class", and gets the serial collector (`Arguments::select_gc_ergonomically`,
/// `os::is_server_class_machine`): 2 CPUs, and 2 GB less 256 MB that a machine may hide.
const SERVER_CPUS: f64 = 2.0;
const SERVER_MEMORY: u64 = (2048 - 256) << 20;

impl Case {
    /// The collector, and whether it was chosen by an option.
    pub fn collector(&self) -> (Collector, bool) {
        if let Some((_, collector)) = self.chosen().first() {
            return (*collector, true);
        }
        let configured_cpus = self
            .line
            .number("ActiveProcessorCount")
            .filter(|cpus| *cpus > 0);
        let small = configured_cpus
            .map(|cpus| cpus as f64)
            .or(self.machine.cpus)
            .is_some_and(|cpus| cpus.ceil() < SERVER_CPUS)
            || self
                .machine
                .room()
                .is_some_and(|(room, _)| room < SERVER_MEMORY);
        let default = match self.release {
            _ if small => Collector::Serial,
            Release(..=8) => Collector::Parallel,
            _ => Collector::G1,
        };
        (default, false)
    }

    /// The option that switches the default collector off where no other is chosen, at which JDK 9 and newer end. JDK 8 then takes the
    /// serial one.
    fn default_off(&self) -> Option<&Given> {
        let (collector, chosen) = self.collector();
        let machine = self.machine.cpus.is_some() && self.machine.room().is_some();
        if chosen || self.release <= Release(8) {
            return None;
        }
        let off = |switch: &str| {
            let given = self.line.given(switch);
            given.filter(|_| self.line.switch(switch) == Some(false))
        };
        // Which of the two is the default depends on the machine: known only of one that is given, or if neither is left.
        let (g1, serial) = (off("UseG1GC"), off("UseSerialGC"));
        match collector {
            _ if g1.is_some() && serial.is_some() => g1,
            Collector::G1 if machine => g1,
            Collector::Serial => serial,
            _ => None,
        }
    }

    /// Whether that depends on the machine, which is unknown.
    pub(super) fn default_may_be_off(&self) -> bool {
        let machine_known = self.machine.cpus.is_some() && self.machine.room().is_some();
        let (_, chosen) = self.collector();
        let off = |switch: &str| self.line.switch(switch) == Some(false);
        self.release > Release(8)
            && !machine_known
            && !chosen
            && (off("UseG1GC") != off("UseSerialGC"))
    }

    /// Collectors that are switched on, each once, with the switch. What this JDK does not know chooses nothing.
    fn chosen(&self) -> Vec<(&'static str, Collector)> {
        let mut chosen: Vec<(&str, Collector)> = Vec::new();
        for (switch, collector) in SWITCHES {
            let known = self.release.find(switch);
            if known.is_none_or(|flag| flag.kind == Kind::Gone) || !self.line.is_on(switch) {
                continue;
            }
            let paired = collector == Collector::ParNew
                && chosen.iter().any(|(_, other)| *other == Collector::Cms);
            if !paired && chosen.iter().all(|(_, other)| *other != collector) {
                chosen.push((switch, collector));
            }
        }
        chosen
    }
}

pub(super) const TWO_COLLECTORS: OptionRule = OptionRule {
    id: "jvm-two-collectors",
    summary: "Two collectors are selected, or none",
    looks_for: "The default collector is switched off and no other is selected (`Garbage collector not selected`, JDK 9 and \
        later), or more than one of `UseSerialGC`, `UseParallelGC`, `UseConcMarkSweepGC`, `UseG1GC`, `UseZGC`, `UseShenandoahGC`, \
        `UseEpsilonGC` is switched on. HotSpot exits with `Multiple garbage collectors selected`, JDK 8 with `Conflicting \
        collector combinations`.",
    remedy: "Keep one. Look for the other in `JAVA_TOOL_OPTIONS` and start scripts.",
    wrong: "`UseParNewGC` with `UseConcMarkSweepGC` and `UseParallelOldGC` with `UseParallelGC` are one choice and are not reported.",
    sources: "HotSpot `share/gc/shared/gcConfig.cpp`; JDK 8 `Arguments::check_gc_consistency`; tested on the JVMs in the tables.",
    judge: two_collectors,
};

fn two_collectors(case: &Case) -> Vec<Finding> {
    let chosen = case.chosen();
    if let Some(given) = case.default_off() {
        let sentence = format!(
            "{} refuses to start: {} switches off the default collector, and no other is selected",
            case.release, given.written
        );
        let finding = act(given, sentence)
            .severity(Grade::High)
            .confidence(Grade::High);
        return vec![instead(finding, given, TAKE_OUT)];
    }
    let [first, second, ..] = chosen.as_slice() else {
        return or_clear(Vec::new(), "at most one collector is selected");
    };
    let mut given: Vec<_> = [first, second]
        .iter()
        .filter_map(|(switch, _)| case.line.given(switch))
        .collect();
    // The one that stands later is the newer wish more often than not.
    given.sort_by_key(|given| {
        case.line
            .options
            .iter()
            .position(|other| std::ptr::eq(other, *given))
    });
    let [earlier, later] = given.as_slice() else {
        return or_clear(Vec::new(), "at most one collector is selected");
    };
    let sentence = format!(
        "{} refuses to start: {} and {} select different collectors",
        case.release, earlier.written, later.written
    );
    let finding = act(earlier, sentence)
        .severity(Grade::High)
        .confidence(Grade::High);
    vec![instead(cite(finding, later), earlier, TAKE_OUT)]
}

pub(super) const OF_ANOTHER_COLLECTOR: OptionRule = OptionRule {
    id: "jvm-flag-of-another-collector",
    summary: "A flag of a collector that is not in use",
    looks_for: "Flags of one collector, by name (`CMS...`, `G1...`, `Z...`, `Shenandoah...`), while another is selected or is the \
        default of this JDK.",
    remedy: "Remove the flag, or select its collector.",
    wrong: "The default collector depends on the machine; where that is unknown, two CPUs and 2 GB are assumed.",
    sources: "The names of the flags; HotSpot `share/gc/*/*_globals.hpp`.",
    judge: of_another,
};

/// Beginnings of names that belong to one collector, and collectors that read them too.
const OWNERS: &[(&str, &[Collector])] = &[
    ("CMS", &[Collector::Cms]),
    ("UseCMS", &[Collector::Cms]),
    ("G1", &[Collector::G1]),
    ("InitiatingHeapOccupancyPercent", &[Collector::G1]),
    ("Z", &[Collector::Z]),
    ("Shenandoah", &[Collector::Shenandoah]),
    ("Epsilon", &[Collector::Epsilon]),
    (
        "UseAdaptiveSizePolicy",
        &[
            Collector::Parallel,
            Collector::G1,
            Collector::Shenandoah,
            Collector::Z,
        ],
    ),
];

/// They begin like flags of a collector and are not.
const NOT_OWNED: &[&str] = &["ZeroTLAB"];

fn owners(name: &str) -> Option<&'static [Collector]> {
    let owned = OWNERS.iter().find(|(start, _)| {
        let rest = name.strip_prefix(start);
        // `Z` is no prefix of `Zero`, since the next letter begins a word.
        rest.is_some_and(|rest| {
            rest.is_empty() || rest.starts_with(|c: char| c.is_ascii_uppercase())
        })
    });
    owned
        .filter(|_| !NOT_OWNED.contains(&name))
        .map(|(_, owners)| *owners)
}

fn of_another(case: &Case) -> Vec<Finding> {
    let (collector, chosen) = case.collector();
    let mut findings = Vec::new();
    for given in &case.line.options {
        let Some(setting) = given.sets.first().filter(|_| given.is_flag()) else {
            continue;
        };
        let known = case
            .table()
            .find(&setting.name)
            .is_some_and(|flag| flag.kind != Kind::Gone);
        let Some(owners) = owners(&setting.name).filter(|_| known) else {
            continue;
        };
        if owners.contains(&collector) {
            continue;
        }
        let how = if chosen {
            "is in use"
        } else {
            "is the default here"
        };
        let sentence = format!(
            "{} does nothing: it belongs to {}, and {collector} {how}",
            given.written, owners[0]
        );
        let confidence = if chosen { Grade::High } else { Grade::Medium };
        findings.push(instead(
            watch(given, sentence).confidence(confidence),
            given,
            TAKE_OUT,
        ));
    }
    or_clear(findings, "no flag belongs to an unused collector")
}

pub(super) const YOUNG_SIZE_FIXED: OptionRule = OptionRule {
    id: "jvm-young-size-fixed",
    summary: "A fixed young generation under a G1 pause goal",
    looks_for: "`-Xmn`, or `NewSize` equal to `MaxNewSize`, or `NewRatio`, with G1. G1 meets its pause goal by resizing the young \
        generation; a fixed size takes away the main lever of `MaxGCPauseMillis`.",
    remedy: "Remove the fixed size and set `-XX:MaxGCPauseMillis`. To set a minimum young generation, use `G1NewSizePercent` \
        (experimental).",
    wrong: "A fixed young generation can be right where a measured load needs it and the pauses are short anyway.",
    sources: "HotSpot Virtual Machine Garbage Collection Tuning Guide, \"Garbage-First Garbage Collector Tuning\": avoid limiting \
        the young generation size.",
    judge: young_size_fixed,
};

fn young_size_fixed(case: &Case) -> Vec<Finding> {
    let (collector, _) = case.collector();
    if collector != Collector::G1 {
        return or_clear(Vec::new(), "G1 is not in use");
    }
    let (least, most) = (case.line.number("NewSize"), case.line.number("MaxNewSize"));
    let fixed = least.is_some() && least == most;
    let given = if fixed {
        case.line.given("NewSize")
    } else {
        case.line.given("NewRatio")
    };
    let Some(given) = given else {
        return or_clear(
            Vec::new(),
            "G1 can resize the young generation to meet the pause goal",
        );
    };
    let goal = case.line.given("MaxGCPauseMillis");
    let pause_goal = goal.map_or_else(
        || "the default pause goal of 200 ms".to_owned(),
        |goal| format!("the goal {}", goal.written),
    );
    let sentence = format!(
        "{} fixes the young generation: G1 cannot resize it to meet {pause_goal}",
        given.written
    );
    let confidence = if goal.is_some() {
        Grade::High
    } else {
        Grade::Medium
    };
    let mut finding = instead(
        watch(given, sentence).confidence(confidence),
        given,
        TAKE_OUT,
    );
    if let Some(goal) = goal {
        finding = cite(finding, goal);
    }
    vec![finding.refuted_by("pauses in the GC log that meet the goal at peak load")]
}

#[cfg(test)]
mod tests {
    use rungwise_model::check::Outcome::{self, Act, Clear, Watch};

    use super::super::outcome_of;
    use super::*;
    use crate::command_line::CommandLine;
    use crate::machine::Machine;

    fn outcome(release: u8, line: &str, rule: &str) -> Outcome {
        outcome_of(release, line, Machine::default(), rule).0
    }

    fn collector(release: u8, line: &str, machine: Machine) -> (Collector, bool) {
        let case = Case {
            release: Release(release),
            update: None,
            line: CommandLine::parse(line),
            machine,
        };
        case.collector()
    }

    #[test]
    fn the_collector_is_the_chosen_one_or_the_default_of_the_jdk() {
        let any = Machine::default();
        assert_eq!(collector(8, "", any), (Collector::Parallel, false));
        assert_eq!(collector(11, "", any), (Collector::G1, false));
        assert_eq!(
            collector(8, "-XX:+UseConcMarkSweepGC -XX:+UseParNewGC", any),
            (Collector::Cms, true)
        );
        // This JDK has no CMS, so nothing is chosen.
        assert_eq!(
            collector(17, "-XX:+UseConcMarkSweepGC", any),
            (Collector::G1, false)
        );
        let small = Machine {
            memory: Some(1 << 30),
            ..Machine::default()
        };
        assert_eq!(collector(17, "", small), (Collector::Serial, false));
        assert_eq!(collector(17, "-XX:+UseG1GC", small), (Collector::G1, true));
    }

    #[test]
    fn two_collectors_stop_the_jvm_and_pairs_do_not() {
        let rule = "jvm-two-collectors";
        assert_eq!(outcome(17, "-XX:+UseG1GC -XX:+UseParallelGC", rule), Act);
        assert_eq!(outcome(8, "-XX:+UseParNewGC -XX:+UseG1GC", rule), Act);
        for line in [
            "-XX:+UseConcMarkSweepGC -XX:+UseParNewGC",
            "-XX:+UseParallelGC -XX:+UseParallelOldGC",
            "-XX:-UseG1GC -XX:+UseParallelGC",
        ] {
            assert_eq!(outcome(8, line, rule), Clear, "{line}");
        }
    }

    #[test]
    fn flags_of_another_collector_do_nothing() {
        let rule = "jvm-flag-of-another-collector";
        assert_eq!(
            outcome(
                8,
                "-XX:+UseG1GC -XX:CMSInitiatingOccupancyFraction=70",
                rule
            ),
            Watch
        );
        assert_eq!(
            outcome(17, "-XX:+UseParallelGC -XX:G1HeapRegionSize=4m", rule),
            Watch
        );
        assert_eq!(outcome(17, "-XX:G1HeapRegionSize=4m", rule), Clear);
        assert_eq!(
            outcome(
                8,
                "-XX:+UseConcMarkSweepGC -XX:CMSInitiatingOccupancyFraction=70",
                rule
            ),
            Clear
        );
        assert_eq!(outcome(17, "-XX:+UseG1GC -XX:-ZeroTLAB", rule), Clear);
    }

    #[test]
    fn a_fixed_young_generation_is_reported_under_g1_alone() {
        let rule = "jvm-young-size-fixed";
        assert_eq!(outcome(17, "-Xmn2g -XX:MaxGCPauseMillis=100", rule), Watch);
        assert_eq!(outcome(17, "-XX:NewSize=1g -XX:MaxNewSize=2g", rule), Clear);
        assert_eq!(outcome(17, "-Xmn2g -XX:+UseParallelGC", rule), Clear);
        assert_eq!(outcome(8, "-Xmn2g", rule), Clear);
    }
}
