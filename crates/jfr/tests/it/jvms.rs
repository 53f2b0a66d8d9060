//! Real JVMs record a program, and what we read is held against `jfr summary` and `jfr print` of the same JDK.
//!
//! JDK 8 to 25 as `java-8` to `java-25` in PATH, which `cargo xtask test` provides, and the JDK of `javac`; what is not there is
//! said aloud. `jfr` is used where the JDK has it.

#![expect(
    clippy::disallowed_methods,
    reason = "runs JVMs and reads what they recorded, and says what was skipped"
)]

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use rungwise_model::jfr::Recording;
use rungwise_testkit::{program, skipped};
use serde_json::Value;

/// What `jfr` prints.
fn jfr(jfr: &Path, arguments: &[&str], file: &Path) -> String {
    let output = Command::new(jfr).args(arguments).arg(file).output();
    let output = output.expect("jfr runs");
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    String::from_utf8(output.stdout).expect("UTF-8")
}

/// The counts of `jfr summary`, without types of which there are none.
fn counts(text: &str) -> BTreeMap<String, u64> {
    let row = |line: &str| {
        let mut words = line.split_whitespace();
        let (name, count) = (words.next()?, words.next()?.parse().ok()?);
        // Older tools write the name otherwise.
        let name = name.replace("CheckPoint", "Checkpoint");
        (name.contains('.') && count > 0).then_some((name, count))
    };
    text.lines().filter_map(row).collect()
}

/// The fields of the events of one type that `jfr print --json` shows.
fn printed(tool: &Path, event: &str, file: &Path) -> Vec<Value> {
    let text = jfr(
        tool,
        &["print", "--json", "--stack-depth", "64", "--events", event],
        file,
    );
    let document: Value = serde_json::from_str(&text).expect("JSON");
    let events = document["recording"]["events"].as_array().expect("events");
    events.iter().map(|event| event["values"].clone()).collect()
}

fn method(frame: &Value) -> String {
    let name = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let method = &frame["method"];
    let class = name(&method["type"]["name"]).replace('/', ".");
    format!("{class}.{}", name(&method["name"]))
}

/// Seconds of an ISO 8601 duration such as `PT0.030123S`.
fn seconds(duration: &Value) -> f64 {
    let text = duration.as_str().expect("a duration");
    let text = text
        .strip_prefix("PT")
        .and_then(|text| text.strip_suffix('S'));
    text.expect("less than a minute").parse().expect("a number")
}

/// What differs from what the JDK's own tool says.
fn compare(tool: &Path, file: &Path, read: &Recording) {
    assert_eq!(read.events, counts(&jfr(tool, &["summary"], file)));
    let mut own: BTreeMap<String, u64> = BTreeMap::new();
    for sample in printed(tool, "jdk.ExecutionSample", file) {
        if let Some(top) = sample["stackTrace"]["frames"].get(0) {
            *own.entry(method(top)).or_default() += 1;
        }
    }
    assert!(!own.is_empty(), "a program that computes has samples");
    let hot = read.hot_methods.iter().filter(|hot| hot.own > 0);
    let hot: BTreeMap<String, u64> = hot.map(|hot| (hot.method.clone(), hot.own)).collect();
    assert_eq!(hot, own);
    let mut locks: BTreeMap<String, (u64, f64)> = BTreeMap::new();
    for enter in printed(tool, "jdk.JavaMonitorEnter", file) {
        let class = enter["monitorClass"]["name"].as_str().expect("a class");
        let lock = locks.entry(class.replace('/', ".")).or_default();
        lock.0 += 1;
        lock.1 += seconds(&enter["duration"]) * 1e3;
    }
    let monitors = read.locks.iter().filter(|lock| lock.kind == "monitor");
    let monitors: BTreeMap<String, (u64, f64)> = monitors
        .map(|lock| (lock.class.clone(), (lock.times.count, lock.times.total_ms)))
        .collect();
    assert_eq!(
        monitors.keys().collect::<Vec<_>>(),
        locks.keys().collect::<Vec<_>>()
    );
    for (class, (count, ms)) in &locks {
        assert_eq!(monitors[class].0, *count, "{class}");
        assert!((monitors[class].1 - ms).abs() < 1e-3 * ms, "{class}");
    }
}

