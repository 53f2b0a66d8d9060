//! What the tables and judgements say, held against the JVMs that are on this machine.
//!
//! JVMs are looked for as `java-8` to `java-25` in PATH, where `cargo xtask test` puts them, in `RUNGWISE_JVMS` (homes, `:`
//! between them) and in `/usr/lib/jvm`. A release that is not there is said aloud: its table is then only as good as the day
//! on which it was made.
#![expect(
    clippy::disallowed_methods,
    clippy::unwrap_used,
    reason = "looks for JVMs and starts them; the crate itself does none of it"
)]

mod book;
mod lines;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Once;

use rungwise_jvm::{
    Case, CommandLine, Default, Flag, Kind, Machine, Release, Type, judge, migrate,
};
use rungwise_model::check::{Grade, Outcome};
use rungwise_testkit::skipped;

/// A contradiction that ends a JVM after it has read its flags, and the words by which it says so.
const END: [&str; 2] = ["-Xms2g", "-Xmx1g"];
const ENDED: &str = "Initial heap size set to a larger value than the maximum heap size";

/// Options on which JDKs differ, and slips.
const SAMPLE: &[&str] = &[
    "-XX:+UseConcMarkSweepGC",
    "-XX:+UseParNewGC",
    "-XX:+UseParallelOldGC",
    "-XX:+UseZGC",
    "-XX:+UseEpsilonGC",
    "-XX:MaxPermSize=64m",
    "-XX:PermSize=64m",
    "-XX:+UseBiasedLocking",
    "-XX:+AggressiveOpts",
    "-XX:+PrintGCDateStamps",
    "-XX:+PrintTenuringDistribution",
    "-XX:+UseGCLogFileRotation",
    "-XX:MaxTenuringThreshold=15",
    "-XX:MaxTenuringThreshold=16",
    "-XX:MaxTenuringThreshold=17",
    "-XX:MaxHeapFreeRatio=101",
    "-XX:MaxGCPauseMillis=abc",
    "-XX:MaxGCPauseMilis=100",
    "-XX:+MaxGCPauseMillis",
    "-XX:UseG1GC=1",
    "-XX:G1NewSizePercent=10",
    "-XX:+PrintNMethods",
    "-XX:MaxRAMFraction=2",
    "-XX:MaxRAMPercentage=50",
    "-XX:MaxRAMPercentage=50.0",
    "-XX:MaxRAMPercentage=101",
    "-XX:MaxRAMPercentage=1e1",
    "-XX:+ZGenerational",
    "-XX:+UseCompactObjectHeaders",
    "-XX:+TraceClassLoading",
    "-XX:+UseSharedSpaces",
    "-Xincgc",
    "-Xlog:gc",
    "-d64",
    "-Xcomp",
    "-Xprof",
    "-Xverify:none",
];

/// Command lines of services on JDK 8.
const OF_JDK_8: &[&str] = &[
    "-Xms256m -Xmx256m -Xmn96m -XX:PermSize=64m -XX:MaxPermSize=128m -XX:+UseConcMarkSweepGC -XX:+UseParNewGC \
     -XX:CMSInitiatingOccupancyFraction=70 -XX:+UseCMSInitiatingOccupancyOnly -XX:+CMSScavengeBeforeRemark \
     -XX:+CMSParallelRemarkEnabled -XX:+CMSClassUnloadingEnabled -XX:MaxTenuringThreshold=6 -XX:SurvivorRatio=8 \
     -XX:+PrintGCDetails -XX:+PrintGCDateStamps -XX:+PrintTenuringDistribution -XX:+PrintGCApplicationStoppedTime \
     -XX:+PrintHeapAtGC -XX:+PrintReferenceGC -XX:PrintFLSStatistics=1 -Xloggc:/dev/null",
    "-Xmx256m -XX:+UseParallelGC -XX:+UseParallelOldGC -XX:ParallelGCThreads=2 -XX:+UseAdaptiveSizePolicy \
     -XX:+PrintAdaptiveSizePolicy -XX:+AggressiveOpts -XX:+UseBiasedLocking -XX:BiasedLockingStartupDelay=0",
    "-XX:MaxRAMFraction=2 -XX:+UnlockExperimentalVMOptions -XX:+UseCGroupMemoryLimitForHeap -XX:+UseG1GC \
     -XX:MaxGCPauseMillis=100 -XX:G1NewSizePercent=10 -XX:+UseStringDeduplication -XX:+ExplicitGCInvokesConcurrent \
     -XX:+TraceClassLoading -verbose:gc",
    "-server -d64 -Xincgc -Xmx256m -XX:+UnlockCommercialFeatures -XX:+UseFastAccessorMethods -Xverify:none",
];

/// Each test asks for the JVMs, and once is enough to say which are missing. Of JDK 7 there is none to be had.
static SAID: Once = Once::new();

