//! Evidence to findings: one file per rule, one casebook per rule in `cases/`.
//!
//! A rule is data and one pure function. It always has one of three outcomes: a finding, clear (with the
//! distance from its threshold), or undecided (with what is missing).

mod causes;
mod cgroup;
pub mod change;
mod cpu;
mod device;
mod disk;
mod firmware;
mod jvm;
mod measure;
pub mod measured;
mod memory;
mod net;
mod numa;
mod page;
mod pick;
mod process;
mod residual;
mod resources;
pub mod rule;
mod sampled;
mod say;
mod security;
mod tcp;
mod virt;

pub use causes::consequences;
use measure::Measure;
pub use page::pages;
pub use resources::{owned_counters, resources};
pub use rule::{Doc, Judgement, Rule, Threshold};
pub use tcp::sides::service;

use rungwise_model::check::{Finding, Grade, Outcome};
use rungwise_model::evidence::{Evidence, Kind};

/// All rules, sorted by id.
pub static RULES: &[&Rule] = &[
    &process::affinity_narrow::RULE,
    &jvm::alloc_per_request::RULE,
    &cpu::cfs_throttled::RULE,
    &cgroup::cgroup_frozen::RULE,
    &cgroup::cgroup_io_limit::RULE,
    &cgroup::cgroup_memory_limit::RULE,
    &cgroup::cgroup_pids_limit::RULE,
    &cpu::client_bound::RULE,
    &process::clients_unread::RULE,
    &cpu::clock_slow::RULE,
    &jvm::code_hot::RULE,
    &process::connect_failed::RULE,
    &tcp::connect_refused::RULE,
    &process::connect_unanswered::RULE,
    &jvm::connection_pool_exhausted::RULE,
    &net::conntrack_full::RULE,
    &cgroup::cpu_weight_low::RULE,
    &cpu::cstate_latency::RULE,
    &process::database_lock::RULE,
    &jvm::deadlock::RULE,
    &process::descriptors_full::RULE,
    &memory::direct_reclaim::RULE,
    &disk::disk_errors::RULE,
    &disk::disk_full::RULE,
    &disk::disk_queue::RULE,
    &disk::disk_readahead::RULE,
    &disk::disk_saturated::RULE,
    &disk::disk_sync::RULE,
    &process::dns_unanswered::RULE,
    &jvm::exceptions_frequent::RULE,
    &net::fib_double::RULE,
    &process::fork_storm::RULE,
    &cpu::freq_low::RULE,
    &jvm::gc_alloc_failure::RULE,
    &jvm::gc_cmf::RULE,
    &jvm::gc_cpu_starved::RULE,
    &jvm::gc_evacuation_failed::RULE,
    &jvm::gc_explicit::RULE,
    &jvm::gc_full::RULE,
    &jvm::gc_heap_exceeds_memory::RULE,
    &jvm::gc_humongous::RULE,
    &jvm::gc_live_growth::RULE,
    &jvm::gc_locker::RULE,
    &jvm::gc_log_poor::RULE,
    &jvm::gc_long_pause::RULE,
    &jvm::gc_metadata::RULE,
    &jvm::gc_metaspace_growth::RULE,
    &jvm::gc_not_the_bottleneck::RULE,
    &jvm::gc_premature_promotion::RULE,
    &jvm::gc_remark_long::RULE,
    &jvm::gc_safepoints::RULE,
    &jvm::gc_stall::RULE,
    &jvm::gc_survivors_small::RULE,
    &jvm::gc_threads_few::RULE,
    &jvm::gc_threshold_range::RULE,
    &jvm::gc_throughput::RULE,
    &jvm::gc_young_frequent::RULE,
    &jvm::gc_young_grown::RULE,
    &jvm::gc_young_long::RULE,
    &device::gro_useless::RULE,
    &jvm::heap_resize::RULE,
    &cpu::idle_but_waiting::RULE,
    &jvm::io_slow::RULE,
    &net::ip_id::RULE,
    &net::iptables_empty::RULE,
    &device::irq_affinity_lag::RULE,
    &device::irq_affinity_reverted::RULE,
    &device::irq_hint_ignored::RULE,
    &device::irq_names_unknown::RULE,
    &device::irq_one_cpu::RULE,
    &device::irq_one_node::RULE,
    &device::irq_rate_high::RULE,
    &jvm::lock_contended::RULE,
    &jvm::lock_wait_ratio::RULE,
    &jvm::log_hot::RULE,
    &firmware::memory_channels::RULE,
    &device::mtu_large_wins::RULE,
    &device::mtu_mismatch::RULE,
    &net::neigh_full::RULE,
    &net::neigh_unanswered::RULE,
    &net::nf_drop::RULE,
    &net::nf_rules_hot::RULE,
    &device::nic_ring_drop::RULE,
    &cpu::noise_gate::RULE,
    &numa::numa_hint_faults::RULE,
    &numa::numa_remote::RULE,
    &net::other_namespaces::RULE,
    &tcp::path_mtu_blackhole::RULE,
    &jvm::pool_self_wait::RULE,
    &net::port_exhaust::RULE,
    &process::priority_low::RULE,
    &process::process_blocked::RULE,
    &process::process_stopped::RULE,
    &process::process_traced::RULE,
    &device::qdisc_limit::RULE,
    &process::realtime_hog::RULE,
    &residual::resource_saturated::RULE,
    &net::reuseport_skew::RULE,
    &net::rp_filter_drop::RULE,
    &tcp::rpc_provider_skew::RULE,
    &tcp::rpc_single_conn::RULE,
    &device::rps_harmful::RULE,
    &device::rps_needed::RULE,
    &device::rps_new_device::RULE,
    &device::rss_skew_flows::RULE,
    &device::rss_table_short::RULE,
    &cpu::runq_delay::RULE,
    &security::sec_audit_hot::RULE,
    &security::selinux_hot::RULE,
    &jvm::serialize_hot::RULE,
    &process::service_restarts::RULE,
    &jvm::shared_wait::RULE,
    &net::slab_hot::RULE,
    &firmware::smt_off::RULE,
    &device::softirq_conc_guest::RULE,
    &net::softnet_drop::RULE,
    &net::softnet_squeeze::RULE,
    &virt::steal::RULE,
    &memory::swap_in::RULE,
    &net::syscall_bound::RULE,
    &process::tasks_full::RULE,
    &tcp::tcp_idle_cwnd::RULE,
    &net::tcp_listen_overflow::RULE,
    &tcp::tcp_memory::RULE,
    &tcp::tcp_nagle_40ms::RULE,
    &tcp::tcp_port_closed::RULE,
    &tcp::tcp_recvq_pile::RULE,
    &tcp::tcp_reordering::RULE,
    &tcp::tcp_reset_unread::RULE,
    &tcp::tcp_retrans::RULE,
    &tcp::tcp_rwnd_limited::RULE,
    &tcp::tcp_sane_flags::RULE,
    &tcp::tcp_sendq_pile::RULE,
    &tcp::tcp_sndbuf_limited::RULE,
    &tcp::tcp_stalled::RULE,
    &net::tcp_synq_full::RULE,
    &memory::thp_stall::RULE,
    &jvm::thread_hot::RULE,
    &jvm::thread_pool_exhausted::RULE,
    &process::thread_saturated::RULE,
    &process::threads_grow::RULE,
    &memory::tlb_bound::RULE,
    &net::tx_qdisc_atomic::RULE,
    &device::tx_queue_lock::RULE,
    &net::udp_mem_pressure::RULE,
    &net::udp_rcvbuf_drop::RULE,
    &net::udp_reader_unbound::RULE,
    &net::udp_reuseport_hash::RULE,
    &net::udp_shared_socket::RULE,
    &net::udp_sndbuf_drop::RULE,
    &net::udp_socket_lock::RULE,
    &cpu::udp_thread_remote::RULE,
    &residual::unexplained_loss::RULE,
    &residual::unexplained_wait::RULE,
    &process::unix_listen_overflow::RULE,
    &process::upstream_pool_full::RULE,
    &process::upstream_slow::RULE,
    &process::user_lock::RULE,
    &jvm::virtual_thread_pinned::RULE,
    &tcp::write_queue_grows::RULE,
];

