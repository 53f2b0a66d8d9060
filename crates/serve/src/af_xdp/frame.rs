//! A UDP datagram within an Ethernet frame: read, turned round in place for its reply, or written anew.
//!
//! `AF_XDP` hands over frames as the device received them, so what the stack would have checked is checked here:
//! lengths and sums. Over veth and other virtual devices the UDP checksum of a local sender is unfinished
//! (`CHECKSUM_PARTIAL`): it is the sum over the pseudo-header alone, which is taken as well. What we send carries both
//! sums in full. Sources: RFC 768, 791, 1071 and 8200.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, SocketAddrV6};
use std::ops::Range;

const ETHERNET: usize = 14;
const V4: usize = 20;
const V6: usize = 40;
const UDP: usize = 8;
const LONGEST_HEAD: usize = ETHERNET + V6 + UDP;
/// Protocol number of UDP.
const PROTOCOL: u8 = 17;
/// Hops a datagram may take: the recommended default (RFC 1700).
const HOPS: u8 = 64;

/// Bytes before the payload in a frame of `peer`'s family.
fn headers(v4: bool) -> usize {
    ETHERNET + if v4 { V4 } else { V6 } + UDP
}

/// What a frame holds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Datagram {
    /// Who sent it.
    pub peer: SocketAddr,
    /// To which port.
    pub port: u16,
    /// Where in the frame its bytes are.
    pub payload: Range<usize>,
}

/// The datagram in `frame`; nothing if it is damaged or no UDP without options. `device` is the index that makes a
/// link-local address mean something.
pub fn read(frame: &[u8], device: u32) -> Option<Datagram> {
    let packet = frame.get(ETHERNET..)?;
    let v4 = match frame.get(12..ETHERNET)? {
        [0x08, 0x00] => true,
        [0x86, 0xdd] => false,
        _ => return None,
    };
    let (addresses, length) = if v4 {
        let header = packet.get(..V4)?;
        let whole = usize::from(half(header, 2)?);
        // Reserved bit and "don't fragment" may be set; an offset or "more fragments" may not.
        let is_whole = half(header, 6)? << 2 == 0;
        if header[0] != 0x45 || header[9] != PROTOCOL || !is_whole || fold(sum(header)) != 0xffff {
            return None;
        }
        (12..V4, whole.checked_sub(V4)?)
    } else {
        let header = packet.get(..V6)?;
        if header[0] >> 4 != 6 || header[6] != PROTOCOL {
            return None;
        }
        (8..V6, usize::from(half(header, 4)?))
    };
    let at = addresses.end;
    // Behind a short packet the frame is padded.
    let udp = packet.get(at..at + length)?;
    let length = usize::from(half(udp, 4)?);
    let udp = udp.get(..length).filter(|_| length >= UDP)?;
    let pseudo = sum(&packet[addresses.clone()]) + pseudo_rest(length);
    let carried = u16::from_ne_bytes([udp[6], udp[7]]);
    let fine = (v4 && carried == 0) || carried == fold(pseudo) || fold(pseudo + sum(udp)) == 0xffff;
    if !fine {
        return None;
    }
    let port = half(udp, 0)?;
    let peer = if v4 {
        let ip: [u8; 4] = packet[12..16].try_into().ok()?;
        SocketAddr::from((Ipv4Addr::from(ip), port))
    } else {
        let ip: [u8; 16] = packet[8..24].try_into().ok()?;
        let ip = Ipv6Addr::from(ip);
        let scope = if ip.is_unicast_link_local() {
            device
        } else {
            0
        };
        SocketAddr::V6(SocketAddrV6::new(ip, port, 0, scope))
    };
    let start = ETHERNET + at + UDP;
    Some(Datagram {
        peer,
        port: half(udp, 2)?,
        payload: start..start + length - UDP,
    })
}

