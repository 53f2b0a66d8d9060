//! `udp-socket-lock`: softirq CPUs contend for the queue of one UDP socket.
//!
//! Every datagram is put into the socket's receive queue under a lock. With one socket per port, all CPUs
//! that take packets meet there; on 20 of them the reference case fell to a sixteenth of its rate. Symbols:
//! net/ipv4/udp.c, `__udp_enqueue_schedule_skb` (Linux 4.10 on), `udp_queue_rcv_skb` before it.

use rungwise_model::check::{Finding, Grade};
use rungwise_model::evidence::{Evidence, Key, Missing, Quantity};
use rungwise_model::keys;

use super::ports::{self, Port};
use super::spread;
use crate::rule::needs;
use crate::sampled::{self, Sampled};
use crate::{Doc, Judgement, Measure, Rule, Threshold, say};

/// What [`holds`] reads.
pub(crate) const NEEDS: &[&Key] = &[
    &keys::LOCK_UDP_CONTENTIONS,
    &keys::SOFTIRQ_NET_RX_CPUS,
    &keys::STACK_SAMPLES,
    &keys::STACK_SOFTIRQ_SAMPLES,
    &keys::STACK_UDP_LOCK,
    &keys::UDP_READERS,
    &keys::UDP_SOCKETS,
    &keys::UDP_SOCKET_DROPS,
    &keys::UDP_SOCKET_QUEUE,
];

const SHARE: Threshold = Threshold {
    name: "softirq samples that spin under the UDP enqueue",
    value: 0.10,
    origin: "own guess; the reference case's flame graph shows it as the widest tower",
};

const RATE: Threshold = Threshold {
    name: "lock contentions under the UDP enqueue, per second",
    value: 1000.0,
    origin: "own guess, for machines too small for the spinning to show in samples",
};

pub(super) const CPUS: Threshold = Threshold {
    name: "CPUs that take packets",
    value: 2.0,
    origin: "a single softirq CPU contends only with the reader",
};

const OURS: Threshold = Threshold {
    name: "datagrams of this network namespace, as a share of the packets of the machine",
    value: 0.25,
    origin: "contention is counted for the whole machine, the socket in one namespace. A datagram counts once below a network card, \
             and up to three times on its way through a bridge and a pair of virtual devices, with its answer: a fourth is what is \
             surely left of a load of its own. A guess",
};

/// Softirq samples below which their shares are not judged.
pub(super) const SOFTIRQ_SAMPLES: Threshold = Threshold {
    name: "samples within softirq",
    value: 100.0,
    origin: "10 % of 100 is 10 samples, known to a third; a guess at what is still worth saying",
};

/// `udp-socket-lock`
pub(crate) static RULE: Rule = Rule {
    id: "udp-socket-lock",
    topic: "net",
    summary: "several CPUs receive packets for one UDP socket and contend for its lock",
    needs: needs!(
        [
            &keys::CPU_BUSY,
            &keys::SOFTNET_PROCESSED,
            &keys::UDP_PROCESS,
            &keys::UDP_RCVBUF_DROPS,
            &keys::UDP_RECEIVED
        ],
        NEEDS
    ),
    thresholds: &[SHARE, RATE, CPUS, OURS, sampled::SAMPLES, SOFTIRQ_SAMPLES],
    knobs: &["sock.reuseport"],
    measure: Some(Measure::more(&keys::STACK_UDP_LOCK)),
    doc: Doc {
        looks_for: "More than 10 % of softirq samples spinning on a lock below the UDP enqueue, or more than 1,000 \
                    contentions/s there, with at least two CPUs in NET_RX and one socket on the busiest UDP port. It is only worth \
                    watching where less than a fourth of the machine's packets are datagrams of this network namespace.",
        hurts: "The CPUs wait for each other instead of taking packets; more of them make it worse, not better.",
        todo: "One socket per worker with SO_REUSEPORT (a change of the service). Only then do receive steering, \
               steering by BPF and pinning pay.",
        wrong: "Samples and contentions are those of the whole machine, so contention for a socket of another network namespace (a \
                container) looks like one for the busiest socket here; the share of the packets distinguishes them, unless both \
                are busy. The kernel counts no datagrams per socket, so the port is a guess (drops, queue, readers). The reader \
                takes the same lock: with one CPU in NET_RX that is all it is. Guests show \
                __pv_queued_spin_lock_slowpath, bare metal native_queued_spin_lock_slowpath; both are counted.",
        sources: "net/ipv4/udp.c (Linux 6.18); the reference case (20 cores, 82599ES, Linux 4.6.3): 17 k \
                  transactions/s with one socket and steering, 2,540 k with SO_REUSEPORT. Two CPUs cannot show the \
                  collapse: 17 of 6,024 samples on a 2-CPU guest.",
    },
    judge,
};

