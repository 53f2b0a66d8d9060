//! Identity of each device: `/sys/class/net` and rtnetlink.
//!
//! rtnetlink names the kind of a virtual device (`IFLA_INFO_KIND`); without it, the device's `uevent` names the
//! more common ones. Sources: net/core/net-sysfs.c, net/core/rtnetlink.c (Linux 6.18).

use std::collections::{BTreeMap, BTreeSet};

use rungwise_model::evidence::{Absence, Evidence, Origin, Subject};
use rungwise_model::kernel::{NetDevice, Question};
use rungwise_model::keys;

use super::{NETLINK, devices};
use crate::{Cost, Probe, Source, When, Window, enter};

/// Speed of the link, Mbit/s.
pub(super) const SPEED: &str = "/sys/class/net/*/speed";
const BUS: &str = "/sys/class/net/*/device/uevent";
const INDEX: &str = "/sys/class/net/*/ifindex";
const MTU: &str = "/sys/class/net/*/mtu";
const NODE: &str = "/sys/class/net/*/device/numa_node";
const RX_QUEUES: &str = "/sys/class/net/*/queues/rx-*/rps_cpus";
const STATE: &str = "/sys/class/net/*/operstate";
/// A file that every transmit queue has, whatever its contents.
pub(super) const TX_QUEUES: &str = "/sys/class/net/*/queues/tx-*/tx_timeout";
const TYPE: &str = "/sys/class/net/*/type";
const UEVENT: &str = "/sys/class/net/*/uevent";

/// Kinds of tunnels whose datagrams the kernel merges, so that GRO helps although all traffic is UDP.
const MERGING: &[&str] = &["geneve", "vxlan", "wireguard"];

/// Common names of rtnetlink kinds; all others are virtual.
const KINDS: &[(&str, &[&str])] = &[
    ("bond", &["bond", "team"]),
    ("bridge", &["bridge", "openvswitch"]),
    (
        "tunnel",
        &[
            "amt",
            "bareudp",
            "erspan",
            "geneve",
            "gre",
            "gretap",
            "gtp",
            "ip6erspan",
            "ip6gre",
            "ip6gretap",
            "ip6tnl",
            "ipip",
            "sit",
            "vti",
            "vti6",
            "vxlan",
            "wireguard",
            "xfrm",
        ],
    ),
    ("vlan", &["vlan"]),
];

/// The probe.
pub(crate) static PROBE: Probe = Probe {
    id: "sys-class-net",
    summary: "kind, speed, MTU, NUMA node, state and queues of each device",
    cost: Cost::Cheap,
    needs: &[],
    sources: &[
        Source::ask(Question::Devices, When::Ends),
        Source::once(BUS),
        Source::once(INDEX),
        Source::once(MTU),
        Source::once(NODE),
        Source::once(RX_QUEUES),
        Source::once(SPEED),
        Source::once(STATE),
        Source::once(TX_QUEUES),
        Source::once(TYPE),
        Source::once(UEVENT),
    ],
    yields: &[
        &keys::DEVICE_BORN,
        &keys::DEVICE_KIND,
        &keys::DEVICE_MTU,
        &keys::DEVICE_NODE,
        &keys::DEVICE_SPEED,
        &keys::DEVICE_UP,
        &keys::QUEUES_RX,
        &keys::QUEUES_TX,
        &keys::TUNNEL_PRESENT,
    ],
    derive,
    doc: "\
A device counts as hardware if it is on a bus, including a paravirtual one. The speed of a virtual device is \
fictitious (veth and bridge report 10000) or absent. NUMA node -1 means that the firmware does not report it: the key \
is absent, not node 0; a virtio device has no node of its own. `operstate` is `unknown` for drivers that cannot detect \
a carrier, and such a device is up; a device without carrier is `down` or `lowerlayerdown`. Queues are those in use by \
the network stack; ethtool reports how many a driver supports. Sources: net/core/net-sysfs.c, net/core/rtnetlink.c of \
Linux 6.18; Documentation/ABI/testing/sysfs-class-net.",
};

