//! The stub of a workload: `crates/load/src/workloads/<id>.rs`, which drives a server as it is, its `mod` line and its registry
//! entry: two files.

use anyhow::{Context as _, Result};

use super::{Draft, STUB, add_mod, module, word};

const LIST: &str = "crates/load/src/workloads/mod.rs";

/// Where the list of kinds begins in it.
const OPENING: &str = "\nkinds! {";

const WORKLOAD: &str = r#"//! `{ID}`: {STUB}, what this is, the idea, the source.
//!
//! This stub requests one line at a time on each connection: {STUB}, the protocol. A kind with many outstanding requests is an
//! `engine::Kind` with a driver of its own, as `udp` is.

use std::fmt;
use std::io::{BufRead as _, BufReader, Write as _};
use std::net::TcpStream;
use std::time::Duration;

use rungwise_model::load::Second;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::Error;
use crate::engine::alone::{self, Exchange, Failure, Reply};
use crate::engine::{Completed, Hooks, Plan};
use crate::parameters::{
    Contradiction, Driven, Length, Load, Probe, Schedule, Site, Traffic, WrittenTarget,
};
use crate::values::Rate;

pub(super) const WORKLOAD: super::Workload = super::Workload {
    id: "{ID}",
    summary: "{STUB}: what travels",
    by_hand: true,
    doc: "{STUB}: who talks to whom, message shapes, connections, arrival schedule, stop rule",
    metrics: &["rate", "loss", "errors", "p50", "p99", "p99.9", "max"],
    changes: &["request"],
    warmup: Duration::from_millis(100),
    measure: Duration::from_millis(300),
    quick: Duration::from_millis(120),
};

/// {STUB}: what travels.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema, clap::Args)]
#[schemars(inline)]
pub struct Parameters {
    /// The server: `ADDRESS:PORT` or `NAME:PORT`; in a scenario an address, or `{server}:9000`.
    pub target: String,
    /// {STUB}: what the requests of this kind are.
    #[arg(long, default_value_t = request())]
    #[serde(default = "request")]
    pub request: String,
    /// When requests are sent, by how many threads, and the timeout.
    #[command(flatten)]
    #[serde(flatten)]
    pub schedule: Schedule,
}

fn request() -> String {
    "hello".to_owned()
}

/// Target, requests, schedule and threads.
#[derive(Clone, Debug)]
struct Asking {
    plan: Plan,
    request: String,
}

impl Traffic for Parameters {
    fn kind(&self) -> &'static super::Workload {
        &WORKLOAD
    }

    fn target(&self) -> WrittenTarget<'_> {
        WrittenTarget::Address(&self.target)
    }

    fn contradictions(&self) -> Vec<Contradiction> {
        // {STUB}: which parameters contradict each other, and what would be right.
        self.schedule.contradictions()
    }

    fn driven(&self) -> Option<&dyn Driven> {
        Some(self)
    }
}

impl Driven for Parameters {
    fn schedule(&self) -> &Schedule {
        &self.schedule
    }

    fn paced(&self, rate: Option<Rate>) -> Box<dyn Driven> {
        let schedule = self.schedule.paced(rate);
        Box::new(Self { schedule, ..self.clone() })
    }

    fn prepare(&self, site: &Site<'_>) -> Result<Box<dyn Load>, Error> {
        Ok(Box::new(Asking {
            plan: self.schedule.plan(site, &Length::ANY),
            request: self.request.clone(),
        }))
    }
}

impl Load for Asking {
    fn probe(&self) -> Probe {
        Probe::Connection
    }

    fn run(
        &self,
        length: &Length,
        hooks: &Hooks<'_>,
        each_second: &mut dyn FnMut(&Second),
    ) -> Result<Completed, Error> {
        let mut asking = self.clone();
        asking.plan.warmup = length.warmup;
        asking.plan.stop = length.stop;
        alone::run(&asking, hooks, each_second)
    }
}

impl fmt::Display for Asking {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "requests to {}, {} threads", self.plan.target, self.plan.threads)
    }
}

impl Exchange for Asking {
    type Connection = BufReader<TcpStream>;

    fn plan(&self) -> Plan {
        self.plan.clone()
    }

    fn contradictions(&self) -> Vec<Contradiction> {
        Vec::new()
    }

