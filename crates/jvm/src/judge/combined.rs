//! Options that do not go together: sizes that contradict, flags that another one makes useless, flags given twice.

use rungwise_model::check::{Finding, Grade};

use super::{Case, Collector, OptionRule, TAKE_OUT, act, cite, instead, or_clear, watch};
use crate::command_line::{Given, Origin};
use crate::release::Release;
use crate::table::{Default, Type};

pub(super) const SIZES_CONTRADICT: OptionRule = OptionRule {
    id: "jvm-sizes-contradict",
    summary: "Contradictory sizes",
    looks_for: "`-Xms` above `-Xmx` (HotSpot exits with `Initial heap size set to a larger value than the maximum heap size`), a \
        young generation as large as the heap or larger (the JVM shrinks it, JDK 8 with a warning, later JDKs without), `NewSize` \
        above `MaxNewSize`, `MetaspaceSize` above `MaxMetaspaceSize`, `InitialRAMPercentage` above `MaxRAMPercentage`, \
        `SoftMaxHeapSize` above `-Xmx`, `MinHeapFreeRatio` above `MaxHeapFreeRatio` and the same pair for metaspace, explicit or \
        by default (40 and 70); with G1 `G1NewSizePercent` above `G1MaxNewSizePercent`, `MaxGCPauseMillis` not below \
        `GCPauseIntervalMillis`, up to JDK 17 `ConcGCThreads` above `ParallelGCThreads`; on JDK 8 `InitialTenuringThreshold` \
        above `MaxTenuringThreshold`.",
    remedy: "Decide which of the two is intended. If unknown, keep the bound and set the smaller size to it.",
    wrong: "Argument files that override a value are not read.",
    sources: "HotSpot `share/gc/shared/gcArguments.cpp`, `genArguments.cpp`; tested on the JVMs in the tables.",
    judge: sizes_contradict,
};

/// Two flags of which the first may not be more than the second.
struct Ordered {
    small: &'static str,
    large: &'static str,
    /// Where it is, the JVM does not start.
    stops: bool,
    /// They may not be the same either.
    strict: bool,
    /// What they are where they are not given, if the JVM looks at them then.
    defaults: Option<(f64, f64)>,
    /// The collector that looks at them; any where there is none.
    of: Option<Collector>,
    /// Parallel looks at their defaults too.
    any_collector: bool,
    /// The last release that minds.
    until: Release,
}

impl Ordered {
    const fn new(small: &'static str, large: &'static str, stops: bool) -> Self {
        Self {
            small,
            large,
            stops,
            strict: false,
            defaults: None,
            of: None,
            any_collector: false,
            until: Release(u8::MAX),
        }
    }

    const fn of_g1(self) -> Self {
        Self {
            of: Some(Collector::G1),
            ..self
        }
    }
}

/// Tried on the JVMs of the tables.
const ORDERED: &[Ordered] = &[
    Ordered::new("InitialHeapSize", "MaxHeapSize", true),
    Ordered::new("MinHeapSize", "MaxHeapSize", true),
    Ordered::new("SoftMaxHeapSize", "MaxHeapSize", true),
    Ordered::new("NewSize", "MaxNewSize", false),
    Ordered::new("MetaspaceSize", "MaxMetaspaceSize", false),
    Ordered {
        defaults: Some((40.0, 70.0)),
        ..Ordered::new("MinHeapFreeRatio", "MaxHeapFreeRatio", true)
    },
    Ordered {
        defaults: Some((40.0, 70.0)),
        any_collector: true,
        ..Ordered::new("MinMetaspaceFreeRatio", "MaxMetaspaceFreeRatio", true)
    },
    Ordered::new("InitialRAMPercentage", "MaxRAMPercentage", false),
    Ordered {
        defaults: Some((5.0, 60.0)),
        ..Ordered::new("G1NewSizePercent", "G1MaxNewSizePercent", true).of_g1()
    },
    Ordered {
        strict: true,
        ..Ordered::new("MaxGCPauseMillis", "GCPauseIntervalMillis", true).of_g1()
    },
    Ordered {
        until: Release(17),
        ..Ordered::new("ConcGCThreads", "ParallelGCThreads", true).of_g1()
    },
    Ordered {
        until: Release(8),
        ..Ordered::new("InitialTenuringThreshold", "MaxTenuringThreshold", true)
    },
];

