//! The stub of a workload: `crates/load/src/workloads/<id>.rs`, which drives a server as it is, its `mod` line and its registry
//! entry: two files.

use anyhow::Result;

use super::{Draft, STUB, enter, module, word};

const LIST: &str = "crates/load/src/workloads/mod.rs";

const WORKLOAD: &str = r#"//! `{ID}`: {STUB}, what this is, the idea, the source.
//!
//! As written here it asks a server for a line a request, one at a time on each connection: {STUB}, the protocol. A kind with
//! many requests under way is an `engine::Kind` with a driver of its own, as `udp` is.

use std::io::{BufRead as _, BufReader, Write as _};
use std::net::TcpStream;

use rungwise_model::load::Second;

use crate::Error;
use crate::engine::alone::{self, Exchange, Failure, Reply};
use crate::engine::{Completed, Hooks, Plan};

pub(super) const WORKLOAD: super::Workload = super::Workload {
    id: "{ID}",
    summary: "{STUB}: what travels",
    by_hand: false,
    doc: "{STUB}: who talks to whom, message shapes, connections, arrival schedule, stop rule",
};

/// Who is asked what, how often, by whom.
#[derive(Clone, Debug)]
pub struct Workload {
    /// Who is asked, when and for how long.
    pub plan: Plan,
    /// {STUB}: what the requests of this kind are.
    pub request: String,
}

/// Drives `workload` and measures it; each second of the window goes to `each_second` soon after it has passed.
pub fn run(
    workload: &Workload,
    hooks: &Hooks,
    each_second: &mut dyn FnMut(&Second),
) -> Result<Completed, Error> {
    alone::run(workload, hooks, each_second)
}

impl Exchange for Workload {
    type Connection = BufReader<TcpStream>;

    fn plan(&self) -> Plan {
        self.plan.clone()
    }

    fn contradiction(&self) -> Option<String> {
        // {STUB}: which parameters cannot be driven, and what would be right.
        None
    }

    fn failures(&self) -> &'static [&'static str] {
        &["closed"]
    }

    fn connect(&self, _thread: usize) -> Result<Self::Connection, Error> {
        let connect = || {
            let stream = TcpStream::connect_timeout(&self.plan.target, self.plan.timeout)?;
            stream.set_nodelay(true)?;
            stream.set_read_timeout(Some(self.plan.timeout))?;
            Ok(BufReader::new(stream))
        };
        connect().map_err(|error| Error::Socket {
            step: "connect",
            target: self.plan.target,
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
    use std::time::Duration;

    use super::*;
    use crate::engine::{Arrival, Edge, Stop};

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
        let workload = Workload {
            plan: Plan {
                target,
                threads: 1,
                pins: None,
                arrival: Arrival::Closed,
                timeout: Duration::from_secs(1),
                warmup: Duration::ZERO,
                stop: Stop::Count(100),
            },
            request: "hello".to_owned(),
        };
        let hooks = Hooks {
            thread_start: &|_| Ok(()),
            window: &|_: Edge| {},
            interrupted: &AtomicBool::new(false),
        };
        let measured = run(&workload, &hooks, &mut |_| {}).unwrap().measurement;
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
        enter(
            text,
            &module,
            "WORKLOADS: &[&Workload] = &[",
            &format!("&{module}::WORKLOAD"),
        )
    })
}
