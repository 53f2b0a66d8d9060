//! `irq-affinity-reverted`: an affinity that rungwise wrote is not there any more.
//!
//! irqbalance looks every ten seconds and puts interrupts where it wants them. A change that was measured
//! and kept is then gone without a word.

use rungwise_model::check::{Finding, Grade};
use rungwise_model::evidence::{Evidence, Missing, Subject};
use rungwise_model::keys;

use crate::{Doc, Judgement, Rule, Threshold, say};

/// Knobs that write an affinity.
const WRITERS: &[&str] = &["net.irq_affinity", "net.affinity_hint"];

/// Any at all.
const MOVED: Threshold = Threshold {
    name: "placed interrupts that are elsewhere now",
    value: 1.0,
    origin: "our own: an interrupt that was placed has no reason to move by itself",
};

/// `irq-affinity-reverted`
pub(crate) static RULE: Rule = Rule {
    id: "irq-affinity-reverted",
    topic: "device",
    summary: "somebody moved an interrupt back that rungwise had placed",
    needs: &[
        &keys::IRQ_BALANCER,
        &keys::SETTING_FOUND,
        &keys::SETTING_OPEN,
        &keys::SETTING_WANTED,
    ],
    thresholds: &[MOVED],
    knobs: &["net.irqbalance_stop"],
    measure: None,
    doc: Doc {
        looks_for: "An open journal whose interrupt affinity differs from the one that is there.",
        hurts: "The placement that was measured is not the one in force.",
        todo: "Ban the interrupts of the device in irqbalance, or stop it, and place them again.",
        wrong: "A device that was reset, or a CPU that went offline, moves interrupts as well; without a balancer that \
                is the likelier cause, and it is only worth watching. An interrupt that is gone cannot be read; the \
                others are judged without it, and it is named.",
        sources: "The bank's write-up: 'if not stopped, irqbalance reassigns'; redpanda issue 17005 (a ban list that \
                  was not honoured).",
    },
    judge,
};

fn judge(evidence: &Evidence) -> Judgement {
    let open = evidence.host(&keys::SETTING_OPEN)?;
    if open.value < 0.5 {
        return Ok(vec![
            Finding::clear("nothing that rungwise set is in force").cite(open.reading),
        ]);
    }
    let settings = evidence.each_words(&keys::SETTING_WANTED)?;
    let balancer = evidence.words(&keys::IRQ_BALANCER, &Subject::host())?;
    let (mut findings, mut kept, mut unread) = (Vec::new(), 0, Vec::new());
    for (setting, wanted) in settings {
        if !WRITERS.iter().any(|knob| setting.name().starts_with(knob)) {
            continue;
        }
        let found = match evidence.words(&keys::SETTING_FOUND, setting) {
            Ok(found) => found,
            Err(missing) => {
                unread.push(missing);
                continue;
            }
        };
        if say::parse_cpus(wanted.value) == say::parse_cpus(found.value) {
            kept += 1;
            continue;
        }
        let differs = format!(
            "{} was set to {} and is now {}",
            setting.name(),
            say::the_cpus(&say::parse_cpus(wanted.value)),
            say::the_cpus(&say::parse_cpus(found.value))
        );
        let finding = if balancer.value.is_empty() {
            Finding::watch(
                setting,
                format!("{differs}, and no balancer runs: a reset or an offline CPU"),
            )
        } else {
            Finding::act(
                setting,
                format!("{differs}: {} moves interrupts", balancer.value),
            )
            .confidence(Grade::High)
            .turn("net.irqbalance_stop", "ban")
        };
        findings.push(
            finding
                .cite(wanted.reading)
                .cite(found.reading)
                .cite(balancer.reading)
                .refuted_by("placed again with the balancer stopped, it still moves"),
        );
    }
    if findings.is_empty() {
        findings.push(match (kept, unread.first()) {
            (0, Some(missing)) => return Err(missing.clone()),
            (0, None) => Finding::clear("no open journal placed an interrupt"),
            (kept, _) => Finding::clear(format!(
                "{} still there",
                say::count(f64::from(kept), "placed interrupt")
            )),
        });
    }
    if let (Some(last), false) = (findings.last_mut(), unread.is_empty()) {
        last.sentence += &not_read(&unread);
    }
    Ok(findings)
}

/// `; net.irq_affinity:irq/42 was placed too and cannot be read`
fn not_read(unread: &[Missing]) -> String {
    let names: Vec<_> = unread
        .iter()
        .map(|missing| missing.subject.name())
        .collect();
    let were = if names.len() == 1 { "was" } else { "were" };
    format!(
        "; {} {were} placed too and cannot be read",
        names.join(", ")
    )
}
