//! `freq-low`: busy CPUs run below the frequency that they could reach.
//!
//! The highest frequency of cpufreq is often the turbo of a single core, which all cores together never
//! reach. So a lower share alone is no problem: with the governor `performance` only a far lower one is.

use std::fmt::Write as _;

use rungwise_model::check::{Finding, Grade};
use rungwise_model::evidence::{Evidence, Subject};
use rungwise_model::keys;

use crate::{Doc, Judgement, Measure, Rule, Threshold, say};

const WORKS: Threshold = Threshold {
    name: "busy share above which a CPU counts",
    value: 0.7,
    origin: "own guess: a CPU with time to spare need not be fast",
};

const LOW: Threshold = Threshold {
    name: "frequency as a share of the highest",
    value: 0.95,
    origin: "own guess; PerfSpect's power insight checks the governor without a threshold",
};

const HELD_DOWN: Threshold = Threshold {
    name: "the same, below which the all-core turbo does not explain it",
    value: 0.7,
    origin: "own guess: the all-core turbo of a server is 70 to 90 % of its single-core turbo",
};

pub(crate) static RULE: Rule = Rule {
    id: "freq-low",
    topic: "cpu",
    summary: "busy CPUs run below their frequency",
    needs: &[
        &keys::CPU_BUSY,
        &keys::CPU_EPP,
        &keys::CPU_FREQUENCY,
        &keys::CPU_GOVERNOR,
    ],
    thresholds: &[WORKS, LOW, HELD_DOWN],
    knobs: &["cpu.governor", "cpu.epp", "bios.power_policy"],
    measure: Some(Measure::less(&keys::CPU_FREQUENCY)),
    doc: Doc {
        looks_for: "CPUs above 70 % busy in every part of the window that run below 70 % of their highest frequency. Under a \
            power-saving governor, below 95 % is watched.",
        hurts: "Throughput follows the frequency, and a governor that reacts late slows down exactly the bursts.",
        todo: "Set the governor to performance, and with intel_pstate or amd_pstate the energy preference as well. If the \
            frequency stays low, check the firmware's power policy and the cooling.",
        wrong: "The highest frequency may be the turbo of a single core, which heat, power limits and wide vector \
            instructions prevent when all cores are busy. In a guest, and where the firmware fixes the frequency (Kunpeng \
            920), there is no cpufreq and the rule is undecided. A window of seconds shows only a moment of what a governor \
            does.",
        sources: "The reference bank host, section on BIOS and power; PerfSpect (power insight); \
            Documentation/admin-guide/pm/cpufreq.rst.",
    },
    judge,
};

fn judge(evidence: &Evidence) -> Judgement {
    let frequencies = evidence.each(&keys::CPU_FREQUENCY)?;
    let all_busy = evidence.each(&keys::CPU_BUSY)?;
    let works = |cpu: &Subject| {
        all_busy
            .iter()
            .any(|(other, busy)| *other == cpu && busy.always(|share| share > WORKS.value))
    };
    let saves = |cpu: &Subject| {
        evidence
            .words(&keys::CPU_GOVERNOR, cpu)
            .is_ok_and(|governor| governor.value != "performance")
    };
    let working: Vec<_> = frequencies.iter().filter(|(cpu, _)| works(cpu)).collect();
    let Some((_, lowest)) = working
        .iter()
        .min_by(|(_, a), (_, b)| a.value.total_cmp(&b.value))
    else {
        let sentence = format!(
            "no CPU is above {} busy, so none has to be fast",
            say::percent(WORKS.value)
        );
        return Ok(vec![Finding::clear(sentence)]);
    };
    let slow: Vec<_> = working
        .iter()
        .filter(|(cpu, share)| {
            let line = if saves(cpu) { LOW } else { HELD_DOWN };
            share.always(|share| share < line.value)
        })
        .collect();
    let Some((cpu, worst)) = slow
        .iter()
        .min_by(|(_, a), (_, b)| a.value.total_cmp(&b.value))
    else {
        let sentence = format!(
            "busy CPUs run at {} of their highest frequency or more",
            say::percent(lowest.value)
        );
        let clear = Finding::clear(sentence)
            .above(lowest.value, HELD_DOWN.value)
            .cite(lowest.reading);
        return Ok(vec![clear]);
    };
    let governor = evidence.words(&keys::CPU_GOVERNOR, cpu);
    let mut sentence = format!(
        "{} of {} run below their highest frequency, CPU {} at {} of it",
        slow.len(),
        say::count(working.len() as f64, "busy CPU"),
        cpu.name(),
        say::percent(worst.value)
    );
    let host = Subject::host();
    let mut finding = if saves(cpu)
        && let Ok(governor) = governor
    {
        let _ = write!(sentence, ", under the governor {}", governor.value);
        // The all-core turbo, whatever the governor.
        let by_turbo = worst.value >= HELD_DOWN.value;
        let finding = if by_turbo {
            sentence += ", which may be the all-core limit";
            Finding::watch(&host, sentence).confidence(Grade::Low)
        } else {
            Finding::act(&host, sentence)
        };
        let mut finding = finding
            .cite(governor.reading)
            .turn("cpu.governor", "performance");
        if let Ok(preference) = evidence.words(&keys::CPU_EPP, cpu)
            && preference.value != "performance"
        {
            finding = finding
                .cite(preference.reading)
                .turn("cpu.epp", "performance");
        }
        finding
    } else {
        sentence += ": limited by firmware, heat or power";
        Finding::watch(&host, sentence)
    };
    finding = finding
        .severity(if worst.value < HELD_DOWN.value {
            Grade::Medium
        } else {
            Grade::Low
        })
        .cite(worst.reading)
        .consider("bios.power_policy");
    Ok(vec![finding.refuted_by(
        "the rate per busy CPU stays the same with the governor performance, or `turbostat` shows the all-core limit",
    )])
}
