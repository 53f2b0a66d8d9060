//! `tx-queue-lock`: CPUs that send meet at the lock of one transmit queue.
//!
//! Without transmit steering (XPS) the queue is picked by the flow's hash, so any CPU may send through any
//! queue. Some drivers (ixgbe) set the masks themselves, veth and most others do not.

use rungwise_model::evidence::{Evidence, Missing, Quantity, Subject, Words};
use rungwise_model::keys;

use crate::net::spread;
use crate::{Doc, Judgement, Measure, Rule, Threshold, sampled, say};

const SHARE: Threshold = Threshold {
    name: "busy samples that spin under dev_queue_xmit",
    value: 0.05,
    origin: "own guess; the reference case without transmit steering fell to a fifth",
};

/// Disciplines that pass packets on per queue, or have no lock at all.
const PER_QUEUE: &[&str] = &["mq", "mqprio", "noqueue"];

/// `tx-queue-lock`
pub(crate) static RULE: Rule = Rule {
    id: "tx-queue-lock",
    topic: "device",
    summary: "sending CPUs contend for the lock of a transmit queue",
    needs: &[
        &keys::CPU_BUSY,
        &keys::DEVICE_TX_PACKETS,
        &keys::QDISC_ROOT,
        &keys::QUEUES_TX,
        &keys::STACK_SAMPLES,
        &keys::STACK_XMIT_LOCK,
        &keys::XPS_CPUS,
    ],
    thresholds: &[SHARE, sampled::SAMPLES, sampled::BUSY],
    knobs: &["net.xps_cpus", "net.default_qdisc"],
    measure: Some(Measure::more(&keys::STACK_XMIT_LOCK)),
    doc: Doc {
        looks_for: "More than 5 % of busy samples spinning on a lock below dev_queue_xmit.",
        hurts: "Senders wait for each other; more CPUs send no more packets.",
        todo: "One transmit queue per CPU (XPS) where the device has several queues and no masks. A shaper at the root \
               (htb, tbf) has one lock for all by design: only another discipline helps.",
        wrong: "The device is a guess: the one that sends most and has a queueing discipline. veth and loopback have \
                none (noqueue), so their lock is another one. Where masks are set already, they are not the cause.",
        sources: "The reference case (20 cores, 82599ES): 5,050 k to 1,086 k transactions/s without XPS; \
                  __dev_queue_xmit in net/core/dev.c (Linux 6.18).",
    },
    judge,
};

/// The device that sends most of those with a queueing discipline.
struct Sender<'a> {
    device: &'a Subject,
    rate: Quantity<'a>,
    root: Words<'a>,
}

impl<'a> Sender<'a> {
    fn of(evidence: &'a Evidence) -> Result<Option<Self>, Missing> {
        evidence.each_words(&keys::QDISC_ROOT)?;
        let senders = evidence.each(&keys::DEVICE_TX_PACKETS)?;
        Ok(senders
            .into_iter()
            .filter_map(|(device, rate)| {
                let root = evidence.words(&keys::QDISC_ROOT, device).ok()?;
                (root.value != "noqueue").then_some(Self { device, rate, root })
            })
            .max_by(|a, b| a.rate.value.total_cmp(&b.rate.value)))
    }
}

fn judge(evidence: &Evidence) -> Judgement {
    let seen = sampled::share(evidence, &keys::STACK_XMIT_LOCK)?;
    let sentence = format!(
        "{} of busy samples spin on a lock under dev_queue_xmit",
        say::percent(seen.share.value)
    );
    if seen.share.value <= SHARE.value {
        return Ok(vec![seen.clear(sentence, SHARE.value)]);
    }
    let Some(sender) = Sender::of(evidence)? else {
        return Ok(vec![seen.clear(
            format!("{sentence}, but no device has a queueing discipline"),
            SHARE.value,
        )]);
    };
    let device = sender.device.name();
    let queues = evidence.quantity(&keys::QUEUES_TX, sender.device)?;
    let masks = evidence.quantity(&keys::XPS_CPUS, sender.device).ok();
    let root = sender.root.value;
    let (why, steer) = if !PER_QUEUE.contains(&root) && queues.value > 1.5 {
        (
            format!(
                "{device} has {root} at its root, one lock for all {} queues",
                say::whole(queues.value)
            ),
            false,
        )
    } else if queues.value < 1.5 {
        (format!("{device} has one transmit queue"), false)
    } else {
        match masks {
            Some(masks) if masks.value > 0.5 => (
                format!(
                    "{device} has transmit steering over {}",
                    say::count(masks.value, "CPU")
                ),
                false,
            ),
            Some(_) => (
                format!(
                    "{device} picks one of {} by hash (no transmit steering)",
                    say::count(queues.value, "queue")
                ),
                true,
            ),
            None => return Err(evidence.missing(&keys::XPS_CPUS, sender.device)),
        }
    };
    let what = format!("{sentence}: {why}");
    let finding = if steer {
        seen.cost_at(evidence, sender.device, &what, SHARE.value)?
            .turn_device("net.xps_cpus", device, "by-cpu")
            .estimate(
                0.0,
                spread::most_gain(evidence, 3.65),
                "reference case, 20 cores on 16 queues: 1,086 k to 5,050 k transactions/s; +4.2 % on a veth pair with \
                 two queues",
            )
            .refuted_by("with a queue per CPU, as many samples still spin under dev_queue_xmit")
    } else {
        // Not what steering cures: worth knowing, and for a person to decide.
        seen.watch(sender.device, &what, SHARE.value)
            .consider("net.default_qdisc")
            .refuted_by("with another discipline at the root, as many samples still spin")
    };
    let finding = finding
        .cite(sender.rate.reading)
        .cite(sender.root.reading)
        .cite(queues.reading);
    Ok(vec![match masks {
        Some(masks) => finding.cite(masks.reading),
        None => finding,
    }])
}
