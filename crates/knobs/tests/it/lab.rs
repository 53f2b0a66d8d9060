//! Round trips on the real kernel, on a veth pair between two namespaces of our own.
//!
//! What belongs to the whole host is changed there for a few milliseconds, to a harmless value.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use rungwise_host::live::Live;
use rungwise_host::namespace::Namespace;
use rungwise_host::veth::{self, End, Spec};
use rungwise_host::{Host, privilege};
use rungwise_knobs::edit::Places;
use rungwise_knobs::{Context, Place, Plan, Scope, Session};
use rungwise_testkit::{differences, record};

use crate::plans::WISHES;

const DEVICE: &str = "kn-server";

/// Some settings belong to the whole host, and two tests at once would see each other's.
static HOST: Mutex<()> = Mutex::new(());

struct Lab {
    server: Arc<Namespace>,
    client: Namespace,
    place: Place,
    _alone: MutexGuard<'static, ()>,
}

impl Lab {
    fn new() -> Self {
        // A test that failed has put its settings back; the others still count.
        let alone = HOST.lock().unwrap_or_else(PoisonError::into_inner);
        assert!(
            matches!(privilege::detect(), privilege::Privilege::Root),
            "this test needs root: queue masks are refused to everybody else"
        );
        let server = Namespace::create("kn-server").unwrap();
        let client = Namespace::create("kn-client").unwrap();
        let end = |device: &str, address: &str| End {
            device: device.to_owned(),
            addresses: vec![(address.parse().unwrap(), 24)],
        };
        let spec = Spec {
            queues: 2,
            ends: [end(DEVICE, "10.78.0.1"), end("kn-client", "10.78.0.2")],
        };
        veth::connect(&server, &client, &spec).unwrap();
        Self {
            server: Arc::new(server),
            client,
            place: Place::Namespace("server".to_owned()),
            _alone: alone,
        }
    }

    fn places(&self) -> Places {
        Places::host(Arc::new(Live)).with(self.place.clone(), self.server.clone())
    }

    fn try_plan(&self, id: &str, device: &str, wish: &str) -> rungwise_knobs::Result<Plan> {
        let context = Context {
            machine: &Live,
            here: &*self.server,
            place: &self.place,
            device: Some(device),
            cpus: &[0],
        };
        rungwise_knobs::find(id).unwrap().plan(&context, wish)
    }

    fn plan(&self, id: &str, wish: &str) -> Plan {
        self.try_plan(id, DEVICE, wish).unwrap()
    }
}

/// Wishes that a real kernel takes where those of the invented machine are no change here, or not built in.
const HERE: &[(&str, &str)] = &[
    // A new namespace starts without source validation.
    ("net.rp_filter", "1"),
    // Of the first namespace; a kernel that uses another one by default has reno as well.
    ("tcp.congestion", "reno"),
    ("net.default_qdisc", "pfifo_fast"),
    // Unlikely to be what somebody has set.
    ("net.neigh_gc", "gc_thresh2=2047,gc_thresh3=4095"),
    // A loop device starts with 128 and no scheduler, and may not have more than its tags.
    ("disk.nr_requests", "64"),
    ("disk.scheduler", "mq-deadline"),
];

/// What hardware, lockdown or the kernel's configuration may keep from us; all others have to work.
const MAY_BE_MISSING: &[&str] = &[
    "cpu.autogroup",
    "cpu.epp",
    "cpu.governor",
    "cpu.nmi_watchdog",
    "cpu.sched_slice",
    "disk.nr_requests",
    "disk.queue_depth",
    "disk.read_ahead_kb",
    "disk.rq_affinity",
    "disk.scheduler",
    "disk.wbt",
    "mem.hugetlb",
    "mem.thp",
    "mem.thp_defrag",
    "net.affinity_hint",
    "net.arfs",
    "net.bql",
    "net.coalesce",
    "net.conntrack",
    "net.irq_affinity",
    "net.lro",
    "net.ring",
    "net.rss_hash_fields",
    "net.rss_table",
    "numa.balancing",
    "numa.zone_reclaim",
    "sec.seccomp_bpf_jit",
    "sec.selinux_avc",
    "tcp.rto_min",
    "virt.halt_poll",
];

