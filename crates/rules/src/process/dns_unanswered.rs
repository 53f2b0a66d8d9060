//! `dns-unanswered`: DNS queries stay unanswered, or are answered late.
//!
//! The resolver of the C library asks the first server of /etc/resolv.conf and waits 5 s before it asks the second. So a dead
//! first server adds 5 s to each lookup, and a service that looks up names per request stalls. A server that takes 100 ms adds that to
//! each of these requests.
use rungwise_model::check::{Finding, Grade};
use rungwise_model::evidence::{Evidence, Subject};
use rungwise_model::keys;

use super::called;
use crate::{Doc, Judgement, Measure, Rule, Threshold, say};

const RESOLVING: Threshold = Threshold {
    name: "queries without an answer for a quarter of a second",
    value: 1.0,
    origin: "a resolver answers in milliseconds; glibc waits 5 s before it asks the next server (resolv.conf(5))",
};

const LONG: Threshold = Threshold {
    name: "seconds without an answer from which on a query is lost, and not only slow",
    value: 0.5,
    origin: "an answer that is not cached takes several round trips, of 0.1 s each at most",
};

const LATE: Threshold = Threshold {
    name: "queries seen open for 40 ms or more, and then answered",
    value: 3.0,
    origin: "own guess: one or two may be names that no cache had yet",
};

const MEAN: Threshold = Threshold {
    name: "seconds that an answer takes on average at least: open queries divided by all datagrams that are sent",
    value: 0.01,
    origin: "own guess: many times an answer from a cache in the same network",
};

const MET: Threshold = Threshold {
    name: "samples in which a query is open",
    value: 10.0,
    origin: "definition: the counting error of ten is three",
};

const OPEN: Threshold = Threshold {
    name: "late queries open at a time, or all where answers take long on average, from which on there is something to act on",
    value: 0.1,
    origin: "own guess: a tenth of the time of one thread",
};

pub(crate) static RULE: Rule = Rule {
    id: "dns-unanswered",
    topic: "process",
    summary: "DNS queries stay unanswered, or are answered late",
    needs: &[
        &keys::DEPENDENCY_QUERIES_OPEN,
        &keys::DEPENDENCY_QUERIES_SERVER,
        &keys::DEPENDENCY_RESOLVER,
        &keys::DEPENDENCY_RESOLVING,
        &keys::DEPENDENCY_RESOLVING_FOR,
        &keys::DEPENDENCY_RESOLVING_LATE,
        &keys::DEPENDENCY_RESOLVING_OPEN,
        &keys::DEPENDENCY_RESOLVING_SERVER,
        &keys::DEPENDENCY_SAMPLES,
        &keys::SCHED_PROCESS_NAME,
        &keys::UDP_SENT,
    ],
    thresholds: &[RESOLVING, LONG, LATE, MEAN, MET, OPEN],
    knobs: &[],
    measure: Some(Measure::more(&keys::DEPENDENCY_RESOLVING)),
    doc: Doc {
        looks_for: "A UDP socket connected to port 53 that was opened within the window and still open a quarter of a second later: to act on if it is half a second or several queries, to watch otherwise. \
            Also such sockets that are gone earlier, but were seen for 40 ms, which samples show surely of answers after 100 ms in a window of 10 s; \
            and so many open at a time that, for all datagrams that are sent, an answer takes 10 ms or more on average.",
        hurts: "Without an answer each lookup takes 5 s and more, with a late one as long as the server takes. Threads that resolve names block meanwhile.",
        todo: "Query the named server: dig @SERVER example.org. Remove it from /etc/resolv.conf, or set options timeout:1 attempts:2 rotate; run a local cache (unbound, systemd-resolved, nscd), and let the service keep its connections, so that it looks up fewer names.",
        wrong: "A resolver that keeps its sockets open for seconds (c-ares, a forwarder) may open one within the window and keep it. \
            A recursive resolver (unbound, BIND) asks servers far away. \
            Names that no cache holds, such as those of a crawler, take 20 to 200 ms at the best of servers.",
        sources: "resolv.conf(5); __res_context_send of resolv/res_send.c, glibc 2.36.",
    },
    judge,
};

