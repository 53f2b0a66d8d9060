//! `cstate-latency`: replies are slower at low load, because CPUs enter deep idle states in between.
//!
//! Residence in deep idle states is normal on an idle machine, so it proves nothing by itself. The proof is a
//! median that falls when the load rises; only load reports contain it.

use rungwise_model::check::{Finding, Grade};
use rungwise_model::evidence::{Absence, Evidence, Missing, Subject};
use rungwise_model::keys;

use crate::{Doc, Judgement, Measure, Rule, Threshold, say};

const DEEP: Threshold = Threshold {
    name: "share of the window in deep idle states",
    value: 0.10,
    origin: "own guess: with less, few requests hit a CPU in a deep idle state",
};

const FALLS: Threshold = Threshold {
    name: "median at low load over median at high load",
    value: 1.1,
    origin: "own guess: a tenth is more than the run-to-run noise of a quiet machine",
};

pub(crate) static RULE: Rule = Rule {
    id: "cstate-latency",
    topic: "cpu",
    summary: "replies are slower at low load, because CPUs enter deep idle states",
    needs: &[
        &keys::CPU_DEEP_IDLE,
        &keys::CPU_IDLE_DRIVER,
        &keys::LATENCY_LOW_LOAD,
    ],
    thresholds: &[DEEP, FALLS],
    knobs: &["cpu.dma_latency", "cmdline.cstate"],
    measure: Some(Measure::more(&keys::LATENCY_LOW_LOAD)),
    doc: Doc {
        looks_for: "CPUs that spend more than 10 % of the window in idle states with an exit latency above 10 us, and a median \
            latency that falls by a tenth or more when the load rises.",
        hurts: "Waking from a deep state takes tens to hundreds of microseconds, and at low load each request hits a \
            sleeping CPU.",
        todo: "Disable the deep states while latency matters: `rungwise knob apply cpu.dma_latency=0us` sets the latency limit of each \
            CPU, and `rungwise knob undo` restores it; or limit them on the kernel command line (cmdline.cstate).",
        wrong: "Batching looks the same: at high load a poll finds several packets. So without deep idle states the rule is clear. A frequency \
            governor looks the same too (freq-low). The fix costs power and the turbo of neighbouring cores.",
        sources: "TuneD profile latency-performance (force_latency); Documentation/admin-guide/pm/cpuidle.rst.",
    },
    judge,
};

fn judge(evidence: &Evidence) -> Judgement {
    let cpus = evidence.each(&keys::CPU_DEEP_IDLE)?;
    let Some((cpu, deepest)) = cpus
        .iter()
        .max_by(|(_, a), (_, b)| a.value.total_cmp(&b.value))
    else {
        return Err(evidence.missing(&keys::CPU_DEEP_IDLE, &Subject::host()));
    };
    let share = say::percent(deepest.value);
    if deepest.value <= DEEP.value {
        let sentence = format!("no CPU is in deep idle states for more than {share} of the time");
        let clear = Finding::clear(sentence)
            .below(deepest.value, DEEP.value)
            .cite(deepest.reading);
        return Ok(vec![clear]);
    }
    let Ok(ratio) = evidence.host(&keys::LATENCY_LOW_LOAD) else {
        return Err(Missing {
            key: keys::LATENCY_LOW_LOAD.id,
            subject: Subject::host(),
            why: Absence::because(format!(
                "CPU {} is in deep idle states {share} of the time; only the latency at two loads shows \
                 whether replies wait for that",
                cpu.name()
            ))
            .remedy(
                "measure twice with `rungwise load udp ... --rate RATE --format json`, at a tenth of the rate and at the full \
                 rate, then run `rungwise check --load full.json --light-load tenth.json`",
            ),
        });
    };
    if ratio.value <= FALLS.value {
        let sentence = format!(
            "the median at low load is {:.2} times that at high load",
            ratio.value
        );
        let clear = Finding::clear(sentence)
            .below(ratio.value, FALLS.value)
            .cite(ratio.reading);
        return Ok(vec![clear]);
    }
    let sentence = format!(
        "the median latency at low load is {:.2} times that at high load; CPU {} is in deep idle states {share} of the time",
        ratio.value,
        cpu.name()
    );
    let mut finding = Finding::act(&Subject::host(), sentence)
        .severity(Grade::Medium)
        .cite(ratio.reading)
        .cite(deepest.reading);
    if let Ok(driver) = evidence.words(&keys::CPU_IDLE_DRIVER, &Subject::host()) {
        finding = finding.cite(driver.reading);
    }
    Ok(vec![
        finding
            .consider("cpu.dma_latency")
            .consider("cmdline.cstate")
            .refuted_by(
                "the median at low load stays the same with `rungwise knob apply cpu.dma_latency=0us`",
            ),
    ])
}