fn sizes_contradict(case: &Case) -> Vec<Finding> {
    let line = &case.line;
    let mut findings = Vec::new();
    let (collector, _) = case.collector();
    for pair in ORDERED {
        let minds = pair.of.is_none_or(|of| of == collector) && case.release <= pair.until;
        let given = (line.given(pair.small), line.given(pair.large));
        if !minds || (given.0.is_none() && given.1.is_none()) {
            continue;
        }
        // From JDK 11 on Parallel sets both of the ratios that it is not given.
        let sets_both =
            collector == Collector::Parallel && case.release > Release(8) && !pair.any_collector;
        let defaults = pair.defaults.filter(|_| !sets_both).unzip();
        let value = |name: &str, default: Option<f64>| {
            let whole = line.number(name).map(|number| number as f64);
            let written = whole.or_else(|| line.decimal(name));
            written.or(default.filter(|_| line.given(name).is_none()))
        };
        let (Some(less), Some(more)) =
            (value(pair.small, defaults.0), value(pair.large, defaults.1))
        else {
            continue;
        };
        if less < more || less.total_cmp(&more).is_eq() && !pair.strict {
            continue;
        }
        let describe = |given: Option<&Given>, name: &str, value: f64| match given {
            Some(given) => given.written.clone(),
            None => format!("{name} ({value} by default)"),
        };
        let then = if pair.stops {
            "refuses to start"
        } else {
            "ignores one of them"
        };
        let than = if pair.strict {
            "not less than"
        } else {
            "greater than"
        };
        let first = describe(given.0, pair.small, less);
        let second = describe(given.1, pair.large, more);
        let sentence = format!("{first} is {than} {second}: {} {then}", case.release);
        let Some(at) = given.0.or(given.1) else {
            continue;
        };
        let (severity, effect) = if pair.stops {
            (Grade::High, "the JVM starts")
        } else {
            let effect = "both sizes take effect, and neither is ignored";
            (Grade::Medium, effect)
        };
        let mut finding = act(at, sentence)
            .severity(severity)
            .confidence(Grade::High)
            .expect(effect);
        // The upper bound is what people mean when they size a machine.
        let bound = match given {
            (Some(_), Some(second)) => second.written[value_at(&second.written)..].to_owned(),
            (Some(_), None) => more.to_string(),
            (None, _) => less.to_string(),
        };
        let in_percent = !at.written.starts_with("-Xm") || !at.written.contains('f');
        if !pair.strict && in_percent {
            let (head, _) = at.written.split_at(value_at(&at.written));
            finding = instead(finding, at, format!("{head}{bound}"));
        }
        findings.push(match given {
            (Some(_), Some(second)) => cite(finding, second),
            _ => finding,
        });
    }
    let young = line.number("NewSize").or_else(|| line.number("MaxNewSize"));
    if let (Some(young), Some(heap), Some(given), Some(whole)) = (
        young,
        line.number("MaxHeapSize"),
        line.given("NewSize").or_else(|| line.given("MaxNewSize")),
        line.given("MaxHeapSize"),
    ) && young >= heap
    {
        let sentence = format!(
            "{} leaves no old generation in {}: the JVM shrinks the young generation",
            given.written, whole.written
        );
        // What the JVM takes where nobody says: NewRatio=2.
        let third = format!("-Xmn{}m", (heap / 3 / (1024 * 1024)).max(1));
        let finding = act(given, sentence)
            .confidence(Grade::High)
            .expect("an old generation of two thirds of the heap, the default");
        findings.push(cite(instead(finding, given, third), whole));
    }
    or_clear(findings, "no sizes contradict each other")
}

/// Where the value of an option begins: behind `=`, or behind `-Xms`.
fn value_at(written: &str) -> usize {
    written.find('=').map_or("-Xms".len(), |at| at + 1)
}

