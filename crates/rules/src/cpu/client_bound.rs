//! `client-bound`: the load generator is the limit, not the service.
//!
//! A guard: a slow client looks just like a slow server. Only the generator can tell them apart, so the rule
//! needs its report and is undecided without it. The thresholds are those of the generator's certificate.

use rungwise_model::check::{Finding, Grade};
use rungwise_model::evidence::{Evidence, Quantity, Subject, Words};
use rungwise_model::{keys, load};

use crate::{Doc, Judgement, Measure, Rule, Threshold, say};

const BUSY: Threshold = Threshold {
    name: "share of the window in which the generator's threads ran or waited for a CPU",
    value: load::SATURATED,
    origin: "the certificate of `rungwise load`; at that share no thread waited for a reply",
};

const SERVER: Threshold = Threshold {
    name: "CPU use of the service as a share of the CPUs it may use, from which on the service is the limit",
    value: load::SERVER_BUSY,
    origin: "the certificate of `rungwise load`",
};

const ROOM: Threshold = Threshold {
    name: "idle share of the CPUs that both use, up to which the machine as a whole is the limit",
    value: load::ROOM,
    origin: "the certificate of `rungwise load`",
};

const DROPS: Threshold = Threshold {
    name: "share of the received replies that the generator dropped",
    value: load::DROPS,
    origin: "the certificate of `rungwise load`; a dropped reply counts as lost by the service",
};

const LATE: Threshold = Threshold {
    name: "share of the requests sent more than 1 ms after they were due",
    value: load::LATE,
    origin: "the certificate of `rungwise load`; each adds latency that the service did not cause",
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
    measure: Some(Measure::more(&keys::CLIENT_BUSY)),
    doc: Doc {
        looks_for: "The load generator's report shows threads that never waited for a reply (95 % of the window) while the \
            service and the machine had room, more than 0.1 % of the replies dropped at its own sockets, or more than 1 % of \
            the requests sent late for a reason other than a missing reply. `rungwise check --load` reads the report, and so \
            does `rungwise tune` where the rules choose the rungs.",
        hurts: "The measured rate is the generator's. A knob that helps the service shows no effect, and one that takes \
            CPU from the generator shows a loss.",
        todo: "Give the generator more threads, a second machine, larger receive buffers or CPUs of its own.",
        wrong: "Where both run on one machine and no CPU is idle, neither is the limit alone: each lacks the CPU time that the other uses. That is \
            only watched. A report from another time than the capture proves nothing about it. A load that is not certified for another reason \
            (other processes) is watched, with low confidence. Without `load udp --server-pid` the server's CPU use is unknown, and the server may \
            be saturated too.",
        sources: "General practice of load measurement; the certificate of `rungwise load` (docs/load.md).",
    },
    judge,
};

/// How the generator was the limit, with the evidence and the confidence.
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
                "it sent {} of the requests late because it was delayed itself",
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
        "the load generator was the limit, not the service: {}",
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

/// How busy service and machine were while the generator was saturated.
fn beside(server: Option<Quantity<'_>>, room: Option<Quantity<'_>>) -> String {
    let Some(server) = server else {
        return "and the service's CPU use is unknown".to_owned();
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

/// Both run on the same full CPUs: typical of a lab on one machine, and no proof against either.
fn together(evidence: &Evidence, busy: Quantity<'_>, idle: Quantity<'_>) -> Finding {
    let sentence = format!(
        "load generator and service share CPUs that are {} idle: the machine is the limit, and each lacks the CPU time that \
         the other uses",
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
             service is the limit",
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

/// Why the generator did not certify its figures, if it did not.
fn refused(evidence: &Evidence) -> Option<Words<'_>> {
    let words = evidence.words(&keys::CLIENT_CERTIFIED, &Subject::host());
    words.ok().filter(|words| words.value.starts_with("no"))
}

/// Its figures show no limit, but it did not certify them.
fn uncertified(why: Words<'_>) -> Finding {
    let reasons = why.value.trim_start_matches("no").trim_start_matches(':');
    let sentence = format!(
        "the load generator did not certify its figures, so it may have been the limit:{}",
        if reasons.trim().is_empty() {
            " it gives no reason"
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

/// Cites the generator's certificate.
fn certified(evidence: &Evidence, finding: Finding) -> Finding {
    match evidence.words(&keys::CLIENT_CERTIFIED, &Subject::host()) {
        Ok(words) => finding.cite(words.reading),
        Err(_) => finding,
    }
}