/// JVMs of the releases that have a table.
fn jvms() -> BTreeMap<Release, PathBuf> {
    let named = std::env::var_os("RUNGWISE_JVMS").unwrap_or_default();
    let mut homes: Vec<PathBuf> = std::env::split_paths(&named).collect();
    if let Ok(entries) = std::fs::read_dir("/usr/lib/jvm") {
        homes.extend(entries.filter_map(|entry| Some(entry.ok()?.path())));
    }
    let path = std::env::var_os("PATH").unwrap_or_default();
    let programs = Release::known().flat_map(|release| {
        let folders: Vec<PathBuf> = std::env::split_paths(&path).collect();
        let program = format!("java-{}", release.0);
        folders.into_iter().map(move |folder| folder.join(&program))
    });
    let homes = homes.iter().map(|home| home.join("bin/java"));
    let mut found = BTreeMap::new();
    for java in programs.chain(homes).filter(|java| java.exists()) {
        let output = run(&java, &["-version"]);
        let version = output.split('"').nth(1).and_then(Release::parse);
        if let Some(release) = version.filter(|release| release.is_known()) {
            found.entry(release).or_insert(java);
        }
    }
    SAID.call_once(|| {
        for release in Release::known().filter(|release| !found.contains_key(release)) {
            skipped(format_args!(
                "the table of {release}: no JVM of it in PATH, RUNGWISE_JVMS or /usr/lib/jvm to hold it against"
            ));
        }
    });
    found
}

fn run(java: &Path, arguments: &[&str]) -> String {
    let output = Command::new(java)
        .args(arguments)
        .env_remove("JAVA_TOOL_OPTIONS")
        .env_remove("_JAVA_OPTIONS")
        .env_remove("JDK_JAVA_OPTIONS")
        .current_dir(std::env::temp_dir())
        .output()
        .unwrap();
    String::from_utf8_lossy(&[output.stderr, output.stdout].concat()).into_owned()
}

/// What our judgements say of an option: the JVM does not start; it starts and complains; nothing.
fn ours(release: Release, option: &str) -> &'static str {
    let case = Case {
        release,
        update: None,
        line: CommandLine::parse(option),
        machine: Machine::default(),
    };
    let about = [
        "jvm-flag-removed",
        "jvm-flag-unknown",
        "jvm-flag-locked",
        "jvm-flag-wrong-value",
        "jvm-tenuring-threshold-too-high",
    ];
    let findings = judge(&case);
    let found = |rules: &[&str], outcome, severity| {
        findings.iter().any(|finding| {
            rules.contains(&finding.rule.as_str())
                && finding.outcome == outcome
                && finding.severity >= severity
        })
    };
    if found(&about, Outcome::Act, Grade::High) {
        "refused"
    } else if found(&["jvm-flag-ignored"], Outcome::Act, Grade::Low) {
        "ignored"
    } else if found(&["jvm-flag-deprecated"], Outcome::Watch, Grade::Low) {
        "deprecated"
    } else {
        "taken"
    }
}

/// What the JVM says of it.
fn theirs(java: &Path, option: &str) -> &'static str {
    let output = run(java, &[option, END[0], END[1], "-version"]);
    if !output.contains(ENDED) {
        "refused"
    } else if output.contains("gnoring option") {
        "ignored"
    } else if output.contains("deprecated") {
        "deprecated"
    } else {
        "taken"
    }
}

fn offenders(
    java: &Path,
    release: Release,
    options: impl IntoIterator<Item = String>,
) -> Vec<String> {
    let mut offenders = Vec::new();
    for option in options {
        let (we, it) = (ours(release, &option), theirs(java, &option));
        if we != it {
            offenders.push(format!("{release} {option}: we say {we}, the JVM {it}"));
        }
    }
    offenders
}

#[test]
fn what_we_say_of_an_option_is_what_the_jvm_does() {
    for (release, java) in jvms() {
        let wrong = offenders(
            &java,
            release,
            SAMPLE.iter().map(|&option| option.to_owned()),
        );
        assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    }
}

/// What JVMs check after they have read their flags, each beside what they take.
const CHECKED_LATE: &[&str] = &[
    "-XX:SurvivorRatio=0 -XX:+UseSerialGC",
    "-XX:SurvivorRatio=1 -XX:+UseSerialGC",
    "-XX:NewRatio=0 -XX:+UseParallelGC",
    "-XX:NewRatio=1 -XX:+UseParallelGC",
    "-XX:ParallelGCThreads=0 -XX:+UseParallelGC",
    "-XX:ParallelGCThreads=0 -XX:+UseSerialGC",
    "-XX:MaxGCPauseMillis=0 -XX:+UseG1GC",
    "-XX:GCPauseIntervalMillis=300 -XX:+UseG1GC",
    "-XX:GCPauseIntervalMillis=300 -XX:MaxGCPauseMillis=100 -XX:+UseG1GC",
    "-XX:CICompilerCount=1",
    "-XX:CICompilerCount=1 -XX:TieredStopAtLevel=1",
    "-XX:ObjectAlignmentInBytes=24",
    "-XX:ReservedCodeCacheSize=1m",
    "-XX:ReservedCodeCacheSize=3g",
    "-Xmx1m",
];

