//! Transmit steering by receive queue: replies leave through the queue that received the request.

use crate::knob::{Context, Current, Doc, Draft, Knob, PUT_BACK, Risk, Scope, Settable};
use crate::mask::{self, Cpus};
use crate::target::{Form, Target};
use crate::turn::Turn;
use crate::{Error, Result};

/// `net.xps_rxqs`
pub(crate) static KNOB: Knob = Knob {
    id: "net.xps_rxqs",
    scope: Scope::Device,
    risk: Risk::Live,
    settable: Settable::Yes,
    summary: "sends replies through the queue that received the request",
    values: "off or same (transmit queue i serves receive queue i)",
    doc: Doc {
        does: "A socket remembers the receive queue of its last packet; each transmit queue names the receive queues \
               that it serves.",
        helps: "With busy-polling threads that each own a queue pair, so that no other thread takes its locks.",
        costs: "For those sockets net.xps_cpus is ignored.",
        undone: PUT_BACK,
        sources: "Documentation/networking/scaling.rst (Linux).",
    },
    by_hand: &[],
    writes: &[Target::File(
        "/sys/class/net/*/queues/tx-*/xps_rxqs",
        Form::Mask,
    )],
    turn: Turn::Own { read, draft },
};

fn read(context: &Context<'_>) -> Result<Current> {
    let paths = context.queues(&KNOB, "tx", "xps_rxqs")?;
    let readings: Vec<_> = match paths.iter().map(|path| context.read(&KNOB, path)).collect() {
        Ok(readings) => readings,
        // A device with one queue has the file, but reading it is ENOENT (net-sysfs.c).
        Err(Error::Absent { .. }) if paths.len() == 1 => {
            return Ok(Current::unknown("the device has a single transmit queue"));
        }
        Err(error) => return Err(error),
    };
    let masks: Vec<_> = readings
        .iter()
        .map(|reading| mask::parse(&reading.value).unwrap_or_default())
        .collect();
    let same = |(index, mask): (usize, &Cpus)| *mask == Cpus::from([index]);
    let value = if masks.iter().all(Cpus::is_empty) {
        "off"
    } else if masks.iter().enumerate().all(same) {
        "same"
    } else {
        "mixed"
    };
    Ok(Current::known(value, readings))
}

fn draft(context: &Context<'_>, wish: &str) -> Result<Draft> {
    let same = match wish {
        "off" => false,
        "same" => true,
        _ => return Err(KNOB.bad_wish(wish, "it is neither off nor same")),
    };
    let receive = context.files(&KNOB, "/sys/class/net/*/queues/rx-*")?.len();
    let queues = context.queues(&KNOB, "tx", "xps_rxqs")?;
    Ok(queues
        .into_iter()
        .enumerate()
        .fold(Draft::default(), |draft, (index, path)| {
            let serves = (same && index < receive).then_some(index);
            draft.file(
                context.place,
                path,
                &mask::format(&serves.into_iter().collect()),
            )
        }))
}
