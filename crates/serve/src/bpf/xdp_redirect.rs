//! Datagrams that a filter names go to the `AF_XDP` socket of the queue they arrived on; everything else, and what
//! arrives on a queue without one, goes on to the stack.

use std::net::IpAddr;
use std::os::fd::BorrowedFd;

use super::datagram;
use crate::af_xdp::Filter;
use rungwise_bpf::asm::{If, Insn, Reg, Width};

const XDP_PASS: i32 = 2;
/// `bpf_redirect_map`.
const REDIRECT: i32 = 51;
/// Of `struct xdp_md`: `rx_queue_index`.
const QUEUE: i16 = 16;

/// The program for `filter`, whose ports fall into shares of `ports_each`; `sockets` is a map from
/// share x `queues` + queue to `AF_XDP` socket.
pub(crate) fn program(
    filter: &Filter,
    ports_each: u16,
    queues: u32,
    sockets: BorrowedFd<'_>,
) -> Vec<Insn> {
    let families = (
        matches!(filter.to, IpAddr::V4(_)),
        matches!(filter.to, IpAddr::V6(_)),
    );
    datagram::program(filter, families, |p, _, pass| {
        p.load(Width::Word, Reg::R2, Reg::R1, QUEUE);
        p.jump_if(Reg::R2, If::Greater, queues.cast_signed() - 1, pass);
        // R4 is the port's place among the filter's.
        p.divide(Reg::R4, i32::from(ports_each));
        p.multiply(Reg::R4, queues.cast_signed());
        p.add_register(Reg::R2, Reg::R4);
        p.load_map(Reg::R1, sockets);
        // The answer where the map holds nothing (Linux 5.3).
        p.set(Reg::R3, XDP_PASS);
        p.call(REDIRECT);
        p.exit();
    })
}
