//! The run store: what verbs keep, that it gives the page again, that damage is named, and that only old runs go.

use serde_json::Value;

use crate::run::Bench;
use crate::tune::{SMALL, assert_valid};

const LOG: &str =
    "[0.1s][info][gc] GC(0) Pause Young (Normal) (G1 Evacuation Pause) 24M->4M(256M) 3.1ms\n";

fn runs(bench: &Bench) -> Vec<Value> {
    let listed = bench.run(&["runs", "list", "--format", "json"]).expect(0);
    let mut document: Value = serde_json::from_str(&listed.stdout).unwrap();
    assert_valid(&document, "runs-list");
    document["runs"].as_array_mut().unwrap().drain(..).collect()
}

/// Keeps a run, and gives its id.
fn kept(bench: &Bench) -> String {
    bench.write("gc.log", LOG);
    bench.run(&["jvm", "gc", "gc.log", "--keep", "-o", "doc.json"]);
    let text = std::fs::read_to_string(bench.path("doc.json")).unwrap();
    let document: Value = serde_json::from_str(&text).unwrap();
    document["run"].as_str().unwrap().to_owned()
}

/// The page of a verb that was kept, and of the run that it kept, in each format. What is live is measured once for each.
fn same_pages(bench: &Bench, verb: &[&str]) {
    for format in ["text", "markdown", "html"] {
        let page = bench.run(&[verb, &["--format", format]].concat());
        let newest = runs(bench).remove(0);
        assert_eq!(newest["verified"], true, "{newest}");
        let id = newest["id"].as_str().unwrap();
        let again = bench.run(&["report", id, "--format", format, "-q"]);
        assert!(!page.stdout.is_empty(), "{verb:?}: {}", page.stderr);
        assert_eq!(page.stdout, again.expect(0).stdout, "{verb:?} as {format}");
        // Two runs of one second would be in the order of their random ends.
        std::fs::remove_dir_all(bench.path("runs").join(id)).unwrap();
    }
}

#[test]
fn live_verbs_give_the_same_page_again_from_the_run_that_they_kept() {
    let bench = Bench::new();
    let echo = std::net::UdpSocket::bind("127.0.0.1:0").unwrap();
    let target = echo.local_addr().unwrap().to_string();
    std::thread::spawn(move || {
        let mut buffer = [0; 2048];
        while let Ok((length, from)) = echo.recv_from(&mut buffer) {
            let _ = echo.send_to(&buffer[..length], from);
        }
    });
    let load = ["load", "udp", &target, "--for", "1s", "--warmup", "100ms"];
    same_pages(&bench, &load);
    same_pages(&bench, &["check", "--for", "1s", "--no-stacks", "--keep"]);
    bench.write("small.toml", SMALL);
    let ended = bench.run(&["tune", "small.toml", "--format", "html"]);
    let newest = runs(&bench).remove(0);
    assert_eq!(newest["verb"], "tune");
    assert_eq!(newest["verified"], true, "{newest}");
    let id = newest["id"].as_str().unwrap();
    let again = bench.run(&["report", id, "--format", "html"]).expect(0);
    assert_eq!(ended.stdout, again.stdout);
    bench.run(&[&load[..], &["--no-keep"]].concat());
    assert_eq!(runs(&bench).len(), 1);
}

#[test]
fn a_load_that_cannot_be_kept_is_printed_and_says_why() {
    let bench = Bench::new();
    bench.write("runs", "a file in the way");
    let echo = std::net::UdpSocket::bind("127.0.0.1:0").unwrap();
    let target = echo.local_addr().unwrap().to_string();
    std::thread::spawn(move || {
        let mut buffer = [0; 2048];
        while let Ok((length, from)) = echo.recv_from(&mut buffer) {
            let _ = echo.send_to(&buffer[..length], from);
        }
    });
    let load = ["load", "udp", &target, "--for", "1s", "--warmup", "100ms"];
    let ended = bench.run(&[&load[..], &["--format", "json"]].concat());
    let document: Value = serde_json::from_str(&ended.stdout).unwrap();
    assert!(document["run"].is_null() && document["received"].as_u64() > Some(0));
    assert_eq!(ended.code.map(i64::from), document["exit"].as_i64());
    assert!(
        ended.stderr.contains("cannot keep the run"),
        "{}",
        ended.stderr
    );
}

