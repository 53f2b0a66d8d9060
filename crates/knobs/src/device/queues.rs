//! Queues of a device that are in use.
//!
//! A change of their number loses masks: a removed queue comes back without its masks. So every mask that is set is
//! preserved: recorded before the change, written again after it, and restored by the undo.

use rungwise_host::DeviceSetting;

use crate::Result;
use crate::device;
use crate::edit::Edit;
use crate::knob::{Context, Current, Doc, Draft, Knob, Risk, Scope, Settable};
use crate::target::{Form, Target};
use crate::turn::{Turn, draft_setting};

const SETTING: DeviceSetting = DeviceSetting::Channels;

/// What a queue loses when it is removed: direction, file, form.
const KEPT: [(&str, &str); 4] = [
    ("rx", "rps_cpus"),
    ("rx", "rps_flow_cnt"),
    ("tx", "xps_cpus"),
    ("tx", "xps_rxqs"),
];

/// `net.queues`
pub(crate) static KNOB: Knob = Knob {
    id: "net.queues",
    scope: Scope::Device,
    risk: Risk::Disruptive,
    settable: Settable::Yes,
    summary: "number of active queues of a device",
    values: "a number such as 4, max, or parts such as combined=4 or rx=4,tx=4",
    doc: Doc {
        does: "Each queue has its own interrupt, and so its own receiving CPU.",
        helps: "More: when a device uses fewer queues than it has and few CPUs run all softirqs; up to the number of \
                CPUs of its node. Fewer: to save CPU when queues are nearly empty.",
        costs: "Packets are lost during the change; some drivers also drop the link. The RSS table is rebuilt. Masks \
                of net.rps_cpus, net.rfs, net.xps_cpus and net.xps_rxqs are written again for the remaining queues; \
                new queues have none until those knobs are set. Many drivers request their interrupts anew, and the \
                kernel then chooses the CPUs, also after the undo: set net.irq_affinity again.",
        undone: "The previous number is set again, with the same interruption, and every mask that was set is written \
                 back. A mask that someone else has set since is kept and reported.",
        sources: "ethtool(8), -L; net_rx_queue_update_kobjects and netif_reset_xps_queues_gt in net/core (Linux 6.18); \
                  the reference case of the bank.",
    },
    by_hand: &[],
    writes: &[
        Target::Setting(SETTING),
        Target::File("/sys/class/net/*/queues/rx-*/rps_cpus", Form::Mask),
        Target::File(
            "/sys/class/net/*/queues/rx-*/rps_flow_cnt",
            Form::PowerOfTwo,
        ),
        Target::File("/sys/class/net/*/queues/tx-*/xps_cpus", Form::Mask),
        Target::File("/sys/class/net/*/queues/tx-*/xps_rxqs", Form::Mask),
    ],
    turn: Turn::Own { read, draft },
};

fn read(context: &Context<'_>) -> Result<Current> {
    Turn::Setting(SETTING).read(&KNOB, context)
}

fn draft(context: &Context<'_>, wish: &str) -> Result<Draft> {
    let now = context.read_setting(&KNOB, context.device(&KNOB)?, SETTING)?;
    let combined = now.value.contains("combined=");
    let all = |rx: u64, tx: u64, both: u64| {
        if combined {
            format!("combined={both}")
        } else {
            format!("rx={rx} tx={tx}")
        }
    };
    let change = if wish == "max" {
        let channels = device::details(&KNOB, context)?.channels;
        let most = channels
            .ok_or_else(|| KNOB.bad_wish(wish, "the driver does not report its largest count"))?;
        all(
            most.max_rx.into(),
            most.max_tx.into(),
            most.max_combined.into(),
        )
    } else if wish.contains('=') {
        wish.to_owned()
    } else {
        let queues = KNOB.number(wish, 1..=1024)?;
        all(queues, queues, queues)
    };
    let mut draft = draft_setting(&KNOB, context, SETTING, &change)?;
    if SETTING.normal(&now.value) == SETTING.normal(&draft.edits[0].1.value()) {
        return Ok(draft);
    }
    let [rx, tx] = ["rx", "tx"].map(|direction| queues(&draft.edits[0].1.value(), direction));
    let mut before = Vec::new();
    let mut after = Vec::new();
    for (direction, name) in KEPT {
        for (index, path) in context
            .queues(&KNOB, direction, name)?
            .into_iter()
            .enumerate()
        {
            // The mask of a single transmit queue cannot be read, and there is nothing in it.
            let Ok(value) = context.read(&KNOB, &path).map(|reading| reading.value) else {
                continue;
            };
            let keep = Edit::Keep { path, value };
            if keep.was_reset(&keep.value()) {
                continue;
            }
            if index < if direction == "rx" { rx } else { tx } {
                after.push((context.place.clone(), keep.clone()));
            }
            before.push((context.place.clone(), keep));
        }
    }
    before.append(&mut draft.edits);
    before.append(&mut after);
    draft.edits = before;
    Ok(draft
        .note("packets are lost during the change; new queues have no steering until it is set"))
}

/// Number of queues of one direction in a value.
fn queues(value: &str, direction: &str) -> usize {
    value
        .split_whitespace()
        .filter_map(|part| part.split_once('='))
        .filter(|(name, _)| *name == direction || *name == "combined")
        .filter_map(|(_, count)| count.parse::<usize>().ok())
        .sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn combined_queues_count_both_ways() {
        assert_eq!(queues("rx=1 tx=2 combined=4", "rx"), 5);
        assert_eq!(queues("rx=1 tx=2 combined=4", "tx"), 6);
        assert_eq!(queues("combined=4", "tx"), 4);
    }
}
