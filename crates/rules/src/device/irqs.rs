//! Interrupts of network devices, as several rules read them.

use std::collections::BTreeMap;

use rungwise_model::evidence::{Evidence, Missing, Quantity, Subject, Words};
use rungwise_model::keys;

/// One interrupt of a network device that fired or could.
#[derive(Clone, Copy, Debug)]
pub(super) struct Irq<'a> {
    /// `irq/41`.
    pub(super) subject: &'a Subject,
    /// Its device.
    pub(super) device: Words<'a>,
    /// How often it fires.
    pub(super) rate: Quantity<'a>,
}

impl Irq<'_> {
    /// The CPU that took most of its interrupts; nothing if it was silent.
    pub(super) fn cpu(&self, evidence: &Evidence) -> Option<usize> {
        let busiest = evidence
            .quantity(&keys::IRQ_BUSIEST_CPU, self.subject)
            .ok()?;
        (self.rate.value > 0.0).then_some(busiest.value as usize)
    }
}

/// All interrupts that belong to a network device and whose rate is known.
pub(super) fn of_devices(evidence: &Evidence) -> Result<Vec<Irq<'_>>, Missing> {
    let devices = evidence.each_words(&keys::IRQ_DEVICE)?;
    let irqs: Vec<_> = devices
        .into_iter()
        .filter_map(|(subject, device)| {
            let rate = evidence.quantity(&keys::IRQ_RATE, subject).ok()?;
            Some(Irq {
                subject,
                device,
                rate,
            })
        })
        .collect();
    if irqs.is_empty() {
        return Err(evidence.missing(&keys::IRQ_RATE, &Subject::host()));
    }
    Ok(irqs)
}

/// The same by device.
pub(super) fn by_device<'a>(irqs: &[Irq<'a>]) -> BTreeMap<&'a str, Vec<Irq<'a>>> {
    let mut devices: BTreeMap<_, Vec<_>> = BTreeMap::new();
    for irq in irqs {
        devices.entry(irq.device.value).or_default().push(*irq);
    }
    devices
}

/// The device whose interrupts, of those that `counts` lets pass, are most frequent.
pub(super) fn most_frequent<'a>(
    irqs: &[Irq<'a>],
    counts: impl Fn(&Irq<'a>) -> bool,
) -> Option<(&'a str, Vec<Irq<'a>>)> {
    let rate = |irqs: &[Irq<'_>]| irqs.iter().map(|irq| irq.rate.value).sum::<f64>();
    let counted: Vec<_> = irqs
        .iter()
        .filter(|irq| irq.rate.value > 0.0 && counts(irq))
        .copied()
        .collect();
    by_device(&counted)
        .into_iter()
        .max_by(|(_, a), (_, b)| rate(a).total_cmp(&rate(b)))
}
