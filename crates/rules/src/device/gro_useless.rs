//! `gro-useless`: GRO compares datagrams that it can never join.
//!
//! Generic receive offload joins neighbouring packets of a flow. UDP is joined only for sockets that ask
//! (`UDP_GRO`), for tunnels and for forwarding; elsewhere the comparison is wasted.

use rungwise_model::check::Grade;
use rungwise_model::evidence::{Evidence, Missing, Quantity, Subject};
use rungwise_model::keys;

use crate::net::other_namespaces;
use crate::rule::needs;
use crate::{Doc, Judgement, Measure, Rule, Threshold, sampled, say};

const SHARE: Threshold = Threshold {
    name: "busy samples under GRO",
    value: 0.03,
    origin: "the reference case: 4.9 % of CPU, +2.6 % without it",
};

const UDP: Threshold = Threshold {
    name: "UDP share of received packets",
    value: 0.95,
    origin: "own guess: hardly any TCP that would pay for it",
};

/// `gro-useless`
pub(crate) static RULE: Rule = Rule {
    id: "gro-useless",
    topic: "device",
    summary: "receive offload works on datagrams that it cannot join",
    needs: needs!(
        [
            &keys::CPU_BUSY,
            &keys::DEVICE_GRO,
            &keys::DEVICE_KIND,
            &keys::DEVICE_RX_PACKETS,
            &keys::IP_FORWARDED,
            &keys::STACK_GRO,
            &keys::STACK_SAMPLES,
            &keys::TUNNEL_PRESENT,
            &keys::UDP_SHARE
        ],
        other_namespaces::NEEDS
    ),
    thresholds: &[SHARE, UDP, sampled::SAMPLES, sampled::BUSY],
    knobs: &["net.gro"],
    measure: Some(Measure::more(&keys::STACK_GRO)),
    doc: Doc {
        looks_for: "More than 3 % of busy samples under dev_gro_receive where more than 95 % of the packets are UDP.",
        hurts: "Work per packet that never pays.",
        todo: "GRO off on that device, if it carries nothing but such datagrams.",
        wrong: "Never on hosts that receive TCP, forward, bridge, or end tunnels (VXLAN, WireGuard): all of these are \
                looked for. A QUIC server with UDP_GRO cannot be recognised from outside, so confidence is never high. On \
                veth GRO off also takes NAPI away, and threaded NAPI then fails.",
        sources: "The reference case: 5,050 k to 5,180 k transactions/s; net/ipv4/udp_offload.c, drivers/net/veth.c \
                  (Linux 6.18).",
    },
    judge,
};

fn judge(evidence: &Evidence) -> Judgement {
    let seen = sampled::share(evidence, &keys::STACK_GRO)?;
    let sentence = format!(
        "{} of busy samples are under GRO",
        say::percent(seen.share.value)
    );
    if seen.share.value <= SHARE.value {
        return Ok(vec![seen.clear(sentence, SHARE.value)]);
    }
    other_namespaces::ours(evidence)?;
    let udp = evidence.host(&keys::UDP_SHARE)?;
    let forwarded = evidence.host(&keys::IP_FORWARDED)?;
    let tunnels = evidence.words(&keys::TUNNEL_PRESENT, &Subject::host())?;
    let kinds = evidence.each_words(&keys::DEVICE_KIND)?;
    let bridge = kinds.iter().find(|(_, kind)| kind.value == "bridge");
    let useful = if udp.value <= UDP.value {
        Some(format!(
            "only {} of the packets are UDP",
            say::percent(udp.value)
        ))
    } else if forwarded.value > 0.0 {
        Some(format!("{} are forwarded", say::rate(forwarded.value)))
    } else if !tunnels.value.is_empty() {
        Some(format!("there are tunnels ({})", tunnels.value))
    } else {
        bridge.map(|(device, _)| format!("{} is a bridge", device.name()))
    };
    if let Some(why) = useful {
        return Ok(vec![
            seen.clear(format!("{sentence}, but {why}: there it pays"), SHARE.value)
                .cite(udp.reading),
        ]);
    }
    evidence.each_words(&keys::DEVICE_GRO)?;
    let Some((device, packets)) = busiest_with_gro(evidence)? else {
        return Ok(vec![seen.clear(
            format!("{sentence}, but no device that takes packets has it on"),
            SHARE.value,
        )]);
    };
    let virtual_device = evidence
        .words(&keys::DEVICE_KIND, device)
        .is_ok_and(|kind| kind.value == "virtual");
    let sentence = format!(
        "{sentence} although {} of the packets are UDP, which {} cannot join",
        say::percent(udp.value),
        device.name()
    );
    let finding = seen
        .cost_at(evidence, device, &sentence, SHARE.value)?
        .confidence(if virtual_device {
            Grade::Low
        } else {
            Grade::Medium
        })
        .cite(udp.reading)
        .cite(packets.reading)
        .turn_device("net.gro", device.name(), "off")
        .estimate(
            0.0,
            0.026,
            "reference case, 4.9 % of CPU before: 5,050 k to 5,180 k transactions/s",
        )
        .refuted_by("the service uses UDP_GRO, or CPU per datagram does not fall with GRO off");
    Ok(vec![finding])
}

/// The device with GRO on that takes most packets; loopback never uses GRO.
fn busiest_with_gro(evidence: &Evidence) -> Result<Option<(&Subject, Quantity<'_>)>, Missing> {
    Ok(evidence
        .each(&keys::DEVICE_RX_PACKETS)?
        .into_iter()
        .filter(|(device, packets)| {
            let on = evidence
                .words(&keys::DEVICE_GRO, device)
                .is_ok_and(|gro| gro.value == "on");
            let loopback = evidence
                .words(&keys::DEVICE_KIND, device)
                .is_ok_and(|kind| kind.value == "loopback");
            on && !loopback && packets.value > 0.0
        })
        .max_by(|(_, a), (_, b)| a.value.total_cmp(&b.value)))
}
