//! Deferred interrupts: a device's queue is polled by a timer before its interrupt is armed again.

use std::time::Duration;

use rungwise_model::units;

use crate::Result;
use crate::knob::{Context, Current, Doc, Draft, Knob, Risk, Scope, Settable};
use crate::target::{Form, Target};
use crate::turn::Turn;

/// Longest wait that is accepted: a mistyped unit (20s for 20us) would cut the machine off the network. A guess, fifty
/// times what the kernel's documentation suggests.
const LONGEST: Duration = Duration::from_millis(10);

/// `net.napi_defer`
pub(crate) static KNOB: Knob = Knob {
    id: "net.napi_defer",
    scope: Scope::Device,
    risk: Risk::Disruptive,
    settable: Settable::Yes,
    summary: "timed polls before a device's interrupt is armed again",
    values: "off, or POLLS/TIME such as 2/20us",
    doc: Doc {
        does: "After a poll that found nothing, the kernel waits TIME (gro_flush_timeout) and polls again, up to \
               POLLS times in a row (napi_defer_hard_irqs), before it arms the interrupt.",
        helps: "When the interrupt rate is the limit, with many queues, or for busy-polling readers.",
        costs: "Up to TIME of latency for a packet that arrives between polls.",
        undone: "Both previous values are written back, in reverse order.",
        sources: "Documentation/networking/napi.rst; Linux commit 6f8b12d661d0.",
    },
    by_hand: &[],
    writes: &[
        Target::File("/sys/class/net/*/napi_defer_hard_irqs", Form::Words),
        Target::File("/sys/class/net/*/gro_flush_timeout", Form::Words),
    ],
    turn: Turn::Own { read, draft },
};

fn read(context: &Context<'_>) -> Result<Current> {
    let [polls, time] = paths(context)?;
    let polls = context.read(&KNOB, &polls)?;
    let time = context.read(&KNOB, &time)?;
    let value = match (polls.value.as_str(), time.value.as_str()) {
        ("0", "0") => "off".to_owned(),
        (polls, nanoseconds) => format!("{polls}/{nanoseconds}ns"),
    };
    Ok(Current::known(value, vec![polls, time]))
}

fn draft(context: &Context<'_>, wish: &str) -> Result<Draft> {
    let (polls, nanoseconds) = if wish == "off" {
        (0, 0)
    } else {
        let (polls, time) = wish
            .split_once('/')
            .ok_or_else(|| KNOB.bad_wish(wish, "it is neither off nor POLLS/TIME"))?;
        let time = units::duration(time).map_err(|error| KNOB.bad_wish(wish, error.to_string()))?;
        if time > LONGEST {
            return Err(KNOB.bad_wish(wish, "the time is longer than 10ms"));
        }
        (
            KNOB.number(polls, 0..=u64::from(i32::MAX.unsigned_abs()))?,
            time.as_nanos(),
        )
    };
    let [polls_path, time_path] = paths(context)?;
    Ok(Draft::default()
        .file(context.place, polls_path, &polls)
        .file(context.place, time_path, &nanoseconds))
}

fn paths(context: &Context<'_>) -> Result<[String; 2]> {
    let device = context.device(&KNOB)?;
    Ok(["napi_defer_hard_irqs", "gro_flush_timeout"]
        .map(|name| format!("/sys/class/net/{device}/{name}")))
}
