//! The command line: good, odd and broken.

use crate::run::Bench;

#[test]
fn help_names_every_verb_and_ends_well() {
    let bench = Bench::new();
    bench
        .run(&["--help"])
        .expect(0)
        .says(&["tune", "load", "serve", "knob"]);
}

#[test]
fn a_misspelt_verb_is_a_usage_error_with_the_nearest_one() {
    let bench = Bench::new();
    bench.run(&["tuen"]).expect(2).says(&["tune"]);
}

#[test]
fn an_unknown_scenario_names_the_built_in_ones() {
    let bench = Bench::new();
    bench
        .run(&["tune", "udp-ecko"])
        .expect(2)
        .says(&["udp-ecko", "udp-echo"]);
}

#[test]
fn a_dry_run_prints_every_rung_and_changes_nothing() {
    let bench = Bench::new();
    bench
        .run(&["tune", "udp-echo", "--dry-run"])
        .expect(0)
        .says(&[
            "net.rps_cpus",
            "sock.reuseport_bpf",
            "cpu.pin_threads",
            "sock.pmtudisc",
            "net.xdp_echo",
        ]);
    assert!(!bench.path("runs").exists());
}

#[test]
fn a_wrong_key_is_reported_with_line_column_and_the_nearest_key() {
    let bench = Bench::new();
    let file = bench.write(
        "wrong.toml",
        "schema = 1\nname = \"x\"\ntitle = \"x\"\n[service]\ncomand = [\"true\"]\n",
    );
    bench
        .run(&["tune", file.to_str().unwrap()])
        .expect(2)
        .says(&["wrong.toml:5:1", "comand", "command"]);
}

