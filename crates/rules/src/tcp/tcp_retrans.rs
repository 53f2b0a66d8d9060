//! `tcp-retrans`: too much is sent again.
//!
//! The share of retransmitted segments (`RetransSegs` of /proc/net/snmp) counts probes of a closed window as
//! well, which are no loss: 47,616 bytes of them were seen on loopback with a peer that did not read. Timeouts
//! and retransmissions that were lost themselves are loss beyond doubt. Segments that open a connection and get no
//! answer are counted with them: a full accept queue makes a SYN time out and loses nothing on the way.

use std::fmt::Write as _;

use rungwise_model::check::{Finding, Grade};
use rungwise_model::evidence::{Evidence, Subject};
use rungwise_model::keys;
use rungwise_stats::interval::median;

use crate::{Doc, Judgement, Measure, Rule, Threshold, pick, say};

pub(super) const AGAIN: Threshold = Threshold {
    name: "segments sent again as a share of all",
    value: 0.005,
    origin: "own guess, for a local network, where nothing should be lost",
};

const MUCH: Threshold = Threshold {
    name: "the same, much",
    value: 0.02,
    origin: "measured by `cargo xtask faults --steps 5 --seed 8001`: with 1.9 % of the segments sent again, redis answered half of its \
        requests",
};

pub(super) const SEGMENTS: Threshold = Threshold {
    name: "segments sent again in the window",
    value: 10.0,
    origin: "own guess: fewer may be one accident",
};

const STALLS: Threshold = Threshold {
    name: "share of the time that connections spend in timeouts of 200 ms",
    value: 0.005,
    origin: "measured by `cargo xtask faults`: 0.02 % of the segments sent again after 200 ms, in 0.6 % of the time of the connections on both sides of \
        haproxy, took p99 from 0.4 to 98 ms; 0.12 % in bursts of five from 0.15 to 856 ms",
};

const TIMEOUTS: Threshold = Threshold {
    name: "timeouts in the window that are watched; from ten on there is something to act on",
    value: 3.0,
    origin: "own guess: one or two are a client that went away",
};

const ONCE: Threshold = Threshold {
    name: "timeouts in the window up to which one moment may explain them",
    value: 4.0,
    origin: "own guess: connections that wait for the same lost burst",
};

const FELT: Threshold = Threshold {
    name: "share of the time that connections spend in more timeouts than that, from which on there is something to act on",
    value: 0.01,
    origin: "definition: p99 begins at 1 % of the time. measured by `cargo xtask faults --steps 5 --seed 8001`: 1.7 % of the time, \
        with one segment of 10,000 lost, took p99 of redis from 0.2 to 58 ms",
};

const SEEN: Threshold = Threshold {
    name: "connections whose acknowledgement is overdue, mean of the samples",
    value: 0.04,
    origin: "definition: met once in 25 samples",
};

const SLOW: Threshold = Threshold {
    name: "the same, as a share of what would be met if all that was sent again had waited for 200 ms",
    value: 0.25,
    origin: "own guess: few samples meet fewer than there are",
};

const NEAR: Threshold = Threshold {
    name: "shortest round trip of a local network, median of the connections, seconds",
    value: 0.010,
    origin: "own guess: 1000 km of fibre",
};

const RTO: Threshold = Threshold {
    name: "round trip below which a timeout of 200 ms is out of proportion, seconds",
    value: 0.001,
    origin: "own guess: the timeout is two hundred round trips there",
};

const OWN: Threshold = Threshold {
    name: "connections that this host opens, per segment sent again to open one, below which those are answers to clients",
    value: 0.1,
    origin: "a SYN is sent again six times at most (tcp_syn_retries), so fewer connections than a sixth cannot account for them",
};

