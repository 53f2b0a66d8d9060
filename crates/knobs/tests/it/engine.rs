//! The engine under faults: refusals, values that do not take, third parties, a full disk.

use std::path::{Path, PathBuf};

use rungwise_host::Host as _;
use rungwise_knobs::engine::Keeper;
use rungwise_knobs::journal::{self, Entry};
use rungwise_knobs::{Error, Why, recovery};

use crate::memory::{Disk, Machines, MemoryLog, header, keeper};

const RPS0: &str = "/sys/class/net/veth0/queues/rx-0/rps_cpus";
const RPS1: &str = "/sys/class/net/veth0/queues/rx-1/rps_cpus";
const REQUESTS: &str = "/sys/block/vda/queue/nr_requests";
const EPERM: i32 = 1;
const EIO: i32 = 5;

#[test]
fn the_intent_is_on_the_disk_before_the_machine_is_touched() {
    let machines = Machines::new();
    let disk = Disk::default();
    let log = MemoryLog {
        disk: disk.clone(),
        fuse: None,
        torn: 0,
        full: false,
    };
    let mut keeper = Keeper::begin(log, PathBuf::from("journal"), header()).unwrap();
    // The first write fails, so nothing but intents and their end can be in the journal.
    machines.server.fail(1, EIO);
    keeper
        .apply(&machines.places(), &machines.plan("net.rps_cpus", "all"))
        .unwrap_err();
    let text = String::from_utf8(disk.lock().unwrap().clone()).unwrap();
    let kinds: Vec<&str> = text
        .lines()
        .map(|line| {
            line.split("\"kind\":\"")
                .nth(1)
                .unwrap()
                .split('"')
                .next()
                .unwrap()
        })
        .collect();
    assert_eq!(kinds, ["header", "intent", "intent", "undone", "undone"]);
}

#[test]
fn a_full_disk_leaves_the_machine_untouched() {
    let machines = Machines::new();
    let start = machines.snapshot();
    let disk = Disk::default();
    let mut log = MemoryLog {
        disk: disk.clone(),
        fuse: None,
        torn: 0,
        full: true,
    };
    assert!(Keeper::begin(log, PathBuf::from("journal"), header()).is_err());
    log = MemoryLog {
        disk,
        fuse: None,
        torn: 0,
        full: true,
    };
    let error = Keeper::begin(log, PathBuf::from("journal"), header())
        .err()
        .unwrap();
    assert!(error.to_string().contains("free some space"), "{error}");
    assert_eq!((machines.snapshot(), machines.host.changes()), (start, 0));
}

#[test]
fn a_refused_write_takes_the_whole_plan_back_and_names_knob_and_value() {
    for nth in 1..=2 {
        let machines = Machines::new();
        let start = machines.snapshot();
        machines.server.fail(nth, EPERM);
        let disk = Disk::default();
        let mut keeper = keeper(&disk);
        let plan = machines.plan("net.rps_cpus", "all");
        let error = keeper.apply(&machines.places(), &plan).unwrap_err();
        assert!(matches!(error, Error::Permission { .. }), "{error}");
        assert_eq!(u8::from(error.exit()), 4);
        let words = error.to_string();
        assert!(
            words.contains("net.rps_cpus") && words.contains("'3'"),
            "{words}"
        );
        assert_eq!(machines.snapshot(), start);
        assert!(journal::read(&disk.lock().unwrap()).pending.is_empty());
    }
}

#[test]
fn a_cpu_that_does_not_exist_is_explained() {
    let machines = Machines::new();
    let plan = machines.plan("net.rps_cpus", "0-7");
    let error = keeper(&Disk::default())
        .apply(&machines.places(), &plan)
        .unwrap_err();
    assert!(
        error.to_string().contains("CPU that does not exist"),
        "{error}"
    );
}

#[test]
fn a_value_that_does_not_take_is_an_error_with_both_values_and_is_taken_back() {
    let machines = Machines::new();
    // A third party writes between our write and the read-back.
    machines.server.meddle(2, RPS1, "1");
    let plan = machines.plan("net.rps_cpus", "all");
    let mut keeper = keeper(&Disk::default());
    let error = keeper.apply(&machines.places(), &plan).unwrap_err();
    let words = error.to_string();
    assert!(words.contains("set to '3' and reads '1'"), "{words}");
    assert_eq!(machines.server.snapshot()[RPS0], "0");
    assert_eq!(machines.server.snapshot()[RPS1], "0");
}

#[test]
fn rounding_counts_as_success_and_the_readback_is_what_undo_compares() {
    let machines = Machines::new();
    let start = machines.snapshot();
    let disk = Disk::default();
    let mut keeper = keeper(&disk);
    let applied = keeper
        .apply(&machines.places(), &machines.plan("net.rfs", "5000"))
        .unwrap();
    assert_eq!(applied.changes[0].after, "8192");
    assert!(keeper.undo(&machines.places(), None).complete());
    assert_eq!(machines.snapshot(), start);
}

