//! What goes wrong around a run: the exit code of the table, cause and remedy in words, nothing left behind.

use std::io::Write as _;
use std::path::Path;
use std::process::{Child, Stdio};

use rungwise_testkit::{Killed, Traced, WallClock};
use serde_json::Value;

use crate::run::{Bench, Ended, Machine, binary, kill, service_of};
use crate::tune::{SMALL, wait_for_pairs};

/// A `tune` that has a pair behind it, in runs long enough for a fault to come in one. No rung starts the service anew.
fn under_way(bench: &Bench) -> Child {
    let from = SMALL.find("[[rungs]]\nid = \"sock.reuseport\"").unwrap();
    let end = SMALL.find("[[rungs]]\nid = \"net.rp_filter\"").unwrap();
    let unswitched = SMALL.replace(&SMALL[from..end], "");
    let scenario = bench.write(
        "small.toml",
        &unswitched.replace("measure = \"50ms\"", "measure = \"1s\""),
    );
    let child = bench.start(&["tune", scenario.to_str().unwrap()]);
    wait_for_pairs(bench.dir.path(), 1);
    child
}

#[test]
fn killed_at_any_journal_step_the_machine_is_as_before() {
    let bench = Bench::new();
    // Few rungs, so that the loop over all steps ends.
    let short = SMALL
        .replace("measure = \"50ms\"", "measure = \"20ms\"")
        .split("[[rungs]]")
        .next()
        .unwrap()
        .to_owned()
        + "[[rungs]]\nid = \"net.rps_cpus\"\nset = { \"net.rps_cpus\" = \"all\" }\n";
    let scenario = bench.write("small.toml", &short);
    let before = Machine::now();
    // fdatasync makes journal records and pairs durable, fsync the files and folders they live in.
    for call in ["fdatasync", "fsync"] {
        let mut killed = 0;
        loop {
            let ended = Traced::kill_at(binary(), call, killed + 1)
                .args(["tune", scenario.to_str().unwrap(), "--runs"])
                .args([bench.path("runs")])
                .env("RUNGWISE_STATE", bench.state())
                .run();
            if matches!(ended, Killed::EndedBefore(_)) {
                break;
            }
            killed += 1;
            before.assert_unchanged();
            bench.run(&["knob", "undo"]).expect(0);
        }
        assert!(killed >= 8, "only {killed} calls of {call}");
    }
}

#[test]
fn a_clock_that_jumps_under_way_changes_nothing_but_the_stamps() {
    let bench = Bench::new();
    let scenario = bench.write("small.toml", SMALL);
    let before = Machine::now();
    let clock = WallClock::new(bench.path("clock"));
    let mut tune = bench.command(&["tune", scenario.to_str().unwrap(), "--format", "json"]);
    clock.dress(&mut tune);
    let child = tune
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    wait_for_pairs(bench.dir.path(), 1);
    // Ahead, then back. Never behind the machine's: the library moves the clocks of processes along, and those are never below 0.
    clock.jump("+3650d");
    wait_for_pairs(bench.dir.path(), 3);
    clock.jump("+1825d");
    let ended = Ended::from(child.wait_with_output().unwrap());
    assert!(matches!(ended.code, Some(0 | 1 | 3)), "{}", ended.stderr);
    let report: Value = serde_json::from_str(&ended.stdout)
        .unwrap_or_else(|error| panic!("{error}: {}", ended.stderr));
    let year = |stamp: &str| report[stamp].as_str().unwrap()[..4].parse::<u32>().unwrap();
    let jumped = year("finished") - year("started");
    assert!((4..=6).contains(&jumped), "the clock did not jump");
    let mut last = 0.0;
    for rung in report["rungs"].as_array().unwrap() {
        for pair in rung["pairs"].as_array().unwrap() {
            for half in ["a", "b"] {
                let (at, rate) = (&pair[half]["at_s"], &pair[half]["rate_per_s"]);
                let (at, rate) = (at.as_f64().unwrap(), rate.as_f64().unwrap());
                assert!((0.0..600.0).contains(&at) && rate > 0.0, "{pair:#}");
                last = f64::max(last, at);
            }
        }
    }
    assert!(last > 0.0, "no pair was measured");
    before.assert_unchanged();
}

#[test]
fn a_service_that_dies_under_load_is_named_with_its_last_words() {
    let bench = Bench::new();
    let before = Machine::now();
    let child = under_way(&bench);
    kill(service_of(&child), libc::SIGKILL);
    Ended::from(child.wait_with_output().unwrap())
        .expect(1)
        .says(&["under load", "serve udp", "by signal 9", "run it by hand"]);
    before.assert_unchanged();
}

