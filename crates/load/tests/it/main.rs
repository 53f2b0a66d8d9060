//! The load generator against small servers in this process, over loopback.
#![expect(
    clippy::unwrap_used,
    clippy::disallowed_methods,
    reason = "tests may fail, and their servers own a clock"
)]

mod af_xdp;
mod allocations;
mod alone;
mod closed;
mod contract;
mod dubbo;
mod http;
mod http2;
mod http2_server;
mod limits;
mod matching;
mod open;
mod plan;
mod programs;
mod requests;
mod server;
mod tcp;
mod tls;
