//! Who belongs to a process.

use super::*;

fn kin(pid: u32, parent: u32, group: u32) -> Kin {
    Kin { pid, parent, group }
}

#[test]
fn a_family_is_the_group_and_all_descendants() {
    let all = [
        kin(1, 0, 1),
        kin(10, 1, 10),
        kin(11, 10, 10),
        // Its parent is gone, its group is not.
        kin(12, 1, 10),
        // A group of its own, below one of ours.
        kin(13, 12, 13),
        kin(14, 13, 13),
        kin(20, 1, 20),
    ];
    let mut family = family_of(10, &all);
    family.sort_unstable();
    assert_eq!(family, [10, 11, 12, 13, 14]);
    // Not the leader: its group is somebody else's.
    assert_eq!(family_of(11, &all), [11]);
}

#[test]
fn kin_are_read_behind_any_name() {
    let one = Kin::parse(7, "7 (a ) b (c) S 3 5 5 0 -1").unwrap();
    assert_eq!((one.parent, one.group), (3, 5));
    assert!(Kin::parse(7, "7 (a").is_none() && Kin::parse(7, "").is_none());
}

#[test]
fn a_process_that_is_gone_has_no_family() {
    assert!(family(u32::MAX / 2).is_err());
}
