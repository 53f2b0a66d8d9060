//! The path to the target: by which device, from which address, to which Ethernet address.
//!
//! Frames bypass the kernel's routing, so it is asked once beforehand (`RTM_GETROUTE`). If it does not know a neighbour yet, `NTF_USE`
//! makes it find out, which sends a query to the neighbour and nothing to the target. Sources:
//! `rtnetlink(7)`, `net/core/neighbour.c` of Linux 6.18.

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::time::{Duration, Instant};

use super::netlink::{Netlink, attribute, half, word};

const RTM_NEWNEIGH: u16 = 28;
const RTM_GETNEIGH: u16 = 30;
const RTM_GETROUTE: u16 = 26;
/// Bytes of `struct rtmsg` and of `struct ndmsg`.
const FIXED: usize = 12;
const RTA_DST: u16 = 1;
const RTA_SRC: u16 = 2;
const RTA_OIF: u16 = 4;
const RTA_GATEWAY: u16 = 5;
const RTA_PREFSRC: u16 = 7;
const RTA_VIA: u16 = 18;
const RTN_UNICAST: u8 = 1;
const NDA_DST: u16 = 1;
const NDA_LLADDR: u16 = 2;
const NTF_USE: u8 = 1;
/// States of a neighbour whose address may be used: reachable, stale, delay, probe, no ARP, permanent.
const USABLE: u16 = 0xde;
/// The kernel asks three times, a second apart, and a neighbour may be slow.
const PATIENCE: Duration = Duration::from_secs(4);

/// How the kernel would send.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Route {
    /// Index of the device.
    pub(super) device: u32,
    /// Whether it leaves this host to one receiver: neither to ourselves nor to a group.
    pub(super) leaves: bool,
    pub(super) source: Option<IpAddr>,
    /// Whose Ethernet address is wanted: a router or the target; none if the router is of another family.
    pub(super) next: Option<IpAddr>,
}

/// The kernel's route to `target`.
pub(super) fn route(
    netlink: &Netlink,
    target: SocketAddr,
    source: Option<IpAddr>,
) -> io::Result<Route> {
    let (family, bits) = family(target.ip());
    let mut fixed = [0_u8; FIXED];
    fixed[..2].copy_from_slice(&[family, bits]);
    let ours = source.map(octets);
    if ours.is_some() {
        fixed[2] = bits;
    }
    let scope = match target {
        SocketAddr::V6(v6) if v6.scope_id() != 0 => Some(v6.scope_id().to_ne_bytes()),
        _ => None,
    };
    let theirs = octets(target.ip());
    let mut attributes = vec![(RTA_DST, theirs.as_slice())];
    attributes.extend(ours.iter().map(|ours| (RTA_SRC, ours.as_slice())));
    attributes.extend(scope.iter().map(|scope| (RTA_OIF, scope.as_slice())));
    let answer = netlink.ask(RTM_GETROUTE, 0, &fixed, &attributes)?;
    let ip = |kind| attribute(&answer, FIXED, kind).and_then(ip);
    let device = attribute(&answer, FIXED, RTA_OIF).and_then(|bytes| word(bytes, 0));
    let next = match attribute(&answer, FIXED, RTA_VIA) {
        Some(_) => None,
        None => Some(ip(RTA_GATEWAY).unwrap_or(target.ip())),
    };
    Ok(Route {
        device: device.ok_or(io::ErrorKind::InvalidData)?,
        leaves: answer.get(7) == Some(&RTN_UNICAST),
        source: source.or_else(|| ip(RTA_PREFSRC)),
        next,
    })
}

/// The Ethernet address of a neighbour, resolved if it is unknown; nothing if it does not answer.
#[expect(clippy::disallowed_methods, reason = "load owns its clock")]
pub(super) fn neighbour(netlink: &Netlink, device: u32, ip: IpAddr) -> io::Result<Option<[u8; 6]>> {
    let deadline = Instant::now() + PATIENCE;
    let address = octets(ip);
    let to = [(NDA_DST, address.as_slice())];
    let mut wanted = false;
    loop {
        match netlink.ask(RTM_GETNEIGH, 0, &about(device, ip, 0), &to) {
            Ok(answer) => {
                let usable = half(&answer, 8).is_some_and(|state| state & USABLE != 0);
                let mac = attribute(&answer, FIXED, NDA_LLADDR).filter(|_| usable);
                if let Some(mac) = mac.and_then(|mac| mac.try_into().ok()) {
                    return Ok(Some(mac));
                }
            }
            Err(error) if error.raw_os_error() == Some(libc::ENOENT) => {}
            Err(error) => return Err(error),
        }
        if !wanted {
            wanted = true;
            let flags = libc::NLM_F_CREATE | libc::NLM_F_ACK;
            netlink.ask(RTM_NEWNEIGH, flags, &about(device, ip, NTF_USE), &to)?;
        }
        if Instant::now() >= deadline {
            return Ok(None);
        }
        std::thread::sleep(Duration::from_millis(1));
    }
}

/// A `struct ndmsg`.
fn about(device: u32, ip: IpAddr, flags: u8) -> [u8; FIXED] {
    let mut fixed = [0; FIXED];
    fixed[0] = family(ip).0;
    fixed[4..8].copy_from_slice(&device.to_ne_bytes());
    fixed[10] = flags;
    fixed
}

/// A family's number and the bits of its addresses.
fn family(ip: IpAddr) -> (u8, u8) {
    if ip.is_ipv4() {
        (libc::AF_INET as u8, 32)
    } else {
        (libc::AF_INET6 as u8, 128)
    }
}

fn octets(ip: IpAddr) -> Vec<u8> {
    match ip {
        IpAddr::V4(ip) => ip.octets().to_vec(),
        IpAddr::V6(ip) => ip.octets().to_vec(),
    }
}

fn ip(bytes: &[u8]) -> Option<IpAddr> {
    let four = <[u8; 4]>::try_from(bytes).map(IpAddr::from);
    four.or_else(|_| <[u8; 16]>::try_from(bytes).map(IpAddr::from))
        .ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn our_own_address_is_reached_without_leaving() {
        let netlink = Netlink::open().unwrap();
        let found = route(&netlink, "127.0.0.1:9".parse().unwrap(), None).unwrap();
        // The loopback device is the first of every namespace.
        assert_eq!((found.device, found.leaves), (1, false));
        assert_eq!(found.source, Some("127.0.0.1".parse().unwrap()));
    }
}
