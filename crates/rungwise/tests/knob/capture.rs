//! `rungwise capture -o FILE`, killed at every call that makes the file.

use std::io::Read as _;

use flate2::read::GzDecoder;

use super::*;

/// Writes it, makes it durable, gives it its name, or two.
const CALLS: [&str; 4] = ["write", "fsync", "linkat", "rename"];

fn names(dir: &Path) -> Vec<String> {
    let names = std::fs::read_dir(dir).unwrap();
    let names = names.map(|entry| entry.unwrap().file_name().into_string().unwrap());
    names.collect()
}

fn is_whole(bundle: &[u8]) -> bool {
    let mut text = String::new();
    GzDecoder::new(bundle).read_to_string(&mut text).is_ok()
}

#[test]
fn a_capture_that_is_killed_leaves_the_file_of_before_or_a_whole_one() {
    let scratch = tempfile::tempdir().unwrap();
    let dir = scratch.path().join("captures");
    std::fs::create_dir(&dir).unwrap();
    let path = dir.join("host.rungwise");
    let (mut kills, mut swept) = (0, 0);
    for old in [None, Some("what was there before")] {
        for syscall in CALLS {
            for nth in 1..100 {
                match old {
                    Some(text) => std::fs::write(&path, text).unwrap(),
                    None if path.exists() => std::fs::remove_file(&path).unwrap(),
                    None => {}
                }
                let output = path.to_str().unwrap();
                let killed = Traced::kill_at(binary(), syscall, nth)
                    .args(["capture", "--for", "0s", "--no-stacks", "-q", "-o", output])
                    .env("RUNGWISE_STATE", scratch.path().join("state"))
                    .run();
                let at = format!("over {old:?}, {syscall} {nth}");
                let found = std::fs::read(&path).ok();
                match &found {
                    Some(found) if old.is_some_and(|old| old.as_bytes() == found) => {}
                    Some(found) => assert!(is_whole(found), "{at}: half a file"),
                    None => assert_eq!(old, None, "{at}: the file is gone"),
                }
                let others = || {
                    let mut names = names(&dir);
                    names.retain(|name| name != "host.rungwise");
                    names
                };
                if old.is_none() {
                    assert_eq!(others(), [""; 0], "{at}");
                }
                if !others().is_empty() {
                    // Between its two names; whoever writes there next cleans up.
                    rungwise_host::files::replace(&path, b"next").unwrap();
                    assert_eq!(others(), [""; 0], "{at}");
                    swept += 1;
                }
                if killed != Killed::AtCall {
                    assert_eq!(killed, Killed::EndedBefore(0), "{at}");
                    break;
                }
                kills += 1;
            }
        }
    }
    println!("{kills} kills, {swept} of them between two names");
    assert!(kills > 5 && swept > 0, "{kills} kills, {swept} swept");
}

#[test]
fn a_capture_that_could_not_be_kept_is_refused_before_it_begins() {
    let bench = Bench::new();
    let scratch = bench.scratch.path().to_str().unwrap().to_owned();
    let missing = format!("{scratch}/missing/host.rungwise");
    for (output, why) in [(&missing, "is not a folder"), (&scratch, "it is a folder")] {
        let began = Instant::now();
        bench
            .run(&["capture", "--for", "60s", "-o", output])
            .with(2, &["cannot write the result to", why, "name"]);
        assert!(began.elapsed() < Duration::from_secs(30), "{output}");
    }
    bench
        .run(&["capture", "--for", "0s", "--no-stacks", "-o", "/dev/full"])
        .with(2, &["cannot write /dev/full", "no space left"]);
}
