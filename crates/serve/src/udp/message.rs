//! Socket addresses and control messages as the kernel lays them out.
//!
//! A reply goes back to the very bytes its request came from, so an address is parsed once, for the handler,
//! and never built again. Control messages carry the local address (`IP_PKTINFO`, ip(7); `IPV6_PKTINFO`,
//! RFC 3542) and the segment size (`UDP_GRO`, `UDP_SEGMENT`, udp(7)).
#![expect(
    unsafe_code,
    reason = "plain C structs are read from and written to byte buffers"
)]

use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr, SocketAddrV6};

/// Room for control messages: `IPV6_PKTINFO` (40 bytes with its header) and `UDP_GRO` (24), and some to spare.
pub(super) const CONTROL_ROOM: usize = 96;

/// Room for a socket address of either family.
pub(super) const NAME_ROOM: usize = size_of::<libc::sockaddr_in6>();

/// A peer's address as the kernel wrote it.
#[derive(Clone, Copy)]
#[repr(C)]
pub(super) struct Name {
    raw: libc::sockaddr_in6,
    pub(super) length: libc::socklen_t,
}

impl Name {
    /// Nobody, with room for anybody.
    pub(super) fn empty() -> Self {
        Self {
            // SAFETY: all zeros is a valid sockaddr_in6.
            raw: unsafe { std::mem::zeroed() },
            length: NAME_ROOM as libc::socklen_t,
        }
    }

    /// `address` as the kernel wants it.
    pub(super) fn of(address: SocketAddr) -> Self {
        let mut name = Self::empty();
        match address {
            SocketAddr::V4(v4) => {
                // SAFETY: all zeros is a valid sockaddr_in.
                let mut raw: libc::sockaddr_in = unsafe { std::mem::zeroed() };
                raw.sin_family = libc::AF_INET as libc::sa_family_t;
                raw.sin_port = v4.port().to_be();
                raw.sin_addr.s_addr = u32::from_ne_bytes(v4.ip().octets());
                name.length = size_of_val(&raw) as libc::socklen_t;
                // SAFETY: a sockaddr_in fits into a sockaddr_in6.
                unsafe {
                    (&raw mut name.raw)
                        .cast::<libc::sockaddr_in>()
                        .write_unaligned(raw);
                };
            }
            SocketAddr::V6(v6) => {
                name.raw.sin6_family = libc::AF_INET6 as libc::sa_family_t;
                name.raw.sin6_port = v6.port().to_be();
                name.raw.sin6_addr.s6_addr = v6.ip().octets();
                name.raw.sin6_flowinfo = v6.flowinfo();
                name.raw.sin6_scope_id = v6.scope_id();
            }
        }
        name
    }

    /// The name in `bytes`, as `io_uring` delivers it.
    pub(super) fn from_bytes(bytes: &[u8]) -> Self {
        let mut name = Self::empty();
        let length = bytes.len().min(NAME_ROOM);
        // SAFETY: at most as many bytes as a sockaddr_in6 has, and any bytes are one.
        unsafe {
            std::ptr::copy_nonoverlapping(bytes.as_ptr(), (&raw mut name.raw).cast(), length);
        };
        name.length = length as libc::socklen_t;
        name
    }

    /// Makes room again before the next receive.
    pub(super) fn reset(&mut self) {
        self.length = NAME_ROOM as libc::socklen_t;
    }

    pub(super) fn as_ptr(&self) -> *const libc::sockaddr {
        (&raw const self.raw).cast()
    }

    pub(super) fn as_mut_ptr(&mut self) -> *mut libc::sockaddr {
        (&raw mut self.raw).cast()
    }

