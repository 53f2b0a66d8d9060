//! The queueing discipline of new devices, or of the named device.

use rungwise_host::DeviceSetting;

use crate::Result;
use crate::edit::Place;
use crate::knob::{Context, Current, Doc, Draft, Knob, Risk, Scope, Settable};
use crate::target::{Form, Target};
use crate::turn::{Turn, setting_edit};

const PATH: &str = "/proc/sys/net/core/default_qdisc";
const SETTING: DeviceSetting = DeviceSetting::RootQdisc;

/// `net.default_qdisc`
pub(crate) static KNOB: Knob = Knob {
    id: "net.default_qdisc",
    scope: Scope::Host,
    risk: Risk::Disruptive,
    settable: Settable::Yes,
    summary: "queueing discipline of new devices, or of the named device",
    values: "a qdisc that the kernel has, such as fq, fq_codel or pfifo_fast; for a device also default",
    doc: Doc {
        does: "Packets wait in the qdisc before the device; it orders them, and senders of one queue contend for its \
               lock. Without --device, new devices start with it; with --device, it replaces that device's root.",
        helps: "fq for bbr, which paces through it; a qdisc without its own lock (noqueue, mq with a child per queue) \
                where a classful root is hot.",
        costs: "Packets in the replaced root are lost. Writing it may load a module, which stays loaded. A root that \
                an administrator configured is never replaced.",
        undone: "The previous name is written back; a replaced root reverts to the kernel's choice.",
        sources: "Documentation/admin-guide/sysctl/net.rst (Linux); tc(8); net/sched/sch_api.c.",
    },
    by_hand: &[],
    writes: &[Target::File(PATH, Form::Word), Target::Setting(SETTING)],
    turn: Turn::Own { read, draft },
};

fn read(context: &Context<'_>) -> Result<Current> {
    let reading = if context.device.is_some() {
        context.read_setting(&KNOB, context.interface(&KNOB)?, SETTING)?
    } else {
        context.read_machine(&KNOB, PATH)?
    };
    Ok(Current::known(reading.value.clone(), vec![reading]))
}

fn draft(context: &Context<'_>, wish: &str) -> Result<Draft> {
    let name = Form::Word
        .value(wish, context.cpus)
        .map_err(|why| KNOB.bad_wish(wish, why))?;
    if context.device.is_none() {
        return Ok(Draft::default().file(&Place::Host, PATH, &name).note(
            "existing devices keep theirs; name one with --device to replace its root instead",
        ));
    }
    let device = context.interface(&KNOB)?;
    let value = SETTING
        .normal(&name)
        .ok_or_else(|| KNOB.bad_wish(wish, "it is not a qdisc name"))?;
    Ok(
        setting_edit(Draft::default(), context.place, device, SETTING, value)
            .note("packets in the device's queue are lost"),
    )
}
