//! The invented machine of the kit, and beside it what the knobs touch that no ladder does: the processor, memory,
//! a disk, control groups, interrupts, settings of the card, a process.

use rungwise_host::recorded::{Recorded, Stored};
use rungwise_host::{AuditRule, DeviceSetting, Feature};
use rungwise_model::kernel::{Answer, Audit, Question};
use rungwise_testkit::{DEVICE, QUEUES, invented};

/// Its disk.
pub(crate) const DISK: &str = "vda";

/// Its control group, as `/proc/PID/cgroup` prints it.
pub(crate) const GROUP: &str = "/app.slice/app.service";

/// Where its second file system is mounted.
pub(crate) const MOUNT_POINT: &str = "/data";

/// Its mounts; another one lies below that of [`MOUNT_POINT`].
const MOUNTS: &str = "\
25 1 254:0 / / rw,relatime - ext4 /dev/root rw\n\
40 25 254:1 / /data rw,noatime - xfs /dev/vdb1 rw\n\
41 40 254:2 / /data rw,nosuid,relatime - ext4 /dev/vdb2 rw,data=journal,discard\n\
42 25 0:20 / /run rw,nodev - tmpfs tmpfs rw";

/// Its process, which has the threads 4242 and 4243.
pub(crate) const PID: u32 = 4242;

/// Sysctls: below `/proc/sys`, with what they hold.
const SYSCTLS: &[(&str, &str)] = &[
    ("kernel/nmi_watchdog", "1"),
    ("kernel/numa_balancing", "1"),
    ("kernel/sched_autogroup_enabled", "1"),
    ("kernel/timer_migration", "1"),
    ("net/core/bpf_jit_enable", "1"),
    ("net/core/busy_poll", "0"),
    ("net/core/busy_read", "0"),
    ("net/core/default_qdisc", "pfifo_fast"),
    ("net/core/dev_weight", "64"),
    ("net/core/gro_normal_batch", "8"),
    ("net/core/netdev_tstamp_prequeue", "1"),
    ("net/core/somaxconn", "4096"),
    ("net/ipv4/ip_early_demux", "1"),
    ("net/ipv4/ipfrag_high_thresh", "4194304"),
    ("net/ipv4/neigh/default/gc_thresh1", "128"),
    ("net/ipv4/neigh/default/gc_thresh2", "512"),
    ("net/ipv4/neigh/default/gc_thresh3", "1024"),
    ("net/ipv4/tcp_autocorking", "1"),
    ("net/ipv4/tcp_congestion_control", "cubic"),
    ("net/ipv4/tcp_dsack", "1"),
    ("net/ipv4/tcp_early_demux", "1"),
    ("net/ipv4/tcp_fastopen", "1"),
    ("net/ipv4/tcp_limit_output_bytes", "4194304"),
    ("net/ipv4/tcp_max_syn_backlog", "2048"),
    ("net/ipv4/tcp_moderate_rcvbuf", "1"),
    ("net/ipv4/tcp_mtu_probing", "0"),
    ("net/ipv4/tcp_notsent_lowat", "4294967295"),
    ("net/ipv4/tcp_rto_min_us", "200000"),
    ("net/ipv4/tcp_sack", "1"),
    ("net/ipv4/tcp_slow_start_after_idle", "1"),
    ("net/ipv4/tcp_syncookies", "1"),
    ("net/ipv4/tcp_timestamps", "1"),
    ("net/ipv4/tcp_tw_reuse", "2"),
    ("net/ipv4/tcp_window_scaling", "1"),
    ("net/ipv4/udp_early_demux", "1"),
    ("net/netfilter/nf_conntrack_buckets", "65536"),
    ("net/netfilter/nf_conntrack_max", "262144"),
    ("vm/dirty_expire_centisecs", "3000"),
    ("vm/max_map_count", "65530"),
    ("vm/min_free_kbytes", "67584"),
    ("vm/nr_hugepages", "0"),
    ("vm/stat_interval", "1"),
    ("vm/swappiness", "60"),
    ("vm/watermark_scale_factor", "10"),
    ("vm/zone_reclaim_mode", "0"),
];

/// Rows of numbers, which the kernel prints with tabs.
const ROWS: &[(&str, &str)] = &[
    ("net/ipv4/ip_local_port_range", "32768\t60999"),
    ("net/ipv4/tcp_mem", "287898\t383867\t575796"),
    ("net/ipv4/tcp_rmem", "4096\t131072\t33554432"),
    ("net/ipv4/tcp_wmem", "4096\t16384\t4194304"),
    ("net/ipv4/udp_mem", "575799\t767734\t1151598"),
];

