//! `kind = "udp"`: datagrams by rungwise itself.

use std::net::{Ipv4Addr, SocketAddr};
use std::time::Duration;

use rungwise_load::Error;
use rungwise_load::dns::Query;
use rungwise_load::udp::{
    self, Arrival, HEADER, LARGEST_BATCH, LARGEST_BURST, LARGEST_DEPTH, LARGEST_PAYLOAD, Payload,
    Stop, XdpDevice, XdpMode,
};
use rungwise_model::units;
use schemars::JsonSchema;
use serde::Deserialize;

use super::super::document::{At, Count as CountText, Document};
use super::super::resolve::Reader;
use super::super::{Count, Workload};
use super::{Kind, Tables};
use crate::design::Step;
use crate::stage::Traffic;

/// The traffic. Without `rate` a closed loop of `threads` x `sockets` x `depth` outstanding requests.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(in super::super) struct UdpTable {
    pub kind: UdpKind,
    /// Address and port of the service: `{server}:9000`, `127.0.0.1:53`, `[::1]:53`.
    pub target: At<String>,
    /// Size of a request that the service sends back as it came, 16B or more: its first 16 bytes number it. Default 100B.
    pub size: Option<At<String>>,
    /// File whose bytes are the request, for services that are no echo. Whatever comes back is the reply, so one request is
    /// outstanding per socket. Replaces `size`.
    pub payload: Option<At<String>>,
    /// File of DNS queries, a name and a type a line as dnsperf reads it; replaces `size` and `payload`.
    pub dns: Option<At<String>>,
    /// Threads of the generator. Default `{cpus}`.
    pub threads: Option<At<CountText>>,
    /// Sockets per thread. Default 8.
    pub sockets: Option<At<u32>>,
    /// Outstanding requests per socket. Default 16; 1 with `payload`.
    pub depth: Option<At<u32>>,
    /// Thread i of the generator runs on CPU i only. Default true.
    pub pin: Option<bool>,
    /// A request without a reply after this is lost. Default 200ms.
    pub timeout: Option<At<String>>,
    /// Datagrams per system call of the generator. Default 64.
    pub batch: Option<At<u32>>,
    /// Datagrams of one flow sent in one go (`UDP_SEGMENT`). Default 1.
    pub burst: Option<At<u32>>,
    /// Send and receive by the queues of the generator's device (`AF_XDP`) instead of by sockets, a queue per thread. Not with
    /// bursts. Default: sockets.
    pub af_xdp: Option<At<XdpPlace>>,
    /// Open loop at this rate instead of a closed loop: `20k/s`.
    pub rate: Option<At<String>>,
}

/// Where in the receive path of the generator's device its program runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub(in super::super) enum XdpPlace {
    /// After the socket buffer is made; works on every device.
    Generic,
    /// In the driver; on veth the one to take.
    Native,
}

/// What kind of traffic.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub(in super::super) enum UdpKind {
    /// A datagram out, a datagram back.
    Udp,
}

/// What a rung may change about the traffic.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(in super::super) struct UdpChange {
    /// Datagrams of one flow sent in one go (`UDP_SEGMENT`).
    pub burst: Option<At<u32>>,
    /// Outstanding requests per socket.
    pub depth: Option<At<u32>>,
    /// Datagrams per system call of the generator.
    pub batch: Option<At<u32>>,
}

/// What a request holds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Request {
    /// This many numbered bytes, which the service sends back as they came.
    Sized {
        /// Bytes of a request.
        bytes: usize,
    },
    /// The bytes of a file; whatever comes back is the reply, so one request is outstanding per socket.
    Opaque {
        /// Path of the file.
        file: String,
    },
    /// Queries from a file in dnsperf's format.
    Dns {
        /// Path of the file.
        file: String,
    },
}

