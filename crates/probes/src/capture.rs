//! A capture: the raw texts and answers of one window, as they were read.
//!
//! A moment is one sample of the machine. Settings are in the last moment only, counters in the first and the last, and
//! quickly changing values in all of them. Nothing is interpreted here: a file that could not be read is kept with the
//! reason.

use std::collections::BTreeMap;

use rungwise_model::kernel::{Answer, TcpSocket};
use rungwise_model::machine::Machine;
use rungwise_model::service::ServicePort;
use serde::{Deserialize, Serialize};

/// Everything that was read in one window.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Capture {
    /// The machine.
    pub machine: Machine,
    /// Start of the first full sample, RFC 3339 in UTC; none if it was not recorded, as in a host in texts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub taken: Option<String>,
    /// The judged process, if any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub process: Option<Process>,
    /// The process that took the samples, whose own threads are not read; none in a capture of an earlier version.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sampler: Option<u32>,
    /// The service whose connections were sampled, if one was named.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub service: Option<Service>,
    /// Full samples, at least one, oldest first.
    pub moments: Vec<Moment>,
    /// Samples taken often between the full ones, oldest first: connections, and what the threads of services do.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub samples: Vec<Moment>,
}

impl Capture {
    /// Full samples and those between them, to change their contents.
    pub(crate) fn all_mut(&mut self) -> impl Iterator<Item = &mut Moment> {
        self.moments.iter_mut().chain(&mut self.samples)
    }
}

/// The judged process.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Process {
    /// Process id.
    pub pid: u32,
    /// Its name.
    pub name: String,
}

/// A service and its connections, sampled often.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Service {
    /// Its ports.
    pub ports: Vec<ServicePort>,
    /// Samples between the full ones and beside the first and the last, oldest first.
    pub samples: Vec<ServiceSample>,
}

/// One sample of the connections of a service.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ServiceSample {
    /// Seconds since the first full sample.
    pub at_s: f64,
    /// Their ends in this network namespace; of very many connections some.
    pub sockets: Vec<TcpSocket>,
    /// Sockets of the service in other network namespaces of this machine that have far ends.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub elsewhere: Vec<TcpSocket>,
}

/// One sample of the machine.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Moment {
    /// Seconds since the first sample.
    pub at_s: f64,
    /// Files by path.
    pub files: BTreeMap<String, Raw>,
    /// Answers by question, and results of samplers: `tcp`, `devices`, `stacks`, `events`.
    #[serde(default)]
    pub answers: BTreeMap<String, Reply>,
}

/// A file as it was read.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Raw {
    /// Its text; bytes that are not UTF-8 are replaced.
    Text(String),
    /// Why it could not be read.
    Failed {
        /// `ENOENT`, `EACCES`, `EINVAL`, ...; or what else went wrong.
        failed: String,
    },
}

/// An answer as received.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Reply {
    /// Why there is none: `EPERM`, `EOPNOTSUPP`, ...; or what else went wrong.
    Failed(String),
    /// The answer.
    Answer(Answer),
}
