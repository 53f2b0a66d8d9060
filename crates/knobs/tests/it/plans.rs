//! What each knob plans, and that it reads what it plans.

use proptest::prelude::*;
use rungwise_host::recorded::Recorded;
use rungwise_knobs::{Context, KNOBS, Scope, Settable};
use rungwise_model::kernel::{Answer, Channels, NetDevice, Question, Ring};

use crate::machine::{PID, everything, thread};
use crate::memory::{Machines, an_example, keeper, server, subject};

/// A wish per knob that changes something on the invented machine.
pub(crate) const WISHES: &[(&str, &str)] = &[
    ("bios.smt", "off"),
    ("cpu.autogroup", "off"),
    ("cpu.cfs_quota", "2.5"),
    ("cpu.cgroup_freezer", "thawed"),
    ("cpu.cgroup_weight", "1"),
    ("cpu.dma_latency", "100us"),
    ("cpu.epp", "performance"),
    ("cpu.governor", "performance"),
    ("cpu.nmi_watchdog", "off"),
    ("cpu.sched_slice", "base_slice_ns=3000000,nr_migrate=64"),
    ("cpu.stat_interval", "10"),
    ("cpu.timer_migration", "off"),
    ("disk.cgroup_io", "254:0:wiops=240"),
    ("disk.discard", "periodic"),
    ("disk.mount_noatime", "noatime"),
    ("disk.nr_requests", "512"),
    ("disk.queue_depth", "256"),
    ("disk.read_ahead_kb", "4096"),
    ("disk.rq_affinity", "2"),
    ("disk.scheduler", "none"),
    ("disk.wbt", "75ms"),
    ("mem.cgroup_limit", "2GiB"),
    ("mem.dirty", "limit=512MiB,background=5%,expire=10s"),
    ("mem.hugetlb", "8"),
    ("mem.max_map_count", "262144"),
    ("mem.min_free_kbytes", "112640"),
    ("mem.swappiness", "10"),
    ("mem.thp", "never"),
    ("mem.thp_defrag", "defer+madvise"),
    ("mem.watermark_scale", "100"),
    ("net.accept_local", "on"),
    ("net.affinity_hint", "follow"),
    ("net.arfs", "on"),
    ("net.bql", "128KiB"),
    ("net.busy_poll", "50us"),
    ("net.coalesce", "adaptive-rx=off,rx-usecs=10"),
    ("net.conntrack", "524288"),
    ("net.default_qdisc", "fq"),
    ("net.dev_weight", "128"),
    ("net.early_demux", "udp=off"),
    ("net.flow_limit", "all"),
    ("net.gro", "on"),
    ("net.gro_list_fwd", "list"),
    ("net.gro_normal_batch", "16"),
    ("net.ipfrag", "16MiB"),
    ("net.iptables_unload", "loaded"),
    ("net.irq_affinity", "spread"),
    ("net.irqbalance_stop", "stop"),
    ("net.lro", "on"),
    ("net.mtu", "9000"),
    ("net.napi_defer", "2/20us"),
    ("net.neigh_gc", "gc_thresh2=2048,gc_thresh3=4096"),
    ("net.netdev_budget", "600/16ms"),
    ("net.netdev_max_backlog", "5000"),
    ("net.port_range", "10240-65000"),
    ("net.queues", "1"),
    ("net.rfs", "5000"),
    ("net.ring", "rx=4096"),
    ("net.rmem_max", "max=16MiB,default=1MiB"),
    ("net.rp_filter", "0"),
    ("net.rps_cpus", "all"),
    ("net.rps_default_mask", "0-1"),
    ("net.rss_hash_fields", "sdfn"),
    ("net.rss_table", "equal 2"),
    ("net.somaxconn", "8192"),
    ("net.syn_backlog", "backlog=8192,cookies=off"),
    ("net.threaded_napi", "on"),
    ("net.tso_gso", "off"),
    ("net.tstamp_prequeue", "off"),
    ("net.tw_reuse", "1"),
    ("net.txqueuelen", "2000"),
    ("net.udp_hash", "1024"),
    ("net.udp_mem", "max=2000000"),
    ("net.xps_cpus", "by-cpu"),
    ("net.xps_rxqs", "same"),
    ("numa.balancing", "0"),
    ("numa.zone_reclaim", "1"),
    ("proc.cgroup_pids", "4096"),
    ("rpc.nofile", "4242:65536"),
    ("sec.audit_rules", "uid=998"),
    ("sec.seccomp_bpf_jit", "0"),
    ("sec.selinux_avc", "8192"),
    ("tcp.autocorking", "off"),
    ("tcp.congestion", "bbr"),
    ("tcp.fastopen", "3"),
    ("tcp.limit_output", "1MiB"),
    ("tcp.mem", "600000 800000 1200000"),
    ("tcp.moderate_rcvbuf", "off"),
    ("tcp.mtu_probing", "1"),
    ("tcp.notsent_lowat", "128KiB"),
    ("tcp.rmem", "4096 873800 16MiB"),
    ("tcp.rto_min", "20ms"),
    ("tcp.sack_ts", "off"),
    ("tcp.slow_start_idle", "off"),
    ("tcp.window_scaling", "off"),
    ("tcp.wmem", "max=16MiB"),
    ("virt.container_cpuset", "0"),
    ("virt.halt_poll", "guest=0"),
    ("virt.vcpu_pin", "0-1"),
    ("virt.vhost_pin", "1"),
];

