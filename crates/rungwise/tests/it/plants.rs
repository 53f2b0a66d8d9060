//! Problems of threads, planted in real JVMs by `crates/testkit/java`, and what `jvm threads` says of their dumps.
//!
//! JDK 8 to 25 as `java-8` to `java-25` in PATH, which `cargo xtask test` provides; one that is not there is said aloud. Every program says
//! itself when its problem stands, and dumps three times on SIGQUIT; its own progress is the clock between.

use std::io::{BufRead as _, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use rungwise_model::check::Outcome;
use rungwise_model::threads::ThreadsReport;
use rungwise_testkit::{TimeLimit, skipped};

use crate::run::Bench;

/// A program and what must come of it.
struct Plant {
    class: &'static str,
    name: &'static str,
    arguments: &'static [&'static str],
    /// The rule that must come first, with its outcome; nothing where none may act.
    expected: Option<(&'static str, Outcome)>,
    /// First release that can run it.
    since: u32,
    /// First release on which the problem is gone.
    until: u32,
    /// It uses CPUs, so it runs alone.
    is_hot: bool,
}

const fn plant(name: &'static str, rule: &'static str, outcome: Outcome) -> Plant {
    Plant {
        class: "Plant",
        name,
        arguments: &[],
        expected: Some((rule, outcome)),
        since: 8,
        until: u32::MAX,
        is_hot: false,
    }
}

const fn healthy(name: &'static str) -> Plant {
    Plant {
        expected: None,
        ..plant(name, "", Outcome::Clear)
    }
}

const PLANTS: &[Plant] = &[
    plant("pool-self", "pool-self-wait", Outcome::Act),
    plant("pool-async", "pool-self-wait", Outcome::Act),
    plant("semaphore", "shared-wait", Outcome::Act),
    plant("latch-never", "shared-wait", Outcome::Act),
    plant("future-join", "shared-wait", Outcome::Act),
    plant("condition", "shared-wait", Outcome::Watch),
    plant("rw-readers", "deadlock", Outcome::Act),
    plant("rw-upgrade", "deadlock", Outcome::Act),
    Plant {
        arguments: &["threads=5"],
        ..plant("deadlock-mixed", "deadlock", Outcome::Act)
    },
    plant("class-init", "deadlock", Outcome::Act),
    plant("appender", "lock-wait-ratio", Outcome::Act),
    plant("pool-database", "thread-pool-exhausted", Outcome::Act),
    Plant {
        is_hot: true,
        ..plant("livelock", "thread-hot", Outcome::Act)
    },
    Plant {
        is_hot: true,
        ..plant("regex", "thread-hot", Outcome::Act)
    },
    Plant {
        class: "Virtual",
        since: 21,
        until: 24,
        ..plant("vt-pinned", "virtual-thread-pinned", Outcome::Act)
    },
    Plant {
        class: "Virtual",
        since: 21,
        until: 24,
        ..plant("vt-monitors", "virtual-thread-pinned", Outcome::Act)
    },
    healthy("healthy-pools"),
    healthy("healthy-mixed"),
    Plant {
        is_hot: true,
        ..healthy("healthy-hot")
    },
    Plant {
        class: "Virtual",
        since: 21,
        ..healthy("healthy-virtual")
    },
];

/// Ticks of the program between two dumps, four a second.
const TICKS: usize = 4;
/// Of a program from its start to its end: seconds where many start at once. A JVM that hangs must not hold up every other test.
const LIMIT: Duration = Duration::from_mins(2);

fn program(name: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH")?;
    std::env::split_paths(&path)
        .map(|folder| folder.join(name))
        .find(|file| file.is_file())
}

/// Everything that the program prints until it has dumped three times.
fn dumps(java: &Path, classes: &Path, plant: &Plant) -> String {
    let mut child = Command::new(java)
        // For SIGQUIT, what -l is for jcmd.
        .args(["-XX:+PrintConcurrentLocks", "-Xmx64m", "-cp"])
        .args([
            classes.as_os_str(),
            plant.class.as_ref(),
            plant.name.as_ref(),
        ])
        .args(plant.arguments)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap_or_else(|error| panic!("{}: {error}", java.display()));
    let limit = TimeLimit::start(&child, LIMIT);
    let mut output = BufReader::new(child.stdout.take().expect("piped"));
    let mut text = String::new();
    let mut until = |count: usize, is_it: fn(&str) -> bool| {
        let mut seen = 0;
        while seen < count {
            let from = text.len();
            let read = output.read_line(&mut text).expect("it prints text");
            assert!(read > 0, "{} ended: {text}", plant.name);
            seen += usize::from(is_it(text[from..].trim_end()));
        }
    };
    until(1, |line| line == "ready");
    for _ in 0..3 {
        let quit = Command::new("kill")
            .args(["-QUIT", &child.id().to_string()])
            .status();
        assert!(quit.expect("kill runs").success());
        // Behind half a line of the program, where both print at once.
        until(1, |line| line.contains("JNI global"));
        until(TICKS, |line| line.starts_with("progress "));
    }
    // The end of its input ends it.
    drop(child.stdin.take());
    drop(output);
    drop(limit);
    let _ = child.kill();
    let _ = child.wait();
    text
}

/// What differs from what must come of it.
fn judged(bench: &Bench, release: u32, plant: &Plant, text: &str, folder: &Path) -> Option<String> {
    let file = folder.join(format!("{release}-{}.txt", plant.name));
    std::fs::write(&file, text).expect("the dumps are written");
    let name = file.to_str().expect("UTF-8");
    let ended = bench.run(&["jvm", "threads", "--format", "json", name]);
    let report: ThreadsReport =
        serde_json::from_str(&ended.stdout).unwrap_or_else(|_| panic!("{}", ended.stderr));
    let first = report.findings.first().expect("rules say something");
    let is_right = match plant.expected {
        Some((rule, outcome)) => first.rule == rule && first.outcome == outcome,
        None => first.outcome != Outcome::Act,
    };
    (report.dumps.len() != 3 || !is_right).then(|| {
        format!(
            "JDK {release}, {}: {} dumps, {} {:?}: {}",
            plant.name,
            report.dumps.len(),
            first.rule,
            first.outcome,
            first.sentence
        )
    })
}

pub(crate) fn compile(javac: &Path, release: &str, source: &str, classes: &Path) -> bool {
    let sources = Path::new(env!("CARGO_MANIFEST_DIR")).join("../testkit/java");
    let compiled = Command::new(javac)
        .args(["--release", release, "-nowarn", "-sourcepath"])
        .arg(&sources)
        .arg("-cp")
        .arg(classes)
        .arg("-d")
        .args([classes, &sources.join(source)])
        .output()
        .expect("javac runs");
    compiled.status.success()
}

#[test]
fn problems_of_threads_in_real_jvms_are_named() {
    let Some(javac) = program("javac") else {
        skipped("no javac in PATH; cargo xtask test installs one");
        return;
    };
    let folder =
        Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("plants-{}", std::process::id()));
    std::fs::create_dir_all(&folder).expect("a folder for the classes");
    assert!(compile(&javac, "8", "Plant.java", &folder));
    // The javac of a release before 21 does not know virtual threads; one beside `java-25` does.
    let newer = program("java-25")
        .and_then(|java| Some(java.canonicalize().ok()?.with_file_name("javac")))
        .filter(|javac| javac.is_file());
    let has_virtual = [Some(javac), newer]
        .iter()
        .flatten()
        .any(|javac| compile(javac, "21", "Virtual.java", &folder));
    if !has_virtual {
        skipped("no javac of JDK 21 or later, so problems of virtual threads are not planted");
    }
    let bench = Bench::new();
    let mut wrong = Vec::new();
    for release in [8, 11, 17, 21, 25] {
        let Some(java) = program(&format!("java-{release}")) else {
            skipped(format_args!(
                "no java-{release} in PATH; cargo xtask test provides one"
            ));
            continue;
        };
        let fits = |plant: &&Plant| {
            plant.since <= release
                && release < plant.until
                && (plant.class == "Plant" || has_virtual)
        };
        let (hot, calm): (Vec<&Plant>, Vec<&Plant>) =
            PLANTS.iter().filter(fits).partition(|plant| plant.is_hot);
        let texts: Vec<(&Plant, String)> = std::thread::scope(|scope| {
            let started: Vec<_> = calm
                .into_iter()
                .map(|plant| (plant, scope.spawn(|| dumps(&java, &folder, plant))))
                .collect();
            started
                .into_iter()
                .map(|(plant, thread)| (plant, thread.join().expect("it dumps")))
                .collect()
        });
        let texts = texts.into_iter().chain(
            hot.into_iter()
                .map(|plant| (plant, dumps(&java, &folder, plant))),
        );
        wrong.extend(
            texts.filter_map(|(plant, text)| judged(&bench, release, plant, &text, &folder)),
        );
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    std::fs::remove_dir_all(&folder).expect("the files are removed");
}
