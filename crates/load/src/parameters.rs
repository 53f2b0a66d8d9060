//! What all kinds of workload have in common before they run: parameters as written by users, and the traffic made from them.
//!
//! A kind has one type for its parameters. It is the `[workload]` table of a scenario, the words after `rungwise load KIND`, and
//! what is stored with a tune; its defaults are the same everywhere, and its doc comments are the help and the schema.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::time::Duration;

use rungwise_model::load::Second;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::Error;
use crate::engine::{Arrival, Completed, Hooks, Plan, Stop};
use crate::values::{Count, Pins, Ramp, Rate, Time};

/// The default timeout of a reply.
const TIMEOUT: Time = Time(Duration::from_secs(1));

/// When requests are sent, by how many threads, and the timeout: the same for each kind that rungwise drives itself. Flattened into the
/// parameters of a kind.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema, clap::Args)]
pub struct Schedule {
    /// Generator threads; `{cpus}` is one for each CPU.
    #[arg(long, value_name = "N", default_value_t = every_cpu())]
    #[serde(default = "every_cpu")]
    pub threads: Count,
    /// Pin the threads to CPUs: round-robin over the allowed ones, or a list such as `0,2-5`.
    #[arg(
        long,
        value_name = "LIST",
        num_args = 0..=1,
        require_equals = true,
        default_value_t,
        default_missing_value = "true"
    )]
    #[serde(default)]
    pub pin: Pins,
    /// Open loop at a constant rate, independent of the server: `20k/s`. Closed loop without it.
    #[arg(long, value_name = "RATE")]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rate: Option<Rate>,
    /// Open loop with a linear ramp over the measured window: `1k/s..50k/s`.
    #[arg(long, value_name = "RATE..RATE")]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ramp: Option<Ramp>,
    /// A request without a reply counts as lost after this time.
    #[arg(long, value_name = "TIME", default_value_t = TIMEOUT)]
    #[serde(default = "timeout")]
    pub timeout: Time,
}

fn every_cpu() -> Count {
    Count::Cpus
}

fn timeout() -> Time {
    TIMEOUT
}

impl Schedule {
    /// When requests are sent.
    pub fn arrival(&self) -> Arrival {
        match (self.rate, self.ramp) {
            (Some(rate), _) => Arrival::Constant { per_s: rate.0 },
            (None, Some(ramp)) => Arrival::Ramp {
                from_per_s: ramp.from_per_s,
                to_per_s: ramp.to_per_s,
            },
            (None, None) => Arrival::Closed,
        }
    }

    /// The same threads and timeout at a constant rate, or in a closed loop.
    pub(crate) fn paced(&self, rate: Option<Rate>) -> Self {
        Self {
            rate,
            ramp: None,
            ..self.clone()
        }
    }

    /// This schedule at `site`, for `length`.
    pub fn plan(&self, site: &Site<'_>, length: &Length) -> Plan {
        Plan {
            target: site.target.clone(),
            threads: self.threads.on(site.cpus.len()),
            pins: self.pin.among(site.cpus),
            arrival: self.arrival(),
            timeout: self.timeout.0,
            warmup: length.warmup,
            stop: length.stop,
        }
    }

    /// What contradicts itself.
    pub fn contradictions(&self) -> Vec<Contradiction> {
        let twice = self.rate.is_some() && self.ramp.is_some();
        let twice = twice
            .then(|| Contradiction::of(&["ramp"], "rate and ramp exclude each other; remove one"));
        twice.into_iter().collect()
    }
}

/// Parameters that contradict each other, though each value is valid by itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Contradiction {
    /// The parameters concerned, the most likely culprit first; none where the run's length is wrong.
    pub keys: &'static [&'static str],
    /// What is wrong, and what would be right.
    pub why: String,
}

impl Contradiction {
    /// About these parameters.
    pub fn of(keys: &'static [&'static str], why: impl Into<String>) -> Self {
        Self {
            keys,
            why: why.into(),
        }
    }

    /// Where `value` is not between the two, what it must be.
    pub(crate) fn outside(
        keys: &'static [&'static str],
        what: &str,
        value: usize,
        (least, most): (usize, usize),
    ) -> Option<Self> {
        let why = || format!("{what} is {value}; it must be {least} to {most}");
        (!(least..=most).contains(&value)).then(|| Self::of(keys, why()))
    }
}

/// The first of these as an error.
pub(crate) fn refused(target: impl Into<Target>, found: Vec<Contradiction>) -> Result<(), Error> {
    match found.into_iter().next() {
        None => Ok(()),
        Some(Contradiction { why, .. }) => Err(Error::Workload {
            target: target.into(),
            why,
        }),
    }
}

/// Who is asked, as a user writes it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WrittenTarget<'a> {
    /// Address or name, and port; with placeholders in a scenario.
    Address(&'a str),
    /// Path of a Unix socket.
    Unix(&'a str),
}

/// Who is asked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Target {
    /// Address and port.
    Address(SocketAddr),
    /// A Unix socket.
    Unix(PathBuf),
}