/// Datagrams.
#[derive(Clone, Debug, PartialEq)]
pub struct Udp {
    /// Address and port of the service, with placeholders.
    pub target: String,
    /// What a request holds.
    pub request: Request,
    /// Threads of the generator.
    pub threads: Count,
    /// Sockets per thread.
    pub sockets: usize,
    /// Outstanding requests per socket.
    pub depth: usize,
    /// Thread i runs on CPU i only.
    pub pin: bool,
    /// A request without a reply after this is lost.
    pub timeout: Duration,
    /// Datagrams per system call.
    pub batch: usize,
    /// Datagrams of one flow sent in one go.
    pub burst: u16,
    /// Send and receive by the queues of the generator's device, so; by sockets where absent.
    pub af_xdp: Option<XdpMode>,
    /// Requests per second of an open loop; a closed loop where absent.
    pub rate_per_s: Option<f64>,
}

impl Tables for UdpTable {
    type Change = UdpChange;
}

impl Kind for UdpTable {
    const WARMUP_MS: u64 = 100;
    const MEASURE_MS: u64 = 300;

    fn resolve(table: &At<Self>, reader: &mut Reader<'_, '_>) -> Option<Workload> {
        let table = table.get();
        let UdpKind::Udp = table.kind;
        reader.target(&table.target);
        let request = request(table, reader)?;
        // Replies to a payload cannot be told apart, so one request is outstanding per socket.
        let depth = match request {
            Request::Opaque { .. } => 1,
            Request::Sized { .. } | Request::Dns { .. } => 16,
        };
        let number = |reader: &mut Reader<'_, '_>,
                      at: &Option<At<u32>>,
                      key: &str,
                      default: u32,
                      most: usize| {
            at.as_ref().map_or(default, |at| {
                reader.between(at, &format!("workload.{key}"), 1, most as u32)
            }) as usize
        };
        Some(Workload::Udp(Udp {
            target: table.target.get().clone(),
            request,
            threads: reader.count(table.threads.as_ref(), "workload.threads", 1024),
            sockets: number(reader, &table.sockets, "sockets", 8, LARGEST_DEPTH),
            depth: number(reader, &table.depth, "depth", depth, LARGEST_DEPTH),
            pin: table.pin.unwrap_or(true),
            timeout: reader.duration(table.timeout.as_ref(), "workload.timeout", 200),
            batch: number(reader, &table.batch, "batch", 64, LARGEST_BATCH),
            burst: number(reader, &table.burst, "burst", 1, usize::from(LARGEST_BURST)) as u16,
            af_xdp: table.af_xdp.as_ref().map(|place| match place.get() {
                XdpPlace::Generic => XdpMode::Generic,
                XdpPlace::Native => XdpMode::Native,
            }),
            rate_per_s: table
                .rate
                .as_ref()
                .map(|rate| reader.positive(rate, "workload.rate", units::per_second)),
        }))
    }

    fn traffic(change: &UdpChange, reader: &mut Reader<'_, '_>, key: &str) -> Traffic {
        let mut number = |at: &Option<At<u32>>, name: &str, most: usize| {
            let key = format!("{key}.workload.{name}");
            at.as_ref()
                .map(|at| reader.between(at, &key, 1, most as u32) as usize)
        };
        Traffic {
            burst: number(&change.burst, "burst", usize::from(LARGEST_BURST))
                .map(|burst| burst as u16),
            depth: number(&change.depth, "depth", LARGEST_DEPTH),
            batch: number(&change.batch, "batch", LARGEST_BATCH),
            ..Traffic::default()
        }
    }

    /// What the generator refuses, of the file's traffic or of a rung's.
    fn drivable(
        workload: &Workload,
        document: &Document<Self>,
        rungs: &[Step],
        reader: &mut Reader<'_, '_>,
    ) {
        let Workload::Udp(workload) = workload else {
            return;
        };
        let table = &document.workload;
        if let Some(why) = workload.contradiction(&Traffic::default()) {
            reader.problems.add(table.span(), "workload", why);
            return;
        }
        for (index, (rung, step)) in document.rungs.iter().zip(rungs).enumerate() {
            let key = format!("rungs[{index}].workload");
            let Some(table) = rung.get().workload.as_ref() else {
                continue;
            };
            let changed = [&table.burst, &table.depth, &table.batch];
            let at = changed.into_iter().flatten().next().map(At::span);
            if reader.problems.mentions(&key) {
                continue;
            }
            if let Some(why) = workload.contradiction(&step.traffic) {
                reader.problems.add(at.unwrap_or(rung.span()), key, why);
            }
        }
    }
}

