//! The parameters of connections that are held open.

use std::net::{IpAddr, UdpSocket};
use std::sync::LazyLock;
use std::time::Duration;

use rungwise_model::connections::HostLimit;
use rungwise_serve::files;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::preflight::{self, Demand, Host, MOST_THREADS, OTHER_FILES};
use super::{Held, Plan, sources};
use crate::Error;
use crate::parameters::{
    Contradiction, Driven, Load, Schedule, Site, Target, Traffic, WrittenTarget,
};
use crate::values::{Pins, Rate, Time};

/// Most connections of a load; `fs.nr_open` and a file table of each thread would allow more.
const MOST: u64 = 10_000_000;
/// Without a timeout of its own.
const TIMEOUT: Duration = Duration::from_secs(5);

/// Connections that are held open, with pings.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema, clap::Args)]
#[schemars(inline)]
pub struct Parameters {
    /// The server: `HOST:PORT`; in a scenario an address, or `{server}:7777`.
    pub target: String,
    /// Connections to open and hold.
    #[arg(long, value_name = "N", default_value_t = count())]
    #[serde(default = "count")]
    pub count: u64,
    /// Connects per second, over all threads.
    #[arg(long, value_name = "RATE", default_value_t = rate())]
    #[serde(default = "rate")]
    pub rate: Rate,
    /// Ping each connection this often: 16 bytes that the server sends back [default: no pings].
    #[arg(long, value_name = "TIME")]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ping: Option<Time>,
    /// A connect or a ping without an answer counts as lost after this time [default: 5s, or the time between two pings].
    #[arg(long, value_name = "TIME")]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timeout: Option<Time>,
    /// Ask the server this often for a message to every connection, and time its arrivals; needs `rungwise serve connections`.
    #[arg(long, value_name = "TIME")]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub broadcast: Option<Time>,
    /// In the middle of the window, end all connections at once with a reset, and open them again as fast as possible.
    #[arg(long)]
    #[serde(default)]
    pub storm: bool,
    /// So many of the connections read nothing, with the smallest receive buffer that the kernel gives.
    #[arg(long, value_name = "N", default_value_t = 0)]
    #[serde(default)]
    pub slow_readers: u64,
    /// So many of the connections vanish when the window begins, without a FIN (`TCP_REPAIR`; needs `CAP_NET_ADMIN`).
    #[arg(long, value_name = "N", default_value_t = 0)]
    #[serde(default)]
    pub half_open: u64,
    /// Source addresses, used in turn: `10.0.0.2-10.0.0.9,10.0.1.1` [default: an address of 127.0.0.0/8 for every 8000 connections where the target is one;
    /// otherwise the kernel chooses].
    #[arg(long, value_name = "LIST")]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub source: Option<String>,
    /// Threads [default: one for each CPU, or as many as the limit on open files asks for].
    #[arg(long, value_name = "N")]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub threads: Option<u32>,
    /// If the limits of this host allow fewer connections than --count, open as many as they allow, for a partial result (exit status 3).
    #[arg(long)]
    #[serde(default)]
    pub partial: bool,
}

fn count() -> u64 {
    1_000
}

fn rate() -> Rate {
    Rate(1_000.0)
}

/// How many of `count` connections read nothing, and how many vanish: as many as asked for, and at least one is neither.
fn parts(count: u64, slow_readers: u64, half_open: u64) -> (u64, u64) {
    let most = count.saturating_sub(1);
    let slow_readers = slow_readers.min(most);
    (slow_readers, half_open.min(most - slow_readers))
}

impl Parameters {
    fn timeout(&self) -> Duration {
        match (self.timeout, self.ping) {
            (Some(Time(timeout)), _) => timeout,
            (None, Some(Time(ping))) => ping.min(TIMEOUT),
            (None, None) => TIMEOUT,
        }
    }

    fn sources(&self) -> Result<Option<Vec<IpAddr>>, String> {
        self.source.as_deref().map(sources::parse).transpose()
    }

    /// What the limits of this host allow, and how many connections are opened.
    fn within(
        &self,
        host: &Host,
        demand: &Demand,
        target: &Target,
    ) -> Result<(Vec<HostLimit>, u64), Error> {
        let limits = host.limits(demand);
        let Some((tightest, allows)) = preflight::tightest(&limits) else {
            return Ok((limits, self.count));
        };
        if allows >= self.count {
            return Ok((limits, self.count));
        }
        if self.partial && allows > 0 {
            return Ok((limits, allows));
        }
        Err(Error::HostLimit {
            target: target.clone(),
            count: self.count,
            allows,
            id: tightest.id.replace('_', " "),
            basis: tightest.basis.clone(),
            knob: tightest.knob.clone(),
        })
    }
}

