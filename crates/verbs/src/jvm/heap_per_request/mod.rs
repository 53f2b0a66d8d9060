//! Measures from outside how many bytes of heap one HTTP request costs; the application stays as it is.
//!
//! Requests run in blocks until three in a row cost the same (the JIT removes allocations for minutes, and a cache fills); these are the
//! answer. Then three windows follow, each between two forced collections: one without load, one with a request per connection, one with
//! as many requests as fit into Eden. In them both methods of [`meter`] measure the same requests. The first two are what is not a
//! request's own: background, and connections. Where the methods differ by more than their errors there is no answer.

mod arithmetic;
mod log;
mod meter;
mod verdict;
mod windows;

use std::sync::atomic::AtomicBool;
use std::time::Duration;

use anyhow::Context as _;
use rungwise_host::clock;
use rungwise_host::hotspot::Error as AttachError;
use rungwise_load::Parameters;
use rungwise_load::http::{Expect, Header, Method as Verb, Url};
use rungwise_load::parameters::Load;
use rungwise_load::values::{Rate, Time};
use rungwise_model::Exit;
use rungwise_model::capacity::Estimate;
use rungwise_model::heap_per_request::{Block, HeapPerRequestReport, Method, Occupied, Requests};
use rungwise_probes::jvm::Counted;

use self::arithmetic::settled;
use self::meter::{Filled, Meter, NotFilled};
use crate::documents::Document as _;
use crate::problem::Problem;
use crate::{Invocation, load};

/// Share of Eden that a window may fill; beyond it a collection would come between.
const FILL: f64 = 0.5;
/// Requests of the first window where nothing is known yet (JDK 8).
const FIRST: u64 = 500;
/// The wait without load; background work that comes less often is missed.
const IDLE: (Duration, Duration) = (Duration::from_millis(500), Duration::from_secs(10));

/// Measure how many bytes of heap one HTTP request costs, from outside the JVM.
///
/// Drives the service with blocks of requests, as `load http` does, and reads the allocation counters of the JVM before and after
/// each (JDK 11 and later). A second method, heap in use between two forced collections, checks the result; --no-collect leaves it out,
/// and a full collection is not forced on a service that others use. JDK 8 has the second method alone. Exit status: 0 done, 3 no answer
/// (the methods differ, blocks still differ, threads end with their counts, too many requests fail), 4 no such JVM, attach
/// disabled, or no reply.
#[derive(Debug, clap::Args)]
pub struct Request {
    /// Process id of the JVM: `HotSpot`, JDK 8 to 25, also in a container or of another user (as root).
    #[arg(value_name = "PID")]
    pub pid: u32,
    /// Where requests go: `http://ADDRESS:PORT/PATH`.
    #[arg(long, value_name = "URL")]
    pub load: Url,
    /// Method of the requests [default: GET, or POST with a body].
    #[arg(long, value_name = "METHOD")]
    pub method: Option<Verb>,
    /// A header line, `Name: value`; may be repeated.
    #[arg(long = "header", value_name = "NAME: VALUE")]
    pub headers: Vec<Header>,
    /// The body of each request: a file, or `text:TEXT`.
    #[arg(long, value_name = "FILE|text:TEXT")]
    pub body: Option<String>,
    /// Connections, each with one request at a time.
    #[arg(long, value_name = "N", default_value_t = 64)]
    pub connections: u32,
    /// Open a new connection for each request; its cost is then part of the request's.
    #[arg(long)]
    pub no_keepalive: bool,
    /// What makes a response an answer, `status=2xx,body~TEXT`; any other response is an error [default: status=200-399].
    #[arg(long, value_name = "CONDITIONS")]
    pub expect: Option<Expect>,
    /// Open loop at a constant rate, such as 500/s. Closed loop without it.
    #[arg(long, value_name = "RATE")]
    pub rate: Option<Rate>,
    /// A request without a reply fails after this time.
    #[arg(long, value_name = "TIME", default_value = "10s")]
    pub timeout: Time,
    /// Requests of a block.
    #[arg(long, value_name = "N", default_value_t = 20_000, value_parser = clap::value_parser!(u64).range(1..))]
    pub requests: u64,
    /// Most blocks; a JVM whose blocks still differ then gives no settled answer.
    #[arg(long, value_name = "N", default_value_t = 12, value_parser = clap::value_parser!(u64).range(3..=1000))]
    pub blocks: u64,
    /// Force no collections: only the thread counters measure, and nothing checks them.
    #[arg(long)]
    pub no_collect: bool,
    /// Show how often young collections occur at this rate of requests, such as 5000/s.
    #[arg(long, value_name = "RATE", value_parser = super::gc::request_rate)]
    pub at: Option<f64>,
}

