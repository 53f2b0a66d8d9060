//! The connections of a service: which ones are meant, and which side of each is slow.

use std::fmt;
use std::net::IpAddr;
use std::str::FromStr;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::kernel::{Endpoint, TcpSocket};

/// Selects the TCP connections of a server by its port, and by its address if one is given.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(into = "String", try_from = "String")]
pub struct ServicePort {
    /// Address of the server; none for any.
    pub address: Option<IpAddr>,
    /// Its port.
    pub port: u16,
}

impl ServicePort {
    /// A server at this address, in any of its forms; the unspecified address stands for any.
    pub fn new(address: Option<IpAddr>, port: u16) -> Self {
        let address = address.map(|address| address.to_canonical());
        Self {
            address: address.filter(|address| !address.is_unspecified()),
            port,
        }
    }

    /// Whether this is the server's end of a connection.
    pub fn is_at(&self, end: Endpoint) -> bool {
        end.port == self.port && self.address.is_none_or(|address| address == end.address)
    }

    /// Whether this socket listens for it, or is either end of one of its connections.
    pub fn has(&self, socket: &TcpSocket) -> bool {
        self.is_served_at(socket.local) || self.is_at(socket.remote)
    }

    /// Whether what listens at `end` serves it.
    pub fn is_served_at(&self, end: Endpoint) -> bool {
        end.port == self.port && (end.address.is_unspecified() || self.is_at(end))
    }
}

impl fmt::Display for ServicePort {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.address {
            Some(address) => Endpoint::new(address, self.port).fmt(f),
            None => write!(f, ":{}", self.port),
        }
    }
}

impl FromStr for ServicePort {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let wrong =
            || format!("'{text}' is not a port; write :20880, 10.0.0.1:20880 or [::1]:20880");
        let found = if let Ok(port) = text.strip_prefix(':').unwrap_or(text).parse::<u16>() {
            Self::new(None, port)
        } else {
            let end: Endpoint = text.parse().map_err(|_| wrong())?;
            Self::new(Some(end.address), end.port)
        };
        if found.port == 0 {
            return Err(wrong());
        }
        Ok(found)
    }
}

impl From<ServicePort> for String {
    fn from(port: ServicePort) -> Self {
        port.to_string()
    }
}

impl TryFrom<String> for ServicePort {
    type Error = String;

    fn try_from(text: String) -> Result<Self, Self::Error> {
        text.parse()
    }
}

/// The connections of the service that was named with `--socket`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ServiceReport {
    /// The ports as they were named: `:20880`, `10.0.0.1:20880`.
    pub ports: Vec<String>,
    /// Connections of the service at the end of the window.
    pub connections: u64,
    /// Samples of their queues during the window.
    pub samples: u64,
    /// Bytes per second of all of them, from the server to its clients; null with a single sample.
    pub to_clients_bytes_per_s: Option<f64>,
    /// The same from the clients to the server.
    pub to_server_bytes_per_s: Option<f64>,
    /// The busiest, the most limited and those with the fullest queues, at most 50; the worst first. Their numbers are in the table `service`.
    pub judged: Vec<ServiceConnection>,
}

/// One connection of a service, judged over the window.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ServiceConnection {
    /// Both ends, that of this host first: `10.0.0.1:20880>10.0.0.2:40112`.
    pub connection: String,
    /// Which side of it is slow.
    pub slow: Side,
    /// Why.
    pub cause: Cause,
    /// The same in words, with the readings it is based on.
    pub why: String,
}

/// The slow side of a connection.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "snake_case")]
pub enum Side {
    /// The server.
    Server,
    /// Its client.
    Client,
    /// The network between them.
    Path,
    /// Data moved, and nothing held it back.
    Neither,
    /// It carried nothing.
    Idle,
    /// Some of its readings are missing.
    Unknown,
}

/// What makes a side slow.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "snake_case")]
pub enum Cause {
    /// Its process does not read what arrived: a larger buffer does not help.
    NotReading,
    /// Its process reads at once, and its receive buffer is too small.
    ReceiveBuffer,
    /// Its window is closed, and its receive queue cannot be seen.
    Window,
    /// Its send buffer is too small.
    SendBuffer,
    /// Segments are lost.
    Loss,
    /// The congestion window is used up.
    CongestionWindow,
    /// One of its threads has no more time.
    BusyThread,
    /// None.
    None,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_port_is_written_as_it_is_read() {
        for (text, shown) in [
            (":20880", ":20880"),
            ("20880", ":20880"),
            ("10.0.0.1:80", "10.0.0.1:80"),
            ("[::1]:80", "[::1]:80"),
            ("[::ffff:10.0.0.1]:80", "10.0.0.1:80"),
            ("0.0.0.0:80", ":80"),
        ] {
            let port: ServicePort = text.parse().unwrap();
            assert_eq!(port.to_string(), shown, "{text}");
        }
        for wrong in [
            "",
            ":",
            ":0",
            ":65536",
            "10.0.0.1",
            "::1",
            "a:80",
            "10.0.0.1:0",
        ] {
            assert!(wrong.parse::<ServicePort>().is_err(), "{wrong}");
        }
    }

    #[test]
    fn a_listener_on_every_address_serves_each() {
        let port: ServicePort = "10.0.0.1:80".parse().unwrap();
        let end = |text: &str| text.parse::<Endpoint>().unwrap();
        assert!(port.is_served_at(end("0.0.0.0:80")) && port.is_served_at(end("[::]:80")));
        assert!(port.is_served_at(end("10.0.0.1:80")));
        assert!(!port.is_served_at(end("10.0.0.2:80")) && !port.is_served_at(end("0.0.0.0:81")));
        assert!(port.is_at(end("10.0.0.1:80")) && !port.is_at(end("0.0.0.0:80")));
    }
}
