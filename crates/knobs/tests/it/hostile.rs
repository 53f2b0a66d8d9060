//! Journals and plans that somebody else wrote: an undo must not be a way to write anything.

use rungwise_host::{DeviceSetting, MountOption};
use rungwise_knobs::by_hand::Way;
use rungwise_knobs::edit::{Edit, Elevator, Mount, Row, Twins};
use rungwise_knobs::journal::{self, Entry, Intent, Line};
use rungwise_knobs::{Error, Place, Plan, PlannedEdit, Why, recovery};

use crate::memory::{Disk, Machines, header, keeper};

/// Intents with a good checksum that no knob could have written.
fn forged() -> Vec<Intent> {
    let file = |knob: &str, path: &str, before: &str| Intent {
        knob: knob.to_owned(),
        place: Place::Host,
        netns: 1,
        ifindex: None,
        edit: Edit::WriteFile {
            path: path.to_owned(),
            value: "1".to_owned(),
        },
        before: before.to_owned(),
    };
    let backlog = "/proc/sys/net/core/netdev_max_backlog";
    vec![
        file("net.netdev_max_backlog", "/etc/passwd", "root::0:0"),
        file(
            "net.netdev_max_backlog",
            "/proc/sys/kernel/core_pattern",
            "|/tmp/x",
        ),
        file(
            "net.netdev_max_backlog",
            "/proc/sys/net/core/../../kernel/core_pattern",
            "1",
        ),
        // A path of the registry, of another knob.
        file("net.rps_cpus", backlog, "1000"),
        file("no.such_knob", backlog, "1000"),
        // A value that the target cannot hold.
        file("net.netdev_max_backlog", backlog, "|/tmp/x"),
        Intent {
            edit: Edit::NftTable {
                name: "firewall".to_owned(),
                present: true,
            },
            before: "absent".to_owned(),
            ..file("net.iptables_unload", "", "")
        },
        Intent {
            edit: Edit::NftTable {
                name: "rungwise_obstacle".to_owned(),
                present: true,
            },
            before: "absent".to_owned(),
            ..file("net.iptables_unload", "", "")
        },
        Intent {
            edit: Edit::Feature {
                device: "veth0".to_owned(),
                feature: "rx-checksum".to_owned(),
                on: true,
            },
            before: "off".to_owned(),
            ..file("net.gro", "", "")
        },
        Intent {
            edit: Edit::Keep {
                path: "/proc/sys/kernel/core_pattern".to_owned(),
                value: "1".to_owned(),
            },
            before: "1".to_owned(),
            ..file("net.queues", "", "")
        },
        Intent {
            edit: Edit::Twin {
                files: Twins {
                    bytes: "/proc/sys/kernel/core_pattern".to_owned(),
                    percent: "/proc/sys/vm/dirty_ratio".to_owned(),
                },
                value: "bytes=1".to_owned(),
            },
            before: "percent=20".to_owned(),
            ..file("mem.dirty", "", "")
        },
        Intent {
            edit: Edit::Scheduler {
                elevator: Elevator {
                    disk: "/sys/block/../../proc/sys/kernel".to_owned(),
                },
                value: "none".to_owned(),
            },
            before: "none nr_requests=64".to_owned(),
            ..file("disk.scheduler", "", "")
        },
        Intent {
            edit: Edit::Scheduler {
                elevator: Elevator {
                    disk: "/sys/block/vda".to_owned(),
                },
                value: "none nr_requests=|/tmp/x".to_owned(),
            },
            before: "none nr_requests=64".to_owned(),
            ..file("disk.scheduler", "", "")
        },
        Intent {
            edit: Edit::Setting {
                device: "veth0".to_owned(),
                setting: DeviceSetting::Channels,
                value: "combined=1".to_owned(),
            },
            before: "combined=2".to_owned(),
            ..file("net.ring", "", "")
        },
        Intent {
            edit: Edit::Unit {
                unit: "auditd.service".to_owned(),
                active: true,
            },
            before: "inactive".to_owned(),
            ..file("net.irqbalance_stop", "", "")
        },
        // All that root does, unrecorded.
        Intent {
            edit: Edit::AuditNever { user: 0 },
            before: "absent".to_owned(),
            ..file("sec.audit_rules", "", "")
        },
        Intent {
            edit: Edit::Mount {
                mount: Mount {
                    point: "/data".to_owned(),
                    id: 41,
                    namespace: 1,
                },
                option: MountOption::Atime,
                value: "exec".to_owned(),
            },
            before: "relatime".to_owned(),
            ..file("disk.mount_noatime", "", "")
        },
        Intent {
            edit: Edit::Throttle {
                row: Row {
                    file: "/sys/fs/cgroup/app/io.max".to_owned(),
                    // A second line would limit another disk.
                    disk: "254:0 wbps=1\n8:0".to_owned(),
                },
                value: "wiops=1".to_owned(),
            },
            before: "wiops=max".to_owned(),
            ..file("disk.cgroup_io", "", "")
        },
        // Until the next boot.
        file(
            "bios.smt",
            "/sys/devices/system/cpu/smt/control",
            "forceoff",
        ),
        // Words that somebody wants an operator to put on the command line.
        Intent {
            edit: Edit::ByHand {
                way: Way::CommandLine,
                text: "audit=0 init=/bin/sh".to_owned(),
            },
            before: String::new(),
            ..file("cmdline.audit", "", "")
        },
        file(
            "cpu.cfs_quota",
            "/sys/fs/cgroup/../../proc/sys/kernel/core_pattern/cpu.max",
            "max 100000",
        ),
    ]
}