/// How much the CPUs spin under the UDP enqueue.
#[derive(Clone, Copy, Debug)]
pub(super) enum Spinning<'a> {
    /// Share of softirq samples.
    Samples(Sampled<'a>),
    /// Contentions per second.
    Events(Quantity<'a>),
}

impl<'a> Spinning<'a> {
    /// By samples; by counted contentions where there are none, or where these show more.
    pub(super) fn of(evidence: &'a Evidence) -> Result<Self, Missing> {
        let events = evidence.host(&keys::LOCK_UDP_CONTENTIONS);
        match (samples(evidence), events) {
            (Ok(seen), Ok(events))
                if seen.share.value <= SHARE.value && events.value > RATE.value =>
            {
                Ok(Self::Events(events))
            }
            (Ok(seen), _) => Ok(Self::Samples(seen)),
            (Err(_), Ok(events)) => Ok(Self::Events(events)),
            (Err(missing), Err(_)) => Err(missing),
        }
    }

    /// It is above the line, which for samples is `share`.
    pub(super) fn is_above(&self, share: f64) -> bool {
        match self {
            Self::Samples(seen) => seen.share.value > share,
            Self::Events(events) => events.value > RATE.value,
        }
    }

    /// `41 % of softirq samples spin`
    pub(super) fn described(&self) -> String {
        match self {
            Self::Samples(seen) => format!(
                "{} of softirq samples spin on a lock under the UDP enqueue",
                say::percent(seen.share.value)
            ),
            Self::Events(events) => format!(
                "{} lock contentions under the UDP enqueue",
                say::rate(events.value)
            ),
        }
    }

    /// Cites what it rests on.
    pub(super) fn cited_in(&self, finding: Finding) -> Finding {
        match self {
            Self::Samples(seen) => finding.cite(seen.share.reading).cite(seen.samples.reading),
            Self::Events(events) => finding.cite(events.reading),
        }
    }

    /// Severity and confidence of being above the line `share`.
    pub(super) fn grades(&self, share: f64) -> (Grade, Grade) {
        match self {
            Self::Samples(seen) => (sampled::severity(seen.share.value), seen.confidence(share)),
            Self::Events(_) => (Grade::Medium, Grade::Medium),
        }
    }

    /// Clear, with the distance from the line.
    pub(super) fn clear(&self, sentence: String, share: f64) -> Finding {
        let finding = Finding::clear(sentence);
        self.cited_in(match self {
            Self::Samples(seen) => finding.below(seen.share.value, share),
            Self::Events(events) => finding.below(events.value, RATE.value),
        })
    }
}

fn samples(evidence: &Evidence) -> Result<Sampled<'_>, Missing> {
    let share = sampled::share(evidence, &keys::STACK_UDP_LOCK)?.share;
    let samples = evidence.host(&keys::STACK_SOFTIRQ_SAMPLES)?;
    // None of few is none; some of few is not judged.
    if samples.value < SOFTIRQ_SAMPLES.value && share.value > 0.0 {
        return Err(sampled::too_few(
            &keys::STACK_SOFTIRQ_SAMPLES,
            samples.value,
            SOFTIRQ_SAMPLES.value,
        ));
    }
    Ok(Sampled { share, samples })
}

/// What was seen, above the line or not.
struct Seen<'a> {
    spinning: Spinning<'a>,
    cpus: Quantity<'a>,
    port: Port<'a>,
}

impl<'a> Seen<'a> {
    fn of(evidence: &'a Evidence) -> Result<Self, Missing> {
        Ok(Self {
            spinning: Spinning::of(evidence)?,
            cpus: evidence.host(&keys::SOFTIRQ_NET_RX_CPUS)?,
            port: ports::busiest(evidence)?,
        })
    }

