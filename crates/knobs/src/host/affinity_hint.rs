//! Affinity hints: the CPUs that the driver suggests for the interrupt of each queue.

use crate::Result;
use crate::edit::Place;
use crate::host::{interrupts, irq_affinity};
use crate::knob::{Context, Current, Doc, Draft, Knob, Risk, Scope, Settable};
use crate::mask;
use crate::target::{Form, Target};
use crate::turn::Turn;

/// `net.affinity_hint`
pub(crate) static KNOB: Knob = Knob {
    id: "net.affinity_hint",
    scope: Scope::Host,
    risk: Risk::Disruptive,
    settable: Settable::Yes,
    summary: "moves a device's interrupts to the CPUs in its driver's hints",
    values: "follow; the current value is follow or ignored",
    doc: Doc {
        does: "A driver may publish a CPU mask per interrupt; follow writes it to the interrupt's affinity. irqbalance \
               once did so (-h exact) and no longer does. Interrupts without a hint are not changed.",
        helps: "When the hints cover all cores and irqbalance kept all queues on one node.",
        costs: "irqbalance moves them again unless irqbalance is stopped (net.irqbalance_stop).",
        undone: "The previous list of every interrupt is written back.",
        sources: "irqbalance issues 171, 234 and 311; the reference case applies it together with receive steering.",
    },
    by_hand: &[],
    writes: &[Target::File("/proc/irq/*/smp_affinity_list", Form::CpuList)],
    turn: Turn::Own { read, draft },
};

/// Interrupts with a hint: the affinity file, its content, and the hint as a list.
struct Hinted {
    affinity: crate::knob::Reading,
    hint: String,
}

fn hinted(context: &Context<'_>) -> Result<Vec<Hinted>> {
    let device = context.device(&KNOB)?;
    let mut found = Vec::new();
    for number in interrupts(context, device) {
        let hint = context.read_machine(&KNOB, &format!("/proc/irq/{number}/affinity_hint"))?;
        let cpus = mask::parse(&hint.value).unwrap_or_default();
        if cpus.is_empty() {
            continue;
        }
        let path = format!("/proc/irq/{number}/smp_affinity_list");
        found.push(Hinted {
            affinity: context.read_machine(&KNOB, &path)?,
            hint: mask::format_list(&cpus),
        });
    }
    Ok(found)
}

fn read(context: &Context<'_>) -> Result<Current> {
    let hinted = hinted(context)?;
    if hinted.is_empty() {
        let device = context.device(&KNOB)?;
        if interrupts(context, device).is_empty() {
            return Ok(Current::unknown(irq_affinity::none(device)));
        }
        return Ok(Current::unknown("the driver publishes no affinity hint"));
    }
    let followed = hinted
        .iter()
        .all(|one| Form::CpuList.same(&one.affinity.value, &one.hint));
    let value = if followed { "follow" } else { "ignored" };
    Ok(Current::known(
        value,
        hinted.into_iter().map(|one| one.affinity).collect(),
    ))
}

fn draft(context: &Context<'_>, wish: &str) -> Result<Draft> {
    if wish != "follow" {
        return Err(KNOB.bad_wish(wish, "a hint can only be followed"));
    }
    let hinted = hinted(context)?;
    if hinted.is_empty() {
        return Err(KNOB.bad_wish(wish, "the driver publishes no affinity hint"));
    }
    Ok(hinted
        .into_iter()
        .fold(Draft::default(), |draft, one| {
            draft.file(&Place::Host, one.affinity.source, &one.hint)
        })
        .note("a running irqbalance moves them again within 10 s: ban them first (net.irqbalance_stop)"))
}