fn derive(window: &Window<'_>, evidence: &mut Evidence) {
    let asked = devices(window);
    let known: BTreeMap<&str, &NetDevice> = match &asked {
        Ok(devices) => devices
            .iter()
            .map(|device| (&*device.name, device))
            .collect(),
        Err(_) => BTreeMap::new(),
    };
    let shown = window.matching(STATE).into_iter();
    let shown = shown.filter_map(|(_, stars)| stars.first().copied());
    let names: BTreeSet<&str> = known.keys().copied().chain(shown).collect();
    let none = match asked {
        Err(why) if names.is_empty() => why,
        _ => Absence::because("no network device reports it"),
    };
    let mut tunnels = Vec::new();
    for name in &names {
        let device = One { window, name };
        let answer = known.get(name).copied();
        let kind = device.kind(answer);
        if MERGING.contains(&kind) {
            tunnels.push(format!("{kind} ({name})"));
        }
        device.describe(kind, evidence);
        device.state(answer, evidence);
        device.queues(answer, evidence);
    }
    if !names.is_empty() {
        let origin = Origin::new(NETLINK, format!("{} devices", names.len()));
        let tunnels = tunnels.join(", ");
        evidence.text(&keys::TUNNEL_PRESENT, Subject::host(), tunnels, origin);
    }
    enter::absent_if_unset(evidence, PROBE.yields, &none, NETLINK);
}

/// Bytes per second that the link carries in one direction, and the text of the file.
pub(super) fn speed<'a>(window: &Window<'a>, device: &str) -> Result<(f64, &'a str), Absence> {
    let unknown = || Absence::none("the device reports no link speed");
    let path = SPEED.replace('*', device);
    let text = window.text(&path).map_err(|_| unknown())?.trim();
    match text.parse::<i64>() {
        // Unknown is -1, which older kernels print without a sign, of 32 or of 16 bits.
        Ok(mbit) if mbit > 0 && mbit != i64::from(u32::MAX) && mbit != i64::from(u16::MAX) => {
            Ok((mbit as f64 * 1e6 / 8.0, text))
        }
        _ => Err(unknown()),
    }
}

/// One device.
struct One<'w, 'a> {
    window: &'w Window<'a>,
    name: &'a str,
}

