//! `irq-one-cpu`: the packets of the machine are taken by one CPU.
//!
//! `NET_RX` soft interrupts run where the hard interrupt of the queue arrived, or where receive steering sent
//! the packet. One CPU that does it all is a limit that no total of CPU use shows. Loopback and veth without
//! NAPI run `NET_RX` on the CPU of the sender, which is no matter of interrupts and is left alone.

use std::collections::BTreeMap;

use rungwise_model::check::{Finding, Grade};
use rungwise_model::evidence::{Evidence, Missing, Quantity, Reading, Subject};
use rungwise_model::keys;
use rungwise_stats::interval::median;

use super::irqs::{self, Irq};
use super::rps_needed;
use crate::net::spread;
use crate::net::udp_socket_lock;
use crate::rule::needs;
use crate::{Doc, Judgement, Measure, Rule, Threshold, pick, say};

pub(super) const SHARE: Threshold = Threshold {
    name: "NET_RX of one CPU",
    value: 0.6,
    origin: "own guess, between an even spread over two CPUs and one CPU alone",
};

pub(super) const SOFTIRQ: Threshold = Threshold {
    name: "softirq time of that CPU",
    value: 0.5,
    origin: "own guess: from half a CPU on, doubling the traffic needs more than the CPU has",
};

const OTHERS: Threshold = Threshold {
    name: "median softirq time of the other CPUs",
    value: 0.1,
    origin: "own guess: the others have room for it",
};

const HANDING: Threshold = Threshold {
    name: "the same, while receive steering gives one CPU the packets",
    value: 0.25,
    origin: "half of the line above: a CPU that hands packets on spends time in softirq too (20 % measured on a veth pair)",
};

const OF_DEVICE: Threshold = Threshold {
    name: "packets of the device, as a share of those the CPU took",
    value: 0.5,
    origin: "own guess: below it, most packets came another way",
};

/// `irq-one-cpu`
pub(crate) static RULE: Rule = Rule {
    id: "irq-one-cpu",
    topic: "device",
    summary: "one CPU takes most of the packets and is short of time, while the others have room",
    needs: needs!(
        [
            &keys::CPU_ONLINE,
            &keys::CPU_SOFTIRQ,
            &keys::DEVICE_KIND,
            &keys::DEVICE_RX_PACKETS,
            &keys::IRQ_BUSIEST_CPU,
            &keys::IRQ_DEVICE,
            &keys::IRQ_RATE,
            &keys::QUEUES_MAXIMUM,
            &keys::QUEUES_RX,
            &keys::RPS_CPUS,
            &keys::RPS_MASK,
            &keys::SOFTIRQ_NET_RX_SHARE,
            &keys::SOFTNET_PROCESSED,
            &keys::SOFTNET_RECEIVED_RPS,
            &keys::UDP_PROCESS,
            &keys::UDP_SHARE,
            &keys::VIRT_HYPERVISOR
        ],
        udp_socket_lock::NEEDS
    ),
    thresholds: &[SHARE, SOFTIRQ, OTHERS, HANDING, OF_DEVICE, spread::UDP],
    knobs: &[
        "net.queues",
        "net.irq_affinity",
        "net.rps_cpus",
        "virt.multiqueue",
        "sock.reuseport",
    ],
    measure: Some(Measure::more(&keys::SOFTIRQ_NET_RX_SHARE)),
    doc: Doc {
        looks_for: "One CPU with more than 60 % of the NET_RX soft interrupts and more than 50 % of its time in \
                    softirq, in each third of the window, while the median of the other CPUs is below 10 %. Or receive \
                    steering of all queues of a device to one CPU, which takes more than 60 % of the packets of the host, \
                    half of these or more from that device; no interrupt need be known for that.",
        hurts: "That CPU is the ceiling of all traffic, and threads that share it starve; the mean of all CPUs \
                looks idle.",
        todo: "More queues, if the driver offers them: they come with interrupts of their own, so look where these went \
               before placing any. The interrupts of the queues on different CPUs; receive steering where there is one \
               queue only; in a guest, ask for a network device with several queues. A UDP service with one socket needs \
               SO_REUSEPORT first: otherwise the CPUs contend for the socket's lock.",
        wrong: "Busy polling moves the work into the process, where it is not seen here. Managed interrupts (NVMe \
                style, some NICs) refuse to be moved (EIO). Traffic over loopback or a veth without NAPI runs on \
                the CPU of its sender: it is recognised by packets that no interrupting device delivered. From a \
                network namespace the interrupts of the host's cards cannot be identified: where all devices are virtual and \
                their packets are those of the CPU, nothing in the namespace is at fault, and the host may still be.",
        sources: "Documentation/networking/scaling.rst (Linux); Terway issue 90; redpanda issue 10444; a bank's \
                  guest with a single queue, where spreading brought nothing because softirq was not the limit.",
    },
    judge,
};

