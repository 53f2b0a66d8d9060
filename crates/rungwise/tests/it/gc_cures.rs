//! Advice of the GC rules, tested by doing: a real JVM has a planted problem, the rule names it and asks for options, a second JVM
//! gets them, and the harm is measured again.
//!
//! The planted service is `testkit/java/GcPlant.java`; its last line holds what it counted itself: latency from the intended start of each
//! request, and collections by the JVM's own beans. Each run is of some seconds, so findings are watches only; the options are the same.

#![expect(clippy::print_stderr, reason = "says what was measured")]

use std::path::{Path, PathBuf};
use std::process::Command;

use rungwise_testkit::skipped;
use serde_json::Value;

/// A planted problem and what shows that it is gone.
struct Cure {
    plant: &'static str,
    release: u32,
    /// Options beside those of the plant.
    options: &'static [&'static str],
    /// Parameters of the plant.
    params: &'static [&'static str],
    /// The rule that asks for options.
    rule: &'static str,
    /// What hurts, in the summary of the log.
    harm: fn(&Value) -> f64,
}

/// Long enough for several old collections of the slowest plant.
const LONG: Cure = Cure {
    plant: "",
    release: 17,
    options: &[],
    params: &["seconds=16"],
    rule: "",
    harm: fulls,
};

const CURES: [Cure; 8] = [
    Cure {
        plant: "jvm-survivor-overflow",
        options: &["-XX:+UseSerialGC"],
        rule: "gc-survivors-small",
        ..LONG
    },
    Cure {
        plant: "jvm-evac-failure",
        params: &["severity=3", "seconds=12"],
        rule: "gc-evacuation-failed",
        harm: |run| trouble(run, "evacuation_failed"),
        ..LONG
    },
    Cure {
        plant: "jvm-cms-late",
        release: 8,
        params: &["severity=3", "seconds=16"],
        rule: "gc-cmf",
        harm: |run| trouble(run, "concurrent_mode_failure") + trouble(run, "promotion_failed"),
        ..LONG
    },
    Cure {
        plant: "jvm-zgc-stall",
        params: &["seconds=5"],
        rule: "gc-stall",
        harm: |run| run["stalls"]["time"]["count"].as_f64().unwrap_or(0.0),
        ..LONG
    },
    Cure {
        plant: "jvm-heap-small",
        params: &["seconds=8"],
        options: &["-XX:+UseG1GC"],
        rule: "gc-live-growth",
        ..LONG
    },
    Cure {
        plant: "jvm-system-gc",
        params: &["seconds=6"],
        options: &["-XX:+UseG1GC"],
        rule: "gc-explicit",
        ..LONG
    },
    // A larger heap, also where regions twice the size of the arrays exist: those make more work.
    Cure {
        plant: "jvm-humongous",
        params: &["size=1.3", "severity=3", "seconds=6"],
        rule: "gc-humongous",
        harm: pauses,
        ..LONG
    },
    Cure {
        plant: "jvm-humongous",
        params: &["size=20", "seconds=4"],
        rule: "gc-humongous",
        harm: pauses,
        ..LONG
    },
];

/// Harm that is distinguished from chance when it is halved.
const ENOUGH: f64 = 4.0;

/// So often a problem is planted before it counts as not to be had here, or as not cured.
const TRIES: usize = 3;

fn fulls(run: &Value) -> f64 {
    let full = &run["pauses"]["by_kind"]["full"]["count"];
    full.as_f64().unwrap_or(0.0)
}

fn pauses(run: &Value) -> f64 {
    run["pauses"]["all"]["count"].as_f64().unwrap_or(0.0)
}

fn trouble(run: &Value, name: &str) -> f64 {
    run["troubles"][name]["count"].as_f64().unwrap_or(0.0)
}

#[test]
fn options_that_a_rule_asks_for_halve_the_harm_of_the_planted_problem() {
    let Some(javac) = program("javac") else {
        skipped("advice of the GC rules: no javac in PATH; cargo xtask test installs one");
        return;
    };
    let folder = tempfile::tempdir().unwrap();
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("../testkit/java/GcPlant.java");
    let compiled = Command::new(javac)
        .args(["--release", "8", "-Xlint:-options", "-d"])
        .arg(folder.path())
        .arg(&source)
        .status()
        .expect("javac runs");
    assert!(compiled.success(), "{} does not compile", source.display());
    let mut offenders = Vec::new();
    for cure in &CURES {
        let Some(java) = program(&format!("java-{}", cure.release)) else {
            skipped(format!(
                "advice for {}: no java-{} in PATH; cargo xtask test provides one",
                cure.plant, cure.release
            ));
            continue;
        };
        if let Err(why) = cure.try_it(&java, folder.path()) {
            offenders.push(why);
        }
    }
    assert!(offenders.is_empty(), "{offenders:#?}");
}

