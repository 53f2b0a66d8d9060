//! The head that our XDP programs share: of what a device receives, the unicast UDP datagrams that a filter names,
//! whole and without options; everything else goes on to the stack.

use std::net::IpAddr;

use crate::af_xdp::Filter;
use rungwise_bpf::asm::{If, Insn, Label, Program, Reg, Width};

const XDP_PASS: i32 = 2;
const UDP: i32 = 17;

/// Offsets within a frame of one address family.
pub(super) struct Layout {
    pub(super) ethertype: [u8; 2],
    pub(super) source: i16,
    pub(super) destination: i16,
    /// Bytes of an address.
    pub(super) address: i16,
    pub(super) udp: i16,
}

pub(super) const V4: Layout = Layout {
    ethertype: [0x08, 0x00],
    source: 26,
    destination: 30,
    address: 4,
    udp: 34,
};

pub(super) const V6: Layout = Layout {
    ethertype: [0x86, 0xdd],
    source: 22,
    destination: 38,
    address: 16,
    udp: 54,
};

/// A field of two bytes as a `Half` load sees it.
pub(super) fn half(bytes: [u8; 2]) -> i32 {
    i32::from(u16::from_ne_bytes(bytes))
}

/// A program that leads each datagram of `filter` and of a wanted family to `act`, and passes the rest. At `act` R1
/// holds the context, R4 how far the port lies above the filter's first, R6 the frame, whose bytes up to the end of the
/// UDP header are within bounds; `act` ends with an exit of its own or jumps to the label, which passes.
pub(super) fn program(
    filter: &Filter,
    (v4, v6): (bool, bool),
    act: impl Fn(&mut Program, &Layout, Label),
) -> Vec<Insn> {
    let mut p = Program::default();
    let (pass, six) = (p.label(), p.label());

    // struct xdp_md: data, data_end. R6 keeps the frame across the call below.
    p.load(Width::Word, Reg::R6, Reg::R1, 0);
    p.load(Width::Word, Reg::R3, Reg::R1, 4);
    p.copy(Reg::R4, Reg::R6);
    p.add(Reg::R4, 14);
    p.jump_if_register(Reg::R4, If::Greater, Reg::R3, pass);
    // A group address (the lowest bit of the first byte) must not become a source.
    p.load(Width::Byte, Reg::R4, Reg::R6, 0);
    p.jump_if(Reg::R4, If::AnyBit, 1, pass);
    p.load(Width::Half, Reg::R5, Reg::R6, 12);

    p.jump_if(Reg::R5, If::NotEqual, half(V4.ethertype), six);
    if v4 {
        p.copy(Reg::R4, Reg::R6);
        p.add(Reg::R4, i32::from(V4.udp) + 8);
        p.jump_if_register(Reg::R4, If::Greater, Reg::R3, pass);
        // Version 4 and five words of header: no options.
        p.load(Width::Byte, Reg::R4, Reg::R6, 14);
        p.jump_if(Reg::R4, If::NotEqual, 0x45, pass);
        // More fragments to come, or not the first.
        p.load(Width::Half, Reg::R4, Reg::R6, 20);
        p.jump_if(Reg::R4, If::AnyBit, half([0x3f, 0xff]), pass);
        p.load(Width::Byte, Reg::R4, Reg::R6, 23);
        p.jump_if(Reg::R4, If::NotEqual, UDP, pass);
        wanted(&mut p, &V4, filter, pass);
        act(&mut p, &V4, pass);
    } else {
        p.jump(pass);
    }

    p.place(six);
    if v6 {
        p.jump_if(Reg::R5, If::NotEqual, half(V6.ethertype), pass);
        p.copy(Reg::R4, Reg::R6);
        p.add(Reg::R4, i32::from(V6.udp) + 8);
        p.jump_if_register(Reg::R4, If::Greater, Reg::R3, pass);
        // Next header: UDP at once, no extension headers (so no fragments either).
        p.load(Width::Byte, Reg::R4, Reg::R6, 20);
        p.jump_if(Reg::R4, If::NotEqual, UDP, pass);
        wanted(&mut p, &V6, filter, pass);
        act(&mut p, &V6, pass);
    }

    p.place(pass);
    p.set(Reg::R0, XDP_PASS);
    p.exit();
    p.finish()
}

/// What both families share: addresses and ports are those of `filter`.
fn wanted(p: &mut Program, at: &Layout, filter: &Filter, pass: Label) {
    if let Some(from) = filter.from {
        p.load(Width::Half, Reg::R4, Reg::R6, at.udp);
        p.jump_if(Reg::R4, If::NotEqual, half(from.port().to_be_bytes()), pass);
        is_address(p, at.source, from.ip(), pass);
    }
    if !filter.to.is_unspecified() {
        is_address(p, at.destination, filter.to, pass);
    }
    let (first, last) = (*filter.ports.start(), *filter.ports.end());
    p.load(Width::Half, Reg::R4, Reg::R6, at.udp + 2);
    p.half_from_network(Reg::R4);
    // A port below the first becomes huge.
    p.add(Reg::R4, -i32::from(first));
    p.jump_if(
        Reg::R4,
        If::Greater,
        i32::from(last.saturating_sub(first)),
        pass,
    );
}

/// Passes a frame whose address at `offset` is not `ip`.
fn is_address(p: &mut Program, offset: i16, ip: IpAddr, pass: Label) {
    let address = match ip {
        IpAddr::V4(ip) => ip.octets().to_vec(),
        IpAddr::V6(ip) => ip.octets().to_vec(),
    };
    for (word, bytes) in (0_i16..).step_by(4).zip(address.chunks_exact(4)) {
        let value = u32::from_ne_bytes([bytes[0], bytes[1], bytes[2], bytes[3]]);
        p.load(Width::Word, Reg::R4, Reg::R6, offset + word);
        p.jump_if_word(Reg::R4, If::NotEqual, value, pass);
    }
}
