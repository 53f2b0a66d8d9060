//! The rows of the USE table, with the threshold of each reading and the rules that find causes.
//!
//! Thresholds mark where harm begins, not where trouble is certain: a cell beyond its threshold prevents the green verdict.
//! A threshold measured in a fault test names the test; the others are marked as guesses.

use rungwise_model::evidence::{Evidence, Key, Subject};
use rungwise_model::keys;

use super::{Gauge, Means, Row};
use crate::net::other_namespaces;
use crate::process::upstream_slow::LONG;
use crate::process::user_lock;
use crate::residual;

const GUESS: &str = "own guess";

const fn gauge(
    key: &'static Key,
    line: f64,
    means: Means,
    rules: &'static [&'static str],
) -> Gauge {
    Gauge {
        key,
        line,
        origin: GUESS,
        falls: false,
        means,
        rules,
        instead_of: None,
        moot: None,
        unseen: None,
        only: None,
        decides: None,
        all: false,
    }
}

const fn full(key: &'static Key, line: f64, rules: &'static [&'static str]) -> Gauge {
    gauge(key, line, Means::Full, rules)
}

const fn used(key: &'static Key, line: f64, rules: &'static [&'static str]) -> Gauge {
    gauge(key, line, Means::Used, rules)
}

const fn waited(key: &'static Key, line: f64, rules: &'static [&'static str]) -> Gauge {
    gauge(key, line, Means::Waited, rules)
}

const fn lost(key: &'static Key, line: f64, rules: &'static [&'static str]) -> Gauge {
    gauge(key, line, Means::Lost, rules)
}

const fn losses(rules: &'static [&'static str]) -> Gauge {
    Gauge {
        moot: Some(none_grew),
        decides: Some(residual::is_a_loss),
        ..lost(&keys::LOSS_SHARE, 0.005, rules)
    }
}

/// In the order of the page: CPUs, memory, disks, network, sockets, kernel tables.
pub(crate) static ROWS: &[Row] = &[
    Row {
        id: "cpus",
        title: "All CPUs",
        utilisation: &[full(&keys::CPU_BUSY_MEAN, 0.95, CPU_CAUSES)],
        saturation: &[
            Gauge {
                moot: Some(run_queue_was_read),
                ..waited(&keys::PSI_CPU_SOME, 0.50, CPU_CAUSES)
            },
            // A task more than there are CPUs makes one wait all the time.
            Gauge {
                instead_of: Some(&keys::PSI_CPU_SOME),
                ..waited(&keys::CPU_RUN_QUEUE, 1.1, CPU_CAUSES)
            },
        ],
        errors: &[lost(&keys::CPU_STEAL_MEAN, 0.05, &["steal"])],
    },
    Row {
        id: "each-cpu",
        title: "Single CPUs",
        utilisation: &[used(&keys::CPU_BUSY, 0.98, ONE_CPU_CAUSES)],
        saturation: &[full(&keys::CPU_SOFTIRQ, 0.90, SOFTIRQ_CAUSES)],
        errors: &[lost(
            &keys::SOFTNET_DROPPED,
            1.0,
            &["softnet-drop", "other-namespaces"],
        )],
    },
    Row {
        id: "threads",
        title: "Single threads",
        utilisation: &[used(&keys::PROCESS_BUSIEST_THREAD, 0.95, ONE_CPU_CAUSES)],
        saturation: &[
            used(&keys::PROCESS_BUSIEST_DELAY, 0.30, ONE_CPU_CAUSES),
            waited(&keys::PROCESS_BLOCKED, 0.90, BLOCKED_CAUSES),
        ],
        errors: &[],
    },
    Row {
        id: "cgroups",
        title: "Control group limits",
        utilisation: &[
            used(&keys::CGROUP_MEMORY_USED, 0.99, &["cgroup-memory-limit"]),
            used(&keys::CGROUP_IO_USED, 0.95, &["cgroup-io-limit"]),
            used(&keys::CGROUP_PIDS_USED, 0.95, &["cgroup-pids-limit"]),
        ],
        saturation: &[
            waited(&keys::CGROUP_THROTTLED, 0.01, &["cfs-throttled"]),
            waited(
                &keys::CGROUP_MEMORY_WAIT,
                0.10,
                &["cgroup-memory-limit", "direct-reclaim"],
            ),
            waited(&keys::CGROUP_IO_WAIT, 0.40, DISK_CAUSES),
            waited(&keys::CGROUP_FROZEN, 1.0, &["cgroup-frozen"]),
        ],
        errors: &[
            lost(&keys::CGROUP_OOM_KILLS, 1.0, &["cgroup-memory-limit"]),
            lost(&keys::CGROUP_PIDS_REFUSED, 1.0, &["cgroup-pids-limit"]),
            lost(&keys::CGROUP_REFUSED, 1.0, &[]),
        ],
    },
    Row {
        id: "memory",
        title: "Memory",
        utilisation: &[Gauge {
            falls: true,
            ..full(&keys::MEMORY_AVAILABLE, 0.03, MEMORY_CAUSES)
        }],
        saturation: &[waited(&keys::PSI_MEMORY_SOME, 0.05, MEMORY_CAUSES)],
        errors: &[Gauge {
            moot: Some(memory_is_at_ease),
            ..lost(&keys::MEMORY_OOM_KILLS, 1.0, &["cgroup-memory-limit"])
        }],
    },
    Row {
        id: "swap",
        title: "Swap and refaults",
        utilisation: &[],
        saturation: &[
            waited(
                &keys::MEMORY_SWAP_IN,
                100.0,
                &["swap-in", "cgroup-memory-limit"],
            ),
            Gauge {
                moot: Some(pressure_was_read),
                decides: Some(memory_is_read_again),
                ..waited(&keys::MEMORY_REFAULTS, 1000.0, MEMORY_CAUSES)
            },
            Gauge {
                moot: Some(no_group_hits_its_limit),
                decides: Some(group_reads_again),
                ..waited(
                    &keys::CGROUP_MEMORY_REFAULTS,
                    50.0,
                    &["cgroup-memory-limit", "direct-reclaim", "swap-in"],
                )
            },
        ],
        errors: &[],
    },
    Row {
        id: "disks",
        title: "Disks",
        utilisation: &[Gauge {
            decides: Some(is_busy_and_waited_for),
            ..full(&keys::DISK_BUSY, 0.95, DISK_CAUSES)
        }],
        saturation: &[waited(&keys::PSI_IO_FULL, 0.20, DISK_CAUSES)],
        errors: &[lost(&keys::DISK_ERRORS, 1.0, &["disk-errors"])],
    },
    Row {
        id: "mounts",
        title: "Mounts",
        utilisation: &[
            Gauge {
                falls: true,
                all: true,
                ..full(&keys::MOUNT_AVAILABLE, 0.01, &["disk-full"])
            },
            Gauge {
                falls: true,
                all: true,
                ..full(&keys::MOUNT_INODES_FREE, 0.01, &["disk-full"])
            },
        ],
        saturation: &[],
        errors: &[],
    },
    Row {
        id: "devices",
        title: "Network devices",
        utilisation: &[full(
            &keys::DEVICE_USE,
            0.90,
            &["gro-useless", "mtu-large-wins"],
        )],
        saturation: &[],
        errors: &[
            Gauge {
                only: Some(is_column),
                ..losses(&["nic-ring-drop", "qdisc-limit"])
            },
            Gauge {
                only: Some(is_of_driver),
                ..losses(&[])
            },
        ],
    },
    Row {
        id: "qdiscs",
        title: "Transmit queues",
        utilisation: &[],
        saturation: &[],
        errors: &[Gauge {
            decides: Some(is_much_of_sent),
            ..lost(
                &keys::QDISC_DROPPED_SHARE,
                0.005,
                &["qdisc-limit", "tx-queue-lock"],
            )
        }],
    },
    Row {
        id: "protocols",
        title: "IP, TCP, UDP, ICMP",
        utilisation: &[],
        saturation: &[],
        errors: &[Gauge {
            only: Some(|counter| !is_column(counter) && !is_of_driver(counter)),
            ..losses(&[])
        }],
    },
    Row {
        id: "namespaces",
        title: "Other network namespaces",
        utilisation: &[],
        saturation: &[waited(&keys::NETNS_OTHER_STALLS, 0.01, STALL_CAUSES)],
        errors: &[
            Gauge {
                unseen: Some(other_namespaces::elsewhere),
                ..lost(&keys::NETNS_OTHER_LOSS, 0.05, &["other-namespaces"])
            },
            lost(&keys::NETNS_OTHER_QUEUE_LOSS, 0.005, &["other-namespaces"]),
            lost(
                &keys::NETNS_OTHER_QUEUE_MANAGED,
                0.01,
                &["other-namespaces"],
            ),
        ],
    },
    Row {
        id: "udp-sockets",
        title: "UDP sockets",
        utilisation: &[full(
            &keys::UDP_SOCKET_QUEUE,
            0.90,
            &["udp-rcvbuf-drop", "udp-socket-lock", "reuseport-skew"],
        )],
        saturation: &[],
        errors: &[],
    },
    Row {
        id: "accept-queues",
        title: "TCP accept queues",
        utilisation: &[],
        saturation: &[full(&keys::TCP_ACCEPT_USED, 0.90, ACCEPT_CAUSES)],
        errors: &[],
    },
    Row {
        id: "requests",
        title: "TCP client requests",
        utilisation: &[],
        saturation: &[Gauge {
            decides: Some(is_held_up),
            ..waited(&keys::DEPENDENCY_CLIENTS, 1.0, REQUEST_CAUSES)
        }],
        errors: &[],
    },
    Row {
        id: "tcp-memory",
        title: "TCP memory",
        utilisation: &[],
        saturation: &[lost(&keys::TCP_MEM_PRESSURES, 0.1, &["tcp-memory"])],
        errors: &[],
    },
    Row {
        id: "descriptors",
        title: "File descriptors",
        utilisation: &[
            Gauge {
                all: true,
                ..full(&keys::PROCESS_DESCRIPTORS, 0.98, &["descriptors-full"])
            },
            full(&keys::FILES_OPEN, 0.95, &["descriptors-full"]),
        ],
        saturation: &[],
        errors: &[],
    },
    Row {
        id: "tasks",
        title: "Processes and threads",
        utilisation: &[
            full(&keys::TASKS_SHARE, 0.95, &["tasks-full"]),
            full(&keys::PROCESS_USER_TASKS, 0.95, &["tasks-full"]),
        ],
        saturation: &[],
        errors: &[],
    },
    Row {
        id: "ports",
        title: "Ports per destination",
        utilisation: &[full(&keys::TCP_PORTS_USED, 0.90, &["port-exhaust"])],
        saturation: &[],
        errors: &[],
    },
    Row {
        id: "conntrack",
        title: "Connection tracking",
        utilisation: &[full(&keys::CONNTRACK_USE, 0.90, &["conntrack-full"])],
        saturation: &[],
        errors: &[lost(&keys::CONNTRACK_DROPPED, 1.0, &["conntrack-full"])],
    },
    Row {
        id: "neighbours",
        title: "Neighbour tables",
        utilisation: &[full(&keys::NEIGH_ENTRIES, 0.95, &["neigh-full"])],
        saturation: &[],
        errors: &[lost(&keys::NEIGH_REFUSED, 0.1, &["neigh-full"])],
    },
    Row {
        id: "user-locks",
        title: "Locks of programs",
        utilisation: &[],
        saturation: &[Gauge {
            decides: Some(user_lock::is_contended),
            all: true,
            ..waited(&keys::LOCK_USER_WAITERS, 2.0, &["user-lock"])
        }],
        errors: &[],
    },
    Row {
        id: "kernel-locks",
        title: "Kernel locks",
        utilisation: &[],
        saturation: &[Gauge {
            moot: Some(is_idle),
            ..waited(
                &keys::STACK_LOCK,
                0.20,
                &["udp-socket-lock", "tx-queue-lock", "tx-qdisc-atomic"],
            )
        }],
        errors: &[],
    },
];

/// Rules that name a cause of retransmission timeouts, at either end.
const STALL_CAUSES: &[&str] = &[
    "tcp-retrans",
    "tcp-stalled",
    "tcp-listen-overflow",
    "tcp-synq-full",
    "path-mtu-blackhole",
    "connect-unanswered",
    "qdisc-limit",
    "nf-drop",
    "neigh-unanswered",
    "rp-filter-drop",
    "conntrack-full",
    "softnet-drop",
    "nic-ring-drop",
];
/// Rules that name a cause of full CPUs, or of tasks that wait for them.
const CPU_CAUSES: &[&str] = &[
    "cfs-throttled",
    "cpu-weight-low",
    "direct-reclaim",
    "fork-storm",
    "irq-one-node",
    "nf-rules-hot",
    "other-namespaces",
    "priority-low",
    "realtime-hog",
    "sec-audit-hot",
    "selinux-hot",
    "steal",
    "tx-queue-lock",
    "udp-socket-lock",
    "user-lock",
];
/// The same for one CPU or one thread.
const ONE_CPU_CAUSES: &[&str] = &[
    "thread-saturated",
    "affinity-narrow",
    "cfs-throttled",
    "cpu-weight-low",
    "irq-one-cpu",
    "priority-low",
    "realtime-hog",
    "runq-delay",
    "user-lock",
];
const SOFTIRQ_CAUSES: &[&str] = &[
    "irq-one-cpu",
    "irq-one-node",
    "softirq-conc-guest",
    "other-namespaces",
    "rps-needed",
    "udp-rcvbuf-drop",
    "udp-socket-lock",
    "softnet-drop",
    "nf-rules-hot",
    "fib-double",
];
const BLOCKED_CAUSES: &[&str] = &[
    "process-blocked",
    "cgroup-frozen",
    "cgroup-io-limit",
    "cgroup-memory-limit",
    "disk-full",
    "disk-queue",
    "disk-saturated",
    "disk-sync",
    "swap-in",
];
const MEMORY_CAUSES: &[&str] = &[
    "cgroup-memory-limit",
    "direct-reclaim",
    "swap-in",
    "thp-stall",
];
const DISK_CAUSES: &[&str] = &[
    "cgroup-io-limit",
    "cgroup-memory-limit",
    "disk-full",
    "disk-queue",
    "disk-readahead",
    "disk-saturated",
    "disk-sync",
    "process-blocked",
    "swap-in",
];

/// Rules that name a reason why connections are not accepted.
const ACCEPT_CAUSES: &[&str] = &[
    "tcp-listen-overflow",
    "tcp-synq-full",
    "clients-unread",
    "process-stopped",
    "process-traced",
    "process-blocked",
    "cgroup-frozen",
    "cgroup-io-limit",
    "cgroup-memory-limit",
    "descriptors-full",
    "cfs-throttled",
    "cpu-weight-low",
    "affinity-narrow",
    "priority-low",
    "realtime-hog",
    "runq-delay",
    "thread-saturated",
    "upstream-slow",
    "database-lock",
    "user-lock",
];

/// Rules that name a cause for which a request waits.
const REQUEST_CAUSES: &[&str] = &[
    "upstream-pool-full",
    "upstream-slow",
    "connect-failed",
    "connect-unanswered",
    "connect-refused",
    "dns-unanswered",
    "database-lock",
    "user-lock",
    "thread-saturated",
    "affinity-narrow",
    "cfs-throttled",
    "cgroup-frozen",
    "cgroup-io-limit",
    "cgroup-memory-limit",
    "cpu-weight-low",
    "disk-full",
    "disk-queue",
    "disk-saturated",
    "disk-sync",
    "fork-storm",
    "neigh-unanswered",
    "path-mtu-blackhole",
    "priority-low",
    "process-blocked",
    "process-stopped",
    "process-traced",
    "qdisc-limit",
    "realtime-hog",
    "runq-delay",
    "swap-in",
    "tcp-listen-overflow",
    "tcp-nagle-40ms",
    "tcp-retrans",
    "tcp-rwnd-limited",
    "tcp-stalled",
    "descriptors-full",
    "threads-grow",
];

/// Servers whose clients wait until there is work (BLPOP, reserve).
const HOLDS_REQUESTS: [&str; 4] = [
    "beanstalkd",
    "keydb-server",
    "redis-server",
    "valkey-server",
];

/// Requests wait, and their process does not work on them. From `LONG` on they may be meant to wait, but not
/// where half of the connections wait and none of these is answered; some servers hold requests until there is work.
fn is_held_up(evidence: &Evidence, process: &Subject) -> bool {
    let value = |key| {
        evidence
            .quantity(key, process)
            .map_or(0.0, |quantity| quantity.value)
    };
    let open = value(&keys::DEPENDENCY_CLIENTS);
    let wait = value(&keys::DEPENDENCY_CLIENT_WAIT);
    let name = evidence.words(&keys::SCHED_PROCESS_NAME, process);
    let holds = name.is_ok_and(|name| HOLDS_REQUESTS.contains(&name.value));
    let answers = value(&keys::DEPENDENCY_CLIENTS_UNANSWERED) < 1.0;
    let may_wait = wait >= LONG.value && (answers || holds);
    open >= 1.0 && !may_wait && value(&keys::SCHED_PROCESS_CPU) < 0.25 * open.min(4.0)
}

/// Without pressure information the length of the run queue shows whether tasks wait for a CPU.
fn run_queue_was_read(evidence: &Evidence) -> bool {
    evidence.host(&keys::CPU_RUN_QUEUE).is_ok()
}

/// Waits for pages that are read again count as memory pressure.
fn pressure_was_read(evidence: &Evidence) -> bool {
    evidence.host(&keys::PSI_MEMORY_SOME).is_ok()
}

/// Before the kernel kills a process it has tried to reclaim, which is memory pressure.
fn memory_is_at_ease(evidence: &Evidence) -> bool {
    let some = evidence.host(&keys::PSI_MEMORY_SOME);
    some.is_ok_and(|some| some.value < 0.05)
}

/// Pages that are read again harm where tasks wait for them. Without pressure information nothing excuses them.
fn memory_is_read_again(evidence: &Evidence, host: &Subject) -> bool {
    let again = evidence.quantity(&keys::MEMORY_REFAULTS, host);
    let some = evidence.host(&keys::PSI_MEMORY_SOME);
    again.is_ok_and(|again| again.lasts(|rate| rate >= 1000.0))
        && some.map_or(true, |some| some.value >= 0.05)
}

fn no_group_hits_its_limit(evidence: &Evidence) -> bool {
    let hits = evidence.each(&keys::MEMORY_CGROUP_RECLAIM);
    hits.is_ok_and(|hits| hits.iter().all(|(_, rate)| rate.value <= 0.0))
}

/// Only where the group's own limit made the kernel drop the pages.
fn group_reads_again(evidence: &Evidence, group: &Subject) -> bool {
    let of = |key| evidence.quantity(key, group);
    of(&keys::CGROUP_MEMORY_REFAULTS).is_ok_and(|again| again.lasts(|rate| rate >= 50.0))
        && of(&keys::MEMORY_CGROUP_RECLAIM).is_ok_and(|hits| hits.value > 1.0)
}

/// The counters were read, and none of them grew.
fn none_grew(evidence: &Evidence) -> bool {
    evidence.host(&keys::LOSS_COUNTERS).is_ok()
}

/// Columns of `/proc/net/dev`, under the name of the device.
fn is_column(counter: &Subject) -> bool {
    let columns = [":rx_errors", ":rx_dropped", ":tx_errors", ":tx_dropped"];
    columns
        .iter()
        .any(|column| counter.name().ends_with(column))
}

/// Statistics of drivers, under the name of the device.
fn is_of_driver(counter: &Subject) -> bool {
    counter.name().contains(":driver.")
}

/// A queue that shapes TCP drops a little as a signal to its senders; here is more than that.
fn is_much_of_sent(evidence: &Evidence, device: &Subject) -> bool {
    let value = |key| {
        evidence
            .quantity(key, device)
            .map_or(0.0, |rate| rate.value)
    };
    value(&keys::QDISC_DROPPED) >= 1.0 && value(&keys::QDISC_DROPPED_SHARE) >= 0.005
}

/// Threads that spin keep CPUs busy.
fn is_idle(evidence: &Evidence) -> bool {
    let busy = evidence.host(&keys::CPU_BUSY_MEAN);
    busy.is_ok_and(|busy| busy.value < 0.30)
}

/// A disk that is never idle harms where something waits for it: a device that works on many requests at once may be far from
/// full. Without pressure information nothing excuses it.
fn is_busy_and_waited_for(evidence: &Evidence, disk: &Subject) -> bool {
    let busy = evidence.quantity(&keys::DISK_BUSY, disk);
    let some = evidence.host(&keys::PSI_IO_SOME);
    busy.is_ok_and(|busy| busy.lasts(|share| share >= 0.95))
        && some.map_or(true, |some| some.value >= 0.05)
}
