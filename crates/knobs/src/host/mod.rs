//! Knobs of the whole machine.
//!
//! Some are only shown: changing them takes a reboot, the firmware or the owner's consent.

pub(crate) mod affinity_hint;
pub(crate) mod audit_rules;
pub(crate) mod auditd;
pub(crate) mod boot;
pub(crate) mod cpu;
pub(crate) mod default_qdisc;
pub(crate) mod dirty;
pub(crate) mod firmware;
pub(crate) mod irq_affinity;
pub(crate) mod irqbalance;
pub(crate) mod memory;
pub(crate) mod net_core;
pub(crate) mod netdev_budget;
pub(crate) mod netdev_max_backlog;
pub(crate) mod nofile;
pub(crate) mod numa;
pub(crate) mod rmem_max;
pub(crate) mod security;
pub(crate) mod smt;
pub(crate) mod vcpu_pin;
pub(crate) mod vhost_pin;
pub(crate) mod virt;

use std::path::Path;

use rungwise_host::Host;
use rungwise_host::interrupts::{Devices, Shown, Signs};

use crate::edit::Thread;
use crate::error::{Error, Result};
use crate::knob::{Context, Knob};

/// Files of `/proc/irq/41`. The only other entries are a folder for each handler, with its name (`register_irq_proc` in
/// kernel/irq/proc.c, Linux 6.18).
const IRQ_FILES: &[&str] = &[
    "affinity_hint",
    "effective_affinity",
    "effective_affinity_list",
    "node",
    "smp_affinity",
    "smp_affinity_list",
    "spurious",
];

/// Interrupt numbers of a device, in order; empty without hardware.
///
/// They are identified as in the rules, so that a knob changes the interrupts that a rule reports. An interrupt that
/// may belong to several devices belongs to the likeliest; a device that is the likeliest for none gets all that may be
/// its own.
fn interrupts(context: &Context<'_>, device: &str) -> Vec<u32> {
    let host = context.machine;
    let found = signs(host);
    let mut devices = Devices::default();
    for one in &found {
        *devices.entry(&one.name) = one.signs();
    }
    let mut numbers: Vec<u32> = numbers(host, "/proc/irq");
    numbers.extend(found.iter().flat_map(|one| &one.messages));
    numbers.sort_unstable();
    numbers.dedup();
    let (mut own, mut shared) = (Vec::new(), Vec::new());
    for number in numbers {
        let mut names = list(host, &format!("/proc/irq/{number}"));
        names.retain(|name| !IRQ_FILES.contains(&name.as_str()));
        // Not every kernel shows it; then only the name is used.
        let chip = text(host, &format!("/sys/kernel/irq/{number}/chip_name"));
        let owners = devices.owners(&Shown {
            number: Some(number),
            chip: &chip,
            name: &names.join(", "),
        });
        if owners.first() == Some(&device) {
            own.push(number);
        } else if owners.contains(&device) {
            shared.push(number);
        }
    }
    if own.is_empty() { shared } else { own }
}

/// What is known of a network device with a bus below it.
struct OnBus {
    name: String,
    uevent: String,
    virtio: Option<String>,
    messages: Vec<u32>,
}

impl OnBus {
    fn signs(&self) -> Signs<'_> {
        Signs {
            virtio: self.virtio.as_deref(),
            messages: self.messages.iter().copied().collect(),
            ..Signs::of_bus(&self.uevent)
        }
    }
}

fn signs(host: &dyn Host) -> Vec<OnBus> {
    let virtio: Vec<(String, String)> = list(host, "/sys/bus/virtio/devices")
        .into_iter()
        .flat_map(|of| {
            let devices = list(host, &format!("/sys/bus/virtio/devices/{of}/net"));
            devices.into_iter().map(move |device| (device, of.clone()))
        })
        .collect();
    list(host, "/sys/class/net")
        .into_iter()
        .filter_map(|name| {
            let below = format!("/sys/class/net/{name}/device");
            let bus = list(host, &below);
            let of = virtio.iter().find(|(device, _)| *device == name);
            (!bus.is_empty()).then(|| OnBus {
                uevent: text(host, &format!("{below}/uevent")),
                virtio: of.map(|(_, virtio)| virtio.clone()),
                messages: numbers(host, &format!("{below}/msi_irqs")),
                name,
            })
        })
        .collect()
}

