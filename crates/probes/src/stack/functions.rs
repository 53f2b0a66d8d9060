//! The one table of kernel functions by subject, and stacks classified by it.
//!
//! Names differ by kernel, platform and compiler, so each subject is a set. The slow path of a
//! spin lock has one name on bare metal (`native_`), another in a guest (`__pv_`), and a third in older
//! kernels; what the compiler adds (`.isra.0`) is stripped before. `*` matches any suffix of a name.
//! Names are of Linux 6.18 unless a comment says otherwise; those of 4.6 are in the reference case.

use std::collections::HashMap;

use rungwise_formats::folded;

/// A subject, as a bit number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Set {
    /// An interrupt or soft interrupts begin here; see [`folded::is_entry`].
    Entry,
    /// Soft interrupts run here.
    Softirq,
    /// Waiting for a spin lock that another CPU holds.
    SlowPath,
    /// Taking a spin lock; as a leaf, an uncontended one, or one whose slow path was inlined.
    SpinLock,
    /// Waiting for a sleeping lock without sleeping yet.
    Optimistic,
    /// A datagram is put into the queue of its socket.
    UdpEnqueue,
    /// A packet goes to a device, through its queueing discipline.
    Xmit,
    /// A packet is put into the backlog of a CPU.
    Backlog,
    /// The CPU for a packet is selected and notified.
    Rps,
    /// Packets are compared and joined.
    Gro,
    /// Packets are given to the protocols.
    Delivery,
    /// Hooks of netfilter run.
    Netfilter,
    /// Rules are walked.
    Rules,
    /// The source address of a packet is looked up.
    FibValidate,
    /// A route is looked up.
    FibLookup,
    /// Between a lookup and its caller.
    FibStep,
    /// System calls are audited.
    Audit,
    /// `SELinux` decides.
    Selinux,
    /// Memory is mapped for a device.
    Iommu,
    /// The ID of an IP packet is chosen.
    IpId,
    /// Small memory is allocated or released.
    Slab,
    /// Into the kernel and out of it.
    SyscallEntry,
}