/// Files beside the sysctls.
const FILES: &[(&str, &str)] = &[
    ("/proc/thread-self/mountinfo", MOUNTS),
    (
        "/sys/bus/cpu/devices/cpu0/power/pm_qos_resume_latency_us",
        "0",
    ),
    (
        "/sys/bus/cpu/devices/cpu1/power/pm_qos_resume_latency_us",
        "0",
    ),
    ("/sys/devices/system/cpu/smt/control", "on"),
    ("/sys/devices/system/node/online", "0"),
    ("/sys/fs/cgroup/app.slice/app.service/cpu.max", "max 100000"),
    ("/sys/fs/cgroup/app.slice/app.service/cgroup.freeze", "1"),
    ("/sys/fs/cgroup/app.slice/app.service/cpu.weight", "1"),
    ("/sys/fs/cgroup/app.slice/app.service/cpuset.cpus", ""),
    ("/sys/block/loop0/dev", "7:0"),
    ("/sys/block/vda/dev", "254:0"),
    (
        "/sys/fs/cgroup/app.slice/app.service/io.max",
        "254:0 rbps=max wbps=max riops=max wiops=60",
    ),
    (
        "/sys/fs/cgroup/app.slice/app.service/memory.max",
        "1073741824",
    ),
    ("/sys/fs/cgroup/app.slice/app.service/pids.max", "100"),
    ("/sys/fs/selinux/avc/cache_threshold", "512"),
    ("/sys/kernel/debug/sched/base_slice_ns", "2800000"),
    ("/sys/kernel/debug/sched/migration_cost_ns", "500000"),
    ("/sys/kernel/debug/sched/nr_migrate", "32"),
    (
        "/sys/module/haltpoll/parameters/guest_halt_poll_ns",
        "200000",
    ),
    ("/sys/module/kvm/parameters/halt_poll_ns", "200000"),
];

const QUEUE_FILES: &[(&str, &str)] = &[
    // Not what the scheduler starts with.
    ("nr_requests", "192"),
    ("read_ahead_kb", "128"),
    ("rq_affinity", "1"),
    ("wbt_lat_usec", "2000"),
];

const SCHEDULERS: &[&str] = &["none", "mq-deadline", "kyber", "bfq"];
const THP: &[&str] = &["always", "madvise", "never"];
const DEFRAG: &[&str] = &["always", "defer", "defer+madvise", "madvise", "never"];

/// The machine with everything.
pub(crate) fn everything(name: &str, netns: u64) -> Recorded {
    let mut host = invented(name, netns);
    for (name, value) in SYSCTLS {
        host = host.file(&format!("/proc/sys/{name}"), value);
    }
    for (name, value) in ROWS {
        host = host.stored(&format!("/proc/sys/{name}"), value, Stored::Tabs);
    }
    for (path, value) in FILES {
        host = host.file(path, value);
    }
    for name in ["flow_limit_cpu_bitmap", "rps_default_mask"] {
        host = host.stored(&format!("/proc/sys/net/core/{name}"), "0", Stored::Mask(2));
    }
    for name in ["udp_child_hash_entries", "tcp_child_ehash_entries"] {
        host = host.stored(
            &format!("/proc/sys/net/ipv4/{name}"),
            "0",
            Stored::PowerOfTwo,
        );
    }
    let dirty = [
        ("dirty_bytes", "0", "/proc/sys/vm/dirty_ratio"),
        ("dirty_ratio", "20", "/proc/sys/vm/dirty_bytes"),
        (
            "dirty_background_bytes",
            "0",
            "/proc/sys/vm/dirty_background_ratio",
        ),
        (
            "dirty_background_ratio",
            "10",
            "/proc/sys/vm/dirty_background_bytes",
        ),
    ];
    for (name, value, other) in dirty {
        host = host.stored(&format!("/proc/sys/vm/{name}"), value, Stored::Twin(other));
    }
    let thp = "/sys/kernel/mm/transparent_hugepage";
    host = host
        .stored(
            &format!("{thp}/enabled"),
            "always [madvise] never",
            Stored::Choice(THP),
        )
        .stored(
            &format!("{thp}/defrag"),
            "always defer defer+madvise [madvise] never",
            Stored::Choice(DEFRAG),
        );
    for policy in ["policy0", "policy1"] {
        let dir = format!("/sys/devices/system/cpu/cpufreq/{policy}");
        host = host
            .file(&format!("{dir}/scaling_governor"), "schedutil")
            .file(
                &format!("{dir}/energy_performance_preference"),
                "balance_performance",
            );
    }
    let audit = Audit {
        enabled: 1,
        ..Audit::default()
    };
    guests(process(device(disk(host))))
        .with_unit("irqbalance.service", true)
        .with_audit(&[AuditRule::LeavesOut(33), AuditRule::Records])
        .with_answer(Question::Audit, Answer::Audit(audit))
}

