//! Runs of a JVM as their GC logs tell of them.

pub(crate) mod alloc_per_request;
pub(crate) mod gc_alloc_failure;
pub(crate) mod gc_cmf;
pub(crate) mod gc_cpu_starved;
pub(crate) mod gc_evacuation_failed;
pub(crate) mod gc_explicit;
pub(crate) mod gc_full;
pub(crate) mod gc_humongous;
pub(crate) mod gc_live_growth;
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
pub(crate) mod gc_threshold_range;
pub(crate) mod gc_throughput;
pub(crate) mod gc_young_frequent;
pub(crate) mod gc_young_grown;
pub(crate) mod gc_young_long;
pub(crate) mod heap_resize;
mod options;
mod run;
