//! The server against real sockets: over loopback, in namespaces of its own, and with the clients of others.
#![expect(
    clippy::disallowed_methods,
    clippy::unwrap_used,
    reason = "tests start clients, keep time themselves, and say aloud what they cannot do"
)]

mod af_xdp;
mod allocation;
mod client;
mod clients;
#[path = "../../examples/dns.rs"]
mod dns;
mod echo;
mod http;
mod messages;
mod namespace;
mod refusal;
mod robust;
#[path = "../../examples/sntp.rs"]
mod sntp;
mod steering;
mod stop;
mod tcp;
mod xdp;
