//! CPUs that handle the interrupts of a device's queues.

use std::path::Path;

use crate::Result;
use crate::edit::Place;
use crate::host::interrupts;
use crate::knob::{Context, Current, Doc, Draft, Knob, Risk, Scope, Settable};
use crate::target::{Form, Target};
use crate::turn::Turn;

const FORM: Form = Form::CpuList;

/// `net.irq_affinity`
pub(crate) static KNOB: Knob = Knob {
    id: "net.irq_affinity",
    scope: Scope::Host,
    risk: Risk::Disruptive,
    settable: Settable::Yes,
    summary: "CPU that takes the interrupt of each queue of a device",
    values: "spread (queue i to the i-th CPU), a CPU list for all of them, or one list per interrupt, separated by \
             spaces",
    doc: Doc {
        does: "The interrupt of a queue is delivered to one CPU of its list, and the softirq runs there. The \
               interrupts of a device are identified by its list of message interrupts, its PCI address, its virtio \
               device or its name, as in the rules.",
        helps: "When one CPU or one NUMA node takes the interrupts of a device and is saturated, while others idle.",
        costs: "Packets that leave the device's node are handled far from its memory. irqbalance overwrites it within \
                10 s unless irqbalance is stopped (net.irqbalance_stop). Managed interrupts cannot be moved. A write \
                takes effect at the next interrupt, so its effect is not visible at once.",
        undone: "The previous list of every interrupt is written back; one that irqbalance moved meanwhile is left in \
                 place and reported.",
        sources: "Documentation/core-api/irq/irq-affinity.rst; on Linux 6.18 effective_affinity_list followed a write \
                  only at the next interrupt.",
    },
    by_hand: &[],
    writes: &[Target::File("/proc/irq/*/smp_affinity_list", FORM)],
    turn: Turn::Own { read, draft },
};

fn read(context: &Context<'_>) -> Result<Current> {
    let device = context.device(&KNOB)?;
    let mut readings = Vec::new();
    for number in interrupts(context, device) {
        readings.push(context.read_machine(&KNOB, &path(number))?);
    }
    if readings.is_empty() {
        return Ok(Current::unknown(none(device)));
    }
    let lists: Vec<&str> = readings
        .iter()
        .map(|reading| reading.value.as_str())
        .collect();
    Ok(Current::known(lists.join(" "), readings))
}

fn draft(context: &Context<'_>, wish: &str) -> Result<Draft> {
    let device = context.device(&KNOB)?;
    let numbers = interrupts(context, device);
    if numbers.is_empty() {
        return Err(KNOB.bad_wish(wish, none(device)));
    }
    let list = |list: &str| {
        FORM.value(list, context.cpus)
            .map_err(|why| KNOB.bad_wish(wish, why))
    };
    let words: Vec<&str> = wish.split_whitespace().collect();
    let mut draft = Draft::default();
    match words[..] {
        ["spread"] => {
            for (number, cpu) in spread(context, &numbers) {
                draft = draft.file(&Place::Host, path(number), &cpu);
            }
            if draft.edits.is_empty() {
                return Err(KNOB.bad_wish(wish, "no interrupt is named after a queue"));
            }
        }
        [one] => {
            let list = list(one)?;
            for number in numbers {
                draft = draft.file(&Place::Host, path(number), &list);
            }
        }
        _ if words.len() == numbers.len() => {
            for (number, word) in numbers.into_iter().zip(words) {
                draft = draft.file(&Place::Host, path(number), &list(word)?);
            }
        }
        _ => {
            let why = format!("{device} has {} interrupts", numbers.len());
            return Err(KNOB.bad_wish(wish, why));
        }
    }
    Ok(draft.note(
        "a running irqbalance moves them again within 10 s: ban them first (net.irqbalance_stop)",
    ))
}

/// Each interrupt of a queue with the CPU for that queue. Receive and transmit interrupts of one queue meet;
/// interrupts of no queue stay where they are.
fn spread(context: &Context<'_>, numbers: &[u32]) -> Vec<(u32, usize)> {
    let of = |number: u32| {
        // The folder next to the affinity files has the name of the interrupt's handler.
        let names = context
            .machine
            .list(Path::new(&format!("/proc/irq/{number}")))
            .ok()?;
        let queue = names.iter().find_map(|name| queue(name))?;
        let cpu = context.cpus.get(queue.checked_rem(context.cpus.len())?)?;
        Some((number, *cpu))
    };
    numbers.iter().filter_map(|number| of(*number)).collect()
}

/// The queue that an interrupt is for, by its name: `eth0-TxRx-3`, `virtio2-input.0`, `mlx5_comp3@pci:0000:3b:00.0`.
fn queue(name: &str) -> Option<usize> {
    let name = name.split('@').next().unwrap_or_default();
    let digits = name.len() - name.trim_end_matches(|c: char| c.is_ascii_digit()).len();
    let (head, number) = name.split_at(name.len() - digits);
    let head = head.to_ascii_lowercase();
    // Files of the folder, and vectors for link changes and the like, which some drivers number too.
    let words = ["rx", "tx", "input", "output", "comp", "queue", "-q", "ring"];
    let is_queue = words.iter().any(|word| head.contains(word));
    is_queue.then(|| number.parse().ok()).flatten()
}

fn path(number: u32) -> String {
    format!("/proc/irq/{number}/smp_affinity_list")
}

pub(super) fn none(device: &str) -> String {
    format!("{device} has no interrupts of its own")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn queues_are_known_by_the_names_that_drivers_give() {
        for (name, expected) in [
            ("eth0-TxRx-3", Some(3)),
            ("i40e-ens1f0-TxRx-17", Some(17)),
            ("virtio2-input.0", Some(0)),
            ("virtio2-output.0", Some(0)),
            ("mlx5_comp3@pci:0000:3b:00.0", Some(3)),
            ("ens5-Tx-Rx-1", Some(1)),
            ("hns3-0000:bd:00.0-TxRx-5", Some(5)),
            ("mlx5_async0@pci:0000:3b:00.0", None),
            ("virtio2-config", None),
            ("eth0", None),
            ("smp_affinity_list", None),
            ("node", None),
            ("", None),
        ] {
            assert_eq!(queue(name), expected, "{name}");
        }
    }
}
