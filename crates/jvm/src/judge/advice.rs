//! Advice: options that work as written and still are not what a person in charge of the service wants.

use rungwise_model::check::{Finding, Grade};

use super::{Case, Collector, OptionRule, TAKE_OUT, act, add, clear, instead, watch, watch_all};
use crate::release::Release;

pub(super) const NEVER_PROMOTED: OptionRule = OptionRule {
    id: "jvm-tenuring-threshold-too-high",
    summary: "A tenuring threshold above 15",
    looks_for: "`MaxTenuringThreshold` above 15. An object's age has four bits. JDK 7 accepts any value and never reaches it: \
        nothing is promoted by age, and survivors are copied until their space overflows. JDK 8 refuses to start; JDK 11 and \
        later accept 16, meaning \"never\", and refuse more.",
    remedy: "Set 15 or less. The age table shows whether a high threshold helps (`-Xlog:gc+age=trace`; JDK 8: \
        `-XX:+PrintTenuringDistribution`).",
    wrong: "16 can be intentional, for a service whose objects all die young or fit into the survivor spaces.",
    sources: "HotSpot `markWord.hpp` (`age_bits` = 4); JDK 7 `ageTable.cpp`, `arguments.cpp` (no check); bounds as the JVMs in \
        the tables print and enforce them.",
    judge: never_promoted,
};

fn never_promoted(case: &Case) -> Vec<Finding> {
    /// Four bits.
    const OLDEST: u64 = 15;
    let line = &case.line;
    let (Some(given), Some(age)) = (
        line.given("MaxTenuringThreshold"),
        line.number("MaxTenuringThreshold"),
    ) else {
        return clear("the JVM chooses the tenuring threshold");
    };
    if age <= OLDEST {
        return clear(format!("{age} fits into the four bits of an object's age"));
    }
    let bounds = case
        .table()
        .find("MaxTenuringThreshold")
        .and_then(|flag| flag.bounds);
    let most = bounds
        .and_then(|bounds| bounds.high)
        .unwrap_or(OLDEST as f64);
    let (severity, then) = if case.release < Release(8) {
        (
            Grade::Medium,
            "JDK 7 accepts it and never promotes by age; JDK 8 would refuse to start".to_owned(),
        )
    } else if age as f64 > most {
        (
            Grade::High,
            format!("{} refuses to start; the maximum is {most}", case.release),
        )
    } else {
        (
            Grade::Medium,
            "objects are never promoted by age, only when the survivor space overflows".to_owned(),
        )
    };
    let finding = act(given, format!("{}: {then}", given.written)).severity(severity);
    vec![
        instead(finding, given, "-XX:MaxTenuringThreshold=15")
            .refuted_by("an age table whose oldest age is empty"),
    ]
}

pub(super) const CMS_START_GUESSED: OptionRule = OptionRule {
    id: "cms-start-left-to-guesses",
    summary: "The CMS start fraction applies only to the first cycles",
    looks_for: "`CMSInitiatingOccupancyFraction` without `UseCMSInitiatingOccupancyOnly`: after the first cycles, CMS starts by \
        its own estimate of promotion. A burst makes that start late, and a late start ends in a `concurrent mode failure`.",
    remedy: "Add `-XX:+UseCMSInitiatingOccupancyOnly`.",
    wrong: "Under steady load the estimate is good, and the fraction is only a bound for the start.",
    sources: "HotSpot (JDK 8) `ConcurrentMarkSweepGeneration::should_concurrent_collect`.",
    judge: cms_start_guessed,
};

fn cms_start_guessed(case: &Case) -> Vec<Finding> {
    if case.collector().0 != Collector::Cms {
        return clear("CMS is not in use");
    }
    let line = &case.line;
    let Some(given) = line.given("CMSInitiatingOccupancyFraction") else {
        return clear("no fraction is set; CMS starts by its own estimate");
    };
    if line.is_on("UseCMSInitiatingOccupancyOnly") {
        return clear("CMS always starts at the fraction");
    }
    let sentence = format!(
        "{} applies to the first cycles only: UseCMSInitiatingOccupancyOnly is missing",
        given.written
    );
    let finding = act(given, sentence).confidence(Grade::High);
    vec![
        add(finding, "-XX:+UseCMSInitiatingOccupancyOnly")
            .refuted_by("initial marks in the GC log that all start at the fraction"),
    ]
}