fn request(table: &UdpTable, reader: &mut Reader<'_, '_>) -> Option<Request> {
    let others: &[(&str, &Option<At<String>>)] = match (&table.dns, &table.payload) {
        (Some(_), _) => &[("size", &table.size), ("payload", &table.payload)],
        (None, Some(_)) => &[("size", &table.size)],
        (None, None) => &[],
    };
    for (key, at) in others {
        if let Some(at) = at {
            let message = "the file of requests has its own sizes and content; take one out";
            reader
                .problems
                .add(at.span(), format!("workload.{key}"), message);
        }
    }
    if let Some(file) = &table.dns {
        return Some(Request::Dns {
            file: file.get().clone(),
        });
    }
    if let Some(file) = &table.payload {
        return Some(Request::Opaque {
            file: file.get().clone(),
        });
    }
    let bytes = match &table.size {
        None => 100,
        Some(size) => {
            let bytes = reader.unit(size, "workload.size", units::bytes)?;
            if !(HEADER as u64..=LARGEST_PAYLOAD as u64).contains(&bytes) {
                let message = format!(
                    "{bytes} bytes do not work: a reply is found by the first {HEADER} bytes, \
                     and a datagram holds {LARGEST_PAYLOAD}; choose a size between"
                );
                reader.problems.add(size.span(), "workload.size", message);
            }
            bytes
        }
    };
    Some(Request::Sized {
        bytes: bytes as usize,
    })
}

impl Udp {
    /// This traffic for a machine whose `cpus` may be used, at the target and with the requests that it names.
    pub(crate) fn driven(
        &self,
        target: SocketAddr,
        payload: Payload,
        cpus: &[usize],
    ) -> udp::Workload {
        udp::Workload {
            target,
            source: None,
            threads: self.threads.on(cpus.len()),
            sockets: self.sockets,
            depth: self.depth,
            pins: self.pin.then(|| cpus.to_vec()),
            arrival: self
                .rate_per_s
                .map_or(Arrival::Closed, |per_s| Arrival::Constant { per_s }),
            payload,
            batch: self.batch,
            burst: (self.burst > 1).then_some(self.burst),
            timeout: self.timeout,
            warmup: Duration::ZERO,
            stop: Stop::After(Duration::from_secs(1)),
            seed: 0,
            pmtudisc_do: false,
            af_xdp: None,
        }
    }

    /// Why the generator refuses this traffic with the changes of a rung. What only the machine or a file can tell (the
    /// target, requests, CPUs, the device) is taken for something that works.
    pub(super) fn contradiction(&self, traffic: &Traffic) -> Option<String> {
        let payload = match &self.request {
            Request::Sized { bytes } => Payload::Sequenced { size: *bytes },
            Request::Opaque { .. } => Payload::Opaque(vec![0]),
            Request::Dns { .. } => Payload::Dns(Query::new(".", "A").into_iter().collect()),
        };
        let target = SocketAddr::from((Ipv4Addr::LOCALHOST, 9));
        let mut workload = udp::Workload {
            af_xdp: self.af_xdp.map(|mode| XdpDevice {
                device: "eth0".to_owned(),
                mode,
            }),
            ..self.driven(target, payload, &[0])
        };
        change(&mut workload, traffic);
        workload.check().err().map(|error| match error {
            Error::Workload { why, .. } => why,
            other => other.to_string(),
        })
    }
}

/// Gives `workload` the traffic of a rung.
pub(crate) fn change(workload: &mut udp::Workload, traffic: &Traffic) {
    if let Some(burst) = traffic.burst {
        // One datagram at a time is no burst.
        workload.burst = (burst > 1).then_some(burst);
    }
    workload.depth = traffic.depth.unwrap_or(workload.depth);
    workload.batch = traffic.batch.unwrap_or(workload.batch);
}
