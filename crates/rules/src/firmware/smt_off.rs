//! `smt-off`: every core is busy, and each could run a second hardware thread that is switched off.
//!
//! /sys/devices/system/cpu/smt/control tells apart what sounds alike: `off` can be turned on at once,
//! `forceoff` needs a boot, `notsupported` and `notimplemented` have nothing to turn on (`kernel/cpu.c`).

use rungwise_model::check::{Finding, Grade};
use rungwise_model::evidence::{Evidence, Subject};
use rungwise_model::keys;

use crate::{Doc, Judgement, Measure, Rule, Threshold, say};

const BUSY: Threshold = Threshold {
    name: "busy share of the least busy CPU",
    value: 0.85,
    origin: "reference ladder, whose cores were full when hyper-threading brought 16.6 %; the line is our own guess",
};

pub(crate) static RULE: Rule = Rule {
    id: "smt-off",
    topic: "firmware",
    summary: "all cores are full and their second hardware threads are switched off",
    needs: &[&keys::CPU_BUSY, &keys::CPU_SMT],
    thresholds: &[BUSY],
    knobs: &["bios.smt"],
    measure: Some(Measure::more(&keys::CPU_BUSY)),
    doc: Doc {
        looks_for: "Simultaneous multithreading switched off, and every CPU above 85 % busy in every part of the window.",
        hurts: "A thread that waits for memory leaves the core idle. A second one on the same core would use that time.",
        todo: "If throughput is the goal and policy allows it, switch it on, then work out every CPU mask anew: steering, \
            interrupts, pinned threads.",
        wrong: "It is off on purpose: against side channels between threads (L1TF, MDS), or because a single request has to \
            be fast, which two threads on a core make slower. `notsupported` is not off.",
        sources: "The reference ladder (20 cores, 82599ES, Linux 4.6.3): 6.01 M to 7.01 M transactions/s; \
            Documentation/admin-guide/hw-vuln; kernel/cpu.c.",
    },
    judge,
};

fn judge(evidence: &Evidence) -> Judgement {
    let host = Subject::host();
    let smt = evidence.words(&keys::CPU_SMT, &host)?;
    if !["off", "forceoff"].contains(&smt.value) {
        let sentence = match smt.value {
            "on" => "hardware threads are on".to_owned(),
            other => format!("there are no hardware threads to switch on ({other})"),
        };
        return Ok(vec![Finding::clear(sentence).cite(smt.reading)]);
    }
    let cpus = evidence.each(&keys::CPU_BUSY)?;
    let Some((idlest, busy)) = cpus
        .iter()
        .min_by(|(_, a), (_, b)| a.value.total_cmp(&b.value))
    else {
        return Err(evidence.missing(&keys::CPU_BUSY, &host));
    };
    let full = cpus
        .iter()
        .all(|(_, busy)| busy.always(|share| share > BUSY.value));
    if !full {
        let sentence = format!(
            "hardware threads are off, and CPU {} is only {} busy",
            idlest.name(),
            say::percent(busy.value)
        );
        return Ok(vec![
            Finding::clear(sentence)
                .below(busy.value, BUSY.value)
                .cite(busy.reading),
        ]);
    }
    let sentence = format!(
        "all {} are at least {} busy, and their second hardware threads are switched off",
        say::count(cpus.len() as f64, "CPU"),
        say::percent(busy.value)
    );
    let finding = if smt.value == "off" {
        Finding::act(&host, sentence).turn("bios.smt", "on")
    } else {
        let sentence = format!("{sentence} until the next boot (forceoff)");
        Finding::watch(&host, sentence).consider("bios.smt")
    };
    Ok(vec![
        finding
            .severity(Grade::Medium)
            .cite(smt.reading)
            .cite(busy.reading)
            .estimate(0.0, 0.166, "reference ladder: +16.6 % with all cores full")
            .refuted_by("the rate per core falls by half when the threads are on: the work keeps the core's units busy"),
    ])
}
