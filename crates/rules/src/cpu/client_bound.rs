//! `client-bound`: the load generator is the limit, not the service.
//!
//! A guard: a slow client looks just like a slow server. Only the generator knows, so this rests on its report;
//! on the host alone it is undecided.

use rungwise_model::check::{Finding, Grade};
use rungwise_model::evidence::{Absence, Evidence, Missing, Quantity, Subject};
use rungwise_model::keys;

use crate::{Doc, Judgement, Rule, Threshold, say};

const CPU: Threshold = Threshold {
    name: "busiest thread of the generator, share of a CPU",
    value: 0.8,
    origin: "own guess: above it, sends come late",
};

const DROPS: Threshold = Threshold {
    name: "replies dropped at the generator per second",
    value: 0.0,
    origin: "by definition: a dropped reply counts as lost by the service, so any is one too many",
};

const SHARED: Threshold = Threshold {
    name: "CPUs shared by generator and service",
    value: 0.0,
    origin: "by definition: what the one uses the other lacks",
};

pub(crate) static RULE: Rule = Rule {
    id: "client-bound",
    topic: "cpu",
    summary: "the measurement is limited by the load generator",
    needs: &[
        &keys::CLIENT_CPU,
        &keys::CLIENT_DROPS,
        &keys::CLIENT_SHARED_CPUS,
    ],
    thresholds: &[CPU, DROPS, SHARED],
    knobs: &[],
    doc: Doc {
        looks_for: "A thread of the load generator above 80 % of a CPU, replies dropped at its own sockets, or CPUs that it \
            shares with the service.",
        hurts: "The rate measured is the generator's. A knob that helps the service shows nothing, and one that takes CPU \
            from the generator shows a loss.",
        todo: "More threads or a second machine for the generator, larger receive buffers on its side, CPUs of its own.",
        wrong: "On one machine, loopback and namespaces share CPUs by nature; then the rule only says so. A spinning generator \
            is busy without being late: its certificate (late sends) says more.",
        sources: "General practice of load measurement; the generator's health in `rungwise load`.",
    },
    judge,
};

fn judge(evidence: &Evidence) -> Judgement {
    let told = |key| {
        evidence.host(key).map_err(|missing| Missing {
            why: match evidence.reading(key, &Subject::host()) {
                Some(_) => missing.why.clone(),
                None => Absence::because(
                    "it stands in the report of the load generator, and none was given",
                )
                .remedy("drive the service with `rungwise load` or `rungwise tune`"),
            },
            ..missing
        })
    };
    let cpu = told(&keys::CLIENT_CPU);
    let drops = told(&keys::CLIENT_DROPS);
    let shared = told(&keys::CLIENT_SHARED_CPUS);
    let mut limits: Vec<(String, Quantity<'_>)> = Vec::new();
    if let Ok(cpu) = cpu
        && cpu.value > CPU.value
    {
        limits.push((
            format!(
                "its busiest thread used {} of a CPU",
                say::percent(cpu.value)
            ),
            cpu,
        ));
    }
    if let Ok(drops) = drops
        && drops.value > DROPS.value
    {
        limits.push((
            format!("its own sockets dropped {} replies", say::rate(drops.value)),
            drops,
        ));
    }
    let alone = limits.is_empty();
    if let Ok(shared) = shared
        && shared.value > SHARED.value
    {
        let cpus = say::count(shared.value, "CPU");
        limits.push((format!("it shares {cpus} with the service"), shared));
    }
    if limits.is_empty() {
        let cpu = cpu?;
        drops?;
        shared?;
        let sentence = format!(
            "the load generator was not the limit: its busiest thread used {} of a CPU",
            say::percent(cpu.value)
        );
        return Ok(vec![
            Finding::clear(sentence)
                .below(cpu.value, CPU.value)
                .cite(cpu.reading),
        ]);
    }
    let reasons: Vec<&str> = limits.iter().map(|(reason, _)| reason.as_str()).collect();
    let sentence = format!(
        "the load generator may be what was measured: {}",
        reasons.join("; ")
    );
    // Sharing CPUs is how a lab on one machine is; alone it proves nothing.
    let grade = if alone { Grade::Low } else { Grade::High };
    let finding = Finding::watch(&Subject::host(), sentence)
        .severity(grade)
        .confidence(grade)
        .refuted_by("a second generator at the same time does not raise the rate");
    Ok(vec![
        limits.iter().fold(finding, |finding, (_, quantity)| {
            finding.cite(quantity.reading)
        }),
    ])
}
