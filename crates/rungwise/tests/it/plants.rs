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
#[derive(Clone, Copy)]
struct Plant {
    class: &'static str,
    name: &'static str,
    /// Of the JVM.
    options: &'static [&'static str],
    arguments: &'static [&'static str],
    /// The rule that must come first, with its outcome; nothing where none may act.
    expected: Option<(&'static str, Outcome)>,
    /// What its sentence must contain.
    says: &'static [&'static str],
    /// First release that can run it.
    since: u32,
    /// First release on which the problem is gone.
    until: u32,
    /// It uses CPUs, so it runs alone.
    is_hot: bool,
    /// Virtual threads that are not mounted are in files of `Thread.dump_to_file` alone.
    needs_files: bool,
    /// A race plants it, which may be lost every time.
    is_chance: bool,
}

const fn plant(name: &'static str, rule: &'static str, outcome: Outcome) -> Plant {
    Plant {
        class: "Plant",
        name,
        options: &[],
        arguments: &[],
        expected: Some((rule, outcome)),
        says: &[],
        since: 8,
        until: u32::MAX,
        is_hot: false,
        needs_files: false,
        is_chance: false,
    }
}

/// On one release only, where the others show the same.
const fn on(release: u32, says: &'static [&'static str], plant: Plant) -> Plant {
    Plant {
        says,
        since: release,
        until: release + 1,
        ..plant
    }
}

