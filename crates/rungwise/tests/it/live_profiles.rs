//! `profile --pid` of real programs whose CPU time, waits and children are known (`crates/testkit/native`, `crates/testkit/java`), and of
//! processes that end, are hidden, or are none.

use std::io::{BufRead as _, BufReader, Read as _};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

use rungwise_model::profile::{Event, FrameKind, ProfileReport, Unit};
use rungwise_testkit::{TimeLimit, own_tmp, program, skipped};
use serde_json::Value;

use crate::plants::compile;
use crate::run::{Bench, planted};
use crate::tune::assert_valid;

/// Of a program from its start to its end; one that hangs must fail.
const LIMIT: Duration = Duration::from_mins(3);

/// A program that runs until it is dropped.
struct Planted {
    child: Child,
    limit: Option<TimeLimit>,
    lines: Receiver<String>,
}

impl Planted {
    fn start(command: &mut Command) -> Self {
        let (child, limit, output) = planted(command, LIMIT);
        let (send, lines) = channel();
        std::thread::spawn(move || {
            for line in output.lines().map_while(Result::ok) {
                if send.send(line).is_err() {
                    break;
                }
            }
        });
        Self {
            child,
            limit: Some(limit),
            lines,
        }
    }

    fn pid(&self) -> String {
        self.child.id().to_string()
    }
}

