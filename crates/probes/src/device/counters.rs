//! What each device received and sent: `/proc/net/dev`, and the keys that need the link speed or interrupts.
//!
//! Source: `dev_seq_printf_stats` in net/core/net-procfs.c (Linux 6.18).

use std::collections::BTreeMap;

use rungwise_formats::net_dev::{self, Device};
use rungwise_model::evidence::{Absence, Evidence, Key, Origin, Subject};
use rungwise_model::keys;

use super::identity::{SPEED, speed};
use crate::cpu::ownership;
use crate::net::rates::{Named, Sum};
use crate::{Cost, Probe, Rate, Source, Window, enter};

const DEV: &str = "/proc/net/dev";
const DROPPED: &str = "/sys/class/net/*/statistics/rx_dropped";

/// The probe.
pub(crate) static PROBE: Probe = Probe {
    id: "proc-net-dev",
    summary: "packets and bytes of each device, packet size, link use, packets per interrupt",
    cost: Cost::Cheap,
    needs: &[],
    sources: &[
        Source::each(DEV),
        Source::ends(DROPPED),
        Source::once(SPEED),
        Source::each(ownership::INTERRUPTS),
        Source::once(ownership::BUS),
        Source::once(ownership::STATE),
        Source::once(ownership::MESSAGES),
        Source::once(ownership::VIRTIO),
    ],
    yields: &[
        &keys::DEVICE_PACKETS_PER_IRQ,
        &keys::DEVICE_PACKET_SIZE,
        &keys::DEVICE_RX_BYTES,
        &keys::DEVICE_RX_DROPPED,
        &keys::DEVICE_RX_ERRORS,
        &keys::DEVICE_RX_PACKETS,
        &keys::DEVICE_TX_BYTES,
        &keys::DEVICE_TX_PACKETS,
        &keys::DEVICE_USE,
    ],
    derive,
    doc: "\
The file lists the devices of one network namespace. Most drivers count packets after hardware merged them (LRO, \
hardware GRO) and before GRO; sent packets are counted before the device segments them (TSO), so a mean size may \
exceed the MTU. Drivers that read their counters from firmware refresh them about once a second, which affects the \
course but hardly the mean. rx_dropped is read from /sys, since the column of this file adds the packets that the \
device missed; it also counts frames of protocols and VLANs that nothing on the host handles. Packets per interrupt \
need interrupts that could be matched to the device; a polled device has few. Sources: net/core/net-procfs.c of Linux \
6.18; Documentation/networking/statistics.rst.",
};

type Column = fn(&Device) -> u64;

/// Keys that are one column each.
static COLUMNS: &[(&Key, &str, Column)] = &[
    (&keys::DEVICE_RX_BYTES, "rx bytes", |device| device.rx_bytes),
    (&keys::DEVICE_RX_ERRORS, "rx errs", |device| {
        device.rx_errors
    }),
    (&keys::DEVICE_RX_PACKETS, "rx packets", |device| {
        device.rx_packets
    }),
    (&keys::DEVICE_TX_BYTES, "tx bytes", |device| device.tx_bytes),
    (&keys::DEVICE_TX_PACKETS, "tx packets", |device| {
        device.tx_packets
    }),
];

/// Rates of all columns by device and name of the column.
pub(super) fn columns<'a>(
    window: &Window<'a>,
) -> Result<BTreeMap<(&'a str, &'static str), Rate>, Absence> {
    window.rates(DEV, |text| {
        let devices = net_dev::parse(text).into_iter();
        let numbers = devices.flat_map(|(name, device)| {
            COLUMNS
                .iter()
                .map(move |(_, column, of)| ((name, *column), of(&device) as f64))
        });
        numbers.collect()
    })
}

