//! `jvm gc --follow`: what is printed while a log is written, in every way that logs are written, and the report at the end.
//!
//! Writers wait until what they wrote was read, so that it is read in pieces.

use std::fs::{File, OpenOptions};
use std::io::{BufRead as _, BufReader, Read, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::run::{Bench, kill};
use crate::tune::assert_valid;

const LIMIT: Duration = Duration::from_secs(20);

fn corpus(name: &str) -> Vec<u8> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../gclog/corpus");
    std::fs::read(folder.join(name)).unwrap()
}

/// A run of `jvm gc --follow` and what it says, line by line.
struct Following {
    child: Child,
    printed: Receiver<String>,
    said: Receiver<String>,
}

fn lines(stream: impl Read + Send + 'static) -> Receiver<String> {
    let (sender, receiver) = channel();
    std::thread::spawn(move || {
        for line in BufReader::new(stream).lines().map_while(Result::ok) {
            if sender.send(line).is_err() {
                return;
            }
        }
    });
    receiver
}

impl Following {
    fn start(bench: &Bench, arguments: &[&str]) -> Self {
        let all = [&["jvm", "gc", "--follow"], arguments].concat();
        let mut child = bench
            .command(&all)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        Self {
            printed: lines(child.stdout.take().unwrap()),
            said: lines(child.stderr.take().unwrap()),
            child,
        }
    }

    /// Waits for words on standard error.
    fn until_said(&self, words: &str) {
        while !self.said.recv_timeout(LIMIT).unwrap().contains(words) {}
    }

    fn line(&self) -> String {
        self.printed.recv_timeout(LIMIT).unwrap()
    }

    fn event(&self) -> Value {
        serde_json::from_str(&self.line()).unwrap()
    }

    /// The next event of this name; findings and standings come when the rules have looked.
    fn event_of(&self, name: &str) -> Value {
        loop {
            let event = self.event();
            if event["event"] == name {
                return event;
            }
        }
    }

    fn status(&self, of: &str) -> String {
        std::fs::read_to_string(format!("/proc/{}/{of}", self.child.id())).unwrap()
    }

    /// Bytes that were read, of whatever.
    fn has_read(&self) -> u64 {
        let io = self.status("io");
        let count = io.lines().find_map(|line| line.strip_prefix("rchar: "));
        count.unwrap().parse().unwrap()
    }

    /// Appends to the log, and waits until that much was read.
    fn write(&self, file: &mut File, text: &[u8]) {
        let before = self.has_read();
        file.write_all(text).unwrap();
        let deadline = Instant::now() + LIMIT;
        while self.has_read() < before + text.len() as u64 {
            assert!(Instant::now() < deadline, "it was not read");
            std::thread::yield_now();
        }
    }

    /// All that is printed after a signal, and the exit status.
    fn stop(mut self, signal: i32) -> (Vec<String>, Option<i32>) {
        kill(self.child.id().cast_signed(), signal);
        let rest = self.printed.iter().collect();
        (rest, self.child.wait().unwrap().code())
    }

    /// The document at the end.
    fn report(self) -> Value {
        let (rest, _) = self.stop(libc::SIGTERM);
        let last: Value = serde_json::from_str(rest.last().unwrap()).unwrap();
        assert_eq!(last["event"], "report");
        last
    }
}

