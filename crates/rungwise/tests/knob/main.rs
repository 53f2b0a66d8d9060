//! `rungwise knob` from outside, in a namespace of its own: killed at every step, with a full disk,
//! twice at once, with values of somebody else.
//!
//! Needs root (queue masks are refused to everybody else) and strace; fails and says so without.
#![allow(
    clippy::unwrap_used,
    clippy::disallowed_methods,
    reason = "tests start the program and look at its files themselves"
)]

use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};

use rungwise_host::namespace::Namespace;
use rungwise_testkit::{Killed, Record, Traced, differences, record};

/// A change of three files by three knobs; the masks are of one CPU, so that any machine has it.
const WISHES: [&str; 3] = ["net.rp_filter=2", "net.accept_local=on", "net.rps_cpus=0"];

struct Bench {
    namespace: Namespace,
    scratch: tempfile::TempDir,
    before: Record,
}

struct Ended {
    code: Option<i32>,
    words: String,
}

impl Bench {
    fn new() -> Self {
        let namespace = Namespace::create("knob-test").expect("this test needs root");
        let before = record(&namespace);
        assert!(
            before.contains_key("/sys/class/net/lo/queues/rx-0/rps_cpus"),
            "{before:?}"
        );
        Self {
            namespace,
            scratch: tempfile::tempdir().unwrap(),
            before,
        }
    }

    fn state(&self) -> PathBuf {
        self.scratch.path().join("state")
    }

    fn journals(&self) -> Vec<String> {
        let names = std::fs::read_dir(self.state().join("journals"));
        let names = names
            .into_iter()
            .flatten()
            .map(|entry| entry.unwrap().file_name());
        let mut names: Vec<String> = names.map(|name| name.into_string().unwrap()).collect();
        names.retain(|name| !name.contains(".closed"));
        names
    }

    /// Runs the binary inside the namespace.
    fn run(&self, words: &[&str]) -> Ended {
        let mut command = Command::new(binary());
        command.args(words);
        self.run_command(command)
    }

    fn run_command(&self, mut command: Command) -> Ended {
        command
            .env("RUNGWISE_STATE", self.state())
            .stdin(Stdio::null());
        let output: Output = self.namespace.run(move || command.output().unwrap());
        let words = [output.stdout, output.stderr].concat();
        Ended {
            code: output.status.code(),
            words: String::from_utf8_lossy(&words).into_owned(),
        }
    }

    fn changed(&self) -> Vec<String> {
        differences(&self.before, &record(&self.namespace))
    }

    /// Waits until no guard of this test is left.
    fn guard_is_gone(&self) {
        let needle = self.state().display().to_string();
        let deadline = Instant::now() + Duration::from_secs(20);
        while running(&needle) {
            assert!(Instant::now() < deadline, "a guard is still there");
            std::thread::yield_now();
        }
    }
}

impl Ended {
    #[track_caller]
    fn with(self, code: i32, words: &[&str]) -> Self {
        assert_eq!(self.code, Some(code), "{}", self.words);
        for word in words {
            assert!(
                self.words.contains(word),
                "'{word}' is not in\n{}",
                self.words
            );
        }
        self
    }
}

fn binary() -> &'static Path {
    Path::new(env!("CARGO_BIN_EXE_rungwise"))
}

fn running(needle: &str) -> bool {
    let processes = std::fs::read_dir("/proc").unwrap().flatten();
    processes
        .filter_map(|entry| std::fs::read(entry.path().join("cmdline")).ok())
        .map(|line| String::from_utf8_lossy(&line).replace('\0', " "))
        .any(|line| line.contains("knob guard") && line.contains(needle))
}

/// The last write of that value was carried out, by what strace saw.
fn rp_filter_was_written(calls: &str) -> bool {
    let mut lines = calls.lines();
    lines.any(|line| line.contains("\"2\", 1)") && line.ends_with("= 1"))
}