impl<'a> One<'_, 'a> {
    fn subject(&self) -> Subject {
        Subject::device(self.name)
    }

    fn text(&self, pattern: &str) -> Result<(String, &'a str), Absence> {
        let path = pattern.replacen('*', self.name, 1);
        let text = self.window.text(&path)?.trim();
        Ok((path, text))
    }

    /// A number of a file, and its path.
    fn number(&self, pattern: &str) -> Result<(f64, Origin), Absence> {
        let (path, text) = self.text(pattern)?;
        let number: i64 = text.parse().map_err(|_| {
            Absence::because(format!("{path} contains '{text}', which is not a number"))
        })?;
        Ok((number as f64, Origin::new(path, text)))
    }

    /// `IFLA_INFO_KIND`, or what the device's `uevent` calls it; empty for hardware and the loopback.
    fn kind(&self, answer: Option<&'a NetDevice>) -> &'a str {
        if let Some(device) = answer {
            return &device.kind;
        }
        let of = |text: &'a str| text.lines().find_map(|line| line.strip_prefix("DEVTYPE="));
        self.text(UEVENT)
            .ok()
            .and_then(|(_, text)| of(text))
            .unwrap_or_default()
    }

    /// Its kind as in the key, and why.
    fn called(&self, kind: &str) -> (&'static str, String) {
        // ARPHRD_LOOPBACK of include/uapi/linux/if_arp.h.
        if self.name == "lo" || self.text(TYPE).is_ok_and(|(_, text)| text == "772") {
            return ("loopback", "type 772".to_owned());
        }
        let word = KINDS.iter().find(|(_, kinds)| kinds.contains(&kind));
        if let Some((word, _)) = word {
            return (word, format!("kind {kind}"));
        }
        match self.text(BUS) {
            Ok((_, uevent)) if !matches!(kind, "veth" | "tun" | "dummy") => {
                ("hardware", uevent.replace('\n', " "))
            }
            _ => ("virtual", format!("kind '{kind}', no bus")),
        }
    }

    fn describe(&self, kind: &str, evidence: &mut Evidence) {
        let (word, line) = self.called(kind);
        let origin = Origin::new(NETLINK, line);
        evidence.text(&keys::DEVICE_KIND, self.subject(), word, origin);
        for (key, read) in [
            (&keys::DEVICE_MTU, self.number(MTU)),
            (&keys::DEVICE_NODE, self.node()),
            (&keys::DEVICE_SPEED, self.speed()),
        ] {
            match read {
                Ok((number, origin)) => evidence.number(key, self.subject(), number, origin),
                Err(why) => {
                    let origin = Origin::new(format!("/sys/class/net/{}", self.name), "");
                    enter::absent(evidence, key, self.subject(), why, origin);
                }
            }
        }
    }

    fn node(&self) -> Result<(f64, Origin), Absence> {
        match self.number(NODE) {
            Ok((node, origin)) if node >= 0.0 => Ok((node, origin)),
            Ok(_) => Err(Absence::because(
                "the firmware does not report its NUMA node",
            )),
            Err(_) => Err(Absence::because("it has no NUMA node of its own")),
        }
    }

    fn speed(&self) -> Result<(f64, Origin), Absence> {
        let (speed, text) = speed(self.window, self.name)?;
        let path = SPEED.replace('*', self.name);
        Ok((speed, Origin::new(path, format!("{text} Mbit/s"))))
    }

    fn state(&self, answer: Option<&NetDevice>, evidence: &mut Evidence) {
        let up = match (self.text(STATE), answer) {
            (Ok((path, text)), _) => {
                Ok((matches!(text, "up" | "unknown"), Origin::new(path, text)))
            }
            (_, Some(device)) => {
                let line = format!("up and running: {}", device.up);
                Ok((device.up, Origin::new(NETLINK, line)))
            }
            (Err(why), None) => Err(why),
        };
        let (up, origin) = match up {
            Ok((up, origin)) => (Ok(f64::from(u8::from(up))), origin),
            Err(why) => (Err(why), Origin::new(NETLINK, "")),
        };
        enter::number(evidence, &keys::DEVICE_UP, self.subject(), up, origin);
        let born = self.number(INDEX).or_else(|why| match answer {
            Some(device) => {
                let origin = Origin::new(NETLINK, format!("ifindex {}", device.index));
                Ok((f64::from(device.index), origin))
            }
            None => Err(why),
        });
        let (born, origin) = match born {
            Ok((born, origin)) => (Ok(born), origin),
            Err(why) => (Err(why), Origin::new(NETLINK, "")),
        };
        enter::number(evidence, &keys::DEVICE_BORN, self.subject(), born, origin);
    }

    fn queues(&self, answer: Option<&NetDevice>, evidence: &mut Evidence) {
        for (key, pattern, reported) in [
            (
                &keys::QUEUES_RX,
                RX_QUEUES,
                answer.map(|device| device.num_rx_queues),
            ),
            (
                &keys::QUEUES_TX,
                TX_QUEUES,
                answer.map(|device| device.num_tx_queues),
            ),
        ] {
            let pattern = pattern.replacen('*', self.name, 1);
            let shown = self.window.matching(&pattern).len();
            let (count, origin) = match reported {
                _ if shown > 0 => (
                    Ok(shown as f64),
                    Origin::new(pattern, format!("{shown} queues")),
                ),
                // If the stack's own view is hidden: the number allocated.
                Some(reported) if reported > 0 => (
                    Ok(f64::from(reported)),
                    Origin::new(NETLINK, format!("{reported} queues")),
                ),
                _ => {
                    let why = Absence::because(format!("nothing matches {pattern}"));
                    (Err(why), Origin::new(NETLINK, ""))
                }
            };
            enter::number(evidence, key, self.subject(), count, origin);
        }
    }
}
