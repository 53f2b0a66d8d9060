//! The CPUs of a control group.

use crate::Result;
use crate::cgroup::{absent, file};
use crate::edit::Place;
use crate::knob::{Context, Current, Doc, Draft, Knob, PUT_BACK, Risk, Scope, Settable};
use crate::target::{Form, Target};
use crate::turn::Turn;

const FORM: Form = Form::CpuList;

/// `virt.container_cpuset`
pub(crate) static KNOB: Knob = Knob {
    id: "virt.container_cpuset",
    scope: Scope::Cgroup,
    risk: Risk::Disruptive,
    settable: Settable::Yes,
    summary: "CPUs that a container, or any control group, may use",
    values: "all, or a CPU list such as 0-3",
    doc: Doc {
        does: "Its threads run on these CPUs only, regardless of their own affinity.",
        helps: "Dedicated CPUs keep noisy neighbours out of its caches, as long as the neighbours are kept off those \
                CPUs too.",
        costs: "Its threads cannot use idle CPUs elsewhere. Threads pinned to a CPU outside the list lose the pin, and \
                undo does not restore it. The container runtime may write its own list again.",
        undone: PUT_BACK,
        sources: "Documentation/admin-guide/cgroup-v2.rst, cpuset (Linux).",
    },
    by_hand: &[],
    writes: &[Target::File("/sys/fs/cgroup/**/cpuset.cpus", FORM)],
    turn: Turn::Own { read, draft },
};

fn path(context: &Context<'_>) -> Result<String> {
    file(&KNOB, context, "cpuset.cpus")?.ok_or_else(|| absent(&KNOB, context, "cpuset.cpus"))
}

fn read(context: &Context<'_>) -> Result<Current> {
    let reading = context.read_machine(&KNOB, &path(context)?)?;
    // Empty in version 2: what the parent has.
    let value = match reading.value.as_str() {
        "" => "all".to_owned(),
        list => list.to_owned(),
    };
    Ok(Current::known(value, vec![reading]))
}

fn draft(context: &Context<'_>, wish: &str) -> Result<Draft> {
    let path = path(context)?;
    let unset = context.read_machine(&KNOB, &path)?.value.is_empty();
    let value = if wish == "all" && unset {
        String::new()
    } else {
        FORM.value(wish, context.cpus)
            .map_err(|why| KNOB.bad_wish(wish, why))?
    };
    Ok(Draft::default().file(&Place::Host, path, &value))
}