/// Every thread of the machine whose name `meant` parses, in order, with the result.
fn threads_named(
    knob: &Knob,
    context: &Context<'_>,
    meant: impl Fn(&str) -> Option<u32>,
) -> Result<Vec<(u32, Thread)>> {
    let host = context.machine;
    let processes = host
        .list(Path::new("/proc"))
        .map_err(|answer| Error::kernel(knob.id, "list /proc".to_owned(), host.name(), answer))?;
    let mut found = Vec::new();
    for pid in processes.iter().filter_map(|name| name.parse().ok()) {
        for tid in numbers(host, &format!("/proc/{pid}/task")) {
            let name = text(host, &format!("/proc/{pid}/task/{tid}/comm"));
            // A thread that ends meanwhile is left out.
            if let (Some(understood), Ok(thread)) = (meant(&name), Thread::find(host, pid, tid)) {
                found.push((understood, thread));
            }
        }
    }
    found.sort_by_key(|(_, thread)| (thread.pid, thread.tid));
    Ok(found)
}

fn numbers(host: &dyn Host, dir: &str) -> Vec<u32> {
    let names = list(host, dir).into_iter();
    names.filter_map(|name| name.parse().ok()).collect()
}

/// A missing folder has no names.
fn list(host: &dyn Host, dir: &str) -> Vec<String> {
    host.list(Path::new(dir)).unwrap_or_default()
}

/// A missing file is empty.
fn text(host: &dyn Host, path: &str) -> String {
    host.text(Path::new(path)).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use rungwise_host::recorded::Recorded;

    use super::*;

    const CPUS: &[usize] = &[0, 1];

    /// A guest with a disk and two network devices, whose interrupts `msi_irqs` does not list.
    fn guest() -> Recorded {
        let irq = |host: Recorded, number: u32, name: &str| {
            let dir = format!("/proc/irq/{number}");
            host.file(&format!("{dir}/smp_affinity_list"), "0-1")
                .file(&format!("{dir}/node"), "-1")
                .file(&format!("{dir}/{name}/name"), "")
        };
        let mut host = Recorded::new("a guest", 1)
            .file("/proc/irq/default_smp_affinity", "3")
            .file("/sys/class/net/lo/mtu", "65536");
        for (device, virtio) in [("eth0", "virtio1"), ("eth1", "virtio12")] {
            host = host
                .file(
                    &format!("/sys/class/net/{device}/device/uevent"),
                    "MODALIAS=virtio:x",
                )
                .file(
                    &format!("/sys/bus/virtio/devices/{virtio}/net/{device}/ifindex"),
                    "2",
                );
        }
        for (number, name) in [
            (24, "virtio0-req.0"),
            (25, "virtio1-config"),
            (26, "virtio1-input.0"),
            (27, "virtio1-output.0"),
            (28, "virtio12-input.0"),
        ] {
            host = irq(host, number, name);
        }
        host
    }

    fn of(host: &Recorded, device: &str) -> Vec<u32> {
        interrupts(&Context::of_host(host, Some(device), CPUS), device)
    }

    #[test]
    fn without_a_list_the_interrupts_of_a_virtio_device_are_known_by_its_name() {
        let host = guest();
        assert_eq!(of(&host, "eth0"), [25, 26, 27]);
        assert_eq!(of(&host, "eth1"), [28]);
        assert!(of(&host, "lo").is_empty());
    }

    #[test]
    fn a_chip_names_the_card_where_the_handler_does_not() {
        let host = guest()
            .file(
                "/sys/class/net/ens5/device/uevent",
                "PCI_SLOT_NAME=0000:3b:00.0\nMODALIAS=pci:v1",
            )
            .file("/proc/irq/40/smp_affinity_list", "0")
            .file("/sys/kernel/irq/40/chip_name", "PCI-MSIX-0000:3b:00.0");
        assert_eq!(of(&host, "ens5"), [40]);
    }

    #[test]
    fn a_port_takes_what_it_shares_only_where_it_has_nothing_of_its_own() {
        let uevent = "PCI_SLOT_NAME=0000:03:00.0\nMODALIAS=pci:v1";
        let mut host = Recorded::new("two ports", 1);
        for device in ["eth2", "eth3"] {
            let dir = format!("/sys/class/net/{device}/device");
            host = host
                .file(&format!("{dir}/uevent"), uevent)
                .file(&format!("{dir}/msi_irqs/50"), "msix");
        }
        host = host.file("/proc/irq/50/mlx4-1/name", "");
        assert_eq!(of(&host, "eth2"), [50]);
        assert_eq!(of(&host, "eth3"), [50]);
        let host = host
            .file("/sys/class/net/eth3/device/msi_irqs/51", "msix")
            .file("/proc/irq/51/eth3-rx-0/name", "");
        assert_eq!(of(&host, "eth3"), [51]);
        assert_eq!(of(&host, "eth2"), [50]);
    }
}