/// How `NET_RX` spreads over the CPUs.
#[derive(Clone, Copy, Debug)]
pub(super) struct Concentration<'a> {
    /// The CPU with the largest share.
    pub(super) cpu: &'a Subject,
    /// Its share of `NET_RX`.
    pub(super) share: Quantity<'a>,
    /// Its time in softirq.
    pub(super) softirq: Quantity<'a>,
    /// Median softirq time of the other CPUs; nothing where there is no other.
    pub(super) others: Option<f64>,
}

impl Concentration<'_> {
    /// One CPU has it all, is short of time, and others have room.
    pub(super) fn holds(&self) -> bool {
        self.share.always(|share| share > SHARE.value)
            && self.softirq.always(|time| time > SOFTIRQ.value)
            && self.others.is_some_and(|others| others < OTHERS.value)
    }

    /// Nobody received a packet.
    pub(super) fn is_quiet(&self) -> bool {
        self.share.value <= 0.0
    }

    /// The number of the CPU.
    fn number(&self) -> Option<usize> {
        self.cpu.name().parse().ok()
    }
}

/// Where `NET_RX` runs.
pub(super) fn concentration(evidence: &Evidence) -> Result<Concentration<'_>, Missing> {
    let (cpu, share) = pick::largest(evidence, &keys::SOFTIRQ_NET_RX_SHARE)?;
    let softirq = evidence.quantity(&keys::CPU_SOFTIRQ, cpu)?;
    let others: Vec<f64> = evidence
        .each(&keys::CPU_SOFTIRQ)?
        .into_iter()
        .filter(|(other, _)| *other != cpu)
        .map(|(_, time)| time.value)
        .collect();
    Ok(Concentration {
        cpu,
        share,
        softirq,
        others: median(&others),
    })
}

/// Why the packets are on that CPU.
pub(super) enum Cause<'a> {
    /// Interrupts of this device go there.
    Interrupts(&'a str, Vec<Irq<'a>>),
    /// Interrupts of devices are known, and it is none of them: the sender runs there.
    Local,
    /// All devices here are virtual, and these are their packets: whoever sends or forwards them runs there.
    Virtual,
}

/// What brings the packets to the CPU.
pub(super) fn cause<'a>(
    evidence: &'a Evidence,
    seen: &Concentration<'_>,
) -> Result<Cause<'a>, Missing> {
    let taken = evidence.quantity(&keys::SOFTNET_PROCESSED, seen.cpu)?.value;
    let irqs = match irqs::of_devices(evidence) {
        Ok(irqs) => irqs,
        Err(_) if only_virtual(evidence, taken) => return Ok(Cause::Virtual),
        Err(missing) => return Err(missing),
    };
    let here = |irq: &Irq<'_>| irq.cpu(evidence) == seen.number();
    if let Some((device, irqs)) = irqs::most_frequent(&irqs, here) {
        let subject = Subject::device(device);
        let packets = evidence.quantity(&keys::DEVICE_RX_PACKETS, &subject)?;
        if packets.value >= OF_DEVICE.value * taken {
            return Ok(Cause::Interrupts(device, irqs));
        }
    }
    Ok(Cause::Local)
}

/// No device here has hardware below it, so none can interrupt, and together they brought the packets `taken`.
fn only_virtual(evidence: &Evidence, taken: f64) -> bool {
    let (Ok(kinds), Ok(packets)) = (
        evidence.each_words(&keys::DEVICE_KIND),
        evidence.each(&keys::DEVICE_RX_PACKETS),
    ) else {
        return false;
    };
    let is_virtual = |device: &Subject| {
        let mut kinds = kinds.iter();
        kinds.any(|(of, kind)| *of == device && kind.value != "hardware")
    };
    let brought: f64 = packets.iter().map(|(_, rate)| rate.value).sum();
    kinds.iter().all(|(device, _)| is_virtual(device))
        && packets.iter().all(|(device, _)| is_virtual(device))
        && brought >= OF_DEVICE.value * taken
}

