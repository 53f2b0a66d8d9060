//! Where the driver would like the interrupt of each queue.

use crate::Result;
use crate::host::{interrupts, shown_only};
use crate::knob::{Context, Current, Doc, Draft, Knob, Risk, Scope, Settable};

/// `net.affinity_hint`
pub(crate) static KNOB: Knob = Knob {
    id: "net.affinity_hint",
    scope: Scope::Host,
    risk: Risk::Live,
    settable: Settable::No(
        "the hint is the driver's; to follow it, copy /proc/irq/N/affinity_hint to smp_affinity and keep \
         irqbalance away from those interrupts",
    ),
    summary: "CPUs on which the driver would like the interrupt of each queue",
    values: "one CPU mask per interrupt; shown only",
    doc: Doc {
        does: "A driver may publish a mask per interrupt. irqbalance once could follow it (-h exact) and no longer \
               does.",
        helps: "When the hints are spread over all cores and irqbalance kept all queues on one node.",
        costs: "A policy script to maintain, since irqbalance dropped the option.",
        undone: "rungwise does not turn it; a person turns it back where it was turned.",
        sources: "irqbalance issues 171, 234 and 311; the reference case applies it together with receive steering.",
    },
    writes: &[],
    read,
    draft,
};

fn read(context: &Context<'_>) -> Result<Current> {
    let device = context.device(&KNOB)?;
    let mut readings = Vec::new();
    for number in interrupts(context, device) {
        readings.push(context.read_machine(&KNOB, &format!("/proc/irq/{number}/affinity_hint"))?);
    }
    if readings.is_empty() {
        return Ok(Current::unknown(format!(
            "{device} has no interrupts of its own"
        )));
    }
    let masks: Vec<&str> = readings
        .iter()
        .map(|reading| reading.value.as_str())
        .collect();
    Ok(Current::known(masks.join(" "), readings))
}

fn draft(_: &Context<'_>, _: &str) -> Result<Draft> {
    shown_only(&KNOB)
}
