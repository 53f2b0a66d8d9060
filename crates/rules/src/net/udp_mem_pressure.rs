//! `udp-mem-pressure`: all UDP sockets together come near the memory that they may have.

use rungwise_model::check::{Finding, Grade};
use rungwise_model::evidence::{Evidence, Subject};
use rungwise_model::keys;

use crate::{Doc, Judgement, Measure, Rule, Threshold, say};

const USED: Threshold = Threshold {
    name: "memory of UDP, as a share of its pressure mark",
    value: 1.0,
    origin: "the kernel's own mark: the second number of net.ipv4.udp_mem",
};

const ALIVE: Threshold = Threshold {
    name: "datagrams received per second",
    value: 1.0,
    origin: "own guess: memory that is held without traffic is held by unread sockets",
};

/// `udp-mem-pressure`
pub(crate) static RULE: Rule = Rule {
    id: "udp-mem-pressure",
    topic: "net",
    summary: "the memory of all UDP sockets is near its limit",
    needs: &[
        &keys::UDP_MEM,
        &keys::UDP_MEM_ERRORS,
        &keys::UDP_MEM_PRESSURE,
        &keys::UDP_RECEIVED,
    ],
    thresholds: &[USED, ALIVE],
    knobs: &["net.udp_mem"],
    measure: Some(Measure::more(&keys::UDP_MEM)),
    doc: Doc {
        looks_for: "Memory of all UDP sockets above the pressure mark of udp_mem, or datagrams refused for lack of it.",
        hurts: "Datagrams of every service are refused, not only of the one that holds the memory.",
        todo: "Find the sockets with full queues first; raise udp_mem if all of them are read.",
        wrong: "Sockets that were opened and forgotten hold memory without traffic: then a larger limit only delays, \
                and it is only worth watching.",
        sources: "Documentation/networking/ip-sysctl.rst (udp_mem); bpftune.",
    },
    judge,
};

fn judge(evidence: &Evidence) -> Judgement {
    let used = evidence.host(&keys::UDP_MEM)?;
    let mark = evidence.host(&keys::UDP_MEM_PRESSURE)?;
    let errors = evidence.host(&keys::UDP_MEM_ERRORS).ok();
    let refused = errors.filter(|errors| errors.value > 0.0);
    let share = used.value / mark.value.max(1.0);
    let sentence = format!(
        "UDP sockets hold {} of memory, {} of the pressure mark",
        say::bytes(used.value),
        say::percent(share)
    );
    if share <= USED.value && refused.is_none() {
        return Ok(vec![
            Finding::clear(sentence)
                .below(share, USED.value)
                .cite(used.reading)
                .cite(mark.reading),
        ]);
    }
    let received = evidence.host(&keys::UDP_RECEIVED)?;
    let refusals = refused.map_or(String::new(), |errors| {
        format!(", and {} datagrams are refused", say::rate(errors.value))
    });
    let host = Subject::host();
    let mut finding = if received.value < ALIVE.value {
        Finding::watch(
            &host,
            format!("{sentence}{refusals}, without traffic: unread sockets"),
        )
    } else {
        Finding::act(&host, format!("{sentence}{refusals}")).severity(if refused.is_some() {
            Grade::High
        } else {
            Grade::Medium
        })
    }
    .confidence(Grade::High)
    .cite(used.reading)
    .cite(mark.reading)
    .cite(received.reading)
    .consider("net.udp_mem")
    .refuted_by("one socket with a full queue holds all of it: the reader is the cause");
    if let Some(errors) = refused {
        finding = finding.cite(errors.reading);
    }
    Ok(vec![finding])
}