#[test]
fn what_we_say_of_a_line_is_what_the_whole_start_shows() {
    for (release, java) in jvms() {
        for line in CHECKED_LATE {
            let options: Vec<&str> = line.split(' ').chain(["-version"]).collect();
            let output = run(&java, &options);
            // Its last line names the machine that it is: `OpenJDK 64-Bit Server VM (build 25.0.3+9, mixed mode)`.
            let starts = output.contains("(build ");
            let refused = ours(release, line) == "refused";
            assert_eq!(refused, !starts, "{release} {line}: {output}");
        }
    }
}

/// Tags of `-Xlog`, each with the releases that have it.
const LOG_TAGS: &str = include_str!("../../data/log-tags.txt");

#[test]
fn the_tags_of_xlog_are_those_that_the_jvm_lists() {
    for (release, java) in jvms() {
        if release < Release(9) {
            continue;
        }
        let output = run(&java, &["-Xlog:help"]);
        let (_, list) = output.split_once("Available log tags:").unwrap();
        let theirs: Vec<&str> = list
            .trim_start()
            .lines()
            .next()
            .unwrap()
            .split(", ")
            .collect();
        let number = release.0.to_string();
        let ours: Vec<&str> = LOG_TAGS
            .lines()
            .filter(|line| !line.starts_with('#'))
            .filter_map(|line| line.split_once(' '))
            .filter(|(_, releases)| releases.split(' ').any(|has| has == number))
            .map(|(tag, _)| tag)
            .collect();
        assert_eq!(ours, theirs, "{release}");
    }
}

/// Every so many names of the tables of the other JDKs are asked of a JVM.
const EVERY: usize = 29;

#[test]
fn names_of_other_jdks_are_judged_as_the_jvm_does() {
    for (release, java) in jvms() {
        let mut names: Vec<&Flag> = Release::known()
            .flat_map(|other| other.table().flags())
            .collect();
        names.retain(|flag| matches!(flag.value, Type::Switch) && flag.kind == Kind::Product);
        names.sort_by_key(|flag| flag.name);
        names.dedup_by_key(|flag| flag.name);
        // What such a flag does at once, or which flags it needs, is another question.
        let meddling = ["Print", "Use", "Dump", "Pause", "Xlog"];
        names.retain(|flag| !meddling.iter().any(|start| flag.name.starts_with(start)));
        let options = names
            .iter()
            .step_by(EVERY / 6)
            .map(|flag| format!("-XX:-{}", flag.name));
        let wrong = offenders(&java, release, options);
        assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    }
}

#[test]
fn constant_defaults_are_those_of_the_jvm() {
    for (release, java) in jvms() {
        let output = run(&java, &["-XX:+PrintFlagsInitial", "-version"]);
        let mut seen = 0;
        let mut wrong = Vec::new();
        for line in output.lines() {
            let Some((head, rest)) = line.split_once('=') else {
                continue;
            };
            let name = head
                .trim()
                .trim_end_matches(':')
                .split_whitespace()
                .nth(1)
                .unwrap_or_default();
            let value = rest.split('{').next().unwrap_or_default().trim();
            if let Some(flag) = release.table().find(name)
                && let Default::Constant(default) = flag.default
            {
                seen += 1;
                if default != value {
                    wrong.push(format!(
                        "{release} {name}: {default} in the table, {value} here"
                    ));
                }
            }
        }
        assert!(seen > 300, "{release}: {seen} flags");
        // Another update of the release may differ in a flag or two.
        assert!(wrong.len() <= 3, "{}", wrong.join("\n"));
    }
}

#[test]
fn a_command_line_of_jdk_8_starts_on_newer_jdks_without_a_complaint() {
    for (release, java) in jvms()
        .into_iter()
        .filter(|(release, _)| *release > Release(11))
    {
        for text in OF_JDK_8 {
            let line = CommandLine::parse(text);
            let new = migrate::migrate(&line, Release(8), release).line;
            let words: Vec<&str> = new
                .options
                .iter()
                .map(|given| given.written.as_str())
                .collect();
            let output = run(&java, &[&words[..], &["-version"]].concat());
            let complaint = output.lines().find(|line| {
                let complains = [
                    "warning:",
                    "[warning]",
                    "Unrecognized",
                    "gnoring option",
                    "Error: ",
                ];
                complains.iter().any(|word| line.contains(word))
            });
            assert!(output.contains("version \""), "{release}: {new}\n{output}");
            assert_eq!(complaint, None, "{release}: {new}");
        }
    }
}
