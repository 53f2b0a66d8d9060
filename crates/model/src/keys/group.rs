//! Keys: limits of control groups other than the CPU quota.

keys! { GROUP;
    CGROUP_CPU_RAN = "cgroup.cpu_ran", Fraction, Cgroup, "Share of the window in which the process that cgroup.cpu_wait is about ran on a CPU (cgroup v2: all of the group, summed over CPUs)";
    CGROUP_CPU_WAIT = "cgroup.cpu_wait", Fraction, Cgroup, "Share of the window in which the busiest process of the group, or some task of it, waited for a CPU";
    CGROUP_FROZEN = "cgroup.frozen", Count, Cgroup, "Processes of a group that was frozen in at least one sample; 0 for the root if no group was";
    CGROUP_FROZEN_SHARE = "cgroup.frozen_share", Fraction, Cgroup, "Share of the samples in which the group was frozen; 0 for the root if no group was";
    CGROUP_IO_LIMIT = "cgroup.io_limit", Text, Cgroup, "The I/O limit of which the group uses most";
    CGROUP_IO_USED = "cgroup.io_used", Fraction, Cgroup, "What the group read or wrote as a share of that limit";
    CGROUP_IO_WAIT = "cgroup.io_wait", Fraction, Cgroup, "Share of the window in which some task of the group waited for a disk (io.pressure)";
    CGROUP_MEMBERS = "cgroup.members", Text, Cgroup, "Processes of a limited group and of those below it, busiest first";
    CGROUP_MEMORY_FAULTS = "cgroup.memory_faults", PerSecond, Cgroup, "Major page faults of the group";
    CGROUP_MEMORY_LIMIT = "cgroup.memory_limit", Bytes, Cgroup, "Memory limit of the group, the lower of high and max";
    CGROUP_MEMORY_REFAULTS = "cgroup.memory_refaults", PerSecond, Cgroup, "Pages that the group read again shortly after they were reclaimed";
    CGROUP_MEMORY_SWAP = "cgroup.memory_swap", Bytes, Cgroup, "Memory of the group in swap";
    CGROUP_MEMORY_USED = "cgroup.memory_used", Fraction, Cgroup, "Memory in use as a share of the group's limit, page cache included";
    CGROUP_MEMORY_WAIT = "cgroup.memory_wait", Fraction, Cgroup, "Share of the window in which some task of the group waited for memory (memory.pressure)";
    CGROUP_OOM_KILLS = "cgroup.oom_kills", Count, Cgroup, "Processes of the group that were OOM-killed in the window";
    CGROUP_PIDS = "cgroup.pids", Count, Cgroup, "Threads and processes of the group at the end of the window";
    CGROUP_PIDS_LIMIT = "cgroup.pids_limit", Count, Cgroup, "Maximum number of threads and processes of the group";
    CGROUP_PIDS_REFUSED = "cgroup.pids_refused", Count, Cgroup, "Threads and processes that the limit of the group refused in the window";
    CGROUP_PIDS_USED = "cgroup.pids_used", Fraction, Cgroup, "Threads and processes of the group at the end of the window as a share of its limit";
    CGROUP_REFUSED = "cgroup.refused", Count, Cgroup, "Huge pages and other counted resources that a limit of the group refused in the window (hugetlb.*.events, misc.events)";
    CGROUP_WEIGHT = "cgroup.weight", Ratio, Cgroup, "CPU weight of the group divided by the default (cpu.weight / 100, cpu.shares / 1024)";
}
