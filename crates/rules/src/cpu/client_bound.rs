//! `client-bound`: the load generator is the limit, not the service.
//!
//! A guard: a slow client looks just like a slow server. Only the generator knows, so this rests on its report;
//! on the host alone it is undecided. The lines are those of the generator's own certificate.

use rungwise_model::check::{Finding, Grade};
use rungwise_model::evidence::{Evidence, Quantity, Subject, Words};
use rungwise_model::{keys, load};

use crate::{Doc, Judgement, Rule, Threshold, say};

const BUSY: Threshold = Threshold {
    name: "share of the window in which the generator's threads ran or waited for a CPU",
    value: load::SATURATED,
    origin: "the certificate of `rungwise load`; at that share no thread waited for a reply",
};

const SERVER: Threshold = Threshold {
    name: "CPU of the service over the CPUs it may use, from which on it is the limit itself",
    value: load::SERVER_BUSY,
    origin: "the certificate of `rungwise load`",
};

const ROOM: Threshold = Threshold {
    name: "idle share of the CPUs that both use, up to which the machine as a whole is the limit",
    value: load::ROOM,
    origin: "the certificate of `rungwise load`",
};

const DROPS: Threshold = Threshold {
    name: "replies dropped at the generator, of those it received",
    value: load::DROPS,
    origin: "the certificate of `rungwise load`; a dropped reply counts as lost by the service",
};

const LATE: Threshold = Threshold {
    name: "requests that left more than 1 ms after they were due",
    value: load::LATE,
    origin: "the certificate of `rungwise load`; each is latency that the service did not make",
};

pub(crate) static RULE: Rule = Rule {
    id: "client-bound",
    topic: "cpu",
    summary: "the measurement is limited by the load generator",
    needs: &[
        &keys::CLIENT_BUSY,
        &keys::CLIENT_CERTIFIED,
        &keys::CLIENT_CPU,
        &keys::CLIENT_DROPS,
        &keys::CLIENT_LATE_SENDS,
        &keys::CLIENT_SERVER_BUSY,
        &keys::CLIENT_SHARED_IDLE,
        &keys::CLIENT_STARVED,
    ],
    thresholds: &[BUSY, SERVER, ROOM, DROPS, LATE],
    knobs: &[],
    doc: Doc {
        looks_for: "In the report of the load generator: threads that never waited for a reply (95 % of the window) beside a \
            service and a machine with room, more than 0.1 % of the replies dropped at its own sockets, or more than 1 % of \
            the requests sent late for another reason than a missing reply. Given by `rungwise check --load` and, where the \
            rules choose the rungs, by `rungwise tune`.",
        hurts: "The rate measured is the generator's. A knob that helps the service shows nothing, and one that takes CPU \
            from the generator shows a loss.",
        todo: "More threads or a second machine for the generator, larger receive buffers on its side, CPUs of its own.",
        wrong: "Where both run on one machine and no CPU is idle, neither is the limit alone: what the one uses the other \
            lacks. That is only worth watching. A report that was made at another time than the look says nothing of it. \
            A load that is not certified for another reason (other processes) is worth watching, with low confidence. Where nobody named the server (`load udp --server-pid`), a full generator may be beside a full server.",
        sources: "General practice of load measurement; the certificate of `rungwise load` (docs/load.md).",
    },
    judge,
};

/// In which way the generator was the limit, on what that rests, and how sure it is.
struct Limit<'e> {
    words: String,
    rests_on: Vec<Quantity<'e>>,
    sure: Grade,
}