/// Drives the service and measures the JVM.
pub fn run(request: &Request, invocation: &Invocation<'_>) -> anyhow::Result<HeapPerRequestReport> {
    let started = clock::utc_now();
    let interrupt = invocation.interrupt()?;
    let meter = Meter::open(request.pid, &interrupt).map_err(attach)?;
    let parameters = request.parameters()?;
    let (load, target) = load::prepare(&parameters)?;
    let mut session = Session {
        request,
        meter,
        load: &*load,
        interrupted: &interrupt.flag(),
        say: &|line| invocation.say(line),
        requests: Requests::default(),
    };
    let mut notes = Vec::from_iter(load::elsewhere(&target, request.pid));
    let found = session.measure(&mut notes)?;
    let (exit, because) = match &found.because {
        None => (Exit::Done, None),
        Some(why) => (Exit::Inconclusive, Some(why.clone())),
    };
    let collections = request
        .at
        .and_then(|rate| session.collections(rate, &found, &mut notes));
    Ok(HeapPerRequestReport {
        envelope: invocation.envelope(HeapPerRequestReport::KIND, started, exit),
        target: format!("pid {}", request.pid),
        load: load.to_string(),
        jvm: session.meter.version.clone(),
        collector: session.meter.collector.map(|it| it.name().to_owned()),
        bytes_per_request: found.answer,
        because,
        notes,
        methods: found.methods,
        occupied: found.occupied,
        blocks: found.blocks,
        steady: found.steady,
        background_bytes_per_s: found.background,
        connection_bytes: found.connection,
        requests: session.requests,
        collections,
    })
}

impl Request {
    /// Requests that belong to opening the connections: the first of each, unless each has its own.
    fn first(&self) -> u64 {
        if self.no_keepalive {
            0
        } else {
            u64::from(self.connections)
        }
    }

    /// As `load http` takes them. By way of its file format: parameters that this verb does not have keep their defaults.
    fn parameters(&self) -> anyhow::Result<Parameters> {
        let mut fields = serde_json::json!({
            "kind": "http",
            "url": self.load,
            "headers": self.headers,
            "connections": self.connections,
            "no_keepalive": self.no_keepalive,
            "timeout": self.timeout,
        });
        let mut given = |key: &str, value: Option<serde_json::Value>| {
            if let Some(value) = value {
                fields[key] = value;
            }
        };
        given("method", self.method.as_ref().map(|it| it.0.clone().into()));
        given("body", self.body.clone().map(Into::into));
        given(
            "expect",
            self.expect.as_ref().map(|it| serde_json::json!(it)),
        );
        given("rate", self.rate.map(|it| serde_json::json!(it)));
        serde_json::from_value(fields).context("cannot make a load of these options")
    }
}

/// The exit code of a JVM that does not answer.
fn attach(error: AttachError) -> anyhow::Error {
    let exit = match error {
        AttachError::Interrupted { .. } => Exit::Interrupted,
        _ => Exit::Precondition,
    };
    Problem::with(exit, error)
}

/// What a load of so many requests did.
#[derive(Clone, Copy, Debug, Default)]
struct Sent {
    answered: u64,
    failed: u64,
    seconds: f64,
}

/// A window in which both methods measured.
#[derive(Clone, Copy, Debug)]
struct Window {
    sent: Sent,
    counted: Option<Counted>,
    filled: Option<Filled>,
}

/// The windows that both methods measured.
#[derive(Clone, Copy, Debug)]
struct Windows {
    idle: Window,
    first: Window,
    main: Window,
    /// How much more background a part of the idle window had than another, bytes; without counters, all that it had.
    noise: Option<f64>,
}

/// What came out.
#[derive(Debug, Default)]
struct Found {
    answer: Option<Estimate>,
    because: Option<String>,
    methods: Vec<Method>,
    occupied: Option<Occupied>,
    blocks: Vec<Block>,
    steady: bool,
    background: Option<Estimate>,
    /// Threads that ended in the measured blocks, and took their counts with them.
    lost_threads: u64,
    /// How far background varies, bytes in a second.
    noise: f64,
    connection: Option<Estimate>,
    unused: Option<f64>,
    /// Young collections during the measured blocks, and Eden meanwhile.
    young: Option<(u64, f64)>,
}

struct Session<'a> {
    request: &'a Request,
    meter: Meter,
    load: &'a dyn Load,
    interrupted: &'a AtomicBool,
    say: &'a dyn Fn(&str),
    requests: Requests,
}

