//! More CPUs for the packets, in view of the UDP socket behind them.
//!
//! With one UDP socket behind it, a spread makes all CPUs contend for that socket's lock: 270 k to 17 k transactions/s in the
//! reference case. Before the spread one CPU takes the packets, and no contention shows, so how the traffic ends is
//! looked at as well.

use std::fmt::Write as _;

use rungwise_model::check::{Finding, Outcome};
use rungwise_model::evidence::{Evidence, Missing};
use rungwise_model::keys;

use super::{ports, udp_socket_lock};
use crate::Threshold;

/// UDP share of the datagrams from which one socket is what a spread would be fought for.
pub(crate) const UDP: Threshold = Threshold {
    name: "UDP share from which a shared socket decides",
    value: 0.5,
    origin: "own guess: where most packets are UDP, what UDP's sockets do decides",
};

/// The `gain` of the reference case, which had 20 CPUs, or what the CPUs of this machine allow where they are fewer.
pub(crate) fn most_gain(evidence: &Evidence, gain: f64) -> f64 {
    let cpus = evidence.each(&keys::CPU_BUSY).map_or(0, |cpus| cpus.len());
    if cpus > 0 {
        gain.min(cpus as f64 - 1.0)
    } else {
        gain
    }
}

/// Nothing known says that more CPUs would contend for one socket.
pub(crate) fn is_safe(evidence: &Evidence) -> Result<bool, Missing> {
    if udp_socket_lock::holds(evidence) == Ok(true) {
        return Ok(false);
    }
    if evidence.host(&keys::UDP_SHARE)?.value < UDP.value {
        return Ok(true);
    }
    Ok(ports::busiest(evidence)?.sockets.value > 1.5)
}

/// Asks for `wishes`, knobs of `device` that bring more CPUs to its packets. Where these would contend for one socket, a
/// socket per worker is asked for, and the wishes are named for a person; named alone where nobody can tell.
pub(crate) fn over(
    evidence: &Evidence,
    mut finding: Finding,
    device: &str,
    wishes: &[(&str, &str)],
) -> Finding {
    let safe = is_safe(evidence);
    match &safe {
        Ok(true) => {}
        Ok(false) => {
            if let Ok(port) = ports::busiest(evidence) {
                let _ = write!(
                    finding.sentence,
                    "; {} is one socket: more CPUs would add contention, so add SO_REUSEPORT first",
                    port.named(evidence)
                );
                finding = finding.cite(port.sockets.reading);
            }
            finding = finding.turn("sock.reuseport", "on");
        }
        Err(missing) => {
            let _ = write!(
                finding.sentence,
                "; whether more than one UDP socket takes the packets is unknown ({}): check before spreading",
                missing.key
            );
        }
    }
    wishes.iter().fold(finding, |finding, (knob, to)| {
        if safe == Ok(true) {
            finding.turn_device(knob, device, *to)
        } else {
            finding.consider_device(knob, device)
        }
    })
}

/// A remedy that brings more CPUs where several take packets already: only worth watching, and only together with a socket
/// per worker, while they contend for a socket, or while one CPU takes the packets for one.
pub(crate) fn not_alone(evidence: &Evidence, mut finding: Finding) -> Finding {
    let contended = udp_socket_lock::holds(evidence) == Ok(true);
    let alone = || {
        let cpus = evidence.host(&keys::SOFTIRQ_NET_RX_CPUS);
        cpus.is_ok_and(|cpus| cpus.value < udp_socket_lock::CPUS.value)
    };
    let would_contend = contended || (alone() && is_safe(evidence) == Ok(false));
    if !would_contend {
        return finding;
    }
    finding.outcome = Outcome::Watch;
    let more = if contended { "more " } else { "" };
    let _ = write!(
        finding.sentence,
        "; spreading now adds {more}contention on the one UDP socket: fix udp-socket-lock first (SO_REUSEPORT)"
    );
    let mut finding = finding.turn("sock.reuseport", "on");
    finding.knobs.rotate_right(1);
    finding
}

#[cfg(test)]
mod tests {
    use rungwise_model::evidence::{Origin, Subject};

    use super::*;

    #[test]
    fn no_gain_is_larger_than_the_cpus_allow() {
        for (cpus, expected) in [(0, 8.4), (1, 0.0), (2, 1.0), (20, 8.4)] {
            let mut evidence = Evidence::over(10.0);
            for cpu in 0..cpus {
                let origin = Origin::new("/proc/stat", "");
                evidence.number(&keys::CPU_BUSY, Subject::cpu(cpu), 0.5, origin);
            }
            let most = most_gain(&evidence, 8.4);
            assert_eq!(most.to_bits(), f64::to_bits(expected), "{cpus} CPUs");
        }
    }
}