pub(super) const ZGC_OF_ONE_GENERATION: OptionRule = OptionRule {
    id: "zgc-of-one-generation",
    summary: "Single-generation ZGC on a JDK with generational ZGC",
    looks_for: "`UseZGC` on JDK 21 and 22 without `ZGenerational`, and `-XX:-ZGenerational` on 23. Single-generation ZGC marks \
        the whole heap in each cycle; generational ZGC needs less CPU and heap for the same allocation rate.",
    remedy: "Add `-XX:+ZGenerational`. It is the default in JDK 23 and the only mode from JDK 24.",
    wrong: "A service whose objects all live for long gains nothing and pays for the barriers.",
    sources: "JEP 439 (JDK 21), JEP 474 (default, 23), JEP 490 (non-generational mode removed, 24).",
    judge: zgc_of_one_generation,
};

fn zgc_of_one_generation(case: &Case) -> Vec<Finding> {
    let (line, release) = (&case.line, case.release);
    let Some(given) = line
        .given("UseZGC")
        .filter(|_| case.collector().0 == Collector::Z)
    else {
        return clear("ZGC is not in use");
    };
    let generations = line.switch("ZGenerational");
    let one = match release {
        Release(21 | 22) => generations != Some(true),
        Release(23) => generations == Some(false),
        _ => false,
    };
    if !one {
        let which = if release < Release(21) {
            "has only single-generation ZGC"
        } else {
            "runs generational ZGC"
        };
        return clear(format!("{release} {which}"));
    }
    let finding = watch(
        given,
        format!("{release} runs single-generation ZGC; generational ZGC is available"),
    );
    vec![
        add(finding, "-XX:+ZGenerational")
            .refuted_by("CPU time and heap of both modes, measured in pairs under the same load"),
    ]
}

pub(super) const HUGE_PAGES_LATE: OptionRule = OptionRule {
    id: "jvm-huge-pages-at-run-time",
    summary: "Huge pages are allocated while the service runs",
    looks_for: "`UseTransparentHugePages` without `AlwaysPreTouch`: the kernel clears and compacts huge pages when the heap is \
        first touched, during young pauses and allocations.",
    remedy: "Add `-XX:+AlwaysPreTouch` and set `-Xms` equal to `-Xmx`; startup takes longer by the time to touch the heap.",
    wrong: "A heap that soon reaches its full size pays this only in the first minutes.",
    sources: "Linux `Documentation/admin-guide/mm/transhuge.rst` (`defrag`); the ZGC wiki on huge pages.",
    judge: huge_pages_late,
};

fn huge_pages_late(case: &Case) -> Vec<Finding> {
    let line = &case.line;
    let Some(given) = line
        .given("UseTransparentHugePages")
        .filter(|_| line.is_on("UseTransparentHugePages"))
    else {
        return clear("transparent huge pages are not requested");
    };
    if line.is_on("AlwaysPreTouch") {
        return clear("the heap is touched before the service starts");
    }
    let sentence = format!(
        "{} without AlwaysPreTouch: huge pages are allocated during pauses",
        given.written
    );
    let finding = watch(given, sentence).severity(Grade::Low);
    vec![
        add(finding, "-XX:+AlwaysPreTouch")
            .refuted_by("no sys time in the pauses of the first minutes (GC log)"),
    ]
}

pub(super) const GC_LOG_MISSING: OptionRule = OptionRule {
    id: "gc-log-missing",
    summary: "The JVM writes no GC log",
    looks_for: "Neither `-Xlog:gc...` nor `-Xloggc` nor `-XX:+PrintGC...` nor `-verbose:gc`.",
    remedy: "JDK 9 and newer: `-Xlog:gc*,safepoint:file=gc.log:time,uptime,level,tags:filecount=5,filesize=20m`. JDK 8: \
        `-Xloggc:gc.log -XX:+PrintGCDetails -XX:+PrintGCDateStamps` with rotation. The cost is negligible.",
    wrong: "An agent or JFR may record the collections instead.",
    sources: "JEP 271; Oracle, The java Command, \"Enable Logging with the JVM Unified Logging Framework\".",
    judge: gc_log_missing,
};

const LOG: &str = "-Xlog:gc*,safepoint:file=gc.log:time,uptime,level,tags:filecount=5,filesize=20m";

