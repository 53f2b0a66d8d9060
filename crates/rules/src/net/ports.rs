//! UDP ports: which one is likely to get the traffic, and with how many sockets.
//!
//! The kernel does not count datagrams per socket (`sock_diag` tells queue and drops). So the busiest port is
//! a guess in this order: most drops, fullest queue, most threads that could read it, most sockets.

use rungwise_model::evidence::{Evidence, Missing, Quantity, Subject};
use rungwise_model::keys;

/// A UDP port.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Port<'a> {
    /// `port/udp/0.0.0.0:9000`.
    pub(crate) subject: &'a Subject,
    /// Sockets that share it.
    pub(crate) sockets: Quantity<'a>,
}

impl Port<'_> {
    /// `udp/0.0.0.0:9000 of server (4242)`.
    pub(crate) fn named(&self, evidence: &Evidence) -> String {
        named(self.subject, evidence)
    }
}

/// A port with its process, where that is known.
pub(crate) fn named(port: &Subject, evidence: &Evidence) -> String {
    match evidence.words(&keys::UDP_PROCESS, port) {
        Ok(process) if !process.value.is_empty() => format!("{} of {}", port.name(), process.value),
        _ => port.name().to_owned(),
    }
}

/// The port that is likely to get most datagrams.
pub(crate) fn busiest(evidence: &Evidence) -> Result<Port<'_>, Missing> {
    let weight = |port: &Subject| {
        [
            &keys::UDP_SOCKET_DROPS,
            &keys::UDP_SOCKET_QUEUE,
            &keys::UDP_READERS,
            &keys::UDP_SOCKETS,
        ]
        .map(|key| evidence.quantity(key, port).map_or(0.0, |seen| seen.value))
    };
    evidence
        .each(&keys::UDP_SOCKETS)?
        .into_iter()
        .max_by(|(a, _), (b, _)| {
            let (a, b) = (weight(a), weight(b));
            a.iter()
                .zip(&b)
                .map(|(a, b)| a.total_cmp(b))
                .find(|order| order.is_ne())
                .unwrap_or(std::cmp::Ordering::Equal)
        })
        .map(|(subject, sockets)| Port { subject, sockets })
        .ok_or_else(|| evidence.missing(&keys::UDP_SOCKETS, &Subject::host()))
}