impl Traffic for Parameters {
    fn kind(&self) -> &'static crate::Workload {
        &super::WORKLOAD
    }

    fn target(&self) -> WrittenTarget<'_> {
        WrittenTarget::Address(&self.target)
    }

    fn contradictions(&self) -> Vec<Contradiction> {
        let mut found = Vec::new();
        let mut wrong =
            |keys: &'static [&'static str], why: String| found.push(Contradiction::of(keys, why));
        if !(1..=MOST).contains(&self.count) {
            let why = format!(
                "there are {} connections; there must be 1 to {MOST}",
                self.count
            );
            wrong(&["count"], why);
        }
        let shortest = Duration::from_millis(1);
        let times: [(&'static [&'static str], _); 3] = [
            (&["ping"], self.ping),
            (&["timeout"], self.timeout),
            (&["broadcast"], self.broadcast),
        ];
        for (keys, time) in times {
            if let Some(Time(time)) = time
                && !(shortest..=Duration::from_hours(24)).contains(&time)
            {
                wrong(keys, format!("{} must be 1 ms to 24 h", keys[0]));
            }
        }
        if let Some(Time(ping)) = self.ping
            && self.timeout() > ping
        {
            let why = "the timeout is longer than the time between two pings of a connection, which has one under way; shorten it";
            wrong(&["timeout", "ping"], why.to_owned());
        }
        if self.slow_readers.saturating_add(self.half_open) >= self.count {
            let why = "slow readers and half-open connections are part of --count; leave at least one other";
            wrong(&["slow_readers", "half_open"], why.to_owned());
        }
        if self
            .threads
            .is_some_and(|threads| !(1..=MOST_THREADS).contains(&threads.into()))
        {
            wrong(
                &["threads"],
                format!("there must be 1 to {MOST_THREADS} threads"),
            );
        }
        if let Err(why) = self.sources() {
            wrong(&["source"], why);
        }
        found
    }

    fn driven(&self) -> Option<&dyn Driven> {
        Some(self)
    }
}

impl Driven for Parameters {
    fn schedule(&self) -> &Schedule {
        /// Pings come by their times, whatever the server does.
        static OPEN: LazyLock<Schedule> = LazyLock::new(|| Schedule {
            threads: crate::values::Count::Cpus,
            pin: Pins::Off,
            rate: Some(rate()),
            ramp: None,
            timeout: Time(TIMEOUT),
        });
        &OPEN
    }

    fn paced(&self, _: Option<Rate>) -> Box<dyn Driven> {
        Box::new(self.clone())
    }

    fn prepare(&self, site: &Site<'_>) -> Result<Box<dyn Load>, Error> {
        if let Some(Contradiction { why, .. }) = self.contradictions().into_iter().next() {
            return Err(site.wrong(why));
        }
        let Some(target) = site.target.address() else {
            return Err(site.wrong("connections are held over TCP; give HOST:PORT"));
        };
        if target.port() == 0 {
            return Err(site.wrong("port 0 is not valid; give the server's port"));
        }
        let asked = self.sources().map_err(|why| site.wrong(why))?;
        if let Some(other) = asked
            .iter()
            .flatten()
            .find(|ip| ip.is_ipv4() != target.is_ipv4())
        {
            return Err(site.wrong(format!(
                "{other} cannot be a source for {target}: give addresses of its family"
            )));
        }
        let demand = Demand {
            count: self.count,
            threads: self.threads.map(u64::from),
            sources: asked.as_ref().map_or(0, |all| all.len() as u64),
            loopback: sources::is_loopback(target),
            // Only to an address of this machine can one bind.
            local: UdpSocket::bind((target.ip(), 0)).is_ok(),
            broadcast: self.broadcast.is_some(),
        };
        let host = Host::read(files::raise(self.count + OTHER_FILES), site.read);
        let (limits, count) = self.within(&host, &demand, &site.target)?;
        let threads = host.threads(&Demand { count, ..demand }, site.cpus.len());
        let sources = match asked {
            Some(all) => all,
            None if demand.loopback => sources::loopback(count),
            None => Vec::new(),
        };
        let (slow_readers, half_open) = parts(count, self.slow_readers, self.half_open);
        let partial = (count < self.count).then(|| {
            let (tightest, _) = preflight::tightest(&limits)?;
            Some(format!(
                "limit {}: at most {count} of {} connections ({}); raise it with {}",
                tightest.id.replace('_', " "),
                self.count,
                tightest.basis,
                tightest.knob
            ))
        });
        let plan = Plan {
            target,
            asked: self.count,
            count,
            rate_per_s: self.rate.0,
            ping: self.ping.map(|Time(time)| time),
            timeout: self.timeout(),
            broadcast: self.broadcast.map(|Time(time)| time),
            storm: self.storm,
            slow_readers,
            half_open,
            sources,
            threads: threads as usize,
            own_tables: host.files < count + OTHER_FILES,
            limits,
            partial: partial.flatten(),
        };
        Ok(Box::new(Held::new(plan)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slow_readers_and_half_open_connections_leave_one_other_of_what_fits() {
        assert_eq!(parts(1_000, 10, 20), (10, 20));
        assert_eq!(parts(25, 10, 20), (10, 14));
        assert_eq!(parts(8, 10, 20), (7, 0));
        assert_eq!(parts(1, 10, 20), (0, 0));
    }
}
