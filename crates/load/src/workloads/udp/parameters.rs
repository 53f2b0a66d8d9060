//! The parameters of UDP traffic.

use std::net::{IpAddr, SocketAddr};

use rungwise_serve::udp::XdpDevice;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Payload, Workload};
use crate::Error;
use crate::dns::{self, Query};
use crate::engine::Arrival;
use crate::parameters::{
    Contradiction, Driven, Length, Load, Schedule, Site, Traffic, WrittenTarget,
};
use crate::values::{Rate, Size, XdpPlace};
use crate::workloads::tcp;

/// Default size of a request.
const SIZE: Size = Size(100);
/// Outstanding requests per socket in a closed loop.
const CLOSED_DEPTH: u32 = 16;
/// The same in an open loop, where one slot too few would delay the schedule.
const OPEN_DEPTH: u32 = 1024;

/// UDP requests with one reply each.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema, clap::Args)]
#[schemars(inline)]
pub struct Parameters {
    /// The server: `ADDRESS:PORT` or `NAME:PORT`; in a scenario an address, or `{server}:9000`.
    pub target: String,
    /// Size of a request that the server echoes; 16 bytes of it identify the request [default: 100B].
    #[arg(long, value_name = "SIZE")]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub size: Option<Size>,
    /// Send the bytes of a file, or `hex:00ff`, and accept any reply. Replaces `size`.
    #[arg(long, value_name = "FILE|hex:BYTES")]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub payload: Option<String>,
    /// Send the DNS queries of a file, repeatedly: one name and type per line, as for dnsperf. Replaces `size`.
    #[arg(long, value_name = "FILE")]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub dns: Option<String>,
    /// Sockets (source ports) per thread.
    #[arg(long, value_name = "N", default_value_t = sockets())]
    #[serde(default = "sockets")]
    pub sockets: u32,
    /// Maximum outstanding requests per socket [default: 16, or two bursts; 1024 in an open loop; 1 with `payload`].
    #[arg(long, value_name = "N")]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub depth: Option<u32>,
    /// When requests are sent, by how many threads, and the timeout.
    #[command(flatten)]
    #[serde(flatten)]
    pub schedule: Schedule,
    /// Maximum datagrams per system call.
    #[arg(long, value_name = "N", default_value_t = batch())]
    #[serde(default = "batch")]
    pub batch: u32,
    /// Send N datagrams of one flow as one burst (`UDP_SEGMENT`); realistic only if single peers send such bursts.
    #[arg(long, value_name = "N")]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub burst: Option<u32>,
    /// Send and receive through the queues of a device (`AF_XDP`), bypassing the network stack and its sockets: `DEVICE`, or
    /// `DEVICE:native` if the driver supports it, as on veth; in a scenario also `generic` or `native` on the generator's own device.
    /// Needs a queue per thread, and root or `CAP_BPF`, `CAP_NET_ADMIN` and `CAP_NET_RAW`. Not with bursts.
    #[arg(long, value_name = "DEVICE[:native]")]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub af_xdp: Option<XdpPlace>,
    /// Source address.
    #[arg(long, value_name = "IP")]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub source: Option<IpAddr>,
    /// Never fragment (`IP_PMTUDISC_DO`); skips the IP identification.
    #[arg(long)]
    #[serde(default)]
    pub pmtudisc_do: bool,
}

fn sockets() -> u32 {
    8
}

fn batch() -> u32 {
    64
}

impl Parameters {
    /// The traffic with these requests at `site`.
    fn traffic(&self, payload: Payload, site: &Site<'_>, length: &Length) -> Workload {
        // One datagram at a time is no burst.
        let burst = self.burst.filter(|burst| *burst != 1);
        let depth = self
            .depth
            .unwrap_or(match (&payload, self.schedule.arrival()) {
                (Payload::Opaque(_), _) => 1,
                // A lost datagram must not keep a whole burst waiting for its timeout.
                (_, Arrival::Closed) => CLOSED_DEPTH.max(2 * burst.unwrap_or(0)),
                _ => OPEN_DEPTH,
            });
        let plan = self.schedule.plan(site, length);
        Workload {
            target: plan
                .target
                .address()
                .expect("datagrams go to an address and a port"),
            threads: plan.threads,
            pins: plan.pins,
            arrival: plan.arrival,
            timeout: plan.timeout,
            warmup: plan.warmup,
            stop: plan.stop,
            source: self.source,
            sockets: self.sockets as usize,
            depth: depth as usize,
            payload,
            batch: self.batch as usize,
            burst: burst.map(|burst| u16::try_from(burst).unwrap_or(u16::MAX)),
            seed: length.seed,
            pmtudisc_do: self.pmtudisc_do,
            af_xdp: None,
        }
    }