#[test]
fn a_broken_pipe_is_a_normal_end() {
    use std::process::Stdio;
    let bench = Bench::new();
    let mut child = bench
        .command(&["tune", "udp-echo", "--dry-run"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    drop(child.stdout.take());
    let ended = child.wait_with_output().unwrap();
    assert_eq!(
        ended.status.code(),
        Some(0),
        "{}",
        String::from_utf8_lossy(&ended.stderr)
    );
}

#[test]
fn a_quick_run_plans_for_less_than_ninety_seconds() {
    let bench = Bench::new();
    let planned = bench
        .run(&["tune", "udp-echo", "--quick", "--dry-run"])
        .expect(0);
    let (before, _) = planned.stdout.split_once(" s of load").unwrap();
    let (_, seconds) = before.rsplit_once(' ').unwrap();
    // The rest is for restarts of the service and waiting for quiet, of which no plan knows.
    let seconds: f64 = seconds.parse().unwrap();
    assert!(seconds > 0.0 && seconds < 70.0, "{seconds}");
}

#[test]
fn the_name_of_the_file_tells_the_format_unless_one_is_asked_for() {
    let bench = Bench::new();
    bench.write(
        "gc.log",
        "[1.0s][gc] GC(0) Pause Young (Allocation Failure) 64M->23M(192M) 65.253ms\n",
    );
    let written = |file: &str, more: &[&str]| {
        let run = ["jvm", "gc", "gc.log", "-o", file, "--fail-on", "never"];
        bench.run(&[&run[..], more].concat()).expect(0);
        std::fs::read_to_string(bench.path(file)).unwrap()
    };
    assert!(written("report.html", &[]).contains("</html>"));
    assert!(written("report.json", &[]).starts_with('{'));
    assert!(written("report.md", &[]).contains("| Pause Young (Allocation Failure) |"));
    let text = written("report.txt", &[]);
    assert!(text.contains("Pause Young (Allocation Failure)") && !text.contains('<'));
    assert!(written("gc.html", &["--format", "json"]).starts_with('{'));
}

#[test]
fn a_report_never_takes_the_place_of_what_it_is_about() {
    let bench = Bench::new();
    let log =
        "[0.1s][info][gc] GC(0) Pause Young (Normal) (G1 Evacuation Pause) 24M->4M(256M) 3.1ms\n";
    let file = bench.write("gc.log", log);
    std::os::unix::fs::symlink(&file, bench.path("link")).unwrap();
    let file = file.to_str().unwrap();
    let (link, after) = (bench.path("link"), bench.write("after.log", log));
    for arguments in [
        &["jvm", "gc", file, "-o", file][..],
        &["check", file, "--output", link.to_str().unwrap()],
        &["check", &format!("--dumps={file}"), "-o", file],
        &["jvm", "gc", file, &format!("-o{file}")],
        &["jvm", "gc", file, &format!("--output={file}")],
        &[
            "compare",
            &format!("{file},{file}"),
            after.to_str().unwrap(),
            "-o",
            file,
        ],
    ] {
        let ended = bench.run(arguments).expect(2);
        assert!(
            ended.stderr.contains("it is the input file"),
            "{}",
            ended.stderr
        );
        assert_eq!(std::fs::read_to_string(file).unwrap(), log);
    }
    let report = bench.write("report.txt", "an older one");
    let report = report.to_str().unwrap();
    for output in [
        &["-o", report][..],
        &["-qo", report],
        &[&format!("-o{report}")],
        &[&format!("--output={report}")],
    ] {
        let run = ["jvm", "gc", file, "--fail-on", "never"];
        bench.run(&[&run[..], output].concat()).expect(0);
    }
}

#[test]
fn an_output_that_cannot_be_written_is_refused_before_anything_is_measured() {
    let bench = Bench::new();
    let (file, folder) = (bench.write("file", ""), bench.path("none"));
    let behind = file.join("x.json");
    let into = folder.join("x.json");
    for (output, why) in [
        // Nobody may make files there, root included.
        ("/sys/kernel/x.json", "another file with -o"),
        (into.to_str().unwrap(), "is not a folder"),
        (behind.to_str().unwrap(), "is not a folder"),
        (bench.dir.path().to_str().unwrap(), "it is a folder"),
    ] {
        for verb in [
            &["check", "--for", "60s"][..],
            &["capture", "--for", "60s"],
            &["load", "udp", "127.0.0.1:9", "--for", "60s"],
            &["jvm", "flags", "--jdk", "17", "--for", "-Xmx1g"],
        ] {
            let ended = bench.run(&[verb, &["-o", output]].concat()).expect(2);
            assert!(ended.stderr.contains(why), "{verb:?}: {}", ended.stderr);
            assert!(!ended.stderr.contains("sampling"), "{}", ended.stderr);
        }
    }
}

#[test]
fn a_full_disk_is_reported_before_the_window() {
    let bench = Bench::new();
    let script = format!(
        "mkdir full && mount -t tmpfs -o size=64k tmpfs full && exec {} capture --for 60s -o full/host.rungwise",
        crate::run::binary().display()
    );
    let output = std::process::Command::new("unshare")
        .args(["--mount", "sh", "-c", &script])
        .current_dir(bench.dir.path())
        .output()
        .unwrap();
    let ended = crate::run::Ended::from(output).expect(2);
    let ended = ended.says(&["o space left on", "full/host.rungwise"]);
    assert!(!ended.stderr.contains("sampling"), "{}", ended.stderr);
}

#[test]
fn a_result_that_cannot_be_written_at_the_end_is_kept_elsewhere() {
    let bench = Bench::new();
    let run = ["jvm", "flags", "--jdk", "17", "--for", "-Xmx1g"];
    // Opens like any file, and has room for nothing.
    let ended = bench.run(&[&run[..], &["-o", "/dev/full"]].concat());
    let ended = ended.expect(2);
    let (_, kept) = ended.stderr.split_once("the result is in ").unwrap();
    let (kept, _) = kept.split_once(" instead").unwrap();
    let text = std::fs::read_to_string(kept).unwrap();
    std::fs::remove_file(kept).unwrap();
    assert!(text.contains("JDK 17 accepts these options"), "{text}");
}

#[test]
fn a_window_of_days_is_refused() {
    let bench = Bench::new();
    for verb in ["check", "capture"] {
        bench
            .run(&[verb, "--for", "99h", "-o", "x.json"])
            .expect(2)
            .says(&["'99h' is longer than 24h"]);
    }
}

#[test]
fn a_file_of_another_type_is_called_what_it_is() {
    let bench = Bench::new();
    let junk: Vec<u8> = (0..5000_u32)
        .map(|i| (i * 7919 % 251) as u8 | 0x80)
        .collect();
    std::fs::write(bench.path("junk"), junk).unwrap();
    bench.write("empty", "");
    let capture = bench.write("capture", r#"{"rungwise_capture":99}"#);
    for (file, why) in [("junk", "binary data"), ("empty", "it is empty")] {
        for verb in [&["check"][..], &["jvm", "gc"], &["jvm", "threads"]] {
            let ended = bench.run(&[verb, &[file]].concat());
            assert!(ended.stderr.contains(why), "{verb:?}: {}", ended.stderr);
        }
    }
    for verb in ["gc", "threads"] {
        bench
            .run(&["jvm", verb, capture.to_str().unwrap()])
            .says(&["a capture, which `rungwise check FILE` judges"]);
    }
    let behind = capture.join("x");
    for verb in [&["check"][..], &["jvm", "gc"], &["jvm", "threads"]] {
        let ended = bench.run(&[verb, &[behind.to_str().unwrap()]].concat());
        assert!(
            ended.stderr.contains("is a file, not a folder"),
            "{}",
            ended.stderr
        );
    }
}

#[test]
fn a_thread_of_the_kernel_is_no_service() {
    let stat = std::fs::read_to_string("/proc/2/stat").unwrap_or_default();
    if !stat.contains("(kthreadd)") {
        return crate::run::aloud(
            "NOT TESTED a_thread_of_the_kernel_is_no_service: pid 2 is no thread of the kernel here",
        );
    }
    let bench = Bench::new();
    for verb in [&["check"][..], &["capture", "-o", "out.rungwise"]] {
        bench
            .run(&[verb, &["--pid", "2", "--for", "300ms"]].concat())
            .expect(4)
            .says(&[
                "kthreadd",
                "it is a kernel thread, not a service",
                "rungwise check",
            ]);
    }
    assert!(!bench.path("out.rungwise").exists());
}