/// Bytes of the largest payload to `peer` in a frame on a device of this MTU.
pub fn largest_payload(peer: SocketAddr, mtu: usize) -> usize {
    (mtu + ETHERNET).saturating_sub(headers(peer.is_ipv4()))
}

/// What every frame from one port of ours to one peer begins with.
#[derive(Clone, Debug)]
pub struct Flow {
    head: [u8; LONGEST_HEAD],
    v4: bool,
}

impl Flow {
    /// From `source` to `target`, between these Ethernet addresses; nothing if the families differ.
    pub fn new([from, to]: [[u8; 6]; 2], source: SocketAddr, target: SocketAddr) -> Option<Self> {
        let mut head = [0; LONGEST_HEAD];
        head[..6].copy_from_slice(&to);
        head[6..12].copy_from_slice(&from);
        let udp = match (source.ip(), target.ip()) {
            (IpAddr::V4(source), IpAddr::V4(target)) => {
                head[12..ETHERNET].copy_from_slice(&[0x08, 0x00]);
                head[26..30].copy_from_slice(&source.octets());
                head[30..34].copy_from_slice(&target.octets());
                ETHERNET + V4
            }
            (IpAddr::V6(source), IpAddr::V6(target)) => {
                head[12..ETHERNET].copy_from_slice(&[0x86, 0xdd]);
                head[22..38].copy_from_slice(&source.octets());
                head[38..54].copy_from_slice(&target.octets());
                ETHERNET + V6
            }
            _ => return None,
        };
        head[udp..udp + 2].copy_from_slice(&source.port().to_be_bytes());
        head[udp + 2..udp + 4].copy_from_slice(&target.port().to_be_bytes());
        let v4 = source.is_ipv4();
        Some(Self { head, v4 })
    }

    /// Makes `frame` a datagram with this payload and returns its length; nothing if there is no room.
    #[inline]
    pub fn write(&self, frame: &mut [u8], payload: &[u8]) -> Option<usize> {
        let start = headers(self.v4);
        let frame = frame.get_mut(..start + payload.len())?;
        frame[..start].copy_from_slice(&self.head[..start]);
        frame[start..].copy_from_slice(payload);
        seal(frame, self.v4)?;
        Some(frame.len())
    }
}

/// Turns the frame of a datagram from `peer`, as [`read`] took it, into that of its reply, and returns the length of
/// the frame; nothing if there is no room.
pub(crate) fn turn(frame: &mut [u8], peer: SocketAddr, reply: &[u8]) -> Option<usize> {
    let v4 = peer.is_ipv4();
    let start = headers(v4);
    let frame = frame.get_mut(..start + reply.len())?;
    frame[start..].copy_from_slice(reply);
    swap(frame, 0, 6, 6);
    let (source, target, length) = if v4 { (26, 30, 4) } else { (22, 38, 16) };
    swap(frame, source, target, length);
    swap(frame, start - UDP, start - UDP + 2, 2);
    seal(frame, v4)?;
    Some(frame.len())
}

/// Writes lengths, sums and what else lies around the addresses and ports of a frame that is a datagram to its end.
/// Nobody fragments it (IPv4 says so).
fn seal(frame: &mut [u8], v4: bool) -> Option<()> {
    let udp = headers(v4) - UDP;
    let length = u16::try_from(frame.len() - udp).ok()?;
    let addresses = if v4 {
        let whole = length.checked_add(V4 as u16)?.to_be_bytes();
        let fresh = [
            0x45, 0, whole[0], whole[1], 0, 0, 0x40, 0, HOPS, PROTOCOL, 0, 0,
        ];
        frame[ETHERNET..ETHERNET + 12].copy_from_slice(&fresh);
        let check = !fold(sum(&frame[ETHERNET..ETHERNET + V4]));
        frame[24..26].copy_from_slice(&check.to_ne_bytes());
        26..34
    } else {
        let [high, low] = length.to_be_bytes();
        let fresh = [0x60, 0, 0, 0, high, low, PROTOCOL, HOPS];
        frame[ETHERNET..ETHERNET + 8].copy_from_slice(&fresh);
        22..54
    };
    frame[udp + 4..udp + 6].copy_from_slice(&length.to_be_bytes());
    frame[udp + 6..udp + 8].fill(0);
    let pseudo = sum(&frame[addresses]) + pseudo_rest(usize::from(length));
    // All zeros would say that there is no checksum; all ones is the same number.
    let check = match !fold(pseudo + sum(&frame[udp..])) {
        0 => 0xffff,
        check => check,
    };
    frame[udp + 6..udp + 8].copy_from_slice(&check.to_ne_bytes());
    Some(())
}

