//! A record of a real machine's settings, to prove that a test left it exactly as it was.

use std::collections::BTreeMap;
use std::path::Path;

use rungwise_host::{DeviceSetting, Host, files};

/// Everything that rungwise could have left behind, as text by name.
pub type Record = BTreeMap<String, String>;

/// What the knobs touch on a device's queue.
const QUEUE_FILES: [&str; 4] = ["rps_cpus", "rps_flow_cnt", "xps_cpus", "xps_rxqs"];

/// What they touch on a device.
const DEVICE_FILES: [&str; 6] = [
    "mtu",
    "tx_queue_len",
    "threaded",
    "napi_defer_hard_irqs",
    "gro_flush_timeout",
    "ifindex",
];

/// Features that the knobs switch.
const FEATURES: [&str; 5] = [
    "rx-gro",
    "rx-gro-list",
    "rx-udp-gro-forwarding",
    "tx-generic-segmentation",
    "tx-tcp-segmentation",
];

/// Reads all settings below `/proc/sys/net`, of devices and their queues, and chains of `host`, and the names of
/// network namespaces. What cannot be read is recorded as such.
pub fn record(host: &dyn Host) -> Record {
    let mut record = Record::new();
    sysctls(host, Path::new("/proc/sys/net"), &mut record);
    let net = Path::new("/sys/class/net");
    for device in host.list(net).unwrap_or_default() {
        let dir = net.join(&device);
        for name in DEVICE_FILES {
            file(host, &dir.join(name), &mut record);
        }
        for queue in host.list(&dir.join("queues")).unwrap_or_default() {
            for name in QUEUE_FILES {
                file(
                    host,
                    &dir.join("queues").join(&queue).join(name),
                    &mut record,
                );
            }
        }
        for setting in DeviceSetting::ALL {
            if let Ok(value) = host.device_setting(&device, setting) {
                record.insert(format!("{setting} of {device}"), value);
            }
        }
        for feature in FEATURES {
            if let Ok(state) = host.feature(&device, feature) {
                record.insert(format!("{device} {feature}"), state.on.to_string());
            }
        }
    }
    let chains = host.base_chains();
    record.insert("base chains".to_owned(), format!("{chains:?}"));
    let names = files::list(Path::new("/run/netns")).unwrap_or_default();
    record.insert("named namespaces".to_owned(), names.join(" "));
    record
}

/// Lines `name: before -> after` for whatever differs.
pub fn differences(before: &Record, after: &Record) -> Vec<String> {
    let absent = "(absent)".to_owned();
    let mut names: Vec<&String> = before.keys().chain(after.keys()).collect();
    names.sort();
    names.dedup();
    names
        .into_iter()
        .filter(|name| before.get(*name) != after.get(*name))
        .map(|name| {
            let of = |record: &Record| record.get(name).unwrap_or(&absent).clone();
            format!("{name}: {} -> {}", of(before), of(after))
        })
        .collect()
}

fn sysctls(host: &dyn Host, dir: &Path, record: &mut Record) {
    for name in host.list(dir).unwrap_or_default() {
        let path = dir.join(&name);
        // Counters that change by themselves.
        if ["cache_stats", "netdev_rss_key", "nf_conntrack_count"].contains(&name.as_str()) {
            continue;
        }
        if path.is_dir() {
            sysctls(host, &path, record);
        } else {
            file(host, &path, record);
        }
    }
}

fn file(host: &dyn Host, path: &Path, record: &mut Record) {
    if let Ok(value) = host.text(path) {
        record.insert(path.display().to_string(), value);
    }
}
