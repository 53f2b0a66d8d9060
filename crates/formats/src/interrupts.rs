//! `/proc/interrupts`: interrupts by number and CPU since boot.
//!
//! Numbered rows are lines of devices; the others (`RES:`, `IPI0:`) are the CPUs' own and carry a description. The
//! text between the counts and the name differs by kernel and platform:
//!
//! ```text
//!  x86 6.18    PCI-MSIX-0000:00:03.0   1-edge      virtio2-input.0
//!  x86 4.6     PCI-MSI 1572865-edge      eth0-TxRx-1
//!  x86 2.6.32  PCI-MSI-edge      eth0-TxRx-1
//!  arm64       ITS-MSI 65537 Edge      hns3-0000:7d:00.0-TxRx-0
//! ```
//!
//! Source: kernel/irq/proc.c (`show_interrupts`), arch/x86/kernel/irq.c, arch/arm64/kernel/smp.c, Linux 6.18.

use crate::columns;

/// The table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Interrupts<'a> {
    /// The CPUs of the columns: those online when it was read.
    pub cpus: Vec<usize>,
    /// Rows with a count per CPU, in order.
    pub rows: Vec<Interrupt<'a>>,
}

/// One row.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Interrupt<'a> {
    /// The label before the colon: `41`, `RES`, `IPI0`.
    pub tag: &'a str,
    /// Number of a device's interrupt; absent for the CPUs' own.
    pub number: Option<u32>,
    /// Interrupts since boot, in order of the columns.
    pub counts: Vec<u64>,
    /// Chip that delivers it, as printed: `PCI-MSIX-0000:00:03.0`; empty for the CPUs' own.
    pub chip: &'a str,
    /// Names of the handlers, comma between them where the line is shared; for the CPUs' own, the description.
    pub name: &'a str,
}

impl Interrupt<'_> {
    /// Interrupts on all CPUs.
    pub fn total(&self) -> u64 {
        self.counts
            .iter()
            .fold(0, |sum, count| sum.saturating_add(*count))
    }
}

/// Reads the table; `None` if it has no header.
pub fn parse(text: &str) -> Option<Interrupts<'_>> {
    let (cpus, rows) = columns::parse(text)?;
    let rows = rows.into_iter().map(|row| {
        let number = row.tag.parse().ok();
        let (chip, name) = match number {
            Some(_) => chip_and_name(row.words),
            None => ("", row.words),
        };
        Interrupt {
            tag: row.tag,
            number,
            counts: row.counts,
            chip,
            name,
        }
    });
    Some(Interrupts {
        cpus,
        rows: rows.collect(),
    })
}

/// Splits `chip hwirq-type  name`, of which everything but the chip may be missing.
fn chip_and_name(words: &str) -> (&str, &str) {
    let (chip, mut rest) = word(words);
    let (next, behind) = word(rest);
    let number = next.split('-').next().unwrap_or_default();
    if !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit()) {
        rest = behind;
    }
    let (next, behind) = word(rest);
    if matches!(next, "Level" | "Edge") {
        rest = behind;
    }
    (chip, rest)
}

fn word(text: &str) -> (&str, &str) {
    match text.split_once(' ') {
        Some((word, rest)) => (word, rest.trim_start()),
        None => (text, ""),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn names(words: &str) -> (&str, &str) {
        chip_and_name(words)
    }

    #[test]
    fn the_name_is_found_on_every_platform() {
        assert_eq!(
            names("PCI-MSIX-0000:00:03.0   1-edge      virtio2-input.0"),
            ("PCI-MSIX-0000:00:03.0", "virtio2-input.0")
        );
        assert_eq!(
            names("PCI-MSI 1572865-edge      eth0-TxRx-1"),
            ("PCI-MSI", "eth0-TxRx-1")
        );
        assert_eq!(
            names("PCI-MSI-edge      eth0-TxRx-1"),
            ("PCI-MSI-edge", "eth0-TxRx-1")
        );
        assert_eq!(
            names("ITS-MSI 65537 Edge      hns3-0000:7d:00.0-TxRx-0"),
            ("ITS-MSI", "hns3-0000:7d:00.0-TxRx-0")
        );
        assert_eq!(
            names("IO-APIC   16-fasteoi   ehci_hcd:usb1, eth2"),
            ("IO-APIC", "ehci_hcd:usb1, eth2")
        );
        assert_eq!(names("IO-APIC    5-edge"), ("IO-APIC", ""));
        assert_eq!(names(""), ("", ""));
    }

    #[test]
    fn columns_are_the_cpus_of_the_header() {
        let text = "           CPU0       CPU2\n 41:          1          2   IO-APIC   5-edge      ttyS0\nRES:          3          4   Rescheduling interrupts\nERR:          0\n";
        let table = parse(text).unwrap();
        assert_eq!(table.cpus, [0, 2]);
        let tags: Vec<&str> = table.rows.iter().map(|row| row.tag).collect();
        assert_eq!(tags, ["41", "RES"]);
        assert_eq!((table.rows[0].number, table.rows[0].total()), (Some(41), 3));
        assert_eq!(table.rows[1].name, "Rescheduling interrupts");
        assert_eq!(table.rows[1].number, None);
    }

    #[test]
    fn an_unreadable_text_is_not_an_empty_table() {
        assert_eq!(parse(""), None);
        assert_eq!(parse("not a table\n1: 2\n"), None);
        assert_eq!(parse("CPU0\n").unwrap().rows, []);
    }

    proptest! {
        #[test]
        fn no_text_is_a_panic(text in ".*", rows in "( ?[0-9A-Z]{1,3}: [0-9 ]{0,20}.{0,20}\n){0,5}") {
            let _ = parse(&text);
            let _ = parse(&format!(" CPU0 CPU3\n{rows}"));
        }
    }
}