#[test]
fn a_service_that_is_stopped_is_distinguished_from_one_behind_a_firewall() {
    let bench = Bench::new();
    let before = Machine::now();
    let child = under_way(&bench);
    let service = service_of(&child);
    kill(service, libc::SIGSTOP);
    let ended = Ended::from(child.wait_with_output().unwrap()).expect(1);
    assert!(!ended.stderr.contains("firewall"), "{}", ended.stderr);
    ended.says(&[
        "stopped answering",
        "is stopped",
        &format!("kill -CONT {service}"),
    ]);
    before.assert_unchanged();
}

#[test]
fn a_device_that_vanishes_ends_the_run_and_leaves_nothing() {
    let bench = Bench::new();
    let before = Machine::now();
    let child = under_way(&bench);
    let service = service_of(&child);
    let gone = std::process::Command::new("nsenter")
        .args([
            "--net",
            "--target",
            &service.to_string(),
            "ip",
            "link",
            "delete",
            "rw-server",
        ])
        .status()
        .unwrap();
    assert!(
        gone.success(),
        "nsenter and ip come with util-linux and iproute2"
    );
    let ended = Ended::from(child.wait_with_output().unwrap());
    ended
        .expect(2)
        .says(&["the network device rw-server was removed", "--resume"]);
    before.assert_unchanged();
}

#[test]
fn a_second_instance_is_refused_with_the_pid_of_the_first() {
    let bench = Bench::new();
    let before = Machine::now();
    let scenario = bench.write("small.toml", SMALL);
    let child = bench.start(&["tune", scenario.to_str().unwrap()]);
    wait_for_pairs(bench.dir.path(), 1);
    bench
        .run(&["tune", scenario.to_str().unwrap()])
        .expect(4)
        .says(&[
            "another instance is running",
            &format!("pid {}", child.id()),
            "wait for it or stop it",
        ]);
    kill(child.id().cast_signed(), libc::SIGINT);
    Ended::from(child.wait_with_output().unwrap()).expect(130);
    before.assert_unchanged();
}

#[test]
fn a_service_that_never_answers_is_a_missing_precondition() {
    let bench = Bench::new();
    let silent = SMALL
        .replace(
            r#"["{rungwise}", "serve", "udp", "--listen", "{server}:9000", "--workers", "{cpus}"]"#,
            r#"["sleep", "60"]"#,
        )
        .replace("ready_line = \"ready udp\"", "ready_within = \"500ms\"");
    let scenario = bench.write("silent.toml", &silent);
    let before = Machine::now();
    bench
        .run(&["tune", scenario.to_str().unwrap()])
        .expect(4)
        .says(&[
            "no reply came from udp 10.77.0.1:9000",
            "it was started as: sleep 60",
            "it listens on no TCP or UDP port",
            "ready_within",
        ]);
    before.assert_unchanged();
}

#[test]
fn a_service_that_listens_elsewhere_is_shown_with_what_was_run_and_where_it_listens() {
    let bench = Bench::new();
    let elsewhere = SMALL
        .replace(
            "\"{server}:9000\", \"--workers\"",
            "\"{server}:9001\", \"--workers\"",
        )
        .replace(
            "ready_line = \"ready udp\"",
            "ready_http = \"http://{server}:9000/\"\nready_within = \"500ms\"",
        );
    let scenario = bench.write("elsewhere.toml", &elsewhere);
    let before = Machine::now();
    bench
        .run(&["tune", scenario.to_str().unwrap()])
        .expect(4)
        .says(&[
            "no answer with status 200 to 399 came from http://10.77.0.1:9000/",
            "serve udp --listen 10.77.0.1:9001",
            "it listens on udp 10.77.0.1:9001 (rungwise, pid ",
            "its last output:\npmtudisc",
            "have it listen on tcp 10.77.0.1:9000",
        ]);
    before.assert_unchanged();
}

#[test]
fn a_missing_program_is_named() {
    let bench = Bench::new();
    let missing = SMALL.replace("\"{rungwise}\"", "\"/no/such/server\"");
    let scenario = bench.write("missing.toml", &missing);
    for how in [&[][..], &["--dry-run"]] {
        bench
            .run(&[&["tune", scenario.to_str().unwrap()], how].concat())
            .expect(4)
            .says(&[
                "missing.toml:7:12: service.command",
                "/no/such/server",
                "install it",
            ]);
    }
}

