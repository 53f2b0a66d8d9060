//! `selinux-hot`: permission checks of `SELinux` take a visible share of the CPU.
//!
//! A share of stack samples under the access vector cache and the socket hooks (`security/selinux/avc.c`).
//! Cache misses decide between the two remedies: a larger cache, or the operator's policy.

use std::fmt::Write as _;

use rungwise_model::check::Finding;
use rungwise_model::evidence::{Evidence, Subject};
use rungwise_model::keys;

use crate::sampled::{self, BUSY, SAMPLES};
use crate::{Doc, Judgement, Measure, Rule, Threshold, say};

const SHARE: Threshold = Threshold {
    name: "share of busy samples under SELinux checks",
    value: 0.03,
    origin: "own guess; the reference bank host quotes about 5 % for this class of settings",
};

const MISSES: Threshold = Threshold {
    name: "cache misses per second",
    value: 100.0,
    origin: "own guess: a warm cache of a steady service has next to none",
};

pub(crate) static RULE: Rule = Rule {
    id: "selinux-hot",
    topic: "security",
    summary: "SELinux checks take a visible share of the CPU",
    needs: &[
        &keys::CPU_BUSY,
        &keys::SELINUX_ACTIVE,
        &keys::SELINUX_AVC_MISSES,
        &keys::STACK_SAMPLES,
        &keys::STACK_SELINUX,
    ],
    thresholds: &[SHARE, MISSES, SAMPLES, BUSY],
    knobs: &["sec.selinux_avc", "cmdline.selinux"],
    measure: Some(Measure::more(&keys::STACK_SELINUX)),
    doc: Doc {
        looks_for: "SELinux active, and more than 3 % of the busy stack samples under avc_has_perm or the selinux_socket \
            hooks. More than 100 misses/s of the access vector cache mean that it is too small.",
        hurts: "Each send and receive asks the security module. A hit in its cache is cheap; a miss walks the policy.",
        todo: "With many misses raise the cache threshold (sec.selinux_avc=8192). Without them, only the policy itself is \
            left, and that is the operator's decision.",
        wrong: "A module that is compiled in but not active costs nothing. A policy that was just loaded misses until the \
            cache is warm.",
        sources: "The reference bank host (advice for a proof of concept, no gain seen in its guest); TuneD profile \
            network-latency, which sets the cache threshold to 8192; security/selinux/avc.c.",
    },
    judge,
};

fn judge(evidence: &Evidence) -> Judgement {
    let active = evidence.words(&keys::SELINUX_ACTIVE, &Subject::host())?;
    if active.value == "inactive" {
        let clear = Finding::clear("SELinux is not active").cite(active.reading);
        return Ok(vec![clear]);
    }
    let checks = sampled::share(evidence, &keys::STACK_SELINUX)?;
    let share = say::percent(checks.share.value);
    if checks.share.value <= SHARE.value {
        let sentence = format!("{share} of the busy samples are under SELinux checks");
        return Ok(vec![checks.clear(sentence, SHARE.value)]);
    }
    let misses = evidence.host(&keys::SELINUX_AVC_MISSES).ok();
    let cold = misses.is_some_and(|misses| misses.always(|rate| rate > MISSES.value));
    let mut sentence = format!(
        "SELinux ({}) takes {share} of the busy CPU time",
        active.value
    );
    if let (true, Some(misses)) = (cold, misses) {
        let _ = write!(
            sentence,
            " and its cache misses {} times",
            say::rate(misses.value)
        );
    }
    let mut finding = checks
        .cost(evidence, &sentence, SHARE.value)?
        .cite(active.reading);
    if let Some(misses) = misses {
        finding = finding.cite(misses.reading);
    }
    if cold {
        finding = finding.turn("sec.selinux_avc", "8192");
    }
    Ok(vec![finding.consider("cmdline.selinux").refuted_by(
        "the share stays the same after `setenforce 0` on a host where that is allowed",
    )])
}
