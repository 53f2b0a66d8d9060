//! Advice of the GC rules, tested by doing: a real JVM has a planted problem, the rule names it and asks for options, a second JVM
//! gets them, and the harm is measured again.
//!
//! The planted service is `testkit/java/GcPlant.java`; its last line holds what it counted itself: latency from the intended start of each
//! request, and collections by the JVM's own beans. Each run is of some seconds, so findings are watches only; the options are the same.

#![expect(clippy::print_stderr, reason = "says what was measured")]

use std::os::unix::process::ExitStatusExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use rungwise_testkit::{program, remove_group, skipped};
use serde_json::Value;

use crate::run::Bench;

/// A planted problem and what shows that it is gone.
struct Cure {
    plant: &'static str,
    release: u32,
    /// Options beside those of the plant.
    options: &'static [&'static str],
    /// Parameters of the plant.
    params: &'static [&'static str],
    /// The longest acceptable pause, where the default is far above what a small heap needs.
    slo: &'static str,
    /// MiB that the control group of the JVM may take; 0 for no group.
    memory: u32,
    /// The rule that asks for options.
    rule: &'static str,
    /// What hurts, in the summary of the log.
    harm: fn(&Value) -> f64,
}

const G1: &[&str] = &["-XX:+UseG1GC"];
const SERIAL: &[&str] = &["-XX:+UseSerialGC"];
const PARALLEL: &[&str] = &["-XX:+UseParallelGC"];
const CMS: &[&str] = &["-XX:+UseConcMarkSweepGC"];

const BASE: Cure = Cure {
    plant: "",
    release: 17,
    options: &[],
    params: &[],
    slo: "",
    memory: 0,
    rule: "",
    harm: fulls,
};

const SURVIVORS: Cure = Cure {
    plant: "jvm-survivor-overflow",
    params: &["seconds=10"],
    options: SERIAL,
    rule: "gc-survivors-small",
    ..BASE
};

/// Objects that die soon after are promoted at age 1.
const TENURING: Cure = Cure {
    plant: "jvm-tenuring-low",
    params: &["churn=40", "keep=0.16", "heap=160", "seconds=7"],
    options: SERIAL,
    rule: "gc-premature-promotion",
    harm: |run| run["promotion"]["rate"]["bytes"].as_f64().unwrap_or(0.0) / 1e6,
    ..BASE
};

/// Objects that stay are copied in 15 young collections.
const COPIED: Cure = Cure {
    params: &[
        "severity=0",
        "threshold=15",
        "churn=8",
        "keep=5",
        "young=96",
        "heap=200",
        "seconds=5",
    ],
    slo: "2ms",
    rule: "gc-young-long",
    harm: copied_mib,
    ..TENURING
};

const FREQUENT: Cure = Cure {
    plant: "jvm-young-small",
    params: &["severity=3", "alloc=350", "seconds=3"],
    options: SERIAL,
    rule: "gc-young-frequent",
    harm: pauses,
    ..BASE
};

const REMARK: Cure = Cure {
    plant: "jvm-remark-long",
    release: 8,
    params: &["seconds=7"],
    slo: "20ms",
    rule: "gc-remark-long",
    harm: |run| of_kind(run, "remark", "total_ms"),
    ..BASE
};

const BIASED: Cure = Cure {
    plant: "jvm-biased-locks",
    release: 11,
    params: &["seconds=3"],
    options: SERIAL,
    rule: "gc-safepoints",
    harm: |run| run["safepoints"]["outside_ms"].as_f64().unwrap_or(0.0),
    ..BASE
};

const LATE: Cure = Cure {
    plant: "jvm-g1-late",
    params: &["severity=3", "live=0.4", "alloc=200", "seconds=6"],
    rule: "gc-evacuation-failed",
    harm: |run| trouble(run, "evacuation_failed"),
    ..BASE
};

/// A young generation of fixed size, which G1 cannot shrink.
const FIXED: Cure = Cure {
    plant: "jvm-survivor-overflow",
    release: 8,
    params: &["severity=3", "inflight=40", "seconds=5"],
    options: G1,
    ..LATE
};

