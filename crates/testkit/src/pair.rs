//! Two namespaces joined by a veth pair: one to answer, one to ask.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use rungwise_host::Result;
use rungwise_host::namespace::Namespace;
use rungwise_host::veth::{self, End, Spec};

/// The namespaces; the devices and addresses are the constants.
#[derive(Debug)]
pub struct Pair {
    /// Of the answering end.
    pub server: Namespace,
    /// Of the asking end.
    pub client: Namespace,
}

impl Pair {
    /// Address of the answering end.
    pub const SERVER: Ipv4Addr = Ipv4Addr::new(10, 78, 0, 1);
    /// Address of the asking end.
    pub const CLIENT: Ipv4Addr = Ipv4Addr::new(10, 78, 0, 2);
    /// The same with [`Self::both_families`].
    pub const SERVER6: Ipv6Addr = Ipv6Addr::new(0xfd78, 0, 0, 0, 0, 0, 0, 1);
    /// The same with [`Self::both_families`].
    pub const CLIENT6: Ipv6Addr = Ipv6Addr::new(0xfd78, 0, 0, 0, 0, 0, 0, 2);
    /// Device of the answering end.
    pub const SERVER_DEVICE: &'static str = "srv0";
    /// Device of the asking end.
    pub const CLIENT_DEVICE: &'static str = "cli0";

    /// With as many receive and transmit queues at each end, and IPv4 alone.
    pub fn new(queues: u32) -> Result<Self> {
        Self::with(queues, |ip4, _| vec![(ip4.into(), 24)])
    }

    /// The same with IPv6 too.
    pub fn both_families(queues: u32) -> Result<Self> {
        Self::with(queues, |ip4, ip6| vec![(ip4.into(), 24), (ip6.into(), 64)])
    }

    fn with(
        queues: u32,
        addresses: impl Fn(Ipv4Addr, Ipv6Addr) -> Vec<(IpAddr, u8)>,
    ) -> Result<Self> {
        let server = Namespace::create("server")?;
        let client = Namespace::create("client")?;
        let end = |device: &str, addresses| End {
            device: device.to_owned(),
            addresses,
        };
        let spec = Spec {
            queues,
            ends: [
                end(Self::SERVER_DEVICE, addresses(Self::SERVER, Self::SERVER6)),
                end(Self::CLIENT_DEVICE, addresses(Self::CLIENT, Self::CLIENT6)),
            ],
        };
        veth::connect(&server, &client, &spec)?;
        Ok(Self { server, client })
    }
}