#[test]
fn a_forged_intent_is_refused_and_nothing_is_written() {
    for intent in forged() {
        let machines = Machines::new();
        // So that a careless undo would find "its" value there.
        if let Edit::WriteFile { path, .. } = &intent.edit {
            machines.host.set(path, "1");
        }
        let lines = [Entry::Header(header()), Entry::Intent(intent.clone())];
        let bytes: Vec<u8> = (0..)
            .zip(lines)
            .flat_map(|(seq, entry)| Line { seq, entry }.encode())
            .collect();
        let recovered = journal::read(&bytes);
        assert_eq!(recovered.pending.len(), 1, "{intent:?}");
        let recovery = recovery::undo_recovered(recovered, &machines.places(), |_| {}).unwrap();
        assert_eq!(recovery.undo.left[0].why, Why::Refused, "{intent:?}");
        assert_eq!(machines.host.changes(), 0, "{intent:?}");
    }
}

#[test]
fn a_forged_plan_is_refused_before_anything_is_read_or_written() {
    for intent in forged() {
        let machines = Machines::new();
        let plan = Plan {
            knob: intent.knob.clone(),
            wish: "x".to_owned(),
            edits: vec![PlannedEdit {
                place: intent.place.clone(),
                edit: match intent.edit.clone() {
                    // For a plan the value counts, not what was before.
                    Edit::WriteFile { path, .. } => Edit::WriteFile {
                        path,
                        value: intent.before.clone(),
                    },
                    other => other,
                },
                before: None,
            }],
            notes: Vec::new(),
        };
        // Some are wrong by their value only, and "1000" is a good one for another knob.
        keeper(&Disk::default())
            .apply(&machines.places(), &plan)
            .unwrap_err();
        // Nor is what it names shown to anybody.
        for check in [Plan::drift, Plan::verify] {
            let error = check(&plan, &machines.places()).unwrap_err();
            assert!(
                matches!(error, Error::BadPlan { .. } | Error::UnknownKnob { .. }),
                "{intent:?}: {error}"
            );
        }
        assert_eq!(machines.host.changes(), 0, "{intent:?}");
    }
}

#[test]
fn a_plan_that_names_a_target_twice_is_refused() {
    let machines = Machines::new();
    let mut plan = machines.plan("net.gro", "on");
    plan.edits.push(plan.edits[0].clone());
    let error = keeper(&Disk::default())
        .apply(&machines.places(), &plan)
        .unwrap_err();
    assert!(error.to_string().contains("twice"), "{error}");
}

#[test]
fn a_plan_for_a_lab_that_is_not_open_is_refused() {
    let machines = Machines::new();
    let plan = machines.plan("net.gro", "on");
    let host_only = rungwise_knobs::edit::Places::host(machines.host.clone());
    let error = keeper(&Disk::default())
        .apply(&host_only, &plan)
        .unwrap_err();
    assert_eq!(u8::from(error.exit()), 4);
}