#[test]
fn every_knob_of_the_machine_has_a_wish_here() {
    for knob in KNOBS {
        let here = WISHES.iter().any(|(id, _)| *id == knob.id);
        let expected = knob.settable == Settable::Yes && knob.scope != Scope::Service;
        assert_eq!(here, expected, "{}", knob.id);
    }
}

#[test]
fn a_plan_changes_something_and_once_applied_it_holds_and_reads_as_wished() {
    for (id, wish) in WISHES {
        let machines = Machines::new();
        let start = machines.snapshot();
        let plan = machines.plan(id, wish);
        assert!(plan.changes(), "{id}");
        assert_eq!(
            machines.snapshot(),
            start,
            "planning {id} changed the machine"
        );
        let knob = rungwise_knobs::find(id).unwrap();
        for planned in &plan.edits {
            assert!(
                knob.may_write(&planned.place, &planned.edit),
                "{id}: {planned:?}"
            );
        }
        let places = machines.places();
        let disk = std::sync::Arc::default();
        let mut keeper = keeper(&disk);
        let applied = keeper.apply(&places, &plan).unwrap();
        assert!(!applied.changes.is_empty(), "{id}");
        assert_eq!(plan.verify(&places).unwrap(), [], "{id}");
        // Planned again there is nothing to do: what was wished for holds.
        assert!(!machines.plan(id, wish).changes(), "{id}");
        let undo = keeper.undo(&places, None);
        assert!(undo.complete(), "{id}: {}", undo.left_in_words());
        assert_eq!(machines.snapshot(), start, "{id}");
    }
}

#[test]
fn what_a_knob_reads_can_be_wished_for_and_changes_nothing() {
    let place = server();
    let machines = Machines::new();
    // The one is planted in a lab, the other is read as ignored until it is followed.
    // Of open files each process has a limit of its own.
    let others = ["net.iptables_unload", "net.affinity_hint", "rpc.nofile"];
    for (id, _) in WISHES.iter().filter(|(id, _)| !others.contains(id)) {
        let context = Context {
            machine: &*machines.host,
            here: &*machines.server,
            place: &place,
            device: Some(subject(id)),
            cpus: &[0, 1],
        };
        let current = rungwise_knobs::find(id).unwrap().current(&context).unwrap();
        let value = current.value.unwrap();
        assert!(!machines.plan(id, &value).changes(), "{id} = {value}");
    }
}

#[test]
fn every_knob_is_read_everywhere_and_none_fails_in_a_way_of_its_own() {
    let bare = Recorded::new("a bare machine", 1);
    let machines = Machines::new();
    for knob in KNOBS {
        for (host, device) in [
            (&bare, None),
            (&bare, Some("eth0")),
            (&*machines.host, None),
            (&*machines.host, Some("../../etc")),
        ] {
            let context = Context::of_host(host, device, &[]);
            // A knob that has nothing to read says so, in its own name.
            if let Err(error) = knob.current(&context) {
                let words = error.to_string();
                assert!(words.contains(knob.id), "{words}");
                assert!(!words.contains("cannot trust"), "{words}");
            }
            let _ = knob.plan(&context, "on");
            let _ = knob.plan(&context, "");
        }
    }
    assert_eq!((bare.changes(), machines.host.changes()), (0, 0));
}

