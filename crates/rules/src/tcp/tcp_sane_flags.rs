//! `tcp-sane-flags`: a switch of TCP that everybody has on is off.
//!
//! Tuning profiles ship this: `net_high_throuput` and `net_low_latency` of `KeenTune` switch off window scaling, SACK,
//! timestamps, SYN cookies and buffer sizing in one place or another. What is off costs; the kernel says which.

use rungwise_model::check::{Finding, Grade};
use rungwise_model::evidence::{Evidence, Subject};
use rungwise_model::keys;

use crate::{Doc, Judgement, Rule, Threshold};

/// A switch, what its absence costs, and its knob.
struct Switch {
    name: &'static str,
    costs: &'static str,
    knob: &'static str,
    wish: &'static str,
    /// It costs throughput, not only safety.
    slows: bool,
}

const SWITCHES: &[Switch] = &[
    Switch {
        name: "window_scaling",
        costs: "caps every window at 64 KiB",
        knob: "tcp.window_scaling",
        wish: "on",
        slows: true,
    },
    Switch {
        name: "sack",
        costs: "makes every loss cost a round trip per lost segment",
        knob: "tcp.sack_ts",
        wish: "sack=on",
        slows: true,
    },
    Switch {
        name: "moderate_rcvbuf",
        costs: "freezes receive buffers at their first size",
        knob: "tcp.moderate_rcvbuf",
        wish: "on",
        slows: true,
    },
    Switch {
        name: "timestamps",
        costs: "loses round-trip samples and protection against old segments",
        knob: "tcp.sack_ts",
        wish: "timestamps=on",
        slows: false,
    },
    Switch {
        name: "syncookies",
        costs: "lets a flood of SYN packets close the port",
        knob: "net.syn_backlog",
        wish: "cookies=on",
        slows: false,
    },
];

const OFF: Threshold = Threshold {
    name: "switches that are off",
    value: 0.0,
    origin: "the kernel has all of them on by default (ip-sysctl.rst)",
};

pub(crate) static RULE: Rule = Rule {
    id: "tcp-sane-flags",
    topic: "tcp",
    summary: "a TCP switch that should be on is off",
    needs: &[&keys::TCP_FLAGS],
    thresholds: &[OFF],
    knobs: &[
        "tcp.window_scaling",
        "tcp.sack_ts",
        "tcp.moderate_rcvbuf",
        "net.syn_backlog",
    ],
    measure: None,
    doc: Doc {
        looks_for: "window scaling, SACK, timestamps, SYN cookies or the sizing of receive buffers switched off.",
        hurts: "Without window scaling no connection has more than 64 KiB under way: 6 MB/s at 10 ms. Without SACK each loss \
            costs more. Without sizing the first buffer is the last.",
        todo: "Switch them on again and look where the profile came from that switched them off.",
        wrong: "Laboratories switch them off on purpose. Timestamps are sometimes switched off to hide how long a host is \
            up.",
        sources: "KeenTune profiles net_high_throuput and net_low_latency, which ship several as 0; \
            Documentation/networking/ip-sysctl.rst; RFC 7323, RFC 2018.",
    },
    judge,
};

fn judge(evidence: &Evidence) -> Judgement {
    let host = Subject::host();
    let flags = evidence.words(&keys::TCP_FLAGS, &host)?;
    let off: Vec<&Switch> = flags
        .value
        .split([' ', ','])
        .filter_map(|name| SWITCHES.iter().find(|switch| switch.name == name))
        .collect();
    if off.is_empty() {
        let clear = Finding::clear(
            "window scaling, SACK, timestamps, SYN cookies and buffer sizing are on",
        );
        return Ok(vec![clear.cite(flags.reading)]);
    }
    let costs: Vec<String> = off
        .iter()
        .map(|switch| format!("tcp_{} is off, which {}", switch.name, switch.costs))
        .collect();
    let slows = off.iter().any(|switch| switch.slows);
    let mut finding = if slows {
        Finding::act(&host, costs.join("; ")).severity(Grade::Medium)
    } else {
        Finding::watch(&host, costs.join("; ")).severity(Grade::Low)
    };
    finding = finding.confidence(Grade::High).cite(flags.reading);
    let mut wishes: Vec<(&str, String)> = Vec::new();
    for switch in off {
        match wishes.iter_mut().find(|(knob, _)| *knob == switch.knob) {
            Some((_, wish)) => *wish = format!("{wish},{}", switch.wish),
            None => wishes.push((switch.knob, switch.wish.to_owned())),
        }
    }
    for (knob, wish) in wishes {
        finding = finding.turn(knob, wish);
    }
    Ok(vec![finding.refuted_by(
        "it was switched off for a reason that still holds",
    )])
}
