//! `unix-listen-overflow`: the accept queue of a Unix socket is full.
//!
//! A proxy that reaches its application by a Unix socket, as nginx reaches PHP-FPM or Gunicorn, gets EAGAIN at once if the queue is full and
//! answers 502; a caller that blocks sleeps. The kernel counts neither (`unix_stream_connect` of `net/unix/af_unix.c`, Linux 6.18): the
//! queue is sampled, and calls of connect(2) that fail with EAGAIN are counted, which finds a queue that is full for less than a millisecond.

use rungwise_model::check::{Finding, Grade, Outcome};
use rungwise_model::evidence::{Evidence, Quantity, Subject};
use rungwise_model::keys;

use crate::{Doc, Judgement, Measure, Rule, Threshold, say};

const FULL: Threshold = Threshold {
    name: "share of the samples in which the queue is full",
    value: 0.02,
    origin: "measured by `cargo xtask faults --random 60 --seed 4001 --layer host`: a queue of 2 that is full for a few milliseconds in each burst \
        turned away 84 % of the requests of nginx",
};

const PILE: Threshold = Threshold {
    name: "mean number of connections that wait to be accepted, from which on the acceptor is slow",
    value: 1.0,
    origin: "by definition: one waits at any time",
};

const MOVES: Threshold = Threshold {
    name: "times in the window that the connections in the queue changed",
    value: 2.0,
    origin: "by definition: connections come and go",
};

const LEFT: Threshold = Threshold {
    name: "connections in a queue that does not change, from which on its acceptor counts as hung",
    value: 2.0,
    origin: "own guess: one may be left over from a program that checked whether the socket exists",
};

const TURNED_AWAY: Threshold = Threshold {
    name: "connections that failed with EAGAIN, per second",
    value: 1.0,
    origin: "measured by `cargo xtask faults --random 40 --seed 20004 --layer host`: a queue of 13 that was full for less than a millisecond, five times \
        a second, failed 3 % of the requests of nginx; a single one in the window may have been the start of a service",
};

/// `unix-listen-overflow`
pub(crate) static RULE: Rule = Rule {
    id: "unix-listen-overflow",
    topic: "process",
    summary: "the accept queue of a Unix socket is full",
    needs: &[
        &keys::SCHED_PROCESS_NAME,
        &keys::UNIX_ACCEPTS,
        &keys::UNIX_BACKLOG,
        &keys::UNIX_FULL,
        &keys::UNIX_PROCESS,
        &keys::UNIX_TURNED_AWAY,
        &keys::UNIX_WAITING,
    ],
    thresholds: &[FULL, PILE, MOVES, LEFT, TURNED_AWAY],
    knobs: &["net.somaxconn", "rpc.backlog", "rpc.threads"],
    measure: Some(Measure::more(&keys::UNIX_FULL)),
    doc: Doc {
        looks_for: "A listening Unix socket with more connections in its queue than its backlog in 2 % of the samples, while connections come and go, or a process whose connections to a Unix socket fail with EAGAIN once a second or more. One connection or more on average is watched, and so are two in a queue that does not change.",
        hurts: "A caller that does not block, such as nginx, gets EAGAIN and answers 502 at once; all others wait. No counter records it, and the application does not notice.",
        todo: "If the application keeps up otherwise, lengthen the queue for bursts: listen.backlog of PHP-FPM, --backlog of Gunicorn, listen of uWSGI, and net.core.somaxconn, whichever is smaller. A queue that stays full needs more workers or faster ones.",
        wrong: "A stopped or busy acceptor fills any queue: a longer one only delays. A queue that never changes is only watched: abandoned connections look the same as a hung acceptor. The queue is sampled, and failed connections are counted for two seconds: a burst that is rarer than that may pass unseen.",
        sources: "unix_stream_connect and unix_recvq_full of net/unix/af_unix.c, Linux 6.18; unix(7), listen(2); php-fpm.conf, listen.backlog.",
    },
    judge,
};

