//! `udp-rcvbuf-drop`: datagrams that reached their socket and found its queue full.
//!
//! The last place on the way where a datagram can be lost. A larger buffer holds a longer burst; it does
//! nothing against a reader that is slower than the traffic, or that waits for a CPU.

use rungwise_model::check::{Finding, Grade};
use rungwise_model::evidence::{Evidence, Kind, Missing, Quantity, Subject, Words};
use rungwise_model::keys;

use super::ports;
use crate::{Doc, Judgement, Measure, Rule, Threshold, say};

const SHARE: Threshold = Threshold {
    name: "datagrams dropped, as a share of those that arrived",
    value: 0.001,
    origin: "own guess: one in a thousand; netdata warns of any",
};

const FEW: Threshold = Threshold {
    name: "datagrams dropped in the window",
    value: 10.0,
    origin: "own guess: fewer are an accident, whatever share of a quiet host's datagrams they are",
};

const MUCH: Threshold = Threshold {
    name: "the same, severe",
    value: 0.01,
    origin: "measured by `cargo xtask faults --steps 5 --seed 8001`: a buffer that held the burst lost nothing, one of half the size 70 % \
        of the datagrams: there is little in between",
};

const UNREAD: Threshold = Threshold {
    name: "the same, as for an unread socket",
    value: 0.999,
    origin: "all of them are lost where nothing is read; a thousandth is left to other sockets of a quiet host. A guess",
};

const DELAY: Threshold = Threshold {
    name: "run delay of the reader",
    value: 0.1,
    origin: "the line of runq-delay: a reader that waits for a CPU a tenth of its time",
};

const HOLD: Threshold = Threshold {
    name: "traffic that a buffer should hold, seconds",
    value: 0.05,
    origin: "own guess: several times a time slice (3 to 10 ms), a tenth of what people notice",
};

const CHARGE: Threshold = Threshold {
    name: "memory that a small datagram is charged with, bytes",
    value: 1024.0,
    origin: "skb->truesize of a small datagram is 768 to 1280 bytes (Linux 6.18); 9 of 200 datagrams fitted 8 KiB",
};

const LARGEST: Threshold = Threshold {
    name: "largest recommended buffer, bytes",
    value: 67_108_864.0,
    origin: "own guess: more is a queue and no buffer; what waits in it is late",
};

/// `udp-rcvbuf-drop`
pub(crate) static RULE: Rule = Rule {
    id: "udp-rcvbuf-drop",
    topic: "net",
    summary: "datagrams are dropped because a socket's receive queue is full",
    needs: &[
        &keys::SYSCTL_VALUE,
        &keys::UDP_PROCESS,
        &keys::UDP_RCVBUF,
        &keys::UDP_RCVBUF_DROPS,
        &keys::UDP_RCVBUF_SHARE,
        &keys::UDP_READ_DELAY,
        &keys::UDP_READERS,
        &keys::UDP_RECEIVED,
        &keys::UDP_SOCKET_DROPS,
        &keys::UDP_SOCKETS,
    ],
    thresholds: &[SHARE, FEW, MUCH, UNREAD, DELAY, HOLD, CHARGE, LARGEST],
    knobs: &["net.rmem_max", "sock.reuseport", "sock.recvmmsg"],
    measure: Some(Measure::more(&keys::UDP_RCVBUF_SHARE)),
    doc: Doc {
        looks_for: "More than 0.1 % of the datagrams dropped at full receive queues (RcvbufErrors), with the sockets \
                    that drop.",
        hurts: "The datagram crossed the whole stack and is lost at the end.",
        todo: "A larger buffer, if the drops come in bursts and the reader has a CPU: the service asks with SO_RCVBUF \
               (up to net.core.rmem_max) or gets net.core.rmem_default when it starts. Otherwise a quicker reader: \
               batches (recvmmsg), or one socket per thread.",
        wrong: "A reader that is blocked, or that waits for a CPU, loses whatever the buffer: more buffer only delays. \
                Run delay is checked where threads were sampled; a reader blocked in something else cannot be distinguished \
                from a slow one, unless nothing at all is read: a service that hangs or a socket that is forgotten, \
                which is only watched. A size is recommended only where a sysctl sets it: a buffer that the service chose \
                itself is the service's to enlarge.",
        sources: "udp(7), socket(7); netdata's udp_errors; bpftune's UDP buffer tuner; measured on Linux 6.18: 191 of \
                  200 datagrams dropped with 8 KiB.",
    },
    judge,
};

