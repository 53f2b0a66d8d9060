//! The one number of each rule that a change is judged by, and which way is worse.
//!
//! A rule may read twenty keys; its problem shows in one. That number in two captures shows whether changing a
//! knob had the intended effect. Rules about text or about a setting have none: for them only the outcome
//! counts.

use rungwise_model::evidence::{Evidence, Key, Quantity, Subject};
use rungwise_model::keys;

/// A number and its bad direction.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Measure {
    pub(crate) key: &'static Key,
    pub(crate) worse: Worse,
}

/// The bad direction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Worse {
    More,
    Less,
}

const fn more(key: &'static Key) -> Measure {
    Measure {
        key,
        worse: Worse::More,
    }
}

const fn less(key: &'static Key) -> Measure {
    Measure {
        key,
        worse: Worse::Less,
    }
}

/// By rule, sorted.
const MEASURES: &[(&str, Measure)] = &[
    ("affinity-narrow", more(&keys::PROCESS_BUSIEST_DELAY)),
    ("alloc-per-request", more(&keys::GC_ALLOCATION_RATE)),
    ("cfs-throttled", more(&keys::CGROUP_THROTTLED)),
    ("cgroup-frozen", more(&keys::CGROUP_FROZEN)),
    ("cgroup-io-limit", more(&keys::CGROUP_IO_USED)),
    ("cgroup-memory-limit", more(&keys::MEMORY_CGROUP_RECLAIM)),
    ("cgroup-pids-limit", more(&keys::CGROUP_PIDS_REFUSED)),
    ("client-bound", more(&keys::CLIENT_BUSY)),
    ("clients-unread", more(&keys::PROCESS_UNREAD)),
    ("connect-refused", more(&keys::LOSS_SHARE)),
    ("connect-unanswered", more(&keys::DEPENDENCY_CONNECTING)),
    (
        "connection-pool-exhausted",
        more(&keys::THREADS_WAIT_WAITERS),
    ),
    ("conntrack-full", more(&keys::CONNTRACK_USE)),
    ("cpu-weight-low", more(&keys::CGROUP_CPU_WAIT)),
    ("cstate-latency", more(&keys::LATENCY_LOW_LOAD)),
    ("database-lock", more(&keys::LOCK_DATABASE_WAITING)),
    ("deadlock", more(&keys::THREADS_DEADLOCKS)),
    ("descriptors-full", more(&keys::PROCESS_DESCRIPTORS)),
    ("direct-reclaim", more(&keys::MEMORY_ALLOCSTALL)),
    ("disk-errors", more(&keys::DISK_ERRORS)),
    ("disk-full", less(&keys::MOUNT_AVAILABLE)),
    ("disk-queue", more(&keys::DISK_QUEUE)),
    ("disk-readahead", more(&keys::DISK_READ_AHEAD)),
    ("disk-saturated", more(&keys::DISK_AWAIT)),
    ("disk-sync", more(&keys::DISK_FLUSH_TIME)),
    ("dns-unanswered", more(&keys::DEPENDENCY_RESOLVING)),
    ("fib-double", more(&keys::STACK_FIB_VALIDATE)),
    ("fork-storm", more(&keys::TASKS_MADE)),
    ("freq-low", less(&keys::CPU_FREQUENCY)),
    ("gc-alloc-failure", less(&keys::GC_THROUGHPUT)),
    ("gc-cmf", more(&keys::GC_CONCURRENT_MODE_FAILURES)),
    ("gc-cpu-starved", more(&keys::GC_CPU_INVERTED)),
    ("gc-evacuation-failed", more(&keys::GC_EVACUATION_FAILURES)),
    ("gc-explicit", more(&keys::GC_FULLS_EXPLICIT)),
    ("gc-full", more(&keys::GC_FULL_TIME)),
    ("gc-heap-exceeds-memory", more(&keys::GC_HEAP_MAX)),
    ("gc-humongous", more(&keys::GC_HUMONGOUS)),
    ("gc-live-growth", more(&keys::GC_LIVE)),
    ("gc-locker", more(&keys::GC_LOCKER)),
    ("gc-long-pause", more(&keys::GC_PAUSE_LONGEST)),
    ("gc-metadata", more(&keys::GC_METADATA_LATE)),
    ("gc-metaspace-growth", more(&keys::GC_METASPACE_SLOPE)),
    ("gc-premature-promotion", more(&keys::GC_PROMOTED)),
    ("gc-remark-long", more(&keys::GC_REMARK_LONGEST)),
    ("gc-safepoints", more(&keys::GC_SAFEPOINT_OUTSIDE)),
    ("gc-stall", more(&keys::GC_STALL_TIME)),
    ("gc-survivors-small", less(&keys::GC_AGE_THRESHOLD)),
    ("gc-threads-few", less(&keys::GC_THROUGHPUT)),
    ("gc-threshold-range", more(&keys::GC_AGE_THRESHOLD_MAX)),
    ("gc-throughput", less(&keys::GC_THROUGHPUT)),
    ("gc-young-frequent", less(&keys::GC_YOUNG_INTERVAL)),
    ("gc-young-grown", more(&keys::GC_YOUNG_COST)),
    ("gc-young-long", more(&keys::GC_YOUNG_P99)),
    ("gro-useless", more(&keys::STACK_GRO)),
    ("heap-resize", more(&keys::GC_HEAP_RESIZES)),
    ("idle-but-waiting", more(&keys::JVM_LOCK_WAITING)),
    ("ip-id", more(&keys::STACK_IP_ID)),
    ("iptables-empty", more(&keys::STACK_NETFILTER)),
    ("irq-affinity-lag", more(&keys::IRQ_RATE)),
    ("irq-hint-ignored", more(&keys::CPU_SOFTIRQ)),
    ("irq-one-cpu", more(&keys::SOFTIRQ_NET_RX_SHARE)),
    ("irq-one-node", more(&keys::SOFTIRQ_NET_RX_NODE_SHARE)),
    ("irq-rate-high", more(&keys::IRQ_RATE)),
    ("lock-wait-ratio", more(&keys::THREADS_LOCK_WAITING)),
    ("memory-channels", less(&keys::DIMM_CHANNELS_USED)),
    ("mtu-large-wins", more(&keys::CPU_SOFTIRQ)),
    ("mtu-mismatch", more(&keys::IP_FRAGMENTS_SHARE)),
    ("neigh-full", more(&keys::NEIGH_REFUSED)),
    ("neigh-unanswered", more(&keys::NEIGH_UNANSWERED)),
    ("nf-drop", more(&keys::DROP_NETFILTER)),
    ("nf-rules-hot", more(&keys::STACK_NFT_RULES)),
    ("nic-ring-drop", more(&keys::DEVICE_MISSED_SHARE)),
    ("noise-gate", more(&keys::PSI_CPU_SOME)),
    ("numa-hint-faults", more(&keys::NUMA_HINT_FAULTS)),
    ("numa-remote", more(&keys::NUMA_PROCESS_REMOTE)),
    ("other-namespaces", more(&keys::NETNS_OTHER_PACKETS)),
    ("path-mtu-blackhole", more(&keys::TCP_STALLED_FULL)),
    ("pool-self-wait", more(&keys::THREADS_SELF_POOL_STILL)),
    ("port-exhaust", more(&keys::TCP_PORTS_USED)),
    ("priority-low", more(&keys::PROCESS_BUSIEST_DELAY)),
    ("process-blocked", more(&keys::PROCESS_BLOCKED)),
    ("qdisc-limit", more(&keys::QDISC_DROPPED_SHARE)),
    ("realtime-hog", more(&keys::SCHED_PROCESS_CPU)),
    ("reuseport-skew", more(&keys::UDP_SOCKET_DROPS)),
    ("rp-filter-drop", more(&keys::IP_REVERSE_PATH)),
    ("rpc-single-conn", less(&keys::TCP_PARALLEL)),
    ("rps-harmful", more(&keys::SOFTIRQ_NET_RX_PER_IRQ)),
    ("rps-needed", more(&keys::SOFTIRQ_NET_RX_SHARE)),
    ("rss-skew-flows", more(&keys::QUEUE_SHARE)),
    ("rss-table-short", less(&keys::RSS_TABLE_QUEUES)),
    ("runq-delay", more(&keys::SCHED_RUN_DELAY)),
    ("sec-audit-hot", more(&keys::STACK_AUDIT)),
    ("selinux-hot", more(&keys::STACK_SELINUX)),
    ("serialize-hot", more(&keys::THREADS_SERIALIZING)),
    ("service-restarts", more(&keys::LISTEN_CHANGES)),
    ("shared-wait", more(&keys::THREADS_WAIT_STILL)),
    ("slab-hot", more(&keys::STACK_SLAB)),
    ("smt-off", more(&keys::CPU_BUSY)),
    ("softirq-conc-guest", more(&keys::SOFTIRQ_NET_RX_SHARE)),
    ("softnet-drop", more(&keys::SOFTNET_DROPPED)),
    ("softnet-squeeze", more(&keys::SOFTNET_SQUEEZED_SHARE)),
    ("steal", more(&keys::CPU_STEAL_MEAN)),
    ("swap-in", more(&keys::MEMORY_SWAP_IN)),
    ("syscall-bound", more(&keys::SYSCALL_RATE)),
    ("tasks-full", more(&keys::TASKS_SHARE)),
    ("tcp-idle-cwnd", more(&keys::TCP_IDLE_RESTARTS)),
    ("tcp-listen-overflow", more(&keys::TCP_LISTEN_OVERFLOWS)),
    ("tcp-memory", more(&keys::TCP_MEM)),
    ("tcp-nagle-40ms", more(&keys::LATENCY_DELAYED_ACK)),
    ("tcp-port-closed", more(&keys::TCP_RESETS_SENT)),
    ("tcp-recvq-pile", more(&keys::TCP_RECVQ)),
    ("tcp-reordering", more(&keys::TCP_OUT_OF_ORDER)),
    ("tcp-reset-unread", more(&keys::TCP_RESET_UNREAD)),
    ("tcp-retrans", more(&keys::TCP_RETRANS_SHARE)),
    ("tcp-rwnd-limited", more(&keys::TCP_RWND_LIMITED)),
    ("tcp-sendq-pile", more(&keys::TCP_SENDQ_SHARE)),
    ("tcp-sndbuf-limited", more(&keys::TCP_SNDBUF_LIMITED)),
    ("tcp-stalled", more(&keys::TCP_STALLED)),
    ("tcp-synq-full", more(&keys::TCP_SYNQ_FULL)),
    ("thp-stall", more(&keys::MEMORY_COMPACT_STALL)),
    ("thread-hot", more(&keys::THREADS_HOT_SHARE)),
    ("thread-saturated", more(&keys::PROCESS_BUSIEST_THREAD)),
    ("threads-grow", more(&keys::PROCESS_THREADS_ADDED)),
    ("tlb-bound", more(&keys::MEMORY_TLB_SHARE)),
    ("tx-qdisc-atomic", more(&keys::STACK_XMIT_SPIN)),
    ("tx-queue-lock", more(&keys::STACK_XMIT_LOCK)),
    ("udp-mem-pressure", more(&keys::UDP_MEM)),
    ("udp-rcvbuf-drop", more(&keys::UDP_RCVBUF_SHARE)),
    ("udp-reader-unbound", more(&keys::LOCK_UDP_CONTENTIONS)),
    ("udp-reuseport-hash", more(&keys::STACK_UDP_LOCK)),
    ("udp-shared-socket", less(&keys::UDP_SOCKETS)),
    ("udp-sndbuf-drop", more(&keys::UDP_SNDBUF_DROPS)),
    ("udp-socket-lock", more(&keys::STACK_UDP_LOCK)),
    ("udp-thread-remote", more(&keys::SCHED_REMOTE_SOFTIRQ)),
    ("unexplained-loss", more(&keys::LOSS_SHARE)),
    ("unix-listen-overflow", more(&keys::UNIX_FULL)),
    ("upstream-pool-full", more(&keys::DEPENDENCY_POOL_QUEUE)),
    ("upstream-slow", more(&keys::DEPENDENCY_WAIT)),
    ("user-lock", more(&keys::LOCK_USER_WAITERS)),
    ("virtual-thread-pinned", more(&keys::THREADS_CARRIERS_HELD)),
];

