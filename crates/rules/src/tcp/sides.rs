//! Which side of each connection of a service is slow, and why.
//!
//! The two directions of a connection are judged apart: what one end sends, and how the other end takes it. The thresholds are those of
//! the rules of single problems; what held the connection up for the largest share of the window is its cause. A far end that is not on this
//! machine is judged by its window alone.

use std::fmt::Write as _;

use rungwise_model::evidence::{Evidence, Key, Subject, Unit};
use rungwise_model::evidence_text::number_of;
use rungwise_model::keys;
use rungwise_model::service::{Cause, ServiceConnection, ServiceReport, Side};

use super::connections::{self, QUEUE_AGE};
use super::rpc_single_conn::THREAD;
use super::tcp_recvq_pile::{PILE, SHARE};
use super::tcp_retrans::{AGAIN, SEGMENTS};
use super::{tcp_rwnd_limited as window, tcp_sndbuf_limited as buffer};
use crate::{process, say};

/// Samples in which the send buffer, or the congestion window, is used up from which on it is the cause.
const MOSTLY: f64 = 0.5;

/// The connections of the named service, the worst first; none without a service.
pub fn service(evidence: &Evidence) -> Option<ServiceReport> {
    let host = |key| evidence.host(key).ok().map(|quantity| quantity.value);
    let ports = evidence
        .words(&keys::SERVICE_PORTS, &Subject::host())
        .ok()?;
    let near = evidence.each_words(&keys::SERVICE_ROLE).unwrap_or_default();
    let mut judged: Vec<(f64, f64, ServiceConnection)> = near
        .into_iter()
        .map(|(subject, role)| {
            let connection = Connection {
                evidence,
                near: subject,
                far: connections::other_end(subject),
                is_served_here: role.value == "server",
            };
            let (held, moved) = (connection.held(), connection.moved());
            let weight = held.weight;
            let judged = ServiceConnection {
                connection: subject.name().to_owned(),
                slow: held.slow,
                cause: held.cause,
                why: held.why,
            };
            (weight, moved.unwrap_or(0.0), judged)
        })
        .collect();
    judged.sort_by(|a, b| {
        let worse = b.0.total_cmp(&a.0).then(b.1.total_cmp(&a.1));
        worse.then_with(|| a.2.connection.cmp(&b.2.connection))
    });
    let count = |key| host(key).unwrap_or(0.0) as u64;
    Some(ServiceReport {
        ports: ports.value.split(", ").map(str::to_owned).collect(),
        connections: count(&keys::SERVICE_CONNECTIONS),
        samples: count(&keys::SERVICE_SAMPLES),
        to_clients_bytes_per_s: host(&keys::SERVICE_TO_CLIENTS),
        to_server_bytes_per_s: host(&keys::SERVICE_TO_SERVER),
        judged: judged.into_iter().map(|(_, _, judged)| judged).collect(),
    })
}

/// What holds a connection up.
struct Held {
    slow: Side,
    cause: Cause,
    why: String,
    /// Share of the window, to compare causes and connections.
    weight: f64,
}

/// A connection with the end at which it is judged.
struct Connection<'e> {
    evidence: &'e Evidence,
    near: &'e Subject,
    far: Option<Subject>,
    is_served_here: bool,
}

impl Connection<'_> {
    fn held(&self) -> Held {
        let (near, far) = if self.is_served_here {
            (Side::Server, Side::Client)
        } else {
            (Side::Client, Side::Server)
        };
        let nowhere = Subject::host();
        let other = self.far.as_ref().unwrap_or(&nowhere);
        let evidence = self.evidence;
        let sends = Direction {
            evidence,
            sender: (near, self.near),
            receiver: (far, other),
        };
        let receives = Direction {
            evidence,
            sender: (far, other),
            receiver: (near, self.near),
        };
        let held = sends.held().into_iter().chain(receives.held());
        let worst = held.max_by(|a, b| a.weight.total_cmp(&b.weight));
        if let Some(mut worst) = worst {
            let slow = if worst.slow == near { self.near } else { other };
            if worst.cause == Cause::NotReading
                && let Some(busy) = busiest_thread(evidence, slow)
            {
                let _ = write!(worst.why, "; {busy}");
            }
            return worst;
        }
        let held = |slow, why: String, weight| Held {
            slow,
            cause: Cause::None,
            why,
            weight,
        };
        let Some(moved) = self.moved() else {
            let why = "its rates are unknown: it was in one sample only".to_owned();
            return held(Side::Unknown, why, 0.0);
        };
        if moved <= 0.0 {
            return held(Side::Idle, "it carried nothing".to_owned(), 0.0);
        }
        // A queue below every threshold that most samples saw, and a thread that has no more time. A busy thread alone may be one that
        // does something else: compiles, or collects garbage.
        for (side, subject) in [(near, self.near), (far, other)] {
            let waits = unread(evidence, subject).filter(|bytes| *bytes > 0.0);
            if let (Some(waits), Some(busy)) = (waits, busiest_thread(evidence, subject)) {
                let busy = format!("{} wait to be read; {busy}", say::bytes(waits));
                return Held {
                    cause: Cause::BusyThread,
                    ..held(side, busy, 0.01)
                };
            }
        }
        let why = format!(
            "nothing held up its {}",
            number_of(Unit::BytesPerSecond, moved)
        );
        held(Side::Neither, why, 0.0)
    }

    /// Bytes per second both ways; none if unknown.
    fn moved(&self) -> Option<f64> {
        let of = |key| number(self.evidence, key, self.near);
        Some(of(&keys::TCP_BYTES_SENT)? + of(&keys::TCP_BYTES_RECEIVED)?)
    }
}

