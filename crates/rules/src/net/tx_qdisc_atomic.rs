//! `tx-qdisc-atomic`: taking a lock on the way out that nobody else wants.
//!
//! An uncontended lock is an atomic instruction on a cache line that may live on another CPU. It shows as
//! self time of `_raw_spin_lock` and no waiting. Nothing here can be tuned for certain.

use rungwise_model::evidence::{Evidence, Subject};
use rungwise_model::keys;

use crate::{Doc, Judgement, Measure, Rule, Threshold, sampled, say};

const SHARE: Threshold = Threshold {
    name: "busy samples that take an uncontended lock under dev_queue_xmit",
    value: 0.05,
    origin: "own guess; the reference case lists it among the hot spots that remained",
};

const WAITING: Threshold = Threshold {
    name: "busy samples that wait for a lock there",
    value: 0.01,
    origin: "own guess: above it the lock is contended, which is tx-queue-lock",
};

/// `tx-qdisc-atomic`
pub(crate) static RULE: Rule = Rule {
    id: "tx-qdisc-atomic",
    topic: "net",
    summary: "uncontended locks on transmit cost time",
    needs: &[
        &keys::STACK_SAMPLES,
        &keys::STACK_XMIT_LOCK,
        &keys::STACK_XMIT_SPIN,
    ],
    thresholds: &[SHARE, WAITING, sampled::SAMPLES],
    knobs: &["net.default_qdisc"],
    measure: Some(Measure::more(&keys::STACK_XMIT_SPIN)),
    doc: Doc {
        looks_for: "More than 5 % of busy samples in _raw_spin_lock below dev_queue_xmit, with next to none waiting.",
        hurts: "Each packet pays for atomic instructions of the queueing discipline.",
        todo: "A discipline without a lock (noqueue, mq with a lock per queue) may spare some; most of it is work for \
               the kernel's developers.",
        wrong: "No gain is promised; it is never more than worth watching.",
        sources: "The reference case, 'more hot spots', 1.",
    },
    judge,
};

fn judge(evidence: &Evidence) -> Judgement {
    let seen = sampled::share(evidence, &keys::STACK_XMIT_SPIN)?;
    let waiting = evidence.host(&keys::STACK_XMIT_LOCK)?;
    let sentence = format!(
        "{} of busy samples take a lock under dev_queue_xmit, {} wait for one",
        say::percent(seen.share.value),
        say::percent(waiting.value)
    );
    if seen.share.value <= SHARE.value || waiting.value > WAITING.value {
        return Ok(vec![
            seen.clear(sentence, SHARE.value).cite(waiting.reading),
        ]);
    }
    Ok(vec![
        seen.watch(&Subject::host(), &sentence, SHARE.value)
            .cite(waiting.reading)
            .consider("net.default_qdisc")
            .refuted_by("with another queueing discipline the share stays as it is"),
    ])
}
