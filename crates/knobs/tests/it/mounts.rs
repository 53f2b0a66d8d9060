//! Options of real file systems, in a mount namespace of the test's own: a tmpfs, and ext4 in a file.
//!
//! Needs root; ext4 needs a loop device and mkfs.ext4 as well. Fails and says so without.

use std::path::Path;
use std::process::Command;
use std::sync::Arc;

use rungwise_host::live::Live;
use rungwise_host::namespace::Namespace;
use rungwise_knobs::edit::Places;
use rungwise_knobs::recovery::{self, Leftovers};
use rungwise_knobs::{Context, Plan, Session};

fn run(words: &[&str]) {
    let output = Command::new(words[0]).args(&words[1..]).output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{}: {said}", words.join(" "));
}

/// The kernel's line for what is mounted there.
fn line(point: &str) -> String {
    let mounts = std::fs::read_to_string("/proc/thread-self/mountinfo").unwrap();
    let mut lines = mounts
        .lines()
        .filter(|line| line.split(' ').nth(4) == Some(point));
    lines.next_back().unwrap().to_owned()
}

fn plan(id: &str, point: &str, wish: &str) -> rungwise_knobs::Result<Plan> {
    let context = Context::of_host(&Live, Some(point), &[0]);
    rungwise_knobs::find(id).unwrap().plan(&context, wish)
}

/// Runs `work` with an empty folder to mount at, where nobody else sees it.
fn alone(work: impl FnOnce(&Path) + Send + 'static) {
    let namespace = Namespace::create("kn-mounts").expect("this test needs root");
    let folder = tempfile::tempdir().unwrap();
    let point = folder.path().join("at");
    std::fs::create_dir(&point).unwrap();
    namespace.run(move || work(&point));
    // The mounts end with their namespace; until then the folder is busy elsewhere only.
    drop(namespace);
    drop(folder);
}

/// Turns the knob and back; the line of the mount is as before, and while it is turned it differs in `word` alone.
fn round_trip(id: &str, point: &str, wish: &str, word: &str) {
    let state = tempfile::tempdir().unwrap();
    let before = line(point);
    let places = Places::host(Arc::new(Live));
    let mut session = Session::begin(state.path(), places.clone(), "test").unwrap();
    let plan = plan(id, point, wish).unwrap();
    let _ = session.apply(&plan).unwrap();
    assert_eq!(plan.verify(&places).unwrap(), [], "{id}={wish}");
    let turned = line(point);
    let undo = session.close().unwrap();
    assert!(undo.complete(), "{}", undo.left_in_words());
    assert_eq!(line(point), before, "{id}={wish}");
    let words = |line: &str| -> Vec<String> {
        let mut words: Vec<String> = line.split([' ', ',']).map(str::to_owned).collect();
        words.retain(|known| known != word && !known.ends_with("atime"));
        words
    };
    assert_ne!(turned, before, "{id}={wish}");
    assert_eq!(words(&turned), words(&before), "{id}={wish}");
}

#[test]
fn each_of_the_three_ways_to_keep_access_times_goes_to_each_other_and_back() {
    alone(|point| {
        let point = point.to_str().unwrap();
        let ways = ["relatime", "noatime", "strictatime"];
        for from in ways {
            run(&[
                "mount",
                "-t",
                "tmpfs",
                "-o",
                &format!("nosuid,noexec,nodiratime,{from}"),
                "tmpfs",
                point,
            ]);
            for to in ways.into_iter().filter(|to| *to != from) {
                round_trip("disk.mount_noatime", point, to, "");
            }
            run(&["umount", point]);
        }
    });
}

#[test]
fn discard_of_ext4_goes_and_comes_back_and_no_other_option_moves() {
    alone(|point| {
        let image = point.with_file_name("image");
        let (image, point) = (image.to_str().unwrap(), point.to_str().unwrap());
        run(&["truncate", "-s", "16M", image]);
        run(&["mkfs.ext4", "-q", image]);
        for options in [
            "discard,data=journal,nosuid,noatime",
            "discard,commit=7,nodelalloc,sync",
        ] {
            run(&["mount", "-o", &format!("loop,{options}"), image, point]);
            assert!(line(point).contains(",discard"), "{}", line(point));
            round_trip("disk.discard", point, "periodic", "discard");
            run(&["umount", point]);
        }
    });
}

#[test]
fn a_file_system_that_takes_no_discard_while_mounted_is_refused_by_its_name() {
    alone(|point| {
        let point = point.to_str().unwrap();
        run(&["mount", "-t", "tmpfs", "tmpfs", point]);
        let error = plan("disk.discard", point, "online")
            .unwrap_err()
            .to_string();
        assert!(
            error.contains("is tmpfs") && error.contains("/etc/fstab"),
            "{error}"
        );
        let error = plan("disk.mount_noatime", "/no/such/mount", "noatime").unwrap_err();
        assert!(
            error
                .to_string()
                .contains("nothing is mounted at /no/such/mount"),
            "{error}"
        );
    });
}

#[test]
fn a_mount_that_is_covered_waits_for_its_undo_and_one_that_has_gone_needs_none() {
    alone(|point| {
        let point = point.to_str().unwrap();
        let state = tempfile::tempdir().unwrap();
        let places = Places::host(Arc::new(Live));
        let turned = || {
            let mut session = Session::begin(state.path(), places.clone(), "test").unwrap();
            let plan = plan("disk.mount_noatime", point, "noatime").unwrap();
            let _ = session.apply(&plan).unwrap();
            session.keep().unwrap()
        };
        let undo = |journal: &Path| {
            let recovery = recovery::recover(journal, &places, Leftovers::Report, false);
            recovery.unwrap().unwrap().undo
        };
        run(&["mount", "-t", "tmpfs", "-o", "relatime", "tmpfs", point]);
        let before = line(point);
        let journal = turned();
        run(&["mount", "-t", "tmpfs", "-o", "noatime", "tmpfs", point]);
        let covered = undo(&journal);
        assert!(
            covered.left_in_words().contains("mounted over it"),
            "{covered:?}"
        );
        run(&["umount", point]);
        assert_eq!(undo(&journal).restored.len(), 1);
        assert_eq!(line(point), before);
        let journal = turned();
        run(&["umount", point]);
        let gone = undo(&journal);
        assert!(gone.settled[0].contains("gone with its mount"), "{gone:?}");
    });
}