proptest! {
    #[test]
    fn no_wish_is_a_panic_and_none_changes_the_machine(wish in ".{0,24}", parts in "[a-z_]{1,10}=[0-9a-zA-Z%]{0,8}") {
        let machines = Machines::new();
        for knob in KNOBS {
            for wish in [&wish, &parts] {
                let place = server();
                let context = Context {
                    machine: &*machines.host,
                    here: &*machines.server,
                    place: &place,
                    device: Some(subject(knob.id)),
                    cpus: &[0, 1],
                };
                let _ = knob.plan(&context, wish);
            }
        }
        prop_assert_eq!(machines.host.changes() + machines.server.changes(), 0);
    }
}

#[test]
fn what_a_person_does_is_planned_in_the_exact_words_and_never_carried_out() {
    let machines = Machines::new();
    for (id, wish, text) in [
        ("cmdline.audit", "off", "audit=0"),
        (
            "cmdline.isolation",
            "2-3",
            "isolcpus=managed_irq,domain,2-3 nohz_full=2-3 rcu_nocbs=2-3",
        ),
        (
            "bios.power_policy",
            "performance",
            "Advanced > Performance Config > Power Policy: Performance",
        ),
        (
            "numa.bind_node",
            "1",
            "numactl --cpunodebind=1 --membind=1 COMMAND...",
        ),
        ("jvm.active_cpus", "4", "-XX:ActiveProcessorCount=4"),
        (
            "jvm.gc_log",
            "/var/log/gc.log",
            "jcmd PID VM.log output=/var/log/gc.log what=gc*,safepoint",
        ),
        (
            "jvm.heapdump",
            "off",
            "VM.set_flag HeapDumpOnOutOfMemoryError false",
        ),
        (
            "jvm.flags",
            "-XX:+CMSScavengeBeforeRemark",
            "-XX:+CMSScavengeBeforeRemark",
        ),
        ("jvm.flags", "without -Xmn300m", "without -Xmn300m"),
    ] {
        let plan = machines.plan_host(id, wish);
        assert!(plan.diff().contains(text), "{}", plan.diff());
        let error = keeper(&std::sync::Arc::default())
            .apply(&machines.places(), &plan)
            .unwrap_err();
        assert_eq!(u8::from(error.exit()), 4, "{error}");
        assert!(error.to_string().contains(text), "{error}");
    }
    assert_eq!(machines.host.changes(), 0);
}

#[test]
fn a_boot_parameter_is_verified_by_the_command_line_of_the_running_kernel() {
    let machines = Machines::new();
    let off = machines.plan_host("cmdline.audit", "off");
    assert_eq!(off.verify(&machines.places()).unwrap(), []);
    let on = machines.plan_host("cmdline.audit", "on");
    let drift = on.verify(&machines.places()).unwrap();
    assert_eq!(
        (&*drift[0].wanted, &*drift[0].found),
        ("audit=1", "audit=0")
    );
    // Nothing tells how the firmware is set, so nothing is claimed.
    let firmware = machines.plan_host("bios.power_policy", "performance");
    assert_eq!(firmware.verify(&machines.places()).unwrap(), []);
    assert!(!firmware.edits[0].edit.readable());
}

#[test]
fn every_wish_that_a_person_fulfils_can_be_planned() {
    let machines = Machines::new();
    for knob in KNOBS.iter().filter(|knob| knob.settable != Settable::Yes) {
        assert!(!knob.by_hand.is_empty(), "{} says nothing to do", knob.id);
        for manual in knob.by_hand {
            let wish = an_example(manual.wish);
            let plan = machines.plan_host(knob.id, &wish);
            assert!(plan.by_hand().count() > 0, "{}", knob.id);
            for blank in [
                "CPUS", "NUMBER", "SIZE", "FLAGS", "PATH ", "EACH", "INDEX", "COUNT",
            ] {
                assert!(!plan.diff().contains(blank), "{}", plan.diff());
            }
        }
    }
}

