//! `path-mtu-blackhole`: large segments do not reach the peer, and no ICMP message says so.

use rungwise_model::check::{Finding, Grade};
use rungwise_model::evidence::{Evidence, Subject};
use rungwise_model::keys;

use crate::{Doc, Judgement, Measure, Rule, Threshold, say};

const STALLED: Threshold = Threshold {
    name: "connections that stall on large segments",
    value: 1.0,
    origin: "any: the handshake and a request came through, and no large segment in two timeouts in a row",
};

const SEVERAL: Threshold = Threshold {
    name: "such connections that are no accident",
    value: 3.0,
    origin: "own guess: on the Internet a peer vanishes right after its request now and then",
};

const SHARE: Threshold = Threshold {
    name: "the same, as a share of all connections",
    value: 0.01,
    origin: "own guess: of thousands of peers some vanish at any time",
};

const OPENING: Threshold = Threshold {
    name: "segments that open connections, as a share of those sent again, from which on segments of any size are lost",
    value: 0.05,
    origin: "own guess: a black hole lets every small segment pass, and another destination may be down meanwhile",
};

/// `path-mtu-blackhole`
pub(crate) static RULE: Rule = Rule {
    id: "path-mtu-blackhole",
    topic: "tcp",
    summary: "large segments are lost on the path: a path MTU black hole",
    needs: &[
        &keys::TCP_ESTABLISHED,
        &keys::TCP_STALLED_FULL,
        &keys::TCP_STALLED_FULL_WHO,
        &keys::TCP_SYN_RETRANS_SHARE,
    ],
    thresholds: &[STALLED, SEVERAL, SHARE, OPENING],
    knobs: &["tcp.mtu_probing", "net.mtu"],
    measure: Some(Measure::more(&keys::TCP_STALLED_FULL)),
    doc: Doc {
        looks_for: "Connections whose peer sends, that have never had a large segment (536 bytes and more) acknowledged, and that \
            stand after two retransmission timeouts in a row or more, where segments that open connections are not lost as well.",
        hurts: "Small replies arrive, large ones never do: each such connection hangs until it times out.",
        todo: "Let ICMP \"fragmentation needed\" \
            through, or set the MTU of the device, or clamp the MSS, to what the tunnel on the way \
            takes: `ping -M do -s SIZE PEER` shows it. tcp.mtu_probing helps only clients that wait: with 1 and with 2 each new connection \
            stalled for 6.6 s before its first reply came (measured, Linux 6.18).",
        wrong: "A peer that vanishes right after its first request looks the same for one connection; so \
            one or two, or fewer than 1 % of all, are only worth watching. So are those of a path that loses segments of any size.",
        sources: "RFC 4821, RFC 2923; tcp_mtu_probing in net/ipv4/tcp_timer.c (Linux 6.18). Planted: a hop that drops packets above 1000 \
            bytes; all replies of 20 KB hung, replies of 100 bytes took 0.1 ms.",
    },
    judge,
};

fn judge(evidence: &Evidence) -> Judgement {
    let stalled = evidence.host(&keys::TCP_STALLED_FULL)?;
    if stalled.value < STALLED.value {
        return Ok(vec![
            Finding::clear("no connection stalls on large segments")
                .below(stalled.value, STALLED.value)
                .cite(stalled.reading),
        ]);
    }
    let who = evidence.words(&keys::TCP_STALLED_FULL_WHO, &Subject::host())?;
    let verb = if stalled.value < 1.5 {
        "stalls"
    } else {
        "stall"
    };
    let sentence = format!(
        "large segments do not arrive, small ones do: {} {verb}, such as {}",
        say::count(stalled.value, "connection"),
        who.value
    );
    let established = evidence.host(&keys::TCP_ESTABLISHED)?;
    let many = stalled.value >= SEVERAL.value && stalled.value > SHARE.value * established.value;
    let opening = evidence
        .host(&keys::TCP_SYN_RETRANS_SHARE)
        .is_ok_and(|share| share.value > OPENING.value);
    Ok(vec![
        if many && !opening {
            Finding::act(&Subject::host(), sentence)
                .severity(Grade::High)
                .confidence(Grade::High)
        } else {
            Finding::watch(&Subject::host(), sentence).severity(Grade::Low)
        }
        .cite(stalled.reading)
        .cite(who.reading)
        .consider("net.mtu")
        .consider("tcp.mtu_probing")
        .refuted_by("`ping -M do -s 1472 PEER` gets an answer"),
    ])
}