fn judge(evidence: &Evidence) -> Judgement {
    let samples = evidence.host(&keys::DEPENDENCY_SAMPLES)?;
    let resolving = evidence
        .each(&keys::DEPENDENCY_RESOLVING)
        .unwrap_or_default();
    let mut findings = Vec::new();
    for (process, number) in resolving {
        if number.value < RESOLVING.value {
            continue;
        }
        let server = evidence.words(&keys::DEPENDENCY_RESOLVER, process)?;
        let waited = evidence.quantity(&keys::DEPENDENCY_RESOLVING_FOR, process)?;
        let sentence = format!(
            "{} waits for the DNS server {}: {} without an answer, the longest for {:.2} s",
            called(evidence, process),
            server.value,
            say::count(number.value, "query").replace("querys", "queries"),
            waited.value,
        );
        let lost = waited.value >= LONG.value || number.value > RESOLVING.value;
        let finding = if lost {
            Finding::act(process, sentence).severity(Grade::High)
        } else {
            Finding::watch(process, sentence)
        };
        findings.push(
            finding
                .cite(number.reading)
                .cite(waited.reading)
                .refuted_by("`dig @SERVER` from this host is answered at once"),
        );
    }
    for (process, late) in (evidence.each(&keys::DEPENDENCY_RESOLVING_LATE)).unwrap_or_default() {
        let subject = process.to_string();
        let unanswered = findings.iter().any(|finding| finding.subject == subject);
        if unanswered || late.value < LATE.value {
            continue;
        }
        let server = evidence.words(&keys::DEPENDENCY_RESOLVING_SERVER, process)?;
        let open = evidence.quantity(&keys::DEPENDENCY_RESOLVING_OPEN, process)?;
        let sentence = format!(
            "{} waits for late answers of the DNS server {}: {:.0} queries were seen open for 40 ms or more, on average {:.2} at a time",
            called(evidence, process),
            server.value,
            late.value,
            open.value,
        );
        let finding = if open.value < OPEN.value {
            Finding::watch(process, sentence)
        } else {
            Finding::act(process, sentence).severity(Grade::Medium)
        };
        findings.push(
            finding
                .cite(late.reading)
                .cite(open.reading)
                .refuted_by("`dig @SERVER NAME` for a name that the service asks for is answered within some milliseconds"),
        );
    }
    if findings.is_empty()
        && let Some(finding) = slow_on_average(evidence)
    {
        findings.push(finding);
    }
    if findings.is_empty() {
        let sentence =
            "no DNS query stayed unanswered for a quarter of a second, and no late answer was seen";
        findings.push(Finding::clear(sentence).cite(samples.reading));
    }
    Ok(findings)
}

/// Answers take long on average: so many queries are open that, even if each datagram that is sent was one, they wait so long (Little's law).
fn slow_on_average(evidence: &Evidence) -> Option<Finding> {
    let open = evidence.host(&keys::DEPENDENCY_QUERIES_OPEN).ok()?;
    let sent = evidence.host(&keys::UDP_SENT).ok()?;
    let server = evidence.words(&keys::DEPENDENCY_QUERIES_SERVER, &Subject::host());
    let server = server.ok()?;
    let met = open
        .reading
        .series
        .iter()
        .filter(|open| **open > 0.0)
        .count();
    if sent.value <= 0.0 {
        return None;
    }
    let mean_s = open.value / sent.value;
    if (met as f64) < MET.value || open.value < OPEN.value || mean_s < MEAN.value {
        return None;
    }
    let sentence = format!(
        "answers of the DNS server {} take {:.0} ms or more on average: {:.2} queries to it are open at a time, and at most {} are sent",
        server.value,
        1000.0 * mean_s,
        open.value,
        say::rate(sent.value),
    );
    let finding = Finding::act(&Subject::host(), sentence)
        .severity(Grade::Medium)
        .cite(open.reading)
        .cite(sent.reading);
    Some(finding.refuted_by(
        "`dig @SERVER NAME` for a name that the service asks for is answered within some milliseconds",
    ))
}
