//! What can keep a load from being measured.

use std::io;
use std::net::IpAddr;

use crate::parameters::Target;

/// Why there is no measurement.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The workload contradicts itself.
    #[error("cannot load {target}: {why}")]
    Workload {
        /// The target.
        target: Target,
        /// What is wrong, and what would be right.
        why: String,
    },
    /// A line of a query file is not a query.
    #[error("cannot read line {line} of the query file: {why}")]
    QueryFile {
        /// Line number, from 1.
        line: usize,
        /// What is wrong, and what would be right.
        why: String,
    },
    /// The process may not open that many files.
    #[error(
        "cannot open {needed} sockets: this process may have {limit} files open; \
         use fewer --sockets, --connections or --threads, or raise the limit (ulimit -n)"
    )]
    FileLimit {
        /// Descriptors needed.
        needed: u64,
        /// Descriptors allowed.
        limit: u64,
    },
    /// A limit of this host does not allow so many connections.
    #[error(
        "cannot open {count} connections to {target}: limit {id}: at most {allows} connections ({basis}); raise it with {knob}, \
         lower --count to {allows}, or open what fits with --partial"
    )]
    HostLimit {
        /// The target.
        target: Target,
        /// Connections that were asked for.
        count: u64,
        /// Connections that it allows.
        allows: u64,
        /// Its name.
        id: String,
        /// What it was computed from.
        basis: String,
        /// What moves it.
        knob: String,
    },
    /// No connection was established.
    #[error(
        "cannot connect to {target}: none of {tried} connections was established in {after_s:.1} s ({errors}); {remedy}"
    )]
    NoConnections {
        /// The target.
        target: Target,
        /// Connections that were tried.
        tried: u64,
        /// How long was waited, seconds.
        after_s: f64,
        /// Why they failed, with numbers.
        errors: String,
        /// What to do.
        remedy: &'static str,
    },
    /// A socket could not be opened, bound, set up or connected.
    #[error("cannot {step} for {target}{}: {error}; {remedy}", from(.source_ip.as_ref()))]
    Socket {
        /// What was tried: `open a socket`, `connect a socket`.
        step: &'static str,
        /// The target.
        target: Target,
        /// Source address asked for.
        source_ip: Option<IpAddr>,
        /// The kernel's reason. The sentence contains it, so it is not a `source` to be printed again.
        error: io::Error,
        /// What to do.
        remedy: &'static str,
    },
    /// TLS could not be established with the server.
    #[error("cannot establish TLS with {target}: {why}; {remedy}")]
    Tls {
        /// The target.
        target: Target,
        /// Why it failed.
        why: String,
        /// What to do.
        remedy: String,
    },
    /// The server refuses what a connection begins with, such as a password.
    #[error("cannot begin with {target}: the server answers '{why}'; {remedy}")]
    Unwelcome {
        /// The target.
        target: Target,
        /// What the server answers.
        why: String,
        /// What to do.
        remedy: &'static str,
    },
    /// HTTP/2 could not be established with the server.
    #[error("cannot speak HTTP/2 with {target}: {why}; {remedy}")]
    Http2 {
        /// The target.
        target: Target,
        /// Why it failed.
        why: String,
        /// What to do.
        remedy: String,
    },
    /// The queues of a device are unavailable, or do not lead to the target.
    #[error("cannot {step} for {target} by AF_XDP on {device}: {error}; {remedy}")]
    AfXdp {
        /// What was tried.
        step: &'static str,
        /// Name of the device.
        device: String,
        /// The target.
        target: Target,
        /// Why it failed.
        error: io::Error,
        /// What to do.
        remedy: &'static str,
    },
    /// A generator thread could not be prepared.
    #[error("cannot {step} in generator thread {thread}: {error}; {remedy}")]
    Thread {
        /// Which thread, from 0.
        thread: usize,
        /// What was tried.
        step: &'static str,
        /// Why it failed.
        error: io::Error,
        /// What to do.
        remedy: &'static str,
    },
    /// Nothing answered.
    #[error("no reply from {target} to {sent} requests in {after_s:.1} s{}", no_reply(*.refused, *.send_errors))]
    NoReplies {
        /// The target.
        target: Target,
        /// Requests sent.
        sent: u64,
        /// ICMP "port unreachable" that came back.
        refused: u64,
        /// Requests that the kernel did not take.
        send_errors: u64,
        /// How long was waited, seconds.
        after_s: f64,
    },
    /// The caller's flag was raised.
    #[error("interrupted after {after_s:.1} s; nothing was measured")]
    Interrupted {
        /// When, seconds after the start.
        after_s: f64,
    },
}

impl Error {
    /// Another process has the port.
    pub(crate) fn is_port_in_use(&self) -> bool {
        matches!(self, Self::Socket { error, .. } if error.kind() == io::ErrorKind::AddrInUse)
    }
}

fn from(source: Option<&IpAddr>) -> String {
    source.map(|ip| format!(" from {ip}")).unwrap_or_default()
}

fn no_reply(refused: u64, send_errors: u64) -> &'static str {
    if refused > 0 {
        ": the port is closed (connection refused, or ICMP port unreachable); start the server, or correct the port"
    } else if send_errors > 0 {
        ": the kernel did not send (no route, no free port, a firewall rule, or the datagram exceeds the MTU); \
         check the route and the size"
    } else {
        "; check address and port, a firewall on the path, that the server answers this request, and within --timeout"
    }
}
