//! `irq-hint-ignored`: the driver proposes a CPU per queue, and the balancer put them together.
//!
//! A driver publishes a mask per interrupt (`affinity_hint`). irqbalance could follow it once and dropped the
//! option; its own choice keeps the queues of a device on one node.

use std::collections::BTreeSet;

use rungwise_model::check::{Finding, Grade};
use rungwise_model::evidence::{Evidence, Quantity, Reading, Subject};
use rungwise_model::keys;

use super::irqs::{self, Irq};
use crate::net::spread;
use crate::net::udp_socket_lock;
use crate::rule::needs;
use crate::{Doc, Judgement, Measure, Rule, Threshold, pick, say};

const MORE: Threshold = Threshold {
    name: "CPUs that the hints would use, against those in use",
    value: 1.5,
    origin: "own guess: below it, following the hints moves little",
};

const PRESSED: Threshold = Threshold {
    name: "softirq time of the CPU that spends most",
    value: 0.3,
    origin: "own guess: below it, packets are no bottleneck",
};

const FIRES: Threshold = Threshold {
    name: "interrupts of the device per second",
    value: 100.0,
    origin: "own guess: below it, the CPU that is short of time is not short for this device",
};

/// `irq-hint-ignored`
pub(crate) static RULE: Rule = Rule {
    id: "irq-hint-ignored",
    topic: "device",
    summary: "the driver's hints would spread the queues over more CPUs than take them now",
    needs: needs!(
        [
            &keys::CPU_ONLINE,
            &keys::CPU_SOFTIRQ,
            &keys::IRQ_BALANCER,
            &keys::IRQ_BUSIEST_CPU,
            &keys::IRQ_DEVICE,
            &keys::IRQ_EFFECTIVE,
            &keys::IRQ_HINT,
            &keys::IRQ_RATE,
            &keys::UDP_SHARE
        ],
        udp_socket_lock::NEEDS
    ),
    thresholds: &[MORE, PRESSED, FIRES],
    knobs: &["net.affinity_hint", "net.irqbalance_stop", "sock.reuseport"],
    measure: Some(Measure::more(&keys::CPU_SOFTIRQ)),
    doc: Doc {
        looks_for: "Interrupts of a device whose hints name more than 1.5 times the CPUs that they go to.",
        hurts: "Queues share CPUs although the driver dealt them over more.",
        todo: "Write each hint into the affinity of its interrupt, and keep the balancer away from them.",
        wrong: "A hint of nothing or of all CPUs says nothing (virtio: CPUs 0-1 on a machine with two). A hint that \
                names a whole node for each queue is kept by any CPU of it: a queue can use one CPU, so never more \
                CPUs are counted than there are queues. Without packets, or on a device that hardly interrupts, it costs \
                nothing and is only worth watching; so it is while udp-socket-lock holds, or one CPU takes the packets for one UDP socket.",
        sources: "Documentation/core-api/irq/irq-affinity.rst; irqbalance issues 171, 234 and 311; the reference case \
                  applies the hints together with receive steering.",
    },
    judge,
};

/// What the hints of one device come to.
struct Hints<'a> {
    device: &'a str,
    /// CPUs that its interrupts would use.
    would: usize,
    /// CPUs that they do use.
    used: BTreeSet<usize>,
    /// Interrupts per second.
    rate: f64,
    lines: Vec<&'a Reading>,
}

impl Hints<'_> {
    fn factor(&self) -> f64 {
        self.would as f64 / self.used.len().max(1) as f64
    }
}

fn judge(evidence: &Evidence) -> Judgement {
    let cpus = evidence.host(&keys::CPU_ONLINE)?;
    evidence.each_words(&keys::IRQ_HINT)?;
    let irqs = irqs::of_devices(evidence)?;
    let (_, softirq) = pick::largest(evidence, &keys::CPU_SOFTIRQ)?;
    let all: Vec<_> = irqs::by_device(&irqs)
        .into_iter()
        .filter_map(|(device, irqs)| hints(evidence, device, &irqs, cpus))
        .collect();
    let findings: Vec<_> = all
        .iter()
        .filter(|hints| hints.factor() > MORE.value)
        .map(|hints| found(evidence, hints, softirq))
        .collect();
    if !findings.is_empty() {
        return Ok(findings);
    }
    let worst = all.iter().max_by(|a, b| a.factor().total_cmp(&b.factor()));
    Ok(vec![match worst {
        Some(hints) => Finding::clear(format!(
            "the hints of {} would use {}, and its interrupts use {}",
            hints.device,
            say::count(hints.would as f64, "CPU"),
            say::count(hints.used.len() as f64, "CPU"),
        ))
        .below(hints.factor(), MORE.value),
        None => Finding::clear("no driver gives a hint that names fewer than all CPUs"),
    }])
}

/// Hints that say something, of interrupts whose place is known.
fn hints<'a>(
    evidence: &'a Evidence,
    device: &'a str,
    irqs: &[Irq<'a>],
    cpus: Quantity<'_>,
) -> Option<Hints<'a>> {
    let (mut wanted, mut used) = (BTreeSet::new(), BTreeSet::new());
    let (mut queues, mut lines) = (0, Vec::new());
    for irq in irqs {
        let Ok(hint) = evidence.words(&keys::IRQ_HINT, irq.subject) else {
            continue;
        };
        let hinted = say::parse_cpus(hint.value);
        let place = match evidence.words(&keys::IRQ_EFFECTIVE, irq.subject) {
            Ok(effective) => say::parse_cpus(effective.value),
            Err(_) => irq.cpu(evidence).into_iter().collect(),
        };
        if hinted.is_empty() || hinted.len() as f64 >= cpus.value || place.is_empty() {
            continue;
        }
        queues += 1;
        wanted.extend(hinted);
        used.extend(place);
        lines.push(hint.reading);
    }
    (queues > 0).then(|| Hints {
        device,
        would: wanted.len().min(queues),
        used,
        rate: irqs.iter().map(|irq| irq.rate.value).sum(),
        lines,
    })
}

fn found(evidence: &Evidence, hints: &Hints<'_>, softirq: Quantity<'_>) -> Finding {
    let device = hints.device;
    let balancer = evidence
        .words(&keys::IRQ_BALANCER, &Subject::host())
        .ok()
        .filter(|balancer| !balancer.value.is_empty());
    let by = balancer.map_or(String::new(), |balancer| {
        format!(" ({} runs)", balancer.value)
    });
    let sentence = format!(
        "{device}: affinity hints for {} are ignored; its interrupts use only {}{by}",
        say::count(hints.would as f64, "CPU"),
        say::the_cpus(&hints.used)
    );
    let subject = Subject::device(device);
    let mut finding = if softirq.value > PRESSED.value && hints.rate > FIRES.value {
        Finding::act(&subject, sentence).severity(Grade::Medium)
    } else {
        Finding::watch(&subject, sentence).severity(Grade::Low)
    }
    .confidence(Grade::High)
    .cite(softirq.reading)
    .turn_device("net.affinity_hint", device, "follow")
    .refuted_by("with the hints followed, no CPU spends less time in softirq");
    for line in hints.lines.iter().take(4) {
        finding = finding.cite(line);
    }
    if let Some(balancer) = balancer {
        finding = finding
            .cite(balancer.reading)
            .turn("net.irqbalance_stop", "ban");
    }
    spread::not_alone(evidence, finding)
}