#[test]
fn the_most_that_a_device_has_is_asked_of_it() {
    let details = NetDevice {
        name: "veth0".to_owned(),
        channels: Some(Channels {
            combined: 2,
            max_combined: 8,
            ..Channels::default()
        }),
        ring: Some(Ring {
            max_rx: 4096,
            max_tx: 1024,
            ..Ring::default()
        }),
        ..NetDevice::default()
    };
    let host =
        everything("this host", 1).with_answer(Question::Devices, Answer::Devices(vec![details]));
    let context = Context::of_host(&host, Some("veth0"), &[0, 1]);
    for (id, value) in [
        ("net.queues", "combined=8"),
        ("net.ring", "rx=4096 tx=1024"),
    ] {
        let plan = rungwise_knobs::find(id)
            .unwrap()
            .plan(&context, "max")
            .unwrap();
        assert_eq!(plan.edits[0].edit.value(), value);
    }
    // A device that does not tell is no guess.
    let machines = Machines::new();
    let context = Context::of_host(&*machines.host, Some("veth0"), &[0, 1]);
    let knob = rungwise_knobs::find("net.ring").unwrap();
    assert!(knob.plan(&context, "max").is_err());
}

#[test]
fn masks_that_a_change_of_queues_would_take_are_kept() {
    let machines = Machines::new();
    let places = machines.places();
    let mask = "/sys/class/net/veth0/queues/rx-0/rps_cpus";
    machines.server.set(mask, "3");
    machines
        .server
        .set("/sys/class/net/veth0/queues/tx-1/xps_cpus", "2");
    let start = machines.snapshot();
    let disk = std::sync::Arc::default();
    let mut keeper = keeper(&disk);
    let applied = keeper
        .apply(&places, &machines.plan("net.queues", "1"))
        .unwrap();
    // The queue that stays has its mask again.
    assert_eq!(machines.server.snapshot()[mask], "3");
    assert!(applied.changes.len() > 1);
    let undo = keeper.undo(&places, None);
    assert!(undo.complete(), "{}", undo.left_in_words());
    assert_eq!(machines.snapshot(), start);
}

#[test]
fn threads_of_a_running_process_are_pinned_and_an_ended_one_is_let_be() {
    let machines = Machines::new();
    let places = machines.places();
    let start = machines.snapshot();
    let disk = std::sync::Arc::default();
    let mut keeper = keeper(&disk);
    let plan = machines.plan_host("cpu.pin_threads", &format!("{PID}:each:0-1"));
    assert_eq!(plan.edits.len(), 2);
    let _ = keeper.apply(&places, &plan).unwrap();
    assert_eq!(plan.verify(&places).unwrap(), []);
    let (status, stat) = (
        format!("/proc/{PID}/task/{PID}/status"),
        format!("/proc/{PID}/task/{PID}/stat"),
    );
    assert!(machines.host.snapshot()[&status].ends_with("Cpus_allowed_list:\t0"));
    // Another thread has the number of the second one by now.
    let other = format!("/proc/{PID}/task/{}/stat", PID + 1);
    let text = machines.host.snapshot()[&other].replace(" 101 0 0", " 777 0 0");
    machines.host.set(&other, &text);
    let undo = keeper.undo(&places, None);
    assert!(undo.complete(), "{}", undo.left_in_words());
    assert!(undo.settled[0].contains("gone with its thread"), "{undo:?}");
    let now = machines.host.snapshot();
    let before: std::collections::BTreeMap<_, _> = start.into_iter().collect();
    assert_eq!(
        (&now[&status], &now[&stat]),
        (&before[&status], &before[&stat])
    );
}

#[test]
fn a_plan_shows_what_it_replaces() {
    let machines = Machines::new();
    let diff = machines.plan("net.rfs", "5000").diff();
    let expected = "\
net.rfs = 5000
  /proc/sys/net/core/rps_sock_flow_entries
    - 0
    + 5000
  namespace server: /sys/class/net/veth0/queues/rx-0/rps_flow_cnt
    - 0
    + 2500
  namespace server: /sys/class/net/veth0/queues/rx-1/rps_flow_cnt
    - 0
    + 2500
  note: net.rps_cpus steers flows that no thread has read yet
";
    assert_eq!(diff, expected);
}

#[test]
fn a_plan_survives_being_stored() {
    let plan = Machines::new().plan("net.rp_filter", "0");
    let json = serde_json::to_string(&plan).unwrap();
    assert_eq!(
        serde_json::from_str::<rungwise_knobs::Plan>(&json).unwrap(),
        plan
    );
}

#[test]
fn only_what_gives_way_is_written_to_all_devices() {
    let machines = Machines::new();
    let targets = |wish| -> Vec<String> {
        let plan = machines.plan("net.rp_filter", wish);
        plan.edits
            .iter()
            .map(|planned| planned.edit.target())
            .collect()
    };
    assert_eq!(targets("2"), ["/proc/sys/net/ipv4/conf/veth0/rp_filter"]);
    assert_eq!(targets("0").len(), 2);
}

