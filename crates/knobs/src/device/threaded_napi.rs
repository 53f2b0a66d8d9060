//! Threaded NAPI: a device is polled by kernel threads instead of softirqs.

use crate::Result;
use crate::knob::{Context, Current, Doc, Draft, Knob, Risk, Scope, Settable};
use crate::target::{Form, Target};

/// `net.threaded_napi`
pub(crate) static KNOB: Knob = Knob {
    id: "net.threaded_napi",
    scope: Scope::Device,
    risk: Risk::Disruptive,
    settable: Settable::Yes,
    summary: "polls a device in kernel threads that the scheduler sees",
    values: "on or off",
    doc: Doc {
        does: "Each receive queue gets a kernel thread (napi/DEVICE-N) that polls it. The scheduler weighs it \
               against the service's threads, and it can be pinned.",
        helps: "When softirq time starves a service thread on the same CPU.",
        costs: "The scheduler's latency enters the receive path. A veth has NAPI only while GRO is on; otherwise \
                the kernel refuses with 'operation not supported'.",
        undone: "The former state is written back. Turn it back before GRO on a veth; undo does, because it runs in \
                 reverse order.",
        sources: "Documentation/networking/napi.rst (Linux); the refusal was measured on Linux 6.18.",
    },
    writes: &[Target::File("/sys/class/net/*/threaded", Form::Words)],
    read,
    draft,
};

fn read(context: &Context<'_>) -> Result<Current> {
    let reading = context.read(&KNOB, &path(context)?)?;
    let value = match reading.value.as_str() {
        "0" => "off",
        "1" => "on",
        other => other,
    };
    Ok(Current::known(value, vec![reading.clone()]))
}

fn draft(context: &Context<'_>, wish: &str) -> Result<Draft> {
    let on = KNOB.on_off(wish)?;
    Ok(Draft::default().file(context.place, path(context)?, &u8::from(on)))
}

fn path(context: &Context<'_>) -> Result<String> {
    Ok(format!(
        "/sys/class/net/{}/threaded",
        context.device(&KNOB)?
    ))
}
