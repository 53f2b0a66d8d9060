//! Sockets of any transport: bound alone or as a group, with the options that all have; every option set, read back, and
//! entered in the ledger.
#![expect(unsafe_code, reason = "std sets none of these options")]

use std::io;
use std::net::SocketAddr;
use std::os::fd::{AsRawFd as _, FromRawFd as _, OwnedFd};

use crate::config::Shared;
use crate::error::{Endpoint, Error, Feature, Transport};
use crate::name::Name;
use crate::read_back::Ledger;

pub(crate) const ANY_KERNEL: &str = "2.6";

/// Sets what a transport has beyond [`Shared`], before a socket is bound.
pub(crate) type Options<'a> = dyn Fn(&OwnedFd, &mut Ledger) -> Result<(), Error> + 'a;

impl Shared<'_> {
    /// The error for an address that cannot be listened on.
    pub(crate) fn refused(&self, address: SocketAddr, answer: io::Error) -> Error {
        let at = Endpoint {
            transport: self.transport,
            address,
        };
        match answer.raw_os_error() {
            Some(libc::EADDRINUSE) => Error::PortInUse(at),
            _ => Error::Bind { at, answer },
        }
    }
}

/// An integer option of a socket.
pub(crate) fn set(socket: &OwnedFd, level: i32, name: i32, value: i32) -> io::Result<()> {
    set_value(socket, level, name, &value)
}