#[test]
fn the_hosts_firewall_is_shown_and_never_planned_away() {
    let machines = Machines::new();
    let context = Context::of_host(&*machines.host, None, &[0, 1]);
    let knob = rungwise_knobs::find("net.iptables_unload").unwrap();
    assert_eq!(
        knob.current(&context).unwrap().value.as_deref(),
        Ok("loaded")
    );
    let error = knob.plan(&context, "absent").unwrap_err();
    assert!(
        error.to_string().contains("belong to its firewall"),
        "{error}"
    );
    assert_eq!(u8::from(error.exit()), 4);
}

#[test]
fn a_shown_knob_says_why_it_is_not_turned_and_keeps_secrets_of_the_command_line() {
    let machines = Machines::new();
    let context = Context::of_host(&*machines.host, None, &[0, 1]);
    let audit = rungwise_knobs::find("sec.auditd").unwrap();
    let current = audit.current(&context).unwrap();
    assert_eq!(current.value.as_deref(), Ok("audit=0"));
    assert!(!format!("{current:?}").contains("hunter2"));
    let plan = audit.plan(&context, "off").unwrap();
    assert!(plan.diff().contains("systemctl disable auditd") && plan.diff().contains("next boot"));
}

#[test]
fn a_device_that_sysfs_does_not_show_is_distinguished_from_one_that_is_not_there() {
    let machines = Machines::new();
    machines.host.remove("/sys/class/net/veth0/ifindex");
    let sees = |machines: &Machines| {
        let context = Context::of_host(&*machines.host, Some("veth0"), &[0, 1]);
        let knob = rungwise_knobs::find("net.gro").unwrap();
        knob.plan(&context, "on").map_err(|error| error.to_string())
    };
    assert!(sees(&machines).is_ok());
    for path in machines.host.snapshot().keys() {
        if path.starts_with("/sys/class/net/") {
            machines.host.remove(path);
        }
    }
    let error = sees(&machines).unwrap_err();
    assert!(error.contains("another network namespace"), "{error}");
    // It was named, and another would not help.
    assert!(!error.contains("--device"), "{error}");
}

#[test]
fn a_missing_device_names_those_that_exist() {
    let machines = Machines::new();
    let knob = rungwise_knobs::find("net.gro").unwrap();
    for device in [None, Some("veth9"), Some("../veth0")] {
        let context = Context::of_host(&*machines.host, device, &[0, 1]);
        let error = knob.plan(&context, "off").unwrap_err().to_string();
        assert!(error.contains("--device (veth0)"), "{error}");
    }
}

/// What planning a wish says on a machine, its error where it is refused.
pub(crate) fn said(host: &Recorded, id: &str, device: &str, wish: &str) -> String {
    let context = Context::of_host(host, Some(device), &[0, 1]);
    match rungwise_knobs::find(id).unwrap().plan(&context, wish) {
        Ok(plan) => plan.diff(),
        Err(error) => error.to_string(),
    }
}

#[test]
fn two_threads_per_core_that_cannot_be_switched_are_refused_with_the_reason() {
    let control = "/sys/devices/system/cpu/smt/control";
    for (state, words) in [
        ("notsupported", "one thread per core"),
        ("notimplemented", "this kernel cannot switch it"),
        ("forceoff", "forced off"),
        ("off", "set every CPU mask and pin again"),
    ] {
        let host = Recorded::new("x", 1).file(control, state);
        let said = said(&host, "bios.smt", "", "on");
        assert!(said.contains(words), "{state}: {said}");
    }
    let host = everything("x", 1);
    for wish in ["forceoff", "notsupported", "1"] {
        assert!(said(&host, "bios.smt", "", wish).contains("allowed: on or off"));
    }
}

#[test]
fn the_bound_on_waking_up_is_set_for_every_cpu_and_no_time_is_not_no_bound() {
    let host = everything("x", 1);
    for (wish, written) in [("0us", "+ n/a"), ("100us", "+ 100"), ("off", "0 (already)")] {
        let said = said(&host, "cpu.dma_latency", "", wish);
        assert_eq!(said.matches(written).count(), 2, "{said}");
    }
}

