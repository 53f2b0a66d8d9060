//! `port-exhaust`: connections to one destination use up the local ports.

use rungwise_model::check::{Finding, Grade};
use rungwise_model::evidence::{Evidence, Kind, Subject};
use rungwise_model::keys;

use crate::{Doc, Judgement, Measure, Rule, Threshold, say};

const USED: Threshold = Threshold {
    name: "ports used to one destination, as a share of the range",
    value: 0.8,
    origin: "own guess: above it, the kernel's search for a free port takes long, and the end is near",
};

const SEVERE: Threshold = Threshold {
    name: "the same, severe",
    value: 0.95,
    origin: "own guess: connect() fails soon with EADDRNOTAVAIL",
};

/// 0 is off, 1 on, 2 on for loopback alone.
const TW_REUSE: &str = "net.ipv4.tcp_tw_reuse";

/// `port-exhaust`
pub(crate) static RULE: Rule = Rule {
    id: "port-exhaust",
    topic: "net",
    summary: "local ports to one destination are nearly used up",
    needs: &[
        &keys::SYSCTL_VALUE,
        &keys::TCP_PORTS_TO,
        &keys::TCP_PORTS_USED,
    ],
    thresholds: &[USED, SEVERE],
    knobs: &["net.tw_reuse", "net.port_range"],
    measure: Some(Measure::more(&keys::TCP_PORTS_USED)),
    doc: Doc {
        looks_for: "Connections to one destination, those in TIME_WAIT included, that use more than 80 % of the local \
                    port range.",
        hurts: "connect() takes longer to find a port, and fails with EADDRNOTAVAIL at the end.",
        todo: "Connections that are kept and used again; tcp_tw_reuse on the client where it is off (2 is on for loopback \
               alone, the kernel's default since 4.19); a wider port range.",
        wrong: "Each local address has its own ports: they are counted per address, and the finding names the busiest one. Sockets whose \
                ports a program binds itself count as well, whether or not they lie in the kernel's way.",
        sources: "Documentation/networking/ip-sysctl.rst (ip_local_port_range, tcp_tw_reuse).",
    },
    judge,
};

fn judge(evidence: &Evidence) -> Judgement {
    let used = evidence.host(&keys::TCP_PORTS_USED)?;
    let to = evidence.words(&keys::TCP_PORTS_TO, &Subject::host()).ok();
    let whom = to
        .filter(|to| !to.value.is_empty())
        .map_or(String::new(), |to| format!(" to {}", to.value));
    let sentence = format!(
        "connections{whom} use {} of the local ports",
        say::percent(used.value)
    );
    if used.value <= USED.value {
        return Ok(vec![
            Finding::clear(sentence)
                .below(used.value, USED.value)
                .cite(used.reading),
        ]);
    }
    let severity = if used.value > SEVERE.value {
        Grade::High
    } else {
        Grade::Medium
    };
    let mut finding = Finding::act(&Subject::host(), sentence)
        .severity(severity)
        .cite(used.reading);
    let reuse = evidence
        .words(&keys::SYSCTL_VALUE, &Subject::new(Kind::Setting, TW_REUSE))
        .ok();
    // Where it is unknown: the kernel's default since Linux 4.19.
    let held = reuse.map_or("2", |reuse| reuse.value);
    let loopback = ["127.", "[::1]:", "[::ffff:127."];
    let is_loopback = to.is_some_and(|to| loopback.iter().any(|net| to.value.starts_with(net)));
    if held != "1" && !(is_loopback && held == "2") {
        finding = finding.turn("net.tw_reuse", "1");
    }
    if let Some(reuse) = reuse {
        finding = finding.cite(reuse.reading);
    }
    let finding = finding.consider("net.port_range").refuted_by(
        "`connect` finds a port immediately under the same load: strace shows no EADDRNOTAVAIL",
    );
    Ok(vec![match to {
        Some(to) => finding.cite(to.reading),
        None => finding,
    }])
}