/// The finding that the load generator was the limit, if it is confident enough that the rate proves nothing else.
pub fn client_limit(findings: &[Finding]) -> Option<&Finding> {
    findings.iter().find(|finding| {
        finding.rule == cpu::client_bound::RULE.id
            && matches!(finding.outcome, Outcome::Act | Outcome::Watch)
            && finding.confidence >= Grade::Medium
    })
}

/// The findings of all rules in this evidence: act first, then watch, undecided, clear; the most severe first.
///
/// Rules about files run only if such a file was given. A host has none by itself, and a row for each of those rules
/// would hide the rows that matter.
pub fn judge(evidence: &Evidence) -> Vec<Finding> {
    let mut findings: Vec<_> = RULES
        .iter()
        .filter(|rule| files_of(rule).is_none_or(|kinds| tells_of(evidence, kinds)))
        .flat_map(|rule| rule.findings(evidence))
        .collect();
    findings.sort_by(|a, b| {
        (
            a.outcome,
            jvm::symptom(&a.rule),
            std::cmp::Reverse((a.severity, a.confidence)),
            &a.rule,
            &a.subject,
        )
            .cmp(&(
                b.outcome,
                jvm::symptom(&b.rule),
                std::cmp::Reverse((b.severity, b.confidence)),
                &b.rule,
                &b.subject,
            ))
    });
    causes::first(&mut findings);
    findings
}