/// A field of two bytes.
fn half(bytes: &[u8], at: usize) -> Option<u16> {
    let bytes = bytes.get(at..at + 2)?;
    Some(u16::from_be_bytes([bytes[0], bytes[1]]))
}

/// Exchanges `length` bytes at `a` with those at `b`.
fn swap(frame: &mut [u8], a: usize, b: usize, length: usize) {
    let (first, second) = frame.split_at_mut(b);
    first[a..a + length].swap_with_slice(&mut second[..length]);
}

/// What the pseudo-header has beside the addresses: protocol and length, the same in both families.
fn pseudo_rest(length: usize) -> u64 {
    let protocol = u16::from_ne_bytes([0, PROTOCOL]);
    let length = u16::from_ne_bytes((length as u16).to_be_bytes());
    u64::from(protocol) + u64::from(length)
}

/// Sum of the 16-bit words of `bytes`, not yet folded. Words are taken as they lie in memory, which gives the sum
/// with its bytes in the same order (RFC 1071, section 2).
fn sum(bytes: &[u8]) -> u64 {
    let (words, rest) = bytes.as_chunks::<4>();
    let mut last = [0; 4];
    last[..rest.len()].copy_from_slice(rest);
    words
        .iter()
        .chain([&last])
        .map(|word| u64::from(u32::from_ne_bytes(*word)))
        .sum()
}

