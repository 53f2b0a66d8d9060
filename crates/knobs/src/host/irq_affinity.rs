//! Which CPU takes the interrupt of each queue.

use crate::Result;
use crate::host::{interrupts, shown_only};
use crate::knob::{Context, Current, Doc, Draft, Knob, Risk, Scope, Settable};

/// `net.irq_affinity`
pub(crate) static KNOB: Knob = Knob {
    id: "net.irq_affinity",
    scope: Scope::Host,
    risk: Risk::Live,
    settable: Settable::No(
        "irqbalance and managed interrupts change it behind our back, and a write acts only with the next \
         interrupt, so it cannot be switched in pairs; write /proc/irq/N/smp_affinity_list and measure before \
         and after",
    ),
    summary: "CPU that takes the interrupt of each queue of a device",
    values: "one CPU list per interrupt; shown only",
    doc: Doc {
        does: "The interrupt of a queue is delivered to one CPU of this list, and the softirq runs there.",
        helps: "When the interrupts of a device sit on one CPU or one NUMA node while others idle.",
        costs: "irqbalance overwrites it unless it is told not to. Managed interrupts refuse (EIO).",
        undone: "rungwise does not turn it; a person turns it back where it was turned.",
        sources: "Documentation/core-api/irq/irq-affinity.rst; on Linux 6.18 effective_affinity_list followed a write \
                  only at the next interrupt.",
    },
    writes: &[],
    read,
    draft,
};

fn read(context: &Context<'_>) -> Result<Current> {
    let device = context.device(&KNOB)?;
    let mut readings = Vec::new();
    for number in interrupts(context, device) {
        readings
            .push(context.read_machine(&KNOB, &format!("/proc/irq/{number}/smp_affinity_list"))?);
    }
    if readings.is_empty() {
        return Ok(Current::unknown(format!(
            "{device} has no interrupts of its own"
        )));
    }
    let lists: Vec<&str> = readings
        .iter()
        .map(|reading| reading.value.as_str())
        .collect();
    Ok(Current::known(lists.join(" "), readings))
}

fn draft(_: &Context<'_>, _: &str) -> Result<Draft> {
    shown_only(&KNOB)
}