/// One direction of a connection, with the ends on this machine.
struct Direction<'e> {
    evidence: &'e Evidence,
    sender: (Side, &'e Subject),
    receiver: (Side, &'e Subject),
}

impl Direction<'_> {
    /// The heaviest cause.
    fn held(&self) -> Option<Held> {
        let by_window = self.by_window();
        // The window says for how long, the queue of the same end only that it is so.
        let by_queue = match &by_window {
            Some(held) if held.cause == Cause::NotReading => None,
            _ => self.by_queue(),
        };
        let by_path = match &by_window {
            // Probes of a closed window count as retransmitted.
            Some(_) => None,
            None => self.by_loss().or_else(|| self.by_congestion()),
        };
        [by_window, by_queue, self.by_buffer(), by_path]
            .into_iter()
            .flatten()
            .max_by(|a, b| a.weight.total_cmp(&b.weight))
    }

    fn sent(&self, key: &'static Key) -> Option<f64> {
        number(self.evidence, key, self.sender.1)
    }

    fn received(&self, key: &'static Key) -> Option<f64> {
        number(self.evidence, key, self.receiver.1)
    }

    /// Memory of the unread data as a share of the receiver's buffer.
    fn unread(&self) -> Option<f64> {
        let often = self.received(&keys::SERVICE_RECVQ_SHARE);
        often.or_else(|| self.received(&keys::TCP_RECVQ_SHARE))
    }

    /// Share of the window for which the sender was limited by this.
    fn limited(&self, key: &'static Key, line: f64) -> Option<(f64, f64)> {
        let share = self.sent(key)?;
        let of_window = share * self.sent(&keys::TCP_BUSY)?;
        (share > line && of_window >= window::WAITED.value).then_some((share, of_window))
    }

    fn by_window(&self) -> Option<Held> {
        let (share, weight) = self.limited(&keys::TCP_RWND_LIMITED, window::LIMITED.value)?;
        let (sender, receiver) = (word(self.sender.0), word(self.receiver.0));
        let waited = format!(
            "the {sender} waited for the window of the {receiver} in {} of the time in which it had data to send",
            say::percent(share)
        );
        let of_buffer = self.received(&keys::TCP_RCVBUF).map(say::bytes);
        let (cause, why) = match (self.unread(), of_buffer) {
            (Some(unread), _) if unread > window::UNREAD.value && !self.reads_at_once() => (
                Cause::NotReading,
                format!(
                    "it leaves {} of its receive buffer unread",
                    say::percent(unread)
                ),
            ),
            (Some(unread), size) if unread < window::READ.value || self.reads_at_once() => (
                Cause::ReceiveBuffer,
                format!(
                    "it reads at once, but its receive buffer{} lets too little data be under way",
                    size.map_or_else(String::new, |size| format!(" of {size}"))
                ),
            ),
            (Some(unread), _) => (
                Cause::Window,
                format!("{} of its receive buffer is unread", say::percent(unread)),
            ),
            (None, _) if self.sent(&keys::TCP_SND_WND) == Some(0.0) => (
                Cause::NotReading,
                "its window is closed at the end, and it is on another host".to_owned(),
            ),
            (None, _) => (
                Cause::Window,
                "its receive queue cannot be seen from here".to_owned(),
            ),
        };
        Some(Held {
            slow: self.receiver.0,
            cause,
            why: format!("{why}; {waited}"),
            weight,
        })
    }

    /// Bytes in the receive queue, and how long each waits there, in seconds.
    fn queue(&self) -> Option<(f64, f64)> {
        let queue = unread(self.evidence, self.receiver.1)?;
        let rate = self.received(&keys::TCP_BYTES_RECEIVED)?;
        Some((queue, connections::age(queue, rate)))
    }

    /// A queue that fills a small buffer may be gone in a moment.
    fn reads_at_once(&self) -> bool {
        self.queue().is_some_and(|(_, age)| age <= QUEUE_AGE.value)
    }

    fn by_queue(&self) -> Option<Held> {
        let (queue, age) = self.queue()?;
        let unread = self.unread()?;
        if age <= QUEUE_AGE.value || unread <= SHARE.value && queue <= PILE.value {
            return None;
        }
        let waits = if age.is_finite() {
            let seconds = number_of(Unit::Seconds, age);
            format!("a byte waits {seconds} to be read")
        } else {
            "nothing is read, which may be intended".to_owned()
        };
        Some(Held {
            slow: self.receiver.0,
            cause: Cause::NotReading,
            why: format!(
                "it leaves {} unread, {} of its receive buffer; {waits}",
                say::bytes(queue),
                say::percent(unread)
            ),
            weight: if age.is_finite() {
                unread.min(1.0)
            } else {
                0.01
            },
        })
    }

    fn by_buffer(&self) -> Option<Held> {
        let counted = self.limited(&keys::TCP_SNDBUF_LIMITED, buffer::LIMITED.value);
        let full = self.sent(&keys::SERVICE_BUFFER_FULL);
        let full = full.filter(|share| *share >= MOSTLY);
        let size = self.sent(&keys::TCP_SNDBUF).map(say::bytes)?;
        let (weight, why) = match (counted, full) {
            (Some((share, weight)), _) => (
                weight,
                format!(
                    "its send buffer of {size} held it up in {} of the time in which it had data to send",
                    say::percent(share)
                ),
            ),
            (None, Some(share)) => (
                share,
                format!(
                    "its send buffer of {size} is full in {} of the samples, while both windows are open",
                    say::percent(share)
                ),
            ),
            (None, None) => return None,
        };
        Some(Held {
            slow: self.sender.0,
            cause: Cause::SendBuffer,
            why,
            weight,
        })
    }

    fn by_loss(&self) -> Option<Held> {
        let share = self.sent(&keys::TCP_RETRANS_BYTES_SHARE)?;
        let again = self.sent(&keys::SERVICE_RETRANSMITTED)?;
        (share > AGAIN.value && again >= SEGMENTS.value).then(|| Held {
            slow: Side::Path,
            cause: Cause::Loss,
            why: format!(
                "{} from the {} were sent again, {} of the bytes",
                say::count(again, "segment"),
                word(self.sender.0),
                say::percent(share)
            ),
            weight: share,
        })
    }

    fn by_congestion(&self) -> Option<Held> {
        let full = self.sent(&keys::SERVICE_CWND_FULL)?;
        let queue = self.sent(&keys::SERVICE_SENDQ)?;
        let age = connections::age(queue, self.sent(&keys::TCP_BYTES_SENT)?);
        (full >= MOSTLY && age > QUEUE_AGE.value && age.is_finite()).then(|| Held {
            slow: Side::Path,
            cause: Cause::CongestionWindow,
            why: format!(
                "the congestion window of the {} is used up in {} of the samples; a byte waits {} to be acknowledged",
                word(self.sender.0),
                say::percent(full),
                number_of(Unit::Seconds, age)
            ),
            // Every bulk transfer uses it up.
            weight: 0.01,
        })
    }
}