fn judge(evidence: &Evidence) -> Judgement {
    let share = evidence.host(&keys::UDP_RCVBUF_SHARE)?;
    let drops = evidence.host(&keys::UDP_RCVBUF_DROPS)?;
    if share.value <= SHARE.value || drops.value * evidence.seconds() < FEW.value {
        let sentence = format!(
            "{} of datagrams are dropped at full receive queues ({})",
            say::percent(share.value),
            say::rate(drops.value)
        );
        return Ok(vec![
            Finding::clear(sentence)
                .below(share.value, SHARE.value)
                .cite(share.reading),
        ]);
    }
    let ports = evidence.each(&keys::UDP_SOCKET_DROPS).unwrap_or_default();
    let mut ports: Vec<_> = ports
        .into_iter()
        .filter(|(_, drops)| drops.value > 0.0)
        .collect();
    ports.sort_by(|(_, a), (_, b)| b.value.total_cmp(&a.value));
    // A hundred ports that drop tell no more than the three that drop most.
    ports.truncate(3);
    if ports.is_empty() {
        let sentence = format!(
            "{} of datagrams ({}) are dropped at full receive queues, by sockets that are closed now or cannot be seen",
            say::percent(share.value),
            say::rate(drops.value)
        );
        return Ok(vec![
            graded(Finding::watch(&Subject::host(), sentence), share)
                .confidence(Grade::Low)
                .cite(share.reading)
                .cite(drops.reading)
                .consider("net.rmem_max")
                .refuted_by("Udp RcvbufErrors does not grow in a second window"),
        ]);
    }
    ports
        .into_iter()
        .map(|(port, dropped)| found(evidence, share, drops, port, dropped))
        .collect()
}

fn graded(finding: Finding, share: Quantity<'_>) -> Finding {
    finding.severity(if share.value > MUCH.value {
        Grade::High
    } else {
        Grade::Medium
    })
}