const STALLS: Cure = Cure {
    plant: "jvm-zgc-stall",
    params: &["seconds=5"],
    rule: "gc-stall",
    harm: |run| {
        let waits = run["stalls"]["time"]["count"].as_f64().unwrap_or(0.0);
        waits + of_kind(run, "degenerated", "count")
    },
    ..BASE
};

const KILLED: Cure = Cure {
    plant: "jvm-container-heap",
    params: &[
        "heap=256",
        "live=0.1",
        "fill=2",
        "inflight=25",
        "alloc=150",
        "seconds=4",
    ],
    options: SERIAL,
    memory: 170,
    rule: "gc-heap-exceeds-memory",
    // Any number that counts as harm.
    harm: |run| {
        if run["plant"]["killed"] == true {
            ENOUGH
        } else {
            0.0
        }
    },
    ..BASE
};

const EXPLICIT: Cure = Cure {
    plant: "jvm-system-gc",
    params: &["seconds=5"],
    options: G1,
    rule: "gc-explicit",
    ..BASE
};

const SMALL: Cure = Cure {
    plant: "jvm-heap-small",
    params: &["seconds=5"],
    options: G1,
    rule: "gc-live-growth",
    ..BASE
};

/// What every change is tested with.
const CURES: &[Cure] = &[
    SURVIVORS,
    Cure {
        plant: "jvm-evac-failure",
        params: &["severity=3", "seconds=10"],
        ..LATE
    },
    LATE,
    FIXED,
    Cure {
        plant: "jvm-cms-late",
        release: 8,
        params: &["severity=3", "seconds=12"],
        rule: "gc-cmf",
        ..BASE
    },
    STALLS,
    SMALL,
    EXPLICIT,
    // A larger heap, also where regions twice the size of the arrays exist: those make more work.
    Cure {
        plant: "jvm-humongous",
        params: &["size=1.3", "severity=3", "seconds=5"],
        rule: "gc-humongous",
        harm: pauses,
        ..BASE
    },
    Cure {
        plant: "jvm-humongous",
        params: &["size=20", "seconds=4"],
        rule: "gc-humongous",
        harm: pauses,
        ..BASE
    },
    TENURING,
    COPIED,
    FREQUENT,
    BIASED,
    KILLED,
];

/// The same options for other collectors and releases, and runs of minutes: where [`WANTED`] asks for them.
const MORE: &[Cure] = &[
    // Its harm is a time, which other tests beside it make longer.
    REMARK,
    Cure {
        release: 8,
        options: PARALLEL,
        ..SURVIVORS
    },
    Cure {
        release: 8,
        ..TENURING
    },
    Cure {
        release: 25,
        ..TENURING
    },
    Cure {
        release: 8,
        options: CMS,
        ..COPIED
    },
    Cure {
        release: 21,
        ..COPIED
    },
    Cure {
        release: 8,
        options: CMS,
        ..FREQUENT
    },
    Cure {
        options: PARALLEL,
        ..FREQUENT
    },
    Cure {
        plant: "jvm-healthy-g1",
        params: &["heap=200", "alloc=250", "inflight=20", "seconds=5"],
        options: G1,
        ..FREQUENT
    },
    Cure {
        plant: "jvm-healthy-g1",
        release: 8,
        params: &["heap=320", "alloc=250", "inflight=40", "seconds=5"],
        options: G1,
        ..FREQUENT
    },
    Cure { release: 8, ..LATE },
    Cure {
        release: 25,
        ..LATE
    },
    Cure {
        release: 8,
        options: CMS,
        ..EXPLICIT
    },
    Cure {
        release: 25,
        ..EXPLICIT
    },
    Cure {
        plant: "jvm-shenandoah-degenerated",
        ..STALLS
    },
    Cure {
        plant: "jvm-shenandoah-degenerated",
        release: 21,
        ..STALLS
    },
    Cure {
        options: SERIAL,
        ..SMALL
    },
    Cure {
        options: PARALLEL,
        ..SMALL
    },
    Cure {
        release: 8,
        ..KILLED
    },
    Cure {
        release: 21,
        options: G1,
        ..KILLED
    },
    // Late is what comes five minutes after the start.
    Cure {
        plant: "jvm-metaspace-limit",
        params: &[
            "limit=1000",
            "rate=30",
            "keep=900",
            "alloc=4",
            "requests=50",
            "seconds=480",
        ],
        options: SERIAL,
        rule: "gc-metadata",
        ..BASE
    },
    Cure {
        plant: "jvm-evac-failure",
        params: &[
            "heap=256",
            "reserve=10",
            "live=0.1",
            "burst=0.4",
            "every=30",
            "length=8",
            "alloc=10",
            "requests=50",
            "seconds=660",
        ],
        options: &["-XX:+UseG1GC", "-Xms32m"],
        rule: "heap-resize",
        harm: |run| run["resizes"]["late"].as_f64().unwrap_or(0.0),
        ..BASE
    },
];

