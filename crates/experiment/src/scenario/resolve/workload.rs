//! The traffic.

use std::net::SocketAddr;

use rungwise_load::udp::{
    HEADER, LARGEST_BATCH, LARGEST_BURST, LARGEST_DEPTH, LARGEST_PAYLOAD, XdpMode,
};
use rungwise_model::units;

use super::super::document::{At, Document, WorkloadKind, WorkloadTable, XdpPlace};
use super::super::{Request, Workload, fill};
use super::{Reader, sample_places};
use crate::design::Step;
use crate::stage::Traffic;

impl Reader<'_, '_> {
    pub(super) fn workload(&mut self, at: &At<WorkloadTable>) -> Option<Workload> {
        let table = at.get();
        let WorkloadKind::Udp = table.kind;
        self.target(&table.target);
        let request = self.request(table)?;
        // Replies to a payload cannot be told apart, so one request is outstanding per socket.
        let depth = match request {
            Request::Opaque { .. } => 1,
            Request::Sized { .. } | Request::Dns { .. } => 16,
        };
        let number =
            |reader: &mut Self, at: &Option<At<u32>>, key: &str, default: u32, most: usize| {
                at.as_ref().map_or(default, |at| {
                    reader.between(at, &format!("workload.{key}"), 1, most as u32)
                }) as usize
            };
        Some(Workload {
            target: table.target.get().clone(),
            request,
            threads: self.count(table.threads.as_ref(), "workload.threads", 1024),
            sockets: number(self, &table.sockets, "sockets", 8, LARGEST_DEPTH),
            depth: number(self, &table.depth, "depth", depth, LARGEST_DEPTH),
            pin: table.pin.unwrap_or(true),
            timeout: self.duration(table.timeout.as_ref(), "workload.timeout", 200),
            batch: number(self, &table.batch, "batch", 64, LARGEST_BATCH),
            burst: number(self, &table.burst, "burst", 1, usize::from(LARGEST_BURST)) as u16,
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
                if !(HEADER as u64..=LARGEST_PAYLOAD as u64).contains(&bytes) {
                    let message = format!(
                        "{bytes} bytes do not work: a reply is found by the first {HEADER} bytes, \
                         and a datagram holds {LARGEST_PAYLOAD}; choose a size between"
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

    /// What the generator refuses, of the file's traffic or of a rung's.
    pub(super) fn drivable(&mut self, workload: &Workload, document: &Document, rungs: &[Step]) {
        // What has a wrong value would be refused for it again.
        if self.problems.mentions("workload") {
            return;
        }
        let table = &document.workload;
        if let Some(why) = workload.contradiction(&Traffic::default()) {
            self.problems.add(table.span(), "workload", why);
            return;
        }
        for (index, (rung, step)) in document.rungs.iter().zip(rungs).enumerate() {
            let key = format!("rungs[{index}].workload");
            let Some(table) = rung.get().workload.as_ref() else {
                continue;
            };
            let changed = [&table.burst, &table.depth, &table.batch];
            let at = changed.into_iter().flatten().next().map(At::span);
            if self.problems.mentions(&key) {
                continue;
            }
            if let Some(why) = workload.contradiction(&step.traffic) {
                self.problems.add(at.unwrap_or(rung.span()), key, why);
            }
        }
    }
}