pub(super) const WITHOUT_EFFECT: OptionRule = OptionRule {
    id: "jvm-flag-without-effect",
    summary: "A flag without effect: another option overrides it, or one that it needs is missing",
    looks_for: "`ExplicitGCInvokesConcurrent` with `DisableExplicitGC` (no explicit collection is left to run concurrently), \
        `MaxRAMPercentage` with `-Xmx`, `InitialRAMPercentage` with `-Xms`, `NewRatio` with `-Xmn`, `HeapDumpPath` without \
        `HeapDumpOnOutOfMemoryError`, JDK 8 log rotation without `-Xloggc`, `UseStringDeduplication` with a collector that does \
        not support it, compressed object pointers with ZGC.",
    remedy: "Remove one of the two, or add the missing option.",
    wrong: "Some such flags are kept on purpose, for when the other option is removed.",
    sources: "HotSpot `share/runtime/arguments.cpp` (`set_heap_size`), `share/gc/shared/gcCause.hpp`; JEP 192 (string \
        deduplication, G1), JDK 18 release notes (ZGC, Parallel, Serial); ZGC has no compressed object pointers (JEP 333).",
    judge: without_effect,
};

fn without_effect(case: &Case) -> Vec<Finding> {
    let line = &case.line;
    let (collector, _) = case.collector();
    let mut findings = Vec::new();
    let mut useless = |flag: &str, by: Option<&Given>, why: &str| {
        if let Some(given) = line.given(flag) {
            let finding = watch(given, format!("{} does nothing: {why}", given.written));
            let finding = instead(finding.confidence(Grade::High), given, TAKE_OUT);
            findings.push(match by {
                Some(by) => cite(finding, by),
                None => finding,
            });
        }
    };
    if line.is_on("DisableExplicitGC") {
        for flag in [
            "ExplicitGCInvokesConcurrent",
            "ExplicitGCInvokesConcurrentAndUnloadsClasses",
        ] {
            if line.is_on(flag) {
                let why = "DisableExplicitGC leaves no explicit collection to run concurrently";
                useless(flag, line.given("DisableExplicitGC"), why);
            }
        }
    }
    for (flag, by) in [
        ("MaxRAMPercentage", "MaxHeapSize"),
        ("MaxRAMFraction", "MaxHeapSize"),
        ("InitialRAMPercentage", "InitialHeapSize"),
        ("InitialRAMFraction", "InitialHeapSize"),
    ] {
        if let Some(other) = line.given(by) {
            useless(flag, Some(other), "the size is set in bytes");
        }
    }
    if let Some(fixed) = line
        .given("NewSize")
        .filter(|_| line.number("MaxNewSize").is_some())
    {
        useless(
            "NewRatio",
            Some(fixed),
            "the young generation has a size in bytes",
        );
    }
    if line.switch("HeapDumpOnOutOfMemoryError") != Some(true) {
        useless("HeapDumpPath", None, "HeapDumpOnOutOfMemoryError is not on");
    }
    if case.release <= Release(8) && line.option("-Xloggc:").is_none() {
        for flag in [
            "UseGCLogFileRotation",
            "NumberOfGCLogFiles",
            "GCLogFileSize",
        ] {
            useless(flag, None, "there is no -Xloggc file to rotate");
        }
    }
    let dedup = match collector {
        Collector::G1 | Collector::Shenandoah => true,
        Collector::Z | Collector::Parallel | Collector::Serial => case.release >= Release(18),
        Collector::Cms | Collector::ParNew | Collector::Epsilon => false,
    };
    if line.is_on("UseStringDeduplication") && !dedup {
        useless(
            "UseStringDeduplication",
            None,
            &format!("{collector} does not support it on {}", case.release),
        );
    }
    if collector == Collector::Z && line.is_on("UseCompressedOops") {
        useless(
            "UseCompressedOops",
            None,
            "ZGC has no compressed object pointers",
        );
    }
    or_clear(
        findings,
        "every flag that depends on another option has an effect",
    )
}

