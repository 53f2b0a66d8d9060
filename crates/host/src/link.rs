//! Links, addresses and neighbours by rtnetlink, in the namespace of the calling thread.
//!
//! Six requests, each one message. Source: linux/rtnetlink.h, `if_link.h`, `if_addr.h`, neighbour.h.

use std::ffi::CString;
use std::io;
use std::net::IpAddr;
use std::os::fd::{AsRawFd as _, BorrowedFd};

use crate::netlink::{
    ACK, CREATE, DUMP, EXCLUSIVE, Message, REPLACE, Request, find, number32, text,
};

const NEW_LINK: u16 = 16;
const DELETE_LINK: u16 = 17;
const GET_LINK: u16 = 18;
const NEW_ADDRESS: u16 = 20;
const NEW_NEIGHBOUR: u16 = 28;

const IFLA_IFNAME: u16 = 3;
const IFLA_LINKINFO: u16 = 18;
const IFLA_NET_NS_FD: u16 = 28;
const IFLA_EXT_MASK: u16 = 29;
const IFLA_NUM_TX_QUEUES: u16 = 31;
const IFLA_NUM_RX_QUEUES: u16 = 32;
const INFO_KIND: u16 = 1;
const INFO_DATA: u16 = 2;
const VETH_INFO_PEER: u16 = 1;
const IFA_ADDRESS: u16 = 1;
const IFA_LOCAL: u16 = 2;
const NDA_DST: u16 = 1;
const NDA_LLADDR: u16 = 2;
const IFA_F_NODAD: u8 = 2;
const NUD_PERMANENT: u16 = 0x80;
const IFF_UP: u32 = 1;
const IFF_RUNNING: u32 = 0x40;
/// Counters are read elsewhere; without them the dump is half as long (since Linux 4.4).
const SKIP_STATISTICS: u32 = 1 << 3;
/// struct ifinfomsg.
const FIXED: usize = 16;

/// A device as rtnetlink lists it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Link {
    pub(crate) index: u32,
    pub(crate) name: String,
    /// `veth`, `bridge`; empty for hardware and `lo`.
    pub(crate) kind: String,
    /// Up and with a carrier.
    pub(crate) up: bool,
    pub(crate) rx_queues: u32,
    pub(crate) tx_queues: u32,
}

