//! `[service.build]`: a service that is built before its first start, by a shell here.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use crate::run::{Bench, Ended, Machine, kill};
use crate::tune::{SMALL, climbed};

/// What the build of [`build`] executes: it counts itself, and makes a program that starts the UDP server.
const BUILD: &str = r#"
echo built >> "$RUNGWISE_CACHE/../builds"
cat parts/line > server
chmod +x server
"#;

/// A ladder of one rung whose server is built by `build.sh`.
fn build(bench: &Bench, script: &str) -> PathBuf {
    std::fs::create_dir_all(bench.path("parts")).unwrap();
    bench.write("build.sh", script);
    bench.write("parts/line", "#!/bin/sh\nexec \"$@\"\n");
    let text = SMALL.replace(
        "command = [\"{rungwise}\"",
        "build = { command = [\"sh\", \"-e\", \"build.sh\"], sources = [\"build.sh\", \"parts\"], within = \"20s\", \
         install = \"apt-get install dash\" }\ncommand = [\"{built}/server\", \"{rungwise}\"",
    );
    let (text, _) = text.split_once("[[rungs]]").unwrap();
    let rung = "[[rungs]]\nid = \"net.rps_cpus\"\nset = { \"net.rps_cpus\" = \"all\" }\n";
    bench.write("built.toml", &format!("{text}{rung}"))
}

fn tune(bench: &Bench, scenario: &Path) -> Ended {
    bench.run(&["tune", scenario.to_str().unwrap()])
}

fn lines(file: &Path) -> usize {
    std::fs::read_to_string(file).map_or(0, |text| text.lines().count())
}

/// Names in the cache, those of temporary folders too.
fn cached(bench: &Bench) -> Vec<String> {
    let entries = std::fs::read_dir(bench.path("cache")).into_iter().flatten();
    entries
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect()
}

#[test]
fn a_service_is_built_once_and_again_for_other_sources() {
    let bench = Bench::new();
    let scenario = build(&bench, BUILD);
    let before = Machine::now();
    let plan = bench.run(&["tune", scenario.to_str().unwrap(), "--dry-run"]);
    plan.expect(0)
        .says(&["build    sh -e build.sh (first, into "]);
    assert_eq!(cached(&bench), Vec::<String>::new());

    let (first, _) = climbed(&bench, &scenario);
    first.says(&["building the service, once: sh -e build.sh", "built in "]);
    let (second, _) = climbed(&bench, &scenario);
    assert!(!second.stderr.contains("building"), "{}", second.stderr);
    assert_eq!(lines(&bench.path("builds")), 1);
    let names = cached(&bench);
    assert!(
        matches!(&names[..], [name] if name.starts_with("small-")),
        "{names:?}"
    );
    // What is there needs nothing of the build but the JDK, whose release counts.
    std::fs::remove_dir_all(bench.path("runs")).unwrap();
    std::fs::create_dir(bench.path("jdk")).unwrap();
    if let Some(java) = rungwise_host::process::locate("java") {
        std::os::unix::fs::symlink(java, bench.path("jdk/java")).unwrap();
    }
    let mut without = bench.command(&["tune", scenario.to_str().unwrap(), "--dry-run"]);
    let without = Ended::from(without.env("PATH", bench.path("jdk")).output().unwrap());
    without.expect(0).says(&["(found in "]);

    bench.write("parts/line", "#!/bin/sh\nexec  \"$@\"\n");
    let (other, _) = climbed(&bench, &scenario);
    other.says(&["building the service"]);
    assert_eq!(lines(&bench.path("builds")), 2);
    assert_eq!(cached(&bench).len(), 2);
    // A run goes on with what it was begun with, whatever has become of its sources.
    let run = bench.run_folder();
    std::fs::remove_file(bench.path("build.sh")).unwrap();
    let resume = ["tune", "--resume", run.to_str().unwrap()];
    let resumed = bench.run(&resume);
    assert!(
        matches!(resumed.code, Some(0 | 1 | 3)),
        "{}",
        resumed.stderr
    );
    std::fs::remove_dir_all(bench.path("cache")).unwrap();
    bench
        .run(&resume)
        .expect(4)
        .says(&["was removed from the cache"]);
    before.assert_unchanged();
}

