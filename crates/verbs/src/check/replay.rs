//! A capture as a machine that knobs can be read on: its files, network devices and netfilter chains.

use rungwise_host::recorded::Recorded;
use rungwise_host::{BaseChain, DeviceSetting, Feature};
use rungwise_model::kernel::{Answer, NetDevice};
use rungwise_probes::Capture;
use rungwise_probes::capture::{Raw, Reply};

/// The last sample of a capture.
pub(crate) fn host(capture: &Capture) -> Recorded {
    let mut host = Recorded::new("the captured host", 0);
    let Some(last) = capture.moments.last() else {
        return host;
    };
    for (path, raw) in &last.files {
        if let Raw::Text(text) = raw {
            host = host.file(path, text.trim_end());
        }
    }
    if let Some(Reply::Answer(Answer::Netfilter(chains))) = last.answers.get("netfilter") {
        for chain in chains.iter().filter(|chain| !chain.hook.is_empty()) {
            host = host.with_chain(BaseChain {
                family: chain.family.clone(),
                table: chain.table.clone(),
                chain: chain.chain.clone(),
                hook: chain.hook.clone(),
                rules: chain.rules,
            });
        }
    }
    if let Some(Reply::Answer(Answer::Devices(devices))) = last.answers.get("devices") {
        for device in devices {
            for (feature, (on, fixed)) in &device.features {
                let (on, fixed) = (*on, *fixed);
                host = host.with_feature(&device.name, feature, Feature { on, fixed });
            }
            for (setting, value) in settings(device) {
                host = host.with_setting(&device.name, setting, &value);
            }
        }
    }
    host
}

/// What ethtool set on a device, as far as its driver has it.
fn settings(device: &NetDevice) -> Vec<(DeviceSetting, String)> {
    let channels = device.channels.map(|now| {
        spelled([
            ("rx", (now.max_rx > 0).then_some(now.rx)),
            ("tx", (now.max_tx > 0).then_some(now.tx)),
            ("combined", (now.max_combined > 0).then_some(now.combined)),
        ])
    });
    let ring = device.ring.map(|now| {
        spelled([
            ("rx", (now.max_rx > 0).then_some(now.rx)),
            ("tx", (now.max_tx > 0).then_some(now.tx)),
        ])
    });
    let coalesce = device.coalesce.map(|now| {
        let numbers = spelled([
            ("rx-usecs", now.rx_usecs),
            ("rx-frames", now.rx_frames),
            ("tx-usecs", now.tx_usecs),
            ("tx-frames", now.tx_frames),
        ]);
        let on = |is_on: bool| if is_on { "on" } else { "off" };
        let switches = spelled([
            ("adaptive-rx", now.adaptive_rx.map(on)),
            ("adaptive-tx", now.adaptive_tx.map(on)),
        ]);
        format!("{switches} {numbers}")
    });
    let table = device.rss.as_ref().map(|rss| {
        let queues: Vec<String> = rss.table.iter().map(u32::to_string).collect();
        queues.join(",")
    });
    let udp4 = device.rss.as_ref().and_then(|rss| rss.udp4.clone());
    [
        (DeviceSetting::Channels, channels),
        (DeviceSetting::Ring, ring),
        (DeviceSetting::Coalesce, coalesce),
        (DeviceSetting::RssTable, table),
        (DeviceSetting::HashUdp4, udp4),
    ]
    .into_iter()
    .filter_map(|(setting, value)| Some((setting, setting.normal(&value?)?)))
    .collect()
}

/// `rx=2 tx=2`, without the parts that are absent.
fn spelled<const N: usize, T: ToString>(parts: [(&str, Option<T>); N]) -> String {
    let present = parts
        .into_iter()
        .filter_map(|(name, value)| Some(format!("{name}={}", value?.to_string())));
    present.collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use rungwise_knobs::Context;
    use rungwise_model::kernel::{Channels, Coalesce, Ring, Rss};
    use rungwise_probes::Moment;

    use super::*;

    #[test]
    fn knobs_of_a_device_are_read_from_a_capture() {
        let device = NetDevice {
            name: "eth0".to_owned(),
            channels: Some(Channels {
                combined: 4,
                max_combined: 8,
                ..Channels::default()
            }),
            ring: Some(Ring {
                rx: 256,
                tx: 512,
                max_rx: 4096,
                max_tx: 4096,
            }),
            coalesce: Some(Coalesce {
                rx_usecs: Some(3),
                adaptive_rx: Some(false),
                ..Coalesce::default()
            }),
            rss: Some(Rss {
                table: vec![0, 1, 2, 3],
                udp4: Some("sd".to_owned()),
            }),
            ..NetDevice::default()
        };
        let mut last = Moment::default();
        for path in [
            "/sys/class/net/eth0/mtu",
            "/proc/sys/net/ipv4/conf/eth0/rp_filter",
        ] {
            let value = Raw::Text("1".to_owned());
            last.files.insert(path.into(), value);
        }
        last.answers.insert(
            "devices".to_owned(),
            Reply::Answer(Answer::Devices(vec![device])),
        );
        let capture = Capture {
            moments: vec![last],
            ..Capture::default()
        };
        let host = host(&capture);
        let context = Context::of_host(&host, Some("eth0"), &[0, 1]);
        for (id, now) in [
            ("net.queues", "combined=4"),
            ("net.ring", "rx=256 tx=512"),
            ("net.coalesce", "adaptive-rx=off rx-usecs=3"),
        ] {
            let current = rungwise_knobs::find(id).unwrap().current(&context).unwrap();
            assert_eq!(current.value.as_deref(), Ok(now), "{id}");
        }
        for id in ["net.rss_table", "net.rss_hash_fields"] {
            let current = rungwise_knobs::find(id).unwrap().current(&context).unwrap();
            assert!(current.value.is_ok(), "{id}: {:?}", current.value);
        }
    }
}
