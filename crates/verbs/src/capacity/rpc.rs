//! Connections, threads and links for a rate of calls, from figures of one call or from a measured load.

use std::path::{Path, PathBuf};
use std::time::Duration;

use rungwise_host::clock;
use rungwise_model::capacity_rpc::{Call, CapacityRpcReport, Limit, Plan, ROOM, Site};
use rungwise_model::load::LoadReport;
use rungwise_model::{Exit, units};

use super::asked;
use crate::Invocation;
use crate::documents::{Document as _, Stored};
use crate::problem::Problem;

/// Calculate the connections, threads and link that a rate of remote calls needs, also after a site has failed.
///
/// What a connection carries depends on the service, its buffers and its network: measure it with `rungwise load dubbo` or `load tcp` at one
/// connection, with a --depth from which on more calls under way do not raise the rate, and pass the document with --from. By Little's law as many calls are under way as arrive while one
/// lasts, which is how many threads they occupy. Exit status: 0 the given limits suffice, 1 they do not, 2 the question contradicts
/// itself, 3 the document does not say enough.
#[derive(Debug, clap::Args)]
pub struct Request {
    /// A document of `rungwise load` in which the connections were the limit: its bytes per call and per connection are used.
    #[arg(long, value_name = "FILE")]
    pub from: Option<PathBuf>,
    /// Bytes of a call in the direction that has more of them, such as 500KiB.
    #[arg(long, value_name = "SIZE", value_parser = asked::size)]
    pub message: Option<f64>,
    /// What one connection carries, such as 7MB/s.
    #[arg(long, value_name = "RATE", value_parser = units::bytes_per_second)]
    pub per_connection: Option<f64>,
    /// Calls per second that all sites together are to serve, such as 200/s.
    #[arg(long, value_name = "RATE", value_parser = units::per_second)]
    pub target: f64,
    /// The link of a site, such as 1Gb/s (bits) or 125MB/s (bytes).
    #[arg(long, value_name = "RATE", value_parser = units::bytes_per_second)]
    pub link: Option<f64>,
    /// Connections of all consumers to a site.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub connections: Option<u32>,
    /// Time that a thread of the service spends on a call, such as 150ms.
    #[arg(long, value_name = "TIME", value_parser = units::duration)]
    pub service_time: Option<Duration>,
    /// Threads that serve calls at a site.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..), requires = "service_time")]
    pub threads: Option<u32>,
    /// Sites that share the calls evenly.
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub sites: u32,
}

/// Sums of exact shares may lie a hair beside a whole number.
const HAIR: f64 = 1e-9;