    fn holds(&self) -> bool {
        self.spinning.is_above(SHARE.value)
            && self.cpus.value >= CPUS.value
            && self.port.sockets.value < 1.5
    }
}

/// How many of the packets of the machine are datagrams that arrived in this network namespace; nothing where that is
/// unknown. More than all of them is no error: loopback is counted as well, and one packet may hold several (GRO).
fn ours(evidence: &Evidence) -> Option<(f64, [Quantity<'_>; 2])> {
    let received = evidence.host(&keys::UDP_RECEIVED).ok()?;
    let dropped = evidence.host(&keys::UDP_RCVBUF_DROPS);
    let all = evidence.each(&keys::SOFTNET_PROCESSED).ok()?;
    let packets: f64 = all.iter().map(|(_, rate)| rate.value).sum();
    let busiest = all
        .into_iter()
        .max_by(|a, b| a.1.value.total_cmp(&b.1.value))?;
    let arrived = received.value + dropped.map_or(0.0, |rate| rate.value);
    (packets > 0.0).then(|| (arrived / packets, [received, busiest.1]))
}

/// The sickness is there; read by rules whose cure would make it worse.
pub(crate) fn holds(evidence: &Evidence) -> Result<bool, Missing> {
    Ok(Seen::of(evidence)?.holds())
}

fn judge(evidence: &Evidence) -> Judgement {
    let spinning = Spinning::of(evidence)?;
    if !spinning.is_above(SHARE.value) {
        return Ok(vec![spinning.clear(spinning.described(), SHARE.value)]);
    }
    let seen = Seen::of(evidence)?;
    let port = seen.port.named(evidence);
    if !seen.holds() {
        let why = if seen.cpus.value < CPUS.value {
            "one CPU takes all packets, so it can only meet the reader".to_owned()
        } else {
            format!(
                "{port} has {} (see udp-reuseport-hash)",
                say::count(seen.port.sockets.value, "socket")
            )
        };
        let sentence = format!("{}, but {why}", spinning.described());
        return Ok(vec![
            seen.spinning
                .cited_in(Finding::clear(sentence))
                .cite(seen.cpus.reading)
                .cite(seen.port.sockets.reading),
        ]);
    }
    let (severity, confidence) = spinning.grades(SHARE.value);
    let sentence = format!(
        "{} CPUs contend for the one socket of {port}: {}",
        say::whole(seen.cpus.value),
        spinning.described()
    );
    let ours = ours(evidence);
    let finding = match &ours {
        Some((share, _)) if *share >= OURS.value => {
            Finding::act(seen.port.subject, sentence).confidence(confidence)
        }
        other => {
            let why = match other {
                Some((share, _)) => format!(
                    "only {} of the machine's packets are datagrams of this network namespace",
                    say::percent(*share)
                ),
                None => "how many of the machine's packets are datagrams of this network namespace is unknown".to_owned(),
            };
            let sentence = format!(
                "{sentence}; {why}, so the contended socket may be in another one: check with the --pid of a process there"
            );
            Finding::watch(seen.port.subject, sentence).confidence(Grade::Low)
        }
    };
    // The reference case began on the 10 CPUs of one node and fell when steering brought the others in.
    // It used ten CPUs then; fewer cannot gain as much.
    let (most, basis) = if seen.cpus.value <= 10.0 {
        (
            spread::most_gain(evidence, 8.4),
            "reference case, 10 CPUs on one socket: 270 k to 2,540 k transactions/s with a socket per thread and packets for \
             20 CPUs",
        )
    } else {
        (
            148.0,
            "reference case, 20 CPUs on one socket: 17 k to 2,540 k transactions/s; with fewer CPUs less",
        )
    };
    let finding = ours
        .into_iter()
        .flat_map(|(_, cited)| cited)
        .fold(finding.severity(severity), |finding, quantity| {
            finding.cite(quantity.reading)
        });
    Ok(vec![
        spinning
            .cited_in(finding)
            .cite(seen.cpus.reading)
            .cite(seen.port.sockets.reading)
            .turn("sock.reuseport", "on")
            .estimate(0.0, most, basis)
            .refuted_by(
                "with a socket per worker (SO_REUSEPORT), as many samples still spin under the UDP enqueue",
            ),
    ])
}
