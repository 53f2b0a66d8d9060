//! Devices, qdiscs and chains as the kernel tells them, as they are set, and as the peers' tools show them.

use std::collections::BTreeMap;
use std::io::ErrorKind;
use std::path::Path;

use rungwise_host::live::Live;
use rungwise_host::namespace::Namespace;
use rungwise_host::{DeviceSetting, Host};
use rungwise_model::kernel::{Answer, Chain, NetDevice, Qdisc, Question};
use rungwise_testkit::skipped;

use crate::peers::said_in;
use crate::{pair, root_or_skip};

fn device(host: &dyn Host, name: &str) -> NetDevice {
    match host.ask(Question::Devices).unwrap() {
        Answer::Devices(devices) => devices
            .into_iter()
            .find(|found| found.name == name)
            .unwrap(),
        other => panic!("{other:?}"),
    }
}

fn qdiscs(host: &dyn Host) -> Vec<Qdisc> {
    match host.ask(Question::Qdiscs).unwrap() {
        Answer::Qdiscs(qdiscs) => qdiscs,
        other => panic!("{other:?}"),
    }
}

fn chains(host: &dyn Host) -> Vec<Chain> {
    match host.ask(Question::Netfilter).unwrap() {
        Answer::Netfilter(chains) => chains,
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_veth_tells_what_it_has_and_why_the_rest_is_missing() {
    if !root_or_skip() {
        return;
    }
    let (near, _far) = pair();
    let veth = device(&near, "srv0");
    assert_eq!((veth.kind.as_str(), veth.up), ("veth", true));
    assert_eq!((veth.num_rx_queues, veth.num_tx_queues), (2, 2));
    let channels = veth.channels.unwrap();
    assert_eq!((channels.rx, channels.tx, channels.combined), (2, 2, 0));
    assert_eq!((channels.max_rx, channels.max_tx), (2, 2));
    assert_eq!(veth.driver.unwrap().driver, "veth");
    assert!(veth.statistics.contains_key("peer_ifindex"));
    for part in ["ring", "coalesce", "rss"] {
        assert_eq!(veth.refused[part], "EOPNOTSUPP", "{part}");
    }
    let lo = device(&near, "lo");
    assert_eq!((lo.kind.as_str(), lo.channels), ("", None));
    assert_eq!(lo.refused["channels"], "EOPNOTSUPP");
    let Some(said) = said_in(&near, "ethtool -k srv0") else {
        return;
    };
    let mut compared = 0;
    for line in said.lines() {
        let (name, state) = line.trim().split_once(": ").unwrap_or_default();
        // Some lines go by old names of their own.
        if let Some((on, fixed)) = veth.features.get(name) {
            let state_of_ours = format!(
                "{}{}",
                if *on { "on" } else { "off" },
                if *fixed { " [fixed]" } else { "" }
            );
            assert_eq!(state_of_ours, state, "{name}");
            compared += 1;
        }
    }
    assert!(compared > 30, "{compared} features of {said}");
}

#[test]
fn channels_are_set_in_part_and_a_refusal_has_the_kernels_words() {
    if !root_or_skip() {
        return;
    }
    let (near, _far) = pair();
    let read = || {
        near.device_setting("srv0", DeviceSetting::Channels)
            .unwrap()
    };
    let set = |value| near.set_device("srv0", DeviceSetting::Channels, value);
    assert_eq!(read(), "rx=2 tx=2");
    set("rx=1").unwrap();
    assert_eq!(read(), "rx=1 tx=2");
    let channels = device(&near, "srv0").channels.unwrap();
    assert_eq!((channels.rx, channels.tx), (1, 2));
    set("rx=2 tx=2").unwrap();
    let error = set("rx=9").unwrap_err();
    assert!(error.to_string().contains("exceeds maximum"), "{error}");
    let error = set("combined=1").unwrap_err();
    assert!(error.to_string().contains("has no combined"), "{error}");
    assert_eq!(read(), "rx=2 tx=2");
    let error = near
        .device_setting("srv0", DeviceSetting::Ring)
        .unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unsupported);
}

#[test]
fn coalescing_goes_round_and_has_only_what_the_driver_has() {
    if !root_or_skip() {
        return;
    }
    let lab = Namespace::create("tap").unwrap();
    // A tap device coalesces by frames, nothing else.
    if !Path::new("/dev/net/tun").exists()
        || said_in(&lab, "ip tuntap add dev tap0 mode tap").is_none()
    {
        skipped("no tap device");
        return;
    }
    let coalesce = device(&lab, "tap0").coalesce.unwrap();
    assert_eq!((coalesce.rx_usecs, coalesce.adaptive_rx), (None, None));
    let before = lab.device_setting("tap0", DeviceSetting::Coalesce).unwrap();
    assert_eq!(before, "rx-frames=0");
    lab.set_device("tap0", DeviceSetting::Coalesce, "rx-frames=8")
        .unwrap();
    assert_eq!(device(&lab, "tap0").coalesce.unwrap().rx_frames, Some(8));
    lab.set_device("tap0", DeviceSetting::Coalesce, &before)
        .unwrap();
    let error = lab
        .set_device("tap0", DeviceSetting::Coalesce, "rx-usecs=8")
        .unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unsupported, "{error}");
}