/// Calculates from the figures.
pub fn run(request: &Request, invocation: &Invocation<'_>) -> anyhow::Result<CapacityRpcReport> {
    anyhow::ensure!(
        request.from.is_some() || request.message.is_some() && request.per_connection.is_some(),
        "size and throughput of a call unknown; pass --message and --per-connection, or --from with a document of `rungwise load`"
    );
    let started = clock::utc_now();
    let mut notes = Vec::new();
    let is_given = request.message.is_some() && request.per_connection.is_some();
    let (measured, target) = match &request.from {
        Some(path) if !is_given => (
            Some(measured(path, &mut notes)?),
            path.display().to_string(),
        ),
        _ => (None, "figures as given".to_owned()),
    };
    let figure = |given: Option<f64>, of: fn(&Measured) -> f64| {
        given.unwrap_or_else(|| measured.as_ref().map_or(0.0, of))
    };
    let call = Call {
        bytes: figure(request.message, |measured| measured.bytes),
        connection_bytes_per_s: figure(request.per_connection, |measured| measured.per_connection),
        service_s: request.service_time.map(|time| time.as_secs_f64()),
    };
    for (name, value) in [
        ("--message", call.bytes),
        ("--per-connection", call.connection_bytes_per_s),
        ("--target", request.target),
        ("--link", request.link.unwrap_or(1.0)),
        ("--service-time", call.service_s.unwrap_or(1.0)),
    ] {
        anyhow::ensure!(value > 0.0, "{name} must be above zero");
    }
    let site = Site {
        link_bytes_per_s: request.link,
        connections: request.connections,
        threads: request.threads,
    };
    let limits = limits(call, site);
    let most = limits.first().map(|limit| limit.calls_per_s);
    let fewer = (request.sites > 1).then(|| request.sites - 1);
    let plans: Vec<Plan> = [Some(request.sites), fewer]
        .into_iter()
        .flatten()
        .map(|sites| plan(request.target, sites, call, site, most))
        .collect();
    let least = plans.iter().filter_map(|plan| plan.headroom);
    let least = least.fold(f64::INFINITY, f64::min);
    let short = least < 1.0;
    if !short && least < ROOM {
        notes.push(format!(
            "the tightest limit is used for more than {:.0} %: calls do not come evenly, and near a limit they queue",
            100.0 / ROOM
        ));
    }
    if site.link_bytes_per_s.is_some() {
        notes.push("of the link, the bytes of the calls are counted alone; headers of Ethernet, IP and TCP take some 5 % of it".to_owned());
    }
    let exit = if short { Exit::Failed } else { Exit::Done };
    Ok(CapacityRpcReport {
        envelope: invocation.envelope(CapacityRpcReport::KIND, started, exit),
        target,
        notes,
        wanted_per_s: request.target,
        call,
        site,
        limits,
        plans,
    })
}

/// What a load has shown of a call.
struct Measured {
    bytes: f64,
    per_connection: f64,
}

fn measured(path: &Path, notes: &mut Vec<String>) -> anyhow::Result<Measured> {
    let too_little = |why: String| {
        Problem::with(
            Exit::Inconclusive,
            anyhow::anyhow!("{}: {why}", path.display()),
        )
    };
    let stored = Stored::read(path)?;
    anyhow::ensure!(
        stored.kind == LoadReport::KIND,
        "{} is a document of {}; name one of `rungwise load`",
        path.display(),
        stored.kind
    );
    let report: LoadReport = stored.parse()?;
    let measurement = report.measurement;
    let Some(stream) = &measurement.stream else {
        return Err(too_little(
            "the document does not count bytes per connection; run `rungwise load dubbo`, `load tcp`, `load redis` or `load memcached` with --format json"
                .to_owned(),
        ));
    };
    if measurement.received == 0 || stream.connections == 0 || measurement.window_s <= 0.0 {
        return Err(too_little("no call was answered in it".to_owned()));
    }
    let bytes = stream.sent_bytes.max(stream.received_bytes) as f64;
    let connections = (stream.connections - stream.reconnects.min(stream.connections - 1)) as f64;
    if let Some(offered) = measurement.offered_per_s {
        notes.push(format!(
            "the load was sent at a fixed rate of {offered:.0} per second, so its connections may carry more than it shows; measure without --rate"
        ));
    }
    let under_way =
        measurement.achieved_per_s / connections * measurement.latency_us.uncorrected.p50 * 1e-6;
    if measurement.offered_per_s.is_none() {
        notes.push(format!(
            "the load kept some {under_way:.0} calls under way per connection; as long as more (--depth) raise its rate, a connection carries more than it shows"
        ));
    }
    let errors: u64 = measurement.errors.values().sum();
    if errors > 0 {
        notes.push(format!(
            "{errors} requests of the load failed; the bytes of replies that report an error count with those of answers"
        ));
    }
    if connections > 1.0 {
        notes.push(format!(
            "the load had {connections:.0} connections: if they filled the link or the CPUs together, each alone carries more; measure with --connections 1"
        ));
    }
    if !measurement.client.certified {
        notes.push(format!(
            "the load is not certified, so its connections may carry more: {}",
            measurement.client.reasons.join("; ")
        ));
    }
    Ok(Measured {
        bytes: bytes / measurement.received as f64,
        per_connection: bytes / measurement.window_s / connections,
    })
}

