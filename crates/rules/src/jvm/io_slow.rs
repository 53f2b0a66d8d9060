//! `io-slow`: single reads or writes of files or sockets take very long.

use rungwise_model::check::{Finding, Grade};
use rungwise_model::evidence::{Evidence, Missing, Subject};
use rungwise_model::keys;

use super::recordings;
use crate::{Doc, Judgement, Measure, Rule, Threshold};

const FILE: Threshold = Threshold {
    name: "seconds of the longest read, write or force of a file",
    value: 4.0,
    origin: "JDK Mission Control, FileReadRule and FileWriteRule: a warning from 4 s on",
};

const SOCKET: Threshold = Threshold {
    name: "seconds of the longest read or write of a socket",
    value: 2.0,
    origin: "JDK Mission Control, SocketReadRule and SocketWriteRule: a warning from 2 s on",
};

pub(crate) static RULE: Rule = Rule {
    id: "io-slow",
    topic: "jvm",
    summary: "single reads or writes of files or sockets take seconds",
    needs: &[
        &keys::RECORDING_FILE_LONGEST,
        &keys::RECORDING_FILE_PLACE,
        &keys::RECORDING_SOCKET_LONGEST,
        &keys::RECORDING_SOCKET_PLACE,
    ],
    thresholds: &[FILE, SOCKET],
    knobs: &[],
    measure: Some(Measure::more(&keys::RECORDING_FILE_LONGEST)),
    doc: Doc {
        looks_for: "A read, write or force of a file that took more than four seconds, or a read or write of a socket that took more than \
            two. The finding names the file or peer and the caller.",
        hurts: "A thread of the service does nothing meanwhile, and all that wait for what it holds do nothing either.",
        todo: "A file: look at its disk with `rungwise check` on the host, or write it in another thread. A socket: look at the peer; a \
            database or a service behind it is slow, or a timeout is missing.",
        wrong: "A thread that reads the next request of an idle connection waits as long as the client likes: a long socket read under a \
            server's connection handler is no fault. Console input waits for a person.",
        sources: "openjdk/jmc, rules of package io: file 4000 ms, socket 2000 ms.",
    },
    judge,
};

fn judge(evidence: &Evidence) -> Judgement {
    recordings::each(evidence, &keys::RECORDING_FILE_LONGEST, of_recording)
}

fn of_recording(evidence: &Evidence, recording: &Subject) -> Result<Finding, Missing> {
    let file = evidence.quantity(&keys::RECORDING_FILE_LONGEST, recording)?;
    let socket = evidence.quantity(&keys::RECORDING_SOCKET_LONGEST, recording)?;
    let ratio = |value: f64, line: &Threshold| value / line.value;
    let by_socket = ratio(socket.value, &SOCKET) > ratio(file.value, &FILE);
    let (longest, line, place) = if by_socket {
        (socket, SOCKET, &keys::RECORDING_SOCKET_PLACE)
    } else {
        (file, FILE, &keys::RECORDING_FILE_PLACE)
    };
    let time = format!("{:.2} s", longest.value);
    if longest.value <= line.value {
        let of = if by_socket { "socket" } else { "file" };
        let sentence = format!("the longest wait for a {of} is {time}");
        return Ok(Finding::clear(sentence)
            .below(longest.value, line.value)
            .cite(longest.reading));
    }
    let place = evidence.words(place, recording).ok();
    let what = place.map_or("I/O", |place| place.value);
    let finding = Finding::watch(recording, format!("{time} in one {what}"))
        .severity(Grade::Medium)
        .confidence(if by_socket { Grade::Low } else { Grade::High })
        .cite(longest.reading)
        .refuted_by(
            "the thread only waits for the next request of an idle connection, or for a person",
        );
    Ok(match place {
        Some(place) => finding.cite(place.reading),
        None => finding,
    })
}
