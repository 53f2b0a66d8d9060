//! Keys: samples of kernel stacks, and kernel events. Shares are of busy samples (not idle) unless they say otherwise.

keys! { STACK;
    DROP_NETFILTER = "drop.netfilter", PerSecond, Host, "Packets dropped by netfilter rules and policies (NETFILTER_DROP), all network namespaces";
    DROP_RATE = "drop.rate", PerSecond, Host, "Dropped packets (skb:kfree_skb), all reasons";
    DROP_REASONS = "drop.reasons", Text, Host, "Dropped packets by reason (skb:kfree_skb), largest first";
    LOCK_CONTENTIONS = "lock.contentions", PerSecond, Host, "lock:contention_begin, all";
    LOCK_UDP_CONTENTIONS = "lock.udp_contentions", PerSecond, Host, "lock:contention_begin with a UDP enqueue on the stack";
    LOCK_XMIT_CONTENTIONS = "lock.xmit_contentions", PerSecond, Host, "lock:contention_begin with dev_queue_xmit on the stack";
    SETTING_FOUND = "setting.found", Text, Setting, "Current value";
    SETTING_OPEN = "setting.open", Count, Host, "Values that open journals of rungwise keep in force";
    SETTING_WANTED = "setting.wanted", Text, Setting, "Value that an open journal of rungwise wrote";
    STACK_AUDIT = "stack.audit", Fraction, Host, "Under audit hooks of system calls";
    STACK_FIB_LOOKUPS = "stack.fib_lookups", Count, Host, "Distinct callers of fib_table_lookup";
    STACK_FIB_VALIDATE = "stack.fib_validate", Fraction, Host, "Under __fib_validate_source";
    STACK_GRO = "stack.gro", Fraction, Host, "Under dev_gro_receive and its protocol parts";
    STACK_IOMMU = "stack.iommu", Fraction, Host, "Under IOMMU map and unmap";
    STACK_IP_ID = "stack.ip_id", Fraction, Host, "Self time of __ip_select_ident";
    STACK_LOCK = "stack.lock", Fraction, Host, "Spinning on any kernel lock";
    STACK_NETFILTER = "stack.netfilter", Fraction, Host, "Under nf_hook_slow, ipt_do_table or nft_do_chain";
    STACK_NFT_RULES = "stack.nft_rules", Fraction, Host, "Under nft_do_chain or ipt_do_table";
    STACK_RPS = "stack.rps", Fraction, Host, "Under get_rps_cpu and the backlog enqueue";
    STACK_SAMPLES = "stack.samples", Count, Host, "Busy samples taken; shares of fewer than 500 are not judged";
    STACK_SELINUX = "stack.selinux", Fraction, Host, "Under avc_has_perm or the selinux_socket hooks";
    STACK_SLAB = "stack.slab", Fraction, Host, "Self time of slab allocation and release, and of skb_release_data";
    STACK_SOFTIRQ_SAMPLES = "stack.softirq_samples", Count, Host, "Samples within softirqs";
    STACK_SYSCALL_ENTRY = "stack.syscall_entry", Fraction, Host, "Self time of system call entry and exit";
    STACK_THREADS = "stack.threads", Text, Host, "Threads by name with most busy samples, and their shares";
    STACK_TOP = "stack.top", Text, Host, "The function with most self time, and its share";
    STACK_UDP_LOCK = "stack.udp_lock", Fraction, Host, "Share of the softirq samples that spin on a lock under the UDP enqueue";
    STACK_XMIT_LOCK = "stack.xmit_lock", Fraction, Host, "Spinning on a lock under dev_queue_xmit";
    STACK_XMIT_SPIN = "stack.xmit_spin", Fraction, Host, "Taking an uncontended lock under dev_queue_xmit (self time of _raw_spin_lock)";
    SYSCTL_VALUE = "sysctl.value", Text, Setting, "A sysctl by its name, `net.core.rmem_max`, as the kernel prints it";
}
