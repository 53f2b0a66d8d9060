//! The sysctls that a network service may depend on, one reading each: no rule reads them, but `compare` shows where
//! two hosts differ.
//!
//! A list and no pattern: some files below `/proc/sys` hold secrets (`tcp_fastopen_key`), and some do something
//! when read (`vm/stat_refresh`). Source: Documentation/admin-guide/sysctl and Documentation/networking/ip-sysctl.rst
//! of Linux 6.18.

use rungwise_model::evidence::{Absence, Evidence, Kind, Origin, Subject};
use rungwise_model::keys;

use crate::{Cost, Probe, Source, Window};

const ROOT: &str = "/proc/sys/";

/// The probe.
pub(crate) static PROBE: Probe = Probe {
    id: "proc-sys",
    summary: "current sysctls of the kernel, the network and memory",
    cost: Cost::Free,
    needs: &[],
    sources: SOURCES,
    yields: &[&keys::SYSCTL_VALUE],
    derive,
    doc: "\
Each sysctl that a knob turns or that common tuning guides name, as one reading. Sysctls that this kernel lacks are \
missing; between two hosts that is a difference as well. Many belong to the network namespace of the reader, and a \
container sees fewer of them. Source: Documentation/admin-guide/sysctl and Documentation/networking/ip-sysctl.rst of \
Linux 6.18.",
};

macro_rules! sources {
    ($($path:literal)*) => { &[$(Source::once(concat!("/proc/sys/", $path))),*] };
}

const SOURCES: &[Source] = sources![
    "fs/file-max"
    "fs/nr_open"
    "kernel/nmi_watchdog"
    "kernel/numa_balancing"
    "kernel/perf_event_paranoid"
    "kernel/pid_max"
    "kernel/sched_autogroup_enabled"
    "kernel/sched_rt_runtime_us"
    "kernel/threads-max"
    "kernel/timer_migration"
    "net/core/bpf_jit_enable"
    "net/core/busy_poll"
    "net/core/busy_read"
    "net/core/default_qdisc"
    "net/core/dev_weight"
    "net/core/flow_limit_cpu_bitmap"
    "net/core/gro_normal_batch"
    "net/core/netdev_budget"
    "net/core/netdev_budget_usecs"
    "net/core/netdev_max_backlog"
    "net/core/netdev_tstamp_prequeue"
    "net/core/optmem_max"
    "net/core/rmem_default"
    "net/core/rmem_max"
    "net/core/rps_default_mask"
    "net/core/rps_sock_flow_entries"
    "net/core/somaxconn"
    "net/core/wmem_default"
    "net/core/wmem_max"
    "net/ipv4/ip_early_demux"
    "net/ipv4/ip_forward"
    "net/ipv4/ip_local_port_range"
    "net/ipv4/ip_no_pmtu_disc"
    "net/ipv4/ipfrag_high_thresh"
    "net/ipv4/neigh/default/gc_thresh1"
    "net/ipv4/neigh/default/gc_thresh2"
    "net/ipv4/neigh/default/gc_thresh3"
    "net/ipv4/tcp_abort_on_overflow"
    "net/ipv4/tcp_autocorking"
    "net/ipv4/tcp_congestion_control"
    "net/ipv4/tcp_dsack"
    "net/ipv4/tcp_early_demux"
    "net/ipv4/tcp_ecn"
    "net/ipv4/tcp_fastopen"
    "net/ipv4/tcp_fin_timeout"
    "net/ipv4/tcp_keepalive_time"
    "net/ipv4/tcp_limit_output_bytes"
    "net/ipv4/tcp_max_syn_backlog"
    "net/ipv4/tcp_max_tw_buckets"
    "net/ipv4/tcp_mem"
    "net/ipv4/tcp_moderate_rcvbuf"
    "net/ipv4/tcp_mtu_probing"
    "net/ipv4/tcp_notsent_lowat"
    "net/ipv4/tcp_rmem"
    "net/ipv4/tcp_sack"
    "net/ipv4/tcp_slow_start_after_idle"
    "net/ipv4/tcp_syncookies"
    "net/ipv4/tcp_timestamps"
    "net/ipv4/tcp_tw_reuse"
    "net/ipv4/tcp_window_scaling"
    "net/ipv4/tcp_wmem"
    "net/ipv4/udp_early_demux"
    "net/ipv4/udp_mem"
    "net/ipv4/udp_rmem_min"
    "net/netfilter/nf_conntrack_buckets"
    "net/netfilter/nf_conntrack_max"
    "vm/dirty_background_bytes"
    "vm/dirty_background_ratio"
    "vm/dirty_bytes"
    "vm/dirty_expire_centisecs"
    "vm/dirty_ratio"
    "vm/max_map_count"
    "vm/min_free_kbytes"
    "vm/nr_hugepages"
    "vm/overcommit_memory"
    "vm/stat_interval"
    "vm/swappiness"
    "vm/watermark_scale_factor"
    "vm/zone_reclaim_mode"
];

fn derive(window: &Window<'_>, evidence: &mut Evidence) {
    let none = Absence::because("no sysctl below /proc/sys could be read");
    evidence.absent(PROBE.yields, &none, ROOT);
    for source in SOURCES {
        let crate::What::Files(path) = source.what else {
            continue;
        };
        let (Some(name), Ok(text)) = (path.strip_prefix(ROOT), window.text(path)) else {
            continue;
        };
        // Some hold several numbers with tabs between them.
        let value = text.split_whitespace().collect::<Vec<_>>().join(" ");
        let subject = Subject::new(Kind::Setting, name.replace('/', "."));
        let origin = Origin::new(path, value.clone());
        evidence.text(&keys::SYSCTL_VALUE, subject, value, origin);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::capture::{Capture, Moment, Raw};

    #[test]
    fn a_sysctl_is_reported_by_its_name_and_what_is_not_there_is_not() {
        let mut moment = Moment::default();
        let text = Raw::Text("4096\t131072\t6291456\n".to_owned());
        let path = "/proc/sys/net/ipv4/tcp_rmem".to_owned();
        moment.files.insert(path, text);
        let capture = Capture {
            moments: vec![moment],
            ..Capture::default()
        };
        let mut evidence = Evidence::over(0.0);
        derive(&Window::of(&capture), &mut evidence);
        let all = evidence.each_words(&keys::SYSCTL_VALUE).unwrap();
        assert_eq!(all.len(), 1);
        assert_eq!(all[0].0.to_string(), "setting/net.ipv4.tcp_rmem");
        assert_eq!(all[0].1.value, "4096 131072 6291456");
    }
}