/// Any option of a socket; `T` must be what the option takes.
pub(crate) fn set_value<T>(socket: &OwnedFd, level: i32, name: i32, value: &T) -> io::Result<()> {
    let size = size_of::<T>() as libc::socklen_t;
    // SAFETY: `value` is valid for its size, and the kernel only reads it.
    match unsafe {
        libc::setsockopt(
            socket.as_raw_fd(),
            level,
            name,
            std::ptr::from_ref(value).cast(),
            size,
        )
    } {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

/// Reads an integer option.
pub(crate) fn get(socket: &OwnedFd, level: i32, name: i32) -> io::Result<i32> {
    let mut value = [0_i32];
    read_words(socket, level, name, &mut value)?;
    Ok(value[0])
}

/// Reads an option of several words; returns how many the kernel has.
pub(crate) fn read_words<T>(
    socket: &OwnedFd,
    level: i32,
    name: i32,
    words: &mut [T],
) -> io::Result<usize> {
    let mut size = size_of_val(words) as libc::socklen_t;
    // SAFETY: `words` is valid for the size given.
    let done = unsafe {
        let value = words.as_mut_ptr().cast();
        libc::getsockopt(socket.as_raw_fd(), level, name, value, &raw mut size)
    };
    match done {
        0 => Ok(size as usize / size_of::<T>()),
        _ => Err(io::Error::last_os_error()),
    }
}

/// Datagrams that the kernel dropped at this socket, or SYNs and handshakes at this listener; 0 where it does not say (before
/// Linux 4.12).
pub(crate) fn drops(socket: &OwnedFd) -> u64 {
    /// `SK_MEMINFO_DROPS`, `include/uapi/linux/sock_diag.h`.
    const DROPS: usize = 8;
    let mut words = [0_u32; 9];
    match read_words(socket, libc::SOL_SOCKET, libc::SO_MEMINFO, &mut words) {
        Ok(known) if known > DROPS => words[DROPS].into(),
        _ => 0,
    }
}

/// The CPU that received the last packet of a connection; absent where the kernel does not say.
pub(crate) fn incoming_cpu(socket: &OwnedFd) -> Option<usize> {
    let cpu = get(socket, libc::SOL_SOCKET, libc::SO_INCOMING_CPU).ok()?;
    usize::try_from(cpu).ok()
}

/// The address a socket is bound to.
pub(crate) fn local_addr(socket: &OwnedFd) -> io::Result<SocketAddr> {
    let mut name = Name::empty();
    // SAFETY: name has room for the length given.
    let done =
        unsafe { libc::getsockname(socket.as_raw_fd(), name.as_mut_ptr(), &raw mut name.length) };
    if done != 0 {
        return Err(io::Error::last_os_error());
    }
    // Straight from the name: `[::]` must not turn into anything else.
    name.address()
        .ok_or_else(|| io::Error::from_raw_os_error(libc::EAFNOSUPPORT))
}

/// The bound sockets: a group with one per worker, or one.
pub(crate) fn open(
    config: &Shared<'_>,
    cpus: &[usize],
    options: &Options<'_>,
    ledger: &mut Ledger,
) -> Result<Vec<OwnedFd>, Error> {
    let mut address = config.listen;
    if !config.reuseport {
        return Ok(vec![bound(
            config, address, false, cpus[0], options, ledger,
        )?]);
    }
    // A reuseport socket joins any group of the same user, also when it asks for port 0, and steering would count
    // the strangers. So the first is bound without the option, which succeeds only where nobody is, and
    // opens its port to the others afterwards.
    let mut sockets = Vec::with_capacity(config.workers);
    for &cpu in cpus {
        let first = sockets.is_empty();
        let socket = bound(config, address, !first, cpu, options, ledger)?;
        if first {
            share(config, &socket, ledger)?;
            let actual = local_addr(&socket).map_err(|answer| config.refused(address, answer))?;
            address.set_port(actual.port());
        }
        sockets.push(socket);
    }
    if let ([only], Transport::Udp) = (cpus, config.transport) {
        // A group of UDP comes into being with its second member and outlives it; one of TCP, when the first listens.
        drop(bound(config, address, true, *only, options, ledger)?);
    }
    Ok(sockets)
}

fn bound(
    config: &Shared<'_>,
    address: SocketAddr,
    reuseport: bool,
    cpu: usize,
    options: &Options<'_>,
    ledger: &mut Ledger,
) -> Result<OwnedFd, Error> {
    let bind_error = |answer: io::Error| config.refused(address, answer);
    let family = if address.is_ipv4() {
        libc::AF_INET
    } else {
        libc::AF_INET6
    };
    // A worker of TCP waits for its listener together with its connections.
    let kind = match config.transport {
        Transport::Udp => libc::SOCK_DGRAM,
        Transport::Tcp => libc::SOCK_STREAM | libc::SOCK_NONBLOCK,
    };
    // SAFETY: takes numbers.
    let raw = unsafe { libc::socket(family, kind | libc::SOCK_CLOEXEC, 0) };
    if raw < 0 {
        return Err(bind_error(io::Error::last_os_error()));
    }
    // SAFETY: a new descriptor, nobody else's.
    let socket = unsafe { OwnedFd::from_raw_fd(raw) };
    if address.is_ipv6() && address.ip().is_unspecified() {
        // `[::]` serves IPv4 too, whatever net.ipv6.bindv6only says.
        set(&socket, libc::SOL_IPV6, libc::IPV6_V6ONLY, 0).map_err(bind_error)?;
    }
    if config.transport == Transport::Tcp {
        // Connections of a server that ended a moment ago do not keep the port from the next; a listener does.
        set(&socket, libc::SOL_SOCKET, libc::SO_REUSEADDR, 1).map_err(bind_error)?;
    }
    if reuseport {
        share(config, &socket, ledger)?;
    }
    // Before binding: from then on datagrams arrive and should find the options set.
    options(&socket, ledger)?;
    apply(config, &socket, cpu, ledger)?;
    let name = Name::of(address);
    // SAFETY: name is valid for its length.
    match unsafe { libc::bind(socket.as_raw_fd(), name.as_ptr(), name.length) } {
        0 => Ok(socket),
        _ => Err(bind_error(io::Error::last_os_error())),
    }
}

/// Lets other sockets of the same user have the port too. There is no fallback: without it the second could not be
/// bound at all.
fn share(config: &Shared<'_>, socket: &OwnedFd, ledger: &mut Ledger) -> Result<(), Error> {
    const REUSEPORT: Feature = Feature {
        switch: "reuseport",
        name: "SO_REUSEPORT",
        since: "3.9",
        remedy: "upgrade",
    };
    let actual = set(socket, libc::SOL_SOCKET, libc::SO_REUSEPORT, 1)
        .and_then(|()| get(socket, libc::SOL_SOCKET, libc::SO_REUSEPORT))
        .map_err(|error| REUSEPORT.refused("on", error))?;
    let text = format!("SO_REUSEPORT {actual} on {} sockets", config.workers);
    ledger.compare(REUSEPORT, "on", text, actual == 1)
}

fn apply(
    config: &Shared<'_>,
    socket: &OwnedFd,
    cpu: usize,
    ledger: &mut Ledger,
) -> Result<(), Error> {
    if let Some(bytes) = config.rcvbuf {
        const RCVBUF: Feature = Feature {
            switch: "rcvbuf",
            name: "SO_RCVBUF",
            since: ANY_KERNEL,
            remedy: "raise net.core.rmem_max or grant CAP_NET_ADMIN",
        };
        buffer(
            socket,
            bytes,
            libc::SO_RCVBUFFORCE,
            libc::SO_RCVBUF,
            RCVBUF,
            ledger,
        )?;
    }
    if let Some(bytes) = config.sndbuf {
        const SNDBUF: Feature = Feature {
            switch: "sndbuf",
            name: "SO_SNDBUF",
            since: ANY_KERNEL,
            remedy: "raise net.core.wmem_max or grant CAP_NET_ADMIN",
        };
        buffer(
            socket,
            bytes,
            libc::SO_SNDBUFFORCE,
            libc::SO_SNDBUF,
            SNDBUF,
            ledger,
        )?;
    }
    if config.incoming_cpu {
        const INCOMING: Feature = Feature {
            switch: "incoming-cpu",
            name: "SO_INCOMING_CPU",
            since: "4.4",
            remedy: "upgrade",
        };
        switch_on(
            socket,
            libc::SOL_SOCKET,
            libc::SO_INCOMING_CPU,
            i32::try_from(cpu).unwrap_or(i32::MAX),
            INCOMING,
            ledger,
        )?;
    }
    Ok(())
}

/// Sets an integer option and compares what reads back.
pub(crate) fn switch_on(
    socket: &OwnedFd,
    level: i32,
    name: i32,
    value: i32,
    feature: Feature,
    ledger: &mut Ledger,
) -> Result<(), Error> {
    let wanted = value.to_string();
    if let Err(error) = set(socket, level, name, value) {
        return ledger.fall_back(
            feature.switch,
            &wanted,
            "off",
            feature.refused(&wanted, error),
        );
    }
    match get(socket, level, name) {
        Ok(actual) => {
            let text = format!(
                "{} {actual}",
                feature.name.split(' ').next().unwrap_or_default()
            );
            ledger.compare(feature, wanted, text, actual == value)
        }
        Err(error) => ledger.fall_back(
            feature.switch,
            &wanted,
            "unknown",
            feature.refused(&wanted, error),
        ),
    }
}

/// Sets a buffer size, beyond the host's maximum where we may. The kernel doubles the number for its own
/// bookkeeping (socket(7)); the read-back is halved again.
fn buffer(
    socket: &OwnedFd,
    bytes: usize,
    forced: i32,
    plain: i32,
    feature: Feature,
    ledger: &mut Ledger,
) -> Result<(), Error> {
    let value = i32::try_from(bytes).unwrap_or(i32::MAX / 2);
    let wanted = format!("{bytes} B");
    if let Err(error) = set(socket, libc::SOL_SOCKET, forced, value)
        .or_else(|_| set(socket, libc::SOL_SOCKET, plain, value))
    {
        return ledger.fall_back(
            feature.switch,
            &wanted,
            "the kernel's default",
            feature.refused(&wanted, error),
        );
    }
    let actual = get(socket, libc::SOL_SOCKET, plain).unwrap_or(0) / 2;
    // The kernel has a minimum of some kilobytes: more than asked for is no loss.
    let holds = usize::try_from(actual).is_ok_and(|actual| actual >= bytes);
    ledger.compare(feature, wanted, format!("{actual} B"), holds)
}
