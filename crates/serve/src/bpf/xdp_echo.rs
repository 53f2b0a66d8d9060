//! A UDP echo inside the kernel: the upper limit that no socket can pass.
//!
//! The program answers unicast UDP to one port by swapping MAC addresses, IP addresses and ports and
//! sending the frame back; everything else goes on to the stack. Swapping does not change a sum, so the
//! IPv4 header checksum and the UDP checksum stay right. One exception: frames that cross a veth pair carry
//! only the pseudo-header's sum (`CHECKSUM_PARTIAL`), and in native mode the conversion to an XDP frame
//! forgets that it is partial. There the IPv4 checksum is zeroed (RFC 768: not computed) and IPv6, which may
//! not do that (RFC 8200, section 8.1), is left to the socket.
//!
//! A datagram whose source port is our own port is left alone, so two echoes cannot play ping-pong for ever.

use std::net::{IpAddr, SocketAddr};
use std::os::fd::BorrowedFd;

use super::datagram::{self, Layout, half};
use crate::af_xdp::Filter;
use rungwise_bpf::asm::{If, Insn, Label, Program, Reg, Width};

/// What happens to the UDP checksum of an echoed datagram.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Checksum {
    /// Valid before, valid after.
    Keep,
    /// Partial, see the head of this file: zeroed for IPv4, no echo for IPv6.
    Partial,
}

/// Words of one value of the counter map: datagrams, payload bytes.
pub(crate) const COUNTERS: usize = 2;

const XDP_TX: i32 = 3;
/// `bpf_map_lookup_elem`.
const LOOKUP: i32 = 1;

/// The echo for `listen`. An unspecified IPv4 address echoes IPv4 to any address, an unspecified IPv6
/// address echoes both families, any other address only what is sent to it. `counters` is a per-CPU array of
/// one value of [`COUNTERS`] words.
pub(crate) fn program(
    listen: SocketAddr,
    checksum: Checksum,
    counters: BorrowedFd<'_>,
) -> Vec<Insn> {
    let families = match listen.ip() {
        IpAddr::V4(_) => (true, false),
        IpAddr::V6(ip) => (ip.is_unspecified(), checksum == Checksum::Keep),
    };
    datagram::program(&Filter::to(listen), families, |p, at, pass| {
        echo(p, at, listen.port(), checksum, counters, pass);
    })
}

/// Counts the datagram and sends it back.
fn echo(
    p: &mut Program,
    at: &Layout,
    port: u16,
    checksum: Checksum,
    counters: BorrowedFd<'_>,
    pass: Label,
) {
    p.load(Width::Half, Reg::R4, Reg::R6, at.udp);
    p.jump_if(Reg::R4, If::Equal, half(port.to_be_bytes()), pass);
    // Payload bytes into R7; a length below the header's own is garbage for the stack to judge.
    p.load(Width::Half, Reg::R7, Reg::R6, at.udp + 4);
    p.half_from_network(Reg::R7);
    p.jump_if(Reg::R7, If::Less, 8, pass);
    p.add(Reg::R7, -8);

    p.store_value(Width::Word, Reg::Frame, -4, 0);
    p.load_map(Reg::R1, counters);
    p.copy(Reg::R2, Reg::Frame);
    p.add(Reg::R2, -4);
    p.call(LOOKUP);
    p.jump_if(Reg::R0, If::Equal, 0, pass);
    p.load(Width::Double, Reg::R1, Reg::R0, 0);
    p.add(Reg::R1, 1);
    p.store(Width::Double, Reg::R0, 0, Reg::R1);
    p.load(Width::Double, Reg::R1, Reg::R0, 8);
    p.add_register(Reg::R1, Reg::R7);
    p.store(Width::Double, Reg::R0, 8, Reg::R1);

    // MAC addresses by halves: within a frame whose IP header is aligned they are only two-byte aligned.
    for offset in [0, 2, 4] {
        swap(p, Width::Half, offset, offset + 6);
    }
    for offset in (0..at.address).step_by(4) {
        swap(p, Width::Word, at.source + offset, at.destination + offset);
    }
    swap(p, Width::Half, at.udp, at.udp + 2);
    if checksum == Checksum::Partial {
        p.store_value(Width::Half, Reg::R6, at.udp + 6, 0);
    }
    p.set(Reg::R0, XDP_TX);
    p.exit();
}