#[test]
fn an_option_is_that_of_the_mount_on_top_and_one_that_cannot_be_changed_is_refused() {
    let host = everything("x", 1);
    let diff = said(&host, "disk.mount_noatime", "/data", "noatime");
    assert!(
        diff.contains("- relatime") && diff.contains("+ noatime"),
        "{diff}"
    );
    assert!(diff.contains("/etc/fstab"), "{diff}");
    for (id, point, wish, words) in [
        ("disk.mount_noatime", "/data", "on", "not one of the three"),
        (
            "disk.mount_noatime",
            "/nowhere",
            "noatime",
            "--device (/, /data",
        ),
        ("disk.discard", "/run", "periodic", "/run is tmpfs"),
        ("disk.discard", "/data", "off", "neither of the two"),
        ("disk.discard", "/", "online", "+ discard"),
    ] {
        let said = said(&host, id, point, wish);
        assert!(said.contains(words), "{id} {point}: {said}");
    }
}

#[test]
fn a_mount_that_went_took_its_option_along_and_one_of_another_namespace_is_left() {
    let machines = Machines::new();
    let mut keeper = keeper(&std::sync::Arc::default());
    let plan = machines.plan_host("disk.mount_noatime", "noatime");
    let places = machines.places();
    let _ = keeper.apply(&places, &plan).unwrap();
    machines.host.set(
        "/proc/thread-self/mountinfo",
        "25 1 254:0 / / rw - ext4 /dev/root rw",
    );
    let undo = keeper.undo(&places, None);
    assert!(undo.complete(), "{}", undo.left_in_words());
    assert!(undo.settled[0].contains("gone with its mount"), "{undo:?}");

    let machines = Machines::new();
    let mut plan = machines.plan_host("disk.mount_noatime", "noatime");
    if let rungwise_knobs::Edit::Mount { mount, .. } = &mut plan.edits[0].edit {
        mount.namespace += 1;
    }
    let error = keeper
        .apply(&machines.places(), &plan)
        .unwrap_err()
        .to_string();
    assert!(
        error.contains("mount namespace 2, which is not this one"),
        "{error}"
    );
}

#[test]
fn open_files_are_those_of_one_process_and_the_hard_limit_only_ever_rises() {
    let host = everything("x", 1);
    for (wish, words) in [
        ("4242:65536", "65536:524288"),
        ("4242:1048576", "1048576:1048576"),
        ("65536", "it names no process"),
        ("x:65536", "'x' is not a process id"),
        ("4242:many", "'many' is not a number of files"),
        ("7:65536", "read the limits of process 7"),
    ] {
        let said = said(&host, "rpc.nofile", "", wish);
        assert!(said.contains(words), "{wish}: {said}");
    }
}

#[test]
fn vhost_threads_are_found_by_name_whether_they_are_the_kernels_or_those_of_qemu() {
    let host = everything("x", 1);
    let all = said(&host, "virt.vhost_pin", "", "1");
    for thread in ["thread 77 of process 77", "thread 5152 of process 5151"] {
        assert!(all.contains(thread), "{all}");
    }
    assert!(!all.contains("thread 5151 "), "{all}");
    let one = said(&host, "virt.vhost_pin", "", "6060:0");
    assert!(one.contains("thread 77 ") && !one.contains("5152"), "{one}");
    for (wish, words) in [
        ("5150:1", "process 5150 has no vhost threads"),
        ("qemu:1", "'qemu' is not a process id"),
        ("x", "allowed: the host's CPUs"),
    ] {
        let said = said(&host, "virt.vhost_pin", "", wish);
        assert!(said.contains(words), "{said}");
    }
    let guest = Recorded::new("x", 1).file("/proc/1/task/1/comm", "init");
    assert!(said(&guest, "virt.vhost_pin", "", "1").contains("no guest of this host"));
}

