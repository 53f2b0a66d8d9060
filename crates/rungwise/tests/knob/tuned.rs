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
