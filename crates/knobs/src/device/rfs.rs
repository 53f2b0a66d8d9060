//! Receive flow steering: packets follow the thread that reads them.

use crate::Result;
use crate::edit::Place;
use crate::knob::{Context, Current, Doc, Draft, Knob, Risk, Scope, Settable};
use crate::target::{Form, Target};
use crate::turn::Turn;

const TABLE: &str = "/proc/sys/net/core/rps_sock_flow_entries";

/// The kernel's own limit of the global table (`rps_sock_flow_sysctl`, Linux 6.18).
const MOST_ENTRIES: u64 = 1 << 29;

/// `net.rfs`
pub(crate) static KNOB: Knob = Knob {
    id: "net.rfs",
    scope: Scope::Device,
    risk: Risk::Live,
    settable: Settable::Yes,
    summary: "steers a flow's packets to the CPU of the thread that reads them",
    values: "off, or the number of flows in the table, such as 32768",
    doc: Doc {
        does: "A machine-wide table records on which CPU each flow was last read; receive steering sends the flow's \
               packets there. Each receive queue gets an equal share of the table. The kernel rounds every size up to \
               a power of two (5000 reads 8192).",
        helps: "With many flows whose readers run on another CPU than the softirq. net.rps_cpus steers flows that are \
                not in the table; without it they stay on the CPU that received them.",
        costs: "Memory for the tables and a look-up per packet. Useless where each socket has its own CPU.",
        undone: "The previous sizes of the queues' tables and of the machine's table are written back. All devices \
                 share the machine's table; it is restored only if it still has the size that rungwise set.",
        sources: "Documentation/networking/scaling.rst; get_rps_cpu in net/core/dev.c (Linux 6.18); rounding measured \
                  there.",
    },
    by_hand: &[],
    writes: &[
        Target::File(TABLE, Form::PowerOfTwo),
        Target::File(
            "/sys/class/net/*/queues/rx-*/rps_flow_cnt",
            Form::PowerOfTwo,
        ),
    ],
    turn: Turn::Own { read, draft },
};

fn read(context: &Context<'_>) -> Result<Current> {
    let table = context.read_machine(&KNOB, TABLE)?;
    let queues: Result<Vec<_>> = context
        .queues(&KNOB, "rx", "rps_flow_cnt")?
        .iter()
        .map(|path| context.read(&KNOB, path))
        .collect();
    let queues = queues?;
    // Both tables are needed: one alone does nothing.
    let active = table.value != "0" && queues.iter().any(|queue| queue.value != "0");
    let value = if active {
        table.value.clone()
    } else {
        "off".to_owned()
    };
    let readings = std::iter::once(table).chain(queues).collect();
    Ok(Current::known(value, readings))
}

fn draft(context: &Context<'_>, wish: &str) -> Result<Draft> {
    let entries = match wish {
        "off" => 0,
        wish => KNOB.number(wish, 1..=MOST_ENTRIES)?,
    };
    let queues = context.queues(&KNOB, "rx", "rps_flow_cnt")?;
    let share = entries.div_ceil(queues.len().max(1) as u64);
    let mut draft = Draft::default();
    // Switching off needs only the device's part: the table may serve another device.
    if entries > 0 {
        draft = draft.file(&Place::Host, TABLE, &entries);
    }
    for path in queues {
        draft = draft.file(context.place, path, &share);
    }
    Ok(draft.note("net.rps_cpus steers flows that no thread has read yet"))
}