#[test]
fn vcpus_are_dealt_one_to_a_cpu_and_never_two() {
    let host = everything("x", 1);
    for wish in ["0-1", "5151:0-1", "5151:0-1,3"] {
        let plan = said(&host, "virt.vcpu_pin", "", wish);
        let at = |words: &str| plan.find(words).unwrap_or_else(|| panic!("{plan}"));
        // Dealt by the number of the vCPU, not of the thread.
        let first = at("thread 5154 of process 5151\n    - 0-1\n    + 0\n");
        assert!(first < at("thread 5153 of process 5151\n    - 0-1\n    + 1\n"));
        assert_eq!(plan.matches("thread ").count(), 2, "{plan}");
        assert!(plan.contains("keep:LIST prints"), "{plan}");
    }
    for (wish, words) in [
        ("0", "2 vCPUs would share 1 CPUs"),
        (
            "5152:0-1",
            "process 5152 has no thread with the name of a vCPU",
        ),
        ("qemu:0-1", "'qemu' is not a process id"),
        ("x", "allowed: the host's CPUs"),
        ("off", "0-1 (already)"),
    ] {
        let said = said(&host, "virt.vcpu_pin", "", wish);
        assert!(said.contains(words), "{wish}: {said}");
    }
    // What lasts is the owner's to put in place, and inside a guest nothing is named so.
    let lasting = said(&host, "virt.vcpu_pin", "", "keep:8-9");
    let guest = Recorded::new("x", 1).file("/proc/1/task/1/comm", "init");
    let text = said(&guest, "virt.vcpu_pin", "", "8-9");
    for text in [&lasting, &text] {
        assert!(text.contains("<vcpupin vcpu='1' cpuset='9'/>"), "{text}");
    }
    assert!(text.contains("debug-threads=on"), "{text}");
}

#[test]
fn vcpus_of_two_guests_never_share_a_cpu_unsaid() {
    let second = |cpus: &str| {
        let mut host = everything("x", 1);
        for (tid, name) in [
            (6160, "firecracker"),
            (6161, "fc_vcpu 0"),
            (6162, "fc_vcpu 1"),
        ] {
            host = thread(host, 6160, tid, name, 300);
        }
        for tid in [6161, 6162] {
            let status = format!("Name:\tx\nCpus_allowed_list:\t{cpus}");
            host.set(&format!("/proc/6160/task/{tid}/status"), &status);
        }
        host
    };
    for (cpus, wish, words) in [
        // Dealt over both.
        (
            "0-1",
            "0-3",
            "thread 6162 of process 6160\n    - 0-1\n    + 3",
        ),
        ("0-1", "0-1", "4 vCPUs would share 2 CPUs"),
        // One guest alone, beside another that floats, is pinned there, or elsewhere.
        (
            "0-1",
            "5151:0-1",
            "the vCPUs of process 6160, another guest, may still run on these CPUs",
        ),
        ("1", "5151:0-1", "a vCPU of process 6160 is pinned to CPU 1"),
    ] {
        let said = said(&second(cpus), "virt.vcpu_pin", "", wish);
        assert!(said.contains(words), "{wish} beside {cpus}: {said}");
    }
    let nameless = thread(second("2"), 6170, 6171, "qemu-system-arm", 400);
    let plan = said(&nameless, "virt.vcpu_pin", "", "5151:0-1");
    assert!(
        plan.contains("process 6170 is QEMU and names no vCPU"),
        "{plan}"
    );
    let apart = said(&second("2"), "virt.vcpu_pin", "", "5151:0-1");
    assert!(
        apart.contains("+ 1") && !apart.contains("process 6"),
        "{apart}"
    );
}

#[test]
fn to_ban_interrupts_is_for_a_person_and_to_stop_the_daemon_is_not() {
    let host = everything("x", 1);
    let ban = said(&host, "net.irqbalance_stop", "", "ban");
    assert!(ban.contains("--banirq=N"), "{ban}");
    let stop = said(&host, "net.irqbalance_stop", "", "stop");
    assert!(
        stop.contains("- active") && stop.contains("+ inactive"),
        "{stop}"
    );
    let other = said(&host, "net.irqbalance_stop", "", "off");
    assert!(other.contains("allowed: stop, run, or ban"), "{other}");
}

#[test]
fn a_congestion_control_is_one_that_the_kernel_has_or_loads() {
    let host = everything("x", 1)
        .file(
            "/proc/sys/net/ipv4/tcp_available_congestion_control",
            "reno cubic",
        )
        .file("/proc/sys/kernel/osrelease", "6.1.0-18-amd64")
        .file(
            "/lib/modules/6.1.0-18-amd64/modules.dep",
            "kernel/net/ipv4/tcp_bbr.ko.xz: kernel/net/sched/sch_fq.ko.xz\nkernel/net/ipv4/tcp_vegas.ko.xz:",
        );
    for (wish, words) in [
        ("reno", "+ reno"),
        ("bbr", "+ bbr"),
        ("nope", "offers reno, cubic; load it first"),
        ("veg", "offers reno, cubic; load it first"),
    ] {
        let said = said(&host, "tcp.congestion", "", wish);
        assert!(said.contains(words), "{wish}: {said}");
    }
}
