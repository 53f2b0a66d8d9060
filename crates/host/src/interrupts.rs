//! Which network device an interrupt belongs to.
//!
//! The kernel does not say so in one place, and names differ by driver: `eth0-TxRx-3` (ixgbe), `virtio2-input.0`,
//! `mlx5_comp3@pci:0000:3b:00.0`, `hns3-0000:7d:00.0-TxRx-3`. So four signs are tried, the surest first: the list of
//! the device's message interrupts, its PCI address in the name or chip of the interrupt, its virtio device, its own
//! name. A device that was renamed keeps the old name in its interrupts, which is why the name comes last. Pure: the
//! caller reads the signs from a machine, live or recorded. Source: drivers/pci/msi/,
//! `drivers/virtio/virtio_pci_common.c` (`vp_request_msix_vectors`), kernel/irq/msi.c, Linux 6.18; since 5.17 the list
//! of message interrupts may be empty.

use std::collections::{BTreeMap, BTreeSet};

/// Network devices with hardware below them, by name.
#[derive(Clone, Debug, Default)]
pub struct Devices<'a> {
    signs: BTreeMap<&'a str, Signs<'a>>,
}

/// The signs of a device's interrupts, besides its name.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Signs<'a> {
    /// Its PCI address: `0000:3b:00.0`.
    pub address: Option<&'a str>,
    /// Its virtio device: `virtio2`.
    pub virtio: Option<&'a str>,
    /// Numbers of its message interrupts, from `msi_irqs`.
    pub messages: BTreeSet<u32>,
}

/// What is visible of an interrupt.
#[derive(Clone, Copy, Debug)]
pub struct Shown<'a> {
    /// Its number; none for what CPUs send each other.
    pub number: Option<u32>,
    /// Chip that delivers it: `PCI-MSIX-0000:00:03.0`; empty where that is unknown.
    pub chip: &'a str,
    /// Names of its handlers, comma between them where the line is shared.
    pub name: &'a str,
}

impl<'a> Devices<'a> {
    /// Adds a device, or changes what is known of it.
    pub fn entry(&mut self, device: &'a str) -> &mut Signs<'a> {
        self.signs.entry(device).or_default()
    }

    /// What is known of a device that is here.
    pub fn known(&mut self, device: &str) -> Option<&mut Signs<'a>> {
        self.signs.get_mut(device)
    }

    /// The devices that an interrupt may belong to, the likeliest first. Several where one PCI device has
    /// several network devices.
    pub fn owners(&self, irq: &Shown<'_>) -> Vec<&'a str> {
        let having = |sign: &dyn Fn(&Signs<'_>) -> bool| -> Vec<&'a str> {
            let devices = self.signs.iter();
            let found = devices.filter(|(_, signs)| sign(signs));
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
        let mut named: Vec<&'a str> = self.signs.keys().copied().collect();
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
}

impl<'a> Signs<'a> {
    /// The signs that the `uevent` of a device's bus has.
    pub fn of_bus(uevent: &'a str) -> Self {
        Self {
            address: uevent
                .lines()
                .find_map(|line| line.strip_prefix("PCI_SLOT_NAME=")),
            ..Self::default()
        }
    }
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
    use proptest::prelude::*;

    use super::*;

    fn owners<'a>(devices: &Devices<'a>, number: u32, chip: &str, name: &str) -> Vec<&'a str> {
        devices.owners(&Shown {
            number: Some(number),
            chip,
            name,
        })
    }

    #[test]
    fn interrupts_are_known_by_list_address_virtio_or_name() {
        let mut devices = Devices::default();
        devices.entry("eth1").virtio = Some("virtio2");
        *devices.entry("ens5") = Signs::of_bus("DRIVER=mlx5_core\nPCI_SLOT_NAME=0000:3b:00.0\n");
        devices.entry("eth10").messages = [77].into();
        let of = |number, chip, name| owners(&devices, number, chip, name);
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
        let mut devices = Devices::default();
        for name in ["eth2", "eth3"] {
            devices.entry(name).address = Some("0000:03:00.0");
        }
        let chip = "PCI-MSIX-0000:03:00.0";
        assert_eq!(owners(&devices, 9, chip, "eth3-rx-0"), ["eth3", "eth2"]);
        assert_eq!(owners(&devices, 9, chip, "mlx4-1"), ["eth2", "eth3"]);
    }

    proptest! {
        #[test]
        fn no_name_is_a_panic(name in ".*", chip in ".*", device in ".*", number: Option<u32>) {
            let mut devices = Devices::default();
            *devices.entry(&device) = Signs::of_bus(&chip);
            devices.owners(&Shown { number, chip: &chip, name: &name });
        }
    }
}
