//! Wish to plan to journalled, undoable edits.
//!
//! A [`Knob`] turns a wish (`net.rps_cpus = 0-3`) into a [`Plan`]: a list of primitive [`Edit`]s, each with the value
//! it found. A [`Session`] applies plans. It writes its intent to a journal on disk before it touches the machine,
//! reads back the value that the kernel stored, and undoes by compare-and-swap: only a target that still has our value
//! is restored; any other value was set by someone else since and is reported. [`recovery`] does the same from the
//! journal alone, after a crash; [`guard`] is the process that does so at once when the tool is killed.
//!
//! No knob file writes or undoes anything: that is the engine's alone.

pub mod by_hand;
pub mod edit;
mod elevator;
pub mod engine;
mod error;
pub mod export;
mod form;
pub mod guard;
pub mod journal;
pub mod knob;
pub mod mask;
mod mounted;
mod open_files;
mod page;
pub mod plan;
pub mod recovery;
pub mod target;
mod thread;
mod throttled;
mod turn;
mod twins;
pub mod undo;
mod wish;

mod cgroup;
mod device;
mod disk;
mod host;
mod netns;
mod service;

pub use edit::{Edit, Place};
pub use engine::{Applied, Session};
pub use error::{Error, Result};
pub use knob::{Context, Current, Doc, Draft, Knob, Reading, Risk, Scope, Settable};
pub use page::pages;
pub use plan::{Drift, Plan, PlannedEdit};
pub use undo::{Left, Undo, Why};

