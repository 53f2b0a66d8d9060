//! Driver, features, rings, moderation and receive side scaling of each device, from ethtool.
//!
//! What a driver lacks or does not report is absent for that device, with the kernel's error as the reason. Source:
//! net/ethtool/ (Linux 6.18).

use std::collections::BTreeSet;

use rungwise_model::evidence::{Absence, Evidence, Key, Origin, Subject};
use rungwise_model::kernel::{NetDevice, Question};
use rungwise_model::keys;

use super::devices;
use crate::{Cost, Probe, Source, When, Window, enter};

/// The probe.
pub(crate) static PROBE: Probe = Probe {
    id: "ethtool",
    summary: "driver, GRO, rings, interrupt moderation and indirection table of each device",
    cost: Cost::Cheap,
    needs: &[],
    sources: &[Source::ask(Question::Devices, When::Ends)],
    yields: &[
        &keys::COALESCE_ADAPTIVE,
        &keys::COALESCE_RX_USECS,
        &keys::DEVICE_DRIVER,
        &keys::DEVICE_GRO,
        &keys::QUEUES_MAXIMUM,
        &keys::RING_RX,
        &keys::RING_RX_MAXIMUM,
        &keys::RSS_TABLE_QUEUES,
        &keys::RSS_TABLE_SIZE,
        &keys::RSS_UDP4_FIELDS,
    ],
    derive,
    doc: "\
veth has neither ring, moderation nor indirection table; virtio_net has a ring and moderation only if the hypervisor \
offers them. GRO `on (fixed)` cannot be switched off. RSS spreads packets over the distinct queues in the indirection \
table, whatever the number of queues: the 82599 has 64 queues and a table whose entries end at 15. Drivers report a \
coalescing time of 0 both for none and for adaptive, so read both values together. Sources: net/ethtool/ of Linux \
6.18; ethtool(8).",
};

fn derive(window: &Window<'_>, evidence: &mut Evidence) {
    let devices = match devices(window) {
        Ok(devices) => devices,
        Err(why) => return evidence.absent(PROBE.yields, &why, "ethtool"),
    };
    for device in devices {
        let mut readings = DeviceReadings { device, evidence };
        readings.driver();
        readings.gro();
        readings.coalescing();
        readings.rings();
        readings.rss();
    }
    let none = Absence::because("no network device has it or reports it");
    enter::absent_if_unset(evidence, PROBE.yields, &none, "ethtool");
}

/// One device while its keys are added.
struct DeviceReadings<'t> {
    device: &'t NetDevice,
    evidence: &'t mut Evidence,
}

