//! Calls of a Dubbo service over TCP by the protocol of Dubbo 2.x, which 3.x speaks too: the same call each time, encoded once.

mod parameters;
mod talk;
mod values;

use std::fmt;
use std::sync::Arc;

use rungwise_dubbo::{Limits, Template, hessian};

pub use parameters::Parameters;
pub use values::{Arguments, Attachment, Types};

use self::talk::{ANSWERS, EVENTS, Talk};
use crate::stream::{self, Protocol};

/// What `rungwise explain dubbo` shows.
pub(super) const WORKLOAD: super::Workload = super::Workload {
    id: "dubbo",
    by_hand: true,
    summary: "Calls of a Dubbo service over TCP (protocol dubbo, hessian2), each with one reply, in any order.",
    doc: "\
- **who**: `connections` connections over all `threads` call one provider. Each has up to `depth` calls under way; replies are matched by their ids. So many callers that \
    share connections, as threads of a Java consumer do, are `connections` x `depth`: 100 callers on 4 connections are a depth of 25.
- **messages**: the `method` of a `service` (with `version` and `group`), with arguments from JSON (`args`, and `types` where they are not all strings) or one string of `arg_string_size` letters. \
    The call is encoded once; no argument differs from call to call. Attachments are those of a Java consumer, and each `attachment`.
- **when**: closed, so that each connection always has `depth` calls under way, or open, at a constant or changing rate that does not wait for the provider.
- **until**: a time or a count; then it waits for the last replies, for one `timeout` at most.
- **reported**: rate, latency from the intended and from the actual start, bytes, connections and reconnects, time to connect, CPU per call, and whether the generator \
    spoiled the numbers. A reply is an answer if it has a value or null. Every other one is an error and no answer, counted by its status (`reply_thread_pool_exhausted`, \
    `reply_service_error`) or by the class of its exception, with the provider's own words. Heartbeats are answered and counted apart, as is a provider that announces its shutdown (`read_only`).

In a scenario: `[workload]` with `kind = \"dubbo\"`. By hand: `rungwise load dubbo HOST:PORT --service NAME --method NAME`.",
    metrics: &["rate", "loss", "errors", "p50", "p99", "p99.9", "max"],
    changes: &["arg_string_size", "args", "connections", "depth", "nagle"],
    warmup: stream::WARMUP,
    measure: stream::MEASURE,
    quick: stream::QUICK,
};

/// Calls of one method.
#[derive(Debug)]
pub(super) struct Calls {
    shape: Arc<Shape>,
}

/// What all connections send and accept.
#[derive(Debug)]
struct Shape {
    request: Template,
    /// Longest body of a reply, bytes.
    payload: u32,
    /// The request in words: `82-byte calls of demo.HelloService.sayHello(java.lang.String)`.
    words: String,
}

impl fmt::Display for Calls {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.shape.words)
    }
}

impl Protocol for Calls {
    type Talk = Talk;
    type Dealt = ();

    fn name(&self) -> String {
        "Dubbo2, hessian2".to_owned()
    }

    fn answers(&self) -> &'static [&'static str] {
        &ANSWERS
    }

    fn events(&self) -> &'static [&'static str] {
        &EVENTS
    }

    fn is_numbered(&self) -> bool {
        true
    }

    fn deal(&self) {}

    fn talk(&self, _: &Arc<()>, _: u64, _: usize) -> Talk {
        Talk::new(self.shape.clone(), hessian::Skipper::new(Limits::default()))
    }
}