fn found(
    evidence: &Evidence,
    share: Quantity<'_>,
    drops: Quantity<'_>,
    port: &Subject,
    dropped: Quantity<'_>,
) -> Result<Finding, Missing> {
    let received = evidence.host(&keys::UDP_RECEIVED)?;
    let buffer = evidence.quantity(&keys::UDP_RCVBUF, port).ok();
    let delay = evidence.quantity(&keys::UDP_READ_DELAY, port).ok();
    let starved = delay.filter(|delay| delay.value > DELAY.value);
    let several = |key| {
        evidence
            .quantity(key, port)
            .is_ok_and(|count| count.value > 1.5)
    };
    let shared = several(&keys::UDP_READERS) && !several(&keys::UDP_SOCKETS);
    // Sockets are compared at both ends of the window only; its course is that of the host's counter.
    let course = !drops.reading.series.is_empty();
    let steady = course && drops.always(|rate| rate > 0.0);
    let when = match (course, steady) {
        (true, true) => " all the time",
        (true, false) => " in bursts",
        (false, _) => "",
    };
    let size = buffer.map(|buffer| Size::of(evidence, buffer.value));
    let holds = buffer.map_or(String::new(), |buffer| {
        let whose = match size {
            Some(Size::Own) => ", which the service chose itself",
            _ => "",
        };
        format!(" (buffer {}{whose})", say::bytes(buffer.value))
    });
    let what = format!(
        "{}{holds} drops {}{when}; {} of all datagrams are lost at full queues",
        ports::named(port, evidence),
        say::rate(dropped.value),
        say::percent(share.value)
    );
    if starved.is_none() && share.value > UNREAD.value {
        let sentence =
            format!("{what}, and nothing is read: the service hangs, or does not want them");
        let finding = graded(Finding::watch(port, sentence), share)
            .confidence(Grade::Medium)
            .cite(share.reading)
            .cite(received.reading)
            .cite(dropped.reading);
        return Ok(finding.refuted_by(
            "Udp InDatagrams grows: some process reads, and `strace -e trace=network -f -p PID` shows who",
        ));
    }
    // Of what arrives, not of what is read: most may be lost.
    let held = buffer.map_or(f64::INFINITY, |buffer| {
        buffer.value / CHARGE.value / (received.value + dropped.value)
    });
    let small = matches!(size, Some(Size::Own)) && held < HOLD.value;
    let sentence = match starved {
        Some(delay) => format!(
            "{what}, and the reader waits for a CPU {} of the time, for which no buffer makes up",
            say::percent(delay.value)
        ),
        None if small => format!(
            "{what}: the buffer holds {:.1} ms of what arrives",
            held * 1e3
        ),
        None if steady => format!("{what}: the reader is slower than the traffic"),
        None => what,
    };
    let mut finding = graded(Finding::act(port, sentence), share)
        .confidence(if delay.is_some() {
            Grade::High
        } else {
            Grade::Medium
        })
        .cite(share.reading)
        .cite(drops.reading)
        .cite(dropped.reading);
    for cited in [buffer, delay].into_iter().flatten() {
        finding = finding.cite(cited.reading);
    }
    let larger = |finding: Finding| match (buffer, size) {
        // A reader that loses all the time is late with any buffer.
        (Some(_), Some(Size::Host(..))) if steady => finding.consider("net.rmem_max"),
        (Some(buffer), Some(Size::Host(part, now))) => {
            let wanted = room(buffer.value, received.value);
            let finding = finding.cite(now.reading);
            if wanted > bytes_of(now).unwrap_or(f64::INFINITY) {
                finding.turn("net.rmem_max", format!("{part}={:.0}KiB", wanted / 1024.0))
            } else {
                finding.consider("net.rmem_max")
            }
        }
        (_, Some(Size::Own)) => finding,
        _ => finding.consider("net.rmem_max"),
    };
    if starved.is_none() && !steady {
        finding = larger(finding);
    }
    if small {
        // A quicker reader makes up for no buffer of a few datagrams, and no knob changes what the service asks for.
        return Ok(finding.refuted_by(
            "with a buffer for 50 ms of the traffic (SO_RCVBUF), as many datagrams are dropped",
        ));
    }
    // Both help a reader that spends its time in system calls, and none that waits for something else.
    if shared {
        finding = finding.consider("sock.reuseport");
    }
    finding = finding.consider("sock.recvmmsg");
    if starved.is_none() && steady {
        finding = larger(finding);
    }
    Ok(finding.refuted_by(
        "with four times the buffer, as many datagrams are dropped: the reader is too slow",
    ))
}

/// Who decided the size of a buffer.
#[derive(Clone, Copy)]
enum Size<'e> {
    /// A sysctl of the host: the part of the knob, and what it is.
    Host(&'static str, Words<'e>),
    /// The service, which asked for less than it may have: nothing on the host changes that.
    Own,
    /// Nobody knows.
    Unknown,
}

impl<'e> Size<'e> {
    /// A socket that asks for nothing has `rmem_default`; one that asks (`SO_RCVBUF`) has twice what it asked for, and
    /// at most twice `rmem_max` (`sock_setsockopt` in net/core/sock.c).
    fn of(evidence: &'e Evidence, buffer: f64) -> Self {
        let sysctl = |name: &str| {
            let setting = Subject::new(Kind::Setting, format_args!("net.core.{name}"));
            evidence.words(&keys::SYSCTL_VALUE, &setting).ok()
        };
        let is = |words: Words<'_>, factor: f64| {
            bytes_of(words).is_some_and(|bytes| (bytes * factor - buffer).abs() < 0.5)
        };
        match (sysctl("rmem_default"), sysctl("rmem_max")) {
            (Some(default), _) if is(default, 1.0) => Self::Host("default", default),
            (_, Some(most)) if is(most, 2.0) => Self::Host("max", most),
            (Some(_), Some(_)) => Self::Own,
            _ => Self::Unknown,
        }
    }
}

fn bytes_of(words: Words<'_>) -> Option<f64> {
    words.value.parse().ok()
}

/// Bytes for 50 ms of the present traffic: a power of two, at least twice the present buffer.
fn room(buffer: f64, per_second: f64) -> f64 {
    let wanted = (per_second * HOLD.value * CHARGE.value)
        .max(2.0 * buffer)
        .clamp(1024.0, LARGEST.value);
    let kib = ((wanted / 1024.0).ceil() as u64).next_power_of_two();
    kib as f64 * 1024.0
}