/// The table. `folded` recognises [`Set::Entry`] and [`Set::Softirq`].
static TABLE: &[(Set, &[&str])] = &[
    (
        Set::SlowPath,
        &[
            "native_queued_spin_lock_slowpath",
            "__pv_queued_spin_lock_slowpath",
            "queued_spin_lock_slowpath",
            "queued_read_lock_slowpath",
            "queued_write_lock_slowpath",
            "resilient_queued_spin_lock_slowpath",
        ],
    ),
    // _bh, _irq and _irqsave too; `_raw_spin_unlock` does not begin so.
    (
        Set::SpinLock,
        &["_raw_spin_lock*", "_raw_read_lock*", "_raw_write_lock*"],
    ),
    (
        Set::Optimistic,
        &[
            "osq_lock",
            "mutex_spin_on_owner",
            "mutex_optimistic_spin",
            "rwsem_spin_on_owner",
            "rwsem_optimistic_spin",
        ],
    ),
    (
        Set::UdpEnqueue,
        &[
            "__udp_enqueue_schedule_skb",
            "udp_queue_rcv_skb",
            "udp_queue_rcv_one_skb",
            "udpv6_queue_rcv_skb",
            "udpv6_queue_rcv_one_skb",
            // 4.6
            "__udp_queue_rcv_skb",
        ],
    ),
    (
        Set::Xmit,
        &[
            "dev_queue_xmit",
            "__dev_queue_xmit",
            "__dev_xmit_skb",
            "__dev_direct_xmit",
            "sch_direct_xmit",
            "__qdisc_run",
            "qdisc_run",
        ],
    ),
    (Set::Backlog, &["enqueue_to_backlog", "netif_rx*"]),
    (
        Set::Rps,
        &[
            "get_rps_cpu",
            "enqueue_to_backlog",
            "rps_trigger_softirq",
            "net_rps_send_ipi",
            "net_rps_action_and_irq_enable",
        ],
    ),
    (
        Set::Gro,
        &[
            "dev_gro_receive",
            "gro_receive_skb",
            "inet_gro_receive",
            "ipv6_gro_receive",
            "udp_gro_receive",
            "udp4_gro_receive",
            "udp6_gro_receive",
            "tcp_gro_receive",
            "tcp4_gro_receive",
            "tcp6_gro_receive",
            "vlan_gro_receive",
            "eth_gro_receive",
            "skb_gro_receive*",
        ],
    ),
    (
        Set::Delivery,
        &[
            "netif_receive_skb*",
            "__netif_receive_skb*",
            "ip_rcv*",
            "ip_list_rcv",
            "ipv6_rcv",
            "ipv6_list_rcv",
        ],
    ),
    (
        Set::Netfilter,
        &[
            "nf_hook_slow*",
            "ipt_do_table",
            "ip6t_do_table",
            "nft_do_chain*",
        ],
    ),
    (
        Set::Rules,
        &["ipt_do_table", "ip6t_do_table", "nft_do_chain*"],
    ),
    (Set::FibValidate, &["__fib_validate_source"]),
    (Set::FibLookup, &["fib_table_lookup"]),
    (
        Set::FibStep,
        &[
            "fib_lookup",
            "__fib_lookup",
            "fib_rules_lookup",
            "fib4_rule_action",
        ],
    ),
    (
        Set::Audit,
        &["__audit_*", "audit_filter_*", "audit_log_*", "audit_put_*"],
    ),
    (
        Set::Selinux,
        &[
            "avc_has_perm*",
            "avc_lookup",
            "selinux_socket_*",
            "selinux_sock_*",
        ],
    ),
    (
        Set::Iommu,
        &[
            "iommu_map*",
            "iommu_unmap*",
            "__iommu_map*",
            "__iommu_unmap*",
            "iommu_dma_map_*",
            "iommu_dma_unmap_*",
            "__iommu_dma_map*",
            "__iommu_dma_unmap*",
            "iommu_iotlb_*",
            "alloc_iova*",
            "free_iova*",
            "queue_iova",
            "qi_submit_sync",
            "arm_smmu_*",
            // 4.6
            "intel_map_*",
            "intel_unmap*",
        ],
    ),
    (Set::IpId, &["__ip_select_ident", "ip_idents_reserve"]),
    (
        Set::Slab,
        &[
            "kmem_cache_alloc*",
            "__kmem_cache_alloc*",
            "kmem_cache_free*",
            "__kmem_cache_free*",
            "kmalloc*",
            "__kmalloc*",
            "kfree",
            "___slab_alloc",
            "__slab_alloc",
            "__slab_free",
            "slab_free*",
            "__memcg_slab_*",
            "skb_release_data",
        ],
    ),
    (
        Set::SyscallEntry,
        &[
            "entry_SYSCALL_64*",
            "entry_SYSRETQ*",
            "do_syscall_64",
            "x64_sys_call",
            "syscall_enter_from_user_mode*",
            "syscall_exit_to_user_mode*",
            "syscall_return_via_sysret",
            "el0t_64_sync*",
            "el0_svc*",
            "do_el0_svc",
            "invoke_syscall*",
            // 4.6
            "entry_SYSCALL_64_fastpath",
            "el0_sync*",
        ],
    ),
];

/// Sets that functions are in, each function looked up once.
#[derive(Debug, Default)]
pub(super) struct Functions<'a> {
    known: HashMap<&'a str, u32>,
}

impl<'a> Functions<'a> {
    /// Reads a folded stack; its first frame is the task.
    pub(super) fn stack(&mut self, folded: &'a str) -> Stack<'a> {
        let frames: Vec<Frame<'a>> = folded::frames(folded)
            .skip(1)
            .map(|name| Frame {
                name: folded::plain(name),
                sets: *self.known.entry(name).or_insert_with(|| sets_of(name)),
            })
            .collect();
        let is = |set: Set| move |frame: &Frame<'_>| frame.is(set);
        let softirq = frames.iter().any(is(Set::Softirq));
        // Read once, then cut: the rest belongs to the interrupted task.
        let inner = folded::innermost(&frames, is(Set::Entry)).to_vec();
        Stack {
            frames: inner,
            softirq,
        }
    }
}

fn sets_of(name: &str) -> u32 {
    let mut sets = 0;
    for (set, patterns) in TABLE {
        if patterns
            .iter()
            .any(|pattern| folded::is_meant(name, pattern))
        {
            sets |= set.bit();
        }
    }
    if folded::is_entry(name) {
        sets |= Set::Entry.bit();
    }
    if folded::is_softirq(name) {
        sets |= Set::Softirq.bit();
    }
    sets
}

impl Set {
    fn bit(self) -> u32 {
        1 << self as u32
    }
}

#[derive(Clone, Copy, Debug)]
struct Frame<'a> {
    name: &'a str,
    sets: u32,
}

