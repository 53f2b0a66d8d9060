//! Which network device an interrupt belongs to.
//!
//! The kernel does not say so in one place, and names differ by driver: `eth0-TxRx-3` (ixgbe), `virtio2-input.0`,
//! `mlx5_comp3@pci:0000:3b:00.0`, `hns3-0000:7d:00.0-TxRx-3`. So four signs are tried, the surest first: the list
//! of the device's message interrupts, its PCI address in the name or chip of the interrupt, its virtio device,
//! its own name. A device that was renamed keeps the old name in its interrupts, which is why the name comes
//! last. Source: drivers/pci/msi/, `drivers/virtio/virtio_pci_common.c` (`vp_request_msix_vectors`), kernel/irq/msi.c,
//! Linux 6.18; since 5.17 the list of message interrupts may be empty.

use std::collections::{BTreeMap, BTreeSet};

use rungwise_formats::interrupts::{self, Interrupt};
use rungwise_model::evidence::Absence;

use crate::{Rate, Window};

/// The table of interrupts.
pub(crate) const INTERRUPTS: &str = "/proc/interrupts";

/// What the bus says of a device.
pub(crate) const BUS: &str = "/sys/class/net/*/device/uevent";

/// Whether a device is up.
pub(crate) const STATE: &str = "/sys/class/net/*/operstate";

/// Message interrupts of a device on PCI, by number.
pub(crate) const MESSAGES: &str = "/sys/class/net/*/device/msi_irqs/*";

/// Network device of a virtio device; the file itself does not matter.
pub(crate) const VIRTIO: &str = "/sys/bus/virtio/devices/*/net/*/ifindex";

/// Network devices with hardware below them.
pub(crate) struct Ownership<'a> {
    devices: BTreeMap<&'a str, Hardware<'a>>,
}

/// What is known of one device.
#[derive(Default)]
struct Hardware<'a> {
    up: bool,
    /// PCI address: `0000:3b:00.0`.
    address: Option<&'a str>,
    /// `virtio2`.
    virtio: Option<&'a str>,
    messages: BTreeSet<u32>,
    /// On a bus whose devices have interrupts of their own. USB and the bus of Hyper-V are none.
    interrupts: bool,
}

impl<'a> Ownership<'a> {
    /// The devices of the last look.
    pub(crate) fn of(window: &Window<'a>) -> Self {
        let mut devices: BTreeMap<&str, Hardware<'_>> = BTreeMap::new();
        for (path, stars) in window.matching(BUS) {
            let ([name], Ok(text)) = (&stars[..], window.text(path)) else {
                continue;
            };
            let of = |field: &str| {
                let mut lines = text.lines();
                lines.find_map(|line| line.strip_prefix(field)?.strip_prefix('='))
            };
            let state = window.text(&STATE.replace('*', name));
            let bus = of("MODALIAS").and_then(|alias| alias.split(':').next());
            let hardware = Hardware {
                // Drivers that cannot see a carrier say `unknown`.
                up: state.is_ok_and(|state| matches!(state.trim(), "up" | "unknown")),
                address: of("PCI_SLOT_NAME"),
                interrupts: matches!(bus, Some("pci" | "virtio" | "xen")),
                ..Hardware::default()
            };
            devices.insert(name, hardware);
        }
        for (_, stars) in window.matching(MESSAGES) {
            if let [device, number] = stars[..]
                && let (Some(hardware), Ok(number)) = (devices.get_mut(device), number.parse())
            {
                hardware.messages.insert(number);
            }
        }
        for (_, stars) in window.matching(VIRTIO) {
            if let [virtio, device] = stars[..]
                && let Some(hardware) = devices.get_mut(device)
            {
                hardware.virtio = Some(virtio);
            }
        }
        Self { devices }
    }