/// What the program did, whichever JVM recorded it.
fn holds(read: &Recording) {
    assert_eq!(read.damage, [""; 0]);
    let lock = |kind: &str, class: &str| {
        let mut locks = read.locks.iter();
        locks
            .find(|lock| lock.kind == kind && lock.class.starts_with(class))
            .unwrap_or_else(|| panic!("no {kind} {class}: {:?}", read.locks))
    };
    let monitor = lock("monitor", "java.lang.Object");
    assert!(monitor.times.longest_ms >= 25.0, "{monitor:?}");
    assert!(
        monitor
            .owner
            .as_deref()
            .is_some_and(|owner| owner.starts_with("contender-")),
        "{monitor:?}"
    );
    let synchronizer = lock("synchronizer", "java.util.concurrent.locks.ReentrantLock");
    assert!(synchronizer.times.longest_ms >= 25.0, "{synchronizer:?}");
    assert!(
        monitor.sites[0].frames[0].contains("Recorded"),
        "{monitor:?}"
    );
    assert!(
        read.exceptions.classes.iter().any(|thrown| {
            thrown.class == "java.lang.NumberFormatException"
                && thrown.count == 200
                && thrown.at.as_deref().is_some_and(|at| at.contains("fail"))
        }),
        "{:?}",
        read.exceptions
    );
    // The JDK may be busier: that of JDK 8 sometimes gathers entropy by spinning, for the name of a temporary file.
    let own = read
        .hot_methods
        .iter()
        .find(|hot| hot.method.starts_with("Recorded."));
    assert!(
        own.is_some_and(|hot| hot.method == "Recorded.spin" && hot.own_share > 0.2),
        "{:?}",
        read.hot_methods
    );
    assert!(
        read.allocation
            .classes
            .iter()
            .any(|class| class.name == "long[]"),
        "{:?}",
        read.allocation
    );
    assert!(
        read.io
            .iter()
            .any(|io| io.kind == "file-write" && io.bytes >= 1 << 20),
        "{:?}",
        read.io
    );
    assert!(read.jvm.version.is_some() && read.jvm.pid.is_some());
    assert_eq!(read.jvm.main.as_deref(), Some("Recorded"));
    assert!(read.duration_s > 2.0, "{}", read.duration_s);
}

/// Records the program; `profile.jfc`, with exceptions and all file I/O.
fn recorded(java: &Path, classes: &Path, file: &Path) {
    let settings = classes.join("all.jfc");
    let home = java.canonicalize().expect("a program");
    let folder = [
        "../lib/jfr/profile.jfc",
        "../jre/lib/jfr/profile.jfc",
        "../../lib/jfr/profile.jfc",
    ]
    .iter()
    .map(|place| home.with_file_name(place))
    .find(|place| place.is_file())
    .unwrap_or_else(|| panic!("no profile.jfc beside {}", home.display()));
    let text = std::fs::read_to_string(folder).expect("settings");
    std::fs::write(&settings, everything(&text)).expect("settings are written");
    let option = format!(
        "-XX:StartFlightRecording=settings={},filename={}",
        settings.display(),
        file.display()
    );
    let output = Command::new(java)
        .args([&option, "-Xmx64m", "-cp"])
        .arg(classes)
        .arg("Recorded")
        .output()
        .expect("java runs");
    assert!(
        output.status.success(),
        "{}{}",
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr)
    );
}

/// These settings with each exception and each access of a file; what controls them in the file's head is taken out.
fn everything(settings: &str) -> String {
    let mut text = String::new();
    let mut event = String::new();
    for line in settings.lines() {
        if let Some((_, rest)) = line.split_once("<event name=\"") {
            event.clear();
            event.push_str(rest.split('"').next().unwrap_or_default());
        }
        let is_open = matches!(
            &*event,
            "jdk.JavaExceptionThrow" | "jdk.FileRead" | "jdk.FileWrite"
        );
        let names = |setting: &str| line.contains(&format!("name=\"{setting}\""));
        // JDK 25 limits the rate of some.
        let settings = [
            ("enabled", "true"),
            ("threshold", "0 ns"),
            ("throttle", "off"),
        ];
        let mut settings = settings.iter();
        if let Some((setting, value)) = settings.find(|(setting, _)| is_open && names(setting)) {
            let _ = writeln!(text, "      <setting name=\"{setting}\">{value}</setting>");
        } else {
            text += line;
            text.push('\n');
        }
    }
    text
}

/// The JVMs, each with the name that messages use, and its `jfr` if it has one.
fn jvms() -> Vec<(String, PathBuf, Option<PathBuf>)> {
    let mut found = Vec::new();
    for name in ["java-8", "java-11", "java-17", "java-21", "java-25", "java"] {
        let Some(java) = program(name) else {
            skipped(format_args!(
                "no {name} in PATH; cargo xtask test provides one"
            ));
            continue;
        };
        let home = java.canonicalize().expect("a program");
        let tool = [
            home.with_file_name("jfr"),
            home.with_file_name("../../bin/jfr"),
        ];
        let tool = tool.into_iter().find(|file| file.is_file());
        found.push((name.to_owned(), java, tool));
    }
    found
}

#[test]
fn recordings_of_real_jvms_say_what_their_program_did_and_what_jfr_prints() {
    let Some(javac) = program("javac") else {
        skipped("no javac in PATH; cargo xtask test installs one");
        return;
    };
    let folder = tempfile::tempdir().expect("a folder");
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/jvm/Recorded.java");
    let compiled = Command::new(javac)
        .args(["--release", "8", "-nowarn", "-d"])
        .args([folder.path(), &source])
        .output()
        .expect("javac runs");
    assert!(
        compiled.status.success(),
        "{}",
        String::from_utf8_lossy(&compiled.stderr)
    );
    for (name, java, tool) in jvms() {
        let file = folder.path().join(format!("{name}.jfr"));
        recorded(&java, folder.path(), &file);
        let opened = std::fs::File::open(&file).expect("it recorded");
        let read = rungwise_jfr::summary(opened).expect("it is a recording");
        holds(&read);
        match tool {
            Some(tool) => compare(&tool, &file, &read),
            None => skipped(format_args!("{name} has no jfr beside it to compare with")),
        }
    }
}
