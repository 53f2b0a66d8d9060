//! What all kinds of workload have in common.

use std::net::SocketAddr;

use super::super::document::At;
use super::super::fill;
use super::{Reader, SAMPLES, sample_places};

impl Reader<'_, '_> {
    pub(in super::super) fn target(&mut self, target: &At<String>) {
        self.address(target, "workload.target");
    }

    /// Notes it where a template gives no address and port.
    pub(super) fn address(&mut self, target: &At<String>, key: &str) {
        let filled: Result<Vec<String>, _> = SAMPLES
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
        self.problems.add(target.span(), key, why);
    }
}
