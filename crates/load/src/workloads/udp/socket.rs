//! Connected UDP sockets and the system calls around them; all their `unsafe`.
//!
//! Connected, so the kernel drops what other addresses and ports send us (a spoofed reply never arrives)
//! and a route is looked up once. Sources: `udp(7)`, `ip(7)`, `sock_diag` (`SK_MEMINFO_DROPS`,
//! `linux/sock_diag.h`).
#![expect(unsafe_code, reason = "socket options that std does not reach")]

use std::io;
use std::mem::{size_of, size_of_val};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::os::fd::{AsRawFd as _, FromRawFd as _, OwnedFd, RawFd};
use std::time::Duration;

use libc::{c_int, c_void};

use crate::Error;
use crate::engine::check;

/// Index of the drop counter in `SO_MEMINFO` (`linux/sock_diag.h`, `SK_MEMINFO_DROPS`).
const MEMINFO_DROPS: usize = 8;
/// Words of `SO_MEMINFO` (`SK_MEMINFO_VARS`).
const MEMINFO_WORDS: usize = 9;
/// Kernel memory that a small datagram takes from the receive buffer: its `truesize`, with room for drivers
/// that hand over half a page per packet.
const TRUESIZE: usize = 2048;

/// What a socket of the workload must be.
#[derive(Clone, Copy, Debug)]
pub(super) struct Wish {
    pub(super) target: SocketAddr,
    pub(super) source: Option<IpAddr>,
    /// Source port; 0 is the kernel's choice.
    pub(super) port: u16,
    pub(super) pmtudisc_do: bool,
    /// Size of one datagram of a burst, where bursts are asked for.
    pub(super) segment: Option<u16>,
    /// A blocking receive returns at the latest after this.
    pub(super) receive_timeout: Option<Duration>,
    /// Bytes of replies that may wait at once.
    pub(super) in_flight: usize,
    /// Datagrams that may wait at once.
    pub(super) depth: usize,
}

/// Opens a connected socket.
pub(super) fn open(wish: &Wish) -> Result<OwnedFd, Error> {
    let refuse = |step: &'static str, remedy: &'static str| {
        move |error: io::Error| Error::Socket {
            step,
            target: wish.target.into(),
            source_ip: wish.source,
            error,
            remedy,
        }
    };
    let family = if wish.target.is_ipv4() {
        libc::AF_INET
    } else {
        libc::AF_INET6
    };
    // SAFETY: no pointers are passed.
    let fd = unsafe { libc::socket(family, libc::SOCK_DGRAM | libc::SOCK_CLOEXEC, 0) };
    if fd < 0 {
        let remedy = "check that this kernel has the address family";
        return Err(refuse("open a socket", remedy)(io::Error::last_os_error()));
    }
    // SAFETY: the call above returned a new descriptor that nobody else owns.
    let socket = unsafe { OwnedFd::from_raw_fd(fd) };
    let v4 = wish.target.is_ipv4();
    if wish.pmtudisc_do {
        let set = if v4 {
            set(
                fd,
                libc::IPPROTO_IP,
                libc::IP_MTU_DISCOVER,
                &libc::IP_PMTUDISC_DO,
            )
        } else {
            set(
                fd,
                libc::IPPROTO_IPV6,
                libc::IPV6_MTU_DISCOVER,
                &libc::IPV6_PMTUDISC_DO,
            )
        };
        set.map_err(refuse(
            "forbid fragments",
            "load without path MTU discovery",
        ))?;
    }
    if let Some(size) = wish.segment {
        let needs =
            "this kernel has no UDP_SEGMENT/UDP_GRO (Linux 5.0 or newer); load without --burst";
        set(fd, libc::SOL_UDP, libc::UDP_SEGMENT, &c_int::from(size))
            .map_err(refuse("ask for UDP_SEGMENT", needs))?;
        set(fd, libc::SOL_UDP, libc::UDP_GRO, &1).map_err(refuse("ask for UDP_GRO", needs))?;
    }
    if let Some(timeout) = wish.receive_timeout {
        let time = libc::timeval {
            tv_sec: timeout.as_secs().cast_signed(),
            tv_usec: libc::suseconds_t::from(timeout.subsec_micros()),
        };
        set(fd, libc::SOL_SOCKET, libc::SO_RCVTIMEO, &time)
            .map_err(refuse("set a receive timeout", "report this as a bug"))?;
    }
    // Best effort: the kernel caps it at net.core.rmem_max, and what a full buffer drops is counted.
    let room = wish.in_flight + wish.depth * TRUESIZE;
    let room = c_int::try_from(room).unwrap_or(c_int::MAX / 2);
    if room > receive_buffer(fd) / 2 {
        let _ = set(fd, libc::SOL_SOCKET, libc::SO_RCVBUF, &room);
    }
    let unspecified = || match wish.target {
        SocketAddr::V4(_) => IpAddr::from(Ipv4Addr::UNSPECIFIED),
        SocketAddr::V6(_) => IpAddr::from(Ipv6Addr::UNSPECIFIED),
    };
    let source = wish.source.or_else(|| (wish.port > 0).then(unspecified));
    if let Some(source) = source {
        let mut address = SocketAddr::new(source, wish.port);
        if let (SocketAddr::V6(ours), SocketAddr::V6(theirs)) = (&mut address, wish.target) {
            // A link-local source lies on the device of its target.
            ours.set_scope_id(theirs.scope_id());
        }
        with_sockaddr(address, |pointer, length| {
            // SAFETY: `pointer` and `length` describe a valid socket address for the duration of the call.
            unsafe { libc::bind(fd, pointer, length) }
        })
        .map_err(refuse(
            "bind the source address",
            "use an address of this host, of the target's family",
        ))?;
    }
    with_sockaddr(wish.target, |pointer, length| {
        // SAFETY: as above.
        unsafe { libc::connect(fd, pointer, length) }
    })
    .map_err(refuse(
        "connect a socket",
        "check the route to the target; with very many sockets, net.ipv4.ip_local_port_range",
    ))?;
    Ok(socket)
}