impl Drop for Following {
    /// A test that fails leaves nothing running.
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// What does not differ from run to run.
fn comparable(mut document: Value) -> Value {
    let all = document.as_object_mut().unwrap();
    for own in ["command", "started", "finished", "event"] {
        all.remove(own);
    }
    document
}

fn read_at_once(bench: &Bench, path: &Path) -> Value {
    let path = path.to_str().unwrap();
    let ended = bench.run(&["jvm", "gc", path, "--format", "json"]);
    comparable(serde_json::from_str(&ended.stdout).unwrap())
}

fn create(path: &Path) -> File {
    OpenOptions::new()
        .create(true)
        .append(true)
        .open(path)
        .unwrap()
}

/// A pause of G1 at this uptime.
fn pause(id: u64, at_s: f64) -> String {
    format!(
        "[{at_s:.3}s][info][gc] GC({id}) Pause Young (Normal) (G1 Evacuation Pause) 24M->4M(256M) 3.524ms\n"
    )
}

#[test]
fn a_log_that_is_written_in_pieces_says_what_it_says_at_once() {
    for (seed, name) in [
        "own_jdk17-g1-tospace.log",
        "own_jdk21-genzgc.log",
        "own_jdk8-cms-cmf.log",
        "seed-cms-remark-before.log",
    ]
    .into_iter()
    .enumerate()
    {
        let bench = Bench::new();
        let path = bench.path("gc.log");
        let text = corpus(name);
        let following = Following::start(&bench, &["gc.log", "--format", "json"]);
        following.until_said("waiting for gc.log");
        let mut file = create(&path);
        let mut state = seed as u64;
        let mut rest = &text[..];
        while !rest.is_empty() {
            state = state.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(11);
            let length = 1 + (state >> 33) as usize % (text.len() / 8);
            let (piece, behind) = rest.split_at(length.min(rest.len()));
            following.write(&mut file, piece);
            rest = behind;
        }
        let (rest, code) = following.stop(libc::SIGINT);
        let events: Vec<Value> = rest
            .iter()
            .map(|line| serde_json::from_str(line).unwrap())
            .collect();
        for event in &events {
            assert_valid(event, "jvm-gc-follow");
        }
        let (report, before) = events.split_last().unwrap();
        let at_once = read_at_once(&bench, Path::new("gc.log"));
        assert_eq!(comparable(report.clone()), at_once, "{name}");
        assert_eq!(Some(report["exit"].as_i64().unwrap() as i32), code);
        let collections: Vec<&Value> = before
            .iter()
            .filter(|event| event["event"] == "collection" && event["kind"] != "cycle")
            .filter(|event| !event["duration_ms"].is_null())
            .collect();
        assert_eq!(at_once["pauses"]["count"], collections.len(), "{name}");
        let longest = collections
            .iter()
            .map(|event| event["duration_ms"].as_f64().unwrap())
            .fold(0.0, f64::max);
        assert_eq!(at_once["pauses"]["longest_ms"], longest, "{name}");
    }
}

#[test]
fn a_rotated_log_goes_on_in_the_next_file() {
    let bench = Bench::new();
    let path = bench.path("gc.log");
    let mut file = create(&path);
    let following = Following::start(&bench, &["gc.log", "--format", "json"]);
    following.until_said("following gc.log");
    following.write(&mut file, pause(0, 1.0).as_bytes());
    assert_eq!(following.event_of("collection")["at_s"], 0.996_476);
    std::fs::rename(&path, bench.path("gc.log.0")).unwrap();
    // The last line of the old file lacks its end, and was written after the rename.
    file.write_all(pause(1, 2.0).trim_end().as_bytes()).unwrap();
    let mut file = create(&path);
    following.write(&mut file, pause(2, 3.0).as_bytes());
    following.event_of("collection");
    following.event_of("collection");
    let report = following.report();
    assert_eq!(report["pauses"]["count"], 3);
    assert_eq!(report["files"].as_array().unwrap().len(), 2);
    assert_eq!(report["files"][1]["first_line"], 3);
    assert_eq!(report["runs"].as_array().unwrap().len(), 1);
}

#[test]
fn a_rotated_log_of_jdk_8_goes_on_under_the_next_number() {
    let bench = Bench::new();
    let line = |at: &str| {
        format!("{at}: [GC (Allocation Failure)  65536K->1000K(251392K), 0.0051410 secs]\n")
    };
    let following = Following::start(&bench, &["gc.log", "--format", "json"]);
    following.until_said("waiting for gc.log");
    let path = |number: u32| bench.path(&format!("gc.log.{number}.current"));
    let mut file = create(&path(0));
    following.write(&mut file, line("1.000").as_bytes());
    following.event_of("collection");
    std::fs::rename(path(0), bench.path("gc.log.0")).unwrap();
    let mut file = create(&path(1));
    following.write(&mut file, line("2.000").as_bytes());
    following.event_of("collection");
    let report = following.report();
    assert_eq!(report["pauses"]["count"], 2);
    assert_eq!(report["files"][1]["name"], "gc.log.1.current");
}

#[test]
fn a_log_that_is_copied_and_emptied_goes_on_whether_its_writer_keeps_its_place_or_not() {
    for appends in [true, false] {
        let bench = Bench::new();
        let path = bench.path("gc.log");
        let mut file = OpenOptions::new()
            .create(true)
            .append(appends)
            .write(true)
            .open(&path)
            .unwrap();
        let following = Following::start(&bench, &["gc.log", "--format", "json"]);
        following.until_said("following gc.log");
        for id in 0..100_u32 {
            let text = pause(id.into(), f64::from(id) + 1.0);
            file.write_all(text.as_bytes()).unwrap();
        }
        for _ in 0..100 {
            following.event_of("collection");
        }
        create(&path).set_len(0).unwrap();
        following.write(&mut file, pause(100, 101.0).as_bytes());
        following.event_of("collection");
        let report = following.report();
        assert_eq!(report["pauses"]["count"], 101, "{appends}");
        assert_eq!(report["account"]["unknown_lines"], 0);
        assert_eq!(report["runs"].as_array().unwrap().len(), 1);
        let files = report["files"].as_array().unwrap().len();
        assert_eq!(files, if appends { 2 } else { 1 });
    }
}

#[test]
fn another_jvm_in_the_same_file_is_reported() {
    let bench = Bench::new();
    let mut file = create(&bench.path("gc.log"));
    let following = Following::start(&bench, &["gc.log", "--format", "json"]);
    following.until_said("following gc.log");
    let first = [pause(7, 50.0), pause(8, 51.0)].concat();
    following.write(&mut file, first.as_bytes());
    following.write(&mut file, pause(0, 1.0).as_bytes());
    following.event_of("restart");
    assert_eq!(following.event_of("collection")["at_s"], 0.996_476);
    assert_eq!(following.report()["runs"].as_array().unwrap().len(), 2);
}

#[test]
fn jvms_that_write_by_turns_are_named_in_every_row() {
    let bench = Bench::new();
    let mut file = create(&bench.path("gc.log"));
    let following = Following::start(&bench, &["gc.log", "--format", "json"]);
    following.until_said("following gc.log");
    let of = |process: u32, id: u64, at_s: f64| {
        pause(id, at_s).replace("[info]", &format!("[{process}][{}][info]", process + 9))
    };
    for turn in 0..3_u32 {
        let at_s = f64::from(turn);
        let lines = [
            of(1, 70 + u64::from(turn), 5000.0 + at_s),
            of(300, u64::from(turn), 12.0 + at_s),
        ];
        following.write(&mut file, lines.concat().as_bytes());
        let rows = [(); 2].map(|()| following.event_of("collection"));
        let named: Vec<_> = rows
            .iter()
            .filter_map(|row| row["source"].as_str())
            .collect();
        // The first one of all may be shown before there is another.
        assert!(named.contains(&"pid 300"), "{named:?}");
        assert!(turn == 0 || named.contains(&"pid 1"), "{named:?}");
    }
    let report = following.report();
    let runs = report["runs"].as_array().unwrap();
    let jvms: Vec<_> = runs
        .iter()
        .map(|run| {
            (
                run["source"].as_str().unwrap(),
                run["pauses"]["all"]["count"].as_u64().unwrap(),
            )
        })
        .collect();
    assert_eq!(jvms, [("pid 1", 3), ("pid 300", 3)]);
}

#[test]
fn a_finding_is_reported_once_and_the_standing_every_minute() {
    let bench = Bench::new();
    let mut file = create(&bench.path("gc.log"));
    let following = Following::start(&bench, &["gc.log", "--format", "json"]);
    following.until_said("following gc.log");
    let full = |id: u32, at: f64| {
        format!(
            "[{at:.3}s][info][gc] GC({id}) Pause Full (G1 Compaction Pause) 250M->240M(256M) 1500.000ms\n"
        )
    };
    following.write(
        &mut file,
        [full(0, 10.0), full(1, 20.0)].concat().as_bytes(),
    );
    let mut found = vec![following.event_of("finding")];
    // A minute of the log later.
    following.write(
        &mut file,
        [full(2, 75.0), full(3, 85.0)].concat().as_bytes(),
    );
    let standing = loop {
        let event = following.event();
        match event["event"].as_str().unwrap() {
            "finding" => found.push(event),
            "standing" => break event,
            _ => {}
        }
    };
    assert_eq!(standing["pauses"], 2);
    assert_eq!(standing["paused_ms"], 3000.0);
    assert_eq!(standing["seconds"], 65.0);
    let (rest, code) = following.stop(libc::SIGTERM);
    assert_eq!(code, Some(1));
    let rest = rest.iter().map(|line| serde_json::from_str(line).unwrap());
    found.extend(rest.filter(|event: &Value| event["event"] == "finding"));
    let mut texts: Vec<String> = found
        .iter()
        .map(|event| {
            format!(
                "{} {} {}",
                event["rule"], event["outcome"], event["severity"]
            )
        })
        .collect();
    assert!(
        texts.iter().any(|words| words.contains("gc-full")),
        "{texts:?}"
    );
    texts.sort();
    let all = texts.len();
    texts.dedup();
    assert_eq!(texts.len(), all, "{texts:?}");
}

#[test]
fn people_see_the_last_ten_then_each_one_then_the_report() {
    let bench = Bench::new();
    let path = bench.path("gc.log");
    let mut file = create(&path);
    for id in 0..20_u32 {
        let text = pause(id.into(), f64::from(id) + 1.0);
        file.write_all(text.as_bytes()).unwrap();
    }
    let following = Following::start(&bench, &["gc.log", "--slo", "3ms"]);
    following.until_said("20 lines so far");
    let rows: Vec<String> = (0..10).map(|_| following.line()).collect();
    assert!(rows[0].starts_with("10.996 s      ! young"), "{rows:#?}");
    assert!(rows[9].contains("24.0\u{202f}MiB → 4.00\u{202f}MiB of 256\u{202f}MiB"));
    following.write(&mut file, pause(20, 21.0).as_bytes());
    while !following.line().starts_with("20.996 s") {}
    let (rest, code) = following.stop(libc::SIGINT);
    assert_eq!(code, Some(1), "the limit was missed");
    let page = rest.join("\n");
    assert!(
        page.contains("Longest pause") && page.contains("gc.log"),
        "{page}"
    );
}

#[test]
fn standard_input_is_followed_to_its_end() {
    let bench = Bench::new();
    let mut following = Following::start(&bench, &["-", "--format", "json"]);
    let mut stdin = following.child.stdin.take().unwrap();
    stdin.write_all(pause(0, 1.0).as_bytes()).unwrap();
    following.event_of("collection");
    stdin.write_all(pause(1, 2.0).as_bytes()).unwrap();
    following.event_of("collection");
    drop(stdin);
    assert_eq!(following.event_of("report")["pauses"]["count"], 2);
    assert_eq!(following.child.wait().unwrap().code(), Some(0));
}

#[test]
fn it_ends_by_itself_after_the_time_that_was_given_and_says_when_there_was_nothing() {
    let bench = Bench::new();
    bench.write("gc.log", &pause(0, 1.0));
    let timed = |log: &str| bench.run(&["jvm", "gc", "--follow", log, "--for", "200ms"]);
    timed("gc.log").expect(0);
    bench.write("empty.log", "");
    timed("empty.log")
        .expect(4)
        .says(&["empty.log", "it is empty"]);
    timed("later.log")
        .expect(4)
        .says(&["later.log", "it does not exist yet"]);
    timed("no/such.log").expect(2).says(&["cannot watch no"]);
    timed(".").expect(2).says(&["it is a folder"]);
    std::fs::write(bench.path("gc.log.gz"), [0x1f, 0x8b, 8, 0, 0]).unwrap();
    timed("gc.log.gz").expect(2).says(&["it is compressed"]);
    bench
        .run(&["jvm", "gc", "--follow", "gc.log", "empty.log"])
        .expect(2)
        .says(&["--follow reads one log"]);
}

#[test]
fn the_report_goes_to_a_file_and_the_lines_do_not() {
    let bench = Bench::new();
    bench.write("gc.log", &pause(0, 1.0));
    let ended = bench.run(&[
        "jvm",
        "gc",
        "--follow",
        "gc.log",
        "--for",
        "200ms",
        "--format",
        "html",
        "-o",
        "report.html",
    ]);
    assert_eq!(ended.expect(0).stdout.lines().count(), 1);
    let page = std::fs::read_to_string(bench.path("report.html")).unwrap();
    assert!(page.contains("</html>") && page.contains("G1 Evacuation Pause"));
}

/// Times that all threads of a process went to sleep.
fn slept(pid: u32) -> u64 {
    let tasks = std::fs::read_dir(format!("/proc/{pid}/task")).unwrap();
    let of = |task: PathBuf| -> u64 {
        let status = std::fs::read_to_string(task.join("status")).unwrap();
        let line = status
            .lines()
            .find_map(|line| line.strip_prefix("voluntary_ctxt_switches:"));
        line.unwrap().trim().parse().unwrap()
    };
    tasks.map(|task| of(task.unwrap().path())).sum()
}

#[test]
fn nothing_wakes_it_while_nothing_is_written() {
    let bench = Bench::new();
    let path = bench.path("gc.log");
    std::fs::write(&path, corpus("own_jdk17-g1-tospace.log")).unwrap();
    let following = Following::start(&bench, &["gc.log", "--format", "json"]);
    following.until_said("following gc.log");
    // What there was is printed, and the rules have looked.
    while following
        .printed
        .recv_timeout(Duration::from_secs(1))
        .is_ok()
    {}
    let before = slept(following.child.id());
    let silent = following.printed.recv_timeout(Duration::from_secs(3));
    assert!(silent.is_err(), "{silent:?}");
    assert_eq!(slept(following.child.id()), before);
    following.write(&mut create(&path), pause(99, 99.0).as_bytes());
    assert!(slept(following.child.id()) > before);
    following.report();
}
