//! Commands to redis and what speaks its protocol (Valkey, Dragonfly): each an array of strings, with one reply.

mod command;
mod parameters;
pub mod resp;

use std::fmt;
use std::sync::Arc;

pub use parameters::Parameters;

use command::Command;
use resp::{Kind, Reader};

use crate::stream::texts::{Dealt, Texts, Voice};
use crate::stream::{self, Around, Conversation, Cut, Protocol, Reply, Verdict};

/// What `rungwise explain redis` shows.
pub(super) const WORKLOAD: super::Workload = super::Workload {
    id: "redis",
    by_hand: true,
    summary: "Commands to redis (RESP2 or RESP3), each with one reply.",
    doc: "\
- **who**: `connections` connections over all `threads` ask one server, by TCP, TLS (`tls`) or a Unix socket (`unix:PATH`), after `AUTH` (`user`, `password`) and `SELECT` (`db`) where \
    they are given. Each has up to `depth` commands under way (`--pipeline` by hand).
- **messages**: `commands`, by hand `--command`, written as for redis-cli, with placeholders: `${counter}`, `${random:1..100}`, `${uuid}`, `${choice:a|b}`, `${bytes:100B}`, `${csv:NAME}` with the rows \
    of `data`. Several are chosen at random by their `weights`. The default is PING, which changes nothing.
- **when**: closed, so that each connection always has `depth` commands under way, or open, at a constant or changing rate that does not wait for the server.
- **until**: a time or a count; then it waits for the last replies, for one `timeout` at most.
- **reported**: rate, latency from the intended and from the actual start, values and nils, bytes, connections and reconnects, each command of several by itself, CPU per command, and whether \
    the generator spoiled the numbers. An error is no answer: it is counted by its first word (`reply_err`, `reply_moved`, `reply_loading`) and quoted. Errors within an array are not looked for.

In a scenario: `[workload]` with `kind = \"redis\"`. By hand: `rungwise load redis HOST:PORT`.",
    metrics: &["rate", "loss", "errors", "p50", "p99", "p99.9", "max"],
    changes: &["commands", "connections", "depth", "nagle", "resp3", "weights"],
    warmup: stream::WARMUP,
    measure: stream::MEASURE,
    quick: stream::QUICK,
};

/// Kinds of answers.
const ANSWERS: [&str; 2] = ["nils", "values"];

/// The commands of a load.
#[derive(Debug)]
pub(super) struct Redis {
    texts: Texts,
    all: Arc<Commands>,
}

/// What all connections send.
#[derive(Debug)]
pub(super) struct Commands {
    list: Vec<Command>,
    /// Their weights, each with those before it.
    weights: Vec<u64>,
    /// As they were written, where there are several.
    names: Vec<String>,
    /// In words.
    words: String,
    is_resp3: bool,
    /// What a connection begins with, and how many replies that gets.
    hello: (Vec<u8>, usize),
}

/// The talk on one connection.
#[derive(Debug)]
pub(super) struct Talk {
    all: Arc<Commands>,
    voice: Voice,
    room: Vec<u8>,
    reader: Reader,
}

impl fmt::Display for Redis {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.all.words)
    }
}

impl Protocol for Redis {
    type Talk = Talk;
    type Dealt = Dealt;

    fn name(&self) -> String {
        let version = if self.all.is_resp3 { "RESP3" } else { "RESP2" };
        version.to_owned()
    }

    fn requests(&self) -> &[String] {
        &self.all.names
    }

    fn answers(&self) -> &'static [&'static str] {
        &ANSWERS
    }

    fn remedy(&self) -> &'static str {
        "check --user, --password, --db and --resp3"
    }

    fn deal(&self) -> Dealt {
        self.texts.deal()
    }

    fn talk(&self, dealt: &Arc<Dealt>, seed: u64, number: usize) -> Talk {
        Talk {
            all: self.all.clone(),
            voice: self.texts.voice(dealt, seed, number),
            room: Vec::new(),
            reader: Reader::default(),
        }
    }
}

impl Conversation for Talk {
    fn begin(&mut self, to: &mut Vec<u8>) -> usize {
        self.reader.reset();
        let (bytes, replies) = &self.all.hello;
        to.extend_from_slice(bytes);
        *replies
    }

    #[inline]
    fn write(&mut self, _: u64, to: &mut Vec<u8>) -> usize {
        let Self {
            all, voice, room, ..
        } = self;
        let at = match &all.weights[..] {
            [_] => 0,
            weights => {
                let sum = weights.last().copied().unwrap_or(1);
                let drawn = voice.random.below(u128::from(sum));
                weights.partition_point(|weight| *weight <= drawn)
            }
        };
        all.list[at].write(voice, room, to);
        at
    }

    #[inline]
    fn read(&mut self, bytes: &[u8], around: &mut Around<'_>) -> Result<Cut, &'static str> {
        let (used, reply) = self.reader.read(bytes)?;
        let verdict = match reply {
            None | Some(Kind::Push) => return Ok(Cut { used, reply: None }),
            Some(Kind::Nil) => Verdict::Answer(Some(0)),
            Some(Kind::Value) => Verdict::Answer(Some(1)),
            Some(Kind::Error) => {
                let text = self.reader.text();
                let word = text.split(|byte| *byte == b' ').next();
                Verdict::Error(around.classes.of(word.unwrap_or_default(), text))
            }
        };
        let reply = Some(Reply { of: None, verdict });
        Ok(Cut { used, reply })
    }

    /// RESP3 has push messages.
    fn is_told_more(&self) -> bool {
        self.all.is_resp3
    }
}