    /// The devices that an interrupt may belong to, the likeliest first. Several where one PCI device has
    /// several network devices.
    pub(crate) fn owners(&self, irq: &Interrupt<'_>) -> Vec<&'a str> {
        let having = |sign: &dyn Fn(&Hardware<'_>) -> bool| -> Vec<&'a str> {
            let devices = self.devices.iter();
            let found = devices.filter(|(_, hardware)| sign(hardware));
            found.map(|(name, _)| *name).collect()
        };
        let listed = having(&|device| {
            irq.number
                .is_some_and(|number| device.messages.contains(&number))
        });
        let addressed = having(&|device| {
            device
                .address
                .is_some_and(|address| irq.chip.ends_with(address) || names(irq.name, address))
        });
        let virtio = having(&|device| {
            device
                .virtio
                .is_some_and(|virtio| irq.name.starts_with(virtio) && names(irq.name, virtio))
        });
        let mut named: Vec<&'a str> = self.devices.keys().copied().collect();
        named.retain(|device| names(irq.name, device));
        named.sort_by_key(|device| std::cmp::Reverse(device.len()));

        let signs = [listed, addressed, virtio, named.clone()];
        let mut owners = signs
            .into_iter()
            .find(|found| !found.is_empty())
            .unwrap_or_default();
        owners.sort_by_key(|device| !named.contains(device));
        owners
    }

    /// Devices that are up and ought to have interrupts: whether one of these is theirs.
    pub(crate) fn matched(&self, rows: &[Interrupt<'_>]) -> BTreeMap<&'a str, bool> {
        let owners: BTreeSet<&str> = rows.iter().flat_map(|row| self.owners(row)).collect();
        self.devices
            .iter()
            .filter(|(_, hardware)| hardware.up && hardware.interrupts)
            .map(|(name, _)| (*name, owners.contains(name)))
            .collect()
    }
}

/// Interrupts per second, of all rows together that `name` calls the same.
///
/// A CPU that goes offline takes its column with it, so nothing is known of a window in which one came or went.
pub(crate) fn rates_by<'a, K: Ord>(
    window: &Window<'a>,
    name: impl Fn(&Interrupt<'a>) -> Option<K>,
) -> Result<BTreeMap<K, Rate>, Absence> {
    let texts = window.texts(INTERRUPTS)?;
    let mut headers = texts.iter().map(|(_, text)| text.lines().next());
    let first = headers.next();
    if !headers.all(|header| Some(header) == first) {
        return Err(Absence::because(
            "a CPU came or went during the window, and its counts with it",
        ));
    }
    window.rates(INTERRUPTS, |text| {
        let mut totals = BTreeMap::new();
        for row in interrupts::parse(text).map_or(Vec::new(), |table| table.rows) {
            if let Some(name) = name(&row) {
                *totals.entry(name).or_insert(0.0) += row.total() as f64;
            }
        }
        totals
    })
}

/// Interrupts per second of each network device that has any of its own.
pub(crate) fn rates<'a>(window: &Window<'a>) -> Result<BTreeMap<&'a str, Rate>, Absence> {
    let ownership = Ownership::of(window);
    let rates = rates_by(window, |row| ownership.owners(row).first().copied())?;
    if rates.is_empty() {
        return Err(Absence::because(
            "no row of /proc/interrupts could be matched to a network device",
        ));
    }
    Ok(rates)
}

/// Whether `name` holds `part` with neither a letter nor a digit right before or behind it.
fn names(name: &str, part: &str) -> bool {
    let joins = |c: Option<char>| c.is_some_and(|c| c.is_ascii_alphanumeric());
    !part.is_empty()
        && name.match_indices(part).any(|(at, _)| {
            let behind = &name[at + part.len()..];
            !joins(name[..at].chars().next_back()) && !joins(behind.chars().next())
        })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::capture::{Capture, Moment, Raw};

    fn capture(files: &[(&str, &str)]) -> Capture {
        let files = files
            .iter()
            .map(|(path, text)| ((*path).to_owned(), Raw::Text((*text).to_owned())));
        Capture {
            moments: vec![Moment {
                files: files.collect(),
                ..Moment::default()
            }],
            ..Capture::default()
        }
    }

    fn owners<'a>(capture: &'a Capture, number: u32, chip: &str, name: &str) -> Vec<&'a str> {
        Ownership::of(&Window::of(capture)).owners(&Interrupt {
            tag: "",
            number: Some(number),
            counts: Vec::new(),
            chip,
            name,
        })
    }

    #[test]
    fn interrupts_are_known_by_list_address_virtio_or_name() {
        let capture = capture(&[
            ("/sys/class/net/eth1/device/uevent", "MODALIAS=virtio:x\n"),
            ("/sys/bus/virtio/devices/virtio2/net/eth1/ifindex", "2\n"),
            (
                "/sys/class/net/ens5/device/uevent",
                "DRIVER=mlx5_core\nPCI_SLOT_NAME=0000:3b:00.0\nMODALIAS=pci:v1\n",
            ),
            ("/sys/class/net/eth10/device/uevent", "MODALIAS=pci:v2\n"),
            ("/sys/class/net/eth10/device/msi_irqs/77", "msix\n"),
            ("/sys/class/net/lo/operstate", "unknown\n"),
        ]);
        let of = |number, chip, name| owners(&capture, number, chip, name);
        assert_eq!(of(38, "PCI-MSI", "virtio2-input.0"), ["eth1"]);
        assert!(of(38, "PCI-MSI", "virtio22-input.0").is_empty());
        assert_eq!(of(50, "PCI-MSI", "mlx5_comp3@pci:0000:3b:00.0"), ["ens5"]);
        assert_eq!(of(50, "PCI-MSIX-0000:3b:00.0", "anything"), ["ens5"]);
        assert_eq!(of(77, "PCI-MSI", "old-name-TxRx-0"), ["eth10"]);
        assert_eq!(of(60, "PCI-MSI", "eth10-TxRx-0"), ["eth10"]);
        assert_eq!(of(60, "PCI-MSI", "i40e-eth1-TxRx-0"), ["eth1"]);
        assert!(of(60, "PCI-MSI", "nvme0q1").is_empty());
        assert!(of(60, "PCI-MSI", "").is_empty());
    }

    #[test]
    fn of_several_devices_behind_one_address_the_named_one_comes_first() {
        let uevent = "PCI_SLOT_NAME=0000:03:00.0\nMODALIAS=pci:v1\n";
        let capture = capture(&[
            ("/sys/class/net/eth2/device/uevent", uevent),
            ("/sys/class/net/eth3/device/uevent", uevent),
        ]);
        let chip = "PCI-MSIX-0000:03:00.0";
        assert_eq!(owners(&capture, 9, chip, "eth3-rx-0"), ["eth3", "eth2"]);
        assert_eq!(owners(&capture, 9, chip, "mlx4-1"), ["eth2", "eth3"]);
    }
}
