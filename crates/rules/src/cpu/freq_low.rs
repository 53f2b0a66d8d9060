//! `freq-low`: busy CPUs run below the frequency that they could have.
//!
//! The highest frequency of cpufreq is often the turbo of a single core, which all cores at work never
//! reach. So a low share alone is no sickness: with the governor `performance` only a far lower one is.

use std::fmt::Write as _;

use rungwise_model::check::{Finding, Grade};
use rungwise_model::evidence::{Evidence, Subject};
use rungwise_model::keys;

use crate::{Doc, Judgement, Rule, Threshold, say};

const WORKS: Threshold = Threshold {
    name: "busy share of a CPU that counts",
    value: 0.7,
    origin: "own guess: a CPU with time to spare need not be fast",
};

const LOW: Threshold = Threshold {
    name: "frequency as a share of the highest",
    value: 0.95,
    origin: "own guess; PerfSpect's power insight asks for the governor without a line",
};

const HELD_DOWN: Threshold = Threshold {
    name: "the same below which it is no limit of many cores at work",
    value: 0.7,
    origin: "own guess: the turbo of all cores of a server lies at 70 to 90 % of that of one core",
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
    doc: Doc {
        looks_for: "CPUs above 70 % busy in every part of the window that run below 70 % of their highest frequency. Under a \
            governor that saves power below 95 % is worth watching.",
        hurts: "Work per second follows the frequency, and a governor that reacts late slows down just the bursts.",
        todo: "Governor performance, and with intel_pstate or amd_pstate the preference performance as well. If the frequency \
            stays low, it is the firmware's power policy or the cooling.",
        wrong: "The highest frequency may be the turbo of a single core, which heat, power and wide vector instructions take \
            away when all cores work. In a guest, and where the firmware fixes the frequency (Kunpeng 920), there is no \
            cpufreq and the rule is undecided. A window of seconds sees a moment of a governor's course.",
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
        "{} of {} run below their frequency, CPU {} at {} of it",
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
        // Where all cores are at work, whoever governs them.
        let by_turbo = worst.value >= HELD_DOWN.value;
        let finding = if by_turbo {
            sentence += ", which may be all that so many cores reach together";
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
        sentence += ": held down by firmware, heat or power";
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
        "the rate per busy CPU stays with the governor performance, or `turbostat` shows the limit of all cores",
    )])
}
