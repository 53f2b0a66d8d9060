//! `connect-failed`: connections that a process opens fail at once.
//!
//! A backend that died leaves the file of its Unix socket behind, and connect(2) fails with ECONNREFUSED; without the file it is
//! ENOENT, without permission EACCES. No counter of the kernel records any of them, and the proxy answers 502.
use rungwise_model::check::{Finding, Grade};
use rungwise_model::evidence::{Evidence, Kind, Subject};
use rungwise_model::keys;

use super::{SERVICE, called, is_service};
use crate::rule::needs;
use crate::{Doc, Judgement, Measure, Rule, Threshold, say};

const RATE: Threshold = Threshold {
    name: "connections of the process that fail, per second",
    value: 1.0,
    origin: "own guess: fewer are health checks, or a program that waits for another to start",
};

const SHARE: Threshold = Threshold {
    name: "the same as a share of all that it opens",
    value: 0.05,
    origin: "own guess, with distance: glibc looks for the socket of nscd, which is missing on most machines, at one in a hundred lookups",
};

const UNREACHABLE: Threshold = Threshold {
    name: "the same, where the error is ENETUNREACH or EHOSTUNREACH",
    value: 0.90,
    origin: "getaddrinfo(3) connects to each address of a name to sort them, and without an IPv6 route all of IPv6 fail (RFC 6724): half of \
        the calls of a healthy client",
};

const OF_TCP: Threshold = Threshold {
    name: "failed attempts of TCP as a share of these, from which on the refused connections are TCP",
    value: 0.5,
    origin: "own guess: each refused TCP connection counts in Tcp:AttemptFails, a Unix socket in none",
};

/// `connect-failed`
pub(crate) static RULE: Rule = Rule {
    id: "connect-failed",
    topic: "process",
    summary: "connections that a process opens fail at once",
    needs: needs!(
        [
            &keys::LOSS_COUNTERS,
            &keys::LOSS_RATE,
            &keys::PROCESS_CONNECT_ERROR,
            &keys::PROCESS_CONNECT_FAILED,
            &keys::PROCESS_CONNECT_FAILED_SHARE,
        ],
        SERVICE
    ),
    thresholds: &[RATE, SHARE, UNREACHABLE, OF_TCP],
    knobs: &[],
    measure: Some(Measure::more(&keys::PROCESS_CONNECT_FAILED)),
    doc: Doc {
        looks_for: "A process whose calls of connect(2) fail with ECONNREFUSED, ENOENT, EACCES or ETIMEDOUT once a second or more, and in 5 % of \
            all calls; with ENETUNREACH or EHOSTUNREACH in 90 %. Of a process that serves nobody it is watched.",
        hurts: "Each request that needs the other program fails: a proxy answers 502.",
        todo: "The error log of the process names the socket, and so does `strace -f -e connect -p PID`. Unix socket, ECONNREFUSED: the program \
            that listened there has exited and left the file; start it. ENOENT: it never started, listens on another path, or in another \
            mount namespace (a volume that is not shared). EACCES: the user of the process lacks write permission on the socket or search \
            permission on a folder above it (`namei -l PATH`; listen.owner and listen.mode of PHP-FPM, SELinux). TCP: `ss -ltn` at the destination. \
            Unreachable: `ip route get ADDRESS`.",
        wrong: "Calls are counted for two seconds and sampled at high rates. A non-blocking TCP connection is refused later and is not counted here \
            (rule connect-refused). A program that logs by syslog(3) without a /dev/log fails at each line, and only its log is lost. Of \
            ECONNREFUSED the address family is inferred from the failed attempts of TCP of this network namespace.",
        sources: "connect(2), unix(7); unix_find_bsd and unix_stream_connect of net/unix/af_unix.c, Linux 6.18.",
    },
    judge,
};

fn judge(evidence: &Evidence) -> Judgement {
    let failed = match evidence.each(&keys::PROCESS_CONNECT_FAILED) {
        Ok(failed) => failed,
        Err(missing) if missing.why.is_none => Vec::new(),
        Err(missing) => return Err(missing),
    };
    let mut most = 0.0_f64;
    let mut findings = Vec::new();
    for (process, rate) in failed {
        let error = evidence.words(&keys::PROCESS_CONNECT_ERROR, process)?;
        let share = evidence.quantity(&keys::PROCESS_CONNECT_FAILED_SHARE, process)?;
        let line = if matches!(error.value, "ENETUNREACH" | "EHOSTUNREACH") {
            &UNREACHABLE
        } else {
            &SHARE
        };
        if share.value < line.value {
            continue;
        }
        most = most.max(rate.value);
        if rate.value < RATE.value {
            continue;
        }
        let sentence = format!(
            "{} cannot connect: {} at {}, {} of its calls; {}",
            called(evidence, process),
            error.value,
            say::rate(rate.value),
            say::percent(share.value),
            meaning(evidence, error.value, rate.value)
        );
        findings.push(
            if is_service(evidence, process.name()) {
                Finding::act(process, sentence).severity(Grade::High)
            } else {
                Finding::watch(process, sentence).severity(Grade::Medium)
            }
            .confidence(Grade::High)
            .cite(rate.reading)
            .cite(share.reading)
            .refuted_by("`strace -f -e connect -p PID` shows no failed call"),
        );
    }
    if findings.is_empty() {
        let clear = Finding::clear("no process fails to connect");
        findings.push(clear.below(most.min(RATE.value), RATE.value));
    }
    Ok(findings)
}

/// What the error means, and of which address family it is.
fn meaning(evidence: &Evidence, error: &str, rate: f64) -> &'static str {
    let counter = Subject::new(Kind::Counter, "Tcp:AttemptFails");
    let of_tcp = evidence.quantity(&keys::LOSS_RATE, &counter);
    let of_tcp = of_tcp.map_or(0.0, |rate| rate.value);
    let was_counted = evidence.host(&keys::LOSS_COUNTERS).is_ok();
    match error {
        "ECONNREFUSED" if of_tcp >= OF_TCP.value * rate => "no process listens on that TCP port",
        "ECONNREFUSED" if was_counted => "no process listens on that Unix socket",
        "ECONNREFUSED" => "no process listens there",
        "ENOENT" => "the Unix socket does not exist",
        "EACCES" => "it may not open that Unix socket",
        "ETIMEDOUT" => "the destination does not answer",
        _ => "there is no route to the destination",
    }
}
