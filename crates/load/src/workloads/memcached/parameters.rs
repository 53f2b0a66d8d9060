//! The parameters of requests to memcached.

use std::sync::Arc;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Memcached, Requests};
use crate::Error;
use crate::parameters::{Contradiction, Driven, Load, Schedule, Site, Traffic, WrittenTarget};
use crate::stream::transport::{Connections, written};
use crate::stream::{self, Workload};
use crate::template::letters;
use crate::values::{Rate, Size, Time};

/// Longest key, bytes (doc/protocol.txt of memcached).
const LONGEST_KEY: usize = 250;
/// A larger value no memcached takes (`-I`).
const LARGEST: usize = 1 << 30;
/// A longer time is taken for a date (doc/protocol.txt).
const MONTH_S: u64 = 30 * 24 * 60 * 60;

/// Requests to memcached with one reply each.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema, clap::Args)]
#[schemars(inline)]
pub struct Parameters {
    /// The server: `HOST:PORT`, or `unix:PATH`; in a scenario an address, or `{server}:11211`.
    pub target: String,
    /// How many get requests there are for every --sets set requests.
    #[arg(long, value_name = "N", default_value_t = gets())]
    #[serde(default = "gets")]
    pub gets: u32,
    /// How many set requests there are for every --gets get requests.
    #[arg(long, value_name = "N", default_value_t = sets())]
    #[serde(default = "sets")]
    pub sets: u32,
    /// Size of a value that is stored.
    #[arg(long, value_name = "SIZE", default_value_t = value_size())]
    #[serde(default = "value_size")]
    pub value_size: Size,
    /// Number of keys; each request draws one of them.
    #[arg(long, value_name = "N", default_value_t = keys())]
    #[serde(default = "keys")]
    pub keys: u64,
    /// What each key begins with; its number follows.
    #[arg(long, value_name = "TEXT", default_value_t = key_prefix())]
    #[serde(default = "key_prefix")]
    pub key_prefix: String,
    /// When a stored value expires, whole seconds up to 30 days [default: never].
    #[arg(long, value_name = "TIME")]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expire: Option<Time>,
    /// When requests are sent, by how many threads, and the timeout.
    #[command(flatten)]
    #[serde(flatten)]
    pub schedule: Schedule,
    /// How connections are made.
    #[command(flatten)]
    #[serde(flatten)]
    pub connections: Connections,
}

fn gets() -> u32 {
    9
}

fn sets() -> u32 {
    1
}

fn value_size() -> Size {
    Size(100)
}

fn keys() -> u64 {
    10_000
}

fn key_prefix() -> String {
    "rungwise:".to_owned()
}

impl Parameters {
    fn protocol(&self) -> Memcached {
        let Size(size) = self.value_size;
        let expire = self.expire.map_or(0, |Time(time)| time.as_secs());
        let mut value = format!(" 0 {expire} {size}\r\n").into_bytes();
        value.extend_from_slice(&letters(size));
        value.extend_from_slice(b"\r\n");
        let both = self.gets > 0 && self.sets > 0;
        let names = ["get", "set"].into_iter().filter(|_| both);
        Memcached(Arc::new(Requests {
            gets: self.gets,
            sets: self.sets,
            keys: self.keys,
            prefix: self.key_prefix.clone(),
            value,
            size,
            names: names.map(str::to_owned).collect(),
        }))
    }
}

impl Traffic for Parameters {
    fn kind(&self) -> &'static crate::Workload {
        &super::WORKLOAD
    }

    fn target(&self) -> WrittenTarget<'_> {
        written(&self.target)
    }

    fn contradictions(&self) -> Vec<Contradiction> {
        let mut found = stream::contradictions(&self.schedule, &self.connections, &self.target);
        if self.gets == 0 && self.sets == 0 {
            let why = "gets and sets are both 0, so that nothing is sent; raise one of them";
            found.push(Contradiction::of(&["gets", "sets"], why));
        }
        if self.keys == 0 {
            let why = "there are 0 keys; there must be 1 at least";
            found.push(Contradiction::of(&["keys"], why));
        }
        let Size(size) = self.value_size;
        if size > LARGEST {
            let why = format!("a value of {size} bytes is larger than memcached takes (1 GiB)");
            found.push(Contradiction::of(&["value_size"], why));
        }
        let longest = self.key_prefix.len() + self.keys.to_string().len();
        let fits = |byte: u8| byte > b' ' && byte != 0x7f;
        if longest > LONGEST_KEY || !self.key_prefix.bytes().all(fits) {
            let why = format!(
                "a key has up to 250 bytes without spaces and control characters; with the prefix '{}' it would not",
                self.key_prefix.escape_debug()
            );
            found.push(Contradiction::of(&["key_prefix"], why));
        }
        if let Some(expire @ Time(time)) = self.expire
            && (time.subsec_nanos() > 0 || !(1..=MONTH_S).contains(&time.as_secs()))
        {
            let why =
                format!("values expire after {expire}; it must be whole seconds, up to 30 days");
            found.push(Contradiction::of(&["expire"], why));
        }
        found
    }

    fn driven(&self) -> Option<&dyn Driven> {
        Some(self)
    }
}

impl Driven for Parameters {
    fn schedule(&self) -> &Schedule {
        &self.schedule
    }

    fn files(&self) -> Vec<&str> {
        self.connections.certificates.files().collect()
    }

    fn paced(&self, rate: Option<Rate>) -> Box<dyn Driven> {
        let schedule = self.schedule.paced(rate);
        Box::new(Self {
            schedule,
            ..self.clone()
        })
    }

    fn prepare(&self, site: &Site<'_>) -> Result<Box<dyn Load>, Error> {
        let made = (&self.schedule, &self.connections);
        let workload = Workload::new(self.protocol(), &self.target, made, site)?;
        Ok(Box::new(workload))
    }
}