impl Frame<'_> {
    fn is(&self, set: Set) -> bool {
        self.sets & set.bit() != 0
    }
}

/// The innermost part of a stack: above its last interrupt.
#[derive(Clone, Debug)]
pub(super) struct Stack<'a> {
    frames: Vec<Frame<'a>>,
    softirq: bool,
}

impl<'a> Stack<'a> {
    /// Within soft interrupts, also when interrupted there.
    pub(super) fn is_softirq(&self) -> bool {
        self.softirq
    }

    /// A function of the set, or what it calls.
    pub(super) fn under(&self, set: Set) -> bool {
        self.frames.iter().any(|frame| frame.is(set))
    }

    /// The function itself.
    pub(super) fn itself(&self, set: Set) -> bool {
        self.frames.last().is_some_and(|leaf| leaf.is(set))
    }

    /// A function of the second set, called by one of the first, directly or not.
    pub(super) fn within(&self, caller: Set, callee: Set) -> bool {
        let mut frames = self.frames.iter();
        frames.any(|frame| frame.is(caller)) && frames.any(|frame| frame.is(callee))
    }

    /// The innermost function; absent where the sample was not in a function of the kernel.
    pub(super) fn leaf(&self) -> Option<&'a str> {
        let leaf = self.frames.last()?.name;
        (!leaf.starts_with('[')).then_some(leaf)
    }

    /// The caller of the route lookup.
    pub(super) fn fib_caller(&self) -> Option<&'a str> {
        let lookup = self
            .frames
            .iter()
            .rposition(|frame| frame.is(Set::FibLookup))?;
        let caller = self.frames[..lookup]
            .iter()
            .rfind(|frame| !frame.is(Set::FibStep))?;
        Some(caller.name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(folded: &str) -> Stack<'_> {
        Functions::default().stack(folded)
    }

    #[test]
    fn each_set_is_in_the_table_once_and_all_bits_are_different() {
        let mut seen = 0_u32;
        for (set, patterns) in TABLE {
            assert_eq!(seen & set.bit(), 0, "{set:?} twice");
            seen |= set.bit();
            assert!(!patterns.is_empty());
        }
        assert_eq!(Set::SyscallEntry as u32, TABLE.len() as u32 + 1);
    }

    #[test]
    fn the_slow_path_is_known_by_all_its_names() {
        for name in [
            "native_queued_spin_lock_slowpath",
            "__pv_queued_spin_lock_slowpath",
            "queued_spin_lock_slowpath",
            "native_queued_spin_lock_slowpath.part.0",
        ] {
            let stack = format!("a;udp_queue_rcv_skb;_raw_spin_lock;{name}");
            assert!(
                read(&stack).within(Set::UdpEnqueue, Set::SlowPath),
                "{name}"
            );
        }
        assert!(!read("a;_raw_spin_unlock_irqrestore").under(Set::SpinLock));
    }

    #[test]
    fn a_caller_is_outside_of_what_it_calls() {
        let outside = read("a;_raw_spin_lock;udp_queue_rcv_skb");
        assert!(!outside.within(Set::UdpEnqueue, Set::SpinLock));
        // A function is not within itself.
        assert!(!read("a;enqueue_to_backlog").within(Set::Backlog, Set::Rps));
    }

    #[test]
    fn the_lock_of_a_receiving_soft_interrupt_is_not_the_senders() {
        let stack = read(
            "echo;udp_sendmsg;__dev_queue_xmit;__local_bh_enable_ip;handle_softirqs;\
             udp_queue_rcv_one_skb;_raw_spin_lock",
        );
        assert!(stack.within(Set::UdpEnqueue, Set::SpinLock));
        assert!(!stack.under(Set::Xmit) && stack.is_softirq());
    }

    #[test]
    fn a_lookup_belongs_to_who_wants_the_route() {
        let input = "a;ip_route_input_slow;fib_table_lookup";
        assert_eq!(read(input).fib_caller(), Some("ip_route_input_slow"));
        let rules = "a;__fib_validate_source;__fib_lookup;fib_rules_lookup;fib_table_lookup";
        assert_eq!(read(rules).fib_caller(), Some("__fib_validate_source"));
        assert_eq!(read("a;b").fib_caller(), None);
    }
}
