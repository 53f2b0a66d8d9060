//! A UDP datagram within an Ethernet frame: read for the handler, and turned round in place for its reply.
//!
//! `AF_XDP` hands over frames as the device received them, so what the stack would have checked is checked here:
//! lengths and sums. Over veth and other virtual devices the UDP checksum of a local sender is unfinished
//! (`CHECKSUM_PARTIAL`): it is the sum over the pseudo-header alone, which is taken as well. A reply carries both
//! sums in full. Sources: RFC 768, 791, 1071 and 8200.

use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr, SocketAddrV6};
use std::ops::Range;

const ETHERNET: usize = 14;
const V4: usize = 20;
const V6: usize = 40;
const UDP: usize = 8;
/// Protocol number of UDP.
const PROTOCOL: u8 = 17;
/// Hops a reply may take: the recommended default (RFC 1700).
const HOPS: u8 = 64;

/// Bytes before the payload in a frame of `peer`'s family.
fn headers(v4: bool) -> usize {
    ETHERNET + if v4 { V4 } else { V6 } + UDP
}

/// Sender and payload of the datagram in `frame`; nothing if it is damaged or no UDP without options. `device` is
/// the index that makes a link-local address mean something.
pub(super) fn read(frame: &[u8], device: u32) -> Option<(SocketAddr, Range<usize>)> {
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
    let fine = (v4 && carried == 0) || fold(pseudo + sum(udp)) == 0xffff || carried == fold(pseudo);
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
    Some((peer, start..start + length - UDP))
}

/// Largest reply to `peer` in a frame on a device of this MTU.
pub(super) fn largest_reply(peer: SocketAddr, mtu: usize) -> usize {
    (mtu + ETHERNET).saturating_sub(headers(peer.is_ipv4()))
}

/// Turns the frame of a datagram from `peer`, as [`read`] took it, into that of its reply, and returns the length of
/// the frame; nothing if there is no room. Nobody fragments it (IPv4 says so).
pub(super) fn turn(frame: &mut [u8], peer: SocketAddr, reply: &[u8]) -> Option<usize> {
    let v4 = peer.is_ipv4();
    let start = headers(v4);
    let end = start + reply.len();
    let frame = frame.get_mut(..end)?;
    let length = u16::try_from(UDP + reply.len()).ok()?;
    frame[start..].copy_from_slice(reply);
    swap(frame, 0, 6, 6);
    let (addresses, udp) = if v4 {
        swap(frame, 26, 30, 4);
        let whole = length.checked_add(V4 as u16)?.to_be_bytes();
        let fresh = [
            0x45, 0, whole[0], whole[1], 0, 0, 0x40, 0, HOPS, PROTOCOL, 0, 0,
        ];
        frame[ETHERNET..ETHERNET + 12].copy_from_slice(&fresh);
        let check = !fold(sum(&frame[ETHERNET..ETHERNET + V4]));
        frame[24..26].copy_from_slice(&check.to_ne_bytes());
        (26..34, ETHERNET + V4)
    } else {
        swap(frame, 22, 38, 16);
        let [high, low] = length.to_be_bytes();
        let fresh = [0x60, 0, 0, 0, high, low, PROTOCOL, HOPS];
        frame[ETHERNET..ETHERNET + 8].copy_from_slice(&fresh);
        (22..54, ETHERNET + V6)
    };
    swap(frame, udp, udp + 2, 2);
    frame[udp + 4..udp + 6].copy_from_slice(&length.to_be_bytes());
    frame[udp + 6..udp + 8].fill(0);
    let pseudo = sum(&frame[addresses]) + pseudo_rest(usize::from(length));
    // All zeros would say that there is no checksum; all ones is the same number.
    let check = match !fold(pseudo + sum(&frame[udp..])) {
        0 => 0xffff,
        check => check,
    };
    frame[udp + 6..udp + 8].copy_from_slice(&check.to_ne_bytes());
    Some(end)
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
        // That of a reply to us, for which only addresses and ports have to be there.
        let mut frame = vec![0; headers(peer.is_ipv4()) + payload.len()];
        frame[..6].fill(2);
        frame[6..12].fill(4);
        let ports = if let SocketAddr::V4(v4) = peer {
            frame[12..14].copy_from_slice(&[0x08, 0]);
            frame[26..30].copy_from_slice(&HOST4);
            frame[30..34].copy_from_slice(&v4.ip().octets());
            34
        } else {
            frame[12..14].copy_from_slice(&[0x86, 0xdd]);
            frame[22..38].copy_from_slice(&HOST6);
            let std::net::IpAddr::V6(ip) = peer.ip() else {
                unreachable!()
            };
            frame[38..54].copy_from_slice(&ip.octets());
            54
        };
        frame[ports..ports + 2].copy_from_slice(&7777_u16.to_be_bytes());
        frame[ports + 2..ports + 4].copy_from_slice(&peer.port().to_be_bytes());
        // `turn` swaps, so what stands here as the destination becomes the source.
        assert_eq!(turn(&mut frame, peer, payload), Some(frame.len()));
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
                let (from, at) = read(&frame, 3).unwrap();
                assert_eq!((from, &frame[at]), (peer, payload));
                frame.resize(2000, 9);
                let before = frame.clone();
                let length = turn(&mut frame, peer, b"a reply").unwrap();
                assert_eq!(length, headers(peer.is_ipv4()) + 7);
                assert_eq!((&frame[..6], &frame[6..12]), (&before[6..12], &before[..6]));
                let (from, at) = read(&frame[..length], 3).unwrap();
                assert_eq!((from.port(), &frame[at]), (7777, &b"a reply"[..]));
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
            let (_, at) = read(&padded, 0).unwrap();
            assert_eq!(&padded[at], b"abc");
            for length in 0..whole.len() {
                assert_eq!(read(&whole[..length], 0), None, "{length} bytes");
            }
        }
    }

    #[test]
    fn a_reply_without_room_leaves_by_another_way() {
        let peer = peers()[0];
        let mut frame = datagram(peer, b"abc");
        assert_eq!(turn(&mut frame, peer, b"abcd"), None);
        assert_eq!(largest_reply(peer, 1500), 1472);
        assert_eq!(largest_reply(peers()[1], 1500), 1452);
        assert_eq!(largest_reply(peer, 0), 0);
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
            if let Some((peer, at)) = read(&frame, 0) {
                let reply = frame[at].to_vec();
                prop_assert!(turn(&mut frame, peer, &reply).is_some());
            }
        }
    }
}