#[test]
fn a_port_in_use_is_named() {
    let bench = Bench::new();
    let taken = std::net::UdpSocket::bind("127.0.0.1:0").unwrap();
    let port = taken.local_addr().unwrap().port();
    let scenario = bench.write("taken.toml", &SMALL.replace("9000", &port.to_string()));
    bench
        .run(&["tune", scenario.to_str().unwrap(), "--loopback"])
        .expect(4)
        .says(&[&port.to_string(), "in use"]);
}

#[test]
fn a_port_in_use_in_the_namespace_is_named_and_its_holder_is_gone_with_the_run() {
    let bench = Bench::new();
    // The first server has the port once it is ready; the second is the service.
    let taken = SMALL
        .replace(
            r#"["{rungwise}", "serve", "udp", "--listen", "{server}:9000", "--workers", "{cpus}"]"#,
            r#"["bash", "-c", "exec 3< <({rungwise} serve udp --listen {server}:9000); read -u 3; exec {rungwise} serve udp --listen {server}:9000"]"#,
        );
    let scenario = bench.write("taken.toml", &taken);
    let before = Machine::now();
    bench
        .run(&["tune", scenario.to_str().unwrap()])
        .expect(4)
        .says(&["cannot listen on udp 10.", ":9000", "in use", "ss -lunp"]);
    before.assert_unchanged();
}

/// A `tune` with a tiny file system of its own at `folder`, in a mount namespace that ends with it. It has measured a pair,
/// and then the file system is full.
fn full_under_way(bench: &Bench, folder: &str) -> Child {
    let scenario = bench.write("small.toml", SMALL);
    let script = format!(
        "mkdir -p {folder} && mount -t tmpfs -o size=1m,mode=700 tmpfs {folder} && exec \"$@\""
    );
    let child = std::process::Command::new("unshare")
        .args(["--mount", "sh", "-c", &script, "sh"])
        .arg(binary())
        .args(["tune", scenario.to_str().unwrap(), "--runs", "runs"])
        .current_dir(bench.dir.path())
        .env("RUNGWISE_STATE", bench.state())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    // The folder as the child sees it.
    let seen = format!("/proc/{}/root{}", child.id(), bench.dir.path().display());
    let seen = Path::new(&seen);
    wait_for_pairs(seen, 1);
    let mut fill = std::fs::File::create(seen.join(folder).join("fill")).unwrap();
    while fill.write_all(&[0; 4096]).is_ok() {}
    child
}

#[test]
fn a_disk_that_is_full_under_way_ends_the_run_and_everything_is_undone() {
    for folder in ["state", "runs"] {
        let bench = Bench::new();
        let before = Machine::now();
        let child = full_under_way(&bench, folder);
        let ended = Ended::from(child.wait_with_output().unwrap()).expect(2);
        ended.says(&["o space left on", "free some space", folder]);
        before.assert_unchanged();
    }
}

#[test]
fn what_another_changed_meanwhile_stays_and_the_run_ends_as_not_undone() {
    let bench = Bench::new();
    let before = Machine::now();
    let child = under_way(&bench);
    let theirs = "echo 2 > /proc/sys/net/ipv4/conf/rw-server/rp_filter";
    let set = std::process::Command::new("nsenter")
        .args(["--net", "--target", &service_of(&child).to_string()])
        .args(["sh", "-c", theirs])
        .status()
        .unwrap();
    assert!(set.success(), "nsenter comes with util-linux");
    kill(child.id().cast_signed(), libc::SIGINT);
    Ended::from(child.wait_with_output().unwrap())
        .expect(5)
        .says(&[
            "some settings could not be put back",
            "net.rp_filter",
            "the journal is",
            "rungwise knob undo",
        ]);
    before.assert_unchanged();
}

#[test]
fn a_full_disk_stops_the_run_before_the_machine_is_touched() {
    // Of 8 pages the lock takes one and the journal's head another; without a journal there is no run to tell of.
    for (full, run) in [(6, true), (7, false)] {
        let bench = Bench::new();
        let scenario = bench.write("small.toml", SMALL);
        let before = Machine::now();
        // A tiny file system of its own in a mount namespace that ends with the shell.
        let script = format!(
            "mkdir -p state && mount -t tmpfs -o size=32k,mode=700 tmpfs state && dd if=/dev/zero of=state/fill bs=4k count={full} 2>/dev/null; exec {} tune {} --runs runs",
            binary().display(),
            scenario.display()
        );
        let output = std::process::Command::new("unshare")
            .args(["--mount", "sh", "-c", &script])
            .current_dir(bench.dir.path())
            .env("RUNGWISE_STATE", bench.state())
            .output()
            .unwrap();
        Ended::from(output)
            .expect(2)
            .says(&["o space left on", "free some space", "state"]);
        assert_eq!(bench.path("runs").exists(), run);
        before.assert_unchanged();
    }
}