    /// The address, an IPv4-mapped one as IPv4. Nothing if the kernel left no name, as after a shutdown.
    pub(super) fn address(&self) -> Option<SocketAddr> {
        match libc::c_int::from(self.raw.sin6_family) {
            libc::AF_INET if self.length as usize >= size_of::<libc::sockaddr_in>() => {
                // SAFETY: the family says that a sockaddr_in was written here.
                let raw = unsafe {
                    (&raw const self.raw)
                        .cast::<libc::sockaddr_in>()
                        .read_unaligned()
                };
                let ip = Ipv4Addr::from(raw.sin_addr.s_addr.to_ne_bytes());
                Some(SocketAddr::from((ip, u16::from_be(raw.sin_port))))
            }
            libc::AF_INET6 if self.length as usize >= NAME_ROOM => {
                let ip = Ipv6Addr::from(self.raw.sin6_addr.s6_addr);
                let port = u16::from_be(self.raw.sin6_port);
                Some(match ip.to_ipv4_mapped() {
                    Some(v4) => SocketAddr::from((v4, port)),
                    None => SocketAddr::V6(SocketAddrV6::new(ip, port, 0, self.raw.sin6_scope_id)),
                })
            }
            _ => None,
        }
    }
}

impl PartialEq for Name {
    /// The same peer: family, port, address and scope.
    fn eq(&self, other: &Self) -> bool {
        self.address() == other.address()
    }
}

/// Control messages of one datagram.
#[derive(Clone, Copy)]
#[repr(C, align(8))]
pub(super) struct Control(pub(super) [u8; CONTROL_ROOM]);

/// The local address of a datagram, where it was asked for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Local {
    #[default]
    Unknown,
    V4(Ipv4Addr),
    /// With the device's index where the address means nothing without it (link-local), else 0.
    V6(Ipv6Addr, u32),
}

/// What the control messages of a received datagram say.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Arrival {
    /// Where it was sent to: the source of the reply.
    pub(super) local: Local,
    /// Bytes per datagram where several arrived as one, else 0.
    pub(super) segment: usize,
}

const HEADER: usize = size_of::<libc::cmsghdr>();

/// `CMSG_ALIGN`.
const fn align(length: usize) -> usize {
    length.next_multiple_of(size_of::<usize>())
}

impl Arrival {
    /// Reads the control messages in `bytes`; what is unknown or cut short is passed over.
    pub(super) fn read(mut bytes: &[u8]) -> Self {
        let mut arrival = Self::default();
        while bytes.len() >= HEADER {
            // SAFETY: that many bytes are there, and any bytes are a cmsghdr.
            let header = unsafe { bytes.as_ptr().cast::<libc::cmsghdr>().read_unaligned() };
            let length = header.cmsg_len;
            if length < HEADER || length > bytes.len() {
                break;
            }
            let data = &bytes[HEADER..length];
            match (header.cmsg_level, header.cmsg_type) {
                (libc::SOL_IP, libc::IP_PKTINFO) => {
                    // struct in_pktinfo: ifindex, spec_dst (the local address, also for a broadcast), addr
                    if let Some(spec_dst) =
                        data.get(4..8).and_then(|bytes| bytes.first_chunk::<4>())
                    {
                        arrival.local = Local::V4(Ipv4Addr::from(*spec_dst));
                    }
                }
                (libc::SOL_IPV6, libc::IPV6_PKTINFO) => {
                    // struct in6_pktinfo: addr, ifindex
                    if let (Some(ip), Some(index)) =
                        (data.first_chunk::<16>(), data.last_chunk::<4>())
                    {
                        let ip = Ipv6Addr::from(*ip);
                        let index = if ip.is_unicast_link_local() {
                            u32::from_ne_bytes(*index)
                        } else {
                            0
                        };
                        // A multicast group is no source; let the kernel choose.
                        arrival.local = if ip.is_multicast() {
                            Local::Unknown
                        } else {
                            Local::V6(ip, index)
                        };
                    }
                }
                (libc::SOL_UDP, libc::UDP_GRO) => {
                    if let Some(size) = data.first_chunk::<4>() {
                        arrival.segment = usize::try_from(i32::from_ne_bytes(*size)).unwrap_or(0);
                    }
                }
                _ => {}
            }
            bytes = bytes.get(align(length)..).unwrap_or_default();
        }
        arrival
    }
}