/// The number of this rule, if it has one.
pub(crate) fn of(rule: &str) -> Option<Measure> {
    MEASURES
        .iter()
        .find(|(id, _)| *id == rule)
        .map(|(_, measure)| *measure)
}

impl Measure {
    /// The number for this subject; for a subject of another kind, or one that is gone (a connection after a
    /// restart), the worst of all.
    pub(crate) fn read<'e>(&self, evidence: &'e Evidence, subject: &str) -> Option<Quantity<'e>> {
        let same = subject
            .parse::<Subject>()
            .ok()
            .and_then(|subject| evidence.quantity(self.key, &subject).ok());
        same.or_else(|| {
            let all = evidence.each(self.key).ok()?.into_iter();
            let worst = all.max_by(|(_, a), (_, b)| match self.worse {
                Worse::More => a.value.total_cmp(&b.value),
                Worse::Less => b.value.total_cmp(&a.value),
            });
            Some(worst?.1)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Rules about text or a setting, or about what is missing.
    const OUTCOME_ONLY: &[&str] = &[
        "clock-slow",
        "gc-log-poor",
        "gc-not-the-bottleneck",
        "irq-affinity-reverted",
        "irq-names-unknown",
        "resource-saturated",
        "process-stopped",
        "process-traced",
        "rps-new-device",
        "tcp-sane-flags",
        // Of another resource each time.
        "unexplained-wait",
    ];

    #[test]
    fn every_rule_has_a_number_that_it_reads_or_says_that_it_has_none() {
        for rule in crate::RULES {
            match of(rule.id) {
                Some(measure) => {
                    assert!(rule.needs.contains(&measure.key), "{}", rule.id);
                    assert!(!OUTCOME_ONLY.contains(&rule.id), "{} twice", rule.id);
                }
                None => assert!(
                    OUTCOME_ONLY.contains(&rule.id),
                    "{}: enter it in MEASURES",
                    rule.id
                ),
            }
        }
        assert!(MEASURES.is_sorted_by(|(a, _), (b, _)| a < b));
        assert_eq!(MEASURES.len() + OUTCOME_ONLY.len(), crate::RULES.len());
    }
}
