//! TCP and UDP sockets by `sock_diag`: queues, buffers, drops and `tcp_info`.
//!
//! Dumps in every state, time-wait included; single sockets are asked for by their ends. The kernel gives `tcp_info` as
//! long as it knows it, so each field is read by its offset and absent beyond the end. Each socket is read out of
//! the dump as it passes by: 100,000 of them are 60 MB of messages and 30 MB here.
//! Source: `linux/inet_diag.h`, linux/tcp.h, `tcp_diag_dump` and `inet_diag_dump_compat` of Linux 6.18.

use std::collections::BTreeSet;
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use rungwise_model::kernel::{Endpoint, SocketMemory, TcpInfo, TcpSocket, UdpSocket};
use rungwise_model::service::ServicePort;

use super::port_filter;
use crate::netlink::{DUMP, Message, Request, attributes, number32, number64};

const SOCK_DIAG: isize = libc::NETLINK_SOCK_DIAG as isize;
const SOCK_DIAG_BY_FAMILY: u16 = 20;
/// The older question about TCP. Its dump lists both address families in one walk through the table of connections,
/// which has 262,144 rows on a machine with 24 GiB: 0.6 ms and more for a walk, whatever is in them.
const TCPDIAG_GETSOCK: u16 = 18;
const INET_DIAG_INFO: u16 = 2;
const INET_DIAG_SKMEMINFO: u16 = 7;
/// States 1 (established) to 11 (closing): what `ss -a` shows. Half-open connections come with state 3;
/// 13 (bound, neither connected nor listening) is left out.
const ALL_STATES: u32 = 0xffe;
/// `TCP_LISTEN` of `net/tcp_states.h`: its `tcp_info` says nothing.
const LISTEN: u8 = 10;
/// struct `inet_diag_msg`.
const FIXED: usize = 72;
/// struct `inet_diag_req_v2`.
const REQUEST: usize = 56;
/// struct `inet_diag_req`, of the older question.
const OLDER_REQUEST: usize = 60;
/// Single sockets asked for together: the answers, of 2 KB at most with all that the kernel keeps beside them, wait in
/// the receive buffer of 208 KiB (`net.core.rmem_default`).
const AT_ONCE: usize = 64;

/// All TCP sockets.
pub(super) fn tcp() -> io::Result<Vec<TcpSocket>> {
    let mut sockets = Vec::new();
    dump_tcp(ALL_STATES, |message| sockets.extend(tcp_socket(message)))?;
    Ok(sockets)
}

/// All TCP sockets that are not in `TIME_WAIT`.
pub(super) fn tcp_in_use() -> io::Result<Vec<TcpSocket>> {
    let mut sockets = Vec::new();
    let states = ALL_STATES & !(1 << TcpSocket::TIME_WAIT);
    dump_tcp(states, |message| sockets.extend(tcp_socket(message)))?;
    Ok(sockets)
}

/// All TCP sockets that listen, and of the others those that are given, as far as they are still there.
pub(super) fn tcp_among(wanted: &[TcpSocket]) -> io::Result<Vec<TcpSocket>> {
    let mut sockets = Vec::new();
    dump_tcp(1 << LISTEN, |message| sockets.extend(tcp_socket(message)))?;
    for some in wanted.chunks(AT_ONCE) {
        let mut request = Request::default();
        for socket in some {
            request.message(SOCK_DIAG_BY_FAMILY, 0, &request_for(socket));
        }
        match request.each(SOCK_DIAG, |message| sockets.extend(tcp_socket(message))) {
            Ok(()) => {}
            // One of them was closed meanwhile; the others were listed nevertheless.
            Err(error) if error.raw_os_error() == Some(libc::ENOENT) => {}
            Err(error) => return Err(explained(error)),
        }
    }
    Ok(sockets)
}

