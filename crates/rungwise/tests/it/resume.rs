//! What `tune --resume` refuses to go on with.

use crate::run::Bench;
use crate::tune::{SMALL, interrupted};

#[test]
fn a_run_with_a_changed_or_missing_file_is_not_resumed() {
    let bench = Bench::new();
    let scenario = bench.write("small.toml", SMALL);
    let folder = interrupted(&bench, &["tune", scenario.to_str().unwrap()]);
    let resume = ["tune", "--resume", folder.to_str().unwrap()];
    for name in ["manifest.json", "latency.hdr", "pairs.jsonl", "design.json"] {
        let file = folder.join(name);
        let whole = std::fs::read(&file).unwrap();
        std::fs::write(&file, &whole[..whole.len() / 2]).unwrap();
        let cut = [name, "changed or truncated", "start a new run"];
        bench.run(&resume).expect(2).says(&cut);
        std::fs::write(&file, &whole).unwrap();
    }
    // Still a line that can be read.
    let pairs = folder.join("pairs.jsonl");
    let whole = std::fs::read_to_string(&pairs).unwrap();
    std::fs::write(
        &pairs,
        whole.replacen("\"rate_per_s\":", "\"rate_per_s\":9", 1),
    )
    .unwrap();
    assert_ne!(std::fs::read_to_string(&pairs).unwrap(), whole);
    bench.run(&resume).expect(2).says(&["pairs.jsonl"]);
    std::fs::remove_file(&pairs).unwrap();
    bench
        .run(&resume)
        .expect(2)
        .says(&["pairs.jsonl is missing"]);
    std::fs::write(&pairs, &whole).unwrap();
    // Put back, it goes on.
    let ended = bench.run(&resume);
    assert!(
        matches!(ended.code, Some(0 | 1 | 3)),
        "{:?}\n{}",
        ended.code,
        ended.stderr
    );
}

#[test]
fn a_run_whose_requests_have_changed_since_is_not_resumed() {
    let bench = Bench::new();
    let payload = bench.write("request.bin", "one");
    let request = format!("payload = \"{}\"\nsockets = 2\n", payload.display());
    let opaque = SMALL.replace("sockets = 2\ndepth = 4\n", &request);
    assert_ne!(opaque, SMALL);
    let scenario = bench.write("small.toml", &opaque);
    let folder = interrupted(&bench, &["tune", scenario.to_str().unwrap()]);
    // As long as before.
    bench.write("request.bin", "two");
    bench
        .run(&["tune", "--resume", folder.to_str().unwrap()])
        .expect(2)
        .says(&["other requests", "request.bin", "start a new run"]);
}

#[test]
fn a_folder_that_is_no_run_is_called_so() {
    let bench = Bench::new();
    std::fs::create_dir(bench.path("other")).unwrap();
    for folder in ["other", "nowhere"] {
        bench.run(&["tune", "--resume", folder]).expect(2).says(&[
            &format!("cannot resume {folder}: it is not a run folder"),
            "below runs",
        ]);
    }
}