/// All devices in the order of their index.
pub(crate) fn list() -> io::Result<Vec<Link>> {
    let mut request = Request::default();
    request
        .message(GET_LINK, DUMP, &interface(0, 0, 0))
        .attribute(IFLA_EXT_MASK, &SKIP_STATISTICS.to_ne_bytes());
    // Devices that come and go during four dumps in a row deserve the error.
    let mut again = 3;
    loop {
        let mut links: Vec<Link> = Vec::new();
        let listed = request.each(libc::NETLINK_ROUTE as isize, |message| {
            links.extend(link(message));
        });
        match listed {
            Ok(()) => {
                links.sort_by_key(|link| link.index);
                return Ok(links);
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted && again > 0 => again -= 1,
            Err(error) => return Err(error),
        }
    }
}

fn link(message: &Message<'_>) -> Option<Link> {
    if message.kind != NEW_LINK {
        return None;
    }
    let fixed = message.fixed(FIXED);
    let part = |kind| find(message.rest(FIXED), kind);
    let number = |kind| part(kind).and_then(|value| number32(value, 0));
    let flags = number32(fixed, 8)?;
    Some(Link {
        index: number32(fixed, 4)?,
        name: part(IFLA_IFNAME).map(text)?,
        kind: part(IFLA_LINKINFO)
            .and_then(|info| find(info, INFO_KIND))
            .map(text)
            .unwrap_or_default(),
        up: flags & IFF_UP != 0 && flags & IFF_RUNNING != 0,
        rx_queues: number(IFLA_NUM_RX_QUEUES).unwrap_or_default(),
        tx_queues: number(IFLA_NUM_TX_QUEUES).unwrap_or_default(),
    })
}

/// Index of a device.
pub(crate) fn index(device: &str) -> io::Result<u32> {
    #[expect(unsafe_code, reason = "only libc or a dump gives the index of a name")]
    fn of(name: &CString) -> u32 {
        // SAFETY: `name` is a zero-terminated string that outlives the call.
        unsafe { libc::if_nametoindex(name.as_ptr()) }
    }
    let name = CString::new(device).map_err(|_| io::Error::from_raw_os_error(libc::ENODEV))?;
    match of(&name) {
        0 => Err(io::Error::last_os_error()),
        index => Ok(index),
    }
}

/// Makes a veth pair with `queues` queues each way; the far end starts in `far_namespace`.
pub(crate) fn create_veth(
    near: &str,
    far: &str,
    queues: u32,
    far_namespace: BorrowedFd<'_>,
) -> io::Result<()> {
    let header = interface(0, 0, 0);
    let end = |request: &mut Request, device: &str| {
        request
            .text(IFLA_IFNAME, device)
            .attribute(IFLA_NUM_TX_QUEUES, &queues.to_ne_bytes())
            .attribute(IFLA_NUM_RX_QUEUES, &queues.to_ne_bytes());
    };
    let mut request = Request::default();
    end(
        request.message(NEW_LINK, ACK | CREATE | EXCLUSIVE, &header),
        near,
    );
    request.nested(IFLA_LINKINFO, |info| {
        info.text(INFO_KIND, "veth").nested(INFO_DATA, |data| {
            data.nested(VETH_INFO_PEER, |peer| {
                end(peer.raw(&header), far);
                peer.attribute(IFLA_NET_NS_FD, &far_namespace.as_raw_fd().to_ne_bytes());
            });
        });
    });
    send(&request)
}

/// Deletes a link; the other end of a veth pair goes with it.
pub(crate) fn delete(device: &str) -> io::Result<()> {
    let mut request = Request::default();
    request.message(DELETE_LINK, ACK, &interface(index(device)?, 0, 0));
    send(&request)
}

/// Sets a link administratively up.
pub(crate) fn set_up(device: &str) -> io::Result<()> {
    let mut request = Request::default();
    request.message(NEW_LINK, ACK, &interface(index(device)?, IFF_UP, IFF_UP));
    send(&request)
}

/// Adds an address that can be used at once: no duplicate address detection.
pub(crate) fn add_address(device: &str, address: IpAddr, prefix: u8) -> io::Result<()> {
    // struct ifaddrmsg: family, prefix length, flags, scope (0 = global), index.
    let mut fixed = vec![family(address), prefix, IFA_F_NODAD, 0];
    fixed.extend(index(device)?.to_ne_bytes());
    let mut request = Request::default();
    request
        .message(NEW_ADDRESS, ACK | CREATE | EXCLUSIVE, &fixed)
        .attribute(IFA_LOCAL, &octets(address))
        .attribute(IFA_ADDRESS, &octets(address));
    send(&request)
}

/// Enters the hardware address of a neighbour for good: no ARP, no neighbour discovery.
pub(crate) fn add_neighbour(device: &str, address: IpAddr, hardware: [u8; 6]) -> io::Result<()> {
    // struct ndmsg: family, padding, index, state, flags, type.
    let mut fixed = vec![family(address), 0, 0, 0];
    fixed.extend(index(device)?.to_ne_bytes());
    fixed.extend(NUD_PERMANENT.to_ne_bytes());
    fixed.extend([0, 0]);
    let mut request = Request::default();
    request
        .message(NEW_NEIGHBOUR, ACK | CREATE | REPLACE, &fixed)
        .attribute(NDA_DST, &octets(address))
        .attribute(NDA_LLADDR, &hardware);
    send(&request)
}

fn send(request: &Request) -> io::Result<()> {
    request.send(libc::NETLINK_ROUTE as isize)
}

/// struct ifinfomsg: family, padding, device type, index, flags, change mask.
fn interface(index: u32, flags: u32, change: u32) -> [u8; FIXED] {
    let mut fixed = [0; FIXED];
    fixed[4..8].copy_from_slice(&index.to_ne_bytes());
    fixed[8..12].copy_from_slice(&flags.to_ne_bytes());
    fixed[12..].copy_from_slice(&change.to_ne_bytes());
    fixed
}

fn family(address: IpAddr) -> u8 {
    (if address.is_ipv4() {
        libc::AF_INET
    } else {
        libc::AF_INET6
    }) as u8
}

fn octets(address: IpAddr) -> Vec<u8> {
    match address {
        IpAddr::V4(v4) => v4.octets().to_vec(),
        IpAddr::V6(v6) => v6.octets().to_vec(),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::netlink::testing;

    #[test]
    fn loopback_is_listed_up_and_of_no_kind() {
        let links = list().unwrap();
        let lo = links.iter().find(|link| link.name == "lo").unwrap();
        assert_eq!(lo.index, index("lo").unwrap());
        assert_eq!(lo.kind, "");
        assert_eq!((lo.rx_queues, lo.tx_queues), (1, 1));
    }

    proptest! {
        #[test]
        fn any_answer_is_read_without_a_panic(body: Vec<u8>) {
            let _ = link(&testing::message(NEW_LINK, &body));
        }
    }
}
