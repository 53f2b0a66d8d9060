//! Threads that wait for one lock of a program: `check` names the function, however the program was compiled.

use std::process::Command;

use rungwise_testkit::TimeLimit;
use serde_json::Value;

use crate::live_profiles::compiled;
use crate::run::Bench;

#[test]
fn the_function_in_which_threads_wait_for_a_lock_is_named() {
    let bench = Bench::new();
    let ways: [&[&str]; 3] = [
        &["-O2"],
        &["-O2", "-fno-omit-frame-pointer"],
        &["-O0", "-fno-omit-frame-pointer"],
    ];
    for options in ways {
        let found = found(&bench, options);
        assert_eq!(found["outcome"], "act", "{options:?}: {found:#}");
        let sentence = found["sentence"].as_str().unwrap();
        let place = "wait for one lock of the program, mostly in count_request (";
        assert!(sentence.contains(place), "{options:?}: {sentence}");
        let evidence = found["evidence"].to_string();
        assert!(
            evidence.contains("in count_request, called by serve < work"),
            "{options:?}: {evidence}"
        );
    }
    // Without symbols nothing is named.
    let found = found(&bench, &["-O2", "-s"]);
    let sentence = found["sentence"].as_str().unwrap();
    assert!(
        sentence.contains("wait for one lock of the program ("),
        "{sentence}"
    );
}

/// What `user-lock` says of the program compiled so.
fn found(bench: &Bench, options: &[&str]) -> Value {
    let program = compiled(bench, "lock", options);
    let mut child = Command::new(program).spawn().unwrap();
    let limit = TimeLimit::start(&child, std::time::Duration::from_mins(1));
    let pid = child.id().to_string();
    let ended = bench.run(&[
        "check", "--pid", &pid, "--for", "2s", "--format", "json", "-q",
    ]);
    drop(limit);
    let _ = child.kill();
    let _ = child.wait();
    let document: Value = serde_json::from_str(&ended.stdout).unwrap();
    let findings = document["findings"].as_array().unwrap();
    let of_lock = |finding: &&Value| finding["rule"] == "user-lock";
    findings.iter().find(of_lock).unwrap().clone()
}