/// TCP sockets that are not in `TIME_WAIT` and belong to one of these services at either end, its listeners included.
pub(super) fn tcp_of(services: &[ServicePort]) -> io::Result<Vec<TcpSocket>> {
    let ports: BTreeSet<u16> = services.iter().map(|service| service.port).collect();
    let mut sockets = Vec::new();
    if ports.is_empty() {
        return Ok(sockets);
    }
    let states = ALL_STATES & !(1 << TcpSocket::TIME_WAIT);
    let mut request = Request::default();
    request
        .message(TCPDIAG_GETSOCK, DUMP, &older_request(states))
        .attribute(port_filter::BYTECODE, &port_filter::either_end(&ports));
    match request.each(SOCK_DIAG, |message| sockets.extend(tcp_socket(message))) {
        Ok(()) => {}
        // Kernels before 4.16 do not know the conditions of the filter, and refuse it as a whole.
        Err(error) if error.raw_os_error() == Some(libc::EINVAL) => sockets = tcp_in_use()?,
        Err(error) => return Err(explained(error)),
    }
    // The kernel compared ports alone, if it filtered.
    sockets.retain(|socket| services.iter().any(|service| service.has(socket)));
    Ok(sockets)
}

/// struct `inet_diag_req_v2` of one TCP socket, with whatever cookie.
fn request_for(socket: &TcpSocket) -> [u8; REQUEST] {
    let (local, remote) = (socket.local, socket.remote);
    // The ends of a socket of IPv6 that carries IPv4 are found by their IPv4 addresses as well.
    let family = match local.address {
        IpAddr::V4(_) => libc::AF_INET,
        IpAddr::V6(_) => libc::AF_INET6,
    };
    let mut fixed = request(family, libc::IPPROTO_TCP, ALL_STATES, INET_DIAG_INFO);
    fixed[8..10].copy_from_slice(&local.port.to_be_bytes());
    fixed[10..12].copy_from_slice(&remote.port.to_be_bytes());
    for (at, end) in [(12, local.address), (28, remote.address)] {
        match end {
            IpAddr::V4(address) => fixed[at..at + 4].copy_from_slice(&address.octets()),
            IpAddr::V6(address) => fixed[at..at + 16].copy_from_slice(&address.octets()),
        }
    }
    fixed[48..56].fill(0xff);
    fixed
}

/// struct `inet_diag_req_v2`: family, protocol, extensions, padding, states, and a socket id (ports, addresses,
/// interface, cookie) that is left open. Memory is asked for always, `extension` besides.
fn request(
    family: libc::c_int,
    protocol: libc::c_int,
    states: u32,
    extension: u16,
) -> [u8; REQUEST] {
    let mut fixed = [0; REQUEST];
    fixed[..3].copy_from_slice(&[family as u8, protocol as u8, with_memory(extension)]);
    fixed[4..8].copy_from_slice(&states.to_ne_bytes());
    fixed
}

/// struct `inet_diag_req` of all TCP sockets in these states: family and lengths of addresses (unused), extensions, a
/// socket id that is left open, states.
fn older_request(states: u32) -> [u8; OLDER_REQUEST] {
    let mut fixed = [0; OLDER_REQUEST];
    fixed[3] = with_memory(INET_DIAG_INFO);
    fixed[52..56].copy_from_slice(&states.to_ne_bytes());
    fixed
}

/// The bits of an extension and of memory.
fn with_memory(extension: u16) -> u8 {
    1 << (INET_DIAG_SKMEMINFO - 1) | 1 << (extension - 1)
}

/// All UDP sockets.
pub(super) fn udp() -> io::Result<Vec<UdpSocket>> {
    let mut sockets = Vec::new();
    for family in [libc::AF_INET, libc::AF_INET6] {
        let fixed = request(family, libc::IPPROTO_UDP, ALL_STATES, INET_DIAG_SKMEMINFO);
        let mut request = Request::default();
        request.message(SOCK_DIAG_BY_FAMILY, DUMP, &fixed);
        match request.each(SOCK_DIAG, |message| sockets.extend(udp_socket(message))) {
            Ok(()) => {}
            // A kernel without IPv6 has no sockets of it.
            Err(error)
                if family == libc::AF_INET6 && error.raw_os_error() == Some(libc::ENOENT) => {}
            Err(error) => return Err(explained(error)),
        }
    }
    Ok(sockets)
}

