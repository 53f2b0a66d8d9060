//! `reuseport-skew`: of several sockets of one port, a few get most of the datagrams and drop them.

use rungwise_model::check::{Finding, Grade};
use rungwise_model::evidence::Evidence;
use rungwise_model::keys;

use crate::{Doc, Judgement, Measure, Rule, Threshold, say};

const DROPS: Threshold = Threshold {
    name: "datagrams dropped at the sockets of the port, per second",
    value: 1.0,
    origin: "own guess: fewer are no bottleneck",
};

const SOCKETS: Threshold = Threshold {
    name: "sockets that drop, as a share of those of the port",
    value: 0.5,
    origin: "own guess: where half of them drop, the group as a whole is too slow",
};

/// `reuseport-skew`
pub(crate) static RULE: Rule = Rule {
    id: "reuseport-skew",
    topic: "net",
    summary: "a few sockets of a SO_REUSEPORT group get most of the datagrams and drop them",
    needs: &[
        &keys::UDP_DROPPING_SOCKETS,
        &keys::UDP_PROCESS,
        &keys::UDP_SOCKETS,
        &keys::UDP_SOCKET_DROPS,
    ],
    thresholds: &[DROPS, SOCKETS],
    knobs: &["sock.reuseport_bpf"],
    measure: Some(Measure::more(&keys::UDP_SOCKET_DROPS)),
    doc: Doc {
        looks_for: "A UDP port with several sockets, of which fewer than half drop datagrams.",
        hurts: "One worker is overloaded and loses its share while the others have time to spare.",
        todo: "The hash over addresses and ports sends each flow to one socket: with few flows (one proxy, one load generator) some \
               sockets get several and others none. Open more flows at the client, or choose the socket by another rule \
               (sock.reuseport_bpf).",
        wrong: "A stopped worker (garbage collection, a lock, a stopped thread) drops the same way with even traffic: \
                look at its thread first.",
        sources: "reuseport_select_sock in net/core/sock_reuseport.c (Linux 6.18); socket(7).",
    },
    judge,
};

fn judge(evidence: &Evidence) -> Judgement {
    let dropping = evidence.each(&keys::UDP_DROPPING_SOCKETS)?;
    let mut findings: Vec<(f64, Finding)> = Vec::new();
    for (port, some) in dropping {
        let sockets = evidence.quantity(&keys::UDP_SOCKETS, port)?;
        let drops = evidence.quantity(&keys::UDP_SOCKET_DROPS, port)?;
        let few = some.value >= 1.0 && some.value < SOCKETS.value * sockets.value + 0.001;
        if sockets.value < 2.0 || drops.value <= DROPS.value || !few {
            continue;
        }
        let verb = if some.value < 1.5 { "drops" } else { "drop" };
        let sentence = format!(
            "{:.0} of the {} of {} {verb} all that is lost there ({}): the flows are dealt unevenly",
            some.value,
            say::count(sockets.value, "socket"),
            port.name(),
            say::rate(drops.value)
        );
        let mut finding = Finding::act(port, sentence)
            .severity(Grade::Medium)
            .confidence(Grade::Medium)
            .cite(some.reading)
            .cite(sockets.reading)
            .cite(drops.reading)
            .consider("sock.reuseport_bpf");
        if let Ok(process) = evidence.words(&keys::UDP_PROCESS, port) {
            finding = finding.cite(process.reading);
        }
        findings.push((
            drops.value,
            finding.refuted_by("the sockets that drop received no more datagrams than the others"),
        ));
    }
    findings.sort_by(|(a, _), (b, _)| b.total_cmp(a));
    if findings.is_empty() {
        return Ok(vec![Finding::clear(
            "no group of UDP sockets drops at a few of its sockets only",
        )]);
    }
    Ok(findings.into_iter().map(|(_, finding)| finding).collect())
}
