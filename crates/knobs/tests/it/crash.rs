//! The promise of the journal: a crash at any step, and at any step of any undo after it, leaves a
//! journal that restores the machine.

use std::path::PathBuf;

use proptest::prelude::*;
use rungwise_host::recorded::Fuse;
use rungwise_knobs::engine::Keeper;
use rungwise_knobs::{journal, recovery};

use crate::memory::{Disk, Machines, MemoryLog, header};

/// What a session does, one after the other.
#[derive(Clone, Debug)]
enum Step {
    Apply(usize),
    UndoAll,
}

const WISHES: &[(&str, &str)] = &[
    ("net.rps_cpus", "all"),
    ("net.rps_cpus", "0"),
    ("net.rps_cpus", "off"),
    ("net.rfs", "5000"),
    ("net.gro", "on"),
    ("net.gro_list_fwd", "list"),
    ("net.rp_filter", "0"),
    ("net.rmem_max", "max=16MiB,default=1MiB"),
    ("net.iptables_unload", "loaded"),
    ("net.xps_cpus", "by-cpu"),
    // One of each other kind of edit: settings of a device, masks that are kept, twins, a choice, threads.
    ("net.ring", "rx=4096"),
    ("net.rps_cpus", "all"),
    ("net.queues", "1"),
    ("net.queues", "2"),
    ("mem.dirty", "limit=512MiB,background=5%"),
    ("mem.dirty", "limit=30%"),
    ("mem.thp", "never"),
    ("cpu.pin_threads", "4242:each:0-1"),
    ("virt.container_cpuset", "0"),
    // A scheduler and the number that it takes along.
    ("disk.nr_requests", "64"),
    ("disk.scheduler", "none"),
    ("disk.nr_requests", "100"),
    ("disk.scheduler", "bfq"),
    ("disk.mount_noatime", "strictatime"),
    ("disk.discard", "periodic"),
    ("net.irqbalance_stop", "stop"),
    ("sec.audit_rules", "uid=998,999"),
    ("virt.vhost_pin", "1"),
    ("virt.vcpu_pin", "0-1"),
    ("rpc.nofile", "4242:1048576"),
    ("disk.cgroup_io", "254:0:wiops=240,rbps=1MiB"),
    ("disk.cgroup_io", "none"),
];

/// Runs the steps until the fuse blows; the disk and the machine are what is left.
fn session(machines: &Machines, steps: &[Step], fuse: &std::sync::Arc<Fuse>, torn: usize) -> Disk {
    let disk = Disk::default();
    machines.arm(Some(fuse));
    let log = MemoryLog {
        disk: disk.clone(),
        fuse: Some(fuse.clone()),
        torn,
        full: false,
    };
    let places = machines.places();
    let run = || -> rungwise_knobs::Result<()> {
        let mut keeper = Keeper::begin(log, PathBuf::from("journal"), header())?;
        for step in steps {
            match step {
                Step::Apply(index) => {
                    // Planned on a machine that can be read: planning is not what crashes here.
                    machines.arm(None);
                    let (id, wish) = WISHES[*index];
                    let plan = machines.plan(id, wish);
                    machines.arm(Some(fuse));
                    let _ = keeper.apply(&places, &plan)?;
                }
                Step::UndoAll => {
                    keeper.undo(&places, None);
                }
            }
            if fuse.blown() {
                break;
            }
        }
        Ok(())
    };
    let _crashed = run();
    machines.arm(None);
    disk
}

/// One undo from the journal, crashed after `steps` more steps.
fn recover(
    machines: &Machines,
    disk: &Disk,
    fuse: Option<std::sync::Arc<Fuse>>,
    torn: usize,
) -> bool {
    let bytes = disk.lock().unwrap().clone();
    let recovered = journal::read(&bytes);
    assert!(recovered.damage.is_empty(), "{:?}", recovered.damage);
    assert!(recovered.distrust().is_none());
    disk.lock().unwrap().truncate(recovered.whole);
    machines.arm(fuse.as_ref());
    let mut log = MemoryLog {
        disk: disk.clone(),
        fuse,
        torn,
        full: false,
    };
    let recovery = recovery::undo_recovered(recovered, &machines.places(), |line| {
        use rungwise_knobs::journal::Log as _;
        let _ = log.append(&line.encode(), false);
    });
    machines.arm(None);
    recovery.is_ok_and(|recovery| recovery.undo.complete())
}

#[test]
fn a_crash_at_every_step_and_every_step_of_its_undo_is_put_right() {
    let steps: Vec<Step> = (0..WISHES.len())
        .map(Step::Apply)
        .chain([Step::UndoAll])
        .collect();
    let mut crashes = 0;
    for at in 0.. {
        let fuse = Fuse::after(at);
        let machines = Machines::new();
        let start = machines.snapshot();
        let disk = session(&machines, &steps, &fuse, 0);
        crashes += 1;
        // Every second undo step too, with torn lines.
        let (left, bytes) = (machines.snapshot(), disk.lock().unwrap().clone());
        recover(&machines, &disk, Some(Fuse::after(at % 7)), 20);
        assert!(recover(&machines, &disk, None, 0), "crash at {at}");
        assert_eq!(
            machines.snapshot(),
            start,
            "crash at {at}, from {left:?}\n{}",
            String::from_utf8_lossy(&bytes)
        );
        // An undo of what is undone does nothing.
        let changes = machines.host.changes() + machines.server.changes();
        assert!(recover(&machines, &disk, None, 0));
        assert_eq!(machines.host.changes() + machines.server.changes(), changes);
        if !fuse.blown() {
            break;
        }
    }
    assert!(crashes > 50, "only {crashes} steps were tried");
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let step = prop_oneof![
        5 => (0..WISHES.len()).prop_map(Step::Apply),
        1 => Just(Step::UndoAll),
    ];
    proptest::collection::vec(step, 1..8)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn undo_after_any_journal_prefix_restores_the_start(
        steps in steps(),
        at in 0..80_u64,
        torn in 0..400_usize,
        undo_at in proptest::collection::vec((0..12_u64, 0..200_usize), 0..4),
    ) {
        let machines = Machines::new();
        let start = machines.snapshot();
        let disk = session(&machines, &steps, &Fuse::after(at), torn);
        for (at, torn) in undo_at {
            recover(&machines, &disk, Some(Fuse::after(at)), torn);
        }
        prop_assert!(recover(&machines, &disk, None, 0));
        prop_assert_eq!(machines.snapshot(), start);
    }

    #[test]
    fn a_third_party_keeps_what_it_wrote_and_everything_else_is_put_back(
        steps in steps(),
        at in 0..60_u64,
        value in prop_oneof![Just("7"), Just("12345")],
    ) {
        let path = "/proc/sys/net/core/rmem_max";
        let machines = Machines::new();
        let start = machines.snapshot();
        let disk = session(&machines, &steps, &Fuse::after(at), 0);
        machines.host.set(path, value);
        recover(&machines, &disk, None, 0);
        // Neither value is one of ours, so it stays even where ours is in force below it.
        prop_assert_eq!(&machines.host.snapshot()[path], value);
        machines.host.set(path, "4194304");
        for ((name, old), (_, new)) in start.into_iter().zip(machines.snapshot()) {
            prop_assert_eq!(&old, &new, "{}", name);
        }
    }
}
