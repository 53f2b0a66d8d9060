//! Access against a real kernel: namespaces, devices, services, CPU accounting.
//!
//! Everything happens in namespaces that the tests make. What needs root says so when it is missing.
#![expect(
    clippy::disallowed_methods,
    clippy::unwrap_used,
    reason = "tests of the access itself; their helpers are tests too"
)]

mod accounting;
mod devices;
mod hotspot;
mod peers;
mod services;
mod sockets;
mod topology;

use std::net::IpAddr;
use std::time::{Duration, Instant};

use rungwise_host::namespace::Namespace;
use rungwise_host::privilege::{self, Privilege};
use rungwise_host::veth::{self, End, Spec};
use rungwise_testkit::skipped;

/// Whether this is root, as CI is; said loudly where it is not.
pub(crate) fn root_or_skip() -> bool {
    let root = privilege::detect() == Privilege::Root;
    if !root {
        skipped("needs root, run the tests as root");
    }
    root
}

/// Two namespaces joined by a pair with two queues: `10.77.0.1/2`, `fd77::1/2` on `srv0` and `cli0`.
pub(crate) fn pair() -> (Namespace, Namespace) {
    let near = Namespace::create("server").unwrap();
    let far = Namespace::create("client").unwrap();
    veth::connect(&near, &far, &spec(2)).unwrap();
    (near, far)
}

pub(crate) fn spec(queues: u32) -> Spec {
    let end = |device: &str, last: u8| End {
        device: device.to_owned(),
        addresses: vec![
            (IpAddr::from([10, 77, 0, last]), 24),
            (
                IpAddr::from([0xfd77, 0, 0, 0, 0, 0, 0, u16::from(last)]),
                64,
            ),
        ],
    };
    Spec {
        queues,
        ends: [end("srv0", 1), end("cli0", 2)],
    }
}

/// Waits for what another task brings about; fails after a time that only a broken machine needs.
pub(crate) fn eventually(what: &str, condition: impl Fn() -> bool) {
    let began = Instant::now();
    while !condition() {
        assert!(began.elapsed() < Duration::from_secs(20), "{what}");
        std::thread::yield_now();
    }
}