impl DeviceReadings<'_> {
    /// Adds a number, or why this part is missing.
    fn number(&mut self, key: &'static Key, part: Part, value: Option<f64>, line: String) {
        let subject = Subject::device(&self.device.name);
        let value = value.ok_or_else(|| self.refusal(part));
        let origin = Origin::new(part.source(&self.device.name), line);
        enter::number(self.evidence, key, subject, value, origin);
    }

    fn text(&mut self, key: &'static Key, part: Part, value: Option<&str>, line: String) {
        let subject = Subject::device(&self.device.name);
        let value = value.ok_or_else(|| self.refusal(part));
        let origin = Origin::new(part.source(&self.device.name), line);
        enter::text(self.evidence, key, subject, value, origin);
    }

    /// Why a part is missing.
    fn refusal(&self, part: Part) -> Absence {
        match self.device.refused.get(part.name).map(String::as_str) {
            Some("EPERM" | "EACCES") => {
                Absence::because(format!("{}: not permitted", part.said)).remedy("run as root")
            }
            Some("EOPNOTSUPP") => Absence::because(format!("the device has no {}", part.said)),
            Some(other) => Absence::because(format!("{}: {other}", part.said)),
            // Hash fields are not queried if there is nothing to hash for.
            None if part.name == HASH.name && self.device.rss.is_none() => self.refusal(RSS),
            None => Absence::because(format!("the driver reports no {}", part.said)),
        }
    }

    fn driver(&mut self) {
        let text = self.device.driver.as_ref().map(|driver| {
            let text = format!("{} {}", driver.driver, driver.version);
            text.trim_end().to_owned()
        });
        let line = text.clone().unwrap_or_default();
        self.text(&keys::DEVICE_DRIVER, DRIVER, text.as_deref(), line);
    }

    fn gro(&mut self) {
        // `generic-receive-offload` in ethtool(8).
        let word = self.device.features.get("rx-gro").map(|state| match state {
            (true, false) => "on",
            (true, true) => "on (fixed)",
            (false, false) => "off",
            (false, true) => "off (fixed)",
        });
        let line = format!("generic-receive-offload: {}", word.unwrap_or("?"));
        self.text(&keys::DEVICE_GRO, FEATURES, word, line);
    }

    fn coalescing(&mut self) {
        let coalesce = self.device.coalesce.unwrap_or_default();
        let adaptive = coalesce.adaptive_rx.map(|on| if on { "on" } else { "off" });
        let usecs = coalesce.rx_usecs;
        let line = format!(
            "Adaptive RX: {}, rx-usecs: {}",
            adaptive.unwrap_or("n/a"),
            usecs.map_or("n/a".to_owned(), |usecs| usecs.to_string())
        );
        self.text(&keys::COALESCE_ADAPTIVE, COALESCE, adaptive, line.clone());
        let usecs = usecs.map(f64::from);
        self.number(&keys::COALESCE_RX_USECS, COALESCE, usecs, line);
    }

    fn rings(&mut self) {
        // A device without a ring of its own may answer with zeros: no ring, not a ring of none.
        let ring = self.device.ring.filter(|ring| ring.max_rx > 0);
        let line = ring.map_or(String::new(), |ring| {
            format!("RX: {} of at most {}", ring.rx, ring.max_rx)
        });
        let now = ring.map(|ring| f64::from(ring.rx));
        let most = ring.map(|ring| f64::from(ring.max_rx));
        self.number(&keys::RING_RX, RING, now, line.clone());
        self.number(&keys::RING_RX_MAXIMUM, RING, most, line);
        let channels = self.device.channels;
        let most = channels.map(|channels| channels.max_combined.max(channels.max_rx));
        let line = channels.map_or(String::new(), |channels| {
            format!(
                "maximum: combined {}, RX {}; now: combined {}, RX {}",
                channels.max_combined, channels.max_rx, channels.combined, channels.rx
            )
        });
        let most = most.filter(|most| *most > 0).map(f64::from);
        self.number(&keys::QUEUES_MAXIMUM, CHANNELS, most, line);
    }

    fn rss(&mut self) {
        let rss = self.device.rss.as_ref().filter(|rss| !rss.table.is_empty());
        let queues = rss.map(|rss| rss.table.iter().collect::<BTreeSet<_>>());
        let size = rss.map(|rss| rss.table.len() as f64);
        let line = queues.as_ref().map_or(String::new(), |queues| {
            let (first, last) = (queues.first(), queues.last());
            format!(
                "{} entries for {} queues, {} to {}",
                size.unwrap_or_default(),
                queues.len(),
                first.map_or(0, |queue| **queue),
                last.map_or(0, |queue| **queue)
            )
        });
        let queues = queues.map(|queues| queues.len() as f64);
        self.number(&keys::RSS_TABLE_QUEUES, RSS, queues, line.clone());
        self.number(&keys::RSS_TABLE_SIZE, RSS, size, line);
        let fields = self.device.rss.as_ref().and_then(|rss| rss.udp4.as_deref());
        let line = format!("rx-flow-hash udp4: {}", fields.unwrap_or("?"));
        self.text(&keys::RSS_UDP4_FIELDS, HASH, fields, line);
    }
}

/// A part of the output of ethtool.
#[derive(Clone, Copy)]
struct Part {
    /// Its name among refusals.
    name: &'static str,
    /// Its common name.
    said: &'static str,
    /// The option that prints it.
    option: &'static str,
}

impl Part {
    const fn new(name: &'static str, said: &'static str, option: &'static str) -> Self {
        Self { name, said, option }
    }

    fn source(self, device: &str) -> String {
        format!("ethtool {} {device}", self.option)
    }
}

const CHANNELS: Part = Part::new("channels", "channels", "-l");
const COALESCE: Part = Part::new("coalesce", "interrupt moderation", "-c");
const DRIVER: Part = Part::new("driver", "driver name", "-i");
const FEATURES: Part = Part::new("features", "such feature", "-k");
const HASH: Part = Part::new("hash fields", "hash fields", "-n");
const RING: Part = Part::new("ring", "ring", "-g");
const RSS: Part = Part::new("rss", "indirection table", "-x");