impl Drop for Planted {
    fn drop(&mut self) {
        self.limit = None;
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn sources() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../testkit/native")
}

/// Compiles the C program with frame pointers.
fn native(bench: &Bench) -> PathBuf {
    compiled(bench, "split", &["-O1", "-fno-omit-frame-pointer"])
}

pub(crate) fn compiled(bench: &Bench, name: &str, options: &[&str]) -> PathBuf {
    let made = bench.path(name);
    let compiled = Command::new("cc")
        .args(options)
        .args(["-g0", "-pthread", "-o"])
        .args([&made, &sources().join(format!("{name}.c"))])
        .output()
        .expect("cc is in PATH: Rust links with it");
    let said = String::from_utf8_lossy(&compiled.stderr);
    assert!(compiled.status.success(), "{said}");
    made
}

fn document(bench: &Bench, words: &[&str]) -> ProfileReport {
    let words = [&["profile", "--format", "json", "-q"], words].concat();
    let ended = bench.run(&words).expect(0);
    let document: Value = serde_json::from_str(&ended.stdout).unwrap();
    assert_valid(&document, "profile");
    serde_json::from_value(document).unwrap()
}

/// The share of stacks that contain the function.
fn share(report: &ProfileReport, frame: &str) -> f64 {
    let mut hot = report.profile.hot.iter();
    let found = hot.find(|hot| hot.frame.ends_with(frame));
    found.map_or(0.0, |found| found.total_share)
}

/// Asserts shares of 70, 20 and 10 % within four standard deviations of sampling: a failure by chance in one of some ten thousand runs.
#[track_caller]
fn assert_split(report: &ProfileReport, prefix: &str) {
    let samples = report.profile.total as f64;
    assert!(samples > 50.0, "only {samples} samples");
    for (frame, expected) in [("seventy", 0.7), ("twenty", 0.2), ("ten", 0.1)] {
        let found = share(report, &format!("{prefix}{frame}"));
        let error = 4.0 * f64::sqrt(expected * (1.0 - expected) / samples);
        assert!(
            (found - expected).abs() < error,
            "{frame}: {found}, not {expected} ± {error} of {samples}: {:?}",
            report.profile.hot
        );
    }
}

#[test]
fn a_c_program_has_its_known_split_with_thread_and_callers() {
    let bench = Bench::new();
    let split = Planted::start(Command::new(native(&bench)).arg("cpu"));
    let mounts = std::fs::read_to_string("/proc/self/mounts").unwrap();
    let report = document(
        &bench,
        &["--pid", &split.pid(), "--for", "4s", "--hz", "499"],
    );
    assert_split(&report, "");
    let profile = &report.profile;
    assert_eq!(
        (profile.event, profile.unit, profile.format.as_str()),
        (Event::Cpu, Unit::Samples, "live")
    );
    assert_eq!(profile.threads[0].name, "worker-7");
    assert!(profile.threads[0].share > 0.98, "{:?}", profile.threads);
    assert!(share(&report, "work") > 0.95, "{:?}", profile.hot);
    assert_eq!(report.target, format!("pid {}", split.pid()));
    // The kernel lies on the user code that it interrupts.
    let kernel = profile
        .stacks
        .folded
        .iter()
        .filter(|line| line.contains("_[k]"));
    assert!(
        kernel.clone().all(|line| line.contains(";work;")),
        "{:?}",
        kernel.collect::<Vec<_>>()
    );
    assert_eq!(
        std::fs::read_to_string("/proc/self/mounts").unwrap(),
        mounts
    );
}

#[test]
fn samples_are_as_many_as_the_cpu_time_of_the_process() {
    let bench = Bench::new();
    let split = Planted::start(Command::new(native(&bench)).arg("cpu"));
    let cpu = || {
        let threads = std::fs::read_dir(format!("/proc/{}/task", split.pid())).unwrap();
        let of = |entry: std::fs::DirEntry| {
            let text = std::fs::read_to_string(entry.path().join("schedstat")).unwrap();
            text.split(' ').next().unwrap().parse::<u64>().unwrap()
        };
        threads.flatten().map(of).sum::<u64>() as f64 / 1e9
    };
    let before = cpu();
    let report = document(
        &bench,
        &["--pid", &split.pid(), "--for", "3s", "--hz", "499"],
    );
    let (used, sampled) = (cpu() - before, report.profile.total as f64 / 499.0);
    // The program itself takes time around the window, in which the process runs as well.
    assert!(
        sampled < used * 1.1 && sampled > used * 0.5,
        "{sampled} s sampled, {used} s used"
    );
}

#[test]
fn a_rust_program_has_its_known_split_and_demangled_names() {
    let bench = Bench::new();
    let made = bench.path("split-rust");
    let compiled = Command::new("rustc")
        .args([
            "--edition",
            "2024",
            "-C",
            "opt-level=1",
            "-C",
            "force-frame-pointers=yes",
            "-o",
        ])
        .args([&made, &sources().join("split.rs")])
        .output()
        .expect("rustc is in PATH");
    let said = String::from_utf8_lossy(&compiled.stderr);
    assert!(compiled.status.success(), "{said}");
    let split = Planted::start(&mut Command::new(&made));
    let words = ["--pid", &split.pid(), "--for", "4s", "--hz", "499"];
    let report = document(&bench, &words);
    // The method of a trait is written as `<split::shop::Basket as split::shop::Cart>::ten`.
    assert_split(&report, "");
    assert!(
        share(&report, "::shop::seventy") > 0.5,
        "{:?}",
        report.profile.hot
    );
    assert_eq!(report.profile.threads[0].name, "pool-1");
    let mangled = report.profile.hot.iter().find(|hot| {
        hot.kind != FrameKind::Kernel
            && (hot.frame.starts_with("_ZN") || hot.frame.starts_with("_R"))
    });
    assert_eq!(mangled, None);
}

#[test]
fn children_that_start_and_end_in_the_window_are_part_of_it() {
    let bench = Bench::new();
    let split = Planted::start(Command::new(native(&bench)).arg("children"));
    let report = document(
        &bench,
        &["--pid", &split.pid(), "--for", "2s", "--hz", "199"],
    );
    assert!(
        share(&report, "child_work") > 0.5,
        "{:?}",
        report.profile.hot
    );
    let children = &report.profile.threads[0];
    assert_eq!(children.name, "child-7");
    assert!(children.threads > 3, "{:?}", report.profile.threads);
}

#[test]
fn off_cpu_time_is_that_of_the_waits_by_thread() {
    let bench = Bench::new();
    let split = Planted::start(Command::new(native(&bench)).arg("wait"));
    let row = |line: String| -> [u64; 2] {
        let mut numbers = line.split(' ').map(|number| number.parse().unwrap());
        [numbers.next().unwrap(), numbers.next().unwrap()]
    };
    let first = row(split.lines.recv().unwrap());
    let words = ["--pid", &split.pid(), "--for", "3s", "--event", "off-cpu"];
    let report = document(&bench, &words);
    let profile = &report.profile;
    assert_eq!((profile.event, profile.unit), (Event::OffCpu, Unit::Ns));
    let sum = |thread: &str, text: &str| {
        let lines = profile.stacks.folded.iter();
        let lines =
            lines.filter(|line| line.starts_with(&format!("[{thread} ")) && line.contains(text));
        let weights = lines.map(|line| line.rsplit(' ').next().unwrap().parse::<u64>().unwrap());
        weights.sum::<u64>() as f64 / 1e9
    };
    // What the program itself has measured meanwhile, by a clock that runs on both sides of each wait.
    let last = row(split.lines.try_iter().last().unwrap());
    let [long, short] = [last[0] - first[0], last[1] - first[1]].map(|ns| ns as f64);
    let truth = long / (long + short);
    let (long, short) = (sum("waiter", ";long_wait;"), sum("waiter", ";short_wait;"));
    let found = long / (long + short);
    assert!(
        (found - truth).abs() < 0.06,
        "{found}, not {truth}: {:?}",
        profile.stacks.folded
    );
    // It does nothing but wait, and so does the other.
    for thread in ["waiter", "idler"] {
        let all = sum(thread, "");
        assert!((2.7..4.5).contains(&all), "{thread}: {all} s of 3 s");
    }
    let idle = sum("idler", "[blocked since before the profile]_[k];");
    assert!(
        idle > 2.7 && (sum("idler", "pause_[k]") - idle).abs() < 1e-9,
        "{idle}"
    );
    bench
        .run(&[
            "profile",
            "--pid",
            &split.pid(),
            "--event",
            "off-cpu",
            "--hz",
            "50",
        ])
        .expect(2)
        .says(&["remove --hz"]);
}

/// The share of the weight of a profile whose stacks have all of these in this order.
fn share_of_path(report: &ProfileReport, thread: &str, path: &[&str]) -> f64 {
    let (mut found, mut all) = (0, 0);
    for line in &report.profile.stacks.folded {
        let (stack, weight) = line.rsplit_once(' ').unwrap();
        let weight: u64 = weight.parse().unwrap();
        if !stack.starts_with(&format!("[{thread}")) {
            continue;
        }
        all += weight;
        let mut frames = stack.split(';');
        let is_path = path
            .iter()
            .all(|part| frames.any(|frame| frame.starts_with(part)));
        found += if is_path { weight } else { 0 };
    }
    found as f64 / all.max(1) as f64
}

/// Without frame pointers. The paths call the same functions, so only callers tell them apart.
fn assert_paths(report: &ProfileReport, leaf: &[&str], shares: [f64; 3], error: f64) {
    let paths = ["path_seventy", "path_twenty", "path_ten"];
    for (path, expected) in paths.into_iter().zip(shares) {
        let inner = format!("inner_{path}");
        let whole = [&["work", path, &inner], leaf].concat();
        let found = share_of_path(report, "worker-7", &whole);
        assert!(
            (found - expected).abs() < error,
            "{path}: {found}, not {expected} ± {error}: {:?} {:?}",
            report.profile.source,
            report.profile.stacks.folded
        );
    }
}

/// The part of the stacks that are whole, as the document says.
fn whole(report: &ProfileReport) -> f64 {
    let source = report.profile.source.as_deref().unwrap();
    let (_, rest) = source
        .split_once("; stacks by unwind tables and frame pointers: ")
        .unwrap_or_else(|| panic!("{source}"));
    let (share, _) = rest.split_once(" % whole").unwrap();
    share.parse::<f64>().unwrap() / 100.0
}

const WITHOUT_FRAMES: &[&str] = &["-O2", "-fomit-frame-pointer"];

#[test]
fn a_c_program_without_frame_pointers_has_its_callers() {
    if !cfg!(target_arch = "x86_64") {
        skipped("unwind tables were tested on x86-64 only");
        return;
    }
    let bench = Bench::new();
    let made = compiled(&bench, "paths", WITHOUT_FRAMES);
    let paths = Planted::start(Command::new(&made).arg("cpu"));
    let words = ["--pid", &paths.pid(), "--for", "4s", "--hz", "499"];
    let report = document(&bench, &words);
    let samples = report.profile.total as f64;
    assert!(samples > 50.0, "only {samples} samples");
    let error = 4.0 * f64::sqrt(0.21 / samples);
    assert_paths(&report, &["run", "burn"], [0.7, 0.2, 0.1], error);
    assert!(whole(&report) > 0.99, "{:?}", report.profile.source);
    let notes = report.profile.notes.join("\n");
    assert!(!notes.contains("lack callers"), "{notes}");
    drop(paths);

    let paths = Planted::start(Command::new(&made).arg("wait"));
    let row = |line: String| -> Vec<f64> {
        let numbers = line.split(' ').map(|number| number.parse().unwrap());
        numbers.collect()
    };
    let first = row(paths.lines.iter().find(|line| line != "ready").unwrap());
    let words = ["--pid", &paths.pid(), "--for", "3s", "--event", "off-cpu"];
    let report = document(&bench, &words);
    let last = row(paths.lines.try_iter().last().unwrap());
    let times = [0, 1, 2].map(|path| last[path] - first[path]);
    let all: f64 = times.iter().sum();
    // The last round, or the first, may be in one of both alone.
    let waits = ["wait_for", "rest"];
    assert_paths(&report, &waits, times.map(|time| time / all), 0.06);
    // The other thread was blocked before.
    let read = share_of_path(&report, "paths", &["main", "[blocked since before"]);
    assert!(read > 0.95, "{read}: {:?}", report.profile.stacks.folded);
    assert!(whole(&report) > 0.95, "{:?}", report.profile.source);
}

#[test]
fn stacks_longer_than_the_copy_are_counted_and_frame_pointers_make_them_whole() {
    if !cfg!(target_arch = "x86_64") {
        skipped("unwind tables were tested on x86-64 only");
        return;
    }
    let bench = Bench::new();
    let made = compiled(&bench, "paths", WITHOUT_FRAMES);
    let deep = Planted::start(Command::new(&made).arg("deep"));
    let words = ["--pid", &deep.pid(), "--for", "1s"];
    let report = document(&bench, &words);
    let notes = report.profile.notes.join("\n");
    assert!(
        notes.contains("longer than the 32 KiB that are copied")
            && notes.contains("-fno-omit-frame-pointer"),
        "{notes}"
    );
    assert!(whole(&report) < 0.05, "{:?}", report.profile.source);
    assert!(share(&report, "deep") > 0.95, "{:?}", report.profile.hot);
}

#[test]
fn python_of_the_distribution_has_its_callers() {
    let python = Path::new("/usr/bin/python3");
    if !cfg!(target_arch = "x86_64") || !python.exists() {
        skipped("no /usr/bin/python3, or another machine than x86-64");
        return;
    }
    let bench = Bench::new();
    let script = "import time\n\
                  def work(n):\n    return sum(i * i for i in range(n))\n\
                  print('ready', flush=True)\n\
                  while True:\n    work(20000)\n    time.sleep(0.0005)\n";
    let python = Planted::start(Command::new(python).args(["-c", script]));
    let pid = python.pid();
    for event in [["--hz", "499"], ["--event", "off-cpu"]] {
        let words = ["--pid", &pid, "--for", "2s", event[0], event[1]];
        let report = document(&bench, &words);
        // Symbols of the interpreter are in its own table, or nowhere: then the root is the file.
        let named = share(&report, "Py_RunMain").max(share(&report, "Py_BytesMain"));
        assert!(named > 0.95, "{named}: {:?}", report.profile.hot);
        assert!(whole(&report) > 0.95, "{:?}", report.profile.source);
    }
}

#[test]
fn code_made_at_run_time_is_named_by_the_perf_map_of_the_process() {
    if !cfg!(target_arch = "x86_64") {
        skipped("the planted program has machine code for x86-64 only");
        return;
    }
    let bench = Bench::new();
    let split = Planted::start(Command::new(native(&bench)).arg("jit"));
    let map = format!("/tmp/perf-{}.map", split.pid());
    let report = document(&bench, &["--pid", &split.pid(), "--for", "1s"]);
    // It is the program's, and stays.
    let stays = std::fs::remove_file(&map);
    assert!(
        share(&report, "py::handler:/srv/app.py") > 0.9,
        "{:?}",
        report.profile.hot
    );
    assert!(stays.is_ok());
}

#[test]
fn names_are_found_in_a_replaced_file_and_are_no_code_in_a_page() {
    const NAME: &[u8] = b"replaceable_name_of_the_same_length_as_markup";
    let bench = Bench::new();
    let made = native(&bench);
    let mut bytes = std::fs::read(&made).unwrap();
    let mut markup = b"</script><script>window.hacked=1</script>".to_vec();
    markup.resize(NAME.len(), b'!');
    let places: Vec<usize> = (0..bytes.len() - NAME.len())
        .filter(|at| bytes[*at..].starts_with(NAME))
        .collect();
    assert!(!places.is_empty());
    for at in places {
        bytes[at..at + NAME.len()].copy_from_slice(&markup);
    }
    std::fs::remove_file(&made).unwrap();
    std::fs::write(&made, &bytes).unwrap();
    Command::new("chmod")
        .arg("755")
        .arg(&made)
        .status()
        .unwrap();
    let split = Planted::start(Command::new(&made).arg("markup"));
    // As an upgrade does, and one that is cut.
    std::fs::remove_file(&made).unwrap();
    std::fs::write(&made, &bytes[..bytes.len() / 3]).unwrap();
    let words = [
        "profile",
        "-q",
        "--pid",
        &split.pid(),
        "--for",
        "1s",
        "-o",
        "flame.html",
    ];
    bench.run(&words).expect(0);
    let page = std::fs::read_to_string(bench.path("flame.html")).unwrap();
    assert!(
        page.contains("&lt;/script&gt;&lt;script&gt;window.hacked=1"),
        "the name is missing"
    );
    assert!(!page.contains("<script>window.hacked"));
}

#[test]
fn a_process_that_ends_or_an_interrupt_gives_what_was_seen_so_far() {
    let bench = Bench::new();
    let made = native(&bench);
    let mut split = Planted::start(Command::new(&made).arg("cpu"));
    let pid = split.pid();
    let words = ["profile", "--pid", &pid, "--for", "60s", "--format", "json"];
    let mut profiler = bench.start(&words);
    let mut said = BufReader::new(profiler.stderr.take().unwrap());
    let mut line = String::new();
    said.read_line(&mut line).unwrap();
    assert!(line.contains(&format!("profiling pid {pid} for")), "{line}");
    std::thread::sleep(Duration::from_millis(1500));
    split.child.kill().unwrap();
    let ended = profiler.wait_with_output().unwrap();
    let report: ProfileReport = serde_json::from_slice(&ended.stdout).unwrap();
    assert_eq!(ended.status.code(), Some(0));
    assert!(share(&report, "seventy") > 0.3, "{:?}", report.profile.hot);
    assert!(
        report.profile.notes[0].contains(&format!("pid {pid} ended after")),
        "{:?}",
        report.profile.notes
    );

    let split = Planted::start(Command::new(&made).arg("cpu"));
    let words = [
        "profile",
        "--pid",
        &split.pid(),
        "--for",
        "60s",
        "--format",
        "json",
    ];
    let mut profiler = bench.start(&words);
    let mut said = BufReader::new(profiler.stderr.take().unwrap());
    said.read_line(&mut line).unwrap();
    std::thread::sleep(Duration::from_millis(1500));
    Command::new("kill")
        .args(["-INT", &profiler.id().to_string()])
        .status()
        .unwrap();
    let ended = profiler.wait_with_output().unwrap();
    let report: ProfileReport = serde_json::from_slice(&ended.stdout).unwrap();
    assert_eq!(ended.status.code(), Some(130));
    assert!(share(&report, "seventy") > 0.3);
    assert!(
        report.profile.notes[0].contains("interrupted after"),
        "{:?}",
        report.profile.notes
    );
}

#[test]
fn what_cannot_be_profiled_is_refused_with_the_cause_and_the_remedy() {
    let bench = Bench::new();
    let made = native(&bench);
    let mut gone = Planted::start(Command::new(&made).arg("cpu"));
    let pid = gone.pid();
    gone.child.kill().unwrap();
    gone.child.wait().unwrap();
    bench
        .run(&["profile", "--pid", &pid])
        .expect(4)
        .says(&["give the pid of a running process"]);

    let split = Planted::start(Command::new(&made).arg("cpu"));
    let pid = split.pid();
    let threads = std::fs::read_dir(format!("/proc/{pid}/task")).unwrap();
    let thread = threads
        .flatten()
        .map(|entry| entry.file_name().into_string().unwrap())
        .find(|name| *name != pid)
        .unwrap();
    bench
        .run(&["profile", "--pid", &thread])
        .expect(4)
        .says(&["it is a thread of process", &format!("--pid {pid}")]);
    bench
        .run(&["profile", "--pid", &pid, "--event", "alloc"])
        .expect(2)
        .says(&["async-profiler"]);
    bench.run(&["profile"]).expect(2).says(&["--pid"]);
    bench
        .run(&["profile", "x", "--for", "1s"])
        .expect(2)
        .says(&["--for"]);

    let idle = Planted::start(Command::new(&made).arg("none"));
    bench
        .run(&["profile", "--pid", &idle.pid(), "--for", "200ms"])
        .expect(4)
        .says(&["it did not run on a CPU", "--event off-cpu"]);

    // Without rights, where the file may be executed by others.
    let mut other = Command::new("setpriv");
    other
        .args(["--reuid", "65534", "--clear-groups"])
        .arg(crate::run::binary());
    let ended = bench
        .dress(other, &["profile", "--pid", &pid, "--for", "1s"])
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&ended.stderr);
    if said.contains("setpriv") {
        skipped(format_args!("another user cannot run this program: {said}"));
    } else {
        assert_eq!(ended.status.code(), Some(4), "{said}");
        assert!(
            said.contains("not permitted (sysctl kernel.perf_event_paranoid is"),
            "{said}"
        );
    }
}

