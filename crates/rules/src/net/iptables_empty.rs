//! `iptables-empty`: every packet walks through firewall hooks that hold no rule.
//!
//! A base chain costs its call at each hook, rules or no rules. Chains and rules of `nf_tables` are counted by
//! netlink. The legacy tables are only named in /`proc/net/ip_tables_names`; nobody may list them to count,
//! since listing creates the table that is asked for.

use rungwise_model::check::{Finding, Grade};
use rungwise_model::evidence::{Evidence, Subject};
use rungwise_model::keys;

use crate::net::other_namespaces;
use crate::rule::needs;
use crate::{Doc, Judgement, Measure, Rule, Threshold, sampled, say};

const SHARE: Threshold = Threshold {
    name: "busy samples under netfilter",
    value: 0.01,
    origin: "the reference case: 3 % of CPU, +3.9 % without; below 1 % no measurement here could see it",
};

/// `iptables-empty`
pub(crate) static RULE: Rule = Rule {
    id: "iptables-empty",
    topic: "net",
    summary: "packets pass through netfilter chains without rules",
    needs: needs!(
        [
            &keys::CPU_BUSY,
            &keys::NETFILTER_BASE_CHAINS,
            &keys::NETFILTER_DROP_POLICIES,
            &keys::NETFILTER_LEGACY_TABLES,
            &keys::NETFILTER_RULES,
            &keys::STACK_NETFILTER,
            &keys::STACK_SAMPLES
        ],
        other_namespaces::NEEDS
    ),
    thresholds: &[SHARE, sampled::SAMPLES, sampled::BUSY],
    knobs: &["net.iptables_unload"],
    measure: Some(Measure::more(&keys::STACK_NETFILTER)),
    doc: Doc {
        looks_for: "More than 1 % of busy samples under netfilter, with base chains or legacy tables present and no \
                    rule in nf_tables.",
        hurts: "Work per packet that decides nothing.",
        todo: "Whoever owns the firewall unloads the empty tables.",
        wrong: "A policy to drop is a rule. Container runtimes and firewalld add rules later. Rules of legacy tables \
                cannot be counted without touching them, so those are only worth watching.",
        sources: "The reference case: 5,180 k to 5,380 k transactions/s; measured on Linux 6.18: `iptables-legacy -S` \
                  in a fresh namespace created the table filter, which then counted 224 k packets.",
    },
    judge,
};

fn judge(evidence: &Evidence) -> Judgement {
    let seen = sampled::share(evidence, &keys::STACK_NETFILTER)?;
    let sentence = format!(
        "{} of busy samples are under netfilter",
        say::percent(seen.share.value)
    );
    if seen.share.value <= SHARE.value {
        return Ok(vec![seen.clear(sentence, SHARE.value)]);
    }
    other_namespaces::ours(evidence)?;
    let chains = evidence.host(&keys::NETFILTER_BASE_CHAINS)?;
    let rules = evidence.host(&keys::NETFILTER_RULES)?;
    let drops = evidence.host(&keys::NETFILTER_DROP_POLICIES)?;
    let legacy = evidence.words(&keys::NETFILTER_LEGACY_TABLES, &Subject::host())?;
    let cited = |finding: Finding| {
        finding
            .cite(chains.reading)
            .cite(rules.reading)
            .cite(drops.reading)
            .cite(legacy.reading)
    };
    if rules.value > 0.0 || drops.value > 0.0 {
        return Ok(vec![cited(seen.clear(
            format!(
                "{sentence}, but the firewall is in use: {}, {} that drop",
                say::count(rules.value, "rule"),
                say::count(drops.value, "chain")
            ),
            SHARE.value,
        ))]);
    }
    let (what, legacy_only) = match (chains.value > 0.0, legacy.value.is_empty()) {
        (true, true) => (
            format!(
                "through {} without a rule",
                say::count(chains.value, "base chain")
            ),
            false,
        ),
        (_, false) => (
            format!(
                "and the legacy tables ({}) are loaded; whether they hold rules cannot be read without touching them",
                legacy.value
            ),
            true,
        ),
        (false, true) => {
            return Ok(vec![cited(seen.clear(
                format!("{sentence}, but no chain and no table is there"),
                SHARE.value,
            ))]);
        }
    };
    let what = format!("{sentence}, {what}");
    let host = Subject::host();
    let finding = if legacy_only {
        seen.watch(&host, &what, SHARE.value)
            .confidence(Grade::Medium)
    } else {
        seen.cost(evidence, &what, SHARE.value)?
    };
    Ok(vec![
        cited(finding)
            .turn("net.iptables_unload", "absent")
            .estimate(
                0.0,
                0.039,
                "reference case, 3 % of CPU before: 5,180 k to 5,380 k transactions/s",
            )
            .refuted_by("a rule in any table, or the same CPU per packet with the tables unloaded"),
    ])
}
