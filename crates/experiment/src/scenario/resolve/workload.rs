//! The traffic.

use std::net::SocketAddr;

use rungwise_load::udp::XdpMode;
use rungwise_model::units;

use super::super::document::{At, RungTable, WorkloadKind, WorkloadTable, XdpPlace};
use super::super::{Request, Workload, fill};
use super::{Reader, sample_places};

/// Smallest request whose reply can be matched: the generator's header.
const HEADER_BYTES: u64 = 16;
/// Largest payload of a UDP datagram over IPv4: 65535 less 20 bytes of IP and 8 of UDP header.
const LARGEST_BYTES: u64 = 65_507;
/// Most datagrams that `UDP_SEGMENT` takes in one call: `UDP_MAX_SEGMENTS`, include/linux/udp.h, Linux 6.18.
pub(super) const MOST_SEGMENTS: u32 = 128;
/// Most messages that `sendmmsg` takes: `UIO_MAXIOV`.
pub(super) const MOST_BATCH: u32 = 1024;
/// A guess above any sensible load; protects memory, since every slot is allocated beforehand.
pub(super) const MOST_PER_THREAD: u32 = 65_536;

impl Reader<'_, '_> {
    pub(super) fn workload(&mut self, at: &At<WorkloadTable>) -> Option<Workload> {
        let table = at.get();
        let WorkloadKind::Udp = table.kind;
        self.target(&table.target);
        let request = self.request(table)?;
        let (depth, most_depth) = match request {
            Request::Opaque { .. } => (1, 1),
            Request::Sized { .. } | Request::Dns { .. } => (16, MOST_PER_THREAD),
        };
        let number =
            |reader: &mut Self, at: &Option<At<u32>>, key: &str, default: u32, most: u32| {
                at.as_ref().map_or(default, |at| {
                    reader.between(at, &format!("workload.{key}"), 1, most)
                }) as usize
            };
        Some(Workload {
            target: table.target.get().clone(),
            request,
            threads: self.count(table.threads.as_ref(), "workload.threads", 1024),
            sockets: number(self, &table.sockets, "sockets", 8, MOST_PER_THREAD),
            depth: number(self, &table.depth, "depth", depth, most_depth),
            pin: table.pin.unwrap_or(true),
            timeout: self.duration(table.timeout.as_ref(), "workload.timeout", 200),
            batch: number(self, &table.batch, "batch", 64, MOST_BATCH),
            burst: number(self, &table.burst, "burst", 1, MOST_SEGMENTS) as u16,
            af_xdp: table.af_xdp.as_ref().map(|place| match place.get() {
                XdpPlace::Generic => XdpMode::Generic,
                XdpPlace::Native => XdpMode::Native,
            }),
            rate_per_s: table
                .rate
                .as_ref()
                .map(|rate| self.positive(rate, "workload.rate", units::per_second)),
        })
    }

    pub(super) fn target(&mut self, target: &At<String>) {
        // An address of either family may take the place of a placeholder.
        let filled: Result<Vec<String>, _> = ["192.0.2.1", "2001:db8::1"]
            .iter()
            .map(|address| fill(target.get(), &sample_places(address)))
            .collect();
        let why = match filled {
            Err(error) => error.to_string(),
            Ok(filled) if filled.iter().any(|text| text.parse::<SocketAddr>().is_ok()) => return,
            Ok(_) => format!(
                "'{}' is not an address and port; write it as {{server}}:9000, 127.0.0.1:53 or [::1]:53",
                target.get()
            ),
        };
        self.problems.add(target.span(), "workload.target", why);
    }

    pub(super) fn request(&mut self, table: &WorkloadTable) -> Option<Request> {
        let others: &[(&str, &Option<At<String>>)] = match (&table.dns, &table.payload) {
            (Some(_), _) => &[("size", &table.size), ("payload", &table.payload)],
            (None, Some(_)) => &[("size", &table.size)],
            (None, None) => &[],
        };
        for (key, at) in others {
            if let Some(at) = at {
                let message = "the file of requests has its own sizes and content; take one out";
                self.problems
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
                let bytes = self.unit(size, "workload.size", units::bytes)?;
                if !(HEADER_BYTES..=LARGEST_BYTES).contains(&bytes) {
                    let message = format!(
                        "{bytes} bytes do not work: a reply is found by the first {HEADER_BYTES} bytes, \
                         and a datagram holds {LARGEST_BYTES}; choose a size between"
                    );
                    self.problems.add(size.span(), "workload.size", message);
                }
                bytes
            }
        };
        Some(Request::Sized {
            bytes: bytes as usize,
        })
    }

    /// Bursts of a generator that sends frame by frame.
    pub(super) fn no_bursts(&mut self, workload: &WorkloadTable, rungs: &[At<RungTable>]) {
        let own = ("workload".to_owned(), &workload.burst);
        let of_rungs = rungs.iter().enumerate().filter_map(|(index, rung)| {
            let table = rung.get().workload.as_ref()?;
            Some((format!("rungs[{index}].workload"), &table.burst))
        });
        for (path, burst) in std::iter::once(own).chain(of_rungs) {
            if let Some(burst) = burst.as_ref().filter(|burst| *burst.get() > 1) {
                let message = "AF_XDP sends frame by frame, and a burst is the work of a socket; take out \
                               'workload.af_xdp' or the burst";
                self.problems
                    .add(burst.span(), format!("{path}.burst"), message);
            }
        }
    }

    /// Rungs whose depth contradicts requests that cannot be told apart.
    pub(super) fn one_outstanding(&mut self, rungs: &[At<RungTable>]) {
        for (index, rung) in rungs.iter().enumerate() {
            let depth = rung
                .get()
                .workload
                .as_ref()
                .and_then(|table| table.depth.as_ref());
            if let Some(depth) = depth.filter(|depth| *depth.get() > 1) {
                let message = "replies to a 'payload' cannot be told apart, so one request is outstanding per socket; \
                               raise 'sockets' instead";
                self.problems.add(
                    depth.span(),
                    format!("rungs[{index}].workload.depth"),
                    message,
                );
            }
        }
    }
}