/// A knob of a process that this test did not start; it has one of its own.
const OF_A_PROCESS: &str = "rpc.nofile";

/// What must not be turned on a host that others use, not for a moment: which CPUs exist, a service of the machine,
/// the threads of its guests. File systems of this test's own are in `mounts`.
const NOT_OURS: &[&str] = &[
    "bios.smt",
    "disk.discard",
    "disk.mount_noatime",
    "net.irqbalance_stop",
    "sec.audit_rules",
    "virt.vcpu_pin",
    "virt.vhost_pin",
];

#[test]
fn every_knob_makes_a_round_trip_on_the_real_kernel() {
    let lab = Lab::new();
    let state = tempfile::tempdir().unwrap();
    let before = (record(&Live), record(&*lab.server));
    let (mut turned, mut missing) = (0, Vec::new());
    for (id, wish) in WISHES
        .iter()
        .filter(|(id, _)| !NOT_OURS.contains(id) && *id != OF_A_PROCESS)
    {
        let device = match rungwise_knobs::find(id).unwrap().scope {
            Scope::Disk => "loop0",
            // Groups have a test of their own.
            Scope::Cgroup => continue,
            _ => DEVICE,
        };
        let wish = HERE
            .iter()
            .find(|(known, _)| known == id)
            .map_or(*wish, |(_, wish)| wish);
        let mut session = Session::begin(state.path(), lab.places(), "test").unwrap();
        if *id == "net.threaded_napi" {
            // A veth has NAPI only while GRO is on.
            let _ = session.apply(&lab.plan("net.gro", "on")).unwrap();
        }
        let applied = lab.try_plan(id, device, wish).and_then(|plan| {
            if !plan.changes() && MAY_BE_MISSING.contains(id) {
                missing.push(format!("{id} is {wish} already"));
                return Ok(plan);
            }
            assert!(plan.changes(), "{id}\n{}", plan.diff());
            let applied = session.apply(&plan)?;
            assert!(!applied.changes.is_empty(), "{id}");
            assert_eq!(plan.verify(&lab.places()).unwrap(), [], "{id}");
            Ok(plan)
        });
        let undo = session.close().unwrap();
        assert!(undo.complete(), "{id}: {}", undo.left_in_words());
        match applied {
            Ok(plan) => {
                turned += 1;
                assert_eq!(plan.drift(&lab.places()).unwrap(), [], "{id}");
            }
            Err(error) if MAY_BE_MISSING.contains(id) => missing.push(error.to_string()),
            Err(error) => panic!("{id}: {error}"),
        }
        let after = (record(&Live), record(&*lab.server));
        assert_eq!(
            differences(&before.0, &after.0),
            [""; 0],
            "{id} on the host"
        );
        assert_eq!(
            differences(&before.1, &after.1),
            [""; 0],
            "{id} in the namespace"
        );
        assert!(
            rungwise_knobs::journal::stored(state.path())
                .unwrap()
                .is_empty()
        );
    }
    println!(
        "{turned} knobs turned and back; not here:\n  {}",
        missing.join("\n  ")
    );
}

#[test]
fn masks_of_a_real_device_survive_a_change_of_its_queues() {
    let lab = Lab::new();
    let state = tempfile::tempdir().unwrap();
    let mut session = Session::begin(state.path(), lab.places(), "test").unwrap();
    let _ = session.apply(&lab.plan("net.rps_cpus", "0")).unwrap();
    let _ = session.apply(&lab.plan("net.rfs", "64")).unwrap();
    let _ = session.apply(&lab.plan("net.xps_cpus", "0")).unwrap();
    let before = record(&*lab.server);
    let applied = session.apply(&lab.plan("net.queues", "1")).unwrap();
    let fewer = record(&*lab.server);
    let mask = format!("/sys/class/net/{DEVICE}/queues/rx-0/rps_cpus");
    assert_eq!(fewer[&mask], before[&mask]);
    assert!(!fewer.contains_key(&mask.replace("rx-0", "rx-1")));
    let undo = session.undo(&applied);
    assert!(undo.complete(), "{}", undo.left_in_words());
    assert_eq!(differences(&before, &record(&*lab.server)), [""; 0]);
    assert!(session.close().unwrap().complete());
}