/// A problem of virtual threads that only files show.
const fn of_files(
    release: u32,
    says: &'static [&'static str],
    name: &'static str,
    rule: &'static str,
) -> Plant {
    Plant {
        class: "Virtual",
        needs_files: true,
        ..on(release, says, plant(name, rule, Outcome::Act))
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
    on(
        17,
        &[
            "pool waits for itself: all 4 threads of reports-*",
            "in Plant.",
            "no thread is left to run the tasks",
        ],
        plant("pool-invoke-all", "pool-self-wait", Outcome::Act),
    ),
    Plant {
        options: &["-Djava.util.concurrent.ForkJoinPool.common.parallelism=2"],
        ..on(
            21,
            &["pool waits for itself: all 2 threads of ForkJoinPool.commonPool-worker-*"],
            plant("common-pool", "pool-self-wait", Outcome::Act),
        )
    },
    plant("semaphore", "shared-wait", Outcome::Act),
    plant("latch-never", "shared-wait", Outcome::Act),
    plant("future-join", "shared-wait", Outcome::Act),
    plant("condition", "shared-wait", Outcome::Watch),
    on(
        17,
        &[
            "8 threads wait for a condition in Plant.",
            "while handling a request",
        ],
        plant("condition-request", "shared-wait", Outcome::Act),
    ),
    on(
        8,
        &["1 thread waits for a partner at an Exchanger in Plant."],
        plant("exchanger", "shared-wait", Outcome::Watch),
    ),
    on(
        25,
        &["6 threads wait for the other parties of a Phaser in Plant."],
        plant("phaser", "shared-wait", Outcome::Act),
    ),
    on(
        11,
        &["8 threads wait for room in a full queue in Plant."],
        plant("queue-full", "shared-wait", Outcome::Act),
    ),
    on(
        21,
        &["4 threads wait for the other parties of a CyclicBarrier in Plant."],
        plant("barrier", "shared-wait", Outcome::Act),
    ),
    on(
        11,
        &["for a StampedLock", "a StampedLock is not reentrant"],
        plant("stamped-twice", "deadlock", Outcome::Act),
    ),
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
    Plant {
        is_hot: true,
        is_chance: true,
        arguments: &["tries=2000"],
        ..on(
            17,
            &["endless loop, likely a map that threads changed without a lock: session-"],
            plant("hashmap-loop", "thread-hot", Outcome::Act),
        )
    },
    of_files(
        25,
        &["waits for java.lang.Object, held by vt-ring-"],
        "vt-monitors",
        "deadlock",
    ),
    of_files(
        25,
        &["possible deadlock: the same virtual threads wait for 2 locks in every dump"],
        "vt-locks",
        "deadlock",
    ),
    of_files(
        21,
        &["possible deadlock: the same 2 virtual threads wait for locks in every dump"],
        "vt-locks",
        "deadlock",
    ),
    of_files(
        21,
        &["threads wait for a permit of a Semaphore in Virtual."],
        "vt-semaphore",
        "shared-wait",
    ),
    of_files(
        25,
        &["threads wait for a permit of a Semaphore in Virtual."],
        "vt-semaphore",
        "shared-wait",
    ),
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

/// Everything that the program prints until it has dumped three times, and three files where they are needed. None where the race was lost.
fn dumps(java: &Path, classes: &Path, plant: &Plant) -> Option<Vec<String>> {
    let mut child = Command::new(java)
        // For SIGQUIT, what -l is for jcmd.
        .args(["-XX:+PrintConcurrentLocks", "-Xmx64m"])
        .args(plant.options)
        .arg("-cp")
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
    if plant.is_chance && output.fill_buf().expect("it can be read").is_empty() {
        skipped(format_args!(
            "{}: the race that plants it was lost",
            plant.name
        ));
        let _ = child.wait();
        return None;
    }
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
    let mut files = Vec::new();
    if plant.needs_files {
        for number in 0..3 {
            let file = classes.join(format!("{}-{number}.json", child.id()));
            dump_to_file(java, child.id(), &file);
            files.push(std::fs::read_to_string(&file).expect("the dump is text"));
            until(2 * TICKS, |line| line.starts_with("progress "));
        }
    }
    // The end of its input ends it.
    drop(child.stdin.take());
    drop(output);
    drop(limit);
    let _ = child.kill();
    let _ = child.wait();
    files.insert(0, text);
    Some(files)
}

/// By the `jcmd` beside this `java`.
fn dump_to_file(java: &Path, pid: u32, file: &Path) {
    let jcmd = java.canonicalize().expect("it runs");
    let written = Command::new(jcmd.with_file_name("jcmd"))
        .args([&pid.to_string(), "Thread.dump_to_file", "-format=json"])
        .arg(file)
        .output()
        .unwrap_or_else(|error| panic!("jcmd beside {}: {error}", jcmd.display()));
    assert!(written.status.success(), "{written:?}");
}

/// What differs from what must come of it.
fn judged(
    bench: &Bench,
    release: u32,
    plant: &Plant,
    texts: &[String],
    folder: &Path,
) -> Option<String> {
    let files: Vec<String> = texts
        .iter()
        .enumerate()
        .map(|(number, text)| {
            let file = folder.join(format!("{release}-{}-{number}.txt", plant.name));
            std::fs::write(&file, text).expect("the dumps are written");
            file.to_str().expect("UTF-8").to_owned()
        })
        .collect();
    let mut words = vec!["jvm", "threads", "--format", "json"];
    words.extend(files.iter().map(String::as_str));
    let ended = bench.run(&words);
    let report: ThreadsReport =
        serde_json::from_str(&ended.stdout).unwrap_or_else(|_| panic!("{}", ended.stderr));
    let first = report.findings.first().expect("rules say something");
    let is_right = match plant.expected {
        Some((rule, outcome)) => {
            let is_said = |words: &&str| first.sentence.contains(words);
            first.rule == rule && first.outcome == outcome && plant.says.iter().all(is_said)
        }
        None => first.outcome != Outcome::Act,
    };
    let dumps = if plant.needs_files { 6 } else { 3 };
    (report.dumps.len() != dumps || !is_right).then(|| {
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
        let texts: Vec<(&Plant, Vec<String>)> = std::thread::scope(|scope| {
            let started: Vec<_> = calm
                .into_iter()
                .map(|plant| (plant, scope.spawn(|| dumps(&java, &folder, plant))))
                .collect();
            started
                .into_iter()
                .filter_map(|(plant, thread)| Some((plant, thread.join().expect("it dumps")?)))
                .collect()
        });
        let texts = texts.into_iter().chain(
            hot.into_iter()
                .filter_map(|plant| Some((plant, dumps(&java, &folder, plant)?))),
        );
        wrong.extend(
            texts.filter_map(|(plant, texts)| judged(&bench, release, plant, &texts, &folder)),
        );
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    std::fs::remove_dir_all(&folder).expect("the files are removed");
}
