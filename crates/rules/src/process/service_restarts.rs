//! `service-restarts`: a service restarts repeatedly.
//!
//! Between an exit and the next start no process listens on its port, so its clients are refused, and requests in progress are lost. A supervisor
//! that restarts it at once hides the exit from any list of processes.
use rungwise_model::check::{Finding, Grade};
use rungwise_model::evidence::Evidence;
use rungwise_model::keys;

use crate::tcp::tcp_port_closed;
use crate::{Doc, Judgement, Measure, Rule, Threshold, say};

const AGAIN: Threshold = Threshold {
    name: "times in a window that a different socket starts to listen on the port",
    value: 2.0,
    origin: "own guess: one change is a deployment, two in a window of seconds are a loop",
};

const ONCE: Threshold = Threshold {
    name: "the same, from which on it is watched",
    value: 1.0,
    origin: "by definition: a different socket listens than before",
};

pub(crate) static RULE: Rule = Rule {
    id: "service-restarts",
    topic: "process",
    summary: "a service restarts repeatedly, or has just restarted",
    needs: &[
        &keys::LISTEN_CHANGES,
        &keys::LISTEN_GAP,
        &keys::LISTEN_PROCESS,
        &keys::TCP_ATTEMPTS_FAILED,
        &keys::TCP_CONNECTS,
        &keys::TCP_LISTEN_OVERFLOWS,
        &keys::TCP_OPENED,
        &keys::TCP_RESETS_SENT,
        &keys::TCP_RESET_UNREAD,
    ],
    thresholds: &[AGAIN, ONCE],
    knobs: &[],
    measure: Some(Measure::more(&keys::LISTEN_CHANGES)),
    doc: Doc {
        looks_for: "A TCP address whose listening socket is replaced twice in the window or more, or once while connections are refused, with a gap in which no socket listened. Anything less is watched.",
        hurts: "Connections are refused in between, requests in progress are lost, caches are cold, and a JVM starts without compiled code.",
        todo: "Find out why it exits: journalctl -u UNIT, the last lines of its log, dmesg for \"Out of memory\" or \"segfault\", coredumpctl, the exit code in `systemctl status` or `kubectl describe pod`.",
        wrong: "A deployment or a restart on purpose is one change. A reload in which the next process takes over the port (SO_REUSEPORT) is a change without a gap. A program that opens a port for each job, as passive FTP does, rarely gets the same port twice.",
        sources: "inet_csk_listen_start of net/ipv4/inet_connection_sock.c, Linux 6.18; systemd.service(5), Restart=.",
    },
    judge,
};

fn judge(evidence: &Evidence) -> Judgement {
    let changes = match evidence.each(&keys::LISTEN_CHANGES) {
        Ok(changes) => changes,
        Err(missing) if missing.why.is_none => Vec::new(),
        Err(missing) => return Err(missing),
    };
    let clients_refused = tcp_port_closed::refused(evidence);
    let mut findings = Vec::new();
    for (port, times) in changes {
        if times.value < ONCE.value {
            continue;
        }
        let who = evidence
            .words(&keys::LISTEN_PROCESS, port)
            .map_or(String::new(), |owner| format!(", now {}", owner.value));
        let gap = evidence.quantity(&keys::LISTEN_GAP, port).ok();
        let refused = gap
            .filter(|gap| gap.value > 0.0)
            .map_or(String::new(), |gap| {
                format!(
                    "; no process listened in {} of the samples",
                    say::percent(gap.value)
                )
            });
        let number = port.name().trim_start_matches("tcp/");
        let met = clients_refused.filter(|_| !refused.is_empty());
        let clients = met.map_or(String::new(), |rate| {
            format!(", and {} connections were refused", say::rate(rate))
        });
        let again = times.value >= AGAIN.value;
        let often = if again {
            format!(" {} times", say::whole(times.value))
        } else {
            String::new()
        };
        let sentence = format!(
            "the service on {number} restarted{often} in the window{who}{refused}{clients}"
        );
        // Once is a deployment, if its clients did not meet the gap; without one a process hands over to the next.
        let finding = if (again || met.is_some()) && !refused.is_empty() {
            Finding::act(port, sentence).severity(Grade::High)
        } else {
            Finding::watch(port, sentence).severity(Grade::Medium)
        };
        let finding = finding
            .confidence(Grade::High)
            .cite(times.reading)
            .refuted_by(
                "the process on the port has had the same start time for an hour (ps -o lstart)",
            );
        findings.push(match gap {
            Some(gap) => finding.cite(gap.reading),
            None => finding,
        });
    }
    if findings.is_empty() {
        let clear = Finding::clear("every TCP port kept its listening socket");
        findings.push(clear.below(0.0, AGAIN.value));
    }
    Ok(findings)
}