#[test]
fn a_root_qdisc_of_ours_comes_and_goes_and_a_strangers_stays() {
    if !root_or_skip() {
        return;
    }
    let (near, _far) = pair();
    let read = || {
        near.device_setting("srv0", DeviceSetting::RootQdisc)
            .unwrap()
    };
    let set = |value| near.set_device("srv0", DeviceSetting::RootQdisc, value);
    let before = qdiscs(&near);
    assert_eq!(read(), "default");
    for kind in ["pfifo", "bfifo", "pfifo"] {
        set(kind).unwrap();
        assert_eq!(read(), kind);
    }
    let root = |qdisc: &&Qdisc| qdisc.device == "srv0" && qdisc.parent == "root";
    let listed = qdiscs(&near);
    let found = listed.iter().find(root).unwrap();
    assert_eq!(
        (found.kind.as_str(), found.handle.as_str()),
        ("pfifo", "7277:")
    );
    let error = set("nosuchqdisc").unwrap_err();
    assert!(error.to_string().contains("qdisc"), "{error}");
    assert_eq!(read(), "pfifo", "the old one is back");
    set("default").unwrap();
    assert_eq!(qdiscs(&near), before);
    if said_in(&near, "tc qdisc add dev srv0 root handle 1: htb").is_none() {
        return;
    }
    assert_eq!(read(), "htb 1:");
    for value in ["default", "pfifo"] {
        let error = set(value).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::PermissionDenied, "{error}");
    }
    set("htb 1:").unwrap();
    let said = said_in(&near, "tc qdisc show").unwrap();
    for qdisc in qdiscs(&near) {
        let parent = match qdisc.parent.as_str() {
            "root" => "root".to_owned(),
            parent => format!("parent {parent}"),
        };
        let line = format!(
            "qdisc {} {} dev {} {parent}",
            qdisc.kind, qdisc.handle, qdisc.device
        );
        assert!(said.contains(&line), "{line} is not in {said}");
    }
}

#[test]
fn packets_of_a_qdisc_are_counted() {
    if !root_or_skip() {
        return;
    }
    let (near, _far) = pair();
    near.set_device("srv0", DeviceSetting::RootQdisc, "pfifo")
        .unwrap();
    let packets = || {
        let found = qdiscs(&near);
        let root = found.iter().find(|qdisc| qdisc.device == "srv0");
        root.unwrap().packets
    };
    let before = packets();
    let socket = near
        .run(|| std::net::UdpSocket::bind("10.77.0.1:0"))
        .unwrap();
    for _ in 0..10 {
        socket.send_to(b"ping", "10.77.0.2:9").unwrap();
    }
    assert_eq!(packets() - before, 10);
}