pub(crate) static RULE: Rule = Rule {
    id: "tcp-retrans",
    topic: "tcp",
    summary: "TCP sends much again",
    needs: &[
        &keys::DEPENDENCY_CONNECTING,
        &keys::DEVICE_MISSED,
        &keys::DEVICE_TX_PACKETS,
        &keys::LOSS_RATE,
        &keys::TCP_ACK_OVERDUE,
        &keys::TCP_CARRYING,
        &keys::TCP_CONGESTION,
        &keys::TCP_CONNECTS,
        &keys::TCP_LISTEN_OVERFLOWS,
        &keys::TCP_LOST_RETRANSMIT,
        &keys::TCP_OPENED,
        &keys::TCP_RETRANS_BYTES_SHARE,
        &keys::TCP_RETRANS_SHARE,
        &keys::TCP_RTT,
        &keys::TCP_RTT_MIN,
        &keys::TCP_SYN_RETRANS_SHARE,
        &keys::TCP_TIMEOUTS,
        &keys::TCP_ZERO_WINDOW_PROBES,
    ],
    thresholds: &[
        AGAIN, MUCH, SEGMENTS, STALLS, TIMEOUTS, ONCE, FELT, SEEN, SLOW, NEAR, RTO, OWN,
    ],
    knobs: &["net.ring", "tcp.congestion", "tcp.rto_min"],
    measure: Some(Measure::more(&keys::TCP_RETRANS_SHARE)),
    doc: Doc {
        looks_for: "More than 0.5 % of the segments sent again, in most parts of the window, with timeouts or lost \
            retransmissions or without probes of closed windows; or established connections that wait for a timer of 200 ms in more \
            than 0.5 % of their time. Where what opens connections and gets no answer makes up all but \
            0.5 %, it is only watched, unless they are answers to clients (SYN-ACK) and more than 2 % of all.",
        hurts: "What is sent again comes at least a round trip late, after a timeout 200 ms. The sender slows down as well.",
        todo: "Find where it is lost: this host's ring (nic-ring-drop, net.ring), the peer's, or the switch between. Timeouts in \
            a network of microseconds: a shorter least timeout (tcp.rto_min). Loss on a long path that is not \
            congestion: another algorithm (tcp.congestion).",
        wrong: "Probes of a closed window count as retransmissions; a peer that does not read makes them. A connection that is \
            not answered (a full accept queue, a firewall, a host that is down) sends its first segment again; that is told \
            apart since Linux 3.15, which counts TCPSynRetrans. Reordering in the \
            network makes TCP send again what was not lost. On a long path half a percent is ordinary, so there it is only \
            watched.",
        sources: "netdata TCP alerts; Documentation/networking/snmp_counter.rst; measured on loopback with a stalled peer: \
            47,616 bytes of probes in tcpi_bytes_retrans.",
    },
    judge,
};