/// TCP sockets of both address families in these states, in the order of the kernel's tables.
fn dump_tcp(states: u32, take: impl FnMut(&Message<'_>)) -> io::Result<()> {
    let mut request = Request::default();
    request.message(TCPDIAG_GETSOCK, DUMP, &older_request(states));
    request.each(SOCK_DIAG, take).map_err(explained)
}

fn explained(error: io::Error) -> io::Error {
    match error.raw_os_error() {
        Some(libc::ENOENT | libc::EPROTONOSUPPORT) => io::Error::new(
            io::ErrorKind::Unsupported,
            "this kernel does not list sockets (CONFIG_INET_DIAG, CONFIG_INET_UDP_DIAG)",
        ),
        _ => error,
    }
}

/// What TCP and UDP have in common.
struct Common {
    local: Endpoint,
    remote: Endpoint,
    state: u8,
    inode: u64,
    rqueue: u32,
    wqueue: u32,
    memory: Option<SocketMemory>,
}

/// Reads a message; `more` sees its other attributes.
fn common<'m>(message: &Message<'m>, mut more: impl FnMut(u16, &'m [u8])) -> Option<Common> {
    if ![SOCK_DIAG_BY_FAMILY, TCPDIAG_GETSOCK].contains(&message.kind) {
        return None;
    }
    // struct inet_diag_msg: family, state, timer, retransmits; then the socket id: ports in network order,
    // two addresses of 16 bytes, interface, cookie; then expiry, queues, user, inode.
    let fixed = message.fixed(FIXED);
    let (family, state) = (i32::from(*fixed.first()?), *fixed.get(1)?);
    let end = |port: usize, address: usize| {
        let port = fixed.get(port..port + 2)?.try_into().ok()?;
        let octets: [u8; 16] = fixed.get(address..address + 16)?.try_into().ok()?;
        let [a, b, c, d, ..] = octets;
        let address: IpAddr = if family == libc::AF_INET {
            Ipv4Addr::new(a, b, c, d).into()
        } else {
            Ipv6Addr::from(octets).into()
        };
        Some(Endpoint::new(address, u16::from_be_bytes(port)))
    };
    let mut memory = None;
    for (kind, value) in attributes(message.rest(FIXED)) {
        if kind == INET_DIAG_SKMEMINFO {
            memory = socket_memory(value);
        } else {
            more(kind, value);
        }
    }
    Some(Common {
        local: end(4, 8)?,
        remote: end(6, 24)?,
        state,
        inode: number32(fixed, 68)?.into(),
        rqueue: number32(fixed, 56)?,
        wqueue: number32(fixed, 60)?,
        memory,
    })
}

fn tcp_socket(message: &Message<'_>) -> Option<TcpSocket> {
    let mut info = None;
    let common = common(message, |kind, value| {
        if kind == INET_DIAG_INFO {
            info = tcp_info(value);
        }
    })?;
    Some(TcpSocket {
        local: common.local,
        remote: common.remote,
        state: common.state,
        inode: common.inode,
        rqueue: common.rqueue,
        wqueue: common.wqueue,
        memory: common.memory,
        info: info.filter(|_| common.state != LISTEN),
    })
}

fn udp_socket(message: &Message<'_>) -> Option<UdpSocket> {
    let common = common(message, |_, _| {})?;
    Some(UdpSocket {
        local: common.local,
        remote: common.remote,
        inode: common.inode,
        rqueue: common.rqueue,
        wqueue: common.wqueue,
        memory: common.memory,
    })
}

/// `SK_MEMINFO_*` of `linux/sock_diag.h`: receive memory and buffer, send memory and buffer, forward
/// allocation, queued for write, options, backlog, drops (since Linux 4.7).
fn socket_memory(value: &[u8]) -> Option<SocketMemory> {
    let word = |index: usize| number32(value, index * 4);
    Some(SocketMemory {
        rmem: word(0)?,
        rcvbuf: word(1)?,
        wmem: word(2)?,
        sndbuf: word(3)?,
        queued: word(5)?,
        drops: word(8)?,
    })
}

/// struct `tcp_info`: everything up to `tcpi_total_retrans` is as old as Linux 2.6; then fields were added
/// at the end, up to `tcpi_rcv_wnd` in Linux 6.2.
fn tcp_info(value: &[u8]) -> Option<TcpInfo> {
    let word = |at: usize| number32(value, at);
    let long = |at: usize| number64(value, at);
    let byte = |at: usize| value.get(at).copied().unwrap_or_default();
    Some(TcpInfo {
        retransmits: byte(2),
        probes: byte(3),
        last_ack_recv_ms: word(56)?,
        pmtu: word(60)?,
        rto: word(8)?,
        snd_mss: word(16)?,
        unacked: word(24)?,
        last_data_sent_ms: word(44)?,
        last_data_recv_ms: word(52)?,
        rtt: word(68)?,
        rttvar: word(72)?,
        snd_ssthresh: word(76)?,
        snd_cwnd: word(80)?,
        total_retrans: word(100)?,
        bytes_acked: long(120),
        bytes_received: long(128),
        segs_out: word(136),
        segs_in: word(140),
        data_segs_in: word(152),
        notsent_bytes: word(144),
        min_rtt: word(148),
        delivery_rate: long(160),
        busy_time: long(168),
        rwnd_limited: long(176),
        sndbuf_limited: long(184),
        bytes_sent: long(200),
        bytes_retrans: long(208),
        snd_wnd: word(228),
        rcv_wnd: word(232),
    })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::netlink::testing;

    /// A connection 10.0.0.1:80 with 10.0.0.2:40112 as the kernel lists it, `info` bytes of `tcp_info`.
    fn listed(family: i32, state: u8, info: usize) -> Request {
        let mut fixed = [0; FIXED];
        fixed[0] = family as u8;
        fixed[1] = state;
        fixed[4..8].copy_from_slice(&[0, 80, 0x9c, 0xb0]);
        if family == libc::AF_INET {
            fixed[8..12].copy_from_slice(&[10, 0, 0, 1]);
            fixed[24..28].copy_from_slice(&[10, 0, 0, 2]);
        } else {
            fixed[18..24].copy_from_slice(&[0xff, 0xff, 10, 0, 0, 1]);
            fixed[34..40].copy_from_slice(&[0xff, 0xff, 10, 0, 0, 2]);
        }
        fixed[56] = 7;
        fixed[60] = 9;
        fixed[68] = 42;
        let words: Vec<u8> = (0..info / 4)
            .flat_map(|word| (word as u32).to_ne_bytes())
            .collect();
        let memory: Vec<u8> = (1_u32..=9).flat_map(u32::to_ne_bytes).collect();
        let mut request = Request::default();
        request
            .message(SOCK_DIAG_BY_FAMILY, 0, &fixed)
            .attribute(INET_DIAG_INFO, &words)
            .attribute(INET_DIAG_SKMEMINFO, &memory);
        request
    }

    fn read(request: &Request) -> TcpSocket {
        let mut found = Vec::new();
        testing::receive(request, |message| found.extend(tcp_socket(message)));
        found.pop().unwrap()
    }

    #[test]
    fn a_connection_has_its_ends_queues_and_memory() {
        for family in [libc::AF_INET, libc::AF_INET6] {
            let socket = read(&listed(family, 1, 240));
            assert_eq!(socket.local.to_string(), "10.0.0.1:80");
            assert_eq!(socket.remote.to_string(), "10.0.0.2:40112");
            assert_eq!((socket.rqueue, socket.wqueue, socket.inode), (7, 9, 42));
            let memory = socket.memory.unwrap();
            assert_eq!((memory.rmem, memory.queued, memory.drops), (1, 6, 9));
        }
    }

    #[test]
    fn a_field_that_an_older_kernel_does_not_have_is_absent() {
        let socket = read(&listed(libc::AF_INET, 1, 192));
        let info = socket.info.unwrap();
        assert_eq!((info.rto, info.total_retrans), (2, 25));
        assert!(info.sndbuf_limited.is_some());
        assert_eq!((info.bytes_sent, info.rcv_wnd), (None, None));
        let socket = read(&listed(libc::AF_INET, 1, 100));
        assert_eq!(socket.info, None);
    }

    #[test]
    fn a_listening_socket_has_no_tcp_info() {
        let socket = read(&listed(libc::AF_INET, LISTEN, 240));
        assert_eq!(socket.info, None);
    }

    proptest! {
        #[test]
        fn any_answer_is_read_without_a_panic(body: Vec<u8>) {
            let message = testing::message(SOCK_DIAG_BY_FAMILY, &body);
            let _ = (tcp_socket(&message), udp_socket(&message));
        }

        #[test]
        fn a_truncated_answer_is_read_without_a_panic(cut in 0_usize..400) {
            let request = listed(libc::AF_INET6, 1, 240);
            let bytes = testing::bytes(&request);
            let mut all = bytes.to_vec();
            all.truncate(cut);
            testing::from_bytes(&all, |message| {
                let _ = (tcp_socket(message), udp_socket(message));
            });
            let body = &bytes[16..bytes.len().min(16 + cut)];
            let message = testing::message(SOCK_DIAG_BY_FAMILY, body);
            let _ = (tcp_socket(&message), udp_socket(&message));
        }
    }
}