fn number(evidence: &Evidence, key: &'static Key, subject: &Subject) -> Option<f64> {
    Some(evidence.quantity(key, subject).ok()?.value)
}

/// Bytes that wait to be read at this end, median of the samples.
fn unread(evidence: &Evidence, end: &Subject) -> Option<f64> {
    let often = number(evidence, &keys::SERVICE_RECVQ, end);
    often.or_else(|| number(evidence, &keys::TCP_RECVQ, end))
}

fn word(side: Side) -> &'static str {
    match side {
        Side::Client => "client",
        _ => "server",
    }
}

/// The busiest thread of the process at this end, if it has no more time.
fn busiest_thread(evidence: &Evidence, end: &Subject) -> Option<String> {
    let owner = evidence.words(&keys::TCP_PROCESS, end).ok()?;
    let pid = process::owner_pid(owner.value)?;
    let own = process::threads(evidence, pid).into_iter().next();
    let (name, busy) = if let Some((thread, busy)) = own {
        (process::named(thread, evidence), busy.value)
    } else {
        let of = Subject::new(rungwise_model::evidence::Kind::Process, pid);
        let busy = evidence.quantity(&keys::PROCESS_BUSIEST_THREAD, &of).ok()?;
        let name = evidence.words(&keys::PROCESS_BUSIEST_NAME, &of).ok()?;
        (name.value.to_owned(), busy.value)
    };
    (busy > THREAD.value).then(|| {
        format!(
            "thread {name} of {} uses {} of a CPU",
            owner.value,
            say::percent(busy)
        )
    })
}

