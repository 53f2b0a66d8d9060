//! `conntrack-full`: the table of tracked connections is full, and new ones are dropped.

use rungwise_model::check::{Finding, Grade};
use rungwise_model::evidence::{Evidence, Subject};
use rungwise_model::keys;

use crate::{Doc, Judgement, Measure, Rule, Threshold, say};

const USE: Threshold = Threshold {
    name: "entries, as a share of nf_conntrack_max",
    value: 0.85,
    origin: "netdata's warning (85 %; critical from 95 %)",
};

const SEVERE: Threshold = Threshold {
    name: "the same, severe",
    value: 0.95,
    origin: "netdata's critical line",
};

const RACE: Threshold = Threshold {
    name: "entries below which a failed insert is a race and no lack of room",
    value: 0.5,
    origin: "own guess; two packets of a new flow on two CPUs (DNS: A and AAAA) fail one insert in an empty table too",
};

/// `conntrack-full`
pub(crate) static RULE: Rule = Rule {
    id: "conntrack-full",
    topic: "net",
    summary: "the table of tracked connections is full or nearly so",
    needs: &[&keys::CONNTRACK_DROPPED, &keys::CONNTRACK_USE],
    thresholds: &[USE, SEVERE, RACE],
    knobs: &["net.conntrack"],
    measure: Some(Measure::more(&keys::CONNTRACK_USE)),
    doc: Doc {
        looks_for: "A table more than 85 % full, or packets dropped and inserts failed because of it.",
        hurts: "At 100 % every new connection is dropped, whatever the service could take.",
        todo: "A larger nf_conntrack_max with a hash table to match; shorter timeouts; no tracking of the service's \
               port where the firewall allows it.",
        wrong: "A short burst fills it for a moment: without a loss, that is only worth watching. \
                Failed inserts in a table that is not half full are races between CPUs, and only worth watching.",
        sources: "netdata's netfilter alarms; Documentation/networking/nf_conntrack-sysctl.rst (Linux).",
    },
    judge,
};

fn judge(evidence: &Evidence) -> Judgement {
    let used = evidence.host(&keys::CONNTRACK_USE)?;
    let dropped = evidence.host(&keys::CONNTRACK_DROPPED).ok();
    let loses = dropped.filter(|dropped| dropped.value > 0.0);
    let host = Subject::host();
    let mut sentence = format!(
        "the table of tracked connections is {} full",
        say::percent(used.value)
    );
    if let Some(dropped) = loses {
        sentence = format!(
            "{sentence}, and {} packets are dropped or not entered",
            say::rate(dropped.value)
        );
    }
    let finding = if used.value > USE.value {
        let severe = used.value > SEVERE.value || loses.is_some();
        if loses.is_some() || used.always(|used| used > USE.value) {
            Finding::act(&host, sentence).confidence(Grade::High)
        } else {
            Finding::watch(&host, format!("{sentence}, for a moment"))
        }
        .severity(if severe { Grade::High } else { Grade::Medium })
    } else if loses.is_some() && used.value >= RACE.value {
        Finding::act(&host, format!("{sentence}: it was full for a moment"))
    } else if loses.is_some() {
        Finding::watch(
            &host,
            format!("{sentence}: races between CPUs, the table has room"),
        )
        .severity(Grade::Low)
    } else {
        return Ok(vec![
            Finding::clear(sentence)
                .below(used.value, USE.value)
                .cite(used.reading),
        ]);
    };
    let finding = finding
        .cite(used.reading)
        .consider("net.conntrack")
        .refuted_by("with twice the room, as many packets are dropped");
    Ok(vec![match dropped {
        Some(dropped) => finding.cite(dropped.reading),
        None => finding,
    }])
}
