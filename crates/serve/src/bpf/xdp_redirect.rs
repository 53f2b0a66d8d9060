//! Datagrams to one address and port go to the `AF_XDP` socket of the queue they arrived on; everything else, and what
//! arrives on a queue without one, goes on to the stack.

use std::net::SocketAddr;
use std::os::fd::BorrowedFd;

use super::asm::{Insn, Reg, Width};
use super::datagram;

const XDP_PASS: i32 = 2;
/// `bpf_redirect_map`.
const REDIRECT: i32 = 51;
/// Of `struct xdp_md`: `rx_queue_index`.
const QUEUE: i16 = 16;

/// The program for `listen`, whose address must be a certain one; `sockets` is a map from queue to `AF_XDP` socket.
pub(crate) fn program(listen: SocketAddr, sockets: BorrowedFd<'_>) -> Vec<Insn> {
    let families = (listen.is_ipv4(), listen.is_ipv6());
    datagram::program(listen, families, |p, _, _| {
        p.load(Width::Word, Reg::R2, Reg::R1, QUEUE);
        p.load_map(Reg::R1, sockets);
        // The answer where the map holds nothing (Linux 5.3).
        p.set(Reg::R3, XDP_PASS);
        p.call(REDIRECT);
        p.exit();
    })
}