#[test]
fn applied_verified_and_undone() {
    let bench = Bench::new();
    let apply = [&["knob", "apply"], &WISHES[..], &["--device", "lo"]].concat();
    bench
        .run(&apply)
        .with(0, &["put it back with: rungwise knob undo"]);
    assert_eq!(bench.changed().len(), 3, "{:?}", bench.changed());
    bench
        .run(&["knob", "verify"])
        .with(0, &["everything holds"]);
    let mut meddle = Command::new("sh");
    meddle.args(["-c", "echo 1 > /proc/sys/net/ipv4/conf/lo/rp_filter"]);
    bench.run_command(meddle);
    bench
        .run(&["knob", "verify"])
        .with(1, &["net.rp_filter", "is '1', not '2'"]);
    let journal = bench.journals()[0].clone();
    bench
        .run(&["knob", "undo"])
        .with(5, &[&journal, "holds '1'"]);
    bench.run(&["knob", "undo", "--abandon"]).with(0, &[]);
    assert_eq!(bench.changed().len(), 1, "{:?}", bench.changed());
    bench.run(&["knob", "undo"]).with(0, &["nothing to undo"]);
    bench.guard_is_gone();
}

#[test]
fn killed_at_any_step_everything_is_as_before_by_the_guard_or_by_undo() {
    let bench = Bench::new();
    let (mut by_guard, mut by_undo) = (0, 0);
    for syscall in [
        "write",
        "fdatasync",
        "fsync",
        "pwrite64",
        "openat",
        "close",
        "unlink",
    ] {
        for nth in 1..200 {
            let mut traced = Traced::kill_at(binary(), syscall, nth)
                .args([&["knob", "apply"], &WISHES[..], &["--device", "lo"]].concat())
                .env("RUNGWISE_STATE", bench.state());
            let (killed, calls) = bench.namespace.run(move || (traced.run(), traced.calls()));
            bench.guard_is_gone();
            let changed = bench.changed();
            match (changed.is_empty(), bench.journals().is_empty()) {
                // Killed after everything was done: what was asked for stays until the undo.
                (false, false) => {
                    assert_eq!(changed.len(), 3, "{syscall} {nth}: {changed:?}");
                    by_undo += 1;
                }
                // Killed in between: rp_filter was written already, and somebody put it back.
                (true, true) => by_guard += usize::from(rp_filter_was_written(&calls)),
                // Killed before the guard was on watch: a journal of nothing.
                (true, false) => {}
                (false, true) => panic!("{syscall} {nth}: {changed:?} and no journal"),
            }
            bench.run(&["knob", "undo"]).with(0, &[]);
            assert_eq!(bench.changed(), [""; 0], "{syscall} {nth}");
            assert!(bench.journals().is_empty(), "{syscall} {nth}");
            if killed != Killed::AtCall {
                assert_eq!(killed, Killed::EndedBefore(0), "{syscall} {nth}");
                break;
            }
        }
    }
    println!("{by_guard} by the guard, {by_undo} by undo");
    assert!(
        by_guard > 3 && by_undo > 3,
        "{by_guard} by the guard, {by_undo} by undo"
    );
}

#[test]
fn the_undo_itself_may_be_killed_at_any_step() {
    let bench = Bench::new();
    for syscall in ["write", "unlink", "openat"] {
        for nth in 1..200 {
            let apply = [&["knob", "apply"], &WISHES[..], &["--device", "lo"]].concat();
            bench.run(&apply).with(0, &[]);
            let mut traced = Traced::kill_at(binary(), syscall, nth)
                .args(["knob", "undo"])
                .env("RUNGWISE_STATE", bench.state());
            let killed = bench.namespace.run(move || traced.run());
            bench.run(&["knob", "undo"]).with(0, &[]);
            assert_eq!(bench.changed(), [""; 0], "{syscall} {nth}");
            if killed != Killed::AtCall {
                break;
            }
        }
    }
    bench.guard_is_gone();
}

#[test]
fn at_the_deadline_the_guard_undoes_and_a_hangup_does_not_stop_it() {
    let bench = Bench::new();
    bench
        .run(&[
            "knob", "apply", WISHES[0], "--device", "lo", "--for", "700ms",
        ])
        .with(0, &["then undone by process"]);
    assert_eq!(bench.changed().len(), 1);
    let mut hangup = Command::new("sh");
    let needle = bench.state().display().to_string();
    hangup.args([
        "-c",
        "for p in /proc/[0-9]*; do if tr '\\0' ' ' < $p/cmdline 2>/dev/null | grep -q \"knob guard $0\"; then \
         kill -HUP ${p#/proc/}; kill -TERM ${p#/proc/}; kill -INT ${p#/proc/}; fi; done",
        &needle,
    ]);
    bench.run_command(hangup);
    bench.guard_is_gone();
    assert_eq!(bench.changed(), [""; 0]);
    bench.run(&["knob", "undo"]).with(0, &["nothing to undo"]);
}

