//! One connection to the kernel: opened from an address without waiting, and ended with or without a word.
#![expect(
    unsafe_code,
    reason = "socket options that neither std nor socket2 reaches"
)]

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::os::fd::AsRawFd as _;
use std::time::Duration;

use socket2::{Domain, SockAddr, Socket, Type};

/// Begins to establish a connection; it is reported when that is done or has failed. The port is chosen together with the target, so that each source
/// has a whole range of them for each target.
pub(super) fn open(target: &SockAddr, source: Option<IpAddr>, is_slow: bool) -> io::Result<Socket> {
    let domain = if target.is_ipv4() {
        Domain::IPV4
    } else {
        Domain::IPV6
    };
    let kind = Type::from(libc::SOCK_STREAM | libc::SOCK_NONBLOCK | libc::SOCK_CLOEXEC);
    let socket = Socket::new_raw(domain, kind, None)?;
    if is_slow {
        // Before the window is agreed.
        socket.set_recv_buffer_size(1)?;
    }
    if let Some(source) = source {
        set(&socket, libc::IPPROTO_IP, libc::IP_BIND_ADDRESS_NO_PORT)?;
        socket.bind(&SocketAddr::new(source, 0).into())?;
    }
    match socket.connect(target) {
        Err(error) if error.raw_os_error() != Some(libc::EINPROGRESS) => Err(error),
        _ => Ok(socket),
    }
}

/// Ends a connection with a reset, so that its port is free at once.
pub(super) fn reset(socket: Socket) {
    // Where it is refused, the connection ends in the usual way.
    let _ = socket.set_linger(Some(Duration::ZERO));
    drop(socket);
}

/// Ends a connection on this side alone, without a FIN.
pub(super) fn vanish(socket: Socket) -> io::Result<()> {
    let done = set(&socket, libc::IPPROTO_TCP, libc::TCP_REPAIR);
    drop(socket);
    done
}

/// This process may let connections vanish.
pub(super) fn may_vanish() -> io::Result<()> {
    let socket = Socket::new(Domain::IPV4, Type::STREAM, None)?;
    set(&socket, libc::IPPROTO_TCP, libc::TCP_REPAIR)
}

fn set(socket: &Socket, level: i32, name: i32) -> io::Result<()> {
    let on = 1_i32;
    // SAFETY: `on` is valid for its size.
    let done = unsafe {
        libc::setsockopt(
            socket.as_raw_fd(),
            level,
            name,
            (&raw const on).cast(),
            size_of_val(&on) as libc::socklen_t,
        )
    };
    match done {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

/// Memory that this process has now (`VmRSS`), bytes; absent where the kernel does not say.
#[expect(
    clippy::disallowed_methods,
    reason = "the generator watches itself; it may not depend on the host crate"
)]
pub(super) fn memory() -> Option<u64> {
    let text = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = text.lines().find_map(|line| line.strip_prefix("VmRSS:"))?;
    let kib: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    Some(kib << 10)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_memory_of_this_process_is_known() {
        assert!(memory().unwrap() > 0);
    }
}
