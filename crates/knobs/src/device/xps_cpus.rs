//! Transmit packet steering: which CPUs send through which transmit queue.

use crate::device;
use crate::knob::{Context, Current, Doc, Draft, Knob, Risk, Scope, Settable};
use crate::mask::{self, Cpus};
use crate::target::{Form, Target};
use crate::turn::Turn;
use crate::{Error, Result};

/// `net.xps_cpus`
pub(crate) static KNOB: Knob = Knob {
    id: "net.xps_cpus",
    scope: Scope::Device,
    risk: Risk::Live,
    settable: Settable::Yes,
    summary: "CPUs that send through each transmit queue of a device",
    values: "off, by-cpu (CPUs assigned to the queues in turn), all, or a CPU list for every queue",
    doc: Doc {
        does: "A CPU sends through the queues whose mask names it, instead of a queue chosen by the flow's hash. With \
               one queue per CPU, no two CPUs contend for a queue's lock, and the completion runs on the CPU that sent \
               the packet.",
        helps: "When a device has several transmit queues, several CPUs send, and the driver has not set the masks \
                itself (ixgbe does, veth and most others do not).",
        costs: "Nothing measurable with as many queues as CPUs. With fewer, CPUs share queues anyway. Removing it \
                slowed the reference case by a factor of 4.65.",
        undone: "The previous mask of every queue is written back.",
        sources: "Documentation/networking/scaling.rst (Linux); the UDP ladder of the reference case (5,050 k to \
                  1,086 k transactions/s without it); +4.2 % on a two-queue veth pair, Linux 6.18.",
    },
    by_hand: &[],
    writes: &[Target::File(
        "/sys/class/net/*/queues/tx-*/xps_cpus",
        Form::Mask,
    )],
    turn: Turn::Own { read, draft },
};

fn read(context: &Context<'_>) -> Result<Current> {
    let paths = context.queues(&KNOB, "tx", "xps_cpus")?;
    let readings: Vec<_> = match paths.iter().map(|path| context.read(&KNOB, path)).collect() {
        Ok(readings) => readings,
        // A device with one queue has the file, but reading it is ENOENT (net-sysfs.c).
        Err(Error::Absent { .. }) if paths.len() == 1 => {
            return Ok(Current::unknown("the device has a single transmit queue"));
        }
        Err(error) => return Err(error),
    };
    let by_cpu = dealt(context.cpus, readings.len());
    let is_by_cpu = readings.len() > 1
        && readings
            .iter()
            .zip(&by_cpu)
            .all(|(reading, cpus)| mask::parse(&reading.value).as_ref() == Some(cpus));
    if is_by_cpu {
        return Ok(Current::known("by-cpu", readings));
    }
    Ok(device::masks(&KNOB, readings))
}

fn draft(context: &Context<'_>, wish: &str) -> Result<Draft> {
    let queues = context.queues(&KNOB, "tx", "xps_cpus")?;
    let masks = match wish {
        "by-cpu" => dealt(context.cpus, queues.len()),
        wish => vec![KNOB.cpus(context, wish)?; queues.len()],
    };
    Ok(queues
        .into_iter()
        .zip(masks)
        .fold(Draft::default(), |draft, (path, cpus)| {
            draft.file(context.place, path, &mask::format(&cpus))
        }))
}

/// The CPUs assigned to the queues in turn; queues beyond the last CPU start again at the first CPU.
fn dealt(cpus: &[usize], queues: usize) -> Vec<Cpus> {
    let mut masks = vec![Cpus::new(); queues];
    if cpus.is_empty() {
        return masks;
    }
    for index in 0..queues.max(cpus.len()) {
        if let Some(mask) = masks.get_mut(index % queues.max(1)) {
            mask.insert(cpus[index % cpus.len()]);
        }
    }
    masks
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cpus_are_dealt_round_the_queues_and_no_queue_stays_empty() {
        let text = |cpus: &[usize], queues| -> Vec<String> {
            dealt(cpus, queues).iter().map(mask::format_list).collect()
        };
        assert_eq!(text(&[0, 1], 2), ["0", "1"]);
        assert_eq!(text(&[0, 1, 2, 3], 2), ["0,2", "1,3"]);
        assert_eq!(text(&[0, 1], 4), ["0", "1", "0", "1"]);
        assert_eq!(text(&[], 2), ["", ""]);
        assert!(text(&[0], 0).is_empty());
    }
}
