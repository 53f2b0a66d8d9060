//! Receive side scaling: which queues the device's hash can reach.

use rungwise_host::DeviceSetting;

use crate::Result;
use crate::knob::{Context, Current, Doc, Draft, Knob, Risk, Scope, Settable};
use crate::target::Target;
use crate::turn::{Turn, draft_setting};

const SETTING: DeviceSetting = DeviceSetting::RssTable;

/// `net.rss_table`
pub(crate) static KNOB: Knob = Knob {
    id: "net.rss_table",
    scope: Scope::Device,
    risk: Risk::Disruptive,
    settable: Settable::Yes,
    summary: "receive queues in the RSS table, and how often each",
    values: "equal N (the first N queues equally), or the queue of each entry such as 0,1,2,3",
    doc: Doc {
        does: "The hash of a packet selects an entry of the table, and the entry names the queue.",
        helps: "When configured queues get no packets because the table does not contain them.",
        costs: "Packets of a flow may be reordered once, when it moves to another queue. The table may address fewer \
                queues than the hardware has: the 82599 refuses more than 16.",
        undone: "The previous table is set again. A table that uses all queues in turn is set by a reset, so that the \
                 driver keeps adapting it to the number of queues.",
        sources: "ethtool(8), -X; Documentation/networking/scaling.rst (Linux); the reference case (16 of 64 queues).",
    },
    by_hand: &[],
    writes: &[Target::Setting(SETTING)],
    turn: Turn::Own { read, draft },
};

fn read(context: &Context<'_>) -> Result<Current> {
    let device = context.device(&KNOB)?;
    let reading = context.read_setting(&KNOB, device, SETTING)?;
    let value = equal(&reading.value)
        .map_or_else(|| reading.value.clone(), |queues| format!("equal {queues}"));
    Ok(Current::known(value, vec![reading]))
}

fn draft(context: &Context<'_>, wish: &str) -> Result<Draft> {
    let Some(queues) = wish.strip_prefix("equal") else {
        return draft_setting(&KNOB, context, SETTING, wish);
    };
    let queues = queues.trim_start_matches([' ', '=']);
    if queues.is_empty() {
        return Err(KNOB.bad_wish(wish, "it does not say how many queues"));
    }
    let queues = KNOB.number(queues, 1..=1024)?;
    let table: Vec<String> = (0..queues).map(|queue| queue.to_string()).collect();
    draft_setting(&KNOB, context, SETTING, &table.join(","))
}

/// The number of queues that a table uses in turn, if that is all it does.
pub(crate) fn equal(table: &str) -> Option<u32> {
    let queues: Vec<u32> = table
        .split(',')
        .map(|queue| queue.parse().ok())
        .collect::<Option<_>>()?;
    let count = queues.iter().max()? + 1;
    let dealt = (0..)
        .zip(&queues)
        .all(|(index, queue)| index % count == *queue);
    dealt.then_some(count)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_without_a_number_is_quoted_as_it_was_wished() {
        let host = rungwise_host::recorded::Recorded::new("this host", 1);
        let context = Context::of_host(&host, Some("eth0"), &[0]);
        for wish in ["equal", "equal "] {
            let error = draft(&context, wish).unwrap_err().to_string();
            let said = format!("to '{wish}': it does not say how many queues; allowed: equal N");
            assert!(error.contains(&said), "{error}");
        }
    }

    #[test]
    fn a_table_that_deals_in_turn_is_called_equal() {
        assert_eq!(equal("0,1,2,3,0,1,2,3"), Some(4));
        assert_eq!(equal("0,0,0,0"), Some(1));
        assert_eq!(equal("0,1,2,3,0"), Some(4));
        assert_eq!(equal("0,0,1,1"), None);
        assert_eq!(equal("1,0"), None);
        assert_eq!(equal("default"), None);
        assert_eq!(equal(""), None);
    }
}