/// Starts the Java program, with its classes in the folder of the bench.
fn java(bench: &Bench, java: &Path, options: &[&str]) -> Planted {
    let javac = program("javac").expect("javac is in PATH; cargo xtask test installs one");
    let classes = bench.path("classes");
    std::fs::create_dir_all(&classes).unwrap();
    assert!(compile(&javac, "8", "Split.java", &classes));
    let mut command = Command::new(java);
    command
        .args(options)
        .args(["-Xmx64m", "-XX:CompileCommand=quiet"]);
    for method in ["seventy", "twenty", "ten"] {
        command.arg(format!("-XX:CompileCommand=dontinline,Split.{method}"));
    }
    Planted::start(
        command
            .arg("-cp")
            .arg(&classes)
            .arg("Split")
            .stderr(Stdio::null()),
    )
}

#[test]
fn java_methods_have_names_from_jdk_17_on_and_the_map_is_removed() {
    let bench = Bench::new();
    for name in ["java-17", "java-25"] {
        let Some(path) = program(name) else {
            skipped(format_args!("no {name} in PATH"));
            continue;
        };
        let split = java(&bench, &path, &["-XX:+PreserveFramePointer"]);
        let map = format!("/tmp/perf-{}.map", split.pid());
        let words = ["--pid", &split.pid(), "--for", "3s", "--hz", "299"];
        let report = document(&bench, &words);
        assert_split(&report, "Split.");
        let hot = &report.profile.hot;
        let seventy = hot.iter().find(|hot| hot.frame == "Split.seventy").unwrap();
        assert_eq!(seventy.kind, FrameKind::Java);
        // The JIT compiler and the collector are threads of the process, too.
        assert_eq!(report.profile.threads[0].name, "worker-7");
        assert!(!Path::new(&map).exists(), "{map} is left");
        assert!(
            !report
                .profile
                .notes
                .iter()
                .any(|note| note.contains("PreserveFramePointer"))
        );
    }
}