fn gc_log_missing(case: &Case) -> Vec<Finding> {
    let line = &case.line;
    let on = |prefix: &str| line.option(prefix).is_some();
    let unified = line.options.iter().any(|given| {
        let what = given
            .written
            .strip_prefix("-Xlog:")
            .and_then(|rest| rest.split(':').next());
        what.is_some_and(|what| {
            what.split(',').any(|part| {
                let part = part.trim();
                (part.starts_with("gc") || part.starts_with("all") || part.starts_with("safepoint"))
                    && !part.ends_with("=off")
            })
        })
    });
    let printed = line.is_on("PrintGC") || line.is_on("PrintGCDetails");
    if unified
        || printed
        || on("-Xloggc:")
        || on("-verbose:gc")
        || on("-verbosegc")
        || on("-Xlog:all")
    {
        return clear("a GC log is written");
    }
    let finding =
        watch_all("no GC log is written: the cause of the next long pause will be unknown");
    let finding = if case.release <= Release(8) {
        let options = [
            "-Xloggc:gc.log",
            "-XX:+PrintGCDetails",
            "-XX:+PrintGCDateStamps",
        ];
        options
            .iter()
            .fold(finding, |finding, option| add(finding, option))
    } else {
        add(finding, LOG)
    };
    vec![finding.refuted_by("a JFR recording that is kept")]
}

pub(super) const GC_LOG_UNBOUNDED: OptionRule = OptionRule {
    id: "gc-log-unbounded",
    summary: "The JDK 8 GC log grows without limit, and the next start overwrites it",
    looks_for: "`-Xloggc` on JDK 8 without `UseGCLogFileRotation`: the file grows until the disk is full, and a restart \
        overwrites it. Unified logs (JDK 9 and later) rotate by default, 5 files of 20 MB, unless `filecount=0`.",
    remedy: "Add `-XX:+UseGCLogFileRotation -XX:NumberOfGCLogFiles=5 -XX:GCLogFileSize=20m`, and `%t` or `%p` in the name.",
    wrong: "An external tool may rotate it (`copytruncate` leaves NULs, which the parser skips).",
    sources: "JDK 8 `java` options; unified logging: `share/logging/logFileOutput.hpp`.",
    judge: gc_log_unbounded,
};

fn gc_log_unbounded(case: &Case) -> Vec<Finding> {
    let line = &case.line;
    if case.release <= Release(8) {
        let Some(given) = line.option("-Xloggc:") else {
            return clear("no GC log is written to a file");
        };
        if line.is_on("UseGCLogFileRotation") {
            return clear("the GC log is rotated");
        }
        let sentence = format!(
            "{} grows without limit, and the next start overwrites it",
            given.written
        );
        let mut finding = watch(given, sentence).confidence(Grade::High);
        for option in [
            "-XX:+UseGCLogFileRotation",
            "-XX:NumberOfGCLogFiles=5",
            "-XX:GCLogFileSize=20m",
        ] {
            finding = add(finding, option);
        }
        return vec![finding.refuted_by("logrotate or a similar tool rotates the file")];
    }
    let endless = line.options.iter().find(|given| {
        let log = given.written.starts_with("-Xlog:") && given.written.contains(':');
        log && given
            .written
            .split([',', ':'])
            .any(|part| part == "filecount=0")
    });
    match endless {
        Some(given) => {
            let finding = watch(
                given,
                format!(
                    "{} does not rotate: the file grows without limit",
                    given.written
                ),
            );
            let to = given
                .written
                .replace("filecount=0", "filecount=5,filesize=20m");
            vec![
                instead(finding, given, to)
                    .refuted_by("logrotate or a similar tool rotates the file"),
            ]
        }
        None => clear("unified logs rotate automatically"),
    }
}

pub(super) const HEAP_DUMP_MISSING: OptionRule = OptionRule {
    id: "heap-dump-on-oom-missing",
    summary: "An OutOfMemoryError leaves no heap dump",
    looks_for: "`HeapDumpOnOutOfMemoryError` is off.",
    remedy: "Add `-XX:+HeapDumpOnOutOfMemoryError -XX:HeapDumpPath=DIR`; the directory needs room for the whole heap.",
    wrong: "With a very large heap the dump keeps the service down for minutes, and it contains secrets.",
    sources: "HotSpot `share/runtime/globals.hpp`: off by default, manageable at run time.",
    judge: heap_dump_missing,
};

fn heap_dump_missing(case: &Case) -> Vec<Finding> {
    if case.line.is_on("HeapDumpOnOutOfMemoryError") {
        return clear("an OutOfMemoryError leaves a heap dump");
    }
    let finding = watch_all("an OutOfMemoryError leaves no heap dump").severity(Grade::Low);
    let finding = match case.line.given("HeapDumpOnOutOfMemoryError") {
        Some(given) => instead(finding, given, TAKE_OUT),
        None => add(finding, "-XX:+HeapDumpOnOutOfMemoryError"),
    };
    vec![finding.refuted_by("an agent that takes the dump")]
}

#[cfg(test)]
mod tests {
    use rungwise_model::check::Grade;
    use rungwise_model::check::Outcome::{self, Act, Clear, Watch};