#[test]
fn a_process_may_open_more_files_and_then_as_many_as_before() {
    let lab = Lab::new();
    let state = tempfile::tempdir().unwrap();
    let mut process = std::process::Command::new("sleep")
        .arg("30")
        .spawn()
        .unwrap();
    let pid = process.id();
    let limits = || {
        let all = std::fs::read_to_string(format!("/proc/{pid}/limits")).unwrap();
        let line = all.lines().find(|line| line.starts_with("Max open files"));
        let numbers = line.unwrap().split_whitespace().skip(3).take(2);
        numbers.map(|n| n.parse().unwrap()).collect::<Vec<u64>>()
    };
    let before = limits();
    let lower = before[0] / 2;
    let mut session = Session::begin(state.path(), lab.places(), "test").unwrap();
    let applied = session.apply(&lab.plan(OF_A_PROCESS, &format!("{pid}:{lower}")));
    let during = limits();
    let undo = session.undo(&applied.unwrap());
    let after = limits();
    let _ = session
        .apply(&lab.plan(OF_A_PROCESS, &format!("{pid}:{lower}")))
        .unwrap();
    process.kill().unwrap();
    process.wait().unwrap();
    let late = session.close().unwrap();
    assert_eq!(during, [lower, before[1]]);
    assert!(undo.complete(), "{}", undo.left_in_words());
    assert_eq!(after, before);
    assert!(late.complete(), "{}", late.left_in_words());
}

#[test]
fn a_control_group_gets_its_quota_and_gives_it_back() {
    let lab = Lab::new();
    let state = tempfile::tempdir().unwrap();
    let group = format!("rungwise-knobs-{}", std::process::id());
    let roots = ["cpu", "cpu,cpuacct", "unified", ""];
    let dir = roots
        .iter()
        .map(|root| std::path::Path::new("/sys/fs/cgroup").join(root))
        .find(|root| {
            ["cpu.cfs_quota_us", "cgroup.controllers"]
                .iter()
                .any(|name| root.join(name).exists())
        })
        .map(|root| root.join(&group))
        .expect("this test needs a cgroup tree at /sys/fs/cgroup");
    std::fs::create_dir(&dir).expect("this test needs root and a cgroup tree that can be written");
    let plan = lab.try_plan("cpu.cfs_quota", &group, "1.5");
    let outcome = plan.map(|plan| {
        let mut session = Session::begin(state.path(), lab.places(), "test").unwrap();
        let applied = session.apply(&plan).map(|applied| applied.changes.len());
        let verified = plan.verify(&lab.places()).unwrap();
        let undo = session.close().unwrap();
        (applied.unwrap(), verified, undo)
    });
    std::fs::remove_dir(&dir).unwrap();
    let (changes, verified, undo) = outcome.unwrap();
    assert_eq!((changes, verified), (1, Vec::new()));
    assert!(undo.complete(), "{}", undo.left_in_words());
}

#[test]
fn threads_of_a_real_process_are_pinned_and_get_their_cpus_back() {
    let lab = Lab::new();
    let state = tempfile::tempdir().unwrap();
    let mut child = std::process::Command::new("sleep")
        .arg("60")
        .spawn()
        .unwrap();
    let allowed = |pid: u32| {
        let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
        let line = status
            .lines()
            .find(|line| line.starts_with("Cpus_allowed_list"));
        line.unwrap().to_owned()
    };
    let before = allowed(child.id());
    let mut session = Session::begin(state.path(), lab.places(), "test").unwrap();
    let plan = lab.plan("cpu.pin_threads", &format!("{}:0", child.id()));
    let _ = session.apply(&plan).unwrap();
    let pinned = allowed(child.id());
    let undo = session.close().unwrap();
    let after = allowed(child.id());
    child.kill().unwrap();
    child.wait().unwrap();
    assert!(pinned.ends_with("\t0"), "{pinned}");
    assert!(undo.complete(), "{}", undo.left_in_words());
    assert_eq!(before, after);
}

/// Two threads of this process that are named as vCPUs; there is no guest.
struct Vcpus {
    tids: Vec<u32>,
    hold: std::sync::mpsc::Sender<()>,
}