pub(super) const OVERRIDDEN: OptionRule = OptionRule {
    id: "jvm-flag-given-twice",
    summary: "An option that a later one overrides",
    looks_for: "Flags that are set more than once. HotSpot silently uses the last one.",
    remedy: "Keep one. If the values differ, find out which one was intended: scripts and `JAVA_TOOL_OPTIONS` add options.",
    wrong: "Start scripts append defaults and overrides on purpose.",
    sources: "HotSpot reads options in this order: `JAVA_TOOL_OPTIONS`, command line, `_JAVA_OPTIONS`.",
    judge: overridden,
};

fn overridden(case: &Case) -> Vec<Finding> {
    let options = &case.line.options;
    let mut findings = Vec::new();
    for (at, given) in options.iter().enumerate() {
        for setting in &given.sets {
            let list = case
                .table()
                .find(&setting.name)
                .is_some_and(|flag| flag.value == Type::List);
            let later = options[at + 1..].iter().find_map(|later| {
                let same = later.sets.iter().find(|other| other.name == setting.name)?;
                Some((later, same))
            });
            let Some((later, same)) = later.filter(|_| !list) else {
                continue;
            };
            let equal =
                same == setting || (same.number().is_some() && same.number() == setting.number());
            let finding = if equal {
                watch(given, format!("{} is given twice", given.written)).severity(Grade::Low)
            } else {
                let from = format!("{} ({})", later.written, later.origin);
                watch(
                    given,
                    format!("{} has no effect: {from} overrides it", given.written),
                )
            };
            let finding = instead(
                cite(finding.confidence(Grade::High), later),
                given,
                TAKE_OUT,
            );
            findings.push(finding);
            // `-Xmn` sets two flags and is reported once.
            break;
        }
    }
    or_clear(findings, "no option is given twice")
}

pub(super) const REDUNDANT: OptionRule = OptionRule {
    id: "jvm-flag-is-the-default",
    summary: "A flag that repeats the default",
    looks_for: "Flags set to the default of this JDK. Defaults that the JVM chooses at startup, from the machine or the \
        collector, are not compared.",
    remedy: "Remove it, unless it is there to pin the value against a change of the default.",
    wrong: "Some teams write defaults down on purpose.",
    sources: "The tables in `crates/jvm/data`, `-XX:+PrintFlagsInitial`.",
    judge: redundant,
};

fn redundant(case: &Case) -> Vec<Finding> {
    let mut findings = Vec::new();
    // JDK 8 prints into the log what it decided itself: nobody wrote that.
    let written = case
        .line
        .options
        .iter()
        .filter(|given| given.origin != Origin::Log);
    for given in written.filter(|given| given.is_flag()) {
        let Some(setting) = given.sets.first() else {
            continue;
        };
        let Some(flag) = case.table().find(&setting.name) else {
            continue;
        };
        let Default::Constant(default) = flag.default else {
            continue;
        };
        let equal = match (flag.value, setting.switch()) {
            (Type::Switch, Some(on)) => default == if on { "true" } else { "false" },
            (Type::Signed(_) | Type::Unsigned(_), None) => {
                setting.text() == default
                    || (setting.number().is_some() && setting.number() == flag.default_number())
            }
            (Type::Double, None) => setting.text().parse::<f64>().ok() == default.parse().ok(),
            _ => false,
        };
        // Unlocking is off by default and shown as such, and `-` of it is rare enough to be reported.
        if equal && flag.is_alive() {
            let sentence = format!("{} is the default of {}", given.written, case.release);
            let finding = watch(given, sentence)
                .severity(Grade::Low)
                .confidence(Grade::High);
            findings.push(instead(finding, given, TAKE_OUT));
        }
    }
    or_clear(findings, "no flag repeats a default")
}

#[cfg(test)]
mod tests {
    use rungwise_model::check::Outcome::{self, Act, Clear, Watch};

    use super::super::outcome_of;
    use crate::machine::Machine;

