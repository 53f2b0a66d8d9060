//! A reader spins on the device's queue before it sleeps.

use rungwise_model::units;

use crate::Result;
use crate::knob::{Context, Doc, Draft, Knob, Risk, Scope, Settable};
use crate::service;
use crate::target::Target;
use crate::turn::Turn;

/// `sock.busy_poll`
pub(crate) static KNOB: Knob = Knob {
    id: "sock.busy_poll",
    scope: Scope::Service,
    risk: Risk::Restart,
    settable: Settable::Yes,
    summary: "spins on the device's queue before a reader sleeps",
    values: "off, or how long, such as 50us",
    doc: Doc {
        does: "SO_BUSY_POLL lets a receive that would block poll the device's queue for that long.",
        helps: "Latency, with a CPU to spare for it and a device with NAPI.",
        costs: "It uses up the CPU that it spins on. Loopback has nothing to poll.",
        undone: service::RESTARTED,
        sources: "socket(7); Documentation/networking/napi.rst (Linux); open-mpi issue 10929, 3 to 5 times \
               slower when set for all sockets.",
    },
    by_hand: &[],
    writes: &[Target::Switch("busy_poll")],
    turn: Turn::Own {
        read: service::read,
        draft,
    },
};

fn draft(context: &Context<'_>, wish: &str) -> Result<Draft> {
    if wish == "off" {
        return Ok(service::switch(context, "busy_poll", &wish));
    }
    let time = units::duration(wish).map_err(|error| KNOB.bad_wish(wish, error.to_string()))?;
    // The option is a C int of microseconds; more than a second is a mistake, not a wish.
    if !(1..=1_000_000).contains(&time.as_micros()) {
        return Err(KNOB.bad_wish(wish, "the time is not between 1us and 1s"));
    }
    Ok(service::switch(
        context,
        "busy_poll",
        &format!("{}us", time.as_micros()),
    ))
}
