//! `nf-rules-hot`: packets walk a long list of firewall rules, or are looked up among tracked connections.

use rungwise_model::check::{Finding, Grade};
use rungwise_model::evidence::{Evidence, Missing, Quantity, Subject};
use rungwise_model::keys;

use crate::net::other_namespaces;
use crate::rule::needs;
use crate::sampled::{self, Sampled};
use crate::{Doc, Judgement, Measure, Rule, Threshold, say};

const SHARE: Threshold = Threshold {
    name: "busy samples in the evaluation of rules",
    value: 0.03,
    origin: "own guess: as much as the reference case lost to empty tables",
};

const RULES: Threshold = Threshold {
    name: "rules of the longest base chain",
    value: 50.0,
    origin: "own guess: a hand-written firewall has fewer; lists grow by programs",
};

/// `nf-rules-hot`
pub(crate) static RULE: Rule = Rule {
    id: "nf-rules-hot",
    topic: "net",
    summary: "firewall rules, or the tracking of connections, cost much for each packet",
    needs: needs!(
        [
            &keys::CONNTRACK_USE,
            &keys::CPU_BUSY,
            &keys::IP_FORWARDED,
            &keys::NETFILTER_LEGACY_TABLES,
            &keys::NETFILTER_LONGEST_CHAIN,
            &keys::NETFILTER_LONGEST_FORWARD,
            &keys::STACK_NETFILTER,
            &keys::STACK_NFT_RULES,
            &keys::STACK_SAMPLES
        ],
        other_namespaces::NEEDS
    ),
    thresholds: &[SHARE, RULES, sampled::SAMPLES, sampled::BUSY],
    knobs: &["net.nft_rules", "net.conntrack"],
    measure: Some(Measure::more(&keys::STACK_NFT_RULES)),
    doc: Doc {
        looks_for: "More than 3 % of busy samples in nft_do_chain or ipt_do_table, and a base chain of more than 50 \
                    rules on the path of its packets; or more than 3 % in netfilter outside the rules, while connections are tracked.",
        hurts: "The walk is linear: a packet that matches the last rule has paid for all.",
        todo: "Sets and maps instead of lists; rules for the busiest traffic first; no tracking of connections for the \
               service's port where the firewall allows it.",
        wrong: "A packet may match early and never see the end of the chain: the length is an upper bound (rule counters \
                are not used, they may be off). Rules of legacy tables cannot be counted; with those, it is only worth \
                watching.",
        sources: "Documentation of nftables (sets, maps); Cloudflare's notes on a million packets per second.",
    },
    judge,
};

fn judge(evidence: &Evidence) -> Judgement {
    let seen = sampled::share(evidence, &keys::STACK_NFT_RULES)?;
    let sentence = format!(
        "{} of busy samples evaluate firewall rules",
        say::percent(seen.share.value)
    );
    if seen.share.value <= SHARE.value {
        let tracking = tracking(evidence, &seen)?;
        return Ok(vec![
            tracking.unwrap_or_else(|| seen.clear(sentence, SHARE.value)),
        ]);
    }
    other_namespaces::ours(evidence)?;
    let longest = longest(evidence)?;
    let legacy = evidence.words(&keys::NETFILTER_LEGACY_TABLES, &Subject::host())?;
    let long = longest.value > RULES.value;
    let remedies = |finding: Finding| {
        let finding = finding
            .cite(longest.reading)
            .consider("net.nft_rules")
            .refuted_by("with sets in place of the list, as many samples are in the rules");
        match evidence.host(&keys::CONNTRACK_USE) {
            Ok(tracked) if tracked.value > 0.0 => {
                finding.cite(tracked.reading).consider("net.conntrack")
            }
            _ => finding,
        }
    };
    if long {
        let sentence = format!(
            "{sentence}, and the longest base chain has {}",
            say::count(longest.value, "rule")
        );
        return Ok(vec![remedies(seen.cost(
            evidence,
            &sentence,
            SHARE.value,
        )?)]);
    }
    if !legacy.value.is_empty() {
        let sentence = format!(
            "{sentence}; rules of the legacy tables ({}) cannot be counted from here",
            legacy.value
        );
        return Ok(vec![
            remedies(seen.watch(&Subject::host(), &sentence, SHARE.value))
                .confidence(Grade::Low)
                .cite(legacy.reading),
        ]);
    }
    // No list here is long enough for it: it may be one of another namespace.
    other_namespaces::ours_alone(evidence)?;
    Ok(vec![
        seen.clear(
            format!(
                "{sentence}, but the longest base chain has {}",
                say::count(longest.value, "rule")
            ),
            SHARE.value,
        )
        .below(longest.value, RULES.value)
        .cite(longest.reading),
    ])
}

/// The longest base chain that packets of this host walk; those on forward too where it forwards any.
fn longest(evidence: &Evidence) -> Result<Quantity<'_>, Missing> {
    let own = evidence.host(&keys::NETFILTER_LONGEST_CHAIN)?;
    let forwards = evidence
        .host(&keys::IP_FORWARDED)
        .is_ok_and(|packets| packets.value > 0.0);
    Ok(match evidence.host(&keys::NETFILTER_LONGEST_FORWARD) {
        Ok(forward) if forwards && forward.value > own.value => forward,
        _ => own,
    })
}

/// Netfilter costs much outside the rules, and connections are tracked.
fn tracking(evidence: &Evidence, rules: &Sampled<'_>) -> Result<Option<Finding>, Missing> {
    let all = sampled::share(evidence, &keys::STACK_NETFILTER)?;
    let beside = all.share.value - rules.share.value;
    let tracked = evidence.host(&keys::CONNTRACK_USE).ok();
    if beside <= SHARE.value {
        return Ok(None);
    }
    let Some(tracked) = tracked.filter(|tracked| tracked.value > 0.0) else {
        other_namespaces::ours_alone(evidence)?;
        return Ok(None);
    };
    other_namespaces::ours(evidence)?;
    let sentence = format!(
        "{} of busy samples are in netfilter outside the rules, and connections are tracked",
        say::percent(beside)
    );
    let finding = all
        .cost(evidence, &sentence, SHARE.value)?
        .cite(rules.share.reading)
        .cite(tracked.reading)
        .consider("net.conntrack")
        .refuted_by("with the service's port untracked, as many samples are in netfilter");
    Ok(Some(finding))
}
