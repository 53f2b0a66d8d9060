//! The daemon that moves interrupts between CPUs.

use crate::Result;
use crate::by_hand::{Manual, Way};
use crate::edit::{Edit, Place};
use crate::error::Error;
use crate::knob::{COMMON, Context, Current, Doc, Draft, Knob, Reading, Risk};
use crate::target::Target;
use crate::turn::Turn;

const UNIT: &str = "irqbalance.service";

/// `net.irqbalance_stop`
pub(crate) static KNOB: Knob = Knob {
    id: "net.irqbalance_stop",
    risk: Risk::Disruptive,
    summary: "the daemon that moves interrupts between CPUs",
    values: "stop, run, or ban (by hand)",
    doc: Doc {
        does: "Every 10 seconds irqbalance checks the load of interrupts and rewrites their affinity, including what \
               was set by hand. stop ends it until the next boot, run starts it; ban excludes the interrupts of one \
               device, in irqbalance's own configuration.",
        helps: "When interrupts placed with net.irq_affinity drift back.",
        costs: "While it is stopped, the interrupts of every other device stay where they are, which may be CPU 0: \
                prefer ban.",
        undone: "The service returns to its previous state. Once started, it moves interrupts within 10 s.",
        sources: "irqbalance(1), --banirq and --policyscript; systemctl(1); redpanda issue 17005: a ban list that was not \
                  honoured.",
    },
    by_hand: &[Manual {
        wish: "ban",
        way: Way::Command,
        text: "ls /sys/class/net/DEVICE/device/msi_irqs\n\
               # to the line OPTIONS (IRQBALANCE_ARGS) of /etc/default/irqbalance or /etc/sysconfig/irqbalance\n\
               # add --banirq=N for each of them, then\n\
               systemctl restart irqbalance",
    }],
    writes: &[Target::Unit(UNIT)],
    turn: Turn::Own { read, draft },
    ..COMMON
};

fn read(context: &Context<'_>) -> Result<Current> {
    let edit = unit(true);
    let value = edit.current(context.machine).map_err(|answer| {
        Error::kernel(
            KNOB.id,
            format!("read the state of {UNIT}"),
            context.machine.name(),
            answer,
        )
    })?;
    let wish = if value == edit.value() { "run" } else { "stop" };
    let source = edit.target();
    Ok(Current::known(wish, vec![Reading { source, value }]))
}

fn draft(_: &Context<'_>, wish: &str) -> Result<Draft> {
    let active = match wish {
        "run" => true,
        "stop" => false,
        _ => {
            return KNOB.by_hand(
                wish,
                "ask the owner of its configuration; banning the interrupts of one device is better than stopping it",
            );
        }
    };
    Ok(Draft::default().edit(&Place::Host, unit(active)))
}

fn unit(active: bool) -> Edit {
    Edit::Unit {
        unit: UNIT.to_owned(),
        active,
    }
}
