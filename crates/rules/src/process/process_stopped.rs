//! `process-stopped`: a process is stopped by a signal.
//!
//! SIGSTOP and SIGTSTP stop a process until SIGCONT. Its sockets stay open, the kernel goes on accepting connections and data
//! for it, and they get no answer. A job stopped in a shell has a terminal; a daemon has none.
use rungwise_model::check::{Finding, Grade};
use rungwise_model::evidence::Evidence;
use rungwise_model::keys;

use super::{SERVICE, called, is_service, unix_queue};
use crate::rule::needs;
use crate::{Doc, Judgement, Rule, Threshold, say};

const CHILDREN: Threshold = Threshold {
    name: "most stopped processes reported one by one",
    value: 4.0,
    origin: "own guess: more of them are one incident",
};

pub(crate) static RULE: Rule = Rule {
    id: "process-stopped",
    topic: "process",
    summary: "a process is stopped by a signal",
    needs: needs!([&keys::PROCESS_STOPPED], SERVICE),
    thresholds: &[CHILDREN],
    knobs: &[],
    measure: None,
    doc: Doc {
        looks_for: "A process without a terminal that is in state T in every sample. The judged process, its children, and processes that answer on a port or have clients in the queue of their Unix socket: in state T in any sample.",
        hurts: "Its connections get no answer. If the service has several workers, some clients hang and the rest are fast.",
        todo: "kill -CONT PID, and find out who sent the signal: a supervisor, a batch system, a debugger that exited, a power-saving script, or cpulimit, which stops a process repeatedly.",
        wrong: "A job stopped with Ctrl-Z in a shell is no fault and is ignored, unless it answers on a port or a Unix socket. A Unix socket with an empty queue is not seen.",
        sources: "signal(7), proc(5), kill(1).",
    },
    judge,
};

fn judge(evidence: &Evidence) -> Judgement {
    let states = evidence.each_words(&keys::PROCESS_STOPPED)?;
    let mut stopped: Vec<_> = states
        .iter()
        .filter(|(process, state)| match state.value {
            "without a terminal" => true,
            "with a terminal" | "now and then" => is_service(evidence, process.name()),
            _ => false,
        })
        .collect();
    if stopped.is_empty() {
        return Ok(vec![Finding::clear("no service and no daemon is stopped")]);
    }
    // Those with clients first: only a few are reported.
    stopped.sort_by_cached_key(|(process, _)| !is_service(evidence, process.name()));
    let more = stopped.len().saturating_sub(CHILDREN.value as usize);
    let mut findings: Vec<Finding> = stopped
        .iter()
        .take(CHILDREN.value as usize)
        .map(|(process, state)| {
            let (who, state_of) = (called(evidence, process), state.value);
            let sentence = match state_of {
                "now and then" => format!(
                    "{who} is repeatedly stopped by a signal (state T in some samples): its clients wait meanwhile"
                ),
                _ => format!(
                    "{who} is stopped by a signal (state T, {state_of}): its clients wait forever"
                ),
            };
            let queue = unix_queue(evidence, process.name());
            let sentence = match &queue {
                Some((socket, waiting)) if waiting.value >= 1.0 => format!(
                    "{sentence}; {} in the queue of {}",
                    say::whole(waiting.value.round()),
                    socket.name()
                ),
                _ => sentence,
            };
            let mut finding = Finding::act(process, sentence)
                .severity(Grade::High)
                .confidence(Grade::High)
                .cite(state.reading);
            if let Some((_, waiting)) = queue {
                finding = finding.cite(waiting.reading);
            }
            finding.refuted_by("`kill -CONT PID` changes nothing for its clients")
        })
        .collect();
    if let (true, Some(first)) = (more > 0, findings.first_mut()) {
        first.sentence = format!("{}; {more} more are stopped", first.sentence);
    }
    Ok(findings)
}
