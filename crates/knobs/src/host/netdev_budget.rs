//! How much one round of the receive softirq may do.

use rungwise_model::units;

use crate::Result;
use crate::edit::Place;
use crate::knob::{Context, Current, Doc, Draft, Knob, Risk, Scope, Settable};
use crate::target::{Form, Target};
use crate::turn::Turn;

const PACKETS: &str = "/proc/sys/net/core/netdev_budget";
const TIME: &str = "/proc/sys/net/core/netdev_budget_usecs";

/// `net.netdev_budget`
pub(crate) static KNOB: Knob = Knob {
    id: "net.netdev_budget",
    scope: Scope::Host,
    risk: Risk::Live,
    settable: Settable::Yes,
    summary: "packets and time that one round of the receive softirq may take",
    values: "PACKETS/TIME such as 600/16ms",
    doc: Doc {
        does: "A round ends after this many packets or this much time, whichever comes first; what is left is \
               counted as time_squeeze and waits for the next round or for ksoftirqd.",
        helps: "When time_squeeze grows with more than 1 % of the rounds and packets are dropped or late. Raise \
                both: raising packets alone does nothing where time is the limit.",
        costs: "Longer rounds keep the service's threads off their CPU.",
        undone: "Both previous values are written back.",
        sources: "Documentation/admin-guide/sysctl/net.rst; netdata issue 1076 (no effect until the time was raised); \
                  300 and 8000 us on Linux 6.18 with HZ=250.",
    },
    by_hand: &[],
    writes: &[
        Target::File(PACKETS, Form::Words),
        Target::File(TIME, Form::Words),
    ],
    turn: Turn::Own { read, draft },
};

fn read(context: &Context<'_>) -> Result<Current> {
    let packets = context.read_machine(&KNOB, PACKETS)?;
    let time = context.read_machine(&KNOB, TIME)?;
    Ok(Current::known(
        format!("{}/{}us", packets.value, time.value),
        vec![packets, time],
    ))
}

fn draft(_: &Context<'_>, wish: &str) -> Result<Draft> {
    let (packets, time) = wish
        .split_once('/')
        .ok_or_else(|| KNOB.bad_wish(wish, "it is not PACKETS/TIME"))?;
    let packets = KNOB.number(packets, 1..=1_000_000)?;
    let time = units::duration(time).map_err(|error| KNOB.bad_wish(wish, error.to_string()))?;
    let microseconds = time.as_micros();
    // A round of a second would freeze the CPU for everything else; the limit is our own.
    if !(1..=1_000_000).contains(&microseconds) {
        return Err(KNOB.bad_wish(wish, "the time is not between 1us and 1s"));
    }
    Ok(Draft::default().file(&Place::Host, PACKETS, &packets).file(
        &Place::Host,
        TIME,
        &microseconds,
    ))
}