/// The device whose receive steering names this CPU alone, for all its queues, and what shows that the packets come
/// from there: their number, or where that is unknown, that steering wakes the CPU.
///
/// Wake-ups alone prove nothing either way. A CPU that never gets to the end of its backlog is not woken at all
/// (`enqueue_to_backlog` in net/core/dev.c): it is at its limit, and the count stands still.
fn steered<'a>(
    evidence: &'a Evidence,
    seen: &Concentration<'_>,
    taken: f64,
) -> Option<(&'a str, &'a Reading)> {
    let mut devices: BTreeMap<&str, bool> = BTreeMap::new();
    for (queue, mask) in evidence.each_words(&keys::RPS_MASK).ok()? {
        if let Some((device, _)) = queue.name().rsplit_once(':') {
            let cpus = say::parse_cpus(mask.value);
            let alone = seen
                .number()
                .is_some_and(|number| cpus.iter().eq([&number]));
            *devices.entry(device).or_insert(true) &= alone;
        }
    }
    let woken = evidence
        .quantity(&keys::SOFTNET_RECEIVED_RPS, seen.cpu)
        .ok()
        .filter(|woken| woken.value > 0.0);
    let named = devices.into_iter().filter(|(_, alone)| *alone);
    named.map(|(device, _)| device).find_map(|device| {
        let packets = evidence.quantity(&keys::DEVICE_RX_PACKETS, &Subject::device(device));
        let shown = packets.map_or(woken, |packets| {
            (packets.value >= OF_DEVICE.value * taken).then_some(packets)
        });
        Some((device, shown?.reading))
    })
}

/// Receive steering gives one CPU most packets. Counts of `NET_RX` do not show it: the CPU that hands a packet on
/// raises `NET_RX` as well, to wake the other (`napi_schedule_rps` in net/core/dev.c), so that the two of them share it.
fn steered_to_one(evidence: &Evidence) -> Option<Finding> {
    let (cpu, most) = pick::largest(evidence, &keys::SOFTNET_PROCESSED).ok()?;
    let packets = evidence.each(&keys::SOFTNET_PROCESSED).ok()?;
    let all: f64 = packets.iter().map(|(_, rate)| rate.value).sum();
    let softirq = evidence.each(&keys::CPU_SOFTIRQ).ok()?;
    let (_, own) = softirq.iter().find(|(of, _)| *of == cpu)?;
    let others = softirq.iter().filter(|(of, _)| *of != cpu);
    let others: Vec<f64> = others.map(|(_, time)| time.value).collect();
    let seen = Concentration {
        cpu,
        share: Quantity {
            value: most.value / all,
            reading: most.reading,
        },
        softirq: *own,
        others: median(&others),
    };
    let others = seen.others?;
    let holds = seen.share.value > SHARE.value
        && seen.softirq.always(|time| time > SOFTIRQ.value)
        && others < HANDING.value;
    let (device, shown) = steered(evidence, &seen, most.value)?;
    holds.then(|| by_steering(evidence, &seen, others, device, shown))
}

fn judge(evidence: &Evidence) -> Judgement {
    if let Some(finding) = steered_to_one(evidence) {
        return Ok(vec![finding]);
    }
    let seen = concentration(evidence)?;
    let cpu = seen.cpu.name();
    let Some(others) = seen.others else {
        return Ok(vec![
            Finding::clear("there is one CPU, so nothing can be spread").cite(seen.share.reading),
        ]);
    };
    if seen.is_quiet() {
        return Ok(vec![
            Finding::clear("no packet was received in the window").cite(seen.share.reading),
        ]);
    }
    if !seen.holds() {
        let sentence = format!(
            "CPU {cpu} takes most packets, {} of NET_RX, and spends {} of its time in softirq (median of the \
             others {})",
            say::percent(seen.share.value),
            say::percent(seen.softirq.value),
            say::percent(others)
        );
        return Ok(vec![
            Finding::clear(sentence)
                .below(seen.softirq.value, SOFTIRQ.value)
                .cite(seen.share.reading)
                .cite(seen.softirq.reading),
        ]);
    }
    let finding = match cause(evidence, &seen)? {
        Cause::Interrupts(device, irqs) => by_interrupts(evidence, &seen, others, device, &irqs)?,
        Cause::Local => Finding::clear(format!(
            "CPU {cpu} takes {} of NET_RX, but no interrupt and no steering brings it there: the packets come \
             from senders on that CPU (loopback, veth)",
            say::percent(seen.share.value)
        ))
        .cite(seen.share.reading),
        Cause::Virtual => Finding::clear(format!(
            "CPU {cpu} takes {} of NET_RX, over devices that are all virtual: these run where somebody sends or \
             forwards to them, so nothing here puts them on one CPU; if they come over a card, look on its host",
            say::percent(seen.share.value)
        ))
        .cite(seen.share.reading),
    };
    Ok(vec![finding])
}