#[test]
fn chains_have_their_policy_and_exactly_their_rules() {
    if !root_or_skip() {
        return;
    }
    let lab = Namespace::create("chains").unwrap();
    assert_eq!(chains(&lab), []);
    lab.plant_chains("ours").unwrap();
    let [input, output] = &chains(&lab)[..] else {
        panic!("two chains");
    };
    assert_eq!(
        (input.hook.as_str(), output.hook.as_str()),
        ("input", "output")
    );
    assert_eq!((input.policy.as_str(), input.rules), ("accept", 1));
    for command in [
        "nft add table ip filter",
        "nft add chain ip filter forward { type filter hook forward priority 0 ; policy drop ; }",
        "nft add chain ip filter services",
        "nft add chain ip filter unused",
        "nft add rule ip filter forward jump services",
        "nft add rule ip filter forward counter jump services",
        "nft add rule ip filter services tcp dport 80 accept",
    ] {
        if said_in(&lab, command).is_none() {
            return;
        }
    }
    let ours: BTreeMap<(String, String, String), Chain> = chains(&lab)
        .into_iter()
        .map(|chain| {
            let key = (
                chain.family.clone(),
                chain.table.clone(),
                chain.chain.clone(),
            );
            (key, chain)
        })
        .collect();
    let filter = |chain: &str| &ours[&("ip".to_owned(), "filter".to_owned(), chain.to_owned())];
    assert_eq!(filter("forward").policy, "drop");
    assert_eq!(filter("forward").hook, "forward");
    assert_eq!((filter("services").rules, filter("unused").rules), (1, 0));
    assert_eq!(filter("services").hook, "");
    let said = said_in(&lab, "nft -j list ruleset").unwrap();
    let said: serde_json::Value = serde_json::from_str(&said).unwrap();
    let mut theirs: BTreeMap<(String, String, String), u32> = BTreeMap::new();
    for item in said["nftables"].as_array().unwrap() {
        let key = |object: &serde_json::Value, chain: &str| {
            ["family", "table", chain].map(|part| object[part].as_str().unwrap().to_owned())
        };
        if let Some(chain) = item.get("chain") {
            theirs.entry(key(chain, "name").into()).or_default();
        }
        if let Some(rule) = item.get("rule") {
            *theirs.entry(key(rule, "chain").into()).or_default() += 1;
        }
    }
    let ours: BTreeMap<_, _> = ours
        .into_iter()
        .map(|(key, chain)| (key, chain.rules))
        .collect();
    assert_eq!(ours, theirs);
}

#[test]
fn asking_everything_changes_nothing() {
    if !root_or_skip() {
        return;
    }
    let (near, _far) = pair();
    let state = || {
        let files = [
            "/proc/net/ip_tables_names",
            "/proc/net/ip6_tables_names",
            "/proc/modules",
            "/proc/self/mountinfo",
        ];
        let texts = files.map(|path| near.text(Path::new(path)).ok());
        let tools = ["nft list ruleset", "tc qdisc show", "ip -d link", "ip rule"]
            .map(|command| said_in(&near, command));
        let settings = DeviceSetting::ALL.map(|setting| near.device_setting("srv0", setting).ok());
        (texts, tools, settings)
    };
    let before = state();
    for question in [
        Question::Tcp,
        Question::Udp,
        Question::Unix,
        Question::Devices,
        Question::Qdiscs,
        Question::Netfilter,
        Question::Owners,
    ] {
        near.ask(question).unwrap();
    }
    let _ = near.ask(Question::Audit);
    assert_eq!(state(), before);
}

#[test]
fn audit_answers_or_says_why_not() {
    match Live.ask(Question::Audit) {
        Ok(Answer::Audit(audit)) => assert!(audit.enabled <= 2, "{audit:?}"),
        Ok(other) => panic!("{other:?}"),
        // Not root, in a container, or without CONFIG_AUDIT: said, not waited for.
        Err(error) => assert_ne!(error.kind(), ErrorKind::TimedOut, "{error}"),
    }
}
