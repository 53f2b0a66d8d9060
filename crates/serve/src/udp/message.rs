//! Control messages as the kernel lays them out.
//!
//! They carry the local address (`IP_PKTINFO`, ip(7); `IPV6_PKTINFO`, RFC 3542) and the segment size (`UDP_GRO`,
//! `UDP_SEGMENT`, udp(7)).
#![expect(
    unsafe_code,
    reason = "plain C structs are read from and written to byte buffers"
)]

use std::net::{Ipv4Addr, Ipv6Addr};

/// Room for control messages: `IPV6_PKTINFO` (40 bytes with its header) and `UDP_GRO` (24), and some to spare.
pub(super) const CONTROL_ROOM: usize = 96;

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
        }
    }
}