#[test]
fn a_jvm_without_frame_pointers_or_of_an_old_release_is_said_with_what_helps() {
    let bench = Bench::new();
    if let Some(path) = program("java-17") {
        let split = java(&bench, &path, &[]);
        // Somebody else's map stays, and is used.
        let map = format!("/tmp/perf-{}.map", split.pid());
        std::fs::write(&map, "1 1 nothing\n").unwrap();
        let report = document(&bench, &["--pid", &split.pid(), "--for", "500ms"]);
        let stays = std::fs::remove_file(&map);
        let notes = report.profile.notes.join("\n");
        assert!(
            notes.contains("start it with that option for whole stacks"),
            "{notes}"
        );
        assert!(notes.contains("that existed already"), "{notes}");
        assert!(stays.is_ok(), "{map} is removed");
        let hot = &report.profile.hot;
        assert!(
            !hot.iter().any(|hot| hot.frame == "Split.seventy"),
            "{hot:?}"
        );
    } else {
        skipped("no java-17 in PATH");
    }
    for name in ["java-8", "java-11"] {
        let Some(path) = program(name) else {
            skipped(format_args!("no {name} in PATH"));
            continue;
        };
        let split = java(&bench, &path, &[]);
        let report = document(&bench, &["--pid", &split.pid(), "--for", "500ms"]);
        let notes = report.profile.notes.join("\n");
        assert!(
            notes.contains("older than JDK 17") && notes.contains("async-profiler"),
            "{notes}"
        );
    }
}

