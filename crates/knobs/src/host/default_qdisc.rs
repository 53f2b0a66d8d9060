//! The queueing discipline of new devices or, where one is named, of that device.

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
    summary: "queueing discipline of new devices, or of the device that is named",
    values: "the name of one that the kernel has, such as fq, fq_codel or pfifo_fast; for a device also default",
    doc: Doc {
        does: "Packets wait in the qdisc before the device; it orders them, and its lock is what senders of one queue \
               meet at. Without --device it is what devices made from now on start with; with it, that device's root \
               is replaced.",
        helps: "fq for bbr, which paces through it; one without a lock of its own (noqueue, mq with a child per queue) \
                where a classful root is hot.",
        costs: "What waits in the replaced root is lost. Writing it may load a module, which stays. A root that \
                somebody configured is never replaced.",
        undone: "The former name is written back; a replaced root becomes again what the kernel had chosen.",
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
            "devices that exist keep theirs; name one with --device to replace its root instead",
        ));
    }
    let device = context.interface(&KNOB)?;
    let value = SETTING
        .normal(&name)
        .ok_or_else(|| KNOB.bad_wish(wish, "it is no name of a qdisc"))?;
    Ok(
        setting_edit(Draft::default(), context.place, device, SETTING, value)
            .note("what waits in the device's queue is lost"),
    )
}