    fn payload(&self, site: &Site<'_>) -> Result<Payload, Error> {
        if let Some(file) = &self.dns {
            let text = (site.read)(file).map_err(|why| site.wrong(why))?;
            let queries = dns::parse(&text).map_err(|error| {
                site.wrong(format!("cannot send the queries of {file}: {error}"))
            })?;
            return Ok(Payload::Dns(queries));
        }
        let Some(payload) = &self.payload else {
            return Ok(Payload::Sequenced {
                size: self.size.unwrap_or(SIZE).0,
            });
        };
        let bytes = match payload.strip_prefix("hex:") {
            Some(digits) => unhex(digits),
            None => (site.read)(payload),
        };
        bytes.map(Payload::Opaque).map_err(|why| site.wrong(why))
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
        let mut found = self.schedule.contradictions();
        let named = [
            ("size", self.size.is_some()),
            ("payload", self.payload.is_some()),
            ("dns", self.dns.is_some()),
        ];
        let mut named = named.into_iter().filter(|(_, is_there)| *is_there);
        if let (Some((first, _)), Some((second, _))) = (named.next(), named.next()) {
            let keys: &[&str] = if first == "size" {
                &["size"]
            } else {
                &["payload"]
            };
            let why = format!("'{second}' has its own sizes and content; remove '{first}'");
            found.push(Contradiction::of(keys, why));
        }
        // What a file contains is not known yet.
        let payload = match (&self.dns, &self.payload) {
            (Some(_), _) => Payload::Dns(Query::new(".", "A").into_iter().collect()),
            (None, Some(_)) => Payload::Opaque(vec![0]),
            (None, None) => Payload::Sequenced {
                size: self.size.unwrap_or(SIZE).0,
            },
        };
        if let Some(Err(why)) = (self.payload.as_deref())
            .and_then(|payload| payload.strip_prefix("hex:"))
            .map(unhex)
        {
            found.push(Contradiction::of(&["payload"], why));
        }
        let mut site = Site::ANY;
        // Of the families, the one of the source: the target may be a placeholder.
        if let Some(IpAddr::V6(_)) = self.source {
            site.target = SocketAddr::from((std::net::Ipv6Addr::LOCALHOST, 9)).into();
        }
        let mut workload = self.traffic(payload, &site, &Length::ANY);
        workload.af_xdp = self.af_xdp.as_ref().map(|place| place.on("eth0"));
        found.extend(workload.contradictions());
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
        let payload = self.payload.as_deref();
        let payload = payload.filter(|payload| !payload.starts_with("hex:"));
        payload.into_iter().chain(self.dns.as_deref()).collect()
    }

    fn paced(&self, rate: Option<Rate>) -> Box<dyn Driven> {
        let schedule = self.schedule.paced(rate);
        Box::new(Self {
            schedule,
            ..self.clone()
        })
    }

    fn prepare(&self, site: &Site<'_>) -> Result<Box<dyn Load>, Error> {
        let device = |place: &XdpPlace| {
            match (place, site.device) {
            (XdpPlace::Device(device), _) => Ok(device.clone()),
            (XdpPlace::Own(_), Some(own)) => Ok(place.on(own)),
            (XdpPlace::Own(_), None) => Err(site.wrong(
                "the generator has no device of its own here for AF_XDP; use namespaces, name a device in topology or af_xdp, or remove af_xdp",
            )),
        }
        };
        let af_xdp: Option<XdpDevice> = self.af_xdp.as_ref().map(device).transpose()?;
        let workload = Workload {
            af_xdp,
            ..self.traffic(self.payload(site)?, site, &Length::ANY)
        };
        workload.check()?;
        Ok(Box::new(workload))
    }
}

fn unhex(digits: &str) -> Result<Vec<u8>, String> {
    let why = || {
        format!(
            "cannot read 'hex:{digits}' as bytes; write two hexadecimal digits per byte, as in hex:00ff"
        )
    };
    tcp::unhex(digits).ok_or_else(why)
}