impl Cure {
    fn try_it(&self, java: &Path, folder: &Path) -> Result<(), String> {
        let harm = |report: &Value| (self.harm)(&report["runs"][0]);
        // On a busy machine a plant may hardly allocate, and few events scatter: what one pair leaves open, more pairs decide together.
        let [mut had, mut has] = [0.0; 2];
        let mut seen = Vec::new();
        for _ in 0..TRIES {
            let before = self.run(java, folder, &[]);
            seen.push(harm(&before));
            if harm(&before) < ENOUGH {
                continue;
            }
            let findings = before["findings"].as_array().unwrap();
            let finding = findings.iter().find(|finding| finding["rule"] == self.rule);
            let finding = finding.expect("the rule judges each run");
            let knobs = finding["knobs"].as_array().unwrap();
            let asked: Vec<&str> = knobs
                .iter()
                .filter_map(|knob| knob["to"].as_str())
                .collect();
            let asked = asked.join(" ");
            if asked.is_empty() {
                return Err(format!("{}: asks for nothing: {finding}", self.plant));
            }
            let options: Vec<&str> = asked.split_whitespace().collect();
            let after = self.run(java, folder, &options);
            had += harm(&before);
            has += harm(&after);
            let p99 = |report: &Value| report["runs"][0]["plant"]["p99_ms"].clone();
            eprintln!(
                "{}: with {asked} {has} instead of {had}; p99 {} instead of {} ms",
                self.plant,
                p99(&after),
                p99(&before)
            );
            if has <= had / 2.0 {
                return Ok(());
            }
        }
        if had > 0.0 {
            return Err(format!("{}: its options leave {has} of {had}", self.plant));
        }
        skipped(format!(
            "advice for {}: planted {TRIES} times, it hurt {seen:?} times on this machine",
            self.plant
        ));
        Ok(())
    }

    /// The report of a run with these options added; what the service counted is in it as `plant`.
    fn run(&self, java: &Path, folder: &Path, added: &[&str]) -> Value {
        let log = folder.join("gc.log");
        let _ = std::fs::remove_file(&log);
        let asked = Command::new(java)
            .arg("-cp")
            .arg(folder)
            .args(["GcPlant", "flags", self.plant])
            .args(self.params)
            .output()
            .expect("java runs");
        let flags = String::from_utf8(asked.stdout).unwrap();
        let written = log.display();
        let logging = if self.release == 8 {
            vec![
                format!("-Xloggc:{written}"),
                "-XX:+PrintGCDetails".to_owned(),
                "-XX:+PrintGCTimeStamps".to_owned(),
            ]
        } else {
            vec![format!(
                "-Xlog:gc*,gc+humongous=debug,gc+ergo+ihop=debug:file={written}:time,uptime,level,tags:filecount=0"
            )]
        };
        let ended = Command::new(java)
            .args(self.options)
            .args(flags.split_whitespace())
            .args(added)
            .args(logging)
            .arg("-cp")
            .arg(folder)
            .args(["GcPlant", self.plant])
            .args(self.params)
            .output()
            .expect("java runs");
        assert!(ended.status.success(), "{}: {ended:?}", self.plant);
        let judged = Command::new(env!("CARGO_BIN_EXE_rungwise"))
            .args(["jvm", "gc", "--format", "json"])
            .arg(&log)
            .output()
            .expect("rungwise runs");
        let mut report: Value = serde_json::from_slice(&judged.stdout).expect("a report");
        let printed = String::from_utf8_lossy(&ended.stdout);
        let counted = printed.lines().last().unwrap_or_default();
        report["runs"][0]["plant"] = serde_json::from_str(counted).expect("the service reports");
        report
    }
}

fn program(name: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH")?;
    std::env::split_paths(&path)
        .map(|folder| folder.join(name))
        .find(|file| file.is_file())
}
