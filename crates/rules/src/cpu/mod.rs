//! CPUs: who waits for them, how fast they run, and whether a measurement can be trusted.

pub(crate) mod cfs_throttled;
pub(crate) mod client_bound;
pub(crate) mod clock_slow;
pub(crate) mod cstate_latency;
pub(crate) mod freq_low;
pub(crate) mod group;
pub(crate) mod idle_but_waiting;
pub(crate) mod noise_gate;
pub(crate) mod runq_delay;
pub(crate) mod udp_thread_remote;
