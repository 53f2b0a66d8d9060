//! Rules about network devices: interrupts, queues, steering, rings and packet sizes.

pub(crate) mod gro_useless;
pub(crate) mod irq_affinity_lag;
pub(crate) mod irq_affinity_reverted;
pub(crate) mod irq_hint_ignored;
pub(crate) mod irq_names_unknown;
pub(crate) mod irq_one_cpu;
pub(crate) mod irq_one_node;
pub(crate) mod irq_rate_high;
mod irqs;
pub(crate) mod mtu_large_wins;
pub(crate) mod mtu_mismatch;
pub(crate) mod nic_ring_drop;
pub(crate) mod qdisc_limit;
pub(crate) mod rps_harmful;
pub(crate) mod rps_needed;
pub(crate) mod rps_new_device;
pub(crate) mod rss_skew_flows;
pub(crate) mod rss_table_short;
pub(crate) mod softirq_conc_guest;
pub(crate) mod tx_queue_lock;
