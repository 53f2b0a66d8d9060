//! JVM runs as their GC logs record them, and what thread dumps show.

pub(crate) mod alloc_per_request;
pub(crate) mod code_hot;
pub(crate) mod connection_pool_exhausted;
pub(crate) mod deadlock;
mod dumps;
pub(crate) mod exceptions_frequent;
pub(crate) mod gc_alloc_failure;
pub(crate) mod gc_cmf;
pub(crate) mod gc_cpu_starved;
pub(crate) mod gc_evacuation_failed;
pub(crate) mod gc_explicit;
pub(crate) mod gc_full;
pub(crate) mod gc_heap_exceeds_memory;
pub(crate) mod gc_humongous;
pub(crate) mod gc_live_growth;
pub(crate) mod gc_locker;
pub(crate) mod gc_log_poor;
pub(crate) mod gc_long_pause;
pub(crate) mod gc_metadata;
pub(crate) mod gc_metaspace_growth;
pub(crate) mod gc_not_the_bottleneck;
pub(crate) mod gc_premature_promotion;
pub(crate) mod gc_remark_long;
pub(crate) mod gc_safepoints;
pub(crate) mod gc_stall;
pub(crate) mod gc_survivors_small;
pub(crate) mod gc_threads_few;
pub(crate) mod gc_threshold_range;
pub(crate) mod gc_throughput;
pub(crate) mod gc_young_frequent;
pub(crate) mod gc_young_grown;
pub(crate) mod gc_young_long;
pub(crate) mod heap_resize;
pub(crate) mod io_slow;
mod late_start;
mod live;
pub(crate) mod lock_contended;
pub(crate) mod lock_wait_ratio;
pub(crate) mod log_hot;
mod options;
pub(crate) mod pool_self_wait;
mod recordings;
mod run;
pub(crate) mod serialize_hot;

/// How far a rule of GC logs is from the cause: 0 it names one, 1 the machine lacked CPU, 2 it describes how collections hurt, and
/// another rule names the cause. Causes come first in a report.
pub(crate) fn symptom(rule: &str) -> u8 {
    match rule {
        "gc-cpu-starved" => 1,
        "gc-alloc-failure" | "gc-full" | "gc-log-poor" | "gc-long-pause" | "gc-throughput"
        | "gc-young-frequent" | "gc-young-grown" | "gc-young-long" => 2,
        _ => 0,
    }
}
pub(crate) mod shared_wait;
pub(crate) mod thread_hot;
pub(crate) mod thread_pool_exhausted;
pub(crate) mod virtual_thread_pinned;
