//! `mtu-mismatch`: packets are cut up and joined again, because some link takes less than another.
//!
//! TCP finds the smallest link of its path and never needs fragments; datagrams larger than the MTU are cut
//! by design. So fragments alone are a hint, and a failed probe of the path or forwarding between links of
//! different size is what makes it a mismatch.

use std::collections::BTreeSet;

use rungwise_model::check::{Finding, Grade};
use rungwise_model::evidence::{Evidence, Missing, Subject};
use rungwise_model::keys;

use crate::{Doc, Judgement, Measure, Rule, Threshold, say};

const SHARE: Threshold = Threshold {
    name: "fragments, as a share of all packets",
    value: 0.001,
    origin: "own guess: one in a thousand; a healthy network has none",
};

const LOST: Threshold = Threshold {
    name: "datagrams that could not be joined, per second",
    value: 1.0,
    origin: "own guess: fewer are strays",
};

const HARM: Threshold = Threshold {
    name: "datagrams that could not be joined, as a share of all datagrams, from which on there is something to act on",
    value: 0.05,
    origin: "measured by `cargo xtask faults`: 0.8 and 2 % cost as many replies and no more (--random 40 --seed 7001, --steps 5 \
        --seed 8001), which docs/truth.md counts as harmless below 5 %",
};

/// `mtu-mismatch`
pub(crate) static RULE: Rule = Rule {
    id: "mtu-mismatch",
    topic: "device",
    summary: "packets are fragmented on the way",
    needs: &[
        &keys::DEVICE_KIND,
        &keys::DEVICE_MTU,
        &keys::DEVICE_UP,
        &keys::IP_FORWARDED,
        &keys::IP_FRAGMENTS_SHARE,
        &keys::IP_REASSEMBLY_FAILED,
        &keys::TCP_MTUP_FAIL,
        &keys::UDP_RECEIVED,
    ],
    thresholds: &[SHARE, LOST, HARM],
    knobs: &["net.mtu", "net.ipfrag"],
    measure: Some(Measure::more(&keys::IP_FRAGMENTS_SHARE)),
    doc: Doc {
        looks_for: "More than 0.1 % of packets made of or cut into fragments. It acts where one datagram of twenty cannot be joined, where probes \
                    of the path fail, or where packets are forwarded between links of different MTU.",
        hurts: "A datagram is lost with any of its fragments; joining them needs memory and one CPU; RSS sends \
                fragments and whole packets to different queues.",
        todo: "The same MTU on both ends and all links between. Where probes of a path fail, tcp_mtu_probing is on already, so \
               the change is not recommended.",
        wrong: "Datagrams larger than the MTU are cut by design (NFS, DNS, media): without a failed probe or forwarding \
                between links of different MTU it is only worth watching. The MTU of the other end is not visible.",
        sources: "The bank's write-up on MTU 9000; Documentation/networking/ip-sysctl.rst (Linux).",
    },
    judge,
};

fn judge(evidence: &Evidence) -> Judgement {
    let fragments = evidence.host(&keys::IP_FRAGMENTS_SHARE)?;
    let sentence = format!("{} of packets are fragments", say::percent(fragments.value));
    if fragments.value <= SHARE.value {
        return Ok(vec![
            Finding::clear(sentence)
                .below(fragments.value, SHARE.value)
                .cite(fragments.reading),
        ]);
    }
    let host = Subject::host();
    if let Some(lost) = evidence
        .host(&keys::IP_REASSEMBLY_FAILED)
        .ok()
        .filter(|lost| lost.value > LOST.value)
    {
        let sentence = format!(
            "{sentence}, and {} datagrams are lost because a fragment of them is missing",
            say::rate(lost.value)
        );
        let received = evidence.host(&keys::UDP_RECEIVED).ok();
        let few = received
            .is_some_and(|received| lost.value < HARM.value * (lost.value + received.value));
        let finding = if few {
            Finding::watch(&host, sentence).severity(Grade::Medium)
        } else {
            Finding::act(&host, sentence).severity(Grade::High)
        };
        let finding = received
            .into_iter()
            .fold(finding, |finding, received| finding.cite(received.reading));
        return Ok(vec![
            finding
                .confidence(Grade::High)
                .cite(fragments.reading)
                .cite(lost.reading)
                .consider("net.mtu")
                .refuted_by("datagrams below the MTU are lost at the same rate"),
        ]);
    }
    let probes = evidence.host(&keys::TCP_MTUP_FAIL).ok();
    let forwarded = evidence.host(&keys::IP_FORWARDED).ok();
    let sizes = sizes(evidence)?;
    if let Some(probes) = probes.filter(|probes| probes.value > 0.0) {
        return Ok(vec![
            Finding::act(
                &host,
                format!(
                    "{sentence}, and {} probes of a path's MTU fail",
                    say::rate(probes.value)
                ),
            )
            .cite(fragments.reading)
            .cite(probes.reading)
            .consider("net.mtu")
            .refuted_by("the datagrams are larger than every link's MTU by design"),
        ]);
    }
    if let Some(forwarded) = forwarded.filter(|forwarded| forwarded.value > 0.0 && sizes.len() > 1)
    {
        let sizes: Vec<_> = sizes.iter().map(ToString::to_string).collect();
        return Ok(vec![
            Finding::act(
                &host,
                format!(
                    "{sentence}, and {} are forwarded between links of MTU {}",
                    say::rate(forwarded.value),
                    sizes.join(" and ")
                ),
            )
            .cite(fragments.reading)
            .cite(forwarded.reading)
            .consider("net.mtu")
            .refuted_by("the datagrams are larger than every link's MTU by design"),
        ]);
    }
    Ok(vec![
        Finding::watch(
            &host,
            format!("{sentence}: datagrams larger than the MTU, by design or because a link on the way takes less"),
        )
        .severity(Grade::Low)
        .confidence(Grade::Low)
        .cite(fragments.reading)
        .consider("net.mtu")
        .consider("net.ipfrag")
        .refuted_by("the service sends datagrams larger than the MTU by design"),
    ])
}

/// Different MTUs of the hardware devices that are up.
fn sizes(evidence: &Evidence) -> Result<BTreeSet<u64>, Missing> {
    let devices = evidence.each(&keys::DEVICE_MTU)?;
    Ok(devices
        .into_iter()
        .filter(|(device, _)| {
            let hardware = evidence
                .words(&keys::DEVICE_KIND, device)
                .is_ok_and(|kind| kind.value == "hardware");
            let up = evidence
                .quantity(&keys::DEVICE_UP, device)
                .is_ok_and(|up| up.value > 0.5);
            hardware && up
        })
        .map(|(_, mtu)| mtu.value as u64)
        .collect())
}