fn derive(window: &Window<'_>, evidence: &mut Evidence) {
    let columns = match columns(window) {
        Ok(columns) => columns,
        Err(why) => return evidence.absent(PROBE.yields, &why, DEV),
    };
    for (key, column, _) in COLUMNS {
        for ((device, _), rate) in columns.iter().filter(|((_, name), _)| name == column) {
            enter::rate(evidence, key, Subject::device(device), rate, 1.0, DEV);
        }
    }
    let interrupts = ownership::rates(window);
    if let Err(why) = &interrupts {
        evidence.absent(&[&keys::DEVICE_PACKETS_PER_IRQ], why, ownership::INTERRUPTS);
    }
    let interrupts = interrupts.unwrap_or_default();
    let names = columns.keys().filter(|(_, column)| *column == "rx packets");
    for (device, _) in names {
        let of = |column: &'static str| columns.get(&(*device, column));
        dropped(window, device, evidence);
        if let (Some(rx), Some(tx)) = (of("rx bytes"), of("tx bytes")) {
            used(window, device, rx, tx, evidence);
            if let (Some(received), Some(sent)) = (of("rx packets"), of("tx packets")) {
                size(device, [rx, tx], [received, sent], evidence);
            }
        }
        if let (Some(packets), Some(taken)) = (of("rx packets"), interrupts.get(device)) {
            per_interrupt(device, packets, taken, evidence);
        }
    }
    let none = Absence::because("no device reports it");
    enter::absent_if_unset(evidence, PROBE.yields, &none, DEV);
}

fn dropped(window: &Window<'_>, device: &str, evidence: &mut Evidence) {
    let path = DROPPED.replace('*', device);
    let rate = window.rates(&path, |text| {
        let number = text.trim().parse::<u64>().ok();
        number
            .map(|number| ((), number as f64))
            .into_iter()
            .collect()
    });
    let subject = Subject::device(device);
    let key = &keys::DEVICE_RX_DROPPED;
    match rate.map(|mut rates| rates.remove(&())) {
        Ok(Some(rate)) => enter::rate(evidence, key, subject, &rate, 1.0, &path),
        Ok(None) => {
            let why = Absence::because("the counter was reset, or the device is new");
            enter::absent(evidence, key, subject, why, Origin::new(path, ""));
        }
        Err(why) => enter::absent(evidence, key, subject, why, Origin::new(path, "")),
    }
}

/// The busier direction as a share of the link: a link carries its speed both ways at once.
fn used(window: &Window<'_>, device: &str, rx: &Rate, tx: &Rate, evidence: &mut Evidence) {
    let subject = Subject::device(device);
    let key = &keys::DEVICE_USE;
    let speed = match speed(window, device) {
        Ok((speed, _)) => speed,
        Err(why) => {
            let origin = Origin::new(SPEED.replace('*', device), "");
            return enter::absent(evidence, key, subject, why, origin);
        }
    };
    let (name, busier) = if rx.per_s > tx.per_s {
        ("rx", rx)
    } else {
        ("tx", tx)
    };
    let line = format!("{name} bytes {}, speed {speed} B/s", busier.line());
    let series = busier.series.iter().map(|rate| rate / speed).collect();
    let origin = Origin::new(DEV, line);
    evidence.series(key, subject, busier.per_s / speed, series, origin);
}

fn size(device: &str, bytes: [&Rate; 2], packets: [&Rate; 2], evidence: &mut Evidence) {
    let sum = |names: [&'static str; 2], rates: [&Rate; 2]| {
        let parts = names.into_iter().zip(rates);
        Sum::of(parts.map(|(name, rate)| Named { name, rate })).expect("there are two")
    };
    let bytes = sum(["rx bytes", "tx bytes"], bytes);
    let packets = sum(["rx packets", "tx packets"], packets);
    let subject = Subject::device(device);
    let key = &keys::DEVICE_PACKET_SIZE;
    let origin = Origin::new(DEV, format!("{} over {}", bytes.line, packets.line));
    let size = if packets.rate.delta > 0.0 {
        Ok(bytes.rate.delta / packets.rate.delta)
    } else {
        Err(Absence::because("it carried no packets in this window"))
    };
    enter::number(evidence, key, subject, size, origin);
}

fn per_interrupt(device: &str, packets: &Rate, interrupts: &Rate, evidence: &mut Evidence) {
    let subject = Subject::device(device);
    let key = &keys::DEVICE_PACKETS_PER_IRQ;
    let line = format!(
        "rx packets {}; interrupts {}",
        packets.line(),
        interrupts.line()
    );
    let origin = Origin::new("/proc/net/dev and /proc/interrupts", line);
    let ratio = if interrupts.delta > 0.0 {
        Ok(packets.delta / interrupts.delta)
    } else {
        Err(Absence::because("it raised no interrupt in this window"))
    };
    enter::number(evidence, key, subject, ratio, origin);
}
