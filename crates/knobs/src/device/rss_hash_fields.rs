//! Fields of a UDP packet that the device hashes to choose a queue.

use rungwise_host::DeviceSetting;

use crate::knob::{Context, Current, Doc, Draft, Knob, Risk, Scope, Settable};
use crate::target::Target;
use crate::turn::{Turn, named, setting_edit};
use crate::{Error, Result};

const PROTOCOLS: [(&str, DeviceSetting); 2] = [
    ("udp4", DeviceSetting::HashUdp4),
    ("udp6", DeviceSetting::HashUdp6),
];

/// `net.rss_hash_fields`
pub(crate) static KNOB: Knob = Knob {
    id: "net.rss_hash_fields",
    scope: Scope::Device,
    risk: Risk::Disruptive,
    settable: Settable::Yes,
    summary: "fields that a device hashes to choose a queue for UDP",
    values: "sd (addresses), sdfn (addresses and ports), or parts such as udp4=sdfn",
    doc: Doc {
        does: "The device hashes these fields, and the hash selects the queue: s and d are the addresses, f and n the \
               ports.",
        helps: "When UDP traffic of few hosts lands on few queues. Many drivers do not hash the ports of UDP.",
        costs: "Fragments carry no ports, so the fragments of one large datagram may arrive on different queues and \
                out of order.",
        undone: "The previous fields are set again.",
        sources: "ethtool(8), -N rx-flow-hash; Cloudflare's million packets per second.",
    },
    by_hand: &[],
    writes: &[
        Target::Setting(DeviceSetting::HashUdp4),
        Target::Setting(DeviceSetting::HashUdp6),
    ],
    turn: Turn::Own { read, draft },
};

fn read(context: &Context<'_>) -> Result<Current> {
    let device = context.device(&KNOB)?;
    let mut readings = Vec::new();
    let mut words = Vec::new();
    let mut refused = None;
    for (name, setting) in PROTOCOLS {
        match context.read_setting(&KNOB, device, setting) {
            Ok(reading) => {
                words.push(format!("{name}={}", reading.value));
                readings.push(reading);
            }
            Err(error) => refused = Some(error),
        }
    }
    match refused {
        Some(error) if readings.is_empty() => Err(error),
        _ => Ok(Current::known(words.join(","), readings)),
    }
}

fn draft(context: &Context<'_>, wish: &str) -> Result<Draft> {
    let device = context.device(&KNOB)?;
    let wishes: Vec<(&str, &str)> = if wish.contains('=') {
        named(&KNOB, &PROTOCOLS.map(|(name, _)| name), wish)?
    } else {
        PROTOCOLS.iter().map(|(name, _)| (*name, wish)).collect()
    };
    let mut draft = Draft::default();
    let mut refused = None;
    for (name, setting) in PROTOCOLS {
        let Some((_, fields)) = wishes.iter().find(|(known, _)| *known == name) else {
            continue;
        };
        let value = setting
            .normal(fields)
            .ok_or_else(|| KNOB.bad_wish(wish, "its letters are m, v, t, s, d, f, n and r"))?;
        match context.read_setting(&KNOB, device, setting) {
            Ok(_) => draft = setting_edit(draft, context.place, device, setting, value),
            // A driver may have one protocol and not the other.
            Err(error @ Error::Kernel { .. }) if !wish.contains('=') => refused = Some(error),
            Err(error) => return Err(error),
        }
    }
    match refused {
        Some(error) if draft.edits.is_empty() => Err(error),
        _ => Ok(draft),
    }
}
