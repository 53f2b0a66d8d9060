//! A machine that never was, with everything the knobs touch.

use rungwise_host::recorded::{Recorded, Stored};
use rungwise_host::{BaseChain, Feature};

/// The device of the invented machine.
pub const DEVICE: &str = "veth0";

/// Its queues, each direction.
pub const QUEUES: usize = 2;

/// Its boot.
pub const BOOT_ID: &str = "6a3f1f0e-0000-4000-8000-000000000001";

/// A machine with two CPUs, one device with two queues each way, and a firewall that is not ours.
pub fn invented(name: &str, netns: u64) -> Recorded {
    let net = format!("/sys/class/net/{DEVICE}");
    let mut host = Recorded::new(name, netns)
        .file("/proc/sys/kernel/random/boot_id", BOOT_ID)
        .file("/proc/cmdline", "quiet audit=0 secret=hunter2")
        .file("/sys/devices/system/cpu/smt/control", "notsupported")
        .file("/proc/sys/net/core/netdev_budget", "300")
        .file("/proc/sys/net/core/netdev_budget_usecs", "8000")
        .file("/proc/sys/net/core/netdev_max_backlog", "1000")
        .stored(
            "/proc/sys/net/core/rps_sock_flow_entries",
            "0",
            Stored::PowerOfTwo,
        )
        .file(&format!("{net}/ifindex"), "7")
        .file(&format!("{net}/threaded"), "0")
        .file(&format!("{net}/napi_defer_hard_irqs"), "0")
        .file(&format!("{net}/gro_flush_timeout"), "0")
        .with_chain(BaseChain {
            family: "ip".to_owned(),
            table: "firewall".to_owned(),
            chain: "input".to_owned(),
            hook: "input".to_owned(),
            rules: 7,
        });
    for (name, value) in [
        ("rmem_max", "4194304"),
        ("wmem_max", "4194304"),
        ("rmem_default", "212992"),
        ("wmem_default", "212992"),
    ] {
        host = host.file(&format!("/proc/sys/net/core/{name}"), value);
    }
    for device in ["all", DEVICE] {
        for (name, value) in [("rp_filter", "1"), ("accept_local", "0")] {
            host = host.file(&format!("/proc/sys/net/ipv4/conf/{device}/{name}"), value);
        }
    }
    for queue in 0..QUEUES {
        let rx = format!("{net}/queues/rx-{queue}");
        let tx = format!("{net}/queues/tx-{queue}");
        host = host
            .stored(&format!("{rx}/rps_cpus"), "0", Stored::Mask(2))
            .stored(&format!("{rx}/rps_flow_cnt"), "0", Stored::PowerOfTwo)
            .stored(&format!("{tx}/xps_cpus"), "0", Stored::Mask(2));
    }
    for (feature, on) in [
        ("rx-gro", false),
        ("rx-gro-list", false),
        ("rx-udp-gro-forwarding", false),
        ("tx-generic-segmentation", true),
        ("tx-tcp-segmentation", true),
    ] {
        host = host.with_feature(DEVICE, feature, Feature { on, fixed: false });
    }
    host
}