#[test]
fn what_somebody_else_changed_is_left_to_them_and_named() {
    let machines = Machines::new();
    let mut keeper = keeper(&Disk::default());
    let applied = keeper
        .apply(&machines.places(), &machines.plan("net.rps_cpus", "all"))
        .unwrap();
    machines.server.set(RPS0, "2");
    let undo = keeper.undo(&machines.places(), None);
    assert_eq!(applied.changes.len(), 2);
    assert_eq!(undo.restored.len(), 1);
    assert_eq!(
        undo.left[0].why,
        Why::Foreign {
            found: "2".to_owned()
        }
    );
    assert_eq!(machines.server.snapshot()[RPS0], "2");
    assert_eq!(machines.server.snapshot()[RPS1], "0");
}

#[test]
fn a_failed_undo_is_tried_again_by_the_next_one() {
    let machines = Machines::new();
    let start = machines.snapshot();
    let mut keeper = keeper(&Disk::default());
    let _ = keeper
        .apply(&machines.places(), &machines.plan("net.rps_cpus", "all"))
        .unwrap();
    machines.server.fail(1, EIO);
    let first = keeper.undo(&machines.places(), None);
    assert_eq!((first.restored.len(), first.left.len()), (1, 1));
    assert!(keeper.undo(&machines.places(), None).complete());
    assert_eq!(machines.snapshot(), start);
}

#[test]
fn a_plan_that_fails_and_cannot_be_taken_back_is_the_loudest_error() {
    let machines = Machines::new();
    machines.server.fail(2, EIO);
    machines.server.fail(3, EIO);
    let plan = machines.plan("net.rps_cpus", "all");
    let error = keeper(&Disk::default())
        .apply(&machines.places(), &plan)
        .unwrap_err();
    assert_eq!(u8::from(error.exit()), 5);
    assert!(
        error.to_string().contains("could not be restored"),
        "{error}"
    );
}

#[test]
fn one_plan_is_taken_back_and_the_others_stay() {
    let machines = Machines::new();
    let mut keeper = keeper(&Disk::default());
    let places = machines.places();
    let _gro = keeper
        .apply(&places, &machines.plan("net.gro", "on"))
        .unwrap();
    let rps = keeper
        .apply(&places, &machines.plan("net.rps_cpus", "all"))
        .unwrap();
    assert_eq!(rps.knob, "net.rps_cpus");
    machines.server.set(RPS0, "3");
    let undo = keeper.undo(&places, Some(&[3, 4]));
    assert_eq!(undo.restored.len(), 2, "{undo:?}");
    assert_eq!(machines.server.snapshot()["veth0 rx-gro"], "true");
}

#[test]
fn switches_of_the_service_are_handed_back_and_leave_no_trace() {
    let machines = Machines::new();
    let disk = Disk::default();
    let mut keeper = keeper(&disk);
    let header = disk.lock().unwrap().len();
    let applied = keeper
        .apply(&machines.places(), &machines.plan("sock.reuseport", "on"))
        .unwrap();
    assert_eq!(applied.service, [("reuseport".to_owned(), "on".to_owned())]);
    assert_eq!(disk.lock().unwrap().len(), header);
}

#[test]
fn after_a_reboot_nothing_is_written_and_what_still_holds_is_listed() {
    let machines = Machines::new();
    let disk = Disk::default();
    let mut keeper = keeper(&disk);
    let places = machines.places();
    let _ = keeper
        .apply(&places, &machines.plan("net.netdev_max_backlog", "5000"))
        .unwrap();
    machines
        .host
        .set("/proc/sys/kernel/random/boot_id", "another");
    let before = machines.host.changes();
    let mut notes = Vec::new();
    let recovered = journal::read(&disk.lock().unwrap());
    let recovery =
        recovery::undo_recovered(recovered, &places, |line| notes.push(line.entry)).unwrap();
    assert!(recovery.rebooted && recovery.undo.complete());
    assert_eq!(
        recovery.still,
        ["/proc/sys/net/core/netdev_max_backlog holds '5000'"]
    );
    assert_eq!(machines.host.changes(), before);
    assert!(matches!(&notes[..], [Entry::Note { .. }]), "{notes:?}");
}