fn disk(mut host: Recorded) -> Recorded {
    let disk = format!("/sys/block/{DISK}");
    for (name, value) in QUEUE_FILES {
        host = host.file(&format!("{disk}/queue/{name}"), value);
    }
    host.file(&format!("{disk}/device/queue_depth"), "32")
        .file(&format!("{disk}/mq/0/nr_tags"), "128")
        .stored(
            &format!("{disk}/queue/scheduler"),
            "none [mq-deadline] kyber bfq",
            Stored::Scheduler(SCHEDULERS),
        )
}

fn device(mut host: Recorded) -> Recorded {
    let net = format!("/sys/class/net/{DEVICE}");
    host = host
        .file(&format!("{net}/mtu"), "1500")
        .file(&format!("{net}/tx_queue_len"), "1000");
    for queue in 0..QUEUES {
        let tx = format!("{net}/queues/tx-{queue}");
        host = host
            .stored(&format!("{tx}/xps_rxqs"), "0", Stored::Mask(2))
            .file(&format!("{tx}/byte_queue_limits/limit_max"), "1879048192");
        // An interrupt per queue, named as drivers do, with a hint.
        let irq = 30 + queue;
        let dir = format!("/proc/irq/{irq}");
        host = host
            .file(&format!("{net}/device/msi_irqs/{irq}"), "msix")
            .file(&format!("{dir}/smp_affinity_list"), "0-1")
            .stored(
                &format!("{dir}/affinity_hint"),
                &(queue + 1).to_string(),
                Stored::Mask(2),
            )
            .file(&format!("{dir}/{DEVICE}-TxRx-{queue}/name"), "");
    }
    for feature in ["rx-lro", "rx-ntuple-filter"] {
        let state = Feature {
            on: false,
            fixed: false,
        };
        host = host.with_feature(DEVICE, feature, state);
    }
    let settings = [
        (DeviceSetting::Channels, "combined=2"),
        (DeviceSetting::Ring, "rx=256 tx=256"),
        (
            DeviceSetting::Coalesce,
            "adaptive-rx=on rx-usecs=50 rx-frames=0",
        ),
        (DeviceSetting::RssTable, "0,0,1,1"),
        (DeviceSetting::HashUdp4, "sd"),
        (DeviceSetting::HashUdp6, "sd"),
        (DeviceSetting::RootQdisc, "default"),
    ];
    for (setting, value) in settings {
        host = host.with_setting(DEVICE, setting, value);
    }
    host
}

fn process(host: Recorded) -> Recorded {
    let limits = "Limit                     Soft Limit           Hard Limit           Units     \n\
                  Max open files            1024                 524288               files     ";
    let host = host.file(&format!("/proc/{PID}/limits"), limits);
    let host = thread(host, PID, PID, "echo) r", 100);
    thread(host, PID, PID + 1, "echo) r", 101)
}

/// A guest whose vhost thread is one of QEMU's own, with two vCPUs of which the first has the higher thread number, and
/// one whose vhost thread is the kernel's, as before Linux 6.4.
fn guests(host: Recorded) -> Recorded {
    let host = thread(host, 5151, 5151, "qemu-system-x86", 200);
    let host = thread(host, 5151, 5152, "vhost-5151", 201);
    let host = thread(host, 5151, 5153, "CPU 1/KVM", 203);
    let host = thread(host, 5151, 5154, "CPU 0/KVM", 203);
    thread(host, 77, 77, "vhost-6060", 202)
}

/// A thread that may run on both CPUs.
pub(crate) fn thread(host: Recorded, pid: u32, tid: u32, name: &str, started: u32) -> Recorded {
    let dir = format!("/proc/{pid}/task/{tid}");
    // Fields 3 to 22; the name of a command may have a parenthesis of its own.
    let fields = format!("S 1 1 1 0 -1 4194560 0 0 0 0 0 0 0 0 20 0 2 0 {started}");
    host.file(&format!("{dir}/comm"), name)
        .file(
            &format!("{dir}/stat"),
            &format!("{tid} ({name}) {fields} 0 0"),
        )
        .file(
            &format!("{dir}/status"),
            &format!("Name:\t{name}\nCpus_allowed:\t3\nCpus_allowed_list:\t0-1"),
        )
}
