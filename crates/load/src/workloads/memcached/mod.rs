//! Values stored in memcached and asked for again, by its text protocol.

mod parameters;
pub mod text;

use std::fmt;
use std::io::Write as _;
use std::sync::Arc;

pub use parameters::Parameters;

use text::{Asked, Kind, Reader};

use crate::stream::{self, Around, Conversation, Cut, Protocol, Reply, Verdict};
use crate::template::Random;

/// What `rungwise explain memcached` shows.
pub(super) const WORKLOAD: super::Workload = super::Workload {
    id: "memcached",
    by_hand: true,
    summary: "Values stored in memcached and asked for again (text protocol), each request with one reply.",
    doc: "\
- **who**: `connections` connections over all `threads` ask one server, by TCP, TLS (`tls`) or a Unix socket (`unix:PATH`). Each has up to `depth` requests under way, whose \
    replies come in their order.
- **messages**: `get` and `set` at random, in the ratio of `gets` to `sets`, of `keys` keys that begin with `key_prefix`, each as likely as any other. A value has \
    `value_size` bytes and expires after `expire`.
- **when**: closed, so that each connection always has `depth` requests under way, or open, at a constant or changing rate that does not wait for the server.
- **until**: a time or a count; then it waits for the last replies, for one `timeout` at most.
- **reported**: rate, latency from the intended and from the actual start, of `get` and `set` by themselves, hits and misses, bytes, connections and reconnects, CPU per request, and \
    whether the generator spoiled the numbers. A miss is an answer. An error is none: it is counted by its first word (`reply_server_error`) and quoted.

In a scenario: `[workload]` with `kind = \"memcached\"`. By hand: `rungwise load memcached HOST:PORT`.",
    metrics: &["rate", "loss", "errors", "p50", "p99", "p99.9", "max"],
    changes: &["connections", "depth", "gets", "keys", "nagle", "sets", "value_size"],
    warmup: stream::WARMUP,
    measure: stream::MEASURE,
    quick: stream::QUICK,
};

/// Kinds of answers.
const ANSWERS: [&str; 3] = ["hits", "misses", "stored"];

/// The requests of a load.
#[derive(Debug)]
pub(super) struct Memcached(Arc<Requests>);

/// What all connections send.
#[derive(Debug)]
pub(super) struct Requests {
    gets: u32,
    sets: u32,
    keys: u64,
    prefix: String,
    /// What follows the key of a `set`.
    value: Vec<u8>,
    size: usize,
    /// `get` and `set`, where both are sent.
    names: Vec<String>,
}

/// The talk on one connection.
#[derive(Debug)]
pub(super) struct Talk {
    requests: Arc<Requests>,
    random: Random,
    reader: Reader,
}

impl fmt::Display for Memcached {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Requests {
            gets,
            sets,
            keys,
            size,
            ..
        } = &*self.0;
        write!(
            f,
            "{gets} get to {sets} set of {keys} keys with {size}-byte values"
        )
    }
}

impl Protocol for Memcached {
    type Talk = Talk;
    type Dealt = ();

    fn name(&self) -> String {
        "memcached, text protocol".to_owned()
    }

    fn requests(&self) -> &[String] {
        &self.0.names
    }

    fn answers(&self) -> &'static [&'static str] {
        &ANSWERS
    }

    fn deal(&self) {}

    fn talk(&self, _: &Arc<()>, seed: u64, number: usize) -> Talk {
        Talk {
            requests: self.0.clone(),
            random: Random::new(seed, number as u64),
            reader: Reader::default(),
        }
    }
}

impl Conversation for Talk {
    fn begin(&mut self, _: &mut Vec<u8>) -> usize {
        self.reader = Reader::default();
        0
    }

    #[inline]
    fn write(&mut self, _: u64, to: &mut Vec<u8>) -> usize {
        let Self {
            requests, random, ..
        } = self;
        let all = u128::from(requests.gets) + u128::from(requests.sets);
        let is_set = random.below(all) >= u64::from(requests.gets);
        let key = random.below(u128::from(requests.keys)) + 1;
        to.extend_from_slice(if is_set { b"set " } else { b"get " });
        to.extend_from_slice(requests.prefix.as_bytes());
        // A vector takes everything.
        let _ = write!(to, "{key}");
        to.extend_from_slice(if is_set { &requests.value } else { b"\r\n" });
        usize::from(is_set)
    }

    #[inline]
    fn read(&mut self, bytes: &[u8], around: &mut Around<'_>) -> Result<Cut, &'static str> {
        let asked = around.oldest.map(|name| match name {
            0 => Asked::Get,
            _ => Asked::Set,
        });
        let (used, reply) = self.reader.read(asked, bytes)?;
        let verdict = match reply {
            None => return Ok(Cut { used, reply: None }),
            Some(Kind::Hit) => Verdict::Answer(Some(0)),
            Some(Kind::Miss) => Verdict::Answer(Some(1)),
            Some(Kind::Stored) => Verdict::Answer(Some(2)),
            Some(Kind::Error { line }) => {
                let text = &bytes[used - line..used - 2];
                let word = text.split(|byte| *byte == b' ').next();
                Verdict::Error(around.classes.of(word.unwrap_or_default(), text))
            }
        };
        let reply = Some(Reply { of: None, verdict });
        Ok(Cut { used, reply })
    }
}
