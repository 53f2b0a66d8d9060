//! `slab-hot`: making and freeing packet buffers is what the CPUs do.

use rungwise_model::check::{Finding, Grade};
use rungwise_model::evidence::{Evidence, Subject};
use rungwise_model::keys;

use crate::net::other_namespaces;
use crate::rule::needs;
use crate::{Doc, Judgement, Measure, Rule, Threshold, sampled, say};

const SHARE: Threshold = Threshold {
    name: "busy samples in slab allocation and release",
    value: 0.08,
    origin: "own guess; the reference case lists it among the hot spots that remained",
};

const UDP: Threshold = Threshold {
    name: "UDP share of received packets",
    value: 0.5,
    origin: "own guess: where most packets are UDP, batches of datagrams are the remedy",
};

const BATCH: Threshold = Threshold {
    name: "datagrams per system call",
    value: 4.0,
    origin: "own guess: from here on the service moves batches already",
};

const PACKETS: Threshold = Threshold {
    name: "packets received per second",
    value: 10_000.0,
    origin: "own guess: with fewer, what is allocated is something else, as under a file system at work",
};

/// `slab-hot`
pub(crate) static RULE: Rule = Rule {
    id: "slab-hot",
    topic: "net",
    summary: "allocating and freeing packet buffers takes a large part of the CPU",
    needs: needs!(
        [
            &keys::CPU_BUSY,
            &keys::IP_RECEIVED,
            &keys::STACK_SAMPLES,
            &keys::STACK_SLAB,
            &keys::SYSCALL_DATAGRAMS_PER_CALL,
            &keys::UDP_SHARE
        ],
        other_namespaces::NEEDS
    ),
    thresholds: &[SHARE, UDP, BATCH, PACKETS, sampled::SAMPLES, sampled::BUSY],
    knobs: &["sock.recvmmsg", "sock.udp_gro", "net.gro_normal_batch"],
    measure: Some(Measure::more(&keys::STACK_SLAB)),
    doc: Doc {
        looks_for: "More than 8 % of busy samples in slab allocation, release, and skb_release_data.",
        hurts: "A buffer per packet, made on one CPU and freed on another.",
        todo: "Move more bytes per buffer: larger segments, bursts of one flow joined (UDP_GRO); or batches, which \
               leave the caches warm.",
        wrong: "File systems and connections allocate in the same functions: below 10,000 packets a second nothing is said. \
                Accounting of memory to control groups shows in the same functions. Confidence is never high.",
        sources: "The reference case, 'more hot spots', 2; mm/slub.c (Linux 6.18).",
    },
    judge,
};

fn judge(evidence: &Evidence) -> Judgement {
    let seen = sampled::share(evidence, &keys::STACK_SLAB)?;
    let sentence = format!(
        "{} of busy samples allocate or free buffers",
        say::percent(seen.share.value)
    );
    if seen.share.value <= SHARE.value {
        return Ok(vec![seen.clear(sentence, SHARE.value)]);
    }
    let packets = evidence.host(&keys::IP_RECEIVED)?;
    if packets.value < PACKETS.value {
        let why = format!(
            "{sentence}, with {} packets received: the memory is of something else",
            say::rate(packets.value)
        );
        return Ok(vec![Finding::clear(why).cite(packets.reading)]);
    }
    other_namespaces::ours(evidence)?;
    let udp = evidence.host(&keys::UDP_SHARE)?;
    let host = Subject::host();
    let watch = || {
        seen.watch(&host, &sentence, SHARE.value)
            .confidence(Grade::Medium)
    };
    let batched = evidence
        .host(&keys::SYSCALL_DATAGRAMS_PER_CALL)
        .ok()
        .filter(|per_call| per_call.value >= BATCH.value);
    let finding = if udp.value <= UDP.value {
        watch().turn("net.gro_normal_batch", "16")
    } else if let Some(per_call) = batched {
        watch().cite(per_call.reading).consider("sock.udp_gro")
    } else {
        seen.cost(evidence, &sentence, SHARE.value)?
            .confidence(Grade::Medium)
            .turn("sock.recvmmsg", "32")
            .consider("sock.udp_gro")
    };
    Ok(vec![finding.cite(udp.reading).refuted_by(
        "with batches or larger segments, CPU per packet stays as it is",
    )])
}