/// The ones' complement sum in 16 bits.
fn fold(mut sum: u64) -> u16 {
    while sum > 0xffff {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    sum as u16
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// A datagram from `peer` to [`HOST4`] or [`HOST6`], port 7777, with full sums.
    fn datagram(peer: SocketAddr, payload: &[u8]) -> Vec<u8> {
        let host: IpAddr = if peer.is_ipv4() {
            HOST4.into()
        } else {
            HOST6.into()
        };
        let flow = Flow::new([[4; 6], [2; 6]], peer, SocketAddr::new(host, 7777)).unwrap();
        let mut frame = vec![0xa5; headers(peer.is_ipv4()) + payload.len()];
        assert_eq!(flow.write(&mut frame, payload), Some(frame.len()));
        frame
    }

    const HOST4: [u8; 4] = [10, 0, 0, 2];
    const HOST6: [u8; 16] = [0xfd, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 2];

    fn peers() -> [SocketAddr; 2] {
        ["10.0.0.1:40000", "[fd00::1]:40000"].map(|text| text.parse().unwrap())
    }

    #[test]
    fn sums_are_those_of_a_known_datagram() {
        // 10.0.0.1:40000 -> 10.0.0.2:7777 "abc", by hand: words of the UDP part and pseudo-header are
        // 0a00 0001 0a00 0002 0011 000b 9c40 1e61 000b 6162 6300, which fold to 932e.
        let frame = datagram(peers()[0], b"abc");
        assert_eq!(frame[40..42], (!0x932e_u16).to_be_bytes());
        // 4500 001f 0000 4000 4011 0a00 0001 0a00 0002 fold to d933.
        assert_eq!(frame[24..26], (!0xd933_u16).to_be_bytes());
    }

    #[test]
    fn a_datagram_is_read_and_turned_round() {
        for peer in peers() {
            for payload in [&b""[..], b"x", b"odd", &[7; 1400]] {
                let mut frame = datagram(peer, payload);
                let got = read(&frame, 3).unwrap();
                assert_eq!((got.peer, got.port), (peer, 7777));
                assert_eq!(&frame[got.payload], payload);
                frame.resize(2000, 9);
                let before = frame.clone();
                let length = turn(&mut frame, peer, b"a reply").unwrap();
                assert_eq!(length, headers(peer.is_ipv4()) + 7);
                assert_eq!((&frame[..6], &frame[6..12]), (&before[6..12], &before[..6]));
                let got = read(&frame[..length], 3).unwrap();
                assert_eq!((got.peer.port(), got.port), (7777, peer.port()));
                assert_eq!(&frame[got.payload], b"a reply");
            }
        }
    }

    #[test]
    fn an_unfinished_sum_and_for_ipv4_none_are_taken_and_a_wrong_one_is_not() {
        for peer in peers() {
            let whole = datagram(peer, b"payload");
            let udp = headers(peer.is_ipv4()) - UDP;
            let with = |check: u16| {
                let mut frame = whole.clone();
                frame[udp + 6..udp + 8].copy_from_slice(&check.to_ne_bytes());
                read(&frame, 0)
            };
            let addresses = if peer.is_ipv4() { 26..34 } else { 22..54 };
            let unfinished = fold(sum(&whole[addresses]) + pseudo_rest(UDP + 7));
            assert!(with(unfinished).is_some());
            assert_eq!(with(0).is_some(), peer.is_ipv4());
            assert_eq!(with(unfinished ^ 0x100), None);
        }
    }

    #[test]
    fn any_flipped_bit_that_a_sum_covers_is_noticed() {
        for peer in peers() {
            let whole = datagram(peer, b"payload");
            let first = if peer.is_ipv4() { 14 } else { 22 };
            for at in first..whole.len() {
                let mut frame = whole.clone();
                frame[at] ^= 0x10;
                assert_eq!(read(&frame, 0), None, "byte {at}");
            }
        }
    }

    #[test]
    fn padding_is_no_payload_and_a_short_frame_no_datagram() {
        for peer in peers() {
            let whole = datagram(peer, b"abc");
            let padded = [&whole[..], &[0; 20]].concat();
            let got = read(&padded, 0).unwrap();
            assert_eq!(&padded[got.payload], b"abc");
            for length in 0..whole.len() {
                assert_eq!(read(&whole[..length], 0), None, "{length} bytes");
            }
        }
    }

    #[test]
    fn a_flow_has_one_family_and_writes_no_more_than_there_is_room_for() {
        let [v4, v6] = peers();
        assert!(Flow::new([[0; 6]; 2], v4, v6).is_none());
        let flow = Flow::new([[0; 6]; 2], v4, v4).unwrap();
        assert_eq!(flow.write(&mut [0; 45], b"abcd"), None);
        assert_eq!(flow.write(&mut [0; 46], b"abcd"), Some(46));
    }

    #[test]
    fn a_reply_without_room_leaves_by_another_way() {
        let peer = peers()[0];
        let mut frame = datagram(peer, b"abc");
        assert_eq!(turn(&mut frame, peer, b"abcd"), None);
        assert_eq!(largest_payload(peer, 1500), 1472);
        assert_eq!(largest_payload(peers()[1], 1500), 1452);
        assert_eq!(largest_payload(peer, 0), 0);
    }

    proptest! {
        #[test]
        fn any_frame_is_read_without_a_panic(
            mut frame in proptest::collection::vec(any::<u8>(), 0..128),
            kind in prop::sample::select(vec![[0x08, 0], [0x86, 0xdd]]),
        ) {
            if let Some(place) = frame.get_mut(12..14) {
                place.copy_from_slice(&kind);
            }
            if let Some(got) = read(&frame, 0) {
                let reply = frame[got.payload].to_vec();
                prop_assert!(turn(&mut frame, got.peer, &reply).is_some());
            }
        }
    }
}