#[test]
fn a_namespace_or_device_that_is_gone_took_its_settings_along() {
    let machines = Machines::new();
    let disk = Disk::default();
    let mut keeper = keeper(&disk);
    let _ = keeper
        .apply(&machines.places(), &machines.plan("net.gro", "on"))
        .unwrap();
    let recovered = journal::read(&disk.lock().unwrap());
    let host_only = rungwise_knobs::edit::Places::host(machines.host.clone());
    let recovery = recovery::undo_recovered(recovered.clone(), &host_only, |_| {}).unwrap();
    assert!(recovery.undo.complete());
    assert!(
        recovery.undo.settled[0].contains("ended with its namespace"),
        "{:?}",
        recovery.undo
    );
    machines.server.set("/sys/class/net/veth0/ifindex", "9");
    let recovery = recovery::undo_recovered(recovered, &machines.places(), |_| {}).unwrap();
    assert!(
        recovery.undo.settled[0].contains("gone with its device"),
        "{:?}",
        recovery.undo
    );
    assert_eq!(machines.server.snapshot()["veth0 rx-gro"], "true");
}

#[test]
fn a_queue_that_is_gone_took_its_mask_along() {
    let machines = Machines::new();
    let mut keeper = keeper(&Disk::default());
    let places = machines.places();
    let _ = keeper
        .apply(&places, &machines.plan("net.rps_cpus", "all"))
        .unwrap();
    machines.server.remove(RPS1);
    let undo = keeper.undo(&places, None);
    assert!(undo.complete(), "{}", undo.left_in_words());
    assert!(undo.settled[0].contains("gone with its queue"), "{undo:?}");
    assert_eq!(machines.server.snapshot()[RPS0], "0");
}

#[test]
fn what_could_not_be_put_back_is_not_changed_in_the_first_place() {
    let machines = Machines::new();
    machines
        .server
        .set("/sys/class/net/veth0/threaded", "maybe");
    let error = keeper(&Disk::default())
        .apply(
            &machines.places(),
            &machines.plan("net.threaded_napi", "on"),
        )
        .unwrap_err();
    assert!(
        error.to_string().contains("could not be restored"),
        "{error}"
    );
    assert_eq!(machines.server.changes(), 0);
}

#[test]
fn verify_names_the_knob_and_both_values() {
    let machines = Machines::new();
    let plan = machines.plan_host("net.netdev_max_backlog", "5000");
    let drift = plan.verify(&machines.places()).unwrap();
    assert_eq!(
        drift[0].to_string(),
        "net.netdev_max_backlog: /proc/sys/net/core/netdev_max_backlog on this host is '1000', not '5000'"
    );
    let disk = Disk::default();
    let mut keeper = keeper(&disk);
    let _ = keeper.apply(&machines.places(), &plan).unwrap();
    let recovered = journal::read(&disk.lock().unwrap());
    let stand = recovery::verify(&recovered.pending, &machines.places());
    assert_eq!((stand.holding, stand.drift.len()), (1, 0));
    let nowhere = recovery::verify(&recovered.pending, &rungwise_knobs::edit::Places::default());
    assert_eq!((nowhere.holding, nowhere.elsewhere.len()), (0, 1));
    machines
        .host
        .set("/proc/sys/net/core/netdev_max_backlog", "1");
    assert_eq!(
        recovery::verify(&recovered.pending, &machines.places()).drift[0].found,
        "1"
    );
}

#[test]
fn a_scheduler_comes_back_with_the_length_of_its_queue() {
    let machines = Machines::new();
    let before = machines.snapshot();
    let disk = Disk::default();
    let mut keeper = keeper(&disk);
    let plan = machines.plan_host("disk.scheduler", "none");
    let applied = keeper.apply(&machines.places(), &plan).unwrap();
    assert_eq!(applied.changes[0].before, "mq-deadline nr_requests=192");
    assert_eq!(applied.changes[0].after, "none nr_requests=128");
    // Somebody shortens the queue of our scheduler; that goes with it.
    machines.host.set(REQUESTS, "16");
    assert_eq!(plan.verify(&machines.places()).unwrap(), []);
    let undo = keeper.undo(&machines.places(), None);
    assert!(undo.complete(), "{}", undo.left_in_words());
    assert_eq!(machines.snapshot(), before);
}

#[test]
fn a_scheduler_that_somebody_else_chose_since_stays_with_its_queue() {
    let machines = Machines::new();
    let disk = Disk::default();
    let mut keeper = keeper(&disk);
    let plan = machines.plan_host("disk.scheduler", "none");
    let _ = keeper.apply(&machines.places(), &plan).unwrap();
    let scheduler = Path::new("/sys/block/vda/queue/scheduler");
    machines.host.write(scheduler, b"bfq").unwrap();
    let undo = keeper.undo(&machines.places(), None);
    assert_eq!(undo.left.len(), 1);
    assert_eq!(
        undo.left[0].why,
        Why::Foreign {
            found: "bfq nr_requests=256".to_owned()
        }
    );
    assert_eq!(machines.host.snapshot()[REQUESTS], "256");
}