fn judge(evidence: &Evidence) -> Judgement {
    let full = match evidence.each(&keys::UNIX_FULL) {
        Ok(full) => full,
        Err(missing) if missing.why.is_none => Vec::new(),
        Err(missing) => return Err(missing),
    };
    let mut findings = Vec::new();
    let mut most = 0.0_f64;
    for (socket, share) in full {
        most = most.max(share.value);
        let (Ok(waiting), Ok(backlog)) = (
            evidence.quantity(&keys::UNIX_WAITING, socket),
            evidence.quantity(&keys::UNIX_BACKLOG, socket),
        ) else {
            continue;
        };
        let whose = evidence
            .words(&keys::UNIX_PROCESS, socket)
            .map_or(String::new(), |owner| format!(" of {}", owner.value));
        let accepts = evidence.quantity(&keys::UNIX_ACCEPTS, socket).ok();
        let moves = accepts
            .as_ref()
            .is_some_and(|accepts| accepts.value >= MOVES.value);
        let overflows = share.value >= FULL.value && moves;
        // Where nothing comes and goes, one connection may have been left there; of several, none is accepted any more.
        let least = if moves { PILE.value } else { LEFT.value };
        if !overflows && waiting.value < least {
            continue;
        }
        let finding = if overflows {
            let sentence = format!(
                "the accept queue of {}{whose} (backlog {}) is full in {} of the samples: non-blocking callers, such as nginx, fail with EAGAIN",
                socket.name(),
                say::whole(backlog.value),
                say::percent(share.value)
            );
            Finding::act(socket, sentence)
                .severity(Grade::High)
                .consider("rpc.backlog")
                .consider("net.somaxconn")
        } else {
            let none = if accepts.is_some_and(|accepts| accepts.value == 0.0) {
                ", and none was accepted in the window"
            } else {
                ""
            };
            let sentence = format!(
                "{:.1} connections wait to be accepted at {}{whose} (mean; backlog {}){none}",
                waiting.value,
                socket.name(),
                say::whole(backlog.value)
            );
            Finding::watch(socket, sentence).severity(Grade::Medium)
        };
        findings.push(
            finding
                .confidence(Grade::High)
                .consider("rpc.threads")
                .cite(share.reading)
                .cite(waiting.reading)
                .cite(backlog.reading)
                .refuted_by("the error log of the proxy shows no EAGAIN (11: Resource temporarily unavailable)"),
        );
    }
    if !(findings.iter()).any(|finding| finding.outcome == Outcome::Act) {
        findings.extend(turned_away(evidence));
    }
    if findings.is_empty() {
        let clear = Finding::clear("no queue of a Unix socket is full");
        findings.push(clear.below(most, FULL.value));
    }
    Ok(findings)
}

/// The processes whose connections failed, where no sample met the full queue. The counter is optional depth: without it the samples remain.
fn turned_away(evidence: &Evidence) -> Vec<Finding> {
    let failed = evidence.each(&keys::UNIX_TURNED_AWAY).unwrap_or_default();
    let failed = failed
        .into_iter()
        .filter(|(_, rate)| rate.value >= TURNED_AWAY.value);
    let find = |(process, rate): (&Subject, Quantity<'_>)| {
        let name = evidence.words(&keys::SCHED_PROCESS_NAME, process);
        let name = name.map_or("process", |name| name.value);
        let sentence = format!(
            "connections of {name} {} to a Unix socket fail at {} because its accept queue is full (EAGAIN); no sample shows a full queue, so it is full for \
             milliseconds at a time",
            process.name(),
            say::rate(rate.value),
        );
        Finding::act(process, sentence)
            .severity(Grade::High)
            .confidence(Grade::High)
            .consider("rpc.backlog")
            .consider("net.somaxconn")
            .consider("rpc.threads")
            .cite(rate.reading)
            .refuted_by("the error log of the process shows no EAGAIN (11: Resource temporarily unavailable)")
    };
    failed.map(find).collect()
}
