//! `jvm threads PID` and `check --pid` of real JVMs whose threads have a planted problem (`crates/testkit/java`).

use std::path::{Path, PathBuf};
use std::process::{Child, Command};
use std::time::{Duration, Instant};

use rungwise_model::check::{CheckReport, Outcome};
use rungwise_model::threads::{Form, ThreadsReport};
use rungwise_testkit::{How, PlantedJvm, TimeLimit, program, skipped};

use crate::plants::compile;
use crate::run::{self, Bench, Ended, planted};
use crate::tune::assert_valid;

/// Of a JVM from its start to its end; one that hangs must fail.
const LIMIT: Duration = Duration::from_mins(3);

/// A program of `crates/testkit/java` that has planted its problem.
struct Planted {
    child: Child,
    limit: Option<TimeLimit>,
    folder: tempfile::TempDir,
}

impl Planted {
    fn start(java: &Path, options: &[&str], words: &[&str]) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let javac = program("javac").expect("javac is in PATH; cargo xtask test installs one");
        assert!(compile(&javac, "8", "Plant.java", folder.path()));
        let class = if words[0].starts_with("vt-") {
            let newer = java.canonicalize().unwrap().with_file_name("javac");
            assert!(compile(&newer, "21", "Virtual.java", folder.path()));
            "Virtual"
        } else {
            "Plant"
        };
        let (child, limit, mut output) = planted(
            Command::new(java)
                .args(options)
                .args(["-Xmx64m", "-cp"])
                .args([folder.path().to_str().unwrap(), class])
                .args(words)
                .current_dir(folder.path()),
            LIMIT,
        );
        std::thread::spawn(move || std::io::copy(&mut output, &mut std::io::sink()));
        Self {
            child,
            limit: Some(limit),
            folder,
        }
    }

    fn pid(&self) -> String {
        self.child.id().to_string()
    }

    #[track_caller]
    fn leaves_nothing(&self) {
        let trigger = format!(".attach_pid{}", self.pid());
        for folder in [self.folder.path(), Path::new("/tmp")] {
            assert!(!folder.join(&trigger).exists());
        }
        let written = std::fs::read_dir("/tmp").unwrap().flatten();
        let left: Vec<_> = written
            .map(|entry| entry.file_name())
            .filter(|name| name.to_string_lossy().starts_with(".rungwise-jvm-"))
            .collect();
        assert!(left.is_empty(), "{left:?}");
    }
}

