//! Ended from outside: a signal ends the window, not the judgement; a kill leaves nothing behind.

use std::io::{BufRead as _, BufReader};
use std::process::Child;
use std::time::{Duration, Instant};

use rungwise_probes::bundle;
use rungwise_testkit::{Killed, Traced};

use super::below;
use crate::run::{Bench, Ended, Machine, binary, kill};

/// Longer than any test may take: whoever waits for the window to end has failed.
const LONG: &str = "1h";

/// Starts it and waits until the window has begun, stack sampler and event counters included.
fn sampling(bench: &Bench, arguments: &[&str]) -> Child {
    let mut child = bench.start(arguments);
    let mut line = String::new();
    // One line, without taking the pipe away: what follows it is little.
    let mut said = BufReader::with_capacity(1, child.stderr.take().unwrap());
    said.read_line(&mut line).unwrap();
    assert!(line.contains("sampling this host"), "{line}");
    child.stderr = Some(said.into_inner());
    let deadline = Instant::now() + Duration::from_secs(20);
    while !samples(&child) && Instant::now() < deadline {
        std::thread::yield_now();
    }
    child
}

/// It holds descriptors of kernel events: the sampler runs. Never so where perf is refused.
fn samples(child: &Child) -> bool {
    let links = std::fs::read_dir(format!("/proc/{}/fd", child.id())).unwrap();
    links
        .flatten()
        .filter_map(|entry| std::fs::read_link(entry.path()).ok())
        .any(|link| link.to_string_lossy().contains("perf_event"))
}

#[test]
fn a_signal_ends_the_window_and_what_was_seen_is_judged() {
    for signal in [libc::SIGINT, libc::SIGTERM, libc::SIGHUP] {
        let bench = Bench::new();
        let before = Machine::now();
        let child = sampling(&bench, &["check", "--for", LONG]);
        kill(child.id().cast_signed(), signal);
        Ended::from(child.wait_with_output().unwrap())
            .expect(130)
            .says(&["window"]);
        before.assert_unchanged();
        assert!(below(bench.dir.path()).is_empty());
    }
}

/// It is in read(2) of a pipe.
fn reads_a_pipe(pid: u32) -> bool {
    let call = std::fs::read_to_string(format!("/proc/{pid}/syscall")).unwrap_or_default();
    let mut words = call.split_whitespace();
    let read = libc::SYS_read.to_string();
    let (true, Some(fd)) = (words.next() == Some(read.as_str()), words.next()) else {
        return false;
    };
    let fd = u32::from_str_radix(fd.trim_start_matches("0x"), 16).unwrap();
    std::fs::read_link(format!("/proc/{pid}/fd/{fd}"))
        .is_ok_and(|link| link.to_string_lossy().starts_with("pipe:"))
}

#[test]
fn a_signal_ends_a_check_of_a_pipe_that_says_nothing() {
    for signal in [libc::SIGINT, libc::SIGTERM] {
        let bench = Bench::new();
        // A shell starts background jobs with SIGINT ignored, and the program would keep it so.
        let mut child = std::process::Command::new("env")
            .arg("--default-signal=INT")
            .arg(binary())
            .args(["check", "/dev/stdin"])
            .stdin(std::process::Stdio::piped())
            .stdout(std::process::Stdio::null())
            .stderr(std::process::Stdio::null())
            .current_dir(bench.dir.path())
            .spawn()
            .unwrap();
        let writer = child.stdin.take();
        // It sleeps in read(2) of the pipe.
        let deadline = Instant::now() + Duration::from_secs(20);
        while !reads_a_pipe(child.id()) {
            assert!(Instant::now() < deadline, "it never read the pipe");
            std::thread::yield_now();
        }
        kill(child.id().cast_signed(), signal);
        let ended = loop {
            if let Some(ended) = child.try_wait().unwrap() {
                break ended;
            }
            if Instant::now() > deadline {
                child.kill().unwrap();
                panic!("it goes on after signal {signal}");
            }
            std::thread::sleep(Duration::from_millis(5));
        };
        assert_eq!(
            std::os::unix::process::ExitStatusExt::signal(&ended),
            Some(signal)
        );
        drop(writer);
    }
}

#[test]
fn a_signal_during_a_capture_leaves_a_whole_file_or_none() {
    for signal in [libc::SIGINT, libc::SIGTERM] {
        let bench = Bench::new();
        let before = Machine::now();
        let child = sampling(&bench, &["capture", "-o", "host.rungwise", "--for", LONG]);
        kill(child.id().cast_signed(), signal);
        Ended::from(child.wait_with_output().unwrap()).expect(130);
        before.assert_unchanged();
        let file = bench.path("host.rungwise");
        assert_eq!(below(bench.dir.path()), std::slice::from_ref(&file));
        let capture = bundle::read(&file).unwrap();
        assert_eq!(capture.moments.len(), 2, "both ends of what there was");
    }
}

#[test]
fn a_kill_leaves_no_mount_no_event_and_no_file() {
    let bench = Bench::new();
    let before = Machine::now();
    for arguments in [
        &["check", "--for", LONG][..],
        &["capture", "-o", "host.rungwise", "--for", LONG],
    ] {
        let child = sampling(&bench, arguments);
        kill(child.id().cast_signed(), libc::SIGKILL);
        child.wait_with_output().unwrap();
        before.assert_unchanged();
        assert!(below(bench.dir.path()).is_empty());
    }
}

#[test]
fn killed_while_it_writes_a_capture_leaves_the_former_one_whole() {
    let bench = Bench::new();
    let file = bench.write("host.rungwise", "the former one");
    for call in ["fsync", "rename"] {
        for nth in 1..=3 {
            let ended = Traced::kill_at(binary(), call, nth)
                .args(["capture", "-q", "--no-stacks", "--for", "0s", "-o"])
                .args([&file])
                .env("RUNGWISE_STATE", bench.state())
                .run();
            let whole = bundle::read(&file).is_ok();
            let former = std::fs::read(&file).unwrap() == b"the former one";
            assert!(whole || former, "{call} {nth}");
            if matches!(ended, Killed::EndedBefore(_)) {
                break;
            }
        }
    }
}