fn judge(evidence: &Evidence) -> Judgement {
    let again = evidence.host(&keys::TCP_RETRANS_SHARE)?;
    let share = say::percent(again.value);
    let clear = |sentence: String| {
        Finding::clear(sentence)
            .below(again.value, AGAIN.value)
            .cite(again.reading)
    };
    let stalls = stalls(evidence).filter(|stalls| stalls.share > STALLS.value);
    let lasts = again.lasts(|share| share > AGAIN.value);
    if !lasts && stalls.is_none() {
        let sentence = format!("{share} of the segments were sent again");
        return Ok(vec![clear(sentence)]);
    }
    if let (None, Ok(devices)) = (&stalls, evidence.each(&keys::DEVICE_TX_PACKETS)) {
        let packets: f64 =
            devices.iter().map(|(_, rate)| rate.value).sum::<f64>() * evidence.seconds();
        if again.value * packets < SEGMENTS.value {
            let sentence = format!(
                "{share} of the segments were sent again, but only {packets:.0} packets left in the window"
            );
            return Ok(vec![clear(sentence)]);
        }
    }
    if let (None, Some(unanswered)) = (&stalls, unanswered(evidence, again.value)) {
        return Ok(vec![unanswered.cite(again.reading)]);
    }
    let timeouts = evidence.host(&keys::TCP_TIMEOUTS)?;
    let lost = evidence.host(&keys::TCP_LOST_RETRANSMIT).ok();
    let probes = evidence.host(&keys::TCP_ZERO_WINDOW_PROBES).ok();
    let probing = probes.is_some_and(|probes| probes.value > 0.0);
    let beyond_doubt = timeouts.value > 0.0 || lost.is_some_and(|lost| lost.value > 0.0);
    if let (true, false, Some(probes)) = (probing, beyond_doubt, probes) {
        let sentence = format!(
            "{share} of the segments were sent again, but nothing timed out, and closed windows are probed {}",
            say::rate(probes.value)
        );
        return Ok(vec![Finding::clear(sentence).cite(probes.reading)]);
    }

    let round_trips = evidence.each(&keys::TCP_RTT).unwrap_or_default();
    let round_trips: Vec<f64> = round_trips.iter().map(|(_, trip)| trip.value).collect();
    let round_trip = median(&round_trips);
    // Where acknowledgements are lost, the mean round trip is long on the shortest path.
    let shortest = evidence.each(&keys::TCP_RTT_MIN).unwrap_or_default();
    let shortest: Vec<f64> = shortest.iter().map(|(_, trip)| trip.value).collect();
    let path = median(&shortest).or(round_trip);
    let far = path.is_some_and(|median| median > NEAR.value);
    let mut sentence = format!("{share} of the TCP segments were sent again");
    if timeouts.value > 0.0 {
        let _ = write!(sentence, ", {} after a timeout", say::rate(timeouts.value));
    }
    if let Some(stalls) = &stalls {
        let share = say::percent(stalls.share);
        let _ = write!(sentence, ": connections stall in {share} of the time");
    }
    let worst = pick::largest(evidence, &keys::TCP_RETRANS_BYTES_SHARE)
        .ok()
        .filter(|(_, share)| share.value > AGAIN.value);
    if let Some((connection, share)) = worst {
        let _ = write!(
            sentence,
            "; {} sent {} again",
            connection.name(),
            say::percent(share.value)
        );
    }
    let host = Subject::host();
    let few = !lasts && stalls.as_ref().is_some_and(|stalls| stalls.few);
    let by_samples = stalls.as_ref().is_some_and(|stalls| stalls.by_samples);
    let mut finding = if few {
        Finding::watch(&host, sentence).severity(Grade::Medium)
    } else if far {
        sentence += ", over a long path";
        Finding::watch(&host, sentence).severity(Grade::Low)
    } else {
        let much =
            again.value > MUCH.value || stalls.is_some_and(|it| it.share > 10.0 * STALLS.value);
        Finding::act(&host, sentence).severity(if much { Grade::High } else { Grade::Medium })
    };
    finding = finding
        .confidence(if beyond_doubt && !probing {
            Grade::High
        } else {
            Grade::Medium
        })
        .cite(again.reading)
        .cite(timeouts.reading);
    if let (true, Ok(overdue)) = (by_samples, evidence.host(&keys::TCP_ACK_OVERDUE)) {
        finding = finding.cite(overdue.reading);
    }
    if let Some((_, share)) = worst {
        finding = finding.cite(share.reading);
    }
    if let Ok((device, missed)) = pick::largest(evidence, &keys::DEVICE_MISSED)
        && missed.value > 0.0
    {
        finding = finding
            .cite(missed.reading)
            .turn_device("net.ring", device.name(), "max");
    }
    if timeouts.value > 0.0 && round_trip.is_some_and(|median| median < RTO.value) {
        finding = finding.consider("tcp.rto_min");
    }
    // BBR does not take loss for congestion, so there is nothing to change to.
    let bbr = evidence
        .words(&keys::TCP_CONGESTION, &host)
        .is_ok_and(|name| name.value == "bbr");
    if !bbr {
        finding = finding.consider("tcp.congestion");
    }
    Ok(vec![finding.refuted_by(
        "a capture at the receiver shows the segments arriving twice: reordering, not loss",
    )])
}

/// `TCP_RTO_MIN` of include/net/tcp.h.
const RTO_MIN_S: f64 = 0.2;

/// How long an acknowledgement counts as overdue within one wait: from 60 ms on (`OVERDUE_MS` of the probe of `tcp.ack_overdue`).
const VISIBLE_S: f64 = RTO_MIN_S - 0.06;