fn swap(p: &mut Program, width: Width, a: i16, b: i16) {
    p.load(width, Reg::R4, Reg::R6, a);
    p.load(width, Reg::R5, Reg::R6, b);
    p.store(width, Reg::R6, a, Reg::R5);
    p.store(width, Reg::R6, b, Reg::R4);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bpf::datagram::{V4, V6};
    use rungwise_bpf::{License, PerCpu, ProgramKind, load, run_on};
    use std::io::Write as _;
    use std::os::fd::{AsFd as _, OwnedFd};

    const PASS: u32 = 2;
    const TX: u32 = XDP_TX as u32;
    const PORT: u16 = 7777;

    struct Loaded {
        program: OwnedFd,
        counters: PerCpu<COUNTERS>,
    }

    /// The loaded echo, or nothing, loudly, without the right to load it.
    fn loaded(listen: &str, checksum: Checksum) -> Option<Loaded> {
        let made = PerCpu::new().and_then(|counters| {
            let code = program(listen.parse().unwrap(), checksum, counters.as_fd());
            let program = load(ProgramKind::Xdp, License::Apache, &code)?;
            Ok(Loaded { program, counters })
        });
        match made {
            Err(error) if error.raw_os_error() == Some(libc::EPERM) => {
                // Past the harness, which keeps what tests that pass print.
                let _ = writeln!(
                    std::io::stderr(),
                    "SKIPPED tests of the XDP echo: loading a program needs root (CAP_BPF and CAP_NET_ADMIN)"
                );
                None
            }
            other => Some(other.unwrap()),
        }
    }

    fn frame(v6: bool, payload: &[u8]) -> Vec<u8> {
        let mut frame = vec![2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 2];
        let length = (payload.len() as u16 + 8).to_be_bytes();
        if v6 {
            frame.extend(V6.ethertype);
            frame.extend([0x60, 0, 0, 0, length[0], length[1], 17, 64]);
            frame.extend("fd00::1".parse::<std::net::Ipv6Addr>().unwrap().octets());
            frame.extend("fd00::2".parse::<std::net::Ipv6Addr>().unwrap().octets());
        } else {
            frame.extend(V4.ethertype);
            let total = (payload.len() as u16 + 28).to_be_bytes();
            frame.extend([
                0x45, 0, total[0], total[1], 0, 0, 0x40, 0, 64, 17, 0xab, 0xcd,
            ]);
            frame.extend([10, 0, 0, 1, 10, 0, 0, 2]);
        }
        frame.extend(40000_u16.to_be_bytes());
        frame.extend(PORT.to_be_bytes());
        frame.extend(length);
        frame.extend([0x12, 0x34]);
        frame.extend(payload);
        frame
    }

    fn swapped(frame: &[u8], at: &Layout) -> Vec<u8> {
        let mut swapped = frame.to_vec();
        let mut exchange = |a: usize, b: usize, len: usize| {
            swapped[a..a + len].copy_from_slice(&frame[b..b + len]);
            swapped[b..b + len].copy_from_slice(&frame[a..a + len]);
        };
        exchange(0, 6, 6);
        exchange(
            at.source as usize,
            at.destination as usize,
            at.address as usize,
        );
        exchange(at.udp as usize, at.udp as usize + 2, 2);
        swapped
    }

    #[test]
    fn both_families_come_back_swapped_and_counted() {
        let Some(echo) = loaded("[::]:7777", Checksum::Keep) else {
            return;
        };
        for (v6, at) in [(false, &V4), (true, &V6)] {
            for payload in [&b""[..], b"x", &[7; 1200]] {
                let sent = frame(v6, payload);
                assert_eq!(
                    run_on(&echo.program, &sent).unwrap(),
                    (TX, swapped(&sent, at))
                );
            }
        }
        let total = echo
            .counters
            .values()
            .unwrap()
            .iter()
            .fold([0, 0], |sum, value| [sum[0] + value[0], sum[1] + value[1]]);
        assert_eq!(total, [6, 2 * 1201]);
    }

    #[test]
    fn a_partial_checksum_is_zeroed_and_ipv6_left_to_the_socket() {
        let Some(echo) = loaded("[::]:7777", Checksum::Partial) else {
            return;
        };
        let sent = frame(false, b"abc");
        let mut expected = swapped(&sent, &V4);
        expected[40..42].fill(0);
        assert_eq!(run_on(&echo.program, &sent).unwrap(), (TX, expected));
        let sent = frame(true, b"abc");
        assert_eq!(run_on(&echo.program, &sent).unwrap(), (PASS, sent));
    }

    #[test]
    fn what_is_not_for_the_echo_passes_untouched() {
        let Some(echo) = loaded("10.0.0.2:7777", Checksum::Keep) else {
            return;
        };
        assert_eq!(run_on(&echo.program, &frame(false, b"abc")).unwrap().0, TX);
        let spoiled = |what: &str, at: usize, value: u8| {
            let mut sent = frame(false, b"abc");
            sent[at] = value;
            assert_eq!(
                run_on(&echo.program, &sent).unwrap(),
                (PASS, sent),
                "{what}"
            );
        };
        spoiled("group address", 0, 3);
        spoiled("another protocol above Ethernet", 12, 0x81);
        spoiled("options", 14, 0x46);
        spoiled("first fragment", 20, 0x20);
        spoiled("later fragment", 21, 9);
        spoiled("TCP", 23, 6);
        spoiled("another address", 33, 3);
        spoiled("another port", 37, 0);
        spoiled("a length below the header", 39, 7);
        let mut own_port = frame(false, b"abc");
        own_port[34..36].copy_from_slice(&PORT.to_be_bytes());
        assert_eq!(
            run_on(&echo.program, &own_port).unwrap().0,
            PASS,
            "our own port"
        );
        assert_eq!(
            run_on(&echo.program, &frame(true, b"abc")).unwrap().0,
            PASS,
            "IPv6"
        );
    }

    #[test]
    fn a_frame_cut_short_anywhere_passes() {
        let Some(echo) = loaded("[::]:7777", Checksum::Keep) else {
            return;
        };
        for v6 in [false, true] {
            let whole = frame(v6, b"");
            // The kernel itself refuses to run a program on less than an Ethernet header.
            for length in 14..whole.len() {
                assert_eq!(
                    run_on(&echo.program, &whole[..length]).unwrap().0,
                    PASS,
                    "{length} bytes"
                );
            }
        }
    }

    #[test]
    fn an_ipv6_echo_answers_its_own_address_alone() {
        let Some(echo) = loaded("[fd00::2]:7777", Checksum::Keep) else {
            return;
        };
        let mut sent = frame(true, b"abc");
        assert_eq!(run_on(&echo.program, &sent).unwrap().0, TX);
        sent[53] = 3;
        assert_eq!(run_on(&echo.program, &sent).unwrap().0, PASS);
        assert_eq!(
            run_on(&echo.program, &frame(false, b"abc")).unwrap().0,
            PASS
        );
    }
}