/// What is known from files alone: GC logs, thread dumps, recordings.
const OF_FILES: [&[Kind]; 3] = [GC_LOGS, DUMPS, RECORDINGS];
const GC_LOGS: &[Kind] = &[Kind::Jvm];
const DUMPS: &[Kind] = &[Kind::Dumps, Kind::Deadlock, Kind::Wait];
const RECORDINGS: &[Kind] = &[Kind::Recording];

/// The kinds of subjects that one type of file describes, if the rule reads nothing else.
fn files_of(rule: &Rule) -> Option<&'static [Kind]> {
    let all = |kinds: &&[Kind]| rule.needs.iter().all(|key| kinds.contains(&key.of));
    OF_FILES.into_iter().find(all)
}

fn tells_of(evidence: &Evidence, kinds: &[Kind]) -> bool {
    let mut readings = evidence.readings();
    readings.any(|reading| kinds.contains(&reading.subject.kind()))
}

/// The findings of the rules about GC logs; a log has no evidence for the others.
pub fn judge_logs(evidence: &Evidence) -> Vec<Finding> {
    judge_files(evidence, GC_LOGS)
}

/// The findings of the rules about thread dumps; a dump has no evidence for the others.
pub fn judge_dumps(evidence: &Evidence) -> Vec<Finding> {
    judge_files(evidence, DUMPS)
}

/// The findings of the rules about Flight Recorder files; a recording has no evidence for the others.
pub fn judge_recordings(evidence: &Evidence) -> Vec<Finding> {
    judge_files(evidence, RECORDINGS)
}

/// The findings of the rules about a JVM that need nothing of its host: for files of several types together.
pub fn judge_jvm(evidence: &Evidence) -> Vec<Finding> {
    let is_of_a_jvm = |finding: &Finding| {
        let rule = RULES.iter().find(|rule| rule.id == finding.rule);
        rule.is_some_and(|rule| {
            let mut kinds = rule.needs.iter().map(|key| key.of);
            kinds.all(|kind| OF_FILES.iter().any(|kinds| kinds.contains(&kind)))
        })
    };
    let mut findings = judge(evidence);
    findings.retain(is_of_a_jvm);
    findings
}

fn judge_files(evidence: &Evidence, kinds: &'static [Kind]) -> Vec<Finding> {
    let is_of_them = |finding: &Finding| {
        let rule = RULES.iter().find(|rule| rule.id == finding.rule);
        rule.is_some_and(|rule| files_of(rule) == Some(kinds))
    };
    let mut findings = judge(evidence);
    findings.retain(is_of_them);
    findings
}

#[cfg(test)]
mod tests {
    use rungwise_model::evidence::{Origin, Subject};
    use rungwise_model::keys;

    use super::*;

    #[test]
    fn a_host_without_a_gc_log_or_a_thread_dump_is_not_asked_about_one() {
        let mut evidence = Evidence::over(10.0);
        let asked = |evidence: &Evidence| judge(evidence).iter().any(|f| f.rule == "gc-full");
        assert!(!asked(&evidence));
        let run = Subject::new(Kind::Jvm, 1);
        evidence.number(&keys::GC_FULLS, run, 0.0, Origin::new("GC log", ""));
        assert!(asked(&evidence));
        assert!(judge(&evidence).iter().all(|f| f.rule != "deadlock"));
        assert!(judge_dumps(&evidence).is_empty());
    }
}