/// All knobs, sorted by id. A knob with logic of its own has a file of its own; plain ones stand together by
/// subject, in the folder of their scope.
pub static KNOBS: &[&Knob] = &[
    &service::application::LOCK_SPLIT,
    &host::firmware::DIMM_POPULATION,
    &host::firmware::MEMORY_REFRESH,
    &host::firmware::NIC_QUEUES,
    &host::firmware::NUMA,
    &host::firmware::POWER_POLICY,
    &host::firmware::PREFETCH,
    &host::firmware::SMMU,
    &host::smt::KNOB,
    &host::firmware::STREAM_WRITE,
    &host::boot::AUDIT,
    &host::boot::CSTATE,
    &host::boot::HUGEPAGES,
    &host::boot::IOMMU_PT,
    &host::boot::ISOLATION,
    &host::boot::MITIGATIONS,
    &host::boot::NOHZ,
    &host::boot::SELINUX,
    &host::boot::SKEW_TICK,
    &host::cpu::AUTOGROUP,
    &cgroup::cfs_quota::KNOB,
    &cgroup::limits::FREEZER,
    &cgroup::limits::WEIGHT,
    &host::cpu::DMA_LATENCY,
    &host::cpu::EPP,
    &host::cpu::GOVERNOR,
    &host::cpu::NMI_WATCHDOG,
    &service::pin_threads::KNOB,
    &host::cpu::SCHED_SLICE,
    &host::cpu::STAT_INTERVAL,
    &host::cpu::TIMER_MIGRATION,
    &cgroup::io::KNOB,
    &disk::mount::DISCARD,
    &disk::mount::NOATIME,
    &disk::queue::NR_REQUESTS,
    &disk::queue::QUEUE_DEPTH,
    &disk::queue::READ_AHEAD,
    &disk::queue::RQ_AFFINITY,
    &disk::scheduler::KNOB,
    &disk::queue::WBT,
    &service::application::ACTIVE_CPUS,
    &service::jvm::APPCDS,
    &service::jvm::CMS_MISC,
    &service::jvm::CMS_OCCUPANCY,
    &service::jvm::CODE_CACHE,
    &service::jvm::DIRECT_MEMORY,
    &service::jvm::EXPLICIT_GC,
    &service::jvm::FAST_SERIALIZER,
    &service::application::FLAGS,
    &service::jvm::G1_PAUSE,
    &service::jvm::G1_UNCOMMIT,
    &service::jvm::GC_CHOICE,
    &service::application::GC_LOG,
    &service::application::HEAP_DUMP,
    &service::jvm::JDK_UPGRADE,
    &service::jvm::KAE_CRYPTO,
    &service::application::LARGE_PAGES,
    &service::jvm::METASPACE,
    &service::jvm::NUMA,
    &service::jvm::PRETOUCH,
    &service::jvm::REFPROC,
    &service::jvm::SCAVENGE_BEFORE_REMARK,
    &service::jvm::SOFTREF,
    &service::jvm::XMN,
    &service::jvm::XMS_XMX,
    &service::jvm::XSS,
    &service::application::LOG_GUARD,
    &cgroup::limits::MEMORY,
    &host::dirty::KNOB,
    &host::memory::DROP_CACHES,
    &host::memory::HUGETLB,
    &host::memory::MAX_MAP_COUNT,
    &host::memory::MIN_FREE,
    &host::memory::SWAPPINESS,
    &host::memory::THP,
    &host::memory::THP_DEFRAG,
    &host::memory::WATERMARK_SCALE,
    &netns::accept_local::KNOB,
    &host::affinity_hint::KNOB,
    &device::link::ARFS,
    &device::link::BQL,
    &host::net_core::BUSY_POLL,
    &device::hardware::COALESCE,
    &host::net_core::CONNTRACK,
    &host::default_qdisc::KNOB,
    &host::net_core::DEV_WEIGHT,
    &netns::ip::EARLY_DEMUX,
    &host::net_core::FLOW_LIMIT,
    &device::gro::KNOB,
    &device::gro_list_fwd::KNOB,
    &host::net_core::GRO_NORMAL_BATCH,
    &netns::ip::IPFRAG,
    &netns::iptables_unload::KNOB,
    &host::irq_affinity::KNOB,
    &host::irqbalance::KNOB,
    &device::link::LRO,
    &device::link::MTU,
    &device::napi_defer::KNOB,
    &host::net_core::NEIGH_GC,
    &host::netdev_budget::KNOB,
    &host::netdev_max_backlog::KNOB,
    &host::security::NFT_RULES,
    &netns::ip::PORT_RANGE,
    &device::queues::KNOB,
    &device::rfs::KNOB,
    &device::ring::KNOB,
    &host::rmem_max::KNOB,
    &netns::rp_filter::KNOB,
    &device::rps_cpus::KNOB,
    &netns::ip::RPS_DEFAULT_MASK,
    &device::rss_hash_fields::KNOB,
    &device::rss_table::KNOB,
    &netns::ip::SOMAXCONN,
    &netns::ip::SYN_BACKLOG,
    &device::threaded_napi::KNOB,
    &device::tso_gso::KNOB,
    &host::net_core::TSTAMP_PREQUEUE,
    &netns::ip::TW_REUSE,
    &device::link::TXQUEUELEN,
    &netns::ip::UDP_HASH,
    &host::net_core::UDP_MEM,
    &service::xdp_echo::KNOB,
    &device::xps_cpus::KNOB,
    &device::xps_rxqs::KNOB,
    &host::numa::BALANCING,
    &host::numa::BIND_NODE,
    &host::numa::INTERLEAVE,
    &host::numa::LOCALALLOC,
    &host::numa::ZONE_RECLAIM,
    &cgroup::limits::PIDS,
    &service::application::BACKLOG,
    &service::application::CONNECTIONS,
    &service::application::IO_THREADS,
    &host::nofile::KNOB,
    &service::application::PAYLOAD,
    &service::application::THREADS,
    &host::audit_rules::KNOB,
    &host::auditd::KNOB,
    &host::security::BPF_JIT,
    &host::security::SELINUX_AVC,
    &service::af_xdp::KNOB,
    &service::busy_poll::KNOB,
    &service::incoming_cpu::KNOB,
    &service::io_uring::KNOB,
    &service::pmtudisc::KNOB,
    &service::recvmmsg::KNOB,
    &service::reuseport::KNOB,
    &service::reuseport_bpf::KNOB,
    &service::udp_gro::KNOB,
    &service::udp_segment::KNOB,
    &netns::tcp::AUTOCORKING,
    &netns::tcp::CONGESTION,
    &netns::tcp::FASTOPEN,
    &netns::tcp::LIMIT_OUTPUT,
    &host::net_core::TCP_MEM,
    &netns::tcp::MODERATE_RCVBUF,
    &netns::tcp::MTU_PROBING,
    &netns::tcp::NODELAY,
    &netns::tcp::NOTSENT_LOWAT,
    &netns::tcp::RMEM,
    &netns::tcp::RTO_MIN,
    &netns::tcp::SACK_TS,
    &netns::tcp::SLOW_START_IDLE,
    &netns::tcp::WINDOW_SCALING,
    &netns::tcp::WMEM,
    &cgroup::cpuset::KNOB,
    &host::virt::HALT_POLL,
    &host::virt::MULTIQUEUE,
    &host::vcpu_pin::KNOB,
    &host::vhost_pin::KNOB,
];

/// The knob with this id; the error names the nearest one.
pub fn find(id: &str) -> Result<&'static Knob> {
    if let Ok(index) = KNOBS.binary_search_by(|knob| knob.id.cmp(id)) {
        return Ok(KNOBS[index]);
    }
    let near = KNOBS
        .iter()
        .map(|knob| (strsim::jaro_winkler(knob.id, id), knob.id))
        .filter(|(likeness, _)| *likeness > 0.8)
        .max_by(|a, b| a.0.total_cmp(&b.0))
        .map(|(_, id)| id);
    Err(Error::UnknownKnob {
        id: id.to_owned(),
        near,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_registry_is_sorted_and_ids_are_unique() {
        for pair in KNOBS.windows(2) {
            assert!(
                pair[0].id < pair[1].id,
                "{} before {}",
                pair[0].id,
                pair[1].id
            );
        }
    }

    #[test]
    fn every_knob_is_found_by_its_id_and_a_slip_names_the_nearest() {
        for knob in KNOBS {
            assert_eq!(find(knob.id).unwrap().id, knob.id);
        }
        let error = find("net.rps_cpu").unwrap_err().to_string();
        assert!(error.contains("net.rps_cpus"), "{error}");
        assert!(
            !find("zzz")
                .unwrap_err()
                .to_string()
                .contains("did you mean")
        );
    }
}
