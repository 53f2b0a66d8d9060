//! The traffic as the generator takes it.
//!
//! The generator knows best what it cannot drive, and is asked while the file is read: for the traffic of the file and
//! for that of every rung, before anything is started.

use std::net::{Ipv4Addr, SocketAddr};
use std::time::Duration;

use rungwise_load::Error;
use rungwise_load::dns::Query;
use rungwise_load::udp::{self, Arrival, Payload, Stop, XdpDevice};

use super::{Request, Workload};
use crate::stage::Traffic;

impl Workload {
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