fn found(seen: &Concentration<'_>, sentence: String) -> Finding {
    let severity = if seen.softirq.value > 0.8 {
        Grade::High
    } else {
        Grade::Medium
    };
    Finding::act(seen.cpu, sentence)
        .severity(severity)
        .cite(seen.share.reading)
        .cite(seen.softirq.reading)
        .refuted_by(format!(
            "with the packets on several CPUs, CPU {} still spends as much time in softirq, or the rate stays \
             as it was",
            seen.cpu.name()
        ))
}

fn by_steering(
    evidence: &Evidence,
    seen: &Concentration<'_>,
    others: f64,
    device: &str,
    shown: &Reading,
) -> Finding {
    let sentence = format!(
        "receive steering of {device} sends all packets to CPU {}: {} of those of this host, {} of its time in \
         softirq, while the other CPUs spend {}",
        seen.cpu.name(),
        say::percent(seen.share.value),
        say::percent(seen.softirq.value),
        say::percent(others)
    );
    let finding = found(seen, sentence).confidence(Grade::High).cite(shown);
    spread::over(evidence, finding, device, &[("net.rps_cpus", "all")])
}

fn by_interrupts(
    evidence: &Evidence,
    seen: &Concentration<'_>,
    others: f64,
    device: &str,
    irqs: &[Irq<'_>],
) -> Result<Finding, Missing> {
    let subject = Subject::device(device);
    let cpus = evidence.host(&keys::CPU_ONLINE)?;
    let queues = evidence.quantity(&keys::QUEUES_RX, &subject).ok();
    let most = evidence.quantity(&keys::QUEUES_MAXIMUM, &subject).ok();
    let steering = evidence.quantity(&keys::RPS_CPUS, &subject).ok();
    let which = match irqs {
        [irq] => format!("interrupt {} of {device}", irq.subject.name()),
        all => format!("{} interrupts of {device}", all.len()),
    };
    let sentence = format!(
        "CPU {} takes {} of NET_RX and spends {} of its time in softirq ({which}), while the other CPUs spend {}",
        seen.cpu.name(),
        say::percent(seen.share.value),
        say::percent(seen.softirq.value),
        say::percent(others)
    );
    let in_parts = !seen.share.reading.series.is_empty();
    let mut finding =
        found(seen, sentence).confidence(if in_parts { Grade::High } else { Grade::Medium });
    for irq in irqs.iter().take(4) {
        finding = finding.cite(irq.rate.reading);
    }
    if let (Some(queues), Some(most)) = (queues, most)
        && queues.value < most.value.min(cpus.value)
    {
        let wanted = format!("{:.0}", most.value.min(cpus.value));
        finding = finding.cite(most.reading);
        // New queues come with new interrupts: where to place them can be said when they are there.
        finding = spread::over(evidence, finding, device, &[("net.queues", &wanted)])
            .consider_device("net.irq_affinity", device);
    } else {
        let mut wishes = Vec::new();
        // A single queue stays a single queue, wherever the interrupts of its two directions go.
        if irqs.len() > 1 && queues.is_none_or(|queues| queues.value > 1.5) {
            wishes.push(("net.irq_affinity", "spread"));
        }
        // With a queue for each CPU, steering would only deal the packets twice (rps-harmful).
        if let (Some(queues), Some(steering)) = (queues, steering)
            && rps_needed::few(queues.value, cpus.value)
            && steering.value < 0.5
        {
            finding = finding.cite(steering.reading);
            wishes.push(("net.rps_cpus", "all"));
        }
        if !wishes.is_empty() {
            finding = spread::over(evidence, finding, device, &wishes);
        }
    }
    let guest = evidence
        .words(&keys::VIRT_HYPERVISOR, &Subject::host())
        .is_ok_and(|hypervisor| !hypervisor.value.is_empty());
    if guest && most.is_some_and(|most| most.value < 1.5) {
        finding = finding.consider("virt.multiqueue");
    }
    if finding.knobs.is_empty() {
        finding = finding.consider("net.irq_affinity");
    }
    Ok(finding)
}
