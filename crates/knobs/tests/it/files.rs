//! The journal on a real disk: locks, owners, what stays and what goes.

use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use rungwise_knobs::recovery::{self, Leftovers};
use rungwise_knobs::{Error, Session, journal};

use crate::memory::Machines;

const BACKLOG: &str = "/proc/sys/net/core/netdev_max_backlog";

fn applied(machines: &Machines, state: &Path) -> Session {
    let mut session = Session::begin(state, machines.places(), "test").unwrap();
    let _ = session
        .apply(&machines.plan("net.netdev_max_backlog", "5000"))
        .unwrap();
    session
}

fn journals(state: &Path) -> Vec<PathBuf> {
    let stored = journal::stored(state).unwrap();
    stored.into_iter().map(|stored| stored.path).collect()
}

#[test]
fn a_session_that_ends_cleanly_leaves_no_journal() {
    let machines = Machines::new();
    let state = tempfile::tempdir().unwrap();
    let session = applied(&machines, state.path());
    assert_eq!(journals(state.path()), [session.journal()]);
    assert!(session.close().unwrap().complete());
    assert!(journals(state.path()).is_empty());
    assert_eq!(machines.host.snapshot()[BACKLOG], "1000");
}

#[test]
fn a_session_that_is_dropped_undoes_what_it_did() {
    let machines = Machines::new();
    let state = tempfile::tempdir().unwrap();
    drop(applied(&machines, state.path()));
    assert_eq!(machines.host.snapshot()[BACKLOG], "1000");
    assert!(journals(state.path()).is_empty());
}

#[test]
fn what_is_kept_is_undone_later_the_newest_first() {
    let machines = Machines::new();
    let state = tempfile::tempdir().unwrap();
    applied(&machines, state.path()).keep().unwrap();
    let mut second = Session::begin(state.path(), machines.places(), "test").unwrap();
    let _ = second
        .apply(&machines.plan("net.netdev_max_backlog", "7000"))
        .unwrap();
    second.keep().unwrap();
    let paths = journals(state.path());
    assert_eq!(paths.len(), 2);
    // The older one first stands aside: its value is covered by the newer one's.
    let places = machines.places();
    let older = recovery::recover(&paths[1], &places, Leftovers::Report, false)
        .unwrap()
        .unwrap();
    assert!(!older.closed && !older.undo.complete());
    assert_eq!(machines.host.snapshot()[BACKLOG], "7000");
    for path in paths {
        assert!(
            recovery::recover(&path, &places, Leftovers::Report, false)
                .unwrap()
                .unwrap()
                .closed
        );
    }
    assert_eq!(machines.host.snapshot()[BACKLOG], "1000");
    assert!(journals(state.path()).is_empty());
}

#[test]
fn a_journal_at_work_is_not_undone_under_its_session() {
    let machines = Machines::new();
    let state = tempfile::tempdir().unwrap();
    let session = applied(&machines, state.path());
    let error = recovery::recover(
        session.journal(),
        &machines.places(),
        Leftovers::Report,
        false,
    )
    .unwrap_err();
    assert!(matches!(error, Error::Busy { .. }), "{error}");
    assert!(
        error
            .to_string()
            .contains(&format!("process {}", std::process::id())),
        "{error}"
    );
    assert_eq!(machines.host.snapshot()[BACKLOG], "5000");
}

#[test]
fn a_journal_that_others_may_write_is_not_trusted() {
    let machines = Machines::new();
    let state = tempfile::tempdir().unwrap();
    let path = applied(&machines, state.path()).keep().unwrap();
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o666)).unwrap();
    let error = recovery::recover(&path, &machines.places(), Leftovers::Report, false).unwrap_err();
    assert!(
        error.to_string().contains("other users may write to it"),
        "{error}"
    );
    assert_eq!(u8::from(error.exit()), 5);
    assert_eq!(machines.host.snapshot()[BACKLOG], "5000");
}

#[test]
fn a_damaged_journal_is_used_as_far_as_it_is_whole_and_stays() {
    let machines = Machines::new();
    let state = tempfile::tempdir().unwrap();
    let mut session = applied(&machines, state.path());
    let _ = session.apply(&machines.plan("net.rp_filter", "0")).unwrap();
    let path = session.keep().unwrap();
    let mut bytes = std::fs::read(&path).unwrap();
    let second = bytes.iter().position(|byte| *byte == b'\n').unwrap() + 40;
    bytes[second] ^= 1;
    std::fs::write(&path, bytes).unwrap();
    let recovery = recovery::recover(&path, &machines.places(), Leftovers::Report, false)
        .unwrap()
        .unwrap();
    assert!(!recovery.closed && !recovery.damage.is_empty());
    assert_eq!(recovery.undo.restored.len(), 2);
    assert_eq!(machines.host.snapshot()[BACKLOG], "5000");
    let accepted = recovery::recover(&path, &machines.places(), Leftovers::Abandon, false)
        .unwrap()
        .unwrap();
    assert!(accepted.closed && journals(state.path()).is_empty());
}

#[test]
fn a_journal_of_another_boot_is_closed_and_kept_for_people() {
    let machines = Machines::new();
    let state = tempfile::tempdir().unwrap();
    let path = applied(&machines, state.path()).keep().unwrap();
    machines
        .host
        .set("/proc/sys/kernel/random/boot_id", "another");
    let recovery = recovery::recover(&path, &machines.places(), Leftovers::Report, false)
        .unwrap()
        .unwrap();
    assert!(recovery.closed && recovery.rebooted);
    assert_eq!(machines.host.snapshot()[BACKLOG], "5000");
    assert!(journals(state.path()).is_empty());
    let next = applied(&machines, state.path()).keep();
    assert!(next.is_ok());
    // The one set aside is still there beside the new one.
    assert!(path.with_extension("closed").exists());
}

#[test]
fn a_torn_end_is_cut_off_before_the_undo_is_recorded() {
    let machines = Machines::new();
    let state = tempfile::tempdir().unwrap();
    let path = applied(&machines, state.path()).keep().unwrap();
    let mut bytes = std::fs::read(&path).unwrap();
    bytes.extend(b"{\"crc\":\"0000");
    std::fs::write(&path, bytes).unwrap();
    // A third party, so that the journal stays to be read again.
    machines.host.set(BACKLOG, "1");
    for _ in 0..2 {
        let recovery = recovery::recover(&path, &machines.places(), Leftovers::Report, false)
            .unwrap()
            .unwrap();
        assert!(!recovery.closed && recovery.damage.is_empty());
    }
}