    fn outcome(release: u8, line: &str, rule: &str) -> Outcome {
        outcome_of(release, line, Machine::default(), rule).0
    }

    #[test]
    fn sizes_contradict_only_where_the_smaller_is_larger() {
        let rule = "jvm-sizes-contradict";
        for line in [
            "-Xms2g -Xmx1g",
            "-Xmx1g -Xmn1g",
            "-XX:NewSize=2g -XX:MaxNewSize=1g",
            "-XX:MetaspaceSize=256m -XX:MaxMetaspaceSize=128m",
            "-XX:InitialRAMPercentage=60 -XX:MaxRAMPercentage=50.0",
        ] {
            assert_eq!(outcome(17, line, rule), Act, "{line}");
        }
        for line in [
            "-Xms1g -Xmx1g",
            "-Xmx1g -Xmn1023m",
            "-XX:NewSize=1g -XX:MaxNewSize=1g",
            "-XX:InitialRAMPercentage=50 -XX:MaxRAMPercentage=50.0",
            "-Xms2g",
        ] {
            assert_eq!(outcome(17, line, rule), Clear, "{line}");
        }
    }

    #[test]
    fn a_flag_that_another_one_kills_is_reported() {
        let rule = "jvm-flag-without-effect";
        for (release, line) in [
            (
                17,
                "-XX:+DisableExplicitGC -XX:+ExplicitGCInvokesConcurrent",
            ),
            (17, "-Xmx1g -XX:MaxRAMPercentage=50"),
            (17, "-XX:HeapDumpPath=dumps"),
            (8, "-XX:+UseGCLogFileRotation"),
            (17, "-XX:+UseParallelGC -XX:+UseStringDeduplication"),
            (17, "-Xmn1g -XX:NewRatio=2"),
        ] {
            assert_eq!(outcome(release, line, rule), Watch, "{line}");
        }
        for (release, line) in [
            (
                17,
                "-XX:-DisableExplicitGC -XX:+ExplicitGCInvokesConcurrent",
            ),
            (17, "-Xms1g -XX:MaxRAMPercentage=50"),
            (17, "-XX:HeapDumpPath=dumps -XX:+HeapDumpOnOutOfMemoryError"),
            (8, "-XX:+UseGCLogFileRotation -Xloggc:gc.log"),
            (21, "-XX:+UseParallelGC -XX:+UseStringDeduplication"),
            (17, "-XX:NewSize=1g -XX:NewRatio=2"),
        ] {
            assert_eq!(outcome(release, line, rule), Clear, "{line}");
        }
    }

    #[test]
    fn the_last_one_counts_and_lists_add_up() {
        let rule = "jvm-flag-given-twice";
        let (found, sentences) =
            outcome_of(17, "-Xmx1g -XX:MaxHeapSize=2g", Machine::default(), rule);
        assert_eq!(found, Watch);
        assert!(
            sentences[0].contains("-Xmx1g has no effect"),
            "{}",
            sentences[0]
        );
        let (_, sentences) = outcome_of(17, "-Xmx1g -Xmx1024m", Machine::default(), rule);
        assert!(sentences[0].contains("twice"), "{}", sentences[0]);
        assert_eq!(
            outcome(
                17,
                "-XX:CompileCommand=quiet -XX:CompileCommand=print,a.b",
                rule
            ),
            Clear
        );
        assert_eq!(outcome(17, "-Xmx1g -Xms1g", rule), Clear);
    }

    #[test]
    fn a_default_is_reported_and_what_the_machine_decides_is_not() {
        let rule = "jvm-flag-is-the-default";
        assert_eq!(outcome(17, "-XX:SurvivorRatio=8", rule), Watch);
        assert_eq!(outcome(17, "-XX:SurvivorRatio=7", rule), Clear);
        assert_eq!(outcome(17, "-XX:+UseG1GC", rule), Clear);
        assert_eq!(outcome(17, "-XX:-HeapDumpOnOutOfMemoryError", rule), Watch);
        assert_eq!(outcome(17, "-XX:+HeapDumpOnOutOfMemoryError", rule), Clear);
    }
}