/// The port that a socket has.
pub(super) fn local_port(socket: &OwnedFd) -> io::Result<u16> {
    // SAFETY: all zeros is a valid sockaddr_in6.
    let mut address: libc::sockaddr_in6 = unsafe { std::mem::zeroed() };
    let mut length = size_of_val(&address) as libc::socklen_t;
    // SAFETY: `address` has room for `length` bytes.
    check(unsafe {
        libc::getsockname(
            socket.as_raw_fd(),
            (&raw mut address).cast(),
            &raw mut length,
        )
    })?;
    // Both families have their port in the same place.
    Ok(u16::from_be(address.sin6_port))
}

/// Datagrams that the kernel dropped at this socket since it was opened; absent on kernels before 4.12.
pub(super) fn drops(fd: RawFd) -> Option<u64> {
    let mut words = [0_u32; MEMINFO_WORDS];
    let mut length = size_of_val(&words) as libc::socklen_t;
    let out = words.as_mut_ptr().cast::<c_void>();
    // SAFETY: `out` has room for `length` bytes, and `length` is a valid in-out argument.
    let failed =
        unsafe { libc::getsockopt(fd, libc::SOL_SOCKET, libc::SO_MEMINFO, out, &raw mut length) };
    (failed == 0 && length as usize > MEMINFO_DROPS * size_of::<u32>())
        .then(|| u64::from(words[MEMINFO_DROPS]))
}

fn receive_buffer(fd: RawFd) -> c_int {
    let mut value: c_int = 0;
    let mut length = size_of::<c_int>() as libc::socklen_t;
    // SAFETY: `value` has room for `length` bytes.
    unsafe {
        libc::getsockopt(
            fd,
            libc::SOL_SOCKET,
            libc::SO_RCVBUF,
            (&raw mut value).cast(),
            &raw mut length,
        );
    }
    value
}

fn set<T>(fd: RawFd, level: c_int, name: c_int, value: &T) -> io::Result<()> {
    let pointer = std::ptr::from_ref(value).cast::<c_void>();
    // SAFETY: `pointer` is valid for the size of `T`.
    check(unsafe { libc::setsockopt(fd, level, name, pointer, size_of::<T>() as libc::socklen_t) })
}

fn with_sockaddr(
    address: SocketAddr,
    call: impl FnOnce(*const libc::sockaddr, libc::socklen_t) -> c_int,
) -> io::Result<()> {
    match address {
        SocketAddr::V4(v4) => {
            let raw = libc::sockaddr_in {
                sin_family: libc::AF_INET as libc::sa_family_t,
                sin_port: v4.port().to_be(),
                sin_addr: libc::in_addr {
                    s_addr: u32::from_ne_bytes(v4.ip().octets()),
                },
                sin_zero: [0; 8],
            };
            check(call(
                (&raw const raw).cast(),
                size_of_val(&raw) as libc::socklen_t,
            ))
        }
        SocketAddr::V6(v6) => {
            let raw = libc::sockaddr_in6 {
                sin6_family: libc::AF_INET6 as libc::sa_family_t,
                sin6_port: v6.port().to_be(),
                sin6_flowinfo: v6.flowinfo(),
                sin6_addr: libc::in6_addr {
                    s6_addr: v6.ip().octets(),
                },
                sin6_scope_id: v6.scope_id(),
            };
            check(call(
                (&raw const raw).cast(),
                size_of_val(&raw) as libc::socklen_t,
            ))
        }
    }
}
