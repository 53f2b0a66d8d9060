//! `write-queue-grows`: a program keeps writing to connections that take no more, and its memory grows.
//!
//! The kernel's send buffer is limited. What a program writes beyond it waits in the program, and asynchronous frameworks (Netty, Node.js,
//! asyncio) put no limit on that unless they are told to. The queue itself cannot be seen from outside; that its process grows as long as
//! its connections are held up can.

use rungwise_model::check::{Finding, Grade};
use rungwise_model::evidence::{Evidence, Kind, Quantity, Subject, Unit};
use rungwise_model::evidence_text::number_of;
use rungwise_model::keys;

use super::connections::{self, CARRIES, FULL};
use crate::{Doc, Judgement, Measure, Rule, Threshold, process, say};

const HELD: Threshold = Threshold {
    name: "share of its busy time in which window or buffer holds a connection up",
    value: 0.50,
    origin: "own guess: it is held up more often than not",
};

const GROWS: Threshold = Threshold {
    name: "growth of the resident memory of its process in each part of the window, bytes per second",
    value: 1_048_576.0,
    origin: "own guess: a gigabyte in a quarter of an hour",
};

pub(crate) static RULE: Rule = Rule {
    id: "write-queue-grows",
    topic: "tcp",
    summary: "a process queues in its own memory what its connections do not take",
    needs: &[
        &keys::MEMORY_PROCESS_GROWTH,
        &keys::TCP_BYTES_SENT,
        &keys::TCP_ESTABLISHED,
        &keys::TCP_PROCESS,
        &keys::TCP_RWND_LIMITED,
        &keys::TCP_SENDQ,
        &keys::TCP_SENDQ_SHARE,
        &keys::TCP_SNDBUF_LIMITED,
    ],
    thresholds: &[HELD, FULL, GROWS, CARRIES],
    knobs: &[],
    measure: Some(Measure::more(&keys::MEMORY_PROCESS_GROWTH)),
    doc: Doc {
        looks_for: "A process whose resident memory grows by more than 1 MiB/s in each part of the window, while a connection on which it sends is \
            held up by the peer's window or its send buffer in more than half of its busy time, or has a send queue above 90 % of the buffer in every sample.",
        hurts: "The queue grows until the process has no more memory, and each message waits behind all that was written before it.",
        todo: "Stop writing while a connection takes no more: check Channel.isWritable and set WriteBufferWaterMark in Netty, wait for drain in Node.js and asyncio, \
            use a bounded queue elsewhere. Close connections whose peers stay slow. Then find out why the peer is slow: see tcp-rwnd-limited.",
        wrong: "The memory may grow for another reason: a cache that fills, or a heap that is used for the first time. A JVM whose heap is in use \
            already (-XX:+AlwaysPreTouch) shows a growing queue in its GC log only.",
        sources: "Netty, io.netty.channel.WriteBufferWaterMark; Node.js, stream.Writable (drain); Python, asyncio.StreamWriter.drain.",
    },
    judge,
};

fn judge(evidence: &Evidence) -> Judgement {
    let senders = connections::senders(evidence)?;
    let held: Vec<(&Subject, Quantity<'_>)> = senders
        .into_iter()
        .filter_map(|connection| Some((connection, holds(evidence, connection)?)))
        .collect();
    if held.is_empty() {
        let sentence = "no connection that sends is held up for most of its time";
        return Ok(vec![Finding::clear(sentence)]);
    }
    let owner = |connection: &Subject| {
        let owner = evidence.words(&keys::TCP_PROCESS, connection).ok()?;
        let pid = process::owner_pid(owner.value)?;
        Some((Subject::new(Kind::Process, pid), owner))
    };
    let growths = evidence.each(&keys::MEMORY_PROCESS_GROWTH)?;
    let fastest = growths
        .iter()
        .filter_map(|(subject, growth)| {
            let is_own = |connection: &Subject| {
                owner(connection).is_some_and(|(process, _)| process == **subject)
            };
            let own: Vec<_> = held.iter().filter(|(one, _)| is_own(one)).collect();
            (!own.is_empty()).then_some((*subject, *growth, own))
        })
        .max_by(|(_, a, _), (_, b, _)| a.value.total_cmp(&b.value));
    let Some((subject, growth, own)) = fastest else {
        let sentence = "the processes whose connections are held up are not among the largest";
        return Ok(vec![Finding::clear(sentence)]);
    };
    let (connection, holds) = own[0];
    let Some((_, owner)) = owner(connection) else {
        return Ok(vec![Finding::clear(
            "no process has these connections open",
        )]);
    };
    let grows = number_of(Unit::BytesPerSecond, growth.value);
    if !growth.always(|growth| growth > GROWS.value) {
        let sentence = format!(
            "{} has {} held up, and its memory grows by {grows}",
            owner.value,
            say::count(own.len() as f64, "connection")
        );
        let clear = Finding::clear(sentence).below(growth.value, GROWS.value);
        return Ok(vec![clear.cite(growth.reading)]);
    }
    let sentence = format!(
        "the memory of {} grows by {grows} while it writes to {} faster than it is taken{}",
        owner.value,
        connection.name(),
        connections::and_more(own.len() - 1)
    );
    // Both lines are guesses, and the queue itself is not seen.
    let mut finding = Finding::watch(subject, sentence)
        .severity(Grade::Medium)
        .confidence(Grade::Medium)
        .cite(growth.reading)
        .cite(holds.reading)
        .cite(owner.reading);
    if let Ok(sent) = evidence.quantity(&keys::TCP_BYTES_SENT, connection) {
        finding = finding.cite(sent.reading);
    }
    Ok(vec![finding.refuted_by(
        "the memory grows as fast when the peers read without delay",
    )])
}

/// What holds a connection up for most of its time.
fn holds<'e>(evidence: &'e Evidence, connection: &Subject) -> Option<Quantity<'e>> {
    let of = |key| evidence.quantity(key, connection).ok();
    let limited = |key| of(key).filter(|share| share.value > HELD.value);
    limited(&keys::TCP_RWND_LIMITED)
        .or_else(|| limited(&keys::TCP_SNDBUF_LIMITED))
        .or_else(|| {
            let share = of(&keys::TCP_SENDQ_SHARE)?;
            share.always(|share| share >= FULL.value).then_some(share)
        })
}