impl Control {
    pub(super) fn empty() -> Self {
        Self([0; CONTROL_ROOM])
    }

    /// Writes the control messages of a reply: its source, and the segment size unless that is 0. Returns
    /// their length.
    pub(super) fn write(&mut self, local: Local, segment: u16) -> usize {
        let mut used = 0;
        match local {
            Local::Unknown => {}
            Local::V4(ip) => {
                let mut info = [0; 12];
                info[4..8].copy_from_slice(&ip.octets());
                used = self.append(used, libc::SOL_IP, libc::IP_PKTINFO, &info);
            }
            Local::V6(ip, index) => {
                let mut info = [0; 20];
                info[..16].copy_from_slice(&ip.octets());
                info[16..].copy_from_slice(&index.to_ne_bytes());
                used = self.append(used, libc::SOL_IPV6, libc::IPV6_PKTINFO, &info);
            }
        }
        if segment > 0 {
            used = self.append(
                used,
                libc::SOL_UDP,
                libc::UDP_SEGMENT,
                &segment.to_ne_bytes(),
            );
        }
        used
    }

    fn append(&mut self, at: usize, level: i32, kind: i32, data: &[u8]) -> usize {
        // SAFETY: all zeros is a valid cmsghdr.
        let mut header: libc::cmsghdr = unsafe { std::mem::zeroed() };
        header.cmsg_len = HEADER + data.len();
        header.cmsg_level = level;
        header.cmsg_type = kind;
        let room = &mut self.0[at..at + align(HEADER + data.len())];
        // SAFETY: the slice above has room for the header.
        unsafe {
            room.as_mut_ptr()
                .cast::<libc::cmsghdr>()
                .write_unaligned(header);
        };
        room[HEADER..HEADER + data.len()].copy_from_slice(data);
        at + room.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn names_come_back_and_mapped_ones_as_ipv4() {
        for text in ["10.1.2.3:53", "[fd00::1]:53", "[fe80::1%7]:53"] {
            let address: SocketAddr = text.parse().unwrap();
            assert_eq!(Name::of(address).address(), Some(address));
        }
        let mapped = Name::of("[::ffff:10.1.2.3]:53".parse().unwrap());
        assert_eq!(mapped.address(), Some("10.1.2.3:53".parse().unwrap()));
        assert_eq!(Name::empty().address(), None);
    }

    #[test]
    fn a_reply_leaves_from_where_its_request_arrived() {
        for local in [
            Local::V4(Ipv4Addr::new(127, 0, 0, 9)),
            Local::V6("fd00::9".parse().unwrap(), 0),
            Local::V6("fe80::9".parse().unwrap(), 4),
            Local::V6("::ffff:10.0.0.1".parse().unwrap(), 0),
        ] {
            let mut control = Control::empty();
            let length = control.write(local, 0);
            assert_eq!(Arrival::read(&control.0[..length]).local, local);
        }
    }

    #[test]
    fn a_multicast_group_is_no_source() {
        let mut control = Control::empty();
        let length = control.write(Local::V6("ff02::1".parse().unwrap(), 0), 0);
        assert_eq!(Arrival::read(&control.0[..length]).local, Local::Unknown);
    }

    #[test]
    fn source_and_segment_fit_together() {
        let mut control = Control::empty();
        let length = control.write(Local::V6(Ipv6Addr::LOCALHOST, 0), 1200);
        assert!(length <= CONTROL_ROOM);
        // SOL_UDP carries UDP_SEGMENT out and UDP_GRO in; the reader passes over what it does not ask for.
        assert_eq!(Arrival::read(&control.0[..length]).segment, 0);
    }

    proptest! {
        #[test]
        fn any_bytes_are_read_without_a_panic(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
            let _ = Arrival::read(&bytes);
            let _ = Name::from_bytes(&bytes).address();
        }
    }
}