/// The share of the time that connections with traffic wait for a timer of 200 ms (`TCP_RTO_MIN`): by the timeouts that the kernel
/// counts, or as the samples saw them, for it does not count the probe that repeats a segment which was alone under way. What opens
/// connections is left out.
fn stalls(evidence: &Evidence) -> Option<Stalls> {
    let timeouts = evidence.host(&keys::TCP_TIMEOUTS).ok()?.value;
    let carrying = evidence.host(&keys::TCP_CARRYING).ok()?.value;
    let sent = pick::loss_rate(evidence, "Tcp:RetransSegs")
        - pick::loss_rate(evidence, "TcpExt:TCPSynRetrans");
    let timeouts = timeouts.min(sent.max(0.0));
    let overdue = evidence.host(&keys::TCP_ACK_OVERDUE);
    let overdue = overdue.ok().filter(|overdue| overdue.value >= SEEN.value);
    // A few samples tell whether what was sent again waited for the timer, and counters how often it was. Where samples met fewer, as many
    // waited as account for those that were met.
    let waits_per_s = match overdue {
        Some(overdue) if overdue.value >= SLOW.value * sent * RTO_MIN_S => sent,
        Some(overdue) => sent.min(overdue.value / VISIBLE_S).max(timeouts),
        None => timeouts,
    };
    let waits = waits_per_s * evidence.seconds();
    if waits < TIMEOUTS.value {
        return None;
    }
    let of_time = waits_per_s * RTO_MIN_S / carrying.max(1.0);
    // Short connections are more than those that are there at one moment.
    let opened = evidence
        .host(&keys::TCP_OPENED)
        .map_or(0.0, |opened| opened.value);
    let of_connections = waits_per_s / opened;
    let share = of_time.min(of_connections).min(1.0);
    let felt = waits > ONCE.value && share >= FELT.value;
    Some(Stalls {
        share,
        few: waits < SEGMENTS.value && !felt,
        by_samples: overdue.is_some(),
    })
}

/// Connections that wait for a timer.
struct Stalls {
    /// Share of their time.
    share: f64,
    /// So few times that one accident may explain it.
    few: bool,
    /// Samples met connections that wait.
    by_samples: bool,
}

/// What is sent again opens connections, all but a share that is nothing to act on: nobody answers, and no path loses data.
fn unanswered(evidence: &Evidence, again: f64) -> Option<Finding> {
    let opening = evidence.host(&keys::TCP_SYN_RETRANS_SHARE).ok()?;
    if again * (1.0 - opening.value) > AGAIN.value {
        return None;
    }
    let overflows = evidence
        .host(&keys::TCP_LISTEN_OVERFLOWS)
        .is_ok_and(|full| full.value > 0.0);
    let resent = pick::loss_rate(evidence, "TcpExt:TCPSynRetrans");
    // A full accept queue makes this host send its answers again as well, and loses nothing on the way. Attempts of its own may have
    // begun before the window.
    let to_clients = !overflows
        && evidence.each(&keys::DEPENDENCY_CONNECTING).is_err()
        && again > MUCH.value
        && resent * evidence.seconds() >= SEGMENTS.value
        && evidence
            .host(&keys::TCP_CONNECTS)
            .is_ok_and(|connects| connects.value < OWN.value * resent);
    let (share, opening_share) = (say::percent(again), say::percent(opening.value));
    if to_clients {
        let sentence = format!(
            "{share} of the TCP segments were sent again, {opening_share} of them to answer clients that connect (SYN-ACK): the path \
             between them and this host loses packets, or the requests are a SYN flood"
        );
        let finding = Finding::act(&Subject::host(), sentence)
            .severity(Grade::High)
            .cite(opening.reading);
        return Some(finding.refuted_by("a capture at a client shows that the answers arrive"));
    }
    let why = if overflows {
        "an accept queue of this host is full (tcp-listen-overflow)"
    } else {
        "a peer's accept queue is full, a firewall drops them, or the peer is not there"
    };
    let sentence = format!(
        "{share} of the TCP segments were sent again, {opening_share} of them to open connections: {why}"
    );
    let finding = Finding::watch(&Subject::host(), sentence)
        .severity(Grade::Medium)
        .confidence(Grade::High)
        .cite(opening.reading);
    Some(
        finding.refuted_by(
            "established connections send again as well: bytes_retrans of `ss -ti` grows",
        ),
    )
}
