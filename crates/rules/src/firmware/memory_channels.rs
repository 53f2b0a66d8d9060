//! `memory-channels`: memory channels of the processor stand empty.
//!
//! The firmware's tables (SMBIOS type 17) list every slot with its channel, filled or not. In a guest they are
//! invented by the hypervisor and say nothing.

use rungwise_model::check::{Finding, Grade};
use rungwise_model::evidence::{Absence, Evidence, Missing, Subject};
use rungwise_model::keys;

use crate::{Doc, Judgement, Measure, Rule, Threshold, say};

const FILLED: Threshold = Threshold {
    name: "channels with a module, as a share of all",
    value: 1.0,
    origin: "PerfSpect's insight `populate all memory channels`",
};

pub(crate) static RULE: Rule = Rule {
    id: "memory-channels",
    topic: "firmware",
    summary: "memory channels without a module",
    needs: &[
        &keys::DIMM_CHANNELS,
        &keys::DIMM_CHANNELS_USED,
        &keys::VIRT_HYPERVISOR,
    ],
    thresholds: &[FILLED],
    knobs: &["bios.dimm_population"],
    measure: Some(Measure::less(&keys::DIMM_CHANNELS_USED)),
    doc: Doc {
        looks_for: "Fewer memory channels with a module than the firmware lists.",
        hurts: "Bandwidth grows with the channels in use: half of them, half the bandwidth. Latency under load rises with it.",
        todo: "Spread the modules over all channels, one per channel, same size and rank; buy what is missing.",
        wrong: "A service that does not come near the memory bandwidth notices nothing; nothing here measures that. Some \
            firmware names slots without their channel. A guest has synthetic tables, so in a guest the rule \
            is undecided.",
        sources: "PerfSpect (memory insight); the reference bank host, section on memory: Kunpeng 920 runs 2933 MT/s with \
            one module per channel and 2666 MT/s with two; DMTF DSP0134 (SMBIOS), type 17.",
    },
    judge,
};

fn judge(evidence: &Evidence) -> Judgement {
    let host = Subject::host();
    if let Ok(guest) = evidence.words(&keys::VIRT_HYPERVISOR, &host)
        && !guest.value.is_empty()
    {
        return Err(Missing {
            key: keys::DIMM_CHANNELS.id,
            subject: host,
            why: Absence::because(format!(
                "this is a guest ({}) with synthetic firmware tables",
                guest.value
            ))
            .remedy("run it on the hypervisor"),
        });
    }
    let all = evidence.host(&keys::DIMM_CHANNELS)?;
    let used = evidence.host(&keys::DIMM_CHANNELS_USED)?;
    if all.value < 1.0 {
        return Err(Missing {
            key: keys::DIMM_CHANNELS.id,
            subject: host,
            why: Absence::because("the firmware lists no memory channel"),
        });
    }
    let share = used.value / all.value;
    if share >= FILLED.value {
        let sentence = format!(
            "all {} have a module",
            say::count(all.value, "memory channel")
        );
        return Ok(vec![
            Finding::clear(sentence)
                .above(share, FILLED.value)
                .cite(used.reading),
        ]);
    }
    let sentence = format!(
        "{:.0} of {} have a module, which leaves at most {} of the memory bandwidth",
        used.value,
        say::count(all.value, "memory channel"),
        say::percent(share)
    );
    Ok(vec![
        Finding::watch(&host, sentence)
            .severity(if share <= 0.5 {
                Grade::Medium
            } else {
                Grade::Low
            })
            .cite(used.reading)
            .cite(all.reading)
            .consider("bios.dimm_population")
            .refuted_by("`dmidecode -t 17` shows a module in each channel, or the memory bandwidth in use is small"),
    ])
}