    fn failures(&self) -> &'static [&'static str] {
        &["closed"]
    }

    fn connect(&self, _thread: usize) -> Result<Self::Connection, Error> {
        let connect = || {
            let target = self.plan.target.address();
            let target = target.expect("requests go to an address and a port");
            let stream = TcpStream::connect_timeout(&target, self.plan.timeout)?;
            stream.set_nodelay(true)?;
            stream.set_read_timeout(Some(self.plan.timeout))?;
            Ok(BufReader::new(stream))
        };
        connect().map_err(|error| Error::Socket {
            step: "connect",
            target: self.plan.target.clone(),
            source_ip: None,
            error,
            remedy: "start the server, or correct the port",
        })
    }

    fn exchange(&self, connection: &mut Self::Connection, _number: u64) -> Result<Reply, Failure> {
        let request = format!("{}\n", self.request);
        let sent = connection.get_mut().write_all(request.as_bytes());
        sent.map_err(|_| Failure::NotSent)?;
        let mut reply = String::new();
        match connection.read_line(&mut reply) {
            Ok(0) => Err(Failure::Named(0)),
            // {STUB}: which replies are errors.
            Ok(_) => Ok(Reply::Answer),
            Err(_) => Err(Failure::Silent),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::net::TcpListener;
    use std::sync::atomic::AtomicBool;

    use super::*;
    use crate::engine::{Edge, Stop};

    #[test]
    fn every_request_to_a_server_on_loopback_is_answered() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let target = listener.local_addr().unwrap();
        let server = std::thread::spawn(move || {
            let (stream, _) = listener.accept().unwrap();
            let mut reader = BufReader::new(stream);
            let mut line = String::new();
            let mut asked = 0;
            while reader.read_line(&mut line).is_ok_and(|bytes| bytes > 0) {
                reader.get_mut().write_all(line.as_bytes()).unwrap();
                line.clear();
                asked += 1;
            }
            asked
        });
        let written = format!("{{\"target\": \"{target}\", \"threads\": 1}}");
        let parameters: Parameters = serde_json::from_str(&written).unwrap();
        let site = Site {
            target: target.into(),
            ..Site::ANY
        };
        let load = parameters.prepare(&site).unwrap();
        let length = Length {
            stop: Stop::Count(100),
            ..Length::ANY
        };
        let hooks = Hooks {
            thread_start: &|_| Ok(()),
            window: &|_: Edge| {},
            interrupted: &AtomicBool::new(false),
            turns: None,
        };
        let completed = load.run(&length, &hooks, &mut |_| {}).unwrap();
        let measured = completed.measurement;
        assert_eq!((measured.sent, measured.received), (100, 100));
        assert_eq!(server.join().unwrap(), 100);
    }
}
"#;

pub(super) fn write(draft: &mut Draft<'_>, id: &str) -> Result<()> {
    word(id, "rpc-echo")?;
    let module = module(id);
    let text = WORKLOAD.replace("{STUB}", STUB).replace("{ID}", id);
    draft.create(format!("crates/load/src/workloads/{module}.rs"), text)?;
    draft.edit(LIST, "", |text| {
        enter_kind(&add_mod(text, &module)?, id, &module)
    })
}

/// Adds the line of a kind in order to `kinds!`.
fn enter_kind(text: &str, id: &str, module: &str) -> Result<String> {
    let variant: String = id.split('-').map(capitalised).collect();
    let (before, rest) = text.split_once(OPENING).context("no list of kinds")?;
    let (inside, after) = rest
        .split_once("\n}\n")
        .context("the list of kinds has no end")?;
    let mut kinds: Vec<String> = Vec::new();
    let mut kind = String::new();
    for line in inside.lines().filter(|line| !line.is_empty()) {
        kind += line;
        kind.push('\n');
        if line.ends_with("),") {
            kinds.push(std::mem::take(&mut kind));
        }
    }
    kinds.push(format!(
        "    /// {STUB}: what travels.\n    {variant}({module}),\n"
    ));
    let name = |kind: &String| kind.lines().last().map(|line| line.trim().to_owned());
    kinds.sort_by_key(name);
    let kinds = kinds.concat();
    Ok(format!("{before}{OPENING}\n{kinds}}}\n{after}"))
}

fn capitalised(word: &str) -> String {
    let mut chars = word.chars();
    chars.next().map_or_else(String::new, |first| {
        first.to_uppercase().chain(chars).collect()
    })
}
