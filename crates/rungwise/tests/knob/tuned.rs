//! `tune` on a host as it is, which here is a namespace of the test's own: killed at every step of its journal.

use super::*;

/// Knobs of the namespace and of its loopback device, around a server that is started for it.
const ON_THIS_HOST: &str = r#"
schema = 1
name = "on-this-host"
title = "a ladder on a host as it is"

[topology]
kind = "host"
device = "lo"

[service]
command = ["{rungwise}", "serve", "udp", "--listen", "{server}:9000"]
ready_line = "ready udp"

[workload]
kind = "udp"
target = "{server}:9000"
sockets = 1
depth = 2

[experiment]
warmup = "10ms"
measure = "20ms"
looks = [4]
quiet_wait = "100ms"
max_discards = 1

[baseline]
set = { "net.rp_filter" = "2" }

[[rungs]]
id = "net.rps_cpus"
set = { "net.rps_cpus" = "0" }
"#;

#[test]
fn a_ladder_on_a_host_as_it_is_may_be_killed_at_any_step_of_its_journal() {
    let bench = Bench::new();
    let scenario = bench.scratch.path().join("host.toml");
    std::fs::write(&scenario, ON_THIS_HOST).unwrap();
    let runs = bench.scratch.path().join("runs");
    let words: Vec<std::ffi::OsString> =
        vec!["tune".into(), scenario.into(), "--runs".into(), runs.into()];
    let order = order_of_calls(&bench, &words);
    for syscall in CALLS {
        let mut nth = 0;
        loop {
            nth += 1;
            let (killed, _) = killed_at(&bench, syscall, nth, &words);
            assert_eq!(bench.changed(), [""; 0], "by the guard: {syscall} {nth}");
            bench.run(&["knob", "undo"]).with(0, &[]);
            assert_eq!(bench.changed(), [""; 0], "{syscall} {nth}");
            assert!(bench.journals().is_empty(), "{syscall} {nth}");
            match killed {
                Killed::AtCall => {}
                Killed::EndedBefore(code) => {
                    assert!(matches!(code, 0 | 1 | 3), "{syscall} {nth}: {code}");
                    break;
                }
            }
        }
        // Some of the kills came while the baseline was in force.
        let before = order.iter().take_while(|call| *call != TURNED);
        let before = before.filter(|call| *call == syscall).count();
        assert!(
            nth as usize > before + 1,
            "{syscall}: {nth} kills, {before} before the first change"
        );
    }
}

/// fdatasync makes the intents of the journal durable, fsync the folders, unlink ends it.
const CALLS: [&str; 3] = ["fdatasync", "fsync", "unlink"];

/// Stands for the write of the baseline's value.
const TURNED: &str = "turned";

/// The names of those calls in a run that nobody kills, in order.
fn order_of_calls(bench: &Bench, words: &[std::ffi::OsString]) -> Vec<String> {
    let all = [&CALLS[..], &["write"]].concat().join(",");
    let (ended, calls) = killed_at(bench, &all, 60_000, words);
    assert!(matches!(ended, Killed::EndedBefore(0 | 1 | 3)), "{ended:?}");
    let name = |line: &str| {
        let written = line.contains("\"2\", 1)");
        let name = if written {
            TURNED
        } else {
            line.split('(').next()?
        };
        (name != "write").then(|| name.trim().to_owned())
    };
    let order: Vec<String> = calls.lines().filter_map(name).collect();
    assert!(order.iter().any(|call| call == TURNED), "{calls}");
    order
}

/// Runs the ladder in the namespace until the nth such call; guard and server have gone when this returns.
fn killed_at(
    bench: &Bench,
    syscall: &str,
    nth: u32,
    words: &[std::ffi::OsString],
) -> (Killed, String) {
    let mut traced = Traced::kill_at(binary(), syscall, nth)
        .args(words)
        .env("RUNGWISE_STATE", bench.state());
    let ended = bench.namespace.run(move || (traced.run(), traced.calls()));
    bench.guard_is_gone();
    nobody_is_left(bench);
    ended
}

/// Waits until the server that a ladder started has gone with it.
fn nobody_is_left(bench: &Bench) {
    let inhabitants = bench.namespace.processes_fn();
    let deadline = Instant::now() + Duration::from_secs(20);
    while !inhabitants().unwrap().is_empty() {
        assert!(Instant::now() < deadline, "{:?}", inhabitants());
        std::thread::yield_now();
    }
}