/// The environment variable that asks for `all`, as `.ci/release` does, or for the plants of one rule.
const WANTED: &str = "RUNGWISE_CURES";

/// Harm that is distinguished from chance when it is halved.
const ENOUGH: f64 = 4.0;

/// So often a problem is planted before it counts as not to be had here, or as not cured.
const TRIES: usize = 3;

fn fulls(run: &Value) -> f64 {
    of_kind(run, "full", "count")
}

/// Survivors of all young collections, which is what is copied; its time depends on what else the machine does.
fn copied_mib(run: &Value) -> f64 {
    let each = run["heap"]["survivors_bytes"].as_f64().unwrap_or(0.0);
    of_kind(run, "young", "count") * each / 1_048_576.0
}

fn of_kind(run: &Value, kind: &str, what: &str) -> f64 {
    let number = &run["pauses"]["by_kind"][kind][what];
    number.as_f64().unwrap_or(0.0)
}

fn pauses(run: &Value) -> f64 {
    run["pauses"]["all"]["count"].as_f64().unwrap_or(0.0)
}

fn trouble(run: &Value, name: &str) -> f64 {
    run["troubles"][name]["count"].as_f64().unwrap_or(0.0)
}

#[test]
fn options_that_a_rule_asks_for_halve_the_harm_of_the_planted_problem() {
    // Other tests would change how much the plants allocate.
    let _alone = Bench::new();
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
    let wanted = std::env::var(WANTED).unwrap_or_default();
    if wanted.is_empty() {
        skipped(format!(
            "advice of the GC rules: {} plants more, some of minutes; {WANTED}=all adds them",
            MORE.len()
        ));
    }
    let is_wanted = |cure: &&Cure| ["all", cure.rule].contains(&wanted.as_str());
    let usual = CURES
        .iter()
        .filter(|cure| wanted.is_empty() || is_wanted(cure));
    let chosen: Vec<&Cure> = usual.chain(MORE.iter().filter(is_wanted)).collect();
    assert!(!chosen.is_empty(), "{WANTED}={wanted} names no rule");
    let mut offenders = Vec::new();
    for cure in chosen {
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
        let mut silent = None;
        for _ in 0..TRIES {
            let Some(before) = self.run(java, folder, &[]) else {
                skipped(format!(
                    "advice for {}: no control group for memory",
                    self.plant
                ));
                return Ok(());
            };
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
            if asked.is_empty() {
                silent = Some(finding.clone());
                continue;
            }
            let after = self.run(java, folder, &asked);
            let after = after.expect("a second group like the first");
            let asked = asked.join(" ");
            had += harm(&before);
            has += harm(&after);
            let p99 = |report: &Value| report["runs"][0]["plant"]["p99_ms"].clone();
            eprintln!(
                "{} {} {}: with {asked} {has} instead of {had}; p99 {} instead of {} ms",
                self.plant,
                self.release,
                self.options.join(" "),
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
        if let Some(finding) = silent {
            return Err(format!("{}: asks for nothing: {finding}", self.plant));
        }
        skipped(format!(
            "advice for {}: planted {TRIES} times, it hurt {seen:?} times on this machine",
            self.plant
        ));
        Ok(())
    }

    /// The report of a run with these options added, or left out where one says `without`; what the service counted is in it as
    /// `plant`. None if it cannot be limited to its memory.
    fn run(&self, java: &Path, folder: &Path, asked: &[&str]) -> Option<Value> {
        let log = folder.join("gc.log");
        let _ = std::fs::remove_file(&log);
        let planted = Command::new(java)
            .arg("-cp")
            .arg(folder)
            .args(["GcPlant", "flags", self.plant])
            .args(self.params)
            .output()
            .expect("java runs");
        let flags = String::from_utf8(planted.stdout).unwrap();
        let given = self.options.iter().copied();
        let mut options: Vec<&str> = flags.split_whitespace().chain(given).collect();
        for asked in asked {
            match asked.strip_prefix("without ") {
                Some(out) => options.retain(|option| !sets_one_of(option, out)),
                None => options.extend(asked.split_whitespace()),
            }
        }
        let written = log.display();
        let logging = if self.release == 8 {
            vec![
                format!("-Xloggc:{written}"),
                "-XX:+PrintGCDetails".to_owned(),
                "-XX:+PrintGCTimeStamps".to_owned(),
                "-XX:+PrintTenuringDistribution".to_owned(),
            ]
        } else {
            vec![format!(
                "-Xlog:gc*,gc+humongous=debug,gc+ergo+ihop=debug,gc+age=trace,safepoint:file={written}:time,uptime,level,tags:filecount=0"
            )]
        };
        let group = match self.memory {
            0 => None,
            mib => Some(Group::new(mib)?),
        };
        let mut command = group
            .as_ref()
            .map_or_else(|| Command::new(java), |group| group.command(java));
        let ended = command
            .args(options)
            .args(logging)
            .arg("-cp")
            .arg(folder)
            .args(["GcPlant", self.plant])
            .args(self.params)
            .output()
            .expect("java runs");
        let killed = self.memory > 0 && ended.status.signal() == Some(9);
        assert!(
            killed || ended.status.success(),
            "{}: {ended:?}",
            self.plant
        );
        let slo = if self.slo.is_empty() {
            vec![]
        } else {
            vec!["--slo", self.slo]
        };
        let judged = Command::new(env!("CARGO_BIN_EXE_rungwise"))
            .args(["jvm", "gc", "--format", "json"])
            .args(slo)
            .arg(&log)
            .output()
            .expect("rungwise runs");
        let mut report: Value = serde_json::from_slice(&judged.stdout).expect("a report");
        let printed = String::from_utf8_lossy(&ended.stdout);
        let counted = printed.lines().last().unwrap_or_default();
        report["runs"][0]["plant"] = if killed {
            serde_json::json!({ "killed": true })
        } else {
            serde_json::from_str(counted).expect("the service reports")
        };
        Some(report)
    }
}

/// Whether the option sets a flag that is among these options, as a log spells them: `-Xmn` sets `-XX:NewSize`.
fn sets_one_of(option: &str, out: &str) -> bool {
    let name = |option: &str| option.split('=').next().unwrap_or_default().to_owned();
    let option = if option.starts_with("-Xmn") {
        "-XX:NewSize".to_owned()
    } else {
        name(option)
    };
    out.split_whitespace().any(|out| name(out) == option)
}

/// A control group with a limit of memory, for one process; removed at the end.
struct Group(PathBuf);

impl Group {
    fn new(mib: u32) -> Option<Self> {
        let name = format!("rungwise-cure-{}", std::process::id());
        let bytes = (u64::from(mib) << 20).to_string();
        for (root, limit, swap) in [
            (
                "memory/",
                "memory.limit_in_bytes",
                "memory.memsw.limit_in_bytes",
            ),
            ("", "memory.max", "memory.swap.max"),
        ] {
            let folder = Path::new("/sys/fs/cgroup").join(format!("{root}{name}"));
            if std::fs::create_dir(&folder).is_err() {
                continue;
            }
            let group = Self(folder);
            // A folder beside the mounts of version 1 is no group.
            let is_group = group.0.join("cgroup.procs").is_file();
            if is_group && std::fs::write(group.0.join(limit), &bytes).is_ok() {
                // In version 1 the sum of memory and swap, in version 2 swap alone; absent without swap accounting.
                let swap_bytes = if root.is_empty() { "0" } else { &bytes };
                let _ = std::fs::write(group.0.join(swap), swap_bytes);
                return Some(group);
            }
        }
        None
    }

    /// Runs the program in it.
    fn command(&self, program: &Path) -> Command {
        let mut command = Command::new("sh");
        command
            .args(["-c", "echo $$ > \"$0/cgroup.procs\" && exec \"$@\""])
            .arg(&self.0)
            .arg(program);
        command
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        remove_group(&self.0);
    }
}
