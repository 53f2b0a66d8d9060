//! `rpc-provider-skew`: the calls of a client go to one of its servers more than to the others.
//!
//! Seen from the client, whose connections to the named port lead to several servers. Bytes sent stand for calls: a client whose calls are
//! alike sends each server its share of them.

use std::collections::BTreeMap;

use rungwise_model::check::{Finding, Grade};
use rungwise_model::evidence::{Evidence, Quantity, Subject, Unit};
use rungwise_model::evidence_text::number_of;
use rungwise_model::keys;

use super::connections::{self, CARRIES};
use crate::{Doc, Judgement, Measure, Rule, Threshold, say};

const SKEW: Threshold = Threshold {
    name: "calls to the most called server as a multiple of the mean",
    value: 1.5,
    origin: "own guess; the reference RPC case only lists the settings that cause it",
};

pub(crate) static RULE: Rule = Rule {
    id: "rpc-provider-skew",
    topic: "tcp",
    summary: "a client calls one of its servers more than the others",
    needs: &[&keys::SERVICE_ROLE, &keys::TCP_BYTES_SENT],
    thresholds: &[SKEW, CARRIES],
    knobs: &[],
    measure: Some(Measure::more(&keys::TCP_BYTES_SENT)),
    doc: Doc {
        looks_for: "With `rungwise check --socket :PORT` where the clients run: two servers or more behind the port, to one of which the clients here send more \
            than 1.5 times the mean.",
        hurts: "The most called server is at its limit while the others are idle, and adding servers does not help.",
        todo: "Check the balancing of the client (Dubbo: loadbalance=leastactive instead of a fixed weight or consistent hash; gRPC: round_robin instead of \
            pick_first, which uses one server only). Where connections stay for long, close and reopen them now and then, so that new servers are used.",
        wrong: "Weights may differ on purpose, as for servers of different size. Bytes stand for calls: where calls differ in size, a few large ones look like many.",
        sources: "The reference RPC case, table of parameters (loadbalance, weight); gRPC, load balancing policies.",
    },
    judge,
};

fn judge(evidence: &Evidence) -> Judgement {
    let roles = match evidence.each_words(&keys::SERVICE_ROLE) {
        Ok(roles) => roles,
        Err(missing) if missing.why.is_none => {
            return Ok(vec![Finding::clear("no service was named (--socket)")]);
        }
        Err(missing) => return Err(missing),
    };
    let clients: Vec<&Subject> = roles
        .into_iter()
        .filter(|(_, role)| role.value == "client")
        .map(|(connection, _)| connection)
        .collect();
    let mut servers: BTreeMap<&str, Vec<(&Subject, Quantity<'_>)>> = BTreeMap::new();
    // One that was opened within the window has no rate.
    for (connection, sent) in connections::each_of(evidence, &keys::TCP_BYTES_SENT, &clients)? {
        let remote = connection.name().split_once('>').map(|(_, remote)| remote);
        if let Some((address, _)) = remote.and_then(|remote| remote.rsplit_once(':')) {
            servers.entry(address).or_default().push((connection, sent));
        }
    }
    let sum = |connections: &[(&Subject, Quantity<'_>)]| -> f64 {
        connections.iter().map(|(_, sent)| sent.value).sum()
    };
    let number = servers.len();
    let all: f64 = servers.values().map(|connections| sum(connections)).sum();
    let mean = all / number.max(1) as f64;
    let most = servers
        .iter()
        .max_by(|(_, a), (_, b)| sum(a).total_cmp(&sum(b)));
    let (Some((address, connections)), true) = (most, number > 1 && mean >= CARRIES.value) else {
        let sentence = "the clients of the service here call fewer than two servers, or hardly any";
        return Ok(vec![Finding::clear(sentence)]);
    };
    let skew = sum(connections) / mean;
    let sends = number_of(Unit::BytesPerSecond, sum(connections));
    let sentence = format!(
        "the clients here send {address} {sends}, {skew:.1} times the mean of {number} servers, on {}",
        say::count(connections.len() as f64, "connection")
    );
    if skew <= SKEW.value {
        return Ok(vec![Finding::clear(sentence).below(skew, SKEW.value)]);
    }
    let largest = connections
        .iter()
        .max_by(|(_, a), (_, b)| a.value.total_cmp(&b.value));
    let Some((connection, sent)) = largest else {
        return Ok(vec![Finding::clear(sentence)]);
    };
    let finding = Finding::watch(connection, sentence)
        .severity(Grade::Medium)
        .confidence(Grade::Medium)
        .cite(sent.reading)
        .refuted_by("the servers answer as many requests each, by their own counts");
    Ok(vec![finding])
}