/// Starts a ladder in the namespace whose runs are long enough to be killed in one.
fn under_way(bench: &Bench, scenario: &str) -> std::process::Child {
    let file = bench.scratch.path().join("long.toml");
    let long = scenario.replace("measure = \"20ms\"", "measure = \"5s\"");
    std::fs::write(&file, long).unwrap();
    let mut command = Command::new(binary());
    command.arg("tune").arg(file);
    command.arg("--runs").arg(bench.scratch.path().join("runs"));
    bench.prepare(&mut command);
    command.stdout(Stdio::null()).stderr(Stdio::null());
    let tune = bench.namespace.run(move || command.spawn().unwrap());
    wait_until("the baseline was never set", || !bench.changed().is_empty());
    tune
}

fn wait_until(otherwise: &str, holds: impl Fn() -> bool) {
    let deadline = Instant::now() + Duration::from_secs(20);
    while !holds() {
        assert!(Instant::now() < deadline, "{otherwise}");
        std::thread::yield_now();
    }
}

fn signal(pid: &str, signal: &str) {
    let sent = Command::new("kill").args([signal, pid]).status().unwrap();
    assert!(sent.success());
}

#[test]
fn who_comes_after_a_killed_ladder_waits_for_its_guard() {
    let bench = Bench::new();
    let mut tune = under_way(&bench, ON_THIS_HOST);
    let guard = guards(&bench.state().display().to_string()).next().unwrap();
    signal(&guard, "-STOP");
    tune.kill().unwrap();
    tune.wait().unwrap();
    let mut command = Command::new(binary());
    command.args(["knob", "apply", "net.rp_filter=1", "--device", "lo"]);
    bench.prepare(&mut command);
    command.stdout(Stdio::null()).stderr(Stdio::piped());
    let mut apply = bench.namespace.run(move || command.spawn().unwrap());
    let mut lines = BufReader::new(apply.stderr.take().unwrap()).lines();
    let waits = lines.next().map(Result::unwrap).unwrap_or_default();
    let early = apply.try_wait().unwrap();
    signal(&guard, "-CONT");
    let code = apply.wait().unwrap().code();
    assert!(
        waits.contains("waiting for the guard") && early.is_none(),
        "{waits}, {early:?}"
    );
    assert_eq!(code, Some(0));
    // It found what the guard had put back, not what the ladder had set.
    bench.run(&["knob", "undo"]).with(0, &["is '0' again"]);
    assert_eq!(bench.changed(), [""; 0]);
    nobody_is_left(&bench);
    bench.guard_is_gone();
}

#[test]
fn a_ladder_says_what_an_earlier_change_left_in_force() {
    let bench = Bench::new();
    let scenario = bench.scratch.path().join("host.toml");
    std::fs::write(&scenario, ON_THIS_HOST).unwrap();
    let runs = bench.scratch.path().join("runs");
    bench
        .run(&["knob", "apply", "net.accept_local=on", "--device", "lo"])
        .with(0, &[]);
    let (scenario, runs) = (scenario.to_str().unwrap(), runs.to_str().unwrap());
    let ended = bench.run(&["tune", scenario, "--runs", runs, "--format", "json"]);
    assert!(matches!(ended.code, Some(0 | 1 | 3)), "{}", ended.words);
    let in_force = "net.accept_local=on --device lo' are in force (1 of 1, journal ";
    // Aloud, and in the method of the report.
    assert_eq!(ended.words.matches(in_force).count(), 2, "{}", ended.words);
    assert_eq!(bench.changed().len(), 1, "{:?}", bench.changed());
    bench.run(&["knob", "undo"]).with(0, &[]);
}

#[test]
fn a_killed_ladder_on_a_host_leaves_no_child_of_its_service_and_none_that_changed_its_user() {
    let bench = Bench::new();
    // The server is a child. The leader becomes nobody, whom the kernel's signal does not reach any more.
    let server = r#""{rungwise}", "serve", "udp", "--listen", "{server}:9000""#;
    let forks = r#""sh", "-c", "{rungwise} serve udp --listen {server}:9000 & exec setpriv --reuid=65534 sleep 600""#;
    assert!(ON_THIS_HOST.contains(server));
    let mut tune = under_way(&bench, &ON_THIS_HOST.replace(server, forks));
    let inhabitants = bench.namespace.processes_fn();
    let started = |name: &str| {
        let comm = |pid: &u32| std::fs::read_to_string(format!("/proc/{pid}/comm"));
        let here = inhabitants().unwrap();
        here.iter()
            .any(|pid| comm(pid).is_ok_and(|comm| comm.trim() == name))
    };
    wait_until("no leader has changed its user", || started("sleep"));
    tune.kill().unwrap();
    tune.wait().unwrap();
    bench.guard_is_gone();
    nobody_is_left(&bench);
    assert_eq!(bench.changed(), [""; 0]);
}