#[test]
fn a_jvm_in_namespaces_of_its_own_is_named_as_one_outside() {
    let bench = Bench::new();
    let Some(path) = program("java-17") else {
        skipped("no java-17 in PATH");
        return;
    };
    // It has pid 1 in there, and a /tmp that is not this one.
    let script = format!(
        "{} && exec {} -XX:+PreserveFramePointer -Xmx64m -cp \"$0\" Split",
        own_tmp(),
        path.display()
    );
    let javac = program("javac").expect("javac is in PATH; cargo xtask test installs one");
    let classes =
        Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("split-{}", std::process::id()));
    std::fs::create_dir_all(&classes).unwrap();
    assert!(compile(&javac, "8", "Split.java", &classes));
    let mut command = Command::new("unshare");
    command
        .args([
            "--mount",
            "--pid",
            "--fork",
            "--kill-child",
            "sh",
            "-c",
            &script,
        ])
        .arg(&classes);
    let outer = Planted::start(&mut command);
    let children = format!("/proc/{0}/task/{0}/children", outer.pid());
    let inner = std::fs::read_to_string(children).unwrap().trim().to_owned();
    let report = document(&bench, &["--pid", &inner, "--for", "2s"]);
    let left = std::fs::read_dir(Path::new("/proc").join(&inner).join("root/tmp")).unwrap();
    let left: Vec<_> = left.flatten().map(|entry| entry.file_name()).collect();
    drop(outer);
    let _ = std::fs::remove_dir_all(&classes);
    assert!(
        report
            .profile
            .hot
            .iter()
            .any(|hot| hot.frame.starts_with("Split.")),
        "{:?}",
        report.profile
    );
    assert!(
        !left
            .iter()
            .any(|name| name.to_string_lossy().starts_with("perf-")),
        "{left:?}"
    );
}