#[test]
fn undone_by_hand_before_the_deadline_the_guard_goes() {
    let bench = Bench::new();
    bench
        .run(&["knob", "apply", WISHES[0], "--device", "lo", "--for", "10m"])
        .with(0, &[]);
    bench.run(&["knob", "undo"]).with(0, &["is '0' again"]);
    bench.guard_is_gone();
    assert_eq!(bench.changed(), [""; 0]);
}

#[test]
fn a_bundle_is_applied_as_a_whole_or_not_at_all() {
    let bench = Bench::new();
    bench
        .run(&[
            "knob",
            "apply",
            WISHES[0],
            "net.rps_cpus=0-2000",
            "--device",
            "lo",
        ])
        .with(2, &["net.rps_cpus", "CPU that does not exist"]);
    assert_eq!(bench.changed(), [""; 0]);
    assert!(bench.journals().is_empty());
    bench.guard_is_gone();
}

#[test]
fn without_room_for_the_journal_nothing_is_written() {
    let bench = Bench::new();
    let state = bench.state();
    std::fs::create_dir(&state).unwrap();
    // The mount is seen by this shell and its program alone.
    let script = format!(
        "mount -t tmpfs -o size=16k,nr_inodes=8 tmpfs {0} && mkdir {0}/journals && \
         {{ cat /dev/zero > {0}/fill 2>/dev/null; exec {1} knob apply {2} --device lo; }}",
        state.display(),
        binary().display(),
        WISHES.join(" ")
    );
    let mut shell = Command::new("unshare");
    shell.args(["--mount", "sh", "-c", &script]);
    bench.run_command(shell).with(2, &["space"]);
    assert_eq!(bench.changed(), [""; 0]);
    bench.guard_is_gone();
}

#[test]
fn without_permission_it_is_a_missing_precondition() {
    let bench = Bench::new();
    bench
        .run(&["knob", "apply", "net.rmem_max=1MiB"])
        .with(4, &["run as root on the host itself"]);
    bench
        .run(&["knob", "apply", "sock.reuseport=on"])
        .with(4, &["switch of the service"]);
    bench
        .run(&["knob", "apply", "net.iptables_unload=absent"])
        .with(4, &["belong to its firewall"]);
    assert!(bench.journals().is_empty());
}

#[test]
fn a_plan_is_stored_shown_and_refused_when_it_is_out_of_date() {
    let bench = Bench::new();
    let plan = bench.scratch.path().join("plan.json");
    let plan = plan.to_str().unwrap();
    bench
        .run(&["knob", "plan", WISHES[0], "--device", "lo", "-o", plan])
        .with(0, &["- 0\n    + 2"]);
    assert_eq!(bench.changed(), [""; 0]);
    bench.run(&["knob", "apply", plan]).with(0, &[]);
    bench.run(&["knob", "verify", plan]).with(0, &[]);
    bench
        .run(&["knob", "apply", plan])
        .with(2, &["out of date", "is '2', not '0'"]);
    bench.run(&["knob", "undo"]).with(0, &[]);
    bench
        .run(&["knob", "verify", plan])
        .with(1, &["is '0', not '2'"]);
}

#[test]
fn a_journal_of_strangers_is_refused_and_never_a_panic() {
    let bench = Bench::new();
    let dir = bench.state().join("journals");
    std::fs::create_dir_all(&dir).unwrap();
    for junk in [
        &b"\0\xff\xfe garbage\n"[..],
        b"{}\n",
        b"{\"crc\":\"00000000\",\"seq\":0}\n",
    ] {
        std::fs::write(dir.join("000001.jsonl"), junk).unwrap();
        bench
            .run(&["knob", "undo"])
            .with(5, &["cannot trust journal", "000001.jsonl"]);
        bench.run(&["knob", "verify"]).with(0, &["not verified"]);
    }
    bench.run(&["knob", "undo", "--abandon"]).with(5, &[]);
    bench.run(&["knob", "undo"]).with(0, &["nothing to undo"]);
    // Only a torn first line: a session that died before it did anything.
    std::fs::write(dir.join("000002.jsonl"), b"{\"crc\":\"12").unwrap();
    bench.run(&["knob", "undo"]).with(0, &[]);
    assert!(bench.journals().is_empty());
}