impl Target {
    /// Address and port; none where it is a Unix socket.
    pub fn address(&self) -> Option<SocketAddr> {
        match self {
            Self::Address(address) => Some(*address),
            Self::Unix(_) => None,
        }
    }
}

impl From<SocketAddr> for Target {
    fn from(address: SocketAddr) -> Self {
        Self::Address(address)
    }
}

impl fmt::Display for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Address(address) => write!(f, "{address}"),
            Self::Unix(path) => write!(f, "unix:{}", path.display()),
        }
    }
}

/// Where traffic is made.
#[derive(Clone)]
pub struct Site<'a> {
    /// Who is asked.
    pub target: Target,
    /// CPUs that the generator may use.
    pub cpus: &'a [usize],
    /// The generator's network device, where it has one of its own.
    pub device: Option<&'a str>,
    /// Reads a file that parameters name; why not, in a sentence.
    pub read: &'a dyn Fn(&str) -> Result<Vec<u8>, String>,
}

impl fmt::Debug for Site<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Site")
            .field("target", &self.target)
            .field("cpus", &self.cpus)
            .field("device", &self.device)
            .finish_non_exhaustive()
    }
}

impl Site<'_> {
    /// A placeholder site: enough to see whether parameters contradict each other.
    pub(crate) const ANY: Site<'static> = Site {
        target: Target::Address(SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), 9)),
        cpus: &[0],
        device: Some("eth0"),
        read: &|_| Ok(Vec::new()),
    };

    pub(crate) fn wrong(&self, why: impl Into<String>) -> Error {
        Error::Workload {
            target: self.target.clone(),
            why: why.into(),
        }
    }
}

/// How long one run takes.
#[derive(Clone, Copy, Debug)]
pub struct Length {
    /// Load before the measured window.
    pub warmup: Duration,
    /// When the measured window ends.
    pub stop: Stop,
    /// Makes the run's requests its own: replies to a run with another seed are foreign.
    pub seed: u64,
}

impl Length {
    /// A length with which nothing is wrong, for traffic whose length comes later.
    pub(crate) const ANY: Self = Self {
        warmup: Duration::ZERO,
        stop: Stop::After(Duration::from_secs(1)),
        seed: 0,
    };
}

/// How a service shows that it can take work.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Probe {
    /// It answers this datagram, with whatever it is.
    Datagram(Vec<u8>),
    /// It accepts a connection.
    Connection,
}

/// Parameters of a workload of any kind.
pub trait Traffic: fmt::Debug {
    /// The kind.
    fn kind(&self) -> &'static crate::Workload;

    /// The service as written.
    fn target(&self) -> WrittenTarget<'_>;

    /// Metrics that it may report.
    fn metrics(&self) -> Vec<&str> {
        self.kind().metrics.to_vec()
    }

    /// Contradictions between values that are valid by themselves; values that only a machine or a file provides are assumed to work.
    fn contradictions(&self) -> Vec<Contradiction>;

    /// The same as traffic that rungwise drives itself; absent where a program does.
    fn driven(&self) -> Option<&dyn Driven> {
        None
    }
}

/// Parameters of traffic that rungwise drives itself.
pub trait Driven {
    /// When requests are sent, by how many threads, and the timeout.
    fn schedule(&self) -> &Schedule;

    /// Files that the requests come from.
    fn files(&self) -> Vec<&str> {
        Vec::new()
    }

    /// The same traffic at a constant rate, or in a closed loop.
    fn paced(&self, rate: Option<Rate>) -> Box<dyn Driven>;

    /// Reads the files and makes the requests.
    fn prepare(&self, site: &Site<'_>) -> Result<Box<dyn Load>, Error>;
}

/// Traffic that is ready to be driven, any number of times. Its words name requests, target and arrival.
pub trait Load: fmt::Debug + fmt::Display + Send + Sync {
    /// What shows that the service answers.
    fn probe(&self) -> Probe;

    /// What a user must know before it runs, a line each: what it leaves out.
    fn notes(&self) -> &[String] {
        &[]
    }

    /// When its users begin and how fast they ask follows from a plan, so that a warm-up would take its first requests away.
    fn has_own_pace(&self) -> bool {
        false
    }

    /// How long it holds connections where no time is given. `--count` is then their number, and not one of requests.
    fn hold(&self) -> Option<Duration> {
        None
    }

    /// It comes to an end by itself, without a time or a count.
    fn ends(&self) -> bool {
        false
    }

    /// Drives it for `length` and measures it; each second of the window goes to `each_second` soon after it has passed.
    fn run(
        &self,
        length: &Length,
        hooks: &Hooks<'_>,
        each_second: &mut dyn FnMut(&Second),
    ) -> Result<Completed, Error>;
}