#[test]
fn stacks_of_a_process_are_exported_as_those_of_a_file() {
    let bench = Bench::new();
    let split = Planted::start(Command::new(native(&bench)).arg("cpu"));
    let pid = split.pid();
    let words = ["profile", "-q", "--pid", &pid, "--for", "500ms"];
    let folded = bench
        .run(&[&words[..], &["--folded"]].concat())
        .expect(0)
        .stdout;
    assert!(
        folded.contains("[worker-7 tid=") && folded.contains(";work;seventy"),
        "{folded}"
    );
    let speedscope = bench
        .run(&[&words[..], &["--speedscope"]].concat())
        .expect(0)
        .stdout;
    let speedscope: Value = serde_json::from_str(&speedscope).unwrap();
    assert_eq!(speedscope["name"], format!("pid {pid}"));
    bench
        .run(&[&words[..], &["-o", "live.json"]].concat())
        .expect(0);
    let text = bench.run(&["report", "live.json"]).expect(0).stdout;
    assert!(
        text.contains("cpu-clock, 99 Hz") && text.contains("seventy"),
        "{text}"
    );
    let mut page = String::new();
    bench
        .run(&["report", "live.json", "-o", "flame.html"])
        .expect(0);
    std::fs::File::open(bench.path("flame.html"))
        .unwrap()
        .read_to_string(&mut page)
        .unwrap();
    assert!(page.contains("Flame graph"));
}