impl Session<'_> {
    fn measure(&mut self, notes: &mut Vec<String>) -> anyhow::Result<Found> {
        let has_counters = self.meter.counters().map_err(attach)?.is_some();
        anyhow::ensure!(
            has_counters || !self.request.no_collect,
            Problem::with(
                Exit::Precondition,
                anyhow::anyhow!(
                    "cannot measure pid {}: this JDK prints no thread counters (JDK 11 and later do), and --no-collect forbids the other method; \
                     remove --no-collect",
                    self.request.pid
                )
            )
        );
        let mut found = Found::default();
        if has_counters {
            self.counted_blocks(&mut found)?;
        } else {
            notes.push(
                "This JDK prints no thread counters (JDK 11 and later do): one method measured, and nothing checked it."
                    .to_owned(),
            );
        }
        let why_none = self.check(&mut found, has_counters, notes)?;
        if self.request.no_collect {
            notes.push("--no-collect: one method measured, and nothing checked it.".to_owned());
        }
        self.judge(&mut found, why_none);
        Ok(found)
    }

    /// Blocks of requests until they no longer differ, measured by the thread counters.
    fn counted_blocks(&mut self, found: &mut Found) -> anyhow::Result<()> {
        let (mut young, mut lost) = (Vec::new(), Vec::new());
        for number in 1..=self.request.blocks {
            let room = self.meter.room();
            let collected = self.meter.young_collections();
            let (sent, counted) = self.counted(self.request.requests)?;
            young.push((collected.zip(self.meter.young_collections()), room));
            let counted = counted.unwrap_or_default();
            lost.push(counted.lost_threads);
            self.push(found, number, sent, counted.bytes);
            if settled(&found.blocks) {
                found.steady = true;
                break;
            }
        }
        mark_measured(&mut found.blocks);
        let from = young.len().saturating_sub(arithmetic::MEASURED);
        found.lost_threads = lost[from..].iter().sum();
        let measured = &young[from..];
        let counts: Option<Vec<u64>> = measured
            .iter()
            .map(|(count, _)| count.map(|(before, after)| after.saturating_sub(before)))
            .collect();
        // Resized meanwhile: the mean.
        let rooms: Option<Vec<f64>> = measured.iter().map(|(_, room)| *room).collect();
        found.young = counts.zip(rooms).map(|(counts, rooms)| {
            let mean = rooms.iter().sum::<f64>() / rooms.len() as f64;
            (counts.iter().sum(), mean)
        });
        Ok(())
    }

    fn push(&self, found: &mut Found, number: u64, sent: Sent, bytes: Estimate) {
        let per = arithmetic::over_requests(bytes, sent.answered, sent.failed);
        (self.say)(&format!(
            "block {number}: {} requests in {:.1} s, {:.0} bytes per request",
            sent.answered, sent.seconds, per.point
        ));
        found.blocks.push(Block {
            requests: sent.answered,
            seconds: sent.seconds,
            bytes_per_request: per,
            measured: false,
        });
    }

    /// The windows that both methods measure; why heap used measured none.
    fn check(
        &mut self,
        found: &mut Found,
        has_counters: bool,
        notes: &mut Vec<String>,
    ) -> anyhow::Result<Option<String>> {
        let mut collects = !self.request.no_collect;
        if collects {
            (self.say)("checking by heap in use, between forced collections");
        }
        // JDK 8: blocks of this method, until they no longer differ.
        let blocks = if has_counters { 1 } else { self.request.blocks };
        let (mut windows, mut why_none) = (None, None);
        let mut number = 0;
        while number < blocks {
            match self.windows(found.blocks.last(), collects)? {
                Ok(measured) => {
                    number += 1;
                    windows = Some(measured);
                    if has_counters {
                        break;
                    }
                    let bytes = measured.main.filled.map(|it| it.bytes);
                    self.push(found, number, measured.main.sent, bytes.unwrap_or_default());
                    if settled(&found.blocks) {
                        found.steady = true;
                        break;
                    }
                }
                Err(NotFilled::Attach(error)) => return Err(attach(error)),
                Err(NotFilled::Never(why)) => {
                    why_none = Some(why);
                    if !has_counters {
                        break;
                    }
                    collects = false;
                }
                Err(NotFilled::Collected) => {
                    why_none = Some(
                        "collections came between, however few the requests; use fewer --connections, or give the JVM a larger Eden"
                            .to_owned(),
                    );
                    if !has_counters {
                        break;
                    }
                    collects = false;
                }
            }
        }
        mark_measured(&mut found.blocks);
        if let Some(windows) = windows {
            self.compare(found, &windows, why_none.as_deref(), notes);
        }
        Ok(why_none)
    }

    /// Requests that fill a part of the heap before the next collection, and how long they take, by the last block.
    fn fitting(&self, last: Option<&Block>) -> (u64, Duration) {
        let Some(last) = last else {
            return (FIRST, IDLE.0);
        };
        let mut room = self.meter.room().unwrap_or(0.0);
        if self.meter.collector == Some(meter::Collector::G1) {
            // Eden grows as long as its collection would be short enough.
            room = room.max(self.meter.max_young.unwrap_or(0.0));
        }
        let fits = (FILL * room / last.bytes_per_request.point.max(1.0)) as u64;
        let count = fits.min(self.request.requests);
        let takes = last.seconds / last.requests.max(1) as f64 * count as f64;
        (count, Duration::from_secs_f64(takes).clamp(IDLE.0, IDLE.1))
    }
}

/// The last blocks are the answer.
fn mark_measured(blocks: &mut [Block]) {
    let from = blocks.len().saturating_sub(arithmetic::MEASURED);
    for block in &mut blocks[from..] {
        block.measured = true;
    }
}
