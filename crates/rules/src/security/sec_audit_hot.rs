//! `sec-audit-hot`: the kernel audits system calls, and a busy CPU pays for it.
//!
//! A share of stack samples under the audit hooks (`kernel/auditsc.c`, Linux 6.18). With auditing switched
//! off the hooks are not entered at all, so the rule is clear without samples.

use std::fmt::Write as _;

use rungwise_model::check::{Finding, Outcome};
use rungwise_model::evidence::{Evidence, Subject};
use rungwise_model::keys;

use crate::sampled::{self, BUSY, SAMPLES};
use crate::{Doc, Judgement, Measure, Rule, Threshold, say};

const SHARE: Threshold = Threshold {
    name: "share of busy samples under audit hooks",
    value: 0.015,
    origin: "reference ladder, where 2.5 % were worth 6.7 % of the rate; the threshold below it is our own guess",
};

/// `audit_enabled` of a configuration that is locked until the next boot (`AUDIT_LOCKED`, kernel/audit.h).
const LOCKED: f64 = 2.0;

pub(crate) static RULE: Rule = Rule {
    id: "sec-audit-hot",
    topic: "security",
    summary: "auditing of system calls takes a visible share of the CPU",
    needs: &[
        &keys::AUDIT_ENABLED,
        &keys::AUDIT_RULES,
        &keys::CPU_BUSY,
        &keys::STACK_AUDIT,
        &keys::STACK_SAMPLES,
    ],
    thresholds: &[SHARE, SAMPLES, BUSY],
    knobs: &["sec.audit_rules", "sec.auditd", "cmdline.audit"],
    measure: Some(Measure::more(&keys::STACK_AUDIT)),
    doc: Doc {
        looks_for: "Auditing switched on, and more than 1.5 % of the busy stack samples under __audit_syscall_entry, \
            __audit_syscall_exit or the audit filters.",
        hurts: "Every system call walks the rules on entry and exit, even calls that no rule matches. A server that makes \
            one call per packet pays per packet.",
        todo: "Ask who needs the audit trail. If no one does, switch it off. Otherwise narrow the rules to other users or \
            calls than the service's (sec.audit_rules), which keeps the trail and most of the gain. rungwise names the knobs \
            and leaves the choice to you, because compliance may require the trail.",
        wrong: "Auditing that is compiled in but switched off (enabled=0) costs nothing. A configuration that is locked (enabled=2) is there \
            because compliance requires it: the finding states the cost and recommends nothing. A short profile of a start or a login storm shows \
            audit work that the steady state does not have.",
        sources: "The reference ladder (20 cores, 82599ES, Linux 4.6.3): 2.5 % of the CPU under audit, 5.49 M to 5.86 M \
            transactions/s without it; kernel/auditsc.c.",
    },
    judge,
};

fn judge(evidence: &Evidence) -> Judgement {
    let host = Subject::host();
    let enabled = evidence.host(&keys::AUDIT_ENABLED);
    if let Ok(enabled) = enabled
        && enabled.value == 0.0
    {
        let clear = Finding::clear("auditing is switched off").cite(enabled.reading);
        return Ok(vec![clear]);
    }
    let audit = sampled::share(evidence, &keys::STACK_AUDIT)?;
    let share = say::percent(audit.share.value);
    if audit.share.value <= SHARE.value {
        let sentence = format!("{share} of the busy samples are under audit hooks");
        return Ok(vec![audit.clear(sentence, SHARE.value)]);
    }
    let mut sentence = format!("auditing of system calls takes {share} of the busy CPU time");
    let rules = evidence.words(&keys::AUDIT_RULES, &host);
    if let Ok(rules) = rules
        && !rules.value.is_empty()
    {
        let _ = write!(sentence, " (rules: {})", rules.value);
    }
    let locked = enabled
        .as_ref()
        .is_ok_and(|enabled| enabled.value == LOCKED);
    if locked {
        sentence += ", and is locked until the next boot, as compliance rules require";
    }
    let mut finding = audit.cost(evidence, &sentence, SHARE.value)?;
    if let Ok(enabled) = enabled {
        finding = finding.cite(enabled.reading);
    }
    if locked {
        finding.outcome = Outcome::Watch;
        return Ok(vec![finding.refuted_by(
            "the share stays the same after a boot without auditing (audit=0), if the policy allows one",
        )]);
    }
    Ok(vec![
        finding
            .consider("sec.audit_rules")
            .consider("sec.auditd")
            .consider("cmdline.audit")
            .estimate(
                0.0,
                0.067,
                "reference ladder: +6.7 % where audit had 2.5 % of the CPU",
            )
            .refuted_by(
                "the share stays the same after `auditctl -e 0`, or the rate does not change",
            ),
    ])
}