#[test]
fn a_build_that_fails_shows_its_own_words_and_leaves_nothing() {
    let bench = Bench::new();
    let fails = build(&bench, "echo to-stdout; echo to-stderr >&2; exit 7");
    tune(&bench, &fails).expect(4).says(&[
        "cannot build the service: sh -e build.sh failed (exit status: 7)",
        "to-stdout",
        "to-stderr",
        "apt-get install dash",
    ]);
    let endless = build(&bench, "echo waits; exec sleep 600");
    let text = std::fs::read_to_string(&endless).unwrap();
    let endless = bench.write("endless.toml", &text.replace("20s", "1s"));
    tune(&bench, &endless).expect(4).says(&[
        "did not end within 1 s and was stopped",
        "waits",
        "raise service.build.within",
    ]);
    let text = std::fs::read_to_string(bench.path("built.toml")).unwrap();
    let missing = text.replace("\"sh\", \"-e\"", "\"no-such-maven\"");
    let missing = bench.write("missing.toml", &missing);
    tune(&bench, &missing).expect(4).says(&[
        "cannot build the service: cannot start no-such-maven: there is no such program",
        "apt-get install dash",
    ]);
    let nowhere = bench.write("nowhere.toml", &text.replace("\"parts\"", "\"pats\""));
    tune(&bench, &nowhere).expect(2).says(&[
        "cannot read pats",
        "service.build.sources",
        "no such file",
    ]);
    // The build succeeds, and does not make what the command starts.
    let other = build(&bench, "true");
    tune(&bench, &other)
        .expect(4)
        .says(&["service.command: cannot start ", "/server"]);
    assert!(!bench.path("runs").exists());
    let names = cached(&bench);
    assert!(
        names.iter().all(|name| name.starts_with("small-")),
        "{names:?}"
    );
}

#[test]
fn a_cache_that_others_may_write_starts_nothing() {
    let bench = Bench::new();
    let scenario = build(&bench, BUILD);
    let cache = bench.path("cache");
    std::fs::create_dir(&cache).unwrap();
    let open = std::os::unix::fs::PermissionsExt::from_mode(0o1777);
    std::fs::set_permissions(&cache, open).unwrap();
    tune(&bench, &scenario)
        .expect(4)
        .says(&["other users may write to it", "RUNGWISE_CACHE"]);
    assert!(!bench.path("builds").exists());
}

#[test]
fn an_interrupted_build_leaves_nothing_running() {
    let bench = Bench::new();
    let scenario = build(
        &bench,
        "echo $$ > \"$RUNGWISE_CACHE/../pid\"; sleep 600 & wait",
    );
    let child = bench.start(&["tune", scenario.to_str().unwrap()]);
    let deadline = Instant::now() + Duration::from_secs(30);
    let pid = loop {
        let pid = std::fs::read_to_string(bench.path("pid")).unwrap_or_default();
        if pid.ends_with('\n') {
            break pid.trim().to_owned();
        }
        assert!(Instant::now() < deadline, "the build did not begin");
        std::thread::sleep(Duration::from_millis(20));
    };
    kill(child.id().cast_signed(), libc::SIGINT);
    let ended = Ended::from(child.wait_with_output().unwrap());
    ended
        .expect(130)
        .says(&["interrupted while the service was built"]);
    // A killed process may take a moment to end, and stay a zombie until init reaps it.
    let lives = || {
        let mut group = std::process::Command::new("pgrep");
        let group = group.args(["-g", &pid, "--runstates", "RSDT"]).output();
        !group.unwrap().stdout.is_empty()
    };
    while lives() {
        assert!(Instant::now() < deadline, "the build still runs");
        std::thread::sleep(Duration::from_millis(20));
    }
    assert_eq!(cached(&bench), Vec::<String>::new());
}