    use super::super::{judge, outcome_of};
    use super::*;
    use crate::command_line::CommandLine;
    use crate::machine::Machine;

    fn outcome(release: u8, line: &str, rule: &str) -> Outcome {
        outcome_of(release, line, Machine::default(), rule).0
    }

    #[test]
    fn sixteen_stops_jdk_8_and_means_never_later() {
        let rule = "jvm-tenuring-threshold-too-high";
        let severity = |release, age| {
            let case = Case {
                release: Release(release),
                update: None,
                line: CommandLine::parse(&format!("-XX:MaxTenuringThreshold={age}")),
                machine: Machine::default(),
            };
            let found = judge(&case)
                .into_iter()
                .find(|finding| finding.rule == rule)
                .unwrap();
            (found.outcome, found.severity)
        };
        assert_eq!(severity(8, 16), (Act, Grade::High));
        assert_eq!(severity(17, 16), (Act, Grade::Medium));
        assert_eq!(severity(17, 17), (Act, Grade::High));
        assert_eq!(severity(17, 15).0, Clear);
    }

    #[test]
    fn the_fraction_of_cms_needs_its_switch() {
        let rule = "cms-start-left-to-guesses";
        let line = "-XX:+UseConcMarkSweepGC -XX:CMSInitiatingOccupancyFraction=70";
        assert_eq!(outcome(8, line, rule), Act);
        let both = format!("{line} -XX:+UseCMSInitiatingOccupancyOnly");
        assert_eq!(outcome(8, &both, rule), Clear);
        assert_eq!(
            outcome(
                8,
                "-XX:+UseG1GC -XX:CMSInitiatingOccupancyFraction=70",
                rule
            ),
            Clear
        );
    }

    #[test]
    fn zgc_of_one_generation_is_reported_where_there_is_a_choice() {
        let rule = "zgc-of-one-generation";
        assert_eq!(outcome(21, "-XX:+UseZGC", rule), Watch);
        assert_eq!(outcome(21, "-XX:+UseZGC -XX:+ZGenerational", rule), Clear);
        assert_eq!(outcome(17, "-XX:+UseZGC", rule), Clear);
        assert_eq!(outcome(25, "-XX:+UseZGC", rule), Clear);
    }

    #[test]
    fn huge_pages_want_to_be_touched_early() {
        let rule = "jvm-huge-pages-at-run-time";
        assert_eq!(outcome(17, "-XX:+UseTransparentHugePages", rule), Watch);
        assert_eq!(
            outcome(17, "-XX:+UseTransparentHugePages -XX:+AlwaysPreTouch", rule),
            Clear
        );
        assert_eq!(outcome(17, "-XX:-UseTransparentHugePages", rule), Clear);
    }

    #[test]
    fn a_gc_log_is_seen_in_all_its_forms() {
        let rule = "gc-log-missing";
        for (release, line) in [
            (17, "-Xlog:gc*:file=gc.log"),
            (17, "-Xlog:safepoint,gc+age=trace"),
            (8, "-Xloggc:gc.log"),
            (8, "-XX:+PrintGCDetails"),
            (17, "-verbose:gc"),
        ] {
            assert_eq!(outcome(release, line, rule), Clear, "{line}");
        }
        for line in [
            "-Xlog:class+load",
            "-Xlog:gc=off",
            "-XX:-PrintGC",
            "-Xlog:disable",
        ] {
            assert_eq!(outcome(17, line, rule), Watch, "{line}");
        }
    }

    #[test]
    fn an_endless_gc_log_is_reported() {
        let rule = "gc-log-unbounded";
        assert_eq!(outcome(8, "-Xloggc:gc.log", rule), Watch);
        assert_eq!(
            outcome(8, "-Xloggc:gc.log -XX:+UseGCLogFileRotation", rule),
            Clear
        );
        assert_eq!(
            outcome(17, "-Xlog:gc:file=gc.log::filecount=0", rule),
            Watch
        );
        assert_eq!(
            outcome(17, "-Xlog:gc:file=gc.log::filecount=3", rule),
            Clear
        );
        assert_eq!(outcome(17, "-Xloggc:gc.log", rule), Clear);
    }

    #[test]
    fn a_heap_dump_that_is_off_is_reported() {
        let rule = "heap-dump-on-oom-missing";
        assert_eq!(outcome(17, "-XX:-HeapDumpOnOutOfMemoryError", rule), Watch);
        assert_eq!(outcome(17, "-XX:+HeapDumpOnOutOfMemoryError", rule), Clear);
    }
}
