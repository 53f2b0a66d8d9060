//! `rungwise knob` from outside, in a namespace of its own: killed at every step, with a full disk,
//! twice at once, with values of somebody else.
//!
//! Needs root (queue masks are refused to everybody else) and strace; fails and says so without.
#![allow(
    clippy::unwrap_used,
    clippy::disallowed_methods,
    reason = "tests start the program and look at its files themselves"
)]

mod broken;
mod capture;
mod documents;
mod kinds;
mod tuned;

use std::io::{BufRead as _, BufReader, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};

use rungwise_host::namespace::Namespace;
use rungwise_host::process::Attached;
use rungwise_testkit::{Killed, Record, Traced, WallClock, differences, record};

/// A change of three files by three knobs; the masks are of one CPU, so that any machine has it.
const WISHES: [&str; 3] = ["net.rp_filter=2", "net.accept_local=on", "net.rps_cpus=0"];

struct Bench {
    namespace: Namespace,
    scratch: tempfile::TempDir,
    before: Record,
    /// Programs of the test, found before all others.
    programs: Option<PathBuf>,
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
            programs: None,
        }
    }

    /// Where programs are looked for.
    fn path(&self) -> std::ffi::OsString {
        let usual = std::env::var_os("PATH").unwrap_or_default();
        let own = self.programs.iter().cloned();
        std::env::join_paths(own.chain(std::env::split_paths(&usual))).unwrap()
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

    /// Runs the binary in the namespace of this test.
    fn run_outside(&self, words: &[&str]) -> Ended {
        let mut command = Command::new(binary());
        command.args(words);
        self.prepare(&mut command);
        Ended::from(command.output().unwrap())
    }

    fn prepare(&self, command: &mut Command) {
        command
            .env("RUNGWISE_STATE", self.state())
            .env("PATH", self.path())
            .stdin(Stdio::null());
    }

    fn run_command(&self, mut command: Command) -> Ended {
        self.prepare(&mut command);
        let output: Output = self.namespace.run(move || command.output().unwrap());
        Ended::from(output)
    }

    /// Runs it with a wall clock of its own, which its guard follows.
    fn run_at(&self, clock: &WallClock, words: &[&str]) -> Ended {
        let mut command = Command::new(binary());
        command.args(words);
        clock.dress(&mut command);
        self.run_command(command)
    }

    /// A wall clock that is right so far.
    fn clock(&self) -> WallClock {
        WallClock::new(self.scratch.path().join("clock"))
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

impl From<Output> for Ended {
    fn from(output: Output) -> Self {
        let words = [output.stdout, output.stderr].concat();
        Self {
            code: output.status.code(),
            words: String::from_utf8_lossy(&words).into_owned(),
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
    guards(needle).next().is_some()
}

/// Process ids of guards with this on their command line.
fn guards(needle: &str) -> impl Iterator<Item = String> {
    let processes = std::fs::read_dir("/proc").unwrap().flatten();
    let is_guard = move |entry: &std::fs::DirEntry| {
        let line = std::fs::read(entry.path().join("cmdline")).unwrap_or_default();
        let line = String::from_utf8_lossy(&line).replace('\0', " ");
        line.contains("knob guard") && line.contains(needle)
    };
    let name = |entry: std::fs::DirEntry| entry.file_name().into_string().unwrap();
    processes.filter(is_guard).map(name)
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
        .with(0, &["undo with: rungwise knob undo"]);
    assert_eq!(bench.changed().len(), 3, "{:?}", bench.changed());
    bench
        .run(&["knob", "verify"])
        .with(0, &["everything holds: 3 settings"]);
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
        .run(&["knob", "apply", WISHES[0], "--device", "lo", "--for", "3s"])
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
fn a_guard_never_undoes_a_later_journal_of_the_same_number() {
    let bench = Bench::new();
    let apply = ["knob", "apply", WISHES[0], "--device", "lo"];
    bench
        .run(&[&apply[..], &["--for", "1500ms"]].concat())
        .with(0, &[]);
    let first = bench.journals();
    bench.run(&["knob", "undo"]).with(0, &["is '0' again"]);
    bench.run(&apply).with(0, &[]);
    assert_eq!(bench.journals(), first);
    bench.guard_is_gone();
    assert_eq!(bench.changed().len(), 1, "{:?}", bench.changed());
    bench.run(&["knob", "undo"]).with(0, &[]);
}

#[test]
fn a_wall_clock_that_jumps_brings_no_deadline_nearer_and_puts_none_off() {
    let (ahead, back) = (Bench::new(), Bench::new());
    let apply = ["knob", "apply", WISHES[0], "--device", "lo", "--for"];
    let long = [&apply[..], &["10m"]].concat();
    let clock_ahead = ahead.clock();
    ahead.run_at(&clock_ahead, &long).with(0, &[]);
    clock_ahead.jump("+3650d");
    let clock_back = back.clock();
    back.run_at(&clock_back, &[&apply[..], &["2s"]].concat())
        .with(0, &[]);
    clock_back.jump("-3650d");
    // By then the other guard has looked at its deadline several times.
    back.guard_is_gone();
    assert_eq!(back.changed(), [""; 0]);
    let verify = ["knob", "verify", "--format", "json"];
    let verified = ahead
        .run_at(&clock_ahead, &verify)
        .with(0, &["\"started\": \"20"]);
    let year = verified.words.split("\"started\": \"").nth(1).unwrap()[..4].to_owned();
    assert!(
        year.parse::<u32>().unwrap() > 2035,
        "the clock did not jump: {year}"
    );
    assert!(running(&ahead.state().display().to_string()));
    assert_eq!(ahead.changed().len(), 1, "{:?}", ahead.changed());
    ahead.run(&["knob", "undo"]).with(0, &[]);
    ahead.guard_is_gone();
}

#[test]
fn the_guard_ends_what_a_killed_tool_left_in_its_lab() {
    let bench = Bench::new();
    bench
        .run(&["knob", "apply", WISHES[0], "--device", "lo"])
        .with(0, &[]);
    let journal = bench.state().join("journals").join(&bench.journals()[0]);
    // As a service that changed its user and left its group: nobody's child, nobody's signal.
    let mut service = Command::new("setsid");
    service.args(["--fork", "sh", "-c", "echo $$; sleep 600 & exec sleep 601"]);
    service.stdin(Stdio::null()).stderr(Stdio::null());
    let mut service = bench
        .namespace
        .run(move || service.stdout(Stdio::piped()).spawn().unwrap());
    let mut pid = String::new();
    let stdout = service.stdout.take().unwrap();
    BufReader::new(stdout).read_line(&mut pid).unwrap();
    service.wait().unwrap();
    let service = Attached::attach(pid.trim().parse().unwrap()).unwrap();
    let guard = |lab: String| {
        let mut guard = Command::new(binary());
        guard.args(["knob", "guard"]).arg(&journal);
        guard
            .args(["--lab", &lab])
            .stdin(Stdio::null())
            .stdout(Stdio::null());
        bench.namespace.run(move || guard.output().unwrap())
    };
    // Its own namespace is refused, whoever asks: that would be the host's.
    let refused = guard("/proc/self/ns/net".to_owned());
    assert!(!refused.status.success() && service.alive());
    let fd = std::os::fd::AsRawFd::as_raw_fd(&bench.namespace.netns_fd());
    // A guard of the lab stands outside it.
    let mut outside = Command::new(binary());
    outside.args(["knob", "guard"]).arg(&journal);
    outside.args(["--lab", &format!("/proc/{}/fd/{fd}", std::process::id())]);
    outside.stdin(Stdio::null()).stdout(Stdio::null());
    assert!(outside.output().unwrap().status.code().is_some());
    assert!(!service.alive());
}

#[test]
fn only_an_open_journal_is_taken_for_one() {
    let bench = Bench::new();
    let precious = bench.scratch.path().join("precious");
    std::fs::write(&precious, "no line end").unwrap();
    let path = precious.to_str().unwrap();
    for abandon in [&[][..], &["--abandon"]] {
        bench
            .run(&[&["knob", "undo", "--journal", path], abandon].concat())
            .with(2, &["not an open journal"]);
    }
    assert_eq!(std::fs::read(&precious).unwrap(), b"no line end");
    bench
        .run(&["knob", "apply", WISHES[0], "--device", "lo"])
        .with(0, &[]);
    let journal = bench.state().join("journals").join(&bench.journals()[0]);
    bench
        .run(&["knob", "undo", "--journal", journal.to_str().unwrap()])
        .with(0, &["is '0' again"]);
}

#[test]
fn a_relative_state_folder_has_a_guard_too() {
    let bench = Bench::new();
    for nth in 1..200 {
        let mut traced = Traced::kill_at(binary(), "fdatasync", nth)
            .args([&["knob", "apply"], &WISHES[..], &["--device", "lo"]].concat())
            .env("RUNGWISE_STATE", "state")
            .current_dir(bench.scratch.path());
        let killed = bench.namespace.run(move || traced.run());
        bench.guard_is_gone();
        if killed != Killed::AtCall {
            assert!(nth > 2, "no journal was written");
            break;
        }
        assert_eq!(bench.changed(), [""; 0], "{nth}");
        assert!(bench.journals().is_empty(), "{nth}: nobody undid it");
    }
    bench.run(&["knob", "undo"]).with(0, &[]);
}

#[test]
fn a_state_folder_that_others_may_write_is_refused() {
    use std::os::unix::fs::PermissionsExt as _;
    let bench = Bench::new();
    std::fs::create_dir(bench.state()).unwrap();
    std::fs::set_permissions(bench.state(), std::fs::Permissions::from_mode(0o777)).unwrap();
    for words in [
        &["knob", "apply", WISHES[0], "--device", "lo"][..],
        &["knob", "undo"],
    ] {
        bench.run(words).with(4, &["other users may write to it"]);
    }
    assert_eq!(bench.changed(), [""; 0]);
    assert!(!bench.state().join("lock").exists());
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
        "mount -t tmpfs -o size=16k,nr_inodes=8,mode=700 tmpfs {0} && mkdir {0}/journals && \
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
    // A file that ends so holds a plan, whatever the format of the page.
    let page = ["--format", "markdown", "-o", plan];
    let command = [&["knob", "plan", WISHES[0], "--device", "lo"][..], &page].concat();
    bench.run(&command).with(0, &["- 0\n    + 2"]);
    bench.run(&["knob", "apply", plan]).with(0, &[]);
    bench.run(&["knob", "verify", plan]).with(0, &[]);
    for arguments in [
        &["knob", "apply", plan][..],
        &["knob", "apply", "--dry-run", plan],
        &["knob", "plan", plan],
    ] {
        bench
            .run(arguments)
            .with(2, &["out of date", "is '2', not '0'"]);
    }
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
        bench.run(&["knob", "verify"]).with(3, &["not verified"]);
    }
    bench.run(&["knob", "undo", "--abandon"]).with(5, &[]);
    bench.run(&["knob", "undo"]).with(0, &["nothing to undo"]);
    // Only a torn first line: a session that died before it did anything.
    std::fs::write(dir.join("000002.jsonl"), b"{\"crc\":\"12").unwrap();
    bench.run(&["knob", "undo"]).with(0, &[]);
    assert!(bench.journals().is_empty());
}

/// A stored check whose findings ask for two knobs, one of them the service's.
fn check(path: &Path) {
    let asking = |rule: &str, turn: serde_json::Value| {
        serde_json::json!({
            "rule": rule, "outcome": "act", "subject": "device/lo", "severity": "high", "confidence": "high",
            "sentence": format!("{rule} was found"), "evidence": [], "knobs": [turn], "missing": [],
        })
    };
    let rp_filter =
        serde_json::json!({ "id": "net.rp_filter", "device": "lo", "from": "0", "to": "2" });
    let reuseport = serde_json::json!({ "id": "sock.reuseport", "from": null, "to": "on" });
    let report = serde_json::json!({
        "schema": 1, "tool": { "version": "0.1.0" }, "command": [], "started": "", "finished": "", "exit": 1,
        "target": "this host", "place": "host", "window_s": 10.0,
        "findings": [asking("fib-double", rp_filter), asking("udp-socket-lock", reuseport)],
    });
    std::fs::write(path, report.to_string()).unwrap();
}

#[test]
fn what_a_check_asks_for_is_planned_applied_checked_again_and_exported() {
    let bench = Bench::new();
    let file = |name: &str| bench.scratch.path().join(name).display().to_string();
    let (stored, plan, below) = (file("check.json"), file("plan.json"), file("etc"));
    check(Path::new(&stored));
    bench
        .run(&["knob", "list", "--why", "--from", &stored])
        .with(
            0,
            &[
                "net.rp_filter of lo: now 0, recommended 2\n    fib-double",
                "no finding recommends these:\nknob  ",
                "mem.swappiness",
            ],
        );
    bench
        .run(&["knob", "plan", "--from", &stored, "-o", &plan])
        .with(0, &["- 0\n    + 2", "not planned: sock.reuseport"]);
    assert_eq!(bench.changed(), [""; 0]);
    bench
        .run(&["knob", "apply", &plan, "--evidence-for", "500ms"])
        .with(0, &["fib-double on device/lo: the symptom is"]);
    bench.run(&["knob", "export", "--as", "sysctl.d"]).with(
        0,
        &[
            "net.ipv4.conf.lo.rp_filter = 2",
            "a value that was already set",
        ],
    );
    // Seen from another namespace the same path is another setting.
    bench
        .run_outside(&["knob", "export", "--as", "sysctl.d"])
        .with(
            0,
            &[
                "# nothing that this format can express",
                "lo/rp_filter: it was set in network namespace",
            ],
        );
    bench
        .run(&["knob", "export", "--as", "cmdline"])
        .with(0, &["left out: ", "# nothing that this format can express"]);
    bench
        .run(&[
            "knob", "export", "--as", "sysctl.d", &plan, "--below", &below,
        ])
        .with(0, &["wrote "]);
    assert!(Path::new(&below).join("etc/sysctl.d").is_dir());
    bench.run(&["knob", "undo"]).with(0, &[]);
    assert_eq!(bench.changed(), [""; 0]);
    bench
        .run(&["knob", "plan", "--from", &plan])
        .with(2, &["cannot read", "as a check"]);
}

#[test]
fn threads_of_a_running_process_are_pinned_as_a_check_asks() {
    let bench = Bench::new();
    let stored = bench.scratch.path().join("check.json");
    check(&stored);
    let mut process = Command::new("sleep").arg("60").spawn().unwrap();
    let text = std::fs::read_to_string(&stored).unwrap();
    let text = text.replace("sock.reuseport", "cpu.pin_threads");
    let text = text.replace("\"on\"", &format!("\"{}:0\"", process.id()));
    std::fs::write(&stored, &text).unwrap();
    let stored = stored.display().to_string();
    let applied = bench.run(&["knob", "apply", "--from", &stored, "--evidence-for", "0s"]);
    let status = std::fs::read_to_string(format!("/proc/{}/status", process.id())).unwrap();
    let undone = bench.run(&["knob", "undo"]);
    let plan = ["knob", "plan", "--from", &stored];
    let old = text.replace("\"place\"", "\"taken\":\"2020-01-01T00:00:00Z\",\"place\"");
    std::fs::write(&stored, old).unwrap();
    let late = bench.run(&plan);
    process.kill().unwrap();
    process.wait().unwrap();
    undone.with(0, &["of process"]);
    // The same id may be another process by now.
    late.with(0, &["started after the check; check again"]);
    bench.run(&plan).with(0, &["has ended; check again"]);
    applied.with(0, &["in force; undo with"]);
    assert!(status.contains("Cpus_allowed_list:\t0\n"), "{status}");
}

#[test]
fn an_interrupted_sample_leaves_nothing_changed() {
    let bench = Bench::new();
    let stored = bench.scratch.path().join("check.json");
    check(&stored);
    // In the first sample nothing is written yet; in the second, what was written goes back.
    for sample in [1, 2] {
        let mut command = Command::new(binary());
        command
            .args(["knob", "apply", "--evidence-for", "3s", "--from"])
            .arg(&stored)
            .env("RUNGWISE_STATE", bench.state())
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::piped());
        let mut applying = bench.namespace.run(move || command.spawn().unwrap());
        let mut lines = BufReader::new(applying.stderr.take().unwrap()).lines();
        for _ in 0..sample {
            assert!(lines.any(|line| line.unwrap().contains("sampling this host")));
        }
        assert_eq!(bench.changed().len(), sample - 1);
        let pid = applying.id().to_string();
        let sent = Command::new("kill").args(["-INT", &pid]).status().unwrap();
        assert!(sent.success());
        let words: Vec<String> = lines.map(|line| line.unwrap()).collect();
        let code = applying.wait().unwrap().code();
        assert_eq!(code, Some(130), "look {sample}: {words:?}");
        assert_eq!(words, ["rungwise: interrupted"]);
        assert_eq!(bench.changed(), [""; 0]);
        assert!(bench.journals().is_empty());
    }
    bench.guard_is_gone();
}