fn judge(evidence: &Evidence) -> Judgement {
    let busy = evidence.host(&keys::CLIENT_BUSY)?;
    let drops = evidence.host(&keys::CLIENT_DROPS)?;
    let late = evidence.host(&keys::CLIENT_LATE_SENDS)?;
    let starved = evidence.host(&keys::CLIENT_STARVED)?;
    let server = evidence.host(&keys::CLIENT_SERVER_BUSY).ok();
    let room = evidence.host(&keys::CLIENT_SHARED_IDLE).ok();
    let full = busy.value >= BUSY.value;
    let server_full = server.filter(|server| server.value >= SERVER.value);
    let machine_full = room.filter(|idle| idle.value <= ROOM.value);

    let mut limits = Vec::new();
    if full && server_full.is_none() && machine_full.is_none() {
        limits.push(Limit {
            words: format!(
                "its threads never waited ({} of the window) {}",
                say::percent(busy.value),
                beside(server, room)
            ),
            rests_on: [Some(busy), server, room].into_iter().flatten().collect(),
            sure: server.map_or(Grade::Medium, |_| Grade::High),
        });
    }
    if drops.value > DROPS.value {
        limits.push(Limit {
            words: format!(
                "its own sockets dropped {} of the replies",
                say::percent(drops.value)
            ),
            rests_on: vec![drops],
            sure: Grade::High,
        });
    }
    // Where every slot waits for a reply the service is behind, and the schedule shows it.
    let held_up = late.value > LATE.value && starved.value < 0.5;
    if held_up {
        limits.push(Limit {
            words: format!(
                "{} of the requests left late because it was held up",
                say::percent(late.value)
            ),
            rests_on: vec![late],
            sure: Grade::High,
        });
    }
    if limits.is_empty() {
        return Ok(vec![match (full, server_full, machine_full) {
            (true, None, Some(idle)) => together(evidence, busy, idle),
            (_, None, _) if starved.value < 0.5 => match refused(evidence) {
                Some(why) => uncertified(why),
                None => clear(evidence, busy, server_full),
            },
            _ => clear(evidence, busy, server_full),
        }]);
    }
    let words: Vec<&str> = limits.iter().map(|limit| limit.words.as_str()).collect();
    let sure = limits.iter().map(|limit| limit.sure).max();
    let sentence = format!(
        "the load generator was the limit and not the service: {}",
        words.join("; ")
    );
    let finding = Finding::watch(&Subject::host(), sentence)
        .severity(Grade::High)
        .confidence(sure.unwrap_or(Grade::Medium))
        .refuted_by("a second generator at the same time does not raise the rate");
    let finding = limits
        .iter()
        .flat_map(|limit| &limit.rests_on)
        .fold(finding, |finding, quantity| finding.cite(quantity.reading));
    Ok(vec![certified(evidence, finding)])
}

/// How it stood on the other side of a full generator.
fn beside(server: Option<Quantity<'_>>, room: Option<Quantity<'_>>) -> String {
    let Some(server) = server else {
        return "and how busy the service was is unknown".to_owned();
    };
    let service = format!(
        "while the service used {} of its CPUs",
        say::percent(server.value)
    );
    match room {
        None => service,
        Some(idle) => format!(
            "{service} and {} of the CPUs were idle",
            say::percent(idle.value)
        ),
    }
}

/// Both live on CPUs that are full: how a lab on one machine is, and no proof against either.
fn together(evidence: &Evidence, busy: Quantity<'_>, idle: Quantity<'_>) -> Finding {
    let sentence = format!(
        "load generator and service share CPUs of which {} was idle: the machine as a whole is the limit, and what the one \
         uses the other lacks",
        say::percent(idle.value)
    );
    let finding = Finding::watch(&Subject::host(), sentence)
        .severity(Grade::Low)
        .confidence(Grade::Low)
        .cite(idle.reading)
        .cite(busy.reading)
        .refuted_by("with the generator on another machine the rate is the same");
    let used = evidence.host(&keys::CLIENT_CPU);
    used.map_or(finding.clone(), |used| finding.cite(used.reading))
}

fn clear(evidence: &Evidence, busy: Quantity<'_>, server_full: Option<Quantity<'_>>) -> Finding {
    let busy_for = say::percent(busy.value);
    let finding = match server_full {
        Some(server) if busy.value >= BUSY.value => Finding::clear(format!(
            "the load generator's threads never waited ({busy_for} of the window), and the service used {} of its CPUs: the \
             limit is the service's",
            say::percent(server.value)
        ))
        .cite(server.reading),
        _ => Finding::clear(format!(
            "the load generator was not the limit: its threads were busy for {busy_for} of the window"
        ))
        .below(busy.value, BUSY.value),
    };
    certified(evidence, finding.cite(busy.reading))
}

/// Why the generator does not vouch for its figures, if it does not.
fn refused(evidence: &Evidence) -> Option<Words<'_>> {
    let words = evidence.words(&keys::CLIENT_CERTIFIED, &Subject::host());
    words.ok().filter(|words| words.value.starts_with("no"))
}

/// Its own figures show no limit, and it says itself that they are not to be used.
fn uncertified(why: Words<'_>) -> Finding {
    let reasons = why.value.trim_start_matches("no").trim_start_matches(':');
    let sentence = format!(
        "the load generator does not certify its own figures, so whether it was the limit is not sure:{}",
        if reasons.trim().is_empty() {
            " it does not say why"
        } else {
            reasons
        }
    );
    Finding::watch(&Subject::host(), sentence)
        .severity(Grade::Medium)
        .confidence(Grade::Low)
        .cite(why.reading)
        .refuted_by("a certified run of the same load shows the same rate")
}

/// With what the generator certified of itself.
fn certified(evidence: &Evidence, finding: Finding) -> Finding {
    match evidence.words(&keys::CLIENT_CERTIFIED, &Subject::host()) {
        Ok(words) => finding.cite(words.reading),
        Err(_) => finding,
    }
}
