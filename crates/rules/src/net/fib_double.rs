//! `fib-double`: each received packet is looked up twice in the routing table.
//!
//! The second time asks whether its source could be reached by the device it came from (`rp_filter`), or is one
//! of our own addresses (`accept_local`). Early demultiplexing spares both for sockets that are connected.

use rungwise_model::check::Finding;
use rungwise_model::evidence::{Evidence, Missing, Quantity, Subject};
use rungwise_model::keys;

use crate::net::other_namespaces;
use crate::rule::needs;
use crate::{Doc, Judgement, Measure, Rule, Threshold, sampled, say};

const SHARE: Threshold = Threshold {
    name: "busy samples under __fib_validate_source",
    value: 0.01,
    origin: "measured on a veth pair, Linux 6.18: 0.08 % without the filter, 0.76 % with it; the reference case 1.82 %",
};

const KNOWN: Threshold = Threshold {
    name: "the same, worth knowing while a filter is set",
    value: 0.004,
    origin: "between the two measured shares: above it the filter is at work, too little to act on",
};

const CALLERS: Threshold = Threshold {
    name: "different callers of fib_table_lookup",
    value: 2.0,
    origin: "definition: the route, and the check of the source",
};

/// `fib-double`
pub(crate) static RULE: Rule = Rule {
    id: "fib-double",
    topic: "net",
    summary: "each packet's source is looked up in the routing table as well",
    needs: needs!(
        [
            &keys::CPU_BUSY,
            &keys::DEVICE_KIND,
            &keys::DEVICE_RX_PACKETS,
            &keys::DEVICE_UP,
            &keys::IP_FORWARDED,
            &keys::ROUTE_EARLY_DEMUX,
            &keys::ROUTE_RP_FILTER,
            &keys::STACK_FIB_LOOKUPS,
            &keys::STACK_FIB_VALIDATE,
            &keys::STACK_SAMPLES
        ],
        other_namespaces::NEEDS
    ),
    thresholds: &[SHARE, KNOWN, CALLERS, sampled::SAMPLES, sampled::BUSY],
    knobs: &["net.rp_filter", "net.accept_local", "net.early_demux"],
    measure: Some(Measure::more(&keys::STACK_FIB_VALIDATE)),
    doc: Doc {
        looks_for: "More than 1 % of busy samples under __fib_validate_source, with two callers of fib_table_lookup.",
        hurts: "A second route look-up per packet.",
        todo: "rp_filter 0 and accept_local on together spare it, where spoofed sources are filtered elsewhere. That \
               is a decision about security.",
        wrong: "Hosts with several links and routers need the filter: there it is only worth watching. Early \
                demultiplexing hides the look-ups for connected sockets, so the share depends on the traffic.",
        sources: "fib_validate_source in net/ipv4/fib_frontend.c (Linux 6.18); the reference case: 5,380 k to 5,490 k \
                  transactions/s.",
    },
    judge,
};

fn judge(evidence: &Evidence) -> Judgement {
    let seen = sampled::share(evidence, &keys::STACK_FIB_VALIDATE)?;
    let callers = evidence.host(&keys::STACK_FIB_LOOKUPS)?;
    let sentence = format!(
        "{} of busy samples look up the source of a packet",
        say::percent(seen.share.value)
    );
    if seen.share.value <= KNOWN.value || callers.value < CALLERS.value {
        return Ok(vec![
            seen.clear(sentence, SHARE.value).cite(callers.reading),
        ]);
    }
    other_namespaces::ours(evidence)?;
    let (device, filter) = filtered(evidence)?;
    let little = seen.share.value <= SHARE.value;
    if little && filter.value < 0.5 {
        // The filter that costs it may be set in another namespace.
        other_namespaces::ours_alone(evidence)?;
        return Ok(vec![
            seen.clear(format!("{sentence}, with no filter set"), SHARE.value)
                .cite(filter.reading),
        ]);
    }
    let links = links(evidence);
    let forwarded = evidence.host(&keys::IP_FORWARDED)?;
    let needed = if forwarded.value > 0.0 {
        Some("the host forwards packets, and a router needs the filter".to_owned())
    } else if links > 1 {
        Some(format!(
            "the host has {links} links, and needs the filter to know them apart"
        ))
    } else if little {
        Some(format!("rp_filter is {:.0} on {device}", filter.value))
    } else {
        None
    };
    let finding = match needed {
        Some(why) => seen.watch(&Subject::host(), &format!("{sentence}; {why}"), KNOWN.value),
        None => seen.cost(
            evidence,
            &format!("{sentence} (rp_filter {:.0} on {device})", filter.value),
            SHARE.value,
        )?,
    };
    let finding = finding
        .cite(callers.reading)
        .cite(filter.reading)
        .cite(forwarded.reading)
        .estimate(
            0.0,
            0.02,
            "reference case, 1.82 % of CPU per look-up before: 5,380 k to 5,490 k transactions/s",
        )
        .refuted_by("with rp_filter 0 and accept_local on, CPU per packet stays as it was");
    Ok(vec![remedies(
        evidence,
        finding,
        device,
        filter.value > 0.5,
    )])
}

fn remedies(evidence: &Evidence, finding: Finding, device: &str, filters: bool) -> Finding {
    let finding = if filters {
        finding.turn_device("net.rp_filter", device, "0")
    } else {
        finding
    };
    let finding = finding.turn_device("net.accept_local", device, "on");
    match evidence.host(&keys::ROUTE_EARLY_DEMUX) {
        Ok(demux) if demux.value < 0.5 => finding.cite(demux.reading).consider("net.early_demux"),
        _ => finding,
    }
}

/// The device that takes most packets, with its filter.
fn filtered(evidence: &Evidence) -> Result<(&str, Quantity<'_>), Missing> {
    evidence
        .each(&keys::ROUTE_RP_FILTER)?
        .into_iter()
        .max_by(|(a, _), (b, _)| {
            let packets = |device: &Subject| {
                evidence
                    .quantity(&keys::DEVICE_RX_PACKETS, device)
                    .map_or(0.0, |packets| packets.value)
            };
            packets(a).total_cmp(&packets(b))
        })
        .map(|(device, filter)| (device.name(), filter))
        .ok_or_else(|| evidence.missing(&keys::ROUTE_RP_FILTER, &Subject::host()))
}

/// Hardware devices that are up; 0 where kinds are unknown.
fn links(evidence: &Evidence) -> usize {
    evidence
        .each_words(&keys::DEVICE_KIND)
        .unwrap_or_default()
        .into_iter()
        .filter(|(device, kind)| {
            let up = evidence
                .quantity(&keys::DEVICE_UP, device)
                .is_ok_and(|up| up.value > 0.5);
            kind.value == "hardware" && up
        })
        .count()
}