fn limits(call: Call, site: Site) -> Vec<Limit> {
    let one = call.connection_bytes_per_s / call.bytes;
    let mut limits = Vec::new();
    if let Some(connections) = site.connections {
        limits.push(Limit {
            resource: "connections".to_owned(),
            calls_per_s: f64::from(connections) * one,
            because: format!("{connections} of {one:.1} calls per second each"),
        });
    }
    if let Some(link) = site.link_bytes_per_s {
        limits.push(Limit {
            resource: "link".to_owned(),
            calls_per_s: link / call.bytes,
            because: "bytes per second of the link, divided by bytes per call".to_owned(),
        });
    }
    if let (Some(threads), Some(service_s)) = (site.threads, call.service_s) {
        limits.push(Limit {
            resource: "threads".to_owned(),
            calls_per_s: f64::from(threads) / service_s,
            because: format!(
                "{threads} threads, each busy for {} per call",
                units::written(Duration::from_secs_f64(service_s))
            ),
        });
    }
    limits.sort_by(|a, b| a.calls_per_s.total_cmp(&b.calls_per_s));
    limits
}

fn plan(wanted: f64, sites: u32, call: Call, site: Site, most: Option<f64>) -> Plan {
    let calls_per_s = wanted / f64::from(sites);
    let needed = calls_per_s * call.bytes / call.connection_bytes_per_s - HAIR;
    let headroom = |most: f64| {
        let room = most / calls_per_s;
        if (room - 1.0).abs() < HAIR { 1.0 } else { room }
    };
    Plan {
        sites,
        calls_per_s,
        connections: needed.ceil().max(1.0) as u64,
        busy_threads: call.service_s.map(|service_s| calls_per_s * service_s),
        link_use: site
            .link_bytes_per_s
            .map(|link| calls_per_s * call.bytes / link),
        headroom: most.map(headroom),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const CALL: Call = Call {
        bytes: 500e3,
        connection_bytes_per_s: 7e6,
        service_s: Some(0.15),
    };

    #[test]
    fn a_connection_of_seven_megabytes_carries_fourteen_calls_of_half_a_megabyte() {
        let site = Site {
            link_bytes_per_s: Some(128e6),
            connections: Some(1),
            threads: Some(200),
        };
        let limits = limits(CALL, site);
        let each: Vec<(&str, f64)> = limits
            .iter()
            .map(|limit| (&limit.resource[..], limit.calls_per_s.round()))
            .collect();
        assert_eq!(
            each,
            [("connections", 14.0), ("link", 256.0), ("threads", 1333.0)]
        );
    }

    #[test]
    fn a_site_that_fails_doubles_what_the_other_needs() {
        let site = Site {
            link_bytes_per_s: Some(125e6),
            connections: Some(20),
            threads: None,
        };
        let most = limits(CALL, site).first().map(|limit| limit.calls_per_s);
        let both = plan(200.0, 2, CALL, site, most);
        let one = plan(200.0, 1, CALL, site, most);
        assert_eq!((both.connections, one.connections), (8, 15));
        assert_eq!((both.link_use, one.link_use), (Some(0.4), Some(0.8)));
        assert_eq!(one.busy_threads, Some(30.0));
        assert_eq!(both.headroom.map(f64::floor), Some(2.0));
        assert!(one.headroom.is_some_and(|more| (more - 1.25).abs() < 1e-9));
        // Exactly as many as there are is enough.
        let exact = plan(140.0, 1, CALL, site, most);
        assert_eq!(exact.connections, 10);
        let call = Call {
            bytes: 49e6,
            connection_bytes_per_s: 1e6,
            service_s: None,
        };
        let site = Site {
            connections: Some(49),
            ..Site::default()
        };
        let most = limits(call, site).first().map(|limit| limit.calls_per_s);
        let exact = plan(1.0, 1, call, site, most);
        assert_eq!((exact.connections, exact.headroom), (49, Some(1.0)));
    }
}