impl Vcpus {
    fn plant() -> Self {
        let (hold, held) = std::sync::mpsc::channel();
        let (tell, receiver) = std::sync::mpsc::channel();
        let held = Arc::new(Mutex::new(held));
        let tids = (0..2).map(|number| {
            let (held, tell) = (held.clone(), tell.clone());
            let thread = std::thread::Builder::new().name(format!("CPU {number}/KVM"));
            let work = move || {
                let link = std::fs::read_link("/proc/thread-self").unwrap();
                let tid = link.file_name().unwrap().to_str().unwrap().parse();
                tell.send(tid.unwrap()).unwrap();
                // Until the sender is dropped.
                let _ = held.lock().unwrap().recv();
            };
            thread.spawn(work).unwrap();
            receiver.recv().unwrap()
        });
        let tids = tids.collect();
        Self { tids, hold }
    }

    fn cpus(&self) -> Vec<String> {
        let allowed = |tid| {
            let status = std::fs::read_to_string(format!("/proc/self/task/{tid}/status")).unwrap();
            let list = status
                .lines()
                .find_map(|line| line.strip_prefix("Cpus_allowed_list:\t"));
            list.unwrap().to_owned()
        };
        self.tids.iter().map(allowed).collect()
    }
}

#[test]
fn vcpus_of_one_process_are_dealt_and_one_that_somebody_pinned_anew_stays_there() {
    let lab = Lab::new();
    let state = tempfile::tempdir().unwrap();
    let vcpus = Vcpus::plant();
    let before = vcpus.cpus();
    let wish = format!("{}:0-1", std::process::id());
    let mut session = Session::begin(state.path(), lab.places(), "test").unwrap();
    let plan = lab.plan("virt.vcpu_pin", &wish);
    let applied = session.apply(&plan).unwrap();
    let pinned = vcpus.cpus();
    assert_eq!(plan.verify(&lab.places()).unwrap(), []);
    let undo = session.undo(&applied);
    let after = vcpus.cpus();
    let applied = session.apply(&plan).unwrap();
    Live.pin_thread(0, vcpus.tids[0], &[1]).unwrap();
    let contested = session.undo(&applied);
    let left = vcpus.cpus();
    drop(vcpus.hold);
    drop(session);
    assert_eq!(pinned, ["0", "1"]);
    assert!(undo.complete(), "{}", undo.left_in_words());
    assert_eq!(after, before);
    let words = contested.left_in_words();
    assert!(
        words.contains("holds '1', which replaced our '0'"),
        "{words}"
    );
    assert_eq!(left, ["1", &before[1]]);
}

#[test]
fn what_the_kernel_refuses_is_reported_and_leaves_nothing() {
    let lab = Lab::new();
    let state = tempfile::tempdir().unwrap();
    let before = record(&*lab.server);
    let mut session = Session::begin(state.path(), lab.places(), "test").unwrap();
    let error = session
        .apply(&lab.plan("net.rps_cpus", "0-2000"))
        .unwrap_err();
    assert!(
        error.to_string().contains("CPU that does not exist"),
        "{error}"
    );
    // Without GRO a veth has no NAPI to be threaded.
    let error = session
        .apply(&lab.plan("net.threaded_napi", "on"))
        .unwrap_err();
    assert!(error.to_string().contains("NAPI needs GRO"), "{error}");
    assert_eq!(session.changes(), 0);
    session.close().unwrap();
    assert_eq!(differences(&before, &record(&*lab.server)), [""; 0]);
}

#[test]
fn a_device_removed_under_a_session_took_its_settings_along() {
    let lab = Lab::new();
    let state = tempfile::tempdir().unwrap();
    let mut session = Session::begin(state.path(), lab.places(), "test").unwrap();
    let _ = session.apply(&lab.plan("net.rps_cpus", "all")).unwrap();
    let Lab {
        server,
        client,
        _alone,
        ..
    } = lab;
    // The pair goes with either end's namespace, as soon as the kernel gets round to it.
    drop(client);
    while server
        .list(std::path::Path::new("/sys/class/net"))
        .unwrap()
        .contains(&DEVICE.to_owned())
    {
        std::thread::yield_now();
    }
    let undo = session.close().unwrap();
    assert!(undo.complete(), "{}", undo.left_in_words());
    assert!(
        undo.settled
            .iter()
            .all(|line| line.contains("gone with its device")),
        "{undo:?}"
    );
}
