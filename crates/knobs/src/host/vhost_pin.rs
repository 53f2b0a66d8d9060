//! The threads that copy the packets of virtual machines, on their host.
//!
//! Each is called `vhost-PID` after its QEMU process. Until Linux 6.3 it is a thread of the kernel with a process
//! number of its own, since then one of QEMU's own threads. Source: drivers/vhost/vhost.c, `kernel/vhost_task.c`.

use super::threads_named;
use crate::edit::{Edit, Place, Thread};
use crate::error::{Error, Result};
use crate::knob::{COMMON, Context, Current, Doc, Draft, Knob, Reading, Risk};
use crate::target::{Form, Target};
use crate::turn::Turn;

/// `virt.vhost_pin`
pub(crate) static KNOB: Knob = Knob {
    id: "virt.vhost_pin",
    risk: Risk::Disruptive,
    summary: "pins the threads that move a guest's packets, away from its vCPUs",
    values: "the host's CPUs for those of all guests, as a list such as 16-17, or PID:LIST for those of one QEMU \
             process",
    doc: Doc {
        does: "The vhost threads of a guest copy its packets on the host; by default they share the CPUs of its vCPUs. \
               Set it on the host of the guests, not inside one.",
        helps: "When vCPUs are pinned and vhost threads still run on their CPUs.",
        costs: "CPUs that no guest may use. The threads of a guest that starts later, or gets another queue, are not \
                pinned.",
        undone: "Each thread gets its previous CPUs back, unless it was pinned again or has ended.",
        sources: "drivers/vhost/vhost.c (Linux 6.18); libvirt, domain XML, emulatorpin (vhost threads follow it).",
    },
    writes: &[Target::Affinity],
    turn: Turn::Own { read, draft },
    ..COMMON
};

const NONE: &str = "no guest of this host has vhost threads; they are invisible inside a guest: set it on that guest's \
                    host";

fn read(context: &Context<'_>) -> Result<Current> {
    let mut readings = Vec::new();
    for (_, thread) in threads(context)? {
        // A thread that has ended since does not hide the others.
        if let Ok(value) = thread.cpus(context.machine) {
            let source = thread.to_string();
            readings.push(Reading { source, value });
        }
    }
    let Some((first, others)) = readings.split_first() else {
        return Ok(Current::unknown(NONE));
    };
    let alike = |other: &Reading| Form::CpuList.same(&other.value, &first.value);
    let value = if others.iter().all(alike) {
        first.value.clone()
    } else {
        "mixed".to_owned()
    };
    Ok(Current::known(value, readings))
}

fn draft(context: &Context<'_>, wish: &str) -> Result<Draft> {
    let (guest, list) = match wish.split_once(':') {
        None => (None, wish),
        Some((pid, list)) => {
            let pid: u32 = pid
                .parse()
                .map_err(|_| KNOB.bad_wish(wish, format!("'{pid}' is not a process id")))?;
            (Some(pid), list)
        }
    };
    let value = Form::CpuList
        .value(list, context.cpus)
        .map_err(|why| KNOB.bad_wish(wish, why))?;
    let mut draft = Draft::default();
    for (of, thread) in threads(context)? {
        if guest.is_none_or(|guest| guest == of) {
            let value = value.clone();
            draft = draft.edit(&Place::Host, Edit::Affinity { thread, value });
        }
    }
    match (draft.edits.is_empty(), guest) {
        (false, _) => Ok(draft),
        (true, Some(pid)) => {
            Err(KNOB.bad_wish(wish, format!("process {pid} has no vhost threads")))
        }
        (true, None) => Err(Error::NotSettable {
            knob: KNOB.id,
            why: NONE.to_owned(),
        }),
    }
}

/// Every vhost thread with the process of its guest, in order.
fn threads(context: &Context<'_>) -> Result<Vec<(u32, Thread)>> {
    threads_named(&KNOB, context, |name| {
        name.strip_prefix("vhost-")?.parse().ok()
    })
}