#[cfg(test)]
mod tests {
    use rungwise_model::evidence::{Kind, Origin};

    use super::*;

    const SERVER: &str = "10.0.0.1:20880>10.0.0.2:40112";
    const CLIENT: &str = "10.0.0.2:40112>10.0.0.1:20880";

    /// A service with one connection, the server's end near, that sends 5 MB/s to its client.
    fn evidence(more: &[(&'static Key, &str, f64)]) -> Evidence {
        let mut evidence = Evidence::over(10.0);
        let origin = || Origin::new("sock_diag", "");
        evidence.text(&keys::SERVICE_PORTS, Subject::host(), ":20880", origin());
        let near = Subject::new(Kind::Connection, SERVER);
        evidence.text(&keys::SERVICE_ROLE, near, "server", origin());
        let usual = [
            (&keys::TCP_BYTES_SENT, SERVER, 5e6),
            (&keys::TCP_BYTES_RECEIVED, SERVER, 1e3),
            (&keys::TCP_BUSY, SERVER, 1.0),
            (&keys::TCP_SNDBUF, SERVER, 65_536.0),
        ];
        for (key, name, value) in usual.iter().chain(more) {
            let subject = Subject::new(Kind::Connection, name);
            evidence.number(key, subject, *value, origin());
        }
        evidence
    }

    fn judged(more: &[(&'static Key, &str, f64)]) -> (Side, Cause) {
        judged_in(&evidence(more))
    }

    fn judged_in(evidence: &Evidence) -> (Side, Cause) {
        let report = service(evidence).unwrap();
        assert_eq!(report.ports, [":20880"]);
        let [judged] = &report.judged[..] else {
            panic!("{report:?}");
        };
        assert!(!judged.why.is_empty());
        (judged.slow, judged.cause)
    }

    #[test]
    fn a_closed_window_is_explained_by_the_receive_queue_behind_it() {
        let closed = (&keys::TCP_RWND_LIMITED, SERVER, 0.3);
        let unread = |share| (&keys::SERVICE_RECVQ_SHARE, CLIENT, share);
        let client = |cause| (Side::Client, cause);
        assert_eq!(judged(&[closed, unread(0.9)]), client(Cause::NotReading));
        assert_eq!(
            judged(&[closed, unread(0.02)]),
            client(Cause::ReceiveBuffer)
        );
        assert_eq!(judged(&[closed, unread(0.3)]), client(Cause::Window));
        // 5 KB that fill most of a buffer of 8 KiB, and are read within a millisecond.
        let queue = (&keys::SERVICE_RECVQ, CLIENT, 5e3);
        let rate = (&keys::TCP_BYTES_RECEIVED, CLIENT, 5e6);
        let small = judged(&[closed, unread(0.6), queue, rate]);
        assert_eq!(small, client(Cause::ReceiveBuffer));
        // On another host.
        assert_eq!(judged(&[closed]), client(Cause::Window));
        let shut = (&keys::TCP_SND_WND, SERVER, 0.0);
        assert_eq!(judged(&[closed, shut]), client(Cause::NotReading));
    }

    #[test]
    fn near_misses_hold_nothing_up() {
        let neither = (Side::Neither, Cause::None);
        for (key, below, above) in [
            (&keys::TCP_RWND_LIMITED, 0.099, 0.105),
            (&keys::TCP_SNDBUF_LIMITED, 0.099, 0.105),
            (&keys::SERVICE_BUFFER_FULL, 0.49, 0.51),
        ] {
            assert_eq!(judged(&[(key, SERVER, below)]), neither, "{}", key.id);
            assert_ne!(judged(&[(key, SERVER, above)]), neither, "{}", key.id);
        }
        // Limited whenever it sends, which is hardly ever.
        let seldom = (&keys::TCP_BUSY, SERVER, 0.009);
        assert_eq!(
            judged(&[seldom, (&keys::TCP_RWND_LIMITED, SERVER, 1.0)]),
            neither
        );
    }

    #[test]
    fn a_full_send_buffer_counts_where_the_counter_stays_zero() {
        let server = (Side::Server, Cause::SendBuffer);
        let zero = (&keys::TCP_SNDBUF_LIMITED, SERVER, 0.0);
        assert_eq!(
            judged(&[zero, (&keys::SERVICE_BUFFER_FULL, SERVER, 0.9)]),
            server
        );
        assert_eq!(
            judged(&[(&keys::TCP_SNDBUF_LIMITED, SERVER, 0.324)]),
            server
        );
    }

    #[test]
    fn a_server_that_does_not_read_is_slow_though_its_clients_are_elsewhere() {
        let queue = (&keys::SERVICE_RECVQ, SERVER, 128_512.0);
        let unread = (&keys::SERVICE_RECVQ_SHARE, SERVER, 0.98);
        assert_eq!(judged(&[queue, unread]), (Side::Server, Cause::NotReading));
        // The same queue at a rate at which it is gone in a moment.
        let fast = (&keys::TCP_BYTES_RECEIVED, SERVER, 1e9);
        assert_eq!(judged(&[queue, unread, fast]), (Side::Neither, Cause::None));
    }

    #[test]
    fn a_busy_thread_is_a_cause_only_where_something_waits_to_be_read() {
        let with_thread = |busy: f64, more: &[(&'static Key, &str, f64)]| {
            let mut evidence = evidence(more);
            let origin = || Origin::new("sock_diag", "");
            let server = Subject::new(Kind::Connection, SERVER);
            evidence.text(&keys::TCP_PROCESS, server, "java 812", origin());
            let thread = Subject::new(Kind::Thread, "812:815");
            evidence.number(&keys::SCHED_THREAD_CPU, thread, busy, origin());
            judged_in(&evidence)
        };
        let neither = (Side::Neither, Cause::None);
        // It compiles, or collects garbage.
        assert_eq!(with_thread(0.99, &[]), neither);
        let at = |end, bytes| (&keys::SERVICE_RECVQ, end, bytes);
        assert_eq!(with_thread(0.99, &[at(SERVER, 0.0)]), neither);
        assert_eq!(with_thread(0.99, &[at(CLIENT, 300.0)]), neither);
        assert_eq!(with_thread(0.79, &[at(SERVER, 300.0)]), neither);
        assert_eq!(
            with_thread(0.99, &[at(SERVER, 300.0)]),
            (Side::Server, Cause::BusyThread)
        );
    }

    #[test]
    fn losses_are_of_the_path_unless_they_are_probes_of_a_closed_window() {
        let lost = (&keys::TCP_RETRANS_BYTES_SHARE, SERVER, 0.02);
        let again = (&keys::SERVICE_RETRANSMITTED, SERVER, 40.0);
        assert_eq!(judged(&[lost, again]), (Side::Path, Cause::Loss));
        let few = (&keys::SERVICE_RETRANSMITTED, SERVER, 9.0);
        assert_eq!(judged(&[lost, few]), (Side::Neither, Cause::None));
        let closed = (&keys::TCP_RWND_LIMITED, SERVER, 1.0);
        assert_eq!(
            judged(&[lost, again, closed]),
            (Side::Client, Cause::Window)
        );
    }

    #[test]
    fn what_carries_nothing_is_idle_and_what_is_unknown_is_said_to_be() {
        let none = [
            (&keys::TCP_BYTES_SENT, SERVER, 0.0),
            (&keys::TCP_BYTES_RECEIVED, SERVER, 0.0),
        ];
        assert_eq!(judged(&none), (Side::Idle, Cause::None));
        let mut evidence = Evidence::over(0.0);
        assert_eq!(service(&evidence), None);
        let origin = || Origin::new("sock_diag", "");
        evidence.text(&keys::SERVICE_PORTS, Subject::host(), ":1, :2", origin());
        let near = Subject::new(Kind::Connection, SERVER);
        evidence.text(&keys::SERVICE_ROLE, near, "server", origin());
        let report = service(&evidence).unwrap();
        assert_eq!(report.judged[0].slow, Side::Unknown);
        assert_eq!(report.ports, [":1", ":2"]);
    }
}
