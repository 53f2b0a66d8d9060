//! The workloads, one module each, sorted by id. Each is a `kind` of a scenario, and most are a word of `rungwise load`.

pub mod command;
pub mod connections;
pub mod dubbo;
pub mod http;
pub mod memcached;
pub mod redis;
pub mod tcp;
pub mod udp;

use std::time::Duration;

use clap::Subcommand;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::parameters::Traffic;

/// One kind of traffic.
#[derive(Debug)]
pub struct Workload {
    /// `kind` in the `[workload]` of a scenario, and the word after `rungwise load`.
    pub id: &'static str,
    /// It is a word of `rungwise load` too: rungwise itself drives it.
    pub by_hand: bool,
    /// What travels, in one sentence.
    pub summary: &'static str,
    /// Markdown: who talks to whom, message shapes, connections, arrival schedule, stop rule.
    pub doc: &'static str,
    /// Metrics that it reports, those of the CPUs aside, which each has.
    pub metrics: &'static [&'static str],
    /// Parameters that a rung of a ladder may change.
    pub changes: &'static [&'static str],
    /// Default warm-up, discarded at the start of every run of a ladder.
    pub warmup: Duration,
    /// Default measured length of every run.
    pub measure: Duration,
    /// The same for a first impression.
    pub quick: Duration,
}

/// Makes [`Parameters`] and [`WORKLOADS`] of one line per kind.
macro_rules! kinds {
    ($($(#[$attribute:meta])* $kind:ident($module:ident),)+) => {
        /// Parameters of a workload, by its kind.
        #[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema, Subcommand)]
        #[serde(tag = "kind", rename_all = "kebab-case")]
        pub enum Parameters {
            $($(#[$attribute])* $kind($module::Parameters),)+
        }

        /// All workloads, sorted by id.
        pub static WORKLOADS: &[&Workload] = &[$(&$module::WORKLOAD,)+];

        impl Parameters {
            /// What all kinds provide.
            pub fn traffic(&self) -> &dyn Traffic {
                match self {
                    $(Self::$kind(parameters) => parameters,)+
                }
            }
        }
    };
}

kinds! {
    /// Any program that loads the service.
    #[command(skip)]
    Command(command),
    /// Very many TCP connections that are opened at a rate and held open, with pings, messages to all, reconnect storms, slow readers and half-open peers.
    ///
    /// They are held for --for, or --hold [default: 30s], from when all are established or have failed. The limits of this host (descriptors, ports, memory and others)
    /// are computed before the first connect. Exits with 0 if the measurement is certified, 3 if not or if it is a part of what was asked for, 4 if a limit does not
    /// suffice or no connection is established, 130 after Ctrl-C, with what was measured until then.
    #[command(disable_version_flag = true)]
    Connections(connections),
    /// Calls of a Dubbo service by the protocol of Dubbo 2.x, with one reply each.
    ///
    /// Without --rate or --ramp the loop is closed: connections x depth calls are always under way. A reply with a status or an exception is an
    /// error and no answer. Exits with 0 if the measurement is certified, 3 if not, 4 if there is no reply.
    #[command(disable_version_flag = true)]
    Dubbo(dubbo),
    /// HTTP/1.1 requests, by TLS or without, each with one response.
    ///
    /// Without --rate or --ramp the loop is closed: each connection always has a request under way. A response that --expect does not
    /// accept is an error and no answer. Exits with 0 if the measurement is certified, 3 if not, 4 if there is no response.
    Http(http),
    /// Requests to memcached (get, set) with one reply each.
    ///
    /// Without --rate or --ramp the loop is closed: connections x depth requests are always under way. A miss is an answer; an error is none. Exits
    /// with 0 if the measurement is certified, 3 if not, 4 if there is no reply.
    Memcached(memcached),
    /// Commands to redis, or what speaks its protocol, with one reply each.
    ///
    /// Without --rate or --ramp the loop is closed: connections x depth commands are always under way. An error is no answer. Exits with 0 if the
    /// measurement is certified, 3 if not, 4 if there is no reply.
    Redis(redis),
    /// Requests over TCP with one reply each, in frames of a fixed length, with a length before them, or with a delimiter after them.
    ///
    /// Without --rate or --ramp the loop is closed: connections x depth requests are always under way. A reply that is not as --reply says is an
    /// error and no answer. Exits with 0 if the measurement is certified, 3 if not, 4 if there is no reply.
    Tcp(tcp),
    /// UDP requests with one reply each: numbered datagrams that the server echoes, DNS queries, or any payload.
    ///
    /// Without --rate or --ramp the loop is closed: threads x sockets x depth requests are always outstanding. Exits with 0 if the
    /// measurement is certified, 3 if not, 4 if there is no reply.
    Udp(udp),
}

impl Workload {
    /// The kind of this id.
    pub fn by_id(id: &str) -> Option<&'static Self> {
        WORKLOADS.iter().copied().find(|kind| kind.id == id)
    }

    /// What `rungwise explain` shows, as Markdown.
    pub fn page(&self) -> String {
        let Self {
            id, summary, doc, ..
        } = self;
        format!("# {id}\n\n{summary}\n\n{doc}\n")
    }
}