impl Drop for Planted {
    fn drop(&mut self) {
        self.limit = None;
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn java() -> PathBuf {
    program("java").expect("java is in PATH; cargo xtask test installs one")
}

fn threads(bench: &Bench, pid: &str, more: &[&str]) -> (ThreadsReport, Ended) {
    let words = [&["jvm", "threads", pid, "--format", "json"], more].concat();
    let ended = bench.run(&words);
    let document =
        serde_json::from_str(&ended.stdout).unwrap_or_else(|_| panic!("{}", ended.stderr));
    assert_valid(&document, "jvm-threads");
    (serde_json::from_value(document).unwrap(), ended)
}

#[test]
fn a_pool_at_a_lock_and_its_owner_stand_in_one_table() {
    let bench = Bench::new();
    let planted = Planted::start(&java(), &[], &["pool-database", "threads=30", "hold=100"]);
    let kept = bench.path("kept");
    let more = [
        "--count",
        "4",
        "--every",
        "300ms",
        "--keep-dumps",
        kept.to_str().unwrap(),
    ];
    let (report, ended) = threads(&bench, &planted.pid(), &more);
    assert_eq!(ended.code, Some(1), "{}", ended.stderr);
    assert_eq!(report.dumps.len(), 4);
    let first = &report.findings[0];
    assert_eq!(
        (&*first.rule, first.outcome),
        ("thread-pool-exhausted", Outcome::Act),
        "{first:#?}"
    );
    assert!(
        first
            .sentence
            .contains("wait for the database in Plant$Orders.find"),
        "{first:#?}"
    );
    // 29 at the lock, one that holds it.
    let waiting: Vec<_> = report
        .times
        .iter()
        .filter(|row| row.doing == "lock_waiting")
        .collect();
    let count: u64 = waiting.iter().map(|row| row.threads).sum();
    // One more while the lock is handed over.
    assert!((28..=30).contains(&count), "{waiting:#?}");
    assert!(
        waiting[0].what.contains("held by http-exec-"),
        "{waiting:#?}"
    );
    assert!(waiting[0].cpu_share.is_some() && waiting[0].system_share.is_some());
    let jdbc = report
        .stages
        .iter()
        .find(|stage| stage.name == "jdbc")
        .unwrap();
    // One thread in each dump, or none between two queries.
    let asking = jdbc.own.running + jdbc.own.waiting;
    assert!((3..=4).contains(&asking), "{jdbc:#?}");
    let taken = report.taken.as_ref().unwrap();
    assert_eq!(
        (taken.dumps.len(), taken.pid),
        (4, u64::from(planted.child.id()))
    );
    assert!(taken.dumps.iter().all(|cost| {
        cost.stopped_ms
            .is_some_and(|ms| ms > 0.0 && ms < cost.answered_ms)
    }));
    assert!(taken.span_s >= 0.6, "{taken:#?}");
    planted.leaves_nothing();
    // The kept files tell the same.
    let (again, _) = threads_of(&bench, kept.to_str().unwrap());
    assert_eq!(again.dumps.len(), 4);
    assert_eq!(again.findings[0].rule, "thread-pool-exhausted");
}

fn threads_of(bench: &Bench, folder: &str) -> (ThreadsReport, Ended) {
    threads(bench, folder, &[])
}

#[test]
fn every_jdk_gives_the_cpu_time_of_a_thread_that_computes() {
    let bench = Bench::new();
    for release in [8, 11, 17, 21, 25] {
        let Some(java) = program(&format!("java-{release}"))
            .or_else(|| program("java").filter(|_| release == 17))
        else {
            skipped(format_args!(
                "no java-{release} in PATH; cargo xtask test provides one"
            ));
            continue;
        };
        let planted = Planted::start(&java, &[], &["healthy-hot"]);
        let began = cpu(&planted.pid());
        let (report, _) = threads(
            &bench,
            &planted.pid(),
            &["--count", "3", "--every", "500ms"],
        );
        let used = cpu(&planted.pid()) - began;
        let span = report.taken.as_ref().unwrap().span_s;
        let hottest = report
            .times
            .iter()
            .filter_map(|row| row.cpu_share)
            .fold(0.0, f64::max);
        // Of what the process used while it was asked, that thread used most, and it cannot have used more.
        assert!(
            hottest * span <= used + 0.05,
            "JDK {release}: {hottest} of {span} s, {used} s"
        );
        assert!(hottest > 0.1, "JDK {release}: {:#?}", report.times);
        let has_note = report
            .notes
            .iter()
            .any(|note| note.contains("the kernel's"));
        assert_eq!(has_note, release == 8, "JDK {release}: {:?}", report.notes);
        planted.leaves_nothing();
    }
}

/// CPU time of a process, seconds.
fn cpu(pid: &str) -> f64 {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap();
    let mut columns = stat.rsplit_once(')').unwrap().1.split_whitespace().skip(11);
    let mut ticks = || columns.next().unwrap().parse::<f64>().unwrap();
    (ticks() + ticks()) / 100.0
}

#[test]
fn virtual_threads_that_are_not_mounted_are_read_from_a_file_that_is_removed() {
    let Some(java) = program("java-25").or_else(|| program("java-21")) else {
        skipped("no java-21 or java-25 in PATH; cargo xtask test provides them");
        return;
    };
    if !java
        .canonicalize()
        .unwrap()
        .with_file_name("javac")
        .is_file()
    {
        skipped("no javac beside it, so virtual threads are not planted");
        return;
    }
    let bench = Bench::new();
    let planted = Planted::start(
        &java,
        &[],
        &["vt-semaphore", "threads=40", "permits=2", "hold=300"],
    );
    let (report, _) = threads(&bench, &planted.pid(), &["--every", "400ms"]);
    assert!(
        report.dumps.iter().all(|dump| dump.jvm == 1),
        "{:#?}",
        report.dumps
    );
    let filed: Vec<u64> = report
        .dumps
        .iter()
        .filter(|dump| dump.form == Form::Json)
        .map(|dump| dump.threads)
        .collect();
    assert_eq!(filed.len(), 3, "{:?}", report.notes);
    assert!(filed.iter().all(|count| *count >= 40), "{filed:?}");
    let wait = report.waits.iter().find(|wait| wait.kind == "semaphore");
    assert!(
        wait.is_some_and(|wait| wait.waiters.len() >= 30),
        "{:#?}",
        report.waits
    );
    planted.leaves_nothing();
}

#[test]
fn stages_have_the_names_and_the_times_that_the_user_gives() {
    let bench = Bench::new();
    let planted = Planted::start(&java(), &[], &["pool-database", "threads=20", "hold=50"]);
    let file = bench.path("stages");
    std::fs::write(&file, "# the driver\nstore=org.postgresql\n").unwrap();
    let more = [
        "--every",
        "200ms",
        "--stages",
        file.to_str().unwrap(),
        "--stage",
        "orders=Plant$Orders",
        "--rate",
        "20/s",
    ];
    let (report, _) = threads(&bench, &planted.pid(), &more);
    let of = |name: &str| {
        report
            .stages
            .iter()
            .find(|stage| stage.name == name)
            .unwrap()
    };
    // All threads are within Orders.find, one of them within the driver: by Little's law a second and 50 ms for 20 requests a second.
    let (orders, store) = (of("orders"), of("store"));
    let is_near = |value: f64, expected: f64| (value / expected - 1.0).abs() < 0.35;
    assert!(is_near(orders.mean_threads, 20.0), "{orders:#?}");
    assert!(is_near(store.mean_threads, 1.0), "{store:#?}");
    for stage in [orders, store] {
        let ms = stage.ms_per_request.unwrap();
        assert!(
            (ms - stage.mean_threads / 20.0 * 1e3).abs() < 1e-6,
            "{stage:#?}"
        );
    }
    assert!(orders.own.lock_waiting >= 3 * 18, "{orders:#?}");
    bench
        .run(&["jvm", "threads", &planted.pid(), "--stage", "nothing"])
        .expect(2)
        .says(&["'nothing' names no stage"]);
}

#[test]
fn what_cannot_be_asked_is_refused_with_the_remedy() {
    let bench = Bench::new();
    let mut sleeper = Command::new("sleep").arg("600").spawn().unwrap();
    let pid = sleeper.id().to_string();
    bench
        .run(&["jvm", "threads", &pid])
        .expect(4)
        .says(&["not a JVM"]);
    assert!(sleeper.try_wait().unwrap().is_none());
    sleeper.kill().unwrap();
    sleeper.wait().unwrap();
    bench
        .run(&["jvm", "threads", &pid])
        .expect(4)
        .says(&["cannot attach", "jps"]);
    let file = crate::threads::dump(crate::threads::OWN);
    bench
        .run(&["jvm", "threads", &file, "--count", "3"])
        .expect(2)
        .says(&["--count", "running JVM"]);
    let off = PlantedJvm::start(&java(), &["-XX:+DisableAttachMechanism"], How::Stay, None);
    bench
        .run(&["jvm", "threads", &off.pid().to_string()])
        .expect(4)
        .says(&["DisableAttachMechanism", "start the JVM without"]);
    let planted = Planted::start(&java(), &[], &["healthy-pools"]);
    kill(&planted, libc::SIGSTOP);
    let began = Instant::now();
    bench
        .run(&["jvm", "threads", &planted.pid()])
        .expect(4)
        .says(&["stopped", "kill -CONT"]);
    assert!(began.elapsed() < Duration::from_secs(20));
    kill(&planted, libc::SIGCONT);
    let kept = bench.path("kept");
    let words = [
        "jvm",
        "threads",
        &planted.pid(),
        "--count",
        "1",
        "--keep-dumps",
        kept.to_str().unwrap(),
    ];
    bench.run(&words).expect(0);
    // Dumps that are there are never overwritten.
    bench.run(&words).expect(2).says(&["dump-1.txt"]);
    planted.leaves_nothing();
}

fn kill(planted: &Planted, signal: i32) {
    run::kill(planted.child.id().cast_signed(), signal);
}

/// A tool that takes dumps without an end, once it has taken two.
fn dumping(bench: &Bench, planted: &Planted) -> Child {
    let pid = planted.pid();
    let kept = bench.path("kept");
    let words = [
        "jvm",
        "threads",
        &pid,
        "--count",
        "1000",
        "--every",
        "200ms",
        "--format",
        "json",
        "--keep-dumps",
        kept.to_str().unwrap(),
    ];
    let tool = bench.start(&words);
    let until = Instant::now() + Duration::from_mins(1);
    while !kept.join("dump-2.txt").exists() {
        assert!(Instant::now() < until, "no second dump");
        std::thread::sleep(Duration::from_millis(20));
    }
    tool
}

#[test]
fn a_jvm_that_dies_between_dumps_leaves_a_report_of_those_before() {
    let bench = Bench::new();
    let planted = Planted::start(&java(), &[], &["healthy-pools"]);
    let tool = dumping(&bench, &planted);
    kill(&planted, libc::SIGKILL);
    let ended = Ended::from(tool.wait_with_output().unwrap());
    assert_eq!(ended.code, Some(3), "{}", ended.stderr);
    let report: ThreadsReport = serde_json::from_str(&ended.stdout).unwrap();
    assert!(report.dumps.len() >= 2);
    assert!(
        report
            .notes
            .iter()
            .any(|note| note.contains("of 1000 is missing") && note.contains("ended")),
        "{:?}",
        report.notes
    );
    planted.leaves_nothing();
}

#[test]
fn a_signal_ends_the_dumps_and_judges_them() {
    let bench = Bench::new();
    let planted = Planted::start(&java(), &[], &["healthy-pools"]);
    let tool = dumping(&bench, &planted);
    run::kill(tool.id().cast_signed(), libc::SIGINT);
    let ended = Ended::from(tool.wait_with_output().unwrap());
    assert_eq!(ended.code, Some(130), "{}", ended.stderr);
    let report: ThreadsReport = serde_json::from_str(&ended.stdout).unwrap();
    assert!(report.dumps.len() >= 2);
    planted.leaves_nothing();
}

fn checked(bench: &Bench, words: &[&str]) -> CheckReport {
    let ended = bench.run(&[&["check", "--format", "json"], words].concat());
    let document =
        serde_json::from_str(&ended.stdout).unwrap_or_else(|_| panic!("{}", ended.stderr));
    assert_valid(&document, "check");
    serde_json::from_value(document).unwrap()
}

#[test]
fn a_check_of_a_jvm_has_its_threads_and_its_gc_log_in_one_list() {
    let bench = Bench::new();
    let log = bench.path("gc.log");
    let option = format!("-Xlog:gc*:file={}", log.display());
    let planted = Planted::start(&java(), &[&option], &["appender", "threads=40", "hold=20"]);
    let report = checked(
        &bench,
        &["--pid", &planted.pid(), "--for", "3s", "--no-stacks"],
    );
    let jvm = report.jvm.as_ref().unwrap();
    assert_eq!(jvm.taken.as_ref().unwrap().dumps.len(), 3);
    assert_eq!(jvm.gc_log.as_deref(), log.to_str(), "{:?}", jvm.notes);
    assert!(!jvm.times.is_empty() && !jvm.stages.is_empty());
    let of = |rule: &str| report.findings.iter().find(|finding| finding.rule == rule);
    assert_eq!(of("lock-wait-ratio").unwrap().outcome, Outcome::Act);
    // It is decided by both: idle CPUs and waiting threads; or the CPUs of this machine were busy meanwhile.
    let waiting = of("idle-but-waiting").unwrap();
    assert_ne!(waiting.outcome, Outcome::Undecided, "{waiting:#?}");
    if waiting.outcome == Outcome::Act {
        assert_eq!(waiting.subject, format!("process/{}", planted.pid()));
        assert!(
            waiting.sentence.contains("for Plant$Appender"),
            "{waiting:#?}"
        );
    }
    planted.leaves_nothing();
    let without = checked(
        &bench,
        &[
            "--pid",
            &planted.pid(),
            "--for",
            "1s",
            "--no-stacks",
            "--no-jvm",
        ],
    );
    assert!(without.jvm.is_none());
    assert!(
        without
            .findings
            .iter()
            .all(|finding| finding.rule != "lock-wait-ratio")
    );
}

#[test]
fn a_check_of_a_jvm_that_cannot_be_asked_says_why() {
    let bench = Bench::new();
    let off = PlantedJvm::start(&java(), &["-XX:+DisableAttachMechanism"], How::Stay, None);
    let pid = off.pid().to_string();
    let report = checked(&bench, &["--pid", &pid, "--for", "1s", "--no-stacks"]);
    let jvm = report.jvm.unwrap();
    assert!(jvm.taken.is_none());
    assert!(
        jvm.notes[0].contains("DisableAttachMechanism"),
        "{:?}",
        jvm.notes
    );
}
