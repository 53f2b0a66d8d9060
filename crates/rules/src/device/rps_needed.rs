//! `rps-needed`: too few hardware queues, no receive steering, and one CPU that pays for it.
//!
//! Receive steering (RPS) is the cure that can kill: with one UDP socket behind it, all CPUs contend for that
//! socket's lock (270 k to 17 k transactions/s in the reference case), and with `SO_REUSEPORT` it made the
//! rest of the ladder possible. So it is not asked for while `udp-socket-lock` holds, and where UDP makes up
//! the traffic it is asked for together with `SO_REUSEPORT`.

use rungwise_model::check::{Finding, Grade};
use rungwise_model::evidence::{Evidence, Subject};
use rungwise_model::keys;

use super::irq_one_cpu::{self, Cause};
use crate::net::{ports, spread, udp_socket_lock};
use crate::rule::needs;
use crate::{Doc, Judgement, Measure, Rule, Threshold, say};

const QUEUES: Threshold = Threshold {
    name: "receive queues per CPU",
    value: 0.5,
    origin: "own guess: with a queue for every second CPU, hardware does most of the spreading",
};

const SHORT: Threshold = Threshold {
    name: "softirq time of the CPU that is the limit",
    value: 0.8,
    origin: "a bank's guest below it: steering spread the load and brought nothing",
};

/// `rps-needed`
pub(crate) static RULE: Rule = Rule {
    id: "rps-needed",
    topic: "device",
    summary: "few hardware queues, no receive steering, and one CPU that takes the packets",
    needs: needs!(
        [
            &keys::CPU_BUSY,
            &keys::CPU_ONLINE,
            &keys::CPU_SOFTIRQ,
            &keys::DEVICE_KIND,
            &keys::DEVICE_RX_PACKETS,
            &keys::IRQ_BUSIEST_CPU,
            &keys::IRQ_DEVICE,
            &keys::IRQ_RATE,
            &keys::QUEUES_RX,
            &keys::RPS_CPUS,
            &keys::RPS_MASK,
            &keys::SOFTIRQ_NET_RX_SHARE,
            &keys::SOFTNET_PROCESSED,
            &keys::SOFTNET_RECEIVED_RPS,
            &keys::UDP_PROCESS,
            &keys::UDP_SHARE
        ],
        udp_socket_lock::NEEDS
    ),
    thresholds: &[QUEUES, SHORT, spread::UDP],
    knobs: &["sock.reuseport", "net.rps_cpus", "net.rfs"],
    measure: Some(Measure::more(&keys::SOFTIRQ_NET_RX_SHARE)),
    doc: Doc {
        looks_for: "A device with at most half as many receive queues as the machine has CPUs, no RPS mask, and one \
                    CPU that takes the packets (irq-one-cpu).",
        hurts: "Softirq work stays on the CPUs that the queues interrupt, and the rest of the machine cannot help.",
        todo: "RPS on the device; RFS where many flows are read by threads on other CPUs. A UDP service with one \
               socket needs SO_REUSEPORT first: without it, RPS makes the CPUs contend for the socket's lock.",
        wrong: "Where that CPU still has time, spreading brings nothing: below 80 % it is only worth watching. While \
                udp-socket-lock holds, RPS makes it worse, and this rule reports nothing.",
        sources: "Documentation/networking/scaling.rst (Linux); the reference case (20 cores, 82599ES, Linux 4.6.3): \
                  270 k transactions/s, 17 k with RPS, 2,540 k with RPS and SO_REUSEPORT; a bank's guest: spread, no \
                  gain.",
    },
    judge,
};

/// So few queues that steering could help.
pub(super) fn few(queues: f64, cpus: f64) -> bool {
    queues <= cpus * QUEUES.value
}

fn judge(evidence: &Evidence) -> Judgement {
    let cpus = evidence.host(&keys::CPU_ONLINE)?;
    let seen = irq_one_cpu::concentration(evidence)?;
    if seen.is_quiet() {
        return Ok(vec![
            Finding::clear("no packet was received in the window").cite(seen.share.reading),
        ]);
    }
    if !seen.holds() {
        return Ok(vec![
            Finding::clear(format!(
                "no CPU is short of time for packets while others have room (CPU {} has the largest part of NET_RX)",
                seen.cpu.name()
            ))
            .below(seen.softirq.value, SHORT.value)
            .cite(seen.softirq.reading),
        ]);
    }
    let Cause::Interrupts(device, _) = irq_one_cpu::cause(evidence, &seen)? else {
        return Ok(vec![
            Finding::clear("the packets of the busiest CPU do not come by hardware interrupt")
                .cite(seen.share.reading),
        ]);
    };
    let subject = Subject::device(device);
    let queues = evidence.quantity(&keys::QUEUES_RX, &subject)?;
    let steered = evidence.quantity(&keys::RPS_CPUS, &subject)?;
    if !few(queues.value, cpus.value) || steered.value > 0.5 {
        let sentence = format!(
            "{device} has {} for {}, and receive steering over {}",
            say::count(queues.value, "receive queue"),
            say::count(cpus.value, "CPU"),
            say::count(steered.value, "CPU")
        );
        return Ok(vec![
            Finding::clear(sentence)
                .cite(queues.reading)
                .cite(steered.reading),
        ]);
    }
    if udp_socket_lock::holds(evidence) == Ok(true) {
        return Ok(vec![
            Finding::clear(format!(
                "{device} has {} for {}, but steering would add to the present contention for one UDP socket \
                 (udp-socket-lock)",
                say::count(queues.value, "receive queue"),
                say::count(cpus.value, "CPU")
            ))
            .cite(queues.reading),
        ]);
    }
    let safe = spread::is_safe(evidence)?;
    let with = if safe {
        String::new()
    } else {
        let port = ports::busiest(evidence)?.named(evidence);
        format!("; {port} is one socket, so steer only together with SO_REUSEPORT")
    };
    let sentence = format!(
        "{device} has {} for {} and no receive steering: CPU {} spends {} of its time in softirq{with}",
        say::count(queues.value, "receive queue"),
        say::count(cpus.value, "CPU"),
        seen.cpu.name(),
        say::percent(seen.softirq.value)
    );
    let finding = if seen.softirq.value > SHORT.value {
        Finding::act(&subject, sentence).severity(Grade::High)
    } else {
        Finding::watch(&subject, sentence)
    };
    let finding = finding
        .cite(queues.reading)
        .cite(steered.reading)
        .cite(seen.softirq.reading)
        .refuted_by(format!(
            "with steering on, CPU {} still spends as much time in softirq, or the rate does not rise",
            seen.cpu.name()
        ));
    Ok(vec![if safe {
        finding
            .turn_device("net.rps_cpus", device, "all")
            .consider("net.rfs")
    } else {
        finding
            .cite(ports::busiest(evidence)?.sockets.reading)
            .turn("sock.reuseport", "on")
            .turn_device("net.rps_cpus", device, "all")
            .estimate(
                0.0,
                spread::most_gain(evidence, 8.4),
                "reference case, 20 cores, both together: 270 k to 2,540 k transactions/s; steering alone fell to \
                 17 k; a bank's guest with one queue: no gain",
            )
    }])
}
