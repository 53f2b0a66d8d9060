//! Links, addresses and neighbours by rtnetlink, in the namespace of the calling thread.
//!
//! Five requests, each one message. Source: linux/rtnetlink.h, `if_link.h`, `if_addr.h`, neighbour.h.

use std::ffi::CString;
use std::io;
use std::net::IpAddr;
use std::os::fd::{AsRawFd as _, BorrowedFd};

use crate::netlink::{ACK, CREATE, EXCLUSIVE, REPLACE, Request};

const NEW_LINK: u16 = 16;
const DELETE_LINK: u16 = 17;
const NEW_ADDRESS: u16 = 20;
const NEW_NEIGHBOUR: u16 = 28;

const IFLA_IFNAME: u16 = 3;
const IFLA_LINKINFO: u16 = 18;
const IFLA_NET_NS_FD: u16 = 28;
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

/// Index of a device.
pub(crate) fn index(device: &str) -> io::Result<u32> {
    #[expect(
        unsafe_code,
        reason = "the index of a name has no other door than libc or a dump"
    )]
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

/// Adds an address that is usable at once: no duplicate address detection.
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
    request.send(libc::NETLINK_ROUTE as isize).map(drop)
}

/// struct ifinfomsg: family, padding, device type, index, flags, change mask.
fn interface(index: u32, flags: u32, change: u32) -> [u8; 16] {
    let mut fixed = [0; 16];
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