#[test]
fn a_file_that_is_missing_altered_or_added_is_named() {
    let bench = Bench::new();
    let id = kept(&bench);
    let folder = bench.path("runs").join(&id);
    bench.run(&["runs", "verify"]).expect(0);
    bench
        .run(&["runs", "verify", &id])
        .expect(0)
        .says(&["whole"]);
    let path = folder.to_str().unwrap();
    bench.run(&["runs", "show", path]).expect(0).says(&[
        "jvm-gc",
        "SHA256SUMS",
        "measurements.json",
    ]);

    std::fs::write(folder.join("notes.txt"), "mine").unwrap();
    let ended = bench.run(&["runs", "verify", &id]).expect(1);
    ended.says(&["notes.txt", "it was added"]);
    std::fs::remove_file(folder.join("report.html")).unwrap();
    std::fs::write(folder.join("measurements.json"), "{}").unwrap();
    let json = bench.run(&["runs", "verify", "--format", "json"]).expect(1);
    let document: Value = serde_json::from_str(&json.stdout).unwrap();
    assert_valid(&document, "runs-list");
    assert_eq!(document["runs"][0]["verified"], false);
    let problems = document["runs"][0]["problems"].to_string();
    for part in [
        "report.html is missing",
        "measurements.json does not match",
        "notes.txt",
    ] {
        assert!(problems.contains(part), "{problems}");
    }
    let gone = bench.run(&["runs", "verify", "20200101T000000Z-0000"]);
    gone.expect(2).says(&["rungwise runs list"]);
}

#[test]
fn a_killed_run_is_unfinished_and_a_foreign_folder_is_none() {
    let bench = Bench::new();
    let killed = bench.path("runs/20261121T131500Z-3fa9");
    std::fs::create_dir_all(&killed).unwrap();
    std::fs::write(killed.join("design.json"), "{}").unwrap();
    std::fs::create_dir_all(bench.path("runs/photos")).unwrap();
    let listed = runs(&bench);
    assert_eq!(listed.len(), 1);
    assert_eq!(listed[0]["state"], "unfinished");
    assert_eq!(listed[0]["verb"], "tune");
    assert_eq!(listed[0]["started"], "2026-11-21T13:15:00Z");
    assert!(listed[0]["verified"].is_null());
    bench.run(&["runs", "verify"]).expect(3);
    bench
        .run(&["report", "20261121T131500Z-3fa9"])
        .expect(2)
        .says(&["--resume"]);
}

#[test]
fn prune_removes_old_whole_runs_and_nothing_else() {
    let bench = Bench::new();
    let ids: Vec<String> = (0..4).map(|_| kept(&bench)).collect();
    let folder = |id: &str| bench.path("runs").join(id);
    for (id, day) in ids.iter().zip(["01", "02", "03", "04"]) {
        // As if they had been measured on different days.
        let manifest = folder(id).join("manifest.json");
        let text = std::fs::read_to_string(&manifest).unwrap();
        let mut fields: Value = serde_json::from_str(&text).unwrap();
        fields["envelope"]["started"] = format!("2026-01-{day}T00:00:00Z").into();
        std::fs::write(&manifest, fields.to_string()).unwrap();
        let sums = std::process::Command::new("sh")
            .args(["-c", "sha256sum $(ls | grep -v SHA256SUMS) > SHA256SUMS"])
            .current_dir(folder(id))
            .status();
        assert!(sums.unwrap().success());
    }
    // Altered, unfinished, foreign, and half removed by a prune that was killed.
    std::fs::write(folder(&ids[0]).join("notes.txt"), "mine").unwrap();
    std::fs::create_dir_all(folder("20250101T000000Z-0000")).unwrap();
    std::fs::create_dir_all(folder("photos")).unwrap();
    std::fs::write(folder("photos").join("cat.png"), "").unwrap();
    std::fs::create_dir_all(folder(".pruned-20250101T000000Z-0001")).unwrap();

    let prune = ["runs", "prune", "--keep", "1"];
    bench
        .run(&[&prune[..], &["--older-than", "30d"]].concat())
        .expect(0)
        .says(&["0 runs removed"]);
    let dry = bench.run(&[&prune[..], &["--dry-run"]].concat()).expect(0);
    dry.says(&["2 runs would be removed", &ids[1], &ids[2]]);
    assert!(folder(&ids[1]).exists());
    let json = bench
        .run(&[&prune[..], &["--format", "json"]].concat())
        .expect(0);
    let document: Value = serde_json::from_str(&json.stdout).unwrap();
    assert_valid(&document, "runs-prune");
    assert_eq!(document["removed"], serde_json::json!([ids[2], ids[1]]));
    assert_eq!(document["kept"], serde_json::json!([ids[3]]));
    let mut left = std::fs::read_dir(bench.path("runs"))
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect::<Vec<_>>();
    left.sort();
    let mut expected = vec![
        "20250101T000000Z-0000".to_owned(),
        ids[0].clone(),
        ids[3].clone(),
        "photos".to_owned(),
    ];
    expected.sort();
    assert_eq!(left, expected);
    bench.run(&["runs", "prune"]).expect(2);
}
