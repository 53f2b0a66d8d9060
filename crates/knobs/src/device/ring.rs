//! Descriptors of the device's rings: how many packets it can hold until the CPU polls it.

use rungwise_host::DeviceSetting;

use crate::Result;
use crate::device;
use crate::knob::{Context, Current, Doc, Draft, Knob, Risk, Scope, Settable};
use crate::target::Target;
use crate::turn::{Turn, draft_setting};

const SETTING: DeviceSetting = DeviceSetting::Ring;

/// `net.ring`
pub(crate) static KNOB: Knob = Knob {
    id: "net.ring",
    scope: Scope::Device,
    risk: Risk::Disruptive,
    settable: Settable::Yes,
    summary: "packets that a device can hold until the CPU polls it",
    values: "parts such as rx=4096 or rx=4096,tx=1024, or max",
    doc: Doc {
        does: "The device writes each packet into the next free descriptor and drops it when there is none.",
        helps: "When the device's own drop counters grow (rx_missed_errors, rx_no_buffer, rx_fifo): the first remedy \
                for drops in hardware, though only for bursts.",
        costs: "Memory; packets in a long ring arrive late and with cold caches. Most drivers stop the queues during \
                the change, some the link.",
        undone: "The previous sizes are set again, with the same interruption.",
        sources: "ethtool(8), -G; RHEL 7 performance guide 9.3.2.",
    },
    by_hand: &[],
    writes: &[Target::Setting(SETTING)],
    turn: Turn::Own { read, draft },
};

fn read(context: &Context<'_>) -> Result<Current> {
    Turn::Setting(SETTING).read(&KNOB, context)
}

fn draft(context: &Context<'_>, wish: &str) -> Result<Draft> {
    let wish = match wish {
        "max" => {
            let ring = device::details(&KNOB, context)?.ring;
            let ring = ring.ok_or_else(|| {
                KNOB.bad_wish(wish, "the driver does not report its maximum sizes")
            })?;
            &format!("rx={} tx={}", ring.max_rx, ring.max_tx)
        }
        wish => wish,
    };
    Ok(draft_setting(&KNOB, context, SETTING, wish)?
        .note("the device may stop briefly, or lose its link"))
}
